# SPDX-License-Identifier: GPL-3.0-or-later
"""The gamma distribution."""
from ..._src import ops as _ops
from .. import special as _special
from ._scaled import scaled as _scaled, shares as _shares
from ._scaled import where as _where

logpdf, pdf = _scaled(lambda y, a: _where(_ops.greater_equal(y, 0), _ops.subtract(_ops.subtract(_special.xlogy(_ops.subtract(a, 1.0), y), y), _special.gammaln(a))))

cdf, logcdf, sf, logsf = _shares(lambda y, a: _special.gammainc(a, y), lambda y, a: _special.gammaincc(a, y))
