# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules whose variables are handed over at each call. Source of the rules and the errors: google/flax, flax/linen/module.py."""
import dataclasses
import functools
import inspect
import types
from typing import Any, Optional

import jax
import jax.numpy as jnp

from .. import errors
from ..core import meta
from ..core.frozen_dict import FrozenDict
from ..core.scope import DenyList, Scope, in_filter, root_scope

_UNSAID = object()
_calls = [None]  # the modules whose methods run, the innermost last
_captures = []  # for each call with capture_intermediates: which methods' results are kept


class _State:
    """What a module knows of its own call."""

    def __init__(self):
        self.is_made = self.in_setup = self.in_compact = self.is_set_up = False
        self.numbers = {}  # class name -> how many modules without a name of their own
        self.fixed = {}  # the names that fields and `setup` took

    may_make = property(lambda self: self.in_setup or self.in_compact)


def compact(fun):
    """A method that may make submodules and parameters where it uses them."""
    fun.compact = True
    return fun


def nowrap(fun):
    fun.nowrap = True
    return fun


def _wrapped(fun):
    if hasattr(fun, "wraps_method") or hasattr(fun, "nowrap"):
        return fun

    @functools.wraps(fun)
    def method(self, *args, **kwargs):
        return self._run(fun, args, kwargs) if isinstance(self, Module) else fun(self, *args, **kwargs)
    method.wraps_method = fun
    return method


def _over_modules(function, value):
    """A value with each module in its lists and dicts replaced; lists become tuples, as modules keep them."""
    if isinstance(value, Module):
        return function("", value)
    if isinstance(value, (list, tuple)):
        parts = [_over_modules(lambda suffix, part, at=at: function(f"_{at}{suffix}", part), part) for at, part in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, (dict, FrozenDict)):
        made = {name: _over_modules(lambda suffix, part, name=name: function(f"_{name}{suffix}", part), part) for name, part in value.items()}
        return FrozenDict(made) if all(isinstance(name, str) for name in made) else made
    return value


def _has_modules(value):
    found = []
    _over_modules(lambda suffix, part: found.append(part) or part, value)
    return bool(found)


class Variable:
    """A variable of a collection, as a module that is bound sees it."""

    def __init__(self, scope, collection, name, unbox):
        self._scope, self.collection, self.name, self._unbox = scope, collection, name, unbox

    @property
    def value(self):
        found = self._scope.collection(self.collection)[self.name]
        return meta.unbox(found) if self._unbox else found

    @value.setter
    def value(self, value):
        if self._unbox and self._scope.has(self.collection, self.name):
            value = _boxed_as(self._scope.collection(self.collection)[self.name], value)
        self._scope.put(self.collection, self.name, value)

    def is_mutable(self):
        return self._scope.is_mutable(self.collection)

    def __repr__(self):
        return f"Variable(collection={self.collection!r}, name={self.name!r}, value={self.value!r})"


def _boxed_as(before, value):
    return meta.replace_boxed(before, value) if any(map(meta.is_box, jax.tree.leaves(before, is_leaf=meta.is_box))) else value


