# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine that a page believes it runs on: its devices, and what depends on them."""
import functools
import json
import os
import re
import warnings

import _meshwright as core


class Device:
    """A virtual device, as JAX shows one."""

    def __init__(self, number, platform, kind, process=0, coords=None, core_on_chip=0):
        self.id, self.platform, self.device_kind = number, platform, kind
        self.process_index, self.coords, self.core_on_chip = process, coords, core_on_chip
        self.local_hardware_id = number
        self.host_id = process
        if platform == "tpu":
            self.slice_index = 0

    def __repr__(self):
        if self.coords is None:
            return f"{'Cuda' if self.platform == 'gpu' else 'Cpu'}Device(id={self.id})"
        x, y, z = self.coords
        return (f"TpuDevice(id={self.id}, process_index={self.process_index}, coords=({x},{y},{z}), "
                f"core_on_chip={self.core_on_chip})")

    def __str__(self):
        if self.coords is None:
            return f"{'cuda' if self.platform == 'gpu' else 'TFRT_CPU'}_{self.id}" if self.platform != "gpu" else f"cuda:{self.id}"
        x, y, z = self.coords
        return f"TPU_{self.id}(process={self.process_index},({x},{y},{z},{self.core_on_chip}))"

    def memory_stats(self):
        return None

    def __call__(self):
        """`x.device()`, as before JAX 0.4.27."""
        warnings.warn("x.device() is an older name: write x.device, or x.devices() for all of them", DeprecationWarning, stacklevel=2)
        return self


class Machine:
    """What the runner of pages was told (MESHWRIGHT_PAGE), else a host with as many CPU devices as XLA_FLAGS says."""

    def __init__(self):
        said = json.loads(os.environ.get("MESHWRIGHT_PAGE", "{}"))
        self.platform = said.get("platform", "cpu")
        self.kind = said.get("kind", "cpu")
        self.topology = said.get("topology", [])
        self.count = said.get("devices")
        self.legacy_random = said.get("legacy_random", False)
        self.most_flops = said.get("most_flops", 4e13)
        self.hardware = said.get("hardware", "")  # by its name; empty: CPU devices of any kind
        self.measures = said.get("measures", False)  # %timeit measures here
        self.older_flax = False  # attributes of nnx's objects are as they were before 0.12
        self.has_typed_meshes = False  # meshes are printed with the kinds of their axes, as since JAX 0.7
        self.makes_explicit = False  # the axes of jax.make_mesh are explicit where nothing else is said, as since JAX 0.9
        self.runs_python = False  # within jax.disable_jit
        self.raises_nans = self.raises_infs = False  # jax_debug_nans, jax_debug_infs
        self.matmul_precision = None  # jax_default_matmul_precision
        self.strict_promotion, self.rank_promotion = False, "allow"
        self.permutes_any_order = False  # jax_raise_on_ppermute_sort_diff is off
        self.default_device = None  # jax_default_device; nothing: the first
        self.had_default_device = False
        self._devices = None

    @property
    def devices(self):
        if self._devices is None:
            if self.platform == "tpu":
                self._devices = [Device(number, "tpu", self.kind, process, tuple(chip), on_chip)
                                 for number, chip, on_chip, process in core.tpu_devices(self.kind, self.topology)]
            else:
                asked = re.search(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
                count = self.count or (int(asked.group(1)) if asked else 1)
                self._devices = [Device(number, self.platform, self.kind) for number in range(count)]
        return self._devices

    @functools.cached_property
    def there(self):
        """The machine that times are simulated on; None: there is none."""
        return core.Machine(self.hardware) if self.hardware else None

    @functools.cache
    def seconds(self, program):
        """Of one call there, as the simulator predicts it."""
        return program.seconds_on(self.there)

    @property
    def label(self):
        """How drawings call a device."""
        return self.platform.upper()

    def product_dtype(self, dtype):
        """What operands of a product are rounded to at default precision."""
        return "bf16" if self.platform == "tpu" and dtype == "f32" else dtype


machine = Machine()
