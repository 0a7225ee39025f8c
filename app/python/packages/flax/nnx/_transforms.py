# SPDX-License-Identifier: GPL-3.0-or-later
"""jax's transformations for functions of objects with variables: what such a function changes is changed outside too."""
import functools

import jax
from jax._src.trees import tree_flatten, tree_unflatten

from ._graph import (MISSING, State, Variable, copied, copy_into, described, is_graph, is_variable, lent, matches, variables_of, walk)
from ._variables import Param


class _Pure:
    """A function of objects as one of arrays, for objects of one form."""

    def __init__(self, function, form, leaves, nodes):
        self._function, self._form = function, form
        self._is_node = [is_graph(leaf) for leaf in leaves]
        self._template = copied(nodes, {}, lambda variable: variable.replace(None), lambda _: MISSING)
        functools.update_wrapper(self, function, updated=())

    def __call__(self, values, arrays):
        given = iter(values)
        inner = copied(self._template, {}, lambda variable: variable.copy())
        for _, variable in variables_of(inner):
            variable.put(next(given))
        self._inner = [node for _, node in walk(inner)]
        self._inner_nodes = inner
        nodes, rest = iter(inner), iter(arrays)
        args, kwargs = tree_unflatten(self._form, [next(nodes) if is_node else next(rest) for is_node in self._is_node])
        outs, self._out_form = tree_flatten(self._function(*args, **kwargs), is_graph)
        self._outs = [out if is_graph(out) else None for out in outs]
        self._variables = [variable for _, variable in variables_of((inner, self._outs))]
        return [variable.value for variable in self._variables], [out for out in outs if not is_graph(out)]

    def finished(self, nodes, values, results):
        """What was changed inside is changed in `nodes`; gives the results with objects in their places."""
        made = {id(inner): outer for inner, (_, outer) in zip(self._inner, walk(nodes))}
        value_of = dict(zip(map(id, self._variables), values))
        array_of = {id(variable.value): value for variable, value in zip(self._variables, values)}
        for inner in self._inner:
            outer = made[id(inner)]
            if is_variable(inner):
                outer.__dict__["_metadata"] = dict(inner._metadata)
                if id(inner) in value_of:
                    outer.value = value_of[id(inner)]
        fresh = lambda variable: variable.replace(value_of[id(variable)])
        held = lambda array: array_of.get(id(array), array)
        for inner in self._inner:
            if not is_variable(inner):
                copy_into(made[id(inner)], inner, made, fresh, held)
        rest = iter(results)
        return tree_unflatten(self._out_form, [copied(out, made, fresh, held) if out is not None else next(rest) for out in self._outs])


def _type_of(leaf):
    return (leaf.shape, str(leaf.dtype)) if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else type(leaf)


class _Lifted:
    def __init__(self, function, transform, static_argnums=(), static_argnames=()):
        functools.update_wrapper(self, function, updated=())
        self._function, self._transform = function, transform
        self._static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums or ())
        self._names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames or ())
        self._pures = {}

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args, **kwargs):
        fixed = {number: args[number] for number in self._static if number < len(args)}
        named = {name: kwargs[name] for name in self._names if name in kwargs}
        dynamic = tuple(arg for number, arg in enumerate(args) if number not in fixed)
        keywords = {name: value for name, value in kwargs.items() if name not in named}
        leaves, form = tree_flatten((dynamic, keywords), is_graph)
        nodes = [leaf for leaf in leaves if is_graph(leaf)]
        arrays = [leaf for leaf in leaves if not is_graph(leaf)]
        values = [variable.value for _, variable in variables_of(nodes)]
        types = tuple(map(_type_of, tree_flatten(values)[0] + arrays))
        key = (form, tuple(map(is_graph, leaves)), described(nodes), types, tuple(fixed.items()), tuple(named.items()))
        entry = self._pures.get(key)
        if entry is None:
            @functools.wraps(self._function)
            def function(*dynamic, **keywords):
                rest = iter(dynamic)
                whole = [fixed[number] if number in fixed else next(rest) for number in range(len(dynamic) + len(fixed))]
                return self._function(*whole, **keywords, **named)
            pure = _Pure(function, form, leaves, nodes)
            entry = self._pures[key] = pure, self._transform(pure)
        pure, transformed = entry
        return pure.finished(nodes, *transformed(values, arrays))


