# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions on arrays, each a few ops: what jax.numpy, jax.lax and jax.nn are made of."""
import functools
import math
import string

import numpy as np

from . import dtypes
from .arrays import Array, ConcreteArray, Tracer, asarray, astype, bind, from_numpy
from .machine import machine


# ---- types and shapes

def together(*values):
    """Arrays of the type that they make together, and whether it is weak. Shapes are left to the engine."""
    arrays = [asarray(value) for value in values]
    if all(array.engine_dtype == arrays[0].engine_dtype and array.weak_type == arrays[0].weak_type for array in arrays):
        return arrays, arrays[0].weak_type
    engine, weak = dtypes.promoted([(array.engine_dtype, array.weak_type) for array in arrays])
    return [array if array.engine_dtype == engine else bind("convert", array, dtype=engine) for array in arrays], weak


def _weak(result, weak):
    if weak:
        result.weak_type = True
    return result


def binary(op, floating=False):
    def function(x, y):
        (a, b), weak = together(x, y)
        if floating and not (dtypes.is_float(a.engine_dtype) or dtypes.is_complex(a.engine_dtype)):
            a, b = astype(a, "f32"), astype(b, "f32")
        elif a.engine_dtype == "i1" and op in _OF_TRUTHS:
            return bind(_OF_TRUTHS[op], a, b)
        return _weak(bind(op, a, b), weak)
    function.__name__ = op
    return function


_OF_TRUTHS = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}


def unary(op, floating=True):
    def function(x):
        x = asarray(x)
        if floating and dtypes.inexact(x.engine_dtype) != x.engine_dtype:
            x = astype(x, "f32")
        return _weak(bind(op, x), x.weak_type)
    function.__name__ = op
    return function


def compare(direction):
    def function(x, y):
        (a, b), _ = together(x, y)
        return bind("compare", a, b, direction=direction)
    return function


add, subtract, multiply = binary("add"), binary("subtract"), binary("multiply")
divide = binary("divide", floating=True)
maximum, minimum = binary("maximum"), binary("minimum")
equal, not_equal, less, less_equal, greater, greater_equal = (
    compare(direction) for direction in ("EQ", "NE", "LT", "LE", "GT", "GE"))
_truncated = binary("remainder")


def remainder(x, y):
    """With the sign of the divisor."""
    (a, b), weak = together(x, y)
    rest = bind("remainder", a, b)
    wrong = bind("and", not_equal(rest, 0), not_equal(less(rest, 0), less(b, 0)))
    return _weak(where(wrong, add(rest, b), rest), weak)


def floor_divide(x, y):
    (a, b), weak = together(x, y)
    if dtypes.is_float(a.engine_dtype):
        return _weak(bind("floor", bind("divide", a, b)), weak)
    quotient = bind("divide", a, b)
    wrong = bind("and", not_equal(bind("remainder", a, b), 0), not_equal(less(a, 0), less(b, 0)))
    return _weak(where(wrong, subtract(quotient, 1), quotient), weak)


def power(x, y):
    if isinstance(y, int) and not isinstance(y, bool) and 0 <= y <= 64:
        return integer_power(x, y)
    (a, b), weak = together(x, y)
    if not dtypes.is_float(a.engine_dtype) and not dtypes.is_complex(a.engine_dtype) and isinstance(y, float):
        a, b = astype(a, "f32"), astype(b, "f32")
    return _weak(bind("power", a, b), weak)


def integer_power(x, n):
    x = asarray(x)
    if n < 0:
        return divide(1, integer_power(x, -n))
    result, factor = None, x
    while n:
        if n & 1:
            result = factor if result is None else multiply(result, factor)
        n >>= 1
        if n:
            factor = multiply(factor, factor)
    return ones_like(x) if result is None else result


negative, absolute, sign = unary("negate", False), unary("abs", False), unary("sign", False)
exp, log, log1p, expm1, tanh, sqrt = (unary(op) for op in (
    "exponential", "log", "log_plus_one", "exponential_minus_one", "tanh", "sqrt"))
rsqrt, sin, cos, tan = unary("rsqrt"), unary("sine"), unary("cosine"), unary("tan")
logistic, erf, erfc, erf_inv, cbrt = (unary(op) for op in ("logistic", "erf", "erfc", "erf_inv", "cbrt"))
floor, ceil, rint = unary("floor"), unary("ceil"), unary("round_nearest_even")
isfinite, isinf = unary("is_finite"), unary("is_inf")


