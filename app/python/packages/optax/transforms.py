# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of a chain. Source of the formulas and defaults: google-deepmind/optax, optax/transforms."""
import collections
import functools

import jax
import jax.numpy as jnp
from jax import tree

from ._combining import (EmptyState, GradientTransformation, GradientTransformationExtraArgs, _of_params, _stateless, apply_if_finite, called, chain, flatten, freeze, identity,
                         masked, named_chain, needs, partition, selective_transform, set_to_zero, stateless, with_extra_args_support)
from .tree_utils import tree_bias_correction, tree_norm, tree_update_moment, tree_zeros_like
from jax._src.options import refuse as _refuse

TraceState = collections.namedtuple("TraceState", "trace")
ScaleState = EmptyState
ScaleByAdamState = collections.namedtuple("ScaleByAdamState", "count mu nu")
ScaleByAmsgradState = collections.namedtuple("ScaleByAmsgradState", "count mu nu nu_max")
ScaleByScheduleState = collections.namedtuple("ScaleByScheduleState", "count")
ScaleByRmsState = collections.namedtuple("ScaleByRmsState", "nu")
ScaleByRmsWithCountState = collections.namedtuple("ScaleByRmsWithCountState", "count nu")
ScaleByRStdDevState = collections.namedtuple("ScaleByRStdDevState", "mu nu")
ScaleByRssState = collections.namedtuple("ScaleByRssState", "sum_of_squares")
ScaleByBeliefState = collections.namedtuple("ScaleByBeliefState", "count mu nu")
ScaleByLionState = collections.namedtuple("ScaleByLionState", "count mu")
ScaleByAdaDeltaState = collections.namedtuple("ScaleByAdaDeltaState", "e_g e_x")
EmaState = collections.namedtuple("EmaState", "count ema")
FactoredState = collections.namedtuple("FactoredState", "count v_row v_col v")
ScaleBySM3State = collections.namedtuple("ScaleBySM3State", "mu nu")
ScaleByAdanState = collections.namedtuple("ScaleByAdanState", "m v n g t")
AddNoiseState = collections.namedtuple("AddNoiseState", "count rng_key")
ScaleByOptimisticGradientState = collections.namedtuple("ScaleByOptimisticGradientState", "is_initial_step previous_gradient")


def scale(step_size):
    return _stateless(lambda updates, params: tree.map(lambda u: step_size * u, updates))


def scale_by_schedule(step_size_fn):
    def update(updates, state, params=None):
        rate = step_size_fn(state.count)
        return tree.map(lambda u: jnp.asarray(rate, u.dtype) * u, updates), ScaleByScheduleState(state.count + 1)
    return GradientTransformation(lambda params: ScaleByScheduleState(jnp.zeros([], jnp.int32)), update)


def scale_by_learning_rate(learning_rate, *, flip_sign=True):
    sign = -1 if flip_sign else 1
    if callable(learning_rate):
        return scale_by_schedule(lambda count: sign * learning_rate(count))
    return scale(sign * learning_rate)


def _of_type(tree_of, dtype):
    """The same with floats of another type, where one is asked for."""
    return tree_of if dtype is None else tree.map(lambda x: x.astype(dtype), tree_of)


def trace(decay, nesterov=False, accumulator_dtype=None):
    def update(updates, state, params=None):
        add = lambda u, t: u + decay * t
        made = tree.map(add, updates, state.trace)
        return (tree.map(add, updates, made) if nesterov else made), TraceState(_of_type(made, accumulator_dtype))
    return GradientTransformation(lambda params: TraceState(_of_type(tree.map(jnp.zeros_like, params), accumulator_dtype)), update)


def ema(decay, debias=True, accumulator_dtype=None):
    _refuse("optax.ema", {"accumulator_dtype": accumulator_dtype})
    def update(updates, state, params=None):
        count, made = state.count + 1, tree_update_moment(updates, state.ema, decay, 1)
        return (tree_bias_correction(made, decay, count.astype(jnp.float32)) if debias else made), EmaState(count, made)
    return GradientTransformation(lambda params: EmaState(jnp.zeros([], jnp.int32), tree_zeros_like(params)), update)


def scale_by_adam(b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None, *, nesterov=False):
    def init(params):
        return ScaleByAdamState(jnp.zeros([], jnp.int32), _of_type(tree.map(jnp.zeros_like, params), mu_dtype), tree.map(jnp.zeros_like, params))

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
        return made, ScaleByAdamState(count, _of_type(mu, mu_dtype), nu)
    return GradientTransformation(init, update)


