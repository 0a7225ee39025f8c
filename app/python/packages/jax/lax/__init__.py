# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.lax: the ops themselves, collectives of shard_map, and layouts."""
import builtins

from .._src import ops as _ops
from .._src.arrays import asarray as _asarray
from .._src.arrays import bind as _bind
from .._src.dtypes import named as _named
from .._src.ops import (add, broadcast_to, ceil, concatenate, cos, dynamic_slice, dynamic_update_slice, erf, erf_inv, exp, expand_dims,
                        expm1, floor, integer_power, log, log1p, logistic, multiply as mul, negative as neg, pad as _pad, reshape,
                        rsqrt, sign, sin, sqrt, square, squeeze, subtract as sub, tanh, transpose, divide as div, power as pow,
                        maximum as max, minimum as min, equal as eq, not_equal as ne, less as lt, less_equal as le,
                        greater as gt, greater_equal as ge, absolute as abs)
from .._src.transforms import axis_size, collective as _collective, with_sharding_constraint


class Precision:
    DEFAULT, HIGH, HIGHEST = "default", "high", "highest"


real, imag, conj, complex = _ops.real, _ops.imag, _ops.conj, _ops.complex_


def stop_gradient(x):
    """The same value, which nothing is differentiated through."""
    from .._src.trees import tree_map
    def one(leaf):
        leaf = _asarray(leaf)
        return _bind("bitcast_convert", _bind("bitcast_convert", leaf, dtype={2: "ui16", 4: "ui32", 8: "ui64"}[leaf.itemsize]),
                     dtype=leaf.engine_dtype) if leaf.dtype.kind in "fV" else leaf
    return tree_map(one, x)


def convert_element_type(x, dtype):
    return _ops.astype(x, _named(dtype))


def dot_general(x, y, dimension_numbers, precision=None, preferred_element_type=None, **_):
    contracting, batch = dimension_numbers
    return _ops.dot_general(x, y, contracting, batch, preferred_element_type and _named(preferred_element_type), precision)


def dot(x, y, precision=None, preferred_element_type=None):
    return _ops.dot(x, y, precision, preferred_element_type)


def broadcast_in_dim(x, shape, broadcast_dimensions):
    return _bind("broadcast_in_dim", _asarray(x), shape=tuple(shape), dims=tuple(broadcast_dimensions))


def broadcasted_iota(dtype, shape, dimension):
    return _ops.iota(_named(dtype), shape, dimension)


def iota(dtype, size):
    return _ops.iota(_named(dtype), (size,))


def select(which, on_true, on_false):
    return _ops.where(which, on_true, on_false)


def clamp(low, x, high):
    return _ops.clip(x, low, high)


def rev(x, dimensions):
    return _ops.flip(x, dimensions)


def slice(x, start_indices, limit_indices, strides=None):
    return _ops.slice_(x, start_indices, limit_indices, strides)


def slice_in_dim(x, start_index, limit_index, stride=1, axis=0):
    x = _asarray(x)
    start, limit, _ = builtins.slice(start_index, limit_index).indices(x.shape[axis])
    starts, limits, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], limits[axis], strides[axis] = start, limit, stride
    return slice(x, starts, limits, strides)


def full_like(x, fill_value, dtype=None, shape=None):
    x = _asarray(x)
    return _ops.full(x.shape if shape is None else shape, fill_value, x.engine_dtype if dtype is None else _named(dtype))


def dynamic_slice_in_dim(x, start, size, axis=0):
    x = _asarray(x)
    starts = [0] * x.ndim
    starts[axis] = start
    return dynamic_slice(x, starts, tuple(size if dim == axis % x.ndim else n for dim, n in enumerate(x.shape)))


def dynamic_update_slice_in_dim(x, update, start, axis):
    x = _asarray(x)
    starts = [0] * x.ndim
    starts[axis] = start
    return dynamic_update_slice(x, update, starts)


def dynamic_index_in_dim(x, index, axis=0, keepdims=True):
    made = dynamic_slice_in_dim(x, index, 1, axis)
    return made if keepdims else squeeze(made, axis)


# ---- collectives of a manual computation

def psum(x, axis_name, **_):
    from .._src.trees import tree_map
    if all(isinstance(leaf, (int, float)) for leaf in __import__("jax").tree_leaves(x)):
        return tree_map(lambda leaf: leaf * axis_size(axis_name), x)
    return _collective("psum", x, axis_name)


def pmean(x, axis_name, **_):
    from .._src.trees import tree_map
    size = axis_size(axis_name)
    return tree_map(lambda leaf: _ops.divide(leaf, float(size)), psum(x, axis_name))


def pmax(x, axis_name, **_):
    return _collective("pmax", x, axis_name)


def pmin(x, axis_name, **_):
    return _collective("pmin", x, axis_name)


def all_gather(x, axis_name, *, axis=0, tiled=False, **_):
    if not tiled:
        x = expand_dims(x, axis)
    return _collective("all_gather", x, axis_name, join=axis)


def psum_scatter(x, axis_name, *, scatter_dimension=0, tiled=False, **_):
    made = _collective("psum_scatter", x, axis_name, split=scatter_dimension)
    return made if tiled else squeeze(made, scatter_dimension)


def all_to_all(x, axis_name, split_axis, concat_axis, *, tiled=False, **_):
    if not tiled:
        size = axis_size(axis_name)
        x = _ops.moveaxis(_asarray(x), split_axis, 0)
        made = _collective("all_to_all", x, axis_name, split=0, join=0)
        return _ops.moveaxis(made.reshape((size,) + made.shape[1:]), 0, concat_axis)
    return _collective("all_to_all", x, axis_name, split=split_axis, join=concat_axis)


def ppermute(x, axis_name, perm):
    sources = [-1] * axis_size(axis_name)
    for source, target in perm:
        sources[target] = source
    return _collective("ppermute", x, axis_name, sources=tuple(sources))


def pshuffle(x, axis_name, perm):
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


def axis_index(axis_name):
    return _collective("axis_index", None, axis_name)


def pvary(x, axis_name):
    return x


def pcast(x, axis_name, *, to):
    """Says whether a value may differ over axes; the engine finds that itself."""
    return x


from .._src.windows import (ConvDimensionNumbers, conv, conv_dimension_numbers, conv_general_dilated, conv_transpose, conv_with_general_padding,
                            reduce_window)
from .._src.control import cond, fori_loop, map_ as map, scan, switch, while_loop, associative_scan
