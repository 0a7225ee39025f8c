# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions on arrays, each a few ops: what jax.numpy, jax.lax and jax.nn are made of."""
import functools
import math
import operator
import string
import warnings
from collections.abc import Sequence

import numpy as np

from . import arrays as arrays_module
from . import dtypes
from .arrays import Array, ConcreteArray, Scope, Tracer, asarray, astype, bind, from_numpy
from .errors import ConcretizationTypeError, NonConcreteBooleanIndexError, TypePromotionError
from .machine import machine
from .precision import operand_dtype
from .shardings import Mesh
from .options import refuse as _refuse


# ---- types and shapes

def together(*values):
    """Arrays of the type that they make together, and whether it is weak. Shapes are left to the engine."""
    arrays = [asarray(value) for value in values]
    if all(array.engine_dtype == arrays[0].engine_dtype and array.weak_type == arrays[0].weak_type for array in arrays):
        return arrays, arrays[0].weak_type
    engine, weak = dtypes.promoted([(array.engine_dtype, array.weak_type) for array in arrays])
    if machine.strict_promotion and len({array.engine_dtype for array in arrays if not array.weak_type}) > 1:
        raise TypePromotionError(f"Input dtypes {tuple(str(array.dtype) for array in arrays)} have no available implicit dtype promotion path when "
                                 "jax_numpy_dtype_promotion=strict. Try explicitly casting inputs to the desired output type, or set "
                                 "jax_numpy_dtype_promotion=standard.")
    return [_converted(array, engine, weak) for array in arrays], weak


def _converted(array, engine, weak):
    """Python's numbers take the type of what they meet before anything is traced."""
    if array.engine_dtype == engine:
        return array
    if isinstance(array, ConcreteArray) and array.weak_type and not array.shape and dtypes.is_inexact(engine):
        made = asarray(array.item(), engine)
        return ConcreteArray(made._handle, True) if weak else made
    return _weak(bind("convert", array, dtype=engine), weak)


def inexact(x):
    """A number that may have a fraction: integers and truths as floating ones, which are weak where they were."""
    x = asarray(x)
    return x if dtypes.is_inexact(x.engine_dtype) else _converted(x, dtypes.default("f32"), x.weak_type)


def inexact_together(*values):
    """Arrays of the type with fractions that they make together."""
    return [inexact(array) for array in together(*values)[0]]


def _weak(result, weak):
    if weak:
        result.weak_type = True
    return result


def binary(op, floating=False):
    def function(x, y):
        a = x if isinstance(x, Array) else asarray(x)
        b = y if isinstance(y, Array) else asarray(y)
        if a._type[0] == b._type[0]:
            weak = a.weak_type and b.weak_type
        else:
            (a, b), weak = together(a, b)
        if machine.rank_promotion != "allow" and a.ndim != b.ndim and a.shape and b.shape:
            _rank_promoted(op, a, b)
        if floating:
            a, b = inexact(a), inexact(b)
        elif a.engine_dtype == "i1" and op in _OF_TRUTHS:
            return bind(_OF_TRUTHS[op], a, b)
        elif op in ("maximum", "minimum") and dtypes.is_complex(a.engine_dtype):
            return _weak(_extreme_of_pairs(op, a, b), weak)
        return _weak(bind(op, a, b), weak)
    function.__name__ = op
    return function


def _rank_promoted(op, a, b):
    where = "For more information, see https://docs.jax.dev/en/latest/rank_promotion_warning.html."
    if machine.rank_promotion == "raise":
        raise ValueError(f"Operands could not be broadcast together for {op} on shapes {a.shape} {b.shape} and with the config option "
                         f"jax_numpy_rank_promotion='raise'. {where}")
    warnings.warn(f"Following NumPy automatic rank promotion for {op} on shapes {a.shape} {b.shape}. Set the jax_numpy_rank_promotion config option to 'allow' to "
                  f"disable this warning; {where[0].lower()}{where[1:]}")


def _extreme_of_pairs(op, a, b):
    return where((greater if op == "maximum" else less)(a, b), a, b)


_OF_TRUTHS = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}


def unary(op, floating=True):
    def function(x):
        x = inexact(x) if floating else asarray(x)
        return _weak(bind(op, x), x.weak_type)
    function.__name__ = op
    return function


def compare(direction):
    def function(x, y):
        (a, b), _ = together(x, y)
        if direction not in ("EQ", "NE") and dtypes.is_complex(a.engine_dtype):  # by the real parts, and where these are equal by the imaginary ones
            return where(equal(real(a), real(b)), function(imag(a), imag(b)), function(real(a), real(b)))
        return bind("compare", a, b, direction=direction)
    return function


def no_complex(kind, text, *values):
    """Raises where one of these numbers is complex."""
    if any(dtypes.is_complex(asarray(value).engine_dtype) for value in values if value is not None):
        raise kind(text)


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
    if dtypes.is_float(a.engine_dtype):  # the quotient of what divides: that of the operands may round up to a whole number
        rest = bind("remainder", a, b)
        quotient = bind("divide", subtract(a, rest), b)
        wrong = bind("and", not_equal(rest, 0), not_equal(less(rest, 0), less(b, 0)))
        return _weak(bind("round_nearest_afz", where(wrong, subtract(quotient, 1), quotient)), weak)
    quotient = bind("divide", a, b)
    wrong = bind("and", not_equal(bind("remainder", a, b), 0), not_equal(less(a, 0), less(b, 0)))
    return _weak(where(wrong, subtract(quotient, 1), quotient), weak)


def power(x, y):
    if isinstance(y, (int, np.integer)) and not isinstance(y, bool) and abs(y) <= 64:
        return integer_power(x, int(y))
    (a, b), weak = together(x, y)
    return _weak(bind("power", a, b), weak)


def integer_power(x, n):
    x = asarray(x)
    if n < 0 and not dtypes.is_inexact(x.engine_dtype):
        raise TypeError(f"Integers cannot be raised to negative powers, got integer_pow({x}, {n})")
    return arrays_module.as_one("integer_pow", (x,), {"y": n}, lambda: _power_of(x, n))


def _power_of(x, n):
    if n < 0:
        return divide(1, _power_of(x, -n))
    result, factor = None, x
    while n:
        if n & 1:
            result = factor if result is None else multiply(result, factor)
        n >>= 1
        if n:
            factor = multiply(factor, factor)
    return ones_like(x) if result is None else result


negative, sign, _magnitude = unary("negate", False), unary("sign", False), unary("abs", False)


def absolute(x):
    x = asarray(x)
    return x if x.engine_dtype == "i1" or x.engine_dtype.startswith("ui") else _magnitude(x)


exp, log, log1p, expm1, tanh, sqrt = (unary(op) for op in (
    "exponential", "log", "log_plus_one", "exponential_minus_one", "tanh", "sqrt"))
