# SPDX-License-Identifier: GPL-3.0-or-later
"""NumPy's functions of polynomials: arrays of coefficients, the highest power first."""
import operator

import numpy as np

from .._src import dtypes, ops
from .._src.arrays import asarray, astype
from .._src.errors import ConcretizationTypeError
from .._src.ops import add, divide, multiply, negative, subtract, together
from .._src.windows import convolve
from ._arrangements import trim_zeros


def _coefficients(*polynomials):
    found = [ops.reshape(one, (1,)) if not one.ndim else one for one in together(*polynomials)[0]]
    if any(one.ndim > 1 for one in found):
        raise NotImplementedError("polynomials whose coefficients are arrays of more than one dimension")
    return found


def _of_one_degree(p, q):
    p, q = _coefficients(p, q)
    size = max(p.shape[0], q.shape[0])
    return [ops.concatenate([ops.full((size - one.shape[0],), 0, one.engine_dtype), one]) if one.shape[0] < size else one for one in (p, q)]


def poly(seq_of_zeros):
    """The coefficients of the polynomial with these roots, or the characteristic one of a matrix."""
    zeros = asarray(seq_of_zeros)
    if zeros.ndim == 2:
        from .linalg import eigvals
        zeros = eigvals(zeros)
    zeros = zeros if dtypes.is_inexact(zeros.engine_dtype) else astype(zeros, "f32")
    made = ops.full((1,), 1, zeros.engine_dtype)
    for number in range(zeros.size):
        made = subtract(ops.concatenate([made, ops.full((1,), 0, made.engine_dtype)]),
                        ops.concatenate([ops.full((1,), 0, made.engine_dtype), multiply(made, zeros[number])]))
    return made


def polyadd(p, q):
    return add(*_of_one_degree(p, q))


def polysub(p, q):
    return subtract(*_of_one_degree(p, q))


def polymul(p, q, *, trim_leading_zeros=False):
    p, q = _coefficients(p, q)
    if trim_leading_zeros:
        p, q = (trim_zeros(one, "f") for one in (p, q))
    return convolve(p if p.size else ops.full((1,), 0, p.engine_dtype), q if q.size else ops.full((1,), 0, q.engine_dtype))


def polydiv(u, v, *, trim_leading_zeros=False):
    """The quotient, and what is left."""
    u, v = _coefficients(u, v)
    u, v = (one if dtypes.is_inexact(one.engine_dtype) else astype(one, "f32") for one in (u, v))
    count = u.shape[0] - v.shape[0] + 1
    quotient = []
    for at in range(max(count, 0)):
        quotient.append(divide(u[at], v[0]))
        u = u.at[at:at + v.shape[0]].add(negative(multiply(quotient[-1], v)))
    made = ops.stack(quotient) if quotient else ops.full((1,), 0, u.engine_dtype)
    return made, trim_zeros(u, "f") if trim_leading_zeros else u


def polyder(p, m=1):
    p = asarray(p)
    p = p if dtypes.is_inexact(p.engine_dtype) else astype(p, dtypes.default("f32"))
    for _ in range(m):
        p = multiply(p[:-1], ops.arange(p.shape[0] - 1, 0, -1))
    return p


def polyint(p, m=1, k=None):
    p = asarray(p)
    given = np.zeros(m, np.float32) if k is None else np.broadcast_to(np.asarray(k, np.float32), (m,))
    for number in range(m):
        size = p.shape[0]
        p = ops.concatenate([divide(p, ops.arange(size, 0, -1)), ops.full((1,), float(given[number]), dtypes.inexact(p.engine_dtype))])
    return p


def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """The polynomial of this degree with the least squares of distances. Source of the steps and texts: jax-ml/jax, jax/_src/numpy/polynomial.py (polyfit)."""
    from . import linalg
    from ._arrangements import outer, vander
    (x, y), deg = ops.inexact_together(x, y), operator.index(deg)
    for is_right, kind, text in ((deg >= 0, ValueError, "expected deg >= 0"), (x.ndim == 1, TypeError, "expected 1D vector for x"),
                                 (x.size > 0, TypeError, "expected non-empty vector for x"), (y.ndim in (1, 2), TypeError, "expected 1D or 2D array for y"),
                                 (x.shape[:1] == y.shape[:1], TypeError, "expected x and y to have same length")):
        if not is_right:
            raise kind(text)
    along = lambda values, like: ops.expand_dims(values, 1) if like.ndim == 2 else values
    powers = vander(x, deg + 1)
    if w is not None:
        w = ops.inexact(w)
        if w.shape != x.shape:
            raise TypeError("expected a 1-d array for weights" if w.ndim != 1 else "expected w and y to have the same length")
        powers, y = multiply(powers, along(w, powers)), multiply(y, along(w, y))
    scale = ops.sqrt(ops.sum_(ops.square(powers), 0))
    powers = divide(powers, scale)
    rcond = x.shape[0] * float(np.finfo(dtypes.shown(x.engine_dtype)).eps) if rcond is None else float(rcond)
    fitted, rest, rank, singular = linalg.lstsq(powers, y, rcond)
    fitted = divide(fitted, along(scale, fitted))
    if full:
        return fitted, rest, rank, singular, asarray(rcond)
    if not cov:
        return fitted
    spread = divide(linalg.inv(ops.dot(ops.transpose(powers), powers)), outer(scale, scale))
    if cov != "unscaled" and x.shape[0] <= deg + 1:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    factor = asarray(np.ones(1, np.float32)) if cov == "unscaled" else divide(rest, x.shape[0] - deg - 1)
    return fitted, multiply(spread, factor) if y.ndim == 1 else multiply(ops.expand_dims(spread, -1), factor)


def roots(p, *, strip_zeros=True):
    """Where a polynomial is 0: the eigenvalues of its companion matrix. Source of the steps and the text: jax-ml/jax, jax/_src/numpy/polynomial.py (roots)."""
    p = ops.inexact(p)
    p = ops.reshape(p, (1,)) if not p.ndim else p
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    zeros = ops.where(ops.reduce("and", ops.equal(p, 0)), p.size, ops.argmax(ops.not_equal(p, 0))) if p.size else 0
    if not strip_zeros:
        return _roots_behind(p, zeros)
    try:
        return _roots_of(p[int(zeros):])
    except ConcretizationTypeError:
        raise ConcretizationTypeError(zeros, "The error occurred in the jnp.roots() function. To use this within a JIT-compiled context, pass strip_zeros=False, but "
                                      "be aware that leading zeros will result in some returned roots being set to NaN.") from None


def _roots_of(p):
    from . import linalg
    if p.size < 2:
        return ops.full((0,), 0, "complex<f64>" if p.engine_dtype in ("f64", "complex<f64>") else "complex<f32>")
    rows = [ops.expand_dims(divide(negative(p[1:]), p[0]), 0)]
    if p.size > 2:
        rows.append(astype(asarray(np.eye(p.size - 2, p.size - 1, dtype=np.float32)), p.engine_dtype))
    return linalg.eigvals(ops.concatenate(rows))


def _roots_behind(p, zeros):
    """Behind so many leading zeros, which are moved to the end; as many roots are nan."""
    from ._arrangements import argsort
    p = ops.where(ops.equal(zeros, p.size), 1.0, p)
    made = _roots_of(ops.take(p, ops.remainder(add(ops.arange(p.size), zeros), p.size)))
    made = ops.take(made, argsort(ops.equal(made, 0)))
    return ops.where(ops.less(ops.arange(made.size), subtract(made.size, zeros)), made, complex(np.nan, np.nan))
