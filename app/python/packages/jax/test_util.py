# SPDX-License-Identifier: GPL-3.0-or-later
"""Derivatives beside differences. Source of the defaults: jax-ml/jax, jax/_src/public_test_util.py."""
import numpy as np

from . import numpy as jnp
from ._src import transforms, trees


def check_grads(f, args, order, modes=("fwd", "rev"), atol=None, rtol=None, eps=1e-2):
    """Raises where the derivative of f along a random direction is not its change."""
    args = tuple(args)
    rng = np.random.RandomState(0)
    directions = trees.tree_map(lambda x: jnp.asarray(rng.standard_normal(np.shape(x)), jnp.float32), args)
    moved = lambda by: f(*trees.tree_map(lambda x, d: x + by * d, args, directions))
    expected = trees.tree_map(lambda a, b: (np.asarray(a) - np.asarray(b)) / (2 * eps), moved(eps), moved(-eps))
    _, found = transforms.jvp(f, args, directions)
    tolerance = dict(atol=2e-2 if atol is None else atol, rtol=2e-2 if rtol is None else rtol)
    for a, b in zip(trees.tree_flatten(found)[0], trees.tree_flatten(expected)[0]):
        np.testing.assert_allclose(np.asarray(a), b, **tolerance)
    if order > 1:
        check_grads(lambda *args: transforms.jvp(f, args, directions)[1], args, order - 1, modes, atol, rtol, eps)