def scale_by_amsgrad(b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None):
    _refuse("optax.scale_by_amsgrad", {"mu_dtype": mu_dtype})
    def init(params):
        return ScaleByAmsgradState(jnp.zeros([], jnp.int32), *(tree_zeros_like(params) for _ in range(3)))

    def update(updates, state, params=None):
        mu, nu = tree_update_moment(updates, state.mu, b1, 1), tree_update_moment(updates, state.nu, b2, 2)
        count = state.count + 1
        hat, nu_hat = tree_bias_correction(mu, b1, count.astype(jnp.float32)), tree_bias_correction(nu, b2, count.astype(jnp.float32))
        most = tree.map(jnp.maximum, state.nu_max, nu_hat)
        return tree.map(lambda m, v: m / (jnp.sqrt(v + eps_root) + eps), hat, most), ScaleByAmsgradState(count, mu, nu, most)
    return GradientTransformation(init, update)


def scale_by_adamax(b1=0.9, b2=0.999, eps=1e-8):
    def init(params):
        return ScaleByAdamState(jnp.zeros([], jnp.int32), tree_zeros_like(params), tree_zeros_like(params))

    def update(updates, state, params=None):
        count, mu = state.count + 1, tree_update_moment(updates, state.mu, b1, 1)
        nu = tree.map(lambda g, v: jnp.maximum(jnp.abs(g) + eps, b2 * v), updates, state.nu)
        hat = tree_bias_correction(mu, b1, count.astype(jnp.float32))
        return tree.map(lambda m, v: m / v, hat, nu), ScaleByAdamState(count, mu, nu)
    return GradientTransformation(init, update)


def scale_by_belief(b1=0.9, b2=0.999, eps=1e-16, eps_root=1e-16, *, nesterov=False):
    _refuse("optax.scale_by_belief", {"nesterov": nesterov})
    def init(params):
        return ScaleByBeliefState(jnp.zeros([], jnp.int32), tree_zeros_like(params), tree_zeros_like(params))

    def update(updates, state, params=None):
        mu = tree_update_moment(updates, state.mu, b1, 1)
        nu = tree.map(lambda e, v: e + eps_root, tree_update_moment(tree.map(lambda g, m: g - m, updates, mu), state.nu, b2, 2), state.nu)
        count = state.count + 1
        hat, nu_hat = tree_bias_correction(mu, b1, count.astype(jnp.float32)), tree_bias_correction(nu, b2, count.astype(jnp.float32))
        return tree.map(lambda m, v: m / (jnp.sqrt(v) + eps), hat, nu_hat), ScaleByBeliefState(count, mu, nu)
    return GradientTransformation(init, update)


ScaleByNovogradState = collections.namedtuple("ScaleByNovogradState", "count mu nu")
ScaleByRpropState = collections.namedtuple("ScaleByRpropState", "step_sizes prev_updates")


def scale_by_novograd(b1=0.9, b2=0.25, eps=1e-8, eps_root=0.0, weight_decay=0.0, mu_dtype=None):
    """The second moment is that of each array's norm."""
    def init(params):
        return ScaleByNovogradState(jnp.zeros([], jnp.int32), _of_type(tree_zeros_like(params), mu_dtype), tree.map(lambda p: jnp.asarray(0.0, p.dtype), params))

    def update(updates, state, params):
        squares = tree.map(lambda g: jnp.linalg.norm(jnp.ravel(g)) ** 2, updates)
        is_first = state.count == 0
        nu = tree.map(lambda new, old: jnp.where(is_first, new, (1 - b2) * new + b2 * old), squares, state.nu)
        own = tree.map(lambda g, p, v: g / (jnp.sqrt(v + eps_root) + eps) + weight_decay * p, updates, params, nu)
        mu = tree.map(lambda m, u: jnp.where(is_first, u, b1 * m + u), state.mu, own)
        return mu, ScaleByNovogradState(state.count + 1, _of_type(mu, mu_dtype), nu)
    return GradientTransformation(init, update)


