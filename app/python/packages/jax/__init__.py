# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of JAX that pages use, on Meshwright's virtual devices. Found by pages only, never beside an installed JAX."""
import functools as _functools

from ._src.arrays import Array, NotComputed
from ._src.machine import machine as _machine
from ._src.shardings import Mesh as _Mesh
from ._src.shardings import NamedSharding, PartitionSpec
from ._src.shardings import PartitionSpec as P
from ._src.shardings import set_mesh
from ._src.batching import vmap
from . import _src
from ._src import xla_bridge as _xla_bridge
from ._src.machine import Device
from ._src.transforms import (ShapeDtypeStruct, device_put, eval_shape, grad, jacfwd, jacrev, jit, jvp, linearize, make_jaxpr, pmap, reshard,
                              shard_map, value_and_grad, vjp)
from ._src.transforms import jacrev as jacobian
from ._src.trees import tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten
from . import numpy, lax, nn, random, sharding, tree, tree_util, debug, profiler, experimental, errors, core, typing

__version__ = "0.5.0"


class _Config:
    """Settings that pages change. Those that change what is computed are heeded, others are accepted."""
    jax_enable_x64 = False
    jax_threefry_partitionable = property(lambda self: not _machine.legacy_random)

    def update(self, name, value):
        if name == "jax_threefry_partitionable":
            _machine.legacy_random = not value
        elif name == "jax_num_cpu_devices" and _machine.platform == "cpu":
            _machine.count, _machine._devices = int(value), None
        elif name == "jax_enable_x64" and value:
            raise NotImplementedError("64-bit types (jax_enable_x64)")
        elif name != "jax_threefry_partitionable":
            self.__dict__[name] = value

    def read(self, name):
        return getattr(self, name)


config = _Config()


def devices(backend=None):
    return list(_machine.devices)


local_devices = devices


def device_count(backend=None):
    return len(_machine.devices)


local_device_count = device_count


def process_index(backend=None):
    return 0


def process_count(backend=None):
    return 1


def default_backend():
    return _machine.platform


def make_mesh(axis_shapes, axis_names, axis_types=None, *, devices=None):
    """A mesh of as many devices as its sizes need, the first ones."""
    import math
    from .experimental import mesh_utils
    available = list(devices) if devices is not None else _machine.devices
    count = math.prod(axis_shapes)
    if count > len(available):
        raise ValueError(f"Number of devices {len(available)} must be >= the product of mesh_shape {tuple(axis_shapes)}")
    splits = available[0].device_kind in ("TPU v5 lite", "TPU v5e")
    return _Mesh(mesh_utils.create_device_mesh(axis_shapes, available[:count], allow_split_physical_axes=splits), axis_names, axis_types=axis_types)


def block_until_ready(tree):
    return tree_map(lambda leaf: leaf.block_until_ready() if isinstance(leaf, Array) else leaf, tree)


def device_get(tree):
    import numpy as np
    return tree_map(np.asarray, tree)


def hessian(fun, argnums=0):
    return jacrev(grad(fun, argnums), argnums)


class _CheckpointPolicies:
    """Names of what is kept: memory changes with them, values do not."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: name


checkpoint_policies = _CheckpointPolicies()


def checkpoint(fun=None, **_):
    """What is recomputed changes memory, not values."""
    return fun if fun is not None else checkpoint


remat = checkpoint


def named_call(fun, **_):
    return fun


def named_scope(name):
    import contextlib
    return contextlib.nullcontext()


def disable_jit(disable=True):
    import contextlib
    return contextlib.nullcontext()


def typeof(x):
    return x.aval
