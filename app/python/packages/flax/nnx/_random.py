# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams of random keys: the n-th key of a stream is its key with n folded in. Source: google/flax, flax/nnx/rnglib.py."""
import jax
import numpy as np
from jax._src.arrays import ConcreteArray, from_numpy

from ._graph import Object, Variable


class RngState(Variable):
    pass


class RngCount(RngState):
    pass


class RngKey(RngState):
    pass


class RngStream(Object):
    def __init__(self, tag, key):
        self.tag = tag
        self.key = RngKey(key, tag=tag)
        self.count = RngCount(from_numpy(np.zeros(key.shape, np.uint32)), tag=tag)

    def __call__(self):
        count = self.count.value
        key = jax.random.fold_in(self.key.value, count)
        known = isinstance(count, ConcreteArray)  # stays known inside of a traced function
        self.count.value = from_numpy(np.uint32(int(count) + 1)) if known else count + np.uint32(1)
        return key

    def fork(self, *, split=None):
        return RngStream(self.tag, _fork(self, split))


def _fork(stream, split):
    key = stream()
    return key if split is None else jax.random.split(key, split)


def _drawing(name):
    """A function of jax.random, or an initializer, with the stream's next key."""
    def draw(self, *args, **kwargs):
        if name in _DRAWS:
            return getattr(jax.random, name)(self(), *args, **kwargs)
        initializer = getattr(jax.nn.initializers, name)(*args, **kwargs)
        return lambda *given, **keywords: initializer(self(), *given, **keywords)
    draw.__name__ = name
    return draw


_DRAWS = ("bernoulli", "bits", "categorical", "choice", "exponential", "gumbel", "normal", "permutation", "randint", "truncated_normal",
          "uniform")


class Rngs(Object):
    """Streams by name; a name that was not given is drawn from `default`."""

    def __init__(self, default=None, **streams):
        if default is not None:
            streams = {"default": default, **streams}
        for name, seed in streams.items():
            key = seed if isinstance(seed, jax.random.KeyArray) else jax.random.key(seed)
            self.__dict__[name] = RngStream(name, key)

    def __getattr__(self, name):
        if name.startswith("__") or "default" not in self.__dict__:
            raise AttributeError(f"No RngStream named '{name}' found in Rngs.")
        return self.__dict__["default"]

    def __getitem__(self, name):
        return getattr(self, name)

    def __call__(self):
        return self.default()

    def __contains__(self, name):
        return name in self.__dict__

    def fork(self, *, split=None):
        """Streams of their own, or many for each, along a leading dimension. `split` may say how many by name."""
        many = split if isinstance(split, dict) else dict.fromkeys(self.__dict__, split)
        return Rngs(**{name: _fork(stream, many.get(name, many.get(...))) for name, stream in self.__dict__.items()})


for _name in _DRAWS + tuple(name for name in dir(jax.nn.initializers) if name.endswith(("_normal", "_uniform")) and name not in _DRAWS):
    setattr(RngStream, _name, _drawing(_name))
    setattr(Rngs, _name, _drawing(_name))