def scale_by_rprop(learning_rate, eta_minus=0.5, eta_plus=1.2, min_step_size=1e-6, max_step_size=50.0):
    """Steps of sizes of their own, which grow while a gradient keeps its sign."""
    def init(params):
        return ScaleByRpropState(tree.map(lambda p: jnp.full_like(p, learning_rate), params), tree_zeros_like(params))

    def update(updates, state, params=None):
        sign = tree.map(lambda g, before: g * before, updates, state.prev_updates)
        sizes = tree.map(lambda s, size: jnp.where(s == 0, size, jnp.clip(size * jnp.where(s > 0, eta_plus, eta_minus), min_step_size, max_step_size)),
                         sign, state.step_sizes)
        steps = tree.map(lambda s, g, size: jnp.where(s < 0, jnp.zeros_like(g), size * jnp.sign(g)), sign, updates, sizes)
        made = tree.map(lambda s, before: jnp.where(s < 0, jnp.zeros_like(before), before), sign, state.prev_updates)  # optax is one step behind
        return made, ScaleByRpropState(sizes, steps)
    return GradientTransformation(init, update)


def scale_by_lion(b1=0.9, b2=0.99, mu_dtype=None):
    _refuse("optax.scale_by_lion", {"mu_dtype": mu_dtype})
    def update(updates, state, params=None):
        new = tree.map(lambda g, m: jnp.sign((1.0 - b1) * g + b1 * m), updates, state.mu)
        return new, ScaleByLionState(state.count + 1, tree_update_moment(updates, state.mu, b2, 1))
    return GradientTransformation(lambda params: ScaleByLionState(jnp.zeros([], jnp.int32), tree_zeros_like(params)), update)


def scale_by_rms(decay=0.9, eps=1e-8, initial_scale=0.0, eps_in_sqrt=True, bias_correction=False):
    def init(params):
        nu = tree.map(lambda p: jnp.full_like(p, initial_scale), params)
        return ScaleByRmsWithCountState(jnp.zeros([], jnp.int32), nu) if bias_correction else ScaleByRmsState(nu)

    def update(updates, state, params=None):
        nu = tree_update_moment(updates, state.nu, decay, 2)
        count = state.count + 1 if bias_correction else None
        shown = tree_bias_correction(nu, decay, count.astype(jnp.float32)) if bias_correction else nu
        factor = (lambda v: jax.lax.rsqrt(v + eps)) if eps_in_sqrt else (lambda v: 1 / (jnp.sqrt(v) + eps))
        made = tree.map(lambda g, v: g * factor(v), updates, shown)
        return made, ScaleByRmsWithCountState(count, nu) if bias_correction else ScaleByRmsState(nu)
    return GradientTransformation(init, update)


def scale_by_stddev(decay=0.9, eps=1e-8, initial_scale=0.0, eps_in_sqrt=True, bias_correction=False):
    _refuse("optax.scale_by_stddev", {"eps_in_sqrt": None if eps_in_sqrt == True else eps_in_sqrt, "bias_correction": bias_correction})
    def init(params):
        return ScaleByRStdDevState(tree_zeros_like(params), tree.map(lambda p: jnp.full_like(p, initial_scale), params))

    def update(updates, state, params=None):
        mu, nu = tree_update_moment(updates, state.mu, decay, 1), tree_update_moment(updates, state.nu, decay, 2)
        made = tree.map(lambda g, m, v: g * jax.lax.rsqrt(v - m ** 2 + eps), updates, mu, nu)
        return made, ScaleByRStdDevState(mu, nu)
    return GradientTransformation(init, update)


def scale_by_rss(initial_accumulator_value=0.1, eps=1e-7):
    def update(updates, state, params=None):
        sums = tree.map(lambda g, t: g * g + t, updates, state.sum_of_squares)
        return tree.map(lambda s, g: jnp.where(s > 0, jax.lax.rsqrt(s + eps), 0.0) * g, sums, updates), ScaleByRssState(sums)
    return GradientTransformation(lambda params: ScaleByRssState(tree.map(lambda p: jnp.full_like(p, initial_accumulator_value), params)), update)


def scale_by_adadelta(rho=0.9, eps=1e-6):
    def update(updates, state, params=None):
        e_g = tree_update_moment(updates, state.e_g, rho, 2)
        made = tree.map(lambda g, a, b: jnp.sqrt(b + eps) / jnp.sqrt(a + eps) * g, updates, e_g, state.e_x)
        return made, ScaleByAdaDeltaState(e_g, tree_update_moment(made, state.e_x, rho, 2))
    return GradientTransformation(lambda params: ScaleByAdaDeltaState(tree_zeros_like(params), tree_zeros_like(params)), update)


