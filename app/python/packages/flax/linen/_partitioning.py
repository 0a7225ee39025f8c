# SPDX-License-Identifier: GPL-3.0-or-later
"""Logical names of axes, and the rules that say which axes of a mesh they are. Source of the rules: google/flax, flax/linen/spmd.py."""
import collections
import dataclasses
import enum

import jax
from jax._src.shardings import current_mesh
from jax.sharding import NamedSharding, PartitionSpec

from ..core import meta
from ..nnx._spmd import _rules, logical_axis_rules


def set_logical_axis_rules(rules):
    _rules[-1] = tuple(rules)


def get_logical_axis_rules():
    return _rules[-1]


class RulesFallback(enum.Enum):
    AXIS_IS_UNSHARDED = "axis_is_unsharded"
    RAISE_ERROR = "raise_error"
    NO_CONSTRAINT = "no_constraint"


_UNSAID = object()
_is_spec = lambda node: isinstance(node, PartitionSpec)


def _axes_of(entry):
    return set(entry if isinstance(entry, (tuple, list)) else ()) if not isinstance(entry, str) else {entry}


def _assigned(names, rules):
    """An axis of the mesh, or several, for each name: the first rule whose axes no other dimension has."""
    rules = get_logical_axis_rules() if rules is None else rules
    if not isinstance(rules, (tuple, list)):
        raise ValueError("Unknown axis rule specification type.")
    twice = tuple(name for name, count in collections.Counter(names).items() if count > 1 and isinstance(name, str))
    if twice:
        raise ValueError(f"Unsupported: Dimensions {twice} occur more than once in array names.")
    made = [_UNSAID if isinstance(name, str) else name for name in names]
    for logical, axes in rules:
        if logical in names:
            at = list(names).index(logical)
            taken = set().union(*(_axes_of(entry) for entry in made))
            if made[at] is _UNSAID and not taken & _axes_of(axes):
                made[at] = axes
    return made


def logical_to_mesh_axes(array_dim_names, rules=None):
    if array_dim_names is None:
        return None
    return PartitionSpec(*(None if axes is _UNSAID else axes for axes in _assigned(array_dim_names, rules)))


def logical_to_mesh(tree, rules=None):
    return jax.tree.map(lambda spec: logical_to_mesh_axes(tuple(spec), rules), tree, is_leaf=_is_spec)


def logical_to_mesh_sharding(tree, mesh, rules=None):
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), logical_to_mesh(tree, rules), is_leaf=_is_spec)


def _is_names(node):
    return node is None or isinstance(node, tuple) and all(name is None or isinstance(name, str) or name is PartitionSpec.UNCONSTRAINED for name in node)


def with_logical_constraint(x, logical_axis_resources, rules=None, mesh=None, fallback=RulesFallback.AXIS_IS_UNSHARDED):
    rules = get_logical_axis_rules() if rules is None else rules
    mesh = mesh or current_mesh()
    if not rules or logical_axis_resources is None:
        return x

    def of(names, x):
        names = tuple(names) if _is_spec(names) else names
        axes = None if names is None else _assigned(names, rules)
        if axes is not None and any(entry is _UNSAID for entry in axes):
            if fallback is RulesFallback.RAISE_ERROR:
                raise ValueError(f"Axis names {names} did not match a rule")
            if fallback is RulesFallback.NO_CONSTRAINT:
                return x
        if mesh is None or axes is None:
            return x
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(*(None if entry is _UNSAID else entry for entry in axes))))
    return jax.tree.map(of, logical_axis_resources, x, is_leaf=lambda node: _is_names(node) or _is_spec(node))


@meta.register_box
@dataclasses.dataclass(frozen=True, eq=False)
class LogicallyPartitioned(meta.Partitioned):
    rules: object = None

    def unbox(self, apply_constraint=True):
        if not apply_constraint:
            return self.value
        return with_logical_constraint(self.value, self.names, rules=self.rules, mesh=self.mesh)


def with_logical_partitioning(fn, names, mesh=None, rules=None):
    return lambda *args, **kwargs: LogicallyPartitioned(fn(*args, **kwargs), tuple(names), mesh, rules)
