# SPDX-License-Identifier: GPL-3.0-or-later
"""The Laplace distribution."""
import math

from ..._src import ops as _ops
from ._scaled import scaled as _scaled

logpdf, pdf = _scaled(lambda y: _ops.subtract(_ops.negative(_ops.absolute(y)), math.log(2)))
