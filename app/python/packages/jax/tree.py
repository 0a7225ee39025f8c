# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.tree."""
from .tree_util import (tree_all as all, tree_broadcast as broadcast, tree_flatten as flatten, tree_flatten_with_path as flatten_with_path, tree_leaves as leaves,
                        tree_leaves_with_path as leaves_with_path, tree_map as map, tree_map_with_path as map_with_path, tree_reduce as reduce,
                        tree_structure as structure, tree_transpose as transpose, tree_unflatten as unflatten)


def reduce_associative(operation, tree, *, identity=None, is_leaf=None):
    """The leaves put together two by two."""
    found = leaves(tree, is_leaf=is_leaf)
    if not found and identity is None:
        raise ValueError("Must specify identity for parallel reduction of empty tree.")
    while len(found) > 1:
        found = [operation(*found[at:at + 2]) if at + 1 < len(found) else found[at] for at in range(0, len(found), 2)]
    return found[0] if found else identity


from ._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
