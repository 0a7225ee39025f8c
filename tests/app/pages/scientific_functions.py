# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy, jax.image and jax.numpy.fft beside figures of SciPy 1.10.1 (in double precision), and derivatives beside finite differences. Prints what differs; the
last line counts."""
import math

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax.scipy import special

inf, nan = np.inf, np.nan
wrong = compared = 0

SPECIAL = [
    ('gammaln', [(-2.5,), (0.3,), (90.0,)], [-0.05624372, 1.095798, 313.6528]),
    ('digamma', [(-1.5,), (0.1,), (30.5,)], [0.7031566, -10.42375, 3.401244]),
    ('erfinv', [(-0.99,), (0.2,)], [-1.821387, 0.1791435]),
    ('erfc', [(4.0,), (-1.0,)], [1.541726e-08, 1.842701]),
    ('logit', [(1e-20,), (0.7,), (1.5,)], [-46.0517, 0.8472978, nan]),
    ('entr', [(0.0,), (0.5,), (-1.0,)], [0.0, 0.3465736, -inf]),
    ('log_expit', [(-90.0,), (30.0,)], [-90.0, -9.357623e-14]),
    ('gamma', [(-1.5,), (4.5,), (30.0,)], [2.363272, 11.63173, 8.841762e+30]),
    ('gammasgn', [(-1.5,), (-2.5,), (3.0,)], [1.0, -1.0, 1.0]),
    ('factorial', [(-1.0,), (2.5,), (20.0,)], [0.0, 3.323351, 2.432902e+18]),
    ('ndtr', [(-9.0,), (-1.0,), (5.0,)], [1.128588e-19, 0.1586553, 0.9999997]),
    ('ndtri', [(1e-30,), (1e-10,), (0.01,), (0.5,), (0.999,), (0.0,), (1.5,)], [-11.46402, -6.361341, -2.326348, 0.0, 3.090236, -inf, nan]),
    ('log_ndtr', [(-100.0,), (-12.0,), (-3.0,), (2.0,), (9.0,)], [-5005.524, -75.41067, -6.607726, -0.02301291, -1.128588e-19]),
    ('i0', [(2.5,)], [3.289839]),
    ('i1', [(-2.5,)], [-2.516716]),
    ('i0e', [(1000000.0,), (70.0,), (-3.0,), (inf,)], [0.0003989423, 0.04776857, 0.2430004, 0.0]),
    ('i1e', [(1000000.0,), (-70.0,), (0.5,), (0.0,)], [0.0003989421, -0.04742612, 0.1564208, 0.0]),
    ('xlogy', [(0.0, 0.0), (0.0, nan), (2.0, 3.0)], [0.0, nan, 2.197225]),
    ('xlog1py', [(0.0, -1.0), (2.0, 1e-08)], [0.0, 2e-08]),
    ('rel_entr', [(0.0, 1.0), (1.0, 2.0), (1.0, 0.0)], [0.0, -0.6931472, inf]),
    ('kl_div', [(0.3, 0.5), (0.0, 2.0)], [0.04675231, 2.0]),
    ('betaln', [(713.88, 0.218), (0.001, 500.0), (3.0, 4.0)], [0.0005909317, 6.900965, -4.094345]),
    ('beta', [(881.4, 0.034765), (2.5, -1.5), (0.5, 0.5)], [22.29393, 3.141593, 3.141593]),
    ('gammainc', [(0.5, 0.1), (3.0, 2.0), (819.0, 795.0), (5000.0, 5100.0), (2.0, 0.0), (2.0, inf), (-1.0, 2.0)], [0.3452792, 0.3233236, 0.2017784, 0.9206711, 0.0, 1.0, nan]),
    ('gammaincc', [(2.5, 23.4), (7.4, 60.0), (358.0, 513.0), (0.01, 60.0), (3.0, 2.0)], [6.240621e-09, 1.522859e-18, 1.971482e-13, 1.504656e-30, 0.6766764]),
]
DENSITIES = [
    ('norm', 'logpdf', (1.0, 2.0), [-inf, -2.112086, -1.643336, -6.112086, nan]),
    ('norm', 'cdf', (1.0, 2.0), [0.0, 0.1586553, 0.4012937, 0.9986501, nan]),
    ('norm', 'logcdf', (1.0, 2.0), [-inf, -1.841022, -0.9130618, -0.00135081, nan]),
    ('norm', 'sf', (), [1.0, 0.8413447, 0.3085375, 1.279813e-12, nan]),
    ('norm', 'isf', (), [inf, 2.326348, 0.0, -inf, nan]),
    ('norm', 'ppf', (1.0, 2.0), [-inf, -3.652696, 1.0, inf, nan]),
    ('cauchy', 'logpdf', (1.0, 2.0), [-inf, -2.531024, -1.898502, -4.140462, nan]),
    ('expon', 'logpdf', (1.0, 2.0), [-inf, -inf, -inf, -3.693147, nan]),
    ('laplace', 'pdf', (1.0, 2.0), [0.0, 0.09196986, 0.1947002, 0.01244677, nan]),
    ('logistic', 'logpdf', (), [-inf, -1.626523, -1.448154, -7.001823, nan]),
    ('logistic', 'cdf', (1.0, 2.0), [0.0, 0.2689414, 0.4378235, 0.9525741, nan]),
    ('gamma', 'logpdf', (2.5,), [-inf, -inf, -1.824404, -4.365818, nan]),
    ('gamma', 'pdf', (0.5, 1.0, 2.0), [0.0, 0.0, 0.0, 0.008108696, nan]),
    ('beta', 'logpdf', (2.0, 3.0, -1.0, 4.0), [-inf, -inf, -0.8222242, -inf, nan]),
    ('t', 'logpdf', (3.0,), [-inf, -1.576253, -1.160974, -6.706152, nan]),
    ('chi2', 'logpdf', (2.0,), [-inf, -inf, -0.9431472, -4.193147, nan]),
]
CHANCES = [
    ('bernoulli', (0.3,), [-inf, -0.3566749, -1.203973, -inf]),
    ('bernoulli', (0.0,), [-inf, 0.0, -inf, -inf]),
    ('binom', (5, 0.3), [-inf, -1.783375, -1.021235, -6.019864]),
    ('binom', (5, 1.0), [-inf, -inf, -inf, 0.0]),
    ('geom', (0.3,), [-inf, -inf, -1.203973, -2.630673]),
    ('poisson', (2.5,), [-inf, -2.5, -1.583709, -2.706038]),
    ('poisson', (0.0,), [-inf, 0.0, -inf, -inf]),
]


def check(name, is_right, said=""):
    global wrong, compared
    compared += 1
    if not is_right:
        wrong += 1
        print(name, said)


def compare(name, found, expected, tolerance=2e-5):
    found, expected = np.asarray(found), np.asarray(expected)
    is_right = found.shape == expected.shape and np.allclose(found, expected, tolerance, 1e-6 if np.abs(expected[np.isfinite(expected)]).max(initial=0) > 1e-4 else 0,
                                                             equal_nan=True)
    check(name, is_right, f"{found} is not {expected}")


def raises(name, function, kind, text):
    try:
        check(name, False, f"gave {function()}")
    except Exception as error:
        check(name, type(error).__name__ == kind and text in str(error), f"{type(error).__name__}: {error}")


def values():
    for name, arguments, expected in SPECIAL:
        for given, figure in zip(arguments, expected):
            found = getattr(special, name)(*map(jnp.float32, given))
            compare(f"{name}{given}", found, figure, 1e-4 if name in ("gamma", "factorial", "gammaincc", "gammainc", "betaln") else 3e-5)
        compare(f"{name}, jit", jax.jit(getattr(special, name))(*(jnp.array(column, jnp.float32) for column in zip(*arguments))), expected, 1e-4)
    for name in ("i0e", "i1e", "ndtri", "log_ndtr", "gammasgn", "entr", "logit"):
        check(f"{name} of float16", getattr(special, name)(jnp.ones(2, jnp.float16) / 2).dtype == jnp.float16)
        check(f"{name} of whole numbers", getattr(special, name)(jnp.arange(2)).dtype == jnp.float32)


def derivatives():
    for name, places in [("gammaln", [0.5, 7.0]), ("erf", [0.5]), ("erfinv", [0.2, 0.9]), ("logit", [0.2]), ("entr", [0.2, 3.0]), ("gamma", [3.0, -1.5]), ("ndtr", [-1.0, 2.0]),
                         ("ndtri", [0.01, 0.3]), ("log_ndtr", [-5.0, 0.5]), ("i0", [2.0]), ("i1", [0.0, 2.0]), ("i0e", [-1.0, 2.0]), ("i1e", [0.5])]:
        function = getattr(special, name)
        for at in places:
            step = 1e-2 * max(abs(at), 0.1)
            compare(f"derivative of {name} at {at}", jax.grad(function)(at), (function(at + step) - function(at - step)) / (2 * step), 2e-2)
    for name, at, expected in [("log_ndtr", -20.0, 20.0497531), ("entr", 0.0, inf)]:
        compare(f"derivative of {name} at {at}", jax.grad(getattr(special, name))(at), expected)
    compare("derivative of xlogy where x is 0", jax.grad(special.xlogy)(0.0, 2.0), np.log(2.0))
    for name, a, b in [("gammainc", 3.0, 2.0), ("gammainc", 0.5, 4.0), ("gammaincc", 3.0, 4.5), ("betaln", 2.0, 9.0), ("beta", 0.5, 2.0), ("kl_div", 1.0, 2.0)]:
        function = getattr(special, name)
        for number in (0, 1):
            ends = [function(*(value + side * 0.02 * (place == number) for place, value in enumerate((a, b)))) for side in (1, -1)]
            compare(f"derivative of {name}({a}, {b}) in {number}", jax.grad(function, number)(a, b), (ends[0] - ends[1]) / 0.04, 2e-2)


def distributions():
    at, shares = np.array([-inf, -1.0, 0.5, 7.0, nan], np.float32), np.array([0.0, 0.01, 0.5, 1.0, nan], np.float32)
    for name, function, parameters, expected in DENSITIES:
        given = shares if function in ("ppf", "isf") else at
        compare(f"{name}.{function}{parameters}", getattr(getattr(jsp.stats, name), function)(given, *parameters), expected, 1e-4)
    e = math.exp
    for name, function, given, parameters, expected in (  # by hand: of the exponential and two like it
            ("expon", "cdf", [-1.0, 1.0], (), [0, 1 - e(-1)]), ("expon", "sf", [0.5, 3.0], (1.0, 2.0), [1, e(-1)]), ("expon", "logcdf", [1.0], (), [np.log(1 - e(-1))]),
            ("expon", "ppf", [0.5], (1.0, 2.0), [1 + 2 * np.log(2)]), ("chi2", "cdf", [-1.0, 3.0], (2.0,), [0, 1 - e(-1.5)]), ("chi2", "logsf", [3.0], (2.0,), [-1.5]),
            ("gamma", "cdf", [1.0], (2.0,), [1 - 2 * e(-1)]), ("gamma", "sf", [-1.0, 3.0], (2.0, 1.0, 2.0), [1, 2 * e(-1)]), ("gamma", "logcdf", [1.0], (2.0,), [np.log(1 - 2 * e(-1))])):
        compare(f"{name}.{function}{parameters}", getattr(getattr(jsp.stats, name), function)(np.array(given), *parameters), expected, 1e-4)
    compare("uniform", jsp.stats.uniform.logpdf(at, -1.0, 2.0), [-inf, -np.log(2), -np.log(2), -inf, -np.log(2)])  # what is nan counts as inside, in JAX
    for name, parameters, expected in CHANCES:
        compare(f"{name}{parameters}", getattr(jsp.stats, name).logpmf(np.array([-1, 0, 1, 5]), *parameters), expected, 1e-4)


def transforms():
    """Fourier transforms beside NumPy's, and the transposes that derivatives are."""
    numbers = np.random.RandomState(0)
    for shape in [(7,), (4, 6), (2, 3, 4, 5)]:
        real = numbers.randn(*shape).astype(np.float32)
        both = (real + 1j * numbers.randn(*shape)).astype(np.complex64)
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn"):
            x = real if name in ("rfft", "rfftn", "ihfft") else both
            others = ({"axes": (0,)}, {"s": (5,), "axes": (-1,)}) if name.endswith("n") else ({"axis": 0}, {"n": 5})
            for options in ({}, {"norm": "ortho"}, {"norm": "forward"}, *others):
                expected = getattr(np.fft, name)(x, **options)
                close(f"{name} of {shape}, {options}", getattr(jnp.fft, name)(x, **options), expected, 3e-5 * max(1.0, np.abs(expected).max()))
    x = jnp.asarray(numbers.randn(5, 6), jnp.float32)
    weights = jnp.asarray(numbers.randn(5, 4), jnp.float32)
    slope = jax.grad(lambda x: (jnp.fft.rfft2(x).real * weights).sum())(x)
    close("a derivative is the transpose", (slope * x).sum(), (jnp.fft.rfft2(x).real * weights).sum(), 1e-4)
    close("of each example", jax.vmap(jnp.fft.rfft)(x), np.fft.rfft(x), 1e-5)
    many = np.arange(1 << 18, dtype=np.float32)
    close("many points", jnp.fft.fft(many) / 1e9, np.fft.fft(many) / 1e9, 1e-3)


