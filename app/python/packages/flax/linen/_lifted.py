# SPDX-License-Identifier: GPL-3.0-or-later
"""Transforms of JAX around modules: their variables become arguments and results. Source of the rules: google/flax, flax/core/lift.py."""
import copy
import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax.tree_util import tree_broadcast

from .. import errors
from ..core import meta
from ..core.frozen_dict import unfreeze
from ..core.scope import LazyRng, in_filter
from ._module import Module, _over_modules, apply_to

_is_none = lambda node: node is None


class _Call:
    """A method of a module in a scope, as a function of variables and keys. `make`: the module in another scope."""

    def __init__(self, scope, make, fun):
        self.scope, self.make, self.fun = scope, make, fun

    def groups(self, filters):
        """The variables, collection by collection: each is of the first filter that means it."""
        made, left = [], self.scope.collections()
        for chosen in filters:
            made.append({name: unfreeze(part) for name, part in left.items() if in_filter(chosen, name)})
            left = {name: part for name, part in left.items() if name not in made[-1]}
        return made

    def streams(self, split_rngs, size):
        """Keys for each step of the streams that are split, and how `run` takes one step's."""
        said = {name: next((split for chosen, split in split_rngs.items() if in_filter(chosen, name)), None) for name in self.scope.rngs}
        keys = {name: jax.random.split(self.scope.rngs[name].rng, size) for name, split in said.items() if split}
        same = {name: self.scope.rngs[name] for name, split in said.items() if split is False}
        return keys, lambda keys: {**{name: LazyRng(key, self.scope.rngs[name].suffix) for name, key in keys.items()}, **same}

    def run(self, groups, rngs, args, filters, kwargs={}, all_of=()):
        """The result, and of each filter the collections that may have changed; of those in `all_of` all."""
        root = {name: unfreeze(part) for group in groups for name, part in group.items()}
        scope = self.scope.lifted(root, rngs)
        made = apply_to(self.make(scope), self.fun, args, kwargs)
        return made, [{name: part for name, part in root.items() if in_filter(chosen, name) and (chosen in all_of or scope.is_mutable(name))} for chosen in filters]

    def publish(self, groups):
        """What was made of the variables becomes the scope's own."""
        for group in groups:
            for name, part in group.items():
                if self.scope.is_mutable(name):
                    self.scope.collection(name, True).update(part)


def _without_parent(module, owner):
    """What a field of a lifted module holds, free to become that of the module within the transform."""
    def free(_, part):
        if part.parent is not owner and part.parent is not None:
            raise NotImplementedError("a transform of flax.linen around a module that holds a module of another one")
        return part.clone(name=None)
    return _over_modules(free, module)


def _lift(prefix, target, methods, lifted):
    """`lifted(call, args, kwargs)` around the methods of a class of modules, or around a function whose first argument is one."""
    if isinstance(target, functools.partial) and isinstance(target.func, type):
        return functools.partial(_lift(prefix, target.func, methods, lifted), *target.args, **target.keywords)
    if isinstance(target, type) and issubclass(target, Module):
        return _class(prefix, target, methods, lifted)
    if isinstance(target, Module) or not callable(target):
        raise errors.TransformTargetError("Linen transformations must be applied to Modules classes or functions taking a Module instance as the first argument. "
                                          f"The provided target is not a Module class or callable: {target}")

    def called(module, *args, **kwargs):
        return lifted(_call_of(module, target), args, kwargs)
    return functools.wraps(target)(called) if hasattr(target, "__name__") else called


def _call_of(module, target):
    """A function whose first argument is this module."""
    names = [field.name for field in dataclasses.fields(module) if field.init and field.name != "parent"]
    make = lambda scope: type(module)(**{name: _without_parent(getattr(module, name), module) for name in names}, parent=scope)
    return _Call(module.scope, make, lambda inner, *args, **kwargs: inner._go_on(module, target, args, kwargs))


def _class(prefix, target, methods, lifted):
    names = [field.name for field in dataclasses.fields(target) if field.init and field.name != "parent"]

    def around(fun):
        def method(self, *args, **kwargs):
            make = lambda scope: target(**{name: _without_parent(getattr(self, name), self) for name in names}, parent=scope)
            return lifted(_Call(self.scope, make, fun), args, kwargs)
        method.__name__, method.__doc__, method.compact = fun.__name__, fun.__doc__, True
        return method
    own = {name: around(getattr(target, name)) for name in ([methods] if isinstance(methods, str) else methods or ["__call__"])}
    return type(prefix + target.__name__, (target,), {"__module__": target.__module__, "setup": lambda self: None, **own})


