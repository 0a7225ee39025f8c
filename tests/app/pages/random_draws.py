# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.random: many keys at once beside one after the other, in both ages of JAX's numbers; distributions beside their means, deviations and limits. Prints what
differs; the last line counts."""
import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
from meshwright_pages import older_random

wrong = compared = 0
SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 0


def same(name, found, expected):
    global wrong, compared
    compared += 1
    if not found == expected:
        wrong += 1
        print(name, found, "is not", expected)


def close(name, found, expected, tolerance):
    global wrong, compared
    compared += 1
    if np.shape(found) != np.shape(expected) or not np.allclose(np.asarray(found), np.asarray(expected), tolerance, tolerance):
        wrong += 1
        print(name, found, "is not", expected)


def many_keys():
    keys = jax.random.split(jax.random.key(SEED), 40)
    draws = {
        "bits": lambda key: jax.random.bits(key, (3,)), "uniform": lambda key: jax.random.uniform(key, (2, 3), minval=-2.0, maxval=5.0),
        "uniform of nothing": lambda key: jax.random.uniform(key, (0, 3)), "one uniform": jax.random.uniform, "normal": lambda key: jax.random.normal(key, (5,)),
        "one normal": jax.random.normal, "split": lambda key: jax.random.key_data(jax.random.split(key, 3)), "bernoulli": lambda key: jax.random.bernoulli(key, 0.3, (4,)),
        "exponential": lambda key: jax.random.exponential(key, (2,)), "truncated": lambda key: jax.random.truncated_normal(key, -1, 1, (3,)),
        "a draw of a split": lambda key: jax.random.normal(jax.random.split(key)[1], (3,)), "randint": lambda key: jax.random.randint(key, (3,), 0, 10),
        "fold_in": lambda key: jax.random.uniform(jax.random.fold_in(key, 7), (2,)), "bytes": lambda key: jax.random.bits(key, (5,), "uint8"),
        "of 16 bits": lambda key: jax.random.normal(key, (3,), jnp.float16).astype(jnp.float32),
    }
    for partitionable in (True, False):
        jax.config.update("jax_threefry_partitionable", partitionable)
        for name, draw in draws.items():
            one_by_one = np.stack([np.asarray(draw(key)) for key in keys])
            close(f"{name}, vmap, {partitionable}", jax.vmap(draw)(keys), one_by_one, 1e-5)
        close(f"twice, {partitionable}", jax.vmap(jax.vmap(jax.random.normal))(keys.reshape(8, 5)), np.stack([np.asarray(jax.random.normal(key)) for key in keys]).reshape(8, 5),
              1e-5)
    jax.config.update("jax_threefry_partitionable", True)


def raises(name, function, kind, text):
    try:
        same(name, f"gave {function()}", kind)
    except Exception as error:
        same(f"{name}, {error}", (type(error).__name__, text in str(error)), (kind, True))


def keys():
    """Seeds of more than 32 bits, and arrays that are not keys."""
    words = lambda *seeds: [[int(word) for word in jax.random.PRNGKey(seed)] for seed in seeds]
    same("seeds of a page of 32 bits", words(1234567890123, 2**40, -1, np.uint32(7)), [[0, 1912276171], [0, 0], [0, 2**32 - 1], [0, 7]])
    same("a traced seed", [int(word) for word in jax.jit(jax.random.PRNGKey)(-1)], [0, 2**32 - 1])
    jax.config.update("jax_enable_x64", True)
    same("seeds of a page of 64 bits", words(1234567890123, -1, np.int32(-1)), [[287, 1912276171], [2**32 - 1, 2**32 - 1], [0, 2**32 - 1]])
    same("a traced seed of 64 bits", [int(word) for word in jax.jit(jax.random.PRNGKey)(1234567890123)], [287, 1912276171])
    jax.config.update("jax_enable_x64", False)
    one, wrong = jax.random.key(0), "JAX encountered invalid PRNG key data: expected "
    for name, function, kind, text in (
            ("integers", lambda: jax.random.normal(jnp.array([0, 1])), "TypeError", wrong + "key_data.dtype = uint32; got dtype=int32"),
            ("integers in a program", lambda: jax.jit(jax.random.normal)(jnp.array([0, 1])), "TypeError", wrong + "key_data.dtype = uint32; got dtype=int32"),
            ("three words", lambda: jax.random.uniform(jnp.zeros(3, jnp.uint32)), "TypeError", wrong + "key_data.shape to end with (2,); got shape=(3,)"),
            ("one word", lambda: jax.random.split(jnp.uint32(3)), "TypeError", wrong + "key_data.ndim >= 1; got ndim=0"),
            ("wrapped integers", lambda: jax.random.wrap_key_data(jnp.array([0, 1])), "TypeError", wrong + "key_data.dtype = uint32"),
            ("many keys", lambda: jax.random.normal(jax.random.split(one)), "ValueError", "normal accepts a single key, but was given a key array of shape (2,) != ()."),
            ("many keys of a made draw", lambda: jax.random.laplace(jax.random.split(one)), "ValueError", "laplace accepts a single key"),
            ("many keys of samples", lambda: jax.random.gamma(jax.random.split(one), 1.0), "ValueError", "gamma accepts a single key"),
            ("a number", lambda: jax.random.normal(3), "TypeError", "unexpected PRNG key type <class 'int'>"),
            ("a seed that is no integer", lambda: jax.random.key(1.5), "TypeError", "PRNG key seed must be an integer; got Array(1.5"),
            ("seeds", lambda: jax.random.key(jnp.arange(2)), "TypeError", "key accepts a scalar seed, but was given an array of shape (2,) != ()."),
            ("a seed that is a key", lambda: jax.random.key(one), "TypeError", "key accepts a scalar seed, but was given a PRNG key."),
            ("a seed of 70 bits", lambda: jax.random.key(2**70), "OverflowError", "too large")):
        raises(name, function, kind, text)


def arrays_of_keys():
    """Functions that move elements move keys: what NumPy makes of their words, which lie along a last dimension."""
    one, four = jax.random.key(0), jax.random.split(jax.random.key(1), 4)
    a, b = np.asarray(jax.random.key_data(one)), np.asarray(jax.random.key_data(four))
    late, square = np.arange(4) > 1, b.reshape(2, 2, 2)
    for name, found, expected in (
            ("asarray", jnp.asarray(one), a), ("an array of keys", jnp.array([one, four[1]]), [a, b[1]]), ("stack", jnp.stack([four, four], 1), np.stack([b, b], 1)),
            ("concatenate", jnp.concatenate([four, four[:1]]), np.concatenate([b, b[:1]])), ("where", jnp.where(late, four, one), np.where(late[:, None], b, a)),
            ("reshape", jnp.reshape(four, (2, 2)), square), ("take", jnp.take(four, jnp.array([1, 2])), b[1:3]), ("squeeze", jnp.squeeze(one[None]), a),
            ("expand_dims", jnp.expand_dims(four, 0), b[None]), ("repeat", jnp.repeat(four, 2), np.repeat(b, 2, 0)), ("broadcast_to", jnp.broadcast_to(one, (3,)), [a] * 3),
            ("tile", jnp.tile(four, 2), [*b, *b]), ("full", jnp.full((2,), one), [a, a]), ("transpose", jnp.reshape(four, (2, 2)).T, square.swapaxes(0, 1)),
            ("at, set", four.at[0].set(one), [a, *b[1:]]), ("at, get", four.at[jnp.array([1, 3])].get(), b[[1, 3]]), ("half of a split", jnp.split(four, 2)[1], b[2:]),
            ("a traced place", jax.jit(lambda keys, at: jax.lax.dynamic_index_in_dim(keys, at, keepdims=False))(four, 2), b[2]),
            ("of examples", jax.vmap(lambda key: jnp.stack([key, key]))(four), np.stack([b, b], 1)), ("device_get", jax.device_get(one), a)):
        close(f"keys: {name}", jax.random.key_data(found), np.asarray(expected), 0)
    same("keys, their types", repr(jax.eval_shape(lambda key: jax.random.split(key, 3), jax.ShapeDtypeStruct((), one.dtype))), "ShapeDtypeStruct(shape=(3,), dtype=key<fry>)")
    same("keys of which a program is made", jax.jit(jax.random.normal).lower(jax.ShapeDtypeStruct((), one.dtype)).compile().memory_analysis().argument_size_in_bytes, 8)
    raises("keys as NumPy's", lambda: np.asarray(one), "TypeError", "JAX array with PRNGKey dtype cannot be converted to a NumPy array.")
    raises("keys and numbers", lambda: jnp.stack([one, 1.0]), "TypeError", "takes keys or arrays of numbers, got both: key<fry>, float")


def widths():
    """Words of 64 bits are two words of 32 bits; smaller ones are parts of such a word. The numbers of both ages follow from threefry by hand."""
    key = jax.random.key(0)
    jax.config.update("jax_enable_x64", True)
    for partitionable, bits, uniform, draws in ((True, [7719171245655871230, 3989946895414531357, 17807037942121513089], [0.41845711, 0.21629545, 0.96532146], [5, 1, 5]),
                                                (False, [10597664315880824766, 1838883807893689961, 13686855971547664781], [0.57450053, 0.09968609, 0.74196595], [6, 4, 0])):
        jax.config.update("jax_threefry_partitionable", partitionable)
        same(f"words of 64 bits, {partitionable}", np.asarray(jax.random.bits(key, (3,), "uint64")).tolist(), bits)
        same(f"which are the usual ones, {partitionable}", str(jax.random.bits(key).dtype), "uint64")
        close(f"uniform of 64 bits, {partitionable}", jax.random.uniform(key, (3,)), np.array(uniform), 1e-7)
        same(f"integers of 64 bits, {partitionable}", np.asarray(jax.random.randint(key, (3,), 0, 10)).tolist(), draws)
        wide = np.asarray(jax.random.randint(key, (100,), 0, 2**40))
        same(f"within their limits, {partitionable}", bool((wide >= 0).all() and (wide < 2**40).all() and (wide > 2**32).any()), True)
        lower = np.asarray(jax.random.bits(jax.random.split(key)[1], (3,), "uint32")).astype(np.int64) - 2**31
        close(f"all numbers of a type, {partitionable}", jax.random.randint(key, (3,), -2**31, 2**31, "int32"), lower, 0)
        close(f"of traced limits, {partitionable}", jax.jit(lambda low, high: jax.random.randint(key, (100,), low, high))(0, 2**40), wide, 0)
    close("a span of which the square of 2**32 is more than 64 bits hold", jax.random.randint(key, (9,), 0, 10**12), jax.random.randint(key, (9,), *map(jnp.array, (0, 10**12))), 0)
    jax.config.update("jax_enable_x64", False)
    words = np.asarray(jax.random.bits(key, (2,)))
    close("bytes of before", jax.random.bits(key, (7,), "uint8"), words.view(np.uint8)[:7], 0)
    jax.config.update("jax_threefry_partitionable", True)
    words = np.asarray(jax.random.bits(key, (3,)))
    close("bytes", jax.random.bits(key, (3,), "uint8"), words % 256, 0)
    close("uniform of 16 bits", jax.random.uniform(key, (3,), jnp.float16), (words % 2**16 // 64) / 1024, 0)
    close("uniform of bfloat16, of eight bits", jax.random.uniform(key, (3,), jnp.bfloat16), words % 256 // 2 / 128, 0)
    raises("a limit of 33 bits", lambda: jax.random.randint(key, (3,), 0, 2**31), "OverflowError", "too large")
    close("bytes up to 256", jax.random.randint(key, (3,), 0, 256, "uint8"), jax.random.randint(key, (3,), 0, 256), 0)
    close("between arrays", jax.random.randint(key, (3,), jnp.array([0, 5, 10]), jnp.array([1, 6, 11])), np.array([0, 5, 10]), 0)
    low = np.asarray(jax.random.bits(jax.random.split(key)[1], (9,))) % 100000  # 2**16 squared is 0 in 32 bits, and so are the upper words
    close("a span of more than 16 bits", jax.random.randint(key, (9,), 0, 100000), low, 0)
    close("between arrays of such a span", jax.random.randint(key, (9,), *map(jnp.array, (0, 100000))), low, 0)
    close("chosen of as many", jax.random.choice(key, 100000, (9,)), low, 0)
    bounded = jax.random.truncated_normal(key, -1.0, 2.0, (9,))
    close("a traced bound", jax.jit(lambda low: jax.random.truncated_normal(key, low, 2.0, (9,)))(-1.0), bounded, 1e-6)
    close("bounds of each", jax.random.truncated_normal(key, jnp.full((9,), -1.0), 2.0), bounded, 1e-6)
    square = jnp.arange(12).reshape(4, 3)
    mixed = jax.random.permutation(key, square, axis=1, independent=True)
    close("rows in orders of their own", jnp.sort(mixed, 1), square, 0)
    same("which differ", len({tuple(row) for row in np.asarray(mixed % 3).tolist()}) > 1, True)
    close("above a limit", jax.random.randint(key, (3,), 7, 3), np.array([7, 7, 7]), 0)


# A distribution's samples, its mean and deviation, and the least and greatest values.
def distributions(key):
    n = (20000,)
    yield "gamma", jax.random.gamma(key, 2.5, n), 2.5, math.sqrt(2.5), 0, math.inf
    yield "gamma below 1", jax.random.gamma(key, 0.3, n), 0.3, math.sqrt(0.3), 0, math.inf
    yield "gamma of 1000", jax.random.gamma(key, 1000.0, n), 1000, math.sqrt(1000), 0, math.inf
    yield "loggamma", jnp.exp(jax.random.loggamma(key, 0.3, n)), 0.3, math.sqrt(0.3), 0, math.inf
    yield "beta", jax.random.beta(key, 2.0, 5.0, n), 2 / 7, math.sqrt(10 / (49 * 8)), 0, 1
    yield "chisquare", jax.random.chisquare(key, 3.0, n), 3, math.sqrt(6), 0, math.inf
    yield "t", jax.random.t(key, 9.0, n), 0, math.sqrt(9 / 7), -math.inf, math.inf
    yield "poisson", jax.random.poisson(key, 3.5, n), 3.5, math.sqrt(3.5), 0, math.inf
    yield "poisson of 400", jax.random.poisson(key, 400.0, n), 400, 20, 0, math.inf
    yield "binomial, few", jax.random.binomial(key, 10, 0.3, n), 3, math.sqrt(2.1), 0, 10
    yield "binomial, many", jax.random.binomial(key, 100, 0.7, n), 70, math.sqrt(21), 0, 100
    yield "multinomial", jax.random.multinomial(key, 20.0, jnp.array([0.2, 0.3, 0.5]), shape=(500, 3))[:, 1], 6, math.sqrt(4.2), 0, 20
    yield "triangular", jax.random.triangular(key, 0.0, 1.0, 4.0, n), 5 / 3, math.sqrt(13 / 18), 0, 4
    yield "wald", jax.random.wald(key, 2.0, n), 2, math.sqrt(8), 0, math.inf
    yield "f", jax.random.f(key, 5.0, 20.0, n), 20 / 18, math.sqrt(2 * 400 * 23 / (5 * 324 * 16)), 0, math.inf
    yield "generalized normal", jax.random.generalized_normal(key, 2.0, n), 0, math.sqrt(0.5), -math.inf, math.inf
    yield "ball, how far from its centre", jnp.linalg.norm(jax.random.ball(key, 3, shape=n), axis=-1), 3 / 4, math.sqrt(3 / 80), 0, 1
    yield "maxwell of both signs", jax.random.double_sided_maxwell(key, 1.0, 2.0, n), 1, math.sqrt(12), -math.inf, math.inf
    yield "geometric", jax.random.geometric(key, 0.2, n), 5, math.sqrt(20), 1, math.inf


def moments():
    key = jax.random.key(SEED)
    for name, drawn, mean, deviation, least, most in distributions(key):
        drawn = np.asarray(drawn, float)
        same(f"{name}, its mean", abs(drawn.mean() - mean) < 6 * deviation / math.sqrt(drawn.size), True)
        tails = ((drawn - drawn.mean()) ** 4).mean() / drawn.var() ** 2  # six deviations of a deviation
        same(f"{name}, its deviation", abs(drawn.std() / deviation - 1) < 0.01 + 6 * math.sqrt((tails - 1) / (4 * drawn.size)), True)
        same(f"{name}, its limits", bool((drawn >= least).all() and (drawn <= most).all() and np.isfinite(drawn).all()), True)
    sums = jax.random.dirichlet(key, jnp.array([0.5, 1.0, 4.0]), (3000,))
    close("dirichlet adds up", sums.sum(-1), np.ones(3000), 1e-5)
    close("dirichlet, its means", sums.mean(0), np.array([0.5, 1, 4]) / 5.5, 0.03)
    a = jnp.array([[0.2, 1.0, 3.0], [5.0, 20.0, 0.9]])
    close("gamma and loggamma", jax.random.loggamma(key, a), np.log(np.asarray(jax.random.gamma(key, a))), 1e-4)
    close("under jit", jax.jit(jax.random.gamma)(key, a), jax.random.gamma(key, a), 1e-5)
    close("under vmap", jax.vmap(lambda key: jax.random.gamma(key, 2.0, (3,)))(jax.random.split(key, 40))[7], jax.random.gamma(jax.random.split(key, 40)[7], 2.0, (3,)), 1e-5)
    same("shapes and types", [(x.shape, str(x.dtype)) for x in (jax.random.gamma(key, jnp.ones((2, 0))), jax.random.poisson(key, jnp.ones((2, 3))), jax.random.beta(key, 1.0, 2.0))],
         [((2, 0), "float32"), ((2, 3), "int32"), ((), "float32")])
    same("poisson of 0 and what is no number", [int(x) for x in jax.random.poisson(key, jnp.array([0.0, 0.0, 12.0]))[:2]], [0, 0])


def times():
    """Pages say by the numbers that they printed whether JAX drew them before 0.5."""
    source = "key = random.key(0)\nprint(random.normal(key, (5, 3)))"
    for name, printed, expected in (
            ("before", "[[ 0.08482574  1.9097648   0.29561743]\n [ 1.120948    0.33432344 -0.82606775]\n [ 0.6481277  -1.0353061  -0.7824839 ]\n"
                       " [-0.4539462   0.6297971   0.81524646]\n [-0.32787678 -1.1234448  -1.6607416 ]]", True),
            ("a number", "Array(-0.20584226, dtype=float32)", True), ("today's number", "1.6226422", False), ("of no key", "[0.1234567 0.7654321]", False),
            ("today", f"[{jax.random.normal(jax.random.key(0), (2,))[0]} {jax.random.normal(jax.random.key(0), (2,))[1]}]", False)):
        same(f"time: {name}", older_random.is_older([{"source": source}, {"source": "", "printed": printed}]), expected)
    same("its own numbers stay", float(jax.random.normal(jax.random.key(0), (2,))[0]) == float(jax.random.normal(jax.random.key(0))), True)


keys()
arrays_of_keys()
widths()
many_keys()
moments()
times()
print(wrong, "of", compared, "differ")
