# SPDX-License-Identifier: GPL-3.0-or-later
"""Boxes: values with the names of their axes. Source: google/flax, flax/core/meta.py."""
import dataclasses

import jax
from jax import tree_util
from jax._src.shardings import current_mesh
from jax.sharding import NamedSharding, PartitionSpec

from ..errors import PartitioningUnspecifiedError

PARTITION_NAME = "partition_name"  # the key of metadata_params


class AxisMetadata:
    """What a value is wrapped in."""


def is_box(node):
    return isinstance(node, AxisMetadata)


@dataclasses.dataclass(frozen=True, eq=False)
class Partitioned(AxisMetadata):
    value: object
    names: tuple
    mesh: object = None

    def replace(self, **changes):
        return dataclasses.replace(self, **changes)

    def replace_boxed(self, value):
        return self.replace(value=value)

    def get_partition_spec(self):
        return PartitionSpec(*self.names)

    def get_sharding(self, mesh):
        return NamedSharding(mesh, self.get_partition_spec())

    def unbox(self, apply_constraint=True):
        """The value, where its names say on the mesh that is its own or around."""
        mesh = self.mesh or current_mesh()
        return self.value if mesh is None or not apply_constraint else jax.lax.with_sharding_constraint(self.value, self.get_sharding(mesh))

    def _named(self, params):
        if PARTITION_NAME not in params:
            raise PartitioningUnspecifiedError('Trying to transform a Partitioned variable but "partition_name" is not specified in metadata_params: '
                                               f"{self}")
        return params[PARTITION_NAME]

    def add_axis(self, index, params):
        names = [None] * max(0, index - len(self.names)) + list(self.names)
        names.insert(index, self._named(params))
        return self.replace(names=tuple(names))

    def remove_axis(self, index, params):
        names = list(self.names)
        if names.pop(index) != self._named(params):
            raise AssertionError(f"axis {index} of {self.names} is not {params[PARTITION_NAME]}")
        return self.replace(names=tuple(names))


def register_box(kind):
    static = [field.name for field in dataclasses.fields(kind) if field.name != "value"]
    tree_util.register_pytree_with_keys(kind, lambda box: ([(tree_util.GetAttrKey("value"), box.value)], tuple(getattr(box, name) for name in static)),
                                        lambda data, values: kind(value=next(iter(values)), **dict(zip(static, data))))
    return kind


register_box(Partitioned)


def on_boxes(function, tree):
    """The tree with each box replaced by what the function makes of it."""
    return jax.tree.map(lambda node: function(node) if is_box(node) else node, tree, is_leaf=is_box)


def unbox(tree):
    return on_boxes(lambda box: box.unbox(), tree)


def replace_boxed(tree, updates):
    return jax.tree.map(lambda box, value: box.replace_boxed(value) if is_box(box) else value, tree, updates, is_leaf=is_box)


def add_axis(tree, index, params):
    return on_boxes(lambda box: box.add_axis(index, params), tree)


def remove_axis(tree, index, params):
    return on_boxes(lambda box: box.remove_axis(index, params), tree)


def with_partitioning(fn, names, mesh=None):
    return lambda *args, **kwargs: Partitioned(fn(*args, **kwargs), tuple(names), mesh)


def get_partition_spec(tree):
    def of(node):
        return node.get_partition_spec() if is_box(node) else PartitionSpec() if hasattr(node, "shape") else None
    return jax.tree.map(of, tree, is_leaf=is_box)


def get_sharding(tree, mesh):
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), get_partition_spec(tree), is_leaf=lambda node: isinstance(node, PartitionSpec))
