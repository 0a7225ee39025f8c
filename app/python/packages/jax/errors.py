# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.errors."""
from ._src.arrays import (ConcretizationTypeError, TracerArrayConversionError, TracerBoolConversionError, UnexpectedTracerError)