def real(x):
    x = asarray(x)
    return bind("real", x) if dtypes.is_complex(x.engine_dtype) else x


def imag(x):
    x = asarray(x)
    return bind("imag", x) if dtypes.is_complex(x.engine_dtype) else zeros_like(x)


def conj(x):
    x = asarray(x)
    return complex_(real(x), negative(imag(x))) if dtypes.is_complex(x.engine_dtype) else x


def complex_(x, y):
    """Of real and imaginary parts."""
    (a, b), _ = together(x, y)
    return bind("complex", astype(a, "f32"), astype(b, "f32")) if a.engine_dtype != "f32" else bind("complex", a, b)


def angle(z):
    z = asarray(z)
    return bind("atan2", astype(imag(z), "f32"), astype(real(z), "f32"))


def isnan(x):
    return not_equal(x, x)


def square(x):
    return multiply(x, x)


def logical(op):
    def function(*values):
        return bind(op, *[astype(not_equal(v, 0), "i1") if asarray(v).engine_dtype != "i1" else asarray(v) for v in values])
    return function


logical_and, logical_or, logical_xor, logical_not = (logical(op) for op in ("and", "or", "xor", "not"))


def where(condition, x=None, y=None):
    if x is None:
        return tuple(from_numpy(part) for part in np.nonzero(np.asarray(condition)))
    (a, b), weak = together(x, y)
    condition = asarray(condition)
    if condition.engine_dtype != "i1":
        condition = not_equal(condition, 0)
    return _weak(bind("select", condition, a, b), weak)


def clip(x, low=None, high=None):
    x = x if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)


# ---- making

def _shape(shape):
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    return tuple(int(size) for size in shape)


def full(shape, value, engine=None):
    value = asarray(value)
    engine = engine or value.engine_dtype
    return bind("full", astype(value, engine), shape=_shape(shape))


def ones_like(x, engine=None):
    return full(x.shape, 1, engine or x.engine_dtype)


def zeros_like(x, engine=None):
    return full(x.shape, 0, engine or x.engine_dtype)


def iota(engine, shape, dim=0):
    return bind("iota", dtype=engine, shape=_shape(shape), dim=dim)


def arange(start, stop=None, step=None, engine=None):
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    if engine is None:
        engine = "i32" if all(isinstance(v, (int, np.integer)) for v in (start, stop, step)) else "f32"
    count = max(0, math.ceil((stop - start) / step))
    made = iota(engine, (count,))
    made = made if step == 1 else multiply(made, asarray(step, engine))
    return made if start == 0 else add(made, asarray(start, engine))


# ---- shapes

def reshape(x, *shape, order="C", out_sharding=None):
    x = asarray(x)
    if out_sharding is not None:
        return placeable(reshape)(x, *shape, out_sharding=out_sharding)
    shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
    shape = [int(size) for size in shape]
    if -1 in shape:
        rest = math.prod(size for size in shape if size != -1)
        shape[shape.index(-1)] = x.size // rest if rest else 0
    if math.prod(shape) != x.size:
        raise TypeError(f"cannot reshape array of shape {x.shape} (size {x.size}) into shape {tuple(shape)} "
                        f"(size {math.prod(shape)})")
    return x if tuple(shape) == x.shape else bind("reshape", x, shape=tuple(shape))


def transpose(x, *axes):
    x = asarray(x)
    axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], (int, np.integer)) else axes
    order = tuple(range(x.ndim))[::-1] if not axes else tuple(axis % x.ndim for axis in axes)
    return x if order == tuple(range(x.ndim)) else bind("transpose", x, permutation=order)


def moveaxis(x, source, target):
    x = asarray(x)
    source = [s % x.ndim for s in (source if isinstance(source, (tuple, list)) else [source])]
    target = [t % x.ndim for t in (target if isinstance(target, (tuple, list)) else [target])]
    order = [axis for axis in range(x.ndim) if axis not in source]
    for to, axis in sorted(zip(target, source)):
        order.insert(to, axis)
    return transpose(x, tuple(order))


def swapaxes(x, a, b):
    order = list(range(asarray(x).ndim))
    order[a], order[b] = order[b], order[a]
    return transpose(x, tuple(order))


def expand_dims(x, axis):
    x = asarray(x)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = x.ndim + len(axes)
    axes = {axis % rank for axis in axes}
    sizes = iter(x.shape)
    return reshape(x, tuple(1 if dim in axes else next(sizes) for dim in range(rank)))


