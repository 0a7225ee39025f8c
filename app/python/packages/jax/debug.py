# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.debug: drawings of layouts, and printing from programs."""
import builtins

from ._src.callbacks import callback
from ._src.machine import machine as _machine


def visualize_array_sharding(array, **options):
    visualize_sharding(array.shape, array.sharding, **options)


def visualize_sharding(shape, sharding, *, scale=1.0, **_):
    placement = sharding.placement(tuple(shape))
    builtins.print(placement.draw(list(shape), _machine.label, float(scale)), end="")


def inspect_array_sharding(array, *, callback):
    callback(array.sharding)


def print(fmt, *args, ordered=False, partitioned=False, skip_format_check=False, **kwargs):
    """Of what is traced the values are printed when the program has run."""
    callback(lambda *args, **kwargs: builtins.print(fmt.format(*args, **kwargs)), *args, **kwargs)


def breakpoint(**_):
    builtins.print("(a breakpoint: no debugger is started here)")


from ._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
