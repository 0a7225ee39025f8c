# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.special."""
import functools as _functools
import math as _math

import numpy as _np

from .._src import dtypes as _dtypes
from .._src import ops as _ops
from .._src.arrays import asarray as _asarray
from .._src.arrays import astype as _astype
from .._src.control import fori_loop as _fori_loop
from .._src.custom import custom_jvp as _custom_jvp, is_differentiated as _is_differentiated
from .._src.ops import erf, erfc, logistic as expit
from .._src.ops import erf_inv as erfinv
from .._src.ops import inexact as _inexact, inexact_together as _inexact_together
from .._src.transforms import jit as _jit
from ..nn import log_softmax, logsumexp, softmax


def _with_slope(function, slope):
    """A function of one number with its derivative, which is one of these, too."""
    made = _custom_jvp(function)
    made.defjvp(lambda primals, tangents: (made(*primals), _ops.multiply(tangents[0], slope()(*primals))))
    return lambda x: made(_inexact(x))


gammaln = _with_slope(_ops.unary("lgamma"), lambda: digamma)
digamma = psi = _with_slope(_ops.unary("digamma"), lambda: lambda x: polygamma(1, x))


def zeta(x, q=None):
    """Hurwitz's zeta: the sum of (q + k) ** -x. Ten terms, then Euler and Maclaurin's formula. Source: NIST Digital Library of Mathematical Functions, 25.11.5."""
    if q is None:
        raise NotImplementedError("Riemann zeta function not implemented; pass q != None to compute the Hurwitz Zeta function.")
    x, q = _inexact_together(x, q)
    return _zeta(x, q)


@_custom_jvp
def _zeta(x, q):
    total = _ops.zeros_like(_ops.add(x, q))
    for k in range(10):
        total = _ops.add(total, _ops.power(_ops.add(q, float(k)), _ops.negative(x)))
    far = _ops.add(q, 10.0)
    last = _ops.power(far, _ops.negative(x))
    total = _ops.add(total, _ops.multiply(last, _ops.add(_ops.divide(far, _ops.subtract(x, 1.0)), 0.5)))
    term, rising = _ops.divide(last, far), x  # far ** (-x - 2 j + 1), and x (x + 1) .. of 2 j - 1 factors
    for j, number in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730), 1):  # Bernoulli's
        total = _ops.add(total, _ops.multiply(number / _math.factorial(2 * j), _ops.multiply(rising, term)))
        rising = _ops.multiply(rising, _ops.multiply(_ops.add(x, 2.0 * j - 1), _ops.add(x, 2.0 * j)))
        term = _ops.divide(term, _ops.square(far))
    is_pole = _ops.logical_and(_ops.less_equal(q, 0), _ops.equal(q, _ops.floor(q)))
    made = _ops.where(is_pole, _math.inf, total)
    return _ops.where(_ops.equal(x, 1.0), _math.inf, _ops.where(_ops.less(x, 1.0), _math.nan, made))


@_zeta.defjvp
def _zeta_jvp(primals, tangents):
    x, q = primals
    return _zeta(x, q), _ops.multiply(tangents[1], _ops.negative(_ops.multiply(x, _zeta(_ops.add(x, 1.0), q))))


def polygamma(n, x):
    """The n-th derivative of digamma, n a whole number."""
    if isinstance(n, (int, _np.integer)) and n == 0:
        return digamma(x)
    n, x = _inexact_together(n, x)
    sign = _ops.where(_ops.equal(_ops.remainder(n, 2.0), 1.0), 1.0, -1.0)
    made = _ops.multiply(_ops.multiply(sign, _ops.exp(gammaln(_ops.add(n, 1.0)))), zeta(_ops.add(n, 1.0), x))
    return _ops.where(_ops.equal(n, 0), digamma(x), made)


