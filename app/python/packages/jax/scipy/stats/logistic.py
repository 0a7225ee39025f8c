# SPDX-License-Identifier: GPL-3.0-or-later
"""The logistic distribution."""
from ..._src import ops as _ops
from ...numpy import logaddexp as _logaddexp
from ._scaled import scaled as _scaled

logpdf, pdf = _scaled(lambda y: _ops.multiply(-2.0, _logaddexp(_ops.divide(y, 2.0), _ops.divide(y, -2.0))))


def cdf(x, loc=0, scale=1):
    return _ops.logistic(_ops.divide(_ops.subtract(x, loc), scale))
