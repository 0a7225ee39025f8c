# SPDX-License-Identifier: GPL-3.0-or-later
"""absl.flags: a page has no command line, so that each flag has its default."""


class FlagHolder:
    def __init__(self, name, value):
        self.name, self.value, self.default = name, value, value


class FlagValues:
    """Flags by their names; pages may set them."""

    def __call__(self, argv, known_only=False):
        return list(argv)

    def __getitem__(self, name):
        return FlagHolder(name, getattr(self, name))

    def is_parsed(self):
        return True

    def mark_as_parsed(self):
        pass


FLAGS = FlagValues()


def _define(name, default=None, *_, **__):
    setattr(FLAGS, name, default)
    return FlagHolder(name, default)


DEFINE_bool = DEFINE_boolean = DEFINE_float = DEFINE_integer = DEFINE_string = DEFINE_list = DEFINE_spaceseplist = _define
DEFINE_enum = DEFINE_enum_class = DEFINE_multi_string = DEFINE_multi_integer = DEFINE_multi_float = _define


def mark_flag_as_required(flag_name, flag_values=None):
    pass


mark_flags_as_required = mark_flag_as_required
