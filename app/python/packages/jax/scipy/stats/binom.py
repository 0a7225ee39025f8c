# SPDX-License-Identifier: GPL-3.0-or-later
"""The binomial distribution."""
from ..._src import ops as _ops
from .. import special as _special
from ._scaled import where as _where


def logpmf(k, n, p, loc=0):
    y = _ops.subtract(k, loc)
    count = _ops.subtract(_ops.subtract(_special.gammaln(_ops.add(n, 1.0)), _special.gammaln(_ops.add(y, 1.0))), _special.gammaln(_ops.add(_ops.subtract(n, y), 1.0)))
    made = _ops.add(count, _ops.add(_special.xlogy(y, p), _special.xlog1py(_ops.subtract(n, y), _ops.negative(p))))
    return _where(_ops.logical_and(_ops.greater_equal(y, 0), _ops.less_equal(y, n)), made)


def pmf(k, n, p, loc=0):
    return _ops.exp(logpmf(k, n, p, loc))
