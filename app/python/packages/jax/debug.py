# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.debug: drawings of layouts, and printing from programs."""
import warnings

from ._src.machine import machine as _machine


def visualize_array_sharding(array, **options):
    visualize_sharding(array.shape, array.sharding, **options)


def visualize_sharding(shape, sharding, *, scale=1.0, **_):
    placement = sharding.placement(tuple(shape))
    __import__("builtins").print(placement.draw(list(shape), _machine.label, float(scale)), end="")


def inspect_array_sharding(array, *, callback):
    callback(array.sharding)


def print(fmt, *args, **kwargs):
    import builtins
    if any(hasattr(value, "scope") or getattr(value, "level", 0) for value in [*args, *kwargs.values()]):
        warnings.warn("jax.debug.print inside a traced function prints nothing here", stacklevel=2)
        return
    builtins.print(fmt.format(*args, **kwargs))
