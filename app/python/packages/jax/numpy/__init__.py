# SPDX-License-Identifier: GPL-3.0-or-later
"""NumPy's functions on arrays of virtual devices."""
import builtins
import functools
import math
import operator
import sys
import types

import numpy as np

from .._src import dtypes as _dtypes
from .._src import ops as _ops
from .._src.arrays import Array as ndarray
from .._src.arrays import asarray as _asarray
from .._src.explicit import beside as _beside
from .._src.ops import (absolute, add, argmax, argmin, cbrt, ceil, concatenate, divide, dot, equal, exp, expand_dims, expm1, flip, floor, floor_divide,
                        greater, greater_equal, isfinite, isinf, isnan, less, less_equal, log, log1p, logical_and, logical_not, logical_or, logical_xor, matmul,
                        maximum, minimum, moveaxis, multiply, negative, not_equal, power, remainder, reshape, rint, sign, sin, cos, sqrt, square, squeeze,
                        stack, subtract, swapaxes, tanh, tensordot, transpose, where)
from .._src.ops import angle, broadcast_to, clip, conj, einsum, imag, real
from .._src.windows import convolve
from ._arrangements import *  # noqa: F403
from ._elements import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._arrangements import (append, block, broadcast_arrays, broadcast_shapes, c_, column_stack, dstack, eye, fromfunction, hstack, identity, indices, ix_, mgrid,
                            ogrid, r_, ravel, tri, vectorize, vstack)
from ._elements import isclose
from ._reductions import all, any, max, min, sum
from ._polynomials import poly, polyadd, polyder, polydiv, polyfit, polyint, polymul, polysub, roots
from .._src.options import refuse as _refuse
from .._src.random_ import of_keys as _of_keys

s_, index_exp = np.s_, np.index_exp
pi, e, inf, nan, newaxis, euler_gamma = np.pi, np.e, np.inf, np.nan, None, np.euler_gamma
iinfo, ndim, shape = None, np.ndim, np.shape

float32, float64, float16, bfloat16 = (_dtypes.ScalarType(name) for name in ("f32", "f64", "f16", "bf16"))
int8, int16, int32, int64 = (_dtypes.ScalarType(f"i{bits}") for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_dtypes.ScalarType(f"ui{bits}") for bits in (8, 16, 32, 64))
bool_, complex64, complex128 = _dtypes.ScalarType("i1"), _dtypes.ScalarType("complex<f32>"), _dtypes.ScalarType("complex<f64>")
single, double, csingle, cdouble = float32, float64, complex64, complex128
bool = bool_
float8_e4m3fn, float8_e5m2 = _dtypes.ScalarType("f8E4M3FN"), _dtypes.ScalarType("f8E5M2")
dtype, floating, integer, inexact, number, generic = _dtypes.DType, np.floating, np.integer, np.inexact, np.number, np.generic
signedinteger, unsignedinteger, complexfloating, character, flexible, object_ = (
    np.signedinteger, np.unsignedinteger, np.complexfloating, np.character, np.flexible, np.object_)


def __getattr__(name):
    """float_ and its like: of as many bits as JAX has."""
    if name == "DeviceArray":  # of older pages
        return ndarray
    wide = {"float_": "f32", "int_": "i32", "uint": "ui32", "complex_": "complex<f32>"}.get(name)
    if wide is None:
        raise AttributeError(f"module 'jax.numpy' has no attribute {name!r}")
    return _dtypes.ScalarType(_dtypes.default(wide))


_FEW_BITS = {"bf16": (16, 7, -126, 127), "f8E4M3FN": (8, 3, -6, 8), "f8E5M2": (8, 2, -14, 15)}  # bits, of them of the fraction, least and greatest exponent