def signals():
    x, w = np.array([[1.0, 2, 0, -1], [3, 0, 1, 2], [0, 1, -2, 4]], np.float32), np.array([[1, -1], [2, 0.5]], np.float32)
    for mode, correlated, convolved in [
            ("full", [[0.5, 3, 4, -0.5, -2], [0.5, 5, 2.5, 4, 3], [-3, 3.5, 0, -3, 10], [0, -1, 3, -6, 4]],
             [[1, 1, -2, -1, 1], [5, 1.5, 2, -1, -2.5], [6, 2.5, -1, 10.5, -3], [0, 2, -3.5, 7, 2]]),
            ("same", [[5, 2.5, 4, 3], [3.5, 0, -3, 10], [-1, 3, -6, 4]], [[1, 1, -2, -1], [5, 1.5, 2, -1], [6, 2.5, -1, 10.5]]),
            ("valid", [[5, 2.5, 4], [3.5, 0, -3]], [[1.5, 2, -1], [2.5, -1, 10.5]])]:
        compare(f"correlate2d, {mode}", jsp.signal.correlate2d(x, w, mode), correlated)
        compare(f"convolve2d, {mode}", jsp.signal.convolve2d(x, w, mode), convolved)
    v = np.array([1.0, 2, 4, 7, 3, 1, 0], np.float32)
    for options, expected in [({}, [-2.214286, -1.0, 1.214286, 4.428571, 0.6428571, -1.142857, -1.928571]), ({"bp": [3]}, [0.1666667, -0.3333333, 0.1666667, 0.8, -0.9, -0.6, 0.7]),
                              ({"type": "constant"}, [-1.571429, -0.5714286, 1.428571, 4.428571, 0.4285714, -1.571429, -2.571429])]:
        compare(f"detrend {options}", jsp.signal.detrend(v, **options), expected, 1e-4)
    compare("dct", jsp.fft.dct(v), [36.0, 4.381286, -19.59179, -1.25396, 6.725873, 0.4815746, -4.682333])
    compare("dct, ortho", jsp.fft.dct(v, norm="ortho"), [6.803361, 1.170948, -5.236127, -0.335135, 1.797565, 0.1287062, -1.251406])
    compare("idct", jsp.fft.idct(v, n=4), [1.963743, -2.007554, 0.8433407, -0.299529])
    compare("dctn there and back", jsp.fft.idctn(jsp.fft.dctn(x)), x, 1e-4)
    compare("hfft", jnp.fft.hfft(jnp.array([1, 2 - 1j, 3j])), [5.0, -1.0, -3.0, 3.0])
    compare("ihfft", jnp.fft.ihfft(jnp.fft.hfft(jnp.array([1, 2 - 1j, 3]))), [1, 2 - 1j, 3])
    compare("resize", jax.image.resize(jnp.array([0.0, 1.0]), (4,), "linear"), [0.0, 0.25, 0.75, 1.0])


