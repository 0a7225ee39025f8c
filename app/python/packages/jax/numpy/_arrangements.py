# SPDX-License-Identifier: GPL-3.0-or-later
"""NumPy's functions that arrange elements: shapes, orders, places, sets."""
import builtins
import collections
import functools
import math
import operator

import numpy as np

from .._src import dtypes, ops
from .._src.arrays import ConcreteArray, asarray, astype, bind, from_numpy
from .._src.errors import ConcretizationTypeError
from .._src.ops import (add, concatenate, equal, expand_dims, flip, greater_equal, less, less_equal, logical_and, logical_not, logical_or, moveaxis,
                        multiply, not_equal, reshape, subtract, swapaxes, together, transpose, where)
from .._src.options import refuse as _refuse


def _known(x, function):
    """The elements of an array outside of a program: what the shape of a result depends on."""
    x = asarray(x)
    if not isinstance(x, ConcreteArray):
        value = x.scope.value_of(x) if hasattr(x, "scope") else None
        if value is None:
            raise ConcretizationTypeError(x, f"The size argument of jnp.{function} must be statically specified to use jnp.{function} within JAX "
                                          "transformations.")
        return np.asarray(value)
    return np.asarray(x)


def ravel(a, order="C", *, out_sharding=None):
    x = asarray(a)
    return reshape(x, (x.size,), order=order, out_sharding=out_sharding)


def atleast_1d(*arrays):
    return _each([reshape(x, (1,)) if not x.shape else x for x in map(asarray, arrays)])


