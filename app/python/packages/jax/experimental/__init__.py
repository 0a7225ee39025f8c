# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.experimental: names of every age."""
from .._src.callbacks import io_callback
from .._src.shardings import PartitionSpec
from . import checkify, maps, mesh_utils, multihost_utils, pjit, shard_map


def enable_x64(new_val=True):
    from .. import enable_x64 as of
    return of(new_val)


def disable_x64():
    return enable_x64(False)