def matrices():
    a, tall = jnp.array([[2 + 1j, 1 - 2j], [1j, 3]]), jnp.array([[1.0, 2], [3, 4], [5, 7]])
    q, r = jsp.linalg.qr(a)
    compare("qr of complex numbers: q", q, [[-0.8164966 - 0.4082483j, 0.1825742 - 0.3651484j], [-0.4082483j, -0.9128709]])
    compare("qr of complex numbers: r", r, [[-2.4494897, 3.2659863j], [0, -1.8257419]])
    compare("qr, r alone", jsp.linalg.qr(tall, mode="r")[0], [[-5.9160798, -8.2825117], [0, 0.6324555], [0, 0]])
    compare("qr of what is reduced", jnp.linalg.qr(jnp.eye(3)), [np.eye(3)] * 2)
    for name, found, expected in zip("plu", jsp.linalg.lu(tall), ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[1, 0], [0.2, 1], [0.6, -1 / 3]], [[5, 7], [0, 0.6]])):
        compare(f"lu of a tall matrix: {name}", found, expected)
    for name, found, expected in zip("plu", jsp.linalg.lu(jnp.array([[3 + 1j, 2], [2 + 2.5j, 1]])),
                                     ([[0, 1], [1, 0]], [[1, 0], [0.8292683 - 0.5365854j, 1]], [[2 + 2.5j, 1], [0, 1.1707317 + 0.5365854j]])):
        compare(f"lu of complex numbers: {name}", found, expected)
    compare("det of complex numbers", jnp.linalg.det(a), 4 + 2j)
    compare("expm", jsp.linalg.expm(jnp.array([[0.0, 3.0], [-3.0, 0.5]])), [[-1.2854768, 0.1951348], [-0.1951348, -1.2529543]], 1e-4)
    compare("toeplitz", jsp.linalg.toeplitz(jnp.array([1.0, 2, 3]), jnp.array([1.0, 4])), [[1, 4], [2, 1], [3, 2]])
    compare("toeplitz of rows", jsp.linalg.toeplitz(jnp.array([[1.0, 2], [3, 4]])), [[[1, 2], [2, 1]], [[3, 4], [4, 3]]])
    check("no blocks", jsp.linalg.block_diag().shape == (1, 0))


