# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of JAX that pages use, on Meshwright's virtual devices. Found by pages only, never beside an installed JAX."""
import contextlib as _contextlib

from ._src.arrays import Array, NotComputed
from ._src.machine import machine as _machine
from ._src.shardings import Mesh as _Mesh
from ._src.shardings import NamedSharding, PartitionSpec
from ._src.shardings import PartitionSpec as P
from ._src.shardings import set_mesh
from ._src.batching import vmap
from . import _src
from ._src import precision as _precision
from ._src import random_ as _random
from ._src import dtypes as _dtypes
from .ad_checkpoint import checkpoint, checkpoint_policies, remat
from ._src import xla_bridge as _xla_bridge
from ._src.machine import Device
from ._src.refs import Ref, freeze, new_ref
from ._src.callbacks import effects_barrier, pure_callback
from ._src.custom import closure_convert, custom_gradient, custom_jvp, custom_vjp
from ._src.transforms import (ShapeDtypeStruct, device_put, eval_shape, grad, hessian, jacfwd, jacrev, jit, jvp, linear_transpose, linearize, make_jaxpr, pmap,
                              reshard, shard_map, value_and_grad, vjp)
from ._src.transforms import jacrev as jacobian
from .tree_util import tree_flatten, tree_leaves, tree_map, tree_reduce, tree_structure, tree_transpose, tree_unflatten
from .tree_util import tree_map as tree_multimap
from . import (ad, ad_checkpoint, core, custom_batching, custom_derivatives, debug, distributed, dlpack, dtypes, errors, experimental, export, flatten_util, image, lax, lib, monitoring, nn, numpy, ops, profiler,
               random, ref, scipy, sharding, stages, tree, tree_util, typing, version)

from .version import __version__, __version_info__


def _one_of(name, value, allowed):
    if value not in allowed:
        raise ValueError(f"new enum value must be in {list(allowed)}, got {value} of type {type(value)}. (jax.config: {name})")
    return value


def _truth(name, value):
    if not isinstance(value, (bool, int)) or value not in (0, 1):
        raise ValueError(f"new value of {name} must be True or False, got {value!r} of type {type(value)}.")
    return bool(value)


def _device(value):
    if value is None or value == _machine.platform:
        return None
    if value in ("cpu", "gpu", "tpu"):
        raise RuntimeError(f"Unknown backend {value}: the devices here are {_machine.platform} devices")
    if not hasattr(value, "device_kind"):
        raise ValueError("jax.default_device must be passed either a Device object (e.g. `jax.devices('cpu')[0]`) or a platform name string like 'cpu' or 'gpu', "
                         f"got: {value!r}")
    return value


class _Config:
    """Settings that pages change. Those that change what is computed are heeded, others are accepted."""
    config = property(lambda self: self)  # from jax.config import config
    jax_enable_x64 = enable_x64 = x64_enabled = property(lambda self: _dtypes.is_x64())
    jax_disable_jit = property(lambda self: _machine.runs_python)
    jax_threefry_partitionable = property(lambda self: not _machine.legacy_random)
    jax_debug_nans = property(lambda self: _machine.raises_nans)
    jax_platform_name = jax_platforms = property(lambda self: _machine.platform)
    jax_default_prng_impl = "threefry2x32"
    jax_debug_infs = property(lambda self: _machine.raises_infs)
    jax_default_matmul_precision = property(lambda self: _machine.matmul_precision)
    jax_default_device = property(lambda self: _machine.default_device)
    jax_numpy_dtype_promotion = property(lambda self: "strict" if _machine.strict_promotion else "standard")
    jax_numpy_rank_promotion = property(lambda self: _machine.rank_promotion)

    def update(self, name, value):
        if name == "jax_threefry_partitionable":
            _machine.legacy_random = not value
        elif name == "jax_num_cpu_devices":
            if _machine.platform == "cpu":
                _machine.count, _machine._devices = int(value), None
        elif name == "jax_enable_x64":
            _dtypes.enable_x64(value)
        elif name == "jax_disable_jit":
            _machine.runs_python = _truth(name, value)
        elif name == "jax_debug_nans":
            _machine.raises_nans = _truth(name, value)
        elif name == "jax_debug_infs":
            _machine.raises_infs = _truth(name, value)
        elif name == "jax_default_matmul_precision":
            _machine.matmul_precision = _one_of(name, value, (None, *_precision.DEFAULTS))
        elif name == "jax_numpy_dtype_promotion":
            _machine.strict_promotion = _one_of(name, value, ("standard", "strict")) == "strict"
        elif name == "jax_numpy_rank_promotion":
            _machine.rank_promotion = _one_of(name, value, ("allow", "warn", "raise"))
        elif name == "jax_default_device":
            _machine.default_device = _device(value)
            _machine.had_default_device = _machine.had_default_device or _machine.default_device is not None
        elif name in ("jax_platform_name", "jax_platforms"):
            pass
        elif name == "jax_raise_on_ppermute_sort_diff":
            _machine.permutes_any_order = not _truth(name, value)
        elif name == "jax_default_prng_impl":
            _random.only_threefry(value)
        elif not name.startswith("jax_"):
            raise AttributeError(f"Unrecognized config option: {name}")
        else:
            self.__dict__[name] = value

    def read(self, name):
        return getattr(self, name)


