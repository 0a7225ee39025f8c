# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.ad_checkpoint: what is kept for the derivative, and what is made again, changes memory and no values."""
import functools

from ._src import residuals as _residuals
from ._src.arrays import Scope


class _Policy:
    """What a function under jax.checkpoint keeps, by the primitive that gives it and its parameters."""

    def __init__(self, name, saves):
        self._name, self.saves = name, saves

    def __repr__(self):
        return self._name


class _Named(_Policy):
    """One that goes by the names that checkpoint_name gives."""

    def __init__(self, name, saveable_names, saves):
        super().__init__(name, lambda primitive, params: primitive == "name" and saves(params["name"]))
        self.saveable_names = frozenset(saveable_names)


def _has_batch(params):
    return bool(params.get("lhs_batch"))


class checkpoint_policies:  # noqa: N801
    """Policies by their names."""
    everything_saveable = _Policy("everything_saveable", lambda primitive, params: True)
    nothing_saveable = _Policy("nothing_saveable", lambda primitive, params: False)
    dots_saveable = checkpoint_dots = _Policy("dots_saveable", lambda primitive, params: primitive in ("dot_general", "conv_general_dilated"))
    dots_with_no_batch_dims_saveable = checkpoint_dots_with_no_batch_dims = _Policy(
        "dots_with_no_batch_dims_saveable", lambda primitive, params: primitive == "dot_general" and not _has_batch(params))
    SaveOnlyTheseNames = _Named

    @staticmethod
    def save_only_these_names(*names):
        return _Named(f"save_only_these_names{names}", names, lambda name: name in names)

    @staticmethod
    def save_any_names_but_these(*names):
        return _Named(f"save_any_names_but_these{names}", (), lambda name: name not in names)

    @staticmethod
    def save_anything_except_these_names(*names):
        return _Policy(f"save_anything_except_these_names{names}", lambda primitive, params: primitive != "name" or params["name"] not in names)

    @staticmethod
    def save_from_both_policies(one, other):
        return _Policy(f"save_from_both_policies({one}, {other})", lambda *op: one.saves(*op) or other.saves(*op))

    @staticmethod
    def offload_dot_with_no_batch_dims(offload_src, offload_dst):
        """As dots_with_no_batch_dims_saveable: here a device has one memory."""
        return _Policy("offload_dot_with_no_batch_dims", checkpoint_policies.dots_with_no_batch_dims_saveable.saves)

    @staticmethod
    def save_and_offload_only_these_names(*, names_which_can_be_saved, names_which_can_be_offloaded, offload_src, offload_dst):
        names = (*names_which_can_be_saved, *names_which_can_be_offloaded)
        return _Named("save_and_offload_only_these_names", names_which_can_be_saved, lambda name: name in names)


def _saves(policy):
    if policy is None:
        return checkpoint_policies.nothing_saveable.saves
    if isinstance(policy, _Policy):
        return policy.saves
    raise NotImplementedError("jax.ad_checkpoint.print_saved_residuals of a function under jax.checkpoint with a policy of the page's own: use one of "
                              "jax.checkpoint_policies")


def checkpoint(fun=None, *, prevent_cse=True, policy=None, static_argnums=(), concrete=False):
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums)

    @functools.wraps(fun)
    def called(*args, **kwargs):
        for scope in Scope._stack:
            scope.recomputes = True
        if not _residuals.is_recording():
            return fun(*args, **kwargs)
        with _residuals.Region(_saves(policy)):
            return fun(*args, **kwargs)
    return called


remat = checkpoint


def checkpoint_name(x, name):
    if not _residuals.is_recording():
        return x
    from .tree_util import tree_map
    return tree_map(lambda leaf: _residuals.named(leaf, name), x)


def saved_residuals(fun, *args, **kwargs):
    return _residuals.saved_residuals(fun, *args, **kwargs)


def print_saved_residuals(fun, *args, **kwargs):
    for kind, said in saved_residuals(fun, *args, **kwargs):
        print(kind, said)
