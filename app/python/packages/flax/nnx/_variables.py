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