config = _Config()


def devices(backend=None):
    return list(_machine.devices)


def local_devices(process_index=None, backend=None, host_id=None):
    if process_index not in (None, 0):
        raise ValueError(f"Unknown process_index {process_index}")
    return devices(backend)


def device_count(backend=None):
    return len(_machine.devices)


local_device_count = device_count


def process_index(backend=None):
    return 0


def process_count(backend=None):
    return 1


host_id, host_count = process_index, process_count  # of older pages


def process_indices(backend=None):
    return [0]


def default_backend():
    return _machine.platform


def make_mesh(axis_shapes, axis_names, axis_types=None, *, devices=None):
    """A mesh of as many devices as its sizes need, the first ones."""
    import math
    from .experimental import mesh_utils
    if axis_types is None and _machine.makes_explicit:
        axis_types = (sharding.AxisType.Explicit,) * len(axis_names)
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
    return tree_map(lambda leaf: leaf if isinstance(leaf, random.KeyArray) else np.asarray(leaf), tree)


def device_put_sharded(shards, devices):
    """One of the trees on each device, stacked."""
    if len(shards) != len(devices):
        raise ValueError(f"len(shards) = {len(shards)} must equal len(devices) = {len(devices)}.")
    sharding = NamedSharding(_Mesh(list(devices), ("devices",)), P("devices"))
    return tree_map(lambda *parts: device_put(numpy.stack(parts), sharding), *shards)


def device_put_replicated(x, devices):
    """A copy on each device, stacked."""
    return device_put_sharded([x] * len(devices), devices)


def named_call(fun=None, *, name=None):
    return (lambda fun: fun) if fun is None else fun


@_contextlib.contextmanager
def named_scope(name):
    """Names nothing here; a decorator, too."""
    yield


@_contextlib.contextmanager
def _setting(name, value):
    """A setting within `with`."""
    before = getattr(config, name)
    config.update(name, value)
    try:
        yield
    finally:
        config.update(name, before)


def disable_jit(disable=True):
    return _setting("jax_disable_jit", disable)


def enable_x64(enable=True):
    return _setting("jax_enable_x64", enable)


def debug_nans(enable=True):
    return _setting("jax_debug_nans", enable)


def debug_infs(enable=True):
    return _setting("jax_debug_infs", enable)


def default_matmul_precision(precision):
    return _setting("jax_default_matmul_precision", precision)


def numpy_rank_promotion(value):
    return _setting("jax_numpy_rank_promotion", value)


def numpy_dtype_promotion(value):
    return _setting("jax_numpy_dtype_promotion", value)


def threefry_partitionable(enable=True):
    return _setting("jax_threefry_partitionable", enable)


@_contextlib.contextmanager
def default_prng_impl(impl):
    _random.only_threefry(impl)
    yield


def copy_to_host_async(x):
    return x


