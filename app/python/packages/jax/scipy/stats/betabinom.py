# SPDX-License-Identifier: GPL-3.0-or-later
"""The beta-binomial distribution."""
from ..._src import ops as _ops
from .. import special as _special
from ._scaled import where as _where


def logpmf(k, n, a, b, loc=0):
    y, n = _ops.multiply(1.0, _ops.floor(_ops.multiply(1.0, _ops.subtract(k, loc)))), _ops.multiply(1.0, n)
    count = _ops.negative(_ops.add(_ops.log(_ops.add(n, 1.0)), _special.betaln(_ops.add(_ops.subtract(n, y), 1.0), _ops.add(y, 1.0))))
    made = _ops.add(count, _ops.subtract(_special.betaln(_ops.add(y, a), _ops.add(_ops.subtract(n, y), b)), _special.betaln(a, b)))
    return _where(_ops.logical_and(_ops.greater_equal(y, 0), _ops.less_equal(y, n)), made)


def pmf(k, n, a, b, loc=0):
    return _ops.exp(logpmf(k, n, a, b, loc))
