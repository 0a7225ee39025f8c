# SPDX-License-Identifier: GPL-3.0-or-later
"""Element types by the engine's names ("f32"), and JAX's rules for what types make together."""
import functools
import warnings

import numpy as np


class ExtendedDType:
    """An element type that NumPy lacks."""

    def __init__(self, name, size):
        self.name, self.itemsize, self.kind = name, size, "V"

    def __repr__(self):
        return f"dtype({self.name})"

    def __str__(self):
        return self.name

    def __eq__(self, other):
        return getattr(other, "name", getattr(other, "__name__", other)) == self.name

    def __hash__(self):
        return hash(self.name)


_EXTENDED = {"bf16": ExtendedDType("bfloat16", 2), "f8E4M3FN": ExtendedDType("float8_e4m3fn", 1),
             "f8E5M2": ExtendedDType("float8_e5m2", 1)}
_NUMPY = {"i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "ui8": "uint8", "ui16": "uint16",
          "ui32": "uint32", "ui64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64",
          "complex<f32>": "complex64", "complex<f64>": "complex128"}
_BY_NAME = {name: engine for engine, name in _NUMPY.items()} | {dtype.name: engine for engine, dtype in _EXTENDED.items()}
_NARROWED = {"i64": "i32", "ui64": "ui32", "f64": "f32", "complex<f64>": "complex<f32>"}  # JAX without jax_enable_x64
_WIDER = {narrow: wide for wide, narrow in _NARROWED.items()}
_is_wide = False  # jax_enable_x64


def enable_x64(is_wide):
    global _is_wide
    _is_wide = bool(is_wide)


def is_x64():
    return _is_wide


def default(name):
    """The type of 32 bits, or that of 64 for it with jax_enable_x64."""
    return _WIDER[name] if _is_wide else name


def widened(name):
    """In which integers are summed."""
    if not is_integer(name) and name != "i1":
        return name
    kind = "ui" if name.startswith("ui") else "i"
    bits = 64 if _is_wide else 32
    return f"{kind}{max(bits, _bits(name) if name != 'i1' else 0)}"


def shown(name):
    """The engine's name as the object that users see."""
    return _EXTENDED.get(name) or np.dtype(_NUMPY[name])


def named_wide(dtype):
    """The engine's name of what a user calls an element type, as it was asked for."""
    if isinstance(dtype, ExtendedDType):
        return _BY_NAME[dtype.name]
    if isinstance(dtype, ScalarType):
        return dtype.engine
    if isinstance(dtype, str) and dtype in _BY_NAME:
        return _BY_NAME[dtype]
    if isinstance(dtype, type) and dtype in (bool, int, float, complex):
        return {bool: "i1", int: default("i32"), float: default("f32"), complex: default("complex<f32>")}[dtype]
    name = _BY_NAME.get(np.dtype(dtype).name)
    if name is None:
        raise TypeError(f"Value of type {dtype!r} is not a valid JAX array type.")
    return name


def named(dtype):
    """The same, of 32 bits for 64: what JAX has without jax_enable_x64."""
    name = named_wide(dtype)
    if _is_wide:
        return name
    return _NARROWED.get(name, name)


def check_integers(value, engine):
    """Refuses Python's integers, in lists too, that an array of a type of integers (None: of a list, the usual one) does not hold, as NumPy 2 does."""
    if type(value) not in ((list, tuple) if engine is None else (int, list, tuple)) or engine is not None and not is_integer(engine):
        return
    limits = np.iinfo(shown(engine or default("i32")))
    for leaf in _numbers(value):
        if type(leaf) is int and not limits.min <= leaf <= limits.max:
            raise OverflowError(f"Python integer {leaf} out of bounds for {limits.dtype}")


def _numbers(value):
    if type(value) in (list, tuple):
        for item in value:
            yield from _numbers(item)
    else:
        yield value


class _Types(type):
    def __instancecheck__(cls, value):
        return isinstance(value, (np.dtype, ExtendedDType))


