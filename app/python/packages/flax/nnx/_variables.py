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
