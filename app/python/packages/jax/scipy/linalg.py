# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.linalg."""
import functools
import math

import numpy as np

from .. import lax as _lax
from .._src import dtypes as _dtypes
from .._src import ops as _ops
from .._src.arrays import asarray as _asarray
from ..numpy import linalg as _linalg
from ..numpy.linalg import det, inv


def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    return _linalg.cholesky(a, upper=not lower)


def cho_factor(a, lower=False, *, overwrite_a=None, check_finite=None):
    return cholesky(a, lower), lower


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, *, overwrite_b=None, debug=None, check_finite=None):
    a, b = _asarray(a), _asarray(b)
    if trans not in (0, "N", 1, "T", 2, "C"):
        raise ValueError(f"Invalid 'trans' value {trans}")
    if trans in (1, "T", 2, "C"):
        a = _ops.swapaxes(a, -1, -2)
        a, lower = (_ops.conj(a) if trans in (2, "C") else a), not lower
    is_vector = b.ndim == 1
    _linalg.core_sizes("(n,n),(n)->(n)" if is_vector else "(n,n),(n,k)->(n,k)", (a.shape, b.shape))
    (a, b), _ = _ops.together(*(x if _dtypes.is_inexact(x.engine_dtype) else _ops.astype(x, _dtypes.default("f32")) for x in (a, b)))
    made = _linalg.triangular(a, _ops.expand_dims(b, -1) if is_vector else b, lower, unit_diagonal)
    return made[..., 0] if is_vector else made


def cho_solve(c_and_lower, b, *, overwrite_b=None, check_finite=None):
    factor, lower = c_and_lower
    first = solve_triangular(factor, b, trans=0 if lower else 2, lower=lower)
    return solve_triangular(factor, first, trans=2 if lower else 0, lower=lower)


def solve(a, b, lower=False, assume_a="gen", *, overwrite_a=None, overwrite_b=None, debug=None, check_finite=None):
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got {assume_a!r}")
    return cho_solve(cho_factor(a, lower), b) if assume_a == "pos" else _linalg.solve(a, b)


def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    if pivoting:
        raise NotImplementedError("jax.scipy.linalg.qr with pivoting")
    made = _linalg.qr(a, "reduced" if mode == "economic" else "complete")
    return (made[1],) if mode == "r" else tuple(made)


def svd(a, full_matrices=True, compute_uv=True, *, overwrite_a=None, check_finite=None, lapack_driver=None):
    made = _linalg.svd(a, full_matrices, compute_uv)
    return tuple(made) if compute_uv else made


def eigh(a, b=None, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, turbo=True, eigvals=None, type=1, check_finite=True):
    for is_wrong, what in ((b is not None, "b=None"), (type != 1, "type=1"), (eigvals is not None, "eigvals=None")):
        if is_wrong:
            raise NotImplementedError(f"Only the {what} case of eigh is implemented.")
    return _linalg.eigvalsh(a, "L" if lower else "U") if eigvals_only else tuple(_linalg.eigh(a, "L" if lower else "U"))


def lu(a, permute_l=False, *, overwrite_a=None, check_finite=None):
    from ..numpy import eye, take_along_axis, tril, triu
    packed, order, _ = _linalg.lu(a)
    rows, columns = packed.shape[-2:]
    size = min(rows, columns)
    lower = _ops.add(tril(packed[..., :size], -1), eye(rows, size, dtype=packed.dtype))
    upper = triu(packed[..., :size, :])
    whole = _ops.broadcast_to(eye(rows, dtype=_ops.real(packed).dtype), packed.shape[:-2] + (rows, rows))
    p = _ops.swapaxes(take_along_axis(whole, order[..., None], -2), -1, -2)
    return (_ops.matmul(p, lower), upper) if permute_l else (p, lower, upper)


def block_diag(*arrays):
    from ..numpy import atleast_2d
    if not arrays:
        return _ops.full((1, 0), 0.0, "f32")
    bad = [at for at, x in enumerate(arrays) if _asarray(x).ndim > 2]
    if bad:
        raise ValueError(f"Arguments to jax.scipy.linalg.block_diag must have at most 2 dimensions, got {arrays[bad[0]]} at argument {bad[0]}.")
    arrays = [atleast_2d(x) for x in arrays]
    width, at, rows = sum(x.shape[1] for x in arrays), 0, []
    for x in arrays:
        rows.append(_ops.pad(x, (0, at), (0, width - at - x.shape[1])))
        at += x.shape[1]
    return _ops.concatenate(rows, 0)


def toeplitz(c, r=None):
    """Of the last dimension; those before it are of as many matrices."""
    from ..numpy import atleast_1d, broadcast_shapes
    c = atleast_1d(_asarray(c))
    r = _ops.conj(c) if r is None else atleast_1d(_asarray(r))
    rows, columns = c.shape[-1], r.shape[-1]
    batch = broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = _ops.broadcast_to(c, (*batch, rows)), _ops.broadcast_to(r, (*batch, columns))
    values = _ops.concatenate([_ops.flip(c, -1), r[..., 1:]], -1)
    at = _ops.add(_ops.subtract(_ops.iota("i32", (rows, columns), 1), _ops.iota("i32", (rows, columns), 0)), rows - 1)
    return _ops.take(values, at, -1)


_PADE = (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)


