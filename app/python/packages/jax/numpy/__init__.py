# SPDX-License-Identifier: GPL-3.0-or-later
"""NumPy's functions on arrays of virtual devices."""
import builtins
import sys

import numpy as np

from .._src import dtypes as _dtypes
from .._src import ops as _ops
from .._src.arrays import Array as ndarray
from .._src.arrays import ConcreteArray as _ConcreteArray
from .._src.arrays import asarray as _asarray
from .._src.ops import (absolute, add, argmax, argmin, cbrt, ceil, clip, concatenate, divide, dot, einsum, equal, exp, expand_dims,
                        expm1, flip, floor, floor_divide, greater, greater_equal, isfinite, isinf, isnan, less, less_equal, log,
                        log1p, logical_and, logical_not, logical_or, logical_xor, matmul, maximum, mean, minimum, moveaxis,
                        multiply, negative, not_equal, power, prod, remainder, reshape, rint, sign, sin, cos, tan, sqrt, square,
                        squeeze, stack, subtract, swapaxes, tanh, tensordot, transpose, var, where, broadcast_to)
from .._src.ops import angle, conj, imag, real
from .._src.ops import sum_ as sum
from .._src.windows import convolve

abs, mod, true_divide, fabs, permute_dims, pow = absolute, remainder, divide, absolute, transpose, power
pi, e, inf, nan, newaxis = np.pi, np.e, np.inf, np.nan, None
iinfo, finfo, ndim, shape, size = np.iinfo, None, np.ndim, np.shape, np.size

float32, float64, float16, bfloat16 = (_dtypes.ScalarType(name) for name in ("f32", "f64", "f16", "bf16"))
int8, int16, int32, int64 = (_dtypes.ScalarType(f"i{bits}") for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_dtypes.ScalarType(f"ui{bits}") for bits in (8, 16, 32, 64))
bool_, complex64 = _dtypes.ScalarType("i1"), _dtypes.ScalarType("complex<f32>")
float_, int_, bool = float32, int32, bool_
float8_e4m3fn, float8_e5m2 = _dtypes.ScalarType("f8E4M3FN"), _dtypes.ScalarType("f8E5M2")
dtype, floating, integer, inexact, number = np.dtype, np.floating, np.integer, np.inexact, np.number


def finfo(dtype):
    if _dtypes.named(dtype) == "bf16":
        import types
        return types.SimpleNamespace(bits=16, eps=2.0**-7, max=3.3895314e38, min=-3.3895314e38, tiny=2.0**-126, dtype=bfloat16.dtype)
    return np.finfo(_dtypes.shown(_dtypes.named(dtype)))


def _engine(dtype):
    """The element type that a caller of these functions asked for, with JAX's warning where it is one of 64 bits."""
    if dtype is None:
        return None
    found, asked = _dtypes.named(dtype), _dtypes.named_wide(dtype)
    if found != asked:
        _dtypes.warn_of_narrowing(dtype, sys._getframe(1).f_code.co_name, found)
    return found


def issubdtype(a, b):
    name = _dtypes.named(a)
    if _dtypes.is_float(name) and b in (np.floating, np.inexact, np.number):
        return True
    return np.issubdtype(_dtypes.shown(name), b) if name not in _dtypes._EXTENDED else False


def asarray(value, dtype=None, **_):
    made = _asarray(value, _engine(dtype))
    return _ConcreteArray(made._handle) if isinstance(made, _ConcreteArray) and made.weak_type else made


array = asarray


def copy(x, **_):
    return _ops.bind("optimization_barrier", _asarray(x))


@_ops.placeable
def zeros(shape, dtype=None, device=None, **_):
    return _placed(_ops.full(shape, 0, _engine(dtype) or "f32"), device)


@_ops.placeable
def ones(shape, dtype=None, device=None, **_):
    return _placed(_ops.full(shape, 1, _engine(dtype) or "f32"), device)


