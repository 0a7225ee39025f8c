# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams of random keys: the n-th key of a stream is its key with n folded in. Source: google/flax, flax/nnx/rnglib.py."""
import functools

import jax
import numpy as np
from jax._src.arrays import ConcreteArray, from_numpy

from ._graph import Variable, copied, matches, walk
from ._pytree import Pytree


class RngState(Variable):
    pass


class RngCount(RngState):
    pass


class RngKey(RngState):
    pass


class RngStream(Pytree):
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

    last = property(lambda self: self.count.value)

    def split(self, k):
        return self.fork(split=k)


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


_DRAWS = ("bernoulli", "bits", "categorical", "cauchy", "choice", "exponential", "gumbel", "laplace", "logistic", "lognormal", "maxwell", "multivariate_normal",
          "normal", "orthogonal", "pareto", "permutation", "rademacher", "randint", "rayleigh", "truncated_normal", "uniform", "weibull_min")


class Rngs(Pytree):
    """Streams by name; a name that was not given is drawn from `default`."""

    def __init__(self, default=None, **streams):
        if isinstance(default, dict):
            default, streams = None, {**default, **streams}
        if default is not None:
            streams = {"default": default, **streams}
        for name, seed in streams.items():
            if isinstance(seed, RngStream):
                seed = seed.key.value
            key = seed if isinstance(seed, jax.random.KeyArray) else jax.random.wrap_key_data(seed) if getattr(seed, "shape", ()) else jax.random.key(seed)
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

    def __iter__(self):
        return iter(self.__dict__)

    def __len__(self):
        return len(self.__dict__)

    def items(self):
        return self.__dict__.items()

    def split(self, k):
        return self.fork(split=k)

    def fork(self, *, split=None):
        """Streams of their own, or many for each, along a leading dimension. `split` may say how many by name."""
        many = split if isinstance(split, dict) else {...: split}
        return Rngs(**{name: _fork(stream, next((count for chosen, count in many.items() if _means(chosen, stream)), None))
                       for name, stream in self.__dict__.items()})


def _means(chosen, stream):
    return matches(chosen, (), stream.key) or isinstance(chosen, str) and stream.tag == chosen


def _streams_of(node, only=...):
    return [(path, stream) for path, stream in walk(node) if isinstance(stream, RngStream) and _means(only, stream)]


def reseed(node, /, *, policy="scalars_only", **stream_keys):
    """Gives the streams of these names new keys, and counts them from the start."""
    rngs = Rngs(**stream_keys)
    for path, stream in _streams_of(node):
        if stream.tag not in stream_keys:
            continue
        key, shape = rngs[stream.tag](), stream.key.shape
        if shape and policy == "scalars_only":
            raise ValueError(f"Cannot reseed stream at path {path!r} because it has a non-scalar key, found key with shape {shape}. If all your stream keys should "
                             "be reseeded, set policy='match_shape'.")
        if shape:
            key = jax.random.split(key, shape) if not callable(policy) else policy(path, key, shape)
        stream.key.value, stream.count.value = key, from_numpy(np.zeros(shape, np.uint32))


def _while_it_runs(change):
    """A decorator: `change` takes the arguments of the function and gives what `restore_rngs` takes when it ends."""
    def decorator(function):
        @functools.wraps(function)
        def called(*args, **kwargs):
            backups = change((args, kwargs))
            try:
                return function(*args, **kwargs)
            finally:
                restore_rngs(backups)
        return called
    return decorator


def split_rngs(node=None, /, *, splits, only=..., squeeze=False, graph=None):
    """Splits the keys of streams, in place: what comes back restores them. Without a node, for the arguments of a function while it runs."""
    if node is None:
        return _while_it_runs(lambda arguments: split_rngs(arguments, splits=splits, only=only, squeeze=squeeze))
    backups = []
    for _, stream in _streams_of(node, only):
        key = stream()
        backups.append((stream, stream.key.value, stream.count.value))
        keys = jax.random.split(key, splits)
        keys = keys[0] if squeeze else keys
        stream.key.value, stream.count.value = keys, from_numpy(np.zeros(keys.shape, np.uint32))
    return backups


def fork_rngs(node=None, /, *, split=None, graph=None):
    if node is None:
        return _while_it_runs(lambda arguments: fork_rngs(arguments, split=split))
    many = split if isinstance(split, dict) else {...: split}
    backups = []
    for _, stream in _streams_of(node):
        count = next((number for chosen, number in many.items() if _means(chosen, stream)), None)
        key = _fork(stream, count)
        backups.append((stream, stream.key.value, stream.count.value))
        stream.key.value, stream.count.value = key, from_numpy(np.zeros(key.shape, np.uint32))
    return backups


def restore_rngs(backups):
    for stream, key, count in backups:
        stream.key.value, stream.count.value = key, count


def with_rngs(node=None, /, *, split=None, fork=None, broadcast=None, only=..., graph=None, graph_updates=None):
    """A copy whose streams are split, forked or repeated; without a node, for the arguments of a function."""
    if node is None:
        def decorator(function):
            @functools.wraps(function)
            def called(*args, **kwargs):
                args, kwargs = with_rngs((args, kwargs), split=split, fork=fork, broadcast=broadcast, only=only)
                return function(*args, **kwargs)
            return called
        return decorator
    by_filter = lambda said: said if isinstance(said, dict) else {} if said is None else {...: said}
    keys = {}
    for _, stream in _streams_of(node, only):
        shape = next((shape for chosen, shape in by_filter(split).items() if _means(chosen, stream)), None)
        repeats = next((shape for chosen, shape in by_filter(broadcast).items() if _means(chosen, stream)), None)
        if shape is not None:
            key = jax.random.split(stream(), shape)
            keys[id(stream)] = key, from_numpy(np.zeros(key.shape, np.uint32))
        elif repeats is not None:
            repeats = (repeats,) if isinstance(repeats, int) else tuple(repeats)
            words = jax.random.key_data(stream.key.value)
            keys[id(stream)] = (jax.random.wrap_key_data(jax.numpy.broadcast_to(words, repeats + words.shape)),
                                jax.numpy.broadcast_to(stream.count.value, repeats + stream.count.value.shape))
        elif fork is not None and _means(fork, stream):
            keys[id(stream)] = stream(), from_numpy(np.zeros(stream.key.shape, np.uint32))
    own = {id(stream): stream for _, stream in _streams_of(node)}
    kept = {id(variable): number for number in own for variable in (own[number].key, own[number].count)}

    def of_variable(variable):
        number = kept.get(id(variable))
        if number in keys:
            return variable.replace(keys[number][0 if isinstance(variable, RngKey) else 1])
        return variable.replace(variable.value) if number is not None else variable
    return copied(node, {}, of_variable)


for _name in _DRAWS + tuple(name for name in dir(jax.nn.initializers) if name.endswith(("_normal", "_uniform")) and name not in _DRAWS):
    setattr(RngStream, _name, _drawing(_name))
    setattr(Rngs, _name, _drawing(_name))
