# SPDX-License-Identifier: GPL-3.0-or-later
"""The Gumbel distribution of the largest."""
from ..._src import ops as _ops
from ._scaled import scaled as _scaled

logpdf, pdf = _scaled(lambda y: _ops.negative(_ops.add(y, _ops.exp(_ops.negative(y)))))


def logcdf(x, loc=0, scale=1):
    return _ops.negative(_ops.exp(_ops.negative(_ops.divide(_ops.subtract(x, loc), scale))))


def cdf(x, loc=0, scale=1):
    return _ops.exp(logcdf(x, loc, scale))


def sf(x, loc=0, scale=1):
    return _ops.negative(_ops.expm1(logcdf(x, loc, scale)))


def ppf(p, loc=0, scale=1):
    return _ops.subtract(loc, _ops.multiply(scale, _ops.log(_ops.negative(_ops.log(p)))))
