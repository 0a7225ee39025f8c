# SPDX-License-Identifier: GPL-3.0-or-later
"""Linear algebra: factors and solutions as ops, column by column, so that they have derivatives and layouts; eigenvalues and singular values by NumPy, so that a
program with them is carried out op by op."""
import collections
import functools
import math
import re

import numpy as np

from .._src import batching, dtypes, effects, ops, trees
from .._src.arrays import ConcreteArray, asarray, astype, from_numpy
from .._src.custom import custom_jvp
from .._src.ops import (absolute, add, conj, divide, dot, expand_dims, matmul, multiply, real, sqrt, square, subtract, where)
from .._src.options import refuse as _refuse


def _matrix(a):
    a = asarray(a)
    if a.ndim < 2:
        raise ValueError(f"Argument to linalg must have ndims >= 2, got shape {a.shape}")
    return a if dtypes.is_inexact(a.engine_dtype) else astype(a, dtypes.default("f32"))


def _square(a, name):
    a = _matrix(a)
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got {a.shape}")
    return a


def _adjoint(a):
    return conj(ops.swapaxes(a, -1, -2))


def cholesky(a, *, upper=False, symmetrize_input=True):
    a = _square(a, "cholesky")
    a = multiply(0.5, add(a, _adjoint(a))) if symmetrize_input else a
    size, columns = a.shape[-1], []
    for j in range(size):
        column = a[..., j]
        for done in columns:
            column = subtract(column, multiply(done, expand_dims(conj(done[..., j]), -1)))
        root = sqrt(real(column[..., j]))
        column = divide(column, expand_dims(root, -1) if not dtypes.is_complex(column.engine_dtype) else ops.complex_(expand_dims(root, -1), expand_dims(ops.zeros_like(root), -1)))
        columns.append(where(ops.greater_equal(ops.arange(size), j), column, ops.zeros_like(column)))
    made = ops.stack(columns, -1)
    return _adjoint(made) if upper else made


def triangular(a, b, lower=True, unit_diagonal=False):
    """Solves a x = b for a triangular matrix, row by row."""
    size, rows = a.shape[-1], {}
    for i in (range(size) if lower else reversed(range(size))):
        row = b[..., i, :]
        for j, known in rows.items():
            row = subtract(row, multiply(a[..., i, j, None], known))
        rows[i] = row if unit_diagonal else divide(row, a[..., i, i, None])
    return ops.stack([rows[i] for i in range(size)], -2)


def core_sizes(signature, shapes, excluded=frozenset()):
    """That the last dimensions of arguments have the sizes that a signature names. Source of the texts: jax-ml/jax, jax/_src/numpy/vectorize.py."""
    said, sizes = f"on vectorized function with excluded={excluded!r} and signature={signature!r}", {}
    for part, shape in zip(re.findall(r"\(([^()]*)\)", signature.split("->")[0]), shapes):
        names = tuple(re.findall(r"\w+", part))
        if len(shape) < len(names):
            raise ValueError(f"input with shape {shape} does not have enough dimensions for all core dimensions {names} {said}")
        for name, size in zip(names, shape[len(shape) - len(names):]):
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"inconsistent size for core dimension {name!r}: {size!r} vs {sizes[name]!r} {said}")