rsqrt, sin, cos, tan = unary("rsqrt"), unary("sine"), unary("cosine"), unary("tan")
logistic, erf, erfc, erf_inv, cbrt = (unary(op) for op in ("logistic", "erf", "erfc", "erf_inv", "cbrt"))
def distance(x):
    """That from 0, whose derivative there is 0."""
    return maximum(x, negative(x))


def _whole(op):
    """Integers and truths are whole as they are."""
    rounded = unary(op)

    def function(x):
        x = asarray(x)
        return rounded(x) if dtypes.is_inexact(x.engine_dtype) else x
    function.__name__ = op
    return function


def _of_parts(op, joined):
    """A function of real numbers, also of complex ones by their real and imaginary parts."""
    of_real = unary(op)

    def function(x):
        x = asarray(x)
        return joined(of_real(real(x)), of_real(imag(x))) if dtypes.is_complex(x.engine_dtype) else of_real(x)
    function.__name__ = op
    return function


floor, ceil, rint = _whole("floor"), _whole("ceil"), _of_parts("round_nearest_even", lambda x, y: complex_(x, y))
isfinite, isinf = _of_parts("is_finite", lambda x, y: bind("and", x, y)), _of_parts("is_inf", lambda x, y: bind("or", x, y))


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
    engine = "f64" if a.engine_dtype == "f64" else "f32"
    return bind("complex", astype(a, engine), astype(b, engine))


def angle(z, deg=False):
    z = asarray(z)
    made = bind("atan2", inexact(imag(z)), inexact(real(z)))
    return multiply(made, 180 / np.pi) if deg else made


def isnan(x):
    return not_equal(x, x)


def square(x):
    return multiply(x, x)


def logical(op):
    def function(*values):
        values = [asarray(v) for v in values]
        return bind(op, *[astype(not_equal(v, 0), "i1") if asarray(v).engine_dtype != "i1" else asarray(v) for v in values])
    return function


logical_and, logical_or, logical_xor, logical_not = (logical(op) for op in ("and", "or", "xor", "not"))


def dimension(axis, rank):
    """The number of a dimension, which counts from the end where it is negative. Source of the text: jax-ml/jax, jax/_src/util.py (canonicalize_axis)."""
    axis = operator.index(axis)
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis % rank


def dimensions(axis, rank):
    """Those of one axis or of several."""
    made = tuple(dimension(one, rank) for one in (axis if isinstance(axis, Sequence) else (axis,)))
    if len(set(made)) != len(made):
        raise ValueError(f"duplicate value in 'axis': {made}")
    return made


def where(condition, x=None, y=None, /, *, size=None, fill_value=None):
    if x is None and y is None:
        from ..numpy import nonzero
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("Either both or neither of the x and y arguments should be provided to jax.numpy.where, got "
                         f"{asarray(y if x is None else x)!r} and None.")
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where function.")
    (a, b), weak = together(x, y)
    condition = asarray(condition)
    if condition.engine_dtype != "i1":
        condition = not_equal(condition, 0)
    return _weak(bind("select", condition, a, b), weak)


def clip(x=None, /, min=None, max=None, *, a=None, a_min=None, a_max=None):
    x, low, high = a if x is None else x, a_min if min is None else min, a_max if max is None else max
    no_complex(ValueError, "Clip received a complex value either through the input or the min/max keywords. Complex values have no ordering and cannot be clipped. "
               "Please convert to a real value or array by taking the real or imaginary components via jax.numpy.real/imag respectively.", x, low, high)
    x = asarray(x) if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)


# ---- making

def _shape(shape):
    """Source of the text: jax-ml/jax, jax/_src/core.py (_invalid_shape_error)."""
    sizes = shape if isinstance(shape, (tuple, list)) or isinstance(shape, Array) and shape.ndim else (shape,)
    try:
        return tuple(size.__index__() for size in sizes)
    except (TypeError, AttributeError):
        said = f"Shapes must be 1D sequences of concrete values of integer type, got {tuple(sizes) if not isinstance(sizes, list) else sizes}."
        if any(isinstance(size, Array) and not isinstance(size, ConcreteArray) for size in sizes):
            said += "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions."
        raise TypeError(said) from None


def full(shape, value, engine=None):
    engine = engine or asarray(value).engine_dtype
    value = asarray(value, engine) if isinstance(value, (bool, int, float)) else astype(value, engine)
    return bind("full", value, shape=_shape(shape))


def _full_like(x, value, engine):
    from . import explicit
    return explicit.like(full(x.shape, value, engine or x.engine_dtype), x)


def ones_like(x, engine=None):
    return _full_like(x, 1, engine)


def zeros_like(x, engine=None):
    return _full_like(x, 0, engine)


def iota(engine, shape, dim=0):
    return bind("iota", dtype=engine, shape=_shape(shape), dim=dim)


def arange(start, stop=None, step=None, engine=None):
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    for value in (start, stop, step):
        if isinstance(value, Array) and not isinstance(value, ConcreteArray):
            raise ConcretizationTypeError(value, "It arose in the jnp.arange argument 'stop'")
    if engine is None:
        engine = dtypes.default("f32" if any(np.asarray(v).dtype.kind == "f" for v in (start, stop, step)) else "i32")
    start, stop, step = (v.item() if isinstance(v, ConcreteArray) else v for v in (start, stop, step))
    count = max(0, math.ceil((stop - start) / step))
    made = iota(engine, (count,))
    made = made if step == 1 else multiply(made, asarray(step, engine))
    return made if start == 0 else add(made, asarray(start, engine))


# ---- shapes

def reshape(x, *shape, order="C", out_sharding=None):
    x = asarray(x)
    if out_sharding is not None:
        return placeable(reshape)(x, *shape, out_sharding=out_sharding)
    if order not in ("C", "F"):
        raise NotImplementedError(f"np.reshape order={order} is not implemented.") if order == "A" else ValueError(f"Unexpected value for 'order' argument: {order}.")
    shape = list(_shape(shape[0] if len(shape) == 1 else shape))
    if order == "F":
        return transpose(reshape(transpose(x), *shape[::-1]) if shape else reshape(x, ()))
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
    order = tuple(range(x.ndim))[::-1] if not axes else tuple(dimension(axis, x.ndim) for axis in axes)
    return x if order == tuple(range(x.ndim)) else bind("transpose", x, permutation=order)


def moveaxis(x, source, target):
    x = asarray(x)
    source = [dimension(s, x.ndim) for s in (source if isinstance(source, (tuple, list)) else [source])]
    target = [dimension(t, x.ndim) for t in (target if isinstance(target, (tuple, list)) else [target])]
    order = [axis for axis in range(x.ndim) if axis not in source]
    for to, axis in sorted(zip(target, source)):
        order.insert(to, axis)
    return transpose(x, tuple(order))