def scale_by_yogi(b1=0.9, b2=0.999, eps=1e-3, eps_root=0.0, initial_accumulator_value=1e-6):
    def init(params):
        start = tree.map(lambda p: jnp.full_like(p, initial_accumulator_value), params)
        return ScaleByAdamState(jnp.zeros([], jnp.int32), start, start)

    def update(updates, state, params=None):
        mu, count = tree_update_moment(updates, state.mu, b1, 1), state.count + 1
        nu = tree.map(lambda g, v: v - (1 - b2) * jnp.sign(v - g * g) * (g * g), updates, state.nu)
        hat, nu_hat = (tree_bias_correction(moment, decay, count.astype(jnp.float32)) for moment, decay in ((mu, b1), (nu, b2)))
        return tree.map(lambda m, v: m / (jnp.sqrt(v + eps_root) + eps), hat, nu_hat), ScaleByAdamState(count, mu, nu)
    return GradientTransformation(init, update)


def scale_by_radam(b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, threshold=5.0, *, nesterov=False):
    """Adam, as soon as its variance is known well enough; before, momentum."""
    most = 2.0 / (1.0 - b2) - 1.0

    def update(updates, state, params=None):
        mu, nu, count = tree_update_moment(updates, state.mu, b1, 1), tree_update_moment(updates, state.nu, b2, 2), state.count + 1
        steps = count.astype(jnp.float32)
        known = most - 2 * steps * b2 ** steps / (1 - b2 ** steps)
        if nesterov:
            ahead, now = tree_bias_correction(mu, b1, steps + 1), tree_bias_correction(updates, b1, steps)
            hat = tree.map(lambda m, g: b1 * m + (1 - b1) * g, ahead, now)
        else:
            hat = tree_bias_correction(mu, b1, steps)
        rate = jnp.sqrt((known - 4.0) * (known - 2.0) * most / ((most - 4.0) * (most - 2.0) * known))
        made = tree.map(lambda m, v: jnp.where(known >= threshold, rate.astype(m.dtype) * m / (jnp.sqrt(v + eps_root) + eps), m), hat,
                        tree_bias_correction(nu, b2, steps))
        return made, ScaleByAdamState(count, mu, nu)
    return GradientTransformation(lambda params: ScaleByAdamState(jnp.zeros([], jnp.int32), tree_zeros_like(params), tree_zeros_like(params)), update)


def scale_by_factored_rms(factored=True, decay_rate=0.8, step_offset=0, min_dim_size_to_factor=128, epsilon=1e-30,
                          decay_rate_fn=lambda step, exponent: 1.0 - (step + 1.0) ** -exponent):
    """Divides by deviations of which, for a matrix, only the means of rows and of columns are kept."""
    def dims(shape):
        """The second largest and the largest dimension, where both are worth it."""
        order = sorted(range(len(shape)), key=lambda dim: shape[dim])
        return order[-2:] if factored and len(shape) > 1 and shape[order[-2]] >= min_dim_size_to_factor else None

    def without(shape, dim):
        return shape[:dim] + shape[dim + 1:]

    def init(params):
        def start(of):
            def one(p):
                small, large = dims(p.shape) or (None, None)
                shape = {"row": large is not None and without(p.shape, large), "column": small is not None and without(p.shape, small),
                         "whole": large is None and p.shape}[of]
                return jnp.zeros((1,) if shape is False else shape, p.dtype)
            return tree.map(one, params)
        return FactoredState(jnp.zeros([], jnp.int32), start("row"), start("column"), start("whole"))

    def update(updates, state, params=None):
        needs(params)
        decay = decay_rate_fn((state.count - step_offset).astype(jnp.float32), decay_rate)
        mixed = lambda old, new: (decay * old + (1.0 - decay) * new).astype(old.dtype)

        def one(g, row, column, whole, p):
            squares, both = g * g + epsilon, dims(p.shape)
            if both is None:
                whole = mixed(whole, squares)
                return g * whole ** -0.5, row, column, whole
            small, large = both
            row, column = mixed(row, jnp.mean(squares, large)), mixed(column, jnp.mean(squares, small))
            mean = jnp.mean(row, small - 1 if small > large else small, keepdims=True)
            made = g * jnp.expand_dims((row / mean) ** -0.5, large) * jnp.expand_dims(column ** -0.5, small)
            return made, row, column, whole
        leaves, form = tree.flatten(updates)
        made = [one(*parts) for parts in zip(leaves, *map(form.flatten_up_to, (state.v_row, state.v_col, state.v, params)))]
        updates, rows, columns, wholes = (tree.unflatten(form, list(part)) for part in zip(*made)) if made else (updates,) + state[1:]
        return updates, FactoredState(state.count + 1, rows, columns, wholes)
    return GradientTransformation(init, update)


