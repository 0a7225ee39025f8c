# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutable arrays. A ref holds an array of the scope in which it was made. A function that is being traced sees the value of a ref from outside as an argument of
its own, and gives the value that it leaves as a further result, which whoever calls it puts into the ref: programs themselves change nothing.
Source of the rules and texts: jax-ml/jax, docs/array_refs.md and jax/_src/state/primitives.py."""
import numpy as np

from . import dtypes, ops
from .arrays import Array, ConcreteArray, Scope, Tracer, asarray, astype, type_text
from .batching import BatchTracer, Level, spread


class Held:
    """What a traced function knows of a ref from outside: its value now, and whether that is another than at the start."""

    def __init__(self, ref, value, sources=frozenset()):
        self.ref, self.value, self.is_changed, self._sources = ref, value, False, sources

    def is_read(self):
        """Whether its value may come from that at the start."""
        found = raw(self.value).sources
        return not found or bool(found & self._sources)


used = []  # not empty: a page makes refs
journals = []  # of branches that are being traced: the function that they are part of, and what refs held there before, by their id
_made = 0


class Ref:
    """A mutable array, as jax.new_ref gives it. Reading and writing by an index is all that can be done with it."""

    def __init__(self, value, is_argument=False):
        global _made
        _made += 1
        self.number = _made  # refs that are made later have larger ones
        self._home = Scope._stack[-1] if Scope._stack else None
        self.value, self._is_argument, self._is_frozen = value, is_argument, False
        self.engine_dtype, self._shape = value.engine_dtype, value.shape

    shape = property(lambda self: self._shape)
    ndim = property(lambda self: len(self._shape))
    size = property(lambda self: self.value.size)
    dtype = property(lambda self: dtypes.shown(self.engine_dtype))
    sharding = property(lambda self: self.read().sharding)
    committed = _committed = True

    def type_text(self):
        return f"Ref{{{type_text(self.value)}}}"

    # ---- its value in the function that is being traced

    def read(self):
        if self._is_frozen:
            raise ValueError(f"a mutable array reference of type {self.type_text()} was read or written after jax.freeze, which ends it")
        return self._at(len(Scope._stack) - 1)

    def _at(self, depth):
        scope = Scope._stack[depth] if depth >= 0 else None
        if scope is self._home:
            return self.value
        if scope is None:
            from .arrays import _escaped
            raise _escaped(self.value)
        held = scope.refs.get(id(self))
        if held is None:
            outside = self._at(depth - 1)
            if scope.mesh is not None:
                raise NotImplementedError(f"jax.shard_map of a function that closes over a mutable array reference of type {self.type_text()}: read it before, and "
                                          "pass its value")
            argument = scope.argument(raw(outside))
            held = scope.refs[id(self)] = Held(self, alike(argument, outside), argument.sources)
            scope.captures.append(self)
        return held.value

    def put(self, value):
        """Gives it another value of its type."""
        old = self.read()
        if value.level > old.level:
            raise Exception(f"performing a set/swap operation with vmapped value on an unbatched array reference of type {self.type_text()}. Move the array "
                            "reference to be an argument to the vmapped function?")
        value = _matched(value, old)
        scope = Scope._stack[-1] if Scope._stack else None
        for of, journal in journals[-1:]:
            if of is scope:  # what an inner function changes is put into the ref here too, when that is traced
                journal.setdefault(id(self), (self, old))
        if scope is self._home:
            self.value = value
            return
        if scope.differentiated and getattr(value, "smooth", frozenset()) & scope.differentiated:
            raise Exception("performing a set/swap operation with a differentiated value on a non-differentiated array reference of type "
                            f"{self.type_text()}. Move the array reference to be an argument of the differentiated function?")
        held = scope.refs[id(self)]
        held.value, held.is_changed = value, True

    # ---- what pages do with it

    def __getitem__(self, index):
        value = self.read()
        self._check_index(index)
        return value if index is Ellipsis or index == () and isinstance(index, tuple) else ops.getitem(value, index)

    def __setitem__(self, index, new):
        self.swap(index, new)

    def swap(self, index, new):
        if isinstance(new, Ref):
            raise ValueError("Cannot store a Ref into another Ref. Did you forget to load from it using `[...]`?")
        old, new = self.read(), asarray(new)
        before = self[index]
        if new.weak_type and dtypes.is_float(new.engine_dtype) == dtypes.is_float(old.engine_dtype):
            new = astype(new, old.engine_dtype)
        if new.shape != before.shape:
            raise ValueError(f"Invalid shape for `swap`. Ref shape: {self.shape}. Expected shape: {before.shape}. Value shape: {new.shape}.")
        if new.engine_dtype != old.engine_dtype:
            raise ValueError(f"Invalid dtype for `swap`. Ref dtype: {self.dtype.name}. Value dtype: {new.dtype.name}.")
        self.put(new if before is old else ops.At(old, index).set(new))
        return before

    def addupdate(self, new, index=()):
        self.swap(index, ops.add(self[index], new))

    def _check_index(self, index):
        """Where an index is known, it is one of the array's. Source of the texts: jax-ml/jax, jax/_src/state/indexing.py."""
        parts = [part for part in (index if isinstance(index, tuple) else (index,)) if part is not None]
        if Ellipsis in [part for part in parts if not hasattr(part, "shape")]:
            return
        for part, size in zip(parts, self.shape):
            known = [int(part)] if isinstance(part, (int, np.integer)) else part._raw().ravel().tolist() if isinstance(part, ConcreteArray) and part.engine_dtype != "i1" else []
            for one in known:
                if not -size <= one < size:
                    raise ValueError(f"Out of bound indexer: idx={one}, dim={size}.")

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self):
        raise TypeError(f"a mutable array reference of type {self.type_text()} is not iterable: iterate over its value, ref[...]")

    def __jax_array__(self):
        raise TypeError(f"a mutable array reference of type {self.type_text()} was given where an array is expected: read its value first, ref[...]")

    def __array__(self, *_, **__):
        self.__jax_array__()

    def unsafe_buffer_pointer(self):
        raise NotImplementedError("jax.Ref.unsafe_buffer_pointer: arrays of virtual devices have no addresses that a page could compare; print the ref itself")

    @property
    def at(self):
        raise NotImplementedError("jax.Ref.at: views of a ref are not here; index the ref itself, ref[index]")

    def __repr__(self):
        value = self.read()
        return f"Ref{repr(value)[5:]}" if isinstance(value, ConcreteArray) else f"{type(value).__name__}<{self.type_text()}>"