def lu(a):
    """(packed factors, the row that each came from, the sign of the permutation); rows are exchanged for the largest pivot."""
    a = _matrix(a)
    rows, columns = a.shape[-2:]
    at, across = ops.arange(rows), ops.arange(columns)
    order = ops.broadcast_to(at, a.shape[:-1])
    sign = ops.full(a.shape[:-2], 1, real(a).engine_dtype)
    for j in range(min(rows, columns)):
        column = a[..., j]  # complex pivots are compared as LAPACK's IZAMAX does
        sizes = add(absolute(real(column)), absolute(ops.imag(column))) if dtypes.is_complex(a.engine_dtype) else absolute(column)
        best = ops.argmax(where(ops.greater_equal(at, j), sizes, -1.0), -1)
        chosen = expand_dims(best, -1)
        places = where(ops.equal(at, j), chosen, where(ops.equal(at, chosen), j, at))
        a = _rows_of(a, places)
        order = _rows_of(expand_dims(order, -1), places)[..., 0]
        sign = where(ops.equal(best, j), sign, ops.negative(sign))
        below = ops.greater(at, j)
        factor = where(below, divide(a[..., j], a[..., j, j, None]), ops.zeros_like(a[..., j]))
        rest = where(ops.greater(across, j), a[..., j, :], ops.zeros_like(a[..., j, :]))
        a = subtract(a, multiply(expand_dims(factor, -1), expand_dims(rest, -2)))
        is_factor = ops.logical_and(expand_dims(below, -1), ops.equal(across, j))
        a = where(is_factor, expand_dims(factor, -1), a)
    return a, order, sign


def _rows_of(a, places):
    from ._arrangements import take_along_axis
    return take_along_axis(a, expand_dims(places, -1), -2)


def solve(a, b):
    a, b = asarray(a), asarray(b)
    if a.ndim < 2:
        raise ValueError(f"left hand array must be at least two dimensional; got a.shape={a.shape}")
    if b.ndim > 1 and a.ndim == b.ndim + 1 and a.shape[-1] == b.shape[-1] and a.shape[-1] != b.shape[-2]:
        raise ValueError(f"Invalid shapes for solve: {a.shape}, {b.shape}. Prior to JAX v0.5.0, this would have been treated as a batched 1-dimensional solve. To "
                         "recover this behavior, use solve(a, b[..., None]).squeeze(-1).")
    is_vector = b.ndim == 1
    core_sizes("(m,m),(m)->(m)" if is_vector else "(m,m),(m,n)->(m,n)", (a.shape, b.shape))
    (a, b), _ = ops.together(_matrix(a), b)
    right = expand_dims(b, -1) if is_vector else b
    batch = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    a, right = ops.broadcast_to(a, batch + a.shape[-2:]), ops.broadcast_to(right, batch + right.shape[-2:])
    factors, order, _ = lu(a)
    made = triangular(factors, triangular(factors, _rows_of(right, order), True, True), False)
    return made[..., 0] if is_vector else made


def inv(a):
    a = _square(a, "inv")
    return solve(a, ops.broadcast_to(_eye(a), a.shape))


def _eye(a):
    from ._arrangements import eye
    return eye(a.shape[-1], dtype=a.dtype)


SlogdetResult = collections.namedtuple("SlogdetResult", ["sign", "logabsdet"])
EighResult = collections.namedtuple("EighResult", ["eigenvalues", "eigenvectors"])
EigResult = collections.namedtuple("EigResult", ["eigenvalues", "eigenvectors"])
SVDResult = collections.namedtuple("SVDResult", ["U", "S", "Vh"])
QRResult = collections.namedtuple("QRResult", ["Q", "R"])


def _diagonal_of(a):
    from ._arrangements import diagonal
    return diagonal(a, 0, -2, -1)


def _product_of(x):
    if not dtypes.is_complex(x.engine_dtype):
        return ops.prod(x, -1)
    return functools.reduce(multiply, [x[..., at] for at in range(x.shape[-1])], ops.ones_like(x[..., 0]) if not x.shape[-1] else 1.0)


def det(a):
    factors, _, sign = lu(_square(a, "det"))
    return multiply(sign, _product_of(_diagonal_of(factors)))


def slogdet(a, *, method=None):
    factors, _, sign = lu(_square(a, "slogdet"))
    found = _diagonal_of(factors)
    return SlogdetResult(multiply(sign, _product_of(ops.sign(found))), ops.sum_(ops.log(absolute(found)), -1))


