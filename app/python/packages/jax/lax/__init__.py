# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.lax: the ops themselves, collectives of shard_map, and layouts."""
import builtins
import enum
import typing

from .._src import dtypes as _dtypes
from .._src import ops as _ops
from .._src.arrays import asarray as _asarray
from .._src.arrays import astype as _astype
from .._src.arrays import bind as _bind
from .._src.dtypes import named as _named
from .._src.options import refuse as _refuse
from .._src.precision import DotAlgorithmPreset, Precision
from .._src.ops import (broadcast_to, concatenate, dynamic_slice as _dynamic_slice, dynamic_update_slice as _dynamic_update_slice, expand_dims, integer_power, pad as _pad, reshape, squeeze, transpose)
from .._src.transforms import axis_size, check_permuted_axes as _check_permuted_axes, collective as _collective, with_sharding_constraint


# ---- the ops as they are: operands of one type and one shape, which are not promoted

def _type(value):
    return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"


def _strict(name, function, count, takes="any"):
    """Source of the texts: jax-ml/jax, jax/_src/lax/lax.py (naryop, broadcasting_shape_rule)."""
    def applied(*args, **options):
        if len(args) != count:
            raise TypeError(f"{name}() takes {count} positional arguments but {len(args)} were given")
        for position, value in builtins.enumerate(args):
            if isinstance(value, (list, tuple, str)) or value is None:
                raise TypeError(f"lax.{name} requires ndarray or scalar arguments, got {builtins.type(value)} at position {position}.")
        arrays = [_asarray(value) for value in args]
        strong = [array for array in arrays if not array.weak_type]
        if strong:
            arrays = [_astype(array, strong[0].engine_dtype) if array.weak_type and _kind(array) <= _kind(strong[0]) else array for array in arrays]
        if builtins.any(array.engine_dtype != arrays[0].engine_dtype for array in arrays):
            raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got {', '.join(array.dtype.name for array in arrays)}. (Tip: jnp.{name} is a "
                            "similar function that does automatic type promotion on inputs).")
        shapes = {array.shape for array in arrays if array.shape} if builtins.any(not array.shape for array in arrays) else {array.shape for array in arrays}
        if builtins.len(shapes) > 1:
            ranks = {builtins.len(shape) for shape in shapes}
            listed = ", ".join(str(array.shape) for array in arrays)
            if builtins.len(ranks) > 1:
                raise TypeError(f"{name} got arrays of different rank: {listed}.")
            raise TypeError(f"{name} got incompatible shapes for broadcasting: {listed}.")
        engine = arrays[0].engine_dtype
        if takes == "inexact" and not _dtypes.is_inexact(engine):
            raise TypeError(f"{name} does not accept dtype {arrays[0].dtype.name}. Accepted dtypes are subtypes of inexact (i.e. floating, complexfloating).")
        if takes == "float" and not _dtypes.is_float(engine):
            raise TypeError(f"{name} does not accept dtype {arrays[0].dtype.name}. Accepted dtypes are subtypes of floating.")
        return function(*arrays)
    applied.__name__ = name
    return applied


def _kind(array):
    return _dtypes._RANK[_dtypes.kind_of(array.engine_dtype)]


def _op(op):
    def function(*arrays):
        made = _bind(op, *arrays)
        made.weak_type = builtins.all(array.weak_type for array in arrays)
        return made
    return function


def _of_elements(name):
    def function(x):
        from ..numpy import _elements
        return builtins.getattr(_elements, name)(x)
    return function


for _name, _of in {"sin": "sine", "cos": "cosine", "tanh": "tanh", "exp": "exponential", "log": "log", "log1p": "log_plus_one",
                   "expm1": "exponential_minus_one", "sqrt": "sqrt", "rsqrt": "rsqrt", "logistic": "logistic"}.items():
    globals()[_name] = _strict(_name, _op(_of), 1, "inexact")