def expm(A, *, upper_triangular=False, max_squarings=16):
    """Pade's approximation of a small part of the matrix, squared again. Source of the limits: jax-ml/jax, jax/_src/scipy/linalg.py."""
    A = _asarray(A)
    A = A if _dtypes.is_inexact(A.engine_dtype) else _ops.astype(A, "f32")
    product = lambda x, y: _ops.matmul(x, y, precision="highest")
    size = _ops.reduce("max", _ops.sum_(_ops.absolute(A), -2), -1)
    wide = A.engine_dtype in ("f64", "complex<f64>")
    squarings = _ops.maximum(0.0, _ops.add(_ops.floor(_ops.divide(_ops.log(_ops.divide(size, 0.95 if wide else 3.925724783138660)), math.log(2.0))), 1.0 if wide else 0.0))
    squarings = _lax.stop_gradient(squarings)
    column = lambda x: _ops.reshape(x, x.shape + (1, 1))
    A = _ops.divide(A, column(_ops.power(2.0, squarings)))
    one = _ops.broadcast_to(_linalg._eye(A), A.shape)
    square = product(A, A)
    powers = [one, square, product(square, square)]
    powers.append(product(powers[2], square))
    series = lambda first: functools.reduce(_ops.add, [_ops.multiply(_PADE[2 * at + first], power) for at, power in enumerate(powers)])
    odd, even = product(A, series(1)), series(0)
    made = _linalg.solve(_ops.subtract(even, odd), _ops.add(even, odd))
    for number in range(max_squarings):
        made = _ops.where(_ops.less(number, column(squarings)), product(made, made), made)
    return _ops.where(_ops.greater(column(squarings), max_squarings), math.nan, made)


def tril(m, k=0):
    from ..numpy import tril as of
    return of(m, k)


def triu(m, k=0):
    from ..numpy import triu as of
    return of(m, k)


def lu_factor(a, overwrite_a=False, check_finite=True):
    """The factors in one array, and which row each was exchanged with."""
    packed, order, _ = _linalg.lu(a)
    if packed.ndim != 2:
        raise NotImplementedError("jax.scipy.linalg.lu_factor of many matrices")
    rows = min(packed.shape)
    now, pivots = _ops.iota("i32", (packed.shape[0],), 0), []
    for row in range(rows):
        at = _ops.argmax(_ops.astype(_ops.equal(now, order[row]), "i32"))
        pivots.append(at)
        now = now.at[at].set(now[row]).at[row].set(order[row])
    return packed, _ops.astype(_ops.stack(pivots), "i32")


def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    packed, pivots = lu_and_piv
    b = _asarray(b)
    is_vector = b.ndim == 1
    if packed.ndim < 2 or packed.shape[-1] != packed.shape[-2]:
        raise ValueError(f"last two dimensions of LU decomposition must be equal, got shape {packed.shape}")
    if b.ndim < 1 or b.shape[0] != packed.shape[-1]:
        raise ValueError(f"When LU decomposition matrix and b have {'the same number' if is_vector else 'different numbers'} of dimensions, last axis of LU "
                         f"decomposition matrix (shape {packed.shape}) and {'' if is_vector else 'second to last axis of '}b array (shape {b.shape}) must match")
    b = b[:, None] if is_vector else b
    rows = range(pivots.shape[0])
    exchange = lambda b, row: b.at[row].set(b[pivots[row]]).at[pivots[row]].set(b[row])
    if trans == 0:
        b = functools.reduce(exchange, rows, b)
        made = solve_triangular(packed, solve_triangular(packed, b, lower=True, unit_diagonal=True))
    else:
        made = solve_triangular(packed, solve_triangular(packed, b, trans=trans), trans=trans, lower=True, unit_diagonal=True)
        made = functools.reduce(exchange, reversed(rows), made)
    return made[:, 0] if is_vector else made


def hilbert(n):
    at = _ops.iota("f32", (n,), 0)
    return _ops.divide(1.0, _ops.add(_ops.add(at[:, None], at[None, :]), 1.0))


def hadamard(n, dtype=int):
    if n < 1 or n & (n - 1):
        raise ValueError("n must be a positive integer and a power of 2.")
    made = np.array([[1]])
    while made.shape[0] < n:
        made = np.block([[made, made], [made, -made]])
    return _asarray(made.astype(np.dtype(dtype)))


def pascal(n, kind=None):
    made = np.array([[math.comb(row + column, row) for column in range(n)] for row in range(n)], np.float32)
    if kind in ("lower", "upper"):
        made = np.array([[math.comb(row, column) for column in range(n)] for row in range(n)], np.float32)
        made = made if kind == "lower" else made.T
    elif kind not in (None, "symmetric"):
        raise ValueError(f"Expected kind to be on of: 'symmetric', 'lower', or 'upper'; got kind={kind!r}")
    return _asarray(made)


def polar(a, side="right", *, method="qdwh", eps=None, max_iterations=None):
    """The unitary and the positive factor."""
    u, s, vh = _linalg.svd(a, full_matrices=False)
    unitary, adjoint = _ops.matmul(u, vh, precision="highest"), lambda x: _ops.conj(_ops.swapaxes(x, -1, -2))
    side_of = {"right": adjoint(vh), "left": u}
    if side not in side_of:
        raise ValueError(f"The argument `side` must be either 'right' or 'left', got {side}.")
    basis = side_of[side]
    return unitary, _ops.matmul(_ops.multiply(basis, s[..., None, :]), adjoint(basis), precision="highest")


from .._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
