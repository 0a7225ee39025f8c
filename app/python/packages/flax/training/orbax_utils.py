# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.training.orbax_utils: what Orbax is told of each leaf of a tree."""
import jax
import orbax.checkpoint as ocp


def save_args_from_target(target):
    return jax.tree.map(lambda _: ocp.SaveArgs(), target)


def restore_args_from_target(target, mesh=None):
    def one(leaf):
        if not hasattr(leaf, "sharding") or not hasattr(leaf, "dtype"):
            return ocp.RestoreArgs(restore_type=type(leaf))
        return ocp.ArrayRestoreArgs(sharding=leaf.sharding, dtype=leaf.dtype)
    return jax.tree.map(one, target)
