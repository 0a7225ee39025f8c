# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.special."""
import math as _math

from .._src import dtypes as _dtypes
from .._src import ops as _ops
from .._src.arrays import asarray as _asarray
from .._src.arrays import astype as _astype
from .._src.ops import erf, erfc, logistic as expit
from .._src.ops import erf_inv as erfinv
from ..nn import log_softmax, logsumexp, softmax

gammaln, digamma = _ops.unary("lgamma"), _ops.unary("digamma")
psi = digamma


def _inexact(x):
    x = _asarray(x)
    return x if _dtypes.is_inexact(x.engine_dtype) else _astype(x, _dtypes.default("f32"))


def xlogy(x, y):
    return _ops.where(_ops.equal(x, 0), 0.0, _ops.multiply(x, _ops.log(_ops.where(_ops.equal(x, 0), 1.0, y))))


def xlog1py(x, y):
    return _ops.where(_ops.equal(x, 0), 0.0, _ops.multiply(x, _ops.log1p(_ops.where(_ops.equal(x, 0), 1.0, y))))


def entr(x):
    x = _inexact(x)
    return _ops.where(_ops.less(x, 0), -_math.inf, _ops.negative(xlogy(x, x)))


def rel_entr(p, q):
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


def gamma(x):
    x = _inexact(x)
    is_odd = _ops.equal(_ops.remainder(_ops.floor(x), 2.0), 1.0)
    sign = _ops.where(_ops.logical_and(_ops.less(x, 0), is_odd), -1.0, 1.0)
    return _ops.multiply(sign, _ops.exp(gammaln(x)))


def factorial(n, exact=False):
    return _ops.where(_ops.less(n, 0), 0.0, gamma(_ops.add(_inexact(n), 1.0)))


def betaln(a, b):
    return _ops.subtract(_ops.add(gammaln(a), gammaln(b)), gammaln(_ops.add(a, b)))


def beta(a, b):
    return _ops.exp(betaln(a, b))


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


def ndtri(p):
    return _ops.multiply(_math.sqrt(2.0), erfinv(_ops.subtract(_ops.multiply(2.0, _inexact(p)), 1.0)))


def log_ndtr(x):
    return _ops.log(ndtr(x))


def gammainc(a, x):
    """The share of a gamma distribution below x: its series, or one less the continued fraction of the rest."""
    (a, x), _ = _ops.together(_inexact(a), _inexact(x))
    import numpy as np
    shape = np.broadcast_shapes(a.shape, x.shape)
    a, x = _ops.broadcast_to(a, shape), _ops.broadcast_to(x, shape)
    front = _ops.exp(_ops.subtract(_ops.subtract(_ops.multiply(a, _ops.log(x)), x), gammaln(a)))
    term = total = _ops.divide(1.0, a)
    for n in range(1, 60):
        term = _ops.divide(_ops.multiply(term, x), _ops.add(a, float(n)))
        total = _ops.add(total, term)
    fraction = _ops.zeros_like(x)
    for n in range(40, 0, -1):
        fraction = _ops.divide(_ops.multiply(float(n), _ops.subtract(a, float(n))), _ops.add(_ops.subtract(_ops.add(x, 2.0 * n + 1.0), a), fraction))
    rest = _ops.divide(front, _ops.add(_ops.subtract(_ops.add(x, 1.0), a), fraction))
    return _ops.where(_ops.equal(x, 0), 0.0, _ops.where(_ops.less(x, _ops.add(a, 1.0)), _ops.multiply(front, total), _ops.subtract(1.0, rest)))


def gammaincc(a, x):
    return _ops.subtract(1.0, gammainc(a, x))


def i0e(x):
    return _by_series(x, 0)


def i1e(x):
    return _by_series(x, 1)


def _by_series(x, order):
    """exp(-|x|) times the Bessel function of this order, by its integral over half a turn."""
    import numpy as np
    x = _inexact(x)
    angles = (np.arange(256) + 0.5) * _math.pi / 256
    cosines = _asarray(np.cos(angles).astype(np.float32))
    powers = _ops.exp(_ops.subtract(_ops.multiply(_ops.expand_dims(x, -1), cosines), _ops.expand_dims(_ops.absolute(x), -1)))
    return _ops.mean(_ops.multiply(powers, _asarray(np.cos(order * angles).astype(np.float32))), -1)


def i0(x):
    return _ops.multiply(_ops.exp(_ops.absolute(_inexact(x))), i0e(x))


def i1(x):
    return _ops.multiply(_ops.exp(_ops.absolute(_inexact(x))), i1e(x))