def scale_by_polyak(f_min=0.0, max_learning_rate=1.0, eps=0.0, variant="sps"):
    """Steps as long as the loss and the gradient say; update(.., value=loss)."""
    if variant not in ("sps", "sps+"):
        raise ValueError(f"Invalid argument value for Polyak SGD: variant={variant!r}")

    def update(updates, state, params=None, *, value, **_):
        squares = tree_norm(updates, squared=True)
        gap = jnp.asarray(value - f_min, squares.dtype)
        gap = jnp.maximum(gap, 0.0) if variant == "sps+" else gap
        step = jnp.where(squares + eps <= jnp.finfo(jnp.float32).eps, 0.0, jnp.minimum(gap / (squares + eps), max_learning_rate))
        return tree.map(lambda u: step * u, updates), state
    return GradientTransformationExtraArgs(lambda params: EmptyState(), update)


def scale_by_sign():
    return _stateless(lambda updates, params: tree.map(jnp.sign, updates))


def scale_by_sm3(b1=0.9, b2=1.0, eps=1e-8):
    """Divides by sums of squares of which only the largest along each dimension are kept."""
    def init(params):
        return ScaleBySM3State(tree.map(lambda p: [jnp.zeros(size, p.dtype) for size in p.shape], params), tree_zeros_like(params))

    def update(updates, state, params=None):
        def one(g, kept):
            spread = [jnp.reshape(v, [size if at == dim else 1 for at, size in enumerate(g.shape)]) for dim, v in enumerate(kept)]
            sums = (1.0 if b2 == 1.0 else 1.0 - b2) * g ** 2 + b2 * functools.reduce(jnp.minimum, spread)
            most = [sums] if g.ndim < 2 else [jnp.max(sums, [at for at in range(g.ndim) if at != dim]) for dim in range(g.ndim)]
            return g * jnp.where(sums > 0, jax.lax.rsqrt(sums + eps), 0.0), most
        leaves, form = tree.flatten(updates)
        made = [one(*pair) for pair in zip(leaves, form.flatten_up_to(state.mu))]
        nu = tree_update_moment(tree.unflatten(form, [g for g, _ in made]), state.nu, b1, 1)
        return nu, ScaleBySM3State(tree.unflatten(form, [most for _, most in made]), nu)
    return GradientTransformation(init, update)


def scale_by_adan(b1=0.98, b2=0.92, b3=0.99, eps=1e-8, eps_root=0.0):
    def init(params):
        zeros = tree_zeros_like(params)
        return ScaleByAdanState(zeros, zeros, zeros, zeros, jnp.zeros([], jnp.int32))

    def update(updates, state, params=None):
        change = tree.map(lambda g, before: jnp.where(state.t == 0, 0.0, g - before), updates, state.g)
        m, v = tree_update_moment(updates, state.m, b1, 1), tree_update_moment(change, state.v, b2, 1)
        n = tree_update_moment(tree.map(lambda g, d: g + (1 - b2) * d, updates, change), state.n, b3, 2)
        t = state.t + 1
        hats = [tree_bias_correction(moment, decay, t.astype(jnp.float32)) for moment, decay in ((m, b1), (v, b2), (n, b3))]
        return tree.map(lambda m, v, n: (m + (1 - b2) * v) / (jnp.sqrt(n + eps_root) + eps), *hats), ScaleByAdanState(m, v, n, updates, t)
    return GradientTransformation(init, update)


def scale_by_optimistic_gradient(alpha=1.0, beta=1.0):
    def init(params):
        return ScaleByOptimisticGradientState(jnp.array(True), tree_zeros_like(params))

    def update(updates, state, params=None, **_):
        first = state.is_initial_step
        made = tree.map(lambda g, before: (alpha + beta) * g - beta * jnp.where(first, g, before), updates, state.previous_gradient)
        return made, ScaleByOptimisticGradientState(jnp.array(False), updates)
    return GradientTransformationExtraArgs(init, update)


