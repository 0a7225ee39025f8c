# SPDX-License-Identifier: GPL-3.0-or-later
"""NumPy's functions of single elements. Source of the formulas where the engine has no op: jax-ml/jax, jax/_src/numpy/ufuncs.py."""
import math

import numpy as np

from .._src import dtypes, ops
from .._src.arrays import asarray, astype, bind
from .._src.ops import (absolute, add, binary, compare, divide, equal, exp, floor, greater, inexact, inexact_together, isinf, less, less_equal, log, log1p,
                        logical_and, logical_or, maximum, minimum, multiply, negative, not_equal, power, remainder, sign, sin, square, subtract, together, unary,
                        where)
from .._src.options import refuse as _refuse



# ---- of complex numbers too, by their real and imaginary parts

def _with_complex(op, of_complex):
    """A function of real numbers that the engine has, with its formula for complex ones."""
    of_real = unary(op)

    def function(x):
        x = inexact(x)
        return ops.complex_(*of_complex(ops.real(x), ops.imag(x))) if dtypes.is_complex(x.engine_dtype) else of_real(x)
    function.__name__ = op
    return function


def _roots(x, y):
    """Real and imaginary parts of the square roots of 1 - z and of 1 + z."""
    return [part(ops.sqrt(ops.complex_(add(1.0, sign * x), sign * y))) for sign in (-1.0, 1.0) for part in (ops.real, ops.imag)]


def _arcsin(x, y):
    a, b, c, d = _roots(x, y)
    return arctan2(x, a * c - b * d), arcsinh(a * d - b * c)


def _arccos(x, y):
    a, b, c, d = _roots(x, y)
    return 2.0 * arctan2(a, c), arcsinh(c * b - d * a)


def _arccosh(x, y):
    a, b, c, d = (part(ops.sqrt(ops.complex_(x + shift, y))) for shift in (-1.0, 1.0) for part in (ops.real, ops.imag))
    return arcsinh(a * c + b * d), 2.0 * arctan2(b, c)


def _arctanh(x, y):
    size, far = absolute(x), square(y)
    return 0.25 * copysign(log1p(4.0 * size / (square(1.0 - size) + far)), x), 0.5 * arctan2(2.0 * y, (1.0 - size) * (1.0 + size) - far)


def _turned(of):
    """Of i z, turned back."""
    def parts(x, y):
        a, b = of(negative(y), x)
        return b, negative(a)
    return parts


def _tanh(x, y):
    made = ops.tanh(ops.complex_(x, y))
    return ops.real(made), ops.imag(made)


# Source of the formulas: W. Kahan, "Branch Cuts for Complex Elementary Functions", in The State of the Art in Numerical Analysis, 1987.
sinh = _with_complex("sinh", lambda x, y: (sinh(x) * ops.cos(y), cosh(x) * sin(y)))
cosh = _with_complex("cosh", lambda x, y: (cosh(x) * ops.cos(y), sinh(x) * sin(y)))
tan = _with_complex("tan", _turned(_tanh))
arcsin, arcsinh = _with_complex("asin", _arcsin), _with_complex("asinh", _turned(_arcsin))
arccos, arccosh = _with_complex("acos", _arccos), _with_complex("acosh", _arccosh)
arctan, arctanh = _with_complex("atan", _turned(_arctanh)), _with_complex("atanh", _arctanh)
arctan2 = binary("atan2", floating=True)


def _infinite(op):
    of_real = unary(op)

    def function(x):
        ops.no_complex(ValueError, "isposinf/isneginf are not well defined for complex types", x)
        return of_real(x)
    function.__name__ = op
    return function


isposinf, isneginf = _infinite("is_pos_inf"), _infinite("is_neg_inf")
nextafter = binary("next_after", floating=True)
asin, acos, atan, asinh, acosh, atanh, atan2 = arcsin, arccos, arctan, arcsinh, arccosh, arctanh, arctan2


def exp2(x):
    return exp(multiply(inexact(x), math.log(2)))


def log2(x):
    return divide(log(x), math.log(2))


def log10(x):
    return divide(log(x), math.log(10))


def reciprocal(x):
    return divide(1.0, inexact(x))


def positive(x):
    return asarray(x)


def degrees(x):
    return multiply(inexact(x), 180 / math.pi)


def radians(x):
    return multiply(inexact(x), math.pi / 180)


rad2deg, deg2rad = degrees, radians


def sinc(x):
    x = multiply(inexact(x), math.pi)
    is_zero = equal(x, 0)
    return where(is_zero, _sinc_at_zero(x, 0), divide(sin(x), where(is_zero, 1.0, x)))


