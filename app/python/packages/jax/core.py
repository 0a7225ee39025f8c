# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.core: the classes that pages ask for."""
import types

from ._src.arrays import Array as _Array
from ._src.arrays import Tracer
from ._src.shardings import PartitionSpec as _PartitionSpec, check_type, current_mesh


class AbstractValue:
    pass


class ShapedArray(AbstractValue):
    """The type of an array."""

    def __init__(self, shape, dtype, weak_type=False, *, sharding=None, vma=frozenset(), sums=(frozenset(), frozenset())):
        from ._src import dtypes
        self.shape, self.engine_dtype = tuple(shape), dtypes.named(dtype)
        self.dtype, self.weak_type, self.sharding, self.vma = dtypes.shown(self.engine_dtype), weak_type, sharding, vma
        check_type(sharding, self.shape)
        self._sums = sums  # the axes of a manual computation over which it is unreduced, and reduced

    # As a part of types that pages make (jax.experimental.hijax): an array is made up of itself.
    lo_ty = lambda self: [self]
    lower_val = lambda self, value: [value]
    raise_val = lambda self, value: value
    to_tangent_aval = lambda self: self

    def update(self, **changed):
        return ShapedArray(**{"shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type, "sharding": self.sharding, "vma": self.vma, "sums": self._sums,
                              **changed})

    @staticmethod
    def of(array):
        from ._src import explicit
        from ._src.hitypes import in_type
        sharding = in_type(array, getattr(array, "sharding", None) if not isinstance(array, Tracer) else explicit.sharding_of(array))
        sums = getattr(array, "unreduced", frozenset()), getattr(array, "reduced", frozenset())
        return ShapedArray(array.shape, array.dtype, array.weak_type, sharding=sharding, vma=getattr(array, "varying", frozenset()).difference(*sums), sums=sums)

    @staticmethod
    def of_traced(tracer):
        """That of a traced value, which on a mesh with explicit axes says how it is split."""
        from ._src import explicit
        made = ShapedArray.of(tracer)
        if not tracer.ndim or current_mesh() is None or not current_mesh().is_explicit or not explicit.is_active() or tracer.asked is not None:
            return made
        if tracer.split is None:
            raise NotImplementedError("jax.typeof of this value on a mesh with explicit axes: Meshwright finds how it is split when the function is compiled; "
                                      "jax.sharding.reshard in the function says it, or ask for the type of the result")
        return made

    manual_axis_type = property(lambda self: types.SimpleNamespace(varying=self.vma, unreduced=self._sums[0], reduced=self._sums[1]))
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: __import__("math").prod(self.shape))

    def __eq__(self, other):
        return isinstance(other, ShapedArray) and (self.shape, self.engine_dtype, self.weak_type) == (other.shape, other.engine_dtype, other.weak_type)

    def __hash__(self):
        return hash((self.shape, self.engine_dtype, self.weak_type))

    def str_short(self, short_dtypes=False, mesh_axis_types=False):
        """float32[8@x,4]: with the axes over which the type itself says that it is split."""
        from ._src import explicit
        mesh = getattr(self.sharding, "mesh", None)
        spec = self.sharding.spec if mesh is not None and mesh.is_explicit else _PartitionSpec()
        return explicit.type_text(self.shape, self.engine_dtype, spec.of_rank(self.ndim), short_dtypes, self.vma, *self._sums)

    def __str__(self):
        return ("~" if self.weak_type else "") + self.str_short()

    def __repr__(self):
        return f"ShapedArray({self.str_short()}{', weak_type=True' if self.weak_type else ''})"


class KeyType(AbstractValue):
    """The type of an array of keys."""
    dtype, weak_type = "key<fry>", False

    def __init__(self, shape):
        self.shape = tuple(shape)

    ndim = property(lambda self: len(self.shape))

    def __str__(self):
        return f"key<fry>[{','.join(map(str, self.shape))}]"

    def __repr__(self):
        return f"ShapedArray({self})"


def get_aval(x):
    from ._src.arrays import asarray
    return ShapedArray.of(asarray(x))


def is_concrete(x):
    return isinstance(x, _Array) and not isinstance(x, Tracer) and not getattr(x, "level", 0)


def concrete_or_error(force, value, context=""):
    return force(value) if force is not None else value


def eval_context():
    import contextlib
    return contextlib.nullcontext()


