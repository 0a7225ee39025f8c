# SPDX-License-Identifier: GPL-3.0-or-later
"""orbax.checkpoint.checkpoint_utils."""
import jax

from ._trees import ArrayRestoreArgs, RestoreArgs


def construct_restore_args(target, sharding_tree=None, set_global_shape=True, support_layout=False):
    def one(leaf):
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            return ArrayRestoreArgs(dtype=leaf.dtype, sharding=getattr(leaf, "sharding", None))
        return RestoreArgs()
    return jax.tree.map(one, target, is_leaf=lambda x: isinstance(x, jax.ShapeDtypeStruct))
