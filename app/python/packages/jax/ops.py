# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.ops: sums and their like of segments, and the changes of arrays of older pages."""
import numpy as np

from ._src import ops as _ops
from ._src.arrays import asarray as _asarray

index = np.s_


def _segments(name, start):
    """`start`: what a segment has that no element falls into; a number, or what a type gives."""
    def of(data, segment_ids, num_segments=None, indices_are_sorted=False, unique_indices=False, bucket_size=None, mode=None):
        data, segment_ids = _asarray(data), _asarray(segment_ids)
        if num_segments is None:
            num_segments = int(_ops.reduce("max", segment_ids)) + 1 if segment_ids.size else 0
        if num_segments < 0:
            raise ValueError("num_segments must be non-negative.")
        first = start(data) if callable(start) else start
        made = _ops.full((num_segments,) + data.shape[segment_ids.ndim:], first, data.engine_dtype)
        return getattr(made.at[segment_ids], name)(data, mode="drop" if mode is None else mode, unique_indices=unique_indices)
    return of


def _least(data):
    from . import numpy as jnp
    return -np.inf if jnp.issubdtype(data.dtype, np.floating) else jnp.iinfo(data.dtype).min if data.engine_dtype != "i1" else False


def _most(data):
    from . import numpy as jnp
    return np.inf if jnp.issubdtype(data.dtype, np.floating) else jnp.iinfo(data.dtype).max if data.engine_dtype != "i1" else True


segment_sum, segment_prod, segment_max, segment_min = _segments("add", 0), _segments("multiply", 1), _segments("max", _least), _segments("min", _most)


def _older(name):
    return lambda x, idx, y, *_, **__: getattr(_asarray(x).at[idx], name)(y)


index_update, index_add, index_mul, index_min, index_max = map(_older, ("set", "add", "multiply", "min", "max"))
