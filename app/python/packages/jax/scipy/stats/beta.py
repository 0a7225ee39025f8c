# SPDX-License-Identifier: GPL-3.0-or-later
"""The beta distribution."""
from ..._src import ops as _ops
from .. import special as _special
from ._scaled import scaled as _scaled
from ._scaled import where as _where



def cdf(x, a, b, loc=0, scale=1):
    return _special.betainc(a, b, _ops.clip(_ops.divide(_ops.subtract(x, loc), scale), 0.0, 1.0))


def sf(x, a, b, loc=0, scale=1):
    return _special.betainc(b, a, _ops.clip(_ops.subtract(1.0, _ops.divide(_ops.subtract(x, loc), scale)), 0.0, 1.0))


def logcdf(x, a, b, loc=0, scale=1):
    return _ops.log(cdf(x, a, b, loc, scale))


def logsf(x, a, b, loc=0, scale=1):
    return _ops.log(sf(x, a, b, loc, scale))


logpdf, pdf = _scaled(lambda y, a, b: _where(_ops.logical_and(_ops.greater_equal(y, 0), _ops.less_equal(y, 1)), _ops.subtract(
    _ops.add(_special.xlogy(_ops.subtract(a, 1.0), y), _special.xlog1py(_ops.subtract(b, 1.0), _ops.negative(y))), _special.betaln(a, b))))
