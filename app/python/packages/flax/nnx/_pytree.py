# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as trees: which attributes are data and which are static, and what Flax 0.12 refuses. Source of the rules and of the texts' first sentences:
google/flax, flax/nnx/pytreelib.py and helpers.py.

An attribute is data where its first value is: an array, a variable or an object. `data` and `static` say otherwise. Containers of them are static, and refused:
`List` and `Dict` hold data. In a page that names nothing of Flax 0.12, containers that hold data are data, as in its time."""
import abc
import collections.abc
import dataclasses
import typing

import jax
from jax._src.machine import machine
from jax._src.trees import GetAttrKey, SequenceKey, register

from ..errors import TraceContextError
from ._graph import (MISSING, Node, State, Variable, VariableState, _amount, _block, _counted, _depth, _lent, blank, clone, described, is_array, is_graph, is_variable, variables_of)

_data_types = set()


def _field(is_static, value, options):
    if value is not dataclasses.MISSING and options:
        raise TypeError(f"nnx.{'static' if is_static else 'data'}() accepts either a single positional argument or keyword arguments, but not both.")
    metadata = dict(options.pop("metadata", None) or {})
    if "static" in metadata:
        raise ValueError(f"Cannot use 'static' key in metadata argument for nnx.{'static' if is_static else 'data'}.")
    return dataclasses.field(**options, metadata={**metadata, "static": is_static, "nnx_value": value})


def data(value=dataclasses.MISSING, /, **options):
    """Says that an attribute is data. Without a value: a field of a dataclass."""
    return _field(False, value, options)


def static(value=dataclasses.MISSING, /, **options):
    """Says that an attribute is static: part of the form of the tree."""
    return _field(True, value, options)


def dataclass(cls=None, /, **options):
    return dataclasses.dataclass(cls, repr=False, **options)


class _Annotation:
    def __init__(self, name):
        self._name = name

    def __getitem__(self, item):
        return typing.Annotated[item, self._name]


Data, Static = _Annotation("__data__"), _Annotation("__static__")


def register_data_type(cls, /):
    _data_types.add(cls)
    return cls


def is_data(value, /):
    return is_graph(value) or is_array(value) and value is not MISSING or isinstance(value, (State, VariableState)) or type(value) in _data_types


def has_data(value, /):
    """The data among the leaves of a value."""
    return [leaf for leaf in _leaves(value) if is_data(leaf)]


def _leaves(value):
    seen = set()

    def is_end(part):
        if id(part) in seen:
            return True
        seen.add(id(part))
        return is_data(part)
    return jax.tree.leaves(value, is_leaf=is_end)


def _said(value):
    return isinstance(value, dataclasses.Field) and "nnx_value" in value.metadata


def check_pytree(node):
    """Raises ValueError where a static attribute holds data."""
    if not isinstance(node, Pytree):
        raise TypeError(f"Expected a Pytree, got {type(node)}.")
    for name, value in vars(node).items():
        _check(node, name, value, node._kinds.get(name, False))


def _check(node, name, value, may_hold, said=None):
    """`said`: "static" where the value was annotated so, "new" where it is being assigned, nothing where it was there."""
    leaves = _leaves(value)
    tags = {"static" if leaf.metadata["static"] else "data" for leaf in leaves if _said(leaf)}
    if tags:
        raise ValueError(f"Found unexpected tags {tags} on attribute '{type(node).__name__}.{name}'. Values from nnx.data(...) and\nnnx.static(...) should be assigned "
                         f"to nnx.Pytree attributes directly, they should not be inside other structures. Got value of type '{type(value)}' on Pytree of type "
                         f"'{type(node)}'.")
    if may_hold or not any(map(is_data, leaves)):
        return
    if said == "static":
        raise ValueError(f"Found data in value of type '{type(value)}' annotated with nnx.static(...) when setting attribute '{name}' of Pytree type '{type(node)}'.")
    where = (f"Found data on value of type '{type(value)}' assigned to static attribute '{name}' of Pytree type '{type(node)}'." if said else
             f"Found unexpected data on value of type {type(value)} in static attribute '{name}' of Pytree type '{type(node)}'. This is an error starting from Flax "
             "version 0.12.0.")
    raise ValueError(f"{where}\nWrite one of these:\n\n  _.{name} = nnx.data(...)\n  {name}: {type(value).__name__} = nnx.data(), in the class\n"
                     f"  nnx.List(...) or nnx.Dict(...), for a list or a dict\n  class {type(node).__name__}(..., pytree=False)\n")


class _PytreeMeta(abc.ABCMeta):
    def __call__(cls, *args, **kwargs):
        node = cls.__new__(cls, *args, **kwargs)
        node._begin(cls._declared)
        cls._pytree_meta_construct(node, *args, **kwargs)
        if cls._is_pytree:
            kinds = {name: is_data(value) for name, value in vars(node).items() if name not in node._kinds}
            if machine.older_flax:
                kinds.update({name: True for name, value in vars(node).items() if not node._kinds.get(name) and has_data(value)})
            object.__setattr__(node, "_kinds", {**node._kinds, **kinds})
            check_pytree(node)
        return node

    def _pytree_meta_construct(cls, node, *args, **kwargs):
        node.__init__(*args, **kwargs)


def _declared(cls):
    """Which attributes of a class are data, as its annotations and its fields say."""
    kinds = dict(getattr(cls, "_declared", {}))
    for name, annotation in vars(cls).get("__annotations__", {}).items():
        said = {"__data__": True, "__static__": False}
        found = [said[one] for one in getattr(annotation, "__metadata__", ()) if isinstance(one, str) and one in said]
        if isinstance(annotation, str):
            found = [kind for start, kind in (("nnx.Data[", True), ("nnx.Static[", False)) if annotation.startswith(start)]
        kinds.update({name: kind for kind in found})
    for name, value in vars(cls).items():
        if isinstance(value, dataclasses.Field) and "static" in value.metadata:
            kind = value.metadata["static"]
            if not isinstance(kind, bool):
                raise ValueError(f"Invalid 'static' metadata for attribute '{cls.__name__}.{name}': expected bool, got {type(kind).__name__}.")
            if kinds.get(name, not kind) is kind:
                raise ValueError(f"Conflicting pytree annotation for attribute '{cls.__name__}.{name}': previously registered as "
                                 f"{'data' if kind else 'static'}, but found nnx.{'static' if kind else 'data'}(...) annotation.")
            kinds[name] = not kind
    return kinds


class _StaticParts:
    """What of an object is no data: the same for objects that tracing cannot tell apart."""

    def __init__(self, names, kinds, values):
        self.names, self.kinds, self.values = names, kinds, values
        self._key = (names, described(values))

    def __eq__(self, other):
        return isinstance(other, _StaticParts) and self._key == other._key

    def __hash__(self):
        return hash(self._key)


class Pytree(Node, metaclass=_PytreeMeta):
    """The base of objects that are trees of their data attributes."""
    __slots__ = ()
    _declared = {}

    def __init_subclass__(cls, pytree=True, **options):
        super().__init_subclass__(**options)
        if vars(cls).get("__slots__"):
            raise TypeError(f"Pytree currently does not support __slots__, found __slots__={cls.__slots__} in '{cls.__name__}'.")
        cls._is_pytree, cls._declared = pytree, _declared(cls)
        if pytree:
            _register(cls)

    def __setattr__(self, name, value):
        if self._made_at != _depth() and id(self) not in _lent:
            raise TraceContextError(f"Cannot mutate '{type(self).__name__}' from different trace level")
        is_said = _said(value)
        kind, value = (not value.metadata["static"], value.metadata["nnx_value"]) if is_said else (is_data(value), value)
        if self._is_pytree:
            known = self._kinds.get(name, False)
            if not is_said and machine.older_flax and not known and not kind:
                kind = bool(has_data(value))
            if kind and not is_said and not known and name in vars(self):
                if not machine.older_flax:
                    raise ValueError(f"Cannot assign data value of type '{type(value)}' to static attribute '{name}' of Pytree type '{type(self)}'. To override the "
                                     f"status explicitly wrap the value with nnx.data on assignment:\n\n  _.{name} = nnx.data(...)\n\n")
                is_said = True
            _check(self, name, value, kind or known and not is_said, "static" if is_said else "new")
            if is_said or name not in self._kinds:
                object.__setattr__(self, "_kinds", {**self._kinds, name: kind})
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        object.__delattr__(self, name)
        object.__setattr__(self, "_kinds", {known: kind for known, kind in self._kinds.items() if known != name})

    def __deepcopy__(self, memo=None):
        return clone(self)

    def __repr__(self):
        return shown(self)

    def _shown_attributes(self):
        return [(name, value) for name, value in vars(self).items() if not name.startswith("_") or self._kinds.get(name)]


class Object(Pytree, pytree=False):
    """The base of objects with variables that are no trees."""

    def __init_subclass__(cls, pytree=False, **options):
        if pytree is not False:
            raise ValueError(f"Object is not a pytree, but 'pytree' was explicitly set to {pytree!r} for type {cls}.")
        super().__init_subclass__(pytree=False, **options)


def _register(cls):
    def flatten(node):
        parts = node._parts()
        names = tuple(name for _, name, _ in parts)
        return [part for _, _, part in parts], _StaticParts(names, node._kinds, {name: value for name, value in sorted(vars(node).items()) if name not in names})

    def made(fixed, children):
        node = blank(cls, fixed.kinds)
        vars(node).update(fixed.values)
        vars(node).update(zip(fixed.names, children))
        return node
    register(cls, flatten, made, lambda node: [GetAttrKey(key) if isinstance(key, str) else SequenceKey(key) for key, _, _ in node._parts()])


_being_shown = set()


def shown(value):
    """As Flax writes it: arrays of an object by their types, what an object holds in lines, an object again as `Name(...)`."""
    if is_variable(value):
        return value.shown(True)
    if isinstance(value, Node):
        return _object_shown(value)
    if is_array(value) and getattr(value, "size", 1) > 1 and not isinstance(value, jax.ShapeDtypeStruct):
        return f"Array(shape={value.shape}, dtype={value.dtype if str(value.dtype).startswith('key') else repr(value.dtype)})"
    if type(value) in (list, tuple):
        inside = ", ".join(map(shown, value)) + ("," if type(value) is tuple and len(value) == 1 else "")
        return f"[{inside}]" if type(value) is list else f"({inside})"
    if type(value) is dict:
        return "{" + ", ".join(f"{name!r}: {shown(part)}" for name, part in value.items()) + "}"
    return value.__name__ if repr(value).startswith("<class ") else repr(value)


def _object_shown(node):
    if id(node) in _being_shown:
        return f"{type(node).__name__}(...)"
    is_first = not _being_shown
    _being_shown.add(id(node))
    try:
        if isinstance(node, collections.abc.Sequence):
            return f"{type(node).__name__}(" + _block("[", "", list(map(shown, node)), "]") + ")"
        if isinstance(node, collections.abc.Mapping):
            return f"{type(node).__name__}(" + _block("{", "", [f"{name!r}: {shown(part)}" for name, part in node.items()], "}") + ")"
        counts = _counted([variable for _, variable in variables_of(node) if is_variable(variable)])
        total = tuple(map(sum, zip(*counts.values()))) if len(counts) > 1 else None
        said = ", ".join(f"{name}: {_amount(*count)}" for name, count in counts.items()) + (f", Total: {_amount(*total)}" if total else "")
        return _block(f"{type(node).__name__}(", f" # {said}" if said else "", [f"{name}={shown(value)}" for name, value in node._shown_attributes()], ")")
    finally:
        if is_first:
            _being_shown.clear()
