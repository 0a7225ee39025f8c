# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions of the page that a program calls. Those without results are called when it has run; those with results only outside of programs, and by the
derivatives and vmaps of what is known there."""
import numpy as np

from . import batching, effects, ops, trees
from .arrays import Array, ConcreteArray, Scope, Tracer, asarray, from_numpy


def callback(function, *args, ordered=False, **kwargs):
    """jax.debug.callback."""
    effects.add(lambda *args, **kwargs: function(*args, **kwargs), args, kwargs)


def _values(tree):
    """The values of a tree's arrays, where they are known; else None."""
    found = []
    for leaf in trees.tree_leaves(tree):
        leaf = leaf.scope.value_of(leaf) if isinstance(leaf, Tracer) else leaf
        if leaf is None or isinstance(leaf, Array) and not isinstance(leaf, ConcreteArray):
            return None
        found.append(np.asarray(leaf))
    return found


def pure_callback(callback, result_shape_dtypes, *args, sharding=None, vectorized=None, vmap_method=None, **kwargs):
    """Calls a function of the page for values that the program uses: possible where its arguments are known."""
    if batching.Level.stack:
        return _of_examples(callback, result_shape_dtypes, args, kwargs, vmap_method, vectorized)
    leaves, form = trees.tree_flatten((args, kwargs))
    leaves = [asarray(leaf) for leaf in leaves]
    values = _values(leaves)
    from .custom import depth
    if depth(leaves):
        raise ValueError("Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking gradients.")
    if values is None:
        raise effects.NeedsValues("jax.pure_callback or io_callback with results")
    given, keywords = trees.tree_unflatten(form, [from_numpy(value) for value in values])
    made = callback(*given, **keywords)
    return trees.tree_map(lambda like, one: _checked(like, one), result_shape_dtypes, made)


def _checked(like, one):
    one = np.asarray(one)
    if one.shape != tuple(like.shape):
        raise RuntimeError(f"Incorrect output shape for return value: Expected: {tuple(like.shape)}, Actual: {one.shape}")
    return from_numpy(one.astype(np.dtype(str(like.dtype)) if str(like.dtype) != "bfloat16" else np.float32))


def _of_examples(callback, like, args, kwargs, vmap_method, vectorized):
    if vmap_method is None and not vectorized:
        raise NotImplementedError("vmap is only supported for `pure_callback` with a `vmap_method` argument: sequential, expand_dims, broadcast_all or legacy_vectorized.")
    with batching.Outside() as outside:
        leaves, form = trees.tree_flatten((args, kwargs))
        leaves = [asarray(leaf) for leaf in leaves]
        size = next((leaf.value.shape[0] for leaf in leaves if outside.is_example(leaf)), None)
        if size is None:
            return pure_callback(callback, like, *args, vmap_method=vmap_method, **kwargs)

        def called(part, types):
            given, keywords = trees.tree_unflatten(form, part)
            return pure_callback(callback, types, *given, vmap_method=vmap_method, **keywords)
        if vmap_method in ("sequential", "sequential_unrolled"):
            rows = [called([leaf.value[at] if outside.is_example(leaf) else leaf for leaf in leaves], like) for at in range(size)]
            return trees.tree_map(lambda *ones: outside.example(ops.stack(ones)), *rows)
        from .transforms import ShapeDtypeStruct
        whole = trees.tree_map(lambda one: ShapeDtypeStruct((size,) + tuple(one.shape), one.dtype), like)
        wide = {"broadcast_all": outside.whole, "legacy_vectorized": lambda leaf: leaf.value if outside.is_example(leaf) else leaf}.get(
            vmap_method, lambda leaf: leaf.value if outside.is_example(leaf) else ops.expand_dims(leaf, 0))
        return trees.tree_map(outside.example, called([wide(leaf) for leaf in leaves], whole))


def io_callback(callback_, result_shape_dtypes, *args, sharding=None, ordered=False, **kwargs):
    if result_shape_dtypes is None or not trees.tree_leaves(result_shape_dtypes):
        callback(callback_, *args, **kwargs)
        return None
    leaves, form = trees.tree_flatten((args, kwargs))
    if any(scope.derives for scope in Scope._stack):
        raise ValueError("IO callbacks do not support JVP.")
    if batching.Level.stack:
        if ordered:
            raise ValueError("Cannot `vmap` ordered IO callbacks.")
        with batching.Outside() as outside:
            leaves = [asarray(leaf) for leaf in leaves]
            size = outside.size
            rows = []
            for at in range(size):
                given, keywords = trees.tree_unflatten(form, [leaf.value[at] if outside.is_example(leaf) else leaf for leaf in leaves])
                rows.append(io_callback(callback_, result_shape_dtypes, *given, **keywords))
            return trees.tree_map(lambda *ones: outside.example(ops.stack(ones)), *rows)
    values = _values([asarray(leaf) for leaf in leaves])
    if values is None or Scope._stack:
        raise effects.NeedsValues("jax.pure_callback or io_callback with results")
    given, keywords = trees.tree_unflatten(form, [from_numpy(value) for value in values])
    made = callback_(*given, **keywords)
    return trees.tree_map(_checked, result_shape_dtypes, made)


def effects_barrier():
    pass
