# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that are a sequence or a mapping of data and of what is static. Source: google/flax, flax/nnx/helpers.py."""
import collections.abc
import inspect

from ._layers import Module
from ._pytree import data, static


class List(Module, collections.abc.MutableSequence):
    """A sequence of data and of what is static."""
    _has_numbers = True

    def __init__(self, values=(), /):
        self._length = 0
        for value in () if values is None else values:
            self.append(value)

    def __len__(self):
        return self._length

    def _at(self, index):
        index += self._length if index < 0 else 0
        if not 0 <= index < self._length:
            raise IndexError("Index out of bounds")
        return index

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[at] for at in range(self._length)[index]]
        return getattr(self, str(self._at(index)))

    def __setitem__(self, index, value):
        if not isinstance(index, slice):
            return setattr(self, str(self._at(index)), value)
        places, values = range(self._length)[index], list(value)
        if len(places) != len(values):
            raise ValueError("Length mismatch")
        for at, one in zip(places, values):
            self[at] = one

    def __delitem__(self, index):
        gone = {*range(self._length)[index]} if isinstance(index, slice) else {self._at(index)}
        self._become([part for at, part in enumerate(self._annotated()) if at not in gone])

    def insert(self, index, value):
        parts = self._annotated()
        parts.insert(index, value)
        self._become(parts)

    def append(self, value):
        setattr(self, str(self._length), value)
        self._length += 1

    def _annotated(self):
        return [(data if self._kinds.get(str(at)) else static)(part) for at, part in enumerate(self)]

    def _become(self, parts):
        for at in range(self._length):
            delattr(self, str(at))
        self._length = 0
        for part in parts:
            self.append(part)


class Dict(Module, collections.abc.MutableMapping):
    """Data and what is static by names, which are attributes too."""

    def __init__(self, *args, **kwargs):
        for name, value in dict(*args, **kwargs).items():
            setattr(self, name, value)

    def __getitem__(self, name):
        if name not in vars(self):
            raise KeyError(name)
        return vars(self)[name]

    def __setitem__(self, name, value):
        setattr(self, name, value)

    def __delitem__(self, name):
        if name not in vars(self):
            raise KeyError(name)
        delattr(self, name)

    def __iter__(self):
        return iter(vars(self))

    def __len__(self):
        return len(vars(self))

    def __hash__(self):
        return id(self)


class Sequential(Module):
    """Functions one after the other; a tuple is handed on as arguments, a dict as keywords."""

    def __init__(self, *layers):
        self.layers = List(layers)

    def __call__(self, *args, rngs=None, **kwargs):
        if not self.layers:
            return args[0] if len(args) == 1 else args or kwargs or None
        for number, layer in enumerate(self.layers):
            if not callable(layer):
                raise TypeError(f"Sequence[{number}] is not callable: {layer}")
            if rngs is not None and _takes_rngs(layer):
                kwargs = {**kwargs, "rngs": rngs}
            made = layer(*args, **kwargs)
            args, kwargs = (made, {}) if isinstance(made, tuple) else ((), made) if isinstance(made, dict) else ((made,), {})
        return made


def _takes_rngs(layer):
    parameters = inspect.signature(layer).parameters.values()
    return any(one.name == "rngs" or one.kind is one.VAR_KEYWORD for one in parameters)
