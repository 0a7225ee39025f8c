# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules, and the layers that pages build them of. Source of the defaults: google/flax, flax/nnx/nn."""
import math

import jax
import jax.numpy as jnp
from jax._src.options import refuse as _refuse
from jax.nn import initializers

from ._graph import Node, Variable, copied, is_variable, walk
from ._pytree import Pytree
from ._random import Rngs
from ._variables import BatchStat, Param, Perturbation


def view(node, **attributes):
    """The same variables in modules of their own, whose attributes of these names have other values."""
    made = copied(node, {}, lambda variable: variable)
    made._set(**attributes)
    return made


def with_attributes(node, *filters, **attributes):
    return view(node, **attributes)


def iter_modules(node):
    return ((path, part) for path, part in walk(node) if isinstance(part, Module))


def iter_children(node):
    return ((name, part) for name, part in sorted(vars(node).items()) if isinstance(part, Module))


def view_info(node, *_, **__):
    """What `view` may change of each module."""
    lines = []
    for path, part in iter_modules(node):
        found = [name for name in ("deterministic", "use_running_average", "decode") if name in vars(part)]
        if found:
            lines.append(f"{'/'.join(map(str, path)) or '.'}: {type(part).__name__}({', '.join(f'{name}={vars(part)[name]!r}' for name in found)})")
    return "\n".join(lines)


noted = []  # for each `capture` under way, the innermost last: the variables in which something was put aside, by their ids


def _note(variable):
    if noted:
        noted[-1][id(variable)] = variable


class Module(Pytree):
    def _set(self, **attributes):
        for _, node in walk(self):
            for name, value in attributes.items():
                if name in vars(node) and isinstance(node, Node):
                    setattr(node, name, value)

    def train(self, **attributes):
        self._set(**{"deterministic": False, "use_running_average": False, **attributes})

    def eval(self, **attributes):
        self._set(**{"deterministic": True, "use_running_average": True, **attributes})

    def set_attributes(self, **attributes):
        self._set(**attributes)

    def sow(self, variable_type, name, value, reduce_fn=lambda before, new: (*before, new), init_fn=lambda: ()):
        """Puts a value aside, beside those before: within `capture` where it takes values of this kind, else as an attribute."""
        captures = vars(self).get("__captures__")
        if captures is not None:
            for variable in captures:
                if type(variable) is variable_type:
                    before = variable.value[name] if name in variable.value else init_fn()
                    variable.value = {**variable.value, name: reduce_fn(before, value)}
                    _note(variable)
                    return True
            return False
        known = self._known(name, variable_type, lambda: init_fn())
        known.value = reduce_fn(known.value, value)
        return True

    def perturb(self, name, value, variable_type=Perturbation):
        """The value and a zero, by which the derivative of the value is known."""
        captures = vars(self).get("__captures__")
        if captures is None:
            return self._known(name, variable_type, lambda: jax.tree.map(jnp.zeros_like, value)).value + value
        for variable in captures:
            if type(variable) is variable_type:
                if name not in variable.value:
                    variable.value = {**variable.value, name: jax.tree.map(jnp.zeros_like, value)}
                    _note(variable)
                return variable.value[name] + value
        return value

    def _known(self, name, kind, start):
        """The attribute that holds a variable of a kind, made where there is none."""
        if not hasattr(self, name):
            setattr(self, name, kind(start()))
        known = getattr(self, name)
        if not is_variable(known):
            raise ValueError(f"Expected '{name}' to be a Variable, got {type(known).__name__}")
        if type(known) is not kind:
            raise ValueError(f"Expected '{name}' to be of type '{kind.__name__}', got '{type(known).__name__}'")
        return known

    def iter_modules(self):
        return ((path, node) for path, node in walk(self) if isinstance(node, Module))

    def iter_children(self):
        return ((name, node) for name, node in sorted(vars(self).items()) if isinstance(node, Module))


def _sizes(value):
    return (value,) if isinstance(value, int) else tuple(value)