def _of_few_bits(name):
    """finfo of a type that NumPy lacks; its numbers are of float32."""
    bits, fraction, least, greatest = _FEW_BITS[name]
    f = np.float32
    most = f(2.0 ** greatest * (2 - 2.0 ** -fraction if name != "f8E4M3FN" else 1.75))  # the last pattern of E4M3FN is nan
    return types.SimpleNamespace(bits=bits, dtype=_dtypes.shown(name), eps=f(2.0 ** -fraction), epsneg=f(2.0 ** (-fraction - 1)), max=most, min=-most,
                                 tiny=f(2.0 ** least), smallest_normal=f(2.0 ** least), smallest_subnormal=f(2.0 ** (least - fraction)), nmant=fraction,
                                 nexp=bits - fraction - 1, minexp=least, maxexp=greatest + 1, machep=-fraction, negep=-fraction - 1, iexp=bits - fraction - 1,
                                 precision=int(fraction * 0.30103), resolution=f(10.0 ** -int(fraction * 0.30103)))


class finfo(np.finfo):
    def __new__(cls, dtype):
        name = _dtypes.named(dtype if not isinstance(dtype, ndarray) else dtype.dtype)
        return _of_few_bits(name) if name in _FEW_BITS else np.finfo(_dtypes.shown(name))


def iinfo(dtype):
    return np.iinfo(_dtypes.shown(_dtypes.named(dtype)))


def _engine(dtype):
    """The element type that a caller of these functions asked for, with JAX's warning where it is one of 64 bits."""
    if dtype is None:
        return None
    found, asked = _dtypes.named(dtype), _dtypes.named_wide(dtype)
    if found != asked and dtype not in (builtins.float, builtins.int, builtins.complex):
        caller = sys._getframe(1)
        while caller.f_code.co_name.startswith("_"):
            caller = caller.f_back
        _dtypes.warn_of_narrowing(dtype, caller.f_code.co_name, found)
    return found


def issubdtype(a, b):
    if str(a).startswith("key<"):
        return getattr(b, "__name__", "") in ("prng_key", "extended")
    if getattr(b, "__name__", "") in ("prng_key", "extended"):
        return False
    name = _dtypes.named_wide(a) if not (isinstance(a, type) and issubclass(a, np.generic)) else None
    if name in _dtypes._EXTENDED:
        return b in (np.floating, np.inexact, np.number, np.generic) or not isinstance(b, type) and _dtypes.named_wide(b) == name
    return np.issubdtype(a if name is None else _dtypes.shown(name), b if isinstance(b, type) else _dtypes.shown(_dtypes.named_wide(b)))


def isdtype(dtype, kind):
    kinds = kind if isinstance(kind, tuple) else (kind,)
    name = _dtypes.named_wide(dtype)
    tests = {"bool": name == "i1", "signed integer": name.startswith("i") and name != "i1", "unsigned integer": name.startswith("ui"),
             "integral": _dtypes.is_integer(name), "real floating": _dtypes.is_float(name), "complex floating": _dtypes.is_complex(name),
             "numeric": name != "i1"}
    return builtins.any(tests[one] if isinstance(one, str) else _dtypes.named_wide(one) == name for one in kinds)


# ---- making

@_ops.placeable
def asarray(a, dtype=None, order=None, *, copy=None, device=None):
    is_weak = dtype is None and isinstance(a, (builtins.int, builtins.float, builtins.complex)) and not isinstance(a, (builtins.bool, np.generic))
    engine = _engine(dtype)
    _dtypes.check_integers(a, engine)
    made = _asarray(a, engine)
    if made.weak_type and (dtype is not None or not is_weak and not isinstance(a, ndarray)):
        made = _ops.astype(made, made.engine_dtype)
    return _placed(made, device)


@_ops.placeable
def array(object, dtype=None, copy=True, order=None, ndmin=0, *, device=None):
    made = asarray(object, dtype, device=device)
    if ndmin > made.ndim:
        made = reshape(made, (1,) * (ndmin - made.ndim) + made.shape)
    return made


def copy(x, *, order=None):
    return _ops.bind("optimization_barrier", _asarray(x))


def astype(x, dtype, /, *, copy=False, device=None):
    return _asarray(x).astype(dtype)


def _float(dtype):
    return _engine(dtype) or _dtypes.default("f32")


@_ops.placeable
def zeros(shape, dtype=None, *, device=None):
    return _placed(_ops.full(shape, 0, _float(dtype)), device)


@_ops.placeable
def ones(shape, dtype=None, *, device=None):
    return _placed(_ops.full(shape, 1, _float(dtype)), device)


