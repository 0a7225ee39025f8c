# SPDX-License-Identifier: GPL-3.0-or-later
"""The Poisson distribution."""
from ..._src import ops as _ops
from .. import special as _special
from ._scaled import where as _where


def logpmf(k, mu, loc=0):
    x = _ops.subtract(k, loc)
    made = _ops.subtract(_ops.subtract(_special.xlogy(x, mu), _special.gammaln(_ops.add(x, 1.0))), mu)
    return _where(_ops.logical_and(_ops.greater_equal(x, 0), _ops.equal(_ops.floor(_ops.multiply(x, 1.0)), x)), made)


def pmf(k, mu, loc=0):
    return _ops.exp(logpmf(k, mu, loc))
