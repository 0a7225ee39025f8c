# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.experimental.pjit, which is jax.jit today."""
from .._src.shardings import PartitionSpec
from .._src.transforms import jit, with_sharding_constraint


def pjit(fun, in_axis_resources=None, out_axis_resources=None, **options):
    options.setdefault("in_shardings", in_axis_resources)
    options.setdefault("out_shardings", out_axis_resources)
    return jit(fun, **options)