def squeeze(x, axis=None):
    x = asarray(x)
    if axis is None:
        gone = {dim for dim, size in enumerate(x.shape) if size == 1}
    else:
        gone = {dim % x.ndim for dim in (axis if isinstance(axis, (tuple, list)) else (axis,))}
    return reshape(x, tuple(size for dim, size in enumerate(x.shape) if dim not in gone))


def broadcast_to(x, shape):
    x, shape = asarray(x), _shape(shape)
    if x.shape == shape:
        return x
    if np.broadcast_shapes(x.shape, shape) != shape:
        raise ValueError(f"Incompatible shapes for broadcasting: {x.shape} and requested shape {shape}")
    if not x.shape:
        return bind("full", x, shape=shape)
    return bind("broadcast_in_dim", x, shape=shape, dims=tuple(range(len(shape) - x.ndim, len(shape))))


def concatenate(arrays, axis=0):
    arrays, _ = together(*arrays)
    return arrays[0] if len(arrays) == 1 else bind("concatenate", *arrays, dim=axis % arrays[0].ndim)


def stack(arrays, axis=0):
    return concatenate([expand_dims(array, axis) for array in arrays], axis)


def pad(x, low, high, value=0, interior=None):
    x = asarray(x)
    return bind("pad", x, asarray(value, x.engine_dtype), low=tuple(low), high=tuple(high),
                interior=tuple(interior or (0,) * x.ndim))


def slice_(x, starts, limits, strides=None):
    x = asarray(x)
    return bind("slice", x, starts=tuple(starts), limits=tuple(limits), strides=tuple(strides or (1,) * x.ndim))


def flip(x, axis=None):
    x = asarray(x)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    return bind("reverse", x, dims=tuple(dim % x.ndim for dim in axes))


# ---- reductions

def _axes(x, axis):
    if axis is None:
        return tuple(range(x.ndim))
    return tuple(sorted(dim % x.ndim for dim in (axis if isinstance(axis, (tuple, list)) else (axis,))))


def reduce(kind, x, axis=None, keepdims=False):
    x = asarray(x)
    axes = _axes(x, axis)
    made = bind("reduce", x, kind=kind, dims=axes) if axes else x
    return expand_dims(made, axes) if keepdims and axes else made


def sum_(x, axis=None, dtype=None, keepdims=False, **_):
    x = asarray(x)
    if dtype is not None:
        x = astype(x, dtypes.named(dtype))
    elif not (dtypes.is_float(x.engine_dtype) or dtypes.is_complex(x.engine_dtype)):
        x = astype(x, "ui32" if x.engine_dtype.startswith("ui") else "i32")
    narrow = x.engine_dtype if x.engine_dtype in ("bf16", "f16") else None  # summed in f32, as XLA does
    made = reduce("sum", astype(x, "f32") if narrow else x, axis, keepdims)
    return astype(made, narrow) if narrow else made


def prod(x, axis=None, keepdims=False):
    x = asarray(x)
    return reduce("product", astype(x, "i32") if x.engine_dtype == "i1" else x, axis, keepdims)


def mean(x, axis=None, dtype=None, keepdims=False, where=None):
    x = asarray(x)
    if not (dtypes.is_float(x.engine_dtype) or dtypes.is_complex(x.engine_dtype)):
        x = astype(x, "f32")
    count = math.prod(x.shape[dim] for dim in _axes(x, axis))
    return divide(sum_(x, axis, dtype, keepdims), float(count))


def var(x, axis=None, keepdims=False, ddof=0):
    x = asarray(x)
    count = math.prod(x.shape[dim] for dim in _axes(x, axis))
    return divide(sum_(square(subtract(x, mean(x, axis, keepdims=True))), axis, keepdims=keepdims), float(count - ddof))


def arg_extreme(kind):
    def function(x, axis=None, keepdims=False):
        x = asarray(x)
        if axis is None:
            x, axis = reshape(x, (x.size,)), 0
        axis %= x.ndim
        best = reduce(kind, x, axis, keepdims=True)
        at = iota("i32", x.shape, axis)
        return reduce("min", where(equal(x, best), at, x.shape[axis]), axis, keepdims)
    return function


argmax, argmin = arg_extreme("max"), arg_extreme("min")


