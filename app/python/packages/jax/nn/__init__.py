# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.nn: activations, and initialisers."""
import math

from .._src import dtypes as _dtypes
from .._src import ops as _ops
from .._src.arrays import asarray as _asarray
from .._src.ops import logistic as sigmoid
from .._src.ops import tanh
from . import initializers


def relu(x):
    return _ops.maximum(x, 0)


def relu6(x):
    return _ops.clip(x, 0, 6)


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
    return _ops.add(_ops.maximum(x, 0), _ops.log1p(_ops.exp(_ops.negative(_ops.absolute(x)))))


def leaky_relu(x, negative_slope=1e-2):
    return _ops.where(_ops.greater_equal(x, 0), x, _ops.multiply(negative_slope, x))


def elu(x, alpha=1.0):
    return _ops.where(_ops.greater(x, 0), x, _ops.multiply(alpha, _ops.expm1(_ops.minimum(x, 0))))


def logsumexp(x, axis=None, keepdims=False):
    x = _asarray(x)
    from ..lax import stop_gradient
    most = stop_gradient(_ops.reduce("max", x, axis, True))
    made = _ops.add(_ops.log(_ops.sum_(_ops.exp(_ops.subtract(x, most)), axis, keepdims=True)), most)
    return made if keepdims else _ops.squeeze(made, tuple(_ops._axes(x, axis)))


def softmax(x, axis=-1, **_):
    from ..lax import stop_gradient
    powers = _ops.exp(_ops.subtract(x, stop_gradient(_ops.reduce("max", x, axis, True))))
    return _ops.divide(powers, _ops.sum_(powers, axis, keepdims=True))


def log_softmax(x, axis=-1, **_):
    return _ops.subtract(x, logsumexp(x, axis, True))


def one_hot(x, num_classes, *, dtype=None, axis=-1):
    return _ops.one_hot(x, num_classes, _dtypes.named(dtype) if dtype is not None else "f32", axis)


def standardize(x, axis=-1, epsilon=1e-5):
    return _ops.divide(_ops.subtract(x, _ops.mean(x, axis, keepdims=True)),
                       _ops.sqrt(_ops.add(_ops.var(x, axis, keepdims=True), epsilon)))