def _no_keywords(name, kwargs):
    if kwargs:
        raise NotImplementedError(f"flax.linen.{name} of a call with the keyword arguments {', '.join(kwargs)}")


def vmap(target, variable_axes=None, split_rngs=None, in_axes=0, out_axes=0, axis_size=None, axis_name=None, spmd_axis_name=None, metadata_params=None,
         methods=None):
    filters, axes = list(variable_axes or {}), list((variable_axes or {}).values())
    split_rngs, names = split_rngs or {}, metadata_params or {}

    def lifted(call, args, kwargs):
        _no_keywords("vmap", kwargs)
        groups = [group if axis is None else meta.remove_axis(group, axis, names) for group, axis in zip(call.groups(filters), axes)]
        of_args = in_axes if isinstance(in_axes, (int, type(None))) else tuple(in_axes)
        size = axis_size
        if size is None:
            over = zip(jax.tree.leaves(tree_broadcast((axes, of_args), (groups, args), is_leaf=_is_none), is_leaf=_is_none),
                       jax.tree.leaves((groups, args), is_leaf=_is_none))
            sizes = {leaf.shape[axis] for axis, leaf in over if axis is not None and leaf is not None}
            if len(sizes) != 1:
                raise ValueError(f"Inconsistent batch axis sizes: {sizes}" if sizes else "axis_size should be specified manually.")
            size, = sizes
        keys, streams = call.streams(split_rngs, size)
        made, groups = jax.vmap(lambda groups, keys, args: call.run(groups, streams(keys), args, filters), in_axes=(axes, 0, of_args), out_axes=(out_axes, axes),
                                axis_name=axis_name, axis_size=size)(groups, keys, args)
        call.publish(group if axis is None else meta.add_axis(group, axis, names) for group, axis in zip(groups, axes))
        return made
    return _lift("Vmap", target, methods, lifted)


class broadcast:
    """Of in_axes of `scan`: the same at each step."""


def scan(target, variable_axes=None, variable_broadcast=False, variable_carry=False, split_rngs=None, in_axes=0, out_axes=0, length=None, reverse=False, unroll=1,
         data_transform=None, metadata_params=None, methods=None, _split_transpose=False, check_constancy_invariants=True):
    if data_transform is not None:
        raise NotImplementedError("flax.linen.scan with data_transform")
    filters, axes = list(variable_axes or {}), list((variable_axes or {}).values())
    split_rngs, names = split_rngs or {}, metadata_params or {}
    moved = lambda tree, source, to: jax.tree.map(lambda x: jnp.moveaxis(x, source, to), tree)

    def lifted(call, args, kwargs):
        _no_keywords("scan", kwargs)
        init, *xs = args
        of_xs = [in_axes] * len(xs) if isinstance(in_axes, int) or in_axes is broadcast else list(in_axes)
        shared, carried, *parts = call.groups([variable_broadcast, variable_carry, *filters])
        parts = [moved(meta.remove_axis(part, axis, names), axis, 0) for part, axis in zip(parts, axes)]
        over = [moved(x, axis, 0) for x, axis in zip(xs, of_xs) if axis is not broadcast]
        sizes = {leaf.shape[0] for leaf in jax.tree.leaves(over)}
        if length is None and len(sizes) != 1:
            raise ValueError(f"Inconsistent scan lengths: {sizes}" if sizes else "length should be specified manually.")
        size = next(iter(sizes)) if length is None else length
        keys, streams = call.streams(split_rngs, size)

        def step(shared, carry, slices):
            (carried, c), (parts, keys, over) = carry, slices
            over = iter(over)
            given = [x if axis is broadcast else next(over) for x, axis in zip(xs, of_xs)]
            (c, y), (shared, carried, *parts) = call.run([shared, carried, *parts], streams(keys), (c, *given), [variable_broadcast, variable_carry, *filters],
                                                         all_of=(variable_carry,))
            return shared, (carried, c), (y, parts)
        slices = (parts, keys, over)
        first = lambda: step(shared, (carried, init), jax.tree.map(lambda x: x[0], slices))[0]
        if call.scope.initializing:  # what all steps share is made once
            shared = {**shared, **first()}
        elif check_constancy_invariants and call.scope.rngs:
            jax.eval_shape(first)  # Flax's extra pass, whose draws count
        counters = copy.deepcopy(call.scope.counters)

        def turn(carry, slices):
            call.scope.counters.clear()
            call.scope.counters.update(copy.deepcopy(counters))
            return step(shared, carry, slices)[1:]
        (carried, c), (ys, parts) = jax.lax.scan(turn, (carried, init), slices, length=size, reverse=reverse, unroll=unroll)
        call.publish([shared, carried, *(meta.add_axis(moved(part, 0, axis), axis, names) for part, axis in zip(parts, axes))])
        of_ys = tree_broadcast(out_axes, ys) if ys is not None else None
        return c, jax.tree.map(lambda y, axis: jnp.moveaxis(y, 0, axis), ys, of_ys)
    return _lift("Scan", target, methods, lifted)


