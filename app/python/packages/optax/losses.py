# SPDX-License-Identifier: GPL-3.0-or-later
"""Losses. Source of the formulas and defaults: google-deepmind/optax, optax/losses."""
import jax
import jax.numpy as jnp
from jax._src.options import refuse as _refuse


def _mean_where(x, axis, where):
    return jnp.mean(x, axis=axis, where=where)


def squared_error(predictions, targets=None):
    error = predictions if targets is None else predictions - targets
    return error ** 2


def l2_loss(predictions, targets=None):
    return 0.5 * squared_error(predictions, targets)


def absolute_error(predictions, targets=None):
    return jnp.abs(predictions if targets is None else predictions - targets)


def huber_loss(predictions, targets=None, delta=1.0):
    size = jnp.abs(predictions if targets is None else predictions - targets)
    inside = jnp.minimum(size, delta)
    return 0.5 * inside ** 2 + delta * (size - inside)


def log_cosh(predictions, targets=None):
    error = predictions if targets is None else predictions - targets
    return jnp.logaddexp(error, -error) - jnp.log(2.0).astype(error.dtype)


def cosine_similarity(predictions, targets, epsilon=0.0, axis=-1, where=None):
    size = lambda x: jnp.maximum(jnp.sqrt(jnp.sum(x * x, axis=axis, keepdims=True)), epsilon)
    return jnp.sum(predictions / size(predictions) * (targets / size(targets)), axis=axis, where=where)


def cosine_distance(predictions, targets, epsilon=0.0, axis=-1, where=None):
    return 1.0 - cosine_similarity(predictions, targets, epsilon, axis, where)


def sigmoid_binary_cross_entropy(logits, labels):
    return -labels * jax.nn.log_sigmoid(logits) - (1.0 - labels) * jax.nn.log_sigmoid(-logits)


binary_sigmoid_cross_entropy = sigmoid_binary_cross_entropy


def softmax_cross_entropy(logits, labels, axis=-1, where=None):
    return -jnp.sum(labels * jax.nn.log_softmax(logits, axis=axis), axis=axis, where=where)


def softmax_cross_entropy_with_integer_labels(logits, labels, axis=-1, where=None):
    _refuse("optax.softmax_cross_entropy_with_integer_labels", {"where": where})
    return softmax_cross_entropy(logits, jax.nn.one_hot(labels, logits.shape[axis], axis=axis), axis)


def safe_softmax_cross_entropy(logits, labels):
    return -jnp.sum(jnp.where(labels == 0, 0.0, labels * jax.nn.log_softmax(logits)), -1)


def poly_loss_cross_entropy(logits, labels, epsilon=2.0, axis=-1, where=None):
    share = jnp.sum(labels * jax.nn.softmax(logits, axis=axis), axis=axis, where=where)
    return softmax_cross_entropy(logits, labels, axis, where) + epsilon * (1.0 - share)


def hinge_loss(predictor_outputs, targets):
    return jnp.maximum(0, 1 - predictor_outputs * targets)


def perceptron_loss(predictor_outputs, targets):
    return jnp.maximum(0, -predictor_outputs * targets)


def kl_divergence(log_predictions, targets, axis=-1, where=None):
    loss = targets * (jnp.where(targets == 0, 0, jnp.log(jnp.where(targets == 0, 1, targets))) - log_predictions)
    return jnp.sum(loss, axis=axis, where=where)


def kl_divergence_with_log_targets(log_predictions, log_targets, axis=-1, where=None):
    return jnp.sum(jnp.exp(log_targets) * (log_targets - log_predictions), axis=axis, where=where)


convex_kl_divergence = lambda log_predictions, targets, axis=-1, where=None: kl_divergence(log_predictions, targets, axis, where) + jnp.sum(
    jnp.exp(log_predictions) - targets, axis=axis, where=where)


def smooth_labels(labels, alpha):
    return (1.0 - alpha) * labels + alpha / labels.shape[-1]


def sigmoid_focal_loss(logits, labels, alpha=None, gamma=2.0):
    p = jax.nn.sigmoid(logits)
    loss = sigmoid_binary_cross_entropy(logits, labels) * (1 - (p * labels + (1 - p) * (1 - labels))) ** gamma
    return loss if alpha is None else (alpha * labels + (1 - alpha) * (1 - labels)) * loss