def raw(value):
    """The array that holds the examples of a value."""
    while value.level:
        value = value.value
    return value


def alike(array, value):
    """An array as the examples of vmaps that `value` has."""
    return array if not value.level else BatchTracer(alike(array, value.value), value.level)


def _matched(value, like):
    if not like.level:
        return value
    inner = value.value if value.level == like.level else spread(value, like.value.shape[0])
    return BatchTracer(_matched(inner, like.value), like.level)


def new_ref(init_val, *, memory_space=None, kind=None, pin=False):
    if memory_space is not None or pin:
        raise NotImplementedError("jax.new_ref with memory_space or pin: a virtual device has one memory")
    if isinstance(init_val, Ref):
        raise ValueError("Cannot make a Ref of another Ref. Did you forget to load from it using `[...]`?")
    value = asarray(init_val)
    for number, level in enumerate(Level.stack, 1):  # made within a vmap, each example has one of its own
        if value.level < number:
            value = BatchTracer(spread(value, level.size), number)
    used[:] = [True]
    return Ref(value)


def freeze(ref):
    value = ref.read()
    if ref._is_argument or (Scope._stack[-1] if Scope._stack else None) is not ref._home:
        raise ValueError(f"a mutable array reference of type {ref.type_text()} was given to jax.freeze in a function that did not make it: freeze it where "
                         "jax.new_ref made it, or read it, ref[...]")
    ref._is_frozen = True
    return value


# ---- what traced functions do to refs from outside

def changed(scope):
    """The refs from outside to which the function gives other values."""
    return [held for held in scope.refs.values() if held.is_changed]


