# SPDX-License-Identifier: GPL-3.0-or-later
"""optax.contrib: what others gave to optax. Source of the formulas and defaults: google-deepmind/optax, optax/contrib."""
import collections
import math

import jax
import jax.numpy as jnp
from jax import lax, tree

from ._combining import EmptyState, GradientTransformation, GradientTransformationExtraArgs, MaskedNode, _stateless, called, chain, identity, needs, partition
from .schedules import warmup_constant_schedule
from .transforms import ScaleByAdamState, add_decayed_weights, scale_by_adam, scale_by_learning_rate, scale_by_rms, trace
from .tree_utils import tree_bias_correction, tree_cast, tree_norm, tree_sum, tree_update_moment, tree_vdot, tree_zeros_like
from jax._src.options import refuse as _refuse

DifferentiallyPrivateAggregateState = collections.namedtuple("DifferentiallyPrivateAggregateState", "rng_key")
MuonDimensionNumbers = collections.namedtuple("MuonDimensionNumbers", "reduction_axis output_axis", defaults=(0, 1))
MuonState = collections.namedtuple("MuonState", "count mu ns_coeffs")
NormalizeState = EmptyState
ProdigyState = collections.namedtuple("ProdigyState", "exp_avg exp_avg_sq grad_sum params0 estim_lr numerator_weighted count")
ReduceLROnPlateauState = collections.namedtuple("ReduceLROnPlateauState", "scale best_value plateau_count cooldown_count count avg_value")
ScaleByAdemamixState = collections.namedtuple("ScaleByAdemamixState", "count count_m2 m1 m2 nu")
SAMState = collections.namedtuple("SAMState", "steps_since_sync opt_state adv_state cache")
ScheduleFreeState = collections.namedtuple("ScheduleFreeState", "b1 weight_sum step_count max_lr base_optimizer_state z")


# ---- optimizers beside Adam

def scale_by_ademamix(b1=0.9, b2=0.999, b3=0.9999, alpha=6.0, eps=1e-8, eps_root=0.0, mu_dtype=None):
    """Adam with a second, slower average of the gradients, which counts `alpha` times."""
    def init(params):
        zeros = lambda dtype=None: tree_zeros_like(params, dtype)
        return ScaleByAdemamixState(jnp.zeros([], jnp.int32), jnp.zeros([], jnp.int32), zeros(mu_dtype), zeros(mu_dtype), zeros())

    def update(updates, state, params=None):
        slow, share = (value(state.count_m2) if callable(value) else value for value in (b3, alpha))
        fast_mean, slow_mean = (tree_update_moment(updates, mean, decay, 1) for mean, decay in ((state.m1, b1), (state.m2, slow)))
        squares, count = tree_update_moment(updates, state.nu, b2, 2), state.count + 1
        first, second = (tree_bias_correction(mean, decay, count.astype(jnp.float32)) for mean, decay in ((fast_mean, b1), (squares, b2)))
        made = tree.map(lambda m, s, v: (m + share * s) / (jnp.sqrt(v + eps_root) + eps), first, slow_mean, second)
        return made, ScaleByAdemamixState(count, state.count_m2 + 1, tree_cast(fast_mean, mu_dtype), tree_cast(slow_mean, mu_dtype), squares)
    return GradientTransformation(init, update)


def ademamix(learning_rate, b1=0.9, b2=0.999, b3=0.9999, alpha=5.0, eps=1e-8, eps_root=0.0, mu_dtype=None, weight_decay=0.0, mask=None):
    return chain(scale_by_ademamix(b1, b2, b3, alpha, eps, eps_root, mu_dtype), add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate))


def scale_by_adopt(b1=0.9, b2=0.9999, eps=1e-6, mu_dtype=None, *, nesterov=False, use_clipping=True, clip_value_fn=lambda step: step ** 0.25):
    """Adam whose gradients are divided by what came before them, not by what holds them too; the first step only looks."""
    def init(params):
        return ScaleByAdamState(jnp.zeros([], jnp.int32), tree_zeros_like(params, mu_dtype), tree_zeros_like(params))

    def update(updates, state, params=None):
        is_later = state.count > 0
        own, squares = jnp.where(is_later, b1, 1.0), jnp.where(is_later, b2, 0.0)
        scaled = tree.map(lambda g, v: g / jnp.maximum(jnp.sqrt(v), eps), updates, state.nu)
        if use_clipping:
            most = clip_value_fn(state.count)
            scaled = tree.map(lambda g: jnp.clip(g, -most, most), scaled)
        mean = tree_update_moment(scaled, state.mu, own, 1)
        made = tree_update_moment(scaled, mean, own, 1) if nesterov else mean
        return made, ScaleByAdamState(state.count + 1, tree_cast(mean, mu_dtype), tree_update_moment(updates, state.nu, squares, 2))
    return GradientTransformation(init, update)