def atleast_2d(*arrays):
    return _each([reshape(x, (1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x for x in map(asarray, arrays)])


def atleast_3d(*arrays):
    return _each([reshape(x, {0: (1, 1, 1), 1: (1, -1, 1), 2: x.shape + (1,)}[x.ndim]) if x.ndim < 3 else x for x in map(asarray, arrays)])


def _each(made):
    return made[0] if len(made) == 1 else made


def _rows(arrays):
    return [asarray(x) for x in arrays]


def vstack(arrays, dtype=None):
    return _typed(concatenate([reshape(x, (1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x for x in _rows(arrays)], 0), dtype)


def hstack(arrays, dtype=None):
    arrays = [reshape(x, (1,)) if not x.shape else x for x in _rows(arrays)]
    return _typed(concatenate(arrays, 0 if arrays[0].ndim == 1 else 1), dtype)


def dstack(arrays, dtype=None):
    return _typed(concatenate([atleast_3d(x) for x in _rows(arrays)], 2), dtype)


def column_stack(arrays):
    return concatenate([x if x.ndim > 1 else reshape(x, (-1, 1)) for x in _rows(arrays)], 1)


def _typed(x, dtype):
    return x if dtype is None else astype(x, dtypes.named(dtype))


def block(arrays):
    def joined(part, depth):
        if isinstance(part, list):
            return concatenate([joined(one, depth + 1) for one in part], -(_depth(arrays) - depth))
        x = asarray(part)
        return reshape(x, (1,) * (builtins.max(1, _depth(arrays)) - x.ndim) + x.shape)
    return joined(arrays, 0)


def _depth(arrays):
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) else 0


def append(x, values, axis=None):
    return concatenate([ravel(x), ravel(values)], 0) if axis is None else concatenate([x, values], axis)


def flipud(x):
    return flip(x, 0)


def fliplr(x):
    return flip(x, 1)


def rollaxis(x, axis, start=0):
    x = asarray(x)
    axis, start = ops.dimension(axis, x.ndim), start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if axis < start else start)


def matrix_transpose(x):
    return swapaxes(x, -1, -2)


def broadcast_arrays(*arrays):
    arrays = [asarray(x) for x in arrays]
    shape = np.broadcast_shapes(*[x.shape for x in arrays])
    return [ops.broadcast_to(x, shape) for x in arrays]


def broadcast_shapes(*shapes):
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={[tuple(shape) for shape in shapes]}") from None


def resize(x, shape):
    flat, shape = ravel(x), ops._shape(shape)
    return reshape(ops.take(flat, ops.remainder(ops.arange(math.prod(shape)), flat.size)), shape)


# ---- parts

def array_split(x, parts, axis=0):
    """Parts along an axis, whose sizes differ by at most one; or the parts between places."""
    x = asarray(x)
    count = x.shape[axis]
    if isinstance(parts, (int, np.integer)):
        sizes = [count // parts + (i < count % parts) for i in range(parts)]
        parts = np.cumsum(sizes)[:-1]
    places = [0, *(builtins.min(int(place) + (count if place < 0 else 0), count) for place in parts), count]
    at = ops.dimension(axis, x.ndim)
    return [x[(slice(None),) * at + (slice(a, builtins.max(a, b)),)] for a, b in zip(places, places[1:])]


def split(x, parts, axis=0):
    x = asarray(x)
    if isinstance(parts, (int, np.integer)) and x.shape[axis] % parts:
        raise ValueError(f"array split does not result in an equal division: rest is {x.shape[axis] % parts}")
    return array_split(x, parts, axis)


def hsplit(x, parts):
    x = asarray(x)
    return split(x, parts, 0 if x.ndim == 1 else 1)


def vsplit(x, parts):
    return split(x, parts, 0)


def dsplit(x, parts):
    return split(x, parts, 2)


def unstack(x, *, axis=0):
    x = asarray(x)
    return tuple(ops.take(x, i, axis) for i in range(x.shape[axis]))


def rot90(x, k=1, axes=(0, 1)):
    x, k = asarray(x), k % 4
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2")
    a, b = ops.dimensions(axes, x.ndim)
    if k == 2:
        return flip(x, (a, b))
    return swapaxes(flip(x, b), a, b) if k == 1 else flip(swapaxes(x, a, b), b) if k == 3 else x


@ops.placeable
def repeat(x, repeats, axis=None, *, total_repeat_length=None):
    x = asarray(x)
    x, axis = (ravel(x), 0) if axis is None else (x, ops.dimension(axis, x.ndim))
    if isinstance(repeats, (int, np.integer)):
        shape = x.shape[:axis + 1] + (int(repeats),) + x.shape[axis + 1:]
        return reshape(ops.broadcast_to(expand_dims(x, axis + 1), shape), x.shape[:axis] + (-1,) + x.shape[axis + 1:])
    if total_repeat_length is None:
        counts = np.broadcast_to(_known(repeats, "repeat"), (x.shape[axis],))
        return ops.take(x, from_numpy(np.repeat(np.arange(x.shape[axis], dtype=np.int32), counts)), axis)
    ends = ops.cumulative(ops.broadcast_to(asarray(repeats), (x.shape[axis],)))
    at = searchsorted(ends, ops.arange(total_repeat_length), side="right")
    return ops.take(x, ops.clip(at, 0, x.shape[axis] - 1), axis)


def tile(x, repeats):
    x = asarray(x)
    repeats = (repeats,) if isinstance(repeats, (int, np.integer)) else tuple(repeats)
    x = reshape(x, (1,) * (len(repeats) - x.ndim) + x.shape) if x.ndim < len(repeats) else x
    for axis, count in zip(range(-len(repeats), 0), repeats):
        x = x if count == 1 else concatenate([x] * int(count), axis)
    return x


def roll(x, shift, axis=None):
    x = asarray(x)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    if isinstance(axis, (tuple, list)):
        shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axis)
        return functools.reduce(lambda x, step: roll(x, *step), zip(shifts, axis), x)
    size = x.shape[ops.dimension(axis, x.ndim)]
    if not isinstance(shift, (int, np.integer)):
        return ops.take(x, ops.remainder(subtract(ops.arange(size), shift), size), axis)
    first, last = array_split(x, [size - int(shift) % size] if size else [0], axis)
    return concatenate([last, first], axis)


def _turned(x, axis, low, high, mode):
    """Padding turned about the edges, by half a turn: what lies as far on the other side of an edge is as far from it in value."""
    size = x.shape[axis]
    half = size - 1 if mode == "reflect" and size > 1 else size
    first, last = (ops.take(x, asarray([at]), axis) for at in (0, size - 1))

    def side(at):
        turns, rest = np.divmod(at + half, 2 * half)
        rest -= half
        places = np.where(rest < 0, (0 if half < size else -1) - rest, rest)
        of = lambda factors: asarray(factors.astype(x.dtype).reshape([-1 if dim == axis else 1 for dim in range(x.ndim)]))
        ends = add(multiply(of(np.where(rest < 0, 2, 0) - 2 * turns), first), multiply(of(2 * turns), last))
        return add(ends, multiply(of(np.where(rest < 0, -1, 1)), ops.take(x, asarray(places.astype(np.int32)), axis)))
    return concatenate([*([side(np.arange(-low, 0))] if low else []), x, *([side(np.arange(size, size + high))] if high else [])], axis)


def pad(x, width, mode="constant", constant_values=0, *, stat_length=None, end_values=0, reflect_type="even", **options):
    x = asarray(x)
    if callable(mode):
        raise NotImplementedError("jnp.pad with a function as its mode")
    if options:
        raise ValueError(f"Unsupported keyword arguments for mode {mode!r}: {sorted(options)}")
    _refuse("jax.numpy.pad", {"reflect_type": None if reflect_type in ("even", "odd") else reflect_type})
    pairs = [tuple(int(w) for w in pair) for pair in np.broadcast_to(np.asarray(width), (x.ndim, 2))]
    if any(count < 0 for pair in pairs for count in pair):
        raise ValueError("index can't contain negative values")
    if mode == "constant":
        values = np.broadcast_to(np.asarray(constant_values), (x.ndim, 2)) if not hasattr(constant_values, "engine_dtype") else None
        if values is None or (values == values.flat[0]).all():
            return ops.pad(x, [low for low, _ in pairs], [high for _, high in pairs], constant_values if values is None else values.flat[0].item())
        for axis, ((low, high), (first, last)) in enumerate(zip(pairs, values)):
            shape = lambda count: x.shape[:axis] + (count,) + x.shape[axis + 1:]
            x = concatenate([ops.full(shape(low), first.item(), x.engine_dtype), x, ops.full(shape(high), last.item(), x.engine_dtype)], axis)
        return x
    places = {"edge": lambda at, size: np.clip(at, 0, size - 1), "wrap": lambda at, size: at % size,
              "reflect": lambda at, size: np.abs((at + size - 1) % (2 * builtins.max(size - 1, 1)) - (size - 1)) if size > 1 else at * 0,
              "symmetric": lambda at, size: np.where(at % (2 * size) < size, at % (2 * size), 2 * size - 1 - at % (2 * size))}
    if mode == "empty":
        return pad(x, width)
    if mode == "linear_ramp":
        for axis, ((low, high), ends) in enumerate(zip(pairs, np.broadcast_to(np.asarray(end_values), (x.ndim, 2)).tolist())):
            from . import linspace
            first, last = (ops.squeeze(ops.take(x, asarray([at]), axis), axis) for at in (0, x.shape[axis] - 1))
            before, behind = (linspace(end, edge, count, endpoint=False, dtype=x.dtype, axis=axis) for end, edge, count in zip(ends, (first, last), (low, high)))
            x = concatenate([before, x, ops.flip(behind, axis)], axis)
        return x
    if mode in ("reflect", "symmetric") and reflect_type == "odd":
        return functools.reduce(lambda x, axis: _turned(x, axis, *pairs[axis], mode), range(x.ndim), x)
    if mode in ("maximum", "minimum", "mean", "median"):
        from . import max as most, mean, median, min as least, round as rounded
        of = {"maximum": most, "minimum": least, "mean": mean, "median": median}[mode]
        lengths = [(None, None)] * x.ndim if stat_length is None else np.broadcast_to(np.asarray(stat_length), (x.ndim, 2)).tolist()
        for axis, (counts, own) in enumerate(zip(pairs, lengths)):
            if 0 in own:
                raise ValueError("stat_length of 0 yields no value for padding")
            size, sides = x.shape[axis], []
            for length, is_behind, count in zip(own, (False, True), counts):
                length = size if length is None else builtins.min(length, size)
                part = ops.take(x, ops.add(ops.arange(length), size - length if is_behind else 0), axis)
                value = of(part, axis=axis, keepdims=True)
                value = astype(rounded(value) if dtypes.is_integer(x.engine_dtype) else value, x.engine_dtype)
                sides.append(ops.broadcast_to(value, (*x.shape[:axis], count, *x.shape[axis + 1:])))
            x = concatenate([sides[0], x, sides[1]], axis)
        return x
    if mode not in places:
        raise NotImplementedError(f"jnp.pad with mode {mode}")
    for axis, (low, high) in enumerate(pairs):
        if low or high:
            at = np.arange(-low, x.shape[axis] + high)
            x = ops.take(x, from_numpy(places[mode](at, x.shape[axis]).astype(np.int32)), axis)
    return x


def insert(x, index, values, axis=None):
    """Source of the texts: jax-ml/jax, jax/_src/numpy/lax_numpy.py (insert)."""
    x, values = asarray(x), asarray(values)
    x, axis = (ravel(x), 0) if axis is None else (x, ops.dimension(axis, x.ndim))
    count = x.shape[axis]
    at = _index(np.arange(*index.indices(count))) if isinstance(index, slice) else asarray(index)
    if at.ndim > 1:
        raise ValueError(f"jnp.insert(): obj must be a slice, a one-dimensional array, or a scalar; got {index}")
    if not dtypes.is_integer(at.engine_dtype) and at.size:
        raise ValueError(f"jnp.insert(): index array must be integer typed; got {index}")
    if not at.size:
        return x
    values = reshape(astype(values, x.engine_dtype), (1,) * (x.ndim - values.ndim) + values.shape)
    if at.size == 1:
        values = values if at.ndim else moveaxis(values, 0, axis)
        at = ops.broadcast_to(ravel(at), (values.shape[axis],))
    at = astype(at, "i32")
    at = ops.clip(where(less(at, 0), add(at, count), at), 0, count)
    kept = add(ops.arange(count), ops.sum_(less_equal(expand_dims(at, 1), ops.arange(count)), 0))
    added = at.at[argsort(at)].add(ops.arange(at.size))
    made, front = ops.full((*x.shape[:axis], count + at.size, *x.shape[axis + 1:]), 0, x.engine_dtype), (slice(None),) * axis
    return made.at[(*front, kept)].set(x).at[(*front, added)].set(values)


def delete(x, index, axis=None, *, assume_unique_indices=None):
    x = asarray(x)
    x, axis = (ravel(x), 0) if axis is None else (x, ops.dimension(axis, x.ndim))
    kept = np.delete(np.arange(x.shape[axis], dtype=np.int32), _known(index, "delete") if not isinstance(index, (int, slice)) else index)
    return ops.take(x, from_numpy(kept), axis)


def _by_numpy(function, name, *args, **kwargs):
    known = [_known(arg, name) if hasattr(arg, "engine_dtype") else arg for arg in args]
    made = function(*known, **kwargs)
    return tuple(map(from_numpy, made)) if isinstance(made, tuple) else from_numpy(made)


# ---- diagonals and triangles

@ops.placeable
def eye(N, M=None, k=0, dtype=None, *, device=None):
    shape = (int(N), int(N if M is None else M))
    made = equal(add(ops.iota("i32", shape, 0), k), ops.iota("i32", shape, 1))
    return astype(made, dtypes.default("f32") if dtype is None else dtypes.named(dtype))


def identity(n, dtype=None):
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    shape = (int(N), int(N if M is None else M))
    made = greater_equal(add(ops.iota("i32", shape, 0), k), ops.iota("i32", shape, 1))
    return astype(made, dtypes.default("f32") if dtype is None else dtypes.named(dtype))


def _matrices(x, function):
    x = asarray(x)
    if x.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{function} must be at least 2D")
    return x


def tril(x, k=0):
    x = _matrices(x, "tril")
    return where(tri(*x.shape[-2:], k, bool), x, ops.zeros_like(x))


def triu(x, k=0):
    x = _matrices(x, "triu")
    return where(tri(*x.shape[-2:], k - 1, bool), ops.zeros_like(x), x)


def diag(x, k=0):
    """The diagonal of a matrix, or a matrix with this diagonal."""
    x = asarray(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag input must be 1d or 2d, got {x.ndim}")
    size = x.size + builtins.abs(k)
    return where(eye(size, None, k, bool), ops.pad(x, (builtins.max(k, 0),), (builtins.max(-k, 0),)), asarray(0, x.engine_dtype))


def diagflat(x, k=0):
    return diag(ravel(x), k)


def diagonal(x, offset=0, axis1=0, axis2=1):
    x = moveaxis(asarray(x), (axis1, axis2), (0, 1))
    rows, columns = x.shape[:2]
    r = ops.arange(builtins.max(0, -offset), builtins.max(builtins.max(0, -offset), builtins.min(rows, columns - offset)))
    return moveaxis(x[r, add(r, offset)], 0, -1)


def trace(x, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    _refuse("jax.numpy.trace", {"out": out})
    return ops.sum_(diagonal(x, offset, axis1, axis2), -1, dtype)


def fill_diagonal(x, value, wrap=False, *, inplace=True):
    _refuse("jax.numpy.fill_diagonal", {"wrap": wrap})
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False.")
    x, value = asarray(x), ravel(asarray(value))
    if x.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    count = builtins.min(x.shape)
    at = ops.arange(count)
    return x.at[(at,) * x.ndim].set(value if value.size == 1 else ops.take(value, ops.remainder(at, value.size)))


def tril_indices(n, k=0, m=None):
    return tuple(map(_index, np.tril_indices(n, k, m)))


def triu_indices(n, k=0, m=None):
    return tuple(map(_index, np.triu_indices(n, k, m)))


def tril_indices_from(x, k=0):
    return tril_indices(asarray(x).shape[-2], k, asarray(x).shape[-1])


def triu_indices_from(x, k=0):
    return triu_indices(asarray(x).shape[-2], k, asarray(x).shape[-1])


def diag_indices(n, ndim=2):
    return (ops.arange(n),) * ndim


def diag_indices_from(x):
    return diag_indices(asarray(x).shape[0], asarray(x).ndim)


def _index(values):
    return from_numpy(np.asarray(values).astype(np.int32))


# ---- grids

def meshgrid(*arrays, copy=True, sparse=False, indexing="xy"):
    arrays = [asarray(x) for x in arrays]
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    if any(x.ndim != 1 for x in arrays):
        raise ValueError(f"Arguments to jax.numpy.meshgrid must be 1D, got shapes {[x.shape for x in arrays]}")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[:2] = 1, 0
    shape = [arrays[at].size for at in order]
    made = []
    for at, x in enumerate(arrays):
        own = order.index(at)
        x = reshape(x, [x.size if dim == own else 1 for dim in range(len(arrays))])
        made.append(x if sparse else ops.broadcast_to(x, shape))
    return made


def indices(dimensions, dtype=None, sparse=False):
    engine = "i32" if dtype is None else dtypes.named(dtype)
    made = [ops.iota(engine, dimensions, dim) for dim in range(len(dimensions))]
    return ops.stack(made) if not sparse else tuple(meshgrid(*[ops.iota(engine, (n,)) for n in dimensions], sparse=True, indexing="ij"))


def ix_(*arrays):
    arrays = [asarray(one) for one in arrays]
    for one in arrays:
        if one.ndim != 1:
            raise ValueError(f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {one.shape}")
        if one.engine_dtype == "i1":
            raise NotImplementedError("Boolean arguments to jax.numpy.ix_ are not implemented")
    return tuple(meshgrid(*arrays, sparse=True, indexing="ij"))


class _Grid:
    def __init__(self, sparse):
        self._sparse = sparse

    def __getitem__(self, parts):
        is_one = not isinstance(parts, tuple)
        made = [_line(part) for part in ([parts] if is_one else parts)]
        if is_one:
            return made[0]
        grid = meshgrid(*made, sparse=self._sparse, indexing="ij")
        return grid if self._sparse else ops.stack(grid)


def _line(part):
    from . import arange, linspace
    if isinstance(part.step, complex):
        return linspace(part.start or 0, part.stop, int(builtins.abs(part.step)))
    return arange(part.start or 0, part.stop, part.step or 1)


mgrid, ogrid = _Grid(False), _Grid(True)


class _Joined:
    """`r_` and `c_`: arrays, numbers and slices, joined."""

    def __init__(self, is_column):
        self._is_column = is_column

    def __getitem__(self, parts):
        made = [_line(part) if isinstance(part, slice) else atleast_1d(part) for part in (parts if isinstance(parts, tuple) else (parts,))]
        return column_stack(made) if self._is_column else concatenate(made, 0)


r_, c_ = _Joined(False), _Joined(True)


def unravel_index(index, shape):
    """Those behind the end are at the last place, those before the start at the first one. Source: jax-ml/jax, jax/_src/numpy/lax_numpy.py (unravel_index)."""
    index, sizes, made = asarray(index), ops._shape(shape), []
    for size in reversed(sizes):
        made.append(ops.remainder(index, size))
        index = ops.floor_divide(index, size)
    is_behind, is_before = ops.greater(index, 0), False if index.engine_dtype.startswith("ui") else less(index, -1)
    return tuple(where(is_behind, size - 1, where(is_before, 0, place)) for size, place in zip(sizes, made[::-1]))


def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    if len(multi_index) != len(dims):
        raise ValueError(f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}")
    if mode not in ("raise", "clip", "wrap") or order not in ("C", "F"):
        raise ValueError(f"invalid mode={mode!r} or order={order!r}. Expected 'raise', 'wrap', or 'clip', and 'C' or 'F'")
    places = list(map(asarray, multi_index))
    if mode == "raise":
        if any(((_known(place, "ravel_multi_index") < 0) | (_known(place, "ravel_multi_index") >= size)).any() for place, size in zip(places, dims)):
            raise ValueError("invalid entry in coordinates array")
    else:
        places = [ops.clip(place, 0, size - 1) if mode == "clip" else ops.remainder(place, size) for place, size in zip(places, dims)]
    made = asarray(0)
    for place, size in zip(places, dims) if order == "C" else zip(places[::-1], tuple(dims)[::-1]):
        made = add(multiply(made, size), place)
    return made


def vander(x, N=None, increasing=False):
    x = asarray(x)
    count = x.size if N is None else N
    powers = ops.arange(count) if increasing else ops.arange(count - 1, -1, -1)
    return ops.power(expand_dims(x, -1), powers)


# ---- orders

def _as_sorted(function):
    """A function of an array and the axis that it sorts along, which is not split; nor is the result there."""
    @functools.wraps(function)
    def called(x, axis=-1, **named):
        from .._src import explicit
        x = asarray(x)
        x, axis = (ravel(x), 0) if axis is None else (x, ops.dimension(axis, x.ndim) if x.ndim else 0)
        known = explicit.whole_along(x, axis, lambda text: "Arguments to sort must be unsharded over the sorting dimension. Got arg "
                                     f"sharding={explicit.sharding_of(x)} and sorting dimension={axis}") if x.ndim else None
        with explicit.suspended():
            return explicit.split_as(function(x, axis, **named), known)
    return called


@_as_sorted
def argsort(x, axis=-1, *, kind=None, order=None, stable=True, descending=False):
    """Equal elements stay in their order; what is not a number comes last."""
    if dtypes.is_complex(x.engine_dtype):  # by the real parts, and where these are equal by the imaginary ones
        order = argsort(ops.imag(x), axis, descending=descending)
        return _taken_along(order, argsort(_taken_along(ops.real(x), order, axis, "clip"), axis, descending=descending), axis, "clip")
    key = astype(x, "i32") if x.engine_dtype == "i1" else x
    if dtypes.is_float(x.engine_dtype):  # one zero, one that is not a number
        key = where(equal(x, 0), asarray(0, x.engine_dtype), where(not_equal(x, x), asarray(math.nan, x.engine_dtype), x))
    if not descending:
        return bind("sort", key, dim=axis)[1]
    return subtract(x.shape[axis] - 1, flip(bind("sort", flip(key, axis), dim=axis)[1], axis))


@_as_sorted
def sort(x, axis=-1, *, kind=None, order=None, stable=True, descending=False):
    return _taken_along(x, argsort(x, axis, descending=descending), axis, "clip")


def lexsort(keys, axis=-1):
    keys = [asarray(key) for key in keys]
    order = argsort(keys[0], axis)
    for key in keys[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis), axis)
    return order


def partition(x, kth, axis=-1):
    """As JAX has it: up to the k-th the smallest elements upwards, then the largest downwards."""
    x = asarray(x)
    axis, kth = ops.dimension(axis, x.ndim), kth % x.shape[axis]
    low, high = sort(x, axis), sort(x, axis, descending=True)
    rest = x.shape[axis] - kth - 1
    return concatenate([ops.take(low, ops.arange(kth + 1), axis), ops.take(high, ops.arange(rest), axis)], axis) if rest else low


def argpartition(x, kth, axis=-1):
    x = asarray(x)
    axis, kth = ops.dimension(axis, x.ndim), kth % x.shape[axis]
    order = argsort(x, axis)
    first, rest = ops.take(order, ops.arange(kth + 1), axis), ops.take(order, ops.arange(kth + 1, x.shape[axis]), axis)
    return concatenate([first, sort(rest, axis)], axis)


def sort_complex(x):
    made = sort(x)
    return made if dtypes.is_complex(made.engine_dtype) else ops.complex_(ops.inexact(made), 0)


def searchsorted(a, v, side="left", sorter=None, *, method="scan"):
    a, v = asarray(a), asarray(v)
    if a.ndim != 1:
        raise ValueError("a should be 1-dimensional")
    a = a if sorter is None else ops.take(a, sorter)
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument side={side!r}, expected 'left' or 'right'")
    (a, v), _ = together(a, v)
    mine = expand_dims(v, -1)
    is_before = less(a, mine) if side == "left" else less_equal(a, mine)
    if dtypes.is_float(a.engine_dtype):  # what is not a number is behind all numbers
        is_before = logical_or(is_before, logical_and(not_equal(mine, mine), equal(a, a) if side == "left" else True))
    return ops.sum_(astype(is_before, "i32"), -1)


def digitize(x, bins, right=False):
    bins = asarray(bins)
    size = bins.shape[0]
    is_rising = ops.greater_equal(bins[-1], bins[0]) if size else asarray(True)
    side = "left" if right else "right"
    falling = subtract(size, searchsorted(flip(bins), x, side=side))
    return where(is_rising, searchsorted(bins, x, side=side), falling)


def bincount(x, weights=None, minlength=0, *, length=None):
    x = asarray(x)
    if dtypes.is_inexact(x.engine_dtype):
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype}")
    x = ops.clip(astype(x, "i32"), 0, None)
    if length is None:
        known = _known(x, "bincount")
        length = builtins.max(minlength, int(known.max()) + 1 if known.size else 0)
    counted = ops.full(x.shape, 1, "i32") if weights is None else ops.broadcast_to(asarray(weights), x.shape)
    return ops.full((length,), 0, counted.engine_dtype).at[x].add(counted)


# ---- places

def take(x, indices, axis=None, out=None, mode=None, unique_indices=False, indices_are_sorted=False, fill_value=None):
    _refuse("jax.numpy.take", {"out": out})
    x = asarray(x)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    return ops.take(x, indices, axis, mode or "fill", fill_value)


def take_along_axis(x, indices, axis=-1, mode=None, fill_value=None):
    x, indices = asarray(x), asarray(indices)
    if axis is None:
        return take_along_axis(ravel(x), ravel(indices), 0, mode, fill_value)
    axis = ops.dimension(axis, x.ndim)
    from .._src import explicit
    known = explicit.whole_along(x, axis, lambda text: "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out sharding could "
                                 f"not be resolved unambiguously (or would require collectives on inputs). Got operand=ShapedArray({text})")
    with explicit.suspended():
        return explicit.split_as(_taken_along(x, indices, axis, mode or "fill", fill_value), known)


def _taken_along(x, indices, axis, mode, fill_value=None):
    shape = np.broadcast_shapes(x.shape[:axis] + (1,) + x.shape[axis + 1:], indices.shape[:axis] + (1,) + indices.shape[axis + 1:])
    indices = ops.broadcast_to(indices, shape[:axis] + (indices.shape[axis],) + shape[axis + 1:])
    x = ops.broadcast_to(x, shape[:axis] + (x.shape[axis],) + shape[axis + 1:])
    return ops.getitem(x, tuple(indices if dim == axis else ops.iota("i32", indices.shape, dim) for dim in range(x.ndim)), mode, fill_value)


def put_along_axis(x, indices, values, axis, inplace=True, *, mode=None):
    _refuse("jax.numpy.put_along_axis", {"mode": mode})
    if inplace:
        raise ValueError("jax.numpy.put_along_axis cannot modify arrays in-place, because JAX arrays are immutable. Pass inplace=False to instead return an "
                         "updated array.")
    x, indices = asarray(x), asarray(indices)
    axis = ops.dimension(axis, x.ndim)
    return x.at[tuple(indices if dim == axis else ops.iota("i32", indices.shape, dim) for dim in range(x.ndim))].set(values)


def put(x, indices, values, mode=None, *, inplace=True):
    _refuse("jax.numpy.put", {"mode": mode})
    if inplace:
        raise ValueError("jax.numpy.put cannot modify arrays in-place, because JAX arrays are immutable. Pass inplace=False to instead return an updated array.")
    x = asarray(x)
    return reshape(ravel(x).at[ravel(indices)].set(ops.broadcast_to(ravel(values), ravel(indices).shape)), x.shape)


def place(x, mask, values, *, inplace=True):
    """The values one after the other where the mask holds, again from the first when they are used up."""
    x, values = asarray(x), ravel(asarray(values))
    mask = ops.broadcast_to(not_equal(asarray(mask), 0), x.shape)
    at = subtract(ops.cumulative(astype(ravel(mask), "i32")), 1)
    return where(mask, astype(reshape(ops.take(values, ops.remainder(at, values.size)), x.shape), x.engine_dtype), x)


def choose(index, choices, out=None, mode="raise"):
    _refuse("jax.numpy.choose", {"out": out, "mode": None if mode == 'raise' else mode})
    index, choices = asarray(index), broadcast_arrays(*choices)
    made = choices[-1]
    for number in reversed(range(len(choices) - 1)):
        made = where(less_equal(index, number), choices[number], made)
    return made


def select(conditions, choices, default=0):
    made = asarray(default)
    for condition, choice in reversed(list(zip(conditions, choices))):
        made = where(condition, choice, made)
    return made


def piecewise(x, conditions, functions, *args, **kwargs):
    x = asarray(x)
    conditions = list(conditions) if isinstance(conditions, (list, tuple)) else list(asarray(conditions))
    functions, default = list(functions), 0
    if len(functions) == len(conditions) + 1:
        default = functions.pop()
    of = lambda f: f(x, *args, **kwargs) if callable(f) else asarray(f, x.engine_dtype)
    return astype(select(conditions, [of(f) for f in functions], of(default)), x.engine_dtype)


def nonzero(x, *, size=None, fill_value=None):
    if size is None:
        return tuple(map(_index, np.nonzero(_known(x, "nonzero"))))
    x = asarray(x)
    flat = ravel(not_equal(x, 0))
    rank = where(flat, subtract(ops.cumulative(astype(flat, "i32")), 1), size)
    at = equal(expand_dims(rank, -1), ops.iota("i32", (size,), 0))
    count = ops.sum_(astype(flat, "i32"))
    chosen = ops.sum_(where(at, expand_dims(ops.iota("i32", flat.shape, 0), -1), 0), 0)
    places = unravel_index(chosen, x.shape)
    fills = fill_value if isinstance(fill_value, tuple) else (0 if fill_value is None else fill_value,) * len(places)
    return tuple(where(less(ops.arange(size), count), place, fill) for place, fill in zip(places, fills))


def flatnonzero(x, *, size=None, fill_value=None):
    return nonzero(ravel(x), size=size, fill_value=fill_value)[0]


def argwhere(x, *, size=None, fill_value=None):
    places = nonzero(x, size=size, fill_value=fill_value)
    return transpose(ops.stack(places)) if places else ops.full((1 if bool(x) else 0, 0), 0, "i32")


def compress(condition, a, axis=None, *, size=None, fill_value=0, out=None):
    _refuse("jax.numpy.compress", {"out": out})
    x = asarray(a)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    if size is None:
        return ops.take(x, flatnonzero(condition), axis)
    at = flatnonzero(asarray(condition)[:x.shape[axis]], size=size, fill_value=x.shape[axis])
    whole = ops.concatenate([ops.moveaxis(x, axis, 0), ops.full((1,) + ops.moveaxis(x, axis, 0).shape[1:], fill_value, x.engine_dtype)], 0)
    return ops.moveaxis(ops.take(whole, at, 0), 0, axis)


def extract(condition, arr, *, size=None, fill_value=0):
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


# ---- sets: the sizes of their results depend on values

def unique(x, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True, size=None, fill_value=None):
    x, wanted = asarray(x), [True, return_index, return_inverse, return_counts]
    if size is None:
        values = _known(x, "unique")
        made = np.unique(values, return_index=True, return_inverse=True, return_counts=True, axis=axis, equal_nan=equal_nan)
        found = [from_numpy(made[0]), *map(_index, (made[1], made[2].reshape(values.shape if axis is None else -1), made[3]))]
    else:
        found = _unique_of_size(x, axis, operator.index(size), fill_value, equal_nan)
    made = tuple(one for one, is_wanted in zip(found, wanted) if is_wanted)
    return made[0] if len(made) == 1 else made


def _unique_of_size(x, axis, size, fill_value=None, equal_nan=True):
    """So many different slices along an axis, upwards; where each was first, the place of each slice among them, how many there are of each, and how many are
    different. Where these are fewer, the fill value or the first one follows. Source: jax-ml/jax, jax/_src/numpy/setops.py (_unique)."""
    moved = ravel(x) if axis is None else moveaxis(x, axis, 0)
    count = moved.shape[0]
    if not count and size and fill_value is None:
        raise ValueError("jnp.unique: for zero-sized input with nonzero size argument, fill_value must be specified")
    if not count:
        values = ops.full((size, *moved.shape[1:]), fill_value or 0, moved.engine_dtype)
        return moveaxis(values, 0, axis or 0), ops.full((size,), 0, "i32"), ops.full(x.shape if axis is None else (0,), 0, "i32"), ops.full((size,), 0, "i32"), 0
    rows = reshape(moved, (count, -1)) if moved.size else ops.full((count, 1), 0, moved.engine_dtype)
    order = lexsort([rows[:, column] for column in reversed(range(rows.shape[1]))])
    ordered = ops.take(rows, order, 0)
    differs = not_equal(ordered[1:], ordered[:-1])
    if equal_nan and dtypes.is_inexact(x.engine_dtype):
        differs = logical_and(differs, logical_not(logical_and(not_equal(ordered[1:], ordered[1:]), not_equal(ordered[:-1], ordered[:-1]))))
    is_new = concatenate([ops.full((1,), True), ops.reduce("or", differs, 1)], 0)
    number = subtract(ops.cumulative(astype(is_new, "i32")), 1)  # of each in order
    total = ops.sum_(is_new)
    first = ops.take(order, nonzero(is_new, size=size)[0])
    values = ops.take(moved, first)
    if fill_value is not None:
        is_there = reshape(less(ops.arange(size), total), (-1,) + (1,) * (moved.ndim - 1))
        values = where(is_there, values, asarray(fill_value, moved.engine_dtype))
    inverse = ops.full((count,), 0, "i32").at[order].set(number)
    counts = ops.full((size,), 0, "i32").at[number].add(1, mode="drop")
    return moveaxis(values, 0, axis or 0), first, reshape(inverse, x.shape) if axis is None else inverse, counts, total


_UniqueAll = collections.namedtuple("_UniqueAllResult", "values indices inverse_indices counts")
_UniqueCounts = collections.namedtuple("_UniqueCountsResult", "values counts")
_UniqueInverse = collections.namedtuple("_UniqueInverseResult", "values inverse_indices")


def unique_all(x, /, *, size=None, fill_value=None):
    return _UniqueAll(*unique(x, True, True, True, size=size, fill_value=fill_value, equal_nan=False))


def unique_counts(x, /, *, size=None, fill_value=None):
    return _UniqueCounts(*unique(x, return_counts=True, size=size, fill_value=fill_value, equal_nan=False))


def unique_inverse(x, /, *, size=None, fill_value=None):
    return _UniqueInverse(*unique(x, return_inverse=True, size=size, fill_value=fill_value, equal_nan=False))


def unique_values(x, /, *, size=None, fill_value=None):
    return unique(x, size=size, fill_value=fill_value, equal_nan=False)


def trim_zeros(filt, trim="fb", axis=None):
    """Without the zeros before the first and behind the last element that is none, along each of the axes."""
    x = asarray(filt)
    known = _known(not_equal(x, 0), "trim_zeros")
    part = [slice(None)] * x.ndim
    for dim in range(x.ndim) if axis is None else [ops.dimension(one, x.ndim) for one in (axis if isinstance(axis, (tuple, list)) else (axis,))]:
        places = np.flatnonzero(known.any(tuple(other for other in range(x.ndim) if other != dim)))
        start, stop = (places[0], places[-1] + 1) if places.size else (0, 0)
        part[dim] = slice(int(start) if "f" in trim.lower() and places.size else 0, int(stop) if "b" in trim.lower() or not places.size else None)
    return x[tuple(part)]


def packbits(a, axis=None, bitorder="big"):
    x = astype(not_equal(asarray(a), 0), "ui8")
    x, axis = (ravel(x), 0) if axis is None else (x, ops.dimension(axis, x.ndim))
    x = moveaxis(x, axis, -1)
    x = ops.pad(x, [0] * x.ndim, [0] * (x.ndim - 1) + [-x.shape[-1] % 8], asarray(0, "ui8"))
    weights = asarray(np.array([1 << at for at in (range(7, -1, -1) if bitorder == "big" else range(8))], np.uint8))
    return moveaxis(astype(ops.reduce("sum", multiply(reshape(x, x.shape[:-1] + (-1, 8)), weights), -1), "ui8"), -1, axis)


def unpackbits(a, axis=None, count=None, bitorder="big"):
    x = asarray(a)
    if x.engine_dtype != "ui8":
        raise TypeError("Expected an input array of unsigned byte data type")
    x, axis = (ravel(x), 0) if axis is None else (x, ops.dimension(axis, x.ndim))
    x = expand_dims(moveaxis(x, axis, -1), -1)
    masks = asarray(np.array([1 << at for at in (range(7, -1, -1) if bitorder == "big" else range(8))], np.uint8))
    x = astype(not_equal(bind("and", x, ops.broadcast_to(masks, x.shape[:-1] + (8,))), 0), "ui8")
    x = reshape(x, x.shape[:-2] + (-1,))
    if count is not None:
        x = x[..., :count] if count <= x.shape[-1] else ops.pad(x, [0] * x.ndim, [0] * (x.ndim - 1) + [count - x.shape[-1]], asarray(0, "ui8"))
    return moveaxis(x, -1, axis)


def unwrap(p, discont=None, axis=-1, period=2 * math.pi):
    """Steps of more than half a period, or of more than `discont`, become the shortest that end at the same angle."""
    p = ops.inexact(p)
    ops.no_complex(ValueError, "jnp.unwrap does not support complex inputs.", p)
    axis, half = ops.dimension(axis, p.ndim), period / 2
    steps = diff(p, axis=axis)
    short = subtract(ops.remainder(add(steps, half), period), half)
    short = where(logical_and(equal(short, -half), ops.greater(steps, 0)), half, short)
    more = where(less(ops.absolute(steps), half if discont is None else builtins.max(discont, half)), 0, subtract(short, steps))
    first = tuple(slice(0, 1) if dim == axis else slice(None) for dim in range(p.ndim))
    rest = tuple(slice(1, None) if dim == axis else slice(None) for dim in range(p.ndim))
    return concatenate([p[first], add(p[rest], ops.cumulative(more, axis))], axis)


def mask_indices(n, mask_func, k=0, *, size=None):
    return nonzero(mask_func(ops.full((n, n), 1, "i32"), k), size=size)


def _where_true(values, mask, size, fill_value):
    """The first so many values where the mask holds; where these are fewer, the fill value or the first of them, or 0, follows."""
    places = nonzero(mask, size=size)[0]
    made = ops.take(values, places, mode="clip") if values.size else ops.full((size,), 0, values.engine_dtype)
    first = where(ops.reduce("or", mask), made[:1], 0) if fill_value is None and size else fill_value
    return where(less(ops.arange(size), ops.sum_(mask)), made, astype(asarray(first), values.engine_dtype)) if size else made


def _elements(x, is_unique=False):
    """Those that differ, upwards, and which of as many as the array has these are."""
    if is_unique:
        return x, ops.full(x.shape, True)
    values, _, _, _, total = _unique_of_size(x, None, x.size, 0)
    return values, less(ops.arange(x.size), total)


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False, *, size=None, fill_value=None):
    if size is None:
        return _by_numpy(np.intersect1d, "intersect1d", ar1, ar2, assume_unique=assume_unique, return_indices=return_indices)
    (x, y), _ = together(ravel(ar1), ravel(ar2))
    values, is_there = _elements(x)
    common = logical_and(is_there, isin(values, y))
    found = _where_true(values, common, size, fill_value)
    if not return_indices:
        return found
    is_found = less(ops.arange(size), ops.sum_(common))
    return found, *(where(is_found, ops.argmax(equal(expand_dims(found, 1), one), 1), one.size) for one in (x, y))


def setdiff1d(ar1, ar2, assume_unique=False, *, size=None, fill_value=None):
    if size is None:
        return _by_numpy(np.setdiff1d, "setdiff1d", ar1, ar2, assume_unique=assume_unique)
    values, is_there = _elements(ravel(ar1), assume_unique)
    return _where_true(values, logical_and(is_there, isin(values, ar2, invert=True)), size, 0 if fill_value is None else fill_value)


def setxor1d(ar1, ar2, assume_unique=False, *, size=None, fill_value=None):
    if size is None:
        return _by_numpy(np.setxor1d, "setxor1d", ar1, ar2, assume_unique=assume_unique)
    values, is_there = _elements(concatenate([ravel(ar1), ravel(ar2)], 0))
    return _where_true(values, logical_and(is_there, not_equal(isin(values, ar1), isin(values, ar2))), size, fill_value)


def union1d(ar1, ar2, *, size=None, fill_value=None):
    if size is None:
        return _by_numpy(np.union1d, "union1d", ar1, ar2)
    return unique(concatenate([ravel(ar1), ravel(ar2)], 0), size=size, fill_value=fill_value)


def isin(x, values, assume_unique=False, invert=False, *, method=None):
    found = ops.reduce("or", equal(expand_dims(asarray(x), -1), ravel(values)), -1)
    return logical_not(found) if invert else found


# ---- products and differences

def outer(x, y):
    return multiply(expand_dims(ravel(x), 1), expand_dims(ravel(y), 0))


def kron(x, y):
    x, y = asarray(x), asarray(y)
    rank = builtins.max(x.ndim, y.ndim)
    x, y = reshape(x, (1,) * (rank - x.ndim) + x.shape), reshape(y, (1,) * (rank - y.ndim) + y.shape)
    pairs = multiply(reshape(x, [n for size in x.shape for n in (size, 1)]), reshape(y, [n for size in y.shape for n in (1, size)]))
    return reshape(pairs, [a * b for a, b in zip(x.shape, y.shape)])


def cross(x, y, axisa=-1, axisb=-1, axisc=-1, axis=None):
    axisa, axisb, axisc = (axis,) * 3 if axis is not None else (axisa, axisb, axisc)
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if not {x.shape[-1], y.shape[-1]} <= {2, 3}:
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    if x.shape[-1] == 2 and y.shape[-1] == 2:
        return subtract(multiply(x[..., 0], y[..., 1]), multiply(x[..., 1], y[..., 0]))
    fill = lambda v: concatenate([v, ops.zeros_like(v[..., :1])], -1) if v.shape[-1] == 2 else v
    x, y = fill(x), fill(y)
    parts = [subtract(multiply(x[..., i], y[..., j]), multiply(x[..., j], y[..., i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    return moveaxis(ops.stack(parts, -1), -1, axisc)


def diff(x, n=1, axis=-1, prepend=None, append=None):
    x = asarray(x)
    axis = ops.dimension(axis, x.ndim)
    x = concatenate([*([_edge(prepend, x, axis)] if prepend is not None else []), x, *([_edge(append, x, axis)] if append is not None else [])], axis)
    for _ in range(n):
        last = ops.slice_(x, [1 if dim == axis else 0 for dim in range(x.ndim)], x.shape)
        first = ops.slice_(x, [0] * x.ndim, [size - 1 if dim == axis else size for dim, size in enumerate(x.shape)])
        x = not_equal(last, first) if x.engine_dtype == "i1" else subtract(last, first)
    return x


def _edge(part, x, axis):
    part = asarray(part)
    return ops.broadcast_to(part, x.shape[:axis] + (1,) + x.shape[axis + 1:]) if not part.shape else part


def ediff1d(x, to_end=None, to_begin=None):
    made = diff(ravel(x))
    return concatenate([*([ravel(to_begin)] if to_begin is not None else []), made, *([ravel(to_end)] if to_end is not None else [])], 0)


def gradient(x, *spacing, axis=None, edge_order=None):
    _refuse("jax.numpy.gradient", {"edge_order": edge_order})
    x = asarray(x)
    axes = range(x.ndim) if axis is None else [ops.dimension(a, x.ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    steps = list(spacing) * (len(axes) if len(spacing) == 1 else 1) if spacing else [1.0] * len(axes)
    made = []
    for at, step in zip(axes, steps):
        y = moveaxis(x, at, 0)
        if hasattr(step, "shape") and step.shape:
            apart = diff(step)
            a, b = reshape(apart[:-1], (-1,) + (1,) * (y.ndim - 1)), reshape(apart[1:], (-1,) + (1,) * (y.ndim - 1))
            inner = ops.divide(subtract(add(multiply(multiply(a, a), y[2:]), multiply(subtract(multiply(b, b), multiply(a, a)), y[1:-1])),
                                        multiply(multiply(b, b), y[:-2])), multiply(multiply(a, b), add(a, b)))
            first, last = apart[0], apart[-1]
        else:
            inner, first, last = ops.divide(subtract(y[2:], y[:-2]), multiply(2, step)), step, step
        ends = ops.divide(subtract(y[1:2], y[:1]), first), ops.divide(subtract(y[-1:], y[-2:-1]), last)
        made.append(moveaxis(concatenate([ends[0], inner, ends[1]], 0), 0, at))
    return made[0] if len(made) == 1 else made


def correlate(a, v, mode="valid", *, precision=None, preferred_element_type=None):
    _refuse("jax.numpy.correlate", {"preferred_element_type": preferred_element_type})
    from .._src.windows import convolve
    (a, v), _ = together(a, v)
    a, v = (one if dtypes.is_inexact(one.engine_dtype) else astype(one, dtypes.default("f32")) for one in (a, ops.conj(v)))
    if a.size >= v.size:
        return convolve(a, flip(v), mode, precision)
    return flip(convolve(flip(a), v, mode, precision))


# ---- functions as arguments

def apply_along_axis(function, axis, x, *args, **kwargs):
    from .._src.batching import vmap
    x = asarray(x)
    axis = ops.dimension(axis, x.ndim)
    moved = moveaxis(x, axis, -1)
    flat = reshape(moved, (-1, moved.shape[-1]))
    made = vmap(lambda row: asarray(function(row, *args, **kwargs)))(flat)
    made = reshape(made, moved.shape[:-1] + made.shape[1:])
    return moveaxis(made, list(range(x.ndim - 1, made.ndim)), list(range(axis, axis + made.ndim - x.ndim + 1))) if made.ndim >= x.ndim else made


def apply_over_axes(function, x, axes):
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        made = function(x, axis=axis)
        x = made if made.ndim == asarray(x).ndim else expand_dims(made, axis)
    return x


def fromfunction(function, shape, *, dtype=None, **kwargs):
    return function(*indices(shape, "float32" if dtype is None else dtype), **kwargs)


def vectorize(function=None, *, excluded=frozenset(), signature=None):
    """`function` of one element, or of what the signature says, as a function of arrays: as many vmaps as there are dimensions in front."""
    if function is None:
        return functools.partial(vectorize, excluded=excluded, signature=signature)
    from .._src.batching import vmap

    @functools.wraps(function)
    def vectorized(*args, **kwargs):
        ranks = None
        if signature is not None:
            ranks = [0 if not part.strip("() ") else part.count(",") + 1 for part in signature.split("->")[0].replace(" ", "").split("),")]
        mapped = [number for number in range(len(args)) if number not in excluded]
        arrays = [asarray(args[number]) for number in mapped]
        own = ranks or [0] * len(arrays)
        if signature is not None:
            from .linalg import core_sizes
            core_sizes(signature, [x.shape for x in arrays], excluded)
        fronts = [x.shape[:x.ndim - rank] for x, rank in zip(arrays, own)]
        shape = broadcast_shapes(*fronts)

        def called(*values):
            whole = list(args)
            for number, value in zip(mapped, values):
                whole[number] = value
            return function(*whole, **kwargs)
        arrays = [ops.broadcast_to(x, shape + x.shape[x.ndim - rank:]) for x, rank in zip(arrays, own)]
        for _ in shape:
            called = vmap(called)
        return called(*arrays)
    return vectorized
