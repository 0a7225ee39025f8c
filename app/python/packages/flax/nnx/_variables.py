# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of variables."""
from ._graph import Variable


class Param(Variable):
    """What training changes."""


class BatchStat(Variable):
    pass


class Cache(Variable):
    pass


class Intermediate(Variable):
    pass


class Perturbation(Intermediate):
    """What is added to a value so that its derivative is known."""


class OptVariable(Variable):
    pass


class OptArray(OptVariable):
    pass


def capture(function, *filters, **_):
    """The function, which gives beside its result the state of what its object has put aside: `sow` and `perturb`."""
    from ._graph import Object, pop, state
    filters = filters or (Intermediate,)

    def captured(*args, **kwargs):
        made = function(*args, **kwargs)
        owner = function if isinstance(function, Object) else next((arg for arg in args if isinstance(arg, Object)), getattr(function, "__self__", None))
        found = state(owner, *filters)
        pop(owner, *filters)
        return (made, *found) if isinstance(found, tuple) else (made, found)
    return captured
