# SPDX-License-Identifier: GPL-3.0-or-later
"""The generalized normal distribution."""
import math

from ..._src import ops as _ops
from .. import special as _special
from ._scaled import scaled as _scaled

logpdf, pdf = _scaled(lambda y, beta: _ops.subtract(_ops.subtract(_ops.subtract(_ops.log(_ops.multiply(1.0, beta)), math.log(2)), _special.gammaln(_ops.divide(1.0, beta))),
                                                    _ops.power(_ops.absolute(y), beta)))
