# SPDX-License-Identifier: GPL-3.0-or-later
"""optax.projections: the nearest point of a set. Source of the names: google-deepmind/optax, optax/projections."""
import jax.numpy as jnp
from jax import tree
from jax.flatten_util import ravel_pytree

from .tree_utils import tree_norm


def projection_non_negative(pytree):
    return tree.map(lambda x: jnp.where(x < 0, 0, x), pytree)


def projection_box(pytree, lower, upper):
    from jax.tree_util import tree_broadcast
    spread = lambda bound: tree_broadcast(bound, pytree)
    return tree.map(lambda x, low, high: jnp.clip(x, low, high), pytree, spread(lower), spread(upper))


def projection_hypercube(pytree, scale=1.0):
    return projection_box(pytree, 0.0, scale)


def projection_linf_ball(pytree, scale=1.0):
    return tree.map(lambda x: jnp.clip(x, -scale, scale), pytree)


def _onto_simplex(values, scale):
    """Held, Wolfe and Crowder: sorted values, as many as stay above what all are lowered by."""
    ordered = jnp.sort(values, descending=True)
    excess = jnp.cumsum(ordered) - scale
    places = jnp.arange(1, values.shape[0] + 1)
    count = jnp.sum(ordered - excess / places > 0)
    return jnp.maximum(values - excess[count - 1] / count, 0)


def projection_simplex(pytree, scale=1.0):
    values, back = ravel_pytree(pytree)
    return back(_onto_simplex(values, scale))


def projection_l1_sphere(pytree, scale=1.0):
    values, back = ravel_pytree(pytree)
    return back(jnp.sign(values) * _onto_simplex(jnp.abs(values), scale))


def projection_l1_ball(pytree, scale=1.0):
    values, back = ravel_pytree(pytree)
    return back(jnp.where(jnp.sum(jnp.abs(values)) <= scale, values, jnp.sign(values) * _onto_simplex(jnp.abs(values), scale)))


def projection_l2_sphere(pytree, scale=1.0):
    norm = tree_norm(pytree)
    return tree.map(lambda x: x * (scale / norm), pytree)


def projection_l2_ball(pytree, scale=1.0):
    norm = tree_norm(pytree)
    factor = scale / jnp.maximum(norm, scale)
    return tree.map(lambda x: x * factor, pytree)