def swapaxes(x, a, b):
    rank = asarray(x).ndim
    order, a, b = list(range(rank)), dimension(a, rank), dimension(b, rank)
    order[a], order[b] = order[b], order[a]
    return transpose(x, tuple(order))


def expand_dims(x, axis):
    x = asarray(x)
    axes = dimensions(axis, x.ndim + (len(axis) if isinstance(axis, Sequence) else 1))
    rank = x.ndim + len(axes)
    sizes = iter(x.shape)
    return reshape(x, tuple(1 if dim in axes else next(sizes) for dim in range(rank)))


def squeeze(x, axis=None):
    x = asarray(x)
    if axis is None:
        gone = {dim for dim, size in enumerate(x.shape) if size == 1}
    else:
        gone = dimensions(axis, x.ndim)
        if any(x.shape[dim] != 1 for dim in gone):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one, got "
                             f"shape={x.shape} and dimensions={tuple(gone)}")
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


def concatenate(arrays, axis=0, dtype=None):
    arrays = arrays if dtype is None else [astype(asarray(array), dtype) for array in arrays]
    if not len(arrays):
        raise ValueError("Need at least one array to concatenate.")
    arrays, _ = together(*arrays)
    if axis is None:
        arrays, axis = [reshape(array, (-1,)) for array in arrays], 0
    if not arrays[0].ndim:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    dim, shapes = dimension(axis, arrays[0].ndim), [array.shape for array in arrays]
    if len({len(shape) for shape in shapes}) > 1:
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: got {', '.join(map(str, shapes))}.")
    if len({(shape[:dim], shape[dim + 1:]) for shape in shapes}) > 1:
        raise TypeError("Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated: concatenating along dimension "
                        f"{dim} for shapes {', '.join(map(str, shapes))}.")
    return arrays[0] if len(arrays) == 1 else bind("concatenate", *arrays, dim=dim)


def stack(arrays, axis=0, out=None, dtype=None):
    _refuse("jax.numpy.stack", {"out": out})
    arrays = [asarray(array) for array in arrays]
    if len({array.shape for array in arrays}) > 1:
        raise ValueError("All input arrays must have the same shape.")
    return concatenate([expand_dims(array, axis) for array in arrays], axis, dtype)


def pad(x, low, high, value=0, interior=None):
    x = asarray(x)
    return bind("pad", x, asarray(value, x.engine_dtype), low=tuple(low), high=tuple(high),
                interior=tuple(interior or (0,) * x.ndim))


def slice_(x, starts, limits, strides=None):
    x = asarray(x)
    return bind("slice", x, starts=tuple(starts), limits=tuple(limits), strides=tuple(strides or (1,) * x.ndim))


def flip(x, axis=None):
    x = asarray(x)
    return bind("reverse", x, dims=dimensions(range(x.ndim) if axis is None else axis, x.ndim))


# ---- reductions

_NARROW = ("bf16", "f16")


def _axes(x, axis):
    if axis is None:
        return tuple(range(x.ndim))
    return tuple(sorted(dimensions(axis, x.ndim)))


_REDUCED_TRUTHS = {"max": "or", "min": "and", "sum": "or", "product": "and"}


def reduce(kind, x, axis=None, keepdims=False):
    x = asarray(x)
    axes = _axes(x, axis)
    kind = _REDUCED_TRUTHS.get(kind, kind) if x.engine_dtype == "i1" else kind
    if kind in _BY_HALVES and dtypes.is_complex(x.engine_dtype) and axes:
        made = _by_halves(x, axes, _BY_HALVES[kind])
    else:
        made = bind("reduce", x, kind=kind, dims=axes) if axes else astype(x, x.engine_dtype)
    return expand_dims(made, axes) if keepdims and axes else made


_BY_HALVES = {"product": multiply, "max": maximum, "min": minimum}  # of complex numbers, which the engine sums alone


def _by_halves(x, axes, combine):
    """The elements along these axes combined: those of one half with those of the other, until there is one."""
    kept = [dim for dim in range(x.ndim) if dim not in axes]
    shape = tuple(x.shape[dim] for dim in kept)
    x = reshape(transpose(x, (*axes, *kept)), (-1, *shape))
    if not x.shape[0]:
        if combine is not multiply:
            raise ValueError("zero-size array to reduction operation max which has no identity")
        return full(shape, 1, x.engine_dtype)
    while (size := x.shape[0]) > 1:
        half = size // 2
        x = concatenate([combine(x[:half], x[half:2 * half]), x[2 * half:]])
    return reshape(x, shape)


def sum_(x, axis=None, dtype=None, keepdims=False, **_):
    x = asarray(x)
    if dtype is not None:
        x = astype(x, dtypes.named(dtype))
    elif not (dtypes.is_float(x.engine_dtype) or dtypes.is_complex(x.engine_dtype)):
        x = astype(x, dtypes.widened(x.engine_dtype))
    narrow = x.engine_dtype if x.engine_dtype in _NARROW else None  # summed in f32, as XLA does
    made = reduce("sum", astype(x, "f32") if narrow else x, axis, keepdims)
    return astype(made, narrow) if narrow else made


def prod(x, axis=None, keepdims=False):
    x = asarray(x)
    return reduce("product", astype(x, dtypes.widened(x.engine_dtype)) if not dtypes.is_inexact(x.engine_dtype) else x, axis, keepdims)


def mean(x, axis=None, dtype=None, keepdims=False, where=None):
    _refuse("jax.numpy.mean", {"where": where})
    x = inexact(x)
    if dtype is None and x.engine_dtype in _NARROW:
        return astype(mean(astype(x, "f32"), axis, None, keepdims), x.engine_dtype)
    count = math.prod(x.shape[dim] for dim in _axes(x, axis))
    return divide(sum_(x, axis, dtype, keepdims), float(count))


def var(x, axis=None, keepdims=False, ddof=0):
    x = asarray(x)
    if x.engine_dtype in _NARROW:
        return astype(var(astype(x, "f32"), axis, keepdims, ddof), x.engine_dtype)
    count = math.prod(x.shape[dim] for dim in _axes(x, axis))
    apart = subtract(x, mean(x, axis, keepdims=True))
    squares = add(square(real(apart)), square(imag(apart))) if dtypes.is_complex(apart.engine_dtype) else square(apart)
    return divide(sum_(squares, axis, keepdims=keepdims), float(count - ddof))


