# SPDX-License-Identifier: GPL-3.0-or-later
"""Dicts that nothing changes. Source: google/flax, flax/core/frozen_dict.py."""
from collections.abc import Mapping

from jax import tree_util


def _plain(part):
    """Nested dicts of dicts and frozen dicts, as dicts of their own."""
    return {name: _plain(value) for name, value in part.items()} if isinstance(part, (dict, FrozenDict)) else part


def _text(part, depth):
    if not isinstance(part, (dict, FrozenDict)):
        return repr(part)
    inner = "".join(f"{' ' * (4 * depth + 4)}{name}: {_text(value, depth + 1)},\n" for name, value in part.items())
    return f"{{\n{inner}{' ' * (4 * depth)}}}"


class FrozenDict(Mapping):
    __slots__ = ("_dict", "_hash")

    def __init__(self, *args, **kwargs):
        self._dict = _plain(dict(*args, **kwargs))
        self._hash = None

    def __getitem__(self, name):
        value = self._dict[name]
        return FrozenDict(value) if isinstance(value, dict) else value

    def __setitem__(self, name, value):
        raise ValueError("FrozenDict is immutable.")

    def __contains__(self, name):
        return name in self._dict

    def __iter__(self):
        return iter(self._dict)

    def __len__(self):
        return len(self._dict)

    def __repr__(self):
        return f"FrozenDict({_text(self._dict, 0)})"

    def __reduce__(self):
        return FrozenDict, (self.unfreeze(),)

    def __hash__(self):
        if self._hash is None:
            self._hash = hash(frozenset(self.items()))
        return self._hash

    def __eq__(self, other):
        return isinstance(other, FrozenDict) and self._dict == other._dict

    def pretty_repr(self, num_spaces=4):
        return repr(self)

    def items(self):
        return [(name, self[name]) for name in self._dict]

    def copy(self, add_or_replace=None):
        return FrozenDict({**self._dict, **_plain(dict(add_or_replace or {}))})

    def pop(self, key):
        """A dict without the key, and what it had."""
        rest = dict(self._dict)
        value = rest.pop(key)
        return FrozenDict(rest), FrozenDict(value) if isinstance(value, dict) else value

    def unfreeze(self):
        return _plain(self._dict)


tree_util.register_pytree_with_keys(
    FrozenDict, lambda node: ([(tree_util.DictKey(name), node._dict[name]) for name in sorted(node._dict)], tuple(sorted(node._dict))),
    lambda names, values: FrozenDict(zip(names, values)))


def freeze(xs):
    return FrozenDict(xs)


def unfreeze(x):
    return _plain(x)


def copy(x, add_or_replace=None):
    if isinstance(x, FrozenDict):
        return x.copy(add_or_replace)
    if isinstance(x, dict):
        return {**_plain(x), **(add_or_replace or {})}
    raise TypeError(f"Expected FrozenDict or dict, got {type(x)}")


def pop(x, key):
    if isinstance(x, FrozenDict):
        return x.pop(key)
    if isinstance(x, dict):
        rest = _plain(x)
        return rest, rest.pop(key)
    raise TypeError(f"Expected FrozenDict or dict, got {type(x)}")


def pretty_repr(x, num_spaces=4):
    return _text(x, 0) if isinstance(x, dict) else repr(x)
