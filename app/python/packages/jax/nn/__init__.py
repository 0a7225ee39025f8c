# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.nn: activations, and initialisers."""
import functools
import math

from .._src import dtypes as _dtypes
from .._src import ops as _ops
from .._src.arrays import asarray as _asarray
from .._src.ops import logistic as sigmoid
from .._src.ops import tanh
from . import initializers


def relu(x):
    """Flat where it bends, as JAX has it."""
    return _ops.where(_ops.less_equal(x, 0), 0, x)


def relu6(x):
    return _ops.where(_ops.less_equal(x, 0), 0, _ops.where(_ops.greater_equal(x, 6), 6, x))


def silu(x):
    return _ops.multiply(x, sigmoid(x))


swish = silu


def log_sigmoid(x):
    return _ops.negative(softplus(_ops.negative(x)))


def glu(x, axis=-1):
    from ..numpy import split
    first, second = split(x, 2, axis)
    return _ops.multiply(first, sigmoid(second))


def gelu(x, approximate=True):
    x = _asarray(x)
    if approximate:
        inner = _ops.multiply(math.sqrt(2 / math.pi), _ops.add(x, _ops.multiply(0.044715, _ops.integer_power(x, 3))))
        return _ops.multiply(_ops.multiply(0.5, x), _ops.add(1.0, tanh(inner)))
    return _ops.multiply(_ops.multiply(0.5, x), _ops.add(1.0, _ops.erf(_ops.divide(x, math.sqrt(2.0)))))


def softplus(x):
    return _ops.add(_ops.maximum(x, 0), _ops.log1p(_ops.exp(_ops.negative(_ops.distance(x)))))


def leaky_relu(x, negative_slope=1e-2):
    return _ops.where(_ops.greater_equal(x, 0), x, _ops.multiply(negative_slope, x))


def elu(x, alpha=1.0):
    is_above = _ops.greater(x, 0)
    return _ops.where(is_above, x, _ops.multiply(alpha, _ops.expm1(_ops.where(is_above, 0.0, x))))


def _finite_most(x, axis):
    """The largest along an axis, 0 where it is infinite; a constant for derivatives."""
    from ..lax import stop_gradient
    most = _ops.reduce("max", x, axis, True)
    return stop_gradient(_ops.where(_ops.isfinite(most), most, 0.0))


def logsumexp(x, axis=None, b=None, keepdims=False, return_sign=False, where=None):
    if isinstance(b, bool):  # jax.nn.logsumexp's own third argument
        b, keepdims = None, b
    x = _asarray(x)
    x = x if _dtypes.is_inexact(x.engine_dtype) else _ops.astype(x, _dtypes.default("f32"))
    x = x if where is None else _ops.where(where, x, -math.inf)
    most = _finite_most(x if b is None else _ops.where(_ops.not_equal(b, 0), x, -math.inf), axis)
    powers = _ops.exp(_ops.subtract(x, most))
    total = _ops.sum_(powers if b is None else _ops.multiply(b, powers), axis, keepdims=True)
    sign = _ops.sign(total)
    made = _ops.add(_ops.log(_ops.absolute(total) if return_sign else total), most)
    gone = tuple(_ops._axes(x, axis))
    made, sign = (made, sign) if keepdims else (_ops.squeeze(made, gone), _ops.squeeze(sign, gone))
    return (made, sign) if return_sign else made


def softmax(x, axis=-1, where=None, *, initial=None):
    from ..lax import stop_gradient
    x = _asarray(x)
    x = x if _dtypes.is_inexact(x.engine_dtype) else _ops.astype(x, _dtypes.default("f32"))
    shown = x if where is None else _ops.where(where, x, -math.inf)
    powers = _ops.exp(_ops.subtract(shown, stop_gradient(_ops.reduce("max", shown, axis, True))))
    made = _ops.divide(powers, _ops.sum_(powers, axis, keepdims=True))
    return made if where is None else _ops.where(where, made, 0)


def log_softmax(x, axis=-1, where=None, *, initial=None):
    from ..lax import stop_gradient
    x = _asarray(x)
    x = x if _dtypes.is_inexact(x.engine_dtype) else _ops.astype(x, _dtypes.default("f32"))
    x = x if where is None else _ops.where(where, x, -math.inf)
    shifted = _ops.subtract(x, stop_gradient(_ops.reduce("max", x, axis, True)))
    made = _ops.subtract(shifted, _ops.log(_ops.sum_(_ops.exp(shifted), axis, keepdims=True)))
    return made if where is None else _ops.where(where, made, -math.inf)


def one_hot(x, num_classes, *, dtype=None, axis=-1):
    return _ops.one_hot(x, num_classes, _dtypes.named(dtype) if dtype is not None else _dtypes.default("f32"), axis)


def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None):
    from ..numpy import mean as mean_of, var as var_of
    mean = mean_of(x, axis, keepdims=True, where=where) if mean is None else mean
    variance = var_of(x, axis, keepdims=True, where=where) if variance is None else variance
    return _ops.divide(_ops.subtract(x, mean), _ops.sqrt(_ops.add(variance, epsilon)))


