# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers whose parameters are used in another form than they are kept in. Source of the rules: google/flax, flax/linen/normalization.py."""
from typing import Any, Callable, Iterable

import jax
import jax.numpy as jnp
from jax import lax
from jax.nn import initializers

from ._layers import _axes
from ._lifted import map_variables
from ._module import Module, compact


def _of_length_one(x, axes, epsilon):
    return x * lax.rsqrt(jnp.sum(x * x, axes, keepdims=True) + epsilon)


class _Reparametrized(Module):
    def _call(self, change, args, kwargs, mutable):
        """The layer, whose parameters are those that `change(name, value)` makes of what is kept."""
        inside = lambda kept: jax.tree_util.tree_map_with_path(lambda path, x: change("/".join([self.layer_instance.name, *(key.key for key in path[1:])]), x), kept)
        return map_variables(lambda layer: layer(*args, **kwargs), trans_in_fn=inside, init=self.is_initializing(), mutable=mutable)(self.layer_instance)


class SpectralNorm(_Reparametrized):
    """Kernels are divided by their largest singular value, which steps of the power iteration follow."""
    layer_instance: Module
    n_steps: int = 1
    epsilon: float = 1e-12
    dtype: Any = None
    param_dtype: Any = jnp.float32
    error_on_non_matrix: bool = False
    collection_name: str = "batch_stats"

    @compact
    def __call__(self, *args, update_stats, **kwargs):
        def change(name, kept):
            kept = jnp.asarray(kept)
            if kept.ndim <= 1 or self.n_steps < 1:
                return kept
            if kept.ndim > 2 and self.error_on_non_matrix:
                raise ValueError(f"Input is {kept.ndim}D but error_on_non_matrix is True")
            matrix, of = kept.reshape(-1, kept.shape[-1]), self.collection_name
            key = None if self.has_variable(of, f"{name}/u") else self.make_rng("params")
            direction = self.variable(of, f"{name}/u", jax.random.normal, key, (1, matrix.shape[-1]), self.param_dtype)
            largest = self.variable(of, f"{name}/sigma", jnp.ones, (), self.param_dtype)
            right = direction.value
            for _ in range(self.n_steps):
                left = _of_length_one(right @ matrix.T, None, self.epsilon)
                right = _of_length_one(left @ matrix, None, self.epsilon)
            left, right = lax.stop_gradient(left), lax.stop_gradient(right)
            value = (left @ matrix @ right.T)[0, 0]
            if update_stats:
                direction.value, largest.value = right, value
            made = (matrix / jnp.where(value != 0, value, 1)).reshape(kept.shape)
            return made.astype(jnp.result_type(kept, right) if self.dtype is None else self.dtype)
        return self._call(change, args, kwargs, True)


class WeightNorm(_Reparametrized):
    """Kernels are of length one for each feature, times a scale that is learned."""
    layer_instance: Module
    epsilon: float = 1e-12
    dtype: Any = None
    param_dtype: Any = jnp.float32
    use_scale: bool = True
    scale_init: Callable = initializers.ones
    feature_axes: Any = -1
    variable_filter: Iterable = ("kernel",)

    @compact
    def __call__(self, *args, **kwargs):
        def change(name, kept):
            kept = jnp.asarray(kept)
            if self.variable_filter and not any(part in name for part in self.variable_filter):
                return kept
            features = () if self.feature_axes is None else _axes(self.feature_axes, kept.ndim)
            used, made = [kept], _of_length_one(kept, tuple(at for at in range(kept.ndim) if at not in features), self.epsilon)
            if self.use_scale:
                used.append(self.param(f"{name}/scale", self.scale_init, tuple(kept.shape[at] for at in features), self.param_dtype))
                made = made * used[-1].reshape([size if at in features else 1 for at, size in enumerate(kept.shape)])
            return made.astype(jnp.result_type(*used) if self.dtype is None else self.dtype)
        return self._call(change, args, kwargs, False)