def close(name, found, expected, tolerance):
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    check(name, len(found) == len(expected) and all(np.shape(a) == np.shape(b) and np.allclose(a, b, tolerance, tolerance) for a, b in zip(found, expected)),
          f"{found} is not {expected}")


def solvers():
    square = lambda x: jnp.sum(100.0 * jnp.diff(x) ** 2 + (1 - x[:-1]) ** 2)
    himmelblau = lambda p: (p[0] ** 2 + p[1] - 11) ** 2 + (p[0] + p[1] ** 2 - 7) ** 2
    for name, function, start, least in (("a valley", square, jnp.zeros(2), [1, 1]), ("himmelblau", himmelblau, jnp.ones(2), [3, 2])):
        made = jax.jit(lambda start: jsp.optimize.minimize(function, start, method="BFGS"))(start)
        close(f"least of {name}", made.x, np.array(least), 1e-4)
        close(f"found, of {name}", (made.success, made.status), (True, 0), 0)
    raises("a method that is none", lambda: jsp.optimize.minimize(square, jnp.zeros(2), method="Newton"), "ValueError", "Method Newton not recognized")
    from jax.experimental.ode import odeint
    decay = lambda y, t, rate: -rate * y
    times = jnp.linspace(0.0, 2.0, 5)
    close("decay", odeint(decay, jnp.array([1.0, 2.0]), times, 1.5), np.exp(-1.5 * np.asarray(times))[:, None] * [1, 2], 1e-4)
    close("its derivative by the rate", jax.grad(lambda rate: odeint(decay, jnp.array([1.0, 2.0]), times, rate)[-1].sum())(1.5), -6 * np.exp(-3), 1e-4)
    close("by the times", jax.grad(lambda times: odeint(decay, jnp.array([1.0]), times, 1.5)[-1, 0])(jnp.array([0.0, 0.5, 1.0])), np.array([1.5, 0, -1.5]) * np.exp(-1.5), 1e-4)
    swings = lambda state, t, p: (state[1], -p["damping"] * state[1] - p["pull"] * jnp.sin(state[0]))
    ends = lambda p: odeint(swings, (jnp.array(1.0), jnp.array(0.0)), jnp.linspace(0.0, 3.0, 4), p)[0].sum()
    slopes = jax.grad(ends)({"damping": 0.3, "pull": 5.0})
    step = lambda **more: ends({"damping": 0.3 + more.get("damping", 0), "pull": 5.0 + more.get("pull", 0)})
    for name in slopes:
        close(f"a pendulum's end by its {name}", slopes[name], (step(**{name: 1e-2}) - step(**{name: -1e-2})) / 2e-2, 3e-3)
    for mode, expected in (("constant", [0, 0.5, 0]), ("nearest", [0, 0.5, 4]), ("wrap", [3.7, 0.5, 0.2]), ("mirror", [1.3, 0.5, 2.8]), ("reflect", [0.3, 0.5, 3.8])):
        close(f"places between elements, {mode}", jsp.ndimage.map_coordinates(jnp.arange(5.0), [jnp.array([-1.3, 0.5, 5.2])], 1, mode), np.array(expected), 1e-5)
    close("the nearest elements", jsp.ndimage.map_coordinates(jnp.arange(5), [jnp.array([0.5, 1.4, 7.0])], 0), np.array([1, 1, 0]), 0)


