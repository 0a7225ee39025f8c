# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.debug: drawings of layouts, and printing from programs."""
import builtins

from ._src import effects as _effects
from ._src.callbacks import callback
from ._src.machine import machine as _machine
from ._src.trees import tree_map as _tree_map


def visualize_array_sharding(array, **options):
    inspect_array_sharding(array, callback=lambda sharding: visualize_sharding(array.shape, sharding, **options))


def visualize_sharding(shape, sharding, *, scale=1.0, use_color=None, max_width=None, min_width=None, color_map=None):
    placement = sharding.placement(tuple(shape))
    builtins.print(placement.draw(list(shape), _machine.label, float(scale)), end="")


def inspect_array_sharding(array, *, callback):
    """Of what is traced it is known when the program has run for the first time."""
    def one(leaf):
        while getattr(leaf, "level", 0):
            leaf = leaf.value
        seen = []

        def look(value):
            if not seen:
                seen.append(True)
                callback(value.sharding)
        _effects.add(look, (leaf,), {})
    _tree_map(one, array)


def print(fmt, *args, ordered=False, partitioned=False, skip_format_check=False, **kwargs):
    """Of what is traced the values are printed when the program has run."""
    callback(lambda *args, **kwargs: builtins.print(fmt.format(*args, **kwargs)), *args, **kwargs)


def breakpoint(**_):
    builtins.print("(a breakpoint: no debugger is started here)")


from ._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
