# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of variables."""
import contextlib
import typing

from ._graph import Variable, no_changes_in_place

A = typing.TypeVar("A")  # of annotations: what a variable holds


class VarDefaults(typing.NamedTuple):
    """How variables are made that do not say it themselves."""
    hijax: bool
    ref: bool


def var_defaults(*, hijax=None, ref=None):
    """The defaults; or a context of these."""
    no_changes_in_place("var_defaults", hijax=hijax, ref=ref)
    return VarDefaults(False, False) if hijax is None and ref is None else contextlib.nullcontext()


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