def triplet_margin_loss(anchors, positives, negatives, axis=-1, norm_degree=2, margin=1.0, eps=1e-6):
    apart = lambda a, b: jnp.sum(jnp.abs(a - b + eps) ** norm_degree, axis=axis) ** (1 / norm_degree)
    return jnp.maximum(apart(anchors, positives) - apart(anchors, negatives) + margin, 0)


def multiclass_hinge_loss(scores, labels):
    right = jax.nn.one_hot(labels, scores.shape[-1])
    return jnp.max(scores + 1.0 - right, -1) - jnp.sum(scores * right, -1)


def multiclass_perceptron_loss(scores, labels):
    return jnp.max(scores, -1) - jnp.sum(scores * jax.nn.one_hot(labels, scores.shape[-1]), -1)


def ctc_loss_with_forward_probs(logits, logit_paddings, labels, label_paddings, *, blank_id=0, log_epsilon=-1e5):
    """The loss of each sequence, and by time the logarithms of what is likely up to then, ending in a blank and ending in a label."""
    count, most = labels.shape
    logs = jax.nn.log_softmax(logits)
    of_blank = jnp.transpose(logs[:, :, blank_id:blank_id + 1], (1, 0, 2))
    of_labels = jnp.transpose(jnp.take_along_axis(logs, jnp.broadcast_to(labels[:, None, :], (count, logits.shape[1], most)), -1), (1, 0, 2))
    repeats = jnp.pad((labels[:, :-1] == labels[:, 1:]).astype(jnp.float32), ((0, 0), (0, 1)))

    def with_score(blanks, score):
        return jnp.concatenate([blanks[:, :1], jnp.logaddexp(blanks[:, 1:], score)], -1)

    def turn(carry, now):
        blanks, emits = carry
        label, blank, padding = now
        sooner = with_score(blanks, emits + log_epsilon * repeats)
        emitted = jnp.logaddexp(sooner[:, :-1] + label, emits + label)
        waited = with_score(sooner + blank, emits + blank + log_epsilon * (1.0 - repeats))
        padding = padding[:, None]
        after = padding * blanks + (1.0 - padding) * waited, padding * emits + (1.0 - padding) * emitted
        return after, after
    start = jnp.full((count, most + 1), log_epsilon).at[:, 0].set(0.0), jnp.full((count, most), log_epsilon)
    _, (blanks, emits) = jax.lax.scan(turn, start, (of_labels, of_blank, logit_paddings.T))
    last = with_score(blanks[-1], emits[-1])
    lengths = most - jnp.sum(label_paddings, 1).astype(jnp.int32)
    return -jnp.take_along_axis(last, lengths[:, None], 1)[:, 0], blanks.at[-1].set(last), emits


def ctc_loss(logits, logit_paddings, labels, label_paddings, *, blank_id=0, log_epsilon=-1e5):
    return ctc_loss_with_forward_probs(logits, logit_paddings, labels, label_paddings, blank_id=blank_id, log_epsilon=log_epsilon)[0]


def generalized_kl_divergence(log_predictions, targets, axis=-1, where=None):
    return kl_divergence(log_predictions, targets, axis, where) + jnp.sum(jnp.exp(log_predictions) - targets, axis=axis, where=where)


def sparsemax_loss(logits, labels):
    return jax.nn.sparse_plus(jnp.where(labels, -logits, logits))


def make_fenchel_young_loss(max_fun):
    """The loss over the last dimension of which `max_fun` is the largest value."""
    largest, product = jnp.vectorize(max_fun, signature="(n)->()"), jnp.vectorize(jnp.vdot, signature="(n),(n)->()")
    return lambda scores, targets, *args, **kwargs: largest(scores, *args, **kwargs) - product(targets, scores)


