# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.experimental.shard: older names of jax.sharding's."""
from .._src.transforms import auto_axes, explicit_axes, reshard
