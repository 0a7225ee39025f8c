# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes and shardings, as jax.sharding has them. Where pieces lie is the engine's to say."""
import builtins
import collections
import copy
import enum
import math
import re

import _meshwright as core
import numpy as np

from . import errors
from .machine import machine


used = {}  # the axes of each mesh that a sharding of the page has split an array over


def _as_printed(text):
    """An error of the engine's table, with specs and meshes as the page prints them."""
    text = re.sub(r"\bP\(", "PartitionSpec(", text)
    return text if machine.has_typed_meshes else re.sub(r", axis_types=\((Auto,? ?)+\)", "", text)


def raise_verdict(verdict, check=None):
    """Raises what JAX would raise, from the engine's table of its errors, with the engine's own problems as notes: `check` raises them."""
    if verdict is not None:
        name, text = verdict
        error = (getattr(errors, name, None) or getattr(builtins, name))(_as_printed(text))
        try:
            if check is not None:
                check()
        except Exception as problem:
            for note in getattr(problem, "__notes__", ()):
                error.add_note(note)
        raise error


def named_placement(mesh, spec, shape):
    """Where an array of this shape lies by a spec on a mesh."""
    made = core.named(mesh.core, spec.text, list(shape))
    axes = used.setdefault(mesh, set())
    for entry in spec:
        axes.update(entry if isinstance(entry, tuple) else (entry,))
    return made


class _Unconstrained:
    def __repr__(self):
        return "UNCONSTRAINED"


class UnreducedKind(enum.Enum):
    sum, max, min = 1, 2, 3


class PartitionSpec(tuple):
    """How each dimension of an array is split over mesh axes. Over `unreduced` axes devices hold parts of a sum; over `reduced` ones the array is whole, and what
    derivatives by it give is such a sum. Source of the texts: jax-ml/jax, jax/_src/partition_spec.py."""
    UNCONSTRAINED = _Unconstrained()
    unreduced = reduced = frozenset()

    def __new__(cls, *entries, unreduced=frozenset(), reduced=frozenset(), unreduced_kind=None):
        made = tuple.__new__(cls, (tuple(entry) if isinstance(entry, list) else entry for entry in entries))
        if any(isinstance(axis, (tuple, list)) for entry in made if isinstance(entry, tuple) for axis in entry):
            raise ValueError(f"A tuple inside PartitionSpec cannot contain a nested tuple. Got partitions: {tuple(made)}")
        if unreduced or reduced:
            made._set(unreduced, reduced)
        if unreduced_kind not in (None, UnreducedKind.sum):
            raise NotImplementedError(f"jax.P(unreduced_kind={unreduced_kind}): arrays are kept apart as sums only; reduce it at once")
        return made

    def _set(self, unreduced, reduced):
        for name, axes in (("unreduced", unreduced), ("reduced", reduced)):
            if not isinstance(axes, (set, frozenset)):
                raise TypeError(f"{name} argument of PartitionSpec should of type `frozenset` or `set`. Got type {type(axes)}")
            if None in axes:
                raise ValueError(f"{name} cannot contain None. All elements in {name} should refer to the mesh axes.")
            if any(axis in axes for axis in self.axes):
                raise ValueError(f"partitions cannot overlap with {name} axes passed to PartitionSpec. Got partitions: {tuple(self)} and {name} axes: "
                                 f"{frozenset(axes)}")
        if unreduced & reduced:
            raise ValueError("`unreduced` and `reduced` argument to PartitionSpec cannot overlap. Got unreduced: "
                             f"{frozenset(unreduced)} and reduced: {frozenset(reduced)}")
        self.unreduced, self.reduced = frozenset(unreduced), frozenset(reduced)

    unreduced_kind = property(lambda self: UnreducedKind.sum if self.unreduced else None)
    partitions = property(lambda self: tuple(self))
    is_partial = property(lambda self: bool(self.unreduced or self.reduced))

    @property
    def axes(self):
        """Those that split a dimension."""
        return [axis for entry in self if entry is not None for axis in (entry if isinstance(entry, tuple) else (entry,))]

    def update(self, partitions=None, unreduced=None, reduced=None):
        return PartitionSpec(*(self if partitions is None else partitions), unreduced=self.unreduced if unreduced is None else unreduced,
                             reduced=self.reduced if reduced is None else reduced)

    def of_rank(self, rank):
        """The same with an entry for each dimension."""
        return self if len(self) >= rank else self.update((*self, *[None] * (rank - len(self))))

    @property
    def of_cotangent(self):
        return self.update(unreduced=self.reduced, reduced=self.unreduced) if self.is_partial else self

    def __eq__(self, other):
        if not isinstance(other, tuple):
            return NotImplemented
        own = (self.unreduced, self.reduced)
        return tuple.__eq__(self, other) and own == (getattr(other, "unreduced", frozenset()), getattr(other, "reduced", frozenset()))

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((tuple(self), self.unreduced, self.reduced)) if self.is_partial else tuple.__hash__(self)

    def __add__(self, other):
        if isinstance(other, PartitionSpec):
            return PartitionSpec(*self, *other, unreduced=self.unreduced | other.unreduced, reduced=self.reduced | other.reduced)
        for name in ("unreduced", "reduced"):
            if getattr(self, name):
                raise TypeError(f"other {other} cannot be of instance `tuple` when self {self} has {name} in `__add__` of PartitionSpec.")
        return PartitionSpec(*self, *other)

    def __radd__(self, other):
        return PartitionSpec(*other) + self

    def _sets(self, order=sorted):
        return [f"{name}={{{', '.join(map(repr, order(axes)))}}}" for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)) if axes]

    def __repr__(self):
        if self.is_partial:
            return f"PartitionSpec({', '.join([*map(repr, self), *self._sets()])})"
        return "PartitionSpec" + (tuple.__repr__(self) if len(self) != 1 else f"({self[0]!r},)")

    def __getnewargs_ex__(self):
        return tuple(self), {"unreduced": self.unreduced, "reduced": self.reduced}

    @property
    def text(self):
        return f"P({', '.join([*map(repr, self), *self._sets()])})" if self.is_partial else "P" + tuple.__repr__(self)