def _sinc_at_zero(x, order):
    """The derivative of sin(x) / x at 0, which has that of the next order as its own."""
    from .._src.custom import custom_jvp
    value = 0.0 if order % 2 else (-1.0) ** (order // 2) / (order + 1)
    made = custom_jvp(lambda x: ops.full(x.shape, value, x.engine_dtype))
    made.defjvp(lambda primals, tangents: (made(*primals), multiply(tangents[0], _sinc_at_zero(primals[0], order + 1))))
    return made(x)


def trunc(x):
    x = asarray(x)
    ops.no_complex(TypeError, "trunc does not support complex-valued inputs", x)
    return where(less(x, 0), ops.ceil(x), floor(x)) if dtypes.is_float(x.engine_dtype) else x


fix = trunc


def signbit(x):
    x = asarray(x)
    ops.no_complex(ValueError, f"jax.numpy.signbit is not well defined for {x.dtype}", x)
    if not dtypes.is_float(x.engine_dtype):
        return less(x, 0)
    bits = {"f16": "i16", "bf16": "i16", "f32": "i32", "f64": "i64"}.get(x.engine_dtype)
    return less(ops.bind("bitcast_convert", x, dtype=bits), 0) if bits else less(x, 0)


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    x = asarray(x)
    if dtypes.is_complex(x.engine_dtype):
        return ops.complex_(*(nan_to_num(part, copy, nan, posinf, neginf) for part in (ops.real(x), ops.imag(x))))
    if not dtypes.is_float(x.engine_dtype):
        return x
    from . import finfo
    most = finfo(x.dtype)
    x = where(not_equal(x, x), asarray(nan, x.engine_dtype), x)
    x = where(isposinf(x), asarray(float(most.max) if posinf is None else posinf, x.engine_dtype), x)
    return where(isneginf(x), asarray(float(most.min) if neginf is None else neginf, x.engine_dtype), x)


def isreal(x):
    return equal(ops.imag(x), 0)


def iscomplex(x):
    return not_equal(ops.imag(x), 0)


def isrealobj(x):
    return not dtypes.is_complex(asarray(x).engine_dtype)


# ---- of two

def hypot(x, y):
    a, b = inexact_together(x, y)
    ops.no_complex(ValueError, "jnp.hypot is not well defined for complex-valued inputs. Please convert to real values first, such as by using abs(x)", a)
    return ops.sqrt(add(square(a), square(b)))


def logaddexp(x, y):
    a, b = inexact_together(x, y)
    most, apart = maximum(a, b), subtract(a, b)
    return where(not_equal(apart, apart), add(a, b), add(most, log1p(exp(negative(ops.distance(apart))))))


def logaddexp2(x, y):
    ln2 = math.log(2)
    return divide(logaddexp(*(multiply(one, ln2) for one in inexact_together(x, y))), ln2)


def fmod(x, y):
    (a, b), _ = together(x, y)
    return bind("remainder", a, b)


def float_power(x, y):
    return power(*inexact_together(x, y))


def copysign(x, y):
    x, y = inexact_together(x, y)
    ops.no_complex(TypeError, "copysign does not support complex-valued inputs", x)
    size = absolute(x)
    return where(signbit(y), negative(size), size)


def heaviside(x, y):
    a, b = inexact_together(x, y)
    ops.no_complex(TypeError, "heaviside does not support complex-valued inputs", a)
    return where(less(a, 0), 0, where(equal(a, 0), b, 1))


def ldexp(x, exponent):
    return multiply(x, power(2.0, inexact(exponent)))


def fmax(x, y):
    (a, b), _ = together(x, y)
    return where(logical_or(greater(a, b), not_equal(b, b)), a, b)


def fmin(x, y):
    (a, b), _ = together(x, y)
    return where(logical_or(less(a, b), not_equal(b, b)), a, b)


def divmod(x, y):
    return ops.floor_divide(x, y), remainder(x, y)


def modf(x):
    whole = trunc(inexact(x))
    return subtract(x, whole), whole


def _of_integers(name, op):
    def function(x, y):
        (a, b), weak = together(x, y)
        if dtypes.is_inexact(a.engine_dtype):
            raise TypeError(f"{name} requires integer or boolean arguments, got {a.dtype}")
        made = bind(op, a, b)
        made.weak_type = weak
        return made
    function.__name__ = name
    return function


bitwise_and, bitwise_or, bitwise_xor = (_of_integers(f"bitwise_{op}", op) for op in ("and", "or", "xor"))
left_shift, _logical_shift, _arithmetic_shift = (_of_integers(op, op) for op in ("shift_left", "shift_right_logical", "shift_right_arithmetic"))
bitwise_left_shift = left_shift


def right_shift(x, y):
    return (_logical_shift if together(x, y)[0][0].engine_dtype.startswith("u") else _arithmetic_shift)(x, y)


bitwise_right_shift = right_shift


def invert(x):
    return bind("not", asarray(x))


bitwise_not = bitwise_invert = invert


def bitwise_count(x):
    return astype(bind("popcnt", absolute(x)), "ui8")


def gcd(x, y):
    from .._src.control import while_loop
    (a, b), _ = together(x, y)
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = ops.broadcast_to(absolute(a), shape), ops.broadcast_to(absolute(b), shape)

    def turn(pair):
        a, b = pair
        is_over = equal(b, 0)
        rest = bind("remainder", a, where(is_over, 1, b))
        return where(is_over, a, b), where(is_over, 0, rest)
    return while_loop(lambda pair: ops.reduce("or", not_equal(pair[1], 0)), turn, (a, b))[0]


def lcm(x, y):
    (a, b), _ = together(x, y)
    common = gcd(a, b)
    return where(equal(common, 0), 0, multiply(ops.floor_divide(absolute(a), where(equal(common, 0), 1, common)), absolute(b)))


# ---- numbers that stand for functions

def polyval(p, x, *, unroll=None):
    (p, x), _ = together(p, x)
    made = ops.zeros_like(x)
    for number in range(p.shape[0]):
        made = add(multiply(made, x), p[number])
    return made


def interp(x, xp, fp, left=None, right=None, period=None):
    """Between the points (xp, fp), by straight lines."""
    from ._arrangements import argsort, searchsorted
    x, xp = inexact_together(x, xp)
    fp = inexact(fp)
    if xp.ndim != 1 or xp.shape != fp.shape:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    ops.no_complex(ValueError, "jnp.interp: complex x values not supported.", x)
    for side, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != "extrapolate":
            raise ValueError(f"the only valid string value of `{side}` is 'extrapolate', but got: {value!r}")
    if period is not None:  # one point more at both ends
        if np.ndim(period):
            raise ValueError(f"period must be a scalar; got {period}")
        period = absolute(period)
        x, xp = remainder(x, period), remainder(xp, period)
        order = argsort(xp)
        xp, fp = ops.take(xp, order), ops.take(fp, order)
        xp = ops.concatenate([subtract(xp[-1:], period), xp, add(xp[:1], period)])
        fp = ops.concatenate([fp[-1:], fp, fp[:1]])
        left = right = "extrapolate"
    at = ops.clip(searchsorted(xp, x, side="right"), 1, xp.shape[0] - 1)
    low, high = ops.take(xp, subtract(at, 1)), ops.take(xp, at)
    first, last = ops.take(fp, subtract(at, 1)), ops.take(fp, at)
    step = subtract(high, low)
    made = add(first, multiply(divide(subtract(x, low), where(equal(step, 0), 1, step)), subtract(last, first)))
    is_end = lambda side: not isinstance(side, str)
    made = where(less(x, xp[0]), fp[0] if left is None else left, made) if is_end(left) else made
    return where(greater(x, xp[-1]), fp[-1] if right is None else right, made) if is_end(right) else made


def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    (a, b), _ = together(a, b)
    if not dtypes.is_inexact(a.engine_dtype):
        return equal(a, b)
    near = less_equal(absolute(subtract(a, b)), add(atol, multiply(rtol, absolute(b))))
    near = logical_and(near, logical_and(ops.isfinite(a), ops.isfinite(b)))
    near = logical_or(near, equal(a, b))
    return logical_or(near, logical_and(not_equal(a, a), not_equal(b, b))) if equal_nan else near


def frexp(x):
    """A fraction of at least a half, and the power of two that it is multiplied by, from the bits of the number."""
    x = inexact(x)
    if dtypes.is_complex(x.engine_dtype):
        raise TypeError("frexp does not support complex-valued inputs")
    width, digits = {"f16": (16, 10), "bf16": (16, 7), "f32": (32, 23), "f64": (64, 52)}[x.engine_dtype]
    engine, mask, half = f"i{width}", 2**(width - 1 - digits) - 1, 2**(width - 2 - digits) - 2  # half: the exponent's bits of 0.5
    of = lambda number: asarray(number, engine)
    is_small = less(absolute(x), asarray(2.0**-half, x.engine_dtype))  # its bits may say less than its exponent
    whole = where(is_small, multiply(x, asarray(2.0**(digits + 2), x.engine_dtype)), x)
    exponent = bind("and", bind("shift_right_logical", bind("bitcast_convert", whole, dtype=engine), of(digits)), of(mask))
    scale = bind("bitcast_convert", bind("shift_left", subtract(of(2 * half + 3), maximum(exponent, of(1))), of(digits)), dtype=x.engine_dtype)  # four times its size
    fraction = multiply(multiply(whole, scale), asarray(0.25, x.engine_dtype))
    exponent = subtract(subtract(astype(exponent, "i32"), half), where(is_small, digits + 2, 0))
    is_other = logical_or(equal(x, 0), ops.logical_not(bind("is_finite", x)))
    return where(is_other, x, fraction), where(is_other, 0, exponent)
