# SPDX-License-Identifier: GPL-3.0-or-later
"""The Pareto distribution."""
from ..._src import ops as _ops
from ._scaled import scaled as _scaled
from ._scaled import where as _where

logpdf, pdf = _scaled(lambda y, b: _where(_ops.greater_equal(y, 1), _ops.subtract(_ops.log(_ops.multiply(1.0, b)), _ops.multiply(_ops.add(b, 1.0), _ops.log(y)))))
