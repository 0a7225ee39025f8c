# SPDX-License-Identifier: GPL-3.0-or-later
"""Dataclasses that are trees. Source: google/flax, flax/struct.py."""
import dataclasses

from jax import tree_util

from . import serialization


def field(pytree_node=True, *, metadata=None, **options):
    return dataclasses.field(metadata={**(metadata or {}), "pytree_node": pytree_node}, **options)


def dataclass(clz=None, **options):
    """A frozen dataclass with `replace`; its fields are children, but those with pytree_node=False."""
    if clz is None:
        return lambda clz: dataclass(clz, **options)
    if "_flax_dataclass" in clz.__dict__:
        return clz
    made = dataclasses.dataclass(clz, **{"frozen": True, **options})
    children = [one.name for one in dataclasses.fields(made) if one.metadata.get("pytree_node", True)]
    static = [one.name for one in dataclasses.fields(made) if not one.metadata.get("pytree_node", True)]
    made.replace = lambda self, **updates: dataclasses.replace(self, **updates)
    made._flax_dataclass = True

    def unflatten(data, values):
        node = object.__new__(made)
        for name, value in [*zip(children, values), *zip(static, data)]:
            object.__setattr__(node, name, value)
        return node
    tree_util.register_pytree_with_keys(made, lambda node: ([(tree_util.GetAttrKey(name), getattr(node, name)) for name in children],
                                                            tuple(getattr(node, name) for name in static)), unflatten)
    serialization.register_dataclass(made, children)
    return made


class PyTreeNode:
    def __init_subclass__(cls, **options):
        dataclass(cls, **options)

    def replace(self, **updates):
        raise NotImplementedError
