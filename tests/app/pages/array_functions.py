# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.numpy's functions beside NumPy's, outside of programs and in them; what JAX does otherwise than NumPy beside its pages. Prints what differs; the last
line counts."""
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.arrays import calls
from jax.sharding import NamedSharding, PartitionSpec as P

wrong = compared = 0
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.1, 0.9, (3, 4)).astype(np.float32), RNG.uniform(-2, 2, (3, 4)).astype(np.float32)
I, J = RNG.integers(-6, 7, (3, 4)).astype(np.int32), RNG.integers(1, 5, (3, 4)).astype(np.int32)
V, W = Y.ravel(), X.ravel()
A = (X[:, :3] @ X[:, :3].T + 2 * np.eye(3)).astype(np.float32)
C = (X + 1j * Y).astype(np.complex64)
N = np.where(Y > 1, np.nan, Y).astype(np.float32)


def compare(name, found, expected, tolerance=1e-4):
    global wrong, compared
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    compared += 1
    same = len(found) == len(expected) and all(np.shape(a) == np.shape(b) and np.allclose(np.asarray(a), b, tolerance, tolerance, equal_nan=True)
                                               for a, b in zip(found, expected))
    if not same:
        wrong += 1
        print(name, [np.asarray(a) for a in found], "is not", expected)


CALLS = [  # name, arguments
    *[(name, X) for name in ("sinh", "cosh", "arcsin", "arccos", "arctan", "arcsinh", "arctanh", "exp2", "log2", "log10", "reciprocal", "degrees", "radians", "sinc", "cbrt",
                             "median", "ptp", "diff", "nan_to_num", "trace", "fliplr", "flipud", "ravel", "cumsum", "cumprod", "average", "atleast_3d", "count_nonzero")],
    *[(name, Y) for name in ("trunc", "fix", "signbit", "sign", "rint", "round", "argsort", "sort", "nonzero", "argwhere", "unique", "tril", "triu", "gradient", "cov",
                             "corrcoef", "isfinite", "std", "var")],
    *[(name, N) for name in ("nansum", "nanmean", "nanmax", "nanmin", "nanstd", "nanprod", "isnan", "nanargmax", "nancumsum", "sort", "argsort")],
    *[(name, X, Y) for name in ("arctan2", "hypot", "logaddexp", "logaddexp2", "fmod", "copysign", "heaviside", "nextafter", "fmax", "fmin", "maximum", "divmod", "outer",
                                "kron", "vdot", "inner")],
    *[(name, I, J) for name in ("gcd", "lcm", "remainder", "floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "fmod", "divmod")],
    ("dstack", (X, Y)), ("vstack", (X, Y)), ("hstack", (V, W)), ("column_stack", (V, W)), ("block", [[X, Y], [Y, X]]), ("append", X, Y, 0),
    *[("linalg.cond", A, p) for p in ("fro", "nuc", 1, -1, np.inf, -2)],
    ("percentile", Y, 30.0, 1), ("quantile", V, np.array([0.1, 0.9])), ("searchsorted", np.sort(V), W), ("digitize", V, np.array([-1.0, 0.0, 1.0])),
    ("nanmedian", N), ("nanmedian", N, 1), ("nanpercentile", N, 30.0, 0), ("nanquantile", N, np.array([0.2, 0.9])), ("median", X, (0, 1)), ("percentile", X, [10.0, 50.0], 0),
    ("nancumprod", N), ("unwrap", np.cumsum(Y, 1) * 3), ("unwrap", np.cumsum(Y, 0) * 3, 2.0, 0), ("packbits", Y > 0), ("packbits", Y > 0, 1, "little"),
    ("unpackbits", J.astype(np.uint8)), ("unpackbits", J.astype(np.uint8), 1, 13), ("trim_zeros", np.array([0, 0, 1, 0, 2, 0])), ("trim_zeros", np.array([0, 3, 0]), "b"),
    ("polyadd", V[:4], W[:2]), ("polysub", V[:2], W[:4]), ("polymul", V[:4], W[:3]), 
    ("polyder", V[:5], 2), ("polyint", V[:5], 2, [3.0, 1.0]), ("poly", np.array([1.0, 2.0, 3.0])), ("histogram2d", V, W, 4), ("histogramdd", np.stack([V, W, V], 1), 3),
    ("spacing", Y), ("i0", X), ("mask_indices", 3, np.triu), ("bincount", J.ravel(), X.ravel()), ("histogram", V, 5, (-1.0, 1.0)),
    ("bincount", J.ravel()), ("histogram", V, 5), ("interp", W, np.sort(W), V), ("polyval", np.array([1.0, 2.0, 3.0]), V), ("convolve", V, W[:3]),
    ("correlate", V, W[:3], "full"), ("trapezoid" if hasattr(np, "trapezoid") else "trapz", V), ("cross", X[:, :3], Y[:, :3]), ("tensordot", X, Y.T, 1),
    ("einsum", "ij,kj->ik", X, Y), ("einsum", "ii->i", X[:, :3]),
    ("einsum", "ii", X[:, :3]), ("einsum", "ii,i->i", X[:, :3], V[:3]), ("einsum", "bii->b", np.arange(18).reshape(2, 3, 3)), ("roots", np.array([1.0, -3.0, 2.0])),
    *[("einsum", spec, *map(np.ones, shapes)) for spec, *shapes in (
        ("ij,ij->ij", (2, 1), (2, 3)), ("i,i", (1,), (3,)), ("bi,i->b", (2, 3), (1,)), ("...,...->...", (2, 1), (3,)), ("ij,jk->ik", (2, 1), (3, 2)),
        ("i,i,i->i", (1,), (1,), (3,)), ("i->i", (1,)), ("a...b,b...->a...", (2, 5, 3), (3, 5)))],
    *[(name, Y > 0.5, *rest) for name in ("argmax", "argmin", "max", "min", "any", "prod") for rest in ((), (1,))], ("dot", Y > 1, X.T > 0.5), ("einsum", "ij->j", Y > 1),
    *[(name, C) for name in ("sinh", "cosh", "tan", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "rint", "isfinite", "isinf", "sort", "argsort",
                             "nan_to_num", "sort_complex")],
    *[(name, np.array([complex(2, 0.0), complex(2, -0.0), complex(-3, 0.0), 2j, complex(0, -2), 30 - 40j, 1e-4 + 1e-5j], np.complex128)) for name in (
        "tan", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh")],  # on branch cuts, far away, near 0
    *[(name, C, np.round(C[::-1])) for name in ("less", "greater_equal")], ("searchsorted", np.sort(C.ravel()), C),
    ("geomspace", -1, -1000, 4), ("geomspace", np.array([1.0, -2.0]), np.array([8.0, -32.0]), 3), ("geomspace", 2.0, 16.0, 4), ("linspace", 1j, 2 - 1j, 5),
    ("abs", Y > 1), *[(name, C) for name in ("prod", "max", "min")], ("prod", C, 1), ("maximum", C, C[::-1]), ("minimum", C, 0.5j), ("matmul", X, Y.T), ("rollaxis", np.zeros((2, 3, 4)), 2), ("moveaxis", np.zeros((2, 3, 4)), (0, 1), (-1, 0)), ("rot90", X, 3),
    ("roll", X, 2, 1), ("roll", X, 5), ("repeat", X, 2, 1), ("repeat", V, np.arange(12) % 3), ("tile", X, (2, 1, 2)), ("pad", X, ((1, 2), (0, 1))),
    ("pad", X, 2, "edge"), ("pad", X, 2, "reflect"), ("pad", X, 2, "wrap"), ("pad", X, 2, "symmetric"), ("array_split", V, 5), ("split", V, [3, 7]),
    ("meshgrid", V[:3], W[:2]), ("ix_", np.array([0, 2]), np.array([1, 3])), ("indices", (2, 3)), ("unravel_index", np.array([5, 7]), (3, 4)), ("vander", V[:4]),
    ("diag", V[:3]), ("diag", X, 1), ("diagonal", X), ("take", X, np.array([0, 2]), 0), ("take_along_axis", X, np.argsort(X, 1), 1), ("delete", V, 3),
    ("insert", V, 2, 9.0), ("compress", np.array([True, False, True]), X, 0), ("isin", J, np.array([1, 3])), ("intersect1d", I.ravel(), J.ravel()),
    ("setdiff1d", I.ravel(), J.ravel()), ("lexsort", (I.ravel(), J.ravel())), ("select", [Y > 1, Y < 0], [X, Y], 7.0), ("linspace", 0.0, 10.0, 7),
    ("logspace", 0.0, 2.0, 5), ("geomspace", 1.0, 100.0, 3), ("eye", 3, 4, 1), ("tri", 3), ("argmax", N, 1), ("ediff1d", V), ("clip", Y, -1, 1),
    ("any", Y > 1, 0), ("all", X > 0), ("mean", X, (0, 1)), ("flip", X, 0), ("swapaxes", X, 0, 1), ("resize", V, (5, 3)),
    ("linalg.norm", X), ("linalg.norm", V, 1), ("linalg.norm", X, np.inf, 1), ("linalg.norm", X, "nuc"), ("linalg.det", A), ("linalg.inv", A), ("linalg.solve", A, V[:3]),
    ("linalg.cholesky", A), ("linalg.slogdet", -A), ("linalg.matrix_power", A, 3), ("linalg.matrix_power", A, -2), ("linalg.eigvalsh", A), ("linalg.multi_dot", (X, Y.T, X)),
    ("linalg.tensorsolve", np.arange(36.0).reshape(2, 3, 6) ** 2 % 7 + np.eye(6).reshape(2, 3, 6), np.ones((2, 3))),
    ("linalg.tensorsolve", np.moveaxis(np.arange(36.0).reshape(2, 3, 6) ** 2 % 7 + np.eye(6).reshape(2, 3, 6), 2, 0), np.ones((2, 3)), (0,)),
    ("fft.fft", V), ("fft.ifft", V), ("fft.rfft", V), ("fft.irfft", np.fft.rfft(V)), ("fft.fft2", X), ("fft.fftfreq", 5), ("fft.fftshift", V), ("fft.rfftn", X)]
T = np.arange(7.0, dtype=np.float32)
CALLS += [("frexp", np.array([0.0, -0.0, 1.0, 3.7, -1e-40, 1e30, np.inf, np.nan, 1.17549435e-38, -8.0], np.float32)), ("frexp", X), ("polyfit", T, 3 * T**2 - T + np.sin(9 * T), 2),
          ("polyfit", T, np.stack([T, T**3], 1), 3, None, False, np.sqrt(T + 1)), ("polyfit", T, T**2, 1, None, False, None, True), ("roots", np.array([0.0, 2.0, -6.0, 4.0])),
          ("concatenate", (X, V), None),
          *[("insert", I, *rest) for rest in ((1, 9), ([1, 3], [7, 8]), (1, [5, 6, 7, 8], 0), ([1], [[5], [6], [7]], 1), (-1, [5, 6, 7], 1), (slice(0, 2), 5, 1), ([], 3, 1),
                                              ([2, 0], [[1, 2]] * 3, 1), ([1, 1, 0], [7, 8, 9]))]]
IN_PROGRAMS = {"frexp", "polyfit", "concatenate", "insert", "unwrap", "nanmedian", "histogramdd", "lexsort", "cumsum", "argsort", "sort", "gcd", "linalg.inv", "linalg.det", "linalg.cholesky", "interp", "percentile", "nanmax", "take_along_axis", "searchsorted"}


def refused(name, function, text):
    """That a function raises this, whose class comes first."""
    try:
        found = f"gave {function()}"
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    compare(name, int(text in found) or print(found), 1)


def named(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def main():
    for name, *args in CALLS:
        arrays = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, args)
        own = named(jnp, "trapezoid" if name == "trapz" else name)
        expected = named(np, name)(*args)
        if name == "unique" or name == "trace":
            compare(name, own(*arrays), np.asarray(expected))
            continue
        compare(name, own(*arrays), expected, 2e-3 if name.startswith(("linalg", "geom", "log")) else 1e-4)
        if name in IN_PROGRAMS:
            at = [i for i, x in enumerate(arrays) if hasattr(x, "engine_dtype")]
            call = lambda *given: own(*[given[at.index(i)] if i in at else x for i, x in enumerate(arrays)])
            compare(name + " in a program", jax.jit(call)(*[arrays[i] for i in at]), expected, 2e-3)
    for mode in ("reflect", "symmetric"):
        for x, widths in ((V, (0, 3)), (V, (25, 30)), (V[:1], 3), (I, ((2, 1), (5, 0))), (I, ((0, 0), (0, 9)))):
            compare(f"odd {mode} {widths}", jnp.pad(jnp.asarray(x), widths, mode, reflect_type="odd"), np.pad(x, widths, mode, reflect_type="odd"), 1e-5)
    for q in (0.0, 0.5, 1.0, np.float32([0.1, 0.25, 0.9])):
        compare(f"inverted_cdf {q}", jnp.quantile(jnp.asarray(Y), jnp.asarray(q), axis=1, method="inverted_cdf"), np.quantile(Y, q, axis=1, method="inverted_cdf"))
    compare("inverted_cdf without nans", jnp.nanquantile(jnp.asarray(N), 0.6, axis=0, method="inverted_cdf"), np.nanquantile(N, 0.6, axis=0, method="inverted_cdf"))
    for options in ({"fweights": J[0]}, {"aweights": X[0]}, {"fweights": J[0], "aweights": X[0], "bias": True}, {"fweights": J[0], "aweights": X[0], "ddof": 2}):
        compare(f"cov {list(options)}", jnp.cov(jnp.asarray(Y), **options), np.cov(Y, **options))
    q, r = jnp.linalg.qr(jnp.asarray(X.T))
    compare("qr", q @ r, X.T)
    u, s, vt = jnp.linalg.svd(jnp.asarray(X), full_matrices=False)
    compare("svd", u * s @ vt, X)
    u = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    for index in (np.s_[:, [0, 2]], np.s_[[0, 1], :, [1, 3]], np.s_[..., None, 1:3], np.s_[:, [0, 2], [1, 3]], np.s_[0, [0, 1]], np.s_[u > 0], np.s_[::-1, 1, ::2],
                  np.s_[1, :, [0, 1]], np.s_[[[0], [1]], [0, 2]]):
        parts = tuple(jnp.asarray(part) if isinstance(part, (list, np.ndarray)) else part for part in (index if isinstance(index, tuple) else (index,)))
        compare(f"index {index!r:.60}", jnp.asarray(u)[parts], u[index])
        expected = u.copy()
        expected[index] = 5.0
        compare(f"set {index!r:.60}", jnp.asarray(u).at[parts].set(5.0), expected)
    changes = {"set": lambda old, new: new, "add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}
    for index in (np.s_[1], np.s_[:, -1], np.s_[1, :, 2], np.s_[0, 1:, None, ::2], np.s_[::-1, 0], np.s_[..., 3:0:-1], np.s_[None, 1, 2:2], np.s_[:, 2, 1:3], np.s_[1, 0, 3]):
        for method, change in changes.items():
            for values in (np.float32(0.25), RNG.standard_normal(u[index].shape).astype(np.float32)):
                expected = u.copy()
                expected[index] = change(expected[index], values)
                compare(f"{method} {index!r}", getattr(jnp.asarray(u).at[index], method)(values), expected)
                if all(part.step is None for part in index if isinstance(part, slice)) if isinstance(index, tuple) else True:
                    parts = index if isinstance(index, tuple) else (index,)
                    known = [part for part in parts if isinstance(part, int)]
                    traced = jax.jit(lambda u, *given: getattr(u.at[tuple(given[known.index(part)] if isinstance(part, int) else part for part in parts)], method)(values))
                    compare(f"{method} {index!r}, traced", traced(jnp.asarray(u), *known), expected)
    several = {"add": np.add.at, "multiply": np.multiply.at, "max": np.maximum.at, "min": np.minimum.at}
    for index in (np.s_[[1, 0, 1]], np.s_[:, [2, 0, 2, -1]], np.s_[:, :, [[3, 0], [1, 3]]], np.s_[[0, 1, 1], :, [3, 0, 3]], np.s_[[1, 1], [2, -1]], np.s_[1, [0, 2, 0]], np.s_[..., None, [0, 0]],
                  np.s_[[0, 1], 1:, [1, 1]]):
        parts = tuple(jnp.asarray(part) if isinstance(part, list) else part for part in (index if isinstance(index, tuple) else (index,)))
        for method, change in several.items():
            values = RNG.standard_normal(u[index].shape).astype(np.float32)
            expected = u.copy()
            change(expected, index, values)
            known = [part for part in parts if hasattr(part, "shape")]

            def made(u, *given):
                rest = iter(given)
                return getattr(u.at[tuple(next(rest) if hasattr(part, "shape") else part for part in parts)], method)(values)
            compare(f"{method} {index!r}", made(jnp.asarray(u), *known), expected), compare(f"{method} {index!r}, traced", jax.jit(made)(jnp.asarray(u), *known), expected)
            compare(f"{method} {index!r}, mapped", jax.vmap(made)(*[jnp.stack([jnp.asarray(one)] * 2) for one in (u, *known)])[1], expected)
    split = jax.device_put(jnp.zeros((8, 8)), NamedSharding(jax.make_mesh((4, 2), ("x", "y")), P("x", "y")))
    for name, function in {"a row": lambda x: x.at[0].set(1.0), "a column": lambda x: x.at[:, 0].add(1.0), "rows": lambda x: x.at[2:4].mul(2.0),
                           "some rows": lambda x: x.at[jnp.array([1, 5, 1])].add(1.0), "some columns": lambda x: x.at[:, jnp.array([1, 5])].set(1.0), "an element": lambda x: x.at[3, 5].max(1.0)}.items():
        made = jax.jit(function)(split)
        compare(f"{name} of a split array stays split", (made.sharding.spec == P("x", "y"), len(calls[-1].collectives)), (True, 0))
    x = jnp.arange(4.0)
    rows = {  # what JAX's pages say
        "get behind the end": (x[11], 3.0), "get before the start": (x[-9], 0.0), "filled behind the end": (x.at[11].get(mode="fill", fill_value=-1), -1.0),
        "set behind the end": (x.at[11].set(9.0), np.arange(4.0)), "by what a program has": (jax.jit(lambda i: x.at[i].set(9.0))(11), np.arange(4.0)),
        "rows out of bounds": (jnp.zeros((3, 2)).at[jnp.array([5, -4, 1])].set(9.0), [[0, 0], [9, 9], [0, 0]]),
        "those at the nearest": (jnp.zeros((3, 2)).at[jnp.array([5, -4])].set(9.0, mode="clip"), [[9, 9], [0, 0], [9, 9]]),
        "counted from the start again": (jnp.zeros(3).at[jnp.array([5, -4])].add(9.0, mode="wrap"), [0, 0, 18]),
        "of each example": (jax.vmap(lambda at: jnp.zeros(3).at[at].add(1.0))(jnp.array([[0, 1], [2, 5], [-1, -4]])), [[1, 1, 0], [0, 0, 1], [0, 0, 1]]),
        "of many examples": (jax.vmap(lambda at: jnp.zeros(5).at[at].set(1.0))(jnp.arange(700) % 7).sum(), 500.0),
        "set at the nearest": (jnp.stack([jax.jit(lambda i: x.at[i].set(9.0, mode="clip"))(i) for i in (11, -11)]), [[0.0, 1.0, 2.0, 9.0], [9.0, 1.0, 2.0, 3.0]]),
        "slope of a part": (jax.grad(lambda x: (x.at[1].mul(3.0) ** 2).sum())(x), [0.0, 18.0, 4.0, 6.0]), "booleans": (jnp.zeros(3, bool).at[0].max(True), [True, False, False]), "add twice": (x.at[jnp.array([1, 1])].add(1.0), [0.0, 3.0, 2.0, 3.0]),
        "set where": (jax.jit(lambda x: x.at[x > 1].set(0))(x), [0.0, 1.0, 0.0, 0.0]), "apply": (x.at[1:3].apply(jnp.square), [0.0, 1.0, 4.0, 3.0]),
        "take behind the end": (jnp.take(x, jnp.array([1, 7])), [1.0, np.nan]), "sign of a shift": (jnp.int32(-8) >> 1, -4),
        "nonzero of a size": (jax.jit(lambda x: jnp.nonzero(x > 1, size=3)[0])(x), [2, 3, 0]), "ufunc": (jnp.add.reduce(x), 6.0),
        "vectorize": (jnp.vectorize(jnp.dot, signature="(n),(n)->()")(jnp.ones((4, 3)), jnp.ones(3)), [3.0] * 4),
        "choice without replacement": (len(set(np.asarray(jax.random.choice(jax.random.key(0), 5, (5,), False)).tolist())), 5),
        "digits of falling bins": (jnp.digitize(jnp.array([1.0, 2.0, 2.5, 1.5, 3.0, 3.5]), jnp.array([3, 2, 1])), [2, 1, 1, 2, 0, 0]),
        "along an axis, behind the end": (jnp.take_along_axis(jnp.array([[1.0, 2.0], [4.0, 5.0]]), jnp.array([[1, 2]]), 0), [[4.0, np.nan]]),
        "placed one after the other": (jnp.place(jnp.zeros(5, int), jnp.array([1, 0, 1, 1, 0]), jnp.array([1, 3]), inplace=False), [1, 0, 3, 1, 0]),
        "a diagonal of three dimensions": (jnp.fill_diagonal(jnp.zeros((2, 2, 2)), 1, inplace=False), [[[1, 0], [0, 0]], [[0, 0], [0, 1]]]),
        "a diagonal of values": (jnp.fill_diagonal(jnp.zeros((3, 3)), jnp.array([3, 4]), inplace=False), np.diag([3, 4, 3])),
        "compressed": (jnp.arange(6).reshape(3, 2).compress(np.array([True, False, True]), axis=0), [[0, 1], [4, 5]]),
        "trimmed on both axes": (jnp.trim_zeros(jnp.pad(jnp.ones((2, 3)), 1)), np.ones((2, 3))), "signs of zeros": (jnp.signbit(jnp.array([0.0, -0.0, -1.0])), [False, True, True]),
        "one over zero, behind -0": ((jnp.reciprocal(-0.0), jnp.reciprocal(0.0)), (-np.inf, np.inf)), "second derivative of sinc": (jax.grad(jax.grad(jnp.sinc))(0.0), -np.pi ** 2 / 3),
        "fourth derivative of sinc": (jax.grad(jax.grad(jax.grad(jax.grad(jnp.sinc))))(0.0), np.pi ** 4 / 5),
        "einsum by numbers": (jnp.einsum(jnp.arange(6.0).reshape(2, 3), (0, 1), jnp.ones(3), (1,)), [3.0, 12.0]),
        "einsum of the last two": (jnp.einsum("...ab", jnp.arange(8).reshape(2, 2, 2)), np.arange(8).reshape(2, 2, 2)),
        "product of many": (jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)]), [12.0, 12.0]),
        "seen as halves": (jnp.array([[1, 2]], jnp.int16).view(jnp.int8), [[1, 0, 2, 0]]), "seen as twice": (jnp.array([[1, 0, 2, 0]], jnp.int8).view(jnp.int16), [[1, 2]]),
        "partition": (jnp.partition(jnp.array([6, 8, 4, 3, 1, 9, 7, 5, 2, 3]), 4), [1, 2, 3, 3, 4, 9, 8, 7, 6, 5]),
        "argpartition": (jnp.argpartition(jnp.array([6, 8, 4, 3, 1, 9, 7, 5, 2, 3]), 4), [4, 8, 3, 9, 2, 0, 1, 5, 6, 7]),
        "polydiv": (jnp.polydiv(jnp.array([1.0, 5.0, 6.0, 1.0]), jnp.array([1.0, 2.0])), ([1.0, 3.0, 0.0], [0.0, 0.0, 0.0, 1.0])),
        "softmax of none": (jax.nn.softmax(jnp.array([[1.0, 2.0], [3.0, 4.0]]), where=jnp.array([[True, False], [False, False]])), [[1.0, 0.0], [0.0, 0.0]]),
        "sort of a row of a million": (jnp.sort(jnp.arange(1_000_000, dtype=jnp.float32)[::-1])[:3], [0.0, 1.0, 2.0]),
        "places out of bounds": (jnp.unravel_index(jnp.array([5, 11, 12, 100, -1, -12, -100]), (3, 4)), ([1, 2, 2, 2, 2, 0, 0], [1, 3, 3, 3, 3, 0, 0])),
        "places of what is not a number": (jnp.searchsorted(jnp.array([1.0, np.nan, np.nan]), jnp.array([0.0, 2.0, np.nan])), [0, 1, 1]),
        "those behind it": (jnp.searchsorted(jnp.array([1.0, np.nan, np.nan]), jnp.array([0.0, 2.0, np.nan]), side="right"), [0, 1, 3]),
        "its bin": (jnp.digitize(jnp.array([np.nan]), jnp.array([1.0, 2.0])), [2]),
        "roots behind zeros": (jax.jit(lambda p: jnp.roots(p, strip_zeros=False))(jnp.array([0.0, 1.0, -3.0, 2.0, 0.0])), [1, 2, 0, complex(np.nan, np.nan)]),
        "slope of a fraction": (jax.vmap(jax.grad(lambda x: jnp.frexp(x)[0]))(jnp.array([0.0, 3.0, -40.0])), [1.0, 0.25, 1 / 64]),
        "top_k": (jax.lax.top_k(jnp.array([1.0, 5.0, 3.0]), 2), ([5.0, 3.0], [1, 2])), "complex times at": (jnp.array([1j, 2, 3]).at[1:].mul(2j), [1j, 4j, 6j]), "cummax": (jax.lax.cummax(jnp.array([1, 3, 2])), [1, 3, 3])}
    for name, (found, expected) in rows.items():
        compare(name, found, tuple(map(np.asarray, expected)) if isinstance(expected, tuple) else np.asarray(expected))
    texts = {"scalar": (repr(jnp.array(2.0)), "Array(2., dtype=float32, weak_type=True)"), "integer": (repr(jnp.int8(3)), "Array(3, dtype=int8)"),
             "complex": (repr(jnp.complex64(1 + 2j)), "Array(1.+2.j, dtype=complex64)"), "weak": (str((jnp.bfloat16(1) * 2.0).dtype), "bfloat16"),
             "promoted": (str((jnp.uint8(1) + jnp.int8(1)).dtype), "int16"), "mixed": (str((jnp.int32(1) * jnp.float16(1)).dtype), "float16"),
             "mean of integers": (str(jnp.mean(jnp.arange(3)).dtype), "float32"), "key": (repr(jax.random.key(1)), "Array((), dtype=key<fry>) overlaying:\n[0 1]"),
             "convolution of integers": (str(jnp.convolve(jnp.arange(3), jnp.arange(2)).dtype), "float32"),
             "correlation of integers": (str(jnp.correlate(jnp.arange(3), jnp.arange(2)).dtype), "float32"),
             "counts of points": (str(jnp.histogram2d(jnp.arange(3.0), jnp.arange(3.0))[0].dtype), "int32"),
             "slope of integers": (str(jnp.polyder(jnp.arange(3)).dtype), "float32"), "of a function": (str(jnp.fromfunction(lambda i: i, (2,)).dtype), "float32"),
             "roots": (str(jnp.roots(jnp.array([1.0, -3.0, 2.0])).dtype), "complex64"), "dtype by name": (str(jnp.dtype("bfloat16")), "bfloat16"),
             "a sum of bytes": (str(jnp.einsum("ij->i", jnp.ones((2, 2), jnp.int8)).dtype), "int8"), "an array of arguments": (str("barrier" in str(jax.make_jaxpr(lambda *x: jnp.sum(jnp.array(x)))(1, 2))), "False"), "truths times truths": (str((jnp.ones((2, 2), bool) @ jnp.ones(2, bool)).dtype), "bool"),
             "is a dtype": (str((isinstance(jnp.ones(1, "bfloat16").dtype, jnp.dtype), jnp.dtype("float32") == jnp.float32)), "(True, True)")}
    for array in (Y, N, I):
        for method in ("sort", "argsort"):
            for options in ({}, {"axis": 0}, {"axis": -1}, {"axis": None}, {"kind": "stable"}):
                compare(f"method {method}, {options}", getattr(jnp.asarray(array), method)(**{"stable" if name == "kind" else name: value for name, value in options.items()}),
                        getattr(np, method)(array, **{"kind": "stable", **options}))
    compare("method sort downwards", jnp.asarray(Y).sort(descending=True), np.sort(Y)[:, ::-1])
    many, few, wide = jnp.array([3, 1, 3, 7, 1, 2]), jnp.array([7, 3, 9]), jnp.array([[1, 2], [0, 5], [1, 2], [0, 4]])
    for name, found, expected in (  # results of a size that does not depend on values
            ("unique", lambda x, y: jnp.unique(x, size=3), [1, 2, 3]), ("unique and more", lambda x, y: jnp.unique(x, size=6), [1, 2, 3, 7, 1, 1]),
            ("unique, filled", lambda x, y: jnp.unique(x, size=5, fill_value=-1), [1, 2, 3, 7, -1]), ("values", lambda x, y: jnp.unique_values(x, size=2), [1, 2]),
            ("all of unique", lambda x, y: jnp.unique(x, True, True, True, size=5), ([1, 2, 3, 7, 1], [1, 5, 0, 3, 1], [2, 0, 2, 3, 0, 1], [2, 1, 2, 1, 0])),
            ("unique rows", lambda x, y: jnp.unique(wide, True, True, True, axis=0, size=3), ([[0, 4], [0, 5], [1, 2]], [3, 1, 0], [2, 1, 2, 0], [1, 1, 2])),
            ("unique of each row", lambda x, y: jax.vmap(lambda row: jnp.unique(row, size=3, fill_value=9))(wide), [[1, 2, 9], [0, 5, 9], [1, 2, 9], [0, 4, 9]]),
            ("unique of nothing", lambda x, y: jnp.unique(x[:0], size=2, fill_value=3), [3, 3]),
            ("unique of what is not a number", lambda x, y: jnp.unique(jnp.where(x > 2, jnp.nan, x), size=3), [1, 2, np.nan]),
            ("union", lambda x, y: jnp.union1d(x, y, size=6), [1, 2, 3, 7, 9, 1]), ("difference", lambda x, y: jnp.setdiff1d(x, y, size=3), [1, 2, 0]),
            ("difference, filled", lambda x, y: jnp.setdiff1d(x, y, size=3, fill_value=-1), [1, 2, -1]), ("either", lambda x, y: jnp.setxor1d(x, y, size=4), [1, 2, 9, 1]),
            ("both", lambda x, y: jnp.intersect1d(x, y, size=3, return_indices=True), ([3, 7, 3], [0, 3, 6], [1, 0, 3])),
            ("both of none", lambda x, y: jnp.intersect1d(x, y + 20, size=2), [0, 0])):
        expected = tuple(map(np.asarray, expected)) if isinstance(expected, tuple) else np.asarray(expected)
        compare(name, found(many, few), expected), compare(f"{name} in a program", jax.jit(found)(many, few), expected)
    half = jnp.ones(2, jnp.bfloat16)
    for name, value, is_weak in [  # what JAX's rules say of the types of Python's numbers
            *[(name, getattr(jnp, name)(2), True) for name in ("sqrt", "exp", "log", "sin", "cos", "tanh", "log2", "exp2", "reciprocal", "degrees", "floor", "square")],
            *[(name, getattr(jnp, name)(2, 1.0), True) for name in ("hypot", "logaddexp", "arctan2", "divide", "maximum", "heaviside", "copysign", "float_power")],
            *[(name, getattr(jnp, name)(jnp.asarray(2.0)), False) for name in ("sum", "max", "mean", "prod", "var")],
            *[(name, getattr(jnp, name)(2.0), True) for name in ("atleast_1d", "ravel", "zeros_like")], ("sigmoid", jax.nn.sigmoid(2), True),
            ("of an array", jnp.sqrt(jnp.asarray(64)), True), ("stack", jnp.stack([1.0, 2.0]), True), ("of one that is not", jnp.stack([1.0, jnp.float32(2)]), False),
            ("an array of such", jnp.array([jnp.asarray(1.0), 2.0]), False), ("full_like", jnp.full_like(jnp.asarray(1.0), 2), True), ("broadcast", jnp.broadcast_to(1.0, (2,)), True),
            ("full of a type", jnp.full_like(jnp.asarray(1.0), 2, jnp.float32), False), ("counted", jax.lax.fori_loop(0, 5, lambda i, c: c + i, 0), True),
            ("digamma", jax.scipy.special.digamma(2), True), ("xlogy", jax.scipy.special.xlogy(2, 3), True)]:
        compare(f"weakly typed: {name}", int(value.weak_type), int(is_weak))
    compare("interpolation around a period", jnp.interp(np.float32([-180, -170, 185, -10, 0, 365]), np.float32([190, -190, 350, -350]), np.float32([5, 10, 3, 4]), period=360),
            np.interp([-180, -170, 185, -10, 0, 365], [190, -190, 350, -350], [5, 10, 3, 4], period=360))
    compare("interpolation beyond the ends", jnp.interp(jnp.array([-1.0, 5.0]), jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 10.0, 30.0]), "extrapolate", "extrapolate"), np.array([-10, 90]))
    for kind, other in (("float32", "int8"), ("float32", "uint16"), ("int8", "float32"), ("float32", "int32")):
        x = np.arange(8).astype(kind)
        compare(f"view of {kind} as {other}", [view(x) for view in (lambda x: jnp.asarray(x).view(other), jax.jit(lambda x: x.view(other)))], [x.view(other)] * 2)
    compare("view of bfloat16 as bytes", jnp.arange(2.0, dtype="bfloat16").view("uint8"), np.array([0, 0, 128, 63]))
    unreal = jnp.array([1j, 0, 2])
    compare("truth of complex numbers", [unreal.astype(bool), jax.jit(lambda x: x.astype(bool))(unreal), jnp.astype(unreal, bool)], [np.array([True, False, True])] * 3)
    compare("derivative of one of complex numbers", jax.grad(jnp.arcsin, holomorphic=True)(jnp.complex64(0.3 + 0.4j)), 1 / np.sqrt(1 - (0.3 + 0.4j) ** 2))
    for name, function in (("median", jnp.median), ("percentile", lambda z: jnp.percentile(z, 50)), ("nanquantile", lambda z: jnp.nanquantile(z, 0.5)),
                           ("clip", lambda z: z.clip(0)), ("unwrap", jnp.unwrap), ("top_k", lambda z: jax.lax.top_k(z, 1)), ("interp", lambda z: jnp.interp(z, z, z)),
                           ("trunc", jnp.trunc), ("hypot", lambda z: jnp.hypot(z, z)), ("signbit", jnp.signbit), ("isposinf", jnp.isposinf),
                           ("heaviside", lambda z: jnp.heaviside(z, z)), ("copysign", lambda z: jnp.copysign(z, z))):
        refused(f"complex numbers: {name}", lambda: function(unreal), "TypeError: " if name in ("trunc", "heaviside", "copysign") else "ValueError: ")
    compare("whole numbers stay what they are", [str(round_(jnp.ones(2, jnp.int8)).dtype) for round_ in (jnp.floor, jnp.ceil, jnp.rint)] == ["int8", "int8", "float32"], True)
    compare("half stays half", [str((half * jnp.sqrt(64)).dtype), str((half * jnp.hypot(2, 1)).dtype), str(jnp.hypot(jnp.ones(2, int), half).dtype)] == ["bfloat16"] * 3, True)
    for name, (found, expected) in texts.items():
        compare(name, int(found == expected) or print(found), 1)
    # -9 / 0.9 is 10.0000003 below zero in 32 bits, whose quotient rounds to -10.
    tenths = np.arange(1, 40).astype(np.float32) / np.float32(10) * np.float32(-1) ** np.arange(39).astype(np.float32)
    whole = np.arange(-40, 41).astype(np.float32)[:, None]
    compare("floors of quotients that round to whole numbers", jnp.floor_divide(whole, tenths), np.floor_divide(whole, tenths), 0)
    compare("the same with rests", jnp.divmod(jnp.float32(-9), jnp.float32(0.9)), np.divmod(np.float32(-9), np.float32(0.9)))
    refused("roots in a program", lambda: jax.jit(jnp.roots)(jnp.ones(3)), "ConcretizationTypeError: Abstract tracer value encountered where concrete value is expected")
    refused("joined scalars", lambda: jnp.concatenate([1.0, 2.0]), "ValueError: Zero-dimensional arrays cannot be concatenated.")
    refused("a fit of other lengths", lambda: jnp.polyfit(jnp.ones(3), jnp.ones(2), 1), "TypeError: expected x and y to have same length")
    v = jnp.ones(3)
    for name, function, text in (  # what JAX or NumPy 2 refuse
            ("a list behind +", lambda: v + [1, 2, 3], "TypeError: unsupported operand type(s) for +: 'ArrayImpl' and 'list'"),
            ("a list before -", lambda: [1, 2, 3] - v, "TypeError: unsupported operand type(s) for -: 'list' and 'ArrayImpl'"),
            ("a list behind ==", lambda: v == [1, 1, 1], "TypeError: unsupported operand type(s) for ==: 'ArrayImpl' and 'list'"),
            ("a tuple behind !=", lambda: jax.jit(lambda v: v != (1, 1, 1))(v), "TypeError: unsupported operand type(s) for !=: "),
            ("fewer samples than none", lambda: jnp.linspace(0, 1, -1), "ValueError: Number of samples, -1, must be non-negative."),
            ("less padding than none", lambda: jnp.pad(v, -1), "ValueError: index can't contain negative values"),
            ("an indexing", lambda: jnp.meshgrid(v, v, indexing="xx"), "ValueError: Valid values for indexing are 'xy' and 'ij', got xx"),
            ("33 bits in a list", lambda: jnp.array([1, [2**31][0]]), "OverflowError: Python integer 2147483648 out of bounds for int32"),
            ("nine bits", lambda: jnp.uint8(300), "OverflowError: Python integer 300 out of bounds for uint8"),
            ("a sign", lambda: jnp.asarray(-1, jnp.uint32), "OverflowError: Python integer -1 out of bounds for uint32"),
            ("folded in", lambda: jax.random.fold_in(jax.random.key(0), -1), "OverflowError: Python integer -1 out of bounds for uint32"),
            ("a dimension of iota", lambda: jax.lax.broadcasted_iota(int, (2, 3), -1), "ValueError: iota dimension must be between 0 and len(shape), got dimension=-1 for shape=(2, 3)"),
            ("a dimension to broadcast to", lambda: jax.lax.broadcast_in_dim(v, (2, 3), (-1,)),
             "TypeError: broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got (-1,) for operand ndim 1 and shape (2, 3)."),
            ("a mask in ix_", lambda: jnp.ix_(jnp.array([0, 2]), jnp.array([True, False])), "NotImplementedError: Boolean arguments to jax.numpy.ix_ are not implemented"),
            ("a matrix in ix_", lambda: jnp.ix_(jnp.ones((2, 2), int)), "ValueError: Arguments to jax.numpy.ix_ must be 1-dimensional, got shape (2, 2)"),
            ("a method of quantiles", lambda: jnp.quantile(v, 0.5, method="hazen"), "ValueError: method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'"),
            ("weights of other samples", lambda: jnp.cov(v, aweights=jnp.ones(2)), "RuntimeError: incompatible numbers of samples and aweights"),
            ("a condition of no square", lambda: jnp.linalg.cond(jnp.ones((2, 3)), 1), "ValueError: jnp.linalg.cond: for p=1, array must be square; got arr.shape=(2, 3)"),
            ("a triangle of a row", lambda: jnp.tril(v), "ValueError: Argument to jax.numpy.tril must be at least 2D")):
        refused(name, function, text)
    compare("of an array, cut off", jnp.asarray(np.array([300, -1]), jnp.uint8), np.array([44, 255]))
    for name, function, is_warned in (("a fraction into integers", lambda: jnp.zeros(3, int).at[0].set(1.7), True), ("complex into real", lambda: v.at[0].add(1j), True),
                                      ("masked", lambda: jax.jit(lambda x: x.at[x > 1].set(0.5))(jnp.arange(3)), True), ("an integer", lambda: v.at[0].set(1), False),
                                      ("half", lambda: jnp.ones(3, jnp.bfloat16).at[0].add(0.5), False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function()
        compare(f"warns: {name}", int(any("cannot safely cast value" in str(one.message) for one in caught)), int(is_warned))
    refused("a side that there is not", lambda: jnp.searchsorted(jnp.arange(3), 1, side="middle"), "ValueError: invalid argument side='middle', expected 'left' or 'right'")
    for spec, shapes, text in (
            ("ii->", [(2, 3)], "Size of label 'i' for operand 0 (2) does not match previous terms (3)."),
            ("ij,jk->ik", [(2, 3), (4, 2)], "Size of label 'j' for operand 1 (3) does not match previous terms (4)."),
            ("ij,j->i", [(2, 3), (3, 4)], "Einstein sum subscript 'j' does not contain the correct number of indices for operand 1."),
            ("ij->j", [(3,)], "Einstein sum subscript 'ij' does not contain the correct number of indices for operand 0."),
            ("i->i", [(3,), (3,)], "Number of einsum subscripts, 1, must be equal to the number of operands, 2."),
            ("i->ii", [(2,)], "Output character 'i' appeared more than once in the output."), ("i->j", [(2,)], "Output character 'j' did not appear in the input"),
            ("..i->i", [(2,)], "Invalid Ellipses."), ("i...j", [(2,)], "Ellipses lengths do not match."), ("i->i->i", [(2,)], "Subscripts can only contain one '->'.")):
        refused(f"einsum {spec}", lambda: jnp.einsum(spec, *map(jnp.ones, shapes)), f"ValueError: {text}")
    print(f"{wrong} of {compared} differ")


main()