def _as_it_is(prefix):
    """Transforms that change no value: programs keep what their derivatives read, and are compiled where they are called."""
    def transform(target=None, *_, methods=None, **__):
        if target is None:
            return lambda target: transform(target, methods=methods)
        if isinstance(target, functools.partial):
            return functools.partial(transform(target.func, methods=methods), *target.args, **target.keywords)
        return type(prefix + target.__name__, (target,), {"__module__": target.__module__}) if isinstance(target, type) else target
    return transform


remat = checkpoint = _as_it_is("Checkpoint")
jit = _as_it_is("Jit")


def map_variables(target, mapped_collections="params", trans_in_fn=lambda vs: vs, trans_out_fn=lambda vs: vs, init=False, mutable=False, rngs=True, variables=True,
                  methods=None):
    """What the module reads of some collections is `trans_in_fn` of what is kept, and what it makes is kept as `trans_out_fn` of it."""
    def lifted(call, args, kwargs):
        filters = [mapped_collections, variables]
        kept, others = call.groups(filters)
        if init and call.scope.initializing:
            kept = trans_out_fn(call.run([kept, others], call.scope.rngs, args, filters, kwargs)[1][0])
        made, (mapped, others) = call.run([trans_in_fn(kept), others], call.scope.rngs, args, filters, kwargs)
        mapped = trans_out_fn(mapped) if mutable or init else {}
        call.publish([{name: part for name, part in mapped.items() if in_filter(mapped_collections, name)},
                      {name: part for name, part in others.items() if not in_filter(mapped_collections, name)}])
        return made
    return _lift("Map_variables", target, methods, lifted)


def add_metadata_axis(target, variable_axes=None, metadata_params=None, methods=None):
    """Names an axis that the module's variables have not: for modules that a loop of the page's own stacks."""
    filters, axes, names = list(variable_axes or {}), list((variable_axes or {}).values()), metadata_params or {}

    def lifted(call, args, kwargs):
        groups = [meta.remove_axis(group, axis, names) for group, axis in zip(call.groups(filters), axes)]
        made, groups = call.run(groups, call.scope.rngs, args, filters, kwargs)
        call.publish(meta.add_axis(group, axis, names) for group, axis in zip(groups, axes))
        return made
    return _lift("Add_metadata_axis", target, methods, lifted)


# ---- control of programs

def _chosen(choose, functions, module, operands, variables):
    calls = [_call_of(module, function) for function in functions]
    kept, = calls[0].groups([variables])
    made, (after,) = choose([lambda kept, operands, call=call: call.run([kept], call.scope.rngs, operands, [variables]) for call in calls], kept, operands)
    calls[0].publish([after])
    return made


def cond(pred, true_fun, false_fun, mdl, *operands, variables=True, rngs=True):
    """jax.lax.cond of functions whose first argument is a module."""
    return _chosen(lambda pures, *given: jax.lax.cond(pred, *pures, *given), [true_fun, false_fun], mdl, operands, variables)


def switch(index, branches, mdl, *operands, variables=True, rngs=True):
    return _chosen(lambda pures, *given: jax.lax.switch(index, pures, *given), branches, mdl, operands, variables)


def while_loop(cond_fn, body_fn, mdl, init, carry_variables=False, broadcast_variables=True, split_rngs=None):
    """jax.lax.while_loop of functions of a module and the carry: variables of `carry_variables` are carried, too."""
    if any((split_rngs or {}).values()):
        raise NotImplementedError("flax.linen.while_loop with split_rngs: how many keys it takes is not known; fold the turn's number into a key of the carry")
    filters = [carry_variables, broadcast_variables]
    condition, body = _call_of(mdl, cond_fn), _call_of(mdl, body_fn)
    carried, shared = body.groups(filters)

    def turn(carry):
        after, (kept, _) = body.run([carry[0], shared], body.scope.rngs, (carry[1],), filters, all_of=(carry_variables,))
        return kept, after
    carried, made = jax.lax.while_loop(lambda carry: condition.run([carry[0], shared], condition.scope.rngs, (carry[1],), filters)[0], turn, (carried, init))
    body.publish([carried])
    return made