def _sizes(count, rank):
    """Some sizes with this product, the first the largest."""
    sizes = [count] + [1] * (rank - 1)
    for axis in range(1, rank):
        factor = next((factor for factor in range(2, sizes[0] // 2 + 1) if sizes[0] % factor == 0), 1)
        sizes[0], sizes[axis] = sizes[0] // factor, factor
    return tuple(sizes)


class AxisType(enum.Enum):
    Auto, Explicit, Manual = 0, 1, 2

    def __repr__(self):
        return self.name


def is_explicit(axis_types):
    """Whether an axis is one over which types say how arrays are split."""
    return AxisType.Explicit in (axis_types or ())


class Mesh:
    """An array of devices with a name for each axis."""
    _active = []
    has_explicit = False  # whether the page made one whose types say how arrays are split
    _types = {}  # of the axes, by the mesh as the engine knows it, which has none: those of the mesh that the page made last

    def __init__(self, devices, axis_names, *, axis_types=None, is_within=False):
        """`is_within`: the mesh of a part of a program, where its axes are of other kinds; arrays lie on the one around it."""
        devices = np.array(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if devices.ndim != len(names):
            error = ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
                f"(`axis_names`), but got devices.ndim == {devices.ndim} and len(axis_names) == {len(names)}.")
            error.add_note(f"each axis of a mesh is a dimension of its array of devices: there are {len(names)}, and {devices.ndim}\n"
                           f"  fix: choose sizes with the product {devices.size}: jax.make_mesh({_sizes(devices.size, len(names))}, {names})")
            raise error
        if axis_types is None and machine.has_typed_meshes:
            axis_types = (AxisType.Auto,) * len(names)
        self.devices, self.axis_names, self.axis_types = devices, names, _kinds(axis_types)
        self.core = core.Mesh(list(devices.shape), [device.id for device in devices.flat], [str(name) for name in names])
        self._key = (names, devices.shape, tuple(device.id for device in devices.flat))
        if not is_within and Mesh._types.get(self._key, ()) != self.axis_types:
            Mesh._types[self._key] = self.axis_types
            _written.clear()
        Mesh.has_explicit = Mesh.has_explicit or self.is_explicit

    shape = property(lambda self: collections.OrderedDict(zip(self.axis_names, self.devices.shape)))
    shape_tuple = property(lambda self: tuple(zip(self.axis_names, self.devices.shape)))
    is_explicit = property(lambda self: is_explicit(self.axis_types))
    is_all_explicit = property(lambda self: set(self.axis_types or ()) == {AxisType.Explicit})
    axis_sizes = property(lambda self: self.devices.shape)
    size = property(lambda self: self.devices.size)
    empty = property(lambda self: self.devices.size == 0)
    device_ids = property(lambda self: np.vectorize(lambda device: device.id, otypes=[int])(self.devices))
    local_devices = property(lambda self: list(self.devices.flat))
    concrete = property(lambda self: self)
    abstract_mesh = property(lambda self: AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types))

    def __enter__(self):
        Mesh._active.append(self)
        return self

    def __exit__(self, *_):
        Mesh._active.pop()

    def __eq__(self, other):
        return isinstance(other, Mesh) and self.core == other.core

    def __hash__(self):
        return hash(self._key)

    def __str__(self):
        return "Mesh(" + ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple) + _types_text(self.axis_types) + ")"

    def __repr__(self):
        return str(self) if not machine.has_typed_meshes else f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{_types_text(self.axis_types)})"


