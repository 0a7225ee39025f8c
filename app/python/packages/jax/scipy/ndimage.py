# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.ndimage. Source of the rules: jax-ml/jax, jax/_src/scipy/ndimage.py."""
import functools
import itertools
import operator

from jax import numpy as jnp


def _mirrored(index, size):
    return jnp.abs((index + size - 1) % (2 * (size - 1)) - (size - 1))


_WITHIN = {"constant": lambda index, size: index, "nearest": lambda index, size: jnp.clip(index, 0, size - 1), "wrap": lambda index, size: index % size,
           "mirror": _mirrored, "reflect": lambda index, size: (_mirrored(2 * index + 1, 2 * size + 1) - 1) // 2}


def map_coordinates(input, coordinates, order, mode="constant", cval=0.0):
    """The elements at places between others: of the nearest, or along lines."""
    x, coordinates = jnp.asarray(input), [jnp.asarray(one) for one in coordinates]
    if len(coordinates) != x.ndim:
        raise ValueError(f"coordinates must be a sequence of length input.ndim, but {len(coordinates)} != {x.ndim}")
    if mode not in _WITHIN:
        raise NotImplementedError(f"jax.scipy.ndimage.map_coordinates does not yet support mode {mode}. Currently supported modes are {set(_WITHIN)}.")
    if order not in (0, 1):
        raise NotImplementedError("jax.scipy.ndimage.map_coordinates currently requires order<=1")

    def neighbours(place):
        """(index, weight) of each."""
        if jnp.issubdtype(place.dtype, jnp.integer):
            return [(place, 1)] if order == 0 else [(place, 1), (place + 1, 0)]
        if order == 0:
            return [(jnp.trunc(place + jnp.copysign(0.5, place)).astype(jnp.int32), 1)]
        low = jnp.floor(place)
        return [(low.astype(jnp.int32), 1 - (place - low)), (low.astype(jnp.int32) + 1, place - low)]
    made = 0
    for corner in itertools.product(*map(neighbours, coordinates)):
        part = x[tuple(_WITHIN[mode](index, size) for (index, _), size in zip(corner, x.shape))]
        if mode == "constant":
            is_there = functools.reduce(operator.and_, [(0 <= index) & (index < size) for (index, _), size in zip(corner, x.shape)])
            part = jnp.where(is_there, part, jnp.asarray(cval, x.dtype))
        made = made + functools.reduce(operator.mul, [weight for _, weight in corner]) * part
    if jnp.issubdtype(x.dtype, jnp.integer):
        made = jnp.trunc(made + jnp.copysign(0.5, made))
    return made.astype(x.dtype)
