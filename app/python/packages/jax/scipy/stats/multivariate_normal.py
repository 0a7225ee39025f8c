# SPDX-License-Identifier: GPL-3.0-or-later
"""The normal distribution of vectors."""
import math

from ..._src import ops as _ops
from ..._src.arrays import asarray as _asarray
from ...numpy import diagonal as _diagonal
from ...numpy import linalg as _linalg


def logpdf(x, mean, cov, allow_singular=None):
    x, mean, cov = _asarray(x), _asarray(mean), _asarray(cov)
    if not mean.shape:
        return _ops.subtract(_ops.divide(_ops.multiply(-0.5, _ops.square(_ops.subtract(x, mean))), cov), _ops.multiply(0.5, _ops.add(math.log(2 * math.pi), _ops.log(cov))))
    size = mean.shape[-1]
    y = _ops.subtract(x, mean)
    if not cov.shape:
        return _ops.subtract(_ops.divide(_ops.multiply(-0.5, _ops.sum_(_ops.square(y), -1)), cov), _ops.multiply(size / 2, _ops.add(math.log(2 * math.pi), _ops.log(cov))))
    factor = _linalg.cholesky(cov)
    column = _linalg.triangular(_ops.broadcast_to(factor, y.shape[:-1] + factor.shape[-2:]), _ops.expand_dims(y, -1))[..., 0]
    logs = _ops.sum_(_ops.log(_diagonal(factor, 0, -2, -1)), -1)
    return _ops.subtract(_ops.multiply(-0.5, _ops.sum_(_ops.square(column), -1)), _ops.add(size / 2 * math.log(2 * math.pi), logs))


def pdf(x, mean, cov, allow_singular=None):
    return _ops.exp(logpdf(x, mean, cov))