def _as(dtype, *values):
    return [value if dtype is None or value is None else jnp.asarray(value, dtype) for value in values]


class Linear(Module):
    def __init__(self, in_features, out_features, *, use_bias=True, dtype=None, param_dtype=jnp.float32, precision=None,
                 kernel_init=initializers.lecun_normal(), bias_init=initializers.zeros, rngs, kernel_metadata=None, bias_metadata=None, **options):
        _refuse("nnx.Linear", options, ("use_fast_variance", "force_float32_reductions", "promote_dtype"))
        self.kernel = Param(kernel_init(rngs.params(), (in_features, out_features), param_dtype), **(kernel_metadata or {}))
        self.bias = Param(bias_init(rngs.params(), (out_features,), param_dtype), **(bias_metadata or {})) if use_bias else None
        self.in_features, self.out_features, self.use_bias = in_features, out_features, use_bias
        self.dtype, self.param_dtype, self.precision = dtype, param_dtype, precision

    def __call__(self, inputs):
        inputs, kernel, bias = _as(self.dtype, inputs, self.kernel.value, self.bias.value if self.use_bias else None)
        y = jnp.dot(inputs, kernel, precision=self.precision)
        return y if bias is None else y + bias


class LinearGeneral(Module):
    """A product over several dimensions; `batch_axis` are dimensions with a kernel for each place."""

    def __init__(self, in_features, out_features, *, axis=-1, batch_axis=None, use_bias=True, dtype=None, param_dtype=jnp.float32,
                 kernel_init=initializers.lecun_normal(), bias_init=initializers.zeros, precision=None, rngs, kernel_metadata=None, bias_metadata=None, **options):
        _refuse("nnx.LinearGeneral", options, ("use_fast_variance", "force_float32_reductions", "promote_dtype"))
        self.in_features, self.out_features, self.axis = _sizes(in_features), _sizes(out_features), _sizes(axis)
        self.batch_axis = tuple((batch_axis or {}).items())
        self.use_bias, self.dtype, self.param_dtype, self.precision = use_bias, dtype, param_dtype, precision
        if len(self.in_features) != len(self.axis):
            raise ValueError(f"in_features and axis must have the same length. Got {self.in_features} and {self.axis}.")
        batch = tuple(size for _, size in self.batch_axis)

        def drawn(init, shape, flat):
            made = init(rngs.params(), flat, param_dtype)
            if hasattr(made, "metadata"):
                made.value = made.value.reshape(shape)
                return made
            return made.reshape(shape)
        rows, columns = math.prod(batch + self.in_features), math.prod(self.out_features)
        self.kernel = Param(drawn(kernel_init, batch + self.in_features + self.out_features, (rows, columns)), **(kernel_metadata or {}))
        shape = batch + self.out_features
        self.bias = Param(drawn(bias_init, shape, (math.prod(shape),)), **(bias_metadata or {})) if use_bias else None

    def __call__(self, inputs, out_sharding=None):
        axes = tuple(axis % inputs.ndim for axis in self.axis)
        batch = tuple(axis % inputs.ndim for axis, _ in self.batch_axis)
        inputs_, kernel, bias = _as(self.dtype, inputs, self.kernel.value, self.bias.value if self.use_bias else None)
        made = jax.lax.dot_general(inputs_, kernel, ((axes, tuple(range(len(batch), len(batch) + len(axes)))), (batch, tuple(range(len(batch))))),
                                   precision=self.precision)
        if bias is None:
            return made
        front = tuple(inputs.shape[axis] if axis in batch else 1 for axis in range(inputs.ndim) if axis not in axes)
        return made + bias.reshape(front + self.out_features)


