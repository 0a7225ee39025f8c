# SPDX-License-Identifier: GPL-3.0-or-later
"""The optimizers and losses of optax that pages use. Source of the formulas and defaults: google-deepmind/optax."""
import collections
import math

import jax
import jax.numpy as jnp
from jax import tree

GradientTransformation = collections.namedtuple("GradientTransformation", "init update")
GradientTransformationExtraArgs = GradientTransformation
EmptyState = collections.namedtuple("EmptyState", "")
TraceState = collections.namedtuple("TraceState", "trace")
ScaleByAdamState = collections.namedtuple("ScaleByAdamState", "count mu nu")
ScaleByScheduleState = collections.namedtuple("ScaleByScheduleState", "count")


# ---- steps of a chain

def _stateless(change):
    return GradientTransformation(lambda params: EmptyState(), lambda updates, state, params=None: (change(updates, params), state))


def identity():
    return _stateless(lambda updates, params: updates)


def chain(*steps):
    def init(params):
        return tuple(step.init(params) for step in steps)

    def update(updates, state, params=None, **_):
        after = []
        for step, own in zip(steps, state):
            updates, new = step.update(updates, own, params)
            after.append(new)
        return updates, tuple(after)
    return GradientTransformation(init, update)


def scale(step_size):
    return _stateless(lambda updates, params: tree.map(lambda u: u * step_size, updates))


def scale_by_schedule(schedule):
    def update(updates, state, params=None):
        return tree.map(lambda u: u * schedule(state.count), updates), ScaleByScheduleState(state.count + 1)
    return GradientTransformation(lambda params: ScaleByScheduleState(jnp.zeros([], jnp.int32)), update)


def scale_by_learning_rate(learning_rate):
    if callable(learning_rate):
        return scale_by_schedule(lambda count: -learning_rate(count))
    return scale(-learning_rate)


def trace(decay, nesterov=False):
    def update(updates, state, params=None):
        add = lambda u, t: u + decay * t
        made = tree.map(add, updates, state.trace)
        return (tree.map(add, updates, made) if nesterov else made), TraceState(made)
    return GradientTransformation(lambda params: TraceState(tree.map(jnp.zeros_like, params)), update)


def scale_by_adam(b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, nesterov=False, **_):
    def init(params):
        return ScaleByAdamState(jnp.zeros([], jnp.int32), tree.map(jnp.zeros_like, params), tree.map(jnp.zeros_like, params))

    def update(updates, state, params=None):
        mu = tree.map(lambda g, m: (1 - b1) * g + b1 * m, updates, state.mu)
        nu = tree.map(lambda g, v: (1 - b2) * (g * g) + b2 * v, updates, state.nu)
        count = state.count + 1
        first, second = 1 - b1 ** count.astype(jnp.float32), 1 - b2 ** count.astype(jnp.float32)
        if nesterov:
            ahead = 1 - b1 ** (count + 1).astype(jnp.float32)
            hat = tree.map(lambda m, g: b1 * m / ahead + (1 - b1) * g / first, mu, updates)
        else:
            hat = tree.map(lambda m: m / first, mu)
        made = tree.map(lambda m, v: m / (jnp.sqrt(v / second + eps_root) + eps), hat, nu)
        return made, ScaleByAdamState(count, mu, nu)
    return GradientTransformation(init, update)


def add_decayed_weights(weight_decay=0.0, mask=None):
    def change(updates, params):
        kept = tree.map(lambda p: True, params) if mask is None else mask(params) if callable(mask) else mask
        return tree.map(lambda g, p, keep: g + weight_decay * p if keep else g, updates, params, kept)
    return _stateless(change)


def global_norm(updates):
    return jnp.sqrt(sum(jnp.sum(u * u) for u in tree.leaves(updates)))


def clip_by_global_norm(max_norm):
    def change(updates, params):
        norm = global_norm(updates)
        return tree.map(lambda u: jnp.where(norm < max_norm, u, u / norm * max_norm), updates)
    return _stateless(change)


def clip(max_delta):
    return _stateless(lambda updates, params: tree.map(lambda u: jnp.clip(u, -max_delta, max_delta), updates))


# ---- optimizers

def sgd(learning_rate, momentum=None, nesterov=False, **_):
    steps = [] if momentum is None else [trace(momentum, nesterov)]
    return chain(*steps, scale_by_learning_rate(learning_rate))


def adam(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, nesterov=False, **_):
    return chain(scale_by_adam(b1, b2, eps, eps_root, nesterov), scale_by_learning_rate(learning_rate))


def adamw(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, weight_decay=1e-4, mask=None, nesterov=False, **_):
    return chain(scale_by_adam(b1, b2, eps, eps_root, nesterov), add_decayed_weights(weight_decay, mask),
                 scale_by_learning_rate(learning_rate))


def apply_updates(params, updates):
    return tree.map(lambda p, u: p if u is None else jnp.asarray(p + u, p.dtype), params, updates)


# ---- learning rates

def constant_schedule(value):
    return lambda count: value


def linear_schedule(init_value, end_value, transition_steps, transition_begin=0):
    def schedule(count):
        done = jnp.clip(count - transition_begin, 0, transition_steps) / transition_steps
        return init_value + (end_value - init_value) * done
    return schedule


def cosine_decay_schedule(init_value, decay_steps, alpha=0.0, exponent=1.0):
    def schedule(count):
        cosine = 0.5 * (1 + jnp.cos(math.pi * jnp.minimum(count, decay_steps) / decay_steps))
        return init_value * ((1 - alpha) * cosine ** exponent + alpha)
    return schedule


def join_schedules(schedules, boundaries):
    def schedule(count):
        made = schedules[0](count)
        for boundary, later in zip(boundaries, schedules[1:]):
            made = jnp.where(count < boundary, made, later(count - boundary))
        return made
    return schedule


def warmup_cosine_decay_schedule(init_value, peak_value, warmup_steps, decay_steps, end_value=0.0, exponent=1.0):
    alpha = 0.0 if peak_value == 0 else end_value / peak_value
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps),
                           cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)], [warmup_steps])


# ---- losses

def squared_error(predictions, targets=None):
    error = predictions if targets is None else predictions - targets
    return error * error


def l2_loss(predictions, targets=None):
    return 0.5 * squared_error(predictions, targets)


def softmax_cross_entropy(logits, labels, axis=-1):
    return -jnp.sum(labels * jax.nn.log_softmax(logits, axis=axis), axis=axis)


def softmax_cross_entropy_with_integer_labels(logits, labels, axis=-1):
    return softmax_cross_entropy(logits, jax.nn.one_hot(labels, logits.shape[axis], axis=axis), axis)


def sigmoid_binary_cross_entropy(logits, labels):
    return -labels * jax.nn.log_sigmoid(logits) - (1.0 - labels) * jax.nn.log_sigmoid(-logits)


def huber_loss(predictions, targets=None, delta=1.0):
    size = jnp.abs(predictions if targets is None else predictions - targets)
    inside = jnp.minimum(size, delta)
    return 0.5 * inside * inside + delta * (size - inside)
