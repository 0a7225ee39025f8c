# SPDX-License-Identifier: GPL-3.0-or-later
"""The multinomial distribution."""
from ..._src import ops as _ops
from ..._src.arrays import asarray as _asarray
from .. import special as _special
from ._scaled import where as _where


def logpmf(x, n, p):
    x, p = _ops.multiply(1.0, _asarray(x)), _asarray(p)
    made = _ops.add(_special.gammaln(_ops.add(n, 1.0)), _ops.sum_(_ops.subtract(_special.xlogy(x, p), _special.gammaln(_ops.add(x, 1.0))), -1))
    return _where(_ops.equal(_ops.sum_(x, -1), n), made)


def pmf(x, n, p):
    return _ops.exp(logpmf(x, n, p))