class Einsum(Module):
    def __init__(self, einsum_str, kernel_shape, bias_shape=None, *, dtype=None, param_dtype=jnp.float32, precision=None,
                 kernel_init=initializers.lecun_normal(), bias_init=initializers.zeros, kernel_metadata=None, bias_metadata=None, rngs, **options):
        _refuse("nnx.Einsum", options, ("use_fast_variance", "force_float32_reductions", "promote_dtype"))
        self.einsum_str, self.kernel_shape, self.bias_shape = einsum_str.replace(" ", ""), kernel_shape, bias_shape
        self.kernel = Param(kernel_init(rngs.params(), kernel_shape, param_dtype), **(kernel_metadata or {}))
        self.bias = Param(bias_init(rngs.params(), bias_shape, param_dtype), **(bias_metadata or {})) if bias_shape is not None else None
        self.dtype, self.precision = dtype, precision

    def __call__(self, inputs, einsum_str=None):
        inputs, kernel, bias = _as(self.dtype, inputs, self.kernel.value, self.bias.value if self.bias is not None else None)
        y = jnp.einsum(einsum_str or self.einsum_str, inputs, kernel, precision=self.precision)
        return y if bias is None else y + bias


class LoRAParam(Param):
    pass


class LoRA(Module):
    """A product of two small matrices, added to what a module gives."""

    def __init__(self, in_features, rank, out_features, *, base_module=None, dtype=None, param_dtype=jnp.float32,
                 a_initializer=initializers.he_uniform(), b_initializer=initializers.zeros,
                 lora_param_type=LoRAParam, a_metadata=None, b_metadata=None, rngs, **options):
        _refuse("nnx.LoRA", options, ("use_fast_variance", "force_float32_reductions", "promote_dtype"))
        self.in_features, self.out_features, self.base_module, self.dtype = in_features, out_features, base_module, dtype
        self.lora_a = lora_param_type(a_initializer(rngs.params(), (in_features, rank), param_dtype), **(a_metadata or {}))
        self.lora_b = lora_param_type(b_initializer(rngs.params(), (rank, out_features), param_dtype), **(b_metadata or {}))

    def __call__(self, x):
        x, a, b = _as(self.dtype, x, self.lora_a.value, self.lora_b.value)
        made = x @ a @ b
        return made if self.base_module is None else made + self.base_module(x)


class Embed(Module):
    def __init__(self, num_embeddings, features, *, dtype=None, param_dtype=jnp.float32,
                 embedding_init=initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=-1, out_axis=0), embedding_metadata=None, rngs, **options):
        _refuse("nnx.Embed", options, ("use_fast_variance", "force_float32_reductions", "promote_dtype"))
        self.embedding = Param(embedding_init(rngs.params(), (num_embeddings, features), param_dtype), **(embedding_metadata or {}))
        self.num_embeddings, self.features, self.dtype = num_embeddings, features, dtype

    def __call__(self, inputs):
        table, = _as(self.dtype, self.embedding.value)
        return jnp.take(table, inputs, axis=0)

    def attend(self, query):
        return jnp.dot(query, self.embedding.value.T)


class _Norm(Module):
    """What norms end with. Means are of float32 at least, as Flax's force_float32_reductions has them. Features lie along `feature_axes`."""
    feature_axes = -1

    def _finished(self, y, x):
        """Scaled and moved, as the type that was asked for, or that the input and the parameters make together."""
        axes = _axes(self.feature_axes, x.ndim)
        along = lambda one: one.value.reshape([size if axis in axes else 1 for axis, size in enumerate(x.shape)])
        own = [one.value for one in (self.scale, getattr(self, "bias", None)) if one is not None]
        y = y if self.scale is None else y * along(self.scale)
        y = y if getattr(self, "bias", None) is None else y + along(self.bias)
        return y.astype(jnp.result_type(x, *own) if self.dtype is None else self.dtype)


def _axes(axes, rank):
    return tuple(axis % rank for axis in ((axes,) if isinstance(axes, int) else axes))


def _wide(x):
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


