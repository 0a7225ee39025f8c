# SPDX-License-Identifier: GPL-3.0-or-later
"""Transformations made of others. Source of the formulas and defaults: google-deepmind/optax."""
import collections
import functools
import inspect

import jax
import jax.numpy as jnp
from jax import tree
from jax._src.options import refuse as _refuse

GradientTransformation = collections.namedtuple("GradientTransformation", "init update")


class GradientTransformationExtraArgs(GradientTransformation):
    """One whose update takes further arguments."""


EmptyState = collections.namedtuple("EmptyState", "")
MaskedState = collections.namedtuple("MaskedState", "inner_state")
MultiTransformState = collections.namedtuple("MultiTransformState", "inner_states")
PartitionState = MultiTransformState
InjectHyperparamsState = collections.namedtuple("InjectHyperparamsState", "count hyperparams hyperparams_states inner_state")
InjectStatefulHyperparamsState = InjectHyperparamsState
MultiStepsState = collections.namedtuple("MultiStepsState", "mini_step gradient_step inner_opt_state acc_grads skip_state")
LookaheadState = collections.namedtuple("LookaheadState", "fast_state steps_since_sync")
ApplyEvery = collections.namedtuple("ApplyEvery", "count grad_acc")
ApplyIfFiniteState = collections.namedtuple("ApplyIfFiniteState", "notfinite_count last_finite total_notfinite inner_state")


class MaskedNode(collections.namedtuple("MaskedNode", "")):
    """Stands for what is left out of a tree."""


def _stateless(change):
    return GradientTransformation(lambda params: EmptyState(), lambda updates, state, params=None, **_: (change(updates, params), state))


def needs(params):
    """Raises where `update` is called without parameters. Source of the text: google-deepmind/optax, optax/_src/base.py."""
    if params is None:
        raise ValueError("You are using a transformation that requires the current value of parameters, but you are not passing `params` when calling `update`.")


def _of_params(change):
    """A stateless one that needs the parameters."""
    def checked(updates, params):
        needs(params)
        return change(updates, params)
    return _stateless(checked)


stateless = _stateless


def stateless_with_tree_map(f):
    return _stateless(lambda updates, params: tree.map(f, updates, params))


def identity():
    return _stateless(lambda updates, params: updates)


def set_to_zero():
    return _stateless(lambda updates, params: tree.map(jnp.zeros_like, updates))


def with_extra_args_support(tx):
    return GradientTransformationExtraArgs(tx.init, lambda updates, state, params=None, **extra: called(tx, updates, state, params, extra))


@functools.lru_cache(maxsize=256)
def _takes_more(update):
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in inspect.signature(update).parameters.values())


def called(tx, updates, state, params, extra):
    """An update, with further arguments where it takes them."""
    return tx.update(updates, state, params, **(extra if _takes_more(tx.update) else {}))


def chain(*steps):
    def init(params):
        return tuple(step.init(params) for step in steps)

    def update(updates, state, params=None, **extra):
        if len(steps) != len(state):
            raise ValueError("The number of updates and states has to be the same in chain! Make sure you have called init first!")
        after = []
        for step, own in zip(steps, state):
            updates, new = called(step, updates, own, params, extra)
            after.append(new)
        return updates, tuple(after)
    return GradientTransformationExtraArgs(init, update)


def named_chain(*steps):
    names = [name for name, _ in steps]

    def init(params):
        return {name: step.init(params) for name, step in steps}

    def update(updates, state, params=None, **extra):
        after = {}
        for name, step in steps:
            updates, after[name] = called(step, updates, state[name], params, extra)
        return updates, after
    if len(set(names)) != len(names):
        raise ValueError(f"Named transformations must have unique names, but got {names}.")
    return GradientTransformationExtraArgs(init, update)


def _is_masked(node):
    return isinstance(node, MaskedNode)


def masked(inner, mask, *, mask_compatible_extra_args=False):
    """The inner transformation where the mask says so; other updates stay as they are."""
    def of(params):
        return mask(params) if callable(mask) else mask

    def kept(values, chosen):
        return tree.map(lambda keep, value: value if keep else MaskedNode(), chosen, values)

    def init(params):
        return MaskedState(inner.init(kept(params, of(params))))

    def update(updates, state, params=None, **extra):
        chosen = of(updates)
        new, after = called(inner, kept(updates, chosen), state.inner_state, None if params is None else kept(params, chosen), extra)
        return tree.map(lambda keep, made, old: made if keep else old, chosen, new, updates, is_leaf=_is_masked), MaskedState(after)
    return GradientTransformationExtraArgs(init, update)


