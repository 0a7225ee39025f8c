# SPDX-License-Identifier: GPL-3.0-or-later
"""Arithmetic of trees. Source of the names: google-deepmind/optax, optax/tree_utils."""
import functools
import operator

import jax
import jax.numpy as jnp

map_ = jax.tree.map


def tree_add(a, b, *others):
    return map_(lambda *leaves: functools.reduce(operator.add, leaves), a, b, *others)


def tree_sub(a, b):
    return map_(operator.sub, a, b)


def tree_mul(a, b):
    return map_(operator.mul, a, b)


def tree_div(a, b):
    return map_(operator.truediv, a, b)


def tree_scale(scalar, tree):
    return map_(lambda x: scalar * x, tree)


tree_scalar_mul = tree_scale


def tree_add_scale(a, scalar, b):
    return map_(lambda x, y: x + scalar * y, a, b)


tree_add_scalar_mul = tree_add_scale


def tree_sum(tree):
    return functools.reduce(operator.add, map(jnp.sum, jax.tree.leaves(tree)), 0)


def tree_size(tree):
    return sum(x.size for x in jax.tree.leaves(tree))


def tree_max(tree):
    return functools.reduce(jnp.maximum, map(jnp.max, jax.tree.leaves(tree)), -jnp.inf)


def tree_min(tree):
    return functools.reduce(jnp.minimum, map(jnp.min, jax.tree.leaves(tree)), jnp.inf)


def tree_vdot(a, b):
    return functools.reduce(operator.add, [jnp.vdot(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b))], 0)


def tree_norm(tree, ord=2, squared=False):
    if ord in (None, 2):
        total = tree_sum(map_(lambda x: jnp.real(x * jnp.conj(x)), tree))
        return total if squared else jnp.sqrt(total)
    if ord == 1:
        total = tree_sum(map_(jnp.abs, tree))
    elif ord in (jnp.inf, "inf", "infinity"):
        total = tree_max(map_(jnp.abs, tree))
    else:
        raise ValueError(f"Unsupported ord: {ord}")
    return total ** 2 if squared else total


def tree_l2_norm(tree, squared=False):
    return tree_norm(tree, 2, squared)


tree_l1_norm = lambda tree: tree_norm(tree, 1)
tree_linf_norm = lambda tree: tree_norm(tree, "inf")


def tree_zeros_like(tree, dtype=None):
    return map_(lambda x: jnp.zeros_like(x, dtype=dtype), tree)


def tree_ones_like(tree, dtype=None):
    return map_(lambda x: jnp.ones_like(x, dtype=dtype), tree)


def tree_full_like(tree, fill_value, dtype=None):
    return map_(lambda x: jnp.full_like(x, fill_value, dtype=dtype), tree)


def tree_conj(tree):
    return map_(jnp.conj, tree)


def tree_real(tree):
    return map_(jnp.real, tree)


def tree_cast(tree, dtype):
    return tree if dtype is None else map_(lambda x: x.astype(dtype), tree)


def tree_clip(tree, min_value=None, max_value=None):
    return map_(lambda x: jnp.clip(x, min_value, max_value), tree)


def tree_where(condition, a, b):
    return map_(lambda x, y: jnp.where(condition, x, y), a, b)


def tree_split_key_like(key, tree):
    leaves, form = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(form, [keys[at] for at in range(len(leaves))])


def tree_random_like(rng_key, target_tree, sampler=jax.random.normal, dtype=None):
    return map_(lambda x, key: sampler(key, x.shape, dtype or x.dtype), target_tree, tree_split_key_like(rng_key, target_tree))


def tree_update_moment(updates, moments, decay, order):
    return map_(lambda g, m: (1 - decay) * (g ** order) + decay * m, updates, moments)


def tree_bias_correction(moment, decay, count):
    correction = 1 - decay ** count
    return map_(lambda m: m / correction.astype(m.dtype), moment)


def _found(tree, name):
    """(path, value) of every node of this name: fields of named tuples, names of dictionaries."""
    made = []

    def visit(node, path):
        items = []
        if isinstance(node, tuple) and hasattr(node, "_fields"):
            items = zip(node._fields, node)
        elif isinstance(node, dict):
            items = node.items()
        elif isinstance(node, (tuple, list)):
            items = enumerate(node)
        for own, part in items:
            if own == name:
                made.append((path + (own,), part))
            visit(part, path + (own,))
    visit(tree, ())
    return made


def tree_get_all_with_path(tree, key, filtering=None):
    return _found(tree, key)


def tree_get(tree, key, default=None, filtering=None):
    found = _found(tree, key)
    if len(found) > 1:
        raise KeyError(f"Found multiple values for '{key}' in {tree}.")
    return found[0][1] if found else default


def tree_set(tree, filtering=None, /, **values):
    """The tree with other values at these names."""
    missing = [name for name in values if not _found(tree, name)]
    if missing:
        raise KeyError(f"Found no values matching '{missing[0]}' in {tree}")

    def changed(node):
        if isinstance(node, tuple) and hasattr(node, "_fields"):
            return type(node)(*(values[name] if name in values else changed(part) for name, part in zip(node._fields, node)))
        if isinstance(node, dict):
            return type(node)({name: values[name] if name in values else changed(part) for name, part in node.items()})
        if isinstance(node, (tuple, list)):
            return type(node)(changed(part) for part in node)
        return node
    return changed(tree)


from jax._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())


class _Parameters:
    """Stands for all parameters, of which it has none: what an optimizer's state makes of it is where it keeps something of each."""


jax.tree_util.register_pytree_node(_Parameters, lambda _: ((), None), lambda *_: _Parameters())


def tree_map_params(initable, f, state, /, *rest, transform_non_params=None, is_leaf=None):
    """`f` of what an optimizer's state keeps of each parameter, and of the parts of `rest`, trees like the parameters."""
    is_place = lambda node: isinstance(node, _Parameters)

    def one(place, own):
        if is_place(place):
            return map_(f, own, *rest, is_leaf=is_leaf)
        return own if transform_non_params is None else transform_non_params(own)
    return map_(one, (initable.init if hasattr(initable, "init") else initable)(_Parameters()), state, is_leaf=is_place)