def qr(a, mode="reduced"):
    """By reflections of one column after the other."""
    a = _matrix(a)
    rows, columns = a.shape[-2:]
    at = ops.arange(rows)
    from ._arrangements import eye
    q, r = ops.broadcast_to(eye(rows, dtype=a.dtype), a.shape[:-2] + (rows, rows)), a
    is_complex = dtypes.is_complex(a.engine_dtype)
    for j in range(min(rows if is_complex else rows - 1, columns)):  # as LAPACK's xGEQR2: the diagonal of r gets real, and a column with no rest stays
        x = where(ops.greater_equal(at, j), r[..., j], ops.zeros_like(r[..., j]))
        rest = ops.sum_(where(ops.equal(at, j), 0.0, square(absolute(x))), -1, keepdims=True)
        head = x[..., j, None]
        stays = ops.logical_and(ops.equal(rest, 0), ops.equal(ops.imag(head), 0)) if is_complex else ops.equal(rest, 0)
        size = sqrt(where(stays, 1.0, add(rest, square(absolute(head)))))
        made = astype(where(ops.less(real(head), 0), size, ops.negative(size)), x.engine_dtype)
        v = add(x, where(ops.equal(at, j), ops.negative(made), ops.zeros_like(x)))
        top = square(absolute(subtract(head, made)))
        factor = divide(divide(subtract(made, head), made), astype(where(stays, 1.0, top), x.engine_dtype))
        factor = where(stays, ops.zeros_like(factor), factor)
        along = matmul(expand_dims(conj(v), -2), r)
        r = subtract(r, multiply(multiply(expand_dims(v, -1), along), expand_dims(conj(factor), -1)))
        q = subtract(q, multiply(multiply(matmul(q, expand_dims(v, -1)), expand_dims(conj(v), -2)), expand_dims(factor, -1)))
    count = min(rows, columns) if mode != "complete" else rows
    from ._arrangements import triu
    r = triu(r)
    return r[..., :count, :] if mode == "r" else QRResult(q[..., :count], r[..., :count, :])


def _known(a, function):
    """What a function of NumPy makes of a matrix whose values are known; where they are not, the program is carried out op by op."""
    if a.level:
        with batching.Outside() as outside:
            return trees.tree_map(outside.example, _known(outside.whole(a), function))
    value = a if isinstance(a, ConcreteArray) else a.scope.value_of(a)
    if value is None:
        raise effects.NeedsValues("an eigendecomposition or a singular value decomposition")
    return trees.tree_map(lambda part: from_numpy(np.asarray(part)), function(np.asarray(value)))


def _factored(function):
    """`rule(a, da)` gives the result and how it changes with a matrix."""
    def with_rule(rule):
        made = custom_jvp(lambda a: _known(a, function))
        made.defjvp(lambda primals, tangents: rule(*primals, *tangents))
        return made
    return with_rule


def _matrix_of(values):
    return multiply(expand_dims(values, -1), _eye(expand_dims(values, -1)))


@_factored(lambda a: EighResult(*np.linalg.eigh(a)))
def _eigh(a, da):
    values, vectors = _eigh(a)
    change = matmul(matmul(_adjoint(vectors), da, precision="highest"), vectors, precision="highest")
    one = _eye(change)
    apart = subtract(divide(1.0, add(one, subtract(expand_dims(values, -2), expand_dims(values, -1)))), one)
    return EighResult(values, vectors), EighResult(real(_diagonal_of(change)), matmul(vectors, multiply(apart, change), precision="highest"))


def eigh(a, UPLO="L", symmetrize_input=True):
    a = _square(a, "jnp.linalg.eigh")
    if symmetrize_input:
        return _eigh(multiply(0.5, add(a, _adjoint(a))))
    half = ops.swapaxes(a, -1, -2) if UPLO == "U" else a
    from ._arrangements import tril
    return _eigh(add(tril(half, -1), _adjoint(tril(half))))


def eigvalsh(a, UPLO="L", *, symmetrize_input=True):
    return eigh(a, UPLO, symmetrize_input)[0]