def arg_extreme(kind):
    def function(x, axis=None, out=None, keepdims=False):
        _refuse(f"jax.numpy.arg{kind}", {"out": out})
        x = asarray(x)
        if axis is None:
            made = function(reshape(x, (x.size,)), 0)
            return reshape(made, (1,) * x.ndim) if keepdims else made
        axis = dimension(axis, x.ndim)
        if not x.shape[axis]:
            raise ValueError(f"attempt to get arg{kind} of an empty sequence")
        at = iota(dtypes.default("i32"), (1,) * axis + (x.shape[axis],) + (1,) * (x.ndim - axis - 1), axis)
        best = reduce(kind, x, axis, keepdims=True)
        is_best = equal(x, best)
        if dtypes.is_float(x.engine_dtype):  # what is not a number comes first
            is_best = bind("or", is_best, not_equal(x, x))
        return reduce("min", where(is_best, at, x.shape[axis]), axis, keepdims)
    return function


argmax, argmin = arg_extreme("max"), arg_extreme("min")


def cumulative(x, axis=0, combine=None, identity=0):
    """The elements up to each, combined (summed), by doubling steps."""
    from . import explicit
    x = asarray(x)
    axis = dimension(axis, x.ndim)
    known = explicit.whole_along(x, axis, lambda text: f"Input should be unsharded over the axis being reduced. Got input type={text} and axis={axis}")
    with explicit.suspended():
        return explicit.split_as(_cumulative(x, axis, combine or add, identity), known)


def _cumulative(x, axis, combine, identity):
    step = 1
    while step < x.shape[axis]:
        low, high = [0] * x.ndim, [0] * x.ndim
        low[axis], high[axis] = step, -step
        x = combine(x, pad(x, low, high, identity))
        step *= 2
    return x


# ---- products

def dot_general(x, y, contracting, batch=((), ()), engine=None, precision=None):
    (a, b), weak = together(x, y)
    if Mesh.has_explicit:
        from . import explicit
        explicit.check_summed(a, b, contracting)
    if a.engine_dtype == "i1":  # whether any of the products is true
        made = not_equal(dot_general(astype(a, "i32"), astype(b, "i32"), contracting, batch), 0)
        return made if engine is None else astype(made, engine)
    result = engine or a.engine_dtype
    return _weak(bind("dot_general", a, b, lhs_batch=tuple(batch[0]), rhs_batch=tuple(batch[1]), lhs_contracting=tuple(contracting[0]),
                      rhs_contracting=tuple(contracting[1]), dtype=result,
                      operand_dtype=operand_dtype(a.engine_dtype, precision)), weak and engine is None)


def placeable(function):
    """A function that also takes where its result is to lie."""
    @functools.wraps(function)
    def placed(*args, out_sharding=None, **kwargs):
        if out_sharding is None:
            return function(*args, **kwargs)
        from . import batching, explicit, transforms
        spec = getattr(out_sharding, "spec", out_sharding)
        unreduced = getattr(spec, "unreduced", frozenset())
        if unreduced and not (Scope._stack or batching.Level.stack):  # as a program: what devices have of the result is what they make of their pieces
            return transforms.jit(lambda: placed(*args, out_sharding=out_sharding, **kwargs))()
        with explicit.suspended(unreduced):
            made = function(*args, **kwargs)
        return transforms.placed(made, out_sharding, is_type=True)
    return placed


@placeable
def dot(x, y, precision=None, preferred_element_type=None):
    x, y = asarray(x), asarray(y)
    engine = dtypes.named(preferred_element_type) if preferred_element_type else None
    if not x.shape or not y.shape:
        return multiply(x, y) if engine is None else astype(multiply(x, y), engine)
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
        return squeeze(matmul(expand_dims(x, 0), y, precision, preferred_element_type), -2)
    rank = max(x.ndim, y.ndim)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = broadcast_to(x, batch + x.shape[-2:]), broadcast_to(y, batch + y.shape[-2:])
    dims = tuple(range(rank - 2))
    engine = dtypes.named(preferred_element_type) if preferred_element_type else None
    return dot_general(x, y, ((rank - 1,), (rank - 2,)), (dims, dims), engine, precision)


@placeable
def tensordot(x, y, axes=2, *, precision=None, preferred_element_type=None):
    x, y = asarray(x), asarray(y)
    if isinstance(axes, int):
        axes = (tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes)))
    left, right = ((a,) if isinstance(a, int) else tuple(a) for a in axes)
    engine = dtypes.named(preferred_element_type) if preferred_element_type else None
    return dot_general(x, y, (tuple(dimension(a, x.ndim) for a in left), tuple(dimension(a, y.ndim) for a in right)), engine=engine, precision=precision)


