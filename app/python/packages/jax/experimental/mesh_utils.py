# SPDX-License-Identifier: GPL-3.0-or-later
"""Orders of devices in which a logical mesh runs well on the physical one."""
import math

import _meshwright as core
import numpy as np

from .._src.machine import machine


def create_device_mesh(mesh_shape, devices=None, *, contiguous_submeshes=False, allow_split_physical_axes=False):
    shape = (mesh_shape,) if isinstance(mesh_shape, int) else tuple(mesh_shape)
    all_devices = list(np.array(machine.devices if devices is None else devices, dtype=object).flat)
    if math.prod(shape) != len(all_devices):
        raise ValueError(f"Number of devices {len(all_devices)} must equal the product of mesh_shape {shape}")
    order = all_devices
    if machine.platform == "tpu" and len(all_devices) == len(machine.devices):
        by_number = {device.id: device for device in all_devices}
        numbers = core.device_mesh(list(shape), machine.kind, machine.topology, allow_split_physical_axes)
        order = [by_number[number] for number in numbers]
    made = np.empty(len(order), dtype=object)
    made[:] = order
    return made.reshape(shape)
