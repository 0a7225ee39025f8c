# SPDX-License-Identifier: GPL-3.0-or-later
"""The exponential distribution."""
from ..._src import ops as _ops
from ._scaled import scaled as _scaled
from ._scaled import where as _where

logpdf, pdf = _scaled(lambda y: _where(_ops.greater_equal(y, 0), _ops.negative(y)))


def logsf(x, loc=0, scale=1):
    return _ops.negative(_ops.maximum(_ops.divide(_ops.subtract(x, loc), scale), 0))


def sf(x, loc=0, scale=1):
    return _ops.exp(logsf(x, loc, scale))


def cdf(x, loc=0, scale=1):
    return _ops.negative(_ops.expm1(logsf(x, loc, scale)))


def logcdf(x, loc=0, scale=1):
    return _ops.log1p(_ops.negative(sf(x, loc, scale)))


def ppf(q, loc=0, scale=1):
    return _ops.subtract(loc, _ops.multiply(scale, _ops.log1p(_ops.negative(q))))
