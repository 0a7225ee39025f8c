# SPDX-License-Identifier: GPL-3.0-or-later
"""The normal distribution."""
import math

from ..._src import ops as _ops
from .. import special as _special
from ._scaled import scaled as _scaled

logpdf, pdf = _scaled(lambda y: _ops.subtract(_ops.multiply(-0.5, _ops.square(y)), 0.5 * math.log(2 * math.pi)))


def cdf(x, loc=0, scale=1):
    return _special.ndtr(_ops.divide(_ops.subtract(x, loc), scale))


def logcdf(x, loc=0, scale=1):
    return _special.log_ndtr(_ops.divide(_ops.subtract(x, loc), scale))


def sf(x, loc=0, scale=1):
    return cdf(_ops.negative(x), _ops.negative(loc), scale)


def ppf(q, loc=0, scale=1):
    return _ops.add(_ops.multiply(_special.ndtri(q), scale), loc)


isf = lambda q, loc=0, scale=1: ppf(_ops.subtract(1, q), loc, scale)