@_ops.placeable
def full(shape, fill_value, dtype=None, device=None, **_):
    return _placed(_ops.full(shape, fill_value, _engine(dtype)), device)


empty = zeros


def _placed(x, target):
    if target is None:
        return x
    from .._src.transforms import device_put
    return device_put(x, target)


def zeros_like(x, dtype=None, **_):
    return _ops.zeros_like(_asarray(x), _engine(dtype))


def ones_like(x, dtype=None, **_):
    return _ops.ones_like(_asarray(x), _engine(dtype))


def full_like(x, fill_value, dtype=None, **_):
    x = _asarray(x)
    return _ops.full(x.shape, fill_value, _engine(dtype) or x.engine_dtype)


empty_like = zeros_like


@_ops.placeable
def arange(start, stop=None, step=None, dtype=None, **_):
    return _ops.arange(start, stop, step, _engine(dtype))


def linspace(start, stop, num=50, endpoint=True, dtype=None):
    return asarray(np.linspace(start, stop, num, endpoint), dtype)


def eye(rows, columns=None, k=0, dtype=None):
    shape = (rows, columns or rows)
    made = _ops.equal(_ops.add(_ops.iota("i32", shape, 0), k), _ops.iota("i32", shape, 1))
    return _ops.astype(made, _engine(dtype) or "f32")


identity = eye


concat, conjugate = concatenate, conj


def iscomplexobj(x):
    return _dtypes.is_complex(_asarray(x).engine_dtype)


def array_split(x, parts, axis=0):
    """Parts along an axis, whose sizes differ by at most one; or the parts between places."""
    x = _asarray(x)
    count = x.shape[axis]
    if isinstance(parts, (int, np.integer)):
        sizes = [count // parts + (i < count % parts) for i in range(parts)]
        parts = np.cumsum(sizes)[:-1]
    places = [0, *(builtins.min(int(place), count) for place in parts), count]
    at = axis % x.ndim
    return [x[(slice(None),) * at + (slice(a, b),)] for a, b in zip(places, places[1:])]


def rot90(x, k=1, axes=(0, 1)):
    x, (a, b), k = _asarray(x), axes, k % 4
    if k == 2:
        return flip(x, (a, b))
    return swapaxes(flip(x, b), a, b) if k == 1 else flip(swapaxes(x, a, b), b) if k == 3 else x


def diag(x, k=0):
    """The diagonal of a matrix, or a matrix with this diagonal."""
    x = _asarray(x)
    return diagonal(x, k) if x.ndim == 2 else where(
        eye(x.size + builtins.abs(k), None, k, bool_), _ops.pad(x, (builtins.max(k, 0),), (builtins.max(-k, 0),)), _asarray(0, x.engine_dtype))


def diagonal(x, offset=0):
    rows, columns = x.shape
    first, last = builtins.max(0, -offset), builtins.min(rows, columns - offset)
    r = _ops.arange(first, last)
    return x[r, r + offset]


def tri(rows, columns=None, k=0, dtype=None):
    shape = (rows, columns or rows)
    made = _ops.greater_equal(_ops.add(_ops.iota("i32", shape, 0), k), _ops.iota("i32", shape, 1))
    return _ops.astype(made, _engine(dtype) or "f32")


def tril(x, k=0):
    return where(tri(*x.shape[-2:], k, bool_), x, zeros_like(x))


def triu(x, k=0):
    return where(tri(*x.shape[-2:], k - 1, bool_), zeros_like(x), x)


def max(x, axis=None, keepdims=False, **_):
    return _ops.reduce("max", x, axis, keepdims)


def min(x, axis=None, keepdims=False, **_):
    return _ops.reduce("min", x, axis, keepdims)


amax, amin = max, min


def any(x, axis=None, keepdims=False):
    return _ops.reduce("or", not_equal(x, 0), axis, keepdims)


def all(x, axis=None, keepdims=False):
    return _ops.reduce("and", not_equal(x, 0), axis, keepdims)


def std(x, axis=None, keepdims=False, ddof=0):
    return sqrt(var(x, axis, keepdims, ddof))


def cumsum(x, axis=None):
    x = _asarray(x)
    return _ops.cumulative(ravel(x) if axis is None else x, axis or 0)


def ravel(x, **_):
    return _asarray(x).ravel()


def outer(x, y):
    return multiply(expand_dims(ravel(x), 1), expand_dims(ravel(y), 0))


def vdot(x, y):
    return dot(ravel(x), ravel(y))


inner = lambda x, y: tensordot(x, y, ((-1,), (-1,)))


def take(x, indices, axis=None, **_):
    x = _asarray(x)
    return _ops.take(ravel(x) if axis is None else x, indices, axis or 0)


def vstack(arrays):
    return concatenate([a if a.ndim > 1 else expand_dims(a, 0) for a in map(_asarray, arrays)], 0)


def hstack(arrays):
    arrays = [_asarray(a) for a in arrays]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1)