def _without_derivative(name, function):
    def refused(a, da):
        raise NotImplementedError(f"the derivative of jax.numpy.linalg.{name}")
    made = _factored(function)(refused)
    return lambda a: made(_matrix(a))


eig = _without_derivative("eig", lambda a: EigResult(*(part.astype(np.result_type(part, np.complex64)) for part in np.linalg.eig(a))))
eigvals = _without_derivative("eigvals", lambda a: np.linalg.eigvals(a).astype(np.result_type(a, np.complex64)))


@_factored(lambda a: SVDResult(*np.linalg.svd(a, False)))
def _svd(a, da):
    """Source of the formula: James Townsend, Differentiating the singular value decomposition; with jax-ml/jax, jax/_src/lax/linalg.py."""
    u, s, vh = _svd(a)
    product = functools.partial(matmul, precision="highest")
    v, along = _adjoint(vh), product(product(_adjoint(u), da), _adjoint(vh))
    row, one = expand_dims(s, -2), _eye(along)
    apart = multiply(add(expand_dims(s, -1), row), subtract(row, expand_dims(s, -1)))
    apart = subtract(divide(1.0, add(apart, one)), one)
    of_u, of_v = multiply(row, along), multiply(expand_dims(s, -1), along)
    du, dv = product(u, multiply(apart, add(of_u, _adjoint(of_u)))), product(v, multiply(apart, add(of_v, _adjoint(of_v))))
    if dtypes.is_complex(a.engine_dtype):
        du = add(du, product(u, multiply(divide(0.5, row), multiply(one, subtract(along, _adjoint(along))))))
    rows, columns = a.shape[-2:]
    if rows > columns:
        rest = product(da, v)
        du = add(du, divide(subtract(rest, product(u, product(_adjoint(u), rest))), row))
    if columns > rows:
        rest = product(_adjoint(da), u)
        dv = add(dv, divide(subtract(rest, product(v, product(vh, rest))), row))
    return SVDResult(u, s, vh), SVDResult(du, real(_diagonal_of(along)), _adjoint(dv))


def _no_derivative_of_whole(a, da):
    raise NotImplementedError("Singular value decomposition JVP not implemented for full matrices")


_whole_svd = _factored(lambda a: SVDResult(*np.linalg.svd(a, True)))(_no_derivative_of_whole)


@_factored(lambda a: np.linalg.svd(a, compute_uv=False))
def _svdvals(a, da):
    u, s, vh = _svd(a)
    return s, real(_diagonal_of(matmul(matmul(_adjoint(u), da, precision="highest"), _adjoint(vh), precision="highest")))


def svd(a, full_matrices=True, compute_uv=True, hermitian=False, subset_by_index=None):
    _refuse("jax.numpy.linalg.svd", {"subset_by_index": subset_by_index})
    a = _matrix(a)
    if not compute_uv:
        return _svdvals(a)
    return _svd(a) if not full_matrices or a.shape[-1] == a.shape[-2] else _whole_svd(a)


def matrix_rank(a, rtol=None, *, hermitian=False, tol=None):
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    a, rtol = _matrix(a), tol if rtol is None else rtol
    s = svdvals(a)
    least = max(a.shape[-2:]) * float(np.finfo(dtypes.shown(s.engine_dtype)).eps) if rtol is None else rtol
    return ops.sum_(astype(ops.greater(s, multiply(least, s[..., :1])), "i32"), -1)


@functools.lru_cache(maxsize=64)
def _pinv(rtol, hermitian):
    @_factored(lambda a: np.linalg.pinv(a, rtol, hermitian))
    def made(a, da):
        p, product = made(a), functools.partial(matmul, precision="highest")
        row, column = product(a, p), product(p, a)
        left, right = product(product(p, _adjoint(p)), _adjoint(da)), product(_adjoint(da), product(_adjoint(p), p))
        change = add(product(left, subtract(_eye(row), row)), product(subtract(_eye(column), column), right))
        return p, subtract(change, product(product(p, da), p))
    return made


