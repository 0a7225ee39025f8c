# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.flatten_util."""
from ._src import ops
from ._src.arrays import asarray, astype
from ._src.trees import tree_flatten, tree_unflatten


def ravel_pytree(pytree):
    """All elements of a tree as one vector, and the function that makes the tree of one."""
    leaves, form = tree_flatten(pytree)
    leaves = [asarray(leaf) for leaf in leaves]
    if not leaves:
        return ops.full((0,), 0, "f32"), lambda _: tree_unflatten(form, [])
    flat = ops.concatenate([ops.reshape(leaf, (leaf.size,)) for leaf in leaves])

    def unravel(vector):
        vector, at, made = asarray(vector), 0, []
        for leaf in leaves:
            made.append(astype(ops.reshape(vector[at:at + leaf.size], leaf.shape), leaf.engine_dtype))
            at += leaf.size
        return tree_unflatten(form, made)
    return flat, unravel
