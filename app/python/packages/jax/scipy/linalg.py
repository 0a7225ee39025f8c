# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.linalg."""
from .._src import ops as _ops
from .._src.arrays import asarray as _asarray
from ..numpy import linalg as _linalg
from ..numpy.linalg import det, inv


def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    return _linalg.cholesky(a, upper=not lower)


def cho_factor(a, lower=False, **_):
    return cholesky(a, lower), lower


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, **_):
    a, b = _asarray(a), _asarray(b)
    if trans not in (0, "N", 1, "T", 2, "C"):
        raise ValueError(f"Invalid 'trans' value {trans}")
    if trans in (1, "T", 2, "C"):
        a = _ops.swapaxes(a, -1, -2)
        a, lower = (_ops.conj(a) if trans in (2, "C") else a), not lower
    is_vector = b.ndim == 1
    made = _linalg.triangular(a, _ops.expand_dims(b, -1) if is_vector else b, lower, unit_diagonal)
    return made[..., 0] if is_vector else made


def cho_solve(c_and_lower, b, **_):
    factor, lower = c_and_lower
    first = solve_triangular(factor, b, trans=0 if lower else 2, lower=lower)
    return solve_triangular(factor, first, trans=2 if lower else 0, lower=lower)


def solve(a, b, lower=False, assume_a="gen", **_):
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


def svd(a, full_matrices=True, compute_uv=True, **_):
    made = _linalg.svd(a, full_matrices, compute_uv)
    return tuple(made) if compute_uv else made


def eigh(a, b=None, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, turbo=True, eigvals=None, type=1, check_finite=True):
    for is_wrong, what in ((b is not None, "b=None"), (type != 1, "type=1"), (eigvals is not None, "eigvals=None")):
        if is_wrong:
            raise NotImplementedError(f"Only the {what} case of eigh is implemented.")
    return _linalg.eigvalsh(a, "L" if lower else "U") if eigvals_only else tuple(_linalg.eigh(a, "L" if lower else "U"))


def lu(a, permute_l=False, **_):
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
    c = _asarray(c)
    r = _ops.conj(c) if r is None else _asarray(r)
    values = _ops.concatenate([_ops.flip(c, 0), r[1:]], 0)
    rows, columns = c.shape[0], r.shape[0]
    at = _ops.add(_ops.subtract(_ops.iota("i32", (rows, columns), 1), _ops.iota("i32", (rows, columns), 0)), rows - 1)
    return _ops.take(values, at)


def expm(a, **_):
    """By the series of a small part of the matrix, squared again."""
    a = _asarray(a)
    scaled, made = _ops.divide(a, 2.0**10), _linalg.matrix_power(a, 0)
    term = made
    for n in range(1, 9):
        term = _ops.divide(_ops.matmul(term, scaled, precision="highest"), float(n))
        made = _ops.add(made, term)
    for _ in range(10):
        made = _ops.matmul(made, made, precision="highest")
    return made


from .._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
