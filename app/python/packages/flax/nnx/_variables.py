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


def capture(function, *filters, init=None, **_):
    """The function or the module, which gives beside its result the state of what was put aside while it ran: by `sow` and `perturb`. `init` are states that
    what was put aside begins with."""
    from ._graph import Node, Variable, part_of, pop, state, variables_of
    filters = filters or (Intermediate,)

    def captured(*args, **kwargs):
        owners = [one for one in (function, getattr(function, "__self__", None), *args) if isinstance(one, Node)]
        owner = owners[0] if owners else None
        known = [] if owner is None else [variable for _, variable in variables_of(owner)]
        if init is not None and owner is not None:
            for path, value in init.flat_state():
                at = owner
                for name in path[:-1]:
                    at = part_of(at, name)
                if path[-1] not in vars(at):
                    setattr(at, path[-1], value.type(value.value))
        made = function(*args, **kwargs)
        if owner is None:
            from ._graph import State
            return made, State()
        fresh = lambda path, variable: not any(variable is one for one in known) if isinstance(variable, Variable) else True
        found = state(owner, *filters)
        pop(owner, lambda path, variable: fresh(path, variable) and _is_one_of(filters, path, variable))
        return (made, *found) if isinstance(found, tuple) else (made, found)
    return captured


def _is_one_of(filters, path, variable):
    from ._graph import matches
    return any(matches(one, path, variable) for one in filters)