def adopt(learning_rate, b1=0.9, b2=0.9999, eps=1e-6, mu_dtype=None, *, nesterov=False, use_clipping=True, clip_value_fn=lambda step: step ** 0.25):
    return chain(scale_by_adopt(b1, b2, eps, mu_dtype, nesterov=nesterov, use_clipping=use_clipping, clip_value_fn=clip_value_fn), scale_by_learning_rate(learning_rate))


# ---- learning rates

def reduce_on_plateau(factor=0.1, patience=10, rtol=1e-4, atol=0.0, cooldown=0, accumulation_size=1, min_scale=0.0):
    """Smaller updates once the value does not get better; update(.., value=loss)."""
    if not 0.0 < factor < 1.0:
        raise ValueError(f"Factor must be in the range (0, 1), got factor = {factor}.")
    if rtol < 0.0 or atol < 0.0:
        raise ValueError(f"Both rtol and atol must be non-negative, got rtol = {rtol} and atol = {atol}.")
    if rtol == 0.0 and atol == 0.0:
        raise ValueError(f"At least one of rtol or atol must be positive, got rtol = {rtol} and atol = {atol}.")
    if rtol > 1.0:
        raise ValueError(f"rtol must be less than or equal to 1.0, got rtol = {rtol}.")
    zero = lambda: jnp.zeros([], jnp.int32)

    def init(params):
        return ReduceLROnPlateauState(jnp.array(1.0), jnp.array(jnp.inf), zero(), zero(), zero(), jnp.array(0.0))

    def looked_at(state):
        is_better = state.avg_value < (1 - rtol) * state.best_value - atol
        waited = jnp.where(is_better, 0, state.plateau_count + 1)
        cools, is_over = state.cooldown_count > 0, waited == patience
        scale = jnp.where(cools, state.scale, jnp.maximum(jnp.where(is_over, state.scale * factor, state.scale), min_scale))
        return ReduceLROnPlateauState(scale, jnp.where(is_better, state.avg_value, state.best_value), jnp.where(cools | is_over, 0, waited),
                                      jnp.where(cools, state.cooldown_count - 1, jnp.where(is_over, cooldown, 0)), zero(), jnp.array(0.0))

    def update(updates, state, params=None, *, value, **_):
        count = state.count + 1
        state = state._replace(count=count, avg_value=(state.count * state.avg_value + value) / count)
        state = tree.map(lambda a, b: jnp.where(count == accumulation_size, a, b), looked_at(state), state)
        return tree.map(lambda g: state.scale * g, updates), state
    return GradientTransformationExtraArgs(init, update)


def schedule_free(base_optimizer, learning_rate, b1=0.9, weight_lr_power=2.0, state_dtype=None):
    """Means of the parameters in the place of a schedule."""
    def init(params):
        z = tree.map(lambda p: jnp.array(p, state_dtype), params)
        return ScheduleFreeState(jnp.array(b1), jnp.array(0.0), jnp.ones([], jnp.int32), jnp.array(0.0), base_optimizer.init(params), z)

    def update(updates, state, params=None, **extra):
        most = jnp.maximum(state.max_lr, learning_rate(state.step_count) if callable(learning_rate) else learning_rate)
        weight = most ** weight_lr_power
        total = state.weight_sum + weight
        share = jnp.where(jnp.isnan(weight) | jnp.isnan(total), jnp.nan, jnp.nan_to_num(weight / total, nan=0.0, posinf=jnp.inf))
        steps, base = called(base_optimizer, updates, state.base_optimizer_state, params, extra)
        z = tree.map(lambda p, u: jnp.asarray(p + u, p.dtype), state.z, steps)

        def one(y, before, after):
            x = (1.0 - share) * ((y - (1.0 - b1) * before) / b1) + share * after
            return b1 * x + (1.0 - b1) * after - y
        return tree.map(one, params, state.z, z), ScheduleFreeState(state.b1, total, state.step_count + 1, most, base, z)
    return GradientTransformationExtraArgs(init, update)


def schedule_free_eval_params(state, params):
    if getattr(state, "b1", None) is None or getattr(state, "z", None) is None:
        raise ValueError("schedule_free_eval_params requires a ScheduleFreeState as input.")
    return tree.map(lambda y, z: (y - (1.0 - state.b1) * z) / state.b1, params, state.z)


def _warmed(learning_rate, steps):
    return learning_rate if steps is None else warmup_constant_schedule(0, learning_rate, steps)