class AbstractMesh:
    """The axes of a mesh, without devices."""

    def __init__(self, axis_sizes, axis_names=None, axis_types=None):
        if axis_names is None:  # pairs of a name and a size
            axis_names, axis_sizes = zip(*axis_sizes)
        self.axis_sizes, self.axis_names, self.axis_types = tuple(axis_sizes), tuple(axis_names), _kinds(axis_types)
        self.core = core.Mesh(list(self.axis_sizes), list(range(self.size)), [str(name) for name in self.axis_names]) if self.size else None

    shape_tuple = property(lambda self: tuple(zip(self.axis_names, self.axis_sizes)))
    shape = property(lambda self: collections.OrderedDict(self.shape_tuple))
    size = property(lambda self: math.prod(self.axis_sizes) if self.axis_sizes else 0)
    empty = property(lambda self: self.size == 0)
    is_explicit = property(lambda self: is_explicit(self.axis_types))
    abstract_mesh = property(lambda self: self)

    @property
    def concrete(self):
        """The mesh around, where it has these axes, else one of the first devices."""
        around = current_mesh()
        if around is not None and around.shape_tuple == self.shape_tuple:
            return around
        devices = machine.devices if around is None else list(around.devices.flat)
        return Mesh(np.array(devices[:self.size], dtype=object).reshape(self.axis_sizes), self.axis_names, axis_types=self.axis_types)

    def update(self, axis_sizes=None, axis_names=None, axis_types=None):
        return AbstractMesh(axis_sizes or self.axis_sizes, axis_names or self.axis_names, axis_types or self.axis_types)

    def __eq__(self, other):
        return isinstance(other, AbstractMesh) and self.shape_tuple == other.shape_tuple

    def __hash__(self):
        return hash(self.shape_tuple)

    def __repr__(self):
        return "AbstractMesh(" + ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple) + _types_text(self.axis_types) + ")"


def _kinds(axis_types):
    return None if axis_types is None else tuple(axis_types) if isinstance(axis_types, (tuple, list)) else (axis_types,)


def _types_text(axis_types):
    return f", axis_types={axis_types}" if axis_types is not None and (machine.has_typed_meshes or is_explicit(axis_types)) else ""


def current_mesh():
    return Mesh._active[-1] if Mesh._active else None


def set_mesh(mesh):
    """From now on, or within `with`."""
    Mesh._active.append(mesh)

    class Context:
        def __enter__(self):
            return mesh

        def __exit__(self, *_):
            del Mesh._active[max(at for at, one in enumerate(Mesh._active) if one is mesh)]  # an equal one may have axes of another kind
    return Context()


