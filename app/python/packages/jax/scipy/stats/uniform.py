# SPDX-License-Identifier: GPL-3.0-or-later
"""The uniform distribution. What is nan counts as within it, as in JAX."""
import math

from ..._src import ops as _ops
from ..special import _inexact


def logpdf(x, loc=0, scale=1):
    (x, loc, scale), _ = _ops.together(_inexact(x), loc, scale)
    is_outside = _ops.logical_or(_ops.greater(x, _ops.add(loc, scale)), _ops.less(x, loc))
    return _ops.where(is_outside, -math.inf, _ops.negative(_ops.log(scale)))


def pdf(x, loc=0, scale=1):
    return _ops.exp(logpdf(x, loc, scale))