for _name in ("tan", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"):
    globals()[_name] = _strict(_name, _of_elements(_name), 1, "inexact")
for _name, _of in {"cbrt": "cbrt", "erf": "erf", "erfc": "erfc", "erf_inv": "erf_inv", "floor": "floor", "ceil": "ceil",
                   "is_finite": "is_finite"}.items():
    globals()[_name] = _strict(_name, _op(_of), 1, "float")
for _name, _of in {"neg": "negate", "sign": "sign", "abs": "abs", "bitwise_not": "not", "population_count": "popcnt", "clz": "count_leading_zeros"}.items():
    globals()[_name] = _strict(_name, _op(_of), 1)
for _name, _of in {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "rem": "remainder", "max": "maximum", "min": "minimum", "pow": "power",
                   "atan2": "atan2", "nextafter": "next_after", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "shift_left": "shift_left",
                   "shift_right_logical": "shift_right_logical", "shift_right_arithmetic": "shift_right_arithmetic"}.items():
    globals()[_name] = _strict(_name, _op(_of), 2)
for _name, _of in {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}.items():
    globals()[_name] = _strict(_name, (lambda direction: lambda a, b: _bind("compare", a, b, direction=direction))(_of), 2)
def _special(name):
    def function(x):
        from ..scipy import special
        made = getattr(special, name)(x)
        made.weak_type = x.weak_type
        return made
    return function


lgamma, digamma = _strict("lgamma", _special("gammaln"), 1, "float"), _strict("digamma", _special("digamma"), 1, "float")
square = _strict("square", lambda x: _ops.square(x), 1)
exp2 = _strict("exp2", lambda x: _ops.exp(_ops.multiply(x, 0.6931471805599453)), 1, "inexact")
reciprocal = _strict("reciprocal", lambda x: _ops.divide(1, x), 1, "inexact")


def pow(x, y):  # noqa: A001
    if isinstance(y, builtins.int):
        return integer_power(x, y)
    return _strict("pow", _op("power"), 2)(x, y)


integer_pow = integer_power


PrecisionLike = typing.Any  # of annotations


class RoundingMethod(enum.Enum):
    AWAY_FROM_ZERO, TO_NEAREST_EVEN = 0, 1


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):  # noqa: A001
    return _bind("round_nearest_afz" if rounding_method == RoundingMethod.AWAY_FROM_ZERO else "round_nearest_even", _asarray(x))


real, imag, conj, complex = _ops.real, _ops.imag, _ops.conj, _ops.complex_


def stop_gradient(x):
    """The same value, which nothing is differentiated through."""
    from .._src.trees import tree_map
    def one(leaf):
        leaf = _asarray(leaf)
        if _dtypes.is_complex(leaf.engine_dtype):
            return _ops.complex_(one(_ops.real(leaf)), one(_ops.imag(leaf)))
        if not _dtypes.is_float(leaf.engine_dtype):
            return leaf
        made = _bind("bitcast_convert", _bind("bitcast_convert", leaf, dtype={1: "ui8", 2: "ui16", 4: "ui32", 8: "ui64"}[leaf.itemsize]), dtype=leaf.engine_dtype)
        made.weak_type = leaf.weak_type
        return made
    return tree_map(one, x)


def convert_element_type(x, dtype):
    return _ops.astype(x, _named(dtype))


def bitcast_convert_type(x, dtype):
    """Of elements of another size: one becomes several along a new last dimension, the lowest bits first, or those along the last one become one."""
    x, to = _asarray(x), _named(dtype)
    old, new = 8 * x.itemsize, 8 * _dtypes.shown(to).itemsize
    words = lambda x, bits: _bind("bitcast_convert", x, dtype=f"ui{bits}") if x.engine_dtype != f"ui{bits}" else x
    if new < old:
        x, places = words(x, old), _asarray(builtins.range(0, old, new), f"ui{old}")
        x = _astype(_bind("shift_right_logical", _ops.expand_dims(x, -1), places), f"ui{new}")
    elif new > old:
        if not x.shape or x.shape[-1] != new // old:
            raise TypeError(f"bitcast_convert_type: expected a last dimension of size {new // old} of an array of {x.dtype.name} for {_dtypes.shown(to).name}, got "
                            f"shape {x.shape}")
        places = _asarray(builtins.range(0, new, old), f"ui{new}")
        x = _ops.reduce("or", _bind("shift_left", _astype(words(x, old), f"ui{new}"), places), -1)
    return x if x.engine_dtype == to else _bind("bitcast_convert", x, dtype=to)