class LayerNorm(_Norm):
    def __init__(self, num_features, *, epsilon=1e-6, use_bias=True, use_scale=True, param_dtype=jnp.float32,
                 bias_init=initializers.zeros, scale_init=initializers.ones, bias_metadata=None, scale_metadata=None, reduction_axes=-1, feature_axes=-1,
                 rngs, dtype=None, **options):
        _refuse("nnx.LayerNorm", options, ("use_fast_variance", "force_float32_reductions", "promote_dtype"))
        self.scale = Param(scale_init(rngs.params(), (num_features,), param_dtype), **(scale_metadata or {})) if use_scale else None
        self.bias = Param(bias_init(rngs.params(), (num_features,), param_dtype), **(bias_metadata or {})) if use_bias else None
        self.epsilon, self.dtype, self.reduction_axes, self.feature_axes = epsilon, dtype, reduction_axes, feature_axes

    def __call__(self, inputs):
        x = _wide(inputs)
        axes = _axes(self.reduction_axes, x.ndim)
        y = (x - jnp.mean(x, axes, keepdims=True)) * jax.lax.rsqrt(jnp.var(x, axes, keepdims=True) + self.epsilon)
        return self._finished(y, inputs)


class BatchNorm(_Norm):
    """Subtracts the mean of a batch and divides by its deviation, feature by feature; running means stand for them where nothing is trained."""

    def __init__(self, num_features, *, use_running_average=False, momentum=0.99, epsilon=1e-5, use_bias=True, use_scale=True,
                 param_dtype=jnp.float32, bias_init=initializers.zeros, scale_init=initializers.ones, bias_metadata=None, scale_metadata=None,
                 rngs, dtype=None, **options):
        _refuse("nnx.BatchNorm", options, ("use_fast_variance", "force_float32_reductions", "promote_dtype"))
        self.mean, self.var = BatchStat(jnp.zeros(num_features)), BatchStat(jnp.ones(num_features))
        self.scale = Param(scale_init(rngs.params(), (num_features,), param_dtype), **(scale_metadata or {})) if use_scale else None
        self.bias = Param(bias_init(rngs.params(), (num_features,), param_dtype), **(bias_metadata or {})) if use_bias else None
        self.use_running_average, self.momentum, self.epsilon = use_running_average, momentum, epsilon
        self.dtype = dtype

    def __call__(self, inputs, use_running_average=None):
        x = _wide(inputs)
        if self.use_running_average if use_running_average is None else use_running_average:
            mean, var = self.mean.value, self.var.value
        else:
            axes = tuple(range(x.ndim - 1))
            mean, var = jnp.mean(x, axes), jnp.var(x, axes)
            for running, now in ((self.mean, mean), (self.var, var)):
                running.value = self.momentum * running.value + (1 - self.momentum) * now
        y = (x - mean) * jax.lax.rsqrt(var + self.epsilon)
        return self._finished(y, inputs)


class GroupNorm(_Norm):
    """The mean and the deviation of groups of features, over all places of an example."""

    def __init__(self, num_features, num_groups=32, group_size=None, *, epsilon=1e-6, use_bias=True, use_scale=True, param_dtype=jnp.float32,
                 bias_init=initializers.zeros, scale_init=initializers.ones, bias_metadata=None, scale_metadata=None, rngs, dtype=None, **options):
        _refuse("nnx.GroupNorm", options, ("use_fast_variance", "force_float32_reductions", "promote_dtype"))
        self.num_features, self.epsilon, self.dtype = num_features, epsilon, dtype
        self.num_groups = num_features // group_size if group_size is not None else num_groups
        if num_features % self.num_groups:
            raise ValueError(f"Number of features ({num_features}) is not multiple of the number of groups ({self.num_groups}).")
        self.scale = Param(scale_init(rngs.params(), (num_features,), param_dtype), **(scale_metadata or {})) if use_scale else None
        self.bias = Param(bias_init(rngs.params(), (num_features,), param_dtype), **(bias_metadata or {})) if use_bias else None

    def __call__(self, inputs, *, mask=None):
        _refuse("nnx.GroupNorm", {"mask": mask})
        x = _wide(inputs)
        parts = x.reshape(x.shape[:-1] + (self.num_groups, -1))
        axes = tuple(range(1, x.ndim - 1)) + (x.ndim,)
        y = (parts - jnp.mean(parts, axes, keepdims=True)) * jax.lax.rsqrt(jnp.var(parts, axes, keepdims=True) + self.epsilon)
        y = y.reshape(x.shape)
        return self._finished(y, inputs)


