# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of Flax. Source: google/flax, flax/configurations.py."""


class _Config:
    flax_fix_rng_separator = False  # names of modules are kept apart in what keys are made of

    def update(self, name_or_holder, value):
        if name_or_holder not in dir(type(self)):
            raise LookupError(f"Unrecognized config option: {name_or_holder}")
        setattr(self, name_or_holder, value)


for _name in ("flax_filter_frames", "flax_profile", "flax_use_orbax_checkpointing", "flax_preserve_adopted_names", "flax_return_frozendict", "flax_always_shard_variable",
              "flax_hijax_variable", "flax_max_repr_depth", "flax_lazy_rng"):
    setattr(_Config, _name, False)

config = _Config()