@dataclasses.dataclass(repr=False, unsafe_hash=True)
class Module:
    """Subclasses are dataclasses; their methods run with the variables that `apply` is given."""
    parent: Any = dataclasses.field(default=_UNSAID, kw_only=True, repr=False, compare=False)
    name: Optional[str] = dataclasses.field(default=None, kw_only=True)

    scope = None

    def __init_subclass__(cls, kw_only=False, **options):
        super().__init_subclass__(**options)
        if own := {"parent", "name"} & set(inspect.get_annotations(cls)):
            raise errors.ReservedModuleAttributeError(f"properties `parent` and `name` are reserved: {', '.join(sorted(own))}")
        dataclasses.dataclass(repr=False, unsafe_hash="__hash__" not in cls.__dict__, kw_only=kw_only)(cls)
        fields = {field.name for field in dataclasses.fields(cls)}
        for name, attribute in list(vars(cls).items()):
            special = name.startswith("__") and name != "__call__"
            if isinstance(attribute, types.FunctionType) and not special and name != "setup" and name not in fields:
                setattr(cls, name, _wrapped(attribute))

    def __post_init__(self):
        object.__setattr__(self, "_state", _State())
        self._attach()
        self._state.is_made = True

    def _attach(self):
        """Makes it a submodule of the module whose method makes it."""
        if self.parent is _UNSAID:
            object.__setattr__(self, "parent", _calls[-1])
        if self.parent is None:
            return
        if isinstance(self.parent, Scope):
            object.__setattr__(self, "scope", self.parent)
        else:
            state = self.parent._state
            if state.in_setup and self.name is None:
                return  # the attribute that it becomes names it
            if not state.may_make:
                raise errors.AssignSubModuleError(f"Submodule {type(self).__name__} must be defined in `setup()` or in a method wrapped in `@compact`")
            if self.name is None:
                kind = type(self).__name__
                number = state.numbers.get(kind, 0)
                object.__setattr__(self, "name", f"{kind}_{number}")
                state.numbers[kind] = number + 1
            self.parent._reserve("submodule", self.name)
            object.__setattr__(self, "scope", self.parent.scope.child(self.name))
        self._adopt_fields()

    def _reserve(self, what, name, collection=None):
        """Names of submodules and of variables of one collection are of one thing each."""
        taken = self.scope.reserved.setdefault(name, set())
        if taken and (collection is None or None in taken or collection in taken):
            raise errors.NameInUseError(f'Could not create {what} "{name}" in Module {type(self).__name__}: Name in use.')
        taken.add(collection)

    def _adopt_fields(self):
        for field in dataclasses.fields(self):
            if field.name not in ("parent", "name") and field.init and _has_modules(getattr(self, field.name, None)):
                self._adopt(field.name, getattr(self, field.name))

    def _adopt(self, name, value):
        """Makes the modules of an attribute submodules of this one, where they are no other's."""
        new = []

        def taken_over(suffix, part):
            if part.parent is None:
                made, _ = self.scope.adopted.setdefault(id(part), (part.clone(name=None), part))
            else:
                made = part
            if made.name is None and made.scope is None:
                object.__setattr__(made, "parent", self)
                object.__setattr__(made, "name", f"{name}{suffix}")
                new.append(made)
            return made
        object.__setattr__(self, name, _over_modules(taken_over, value))
        for part in new:
            before, self._state.in_setup = self._state.in_setup, True
            try:
                part.__post_init__()
            finally:
                self._state.in_setup = before

    def setup(self):
        """Makes what methods use, as attributes."""

    def _set_up(self):
        if self.scope is None or self._state.in_setup or self._state.is_set_up:
            return
        self._state.in_setup = True
        _calls.append(self)
        try:
            self.setup()
        finally:
            _calls.pop()
            self._state.in_setup = False
        self._state.is_set_up = True
        self._state.fixed = {name: set(kinds) for name, kinds in self.scope.reserved.items()}

    def _run(self, fun, args, kwargs):
        self._set_up()
        is_compact = hasattr(fun, "compact")
        if is_compact and self.scope is None:
            raise errors.CallCompactUnboundModuleError("Can't call compact methods on unbound modules")
        outermost = is_compact and not self._state.in_compact
        self._state.in_compact = self._state.in_compact or is_compact
        _calls.append(self)
        try:
            made = fun(self, *args, **kwargs)
            if _captures and self.scope is not None and _captures[-1](self, fun.__name__):
                self.sow("intermediates", fun.__name__, made)
            return made
        finally:
            _calls.pop()
            if outermost:  # the next call finds the same names free
                self._state.in_compact, self._state.numbers = False, {}
                self.scope.reserved = {name: set(kinds) for name, kinds in self._state.fixed.items()}

    def _go_on(self, outer, fun, args, kwargs):
        """Runs a function that makes submodules as if `outer`, which this module stands for within a transform, made them."""
        self._state.in_compact, self._state.numbers = outer._state.in_compact, outer._state.numbers
        return self._run(fun, args, kwargs)

    def __setattr__(self, name, value):
        state = self.__dict__.get("_state")
        if state is None or not state.in_setup and (not state.is_made or name.startswith("__")):
            object.__setattr__(self, name, value)
        elif not state.in_setup:
            raise errors.SetAttributeFrozenModuleError(f"Can't set {name}={value} for Module of type {type(self)}: Module instance is frozen outside of setup method.")
        elif name in (field.name for field in dataclasses.fields(self)):
            raise errors.SetAttributeInModuleSetupError("Module construction attributes are frozen.")
        elif _has_modules(value):
            self._adopt(name, value)
        else:
            object.__setattr__(self, name, _over_modules(lambda _, part: part, value) if isinstance(value, (list, dict)) else value)

    def __getattr__(self, name):
        state = self.__dict__.get("_state")
        if state is not None and self.scope is not None and not name.startswith("__") and not state.in_setup and not state.is_set_up:
            self._set_up()
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f'"{type(self).__name__}" object has no attribute "{name}". If "{name}" is defined in \'.setup()\', remember these fields are only accessible '
                             "from inside 'init' or 'apply'.")

    def __repr__(self):
        lines = [f"    {field.name} = {_indented(getattr(self, field.name, None))}\n" for field in dataclasses.fields(self)
                 if field.repr and field.name != "name" and field.name in self.__dict__]
        fields = f"    # attributes\n{''.join(lines)}" if lines else ""
        children = [f"    {name} = {_indented(part)}\n" for name, part in self.__dict__.items()
                    if isinstance(part, Module) and name not in ("parent",) and name not in {field.name for field in dataclasses.fields(self)}]
        return f"{type(self).__name__}(\n{fields}{'    # children' + chr(10) + ''.join(children) if children else ''})"

    # ---- variables, in a method

    def _bound(self, what):
        if self.scope is None:
            raise ValueError(f"Can't {what} on unbound modules")

    def param(self, name, init_fn, *init_args, unbox=True, **init_kwargs):
        if not self._state.may_make:
            raise ValueError("Parameters must be initialized in `setup()` or in a method wrapped in `@compact`")
        self._reserve("param", name, "params")
        return self.scope.param(name, init_fn, init_args, init_kwargs, unbox)

    def variable(self, col, name, init_fn=None, *init_args, unbox=True, **init_kwargs):
        if not self._state.may_make:
            raise ValueError("Variables must be initialized in `setup()` or in a method wrapped in `@compact`")
        self._reserve("variable", name, col)
        if not self.scope.has(col, name):
            if init_fn is None or not self.scope.is_mutable(col):
                if not self.scope.root.get(col):
                    raise errors.ScopeCollectionNotFound(f'Tried to access "{name}" from collection "{col}" in "{self.scope.text}" but the collection is empty.')
                raise errors.ScopeVariableNotFoundError(f'No Variable named "{name}" for collection "{col}" exists in "{self.scope.text}".')
            self.scope.put(col, name, init_fn(*init_args, **init_kwargs))
        return Variable(self.scope, col, name, unbox)

    def has_variable(self, col, name):
        self._bound("access variables")
        return self.scope.has(col, name)

    def get_variable(self, col, name, default=None):
        self._bound("access variables")
        return self.scope.collection(col).get(name, default)

    def put_variable(self, col, name, value):
        self._bound("access variables")
        self.scope.put(col, name, value)

    def is_mutable_collection(self, col):
        self._bound("check mutability")
        return self.scope.is_mutable(col)

    def is_initializing(self):
        self._bound("check if running under init")
        return self.scope.initializing

    def make_rng(self, name="params"):
        self._bound("call make_rng")
        return self.scope.make_rng(name)

    def has_rng(self, name):
        self._bound("query for RNGs")
        return name in self.scope.rngs

    def sow(self, col, name, value, reduce_fn=lambda before, new: (*before, new), init_fn=tuple):
        self._bound("store variables")
        if not self.scope.is_mutable(col):
            return False
        before = self.scope.collection(col)[name] if self.scope.has(col, name) else init_fn()
        self.scope.put(col, name, reduce_fn(before, value))
        return True

    def perturb(self, name, value, collection="perturbations"):
        """The value and a zero, by which the derivative of the value is known."""
        if not self.is_initializing() and not self.scope.root.get(collection):
            return value
        if self.is_initializing() and not self.scope.has(collection, name):
            self.scope.put(collection, name, jax.tree.map(jnp.zeros_like, value))
        if not self.scope.has(collection, name):
            raise ValueError(f"Perturbation collection {collection} present, but missing perturbation variable {name}")
        return self.scope.collection(collection)[name] + value

    @property
    def variables(self):
        self._bound("access variables")
        return self.scope.collections()

    @property
    def path(self):
        self._bound("access module paths")
        return self.scope.shown

    # ---- calls from outside

    def clone(self, *, parent=None, **updates):
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.init and field.name != "parent"}
        return type(self)(**{**fields, "parent": parent, **updates})

    copy = clone

    def bind(self, variables, *args, rngs=None, mutable=False):
        return self.clone(parent=root_scope(variables, _streams(rngs), mutable))

    def unbind(self):
        if self.scope is None:
            raise errors.CallUnbindOnUnboundModuleError("Can't call `unbind()` on unbound modules")
        return self.clone(parent=None, name=None), self.variables

    def _called(self, scope, method, args, kwargs, capture):
        module = self.clone(parent=scope)
        if capture:
            _captures.append((lambda part, name: name == "__call__") if capture is True else capture)
        try:
            return apply_to(module, _method_of(type(self), method), args, kwargs)
        finally:
            if capture:
                _captures.pop()

    def apply(self, variables, *args, rngs=None, method=None, mutable=False, capture_intermediates=False, **kwargs):
        if capture_intermediates and not in_filter(mutable, "intermediates"):
            kept = [mutable] if isinstance(mutable, str) else [] if mutable is False else mutable
            asked = DenyList([name for name in _names(kept.deny) if name != "intermediates"]) if isinstance(kept, DenyList) else [*kept, "intermediates"]
        else:
            asked = mutable
        scope = root_scope(variables, _streams(rngs), asked)
        made = self._called(scope, method, args, kwargs, capture_intermediates)
        return made if asked is False else (made, {name: part for name, part in scope.root.items() if scope.is_mutable(name)})

    def init_with_output(self, rngs, *args, method=None, mutable=DenyList("intermediates"), capture_intermediates=False, **kwargs):
        scope = root_scope({}, _streams(rngs), True if capture_intermediates and isinstance(mutable, DenyList) else mutable)
        scope.initializing = True
        made = self._called(scope, method, args, kwargs, capture_intermediates)
        return made, {name: part for name, part in scope.root.items() if scope.is_mutable(name)}

    def init(self, rngs, *args, method=None, mutable=DenyList("intermediates"), capture_intermediates=False, **kwargs):
        return self.init_with_output(rngs, *args, method=method, mutable=mutable, capture_intermediates=capture_intermediates, **kwargs)[1]

    def lazy_init(self, rngs, *args, **kwargs):
        """As `init`: shapes alone give the same variables, since these are drawn from keys."""
        filled = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype) if isinstance(x, jax.ShapeDtypeStruct) else x, (args, kwargs))
        return self.init(rngs, *filled[0], **filled[1])

    def tabulate(self, rngs, *args, depth=None, method=None, console_kwargs=None, table_kwargs=None, column_kwargs=None, show_repeated=False, compute_flops=False,
                 compute_vjp_flops=False, **kwargs):
        from ._summary import tabulate
        return tabulate(self, rngs, depth, method)(*args, **kwargs)


