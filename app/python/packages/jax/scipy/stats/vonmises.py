# SPDX-License-Identifier: GPL-3.0-or-later
"""The von Mises distribution."""
import math

from ..._src import ops as _ops
from .. import special as _special


def logpdf(x, kappa):
    return _ops.subtract(_ops.multiply(kappa, _ops.subtract(_ops.cos(x), 1.0)), _ops.add(math.log(2 * math.pi), _ops.log(_special.i0e(kappa))))


def pdf(x, kappa):
    return _ops.exp(logpdf(x, kappa))
