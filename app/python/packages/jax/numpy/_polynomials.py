# SPDX-License-Identifier: GPL-3.0-or-later
"""NumPy's functions of polynomials: arrays of coefficients, the highest power first."""
import numpy as np

from .._src import dtypes, ops
from .._src.arrays import asarray, astype
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
