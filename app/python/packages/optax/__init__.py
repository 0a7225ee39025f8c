# SPDX-License-Identifier: GPL-3.0-or-later
"""The optimizers, schedules and losses of optax that pages use. Source of the formulas and defaults: google-deepmind/optax."""
from typing import Any as _Any

import jax as _jax
import jax.numpy as _jnp
from jax import tree as _tree

from . import assignment, contrib, losses, perturbations, projections, schedules, transforms, tree, tree_utils
from ._combining import (ApplyEvery, ApplyIfFiniteState, EmptyState, GradientTransformation, GradientTransformationExtraArgs, InjectHyperparamsState,
                         InjectStatefulHyperparamsState, LookaheadParams, LookaheadState, MaskedNode, MaskedState, MultiSteps, MultiStepsState, MultiTransformState,
                         PartitionState, apply_every, apply_if_finite, chain, flatten, freeze, identity, inject_hyperparams, lookahead, masked, multi_transform, named_chain,
                         partition, selective_transform, set_to_zero, stateless, stateless_with_tree_map, with_extra_args_support)
from ._line_search import (ScaleByBacktrackingLinesearchState, ScaleByLBFGSState, ScaleByZoomLinesearchState, scale_by_backtracking_linesearch, scale_by_lbfgs,
                           scale_by_zoom_linesearch, value_and_grad_from_state)
from .contrib import differentially_private_aggregate, per_example_global_norm_clip
from .losses import (absolute_error, binary_sigmoid_cross_entropy, convex_kl_divergence, cosine_distance, cosine_similarity, ctc_loss, ctc_loss_with_forward_probs,
                     generalized_kl_divergence, hinge_loss, huber_loss, kl_divergence, ntxent,
                     kl_divergence_with_log_targets, l2_loss, log_cosh, multiclass_hinge_loss, multiclass_perceptron_loss, perceptron_loss, poly_loss_cross_entropy, safe_softmax_cross_entropy,
                     sigmoid_binary_cross_entropy, sigmoid_focal_loss, smooth_labels, softmax_cross_entropy, softmax_cross_entropy_with_integer_labels, squared_error,
                     triplet_margin_loss)
from .schedules import (constant_schedule, cosine_decay_schedule, cosine_onecycle_schedule, exponential_decay, join_schedules, linear_onecycle_schedule,
                        linear_schedule, piecewise_constant_schedule, piecewise_interpolate_schedule, polynomial_schedule, sgdr_schedule,
                        warmup_constant_schedule, warmup_cosine_decay_schedule, warmup_exponential_decay_schedule)
from .transforms import scale_by_novograd, scale_by_rprop
from .tree_utils import tree_bias_correction as bias_correction
from .tree_utils import tree_map_params
from .tree_utils import tree_update_moment as update_moment
from .transforms import (AddNoiseState, EmaState, FactoredState, ScaleByAdaDeltaState, ScaleByAdamState, ScaleByAmsgradState, ScaleByBeliefState, ScaleByLionState,
                         ScaleByOptimisticGradientState, ScaleByRmsState, ScaleByRmsWithCountState, ScaleByRssState, ScaleByScheduleState, ScaleState, TraceState,
                         adaptive_grad_clip, add_decayed_weights, add_noise, centralize, clip, clip_by_block_rms, clip_by_global_norm, ema, global_norm,
                         keep_params_nonnegative, normalize_by_update_norm, scale, scale_by_adadelta, scale_by_adam, scale_by_adan, scale_by_adamax, scale_by_amsgrad,
                         scale_by_belief, scale_by_factored_rms, scale_by_learning_rate, scale_by_lion, scale_by_optimistic_gradient, scale_by_param_block_norm, scale_by_param_block_rms, scale_by_polyak, scale_by_radam,
                         scale_by_rms, scale_by_rss, scale_by_schedule, scale_by_sign, scale_by_sm3, scale_by_stddev, scale_by_trust_ratio, scale_by_yogi, trace, zero_nans)
from jax._src.options import refuse as _refuse

Params = Updates = OptState = Schedule = ScalarOrSchedule = _Any  # of annotations
__version__ = "0.2.4"


# ---- optimizers

def sgd(learning_rate, momentum=None, nesterov=False, accumulator_dtype=None):
    steps = [] if momentum is None else [trace(momentum, nesterov, accumulator_dtype)]
    return chain(*steps, scale_by_learning_rate(learning_rate))


def noisy_sgd(learning_rate, eta=0.01, gamma=0.55, key=None, *, seed=None):
    return chain(add_noise(eta, gamma, key, seed), scale_by_learning_rate(learning_rate))


def sign_sgd(learning_rate):
    return chain(scale_by_sign(), scale_by_learning_rate(learning_rate))


