# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.custom_batching."""
import functools

from ._src import batching
from ._src.arrays import asarray
from ._src.trees import tree_flatten, tree_map, tree_unflatten


class custom_vmap:
    """A function that says itself what it is of many examples."""

    def __init__(self, fun):
        functools.update_wrapper(self, fun)
        self.fun, self.vmap_rule = fun, None

    def def_vmap(self, vmap_rule):
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args, **kwargs):
        leaves, form = tree_flatten(args)
        if not batching.Level.stack or self.vmap_rule is None:
            return self.fun(*args, **kwargs)
        with batching.Outside() as outside:
            leaves = [asarray(leaf) for leaf in leaves]
            if any(outside.is_example(leaf) for leaf in leaves):
                size = next(leaf.value.shape[0] for leaf in leaves if outside.is_example(leaf))
                batched = tree_unflatten(form, [outside.is_example(leaf) for leaf in leaves])
                made, is_batched = self.vmap_rule(size, list(batched), *tree_unflatten(form, [leaf.value if outside.is_example(leaf) else leaf for leaf in leaves]))
                return tree_map(lambda x, own: outside.example(x) if own else x, made, is_batched)
        return self.fun(*args, **kwargs)
