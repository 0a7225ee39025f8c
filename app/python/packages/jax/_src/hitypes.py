# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of types that a page makes (jax.experimental.hijax.HiType): trees of the arrays that make them up. In a function that is being differentiated such a
value has a shadow: an array of zeros of the type of its tangents, by which derivatives are taken, since the arrays themselves may be integers."""
from .arrays import ConcreteArray
from .shardings import NamedSharding, PartitionSpec, Sharding, current_mesh
from .trees import register

_typeof = {}  # by the class of a value


class HiType:
    """Subclasses say which arrays make up a value, and what its tangents are."""

    def lo_ty(self):
        raise NotImplementedError(f"{type(self).__name__} must implement `lo_ty`")

    def to_tangent_aval(self):
        raise NotImplementedError(f"{type(self).__name__} must implement `to_tangent_aval`")

    def str_short(self, short_dtypes=False, mesh_axis_types=False):
        return type(self).__name__


class MappingSpec:
    """How a vmap takes apart values of a type of the page's own: not known here."""


class HiPspec:
    """How shard_map takes them apart: not known here."""


class Unsplit(Sharding):
    """The sharding in the type of an array that is on no mesh. As a place it asks for none."""
    mesh = None

    def __init__(self, rank):
        self.spec = PartitionSpec(*[None] * rank)

    def update(self, *, spec):
        if all(entry is None for entry in spec):
            return Unsplit(len(spec))
        if current_mesh() is None:
            raise ValueError(f"{spec} names axes of a mesh, and there is none: use jax.set_mesh")
        return NamedSharding(current_mesh(), spec)

    def placement(self, shape):
        return None

    def __eq__(self, other):
        return isinstance(other, Unsplit) and self.spec == other.spec

    def __hash__(self):
        return hash(self.spec)

    def __repr__(self):
        return f"NamedSharding(mesh=AbstractMesh(()), spec={self.spec})"


def in_type(array, sharding):
    """The sharding in the type of an array: that of a mesh, with an entry for each dimension."""
    from . import explicit
    if not isinstance(sharding, NamedSharding) or explicit.is_suspended():
        return Unsplit(array.ndim)
    if sharding.mesh.axis_types is not None:  # what the compiler chooses is no part of the type
        sharding = NamedSharding(sharding.mesh.abstract_mesh, explicit.entries_of(sharding, array.ndim)[1])
    return NamedSharding(sharding.mesh.abstract_mesh, sharding.spec.of_rank(array.ndim))


def is_value(x):
    return type(x) in _typeof


def type_of(value):
    return _typeof[type(value)](value)


def shadow_of(value):
    return value.__dict__.get("_shadow")


def with_shadow(value, shadow):
    """The same value, by whose shadow a derivative is taken; None: by none."""
    ty = type_of(value)
    made = ty.raise_val(*ty.lower_val(value))
    if shadow is not None:
        object.__setattr__(made, "_shadow", shadow)
    return made


def register_hitype(cls, typeof):
    _typeof[cls] = typeof

    def flatten(value):
        try:
            ty = typeof(value)
        except Exception:  # what stands for its arrays has no types
            ty = value.__dict__.get("_type")
            if ty is None:
                raise
        return [*ty.lower_val(value), shadow_of(value)], ty

    def unflatten(ty, children):
        *arrays, shadow = children
        value = ty.raise_val(*arrays)
        object.__setattr__(value, "_type", ty)
        if shadow is not None:
            object.__setattr__(value, "_shadow", shadow)
        return value
    register(cls, flatten, unflatten)


def is_constant(x):
    """Whether no derivative can be taken by it."""
    if is_value(x):
        return shadow_of(x) is None or isinstance(shadow_of(x), ConcreteArray)
    return isinstance(x.value if x.level else x, ConcreteArray)
