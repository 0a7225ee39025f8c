# SPDX-License-Identifier: GPL-3.0-or-later
"""Student's t distribution."""
import math

from ..._src import ops as _ops
from .. import special as _special
from ._scaled import scaled as _scaled


def _of(y, df):
    half = _ops.divide(_ops.add(df, 1.0), 2.0)
    front = _ops.subtract(_ops.subtract(_special.gammaln(half), _special.gammaln(_ops.divide(df, 2.0))), _ops.multiply(0.5, _ops.log(_ops.multiply(df, math.pi))))
    return _ops.subtract(front, _ops.multiply(half, _ops.log1p(_ops.divide(_ops.square(y), df))))


logpdf, pdf = _scaled(_of)
