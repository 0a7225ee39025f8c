# SPDX-License-Identifier: GPL-3.0-or-later
"""Attention with several heads, and its masks. Source of the defaults and the order of keys: google/flax, flax/nnx/nn/attention.py."""
import jax
import jax.numpy as jnp
from jax import lax
from jax._src.options import refuse as _refuse
from jax.nn import initializers

from ._layers import LayerNorm, LinearGeneral, Module, _as
from ._pytree import data
from ._random import Rngs
from ._variables import Cache, Intermediate


def dot_product_attention_weights(query, key, bias=None, mask=None, *, broadcast_dropout=True, dropout_rng=None, dropout_rate=0.0, deterministic=False,
                                  dtype=None, precision=None, module=None, is_causal=False, **options):
    """(.., heads, length of queries, length of keys)"""
    _refuse("nnx.dot_product_attention", options, ("promote_dtype",))
    query, key = _as(dtype, query, key)
    query = query / jnp.sqrt(query.shape[-1]).astype(query.dtype)
    weights = jnp.einsum("...qhd,...khd->...hqk", query, key, precision=precision)
    if bias is not None:
        weights = weights + bias
    if is_causal:
        causal = jnp.tril(jnp.ones(weights.shape[-2:], bool))
        mask = causal if mask is None else jnp.logical_and(mask, causal)
    if mask is not None:
        weights = jnp.where(mask, weights, jnp.finfo(weights.dtype).min)
    weights = jax.nn.softmax(weights).astype(weights.dtype)
    if module is not None:
        module.sow(Intermediate, "attention_weights", weights)
    if not deterministic and dropout_rate > 0.0:
        kept = 1.0 - dropout_rate
        shape = (1,) * (key.ndim - 2) + weights.shape[-2:] if broadcast_dropout else weights.shape
        weights = weights * (jax.random.bernoulli(dropout_rng, kept, shape).astype(weights.dtype) / kept)
    return weights