def adam(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None, *, nesterov=False):
    return chain(scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov), scale_by_learning_rate(learning_rate))


def nadam(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None, *, nesterov=True):
    return adam(learning_rate, b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)


def adamw(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None, weight_decay=1e-4, mask=None, *, nesterov=False):
    return chain(scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov), add_decayed_weights(weight_decay, mask),
                 scale_by_learning_rate(learning_rate))


def nadamw(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None, weight_decay=1e-4, mask=None, *, nesterov=True):
    return adamw(learning_rate, b1, b2, eps, eps_root, mu_dtype, weight_decay, mask, nesterov=nesterov)


def amsgrad(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None):
    _refuse("optax.amsgrad", {"mu_dtype": mu_dtype})
    return chain(scale_by_amsgrad(b1, b2, eps, eps_root), scale_by_learning_rate(learning_rate))


def adamax(learning_rate, b1=0.9, b2=0.999, eps=1e-8):
    return chain(scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate))


def adamaxw(learning_rate, b1=0.9, b2=0.999, eps=1e-8, weight_decay=1e-4, mask=None):
    return chain(scale_by_adamax(b1, b2, eps), add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate))


def adabelief(learning_rate, b1=0.9, b2=0.999, eps=1e-16, eps_root=1e-16, *, nesterov=False):
    _refuse("optax.adabelief", {"nesterov": nesterov})
    return chain(scale_by_belief(b1, b2, eps, eps_root), scale_by_learning_rate(learning_rate))


def yogi(learning_rate, b1=0.9, b2=0.999, eps=1e-3):
    return chain(scale_by_yogi(b1, b2, eps), scale_by_learning_rate(learning_rate))


def radam(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, threshold=5.0, *, nesterov=False):
    return chain(scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov), scale_by_learning_rate(learning_rate))


def adafactor(learning_rate=None, min_dim_size_to_factor=128, decay_rate=0.8, decay_offset=0, multiply_by_parameter_scale=True, clipping_threshold=1.0, momentum=None,
              dtype_momentum=_jnp.float32, weight_decay_rate=None, eps=1e-30, factored=True, weight_decay_mask=None):
    _refuse("optax.adafactor", {"dtype_momentum": None if dtype_momentum == _jnp.float32 else dtype_momentum})
    steps = [scale_by_factored_rms(factored, decay_rate, decay_offset, min_dim_size_to_factor, eps)]
    if clipping_threshold is not None:
        steps.append(clip_by_block_rms(clipping_threshold))
    if learning_rate is not None:
        steps.append(scale_by_learning_rate(learning_rate, flip_sign=False))
    if multiply_by_parameter_scale:
        steps.append(scale_by_param_block_rms())
    if momentum is not None:
        steps.append(ema(momentum, debias=False))
    if weight_decay_rate is not None:
        steps.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
    return chain(*steps, scale(-1))


def polyak_sgd(max_learning_rate=1.0, scaling=1.0, f_min=0.0, eps=0.0, variant="sps"):
    return chain(sgd(scaling), scale_by_polyak(f_min, max_learning_rate, eps, variant))


def adagrad(learning_rate, initial_accumulator_value=0.1, eps=1e-7):
    return chain(scale_by_rss(initial_accumulator_value, eps), scale_by_learning_rate(learning_rate))


def adadelta(learning_rate=None, rho=0.9, eps=1e-6, weight_decay=0.0, weight_decay_mask=None):
    return chain(add_decayed_weights(weight_decay, weight_decay_mask), scale_by_adadelta(rho, eps), scale_by_learning_rate(1.0 if learning_rate is None else learning_rate))


def rmsprop(learning_rate, decay=0.9, eps=1e-8, initial_scale=0.0, eps_in_sqrt=True, centered=False, momentum=None, nesterov=False, bias_correction=False):
    by = scale_by_stddev if centered else scale_by_rms
    steps = [by(decay, eps, initial_scale, eps_in_sqrt, bias_correction), scale_by_learning_rate(learning_rate)]
    return chain(*steps, *([] if momentum is None else [trace(momentum, nesterov)]))


def lion(learning_rate, b1=0.9, b2=0.99, mu_dtype=None, weight_decay=1e-3, mask=None):
    _refuse("optax.lion", {"mu_dtype": mu_dtype})
    return chain(scale_by_lion(b1, b2), add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate))


def novograd(learning_rate, b1=0.9, b2=0.25, eps=1e-6, eps_root=0.0, weight_decay=0.0):
    return chain(scale_by_novograd(b1, b2, eps, eps_root, weight_decay), scale_by_learning_rate(learning_rate))