def schedule_free_sgd(learning_rate=1.0, warmup_steps=None, b1=0.9, weight_decay=None, weight_lr_power=2.0, state_dtype=None):
    rate = _warmed(learning_rate, warmup_steps)
    steps = [] if weight_decay is None else [add_decayed_weights(weight_decay)]
    return schedule_free(chain(*steps, scale_by_learning_rate(rate)), rate, b1, weight_lr_power, state_dtype)


def schedule_free_adamw(learning_rate=0.0025, warmup_steps=None, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.0, weight_lr_power=2.0, state_dtype=None):
    rate = _warmed(learning_rate, warmup_steps)
    base = chain(scale_by_rms(b2, eps, eps_in_sqrt=False, bias_correction=True), add_decayed_weights(weight_decay), scale_by_learning_rate(rate))
    return schedule_free(base, rate, b1, weight_lr_power, state_dtype)


def prodigy(learning_rate=1.0, betas=(0.9, 0.999), beta3=None, eps=1e-8, estim_lr0=1e-6, estim_lr_coef=1.0, weight_decay=0.0, safeguard_warmup=False,
            weight_decay_mask=None):
    """AdamW whose learning rate is estimated from how far the parameters went along the gradients."""
    b1, b2 = betas
    b3 = b2 ** 0.5 if beta3 is None else beta3

    def init(params):
        zeros = tree_zeros_like(params)
        return ProdigyState(zeros, zeros, zeros, params, jnp.array(estim_lr0), jnp.array(0.0), jnp.zeros([], jnp.int32))

    def update(updates, state, params=None, **_):
        needs(params)
        count, estimate = state.count + 1, state.estim_lr
        rate = learning_rate(state.count) if callable(learning_rate) else learning_rate
        rate = estimate * rate * ((1 - b2 ** count) ** 0.5 / (1 - b1 ** count))
        mu = tree.map(lambda m, g: b1 * m + (1 - b1) * (estimate * g), state.exp_avg, updates)
        nu = tree.map(lambda v, g: b2 * v + (1 - b2) * (estimate * g) * (estimate * g), state.exp_avg_sq, updates)
        sums = tree.map(lambda s, g: b3 * s + (estimate if safeguard_warmup else rate) * (estimate * g) / estim_lr0, state.grad_sum, updates)
        way = tree_vdot(updates, tree.map(lambda start, p: start - p, state.params0, params))
        weighted = b3 * state.numerator_weighted + estimate / estim_lr0 * rate * way
        estimate = jnp.maximum(estimate, estim_lr_coef * weighted / tree_sum(tree.map(jnp.abs, sums)))
        decays = weight_decay_mask(params) if callable(weight_decay_mask) else weight_decay_mask
        decays = tree.map(lambda p: True, params) if decays is None else decays
        made = tree.map(lambda m, v, p, decay: -rate * m / (jnp.sqrt(v) + estimate * eps) - jnp.where(decay, weight_decay * rate * p, 0.0), mu, nu, params, decays)
        return made, ProdigyState(mu, nu, sums, state.params0, estimate, weighted, count)
    return GradientTransformationExtraArgs(init, update)


# ---- sharpness

def normalize():
    def change(updates, params):
        norm = tree_norm(updates)
        return tree.map(lambda g: g / norm, updates)
    return _stateless(change)


def sam(optimizer, adv_optimizer, sync_period=2, reset_state=True, opaque_mode=False, batch_axis_name=None):
    """Steps of `optimizer` from where `adv_optimizer`, which goes uphill, arrives: in turns, or at once by update(.., grad_fn=)."""
    if sync_period < 1:
        raise ValueError("Synchronization period must be >= 1.")
    uphill = lambda updates: tree.map(lambda u: -u, updates)

    def init(params):
        return SAMState(jnp.zeros([], jnp.int32), optimizer.init(params), adv_optimizer.init(params), None if opaque_mode else params)

    def in_turns(updates, state, params, *, grad_fn=None):
        is_first, is_last = state.steps_since_sync == 0, state.steps_since_sync == sync_period - 1
        choose = lambda a, b, which: tree.map(lambda x, y: jnp.where(which, x, y), a, b)
        away, adv_state = adv_optimizer.update(updates, state.adv_state, params)
        cache = choose(params, state.cache, is_first)
        steps, opt_state = optimizer.update(updates, state.opt_state, state.cache)
        back = tree.map(lambda start, p, u: start - p + u, state.cache, params, steps)
        adv_state = choose(adv_optimizer.init(params) if reset_state else state.adv_state, adv_state, is_last)
        return choose(back, uphill(away), is_last), SAMState((state.steps_since_sync + 1) % sync_period, choose(opt_state, state.opt_state, is_last), adv_state, cache)

    def at_once(updates, state, params, *, grad_fn=None):
        if grad_fn is None:
            raise ValueError("grad_fn must be provided when opaque_mode=True.")
        there, adv_state = params, state.adv_state
        for number in range(sync_period - 1):
            away, adv_state = adv_optimizer.update(updates, adv_state, there)
            there = tree.map(lambda p, u: jnp.asarray(p + u, p.dtype), there, uphill(away))
            updates = grad_fn(there, number)
            updates = updates if batch_axis_name is None else lax.pmean(updates, batch_axis_name)
        updates, opt_state = optimizer.update(updates, state.opt_state, params)
        return updates, SAMState(jnp.zeros([], jnp.int32), opt_state, adv_optimizer.init(params) if reset_state else adv_state, None)
    return GradientTransformationExtraArgs(init, at_once if opaque_mode else in_turns)