def pinv(a, rtol=None, hermitian=False, *, rcond=None):
    a, rtol = _matrix(a), rcond if rtol is None else rtol
    return _pinv(10.0 * max(a.shape[-2:]) * float(np.finfo(dtypes.shown(a.engine_dtype)).eps) if rtol is None else float(rtol), hermitian)(a)


def svdvals(a, /):
    return svd(a, compute_uv=False)


def lstsq(a, b, rcond=None, *, numpy_resid=False):
    """Source of the steps and the texts: jax-ml/jax, jax/_src/numpy/linalg.py (_lstsq)."""
    (a, b), _ = ops.together(*(x if dtypes.is_inexact(x.engine_dtype) else astype(x, dtypes.default("f32")) for x in map(asarray, (a, b))))
    if a.shape[:1] != b.shape[:1]:
        raise ValueError("Leading dimensions of input arrays must match")
    for what, x, ranks in (("two-dimensional", a, (2,)), ("one or two-dimensional", b, (1, 2))):
        if x.ndim not in ranks:
            raise TypeError(f"{x.ndim}-dimensional array given. Array must be {what}")
    (rows, columns), right, product = a.shape, expand_dims(b, -1) if b.ndim == 1 else b, functools.partial(matmul, precision="highest")
    least = float(np.finfo(dtypes.shown(a.engine_dtype)).eps)
    u, s, vt = svd(a, full_matrices=False)
    least = least * max(rows, columns) if rcond is None else where(ops.less(rcond, 0), least, rcond)
    is_kept = ops.logical_and(ops.greater(s, 0), ops.greater_equal(s, multiply(astype(least, s.engine_dtype), s[0])))
    rank = ops.sum_(astype(is_kept, "i32"))
    inverse = where(is_kept, divide(1, where(is_kept, s, 1)), 0)
    x = product(_adjoint(vt), multiply(expand_dims(inverse, -1), product(_adjoint(u), right)))
    if numpy_resid and (int(rank) < columns or rows <= columns):
        rest = ops.full((0,), 0, s.engine_dtype)
    else:
        rest = square(norm(subtract(right, product(a, x)), axis=0))
    return x[:, 0] if b.ndim == 1 else x, rest, rank, s


def norm(x, ord=None, axis=None, keepdims=False):
    x = asarray(x)
    x = x if dtypes.is_inexact(x.engine_dtype) else astype(x, dtypes.default("f32"))
    sizes = absolute(x)
    if axis is None and ord is None:
        return sqrt(ops.sum_(square(sizes), None, keepdims=keepdims))
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) == 1 or ord in (None, "fro") and len(axes) == 2:
        if ord in (None, 2, "fro"):
            return sqrt(ops.sum_(square(sizes), axes, keepdims=keepdims))
        if ord == math.inf:
            return ops.reduce("max", sizes, axes, keepdims)
        if ord == -math.inf:
            return ops.reduce("min", sizes, axes, keepdims)
        if ord == 0:
            return ops.sum_(astype(ops.not_equal(x, 0), sizes.engine_dtype), axes, keepdims=keepdims)
        if ord == 1:
            return ops.sum_(sizes, axes, keepdims=keepdims)
        return ops.power(ops.sum_(ops.power(sizes, ord), axes, keepdims=keepdims), 1.0 / ord)
    if len(axes) != 2:
        raise ValueError(f"Invalid axis values ({axis}) for jnp.linalg.norm.")
    row, column = (ops.dimension(a, x.ndim) for a in axes)
    if ord in (1, -1, math.inf, -math.inf):
        summed, other = (row, column) if ord in (1, -1) else (column, row)
        totals = ops.sum_(sizes, summed, keepdims=True)
        made = ops.reduce("max" if ord > 0 else "min", totals, other, True)
        return made if keepdims else ops.squeeze(made, (row, column))
    values = svdvals(ops.moveaxis(x, (row, column), (-2, -1)))
    made = {2: lambda: ops.reduce("max", values, -1), -2: lambda: ops.reduce("min", values, -1), "nuc": lambda: ops.sum_(values, -1)}
    if ord not in made:
        raise ValueError(f"Invalid order '{ord}' for matrix norm.")
    return ops.expand_dims(made[ord](), (row, column)) if keepdims else made[ord]()


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    return norm(ops.reshape(asarray(x), (-1,)), ord) if axis is None and not keepdims else norm(x, ord, axis, keepdims)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    return norm(x, ord, (-2, -1), keepdims)


