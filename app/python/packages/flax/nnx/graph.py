# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.nnx.graph."""
from typing import Any as Key

from ._graph import GraphDef, clone, graphdef, iter_graph, merge, pop, split, state, update


def flatten(node, *_, **__):
    """The form of an object, and its variables by their paths."""
    form, variables = split(node)
    return form, variables.flat_state()


def unflatten(form, variables):
    from ._graph import State
    return merge(form, State.from_flat_path(variables))
