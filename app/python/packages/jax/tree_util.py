# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.tree_util."""
import functools

from ._src.trees import (DictKey, FlattenedIndexKey, GetAttrKey, PyTreeDef, SequenceKey, all_leaves, build_tree, keystr, register_dataclass, register_pytree_node,
                         register_pytree_node_class, register_pytree_with_keys, register_pytree_with_keys_class, register_static, tree_all, tree_broadcast,
                         tree_flatten, tree_flatten_with_path, tree_leaves, tree_leaves_with_path, tree_map, tree_map_with_path, tree_reduce, tree_structure,
                         tree_transpose, tree_unflatten, treedef_is_leaf)
from ._src.trees import of_page as _of_page
from ._src.trees import tree_leaves as _tree_leaves

all_leaves, tree_all, tree_flatten, tree_flatten_with_path, tree_leaves, tree_leaves_with_path, tree_map, tree_map_with_path, tree_reduce, tree_structure = map(
    _of_page, (all_leaves, tree_all, tree_flatten, tree_flatten_with_path, tree_leaves, tree_leaves_with_path, tree_map, tree_map_with_path, tree_reduce, tree_structure))


class Partial(functools.partial):
    """A function with some of its arguments, which is a tree of these."""


register_pytree_node(Partial, lambda partial: ((partial.args, partial.keywords), partial.func), lambda function, children: Partial(function, *children[0], **children[1]))


tree_multimap = tree_map  # of older pages


def treedef_children(form):
    return list(form.children)


def treedef_tuple(forms):
    return PyTreeDef(tuple, None, list(forms))


def tree_reduce_associative(operation, tree, *, identity=None, is_leaf=None):
    leaves = _tree_leaves(tree, is_leaf)
    return functools.reduce(operation, leaves) if leaves else identity


from ._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