@_ops.placeable
def full(shape, fill_value, dtype=None, *, device=None):
    fill = _asarray(fill_value)
    fill = fill if dtype is None else _ops.astype(fill, _engine(dtype))
    weak = fill.weak_type
    made = _ops.full(shape, fill, fill.engine_dtype) if not fill.shape else broadcast_to(fill, _ops._shape(shape))
    made.weak_type = weak and dtype is None
    return _placed(made, device)


empty = zeros


def _placed(x, target):
    if target is None:
        return x
    from .._src.transforms import device_put
    return device_put(x, target)


def _like(value):
    @_ops.placeable
    def function(a, dtype=None, shape=None, *, device=None):
        a = a if hasattr(a, "engine_dtype") else _asarray(a)
        made = _ops.full(a.shape if shape is None else shape, value, _engine(dtype) or a.engine_dtype)
        made.weak_type = a.weak_type and dtype is None
        return _beside(made, a) if device is None and shape is None else _placed(made, device)
    return function


zeros_like, ones_like = _like(0), _like(1)
zeros_like.__name__, ones_like.__name__ = "zeros_like", "ones_like"
empty_like = zeros_like


@_ops.placeable
def full_like(a, fill_value, dtype=None, shape=None, *, device=None):
    a = a if hasattr(a, "engine_dtype") else _asarray(a)
    engine = _engine(dtype) or a.engine_dtype
    fill = _ops.astype(fill_value, engine)
    wanted = a.shape if shape is None else _ops._shape(shape)
    is_weak = a.weak_type and dtype is None and not fill.shape
    made = _ops._weak(_ops.full(wanted, fill, engine) if not fill.shape else broadcast_to(fill, wanted), is_weak)
    return _beside(made, a) if device is None and shape is None else _placed(made, device)


