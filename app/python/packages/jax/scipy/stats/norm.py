# SPDX-License-Identifier: GPL-3.0-or-later
"""The normal distribution."""
import math

from ..._src import ops as _ops


def logpdf(x, loc=0.0, scale=1.0):
    scaled = _ops.divide(_ops.subtract(x, loc), scale)
    return _ops.subtract(_ops.multiply(-0.5, _ops.square(scaled)), _ops.add(_ops.log(scale), 0.5 * math.log(2 * math.pi)))


def pdf(x, loc=0.0, scale=1.0):
    return _ops.exp(logpdf(x, loc, scale))
