# SPDX-License-Identifier: GPL-3.0-or-later
"""optax.perturbations: functions of inputs with noise, on average, whose derivatives need none of the function. Source of the estimator: google-deepmind/optax,
optax/perturbations."""
import jax
import jax.numpy as jnp

from . import tree


class Normal:
    def sample(self, key, sample_shape=(), dtype=float):
        return jax.random.normal(key, sample_shape, dtype)

    def log_prob(self, inputs):
        return -0.5 * inputs ** 2


class Gumbel:
    def sample(self, key, sample_shape=(), dtype=float):
        return jax.random.gumbel(key, sample_shape, dtype)

    def log_prob(self, inputs):
        return -inputs - jnp.exp(-inputs)


def make_perturbed_fun(fun, num_samples=1000, sigma=0.1, noise=Gumbel(), use_baseline=True):
    """A function of a key and of inputs: the mean of `fun` at inputs with noise. It is differentiated as how likely the noise is."""
    def of_sample(key, x, baseline):
        drawn = tree.random_like(key, x, sampler=noise.sample)
        at = jax.lax.stop_gradient(jax.tree.map(lambda x, z: x + sigma * z, x, drawn))
        likely = tree.sum(jax.tree.map(lambda x, at: noise.log_prob((at - x) / sigma), x, at))
        weight = jnp.exp(likely - jax.lax.stop_gradient(likely))  # 1, with the derivative of the logarithm
        if baseline is None:
            return tree.scale(weight, fun(at))
        return jax.tree.map(lambda found, usual: weight * found + (1 - weight) * usual, fun(at), baseline)

    def mean(key, x):
        baseline = fun(jax.lax.stop_gradient(x)) if use_baseline else None
        found = jax.vmap(of_sample, in_axes=(0, None, None))(jax.random.split(key, num_samples), x, baseline)
        return jax.tree.map(lambda rows: jnp.mean(rows, 0), found)
    return mean
