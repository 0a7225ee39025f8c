# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.nnx.traversals."""
from ..traverse_util import flatten_dict as flatten_mapping
from ..traverse_util import unflatten_dict as unflatten_mapping


def flatten_to_sequence(tree, **options):
    return list(flatten_mapping(tree, **options).items())