def factors():
    """Eigenvalues and singular values where a program or a derivative asks for them."""
    from jax.test_util import check_grads
    a, high, wide = (jax.random.normal(jax.random.key(at), shape) for at, shape in enumerate([(4, 4), (5, 3), (3, 5)]))
    both = a + a.T
    close("in a program", jax.jit(jnp.linalg.eigvalsh)(both), np.linalg.eigvalsh(both), 1e-5)
    close("of many matrices", jax.jit(jax.vmap(jnp.linalg.eigvalsh))(jnp.stack([both, 2 * both]))[1], np.linalg.eigvalsh(2 * both), 1e-5)
    close("turn by turn", jax.lax.scan(lambda c, x: (c, jnp.linalg.eigvalsh(x)[0]), 0.0, jnp.stack([both, 2 * both]))[1], np.linalg.eigvalsh(both)[0] * np.array([1, 2]), 1e-5)
    ends = lambda s: (jnp.linalg.eigh(s + s.T)[1] ** 4 * jnp.arange(4.0)).sum() + jnp.sin(jnp.linalg.eigvalsh(s + s.T)).sum()
    slope = jax.grad(ends)(both)
    close("derivative in a program", jax.jit(jax.grad(ends))(both), slope, 1e-5)
    close("derivative of a program", jax.grad(jax.jit(ends))(both), slope, 1e-5)
    parts = lambda m: (lambda u, s, v: ((u * jnp.sqrt(s) @ v) ** 2).sum() + (s ** 3).sum())(*jnp.linalg.svd(m, full_matrices=False))
    for name, function, values in [("eigh", ends, (both,)), *[(f"svd of {m.shape}", parts, (m,)) for m in (a, high, wide)],
                                   *[(f"pinv of {m.shape}", lambda m: (jnp.linalg.pinv(m) ** 2).sum(), (m,)) for m in (a, high, wide)],
                                   ("norms", lambda m: jnp.linalg.norm(m, 2) + jnp.linalg.norm(m, "nuc"), (high,)), ("expm", lambda m: jnp.sin(jsp.linalg.expm(m)).sum(), (a / 2,))]:
        try:
            check_grads(function, values, 2 if name != "norms" else 1, ("rev",) if name == "eigh" else ("rev", "fwd"), atol=0.2, rtol=0.1)
            close(f"derivatives of {name}", 0, 0, 0)
        except AssertionError as error:
            close(f"derivatives of {name}: {error}", 1, 0, 0)
    close("expm", jsp.linalg.expm(20 * jnp.array([[0.0, 1.0], [-1.0, 0.0]])), np.array([[np.cos(20), np.sin(20)], [-np.sin(20), np.cos(20)]]), 1e-4)
    packed, right = jsp.linalg.lu_factor(a), jnp.arange(4.0)
    close("lu_solve", jsp.linalg.lu_solve(packed, right), np.linalg.solve(a, right), 1e-4)
    close("lu_solve, transposed", jsp.linalg.lu_solve(packed, right, 1), np.linalg.solve(a.T, right), 1e-4)
    for name, m, side in (("square", a, "right"), ("wide", wide, "left")):
        unitary, positive = jsp.linalg.polar(m, side)
        close(f"polar, {name}", unitary @ positive if side == "right" else positive @ unitary, m, 1e-5)
    close("matrix_rank", (jnp.linalg.matrix_rank(jnp.ones((3, 3))), jnp.linalg.matrix_rank(a)), (1, 4), 0)
    close("pascal", jsp.linalg.pascal(3), np.array([[1, 1, 1], [1, 2, 3], [1, 3, 6]]), 0)
    close("hadamard", jsp.linalg.hadamard(4) @ jsp.linalg.hadamard(4).T, 4 * np.eye(4), 0)
    raises("derivative of whole singular vectors", lambda: jax.grad(lambda m: jnp.linalg.svd(m)[0].sum())(high), "NotImplementedError", "not implemented for full matrices")