def _spelled(parts):
    """einsum(x, (0, 1), y, (1,), (0,)) with letters."""
    letters = lambda dims: "".join("..." if dim is Ellipsis else string.ascii_letters[dim] for dim in dims)
    terms = ",".join(map(letters, parts[1::2]))
    return (terms if len(parts) % 2 == 0 else f"{terms}->{letters(parts[-1])}"), list(parts[:len(parts) // 2 * 2:2])


@placeable
def einsum(spec, *operands, precision=None, preferred_element_type=None, optimize="auto"):
    engine = dtypes.named(preferred_element_type) if preferred_element_type else None
    if not isinstance(spec, str):
        spec, operands = _spelled((spec, *operands))
    arrays = [asarray(operand) for operand in operands]
    terms, output = _einsum_terms(spec, [array.shape for array in arrays])
    terms, arrays = map(list, zip(*(_diagonal(term, array) for term, array in zip(terms, arrays))))
    result = engine or dtypes.promoted([(array.engine_dtype, array.weak_type) for array in arrays])[0]
    term, value = terms[0], arrays[0]
    for number, (other, array) in enumerate(zip(terms[1:], arrays[1:])):
        later = output + "".join(terms[number + 2:])
        term, value = _unstretched(term, value, other, array)
        other, array = _unstretched(other, array, term, value)
        term, value = _without(term, value, other + later)
        other, array = _without(other, array, term + later)
        batch = [c for c in term if c in other and c in later]
        summed = [c for c in term if c in other and c not in later]
        value = dot_general(value, array, ([term.index(c) for c in summed], [other.index(c) for c in summed]),
                            ([term.index(c) for c in batch], [other.index(c) for c in batch]), engine, precision)
        term = "".join(batch + [c for c in term if c not in batch + summed] + [c for c in other if c not in batch + summed])
    term, value = _without(term, value, output)
    value = value if value.engine_dtype == result else astype(value, result)
    return transpose(value, tuple(term.index(c) for c in output)) if term != output else value


def _einsum_terms(spec, shapes):
    """The letters of each operand and of the result, without "...". Source of the rules and texts: dgasmith/opt_einsum, opt_einsum/parser.py
    (parse_einsum_input) and opt_einsum/contract.py (contract_path)."""
    spec = spec.replace(" ", "")
    if spec.count("-") > 1 or spec.count(">") > 1 or spec.count("->") != ("-" in spec or ">" in spec):
        raise ValueError("Subscripts can only contain one '->'.")
    inputs, arrow, output = spec.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(shapes):
        raise ValueError(f"Number of einsum subscripts, {len(terms)}, must be equal to the number of operands, {len(shapes)}.")
    if any(term.count(".") not in (0, 3) or term.count("...") != term.count(".") // 3 for term in [*terms, output]):
        raise ValueError("Invalid Ellipses.")
    free = [c for c in string.ascii_letters if c not in spec]
    counts = [len(shape) - len(term.replace("...", "")) if "..." in term else 0 for term, shape in zip(terms, shapes)]
    if any(count < 0 for count in counts):
        raise ValueError("Ellipses lengths do not match.")
    letters = "".join(free[:max(counts)])
    terms = [term.replace("...", letters[len(letters) - count:]) for term, count in zip(terms, counts)]
    joined = "".join(terms)
    output = output.replace("...", letters) if arrow else letters + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in letters))
    for c in output:
        if output.count(c) != 1:
            raise ValueError(f"Output character '{c}' appeared more than once in the output.")
        if c not in joined:
            raise ValueError(f"Output character '{c}' did not appear in the input")
    sizes = {}
    for number, (term, shape) in enumerate(zip(terms, shapes)):
        if len(term) != len(shape):
            raise ValueError(f"Einstein sum subscript '{term}' does not contain the correct number of indices for operand {number}.")
        for c, size in zip(term, shape):
            if sizes.setdefault(c, size) == 1:
                sizes[c] = size
            elif size not in (1, sizes[c]):
                raise ValueError(f"Size of label '{c}' for operand {number} ({sizes[c]}) does not match previous terms ({size}).")
    return terms, output


def _unstretched(term, x, other, y):
    """Without the dimensions of size 1 that are larger in another operand."""
    gone = [at for at, c in enumerate(term) if x.shape[at] == 1 and c in other and y.shape[other.index(c)] != 1]
    return "".join(c for at, c in enumerate(term) if at not in gone), squeeze(x, gone) if gone else x


def _diagonal(term, x):
    """With each letter once: of dimensions that share a letter, the diagonal, over which a mask leaves one element to sum."""
    for letter in sorted({c for c in term if term.count(c) > 1}):
        while term.count(letter) > 1:
            first, second = term.index(letter), term.rindex(letter)
            rows, columns = (bind("broadcast_in_dim", arange(x.shape[at]), shape=x.shape, dims=(at,)) for at in (first, second))
            x = sum_(where(equal(rows, columns), x, zeros_like(x)), (second,))
            term = term[:second] + term[second + 1:]
    return term, x


def _without(term, value, wanted):
    """Sums over letters that nobody wants."""
    gone = tuple(i for i, c in enumerate(term) if c not in wanted)
    summed = value if not gone else reduce("or", value, gone) if value.engine_dtype == "i1" else sum_(value, gone)
    return "".join(c for c in term if c in wanted), summed


# ---- parts

def _starts(starts, shape):
    """Places where slices begin: negative ones count from the end."""
    starts = starts if isinstance(starts, (tuple, list)) else list(starts)
    if len(starts) != len(shape):
        raise ValueError(f"Length of slice indices must match number of operand dimensions ({len(shape)}), got {len(starts)}")
    made = []
    for start, size in zip(starts, shape):
        if isinstance(start, (int, np.integer)):
            made.append(asarray(int(start) + size if start < 0 else int(start), "i32"))
        else:
            start = asarray(start)
            if not dtypes.is_integer(start.engine_dtype):
                raise TypeError(f"index arguments to dynamic_slice must be integers of the same type, got: {start.dtype}")
            start = astype(start, "i32")
            made.append(where(less(start, 0), add(start, size), start))
    return made


def dynamic_slice(x, starts, sizes):
    x = asarray(x)
    return bind("dynamic_slice", x, *_starts(starts, x.shape), sizes=tuple(sizes))


def dynamic_update_slice(x, update, starts):
    x = asarray(x)
    return bind("dynamic_update_slice", x, astype(update, x.engine_dtype), *_starts(starts, x.shape))


def _within(indices, size):
    """Whether indices are known to be in range."""
    if not isinstance(indices, ConcreteArray) or not indices._handle.is_ready:
        return False
    values = np.asarray(indices)
    return bool(values.size == 0 or (values.min() >= -size and values.max() < size))


def _fill_of(engine):
    """What is read where nothing is."""
    if dtypes.is_inexact(engine):
        return math.nan
    if engine == "i1":
        return True
    limits = np.iinfo(dtypes.shown(engine))
    return limits.max if engine.startswith("ui") else limits.min


def take(x, indices, axis=0, mode=None, fill_value=None):
    """Slices along an axis by integers. Those behind the end stay at it, or are filled or counted from the start again, as `mode` says."""
    x, indices = asarray(x), asarray(indices)
    axis = dimension(axis, x.ndim)
    size = x.shape[axis]
    if mode == "wrap":
        indices = remainder(indices, size)
    is_filled = mode == "fill" and not _within(indices, size)
    wide = indices.engine_dtype if indices.engine_dtype in ("i64", "ui32") else "i32"
    indices = astype(indices, wide)
    if mode not in ("wrap", "clip") and not wide.startswith("u"):
        indices = where(less(indices, 0), add(indices, size), indices)
    is_there = logical_and(greater_equal(indices, 0), less(indices, size)) if is_filled else None
    sizes = tuple(1 if dim == axis else size for dim, size in enumerate(x.shape))
    window = tuple(dim if dim < axis else dim + indices.ndim - 1 for dim in range(x.ndim) if dim != axis)
    made = bind("gather", x, indices, window=window, collapsed=(axis,), index_map=(axis,), index_vector_dim=indices.ndim,
                slice_sizes=sizes)
    if is_filled:
        is_there = reshape(is_there, (1,) * axis + indices.shape + (1,) * (x.ndim - axis - 1))
        made = where(is_there, made, asarray(_fill_of(x.engine_dtype) if fill_value is None else fill_value, x.engine_dtype))
    return made


def _indexers(x, index):
    """The parts of an index, one for each dimension and None for each new one; masks as the places where they hold."""
    if isinstance(index, list):
        raise TypeError("Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[array(seq)]` instead of `arr[seq]`. "
                        "See https://github.com/jax-ml/jax/issues/4564 for more information.")
    parts = []
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, (np.ndarray, np.generic, Array, bool, list)) and not isinstance(part, np.integer):
            part = asarray(part)
            if dtypes.is_inexact(part.engine_dtype):
                raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {part.dtype} at position {len(parts)}, indexer value {part}")
            if part.engine_dtype == "i1":
                if not isinstance(part, ConcreteArray):
                    raise NonConcreteBooleanIndexError(part)
                at = sum(one is not None and one is not Ellipsis for one in parts)
                if Ellipsis not in [one for one in parts if not isinstance(one, Array)] and part.shape != x.shape[at:at + part.ndim]:
                    raise IndexError(f"boolean index did not match shape of indexed array in index {at}: got {part.shape}, expected {x.shape[at:at + part.ndim]}")
                parts += [from_numpy(places.astype(np.int32)) for places in np.nonzero(np.asarray(part))] if part.shape else [part]
                continue
        elif not (part is None or part is Ellipsis or isinstance(part, (slice, int, np.integer))):
            if isinstance(part, str) or not hasattr(part, "__index__") and not hasattr(part, "__jax_array__"):
                raise TypeError(f"JAX does not support string indexing; got idx={index!r}" if isinstance(part, str) else
                                f"Indexer must have integer or boolean type, got indexer with type {type(part)} at position {len(parts)}, indexer value {part}")
            part = asarray(part) if hasattr(part, "__jax_array__") else part.__index__()
        parts.append(part)
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if used > x.ndim:
        raise IndexError(f"Too many indices: {x.ndim}-dimensional array indexed with {used} regular indices.")
    rest = [slice(None)] * (x.ndim - used)
    for at, part in enumerate(parts):
        if part is Ellipsis:
            return parts[:at] + rest + parts[at + 1:]
    return parts + rest


