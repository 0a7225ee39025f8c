# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules, and the layers that pages build them of. Source of the defaults: google/flax, flax/nnx/nn."""
import jax
import jax.numpy as jnp
from jax.nn import initializers

from ._graph import Object, copied, walk
from ._variables import BatchStat, Param


def view(node, **attributes):
    """The same variables in modules of their own, whose attributes of these names have other values."""
    made = copied(node, {}, lambda variable: variable)
    made._set(**attributes)
    return made


class Module(Object):
    def _set(self, **attributes):
        for _, node in walk(self):
            for name, value in attributes.items():
                if name in vars(node) and isinstance(node, Object):
                    setattr(node, name, value)

    def train(self, **attributes):
        self._set(**{"deterministic": False, "use_running_average": False, **attributes})

    def eval(self, **attributes):
        self._set(**{"deterministic": True, "use_running_average": True, **attributes})

    def set_attributes(self, **attributes):
        self._set(**attributes)

    def iter_modules(self):
        return ((path, node) for path, node in walk(self) if isinstance(node, Module))

    def iter_children(self):
        return ((name, node) for name, node in sorted(vars(self).items()) if isinstance(node, Module))


def _as(dtype, *values):
    return [value if dtype is None or value is None else jnp.asarray(value, dtype) for value in values]


class Linear(Module):
    def __init__(self, in_features, out_features, *, use_bias=True, dtype=None, param_dtype=jnp.float32, precision=None,
                 kernel_init=initializers.lecun_normal(), bias_init=initializers.zeros, rngs):
        self.kernel = Param(kernel_init(rngs.params(), (in_features, out_features), param_dtype))
        self.bias = Param(bias_init(rngs.params(), (out_features,), param_dtype)) if use_bias else None
        self.in_features, self.out_features, self.use_bias = in_features, out_features, use_bias
        self.dtype, self.param_dtype, self.precision = dtype, param_dtype, precision

    def __call__(self, inputs):
        inputs, kernel, bias = _as(self.dtype, inputs, self.kernel.value, self.bias.value if self.use_bias else None)
        y = jnp.dot(inputs, kernel, precision=self.precision)
        return y if bias is None else y + bias


class Embed(Module):
    def __init__(self, num_embeddings, features, *, dtype=None, param_dtype=jnp.float32,
                 embedding_init=initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=-1, out_axis=0), rngs):
        self.embedding = Param(embedding_init(rngs.params(), (num_embeddings, features), param_dtype))
        self.num_embeddings, self.features, self.dtype = num_embeddings, features, dtype

    def __call__(self, inputs):
        table, = _as(self.dtype, self.embedding.value)
        return jnp.take(table, inputs, axis=0)

    def attend(self, query):
        return jnp.dot(query, self.embedding.value.T)


class LayerNorm(Module):
    def __init__(self, num_features, *, epsilon=1e-6, use_bias=True, use_scale=True, param_dtype=jnp.float32,
                 bias_init=initializers.zeros, scale_init=initializers.ones, rngs):
        self.scale = Param(scale_init(rngs.params(), (num_features,), param_dtype)) if use_scale else None
        self.bias = Param(bias_init(rngs.params(), (num_features,), param_dtype)) if use_bias else None
        self.epsilon = epsilon

    def __call__(self, x):
        y = (x - jnp.mean(x, -1, keepdims=True)) * jax.lax.rsqrt(jnp.var(x, -1, keepdims=True) + self.epsilon)
        y = y if self.scale is None else y * self.scale.value
        return y if self.bias is None else y + self.bias.value


class BatchNorm(Module):
    """Subtracts the mean of a batch and divides by its deviation, feature by feature; running means stand for them where nothing is trained."""

    def __init__(self, num_features, *, use_running_average=False, momentum=0.99, epsilon=1e-5, use_bias=True, use_scale=True,
                 param_dtype=jnp.float32, bias_init=initializers.zeros, scale_init=initializers.ones, rngs):
        self.mean, self.var = BatchStat(jnp.zeros(num_features)), BatchStat(jnp.ones(num_features))
        self.scale = Param(scale_init(rngs.params(), (num_features,), param_dtype)) if use_scale else None
        self.bias = Param(bias_init(rngs.params(), (num_features,), param_dtype)) if use_bias else None
        self.use_running_average, self.momentum, self.epsilon = use_running_average, momentum, epsilon

    def __call__(self, x, use_running_average=None):
        if self.use_running_average if use_running_average is None else use_running_average:
            mean, var = self.mean.value, self.var.value
        else:
            axes = tuple(range(x.ndim - 1))
            mean, var = jnp.mean(x, axes), jnp.var(x, axes)
            for running, now in ((self.mean, mean), (self.var, var)):
                running.value = self.momentum * running.value + (1 - self.momentum) * now
        y = (x - mean) * jax.lax.rsqrt(var + self.epsilon)
        y = y if self.scale is None else y * self.scale.value
        return y if self.bias is None else y + self.bias.value


class RMSNorm(Module):
    def __init__(self, num_features, *, epsilon=1e-6, use_scale=True, param_dtype=jnp.float32, scale_init=initializers.ones, rngs):
        self.scale = Param(scale_init(rngs.params(), (num_features,), param_dtype)) if use_scale else None
        self.epsilon = epsilon

    def __call__(self, x):
        y = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + self.epsilon)
        return y if self.scale is None else y * self.scale.value


class Dropout(Module):
    def __init__(self, rate, *, broadcast_dims=(), deterministic=False, rng_collection="dropout", rngs=None):
        self.rate, self.broadcast_dims, self.deterministic = rate, tuple(broadcast_dims), deterministic
        self.rngs = rngs[rng_collection] if rngs is not None else None

    def __call__(self, inputs, *, deterministic=None, rngs=None):
        fixed = self.deterministic if deterministic is None else deterministic
        if self.rate == 0.0 or fixed:
            return inputs
        if self.rate == 1.0:
            return jnp.zeros_like(inputs)
        stream = rngs.dropout if rngs is not None else self.rngs
        if stream is None:
            raise ValueError("Dropout needs rngs, given when it is made or called.")
        shape = tuple(1 if dim in self.broadcast_dims else size for dim, size in enumerate(inputs.shape))
        kept = jax.random.bernoulli(stream(), 1.0 - self.rate, shape)
        return jnp.where(kept, inputs / (1.0 - self.rate), jnp.zeros_like(inputs))


class Sequential(Module):
    def __init__(self, *layers):
        self.layers = list(layers)

    def __call__(self, *args, **kwargs):
        made = self.layers[0](*args, **kwargs)
        for layer in self.layers[1:]:
            made = layer(*made) if isinstance(made, tuple) else layer(made)
        return made