def cumulative(x, axis=0):
    """Sums of the elements up to each, by doubling steps."""
    x = asarray(x)
    axis, step = axis % x.ndim, 1
    while step < x.shape[axis]:
        low, high = [0] * x.ndim, [0] * x.ndim
        low[axis], high[axis] = step, -step
        x = add(x, pad(x, low, high))
        step *= 2
    return x


# ---- products

def dot_general(x, y, contracting, batch=((), ()), engine=None, precision=None):
    (a, b), weak = together(x, y)
    result = engine or a.engine_dtype
    exact = precision is not None and "default" not in str(precision).lower()
    return _weak(bind("dot_general", a, b, lhs_batch=tuple(batch[0]), rhs_batch=tuple(batch[1]), lhs_contracting=tuple(contracting[0]),
                      rhs_contracting=tuple(contracting[1]), dtype=result,
                      operand_dtype=a.engine_dtype if exact else machine.product_dtype(a.engine_dtype)), weak)


def placeable(function):
    """A function that also takes where its result is to lie."""
    @functools.wraps(function)
    def placed(*args, out_sharding=None, **kwargs):
        made = function(*args, **kwargs)
        if out_sharding is None:
            return made
        from .transforms import with_sharding_constraint
        return with_sharding_constraint(made, out_sharding)
    return placed


@placeable
def dot(x, y, precision=None, preferred_element_type=None):
    x, y = asarray(x), asarray(y)
    engine = dtypes.named(preferred_element_type) if preferred_element_type else None
    if not x.shape or not y.shape:
        return multiply(x, y)
    right = 0 if y.ndim == 1 else y.ndim - 2
    if x.shape[-1] != y.shape[right]:
        raise TypeError(f"dot_general requires contracting dimensions to have the same shape, got ({x.shape[-1]},) and ({y.shape[right]},).")
    return dot_general(x, y, ((x.ndim - 1,), (right,)), engine=engine, precision=precision)


@placeable
def matmul(x, y, precision=None, preferred_element_type=None):
    x, y = asarray(x), asarray(y)
    if not x.shape or not y.shape:
        raise ValueError(f"matmul input operand {0 if not x.shape else 1} must have ndim at least 1, but it has ndim 0")
    if x.ndim <= 2 and y.ndim <= 2 or y.ndim <= 2:
        return dot(x, y, precision, preferred_element_type)
    if x.ndim == 1:
        return squeeze(matmul(expand_dims(x, 0), y, precision), -2)
    rank = max(x.ndim, y.ndim)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = broadcast_to(x, batch + x.shape[-2:]), broadcast_to(y, batch + y.shape[-2:])
    dims = tuple(range(rank - 2))
    return dot_general(x, y, ((rank - 1,), (rank - 2,)), (dims, dims), precision=precision)


def tensordot(x, y, axes=2):
    x, y = asarray(x), asarray(y)
    if isinstance(axes, int):
        axes = (tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes)))
    left, right = ((a,) if isinstance(a, int) else tuple(a) for a in axes)
    return dot_general(x, y, (tuple(a % x.ndim for a in left), tuple(a % y.ndim for a in right)))


@placeable
def einsum(spec, *operands, precision=None, **_):
    arrays = [asarray(operand) for operand in operands]
    spec = spec.replace(" ", "")
    inputs, _, output = spec.partition("->")
    terms = inputs.split(",")
    if "..." in spec:
        free = [c for c in string.ascii_letters if c not in spec]
        count = max(array.ndim - len(term.replace("...", "")) for term, array in zip(terms, arrays))
        letters = "".join(free[:count])
        terms = [term.replace("...", letters[count - (array.ndim - len(term.replace("...", ""))):]) if "..." in term else term
                 for term, array in zip(terms, arrays)]
        output = output.replace("...", letters)
    if "->" not in spec:
        joined = "".join(terms)
        output = "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    term, value = terms[0], arrays[0]
    for number, (other, array) in enumerate(zip(terms[1:], arrays[1:])):
        later = output + "".join(terms[number + 2:])
        term, value = _without(term, value, other + later)
        other, array = _without(other, array, term + later)
        batch = [c for c in term if c in other and c in later]
        summed = [c for c in term if c in other and c not in later]
        value = dot_general(value, array, ([term.index(c) for c in summed], [other.index(c) for c in summed]),
                            ([term.index(c) for c in batch], [other.index(c) for c in batch]), precision=precision)
        term = "".join(batch + [c for c in term if c not in batch + summed] + [c for c in other if c not in batch + summed])
    term, value = _without(term, value, output)
    return transpose(value, tuple(term.index(c) for c in output)) if term != output else value


