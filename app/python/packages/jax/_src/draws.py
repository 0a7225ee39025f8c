# SPDX-License-Identifier: GPL-3.0-or-later
"""Distributions that are drawn by trying again. Source of the steps, the constants and the order of keys: jax-ml/jax, jax/_src/random."""
import functools
import math

import numpy as np

from . import dtypes, ops, random_
from .arrays import asarray, astype
from .control import scan, while_loop


def _shaped(name, shape, dtype, *parameters):
    """The parameters as floats of the result's shape, and that."""
    engine = dtypes.named(dtype) if dtype is not None else dtypes.default("f32")
    if engine != "f32":
        raise NotImplementedError(f"jax.random.{name} of {dtypes.shown(engine).name}")
    parameters = [astype(asarray(one), engine) for one in parameters]
    own = np.broadcast_shapes(*(one.shape for one in parameters))
    shape = own if shape is None else tuple(ops._shape(shape))
    if np.broadcast_shapes(shape, own) != shape:
        raise ValueError(f"{name} parameters must have shapes broadcast-compatible with the requested shape, got {own} and {shape}")
    return [ops.broadcast_to(one, shape) for one in parameters], shape


def _gamma(key, a, shape, is_log):
    """Marsaglia and Tsang's way; each element has a key of its own."""
    size = math.prod(shape)
    if not size:
        return ops.full(shape, 0, "f32")
    a = ops.reshape(a, (size,))
    keys, boosts = random_.split_each(random_._data(random_.split(key, size)))
    is_large = ops.greater_equal(a, 1.0)
    d = ops.subtract(ops.where(is_large, a, ops.add(a, 1.0)), np.float32(1 / 3))
    c = ops.divide(np.float32(1 / 3), ops.sqrt(d))
    ones = ops.full((size,), 1, "f32")

    def is_refused(x, v, u):
        outside = ops.greater_equal(u, ops.subtract(1.0, ops.multiply(0.0331, ops.multiply(x, x))))
        above = ops.greater_equal(ops.log(u), ops.add(ops.multiply(x, 0.5), ops.multiply(d, ops.add(ops.subtract(1.0, v), ops.log(v)))))
        return ops.logical_and(outside, above)

    def positive(keys):
        """Normal numbers until 1 + c x is positive."""
        def turn(carry):
            keys, x, v = carry
            more = ops.less_equal(v, 0.0)
            after, subkeys = random_.split_each(keys)
            drawn = random_.normal_of_each(subkeys)
            pick = lambda new, old: ops.where(more if new.ndim == 1 else ops.expand_dims(more, 1), new, old)
            return pick(after, keys), pick(drawn, x), pick(ops.add(1.0, ops.multiply(drawn, c)), v)
        return while_loop(lambda carry: ops.reduce("or", ops.less_equal(carry[2], 0.0)), turn, (keys, ops.zeros_like(ones), ops.negative(ones)))[1:]

    def turn(carry):
        keys, x, v, u = carry
        more = is_refused(x, v, u)
        after, of_x, of_u = random_.split_each(keys, 3)
        drawn, cube = positive(of_x)
        pick = lambda new, old: ops.where(more if new.ndim == 1 else ops.expand_dims(more, 1), new, old)
        return (pick(after, keys), pick(ops.multiply(drawn, drawn), x), pick(ops.multiply(ops.multiply(cube, cube), cube), v),
                pick(random_.uniform_of_each(of_u), u))
    start = (keys, ops.zeros_like(ones), ones, ops.add(ones, ones))
    v = while_loop(lambda carry: ops.reduce("or", is_refused(*carry[1:])), turn, start)[2]
    drawn = random_.uniform_of_each(boosts)
    if is_log:
        logs = ops.log1p(ops.negative(drawn))
        boost = ops.where(ops.logical_or(is_large, ops.equal(logs, 0.0)), 0.0, ops.multiply(logs, ops.divide(1.0, a)))
        return ops.reshape(ops.add(ops.add(ops.log(d), ops.log(v)), boost), shape)
    boost = ops.where(is_large, 1.0, ops.power(ops.subtract(1.0, drawn), ops.divide(1.0, a)))
    return ops.reshape(ops.multiply(ops.multiply(d, v), boost), shape)


