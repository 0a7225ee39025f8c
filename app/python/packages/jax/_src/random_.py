# SPDX-License-Identifier: GPL-3.0-or-later
"""JAX's random numbers: threefry, in the form of the page's age. Keys that are known stay known."""
import math

import _meshwright as core
import numpy as np

from . import dtypes, ops
from .arrays import Array, ConcreteArray, Scope, asarray, astype, bind, from_numpy
from .machine import machine
from .trees import register_pytree_node


class KeyArray:
    """Keys of `jax.random.key`: an array whose elements are keys."""

    def __init__(self, data):
        self._data = data

    shape = property(lambda self: self._data.shape[:-1])
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    dtype = "key<fry>"
    sharding = property(lambda self: self._data.sharding)

    def __getitem__(self, index):
        return KeyArray(self._data[index])

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __repr__(self):
        return f"Array({self.shape}, dtype=key<fry>) overlaying:\n{np.asarray(self._data)}"


register_pytree_node(KeyArray, lambda key: ([key._data], None), lambda _, children: KeyArray(children[0]))


def _data(key):
    return key._data if isinstance(key, KeyArray) else asarray(key)


def _known(key):
    """The two words of a key that is not traced."""
    data = _data(key)
    if isinstance(data, ConcreteArray):
        words = np.asarray(data)
        if words.shape != (2,) or words.dtype != np.uint32:
            raise TypeError(f"JAX encountered invalid PRNG keys: expected uint32 of shape (2,), got {data.dtype}{list(words.shape)}")
        return [int(word) for word in words]
    return None


def _like(key, words):
    return KeyArray(words) if isinstance(key, KeyArray) else words


def PRNGKey(seed, *, impl=None):
    if isinstance(seed, Array) and not isinstance(seed, ConcreteArray):
        low = astype(seed, "ui32")
        return ops.stack([ops.zeros_like(low), low])
    return from_numpy(np.array(core.key_of_seed(int(seed) & 0xFFFFFFFF if int(seed) < 0 else int(seed)), np.uint32))


def key(seed, *, impl=None):
    return KeyArray(PRNGKey(seed))


def key_data(key):
    return _data(key)


def wrap_key_data(data, **_):
    return KeyArray(asarray(data))


def _threefry(data, high, low):
    """Blocks of threefry-2x32 of a key that is traced; counters ui32."""
    rotate = lambda x, by: bind("or", bind("shift_left", x, asarray(by, "ui32")), bind("shift_right_logical", x, asarray(32 - by, "ui32")))
    first, second = data[0], data[1]
    keys = [first, second, bind("xor", bind("xor", first, second), asarray(0x1BD11BDA, "ui32"))]
    x, y = ops.add(high, keys[0]), ops.add(low, keys[1])
    for group in range(5):
        for by in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = ops.add(x, y)
            y = bind("xor", rotate(y, by), x)
        x = ops.add(x, keys[(group + 1) % 3])
        y = ops.add(y, ops.add(keys[(group + 2) % 3], asarray(group + 1, "ui32")))
    return x, y


def split(key, num=2):
    shape = (num,) if isinstance(num, int) else tuple(num)
    count, known = math.prod(shape), _known(key)
    if known is not None:
        words = from_numpy(np.array(core.split_key(known, count, not machine.legacy_random), np.uint32).reshape(shape + (2,)))
    elif machine.legacy_random:
        words = bind("random_bits", _data(key), shape=(2 * count,), partitionable=False).reshape(shape + (2,))
    else:
        low = ops.iota("ui32", (count,))
        words = ops.stack(list(_threefry(_data(key), ops.zeros_like(low), low)), 1).reshape(shape + (2,))
    return _like(key, words)


def fold_in(key, data):
    known = _known(key)
    if known is not None and not (isinstance(data, Array) and not isinstance(data, ConcreteArray)):
        return _like(key, from_numpy(np.array(core.fold_in(known, int(data) & 0xFFFFFFFF), np.uint32)))
    low = astype(asarray(data), "ui32")
    return _like(key, ops.stack(list(_threefry(_data(key), ops.zeros_like(low), low))))


def _draw(op, key, shape, dtype, **attributes):
    engine = dtypes.named(dtype) if dtype is not None else "f32"
    data = _data(key)
    made = bind(op, data, shape=tuple(ops._shape(shape)), partitionable=not machine.legacy_random, **attributes)
    return astype(made, engine)


def bits(key, shape=(), dtype=None):
    return bind("random_bits", _data(key), shape=tuple(ops._shape(shape)), partitionable=not machine.legacy_random)


@ops.placeable
def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0):
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)):
        return _draw("uniform", key, shape, dtype, low=float(minval), high=float(maxval))
    return ops.add(ops.multiply(_draw("uniform", key, shape, dtype, low=0.0, high=1.0), ops.subtract(maxval, minval)), minval)


@ops.placeable
def normal(key, shape=(), dtype=None):
    return _draw("normal", key, shape, dtype)


def truncated_normal(key, lower, upper, shape=None, dtype=None):
    root = np.float32(np.sqrt(2))
    low, high = (np.float32(math.erf(float(np.float32(bound) / root))) for bound in (lower, upper))
    drawn = _draw("uniform", key, shape or (), None, low=float(low), high=float(high))
    made = ops.multiply(float(root), ops.erf_inv(drawn))
    inside = [float(np.nextafter(np.float32(bound), np.float32(to))) for bound, to in ((lower, np.inf), (upper, -np.inf))]
    return astype(ops.clip(made, *inside), dtypes.named(dtype) if dtype is not None else "f32")


def bernoulli(key, p=0.5, shape=None):
    return ops.less(uniform(key, shape if shape is not None else np.shape(p)), p)


def randint(key, shape, minval, maxval, dtype=None):
    """Two words for each number: the remainder of 64 random bits by the span, in 32-bit arithmetic."""
    first, second = split(key)
    high, low = bits(first, shape), bits(second, shape)
    span = int(maxval) - int(minval)
    factor = (2**16 % span) ** 2 % span if span else 0
    rest = lambda x: bind("remainder", x, asarray(span, "ui32"))
    drawn = rest(ops.add(ops.multiply(rest(high), asarray(factor, "ui32")), rest(low)))
    return ops.add(astype(drawn, dtypes.named(dtype) if dtype is not None else "i32"), int(minval))


def permutation(key, x, axis=0, independent=False):
    count = x if isinstance(x, int) else asarray(x).shape[axis]
    order = from_numpy(np.array(core.permutation(_known(key), count, not machine.legacy_random), np.int32))
    return order if isinstance(x, int) else ops.take(x, order, axis)


def exponential(key, shape=(), dtype=None):
    return ops.negative(ops.log1p(ops.negative(uniform(key, shape, dtype))))


def gumbel(key, shape=(), dtype=None):
    drawn = uniform(key, shape, dtype, minval=float(np.finfo(np.float32).tiny), maxval=1.0)
    return ops.negative(ops.log(ops.negative(ops.log(drawn))))


def categorical(key, logits, axis=-1, shape=None):
    logits = asarray(logits)
    return ops.argmax(ops.add(gumbel(key, logits.shape), logits), axis)


def choice(key, a, shape=(), replace=True, p=None, axis=0):
    count = a if isinstance(a, int) else asarray(a).shape[axis]
    chosen = randint(key, shape, 0, count) if replace else permutation(key, count)[:math.prod(ops._shape(shape))].reshape(shape)
    return chosen if isinstance(a, int) else ops.take(a, chosen, axis)
