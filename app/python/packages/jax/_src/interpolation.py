# SPDX-License-Identifier: GPL-3.0-or-later
"""Where curves through points of a line are least: what searches along a line try next."""
from jax import numpy as jnp


def least_of_cubic(a, value, slope, b, value_b, c, value_c):
    """Of the cubic with this value and slope at a, and these values at b and c."""
    db, dc = b - a, c - a
    rest_b, rest_c = value_b - value - slope * db, value_c - value - slope * dc
    scale = (db * dc) ** 2 * (db - dc)
    second, third = (db ** 3 * rest_c - dc ** 3 * rest_b) / scale, (dc ** 2 * rest_b - db ** 2 * rest_c) / scale
    return a + (-second + jnp.sqrt(second * second - 3.0 * third * slope)) / (3.0 * third)


def least_of_parabola(a, value, slope, b, value_b):
    """Of the parabola with this value and slope at a, and this value at b."""
    db = b - a
    return a - slope / (2.0 * (value_b - value - slope * db) / db ** 2)