class DType(metaclass=_Types):
    """`jnp.dtype`: NumPy's, which also knows the element types that NumPy lacks."""

    def __new__(cls, dtype, *args, **kwargs):
        if isinstance(dtype, (ScalarType, ExtendedDType)) or isinstance(dtype, str) and dtype in _BY_NAME:
            return shown(named_wide(dtype))
        return np.dtype(dtype, *args, **kwargs)


def warn_of_narrowing(dtype, function, found):
    """JAX's warning. Source: jax-ml/jax, jax/_src/dtypes.py (check_user_dtype_supported)."""
    warnings.warn(f"Explicitly requested dtype {dtype} requested in {function} is not available, and will be truncated to dtype {shown(found).name}. To "
                  "enable more dtypes, set the jax_enable_x64 configuration option or the JAX_ENABLE_X64 shell environment variable. See "
                  "https://github.com/jax-ml/jax#current-gotchas for more.", stacklevel=4)


class ScalarType:
    """`jnp.float32`: an element type, and a function that makes scalars of it."""

    def __init__(self, engine):
        self.engine, self.dtype = engine, shown(engine)
        self.__name__ = self.name = self.dtype.name
        self.itemsize = self.dtype.itemsize

    def __call__(self, value):
        from .arrays import asarray
        check_integers(value, engine := named(self))
        return asarray(value, engine)

    def __repr__(self):
        return f"<class 'jax.numpy.{self.name}'>"

    def __eq__(self, other):
        try:
            return other is not None and named(other) == self.engine
        except TypeError:
            return False

    def __hash__(self):
        return hash(self.dtype)


def is_float(name):
    return name.startswith(("f", "bf"))


def is_complex(name):
    return name.startswith("complex")


def is_inexact(name):
    return is_float(name) or is_complex(name)


float0 = np.dtype([("float0", np.void, 0)])  # of what has no derivative


def is_integer(name):
    return name != "i1" and name.startswith(("i", "ui"))


def _bits(name):
    return int("".join(c for c in name if c.isdigit()) or 0)


def _join(a, b):
    if a == b or b == "i1":
        return a
    if a == "i1":
        return b
    if is_complex(a) or is_complex(b):
        return "complex<f64>" if "f64" in a + b else "complex<f32>"
    if is_float(a) and is_float(b):
        return "f32" if _bits(a) == _bits(b) else max(a, b, key=_bits)
    if is_float(a) or is_float(b):
        return a if is_float(a) else b
    if a.startswith("u") == b.startswith("u"):
        return max(a, b, key=_bits)
    signed, unsigned = (b, a) if a.startswith("u") else (a, b)
    return signed if _bits(signed) > _bits(unsigned) else _mixed(2 * _bits(unsigned))


def _mixed(bits):
    """Of signed and unsigned integers that no wider one takes: a floating type."""
    return f"i{bits}" if bits <= (64 if _is_wide else 32) else "i32" if not _is_wide else "f64"


_RANK = {"bool": 0, "int": 1, "float": 2, "complex": 3}
_DEFAULT = {"bool": "i1", "int": "i32", "float": "f32", "complex": "complex<f32>"}


def kind_of(name):
    return "complex" if is_complex(name) else "float" if is_float(name) else "bool" if name == "i1" else "int"


def promoted(types):
    """The type, and whether it is weak, of what (name, weak) pairs make together.
    Source: jax-ml/jax, docs/jep/9407-type-promotion.md (the lattice)."""
    return _promoted(tuple(types), _is_wide)


@functools.lru_cache(maxsize=4096)
def _promoted(types, is_wide):
    strong = [name for name, weak in types if not weak]
    weak = max((kind_of(name) for name, is_weak in types if is_weak), key=_RANK.get, default=None)
    if not strong:
        return ("i1" if weak == "bool" else default(_DEFAULT[weak])), True
    result = strong[0]
    for name in strong[1:]:
        result = _join(result, name)
    if weak is not None and _RANK[weak] > _RANK[kind_of(result)]:
        if weak == "complex" and is_float(result):
            return ("complex<f64>" if result == "f64" else "complex<f32>"), False
        return default(_DEFAULT[weak]), True
    return result, False


def inexact(name):
    """The type in which functions such as sin are computed."""
    return name if is_float(name) or is_complex(name) else default("f32")
