# SPDX-License-Identifier: GPL-3.0-or-later
"""Derivatives beside differences. Source of the defaults: jax-ml/jax, jax/_src/public_test_util.py."""
import numpy as np

from . import numpy as jnp
from ._src import transforms, trees


def check_grads(f, args, order, modes=("fwd", "rev"), atol=None, rtol=None, eps=None):
    """Raises where the derivative of f along a random direction is not its change: `fwd` by jvp, `rev` by vjp; those of higher order of these derivatives."""
    args, eps = tuple(args), 1e-2 if eps is None else eps
    rng = np.random.RandomState(0)
    random = lambda like: trees.tree_map(lambda x: jnp.asarray(rng.standard_normal(np.shape(x)), jnp.float32), like)
    directions, value = random(args), f(*args)
    moved = lambda by: f(*trees.tree_map(lambda x, d: x + by * d, args, directions))
    change = trees.tree_map(lambda a, b: (np.asarray(a) - np.asarray(b)) / (2 * eps), moved(eps), moved(-eps))
    tolerance = dict(atol=2e-2 if atol is None else atol, rtol=2e-2 if rtol is None else rtol)
    total = lambda a, b: sum(np.vdot(np.asarray(x), np.asarray(y)) for x, y in zip(trees.tree_flatten(a)[0], trees.tree_flatten(b)[0]))
    if "fwd" in modes:
        along = lambda *args: transforms.jvp(f, args, directions)[1]
        for a, b in zip(trees.tree_flatten(along(*args))[0], trees.tree_flatten(change)[0]):
            np.testing.assert_allclose(np.asarray(a), b, **tolerance)
        if order > 1:
            check_grads(along, args, order - 1, modes, atol, rtol, eps)
    if "rev" in modes:
        cotangents = random(value)
        back = lambda *args: transforms.vjp(f, *args)[1](cotangents)
        np.testing.assert_allclose(total(back(*args), directions), total(cotangents, change), **tolerance)
        if order > 1:
            check_grads(back, args, order - 1, modes, atol, rtol, eps)