def _safe_norm(x, least=0.0):
    norm = jnp.linalg.norm(x)
    return jnp.maximum(jnp.where(norm <= least, least, norm), least)


def scale_by_trust_ratio(min_norm=0.0, trust_coefficient=1.0, eps=0.0):
    def change(updates, params):
        def one(u, p):
            own, of = _safe_norm(p, min_norm), _safe_norm(u, min_norm)
            ratio = trust_coefficient * own / (of + eps)
            return u * jnp.where(jnp.logical_or(own == 0.0, of == 0.0), 1.0, ratio)
        return tree.map(one, updates, params)
    return _of_params(change)


def scale_by_param_block_norm(min_scale=1e-3):
    return _of_params(lambda updates, params: tree.map(lambda u, p: u * _safe_norm(p, min_scale), updates, params))


def scale_by_param_block_rms(min_scale=1e-3):
    return _of_params(lambda updates, params: tree.map(lambda u, p: u * jnp.maximum(jnp.sqrt(jnp.mean(p * p)), min_scale), updates, params))


def add_decayed_weights(weight_decay=0.0, mask=None):
    def change(updates, params):
        kept = tree.map(lambda p: True, params) if mask is None else mask(params) if callable(mask) else mask
        return tree.map(lambda g, p, keep: g + weight_decay * p if keep else g, updates, params, kept)
    return _of_params(change)


def add_noise(eta, gamma, key=None, seed=None):
    if seed is not None and key is not None:
        raise ValueError("Only one of seed or key can be specified.")
    key = next((one for one in (key, seed) if one is not None), 0)

    def init(params):
        return AddNoiseState(jnp.zeros([], jnp.int32), jax.random.key(key) if isinstance(key, int) else key)

    def update(updates, state, params=None):
        count = state.count + 1
        deviation = jnp.sqrt(eta / count ** gamma)
        leaves, form = tree.flatten(updates)
        keys = jax.random.split(state.rng_key, len(leaves) + 1)
        noise = [jax.random.normal(keys[at + 1], leaf.shape, leaf.dtype) for at, leaf in enumerate(leaves)]
        return tree.unflatten(form, [g + deviation.astype(g.dtype) * n for g, n in zip(leaves, noise)]), AddNoiseState(count, keys[0])
    return GradientTransformation(init, update)


def centralize():
    return _stateless(lambda updates, params: tree.map(lambda g: g - jnp.mean(g, tuple(range(1, g.ndim)), keepdims=True) if g.ndim > 1 else g, updates))


def global_norm(updates):
    return jnp.sqrt(sum(jnp.sum(u * u) for u in tree.leaves(updates)))


def clip_by_global_norm(max_norm):
    def change(updates, params):
        norm = global_norm(updates)
        return tree.map(lambda u: jnp.where(norm < max_norm, u, u / norm.astype(u.dtype) * max_norm), updates)
    return _stateless(change)


def clip(max_delta):
    return _stateless(lambda updates, params: tree.map(lambda u: jnp.clip(u, -max_delta, max_delta), updates))


def clip_by_block_rms(threshold):
    return _stateless(lambda updates, params: tree.map(lambda u: u / jnp.maximum(1.0, jnp.sqrt(jnp.mean(u * u)) / threshold), updates))


def adaptive_grad_clip(clipping, eps=1e-3):
    def unit(x):
        if x.ndim <= 1:
            return jnp.sqrt(jnp.sum(x * x))
        return jnp.sqrt(jnp.sum(x * x, tuple(range(x.ndim - 1)), keepdims=True))

    def change(updates, params):
        def one(g, p):
            own, most = unit(g), clipping * jnp.maximum(unit(p), eps)
            return jnp.where(own < most, g, g * (most / jnp.maximum(own, 1e-6)))
        return tree.map(one, updates, params)
    return _stateless(change)


def zero_nans():
    return _stateless(lambda updates, params: tree.map(lambda u: jnp.where(jnp.isnan(u), jnp.zeros_like(u), u), updates))


def keep_params_nonnegative():
    return _stateless(lambda updates, params: tree.map(lambda p, u: jnp.where(p + u < 0.0, -p, u), params, updates))


def normalize_by_update_norm(scale_factor=1.0, eps=1e-6):
    return _stateless(lambda updates, params: tree.map(lambda g: scale_factor * g / (tree_norm(updates) + eps), updates))


def bias_correction(moment, decay, count):
    return tree_bias_correction(moment, decay, count)