# ---- matrices

_COEFFICIENTS = {"standard": (3.4445, -4.7750, 2.0315)}


def _is_numbers(node):
    return node is None or isinstance(node, (MuonDimensionNumbers, MaskedNode))


def _axes_of(x, numbers):
    return [tuple(axis % x.ndim for axis in ((axes,) if isinstance(axes, int) else axes)) for axes in numbers]


def _orthogonal(x, coefficients, steps, eps, numbers):
    """Each matrix of an array with its singular values drawn towards 1, by Newton and Schulz."""
    rows, columns = _axes_of(x, numbers)
    batch = tuple(axis for axis in range(x.ndim) if axis not in rows + columns)
    order = batch + rows + columns
    sizes = [math.prod(x.shape[axis] for axis in axes) for axes in (batch, rows, columns)]
    a, b, c = coefficients[0], coefficients[1], coefficients[2]

    def one(m):
        is_high = m.shape[0] > m.shape[1]
        m = m.T if is_high else m
        m = m / (jnp.linalg.norm(m) + eps)

        def turn(_, m):
            square = m @ m.T
            return a * m + (b * square + c * square @ square) @ m
        m = lax.fori_loop(0, steps, turn, m)
        return m.T if is_high else m
    moved = jnp.transpose(x, order)
    made = jnp.reshape(jax.vmap(one)(jnp.reshape(moved, sizes)), moved.shape)
    return jnp.transpose(made, [order.index(axis) for axis in range(x.ndim)])


def scale_by_muon(ns_coeffs=_COEFFICIENTS["standard"], ns_steps=5, beta=0.95, eps=1e-8, mu_dtype=None, *, nesterov=True, adaptive=False, preconditioning="frobenius",
                  weight_dimension_numbers=None):
    _refuse("optax.contrib.scale_by_muon", {"mu_dtype": mu_dtype, "preconditioning": None if preconditioning == "frobenius" else preconditioning})
    if jnp.ndim(jnp.asarray(ns_coeffs)) != 1:
        raise NotImplementedError("optax.contrib.scale_by_muon with ns_coeffs of each step: give the three of all steps")

    def init(params):
        return MuonState(jnp.zeros([], jnp.int32), tree_zeros_like(params), jnp.asarray(ns_coeffs, jnp.float32))

    def update(updates, state, params=None):
        mu, count = tree_update_moment(updates, state.mu, beta, 1), state.count + 1
        hat = tree_bias_correction(mu, beta, count + 1 if nesterov else count)
        if nesterov:
            hat = tree.map(lambda m, g: beta * m + (1 - beta) * g, hat, tree_bias_correction(updates, beta, count))
        numbers = weight_dimension_numbers(updates) if callable(weight_dimension_numbers) else weight_dimension_numbers
        numbers = tree.map(lambda _: MuonDimensionNumbers(), updates) if numbers is None else numbers
        made = tree.map(lambda of, x: x if isinstance(of, MaskedNode) else _orthogonal(x, state.ns_coeffs, ns_steps, eps, of), numbers, hat, is_leaf=_is_numbers)
        if adaptive:
            made = tree.map(lambda x, y: jnp.sum(x * y) * y, hat, made)
        return made, MuonState(count, mu, state.ns_coeffs)
    return GradientTransformation(init, update)