def matrix_power(a, n):
    a = _square(a, "matrix_power")
    if n < 0:
        a, n = inv(a), -n
    made = ops.broadcast_to(_eye(a), a.shape)
    while n:
        made = matmul(made, a) if n & 1 else made
        n >>= 1
        a = matmul(a, a) if n else a
    return made


def multi_dot(arrays, *, precision=None):
    """The product of all, in the order that takes the fewest multiplications."""
    arrays = [asarray(one) for one in arrays]
    first, last = arrays[0].ndim == 1, arrays[-1].ndim == 1
    sizes = [1 if first else arrays[0].shape[0], *[one.shape[0] for one in arrays[1:]], 1 if last else arrays[-1].shape[1]]

    @functools.cache
    def best(start, stop):
        """The least count of multiplications of a part of them, and where it is taken apart."""
        if stop - start == 1:
            return 0, start
        return min((best(start, at)[0] + best(at, stop)[0] + sizes[start] * sizes[at] * sizes[stop], at) for at in range(start + 1, stop))

    def product(start, stop):
        at = best(start, stop)[1]
        return arrays[start] if stop - start == 1 else dot(product(start, at), product(at, stop), precision)
    return product(0, len(arrays))


def matrix_transpose(x, /):
    return ops.swapaxes(x, -1, -2)


def diagonal(x, /, *, offset=0):
    from ._arrangements import diagonal as of
    return of(x, offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    return ops.sum_(diagonal(x, offset=offset), -1, dtype)


def outer(a, b, /):
    return multiply(expand_dims(asarray(a), 1), expand_dims(asarray(b), 0))


def cross(a, b, /, *, axis=-1):
    from ._arrangements import cross as of
    return of(a, b, axis=axis)


def cond(x, p=None):
    x = _matrix(x)
    if p in (None, 2, -2):
        values = svdvals(x)
        made = divide(values[..., 0], values[..., -1]) if p != -2 else divide(values[..., -1], values[..., 0])
    else:
        if x.shape[-1] != x.shape[-2]:
            raise ValueError(f"jnp.linalg.cond: for p={p!r}, array must be square; got arr.shape={x.shape}")
        made = multiply(norm(x, p, (-2, -1)), norm(inv(x), p, (-2, -1)))
    has_nan = ops.not_equal(ops.sum_(multiply(x, 0.0), (-2, -1)), 0.0)
    return where(ops.logical_and(ops.not_equal(made, made), ops.logical_not(has_nan)), math.inf, made)


def tensorinv(a, ind=2):
    a = asarray(a)
    rows = math.prod(a.shape[ind:])
    return ops.reshape(inv(ops.reshape(a, (-1, rows))), a.shape[ind:] + a.shape[:ind])


def tensorsolve(a, b, axes=None):
    """x of which tensordot(a, x, x.ndim) is b."""
    a, b = asarray(a), asarray(b)
    if axes is not None:
        a = ops.moveaxis(a, list(axes), list(range(a.ndim - len(axes), a.ndim)))
    made = solve(ops.reshape(a, (math.prod(a.shape[:b.ndim]), -1)), ops.reshape(b, (-1,)))
    return ops.reshape(made, a.shape[b.ndim:])


LinAlgError = np.linalg.LinAlgError
tensordot, matmul = ops.tensordot, matmul


def vecdot(a, b, /, *, axis=-1, precision=None, preferred_element_type=None):
    from . import vecdot as of
    return of(a, b, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


from .._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