@_ops.placeable
def arange(start, stop=None, step=None, dtype=None, *, device=None):
    return _placed(_ops.arange(start, stop, step, _engine(dtype)), device)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """Steps as JAX rounds them. Source: jax-ml/jax, jax/_src/numpy/array_creation.py (linspace)."""
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    engine = _engine(dtype) or _dtypes.inexact(_ops.together(start, stop)[0][0].engine_dtype)
    computed = _dtypes.inexact(engine)
    first, last = (_ops.astype(bound, computed) for bound in (start, stop))
    shape = np.broadcast_shapes(first.shape, last.shape)
    first, last = broadcast_to(first, shape), broadcast_to(last, shape)
    count = num - 1 if endpoint else num
    step = divide(subtract(last, first), builtins.float(count)) if count else _ops.full(shape, np.nan, computed)
    if num > 1:
        along = reshape(_ops.iota(real(first).engine_dtype, (num,)), (num,) + (1,) * len(shape))
        share = divide(along, builtins.float(count))
        made = add(multiply(reshape(first, (1,) + shape), subtract(1.0, share)), multiply(reshape(last, (1,) + shape), share))
        if endpoint:
            made = concatenate([made[:num - 1], reshape(last, (1,) + shape)], 0)
    else:
        made = reshape(first, (1,) + shape) if num else _ops.full((0,) + shape, 0, computed)
    made = moveaxis(made, 0, axis)
    made = _ops.astype(floor(made) if _dtypes.is_integer(engine) else made, engine)
    return (made, step) if retstep else _placed(made, device)


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    made = power(base, linspace(start, stop, num, endpoint, axis=axis))
    return made if dtype is None else made.astype(dtype)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Between ends that are both negative, what the ends without their signs give, negative."""
    from ._elements import log10
    start, stop = _ops.inexact_together(start, stop)
    turn = _ops.where(logical_and(less(real(start), 0), less(real(stop), 0)), _asarray(-1, start.engine_dtype), _asarray(1, start.engine_dtype))
    made = multiply(turn, logspace(log10(multiply(turn, start)), log10(multiply(turn, stop)), num, endpoint))
    made = moveaxis(made, 0, axis)
    return made if dtype is None else made.astype(dtype)


def frombuffer(buffer, dtype=float, count=-1, offset=0):
    return asarray(np.frombuffer(buffer, _dtypes.shown(_dtypes.named(dtype)), count, offset))


def fromstring(string, dtype=float, count=-1, *, sep):
    return asarray(np.fromstring(string, _dtypes.shown(_dtypes.named(dtype)), count, sep=sep))


def fromiter(items, dtype, count=-1):
    return asarray(np.fromiter(items, _dtypes.shown(_dtypes.named(dtype)), count))


def fromfile(file, dtype=float, count=-1, sep="", offset=0):
    return asarray(np.fromfile(file, _dtypes.shown(_dtypes.named(dtype)), count, sep, offset=offset))


def from_dlpack(x, /, *, device=None, copy=None):
    from ..dlpack import from_dlpack as of
    return _placed(of(x), device)


def i0(x):
    from ..scipy.special import i0 as of
    return of(x)


def spacing(x, /):
    """The distance to the next number away from zero."""
    x = _asarray(x)
    x = x if _dtypes.is_float(x.engine_dtype) else _ops.astype(x, _dtypes.default("f32"))
    return subtract(_ops.bind("next_after", x, _ops.where(_ops.less(x, 0), _asarray(-np.inf, x.engine_dtype), _asarray(np.inf, x.engine_dtype))), x)


def _window(name):
    def function(M, *args):
        return asarray(getattr(np, name)(M, *args), _dtypes.shown(_dtypes.default("f32")))
    function.__name__ = name
    return function


hamming, hanning, blackman, bartlett, kaiser = map(_window, ("hamming", "hanning", "blackman", "bartlett", "kaiser"))


# ---- what is asked of arrays

def iscomplexobj(x):
    return _dtypes.is_complex(_asarray(x).engine_dtype)


def fabs(x):
    x = _asarray(x)
    if _dtypes.is_complex(x.engine_dtype):
        raise TypeError("ufunc 'fabs' does not support complex dtypes")
    return absolute(x if _dtypes.is_float(x.engine_dtype) else _ops.astype(x, _dtypes.default("f32")))


def isscalar(x):
    return np.isscalar(x) or isinstance(x, (ndarray, np.ndarray)) and not x.shape


def size(a, axis=None):
    lengths = np.shape(a)
    axes = range(len(lengths)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return math.prod(lengths[one] for one in axes)


def iterable(x):
    return np.iterable(x)


def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a, b, equal_nan=False):
    a, b = _asarray(a), _asarray(b)
    if a.shape != b.shape:
        return _asarray(False)
    same = equal(a, b)
    return all(logical_or(same, logical_and(not_equal(a, a), not_equal(b, b))) if equal_nan else same)


def array_equiv(a, b):
    try:
        return all(equal(a, b))
    except (TypeError, ValueError):
        return _asarray(False)


def round(a, decimals=0, out=None):
    _refuse("jax.numpy.round", {"out": out})
    a = _asarray(a)
    if decimals == 0:
        return a if _dtypes.is_integer(a.engine_dtype) else rint(a)
    if _dtypes.is_integer(a.engine_dtype):
        return a if decimals > 0 else multiply(rint(divide(a, 10**-decimals)), 10**-decimals).astype(a.dtype)
    factor = 10.0**decimals
    return divide(rint(multiply(a, factor)), factor)


around = round


def _type_of(value):
    if isinstance(value, ndarray) or hasattr(value, "__jax_array__"):
        value = _asarray(value)
        return value.engine_dtype, value.weak_type
    for kind, name in ((builtins.int, "i32"), (builtins.float, "f32"), (builtins.complex, "complex<f32>")):
        if value is kind:
            return _dtypes.default(name), True
    if isinstance(value, (type, str, np.dtype, _dtypes.ScalarType, _dtypes.ExtendedDType)):
        return _dtypes.named(value), False
    value = _asarray(value)
    return value.engine_dtype, value.weak_type


def result_type(*values):
    return _dtypes.shown(_dtypes.promoted(list(map(_type_of, values)))[0])


def promote_types(a, b):
    return _dtypes.shown(_dtypes.promoted([_type_of(a), _type_of(b)])[0])


def can_cast(a, b, casting="safe"):
    return np.can_cast(a if not isinstance(a, ndarray) else a.dtype, _dtypes.shown(_dtypes.named_wide(b)), casting)


def vdot(a, b, *, precision=None, preferred_element_type=None):
    return dot(conj(ravel(a)), ravel(b), precision, preferred_element_type)


def vecdot(a, b, *, axis=-1, precision=None, preferred_element_type=None):
    a, b = _ops.together(a, b)[0]
    engine = _dtypes.named(preferred_element_type) if preferred_element_type else None
    a, b = _ops.moveaxis(conj(a), axis, -1), _ops.moveaxis(b, axis, -1)
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b, dims = broadcast_to(a, shape), broadcast_to(b, shape), tuple(range(len(shape) - 1))
    return _ops.dot_general(a, b, ((len(shape) - 1,),) * 2, (dims, dims), engine, precision)


def matvec(a, b):
    return squeeze(matmul(a, expand_dims(b, -1)), -1)


def vecmat(a, b):
    return squeeze(matmul(expand_dims(conj(a), -2), b), -2)


def inner(a, b, *, precision=None, preferred_element_type=None):
    a, b = _asarray(a), _asarray(b)
    return (dot(a, b, precision, preferred_element_type) if not a.shape or not b.shape else
            tensordot(a, b, ((-1,), (-1,)), precision=precision, preferred_element_type=preferred_element_type))


def einsum_path(subscripts, *operands, optimize="auto"):
    return np.einsum_path(subscripts, *[np.empty(_asarray(x).shape) for x in operands], optimize="greedy")


def array_repr(x, *_, **__):
    return repr(x)


def array_str(x, *_, **__):
    return str(x)


def printoptions(*args, **kwargs):
    return np.printoptions(*args, **kwargs)


set_printoptions, get_printoptions = np.set_printoptions, np.get_printoptions


def save(file, x, *, allow_pickle=None, fix_imports=None):
    np.save(file, np.asarray(x))


def load(file, *args, **kwargs):
    made = np.load(file, *args, **kwargs)
    return asarray(made) if isinstance(made, np.ndarray) else made


savez = np.savez

concat, conjugate = concatenate, conj
abs, mod, true_divide, permute_dims, pow = absolute, remainder, divide, transpose, power


# ---- what JAX takes: arrays and numbers, no lists

_SEQUENCES = {"append", "block", "broadcast_arrays", "column_stack", "concatenate", "concat", "dstack", "einsum", "hstack", "stack", "vstack", "ix_", "meshgrid",
              "choose", "piecewise", "select", "array_equal", "array_equiv", "allclose", "isclose", "lexsort"}
_ONE = ("absolute add argmax argmin cbrt ceil divide equal exp exp2 expm1 floor floor_divide greater greater_equal isfinite isinf isnan less less_equal log log1p log2 "
        "log10 logical_and logical_not logical_or logical_xor matmul maximum minimum multiply negative not_equal power remainder rint sign sin cos tan sinh cosh "
        "arcsin arccos arctan arctan2 sqrt square subtract tanh dot sum prod mean var std max min amax amin any all median cumsum cumprod sort argsort ravel reshape "
        "transpose squeeze expand_dims flip roll clip round trunc reciprocal hypot logaddexp outer inner vdot tensordot nansum nanmean count_nonzero ptp average "
        "diff abs mod true_divide pow real imag conj conjugate angle moveaxis swapaxes repeat tile where take trace diag nonzero broadcast_to array_split split").split()


def _of_arrays(name, function):
    """Refuses lists and strings, as JAX does. Source of the text: jax-ml/jax, jax/_src/numpy/util.py (check_arraylike)."""
    binary = name in ("add divide equal floor_divide greater greater_equal less less_equal logical_and logical_or logical_xor matmul maximum minimum multiply not_equal "
                      "power remainder arctan2 subtract dot hypot logaddexp outer inner vdot tensordot mod true_divide pow").split()

    @functools.wraps(function)
    def checked(*args, **kwargs):
        for position, value in enumerate(args[:2 if binary else 1]):
            if value.__class__ in (list, tuple, str, dict, type(None)) or isinstance(value, (list, tuple, str)):
                raise TypeError(f"{shown} requires ndarray or scalar arguments, got {type(value)} at position {position}.")
        return function(*args, **kwargs)
    shown = name
    return checked


for _name in _ONE:
    if _name != "where" and _name in globals():
        globals()[_name] = _of_arrays(_name, globals()[_name])
round = globals()["round"]


for _name in ("append array array_split asarray atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to concatenate copy delete dsplit dstack expand_dims extract flip "
              "fliplr flipud full full_like hsplit hstack insert moveaxis permute_dims ravel repeat reshape resize roll rollaxis rot90 select split squeeze stack swapaxes "
              "take take_along_axis tile transpose unstack vsplit vstack where empty_like").split():
    globals()[_name] = _of_keys(globals()[_name])


class ufunc:
    """A function of two elements with what NumPy's have besides: reduce, accumulate, outer, at."""

    def __init__(self, function, kind, identity):
        functools.update_wrapper(self, function)
        self._function, self._kind, self.identity = function, kind, identity
        self.nin, self.nout, self.nargs = 2, 1, 3

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def rename(self, named):
        """Gives its parameters other names."""
        self._function = named(self._function)

    def reduce(self, a, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=None):
        _refuse("a reduction of jax.numpy", {"dtype": dtype, "out": out, "initial": initial, "where": where})
        return {"sum": sum, "product": prod, "max": max, "min": min, "or": any, "and": all}[self._kind](a, axis, keepdims=keepdims)  # noqa: F405

    def accumulate(self, a, axis=0, dtype=None, out=None):
        _refuse("a reduction of jax.numpy", {"dtype": dtype, "out": out})
        return _ops.cumulative(a, axis, self._function, self.identity)

    def outer(self, a, b):
        a, b = _asarray(a), _asarray(b)
        return self._function(reshape(a, a.shape + (1,) * b.ndim), b)

    def at(self, a, indices, b=None, *, inplace=True):
        if inplace:
            raise NotImplementedError("JAX ufunc at() requires inplace=False")
        at = _asarray(a).at[indices]
        return {"sum": at.add, "product": at.multiply, "max": at.max, "min": at.min}[self._kind](b)

    def __repr__(self):
        return f"<jnp.ufunc '{self.__name__}'>"