class InstanceNorm(GroupNorm):
    def __init__(self, num_features, **options):
        super().__init__(num_features, num_features, **options)


class LoRALinear(Linear):
    """A linear layer with a LoRA beside it."""

    def __init__(self, in_features, out_features, *, lora_rank, lora_dtype=None, lora_param_dtype=jnp.float32, a_initializer=initializers.he_uniform(),
                 b_initializer=initializers.zeros, lora_param_type=LoRAParam, lora_base_module=None, a_metadata=None, b_metadata=None, rngs, **options):
        _refuse("nnx.LoRALinear", {"lora_base_module": lora_base_module})
        super().__init__(in_features, out_features, rngs=rngs, **options)
        self.lora = LoRA(in_features, lora_rank, out_features, dtype=lora_dtype, param_dtype=lora_param_dtype, a_initializer=a_initializer,
                         b_initializer=b_initializer, lora_param_type=lora_param_type, a_metadata=a_metadata, b_metadata=b_metadata, rngs=rngs)

    def __call__(self, x):
        return super().__call__(x) + self.lora(x)


class Identity(Module):
    def __init__(self, *_, **__):
        pass

    def __call__(self, x):
        return x


class PReLU(Module):
    def __init__(self, negative_slope_init=0.01, param_dtype=jnp.float32):
        self.negative_slope = Param(jnp.asarray(negative_slope_init, param_dtype))

    def __call__(self, x):
        return jnp.where(x >= 0, x, self.negative_slope.value * x)


class RMSNorm(_Norm):
    def __init__(self, num_features, *, epsilon=1e-6, use_scale=True, param_dtype=jnp.float32, scale_init=initializers.ones, scale_metadata=None,
                 reduction_axes=-1, feature_axes=-1, rngs, dtype=None, **options):
        _refuse("nnx.RMSNorm", options, ("use_fast_variance", "force_float32_reductions", "promote_dtype"))
        self.scale = Param(scale_init(rngs.params(), (num_features,), param_dtype), **(scale_metadata or {})) if use_scale else None
        self.epsilon, self.dtype, self.reduction_axes, self.feature_axes = epsilon, dtype, reduction_axes, feature_axes

    def __call__(self, inputs):
        x = _wide(inputs)
        y = x * jax.lax.rsqrt(jnp.mean(x * x, _axes(self.reduction_axes, x.ndim), keepdims=True) + self.epsilon)
        return self._finished(y, inputs)


class Dropout(Module):
    def __init__(self, rate, *, broadcast_dims=(), deterministic=False, rng_collection="dropout", rngs=None):
        self.rate, self.broadcast_dims, self.deterministic = rate, tuple(broadcast_dims), deterministic
        self.rng_collection = rng_collection
        self.rngs = rngs[rng_collection].fork() if isinstance(rngs, Rngs) else rngs.fork() if rngs is not None else None

    def __call__(self, inputs, *, deterministic=None, rngs=None):
        fixed = self.deterministic if deterministic is None else deterministic
        if self.rate == 0.0 or fixed:
            return inputs
        if self.rate == 1.0:
            return jnp.zeros_like(inputs)
        stream = rngs[self.rng_collection] if isinstance(rngs, Rngs) else rngs if rngs is not None else self.rngs
        if stream is None:
            raise ValueError("`deterministic` is False, but no `rngs` argument was provided to Dropout as either a __call__ argument or class attribute.")
        shape = tuple(1 if dim in self.broadcast_dims else size for dim, size in enumerate(inputs.shape))
        kept = jax.random.bernoulli(stream() if callable(stream) else stream, 1.0 - self.rate, shape)
        return jnp.where(kept, inputs / (1.0 - self.rate), jnp.zeros_like(inputs))
