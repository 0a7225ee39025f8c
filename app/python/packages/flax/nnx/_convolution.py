# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers over space: convolutions and pooling. Source of the defaults: google/flax, flax/nnx/nn/linear.py and flax/linen/pooling.py."""
import math

import jax
import jax.numpy as jnp
from jax.nn import initializers

from ._layers import Module, _as
from ._variables import Param


def _sequence(value, count):
    return (value,) * count if isinstance(value, int) else tuple(value) if value is not None else (1,) * count


def _pairs(padding, space):
    """A number, or one for each dimension, on both sides of it; words as they are."""
    if isinstance(padding, str):
        return padding
    padding = [padding] * space if isinstance(padding, int) else padding
    return [(pair, pair) if isinstance(pair, int) else tuple(pair) for pair in padding]


def _letters(space):
    spatial = "DHW"[-space:]
    return f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"


class _OverSpace(Module):
    def _with_batch(self, inputs, function):
        """Applies it to inputs of any number of batch dimensions, none included."""
        batch = inputs.shape[:inputs.ndim - len(self.kernel_size) - 1]
        made = function(inputs.reshape((math.prod(batch), *inputs.shape[len(batch):])))
        return made.reshape((*batch, *made.shape[1:]))


class Conv(_OverSpace):
    def __init__(self, in_features, out_features, kernel_size, strides=1, *, padding="SAME", input_dilation=1, kernel_dilation=1,
                 feature_group_count=1, use_bias=True, mask=None, dtype=None, param_dtype=jnp.float32, precision=None,
                 kernel_init=initializers.lecun_normal(), bias_init=initializers.zeros, kernel_metadata=None, bias_metadata=None, rngs):
        self.kernel_size = (kernel_size,) if isinstance(kernel_size, int) else tuple(kernel_size)
        shape = self.kernel_size + (in_features // feature_group_count, out_features)
        self.kernel = Param(kernel_init(rngs.params(), shape, param_dtype), **(kernel_metadata or {}))
        self.bias = Param(bias_init(rngs.params(), (out_features,), param_dtype), **(bias_metadata or {})) if use_bias else None
        self.in_features, self.out_features, self.use_bias, self.mask = in_features, out_features, use_bias, mask
        self.strides, self.padding, self.input_dilation, self.kernel_dilation = strides, padding, input_dilation, kernel_dilation
        self.feature_group_count, self.dtype, self.precision = feature_group_count, dtype, precision

    def __call__(self, inputs):
        space = len(self.kernel_size)
        inputs, kernel, bias = _as(self.dtype, inputs, self.kernel.value, self.bias.value if self.use_bias else None)
        inputs, kernel = _as(jnp.result_type(inputs, kernel), inputs, kernel)
        kernel = kernel if self.mask is None else kernel * self.mask
        dilation = _sequence(self.kernel_dilation, space)
        padding = _pairs(self.padding, space)
        if padding in ("CIRCULAR", "REFLECT"):
            widths = [((size - 1) * step // 2, (size - 1) * step - (size - 1) * step // 2) for size, step in zip(self.kernel_size, dilation)]
            inputs = jnp.pad(inputs, [(0, 0)] * (inputs.ndim - space - 1) + widths + [(0, 0)], mode="wrap" if padding == "CIRCULAR" else "reflect")
            padding = "VALID"
        elif padding == "CAUSAL":
            padding = [(dilation[0] * (self.kernel_size[0] - 1), 0)]
        y = self._with_batch(inputs, lambda x: jax.lax.conv_general_dilated(
            x, kernel, _sequence(self.strides, space), padding, _sequence(self.input_dilation, space), dilation, _letters(space),
            self.feature_group_count, precision=self.precision))
        return y if bias is None else y + bias


class ConvTranspose(_OverSpace):
    def __init__(self, in_features, out_features, kernel_size, strides=None, *, padding="SAME", kernel_dilation=None, use_bias=True, dtype=None,
                 param_dtype=jnp.float32, precision=None, kernel_init=initializers.lecun_normal(), bias_init=initializers.zeros,
                 transpose_kernel=False, kernel_metadata=None, bias_metadata=None, rngs):
        self.kernel_size = (kernel_size,) if isinstance(kernel_size, int) else tuple(kernel_size)
        shape = self.kernel_size + ((out_features, in_features) if transpose_kernel else (in_features, out_features))
        self.kernel = Param(kernel_init(rngs.params(), shape, param_dtype), **(kernel_metadata or {}))
        self.bias = Param(bias_init(rngs.params(), (out_features,), param_dtype), **(bias_metadata or {})) if use_bias else None
        self.use_bias, self.strides, self.padding, self.kernel_dilation = use_bias, strides, padding, kernel_dilation
        self.dtype, self.precision, self.transpose_kernel = dtype, precision, transpose_kernel

    def __call__(self, inputs):
        space = len(self.kernel_size)
        inputs, kernel, bias = _as(self.dtype, inputs, self.kernel.value, self.bias.value if self.use_bias else None)
        inputs, kernel = _as(jnp.result_type(inputs, kernel), inputs, kernel)
        y = self._with_batch(inputs, lambda x: jax.lax.conv_transpose(
            x, kernel, _sequence(self.strides, space), _pairs(self.padding, space), _sequence(self.kernel_dilation, space), _letters(space),
            transpose_kernel=self.transpose_kernel, precision=self.precision))
        return y if bias is None else y + bias


def _pooled(inputs, start, computation, window_shape, strides, padding):
    space = len(window_shape)
    before = inputs.ndim - space - 1
    pads = padding if isinstance(padding, str) else [(0, 0)] * before + [tuple(pair) for pair in padding] + [(0, 0)]
    return jax.lax.reduce_window(inputs, start, computation, (1,) * before + tuple(window_shape) + (1,),
                                 (1,) * before + _sequence(strides, space) + (1,), pads)


def max_pool(inputs, window_shape, strides=None, padding="VALID"):
    return _pooled(inputs, -float("inf"), jax.lax.max, window_shape, strides, padding)


def min_pool(inputs, window_shape, strides=None, padding="VALID"):
    return _pooled(inputs, float("inf"), jax.lax.min, window_shape, strides, padding)


def avg_pool(inputs, window_shape, strides=None, padding="VALID", count_include_pad=True):
    total = _pooled(inputs, 0.0, jax.lax.add, window_shape, strides, padding)
    if count_include_pad:
        return total / math.prod(window_shape)
    return total / _pooled(jnp.ones_like(inputs), 0.0, jax.lax.add, window_shape, strides, padding)
