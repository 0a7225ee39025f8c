# SPDX-License-Identifier: GPL-3.0-or-later
"""The Bernoulli distribution."""
from ..._src import ops as _ops
from .. import special as _special
from ._scaled import where as _where


def logpmf(k, p, loc=0):
    x = _ops.subtract(k, loc)
    made = _ops.add(_special.xlogy(x, p), _special.xlog1py(_ops.subtract(1, x), _ops.negative(p)))
    return _where(_ops.logical_and(_ops.greater_equal(x, 0), _ops.less_equal(x, 1)), made)


def pmf(k, p, loc=0):
    return _ops.exp(logpmf(k, p, loc))
