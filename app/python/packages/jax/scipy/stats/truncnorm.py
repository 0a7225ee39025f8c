# SPDX-License-Identifier: GPL-3.0-or-later
"""The normal distribution between two bounds."""
from ..._src import ops as _ops
from .. import special as _special
from ._scaled import scaled as _scaled
from ._scaled import where as _where
from .norm import logpdf as _log_normal


def _log_share(a, b):
    """The logarithm of how much of the normal distribution is between two numbers; from the side where both are small."""
    turns = _ops.greater(a, 0)
    low, high = _ops.where(turns, _ops.negative(b), a), _ops.where(turns, _ops.negative(a), b)
    top, bottom = _special.log_ndtr(high), _special.log_ndtr(low)
    return _ops.add(top, _ops.log1p(_ops.negative(_ops.exp(_ops.subtract(bottom, top)))))


logpdf, pdf = _scaled(lambda y, a, b: _where(_ops.logical_and(_ops.greater_equal(y, a), _ops.less_equal(y, b)), _ops.subtract(_log_normal(y), _log_share(a, b))))


def logcdf(x, a, b, loc=0, scale=1):
    a, b, y = _ops.multiply(1.0, a), _ops.multiply(1.0, b), _ops.divide(_ops.subtract(x, loc), scale)
    inside = _ops.clip(y, a, b)
    made = _ops.subtract(_log_share(a, inside), _log_share(a, b))
    return _ops.where(_ops.less_equal(y, a), -float("inf"), _ops.where(_ops.greater_equal(y, b), 0.0, made))


def cdf(x, a, b, loc=0, scale=1):
    return _ops.exp(logcdf(x, a, b, loc, scale))


def sf(x, a, b, loc=0, scale=1):
    return _ops.subtract(1.0, cdf(x, a, b, loc, scale))
