# SPDX-License-Identifier: GPL-3.0-or-later
"""The Gumbel distribution of the smallest."""
from ..._src import ops as _ops
from ._scaled import scaled as _scaled

logpdf, pdf = _scaled(lambda y: _ops.subtract(y, _ops.exp(y)))


def logsf(x, loc=0, scale=1):
    return _ops.negative(_ops.exp(_ops.divide(_ops.subtract(x, loc), scale)))


def sf(x, loc=0, scale=1):
    return _ops.exp(logsf(x, loc, scale))


def cdf(x, loc=0, scale=1):
    return _ops.negative(_ops.expm1(logsf(x, loc, scale)))


def ppf(p, loc=0, scale=1):
    return _ops.add(loc, _ops.multiply(scale, _ops.log(_ops.negative(_ops.log1p(_ops.negative(p))))))
