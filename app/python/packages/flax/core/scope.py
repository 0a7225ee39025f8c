# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a module's variables and random streams are. Source of the order of keys and of the errors: google/flax, flax/core/scope.py."""
import hashlib

import jax
import numpy as np

from .. import errors
from ..configurations import config
from . import meta
from .frozen_dict import FrozenDict, unfreeze


class DenyList:
    """All collections but these."""

    def __init__(self, deny):
        self.deny = deny


def in_filter(chosen, name):
    """Whether a collection, or a stream, is meant: a name, names, a DenyList, or all or none of them."""
    if isinstance(chosen, str):
        return name == chosen
    if isinstance(chosen, bool):
        return chosen
    if isinstance(chosen, DenyList):
        return not in_filter(chosen.deny, name)
    try:
        return name in chosen
    except TypeError:
        raise errors.InvalidFilterError(f'Invalid Filter: "{chosen}"') from None


class LazyRng:
    """A key, and what is yet to be folded into it."""
    __slots__ = ("rng", "suffix")

    def __init__(self, rng, suffix=()):
        self.rng, self.suffix = rng, suffix

    def replace(self, **changes):
        return LazyRng(**{"rng": self.rng, "suffix": self.suffix, **changes})

    def then(self, *parts):
        return LazyRng(self.rng, self.suffix + parts)

    def value(self):
        if not self.suffix:
            return self.rng
        hashed = hashlib.sha1()
        for part in self.suffix:
            if config.flax_fix_rng_separator:
                hashed.update(b"\0")
            hashed.update(part.encode() if isinstance(part, str) else part.to_bytes((part.bit_length() + 7) // 8, "big"))
        return jax.random.fold_in(self.rng, np.uint32(int.from_bytes(hashed.digest()[:4], "big")))


class Scope:
    """The variables of a module, {collection: nested dicts}, which it shares with all scopes of the same root; its streams, and how often each was drawn from.
    The counts go on when a module is called again."""
    initializing = False

    def __init__(self, root, rngs, mutable, path=(), shown=None, counters=None):
        self.root, self.rngs, self.mutable, self.path = root, rngs, mutable, path
        self.shown = path if shown is None else shown  # the path as errors and `module.path` say it
        self.counters = {name: 0 for name in rngs} if counters is None else counters
        self.reserved = {}  # name -> collections that have it; None: a module has it
        self.adopted = {}  # modules from outside by id -> the one that stands for it here, itself

    @property
    def text(self):
        return "/" + "/".join(self.shown)

    def child(self, name):
        rngs = {stream: rng.then(name) for stream, rng in self.rngs.items()}
        counters = self.counters.setdefault(("module", name), {stream: 0 for stream in rngs})
        made = Scope(self.root, rngs, self.mutable, self.path + (name,), self.shown + (name,), counters)
        made.adopted, made.initializing = self.adopted, self.initializing
        return made

    def lifted(self, root, rngs):
        """A root of its own in place of this scope, within a transform of JAX."""
        made = Scope(root, rngs, self.mutable, (), self.shown, self.counters)
        made.initializing = self.initializing
        return made

    # ---- variables

    def collection(self, name, makes=False):
        """This scope's part of a collection."""
        at = self.root.setdefault(name, {}) if makes else self.root.get(name, {})
        for part in self.path:
            at = at.setdefault(part, {}) if makes else at.get(part, {})
        return at

    def collections(self):
        return {name: part for name in self.root for part in [self.collection(name)] if part}

    def is_mutable(self, name):
        return in_filter(self.mutable, name)

    def has(self, collection, name):
        return name in self.collection(collection)

    def put(self, collection, name, value):
        if not self.is_mutable(collection):
            raise errors.ModifyScopeVariableError(f'Cannot update variable "{name}" in "{self.text}" because collection "{collection}" is immutable.')
        self.collection(collection, True)[name] = value

    def param(self, name, init, args, kwargs, unbox):
        if self.has("params", name):
            value = meta.unbox(self.collection("params")[name]) if unbox else self.collection("params")[name]
            self._check_shape(name, value, init, args, kwargs)
            return value
        if not self.is_mutable("params"):
            if not self.root.get("params"):
                raise errors.ScopeCollectionNotFound(f'Tried to access "{name}" from collection "params" in "{self.text}" but the collection is empty.')
            raise errors.ScopeParamNotFoundError(f'Could not find parameter named "{name}" in scope "{self.text}".')
        value = init(self.make_rng("params"), *args, **kwargs)
        self.put("params", name, value)
        return meta.unbox(value) if unbox else value

    def _check_shape(self, name, value, init, args, kwargs):
        shape = args[0] if args and isinstance(args[0], (tuple, list)) and all(isinstance(size, (int, np.integer)) for size in args[0]) else None
        if shape is not None and np.shape(jax.tree.leaves(value)[0]) == tuple(shape):
            return
        wanted = jax.eval_shape(lambda: meta.on_boxes(lambda box: box.value, init(jax.random.key(0), *args, **kwargs)))
        for found, expected in zip(jax.tree.leaves(value), jax.tree.leaves(wanted)):
            if np.shape(found) != np.shape(expected):
                raise errors.ScopeParamShapeError(f'For parameter "{name}" in "{self.text}", the given initializer is expected to generate shape '
                                                  f"{np.shape(expected)}, but the existing parameter it received has shape {np.shape(found)}.")

    # ---- random streams

    def make_rng(self, name):
        if name not in self.rngs:
            if "params" not in self.rngs:
                raise errors.InvalidRngError(f'{self.shown[-1] if self.shown else None} needs PRNG for "{name}"')
            name = "params"
        self.counters[name] += 1
        return self.rngs[name].then(self.counters[name]).value()


def root_scope(variables, rngs, mutable):
    """The scope of variables that a page hands over, which stay as they are."""
    if not isinstance(variables, (dict, FrozenDict)) or not all(isinstance(part, (dict, FrozenDict)) for part in variables.values()):
        raise errors.ApplyScopeInvalidVariablesTypeError("The first argument passed to an apply function should be a dictionary of collections. "
                                                         "Each collection should be a dictionary with string keys.")
    if set(variables.get("params", {})) == {"params"}:
        raise errors.ApplyScopeInvalidVariablesStructureError(
            'Expect the `variables` (first argument) passed to apply() to be a dict with the structure {"params": ...}, but got a dict with an extra params layer, '
            'i.e.  {"params": {"params": ... } }. You should instead pass in your dict\'s ["params"].')
    return Scope(unfreeze(variables), {name: LazyRng(key) for name, key in rngs.items()}, mutable)