def _without(term, value, wanted):
    """Sums over letters that nobody wants."""
    gone = tuple(i for i, c in enumerate(term) if c not in wanted)
    return "".join(c for c in term if c in wanted), sum_(value, gone) if gone else value


# ---- parts

def dynamic_slice(x, starts, sizes):
    x = asarray(x)
    starts = [astype(start, "i32") for start in (starts if isinstance(starts, (tuple, list)) else list(starts))]
    return bind("dynamic_slice", x, *starts, sizes=tuple(sizes))


def dynamic_update_slice(x, update, starts):
    x = asarray(x)
    starts = starts if isinstance(starts, (tuple, list)) else list(starts)
    return bind("dynamic_update_slice", x, astype(update, x.engine_dtype), *[astype(start, "i32") for start in starts])


def take(x, indices, axis=0):
    """Slices along an axis by integers; those behind the end stay at it."""
    x, indices = asarray(x), astype(indices, "i32")
    axis %= x.ndim
    indices = where(less(indices, 0), add(indices, x.shape[axis]), indices)
    sizes = tuple(1 if dim == axis else size for dim, size in enumerate(x.shape))
    window = tuple(dim if dim < axis else dim + indices.ndim - 1 for dim in range(x.ndim) if dim != axis)
    return bind("gather", x, indices, window=window, collapsed=(axis,), index_map=(axis,), index_vector_dim=indices.ndim,
                slice_sizes=sizes)


def getitem(x, index):
    if isinstance(index, (np.ndarray, ConcreteArray)) and index.dtype == bool:
        return from_numpy(np.asarray(x)[np.asarray(index)], x.engine_dtype)
    index = index if isinstance(index, tuple) else (index,)
    used = sum(1 for part in index if part is not None and part is not Ellipsis)
    if used > x.ndim:
        raise IndexError(f"Too many indices: array is {x.ndim}-dimensional, but {used} were indexed")
    if Ellipsis in [part for part in index if not isinstance(part, (Array, np.ndarray))]:
        at = next(i for i, part in enumerate(index) if part is Ellipsis)
        index = index[:at] + (slice(None),) * (x.ndim - used) + index[at + 1:]
    else:
        index += (slice(None),) * (x.ndim - used)
    starts, limits, strides, reverse, shape, arrays = [], [], [], [], [], []
    dim = 0
    for part in index:
        if part is None:
            shape.append(1)
            continue
        size = x.shape[dim]
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            count = max(0, math.ceil((stop - start) / step))
            if step < 0:
                start, step = start + (count - 1) * step, -step
                reverse.append(dim)
            starts.append(start if count else 0), limits.append(start + (count - 1) * step + 1 if count else 0), strides.append(step)
            shape.append(count)
        elif isinstance(part, (int, np.integer)):
            at = min(max(int(part) + (size if part < 0 else 0), 0), size - 1)  # behind the end there is the last one
            starts.append(at), limits.append(at + 1), strides.append(1)
        else:
            arrays.append((len(shape), dim, asarray(part)))
            starts.append(0), limits.append(size), strides.append(1)
            shape.append(size)
        dim += 1
    if len(arrays) > 1:
        return _gather_points(x, index)
    if starts != [0] * x.ndim or limits != list(x.shape) or strides != [1] * x.ndim:
        x = slice_(x, starts, limits, strides)
    if reverse:
        x = bind("reverse", x, dims=tuple(reverse))
    x = reshape(x, tuple(shape))
    for at, _, array in arrays:
        x = take(x, array, at)
    return x


def _gather_points(x, index):
    """x[i, j, ..]: the leading dimensions by arrays of integers, the others whole."""
    count = next((i for i, part in enumerate(index) if isinstance(part, slice)), len(index))
    if any(part != slice(None) for part in index[count:]):
        raise NotImplementedError("indexing by arrays that are not at the front")
    parts = [astype(part, "i32") for part in index[:count]]
    shape = np.broadcast_shapes(*[part.shape for part in parts])
    vectors = concatenate([expand_dims(broadcast_to(part, shape), -1) for part in parts], -1)
    rest = x.shape[count:]
    return bind("gather", x, vectors, window=tuple(range(len(shape), len(shape) + len(rest))), collapsed=tuple(range(count)),
                index_map=tuple(range(count)), index_vector_dim=len(shape), slice_sizes=(1,) * count + rest)