def reduce_precision(x, exponent_bits, mantissa_bits):
    return _bind("reduce_precision", _asarray(x), exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


def collapse(x, start_dimension, stop_dimension=None):
    x = _asarray(x)
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(x.ndim)
    return reshape(x, (*x.shape[:start], -1, *x.shape[stop:]))


@_ops.placeable
def broadcast(x, sizes):
    x = _asarray(x)
    return broadcast_to(x, tuple(sizes) + x.shape)


def expand_dims(x, dimensions):  # noqa: F811
    return _ops.expand_dims(x, tuple(dimensions) if isinstance(dimensions, (list, tuple)) else (dimensions,))


def full(shape, fill_value, dtype=None, *, sharding=None):
    return _ops.placeable(_ops.full)(shape, fill_value, None if dtype is None else _named(dtype), out_sharding=sharding)


def zeros_like_array(x):
    return _ops.zeros_like(_asarray(x))


def _same_dtypes(name, *arrays):
    """Operands of one type, which are not promoted. Source of the text: jax-ml/jax, jax/_src/lax/lax.py (check_same_dtypes)."""
    arrays = [array if hasattr(array, "engine_dtype") else _asarray(array) for array in arrays]
    if builtins.any(array.engine_dtype != arrays[0].engine_dtype for array in arrays):
        tip = {"select": "where", "concatenate": "concatenate", "clamp": "clip"}.get(name)
        raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got {', '.join(array.dtype.name for array in arrays)}."
                        + (f" (Tip: jnp.{tip} is a similar function that does automatic type promotion on inputs)." if tip else ""))
    return arrays


def concatenate(operands, dimension):  # noqa: F811
    if not builtins.len(operands):
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    return _ops.concatenate(_same_dtypes("concatenate", *operands), dimension)


def pad(x, padding_value, padding_config):
    x, padding_value = _asarray(x), _asarray(padding_value)
    if x.engine_dtype != padding_value.engine_dtype:
        raise TypeError(f"pad operand and padding_value must be same dtype: got {x.dtype.name} and {padding_value.dtype.name}.")
    if padding_value.ndim:
        raise ValueError(f"padding_value must be a scalar; got np.shape(padding_value)={padding_value.shape}")
    if builtins.len(padding_config) != x.ndim:
        raise ValueError(f"length of padding_config must equal the number of axes of operand, got padding_config {padding_config} for operand shape {x.shape}")
    return _pad(x, [low for low, _, _ in padding_config], [high for _, high, _ in padding_config], padding_value, [inner for _, _, inner in padding_config])