def polygammas():
    close("polygamma", special.polygamma(1, jnp.array([0.5, 1.0, 10.0, -0.5])), np.array([np.pi ** 2 / 2, np.pi ** 2 / 6, 0.1051663, 8.934802]), 1e-5)
    close("its next", special.polygamma(2, 1.0), -2.404114, 1e-5)
    close("zeta", [special.zeta(x, q) for x, q in ((2.0, 1.0), (3.5, 0.25), (2.0, -1.0), (1.0, 2.0))], [np.pi ** 2 / 6, 128.546974, inf, inf], 1e-5)
    close("derivatives of gammaln", [jax.grad(special.gammaln)(1.0), jax.jit(jax.grad(jax.grad(special.gammaln)))(1.0)], [-0.5772157, np.pi ** 2 / 6], 1e-5)
    close("of many examples", jax.vmap(jax.grad(jax.lax.digamma))(jnp.array([1.0, 2.0])), np.pi ** 2 / 6 - np.array([0, 1]), 1e-5)
    from jax.test_util import check_grads
    for modes in (("fwd",), ("rev",)):  # the derivative of a wrong rule is found
        wrong_rule = jax.custom_jvp(jnp.sin)
        wrong_rule.defjvp(lambda primals, tangents: (jnp.sin(*primals), 2 * tangents[0]))
        raises(f"check_grads {modes}", lambda: check_grads(wrong_rule, (1.0,), 1, modes), "AssertionError", "Not equal to tolerance")


