# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.nnx.filterlib: what is meant of an object, as predicates of (path, value). Source of the texts: google/flax, flax/nnx/filterlib.py."""
import dataclasses

from ._graph import Variable, VariableState


@dataclasses.dataclass(frozen=True)
class OfType:
    type: type

    def __call__(self, path, x):
        return isinstance(x, self.type) or hasattr(x, "type") and isinstance(x.type, type) and issubclass(x.type, self.type)

    def __repr__(self):
        return f"OfType({self.type!r})"


@dataclasses.dataclass(frozen=True)
class WithTag:
    tag: str

    def __call__(self, path, x):
        return isinstance(x, (Variable, VariableState)) and x._metadata.get("tag") == self.tag or getattr(x, "tag", None) == self.tag

    def __repr__(self):
        return f"WithTag({self.tag!r})"


@dataclasses.dataclass(frozen=True)
class PathContains:
    key: object
    exact: bool = True

    def __call__(self, path, x):
        return self.key in path if self.exact else any(str(self.key) in str(part) for part in path)


@dataclasses.dataclass(frozen=True)
class PathIn:
    paths: tuple

    def __init__(self, *paths):
        object.__setattr__(self, "paths", paths)

    def __call__(self, path, x):
        return tuple(path) in self.paths


class _Of:
    def __init__(self, *filters):
        self.predicates = tuple(to_predicate(one) for one in filters)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(repr, self.predicates))})"

    def __eq__(self, other):
        return type(self) is type(other) and self.predicates == other.predicates

    def __hash__(self):
        return hash((type(self), self.predicates))


class Any(_Of):
    def __call__(self, path, x):
        return any(predicate(path, x) for predicate in self.predicates)


class All(_Of):
    def __call__(self, path, x):
        return all(predicate(path, x) for predicate in self.predicates)


class Not:
    def __init__(self, chosen):
        self.predicate = to_predicate(chosen)

    def __call__(self, path, x):
        return not self.predicate(path, x)

    def __repr__(self):
        return f"Not({self.predicate!r})"


class Everything:
    def __call__(self, path, x):
        return True

    def __repr__(self):
        return "Everything()"

    def __eq__(self, other):
        return isinstance(other, Everything)

    __hash__ = object.__hash__


class Nothing(Everything):
    def __call__(self, path, x):
        return False

    def __repr__(self):
        return "Nothing()"


def to_predicate(chosen):
    if isinstance(chosen, str):
        return WithTag(chosen)
    if isinstance(chosen, type):
        return OfType(chosen)
    if chosen is ... or chosen is True:
        return Everything()
    if chosen is None or chosen is False:
        return Nothing()
    if isinstance(chosen, (list, tuple)):
        return Any(*chosen)
    if callable(chosen):
        return chosen
    raise TypeError(f"Invalid collection filter: {chosen!r}. ")