class Sharding:
    """Where the pieces of an array lie."""
    memory_kind = None

    def placement(self, shape):
        """The engine's placement of an array of this shape."""
        raise NotImplementedError

    def with_memory_kind(self, kind):
        """The same places in another memory. Values are what they are in each; which one it is, is kept and shown."""
        made = copy.copy(self)
        made.memory_kind = kind
        return made

    def _is_in_memory_of(self, other):
        return (self.memory_kind or "device") == (other.memory_kind or "device")

    @property
    def device_list(self):
        raise NotImplementedError

    @property
    def device_set(self):
        return set(self.device_list)

    addressable_devices = device_set
    num_devices = property(lambda self: len(self.device_list))
    is_fully_addressable = True

    def devices_indices_map(self, shape):
        placement = self.placement(shape)
        return {device: tuple(slice(start, stop) if (start, stop) != (0, size) else slice(None)
                              for (start, stop), size in zip(placement.box(shape, position), shape))
                for position, device in enumerate(placed_devices(placement))}

    addressable_devices_indices_map = devices_indices_map

    def shard_shape(self, shape):
        return tuple(stop - start for start, stop in self.placement(shape).box(shape, 0))

    def is_equivalent_to(self, other, ndim):
        size = math.lcm(len(self.device_list), len(other.device_list))
        shape = (size,) * ndim
        return self.placement(shape).same(other.placement(shape), shape)


def _memory_text(sharding):
    return "" if sharding.memory_kind is None else f", memory_kind={sharding.memory_kind}"


def placed_devices(placement):
    by_number = {device.id: device for device in machine.devices}
    return [by_number[number] for number in placement.mesh.order]


def _check_partial(mesh, spec):
    """Source of the texts: jax-ml/jax, jax/_src/named_sharding.py (_check_mesh_unreduced)."""
    kinds = dict(zip(mesh.axis_names, mesh.axis_types or ()))
    for name in ("unreduced", "reduced"):
        for axis in getattr(spec, name):
            if axis not in mesh.axis_names:
                raise ValueError(f"{name.capitalize()} axes {axis} is not found in mesh.axis_names={mesh.axis_names}. Got pspec={spec}")
            if kinds.get(axis) is not AxisType.Explicit:
                error = ValueError(f"{name.capitalize()} axes can only refer to mesh axes that is of type `Explicit`. Got {name} axes: {getattr(spec, name)} and mesh: {mesh}")
                error.add_note("partial sums are a part of types, which meshes with explicit axes have\n  fix: make the mesh with axis_types=(AxisType.Explicit, ..)")
                raise error


class NamedSharding(Sharding):
    def __init__(self, mesh, spec, *, memory_kind=None):
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"Unexpected type {type(spec)} for NamedSharding's spec: {spec!r}")
        self.mesh, self.spec, self.memory_kind = mesh, spec, memory_kind
        _check_partial(mesh, spec)
        raise_verdict(core.jax_verdict(spec.text, mesh.core), lambda: core.named(mesh.core, spec.text, [mesh.size] * len(spec)))

    device_list = property(lambda self: list(self.mesh.concrete.devices.flat))

    @property
    def is_fully_replicated(self):
        sizes = self.mesh.shape
        return all(sizes.get(axis, 1) == 1 for axis in [*self.spec.axes, *self.spec.unreduced])

    def placement(self, shape):
        mesh = self.mesh.concrete
        raise_verdict(core.jax_verdict(self.spec.text, mesh.core, list(shape)), lambda: named_placement(mesh, self.spec, shape))
        return named_placement(mesh, self.spec, shape)

    def update(self, *, mesh=None, spec=None):
        return NamedSharding(self.mesh if mesh is None else mesh, self.spec if spec is None else spec, memory_kind=self.memory_kind)

    def with_spec(self, spec):
        return NamedSharding(self.mesh, spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec), memory_kind=self.memory_kind)

    def __eq__(self, other):
        return isinstance(other, NamedSharding) and (self.mesh.abstract_mesh == other.mesh.abstract_mesh if AbstractMesh in (type(self.mesh), type(other.mesh))
                                                     else self.mesh == other.mesh) and self.spec == other.spec and self._is_in_memory_of(other)

    def __hash__(self):
        return hash((self.mesh.axis_names, self.spec))

    def __repr__(self):
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{_memory_text(self)})"