def statistics():
    import math
    from jax.scipy import stats
    x = jnp.linspace(-40.0, 40.0, 80001)
    for name, density in (("gumbel_r", stats.gumbel_r.pdf), ("gumbel_l", stats.gumbel_l.pdf), ("gennorm", lambda x: stats.gennorm.pdf(x, 1.5)),
                          ("pareto", lambda x: stats.pareto.pdf(x + 41, 3.0)), ("truncnorm", lambda x: stats.truncnorm.pdf(x, -1.0, 2.0)),
                          ("vonmises", lambda x: jnp.where(jnp.abs(x) <= jnp.pi, stats.vonmises.pdf(x, 2.0), 0))):
        close(f"all of {name}", jnp.trapezoid(density(x), x), 1.0, 1e-3)
    for name, of in (("truncnorm", lambda x, f: getattr(stats.truncnorm, f)(x, -1.0, 2.0)), ("gumbel_r", lambda x, f: getattr(stats.gumbel_r, f)(x)),
                     ("gumbel_l", lambda x, f: getattr(stats.gumbel_l, f)(x))):
        close(f"density of {name}", jax.grad(lambda x: of(x, "cdf"))(0.5), of(0.5, "pdf"), 1e-5)
        close(f"the rest of {name}", of(0.5, "cdf") + of(0.5, "sf"), 1.0, 1e-5)
    for name, of in (("gumbel_r", stats.gumbel_r), ("gumbel_l", stats.gumbel_l)):
        close(f"quantiles of {name}", of.ppf(of.cdf(0.3)), 0.3, 1e-5)
    close("far from the middle", stats.truncnorm.logpdf(9.0, 8.0, 10.0), -6.405502, 1e-5)
    close("moved and stretched", stats.truncnorm.pdf(0.1, -1.0, 2.0, loc=0.2, scale=2.0), 0.2433707, 1e-5)
    close("all of betabinom", stats.betabinom.pmf(jnp.arange(11), 10, 2.0, 3.0).sum(), 1.0, 1e-5)
    close("nbinom", stats.nbinom.pmf(2, 3, 0.4), math.comb(4, 2) * 0.4 ** 3 * 0.6 ** 2, 1e-5)
    close("multinomial", [stats.multinomial.pmf(jnp.array(x), 3, jnp.array([0.2, 0.5, 0.3])) for x in ([1, 2, 0], [1, 2, 1])], [0.15, 0.0], 1e-5)
    close("mode", tuple(stats.mode(jnp.array([[3, 1, 2], [3, 2, 2], [1, 2, 1]]))), (np.array([3, 2, 2]), np.array([2, 2, 2])), 0)
    for method, expected in (("average", [3.5, 1, 3.5, 2]), ("min", [3, 1, 3, 2]), ("max", [4, 1, 4, 2]), ("dense", [3, 1, 3, 2]), ("ordinal", [3, 1, 4, 2])):
        close(f"ranks, {method}", stats.rankdata(jnp.array([3, 1, 3, 2]), method), np.array(expected), 0)
    close("sem", stats.sem(jnp.array([1.0, 2.0, 4.0])), np.std([1, 2, 4], ddof=1) / 3 ** 0.5, 1e-5)
    close("the least", jax.lax.approx_min_k(jnp.array([3.0, 1.0, 2.0]), 2), (np.array([1.0, 2.0]), np.array([1, 2])), 0)
    close("put together two by two", jax.tree.reduce_associative(lambda a, b: a + b, {"a": [1, 2], "b": 3}), 6, 0)
    close("paddings by name", jax.lax.padtype_to_pads((5,), (3,), (2,), "SAME"), [(1, 1)], 0)