def results(scope):
    return [raw(held.value) for held in changed(scope)]


def happen(scope, values):
    """Puts what a function that ran leaves in refs into them."""
    for held, value in zip(changed(scope), values):
        held.ref.put(alike(value, held.ref.read()))


def resolved(captures):
    """What a traced function takes from outside, with the values that refs have now."""
    return [raw(capture.read()) if isinstance(capture, Ref) else capture for capture in captures]


def keys(scope):
    """How the refs from outside lie."""
    return tuple(raw(held.ref.read())._handle.key for held in scope.refs.values())


def add_sinks(scope, changed):
    """Arguments of a function that is traced for its derivative, whose cotangents are what a rule leaves in refs, and behind them 1: only the program of the
    derivative runs the rule, and all that it gives is cotangents. They are zeros, and nothing is computed from them."""
    if not scope.derives or scope.is_linear:
        raise NotImplementedError("a rule for a derivative that writes to a mutable array reference, for a function that is called within a loop or another rule: "
                                  "write to it in a function that is called outside of these")
    added = []
    for held in changed:
        if any(ref is held.ref for *_, ref in scope.sinks):
            raise NotImplementedError(f"two rules for derivatives that write to the same mutable array reference of type {held.ref.type_text()}: use a ref for each")
        if held.value.level or not dtypes.is_float(held.value.engine_dtype):
            raise NotImplementedError(f"a rule for a derivative that writes to a mutable array reference of type {held.ref.type_text()}"
                                      f"{' within jax.vmap' if held.value.level else ''}: only refs of real numbers are known here")
        numbers = []
        for shape in (held.value.shape, ()):
            zeros = without_scopes(lambda shape=shape: ops.full(shape, 0, held.value.engine_dtype))
            numbers.append(len(scope.inputs))
            added.append(scope.argument(zeros))
            scope.captures.append(zeros)
        scope.sinks.append((*numbers, held.is_read(), held.ref))
    return added


def fill_sinks(sinks, cotangents):
    """Puts what rules left in refs into them, where the rules ran."""
    given = iter(cotangents)
    for *_, ref in sinks:
        value, ran = next(given), next(given)
        ref.put(ops.where(ops.not_equal(ran, 0), value, ref.read()))


def check_sinks(scope):
    """Of a function that was traced for its derivative: refs to which both it and one of its rules write."""
    for *_, ref in scope.sinks:
        if id(ref) in scope.refs and scope.refs[id(ref)].is_changed:
            raise NotImplementedError(f"a mutable array reference of type {ref.type_text()} to which both a function and a rule for its derivative write: use two")


def check_sinks_are_as_before(sinks, values):
    """Of a function that vjp gives: what its rules read in refs is what was there when vjp was called."""
    for (_, _, is_read, ref), value in zip(sinks, values):
        if is_read and ref.read() is not value:
            raise NotImplementedError(f"a rule for a derivative that reads a mutable array reference of type {ref.type_text()}, which changed since jax.vjp was called: "
                                      "call jax.vjp again")


def without_scopes(make):
    """An array that is part of no program."""
    outside, Scope._stack = Scope._stack, []
    try:
        return make()
    finally:
        Scope._stack = outside


class Branch:
    """While a part is traced that may not be carried out: afterwards refs are as they were, and `after` has what the part gave them."""

    def __enter__(self):
        self._first = _made
        self._journal = {}
        journals.append((Scope._stack[-1] if Scope._stack else None, self._journal))
        return self

    def __exit__(self, kind, *_):
        journals.pop()
        self.after = {}
        for ref, old in self._journal.values():
            if ref.number <= self._first and kind is None:
                self.after[id(ref)] = ref, ref.read()
                ref.put(old)


def is_ref(x):
    return isinstance(x, Ref)


def no_refs(outs, said):
    """Raises where one of the results is a ref. `said`: the function, and the transformation that traces it."""
    for out in outs:
        if isinstance(out, Ref):
            raise ValueError(f"function {said} returned a mutable array reference of type {out.type_text()}, but mutable array references cannot be returned.")
