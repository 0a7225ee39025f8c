# SPDX-License-Identifier: GPL-3.0-or-later
"""chex, as pages that check shapes import it, where it is not installed."""
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = ArrayNumpy = ArrayDevice = Numeric = Scalar = Shape = ArrayTree = PRNGKey = ArrayDType = ArrayBatched = ArraySharded = Any  # of annotations


def dataclass(cls=None, *, frozen=False, kw_only=False, mappable_dataclass=True, init=True, repr=True, eq=False, **_):
    """A dataclass that is a tree of its fields."""
    def made(cls):
        kind = dataclasses.dataclass(cls, frozen=frozen, kw_only=kw_only, init=init, repr=repr, eq=eq)
        names = [field.name for field in dataclasses.fields(kind)]
        kind.replace = lambda self, **changes: dataclasses.replace(self, **changes)
        if mappable_dataclass:
            kind.__getitem__ = lambda self, name: getattr(self, name)
            kind.keys, kind.values = (lambda self: names), (lambda self: [getattr(self, name) for name in names])
        jax.tree_util.register_dataclass(kind, names, [])
        return kind
    return made if cls is None else made(cls)


def _listed(arrays):
    return list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]


def _fail(name, text):
    raise AssertionError(f"[Chex] Assertion {name} failed: {text}")


def assert_shape(inputs, expected_shapes):
    shapes = expected_shapes if isinstance(expected_shapes, list) else [expected_shapes] * len(_listed(inputs))
    for number, (x, wanted) in enumerate(zip(_listed(inputs), shapes)):
        own = jnp.shape(x)
        if Ellipsis in wanted:
            at = wanted.index(Ellipsis)
            wanted = wanted[:at] + own[at:len(own) - len(wanted) + at + 1] + wanted[at + 1:]
        fits = len(own) == len(wanted) and all(size is None or have in (size if isinstance(size, (set, frozenset)) else {size}) for have, size in zip(own, wanted))
        if not fits:
            _fail("assert_shape", f"Error in shape compatibility check: input {number} has shape {own} but expected {wanted}.")


def assert_rank(inputs, expected_ranks):
    ranks = expected_ranks if isinstance(expected_ranks, list) else [expected_ranks] * len(_listed(inputs))
    for number, (x, rank) in enumerate(zip(_listed(inputs), ranks)):
        if jnp.ndim(x) not in (rank if isinstance(rank, (set, frozenset)) else {rank}):
            _fail("assert_rank", f"Error in rank compatibility check: input {number} has rank {jnp.ndim(x)} (shape {jnp.shape(x)}) but expected {rank}.")


def assert_equal_shape(inputs):
    shapes = [jnp.shape(x) for x in inputs]
    if any(shape != shapes[0] for shape in shapes):
        _fail("assert_equal_shape", f"Arrays have different shapes: {shapes}.")


def assert_type(inputs, expected_types):
    kinds = expected_types if isinstance(expected_types, list) else [expected_types] * len(_listed(inputs))
    for number, (x, kind) in enumerate(zip(_listed(inputs), kinds)):
        own = jnp.asarray(x).dtype
        fits = jnp.issubdtype(own, {float: jnp.floating, int: jnp.integer, bool: jnp.bool_}.get(kind, kind)) if kind in (float, int, bool) else own == jnp.dtype(kind)
        if not fits:
            _fail("assert_type", f"Error in type compatibility check: input {number} has type {own} but expected {kind}.")


def assert_equal(first, second):
    if first != second:
        _fail("assert_equal", f"{first} != {second}")


def assert_trees_all_close(*trees, rtol=1e-6, atol=0.0):
    for other in trees[1:]:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol, atol), trees[0], other)


def assert_trees_all_equal(*trees):
    for other in trees[1:]:
        jax.tree.map(np.testing.assert_array_equal, trees[0], other)


def assert_tree_all_finite(tree):
    if not all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(tree)):
        _fail("assert_tree_all_finite", "the tree contains non-finite values")


def assert_scalar(x):
    if jnp.ndim(x):
        _fail("assert_scalar", f"{x} is not a scalar")
