# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers: those of flax.nnx with the variables of linen. Source of the defaults and the names: google/flax, flax/linen."""
import math
from typing import Any, Callable, Optional, Sequence, Union

import jax
import jax.numpy as jnp
from jax import lax
from jax._src.options import refuse as _refuse
from jax.nn import initializers

from ..nnx import _attention, _convolution, _layers
from ._module import Module, compact, merge_param, nowrap


class _NoKeys:
    """What draws keys for the layers of nnx: here the initializers do."""

    @staticmethod
    def params():
        return None


_no_keys = _NoKeys()


class _OfNnx(Module):
    """A layer that computes as one of nnx does."""

    @nowrap
    def _drawn(self, name, init):
        """An initializer of nnx that gives this module's parameter."""
        return lambda _, shape, dtype: self.param(name, init, shape, dtype)

    @nowrap
    def _made(self, kind, *sizes, **options):
        inits = {f"{name}_init": self._drawn(name, getattr(self, f"{name}_init")) for name in ("kernel", "bias", "scale", "embedding")
                 if hasattr(type(self), f"{name}_init")}
        return kind(*sizes, **inits, **options, rngs=_no_keys)


def _same(*names):
    """The options of a module that nnx calls by the same names."""
    return lambda module: {name: getattr(module, name) for name in names}


_types = _same("dtype", "param_dtype")
_zeros, _ones, _lecun = initializers.zeros, initializers.ones, initializers.lecun_normal()


def _refused(module, **options):
    _refuse(f"flax.linen.{type(module).__name__}", options)


class Dense(_OfNnx):
    features: int
    use_bias: bool = True
    dtype: Any = None
    param_dtype: Any = jnp.float32
    precision: Any = None
    kernel_init: Callable = _lecun
    bias_init: Callable = _zeros
    promote_dtype: Any = None
    dot_general: Any = None
    dot_general_cls: Any = None

    @compact
    def __call__(self, inputs):
        _refused(self, dot_general=self.dot_general, dot_general_cls=self.dot_general_cls, promote_dtype=self.promote_dtype)
        return self._made(_layers.Linear, inputs.shape[-1], self.features, use_bias=self.use_bias, precision=self.precision, **_types(self))(inputs)


def _flat(init, *flat):
    """Kernels of several dimensions are drawn as matrices."""
    return lambda key, shape, dtype: jax.tree.map(lambda x: x.reshape(shape), init(key, flat, dtype))


class DenseGeneral(_OfNnx):
    features: Union[int, Sequence[int]]
    axis: Union[int, Sequence[int]] = -1
    batch_dims: Sequence[int] = ()
    use_bias: bool = True
    dtype: Any = None
    param_dtype: Any = jnp.float32
    kernel_init: Callable = _lecun
    bias_init: Callable = _zeros
    precision: Any = None
    promote_dtype: Any = None
    dot_general: Any = None
    dot_general_cls: Any = None

    @compact
    def __call__(self, inputs):
        _refused(self, batch_dims=self.batch_dims or None, dot_general=self.dot_general, dot_general_cls=self.dot_general_cls)
        axes, features = (((value,) if isinstance(value, int) else tuple(value)) for value in (self.axis, self.features))
        sizes = tuple(inputs.shape[axis] for axis in axes)
        rows, columns = math.prod(sizes), math.prod(features)
        kernel = self.param("kernel", _flat(self.kernel_init, rows, columns), sizes + features, self.param_dtype)
        bias = self.param("bias", _flat(self.bias_init, columns), features, self.param_dtype) if self.use_bias else None
        layer = _layers.LinearGeneral(sizes, features, axis=axes, use_bias=self.use_bias, precision=self.precision, kernel_init=lambda *_: kernel,
                                      bias_init=lambda *_: bias, rngs=_no_keys, **_types(self))
        return layer(inputs)


class Einsum(_OfNnx):
    shape: Sequence[int]
    einsum_str: Optional[str] = None
    use_bias: bool = True
    dtype: Any = None
    param_dtype: Any = jnp.float32
    precision: Any = None
    kernel_init: Callable = _lecun
    bias_init: Callable = _zeros

    @compact
    def __call__(self, inputs, einsum_str=None):
        text = merge_param("einsum_str", self.einsum_str, einsum_str).replace(" ", "")
        _refused(self, use_bias=self.use_bias)
        return self._made(_layers.Einsum, text, tuple(self.shape), precision=self.precision, **_types(self))(inputs)


