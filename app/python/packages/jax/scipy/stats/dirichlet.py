# SPDX-License-Identifier: GPL-3.0-or-later
"""The Dirichlet distribution."""
from ..._src import ops as _ops
from .. import special as _special


def logpdf(x, alpha):
    front = _ops.subtract(_special.gammaln(_ops.sum_(alpha)), _ops.sum_(_special.gammaln(alpha)))
    return _ops.add(front, _ops.sum_(_special.xlogy(_ops.subtract(alpha, 1.0), _ops.moveaxis(x, 0, -1)), -1))


def pdf(x, alpha):
    return _ops.exp(logpdf(x, alpha))