class PositionalSharding(Sharding):
    """An array of sets of devices. `_steps` are the operations that made it, of which the engine knows the meaning."""

    def __init__(self, devices, *, memory_kind=None, _steps="", _shape=None):
        self.memory_kind = memory_kind
        self._devices = list(np.array(devices, dtype=object).flat)
        self._steps, self.shape = _steps, _shape or (len(self._devices),)
        self.shape = tuple(self.shape)

    device_list = property(lambda self: self._devices)
    ndim = property(lambda self: len(self.shape))
    is_fully_replicated = property(lambda self: math.prod(self.shape) == 1)
    _text = property(lambda self: f"PositionalSharding({len(self._devices)}){self._steps}")

    def _after(self, step, shape):
        return PositionalSharding(self._devices, _steps=self._steps + step, _shape=shape)

    def reshape(self, *shape):
        shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        made = np.empty(self.shape).reshape(shape).shape
        return self._after(f".reshape({', '.join(map(str, made))})", made or ())

    def replicate(self, axis=None, keepdims=True):
        if axis is None:
            shape = (1,) * self.ndim if keepdims else ()
            return self._after(".replicate()" if keepdims else ".replicate(keepdims=False)", shape)
        shape = np.empty(self.shape).sum(axis=axis, keepdims=keepdims).shape
        return self._after(f".replicate({axis}{'' if keepdims else ', keepdims=False'})", shape)

    @property
    def T(self):
        return self._after(".T", self.shape[::-1])

    def placement(self, shape):
        shape = list(shape)
        text, own = self._text, self.shape
        if math.prod(own) == 1 and len(own) != len(shape):  # everything on all devices, at any rank
            return core.positional(text + f".reshape({', '.join(['1'] * len(shape))})", self._ids(), shape)
        rest = len(own) - len(shape)
        if rest > 0 and math.prod(own[:rest]) == 1:  # leading dimensions of size 1 are left out
            own = own[rest:]
            text += f".reshape({', '.join(map(str, own))})"
        if len(own) != len(shape):
            raise ValueError(f"Sharding {self!r} is only valid for values of rank {len(own)}, but was applied to a value of rank "
                             f"{len(shape)}")
        for dim, (size, pieces) in enumerate(zip(shape, own)):
            if size % pieces:
                raise ValueError(f"Sharding {self!r} implies that array axis {dim} is partitioned {pieces} times, but the "
                                 f"dimension size is {size}")
        return core.positional(text, self._ids(), shape)

    def _ids(self):
        return [device.id for device in self._devices]

    def __eq__(self, other):
        return isinstance(other, PositionalSharding) and self._ids() == other._ids() and self._steps == other._steps

    def __hash__(self):
        return hash((tuple(self._ids()), self._steps))

    def __repr__(self):
        return core.positional_text(
            f"PositionalSharding({self._ids()}){self._steps}", machine.label)


class SingleDeviceSharding(Sharding):
    is_fully_replicated = True

    def __init__(self, device, *, memory_kind=None):
        self._device, self.memory_kind = device, memory_kind

    device_list = property(lambda self: [self._device])

    def placement(self, shape):
        return core.single(self._device.id, len(shape))

    def __eq__(self, other):
        return isinstance(other, SingleDeviceSharding) and self._device.id == other._device.id and self._is_in_memory_of(other)

    def __hash__(self):
        return hash(self._device.id)

    def __repr__(self):
        return f"SingleDeviceSharding(device={self._device!r}{_memory_text(self)})"


