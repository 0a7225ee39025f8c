# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables, the objects that hold them, and their values as trees."""
import contextlib
import copy
import math
import operator

import numpy as np
from jax._src import trees
from jax._src.arrays import Array, ConcreteArray, Scope, asarray
from jax._src.batching import Level
from jax._src.random_ import KeyArray
from jax._src.transforms import ShapeDtypeStruct
from jax._src.trees import DictKey, GetAttrKey, register, tree_leaves

from ..errors import TraceContextError


def _amount(count, size):
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size > step:
            return f"{count:,} ({size / step:.1f} {unit})"
    return f"{count:,} ({size} B)"


def _bytes(leaf):
    return leaf.nbytes if hasattr(leaf, "nbytes") else math.prod(leaf.shape) * np.dtype(leaf.dtype).itemsize


def _counted(variables):
    """(elements, bytes) of variables by their kind."""
    made = {}
    for variable in variables:
        leaves = [leaf for leaf in tree_leaves(variable.value, lambda x: hasattr(x, "_data")) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]
        kind = variable.type if isinstance(variable, VariableState) else type(variable)
        name = next((base.__name__ for base in kind.__mro__ if base.__name__ in ("RngState",)), kind.__name__)
        count, size = made.get(name, (0, 0))
        if leaves:
            made[name] = count + sum(math.prod(leaf.shape) for leaf in leaves), size + sum(_bytes(leaf) for leaf in leaves)
    return made


def _block(start, comment, parts, end):
    if not parts:
        return f"{start}{end}"
    inner = ",\n".join("  " + part.replace("\n", "\n  ") for part in parts)
    return f"{start}{comment}\n{inner}\n{end}"


class VariableMetadata:
    """What an initializer with metadata gives: a value, and what is to be said of its variable."""

    def __init__(self, value, metadata):
        self.value, self.metadata = value, metadata


eager_sharding = [False]  # whether variables are placed as they say when they are made; innermost last


