# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of mesh axes, or of logical axes with rules, as metadata of variables. Source: google/flax, flax/nnx/spmd.py."""
import contextlib
import functools

import jax
from jax.sharding import NamedSharding, PartitionSpec

from jax._src.shardings import current_mesh
from jax._src.transforms import placed

from ._graph import Variable, VariableMetadata, VariableState, eager_sharding, on_made

_rules = [()]  # those that are set for all, then of each `with logical_axis_rules`, innermost last


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


class _Eagerly:
    def __init__(self, before):
        self._before = before

    def __enter__(self):
        return None

    def __exit__(self, *_):
        eager_sharding[-1] = self._before


def use_eager_sharding(is_used):
    """From now on, or within `with`."""
    before, eager_sharding[-1] = eager_sharding[-1], is_used
    return _Eagerly(before)


def using_eager_sharding():
    return eager_sharding[-1]


def place(variable):
    """Puts a variable where its metadata say, on its own mesh or the one around."""
    mesh = variable._metadata.get("mesh") or current_mesh()
    if variable._metadata.get("eager_sharding", eager_sharding[-1]) and variable._metadata.get("sharding") is not None and mesh is not None:
        variable.value = placed(variable.value, NamedSharding(mesh, _spec(variable)))


on_made.append(place)

PARTITION_NAME = "partition_name"  # the key of transform_metadata


def _on_variables(function, tree):
    kinds = (VariableState, Variable)
    return jax.tree.map(lambda leaf: leaf.replace(function(leaf)) if isinstance(leaf, kinds) else None, tree,
                        is_leaf=lambda node: isinstance(node, kinds))


def get_partition_spec(tree):
    return _on_variables(_spec, tree)


def get_named_sharding(tree, mesh):
    return _on_variables(lambda variable: NamedSharding(mesh, _spec(variable)), tree)


def with_sharding_constraint(x, axis_resources, mesh=None):
    if mesh is None:
        return jax.lax.with_sharding_constraint(x, axis_resources)
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, axis_resources))
