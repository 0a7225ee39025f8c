# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.experimental: names of every age."""
from .._src.shardings import PartitionSpec
from . import maps, mesh_utils, pjit, shard_map