def _watch_index(shape, parts):
    """Tells checkify of the numbers among the parts of an index."""
    watch, arrays_module.watch = arrays_module.watch, None
    try:
        axis = 0
        for part in parts:
            if not isinstance(part, slice) and part is not None:
                watch.index(shape, axis, part)
            axis += part is not None
    finally:
        arrays_module.watch = watch


def getitem(x, index, mode=None, fill_value=None):
    x = asarray(x)
    parts = _indexers(x, index)
    if arrays_module.watch is not None:
        _watch_index(x.shape, parts)
    is_array = [isinstance(part, Array) for part in parts]
    starts, limits, strides, reverse, shape, arrays = [], [], [], [], [], []
    for part, own in zip(parts, is_array):
        if part is None:
            shape.append(1)
            continue
        size = x.shape[len(starts)]
        if isinstance(part, slice):
            if any(isinstance(bound, Array) and not isinstance(bound, ConcreteArray) for bound in (part.start, part.stop, part.step)):
                raise IndexError("Array slice indices must have static start/stop/step to be used with NumPy indexing syntax. Found "
                                 f"{part}. To index a statically sized array at a dynamic position, try lax.dynamic_slice/dynamic_update_slice (JAX does "
                                 "not support dynamically sized arrays within JIT compiled functions).")
            start, stop, step = slice(*[None if bound is None else bound.__index__() for bound in (part.start, part.stop, part.step)]).indices(size)
            count = max(0, math.ceil((stop - start) / step))
            if step < 0:
                start, step = start + (count - 1) * step, -step
                reverse.append(len(starts))
            starts.append(start if count else 0), limits.append(start + (count - 1) * step + 1 if count else 0), strides.append(step)
            shape.append(count)
        elif not own and not any(is_array) and (mode is None or -size <= part < size):
            at = min(max(int(part) + (size if part < 0 else 0), 0), size - 1)  # behind the end there is the last one
            if not size:
                raise IndexError(f"index is out of bounds for axis {len(starts)} with size 0")
            starts.append(at), limits.append(at + 1), strides.append(1)
        else:  # beside arrays, numbers are arrays too
            arrays.append((len(shape), asarray(int(part)) if not own else part))
            starts.append(0), limits.append(size), strides.append(1)
            shape.append(size)
    if starts != [0] * x.ndim or limits != list(x.shape) or strides != [1] * x.ndim:
        x = slice_(x, starts, limits, strides)
    if reverse:
        x = bind("reverse", x, dims=tuple(reverse))
    x = reshape(x, tuple(shape))
    if len(arrays) == 1:
        return take(x, arrays[0][1], arrays[0][0], mode, fill_value)
    if not arrays:
        return x
    dims = [dim for dim, _ in arrays]
    order = [dim for dim, part in enumerate(parts) if isinstance(part, Array) or isinstance(part, (int, np.integer))]
    is_together = order == list(range(order[0], order[-1] + 1))
    made, rank = _gather_points(moveaxis(x, dims, list(range(len(dims)))), [array for _, array in arrays], mode, fill_value)
    return moveaxis(made, list(range(rank)), list(range(dims[0], dims[0] + rank))) if is_together and rank else made


def _gather_points(x, arrays, mode=None, fill_value=None):
    """x[i, j, ..]: the leading dimensions by arrays of integers, the others whole; and how many dimensions the arrays have together."""
    count = len(arrays)
    arrays = [astype(part, "i32") for part in arrays]
    shape = np.broadcast_shapes(*[part.shape for part in arrays])
    arrays = [broadcast_to(part, shape) for part in arrays]
    is_filled = mode == "fill" and not all(_within(part, size) for part, size in zip(arrays, x.shape))
    if mode == "wrap":
        arrays = [remainder(part, size) for part, size in zip(arrays, x.shape)]
    elif mode != "clip":
        arrays = [where(less(part, 0), add(part, size), part) for part, size in zip(arrays, x.shape)]
    vectors = concatenate([expand_dims(part, -1) for part in arrays], -1)
    rest = x.shape[count:]
    made = bind("gather", x, vectors, window=tuple(range(len(shape), len(shape) + len(rest))), collapsed=tuple(range(count)),
                index_map=tuple(range(count)), index_vector_dim=len(shape), slice_sizes=(1,) * count + rest)
    if is_filled:
        is_there = functools.reduce(logical_and, [logical_and(greater_equal(part, 0), less(part, size)) for part, size in zip(arrays, x.shape)])
        made = where(reshape(is_there, shape + (1,) * len(rest)), made, asarray(_fill_of(x.engine_dtype) if fill_value is None else fill_value, x.engine_dtype))
    return made, len(shape)


def _scattered(x, places, values, combine, is_unique=False):
    """An array with values put together with its rows at places; places behind the end are none. Source of the derivatives and the text: jax-ml/jax,
    jax/_src/lax/slicing.py (_scatter_extremal_jvp, _scatter_mul_jvp_rhs)."""
    plain = lambda x, values, combine=combine: bind("scatter", x, places, values, window=tuple(range(1, values.ndim)), collapsed=(0,), index_map=(0,),
                                                    index_vector_dim=1, **({"combiner": combine} if combine else {}))
    from . import custom
    if combine not in ("max", "min", "product") or not dtypes.is_inexact(x.engine_dtype) or not custom.depth([x, values]):
        return plain(x, values)
    if combine == "product":
        if not custom.is_differentiated(values):
            return multiply(x, plain(ones_like(x), values))
        if not is_unique:
            raise NotImplementedError("scatter_mul gradients are only implemented if `unique_indices=True`")
        return plain(x, multiply(take(x, places, 0, "fill", 1), values), None)

    def forward(given):
        """Of the values that are the extreme one at a place, with the one that was there, each has the same part of its derivative."""
        x, values = given
        made = plain(x, values)
        was, is_chosen = equal(x, made), equal(values, take(made, places, 0, "fill"))
        count = plain(astype(was, x.engine_dtype), astype(is_chosen, x.engine_dtype), "sum")
        return [made], [was, is_chosen, count]

    def backward(read, cotangents):
        was, is_chosen, count = read
        parts = divide(cotangents[0], maximum(count, 1.0))
        return [where(was, parts, zeros_like(parts)), where(is_chosen, shared := take(parts, places, 0, "fill", 0), zeros_like(shared))]
    return custom._with_rule(forward, backward, [x, values])[0]