def split(x, sizes, axis=0):
    import itertools
    if builtins.any(size < 0 for size in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
    if builtins.sum(sizes) != _asarray(x).shape[axis]:
        raise ValueError(f"Sum of sizes {builtins.sum(sizes)} must be equal to dimension {axis} of the operand shape {list(_asarray(x).shape)}")
    from ..numpy import array_split
    return array_split(x, list(itertools.accumulate(sizes))[:-1], axis)


def batch_matmul(x, y, precision=None):
    return _ops.matmul(x, y, precision)


def index_in_dim(x, index, axis=0, keepdims=True):
    made = slice_in_dim(x, index, index + 1 if index != -1 else None, 1, axis)
    return made if keepdims else squeeze(made, axis)


def dynamic_update_index_in_dim(x, update, index, axis):
    x, update = _asarray(x), _asarray(update)
    return dynamic_update_slice_in_dim(x, _ops.expand_dims(update, axis) if update.ndim != x.ndim else update, index, axis)


def sort(operand, dimension=-1, is_stable=True, num_keys=1):
    from ..numpy import argsort, lexsort, sort as one, take_along_axis
    if not isinstance(operand, (tuple, list)):
        return one(operand, dimension)
    if builtins.len({_asarray(x).shape for x in operand}) > 1:
        raise TypeError(f"Arguments to sort must have equal shapes, got: {' '.join(str(_asarray(x).shape) for x in operand)}")
    keys = operand[:num_keys]
    order = argsort(keys[0], dimension) if num_keys == 1 else lexsort(keys[::-1], dimension)
    return tuple(take_along_axis(x, order, dimension) for x in operand)


def sort_key_val(keys, values, dimension=-1, is_stable=True):
    return sort((keys, values), dimension)


def top_k(operand, k, *, axis=-1):
    from ..numpy import argsort, take_along_axis
    from .._src import explicit
    operand = _asarray(operand)
    _ops.no_complex(ValueError, "top_k is not compatible with complex inputs.", operand)
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    if not operand.ndim:
        raise TypeError(f"top_k operand must have >= 1 dimension, got {operand.shape}")
    if operand.shape[axis] < k:
        raise ValueError(f"k argument to top_k must be no larger than size along axis; got k={k} with shape={list(operand.shape)} and "
                         f"axis={_ops.dimension(axis, operand.ndim)}")
    explicit.whole_along(operand, axis, lambda text: f"The input should be unsharded over the axis along which to compute the top_k values. Got input type={text} and "
                         f"axis={axis}")
    x = _ops.moveaxis(operand, axis, -1)
    order = argsort(x, -1, descending=True)[..., :k]
    return _ops.moveaxis(take_along_axis(x, order, -1), -1, axis), _ops.moveaxis(order, -1, axis)


def argmax(x, axis, index_dtype):
    return _ops.astype(_ops.argmax(x, axis), _named(index_dtype))


def argmin(x, axis, index_dtype):
    return _ops.astype(_ops.argmin(x, axis), _named(index_dtype))


def _running(combine, start):
    def function(x, axis=0, reverse=False):
        from ..numpy._reductions import _identity
        x = _asarray(x)
        x = _ops.flip(x, axis) if reverse else x
        made = _ops.cumulative(x, axis, combine, _identity(start, x.engine_dtype))
        return _ops.flip(made, axis) if reverse else made
    return function


cumsum, cumprod = _running(_ops.add, "sum"), _running(_ops.multiply, "product")
cummax, cummin = _running(_ops.maximum, "max"), _running(_ops.minimum, "min")


def cumlogsumexp(x, axis=0, reverse=False):
    from ..numpy import logaddexp
    return _running(logaddexp, "max")(x, axis, reverse)


def _reduction(kind):
    return lambda x, axes, **_: _ops.reduce(kind, x, tuple(axes))


reduce_sum, reduce_prod, reduce_max, reduce_min, reduce_and, reduce_or = map(_reduction, ("sum", "product", "max", "min", "and", "or"))


@_ops.placeable
def reduce(operands, init_values, computation, dimensions):
    """All elements along dimensions, put together two by two."""
    x = _ops.moveaxis(operands, tuple(dimensions), tuple(range(builtins.len(dimensions))))
    x = reshape(x, (-1,) + x.shape[builtins.len(dimensions):])
    made = broadcast_to(_ops.astype(init_values, x.engine_dtype), x.shape[1:])
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        joined = computation(x[:half], x[half:2 * half])
        x = joined if x.shape[0] == 2 * half else _ops.concatenate([joined, x[2 * half:]])
    return computation(made, x[0]) if x.shape[0] else made


def optimization_barrier(x):
    from .._src.trees import tree_map
    return tree_map(lambda leaf: _bind("optimization_barrier", _asarray(leaf)), x)


def platform_dependent(*args, default=None, **per_platform):
    from .._src.machine import machine
    chosen = per_platform.get(machine.platform, default)
    if chosen is None:
        raise NotImplementedError(f"platform_dependent found no branch for {machine.platform}")
    return chosen(*args)


def igamma(a, x):
    from ..scipy.special import gammainc
    return gammainc(a, x)


def igammac(a, x):
    from ..scipy.special import gammaincc
    return gammaincc(a, x)




@_ops.placeable
def dot_general(x, y, dimension_numbers, precision=None, preferred_element_type=None):
    contracting, batch = dimension_numbers
    return _ops.dot_general(x, y, contracting, batch, preferred_element_type and _named(preferred_element_type), precision)


def dot(x, y, precision=None, preferred_element_type=None):
    return _ops.dot(x, y, precision, preferred_element_type)


def broadcast_in_dim(x, shape, broadcast_dimensions):
    """Source of the text: jax-ml/jax, jax/_src/lax/lax.py (_broadcast_in_dim_shape_rule)."""
    x, shape, dims = _asarray(x), tuple(shape), tuple(broadcast_dimensions)
    if not set(dims).issubset(range(len(shape))):
        raise TypeError(f"broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got {dims} for operand ndim {x.ndim} and shape {shape}.")
    return _bind("broadcast_in_dim", x, shape=shape, dims=dims)


@_ops.placeable
def broadcasted_iota(dtype, shape, dimension):
    """Source of the text: jax-ml/jax, jax/_src/lax/lax.py (_iota_abstract_eval)."""
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota dimension must be between 0 and len(shape), got {dimension=} for {shape=}")
    return _ops.iota(_named(dtype), shape, dimension)


def iota(dtype, size):
    return _ops.iota(_named(dtype), (size,))


def select(pred, on_true, on_false):
    return select_n(pred, on_false, on_true)


def clamp(low, x, high):
    low, x, high = _same_dtypes("clamp", low, x, high)
    for name, bound in (("min", low), ("max", high)):
        if bound.shape and bound.shape != x.shape:
            raise TypeError(f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got {name}.shape={bound.shape}, operand.shape={x.shape}.")
    return _ops.clip(x, low, high)


def dynamic_slice(operand, start_indices, slice_sizes):
    x = _asarray(operand)
    if builtins.any(size > whole for size, whole in zip(slice_sizes, x.shape)):
        raise TypeError(f"slice slice_sizes must be less than or equal to operand shape, got slice_sizes {tuple(slice_sizes)} for operand shape {x.shape}.")
    return _dynamic_slice(x, start_indices, slice_sizes)


def dynamic_update_slice(operand, update, start_indices):
    """Source of the texts: jax-ml/jax, jax/_src/lax/slicing.py (_dynamic_update_slice_shape_rule)."""
    x, update = _same_dtypes("dynamic_update_slice", operand, update)
    if x.ndim != update.ndim:
        raise TypeError(f"dynamic_update_slice update must have the same rank as operand, got update shape {update.shape} for operand shape {x.shape}.")
    if builtins.any(new > whole for new, whole in zip(update.shape, x.shape)):
        raise TypeError(f"dynamic_update_slice update shape must be smaller than operand shape, got update shape {update.shape} for operand shape {x.shape}.")
    return _dynamic_update_slice(x, update, start_indices)


def rev(x, dimensions):
    return _ops.flip(x, dimensions)


def slice(x, start_indices, limit_indices, strides=None):
    return _ops.slice_(x, start_indices, limit_indices, strides)


def slice_in_dim(x, start_index, limit_index, stride=1, axis=0):
    x = _asarray(x)
    start, limit, _ = builtins.slice(start_index, limit_index).indices(x.shape[axis])
    starts, limits, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], limits[axis], strides[axis] = start, limit, stride
    return slice(x, starts, limits, strides)


def full_like(x, fill_value, dtype=None, shape=None):
    x = _asarray(x)
    return _ops.full(x.shape if shape is None else shape, fill_value, x.engine_dtype if dtype is None else _named(dtype))


def dynamic_slice_in_dim(x, start, size, axis=0):
    x = _asarray(x)
    starts = [0] * x.ndim
    starts[axis] = start
    return dynamic_slice(x, starts, tuple(size if dim == _ops.dimension(axis, x.ndim) else n for dim, n in enumerate(x.shape)))


def dynamic_update_slice_in_dim(x, update, start, axis):
    x = _asarray(x)
    starts = [0] * x.ndim
    starts[axis] = start
    return dynamic_update_slice(x, update, starts)


def dynamic_index_in_dim(x, index, axis=0, keepdims=True):
    made = dynamic_slice_in_dim(x, index, 1, axis)
    return made if keepdims else squeeze(made, axis)


def select_n(which, *cases):
    """Of the cases the one of a number, or of a truth. Source of the texts: jax-ml/jax, jax/_src/lax/lax.py (_select_shape_rule)."""
    which, cases = _asarray(which), [case if hasattr(case, "engine_dtype") else _asarray(case) for case in cases]
    if builtins.any(case.shape != cases[0].shape for case in cases):
        raise TypeError(f"select cases must have the same shapes, got [{', '.join(str(case.shape) for case in cases)}].")
    if which.shape and which.shape != cases[0].shape:
        raise TypeError(f"select `which` must be scalar or have the same shape as cases, got `which` shape {which.shape} but case shape {cases[0].shape}.")
    _same_dtypes("select", *cases)
    if which.engine_dtype != "i1" and not _dtypes.is_integer(which.engine_dtype):
        raise TypeError(f"select `which` must be boolean or integer type, got {which.dtype.name}.")
    if which.engine_dtype == "i1":
        if len(cases) != 2:
            raise TypeError(f"with boolean `which`, select_n expects 2 cases, got {len(cases)}")
        return _ops.where(which, cases[1], cases[0])
    made = cases[-1]
    for number in reversed(range(len(cases) - 1)):
        made = _ops.where(_ops.less_equal(which, number), cases[number], made)
    return made


def tile(operand, reps):
    from ..numpy import tile as of
    return of(operand, reps)


def broadcast_shapes(*shapes):
    from ..numpy import broadcast_shapes as of
    return of(*shapes)


def approx_min_k(operand, k, reduction_dimension=-1, *, recall_target=None, reduction_input_size_override=None, aggregate_to_topk=None):
    least, places = top_k(_ops.negative(_asarray(operand)), k, axis=reduction_dimension)
    return _ops.negative(least), places


bessel_i0e, bessel_i1e = _strict("bessel_i0e", _special("i0e"), 1, "float"), _strict("bessel_i1e", _special("i1e"), 1, "float")


def polygamma(m, x):
    from ..scipy.special import polygamma as of
    return of(m, x)


def zeta(x, q):
    from ..scipy.special import zeta as of
    return of(x, q)


def padtype_to_pads(in_shape, window_shape, window_strides, padding):
    from .._src.windows import _pairs
    return _pairs(padding, in_shape, window_shape, window_strides)


def approx_max_k(operand, k, reduction_dimension=-1, *, recall_target=None, reduction_input_size_override=None, aggregate_to_topk=None):
    return top_k(operand, k, axis=reduction_dimension)


def ragged_dot(lhs, rhs, group_sizes, precision=None, preferred_element_type=None, group_offset=None, **options):
    """Rows of the left side, in groups of these sizes, by the matrix of their group; rows of no group become zeros."""
    _refuse("jax.lax.ragged_dot", {"group_offset": group_offset, **options})
    lhs, rhs = _asarray(lhs), _asarray(rhs)
    ends = _ops.cumulative(_asarray(group_sizes))
    at = _ops.iota("i32", (lhs.shape[0],), 0)
    made = None
    for group in range(rhs.shape[0]):
        begin = ends[group - 1] if group else 0
        is_own = _ops.expand_dims(_ops.logical_and(_ops.greater_equal(at, begin), _ops.less(at, ends[group])), 1)
        part = _ops.dot(_ops.where(is_own, lhs, _ops.zeros_like(lhs)), rhs[group], precision=precision, preferred_element_type=preferred_element_type)
        made = part if made is None else _ops.add(made, part)
    return made


def betainc(a, b, x):
    from ..scipy.special import betainc as of
    return of(a, b, x)


class RandomAlgorithm(enum.IntEnum):
    RNG_DEFAULT, RNG_THREE_FRY, RNG_PHILOX = range(3)


def rng_bit_generator(key, shape, dtype=None, algorithm=RandomAlgorithm.RNG_DEFAULT, *, out_sharding=None):
    raise NotImplementedError("jax.lax.rng_bit_generator: its numbers are those of XLA on a device; jax.random.bits gives random words")


rng_uniform = rng_bit_generator


# ---- collectives of a manual computation

def psum(x, axis_name, **options):
    _refuse("jax.lax.psum", options)
    from .._src.trees import tree_map
    if all(isinstance(leaf, (int, float)) for leaf in __import__("jax").tree_leaves(x)):
        return tree_map(lambda leaf: leaf * axis_size(axis_name), x)
    counted = lambda leaf: _ops.astype(leaf, "i32") if leaf.engine_dtype == "i1" else leaf
    return _collective("psum", tree_map(lambda leaf: counted(_asarray(leaf)), x), axis_name)


def pmean(x, axis_name, **options):
    _refuse("jax.lax.pmean", options)
    from .._src.trees import tree_map
    size = axis_size(axis_name)
    return tree_map(lambda leaf: _ops.divide(leaf, size), psum(x, axis_name))


def pmax(x, axis_name, **options):
    _refuse("jax.lax.pmax", options)
    return _collective("pmax", x, axis_name)


def pmin(x, axis_name, **options):
    _refuse("jax.lax.pmin", options)
    return _collective("pmin", x, axis_name)


def all_gather(x, axis_name, *, axis=0, tiled=False, **options):
    _refuse("jax.lax.all_gather", options)
    from .._src.trees import tree_map

    def one(leaf):
        leaf = _asarray(leaf)
        join = _ops.dimension(axis, leaf.ndim + (not tiled))
        return _collective("all_gather", leaf if tiled else expand_dims(leaf, join), axis_name, join=join)
    return tree_map(one, x)


def psum_scatter(x, axis_name, *, scatter_dimension=0, tiled=False, **options):
    _refuse("jax.lax.psum_scatter", options)
    from .._src.trees import tree_map

    def one(leaf):
        leaf = _asarray(leaf)
        split, count = _ops.dimension(scatter_dimension, leaf.ndim), axis_size(axis_name)
        if tiled and leaf.shape[split] % count:
            raise ValueError(f"tiled reduce_scatter operand scatter dimension size {leaf.shape[split]} must be divisible by shard_count {count}")
        if not tiled and leaf.shape[split] != count:
            raise ValueError(f"reduce_scatter operand scatter dimension size {leaf.shape[split]} must match shard count {count}")
        made = _collective("psum_scatter", leaf, axis_name, split=split)
        return made if tiled else squeeze(made, split)
    return tree_map(one, x)


def all_to_all(x, axis_name, split_axis, concat_axis, *, tiled=False, **options):
    _refuse("jax.lax.all_to_all", options)
    from .._src.trees import tree_map

    def one(leaf):
        leaf, count = _asarray(leaf), axis_size(axis_name)
        split, join = _ops.dimension(split_axis, leaf.ndim), _ops.dimension(concat_axis, leaf.ndim)
        if tiled:
            if leaf.shape[split] % count:
                raise ValueError(f"The size of all_to_all split_axis ({leaf.shape[split]}) has to be divisible by the size of the named axis {axis_name} ({count})")
            return _collective("all_to_all", leaf, axis_name, split=split, join=join)
        if leaf.shape[split] != count:
            raise ValueError("all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but they are "
                             f"{count} and {leaf.shape[split]} respectively.")
        made = _collective("all_to_all", _ops.moveaxis(leaf, split, 0), axis_name, split=0, join=0)
        return _ops.moveaxis(made.reshape((count,) + made.shape[1:]), 0, join)
    return tree_map(one, x)


def pswapaxes(x, axis_name, axis, *, axis_index_groups=None):
    return all_to_all(x, axis_name, axis, axis, **({} if axis_index_groups is None else {"axis_index_groups": axis_index_groups}))


def ppermute(x, axis_name, perm):
    """Source of the rule and the text: jax-ml/jax, jax/_src/lax/parallel.py (_pcollectives_lowering_common)."""
    size = axis_size(axis_name)
    pairs = [(source % size, target % size) for source, target in perm]
    if any(len(set(ends)) != len(pairs) for ends in zip(*pairs)):
        raise ValueError(f"ppermute sources and destinations must be unique, got {tuple(tuple(pair) for pair in perm)}.")
    _check_permuted_axes(axis_name)
    sources = [-1] * size
    for source, target in pairs:
        sources[target] = source
    return _collective("ppermute", x, axis_name, sources=tuple(sources))


def pshuffle(x, axis_name, perm):
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


def axis_index(axis_name):
    return _collective("axis_index", None, axis_name)


def pvary(x, axis_name):
    """Says that a value may differ over axes."""
    return pcast(x, axis_name, to="varying")


def pcast(x, axis_name, *, to):
    """Says whether a value may differ over axes; it stays what it is."""
    from .._src.transforms import cast
    from .._src.trees import tree_map
    axes = frozenset((axis_name,) if isinstance(axis_name, str) else axis_name)
    return tree_map(lambda leaf: cast(_asarray(leaf), axes, to), x)


from .._src.windows import (ConvDimensionNumbers, conv, conv_dimension_numbers, conv_general_dilated, conv_transpose, conv_with_general_padding,
                            reduce_window)
from .._src.solves import custom_linear_solve, custom_root
from .._src.control import cond, fori_loop, map_ as map, scan, switch, while_loop, associative_scan


from .._src.parameters import name_parameters as _name_parameters
from .._src.random_ import of_keys as _of_keys

for _name in ("broadcast broadcast_in_dim broadcast_to collapse concatenate dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_update_index_in_dim "
              "dynamic_update_slice dynamic_update_slice_in_dim expand_dims index_in_dim reshape rev select select_n slice slice_in_dim squeeze transpose").split():
    globals()[_name] = _of_keys(globals()[_name])

_name_parameters(globals())


class FftType(enum.IntEnum):
    FFT, IFFT, RFFT, IRFFT = range(4)


def fft(x, fft_type, fft_lengths):
    """Along the last dimensions, as many as there are lengths."""
    kind = fft_type.name if isinstance(fft_type, FftType) else str(fft_type).upper()
    if kind not in FftType.__members__:
        raise ValueError(f"Unknown FFT type '{fft_type}'")
    return _bind("fft", _asarray(x), type=kind, lengths=tuple(int(length) for length in fft_lengths))


from . import linalg
