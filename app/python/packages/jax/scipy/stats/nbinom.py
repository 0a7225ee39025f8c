# SPDX-License-Identifier: GPL-3.0-or-later
"""The negative binomial distribution."""
from ..._src import ops as _ops
from .. import special as _special
from ._scaled import where as _where


def logpmf(k, n, p, loc=0):
    y, n = _ops.multiply(1.0, _ops.subtract(k, loc)), _ops.multiply(1.0, n)
    count = _ops.subtract(_ops.subtract(_special.gammaln(_ops.add(y, n)), _special.gammaln(n)), _special.gammaln(_ops.add(y, 1.0)))
    return _where(_ops.greater_equal(y, 0), _ops.add(count, _ops.add(_special.xlogy(n, p), _special.xlog1py(y, _ops.negative(p)))))


def pmf(k, n, p, loc=0):
    return _ops.exp(logpmf(k, n, p, loc))