_COMBINED = {"sum": add, "product": multiply, "max": maximum, "min": minimum, "or": logical_or, "and": logical_and}


def _part_changed(x, parts, values, combine, is_clipped):
    """With one box of an array set to values or combined with them: dimensions that it has whole stay split as they are. What is out of bounds changes nothing,
    or the nearest element where `is_clipped`."""
    starts, counts, steps, region, reverse, is_there = [], [], [], [], [], []
    for part in parts:
        if part is None:
            region.append(1)
            continue
        size = x.shape[len(starts)]
        if isinstance(part, slice):
            start, stop, step = slice(*[None if bound is None else bound.__index__() for bound in (part.start, part.stop, part.step)]).indices(size)
            count = max(0, math.ceil((stop - start) / step))
            if step < 0:
                reverse.append(len(starts))
                start, step = start + (count - 1) * step, -step
            region.append(count)
        else:
            count, step = 1, 1
            if isinstance(part, Array):
                part = astype(part, "i32")
                start = where(less(part, 0), add(part, size), part)
                is_there.append(logical_and(greater_equal(start, 0), less(start, size)))
            else:
                start = int(part) + (size if part < 0 else 0)
                if not 0 <= start < size and not is_clipped:
                    count = 0
            start = clip(start, 0, size - 1) if isinstance(start, Array) else min(max(start, 0), size - 1)
        starts.append(start), counts.append(count), steps.append(step)
    values = broadcast_to(astype(values, x.engine_dtype), tuple(region))
    if 0 in counts:
        return x
    block = reshape(values, tuple(counts))
    block = bind("reverse", block, dims=tuple(reverse)) if reverse else block
    if not is_there and (combine is not None or any(step > 1 for step in steps)):  # beside all elements: nothing is read from where it lies
        high = [size - start - (count - 1) * step - 1 for size, start, count, step in zip(x.shape, starts, counts, steps)]
        mask, block = (pad(one, starts, high, 0, [step - 1 for step in steps]) for one in (full(block.shape, True), block))
        return where(mask, block if combine is None else combine(x, block), x)
    if is_there and (combine is not None or not is_clipped):
        before = dynamic_slice(x, starts, counts)
        block = block if combine is None else combine(before, block)
        block = block if is_clipped else where(functools.reduce(logical_and, is_there), block, before)
    return dynamic_update_slice(x, block, starts)


def _rows_changed(x, parts, values, combine, mode, is_unique):
    """With slices that are whole along some dimensions, at places in the others, set to values or combined with them."""
    dims = [at for at, part in enumerate(part for part in parts if part is not None) if not isinstance(part, slice)]
    at = [number for number, part in enumerate(parts) if part is not None and not isinstance(part, slice)]
    arrays = [asarray(part) for part in parts if part is not None and not isinstance(part, slice)]
    shape = np.broadcast_shapes(*[array.shape for array in arrays])
    others = [number for number in range(len(parts)) if number not in at]
    front = at[0] if at == list(range(at[0], at[-1] + 1)) else 0  # where NumPy has the dimensions of the arrays
    sizes, kept = iter(x.shape[dim] for dim in range(x.ndim) if dim not in dims), [size for dim, size in enumerate(x.shape) if dim not in dims]
    rest = [1 if parts[number] is None else next(sizes) for number in others]
    values = broadcast_to(astype(values, x.engine_dtype), (*rest[:front], *shape, *rest[front:]))
    if not values.size:
        return x
    values = moveaxis(values, list(range(front, front + len(shape))), list(range(len(shape))))
    places, is_there = 0, True
    for dim, array in zip(dims, arrays):
        size = x.shape[dim]
        array, is_known = astype(array, "i32"), _within(array, size)
        array = remainder(array, size) if mode == "wrap" else where(less(array, 0), add(array, size), array)
        if mode == "clip":
            array = clip(array, 0, size - 1)
        elif mode != "wrap" and not is_known:
            is_there = logical_and(is_there, logical_and(greater_equal(array, 0), less(array, size)))
        places = add(multiply(places, size), array)
    count = math.prod(x.shape[dim] for dim in dims)
    places = reshape(broadcast_to(places if is_there is True else where(is_there, places, count), shape), (-1,))
    moved = moveaxis(x, dims, list(range(len(dims))))
    made = _scattered(reshape(moved, (count, *kept)), places, reshape(values, (-1, *kept)), combine, is_unique)
    return moveaxis(reshape(made, moved.shape), list(range(len(dims))), dims)