def apply_to(module, fun, args, kwargs):
    """Calls a method, or a function of a module, with no module around."""
    _calls.append(None)
    try:
        return fun(module, *args, **kwargs)
    finally:
        _calls.pop()


def _indented(value):
    return repr(value).replace("\n", "\n    ")


def _names(chosen):
    return [chosen] if isinstance(chosen, str) else list(chosen)


def _method_of(kind, method):
    if method is None:
        return kind.__call__
    if isinstance(method, str):
        found = getattr(kind, method)
        if not callable(found):
            raise TypeError(f"'{kind.__name__}.{method}' must be a callable, got {type(found)}.")
        return found
    if not callable(method):
        raise errors.ApplyModuleInvalidMethodError(f"Cannot call apply(): {method} is not a valid function for apply().")
    return getattr(method, "__func__", method)


def _is_key(value):
    return isinstance(value, jax.random.KeyArray) or hasattr(value, "dtype") and value.dtype == jnp.uint32 and value.shape == (2,) \
        or hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jax.dtypes.prng_key) and value.shape == ()


def _streams(rngs):
    """Streams by name; one key is that of params."""
    if rngs is None:
        return {}
    streams = dict(rngs) if isinstance(rngs, (dict, FrozenDict)) else {"params": rngs}
    for name, key in streams.items():
        if not _is_key(key):
            raise errors.InvalidRngError(f"RNGs should be of shape (2,) or PRNGKey in Module, but rngs are: {rngs}")
    return streams


def init(fn, module, mutable=DenyList("intermediates"), capture_intermediates=False):
    return lambda rngs, *args, **kwargs: module.init(rngs, *args, method=fn, mutable=mutable, capture_intermediates=capture_intermediates, **kwargs)


def init_with_output(fn, module, mutable=DenyList("intermediates"), capture_intermediates=False):
    return lambda rngs, *args, **kwargs: module.init_with_output(rngs, *args, method=fn, mutable=mutable, capture_intermediates=capture_intermediates, **kwargs)


def apply(fn, module, mutable=False, capture_intermediates=False):
    return lambda variables, *args, rngs=None, **kwargs: module.apply(variables, *args, rngs=rngs, method=fn, mutable=mutable,
                                                                      capture_intermediates=capture_intermediates, **kwargs)


def merge_param(name, a, b):
    """The one of two that was given."""
    if a is None and b is None:
        raise ValueError(f'Parameter "{name}" must be passed to the constructor or at call time.')
    if a is not None and b is not None:
        raise ValueError(f'Parameter "{name}" was passed to the constructor and at call time. Should be passed just once.')
    return b if a is None else a
