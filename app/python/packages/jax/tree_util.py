# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.tree_util."""
from ._src.trees import (DictKey, GetAttrKey, PyTreeDef, SequenceKey, keystr, register_dataclass, register_pytree_node,
                         register_pytree_node_class, register_pytree_with_keys, tree_all, tree_flatten, tree_flatten_with_path,
                         tree_leaves, tree_map, tree_map_with_path, tree_reduce, tree_structure, tree_transpose, tree_unflatten)


def Partial(function, *args, **kwargs):
    import functools
    return functools.partial(function, *args, **kwargs)


def tree_leaves_with_path(tree, is_leaf=None):
    return tree_flatten_with_path(tree, is_leaf)[0]