class Embed(_OfNnx):
    num_embeddings: int
    features: int
    dtype: Any = None
    param_dtype: Any = jnp.float32
    embedding_init: Callable = initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=-1, out_axis=0)

    def setup(self):
        self.embedding = self.param("embedding", self.embedding_init, (self.num_embeddings, self.features), self.param_dtype)

    @nowrap
    def _layer(self):
        return _layers.Embed(self.num_embeddings, self.features, embedding_init=lambda *_: self.embedding, rngs=_no_keys, **_types(self))

    def __call__(self, inputs):
        if not jnp.issubdtype(inputs.dtype, jnp.integer):
            raise ValueError("Input type must be an integer or unsigned integer.")
        return self._layer()(inputs)

    def attend(self, query):
        return self._layer().attend(query)


class _OverSpace(_OfNnx):
    features: int
    kernel_size: Union[int, Sequence[int]]
    strides: Union[None, int, Sequence[int]] = 1
    padding: Any = "SAME"

    @nowrap
    def _size(self):
        if isinstance(self.kernel_size, int):
            raise TypeError(f"Expected Conv kernel_size to be a tuple/list of integers (eg.: [3, 3]) but got {self.kernel_size}.")
        return tuple(self.kernel_size)


class Conv(_OverSpace):
    input_dilation: Union[None, int, Sequence[int]] = 1
    kernel_dilation: Union[None, int, Sequence[int]] = 1
    feature_group_count: int = 1
    use_bias: bool = True
    mask: Any = None
    dtype: Any = None
    param_dtype: Any = jnp.float32
    precision: Any = None
    kernel_init: Callable = _lecun
    bias_init: Callable = _zeros

    @compact
    def __call__(self, inputs):
        own = _same("padding", "input_dilation", "kernel_dilation", "feature_group_count", "use_bias", "mask", "precision")(self)
        size = self._size()
        return self._made(_convolution.Conv, inputs.shape[-1], self.features, size, 1 if self.strides is None else self.strides, **own, **_types(self))(inputs)


class ConvTranspose(_OverSpace):
    strides: Union[None, Sequence[int]] = None
    kernel_dilation: Union[None, Sequence[int]] = None
    use_bias: bool = True
    mask: Any = None
    dtype: Any = None
    param_dtype: Any = jnp.float32
    precision: Any = None
    kernel_init: Callable = _lecun
    bias_init: Callable = _zeros
    transpose_kernel: bool = False

    @compact
    def __call__(self, inputs):
        _refused(self, mask=self.mask, **({"padding": self.padding} if self.padding == "CIRCULAR" else {}))
        own = _same("strides", "padding", "kernel_dilation", "use_bias", "precision", "transpose_kernel")(self)
        return self._made(_convolution.ConvTranspose, inputs.shape[-1], self.features, self._size(), **own, **_types(self))(inputs)


# ---- norms

def _axes(said, rank):
    return tuple(sorted(axis % rank for axis in ((said,) if isinstance(said, int) else said)))


def _moments(x, axes, axis_name=None, mask=None):
    """The mean, the variance and the mean of squares over axes that stay with size 1, and over the devices of a named axis; at least float32."""
    x = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    mean, square = jnp.mean(x, axes, keepdims=True, where=mask), jnp.mean(x * x, axes, keepdims=True, where=mask)
    if axis_name is not None:
        mean, square = lax.pmean((mean, square), axis_name)
        return mean, jnp.maximum(0.0, square - mean * mean), square
    return mean, jnp.var(x, axes, keepdims=True, where=mask), square


class _Norm(Module):
    """What norms end with."""

    @nowrap
    def _finished(self, y, x, features, use_bias=True):
        """Scaled and moved along the axes of features, as the type that was asked for, or that the input and the parameters make together."""
        own, whole = tuple(x.shape[at] for at in features), tuple(size if at in features else 1 for at, size in enumerate(x.shape))
        used = [x]
        if self.use_scale:
            used.append(self.param("scale", self.scale_init, own, self.param_dtype))
            y = y * used[-1].reshape(whole)
        if use_bias:
            used.append(self.param("bias", self.bias_init, own, self.param_dtype))
            y = y + used[-1].reshape(whole)
        return y.astype(jnp.result_type(*used) if self.dtype is None else self.dtype)