def operations():
    """jax.lax.linalg, beside NumPy."""
    from jax.lax import linalg
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((2, 4, 4)) + 4 * np.eye(4)).astype(np.float32), rng.standard_normal((2, 4, 4)).astype(np.float32)
    for lower, transpose_a, unit_diagonal in ((lower, transposed, unit) for lower in (False, True) for transposed in (False, True) for unit in (False, True)):
        whole = np.tril(a) if lower else np.triu(a)
        if unit_diagonal:
            whole[:, range(4), range(4)] = 1
        whole = np.swapaxes(whole, 1, 2) if transpose_a else whole
        options = {"lower": lower, "transpose_a": transpose_a, "unit_diagonal": unit_diagonal}
        close(f"triangular_solve from the left {options}", linalg.triangular_solve(a, b, left_side=True, **options), np.linalg.solve(whole, b), 1e-3)
        close(f"triangular_solve {options}", linalg.triangular_solve(a, b, **options), b @ np.linalg.inv(whole), 1e-3)
    close("of a vector", linalg.triangular_solve(a[0], b[0, 0], lower=True), b[0, 0] @ np.linalg.inv(np.tril(a[0])), 1e-3)
    symmetric = (a @ np.swapaxes(a, 1, 2)).astype(np.float32)
    vectors, values = linalg.eigh(symmetric)
    close("eigh", (vectors * values[:, None] @ jnp.swapaxes(vectors, 1, 2), values), (symmetric, np.linalg.eigvalsh(symmetric)), 1e-3)
    packed, pivots, order = linalg.lu(b[0])
    close("lu", (jnp.tril(packed, -1) + jnp.eye(4)) @ jnp.triu(packed), b[0][np.asarray(order)], 1e-4)
    q, r = linalg.qr(b[:, :, :3])
    close("qr", (q.shape, q @ r), ((2, 4, 4), b[:, :, :3]), 1e-4)
    below, at, above = rng.standard_normal((3, 2, 5)).astype(np.float32)
    at, right = at + 5, rng.standard_normal((2, 5, 3)).astype(np.float32)
    dense = np.stack([np.diag(at[i]) + np.diag(below[i, 1:], -1) + np.diag(above[i, :-1], 1) for i in range(2)])
    close("tridiagonal_solve", linalg.tridiagonal_solve(below, at, above, right), np.linalg.solve(dense, right), 1e-4)
    close("symmetric_product", jax.lax.linalg.symmetric_product(a, symmetric, alpha=2.0, beta=0.5, symmetrize_output=True), 2 * a @ np.swapaxes(a, 1, 2) + 0.5 * symmetric, 1e-3)
    raises("triangular_solve of other sizes", lambda: linalg.triangular_solve(a[0], b[0, :, :3]), "TypeError", "Incompatible shapes for arguments to triangular_solve: (4, 4) and (4, 3).")


def refusals():
    square = jnp.eye(2)
    for name, function, kind, text in [
            ("two matrices", lambda: jsp.linalg.eigh(square, square), "NotImplementedError", "Only the b=None case of eigh is implemented"),
            ("some eigenvalues", lambda: jsp.linalg.eigh(square, eigvals=(0, 1)), "NotImplementedError", "eigvals=None"),
            ("pivots", lambda: jsp.linalg.qr(square, pivoting=True), "NotImplementedError", "pivoting"), ("mode", lambda: jsp.linalg.qr(square, mode="raw"), "ValueError", "'raw'"),
            ("kind of matrix", lambda: jsp.linalg.solve(square, square, assume_a="tri"), "ValueError", "Expected assume_a to be one of"),
            ("transposed", lambda: jsp.linalg.solve_triangular(square, square, trans=3), "ValueError", "Invalid 'trans' value 3"),
            ("type of transform", lambda: jsp.fft.dct(jnp.ones(3), type=1), "NotImplementedError", "Only DCT type 2 is implemented."),
            ("norm", lambda: jsp.fft.dct(jnp.ones(3), norm="forward"), "ValueError", "is not implemented"),
            ("trend", lambda: jsp.signal.detrend(jnp.ones(3), type="cubic"), "ValueError", "Trend type must be"),
            ("rank of an image", lambda: jax.image.resize(jnp.ones((2, 2)), (4,), "linear"), "ValueError", "shape must have length equal to the number of dimensions"),
            ("exact factorial", lambda: special.factorial(3, exact=True), "NotImplementedError", "exact=True")]:
        raises(f"refused: {name}", function, kind, text)


def main():
    for part in (values, derivatives, distributions, signals, transforms, matrices, solvers, factors, polygammas, statistics, operations, refusals):
        part()
    print(f"{wrong} of {compared} differ")
    return wrong != 0


if __name__ == "__main__":
    raise SystemExit(main())
