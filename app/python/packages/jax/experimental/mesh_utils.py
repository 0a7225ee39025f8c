# SPDX-License-Identifier: GPL-3.0-or-later
"""Orders of devices in which a logical mesh runs well on the physical one."""
import math

import _meshwright as core
import numpy as np

from .._src.machine import machine


def _fills_box(devices):
    """True for TPU cores of all chips of a box."""
    if any(getattr(device, "coords", None) is None or not device.device_kind.startswith("TPU") for device in devices):
        return False
    chips = {tuple(device.coords) for device in devices}
    box = math.prod(max(along) + 1 for along in zip(*chips))
    return len(chips) == box and len(devices) == box * len({device.core_on_chip for device in devices})


def create_device_mesh(mesh_shape, devices=None, *, contiguous_submeshes=False, allow_split_physical_axes=False):
    shape = (mesh_shape,) if isinstance(mesh_shape, int) else tuple(mesh_shape)
    if not all(isinstance(size, (int, np.integer)) for size in shape):
        raise ValueError(f"`mesh_shape` passed to `create_device_mesh` should be a sequence of ints. Got {mesh_shape}")
    all_devices = list(np.array(machine.devices if devices is None else devices, dtype=object).flat)
    if math.prod(shape) != len(all_devices):
        raise ValueError(f"Number of devices {len(all_devices)} must equal the product of mesh_shape {shape}")
    order = all_devices
    if _fills_box(all_devices):
        by_number = {device.id: device for device in all_devices}
        rows = [(device.id, tuple(device.coords), device.core_on_chip, device.process_index) for device in all_devices]
        numbers = core.device_mesh(list(shape), all_devices[0].device_kind, rows, contiguous_submeshes, allow_split_physical_axes)
        order = [by_number[number] for number in numbers]
    made = np.empty(len(order), dtype=object)
    made[:] = order
    return made.reshape(shape)


def create_hybrid_device_mesh(mesh_shape, dcn_mesh_shape, devices=None, *, process_is_granule=False, should_sort_granules_by_key=True, allow_split_physical_axes=False):
    """Slices (or processes) side by side, as `dcn_mesh_shape` says; each has its devices in a mesh of `mesh_shape`. Source of the texts: jax-ml/jax,
    jax/_src/mesh_utils.py."""
    devices = list(np.array(machine.devices if devices is None else devices, dtype=object).flat)
    attribute = "process_index" if process_is_granule else "slice_index"
    if not hasattr(devices[0], attribute):
        raise ValueError(f"Device {devices[0]} does not have attribute {attribute}. See `process_is_granule` option.")
    granules = {}
    for device in devices:
        granules.setdefault(getattr(device, attribute), []).append(device)
    if math.prod(dcn_mesh_shape) != len(granules):
        raise ValueError(f"Number of slices {len(granules)} must equal the product of dcn_mesh_shape {dcn_mesh_shape}")
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    made = np.empty([own * outer for own, outer in zip(mesh_shape, dcn_mesh_shape)], dtype=object)
    for key, place in zip(keys, np.ndindex(*dcn_mesh_shape)):
        part = tuple(slice(at * own, (at + 1) * own) for at, own in zip(place, mesh_shape))
        made[part] = create_device_mesh(mesh_shape, granules[key], allow_split_physical_axes=allow_split_physical_axes)
    return made
