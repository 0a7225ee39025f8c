# SPDX-License-Identifier: GPL-3.0-or-later
"""What traced functions do besides computing: print, or call a function. The values that it wants are further results of the program, and it is
called when the program has run: the order of what one program prints is that of the page."""
import numpy as np

from . import refs, trees
from .arrays import Array, ConcreteArray, Scope, asarray


class NeedsValues(Exception):
    """What is named is computed from values that a program would have to know while it is traced: the program is carried out op by op instead."""


def add(function, args, kwargs):
    """Calls the function with the values of the arrays among its arguments, which numbers are too: now, or when they are known."""
    leaves, form = trees.tree_flatten((args, kwargs))
    leaves = [asarray(leaf) if isinstance(leaf, (bool, int, float, complex, np.number, np.bool_)) or _is_of_numbers(leaf) else leaf for leaf in leaves]
    wanted = [leaf for leaf in leaves if isinstance(leaf, Array)]
    if not any(getattr(leaf, "level", 0) for leaf in wanted):
        return _add(function, leaves, form)
    level = max(leaf.level for leaf in wanted)  # once for each example
    size = next(leaf.value.shape[0] for leaf in wanted if leaf.level == level)
    for number in range(size):
        one = trees.tree_unflatten(form, [leaf.value[number] if isinstance(leaf, Array) and leaf.level == level else leaf for leaf in leaves])
        add(function, *one)


def _is_of_numbers(leaf):
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc"


def _add(function, leaves, form):
    is_array = [isinstance(leaf, Array) for leaf in leaves]

    def happen(values):
        given = iter(values)
        args, kwargs = trees.tree_unflatten(form, [next(given) if own else leaf for own, leaf in zip(is_array, leaves)])
        function(*args, **kwargs)
    wanted = [leaf for leaf in leaves if isinstance(leaf, Array)]
    if Scope._stack:
        Scope._stack[-1].effects.append((happen, wanted))
    else:
        happen(wanted)


def wanted(scope):
    """The further results of a function: what it leaves in refs from outside, then what its effects want, in their order."""
    return refs.results(scope) + wanted_later(scope)


def wanted_later(scope):
    return [leaf for _, leaves in scope.effects for leaf in leaves]


def happen(scope, values):
    """Does what a traced function was to do, with the values of what it wanted: refs change at once; within another function, the rest when that has run."""
    count = len(refs.changed(scope))
    refs.happen(scope, values[:count])
    _happen(scope, values[count:])


def _happen(scope, values):
    given = iter(values)
    for function, leaves in scope.effects:
        own = [next(given) for _ in leaves]
        if Scope._stack:
            Scope._stack[-1].effects.append((function, own))
        else:
            function(own)


def of_each_turn(scope, stacked, count, reverse):
    """The same for the body of a loop: `stacked` are its values turn by turn, of which each turn's are cut out where all are known."""
    def happen(values):
        known = [(np.asarray(value), value.engine_dtype) for value in values]
        for turn in reversed(range(count)) if reverse else range(count):
            _happen(scope, [asarray(value[turn], dtype) for value, dtype in known])
    if Scope._stack:
        Scope._stack[-1].effects.append((happen, [asarray(value) for value in stacked]))
    else:
        happen([asarray(value) for value in stacked])