def _times_log(log, slope):
    """x times a logarithm of y: nothing where x is 0, whatever number y is. Its derivative in x is the logarithm there too."""
    @_custom_jvp
    def product(x, y):
        is_zero = _ops.logical_and(_ops.equal(x, 0), _ops.equal(y, y))
        return _ops.where(is_zero, 0.0, _ops.multiply(x, log(_ops.where(is_zero, 1.0, y))))

    @product.defjvp
    def derivative(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return product(x, y), _ops.add(_ops.multiply(dx, log(y)), _ops.multiply(dy, _ops.divide(x, slope(y))))
    return lambda x, y: product(*_inexact_together(x, y))


xlogy = _times_log(_ops.log, lambda y: y)
xlog1py = _times_log(_ops.log1p, lambda y: _ops.add(1.0, y))


@_custom_jvp
def _xlogx(x):
    return xlogy(x, x)


@_xlogx.defjvp
def _xlogx_jvp(primals, tangents):
    return _xlogx(*primals), _ops.multiply(tangents[0], _ops.add(_ops.log(primals[0]), 1.0))


def entr(x):
    x = _inexact(x)
    return _ops.where(_ops.less(x, 0), -_math.inf, _ops.negative(_xlogx(x)))


def rel_entr(p, q):
    p, q = _inexact_together(p, q)
    safe = _ops.logical_and(_ops.greater(p, 0), _ops.greater(q, 0))
    made = _ops.multiply(_ops.where(safe, p, 1.0), _ops.log(_ops.divide(_ops.where(safe, p, 1.0), _ops.where(safe, q, 1.0))))
    return _ops.where(safe, made, _ops.where(_ops.logical_and(_ops.equal(p, 0), _ops.greater_equal(q, 0)), 0.0, _math.inf))


def kl_div(p, q):
    return _ops.add(_ops.subtract(rel_entr(p, q), p), q)


def logit(x):
    x = _inexact(x)
    return _ops.log(_ops.divide(x, _ops.subtract(1.0, x)))


def log_expit(x):
    from ..nn import log_sigmoid
    return log_sigmoid(x)


def gammasgn(x):
    x = _inexact(x)
    whole, is_below = _ops.floor(x), _ops.less(x, 0)
    is_pole = _ops.logical_or(_ops.logical_and(is_below, _ops.equal(x, whole)), _ops.not_equal(x, x))
    is_minus = _ops.logical_or(_ops.logical_and(is_below, _ops.not_equal(_ops.remainder(whole, 2.0), 0)),
                               _ops.logical_and(_ops.equal(x, 0), _ops.less(_ops.divide(1.0, x), 0)))
    return _astype(_ops.where(is_pole, _math.nan, _ops.where(is_minus, -1.0, 1.0)), x.engine_dtype)


def gamma(x):
    x = _inexact(x)
    return _ops.multiply(gammasgn(x), _ops.exp(gammaln(x)))


def factorial(n, exact=False):
    if exact:
        raise NotImplementedError("factorial with exact=True")
    n = _inexact(n)
    return _ops.where(_ops.less(n, 0), 0.0, _ops.exp(gammaln(_ops.add(n, 1.0))))


def _rest_of_stirling(x):
    """ln(gamma(x)) less (x - 1/2) ln(x) - x + ln(2 pi) / 2, for x of 8 or more."""
    square = _ops.divide(1.0, _ops.square(x))
    return _ops.divide(_ops.add(1 / 12, _ops.multiply(square, _ops.add(-1 / 360, _ops.multiply(square, 1 / 1260)))), x)


def betaln(a, b):
    """Where one of the two is large, the difference of its logarithms is taken as one: each alone has more digits before the point than a result has."""
    a, b = _inexact_together(a, b)
    low, high = _ops.minimum(a, b), _ops.maximum(a, b)
    is_large = _ops.logical_and(_ops.greater_equal(high, 8.0), _ops.greater(low, 0))
    p, q = _ops.where(is_large, high, 8.0), _ops.where(is_large, low, 1.0)
    both = _ops.add(p, q)
    apart = _ops.add(_ops.subtract(q, _ops.add(_ops.multiply(_ops.subtract(both, 0.5), _ops.log1p(_ops.divide(q, p))), _ops.multiply(q, _ops.log(p)))),
                     _ops.subtract(_rest_of_stirling(p), _rest_of_stirling(both)))
    return _ops.where(is_large, _ops.add(gammaln(q), apart), _ops.subtract(_ops.add(gammaln(a), gammaln(b)), gammaln(_ops.add(a, b))))


def beta(a, b):
    a, b = _inexact_together(a, b)
    sign = _ops.multiply(_ops.multiply(gammasgn(a), gammasgn(b)), gammasgn(_ops.add(a, b)))
    return _ops.multiply(sign, _ops.exp(betaln(a, b)))


def multigammaln(a, d):
    a = _inexact(a)
    at = _ops.multiply(-0.5, _ops.arange(d, engine=a.engine_dtype))
    return _ops.add(_ops.sum_(gammaln(_ops.add(_ops.expand_dims(a, -1), at)), -1), 0.25 * d * (d - 1) * _math.log(_math.pi))


def ndtr(x):
    """The share of a normal distribution below x."""
    x = _ops.multiply(_inexact(x), _math.sqrt(0.5))
    size = _ops.absolute(x)
    tail = _ops.multiply(0.5, erfc(size))
    return _ops.where(_ops.less(size, _math.sqrt(0.5)), _ops.multiply(0.5, _ops.add(1.0, erf(x))), _ops.where(_ops.greater(x, 0), _ops.subtract(1.0, tail), tail))


def _density(x):
    return _ops.exp(_ops.multiply(-0.5, _ops.square(x)))


@_custom_jvp
def _ndtri(p):
    """From the middle by the inverse error function; else Newton's steps on the logarithm of the tail, from its leading term."""
    is_middle = _ops.less(_ops.absolute(_ops.subtract(p, 0.5)), 0.45)
    middle = _ops.multiply(_math.sqrt(2.0), erfinv(_ops.subtract(_ops.multiply(2.0, p), 1.0)))
    is_low, is_inside = _ops.less(p, 0.5), _ops.logical_and(_ops.greater(p, 0), _ops.less(p, 1))
    logs = _ops.log(_ops.where(is_inside, _ops.where(is_low, p, _ops.subtract(1.0, p)), 0.01))
    x = _ops.negative(_ops.sqrt(_ops.multiply(-2.0, logs)))
    for _ in range(4):
        at = log_ndtr(x)
        slope = _ops.exp(_ops.subtract(_ops.subtract(_ops.multiply(-0.5, _ops.square(x)), at), 0.5 * _math.log(2 * _math.pi)))
        x = _ops.subtract(x, _ops.divide(_ops.subtract(at, logs), slope))
    tail = _ops.where(is_low, x, _ops.negative(x))
    ends = _ops.where(_ops.equal(p, 0), -_math.inf, _ops.where(_ops.equal(p, 1), _math.inf, _math.nan))
    return _ops.where(is_middle, middle, _ops.where(is_inside, tail, ends))


@_ndtri.defjvp
def _ndtri_jvp(primals, tangents):
    x = _ndtri(*primals)
    return x, _ops.multiply(tangents[0], _ops.divide(_math.sqrt(2 * _math.pi), _density(x)))


def ndtri(p):
    return _ndtri(_inexact(p))


@_custom_jvp
def _log_ndtr(x):
    """Far below by the tail's asymptotic series, far above by the other tail."""
    is_low, is_high = _ops.less(x, -8.0), _ops.greater(x, 5.0)
    far = _ops.where(is_low, x, -8.0)
    square = _ops.divide(1.0, _ops.square(far))
    series = 1.0
    for n in range(9, 0, -2):  # 1 - 1/x^2 + 3/x^4 - 15/x^6 ...
        series = _ops.subtract(1.0, _ops.multiply(_ops.multiply(float(n), square), series))
    tail = _ops.add(_ops.subtract(_ops.multiply(-0.5, _ops.square(far)), _ops.log(_ops.negative(far))), _ops.subtract(_ops.log(series), 0.5 * _math.log(2 * _math.pi)))
    middle = _ops.log(ndtr(_ops.maximum(x, -8.0)))
    return _ops.where(is_low, tail, _ops.where(is_high, _ops.negative(ndtr(_ops.negative(x))), middle))


@_log_ndtr.defjvp
def _log_ndtr_jvp(primals, tangents):
    (x,), made = primals, _log_ndtr(*primals)
    slope = _ops.exp(_ops.subtract(_ops.subtract(_ops.multiply(-0.5, _ops.square(x)), made), 0.5 * _math.log(2 * _math.pi)))
    return made, _ops.multiply(tangents[0], slope)


def log_ndtr(x):
    return _log_ndtr(_inexact(x))


def _front(a, x):
    """x^a exp(-x) / gamma(a), by Stirling's formula where a is large."""
    is_large = _ops.greater_equal(a, 10.0)
    big = _ops.where(is_large, a, 10.0)
    away = _ops.divide(_ops.subtract(_ops.where(is_large, x, 10.0), big), big)
    large = _ops.subtract(_ops.add(_ops.multiply(big, _ops.subtract(_ops.log1p(away), away)), _ops.multiply(0.5, _ops.log(_ops.divide(big, 2 * _math.pi)))),
                          _rest_of_stirling(big))
    small = _ops.subtract(_ops.subtract(_ops.multiply(a, _ops.log(x)), x), gammaln(a))
    return _ops.exp(_ops.where(is_large, large, small))


@_functools.partial(_jit, static_argnums=2)
def _gamma_shares(a, x, is_upper):
    """The share of a gamma distribution below x, or above it. Source of the ways: W. Press et al., Numerical Recipes, section 6.2: the series, the continued
    fraction of the rest, and where a is large the integral from x over what is left, by Gauss and Legendre."""
    is_usual = _ops.logical_and(_ops.logical_and(_ops.greater(a, 0), _ops.less(a, _math.inf)), _ops.logical_and(_ops.greater(x, 0), _ops.less(x, _math.inf)))
    own_a, own_x = a, x
    a, x = _ops.where(is_usual, a, 1.0), _ops.where(is_usual, x, 1.0)
    takes_rest = _ops.logical_and(_ops.greater_equal(x, 1), _ops.greater(x, a))  # whether the part above is the smaller
    is_large = _ops.greater(a, 100.0)
    small_a = _ops.where(is_large, 1.0, a)
    low_x, high_x = _ops.where(_ops.logical_or(is_large, takes_rest), 0.5, x), _ops.where(_ops.logical_and(takes_rest, _ops.logical_not(is_large)), x, 2.0)

    def add(n, state):
        term, total = state
        term = _ops.divide(_ops.multiply(term, low_x), _ops.add(small_a, _ops.add(n, 1)))
        return term, _ops.add(total, term)

    def deepen(n, fraction):
        n = _astype(_ops.subtract(100, n), a.engine_dtype)
        return _ops.divide(_ops.multiply(n, _ops.subtract(small_a, n)), _ops.add(_ops.subtract(_ops.add(high_x, _ops.add(_ops.multiply(2.0, n), 1.0)), small_a), fraction))
    first = _ops.divide(1.0, small_a)
    below = _ops.multiply(_front(small_a, low_x), _fori_loop(0, 100, add, (first, first))[1])
    above = _ops.divide(_front(small_a, high_x), _ops.add(_ops.subtract(_ops.add(high_x, 1.0), small_a), _fori_loop(0, 100, deepen, _ops.zeros_like(a))))

    less = _ops.where(is_large, _ops.subtract(a, 1.0), 100.0)
    at = _ops.where(is_large, x, 100.0)
    width = _ops.sqrt(less)
    end = _ops.where(takes_rest, _ops.maximum(_ops.add(less, _ops.multiply(11.5, width)), _ops.add(at, _ops.multiply(6.0, width))),
                     _ops.maximum(0.0, _ops.minimum(_ops.subtract(less, _ops.multiply(7.5, width)), _ops.subtract(at, _ops.multiply(5.0, width)))))
    points, weights = _np.polynomial.legendre.leggauss(40)
    column = lambda value: _ops.expand_dims(value, -1)
    away = _ops.subtract(_ops.add(column(at), _ops.multiply(column(_ops.subtract(end, at)), _asarray(((points + 1) / 2).astype(_np.float32)))), column(less))
    powers = _ops.exp(_ops.subtract(_ops.multiply(column(less), _ops.log1p(_ops.divide(away, column(less)))), away))
    total = _ops.multiply(_ops.absolute(_ops.subtract(end, at)), _ops.sum_(_ops.multiply(powers, _asarray((weights / 2).astype(_np.float32))), -1))
    part = _ops.multiply(total, _ops.divide(_ops.exp(_ops.negative(_rest_of_stirling(less))), _ops.multiply(_math.sqrt(2 * _math.pi), width)))

    smaller = _ops.where(is_large, part, _ops.where(takes_rest, above, below))
    usual = _ops.where(takes_rest if is_upper else _ops.logical_not(takes_rest), smaller, _ops.subtract(1.0, smaller))
    is_whole, is_none = _ops.equal(own_x, _math.inf), _ops.equal(own_x, 0)  # of what lies below
    is_whole, is_none = _ops.logical_or(is_whole, _ops.equal(own_a, 0)), _ops.logical_or(is_none, _ops.equal(own_a, _math.inf))
    ends = _ops.where(_ops.logical_and(is_whole, _ops.logical_not(is_none)), 0.0 if is_upper else 1.0,
                      _ops.where(_ops.logical_and(is_none, _ops.logical_not(is_whole)), 1.0 if is_upper else 0.0, _math.nan))
    is_outside = _ops.logical_or(_ops.less(own_a, 0), _ops.less(own_x, 0))
    return _astype(_ops.where(is_usual, usual, _ops.where(is_outside, _math.nan, ends)), own_a.engine_dtype)


def _shares(a, x, is_upper):
    a, x = _inexact_together(a, x)
    shape = _np.broadcast_shapes(a.shape, x.shape)
    return _gamma_shares(_ops.broadcast_to(a, shape), _ops.broadcast_to(x, shape), is_upper)


def gammainc(a, x):
    """The share of a gamma distribution below x."""
    return _shares(a, x, False)


def gammaincc(a, x):
    return _shares(a, x, True)


@_jit
def _fraction_of_beta(a, b, x):
    """The part of a beta distribution below x, over what stands before its continued fraction. Source: W. Press et al., Numerical Recipes, section 6.4."""
    def deepen(n, fraction):
        n = _astype(_ops.subtract(100, n), x.engine_dtype)
        twice = _ops.add(a, _ops.multiply(2.0, n))
        even = _ops.divide(_ops.multiply(_ops.multiply(n, _ops.subtract(b, n)), x), _ops.multiply(_ops.subtract(twice, 1.0), twice))
        odd = _ops.divide(_ops.multiply(_ops.multiply(_ops.subtract(_ops.add(a, n), 1.0), _ops.subtract(_ops.add(_ops.add(a, b), n), 1.0)), x),
                          _ops.multiply(_ops.subtract(twice, 2.0), _ops.subtract(twice, 1.0)))
        return _ops.subtract(1.0, _ops.divide(odd, _ops.add(1.0, _ops.divide(even, fraction))))
    return _ops.divide(1.0, _ops.multiply(a, _fori_loop(0, 100, deepen, _ops.ones_like(x))))


@_custom_jvp
def _share_of_beta(a, b, x):
    is_inside = _ops.logical_and(_ops.greater(x, 0), _ops.less(x, 1))
    is_usual = _ops.logical_and(is_inside, _ops.logical_and(_ops.greater(a, 0), _ops.greater(b, 0)))
    one, other, at = _ops.where(is_usual, a, 1.0), _ops.where(is_usual, b, 1.0), _ops.where(is_usual, x, 0.5)
    is_low = _ops.less(at, _ops.divide(_ops.add(one, 1.0), _ops.add(_ops.add(one, other), 2.0)))
    front = _ops.exp(_ops.subtract(_ops.add(xlogy(one, at), xlog1py(other, _ops.negative(at))), betaln(one, other)))
    part = _ops.multiply(front, _fraction_of_beta(_ops.where(is_low, one, other), _ops.where(is_low, other, one), _ops.where(is_low, at, _ops.subtract(1.0, at))))
    ends = _ops.where(_ops.logical_or(_ops.less_equal(a, 0), _ops.less_equal(b, 0)), _math.nan, _ops.where(_ops.equal(x, 0), 0.0, _ops.where(_ops.equal(x, 1), 1.0, _math.nan)))
    return _ops.where(is_usual, _ops.where(is_low, part, _ops.subtract(1.0, part)), ends)


@_share_of_beta.defjvp
def _slope_of_beta(primals, tangents):
    a, b, x = primals
    density = _ops.exp(_ops.subtract(_ops.add(xlogy(_ops.subtract(a, 1.0), x), xlog1py(_ops.subtract(b, 1.0), _ops.negative(x))), betaln(a, b)))
    return _share_of_beta(*primals), _ops.multiply(density, tangents[2])


def betainc(a, b, x):
    """The share of a beta distribution below x."""
    (a, b, x), _ = _ops.together(*map(_inexact, (a, b, x)))
    if _dtypes.is_complex(x.engine_dtype):
        raise ValueError("betainc does not support complex-valued inputs.")
    if _is_differentiated(a) or _is_differentiated(b):
        raise ValueError("Betainc gradient with respect to a and b not supported.")
    shape = _np.broadcast_shapes(a.shape, b.shape, x.shape)
    return _share_of_beta(*[_ops.broadcast_to(one, shape) for one in (a, b, x)])


def i0e(x):
    return _scaled_bessel(x, 0)


def i1e(x):
    return _scaled_bessel(x, 1)


def _scaled_bessel(x, order):
    """exp(-|x|) times the Bessel function of this order, by its integral over half a turn; where x is large by its asymptotic series.
    Source: NIST Digital Library of Mathematical Functions, 10.32.3 and 10.40.1."""
    own = _inexact(x)
    x = _astype(own, "f32") if own.engine_dtype in ("f16", "bf16") else own
    size = _ops.absolute(x)
    is_large = _ops.greater(size, 50.0)
    near = _ops.where(is_large, 50.0, x)
    angles = (_np.arange(128) + 0.5) * _math.pi / 256  # of a quarter turn: the other quarter has the opposite cosines
    turned = _ops.multiply(_ops.expand_dims(near, -1), _asarray(_np.cos(angles), x.engine_dtype))
    power = lambda of: _ops.exp(_ops.subtract(of, _ops.expand_dims(_ops.absolute(near), -1)))
    both = (_ops.subtract if order % 2 else _ops.add)(power(turned), power(_ops.negative(turned)))
    made = _ops.multiply(_ops.mean(_ops.multiply(both, _asarray(_np.cos(order * angles), x.engine_dtype)), -1), 0.5)
    far, series = _ops.where(is_large, size, 50.0), 1.0
    for n in range(12, 0, -1):
        factor = _ops.divide((2 * n - 1) ** 2 - 4.0 * order ** 2, _ops.multiply(8.0 * n, far))
        series = _ops.add(1.0, _ops.multiply(factor, series))
    at_far = _ops.divide(series, _ops.sqrt(_ops.multiply(2 * _math.pi, far)))
    return _astype(_ops.where(is_large, _ops.multiply(_ops.sign(x), at_far) if order % 2 else at_far, made), own.engine_dtype)


def i0(x):
    x = _inexact(x)
    return _ops.multiply(_ops.exp(_ops.absolute(x)), i0e(x))


def i1(x):
    x = _inexact(x)
    return _ops.multiply(_ops.exp(_ops.absolute(x)), i1e(x))