@_contextlib.contextmanager
def ensure_compile_time_eval():
    """Within it values that are known are computed, also where a function is traced."""
    from ._src.arrays import Scope
    outside, Scope._stack = Scope._stack, []
    try:
        yield
    finally:
        Scope._stack = outside


float0 = _dtypes.float0
mutable_array = new_ref  # its older name
enable_checks = checking_leaks = check_tracer_leaks = transfer_guard = log_compiles = lambda *_, **__: _contextlib.nullcontext()


def default_device(device=None):
    """Where arrays that nobody places are made, and where what is computed of them lies."""
    return _setting("jax_default_device", device)


def typeof(x):
    from ._src import hitypes
    from ._src.arrays import asarray
    if hitypes.is_value(x):
        return hitypes.type_of(x)
    if isinstance(x, random.KeyArray):
        return core.KeyType(x.shape)
    x = asarray(x)
    return core.ShapedArray.of_traced(x) if isinstance(x, core.Tracer) else core.ShapedArray.of(x)


Array.aval = property(typeof)


def live_arrays(platform=None):
    import gc
    return [thing for thing in gc.get_objects() if isinstance(thing, Array) and hasattr(thing, "_handle") and not thing._handle.is_deleted]


def clear_caches():
    pass


def make_array_from_callback(shape, sharding, data_callback, dtype=None):
    """The pieces that a function of their places gives: for each device, or once where all have the whole."""
    import numpy as np
    shape = tuple(shape)
    places = [(slice(None),) * len(shape)] if sharding.is_fully_replicated else sharding.devices_indices_map(shape).values()
    whole = None
    for place in places:
        piece = data_callback(place)
        dtype = dtype or getattr(piece, "dtype", None)
        piece = np.asarray(piece)
        whole = np.empty(shape, piece.dtype) if whole is None else whole
        if piece.shape != whole[place].shape:
            raise ValueError(f"Expected the callback to return an array of shape {whole[place].shape} for the index {place}, got {piece.shape}")
        whole[place] = piece
    return device_put(numpy.asarray(whole, dtype), sharding)


def make_array_from_process_local_data(sharding, local_data, global_shape=None):
    return device_put(local_data, sharding)


def make_array_from_single_device_arrays(shape, sharding, arrays, *, dtype=None):
    """An array of its pieces."""
    import numpy as np
    shape = tuple(shape)
    _check_pieces(shape, sharding, arrays)
    by_device = {array.device.id: np.asarray(array) for array in arrays}
    whole = np.empty(shape, arrays[0].dtype)
    for device, index in sharding.devices_indices_map(shape).items():
        whole[index] = by_device[device.id]
    return device_put(whole, sharding)


def _check_pieces(shape, sharding, arrays):
    """Source of the rules and texts: jax-ml/jax, jax/_src/array.py (_check_and_rearrange)."""
    given, wanted = [array.device.id for array in arrays], {device.id for device in sharding.device_set}
    if len(given) != len(wanted):
        raise ValueError(f"Expected {len(wanted)} per-device arrays (this is how many devices are addressable by the sharding), but got {len(given)}")
    if len(set(given)) != len(given):
        raise ValueError(f"When making an array from single-device arrays, the input arrays must be from distinct devices, but got device IDs {given}")
    if set(given) != wanted:
        raise ValueError(f"Sharding contains devices {wanted - set(given)} that are not present in per-device arrays. Per-device arrays contain devices "
                         f"{set(given) - wanted} that are not present in the sharding.")
    piece = sharding.shard_shape(shape)
    for array in arrays:
        if array.dtype != arrays[0].dtype:
            raise ValueError(f"Input buffers to `Array` must have matching dtypes. Got {array.dtype}, expected {arrays[0].dtype} for buffer: {array}")
        if array.shape != piece:
            raise ValueError(f"Expected shard shape {piece} doesn't match the single device array shape {array.shape}. Shape of Array is "
                             f"{arrays[0].dtype}[{','.join(map(str, shape))}] with sharding {sharding}")


def print_environment_info(return_string=False):
    import numpy as np
    text = f"jax:    {__version__}\nnumpy:  {np.__version__}\ndevice info: {len(devices())} {devices()[0].device_kind}"
    return text if return_string else print(text)


from ._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