def gamma(key, a, shape=None, dtype=None):
    (a,), shape = _shaped("gamma", shape, dtype, a)
    return _gamma(key, a, shape, False)


def loggamma(key, a, shape=None, dtype=None):
    (a,), shape = _shaped("gamma", shape, dtype, a)
    return _gamma(key, a, shape, True)


def beta(key, a, b, shape=None, dtype=None):
    (a, b), shape = _shaped("beta", shape, dtype, a, b)
    logs = [_gamma(own, one, shape, True) for own, one in zip(random_.split(key), (a, b))]
    most = ops.maximum(*logs)
    first, second = (ops.exp(ops.subtract(one, most)) for one in logs)
    return ops.divide(first, ops.add(first, second))


def dirichlet(key, alpha, shape=None, dtype=None):
    from ..nn import softmax
    alpha = asarray(alpha)
    if alpha.ndim < 1:
        raise ValueError(f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {alpha.ndim}")
    front = alpha.shape[:-1] if shape is None else tuple(ops._shape(shape))
    return softmax(loggamma(key, alpha, front + alpha.shape[-1:], dtype), -1)


def chisquare(key, df, shape=None, dtype=None):
    (df,), shape = _shaped("chisquare", shape, dtype, df)
    return ops.multiply(ops.exp(_gamma(key, ops.divide(df, 2.0), shape, True)), 2.0)


def t(key, df, shape=(), dtype=None):
    (df,), shape = _shaped("t", shape, dtype, df)
    of_normal, of_gamma = random_.split(key)
    half = ops.divide(df, 2.0)
    return ops.multiply(random_.normal(of_normal, shape), ops.sqrt(ops.divide(half, _gamma(of_gamma, half, shape, False))))


def geometric(key, p, shape=None, dtype=None):
    (p,), shape = _shaped("geometric", shape, None, p)
    u = random_.uniform(key, shape)
    u = ops.where(ops.equal(u, 0.0), 1.0, u)
    return astype(ops.add(ops.floor(ops.divide(ops.log(u), ops.log1p(ops.negative(p)))), 1.0), dtypes.named(dtype or "int32"))


def poisson(key, lam, shape=None, dtype=None):
    (lam,), shape = _shaped("poisson", shape, None, lam)
    is_few = ops.logical_or(ops.not_equal(lam, lam), ops.less(lam, 10.0))
    few, many = ops.where(is_few, lam, 0.0), ops.where(is_few, 1e5, lam)

    def one_more(carry):  # Knuth: factors until their product is below exp(-lam)
        count, key, logs = carry
        key, subkey = random_.split(key)
        return ops.where(ops.greater(logs, ops.negative(few)), ops.add(count, 1), count), key, ops.add(logs, ops.log(random_.uniform(subkey, shape)))
    start = (ops.full(shape, 0, "i32"), key, ops.full(shape, 0, "f32"))
    counted = ops.subtract(while_loop(lambda carry: ops.reduce("or", ops.greater(carry[2], ops.negative(few))), one_more, start)[0], 1)

    log_rate = ops.log(many)
    b = ops.add(0.931, ops.multiply(2.53, ops.sqrt(many)))
    a = ops.add(-0.059, ops.multiply(0.02483, b))
    inverse = ops.add(1.1239, ops.divide(1.1328, ops.subtract(b, 3.4)))
    most = ops.subtract(0.9277, ops.divide(3.6224, ops.subtract(b, 2)))

    def again(carry):  # Hormann: transformed rejection
        found, accepted, key = carry
        key, of_u, of_v = random_.split(key, 3)
        u, v = ops.subtract(random_.uniform(of_u, shape), 0.5), random_.uniform(of_v, shape)
        shifted = ops.subtract(0.5, ops.absolute(u))
        k = ops.floor(ops.add(ops.add(ops.multiply(ops.add(ops.divide(ops.multiply(2.0, a), shifted), b), u), many), 0.43))
        s = ops.log(ops.divide(ops.multiply(v, inverse), ops.add(ops.divide(a, ops.multiply(shifted, shifted)), b)))
        right = ops.subtract(ops.subtract(ops.multiply(k, log_rate), many), _log_factorial(k))
        at_once = ops.logical_and(ops.greater_equal(shifted, 0.07), ops.less_equal(v, most))
        refused = ops.logical_or(ops.less(k, 0.0), ops.logical_and(ops.less(shifted, 0.013), ops.greater(v, shifted)))
        taken = ops.logical_or(at_once, ops.logical_and(ops.logical_not(refused), ops.less_equal(s, right)))
        return ops.where(taken, k, found), ops.logical_or(accepted, taken), key
    start = (ops.full(shape, -1, "f32"), ops.full(shape, False, "i1"), key)
    found = while_loop(lambda carry: ops.reduce("or", ops.logical_not(carry[1])), again, start)[0]
    made = ops.where(is_few, counted, astype(found, "i32"))
    return astype(ops.where(ops.equal(lam, 0.0), 0, made), dtypes.named(dtype or "int32"))


def _log_factorial(k):
    from ..lax import lgamma
    return lgamma(ops.add(k, 1.0))


def f(key, dfnum, dfden, shape=None, dtype=None):
    (dfnum, dfden), shape = _shaped("f", shape, dtype, dfnum, dfden)
    of_den, of_num = random_.split(key)
    return chisquare(of_num, dfnum, shape) / dfnum / (chisquare(of_den, dfden, shape) / dfden)


def generalized_normal(key, p, shape=(), dtype=None):
    of_size, of_sign = random_.split(key)
    return random_.rademacher(of_sign, shape, dtype or "float32") * gamma(of_size, 1 / p, shape, dtype) ** (1 / p)


def ball(key, d, p=2, shape=(), dtype=None):
    """Points of the unit ball of the p-norm."""
    shape = tuple(ops._shape(shape))
    first, second = random_.split(key)
    point, more = generalized_normal(first, p, (*shape, d), dtype), random_.exponential(second, shape, dtype)
    return point / ops.expand_dims((ops.sum_(ops.absolute(point) ** p, -1) + more) ** (1 / p), -1)


def double_sided_maxwell(key, loc, scale, shape=(), dtype=None):
    own = np.broadcast_shapes(np.shape(loc), np.shape(scale))
    shape = (tuple(ops._shape(shape)) or own) + own
    of_size, of_sign = random_.split(key)
    return random_.rademacher(of_sign, shape, dtype or "float32") * random_.maxwell(of_size, shape, dtype) * scale + loc


def triangular(key, left, mode, right, shape=None, dtype=None):
    (left, mode, right), shape = _shaped("triangular", shape, dtype, left, mode, right)
    u = random_.uniform(key, shape)
    rising, falling = left + ops.sqrt(u * (right - left) * (mode - left)), right - ops.sqrt((1 - u) * (right - left) * (right - mode))
    return ops.where(u < (mode - left) / (right - left), rising, falling)


def wald(key, mean, shape=None, dtype=None):
    (mean,), shape = _shaped("wald", shape, dtype, mean)
    first, second = random_.split(key)
    y, z = ops.square(random_.normal(first, shape)), random_.uniform(second, shape)
    squared = mean * mean
    x = mean + squared * y / 2 - mean / 2 * ops.sqrt(4 * mean * y + squared * (y * y))
    return ops.where(z <= mean / (mean + x), x, squared / x)


def binomial(key, n, p, shape=None, dtype=None):
    (count, prob), shape = _shaped("binomial", shape, dtype, n, p)
    is_small = prob < 0.5
    q = ops.where(is_small, prob, 1.0 - prob)
    is_no_count, is_infinite, is_no_number = ops.logical_not(count >= 0), ops.isinf(count), ops.not_equal(q, q)
    is_wrong = ops.logical_or(is_no_count, ops.logical_or(is_no_number, q < 0.0))
    q = ops.where(ops.logical_or(is_no_number, q < 0.0), np.float32(0.01), q)
    is_few = ops.logical_or(is_no_count, count * q <= 10.0)
    count = ops.floor(count)
    many = _binomial_by_rejection(key, ops.where(is_few, np.float32(1e4), count), ops.where(is_few, np.float32(0.5), q), shape)
    made = ops.where(is_few, _binomial_by_gaps(key, ops.where(is_few, count, np.float32(0)), q, shape), many)
    made = ops.where(is_wrong, np.float32(np.nan), made)
    made = ops.where(ops.logical_and(is_infinite, ops.logical_not(is_wrong)), np.float32(np.inf), made)
    is_final = functools.reduce(ops.logical_or, (is_small, is_no_count, is_no_number, is_infinite))
    return ops.where(is_final, made, count - made)


def _binomial_by_gaps(key, count, prob, shape):
    """Counts how many geometric numbers fit into the count."""
    logs = ops.log1p(ops.negative(prob))

    def turn(carry):
        number, total, key = carry
        subkey, key = random_.split(key)
        return ops.where(total <= count, number + 1, number), total + ops.ceil(ops.log(random_.uniform(subkey, shape)) / logs), key
    zeros = ops.full(shape, 0, "f32")
    return while_loop(lambda carry: ops.reduce("or", carry[1] <= count), turn, (zeros, zeros, key))[0] - 1


def _binomial_by_rejection(key, count, prob, shape):
    """Hormann's transformed rejection."""
    deviation = ops.sqrt(count * prob * (1 - prob))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    c, at_once, ratio = count * prob + 0.5, 0.92 - 4.2 / b, prob / (1 - prob)
    alpha, m = (2.83 + 5.1 / b) * deviation, ops.floor((count + 1) * prob)

    def turn(carry):
        found, accepted, key = carry
        key, of_u, of_v = random_.split(key, 3)
        u, v = random_.uniform(of_u, shape) - 0.5, random_.uniform(of_v, shape)
        us = 0.5 - ops.absolute(u)
        is_inside = ops.logical_and(us >= 0.07, v <= at_once)
        k = ops.floor((2 * a / us + b) * u + c)
        v = ops.log(v * alpha / (a / (us * us) + b))
        most = ((m + 0.5) * ops.log((m + 1) / (ratio * (count - m + 1))) + (count + 1) * ops.log((count - m + 1) / (count - k + 1))
                + (k + 0.5) * ops.log(ratio * (count - k + 1) / (k + 1)) + _stirling_rest(m) + _stirling_rest(count - m) - _stirling_rest(k)
                - _stirling_rest(count - k))
        is_possible = ops.logical_and(k >= 0, k <= count)
        taken = ops.logical_or(is_inside, ops.logical_and(is_possible, v <= most))
        return ops.where(taken, k, found), ops.logical_or(accepted, taken), key
    start = (ops.full(shape, -1, "f32"), ops.full(shape, False, "i1"), key)
    return while_loop(lambda carry: ops.reduce("or", ops.logical_not(carry[1])), turn, start)[0]


def _stirling_rest(k):
    """What Stirling's formula leaves of the logarithm of a factorial."""
    known = np.array([math.lgamma(n + 1) - (n + 0.5) * math.log(n + 1) + (n + 1) - 0.5 * math.log(2 * math.pi) for n in range(10)], np.float32)
    few = ops.clip(k, 0.0, 9.0)
    squared = (few + 1) * (few + 1)
    later = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / squared) / squared) / (few + 1)
    return ops.where(k <= 9, ops.take(asarray(known), astype(ops.floor(few), "i32")), later)


def multinomial(key, n, p, *, shape=None, dtype=None, unroll=1):
    """How often each of the outcomes comes: one binomial number after the other, of what is left."""
    n, p = (astype(asarray(one), "f32") for one in (n, p))
    shape = p.shape if shape is None else tuple(ops._shape(shape))
    n, p = ops.broadcast_to(n, shape[:-1]), ops.moveaxis(ops.broadcast_to(p, shape), -1, 0)
    left = ops.flip(ops.cumulative(ops.flip(p, 0), 0), 0)
    ratios = ops.clip(p / ops.where(ops.equal(left, 0), np.float32(1), left), 0, 1)

    def turn(rest, step):
        ratio, key = step
        count = binomial(key, rest, ratio)
        return rest - count, count
    counts = ops.moveaxis(scan(turn, n, (ratios, random_.split(key, p.shape[0])))[1], 0, -1)
    return counts if dtype is None else astype(counts, dtypes.named(dtype))
