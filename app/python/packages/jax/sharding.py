# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.sharding."""
import contextlib

import numpy as np

from ._src.shardings import (AbstractMesh, AxisType, GSPMDSharding, Mesh, NamedSharding, PartitionSpec, PositionalSharding, Sharding,
                              SingleDeviceSharding, set_mesh)
from ._src.shardings import current_mesh as get_mesh
from ._src.shardings import set_mesh as use_mesh
from ._src.machine import machine
from ._src.transforms import auto_axes, explicit_axes, reshard


def get_abstract_mesh():
    mesh = get_mesh()
    return AbstractMesh((), ()) if mesh is None else mesh.abstract_mesh


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
