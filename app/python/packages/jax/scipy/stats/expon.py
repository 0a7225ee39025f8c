# SPDX-License-Identifier: GPL-3.0-or-later
"""The exponential distribution."""
from ..._src import ops as _ops
from ._scaled import scaled as _scaled
from ._scaled import where as _where

logpdf, pdf = _scaled(lambda y: _where(_ops.greater_equal(y, 0), _ops.negative(y)))