def ntxent(embeddings, labels, temperature=0.07):
    """Those of one label are to be more alike than those of others are."""
    if labels.shape[0] != embeddings.shape[0]:
        raise ValueError(f"Labels and embeddings must have the same leading dimension, found {labels.shape[0]} for labels and {embeddings.shape[0]} for embeddings.")
    alike = cosine_similarity(embeddings[None], embeddings[:, None], epsilon=jnp.finfo(embeddings.dtype).eps) / temperature
    is_same = labels[:, None] == labels[None]
    is_pair = is_same & ~jnp.eye(labels.shape[0], dtype=bool)
    alike = alike - jax.lax.stop_gradient(jnp.max(jnp.where(is_same & ~is_pair, -jnp.inf, alike), 1, keepdims=True))
    others = jnp.sum(jnp.where(is_same, 0.0, jnp.exp(jnp.where(is_same, 0.0, alike))), 1, keepdims=True)
    pairs = jnp.where(is_pair, alike, 0.0)
    return -jnp.sum(jnp.where(is_pair, pairs - jnp.log(others + jnp.exp(pairs)), 0.0)) / jnp.sum(is_pair)


def dice_loss(predictions, targets, *, class_weights=None, smooth=1.0, alpha=0.5, beta=0.5, apply_softmax=True, reduction="mean", ignore_background=False, axis=None):
    """1 minus what predictions and targets have in common, class by class; `alpha` and `beta` weigh what only one of them has."""
    if abs(predictions.ndim - targets.ndim) == 1:
        predictions, targets = (x[..., None] if x.ndim < max(predictions.ndim, targets.ndim) else x for x in (predictions, targets))
    if predictions.shape != targets.shape:
        raise ValueError(f"Arrays have different shapes: {predictions.shape} != {targets.shape}")
    if not apply_softmax and not jnp.allclose(sums := jnp.sum(predictions, -1), 1.0, rtol=1e-5):
        raise ValueError("When apply_softmax=False, predictions must be valid probability distributions that sum to 1 along the class axis. Found sum range: "
                         f"[{jnp.min(sums):.6f}, {jnp.max(sums):.6f}]")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"Unsupported reduction: {reduction}")
    if apply_softmax:
        predictions = jax.nn.sigmoid(predictions) if predictions.shape[-1] == 1 else jax.nn.softmax(predictions, -1)
    total = lambda x: jnp.sum(x, tuple(range(1, predictions.ndim - 1)) if axis is None else axis)
    common = total(predictions * targets)
    loss = 1.0 - (common + smooth) / (common + alpha * (total(predictions) - common) + beta * (total(targets) - common) + smooth)
    loss = loss if class_weights is None else loss * class_weights
    loss = loss[..., 1:] if ignore_background and predictions.shape[-1] > 1 else loss
    return loss if reduction == "none" else {"mean": jnp.mean, "sum": jnp.sum}[reduction](loss, -1)


def multiclass_generalized_dice_loss(predictions, targets, *, smooth=1.0, apply_softmax=True, ignore_background=False):
    """Rare classes count for more."""
    weights = 1.0 / (jnp.sum(targets, tuple(range(targets.ndim - 1))) ** 2 + 1e-7)
    return jnp.mean(dice_loss(predictions, targets, class_weights=weights / jnp.sum(weights) * len(weights), smooth=smooth, apply_softmax=apply_softmax, reduction="none",
                              ignore_background=ignore_background))


def binary_dice_loss(predictions, targets, *, smooth=1.0, apply_sigmoid=True):
    if predictions.ndim == targets.ndim and predictions.shape[-1] != 1:
        predictions, targets = predictions[..., None], targets[..., None]
    return dice_loss(predictions, targets, smooth=smooth, apply_softmax=apply_sigmoid)


def ranking_softmax_loss(logits, labels, *, where=None, weights=None, reduce_fn=jnp.mean):
    """Softmax cross entropy of items of a list, those left out that `where` does not hold for."""
    labels = labels.astype(logits.dtype)
    if where is not None:
        labels, logits = jnp.where(where, labels, 0.0), jnp.where(where, logits, -jnp.inf)
    labels = labels if weights is None else labels * weights
    loss = -jnp.sum(labels * jax.nn.log_softmax(logits, -1), -1, where=where)
    where = None if where is None else jnp.any(where, -1)
    if reduce_fn is None:
        return loss if where is None else jnp.where(where, loss, 0.0)
    made = reduce_fn(loss, where=where)
    return jnp.where(jnp.isnan(made) & ~jnp.any(jnp.isnan(loss)), 0.0, made) if reduce_fn is jnp.mean else made