class LayerNorm(_Norm):
    epsilon: float = 1e-6
    dtype: Any = None
    param_dtype: Any = jnp.float32
    use_bias: bool = True
    use_scale: bool = True
    bias_init: Callable = _zeros
    scale_init: Callable = _ones
    reduction_axes: Any = -1
    feature_axes: Any = -1
    axis_name: Optional[str] = None
    axis_index_groups: Any = None
    use_fast_variance: bool = True
    force_float32_reductions: bool = True

    @compact
    def __call__(self, x, *, mask=None):
        _refused(self, axis_index_groups=self.axis_index_groups)
        mean, var, _ = _moments(x, _axes(self.reduction_axes, x.ndim), self.axis_name, mask)
        return self._finished((x - mean) * lax.rsqrt(var + self.epsilon), x, _axes(self.feature_axes, x.ndim), self.use_bias)


class RMSNorm(_Norm):
    epsilon: float = 1e-6
    dtype: Any = None
    param_dtype: Any = jnp.float32
    use_scale: bool = True
    scale_init: Callable = _ones
    reduction_axes: Any = -1
    feature_axes: Any = -1
    axis_name: Optional[str] = None
    axis_index_groups: Any = None
    use_fast_variance: bool = True
    force_float32_reductions: bool = True

    @compact
    def __call__(self, x, *, mask=None):
        _refused(self, axis_index_groups=self.axis_index_groups)
        square = _moments(x, _axes(self.reduction_axes, x.ndim), self.axis_name, mask)[2]
        return self._finished(x * lax.rsqrt(square + self.epsilon), x, _axes(self.feature_axes, x.ndim), False)


class BatchNorm(_Norm):
    """Means and deviations of a batch, feature by feature; running ones stand for them where nothing is trained."""
    use_running_average: Optional[bool] = None
    axis: int = -1
    momentum: float = 0.99
    epsilon: float = 1e-5
    dtype: Any = None
    param_dtype: Any = jnp.float32
    use_bias: bool = True
    use_scale: bool = True
    bias_init: Callable = _zeros
    scale_init: Callable = _ones
    axis_name: Optional[str] = None
    axis_index_groups: Any = None
    use_fast_variance: bool = True
    force_float32_reductions: bool = True

    @compact
    def __call__(self, x, use_running_average=None, *, mask=None):
        _refused(self, axis_index_groups=self.axis_index_groups)
        features = _axes(self.axis, x.ndim)
        own, whole = tuple(x.shape[at] for at in features), tuple(size if at in features else 1 for at, size in enumerate(x.shape))
        runs = merge_param("use_running_average", self.use_running_average, use_running_average)
        means = self.variable("batch_stats", "mean", lambda: jnp.zeros(own, jnp.float32))
        variances = self.variable("batch_stats", "var", lambda: jnp.ones(own, jnp.float32))
        if runs:
            mean, var = means.value.reshape(whole), variances.value.reshape(whole)
        else:
            mean, var, _ = _moments(x, tuple(at for at in range(x.ndim) if at not in features), None if self.is_initializing() else self.axis_name, mask)
            if not self.is_initializing():
                for running, now in ((means, mean), (variances, var)):
                    running.value = self.momentum * running.value + (1 - self.momentum) * now.reshape(own)
        return self._finished((x - mean) * lax.rsqrt(var + self.epsilon), x, features, self.use_bias)


class GroupNorm(_Norm):
    """Means and deviations of groups of features, over all places of an example."""
    num_groups: Optional[int] = 32
    group_size: Optional[int] = None
    epsilon: float = 1e-6
    dtype: Any = None
    param_dtype: Any = jnp.float32
    use_bias: bool = True
    use_scale: bool = True
    bias_init: Callable = _zeros
    scale_init: Callable = _ones
    reduction_axes: Any = None
    axis_name: Optional[str] = None
    axis_index_groups: Any = None
    use_fast_variance: bool = True
    force_float32_reductions: bool = True

    @compact
    def __call__(self, x, *, mask=None):
        _refused(self, axis_index_groups=self.axis_index_groups, mask=mask)
        if (self.num_groups is None) == (self.group_size is None):
            raise ValueError("Either `num_groups` or `group_size` should be specified, but not both of them.")
        count = x.shape[-1] // self.group_size if self.group_size is not None else self.num_groups
        if count <= 0 or x.shape[-1] % count:
            raise ValueError(f"Number of groups ({count}) does not divide the number of channels ({x.shape[-1]}).")
        axes = tuple(range(1, x.ndim)) if self.reduction_axes is None else _axes(self.reduction_axes, x.ndim)
        if x.ndim - 1 not in axes:
            raise ValueError("Reduction axes must contain the feature axis.")
        parts = x.reshape(x.shape[:-1] + (count, -1))
        mean, var, _ = _moments(parts, tuple(at for at in axes if at < x.ndim - 1) + (x.ndim,), self.axis_name)
        return self._finished(((parts - mean) * lax.rsqrt(var + self.epsilon)).reshape(x.shape), x, (x.ndim - 1,), self.use_bias)


