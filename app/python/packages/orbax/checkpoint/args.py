# SPDX-License-Identifier: GPL-3.0-or-later
"""What `save` and `restore` are asked for."""


class CheckpointArgs:
    pass


class StandardSave(CheckpointArgs):
    def __init__(self, item, save_args=None, **_):
        self.item, self.save_args = item, save_args


class StandardRestore(CheckpointArgs):
    is_partial = False  # whether the item may have fewer leaves than are stored

    def __init__(self, item=None, strict=True, support_layout=False, fallback_sharding=None):
        self.item, self.strict = item, strict


class PyTreeSave(StandardSave):
    pass


class PyTreeRestore(CheckpointArgs):
    def __init__(self, item=None, restore_args=None, transforms=None, transforms_default_to_original=True, partial_restore=False, **_):
        self.item, self.restore_args, self.transforms, self.partial_restore = item, restore_args, transforms, partial_restore


class ArraySave(StandardSave):
    pass


class ArrayRestore(StandardRestore):
    pass


class JsonSave(CheckpointArgs):
    def __init__(self, item):
        self.item = item


class JsonRestore(CheckpointArgs):
    def __init__(self, item=None):
        self.item = item


class Composite(CheckpointArgs):
    """Several items by their names."""

    def __init__(self, *pairs, **items):
        self.__dict__.update(dict(pairs), **items)

    def items(self):
        return self.__dict__.items()

    def keys(self):
        return self.__dict__.keys()

    def values(self):
        return self.__dict__.values()

    def __getitem__(self, name):
        if name not in self.__dict__:
            raise KeyError(f"Unknown key: {name}. Available keys: {list(self.__dict__)}")
        return self.__dict__[name]

    def get(self, name, default=None):
        return self.__dict__.get(name, default)

    def __contains__(self, name):
        return name in self.__dict__

    def __iter__(self):
        return iter(self.__dict__)

    def __len__(self):
        return len(self.__dict__)

    def __repr__(self):
        return f"Composite({self.__dict__!r})"
