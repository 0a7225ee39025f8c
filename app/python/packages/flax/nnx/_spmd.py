# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of mesh axes, or of logical axes with rules, as metadata of variables. Source: google/flax, flax/nnx/spmd.py."""
import contextlib
import functools

import jax
from jax.sharding import NamedSharding, PartitionSpec

from ._graph import State, VariableMetadata, VariableState

_rules = []  # of `with logical_axis_rules`, innermost last


@contextlib.contextmanager
def logical_axis_rules(rules):
    _rules.append(tuple(rules))
    try:
        yield
    finally:
        _rules.pop()


def with_metadata(initializer, **metadata):
    @functools.wraps(initializer)
    def made(*args, **kwargs):
        return VariableMetadata(initializer(*args, **kwargs), dict(metadata))
    return made


def with_partitioning(initializer, sharding, mesh=None, **metadata):
    return with_metadata(initializer, sharding=tuple(sharding), **({} if mesh is None else {"mesh": mesh}), **metadata)


def _mapped(name, rules):
    """The mesh axes of a logical name: the first rule that names it, else itself."""
    if isinstance(name, (tuple, list)):
        return tuple(axis for part in name for axis in [_mapped(part, rules)] if axis is not None)
    return next((axis for logical, axis in rules if logical == name), name)


def _spec(variable):
    names = variable._metadata.get("sharding")
    if names is None:
        return PartitionSpec()
    rules = tuple(variable._metadata.get("sharding_rules") or ()) + tuple(rule for some in reversed(_rules) for rule in some)
    return PartitionSpec(*(_mapped(name, rules) for name in names))


def _on_variables(function, tree):
    return jax.tree.map(lambda leaf: leaf.replace(function(leaf)) if isinstance(leaf, VariableState) else None, tree,
                        is_leaf=lambda node: isinstance(node, VariableState))


def get_partition_spec(tree):
    return _on_variables(_spec, tree)


def get_named_sharding(tree, mesh):
    return _on_variables(lambda variable: NamedSharding(mesh, _spec(variable)), tree)


def with_sharding_constraint(x, axis_resources, mesh=None):
    if mesh is None:
        return jax.lax.with_sharding_constraint(x, axis_resources)
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, axis_resources))