class InstanceNorm(_Norm):
    epsilon: float = 1e-6
    dtype: Any = None
    param_dtype: Any = jnp.float32
    use_bias: bool = True
    use_scale: bool = True
    bias_init: Callable = _zeros
    scale_init: Callable = _ones
    feature_axes: Any = -1
    axis_name: Optional[str] = None
    axis_index_groups: Any = None
    use_fast_variance: bool = True
    force_float32_reductions: bool = True

    @compact
    def __call__(self, x, *, mask=None):
        _refused(self, axis_index_groups=self.axis_index_groups)
        features = _axes(self.feature_axes, x.ndim)
        mean, var, _ = _moments(x, tuple(at for at in range(1, x.ndim) if at not in features), self.axis_name, mask)
        return self._finished((x - mean) * lax.rsqrt(var + self.epsilon), x, features, self.use_bias)


# ---- others

class Dropout(Module):
    rate: float
    broadcast_dims: Sequence[int] = ()
    deterministic: Optional[bool] = None
    rng_collection: str = "dropout"
    legacy: bool = False

    @compact
    def __call__(self, inputs, deterministic=None, rng=None):
        fixed = merge_param("deterministic", self.deterministic, deterministic)
        if self.rate == 0.0 or fixed:
            return inputs
        if self.rate == 1.0:
            return jnp.zeros_like(inputs)
        rng = self.make_rng(self.rng_collection) if rng is None else rng
        shape = tuple(1 if dim in self.broadcast_dims else size for dim, size in enumerate(inputs.shape))
        kept = jax.random.bernoulli(rng, 1.0 - self.rate, shape)
        return jnp.where(kept, inputs / (1.0 - self.rate), jnp.zeros_like(inputs))


class Sequential(Module):
    layers: Sequence[Callable]

    def __call__(self, *args, **kwargs):
        if not self.layers:
            raise ValueError(f"Empty Sequential module {self.name}.")
        made = self.layers[0](*args, **kwargs)
        for layer in self.layers[1:]:
            made = layer(*made) if isinstance(made, tuple) else layer(**made) if isinstance(made, dict) else layer(made)
        return made


class PReLU(Module):
    param_dtype: Any = jnp.float32
    negative_slope_init: float = 0.01

    @compact
    def __call__(self, inputs):
        slope = self.param("negative_slope", lambda key: jnp.asarray(self.negative_slope_init, self.param_dtype))
        return jnp.where(inputs >= 0, inputs, slope.astype(inputs.dtype) * inputs)


class _Sown:
    """A module as the attention of nnx puts its weights aside."""

    def __init__(self, module):
        self._module = module

    def sow(self, _, name, value):
        self._module.sow("intermediates", name, value)


def dot_product_attention_weights(query, key, bias=None, mask=None, *positional, module=None, **options):
    names = ("broadcast_dropout", "dropout_rng", "dropout_rate", "deterministic", "dtype", "precision")
    return _attention.dot_product_attention_weights(query, key, bias, mask, module=module and _Sown(module), **dict(zip(names, positional)), **options)


def dot_product_attention(query, key, value, bias=None, mask=None, *positional, module=None, **options):
    names = ("broadcast_dropout", "dropout_rng", "dropout_rate", "deterministic", "dtype", "precision")
    return _attention.dot_product_attention(query, key, value, bias, mask, module=module and _Sown(module), **dict(zip(names, positional)), **options)