def muon(learning_rate, ns_coeffs=_COEFFICIENTS["standard"], ns_steps=5, beta=0.95, eps=1e-8, weight_decay=0.0, weight_decay_mask=None, mu_dtype=None, *, nesterov=True,
         adaptive=False, preconditioning="frobenius", adam_b1=0.9, adam_b2=0.999, adam_eps_root=0.0, adam_weight_decay=0.0, adam_learning_rate=None,
         muon_weight_dimension_numbers=None, consistent_rms=None):
    """Orthogonal updates of matrices; AdamW for what is none."""
    if isinstance(ns_coeffs, str):
        if ns_coeffs not in _COEFFICIENTS:
            raise ValueError(f"Unknown ns_coeff preset string: {ns_coeffs}")
        ns_coeffs = _COEFFICIENTS[ns_coeffs]

    def numbers_of(params):
        """Of each parameter, None where it is none of muon's."""
        if muon_weight_dimension_numbers is None:
            return tree.map(lambda x: MuonDimensionNumbers() if x.ndim == 2 else None, params)
        said = muon_weight_dimension_numbers(params) if callable(muon_weight_dimension_numbers) else muon_weight_dimension_numbers
        return tree.map(lambda of, part: tree.map(lambda _: of, part), said, params, is_leaf=_is_numbers)

    def labels(params):
        return tree.map(lambda of: "adam" if of is None else "muon", numbers_of(params), is_leaf=_is_numbers)

    def own_numbers(updates):
        """The same of updates of which the others are left out."""
        if muon_weight_dimension_numbers is None:
            return tree.map(lambda _: MuonDimensionNumbers(), updates)
        return tree.map(lambda of, x: x if isinstance(x, MaskedNode) else of, numbers_of(updates), updates, is_leaf=_is_numbers)

    def by_shape(updates, params):
        def one(of, x):
            if isinstance(of, MaskedNode):
                return x
            rows, columns = (math.prod(x.shape[axis] for axis in axes) for axes in _axes_of(x, of))
            return x * (math.sqrt(max(rows, columns)) * consistent_rms if consistent_rms is not None else math.sqrt(max(1, columns / rows)))
        return tree.map(one, own_numbers(updates), updates, is_leaf=_is_numbers)
    of_matrices = chain(scale_by_muon(ns_coeffs, ns_steps, beta, eps, mu_dtype, nesterov=nesterov, adaptive=adaptive, preconditioning=preconditioning,
                                      weight_dimension_numbers=own_numbers),
                        _stateless(by_shape), add_decayed_weights(weight_decay, weight_decay_mask), scale_by_learning_rate(learning_rate))
    of_others = chain(scale_by_adam(adam_b1, adam_b2, eps, adam_eps_root, mu_dtype, nesterov=nesterov), add_decayed_weights(adam_weight_decay),
                      scale_by_learning_rate(learning_rate if adam_learning_rate is None else adam_learning_rate))
    return partition({"muon": of_matrices, "adam": of_others}, labels)


# ---- privacy

def per_example_global_norm_clip(grads, l2_norm_clip):
    """Of gradients of each example the sum of those with a bounded norm, and how many were too long."""
    sizes = {leaf.shape[:1] for leaf in tree.leaves(grads)}
    if len(sizes) != 1 or sizes == {()}:
        raise ValueError("Unlike other transforms, `per_example_global_norm_clip` expects `grads` to have a batch dimension in the 0th axis.")
    factors = jnp.nan_to_num(jnp.minimum(l2_norm_clip / jax.vmap(tree_norm)(grads), 1.0), nan=1.0)
    return tree.map(lambda g: jnp.tensordot(factors, g, 1), grads), jnp.sum(factors < 1.0)


def differentially_private_aggregate(l2_norm_clip, noise_multiplier, key=None, *, seed=None):
    """The mean of the gradients of examples, each of bounded length, with noise."""
    key = key if key is not None and not isinstance(key, int) else jax.random.key(seed if key is None and seed is not None else key or 0)

    def update(updates, state, params=None):
        leaves, form = tree.flatten(updates)
        sums, _ = per_example_global_norm_clip(leaves, l2_norm_clip)
        after, *keys = jax.random.split(state.rng_key, len(leaves) + 1)
        deviation, count = l2_norm_clip * noise_multiplier, leaves[0].shape[0]
        made = [(g + deviation * jax.random.normal(own, g.shape, g.dtype)) / count for g, own in zip(sums, keys)]
        return tree.unflatten(form, made), DifferentiallyPrivateAggregateState(after)
    return GradientTransformation(lambda params: DifferentiallyPrivateAggregateState(key), update)


def dpsgd(learning_rate, l2_norm_clip, noise_multiplier, key=None, momentum=None, nesterov=False, *, seed=None):
    return chain(differentially_private_aggregate(l2_norm_clip, noise_multiplier, key, seed=seed),
                 trace(momentum, nesterov) if momentum is not None else identity(), scale_by_learning_rate(learning_rate))