class At:
    """`x.at[index]`: arrays with one part changed."""

    def __init__(self, array, index=None):
        self._array, self._index = array, index

    def __getitem__(self, index):
        return At(self._array, index)

    def __repr__(self):
        return f"_IndexUpdateRef({self._array!r}, {self._index!r})"

    def _changed(self, values, combine, mode=None, is_unique=False):
        x = self._array
        values = asarray(values)
        if combine is not None and x.engine_dtype == "i1":
            combine = _REDUCED_TRUTHS.get(combine, combine)
        parts = [int(part) if isinstance(part, ConcreteArray) and not part.shape and part.engine_dtype != "i1" else part for part in _indexers(x, self._index)]
        chosen, slices = [part for part in parts if isinstance(part, Array)], [part for part in parts if isinstance(part, slice)]
        has_mask = any(part.engine_dtype == "i1" for part in chosen)
        is_box = mode in (None, "drop", "fill", "clip") and not any(part.shape or part.level for part in chosen) and (
            not chosen or all(part.step in (None, 1, -1) for part in slices))
        is_rows = x.size and all(part == slice(None) for part in slices)
        if not has_mask and (is_box or is_rows):
            if arrays_module.watch is not None:
                _watch_index(x.shape, parts)
            return _part_changed(x, parts, values, _COMBINED.get(combine), mode == "clip") if is_box else _rows_changed(x, parts, values, combine, mode, is_unique)
        places = reshape(iota("i32", (x.size,)), x.shape)
        # What is behind the end changes nothing: there is no such place.
        where_ = getitem(places, self._index, mode if mode in ("clip", "wrap") else "fill", x.size)
        values = broadcast_to(astype(values, x.engine_dtype), where_.shape)
        flat = _scattered(reshape(x, (x.size,)), reshape(where_, (where_.size,)), reshape(values, (where_.size,)), combine, is_unique)
        return reshape(flat, x.shape)

    def _masked(self, change):
        """Where the index is a mask of values that are not known, what the change gives where it holds; else None."""
        index = self._index[0] if isinstance(self._index, tuple) and len(self._index) == 1 else self._index
        if not isinstance(index, Array) or index.engine_dtype != "i1" or not index.ndim or isinstance(index, ConcreteArray):
            return None
        mask = reshape(index, index.shape + (1,) * (self._array.ndim - index.ndim))
        return astype(where(mask, change(self._array), self._array), self._array.engine_dtype)

    def _by(self, values, combine, change, mode, out_sharding=None, is_unique=False):
        from . import explicit, transforms
        x, given = self._array, asarray(values)
        if given.engine_dtype != x.engine_dtype and dtypes.promoted([(x.engine_dtype, False), (given.engine_dtype, given.weak_type)])[0] != x.engine_dtype:
            warnings.warn(f"scatter inputs have incompatible types: cannot safely cast value from dtype={given.dtype} to dtype={x.dtype} with "
                          "jax_numpy_dtype_promotion=standard. In future JAX releases this will result in an error.", FutureWarning, stacklevel=3)
        if out_sharding is None:
            known = explicit.scattered(self._array, self._index, values)
            if known is None:
                return self._made(values, combine, change, mode, is_unique)
        with explicit.suspended():
            made = self._made(values, combine, change, mode, is_unique)
        return transforms.placed(made, out_sharding) if out_sharding is not None else explicit.split_as(made, known)

    def _made(self, values, combine, change, mode, is_unique=False):
        masked = self._masked(lambda x: change(x, values)) if not asarray(values).shape else None
        return masked if masked is not None else self._changed(values, combine, mode, is_unique)

    def set(self, values, *, mode=None, out_sharding=None, wrap_negative_indices=True, indices_are_sorted=None, unique_indices=None):
        _refuse("jax.numpy.ndarray.at", {"wrap_negative_indices": None if wrap_negative_indices else False})
        return self._by(values, None, lambda x, v: broadcast_to(astype(v, x.engine_dtype), x.shape), mode, out_sharding)

    def add(self, values, *, mode=None, out_sharding=None, indices_are_sorted=None, unique_indices=None, wrap_negative_indices=None):
        return self._by(values, "sum", add, mode, out_sharding)

    def subtract(self, values, *, mode=None, out_sharding=None, indices_are_sorted=None, unique_indices=None, wrap_negative_indices=None):
        return self.add(negative(values), mode=mode, out_sharding=out_sharding)

    def multiply(self, values, *, mode=None, out_sharding=None, unique_indices=False, indices_are_sorted=None, wrap_negative_indices=None):
        return self._by(values, "product", multiply, mode, out_sharding, unique_indices)

    mul = multiply

    def divide(self, values, *, mode=None, unique_indices=False, indices_are_sorted=None, out_sharding=None, wrap_negative_indices=None):
        return divide(self._array, At(ones_like(self._array), self._index)._by(values, "product", multiply, mode, None, unique_indices))

    def power(self, values, *, mode=None, unique_indices=False, indices_are_sorted=None, out_sharding=None, wrap_negative_indices=None):
        return power(self._array, At(ones_like(self._array), self._index)._by(values, "product", multiply, mode, None, unique_indices))

    def max(self, values, *, mode=None, out_sharding=None, indices_are_sorted=None, unique_indices=None, wrap_negative_indices=None):
        return self._by(values, "max", maximum, mode, out_sharding)

    def min(self, values, *, mode=None, out_sharding=None, indices_are_sorted=None, unique_indices=None, wrap_negative_indices=None):
        return self._by(values, "min", minimum, mode, out_sharding)

    def apply(self, function, *, mode=None, indices_are_sorted=None, unique_indices=None, wrap_negative_indices=None):
        return self.set(function(self.get(mode=mode)), mode=mode)

    def get(self, *, mode=None, fill_value=None, out_sharding=None, indices_are_sorted=None, unique_indices=None, wrap_negative_indices=None):
        return placeable(getitem)(self._array, self._index, mode, fill_value, out_sharding=out_sharding)


def one_hot(x, count, engine="f32", axis=-1):
    x = asarray(x)
    made = equal(expand_dims(x, -1), iota("i32", (1,) * x.ndim + (count,), x.ndim))
    return moveaxis(astype(made, engine), -1, axis)


def as_type(x, dtype, **_):
    found = dtypes.named(dtype)
    if found != dtypes.named_wide(dtype):
        dtypes.warn_of_narrowing(dtype, "astype", found)
    if found == "i1" and dtypes.is_complex(x.engine_dtype):
        return not_equal(x, 0)
    return astype(x, found)


def immutable(x, index, value):
    raise TypeError("'<class 'jaxlib._jax.ArrayImpl'>' object does not support item assignment. JAX arrays are immutable. Instead of ``x[idx] = y``, use ``x = x.at[idx].set(y)`` "
                    "or another .at[] method: https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html")


def shift_right(x, y):
    (a, b), weak = together(x, y)
    return _weak(bind("shift_right_logical" if a.engine_dtype.startswith("u") else "shift_right_arithmetic", a, b), weak)


# ---- operators and methods of arrays

def _operators():
    def reflected(function):
        return lambda self, other: function(other, self)

    def guarded(function, shown=None):  # what is no array may know the operation itself
        def operator(self, other):
            if not isinstance(other, (Array, np.ndarray, np.generic, bool, int, float, complex)):
                if shown and type(other) in (dict, list, set, tuple):  # of which Python would say True or False
                    raise TypeError(f"unsupported operand type(s) for {shown}: {type(self).__name__!r} and {type(other).__name__!r}")
                return NotImplemented
            return function(self, other)
        return operator

    for name, function in {"add": add, "sub": subtract, "mul": multiply, "truediv": divide, "floordiv": floor_divide,
                           "mod": remainder, "pow": power, "matmul": matmul, "and": binary("and"), "or": binary("or"),
                           "xor": binary("xor"), "lshift": binary("shift_left"),
                           "rshift": shift_right, "divmod": lambda a, b: (floor_divide(a, b), remainder(a, b))}.items():
        setattr(Array, f"__{name}__", guarded(function))
        setattr(Array, f"__r{name}__", guarded(reflected(function)))
    for name, function in {"eq": equal, "ne": not_equal, "lt": less, "le": less_equal, "gt": greater, "ge": greater_equal}.items():
        setattr(Array, f"__{name}__", guarded(function, {"eq": "==", "ne": "!="}.get(name)))
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
    Array.flatten = Array.ravel = lambda self, order="C", **named: reshape(self, (self.size,), order=order, **named)
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