class MultiHeadDotProductAttention(Module):
    num_heads: int
    dtype: Any = None
    param_dtype: Any = jnp.float32
    qkv_features: Optional[int] = None
    out_features: Optional[int] = None
    broadcast_dropout: bool = True
    dropout_rate: float = 0.0
    deterministic: Optional[bool] = None
    precision: Any = None
    kernel_init: Callable = _lecun
    out_kernel_init: Any = None
    bias_init: Callable = _zeros
    out_bias_init: Any = None
    use_bias: bool = True
    attention_fn: Callable = dot_product_attention
    decode: bool = False
    normalize_qk: bool = False
    force_fp32_for_softmax: bool = False
    qkv_dot_general: Any = None
    out_dot_general: Any = None

    @compact
    def __call__(self, inputs_q, inputs_k=None, inputs_v=None, *, inputs_kv=None, mask=None, deterministic=None, dropout_rng=None, sow_weights=False):
        _refused(self, qkv_dot_general=self.qkv_dot_general, out_dot_general=self.out_dot_general)
        if inputs_kv is not None:
            if inputs_k is not None or inputs_v is not None:
                raise ValueError("If either `inputs_k` or `inputs_v` is not None, `inputs_kv` must be None. If `inputs_kv` is not None, both `inputs_k` and `inputs_v` "
                                 "must be None. We recommend using `inputs_k` and `inputs_v` args, since `inputs_kv` will be deprecated soon.")
            inputs_k = inputs_v = inputs_kv
        if inputs_k is None:
            if inputs_v is not None:
                raise ValueError("`inputs_k` cannot be None if `inputs_v` is not None. To have both `inputs_k` and `inputs_v` be the same value, pass in the value to "
                                 "`inputs_k` and leave `inputs_v` as None.")
            inputs_k = inputs_q
        inputs_v = inputs_k if inputs_v is None else inputs_v
        features = self.qkv_features or inputs_q.shape[-1]
        if features % self.num_heads:
            raise AssertionError(f"Memory dimension ({features}) must be divisible by number of heads ({self.num_heads}).")
        depth = features // self.num_heads
        general = dict(use_bias=self.use_bias, **_same("dtype", "param_dtype", "precision")(self))
        own = dict(general, kernel_init=self.kernel_init, bias_init=self.bias_init)
        query, key, value = (DenseGeneral((self.num_heads, depth), name=name, **own)(x)
                             for name, x in (("query", inputs_q), ("key", inputs_k), ("value", inputs_v)))
        if self.normalize_qk:
            query, key = (LayerNorm(name=name, use_bias=False, dtype=self.dtype, param_dtype=self.param_dtype)(x) for name, x in (("query_ln", query), ("key_ln", key)))
        if self.decode:
            key, value, mask = self._cached(key, value, mask)
        fixed = True
        if self.dropout_rate > 0.0:
            fixed = merge_param("deterministic", self.deterministic, deterministic)
            if not fixed and dropout_rng is None:
                dropout_rng = self.make_rng("dropout")
        x = self.attention_fn(query, key, value, mask=mask, dropout_rng=dropout_rng, dropout_rate=self.dropout_rate, broadcast_dropout=self.broadcast_dropout,
                              deterministic=fixed, dtype=self.dtype, precision=self.precision, **({"module": self} if sow_weights else {}))
        return DenseGeneral(self.out_features or inputs_q.shape[-1], axis=(-2, -1), name="out", kernel_init=self.out_kernel_init or self.kernel_init,
                            bias_init=self.out_bias_init or self.bias_init, **general)(x)

    @nowrap
    def _cached(self, key, value, mask):
        """The keys and values so far, the mask of these, where one more is written."""
        is_there = self.has_variable("cache", "cached_key")
        keys, values = (self.variable("cache", name, jnp.zeros, x.shape, x.dtype) for name, x in (("cached_key", key), ("cached_value", value)))
        index = self.variable("cache", "cache_index", lambda: jnp.array(0, dtype=jnp.int32))
        if not is_there:
            return key, value, mask
        *batch, length, heads, depth = keys.value.shape
        wanted = (*batch, 1, heads, depth)
        if key.shape != wanted:
            raise ValueError(f"Autoregressive cache shape error, expected query shape {wanted} instead got {key.shape}.")
        at = index.value
        places = (0,) * len(batch) + (at, 0, 0)
        keys.value, values.value = (lax.dynamic_update_slice(cache.value, new, places) for cache, new in ((keys, key), (values, value)))
        index.value = at + 1
        return keys.value, values.value, _attention.combine_masks(mask, jnp.broadcast_to(jnp.arange(length) <= at, (*batch, 1, 1, length)))


class MultiHeadAttention(MultiHeadDotProductAttention):
    pass


class SelfAttention(MultiHeadDotProductAttention):
    @compact
    def __call__(self, inputs_q, mask=None, deterministic=None, dropout_rng=None, sow_weights=False):
        return super().__call__(inputs_q, mask=mask, deterministic=deterministic, dropout_rng=dropout_rng, sow_weights=sow_weights)