def partition(transforms, param_labels):
    """To each group of parameters the transformation of its label."""
    def labels_of(params):
        return param_labels(params) if callable(param_labels) else param_labels

    def spread(params):
        from jax._src.trees import prefix_leaves, tree_structure, tree_unflatten
        form = tree_structure(params)
        return tree_unflatten(form, prefix_leaves(labels_of(params), form, params))

    def of(label, labels):
        return masked(transforms[label], tree.map(lambda own: own == label, labels))

    def init(params):
        labels = spread(params)
        unknown = set(tree.leaves(labels)) - set(transforms)
        if unknown:
            raise ValueError(f"Some parameters have no corresponding transformation.\nParameter labels: {sorted(set(tree.leaves(labels)))}\n"
                             f"Transforms keys: {sorted(transforms)}\n")
        return MultiTransformState({label: of(label, labels).init(params) for label in transforms})

    def update(updates, state, params=None, **extra):
        labels, after = spread(updates), {}
        for label in transforms:
            updates, after[label] = called(of(label, labels), updates, state.inner_states[label], params, extra)
        return updates, MultiTransformState(after)
    return GradientTransformationExtraArgs(init, update)


multi_transform = partition


def freeze(mask):
    return masked(set_to_zero(), mask)


def selective_transform(optimizer, *, freeze_mask):
    def labels(params):
        chosen = freeze_mask(params) if callable(freeze_mask) else freeze_mask
        return tree.map(lambda frozen: "freeze" if frozen else "train", chosen)
    return partition({"train": optimizer, "freeze": set_to_zero()}, labels)


def flatten(inner):
    """The inner transformation of all parameters as one vector."""
    def flat(params):
        return jnp.concatenate([jnp.reshape(leaf, (-1,)) for leaf in tree.leaves(params)])

    def unflat(updates, vector):
        leaves, form = tree.flatten(updates)
        made, at = [], 0
        for leaf in leaves:
            made.append(jnp.reshape(vector[at:at + leaf.size], leaf.shape).astype(leaf.dtype))
            at += leaf.size
        return tree.unflatten(form, made)

    def update(updates, state, params=None, **extra):
        made, state = called(inner, flat(updates), state, None if params is None else flat(params), extra)
        return unflat(updates, made), state
    return GradientTransformationExtraArgs(lambda params: inner.init(flat(params)), update)


def inject_hyperparams(inner_factory, static_args=(), hyperparam_dtype=None):
    """Numbers and schedules among the arguments of an optimizer become part of its state."""
    static = {static_args} if isinstance(static_args, str) else set(static_args)

    @functools.wraps(inner_factory)
    def made(*args, **kwargs):
        bound = inspect.signature(inner_factory).bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        given.update(given.pop("kwargs", {}) or {}), given.update(given.pop("_", {}) or {})
        schedules = {name: value for name, value in given.items() if callable(value) and name not in static and name not in ("mask",)}
        numbers = {name: value for name, value in given.items()
                   if name not in static and name not in schedules and (isinstance(value, (int, float)) and not isinstance(value, bool) or isinstance(value, jax.Array))}
        others = {name: value for name, value in given.items() if name not in schedules and name not in numbers}

        def now(count):
            return {name: schedule(count) for name, schedule in schedules.items()}

        def init(params):
            count = jnp.zeros([], jnp.int32)
            values = {name: jnp.asarray(value, hyperparam_dtype or jnp.float32) for name, value in {**numbers, **now(count)}.items()}
            return InjectHyperparamsState(count, values, {}, inner_factory(**others, **values).init(params))

        def update(updates, state, params=None, **extra):
            values = {name: jnp.asarray(value, jnp.float32) for name, value in {**state.hyperparams, **now(state.count)}.items()}
            new, inner = called(inner_factory(**others, **values), updates, state.inner_state, params, extra)
            return new, InjectHyperparamsState(state.count + 1, values, {}, inner)
        return GradientTransformationExtraArgs(init, update)
    return made