def rprop(learning_rate, eta_minus=0.5, eta_plus=1.2, min_step_size=1e-6, max_step_size=50.0):
    return chain(scale_by_rprop(learning_rate, eta_minus, eta_plus, min_step_size, max_step_size), scale(-1.0))


def lamb(learning_rate, b1=0.9, b2=0.999, eps=1e-6, eps_root=0.0, weight_decay=0.0, mask=None):
    return chain(scale_by_adam(b1, b2, eps, eps_root), add_decayed_weights(weight_decay, mask), scale_by_trust_ratio(), scale_by_learning_rate(learning_rate))


def lars(learning_rate, weight_decay=0.0, weight_decay_mask=True, trust_coefficient=0.001, eps=0.0, trust_ratio_mask=True, momentum=0.9, nesterov=False):
    ratio = scale_by_trust_ratio(trust_coefficient=trust_coefficient, eps=eps)
    return chain(add_decayed_weights(weight_decay, None if weight_decay_mask is True else weight_decay_mask),
                 ratio if trust_ratio_mask is True else masked(ratio, trust_ratio_mask), scale_by_learning_rate(learning_rate), trace(momentum, nesterov))


def fromage(learning_rate, min_norm=1e-6):
    factor = 1 / _jnp.sqrt(1 + learning_rate ** 2)
    return chain(scale_by_trust_ratio(min_norm), scale_by_learning_rate(learning_rate * factor), add_decayed_weights(factor - 1))


def lbfgs(learning_rate=None, memory_size=10, scale_init_precond=True, linesearch=scale_by_zoom_linesearch(20, initial_guess_strategy="one")):
    return chain(scale_by_lbfgs(memory_size, scale_init_precond), scale(-1.0) if learning_rate is None else scale_by_learning_rate(learning_rate),
                 identity() if linesearch is None else linesearch)


def sm3(learning_rate, momentum=0.9):
    return chain(scale_by_sm3(momentum), scale(-learning_rate))


def adan(learning_rate, b1=0.98, b2=0.92, b3=0.99, eps=1e-8, eps_root=1e-8, weight_decay=0.0, mask=None):
    return chain(scale_by_adan(b1, b2, b3, eps, eps_root), add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate))


def signum(learning_rate, beta=0.9, accumulator_dtype=None):
    return chain(ema(beta, False, accumulator_dtype), scale_by_sign(), scale_by_learning_rate(learning_rate))


def optimistic_gradient_descent(learning_rate, alpha=1.0, beta=1.0):
    return chain(scale_by_optimistic_gradient(alpha, beta), scale_by_learning_rate(learning_rate))


def optimistic_adam(learning_rate, optimism=None, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None, *, nesterov=True):
    _refuse("optax.optimistic_adam", {"mu_dtype": mu_dtype})
    optimism = learning_rate if optimism is None else optimism
    return chain(scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov), scale_by_optimistic_gradient(learning_rate, optimism), scale_by_learning_rate(1.0))


def optimistic_adam_v2(learning_rate, alpha=1.0, beta=1.0, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None, *, nesterov=True):
    _refuse("optax.optimistic_adam_v2", {"mu_dtype": mu_dtype})
    return chain(scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov), scale_by_optimistic_gradient(alpha, beta), scale_by_learning_rate(learning_rate))


# ---- steps of training

def apply_updates(params, updates):
    return _tree.map(lambda p, u: p if u is None else _jnp.asarray(p + u, p.dtype), params, updates)


def incremental_update(new_tensors, old_tensors, step_size):
    return _tree.map(lambda new, old: step_size * new + (1.0 - step_size) * old, new_tensors, old_tensors)


def periodic_update(new_tensors, old_tensors, steps, update_period):
    return _jax.lax.cond(steps % update_period == 0, lambda: new_tensors, lambda: old_tensors)


def safe_int32_increment(count):
    most = _jnp.iinfo(_jnp.int32).max
    return _jnp.where(count < most, count + 1, most)


safe_increment = safe_int32_increment


def safe_root_mean_squares(x, min_rms):
    rms = _jnp.sqrt(_jnp.mean(_jnp.square(x)))
    x = _jnp.where(rms <= min_rms, _jnp.ones_like(x), x)
    return _jnp.where(rms <= min_rms, min_rms, _jnp.sqrt(_jnp.mean(_jnp.square(x))))


def safe_norm(x, min_norm, ord=None, axis=None, keepdims=False):
    norm = _jnp.linalg.norm(x, ord=ord, axis=axis, keepdims=True)
    x = _jnp.where(norm <= min_norm, _jnp.ones_like(x), x)
    made = _jnp.where(norm <= min_norm, min_norm, _jnp.linalg.norm(x, ord=ord, axis=axis, keepdims=True))
    return made if keepdims else _jnp.squeeze(made, axis=axis)


from jax._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