class At:
    """`x.at[index]`: arrays with one part changed."""

    def __init__(self, array, index=None):
        self._array, self._index = array, index

    def __getitem__(self, index):
        return At(self._array, index)

    def _changed(self, values, combine):
        x = self._array
        where_ = getitem(reshape(iota("i32", (x.size,)), x.shape), self._index)
        values = broadcast_to(astype(values, x.engine_dtype), where_.shape)
        flat = bind("scatter", reshape(x, (x.size,)), reshape(where_, (where_.size,)), reshape(values, (where_.size,)),
                    window=(), collapsed=(0,), index_map=(0,), index_vector_dim=1, **({"combiner": combine} if combine else {}))
        return reshape(flat, x.shape)

    def set(self, values, **_):
        return self._changed(values, None)

    def add(self, values, **_):
        return self._changed(values, "sum")

    def multiply(self, values, **_):
        return self._changed(values, "product")

    mul = multiply

    def max(self, values, **_):
        return self._changed(values, "max")

    def min(self, values, **_):
        return self._changed(values, "min")

    def get(self, **_):
        return getitem(self._array, self._index)


def one_hot(x, count, engine="f32", axis=-1):
    x = asarray(x)
    made = equal(expand_dims(x, -1), iota("i32", (1,) * x.ndim + (count,), x.ndim))
    return moveaxis(astype(made, engine), -1, axis)


def as_type(x, dtype, **_):
    found = dtypes.named(dtype)
    if found != dtypes.named_wide(dtype):
        dtypes.warn_of_narrowing(dtype, "astype", found)
    return astype(x, found)


def immutable(x, index, value):
    raise TypeError("JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use x = x.at[idx].set(y) "
                    "or another .at[] method: https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html")


# ---- operators and methods of arrays

def _operators():
    def reflected(function):
        return lambda self, other: function(other, self)

    def guarded(function):  # what is no array may know the operation itself
        def operator(self, other):
            if not isinstance(other, (Array, np.ndarray, np.generic, bool, int, float, complex, list, tuple)):
                return NotImplemented
            return function(self, other)
        return operator

    for name, function in {"add": add, "sub": subtract, "mul": multiply, "truediv": divide, "floordiv": floor_divide,
                           "mod": remainder, "pow": power, "matmul": matmul, "and": binary("and"), "or": binary("or"),
                           "xor": binary("xor"), "lshift": binary("shift_left"),
                           "rshift": binary("shift_right_logical")}.items():
        setattr(Array, f"__{name}__", guarded(function))
        setattr(Array, f"__r{name}__", guarded(reflected(function)))
    for name, function in {"eq": equal, "ne": not_equal, "lt": less, "le": less_equal, "gt": greater, "ge": greater_equal}.items():
        setattr(Array, f"__{name}__", guarded(function))
    Array.__neg__, Array.__pos__, Array.__abs__ = negative, lambda self: self, absolute
    Array.__invert__ = lambda self: bind("not", self)
    Array.__getitem__ = getitem
    Array.__setitem__ = immutable
    Array.at = property(At)
    Array.T = property(transpose)
    Array.mT = property(lambda self: swapaxes(self, -1, -2))
    Array.real, Array.imag = property(real), property(imag)
    Array.conj = Array.conjugate = conj
    Array.astype = as_type
    Array.flatten = Array.ravel = lambda self, *_: reshape(self, (self.size,))
    Array.copy = lambda self: bind("optimization_barrier", self)
    for name, function in {"reshape": reshape, "transpose": transpose, "sum": sum_, "mean": mean, "prod": prod, "var": var,
                           "argmax": argmax, "argmin": argmin, "squeeze": squeeze, "dot": dot, "clip": clip,
                           "swapaxes": swapaxes}.items():
        setattr(Array, name, function)
    Array.std = lambda self, axis=None, keepdims=False: sqrt(var(self, axis, keepdims))
    for name, kind in {"max": "max", "min": "min"}.items():
        setattr(Array, name, lambda self, axis=None, keepdims=False, kind=kind: reduce(kind, self, axis, keepdims))
    Array.any = lambda self, axis=None, keepdims=False: reduce("or", not_equal(self, 0), axis, keepdims)
    Array.all = lambda self, axis=None, keepdims=False: reduce("and", not_equal(self, 0), axis, keepdims)


_operators()
