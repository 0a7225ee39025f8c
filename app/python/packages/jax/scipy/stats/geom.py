# SPDX-License-Identifier: GPL-3.0-or-later
"""The geometric distribution."""
from ..._src import ops as _ops
from .. import special as _special
from ._scaled import where as _where


def logpmf(k, p, loc=0):
    x = _ops.subtract(k, loc)
    return _where(_ops.greater(x, 0), _ops.add(_special.xlog1py(_ops.subtract(x, 1), _ops.negative(p)), _ops.log(p)))


def pmf(k, p, loc=0):
    return _ops.exp(logpmf(k, p, loc))
