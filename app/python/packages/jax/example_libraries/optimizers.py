# SPDX-License-Identifier: GPL-3.0-or-later
"""Optimizers as triples of functions: params -> state, (step, gradients, state) -> state, state -> params. Source of the formulas and the defaults: jax-ml/jax,
jax/example_libraries/optimizers.py."""
import collections
import functools

import jax.numpy as jnp
from jax import tree, tree_util

Optimizer = collections.namedtuple("Optimizer", "init_fn update_fn params_fn")


class OptimizerState:
    """For each parameter a tuple, whose first is its value; and the form of the tree of parameters."""

    def __init__(self, leaves, form):
        self.leaves, self.form = leaves, form


tree_util.register_pytree_node(OptimizerState, lambda state: (state.leaves, state.form), lambda form, leaves: OptimizerState(list(leaves), form))


def optimizer(opt_maker):
    """Makes an optimizer of trees of one of single arrays."""
    @functools.wraps(opt_maker)
    def made(*args, **kwargs):
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_of_tree(params):
            leaves, form = tree.flatten(params)
            return OptimizerState([init(leaf) for leaf in leaves], form)

        def update_of_tree(i, grads, state):
            given, form = tree.flatten(grads)
            if form != state.form:
                raise TypeError(f"optimizer update function was passed a gradient tree that did not match the parameter tree structure with which it was initialized: "
                                f"parameter tree {state.form} and grad tree {form}.")
            return OptimizerState([update(i, grad, own) for grad, own in zip(given, state.leaves)], form)
        return Optimizer(init_of_tree, update_of_tree, lambda state: tree.unflatten(state.form, [get_params(own) for own in state.leaves]))
    return made


def _value(state):
    return state[0]


def _with_zeros(count):
    return lambda x: (x,) + (jnp.zeros_like(x),) * count


@optimizer
def sgd(step_size):
    rate = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - rate(i) * g, lambda x: x


@optimizer
def momentum(step_size, mass):
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, speed = state
        speed = mass * speed + g
        return x - rate(i) * speed, speed
    return _with_zeros(1), update, _value


@optimizer
def nesterov(step_size, mass):
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, speed = state
        speed = mass * speed + g
        return x - rate(i) * (mass * speed + g), speed
    return _with_zeros(1), update, _value


@optimizer
def adagrad(step_size, momentum=0.9):
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares, m = state
        squares = squares + jnp.square(g)
        m = (1.0 - momentum) * (g * jnp.where(squares > 0, 1.0 / jnp.sqrt(squares), 0.0)) + momentum * m
        return x - rate(i) * m, squares, m
    return _with_zeros(2), update, _value


@optimizer
def rmsprop(step_size, gamma=0.9, eps=1e-8):
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares = state
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        return x - rate(i) * g / jnp.sqrt(squares + eps), squares
    return _with_zeros(1), update, _value


@optimizer
def rmsprop_momentum(step_size, gamma=0.9, eps=1e-8, momentum=0.9):
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares, speed = state
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        speed = momentum * speed + rate(i) * g / jnp.sqrt(squares + eps)
        return x - speed, squares, speed
    return _with_zeros(2), update, _value


@optimizer
def adam(step_size, b1=0.9, b2=0.999, eps=1e-8):
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, m, v = state
        m, v = (1 - b1) * g + b1 * m, (1 - b2) * jnp.square(g) + b2 * v
        ahead, ahead_v = (1 - jnp.asarray(b, m.dtype) ** (i + 1) for b in (b1, b2))
        return x - rate(i) * (m / ahead) / (jnp.sqrt(v / ahead_v) + eps), m, v
    return _with_zeros(2), update, _value


@optimizer
def adamax(step_size, b1=0.9, b2=0.999, eps=1e-8):
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, m, most = state
        m, most = (1 - b1) * g + b1 * m, jnp.maximum(b2 * most, jnp.abs(g))
        return x - (rate(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))) * m / (most + eps), m, most
    return _with_zeros(2), update, _value


# ---- step sizes

def constant(step_size):
    return lambda i: step_size


def exponential_decay(step_size, decay_steps, decay_rate):
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size, decay_steps, decay_rate, staircase=False):
    return lambda i: step_size / (1 + decay_rate * (jnp.floor(i / decay_steps) if staircase else i / decay_steps))


def polynomial_decay(step_size, decay_steps, final_step_size, power=1.0):
    def schedule(i):
        part = (1 - jnp.minimum(i, decay_steps) / decay_steps) ** power
        return part * (step_size - final_step_size) + final_step_size
    return schedule


def piecewise_constant(boundaries, values):
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if boundaries.ndim != 1 or values.shape != (boundaries.shape[0] + 1,):
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule):
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule):
        raise TypeError(type(scalar_or_schedule))
    return constant(scalar_or_schedule)


# ---- gradients

def l2_norm(tree_of):
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree.leaves(tree_of)))


def clip_grads(grad_tree, max_norm):
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