def split(x, parts, axis=0):
    x = _asarray(x)
    size = x.shape[axis]
    if isinstance(parts, int) and size % parts:
        raise ValueError(f"array split does not result in an equal division: rest is {size % parts}")
    ends = [size // parts * (i + 1) for i in range(parts - 1)] if isinstance(parts, int) else list(parts)
    made = []
    for start, stop in zip([0] + ends, ends + [size]):
        index = [slice(None)] * x.ndim
        index[axis] = slice(start, stop)
        made.append(x[tuple(index)])
    return made


def repeat(x, repeats, axis=None, **_):
    x = _asarray(x)
    x, axis = (ravel(x), 0) if axis is None else (x, axis % x.ndim)
    shape = x.shape[:axis + 1] + (repeats,) + x.shape[axis + 1:]
    return reshape(broadcast_to(expand_dims(x, axis + 1), shape), x.shape[:axis] + (-1,) + x.shape[axis + 1:])


def tile(x, repeats):
    x = _asarray(x)
    repeats = (repeats,) if isinstance(repeats, int) else tuple(repeats)
    for axis, count in zip(range(-len(repeats), 0), repeats):
        x = x if x.ndim >= -axis else reshape(x, (1,) * (-axis - x.ndim) + x.shape)
        x = x if count == 1 else concatenate([x] * count, axis)
    return x


def roll(x, shift, axis=None):
    x = _asarray(x)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    first, last = split(x, [x.shape[axis] - shift % x.shape[axis]], axis)
    return concatenate([last, first], axis)


def pad(x, width, mode="constant", constant_values=0):
    x = _asarray(x)
    pairs = np.broadcast_to(np.asarray(width), (x.ndim, 2))
    if mode != "constant":
        raise NotImplementedError(f"pad with mode {mode}")
    return _ops.pad(x, [int(p) for p in pairs[:, 0]], [int(p) for p in pairs[:, 1]], constant_values)


def allclose(x, y, rtol=1e-5, atol=1e-8, **_):
    return all(less_equal(absolute(subtract(x, y)), add(atol, multiply(rtol, absolute(y)))))


def isclose(x, y, rtol=1e-5, atol=1e-8):
    return less_equal(absolute(subtract(x, y)), add(atol, multiply(rtol, absolute(y))))


def array_equal(x, y):
    x, y = _asarray(x), _asarray(y)
    return all(equal(x, y)) if x.shape == y.shape else _asarray(False)


def round(x, decimals=0):
    return rint(x) if decimals == 0 else divide(rint(multiply(x, 10**decimals)), 10**decimals)


def result_type(*values):
    return _dtypes.shown(_dtypes.promoted([(a.engine_dtype, a.weak_type) for a in map(_asarray, values)])[0])


def broadcast_shapes(*shapes):
    return np.broadcast_shapes(*shapes)


class linalg:
    @staticmethod
    def norm(x, ord=None, axis=None, keepdims=False):
        return sqrt(sum(square(x), axis, keepdims=keepdims))