class GSPMDSharding(Sharding):
    """What propagation found, where no spec on the page's own mesh says it."""

    def __init__(self, placement):
        self._placement = placement

    device_list = property(lambda self: placed_devices(self._placement))
    is_fully_replicated = property(lambda self: self._placement.is_replicated)

    def placement(self, shape):
        return self._placement

    def __repr__(self):
        return f"GSPMDSharding({self._placement.text('hlo')})"


_written = {}  # placements as the user would write them, by their numbers


def sharding_of(placement):
    """A placement as the user would write it."""
    found = _written.get(placement.number)
    if found is None:
        found = _written[placement.number] = _sharding_of(placement)
    return found


def _sharding_of(placement):
    mesh = placement.mesh
    if len(mesh.order) == 1:
        return SingleDeviceSharding(placed_devices(placement)[0])
    entries = placement.spec()
    if placement.is_named and entries is not None:
        devices = np.array(placed_devices(placement), dtype=object).reshape(mesh.sizes)
        types = Mesh._types.get((tuple(mesh.names), devices.shape, tuple(mesh.order)))
        made = [None if not axes else axes[0] if len(axes) == 1 else tuple(axes) for axes in entries]
        while made and made[-1] is None and not is_explicit(types):  # of types the entries of all dimensions are shown
            made.pop()
        unreduced = frozenset(placement.unreduced) if is_explicit(types) else frozenset()
        return NamedSharding(Mesh(devices, mesh.names, axis_types=types), PartitionSpec(*made, unreduced=unreduced))
    return GSPMDSharding(placement)


def check_rank(sharding, rank):
    """Raises where a spec has more entries than an array has dimensions. Source of the text: jax-ml/jax, jax/_src/named_sharding.py (check_compatible_aval)."""
    spec = sharding if isinstance(sharding, PartitionSpec) else getattr(sharding, "spec", None)
    if spec is not None and len(spec) > rank:
        raise ValueError(f"Sharding {sharding} is only valid for values of rank at least {len(spec)}, but was applied to a value of rank {rank}")


def check_type(sharding, shape):
    """Raises where explicit axes do not divide a dimension of a type."""
    if isinstance(sharding, NamedSharding) and is_explicit(sharding.mesh.axis_types):
        raise_verdict(core.jax_verdict(sharding.spec.text, sharding.mesh.core, list(shape), place="type"))


def _no_mesh(spec, argument):
    """What a spec without a mesh raises. Source of the texts: jax-ml/jax, jax/_src/pjit.py (_create_sharding_for_array) and jax/_src/sharding_impls.py
    (canonicalize_sharding)."""
    function, option = {"pjit arguments": ("jit", "in_shardings"), "pjit outputs": ("jit", "out_shardings"),
                        "with_sharding_constraint arguments": ("with_sharding_constraint", "shardings")}.get(argument, (None, None))
    error = ValueError("Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a NamedSharding instance or enter into a mesh context "
                       f"via `jax.set_mesh`. Got {spec}") if function is None else RuntimeError(
        f"{function} requires a non-empty mesh in context if you are passing `PartitionSpec`s to {option}. You can define a context mesh via `jax.set_mesh(mesh)`. "
        f"Alternatively, provide `Sharding`s to {option} and then the mesh context manager is not required.")
    error.add_note(f"a PartitionSpec names axes of a mesh, and no mesh\n  fix: write NamedSharding(mesh, {spec.text})")
    return error


def as_placement(target, shape, argument="NamedSharding"):
    """The placement that a user means by a sharding, a device or a bare spec. Nothing: the user asks for none."""
    if target is None:
        return None
    if isinstance(target, Sharding):
        return target.placement(shape)
    if isinstance(target, PartitionSpec):
        mesh = current_mesh()
        if mesh is None:
            raise _no_mesh(target, argument)
        _check_partial(mesh, target)
        raise_verdict(core.jax_verdict(target.text, mesh.core, list(shape), argument=argument), lambda: named_placement(mesh, target, shape))
        return named_placement(mesh, target, shape)
    if hasattr(target, "device_kind"):
        return core.single(target.id, len(shape))
    raise TypeError(f"{target!r} is not a sharding")
