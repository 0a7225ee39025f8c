# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.sharding."""
import contextlib
import enum

from ._src.shardings import (GSPMDSharding, Mesh, NamedSharding, PartitionSpec, PositionalSharding, Sharding,
                              SingleDeviceSharding, set_mesh)
from ._src.shardings import current_mesh as get_mesh
from ._src.shardings import set_mesh as use_mesh
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

    shape = property(lambda self: dict(zip(self.axis_names, self.axis_sizes)))

    def __repr__(self):
        return "AbstractMesh(" + ", ".join(f"{name!r}: {size}" for name, size in self.shape.items()) + ")"


def get_abstract_mesh():
    mesh = get_mesh()
    return AbstractMesh((), ()) if mesh is None else AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types)


def use_abstract_mesh(mesh):
    """The mesh around, if it has these axes."""
    return contextlib.nullcontext(mesh)
