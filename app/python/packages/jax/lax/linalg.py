# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.lax.linalg: factors and solutions with the options of the operations beneath jax.numpy.linalg. eigh gives the eigenvectors first, as there."""
from .._src import dtypes as _dtypes
from .._src import ops as _ops
from .._src.arrays import asarray as _asarray
from .._src.control import scan as _scan
from .._src.options import refuse as _refuse
from ..numpy import linalg as _linalg


def cholesky(x, *, symmetrize_input=True):
    return _linalg.cholesky(x, symmetrize_input=symmetrize_input)


def eigh(x, *, lower=True, symmetrize_input=True, sort_eigenvalues=True, subset_by_index=None, **options):
    _refuse("jax.lax.linalg.eigh", {"subset_by_index": subset_by_index, **options})
    values, vectors = _linalg.eigh(x, "L" if lower else "U", symmetrize_input)
    return vectors, values


def lu(x):
    """(factors, which row each was exchanged with, the row that each came from)."""
    from ..scipy.linalg import lu_factor
    packed, order, _ = _linalg.lu(x)
    return packed, lu_factor(x)[1], order


def qr(x, *, pivoting=False, full_matrices=True, use_magma=None):
    _refuse("jax.lax.linalg.qr", {"pivoting": pivoting})
    return tuple(_linalg.qr(x, "complete" if full_matrices else "reduced"))


def svd(x, *, full_matrices=True, compute_uv=True, subset_by_index=None, algorithm=None):
    _refuse("jax.lax.linalg.svd", {"subset_by_index": subset_by_index})
    made = _linalg.svd(x, full_matrices, compute_uv)
    return tuple(made) if compute_uv else made


def symmetric_product(a_matrix, c_matrix, *, alpha=1.0, beta=0.0, symmetrize_output=False):
    """alpha a a^T + beta c, of which the lower triangle counts; `symmetrize_output` writes it into the upper one."""
    from ..numpy import tril
    made = _ops.add(_ops.multiply(alpha, _ops.matmul(a_matrix, _ops.swapaxes(_asarray(a_matrix), -1, -2))), _ops.multiply(beta, c_matrix))
    return _ops.add(tril(made), _ops.swapaxes(tril(made, -1), -1, -2)) if symmetrize_output else made


def triangular_solve(a, b, *, left_side=False, lower=False, transpose_a=False, conjugate_a=False, unit_diagonal=False):
    """x of op(a) x = b, or of x op(a) = b without `left_side`."""
    a, b = _asarray(a), _asarray(b)
    (a, b), _ = _ops.together(*(x if _dtypes.is_inexact(x.engine_dtype) else _ops.astype(x, _dtypes.default("f32")) for x in (a, b)))
    is_vector = b.ndim == a.ndim - 1
    b = _ops.expand_dims(b, -1 if left_side else -2) if is_vector else b
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise TypeError(f"triangular_solve requires the last two dimensions of a to be equal in size, got a.shape of {a.shape}.")
    if a.shape[:-2] != b.shape[:-2]:
        raise TypeError("triangular_solve requires both arguments to have the same number of dimensions and equal batch dimensions, "
                        f"got {a.shape} and {b.shape}.")
    if a.shape[-1] != b.shape[-2 if left_side else -1]:
        raise TypeError(f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}.")
    a = _ops.conj(a) if conjugate_a else a
    if transpose_a == left_side:  # x op(a) = b is op(a)^T x^T = b^T
        a, lower = _ops.swapaxes(a, -1, -2), not lower
    made = _linalg.triangular(a, b if left_side else _ops.swapaxes(b, -1, -2), lower, unit_diagonal)
    made = made if left_side else _ops.swapaxes(made, -1, -2)
    return made[..., 0] if is_vector and left_side else made[..., 0, :] if is_vector else made


def tridiagonal_solve(dl, d, du, b, **options):
    """x of a x = b, for the three diagonals of a; the first element of `dl` and the last one of `du` do not count."""
    _refuse("jax.lax.linalg.tridiagonal_solve", options)
    below, at, above = (_ops.expand_dims(_ops.moveaxis(_asarray(x), -1, 0), -1) for x in (dl, d, du))
    right = _ops.moveaxis(_asarray(b), -2, 0)

    def forward(carry, row):
        ratio, known = carry
        below, at, above, right = row
        pivot = _ops.subtract(at, _ops.multiply(below, ratio))
        made = _ops.divide(above, pivot), _ops.divide(_ops.subtract(right, _ops.multiply(below, known)), pivot)
        return made, made

    def backward(known, row):
        made = _ops.subtract(row[1], _ops.multiply(row[0], known))
        return made, made
    zero = _ops.zeros_like(right[0])
    rows = _scan(forward, (_ops.zeros_like(at[0]), zero), (below, at, above, right))[1]
    return _ops.moveaxis(_scan(backward, zero, rows, reverse=True)[1], 0, -2)