class _Valued:
    """Behaves as its value where arithmetic is done with it."""
    __array_priority__ = 101

    def __jax_array__(self):
        return asarray(self.value)

    def __array__(self, *args, **kwargs):
        return self.value.__array__(*args, **kwargs)

    def __getitem__(self, index):
        return self.value if index is Ellipsis else self.value[index]

    def __getattr__(self, name):
        metadata = self.__dict__.get("_metadata")
        if metadata is not None and name in ("out_sharding", "sharding_names") and "sharding" in metadata:
            return metadata["sharding"]
        if metadata is not None and name in metadata and not (name == "sharding" and eager_sharding[-1]):
            return metadata[name]
        if metadata is not None and not name.startswith("__") and hasattr(self.value, name):
            return getattr(self.value, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def get_metadata(self):
        return dict(self._metadata)

    def __repr__(self):
        return self.shown(False)

    def shown(self, is_inside):
        """As Flax writes it: how many elements there are, the value and what is said of it. Within an object, arrays are shown by their types."""
        counts = _counted([self])
        value = self.value
        if is_inside and getattr(value, "size", 1) > 1 and not isinstance(value, ShapeDtypeStruct):
            kind = repr(value.dtype) if not str(value.dtype).startswith("key") else str(value.dtype)
            text = f"Array(shape={value.shape}, dtype={kind})"
        else:
            text = repr(value)
        parts = [f"value={text}", *(f"{name}={one!r}" for name, one in self._metadata.items())]
        total = next(iter(counts.values()), None)
        return _block(f"{self._name()}(", "" if total is None else f" # {_amount(*total)}", parts, ")")


def _forward():
    def binary(op):
        return lambda self, other: op(self.value, other.value if isinstance(other, _Valued) else other)

    def reflected(op):
        return lambda self, other: op(other, self.value)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
        setattr(_Valued, f"__{name}__", binary(getattr(operator, name)))
        setattr(_Valued, f"__r{name}__", reflected(getattr(operator, name)))
    for name in ("lt", "le", "gt", "ge"):
        setattr(_Valued, f"__{name}__", binary(getattr(operator, name)))
    for name in ("neg", "pos", "abs"):
        setattr(_Valued, f"__{name}__", (lambda op: lambda self: op(self.value))(getattr(operator, name)))
    for name, call in (("float", float), ("int", int), ("bool", bool), ("len", len)):
        setattr(_Valued, f"__{name}__", (lambda call: lambda self: call(self.value))(call))


_forward()


on_made = []  # what is done with each new variable
_lent = {}  # variables that a function that is being traced may change, by their ids: how often


def _depth():
    """How many functions are being traced."""
    return len(Scope._stack) + len(Level.stack)


def _check_level(node, name, value, made_at):
    is_inside = isinstance(value, Array) and not isinstance(value, ConcreteArray)
    if is_inside and made_at != _depth() and id(node) not in _lent:
        raise TraceContextError(f"Cannot mutate {name} from a different trace level")


@contextlib.contextmanager
def lent(variables, tree=()):
    """Within it, variables and objects from outside are changed by what is traced, and whoever lends them sets them right again."""
    variables = [*variables, *(found for _, found in walk(tree))]
    for variable in variables:
        _lent[id(variable)] = _lent.get(id(variable), 0) + 1
    try:
        yield
    finally:
        for variable in variables:
            _lent[id(variable)] -= 1
            if not _lent[id(variable)]:
                del _lent[id(variable)]


class _Kinds(type):
    """Of classes of variables: a state is of the class of the variable that it is of, in the page's eyes."""

    def __instancecheck__(cls, value):
        return type.__instancecheck__(cls, value) or type(value) is VariableState and issubclass(value.type, cls)


def is_variable(value):
    """Whether it is a variable itself, and no state of one."""
    return issubclass(type(value), Variable)


def no_changes_in_place(function, **modes):
    for name, value in modes.items():
        if value:
            raise NotImplementedError(f"nnx.{function} with {name}=True, which functions under jax.jit change in place: give the variable to a function "
                                      "under nnx.jit, which carries changes out, or use jax.new_ref")


class Variable(_Valued, metaclass=_Kinds):
    """A value that a module owns. Metadata are attributes: `variable.sharding`."""
    __class_getitem__ = classmethod(lambda cls, kind: cls)

    def __init__(self, value, **metadata):
        if isinstance(value, VariableMetadata):
            metadata, value = {**value.metadata, **metadata}, value.value
        no_changes_in_place(type(self).__name__, hijax=metadata.get("hijax"), ref=metadata.get("ref"))
        for name in ("sharding_names", "out_sharding"):
            if name in metadata:
                metadata["sharding"] = metadata.pop(name)
        self.__dict__.update(value=value, _metadata=metadata, _made_at=_depth())
        for do in on_made:
            do(self)

    def __init_subclass__(cls):
        _register_variable(cls)

    def __setattr__(self, name, value):
        if name == "value":
            value = value.value if isinstance(value, _Valued) else value
            _check_level(self, type(self).__name__, value, self.__dict__.get("_made_at", 0))
            self.put(value)
        else:
            self._metadata[name] = value

    def put(self, value):
        self.__dict__["value"] = value

    def __setitem__(self, index, value):
        self.value = value if index is Ellipsis else self.value.at[index].set(value)

    def _name(self):
        return type(self).__name__

    def _in_place(op):
        def changed(self, other):
            self.value = op(self.value, other.value if isinstance(other, _Valued) else other)
            return self
        return changed

    __iadd__, __isub__, __imul__, __itruediv__, __ifloordiv__, __imod__, __ipow__, __imatmul__ = map(
        _in_place, (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.matmul))

    @property
    def raw_value(self):
        return self.value

    def get_value(self, *, index=None):
        return self.value

    def set_value(self, value, *, index=None):
        self.value = value

    get_raw_value, set_raw_value = get_value, set_value

    def set_metadata(self, *args, **metadata):
        self._metadata.update(dict(zip(args[::2], args[1::2])) if args else metadata)

    def has_metadata(self, name):
        return name in self._metadata

    def get_metadata(self, name=None, default=None):
        return dict(self._metadata) if name is None else self._metadata.get(name, default)

    type = property(lambda self: type(self))

    def replace(self, value, **metadata):
        made = object.__new__(type(self))
        made.__dict__.update(value=value, _metadata={**self._metadata, **metadata}, _made_at=_depth())
        return made

    def copy(self):
        return self.replace(self.value)

    def to_state(self):
        return self.state_with(self.value)

    def state_with(self, value):
        return VariableState(type(self), value, **self._metadata)


def _register_variable(cls):
    def made(metadata, children):
        variable = object.__new__(cls)
        variable.__dict__.update(value=children[0], _metadata=dict(metadata), _made_at=_depth())
        return variable
    register(cls, lambda node: ([node.value], tuple(node._metadata.items())), made, lambda node: [GetAttrKey("value")])


_register_variable(Variable)


class VariableState(_Valued):
    """A variable's value in a tree of states."""

    def __init__(self, type, value, **metadata):
        self.__dict__.update(type=type, value=value, _metadata=metadata)

    def __setattr__(self, name, value):
        if name in ("value", "type"):
            self.__dict__[name] = value
        else:
            self._metadata[name] = value

    def _name(self):
        return self.type.__name__

    def replace(self, value):
        return VariableState(self.type, value, **self._metadata)

    def to_variable(self):
        return self.type(self.value, **self._metadata)


register(
    VariableState, lambda node: ([node.value], (node.type, tuple(node._metadata.items()))),
    lambda data, children: VariableState(data[0], children[0], **dict(data[1])), lambda node: [GetAttrKey("value")])


class State:
    """Nested names with a `VariableState` at each end."""

    def __init__(self, mapping=()):
        self.__dict__["_mapping"] = {name: State(value) if isinstance(value, dict) else value for name, value in dict(mapping).items()}

    def __getitem__(self, name):
        return self._mapping[name]

    def __setitem__(self, name, value):
        self._mapping[name] = State(value) if isinstance(value, dict) else value

    def __getattr__(self, name):
        if name.startswith("__") or name not in self._mapping:
            raise AttributeError(f"State has no attribute '{name}'")
        return self._mapping[name]

    __setattr__ = __setitem__

    def __contains__(self, name):
        return name in self._mapping

    def __iter__(self):
        return iter(self._mapping)

    def __len__(self):
        return len(self._mapping)

    def keys(self):
        return self._mapping.keys()

    def values(self):
        return self._mapping.values()

    def items(self):
        return self._mapping.items()

    def flat_state(self):
        return list(self._flat(()))

    def _flat(self, path):
        for name in _ordered(self._mapping):
            value = self._mapping[name]
            if isinstance(value, State):
                yield from value._flat(path + (name,))
            else:
                yield path + (name,), value

    @staticmethod
    def from_flat_path(pairs):
        made = State()
        for path, value in pairs.items() if isinstance(pairs, dict) else pairs:
            at = made
            for name in path[:-1]:
                if name not in at:
                    at[name] = State()
                at = at[name]
            at[path[-1]] = value
        return made

    def filter(self, *filters):
        kept = [[] for _ in filters]
        for path, value in self._flat(()):
            for number, chosen in enumerate(filters):
                if matches(chosen, path, value):
                    kept[number].append((path, value))
                    break
        made = tuple(State.from_flat_path(pairs) for pairs in kept)
        return made[0] if len(made) == 1 else made

    def to_pure_dict(self):
        return {name: value.to_pure_dict() if isinstance(value, State) else value.value if isinstance(value, _Valued) else value for name, value in self._mapping.items()}

    def __repr__(self):
        return f"State({self._inside()})"

    def _inside(self):
        parts = [f"{name!r}: {value._inside() if isinstance(value, State) else repr(value)}" for name, value in self._mapping.items()]
        return _block("{", "", parts, "}")


def _ordered(names):
    return sorted(names, key=lambda name: (isinstance(name, str), name))


register(
    State, lambda node: ([node[name] for name in _ordered(node)], tuple(_ordered(node))),
    lambda names, children: State(zip(names, children)), lambda node: [DictKey(name) for name in _ordered(node)])


class Node:
    """An object that may own variables, arrays, other objects and containers of them. Which of its attributes do: `_pytree.py`."""
    __slots__ = ("_kinds", "_made_at", "_held", "__dict__", "__weakref__")
    _is_pytree, _has_numbers = True, False

    def _begin(self, kinds):
        """`kinds`: whether attributes are data, by their names."""
        for name, value in (("_kinds", kinds), ("_made_at", _depth()), ("_held", {})):
            object.__setattr__(self, name, value)

    def _parts(self):
        """(name in paths, name, value) of the attributes that are data; of all where the object is no pytree."""
        chosen = [name for name in vars(self) if not self._is_pytree or self._kinds.get(name)]
        named = [(int(name) if self._has_numbers and name.isdigit() else name, name) for name in chosen]
        return [(key, name, vars(self)[name]) for key, name in sorted(named, key=lambda pair: (isinstance(pair[0], str), pair[0]))]


def adopt(node):
    """An object or variable that was made within a function that is no longer traced: it may be changed here."""
    if is_variable(node):
        node.__dict__["_made_at"] = _depth()
    else:
        object.__setattr__(node, "_made_at", _depth())


def blank(cls, kinds):
    """An object without attributes."""
    node = object.__new__(cls)
    node._begin(kinds)
    return node


class _Missing:
    def __repr__(self):
        return "(missing)"


MISSING = _Missing()  # stands for the arrays of a GraphDef


def is_graph(value):
    return isinstance(value, Node) or is_variable(value)


def is_array(value):
    return isinstance(value, (Array, KeyArray, np.ndarray, ShapeDtypeStruct, _Missing))


class HeldArray:
    """An array that an object holds without a variable: changed like one. `within` is the way to it from its owner."""
    _metadata = {}

    def __init__(self, owner, within):
        self._owner, self._within = owner, within

    @property
    def value(self):
        at = self._owner
        for name in self._within:
            at = part_of(at, name)
        return at

    @value.setter
    def value(self, value):
        value = value.value if isinstance(value, _Valued) else value
        _check_level(self, type(self._owner).__name__, value, self._owner._made_at)
        self.put(value)

    def put(self, value):
        name, *rest = self._within
        vars(self._owner)[str(name)] = _put(vars(self._owner)[str(name)], rest, value)

    type = property(lambda self: type(self.value))

    def to_state(self):
        return self.value

    def state_with(self, value):
        return value


def part_of(node, name):
    return vars(node)[str(name)] if isinstance(node, Node) else getattr(node, name) if isinstance(name, str) and isinstance(node, tuple) else node[name]


def _put(container, within, value):
    return _remade(container, lambda name, part: _put(part, within[1:], value) if name == within[0] else part) if within else value


def _parts_of(value):
    """(name, part) of a container's or an object's parts; nothing for a leaf."""
    if isinstance(value, Node):
        return [(key, part) for key, _, part in value._parts()]
    if value is None or isinstance(value, (Variable, VariableState)):
        return []
    if isinstance(value, (dict, State)):
        return [(name, value[name]) for name in _ordered(value)]
    if isinstance(value, (list, tuple)):
        return list(zip(value._fields, value)) if hasattr(value, "_fields") else list(enumerate(value))
    if is_array(value):
        return None
    parts = trees._parts(value)
    return None if parts is None else [(key[0], part) for key, part in zip(trees._keys(value, len(parts[2])), parts[2])]


def _remade(value, change):
    """The container with `change(name, part)` in the place of each part; a leaf as it is."""
    if isinstance(value, State):
        return State((name, change(name, part)) for name, part in value.items())
    if isinstance(value, dict):
        made = copy.copy(value)
        made.update((name, change(name, part)) for name, part in value.items())
        return made
    parts = _parts_of(value)
    if not parts:
        return value
    changed = [change(name, part) for name, part in parts]
    if type(value) in (list, tuple):
        return type(value)(changed)
    kind, fixed, _ = trees._parts(value)
    return trees.PyTreeDef(kind, fixed, [trees._LEAF] * len(changed)).unflatten(changed)


def _reached(value, path, seen, owner, within):
    """(path, variable, object or HeldArray) for each that is reached, once, an object before what it owns."""
    if is_graph(value):
        if id(value) in seen:
            return
        seen.add(id(value))
        yield path, value
        owner, within = value, ()
    parts = _parts_of(value)
    if parts is None:
        if owner is not None and (is_array(value) or owner._is_pytree and len(within) == 1):
            yield path, owner._held.setdefault(within, HeldArray(owner, within))
        return
    for name, part in parts:
        yield from _reached(part, path + (name,), seen, owner, within + (name,))


def walk(value, path=(), seen=None):
    """(path, variable or object) for each that is reached, once, an object before what it owns."""
    return ((place, found) for place, found in _reached(value, path, set() if seen is None else seen, None, ()) if is_graph(found))


def variables_of(value):
    """(path, variable) of all variables, and of the arrays that objects hold without one."""
    return [(path, found) for path, found in _reached(value, (), set(), None, ()) if not isinstance(found, Node)]


def copied(value, made, of_variable, of_array=lambda array: array, is_direct=False):
    """A copy of objects and containers. `made` maps what was copied by its id; `of_variable` makes a variable's copy, `of_array` that of an array which an
    object holds."""
    if is_variable(value):
        if id(value) not in made:
            made[id(value)] = of_variable(value)
        return made[id(value)]
    if isinstance(value, Node):
        if id(value) not in made:
            copy = made[id(value)] = blank(type(value), value._kinds)
            copy_into(copy, value, made, of_variable, of_array)
        return made[id(value)]
    if is_array(value) or is_direct and _parts_of(value) is None:
        return of_array(value)
    return _remade(value, lambda _, part: copied(part, made, of_variable, of_array))


def copy_into(target, node, made, of_variable, of_array):
    """Gives an object the attributes of another: copies of what is data."""
    parts = {name: copied(part, made, of_variable, of_array, node._is_pytree) for _, name, part in node._parts()}
    object.__setattr__(target, "_kinds", node._kinds)
    changed = {name: parts.get(name, part) for name, part in vars(node).items()}
    vars(target).clear()
    vars(target).update(changed)


def described(value, numbers=None):
    """What of an object tracing depends on besides the values of its variables and arrays; hashable."""
    numbers = {} if numbers is None else numbers
    if is_graph(value):
        if id(value) in numbers:
            return ("again", numbers[id(value)])
        numbers[id(value)] = len(numbers)
        if is_variable(value):
            return (type(value), str(sorted(value._metadata.items(), key=str)))
        parts = {name for _, name, _ in value._parts()}
        return (type(value), tuple((name, name in parts, "array" if name in parts and value._is_pytree and _parts_of(part) is None else described(part, numbers))
                                   for name, part in sorted(vars(value).items(), key=lambda pair: pair[0])))
    if is_array(value):
        return "array"
    if isinstance(value, (dict, State)):
        return ("dict", tuple((name, described(part, numbers)) for name, part in value.items()))
    parts = _parts_of(value)
    if parts:
        return (type(value), tuple(described(part, numbers) for _, part in parts))
    try:
        hash(value)
    except TypeError:
        return ("object", id(value))
    return value


def matches(chosen, path, variable):
    """Whether a filter of nnx means a variable (or its state)."""
    kind = variable.type if isinstance(variable, (VariableState, HeldArray)) else type(variable)
    if chosen is ... or chosen is True:
        return True
    if chosen is None or chosen is False:
        return False
    if isinstance(chosen, type):
        return issubclass(kind, chosen)
    if isinstance(chosen, str):
        return getattr(variable, "_metadata", {}).get("tag") == chosen
    if isinstance(chosen, (list, tuple)):
        return any(matches(one, path, variable) for one in chosen)
    return bool(chosen(path, variable))


class GraphDef:
    """An object without the values of its variables."""

    def __init__(self, node):
        self._template = copied(node, {}, lambda variable: variable.replace(None), lambda _: MISSING)
        self._key = described(self._template)

    def __eq__(self, other):
        return isinstance(other, GraphDef) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def __repr__(self):
        return f"GraphDef({type(self._template).__name__})"


register(GraphDef, lambda node: ([], node), lambda node, _: node)


def state(node, *filters):
    whole = State.from_flat_path([(path, variable.to_state()) for path, variable in variables_of(node)])
    return whole.filter(*filters) if filters else whole


GraphState = State


def variables(node, *filters):
    """The variables themselves in the place of copies."""
    whole = State.from_flat_path(variables_of(node))
    return whole.filter(*filters) if filters else whole


def merge_state(*states):
    return State.from_flat_path([pair for one in states for pair in (one if isinstance(one, State) else State(one)).flat_state()])


def split_state(one, *filters):
    made = one.filter(*filters)
    return made


def to_pure_dict(one, extract_fn=None):
    return one.to_pure_dict()


def pure(tree):
    return tree.to_pure_dict() if isinstance(tree, State) else tree


def replace_by_pure_dict(one, pure_dict, replace_fn=None):
    """Puts the values of nested dictionaries into a state; names that are numbers may have become text."""
    def put(part, values):
        for name, value in values.items():
            own = name if name in part else int(name) if isinstance(name, str) and name.isdigit() and int(name) in part else name
            if own not in part:
                raise ValueError(f"key in pure_dict not available in state: {name}")
            if isinstance(part[own], State):
                put(part[own], value)
            elif isinstance(part[own], _Valued):
                part[own].value = value
            else:
                part[own] = value
    put(one, pure_dict)


def restore_int_paths(pure_dict):
    if not isinstance(pure_dict, dict):
        return pure_dict
    return {int(name) if isinstance(name, str) and name.isdigit() else name: restore_int_paths(value) for name, value in pure_dict.items()}


def find_duplicates(node, *, only=...):
    """The paths of each object that is reached in several ways."""
    seen = {}

    def visit(value, path):
        if is_graph(value):
            seen.setdefault(id(value), []).append(path)
            if len(seen[id(value)]) > 1:
                return
        for name, part in _parts_of(value) or ():
            visit(part, path + (name,))
    visit(node, ())
    return [paths for paths in seen.values() if len(paths) > 1]


def graphdef(node):
    return GraphDef(node)


def split(node, *filters):
    states = state(node, *filters)
    return (GraphDef(node), *(states if isinstance(states, tuple) else (states,)))


def update(node, *states):
    """Sets the values of the variables that the states name."""
    known = dict(variables_of(node))
    for one in states:
        for path, value in (one if isinstance(one, State) else State(one)).flat_state():
            if path not in known:
                raise ValueError(f"The object has no variable at {'/'.join(map(str, path))}")
            known[path].value = value
            if isinstance(value, VariableState) and is_variable(known[path]):
                known[path].__dict__["_metadata"] = dict(value._metadata)


def merge(definition, *states):
    node = copied(definition._template, {}, lambda variable: variable.copy())
    update(node, *states)
    missing = ["/".join(map(str, path)) for path, variable in variables_of(node) if variable.value is None or variable.value is MISSING]
    if missing:
        raise ValueError(f"The states have no values for {', '.join(missing)}")
    return node


def clone(node):
    return copied(node, {}, lambda variable: variable.copy())


def map_state(f, one):
    """The state of what a function of (path, variable) gives."""
    return State.from_flat_path([(path, f(path, variable)) for path, variable in one.flat_state()])


def recursive_map(f, node, *, graph=None):
    """A copy in which each part is what a function of (path, part) gives: from within outwards, and once for what is reached in several ways."""
    made = {}

    def mapped(path, value):
        if is_graph(value) and id(value) in made:
            if made[id(value)] is MISSING:
                raise ValueError(f"Found cycle in the graph at path '{'/'.join(map(str, path))}'. Node of type {type(value)} has already been visited but has not been "
                                 "returned yet.")
            return made[id(value)]
        part = value
        if isinstance(value, Node):
            made[id(value)] = MISSING
            part = blank(type(value), value._kinds)
            vars(part).update(vars(value))
            for key, name, inside in value._parts():
                vars(part)[name] = mapped(path + (key,), inside)
        elif not is_variable(value):
            part = _remade(value, lambda name, inside: mapped(path + (name,), inside))
        found = f(path, part)
        if is_graph(value):
            made[id(value)] = found
        return found
    return mapped((), node)


def iter_graph(node):
    return walk(node)


def pop(node, *filters):
    """Takes variables out of an object, and gives their states."""
    taken = [(path, variable) for path, variable in variables_of(node) if any(matches(chosen, path, variable) for chosen in filters)]
    made = State.from_flat_path([(path, variable.to_state()) for path, variable in taken])
    for path, _ in taken:
        at = node
        for name in path[:-1]:
            at = part_of(at, name)
        if isinstance(at, Node):
            delattr(at, str(path[-1]))
        else:
            del at[path[-1]]
    return made


def to_flat_state(state):
    """Pairs of paths and values."""
    return (state if isinstance(state, State) else State(state)).flat_state()


def from_flat_state(flat):
    return State.from_flat_path(flat.items() if isinstance(flat, dict) else flat)
