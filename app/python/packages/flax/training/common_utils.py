# SPDX-License-Identifier: GPL-3.0-or-later
"""Batches for pmap. Source: google/flax, flax/training/common_utils.py."""
import jax
import jax.numpy as jnp
import numpy as np


def shard(xs):
    """The first dimension as (devices, rest)."""
    count = jax.local_device_count()
    return jax.tree.map(lambda x: x.reshape((count, -1) + x.shape[1:]), xs)


def shard_prng_key(prng_key):
    return jax.random.split(prng_key, jax.local_device_count())


def stack_forest(forest):
    return jax.tree.map(lambda *parts: np.stack(parts), *forest)


def get_metrics(device_metrics):
    return stack_forest(jax.device_get(jax.tree.map(lambda x: x[0], device_metrics)))


def onehot(labels, num_classes, on_value=1.0, off_value=0.0):
    return jnp.where(labels[..., None] == jnp.arange(num_classes), on_value, off_value).astype(jnp.float32)