def jit(fun=None, *, in_shardings=None, out_shardings=None, static_argnums=(), static_argnames=(), donate_argnums=(),
        donate_argnames=(), **_):
    if fun is None:
        return functools.partial(jit, in_shardings=in_shardings, out_shardings=out_shardings, static_argnums=static_argnums,
                                 static_argnames=static_argnames)
    if in_shardings is not None or out_shardings is not None:
        raise NotImplementedError("nnx.jit with in_shardings or out_shardings")
    return _Lifted(fun, jax.jit, static_argnums, static_argnames)


def cached_partial(f, *cached_args):
    """A function with its first arguments given."""
    @functools.wraps(f)
    def called(*args, **kwargs):
        return f(*cached_args, *args, **kwargs)
    return called


def eval_shape(fun, *args, **kwargs):
    return _Lifted(fun, lambda pure: functools.partial(jax.eval_shape, pure))(*args, **kwargs)


class DiffState:
    """For argnums: an argument, and which of its variables the derivative is taken by."""

    def __init__(self, argnum, filter):
        self.argnum, self.filter = argnum, filter

    def __repr__(self):
        return f"DiffState(argnum={self.argnum}, filter={self.filter!r})"


def value_and_grad(fun=None, *, argnums=0, has_aux=False, wrt=Param):
    if fun is None:
        return functools.partial(value_and_grad, argnums=argnums, has_aux=has_aux, wrt=wrt)

    @functools.wraps(fun)
    def differentiated(*args, **kwargs):
        said = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
        numbers = tuple(one.argnum if isinstance(one, DiffState) else one for one in said)
        filters = [one.filter if isinstance(one, DiffState) else wrt for one in said]
        whole = variables_of((args, kwargs))
        before = [variable.value for _, variable in whole]
        chosen, plain = [], []
        for number, own in zip(numbers, filters):
            if variables_of(args[number]):
                chosen.append([(path, variable) for path, variable in variables_of(args[number]) if matches(own, path, variable)])
                plain.append(None)
            else:
                chosen.append([])
                plain.append(args[number])

        def pure(values, others):
            with lent([variable for _, variable in whole], (args, kwargs)):
                return differentiable(values, others)

        def differentiable(values, others):
            for some, own in zip(chosen, values):
                for (_, variable), value in zip(some, own):
                    variable.value = value
            changed = list(args)
            for number, other, is_plain in zip(numbers, others, plain):
                if is_plain is not None:
                    changed[number] = other
            start = [variable.value for _, variable in whole]
            made = fun(*changed, **kwargs)
            value, aux = made if has_aux else (made, None)
            after = {at: variable.value for at, (_, variable) in enumerate(whole) if variable.value is not start[at]}
            return value, (aux, after)

        try:
            (value, (aux, after)), (grads, others) = jax.value_and_grad(pure, argnums=(0, 1), has_aux=True)(
                [[variable.value for _, variable in some] for some in chosen], plain)
        finally:
            for (_, variable), old in zip(whole, before):
                variable.put(old)
        for at, new in after.items():
            whole[at][1].value = new
        made = [other if is_plain is not None else
                State.from_flat_path([(path, variable.state_with(grad)) for (path, variable), grad in zip(some, own)])
                for some, own, other, is_plain in zip(chosen, grads, others, plain)]
        made = tuple(made) if isinstance(argnums, (tuple, list)) else made[0]
        return ((value, aux) if has_aux else value), made
    return differentiated


def grad(fun=None, *, argnums=0, has_aux=False, wrt=Param):
    if fun is None:
        return functools.partial(grad, argnums=argnums, has_aux=has_aux, wrt=wrt)
    both = value_and_grad(fun, argnums=argnums, has_aux=has_aux, wrt=wrt)

    @functools.wraps(fun)
    def gradient(*args, **kwargs):
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads
    return gradient


def get_abstract_model(init_fn, mesh):
    """The form of the model that `init_fn` makes, and the types and layouts of its variables on the mesh."""
    from ._graph import split
    from ._spmd import _spec
    with jax.set_mesh(mesh):
        definition, types = split(eval_shape(init_fn))
    placed = lambda one: one.replace(jax.ShapeDtypeStruct(one.value.shape, one.value.dtype, sharding=jax.sharding.NamedSharding(mesh, _spec(one))))
    return definition, jax.tree.map(placed, types, is_leaf=lambda node: hasattr(node, "_metadata"))


def jvp(f, primals, tangents):
    return jax.jvp(f, primals, tangents)


def vjp(f, *primals, **options):
    return jax.vjp(f, *primals, **options)


def shard_map(f=None, *, mesh=None, in_specs=None, out_specs=None, **options):
    if f is None:
        return functools.partial(shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)
    return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)


custom_vjp = jax.custom_vjp
