# SPDX-License-Identifier: GPL-3.0-or-later
"""The Cauchy distribution."""
import math

from ..._src import ops as _ops
from ._scaled import scaled as _scaled

logpdf, pdf = _scaled(lambda y: _ops.negative(_ops.add(math.log(math.pi), _ops.log1p(_ops.square(y)))))