class MultiSteps:
    """The inner optimizer every k-th step, of the mean of k updates."""

    def __init__(self, opt, every_k_schedule, use_grad_mean=True, should_skip_update_fn=None):
        _refuse("optax.MultiSteps", {"should_skip_update_fn": should_skip_update_fn})
        self._opt, self._use_grad_mean = opt, use_grad_mean
        self._every = every_k_schedule if callable(every_k_schedule) else lambda step: every_k_schedule
        self.inner_opt = opt

    def init(self, params):
        return MultiStepsState(jnp.zeros([], jnp.int32), jnp.zeros([], jnp.int32), self._opt.init(params), tree.map(jnp.zeros_like, params), ())

    def update(self, updates, state, params=None, **extra):
        count = self._every(state.gradient_step)
        if self._use_grad_mean:
            sums = tree.map(lambda g, acc: acc + (g - acc) / (state.mini_step + 1), updates, state.acc_grads)
        else:
            sums = tree.map(lambda g, acc: acc + g, updates, state.acc_grads)
        emits = state.mini_step + 1 >= count
        final, inner = called(self._opt, sums, state.inner_opt_state, params, extra)
        choose = lambda a, b: tree.map(lambda x, y: jnp.where(emits, x, y), a, b)
        after = MultiStepsState((state.mini_step + 1) % count, state.gradient_step + emits.astype(jnp.int32), choose(inner, state.inner_opt_state),
                                tree.map(lambda acc: jnp.where(emits, jnp.zeros_like(acc), acc), sums), ())
        return tree.map(lambda x: jnp.where(emits, x, jnp.zeros_like(x)), final), after

    def has_updated(self, state):
        return jnp.logical_and(state.mini_step == 0, state.gradient_step > 0)

    def gradient_transformation(self):
        return GradientTransformationExtraArgs(self.init, self.update)


class LookaheadParams(collections.namedtuple("LookaheadParams", "fast slow")):
    @classmethod
    def init_synced(cls, params):
        return cls(slow=params, fast=params)


def lookahead(fast_optimizer, sync_period, slow_step_size, reset_state=False):
    """Slow parameters that are drawn towards the fast ones every few steps."""
    if sync_period < 1:
        raise ValueError("Synchronization period must be >= 1.")

    def init(params):
        return LookaheadState(fast_optimizer.init(params.fast), jnp.zeros([], jnp.int32))

    def update(updates, state, params):
        updates, fast = fast_optimizer.update(updates, state.fast_state, params.fast)
        sync = state.steps_since_sync == sync_period - 1
        difference = tree.map(lambda f, u, s: f + u - s, params.fast, updates, params.slow)
        slow = tree.map(lambda d: slow_step_size * d * sync, difference)
        quick = tree.map(lambda u, d, s: u - sync * (d - s), updates, difference, slow)
        if reset_state:
            fresh = fast_optimizer.init(params.fast)
            fast = tree.map(lambda a, b: jnp.where(sync, a, b), fresh, fast)
        return LookaheadParams(fast=quick, slow=slow), LookaheadState(fast, (state.steps_since_sync + 1) % sync_period)
    return GradientTransformation(init, update)


def apply_every(k=1):
    """Each k-th step is the sum of so many; the others are zeros."""
    def update(updates, state, params=None):
        sums = tree.map(lambda update, kept: update + jnp.where(state.count == 0, 0, kept), updates, state.grad_acc)
        is_last = state.count == k - 1
        return tree.map(lambda kept: jnp.where(is_last, kept, 0), sums), ApplyEvery((state.count + 1) % k, sums)
    return GradientTransformation(lambda params: ApplyEvery(jnp.zeros([], jnp.int32), tree.map(jnp.zeros_like, params)), update)


def apply_if_finite(inner, max_consecutive_errors):
    """Updates that are not finite are left out, so many times in a row."""
    def init(params):
        return ApplyIfFiniteState(jnp.zeros([], jnp.int32), jnp.array(True), jnp.zeros([], jnp.int32), inner.init(params))

    def update(updates, state, params=None, **extra):
        is_finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in tree.leaves(updates)]))
        count = jnp.where(is_finite, 0, state.notfinite_count + 1)
        new, inner_state = called(inner, updates, state.inner_state, params, extra)
        applies = jnp.logical_or(is_finite, count > max_consecutive_errors)
        choose = lambda a, b: tree.map(lambda x, y: jnp.where(applies, x, y), a, b)
        return choose(new, tree.map(jnp.zeros_like, updates)), ApplyIfFiniteState(
            count, is_finite, jnp.where(is_finite, state.total_notfinite, state.total_notfinite + 1), choose(inner_state, state.inner_state))
    return GradientTransformationExtraArgs(init, update)
