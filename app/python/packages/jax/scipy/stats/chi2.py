# SPDX-License-Identifier: GPL-3.0-or-later
"""The chi-squared distribution."""
import math

from ..._src import ops as _ops
from .. import special as _special
from ._scaled import scaled as _scaled, shares as _shares
from ._scaled import where as _where

logpdf, pdf = _scaled(lambda y, df: _where(_ops.greater_equal(y, 0), _ops.subtract(
    _ops.subtract(_special.xlogy(_ops.subtract(_ops.divide(df, 2.0), 1.0), y), _ops.divide(y, 2.0)),
    _ops.add(_special.gammaln(_ops.divide(df, 2.0)), _ops.multiply(_ops.divide(df, 2.0), math.log(2))))))

cdf, logcdf, sf, logsf = _shares(lambda y, df: _special.gammainc(_ops.divide(df, 2.0), _ops.divide(y, 2.0)),
                                 lambda y, df: _special.gammaincc(_ops.divide(df, 2.0), _ops.divide(y, 2.0)))