add, multiply = ufunc(add, "sum", 0), ufunc(multiply, "product", 1)
maximum, minimum = ufunc(maximum, "max", -np.inf), ufunc(minimum, "min", np.inf)
logical_and, logical_or = ufunc(logical_and, "and", True), ufunc(logical_or, "or", False)

from . import fft, linalg  # noqa: E402


def _methods():
    """NumPy's methods of arrays, which are its functions."""
    for name in ("all any argmax argmin argsort clip compress conj conjugate cumprod cumsum diagonal dot max mean min nonzero prod ptp ravel repeat reshape round "
                 "searchsorted sort split squeeze std sum swapaxes take trace transpose var argpartition choose").split():
        function = getattr(sys.modules[__name__], name)
        setattr(ndarray, name, (lambda function: lambda self, *args, **kwargs: function(self, *args, **kwargs))(function))
    ndarray.compress = lambda self, condition, axis=None, **named: compress(condition, self, axis, **named)  # noqa: F405
    ndarray.flatten = lambda self, order="C": ravel(self, order)
    ndarray.__round__ = lambda self, decimals=0: round(self, decimals)
    ndarray.view = lambda self, dtype=None: self if dtype is None else _viewed(self, dtype)
    ndarray.tobytes = lambda self: np.asarray(self).tobytes()
    ndarray.on_device_size_in_bytes = lambda self: self.nbytes
    ndarray.imag, ndarray.real = property(imag), property(real)


def _viewed(x, dtype):
    from ..lax import bitcast_convert_type
    size, new = x.dtype.itemsize, _dtypes.shown(_dtypes.named(dtype)).itemsize
    if new > size:  # several elements become one
        if not x.shape or x.shape[-1] * size % new:
            raise ValueError("When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis of the array.")
        x = reshape(x, x.shape[:-1] + (-1, new // size))
    made = bitcast_convert_type(x, dtype)
    return reshape(made, made.shape[:-2] + (-1,)) if new < size and made.ndim > 1 else made


_methods()


from .._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