def dot_product_attention(query, key, value, bias=None, mask=None, *, precision=None, dtype=None, **options):
    query, key, value = _as(dtype, query, key, value)
    if key.shape[-2] != query.shape[-2]:  # several heads of queries for one of keys
        key, value = (jnp.repeat(x, query.shape[-2] // x.shape[-2], axis=-2) for x in (key, value))
    weights = dot_product_attention_weights(query, key, bias, mask, precision=precision, dtype=dtype, **options)
    return jnp.einsum("...hqk,...khd->...qhd", weights, value, precision=precision)


class MultiHeadAttention(Module):
    def __init__(self, num_heads, in_features, qkv_features=None, out_features=None, num_kv_heads=None, in_kv_features=None, *, dtype=None,
                 param_dtype=jnp.float32, broadcast_dropout=True, dropout_rate=0.0, deterministic=None, precision=None,
                 kernel_init=initializers.lecun_normal(), out_kernel_init=None, bias_init=initializers.zeros, out_bias_init=None, use_bias=True,
                 attention_fn=dot_product_attention, decode=None, normalize_qk=False, rngs, keep_rngs=True, kernel_metadata=None,
                 out_kernel_metadata=None, bias_metadata=None, out_bias_metadata=None, query_ln_scale_metadata=None, key_ln_scale_metadata=None, **options):
        _refuse("nnx.MultiHeadAttention", options, ("use_fast_variance", "force_float32_reductions", "promote_dtype"))
        self.num_heads, self.in_features = num_heads, in_features
        self.qkv_features = in_features if qkv_features is None else qkv_features
        self.out_features = in_features if out_features is None else out_features
        self.in_kv_features = in_features if in_kv_features is None else in_kv_features
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads ({self.num_heads}) must be divisible by num_kv_heads ({self.num_kv_heads}).")
        if self.qkv_features % self.num_heads:
            raise ValueError(f"Memory dimension ({self.qkv_features}) must be divisible by 'num_heads' heads ({self.num_heads}).")
        self.head_dim = self.qkv_features // self.num_heads
        self.dtype, self.param_dtype, self.precision, self.use_bias = dtype, param_dtype, precision, use_bias
        self.broadcast_dropout, self.dropout_rate, self.deterministic = broadcast_dropout, dropout_rate, deterministic
        self.attention_fn, self.decode, self.normalize_qk = attention_fn, decode, normalize_qk
        general = dict(dtype=dtype, param_dtype=param_dtype, use_bias=use_bias, precision=precision, rngs=rngs)
        own = dict(general, kernel_init=kernel_init, bias_init=bias_init, kernel_metadata=kernel_metadata, bias_metadata=bias_metadata)
        self.query = LinearGeneral(self.in_features, (self.num_heads, self.head_dim), **own)
        self.key = LinearGeneral(self.in_kv_features, (self.num_kv_heads, self.head_dim), **own)
        self.value = LinearGeneral(self.in_kv_features, (self.num_kv_heads, self.head_dim), **own)
        norm = lambda said: LayerNorm(self.head_dim, use_bias=False, param_dtype=param_dtype, scale_metadata=said, rngs=rngs) if normalize_qk else None
        self.query_ln, self.key_ln = norm(query_ln_scale_metadata), norm(key_ln_scale_metadata)
        self.out = LinearGeneral((self.num_heads, self.head_dim), self.out_features, axis=(-2, -1), kernel_init=out_kernel_init or kernel_init,
                                 bias_init=out_bias_init or bias_init, kernel_metadata=out_kernel_metadata or kernel_metadata,
                                 bias_metadata=out_bias_metadata or bias_metadata, **general)
        self.rngs = rngs["dropout"].fork() if keep_rngs and dropout_rate > 0 else None
        self.cached_key, self.cached_value, self.cache_index = data(None), data(None), data(None)

    def __call__(self, inputs_q, inputs_k=None, inputs_v=None, *, mask=None, deterministic=None, rngs=None, sow_weights=False, decode=None, is_causal=False, **_):
        rngs = self.rngs if rngs is None else rngs["dropout"] if isinstance(rngs, Rngs) else rngs
        if inputs_k is None:
            if inputs_v is not None:
                raise ValueError("`inputs_k` cannot be None if `inputs_v` is not None. To have both `inputs_k` and `inputs_v` be the same value, pass in the value "
                                 "to `inputs_k` and leave `inputs_v` as None.")
            inputs_k = inputs_q
        inputs_v = inputs_k if inputs_v is None else inputs_v
        if inputs_q.shape[-1] != self.in_features:
            raise ValueError(f"Incompatible input dimension, got {inputs_q.shape[-1]} but module expects {self.in_features}.")
        query, key, value = self.query(inputs_q), self.key(inputs_k), self.value(inputs_v)
        if self.normalize_qk:
            query, key = self.query_ln(query), self.key_ln(key)
        decode = self.decode if decode is None else decode
        if decode is None:
            raise ValueError("No `decode` argument was provided to MultiHeadAttention as either a __call__ argument, class attribute, or nnx.flag.")
        if decode:
            key, value, mask = self._cached(key, value, mask)
        dropout_rng, deterministic = None, self.deterministic if deterministic is None else deterministic
        if self.dropout_rate > 0.0:
            if deterministic is None:
                raise ValueError("No `deterministic` argument was provided to MultiHeadAttention as either a __call__ argument, class attribute, or nnx.flag.")
            if not deterministic:
                if rngs is None:
                    raise ValueError("'rngs' must be provided to __call__ method if MultiHeadAttention instance is defined with keep_rngs=False.")
                dropout_rng = rngs()
        else:
            deterministic = True
        x = self.attention_fn(query, key, value, mask=mask, dropout_rng=dropout_rng, dropout_rate=self.dropout_rate, broadcast_dropout=self.broadcast_dropout,
                              deterministic=deterministic, dtype=self.dtype, precision=self.precision, module=self if sow_weights else None,
                              **({"is_causal": True} if is_causal else {}))
        return self.out(x)

    def _cached(self, key, value, mask):
        """The keys and values so far, the mask of these, where one more is written."""
        if self.cached_key is None:
            raise ValueError("Autoregressive cache not initialized, call ``init_cache`` first.")
        *batch, length, heads, depth = self.cached_key.shape
        wanted = (*batch, 1, heads, depth)
        if key.shape != wanted:
            raise ValueError(f"Autoregressive cache shape error, expected key shape {wanted} instead got {key.shape}.")
        at = self.cache_index.value
        places = (0,) * len(batch) + (at, 0, 0)
        key, value = (lax.dynamic_update_slice(cache.value, new, places) for cache, new in ((self.cached_key, key), (self.cached_value, value)))
        self.cached_key.value, self.cached_value.value, self.cache_index.value = key, value, at + 1
        return key, value, combine_masks(mask, jnp.broadcast_to(jnp.arange(length) <= at, (*batch, 1, 1, length)))

    def init_cache(self, input_shape, dtype=jnp.float32):
        shape = (*input_shape[:-1], self.num_kv_heads, self.head_dim)
        self.cached_key, self.cached_value = Cache(jnp.zeros(shape, dtype)), Cache(jnp.zeros(shape, dtype))
        self.cache_index = Cache(jnp.array(0, jnp.int32))


def make_attention_mask(query_input, key_input, pairwise_fn=jnp.multiply, extra_batch_dims=0, dtype=jnp.float32):
    mask = pairwise_fn(jnp.expand_dims(query_input, -1), jnp.expand_dims(key_input, -2))
    mask = jnp.expand_dims(mask, -3)
    return jnp.expand_dims(mask, tuple(range(extra_batch_dims))).astype(dtype)


def make_causal_mask(x, extra_batch_dims=0, dtype=jnp.float32):
    at = jnp.broadcast_to(jnp.arange(x.shape[-1], dtype=jnp.int32), x.shape)
    return make_attention_mask(at, at, jnp.greater_equal, extra_batch_dims, dtype)


def combine_masks(*masks, dtype=jnp.float32):
    masks = [mask for mask in masks if mask is not None]
    if not masks:
        return None
    if any(mask.ndim != masks[0].ndim for mask in masks):
        raise AssertionError(f"masks must have same rank: {tuple(mask.ndim for mask in masks)}")
    made = masks[0]
    for mask in masks[1:]:
        made = jnp.logical_and(made, mask)
    return made.astype(dtype)
