# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.experimental.shard_map, which is jax.shard_map today."""
from .._src.transforms import shard_map
