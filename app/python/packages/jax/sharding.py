# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.sharding."""
import collections
import contextlib
import enum
import math

import numpy as np

from ._src.shardings import (GSPMDSharding, Mesh, NamedSharding, PartitionSpec, PositionalSharding, Sharding,
                              SingleDeviceSharding, set_mesh)
from ._src.shardings import current_mesh as get_mesh
from ._src.shardings import set_mesh as use_mesh
from ._src.machine import machine
from ._src.transforms import in_mode as auto_axes
from ._src.transforms import in_mode as explicit_axes
from ._src.transforms import reshard


class AxisType(enum.Enum):
    Auto, Explicit, Manual = 0, 1, 2

    def __repr__(self):
        return self.name


class AbstractMesh:
    """A mesh without devices."""

    def __init__(self, axis_sizes, axis_names=None, axis_types=None):
        if axis_names is None:  # pairs of a name and a size
            axis_names, axis_sizes = zip(*axis_sizes)
        self.axis_sizes, self.axis_names, self.axis_types = tuple(axis_sizes), tuple(axis_names), axis_types

    shape_tuple = property(lambda self: tuple(zip(self.axis_names, self.axis_sizes)))
    shape = property(lambda self: collections.OrderedDict(self.shape_tuple))
    size = property(lambda self: math.prod(self.axis_sizes) if self.axis_sizes else 0)
    empty = property(lambda self: self.size == 0)

    def update(self, axis_sizes=None, axis_names=None, axis_types=None):
        return AbstractMesh(axis_sizes or self.axis_sizes, axis_names or self.axis_names, axis_types or self.axis_types)

    def __eq__(self, other):
        return isinstance(other, AbstractMesh) and self.shape_tuple == other.shape_tuple

    def __hash__(self):
        return hash(self.shape_tuple)

    def __repr__(self):
        types = f", axis_types={self.axis_types}" if self.axis_types else ""
        return "AbstractMesh(" + ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple) + types + ")"


def get_abstract_mesh():
    mesh = get_mesh()
    return AbstractMesh((), ()) if mesh is None else AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types)


@contextlib.contextmanager
def use_abstract_mesh(mesh):
    """Within it, the devices of the mesh around, in their order, have these axes. Source of the texts: jax-ml/jax, jax/_src/mesh.py."""
    if not isinstance(mesh, AbstractMesh):
        raise ValueError(f"Expected mesh of type `jax.sharding.AbstractMesh`. Got type: {type(mesh)}")
    around = get_mesh()
    if around is not None and not mesh.empty and around.size != mesh.size:
        raise ValueError(f"use_abstract_mesh cannot change the size of the mesh. Got new mesh: {mesh} with size={mesh.size} and prev mesh: {get_abstract_mesh()} with "
                         f"size={around.size}")
    devices = machine.devices if around is None else list(around.devices.flat)
    if mesh.empty or len(devices) < mesh.size:  # no devices that could have these axes: the mesh is only read
        yield
        return
    with Mesh(np.array(devices[:mesh.size], dtype=object).reshape(mesh.axis_sizes), mesh.axis_names, axis_types=mesh.axis_types):
        yield