def identity(x):
    return _asarray(x)


def celu(x, alpha=1.0):
    is_above = _ops.greater(x, 0)
    return _ops.where(is_above, x, _ops.multiply(alpha, _ops.expm1(_ops.divide(_ops.where(is_above, 0.0, x), alpha))))


def selu(x):
    """Source of the numbers: jax-ml/jax, jax/_src/nn/functions.py."""
    return _ops.multiply(1.0507009873554804934193349852946, elu(x, 1.6732632423543772848170429916717))


def hard_tanh(x):
    return _ops.where(_ops.greater(x, 1), 1.0, _ops.where(_ops.less(x, -1), -1.0, x))


def hard_sigmoid(x):
    return _ops.divide(relu6(_ops.add(x, 3.0)), 6.0)


def hard_silu(x):
    return _ops.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


def soft_sign(x):
    return _ops.divide(x, _ops.add(_ops.absolute(x), 1))


def squareplus(x, b=4):
    return _ops.divide(_ops.add(x, _ops.sqrt(_ops.add(_ops.square(x), b))), 2)


def mish(x):
    return _ops.multiply(x, tanh(softplus(x)))


def sparse_plus(x):
    return _ops.where(_ops.less_equal(x, -1.0), 0.0, _ops.where(_ops.greater_equal(x, 1.0), x, _ops.divide(_ops.square(_ops.add(x, 1.0)), 4)))


def sparse_sigmoid(x):
    return _ops.multiply(0.5, _ops.clip(_ops.add(x, 1.0), 0.0, 2.0))


def logmeanexp(x, axis=None, where=None, keepdims=False):
    x = _asarray(x)
    count = math.prod(x.shape[dim] for dim in _ops._axes(x, axis))
    if where is not None:
        where = _ops.broadcast_to(_asarray(where), x.shape)
        count = _ops.sum_(_ops.astype(where, x.engine_dtype), axis, keepdims=keepdims)
    return _ops.subtract(logsumexp(x, axis, keepdims=keepdims, where=where), _ops.log(_ops.astype(_asarray(count), x.engine_dtype)))


def log1mexp(x):
    return _ops.where(_ops.less(x, math.log(2)), _ops.log(_ops.negative(_ops.expm1(_ops.negative(x)))), _ops.log1p(_ops.negative(_ops.exp(_ops.negative(x)))))


def dot_product_attention(query, key, value, bias=None, mask=None, *, scale=None, is_causal=False, query_seq_lengths=None, key_value_seq_lengths=None,
                          local_window_size=None, implementation=None):
    """Of arrays (batch, length, heads, size), the first left out or not. Source of the order of steps: jax-ml/jax, jax/_src/nn/functions.py."""
    query, key, value = map(_asarray, (query, key, value))
    if mask is not None and _asarray(mask).engine_dtype != "i1":
        raise ValueError(f"mask dtype should be bool, but got {_asarray(mask).dtype}")
    is_one = query.ndim == 3
    if is_one:
        query, key, value = (_ops.expand_dims(x, 0) for x in (query, key, value))
    if query.shape[2] % key.shape[2]:
        raise ValueError(f"The number of query heads must be a multiple of key/value heads, but got {query.shape[2]} vs {key.shape[2]}")
    groups = query.shape[2] // key.shape[2]
    if groups > 1:  # several heads of queries for one of keys
        spread = lambda x: _ops.reshape(_ops.broadcast_to(_ops.expand_dims(x, 3), x.shape[:3] + (groups, x.shape[3])), x.shape[:2] + (-1, x.shape[3]))
        key, value = spread(key), spread(value)
    scores = _ops.multiply(_ops.einsum("btnh,bsnh->bnts", query, key), 1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if bias is not None:
        scores = _ops.add(scores, bias)
    row, column = (_ops.iota("i32", scores.shape[-2:], dim) for dim in (0, 1))
    masks = [] if mask is None else [mask]
    if is_causal:
        masks.append(_ops.greater_equal(row, column))
    if local_window_size is not None:
        left, right = (local_window_size,) * 2 if isinstance(local_window_size, int) else local_window_size
        masks += [_ops.less_equal(row, _ops.add(column, left)), _ops.greater_equal(row, _ops.subtract(column, right))]
    inside = lambda at, lengths: _ops.less(at, _ops.reshape(_asarray(lengths), (-1, 1, 1, 1)))
    masks += [inside(at, lengths) for at, lengths in ((row, query_seq_lengths), (column, key_value_seq_lengths)) if lengths is not None]
    if masks:
        mask = functools.reduce(_ops.logical_and, masks)
        scores = _ops.where(mask, scores, _asarray(-0.7 * 3.4028235e38, "f32"))
    made = _ops.einsum("bnts,bsnh->btnh", _ops.astype(softmax(_ops.astype(scores, "f32")), value.engine_dtype), value)
    if query_seq_lengths is not None:
        made = _ops.where(inside(_ops.iota("i32", made.shape[1:2] + (1, 1), 0), query_seq_lengths), made, _ops.zeros_like(made))
    return made[0] if is_one else made


from .._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
