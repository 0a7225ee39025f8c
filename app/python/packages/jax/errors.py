# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.errors."""
from ._src.errors import (ConcretizationTypeError, JAXIndexError, JAXTypeError, KeyReuseError, NonConcreteBooleanIndexError, TracerArrayConversionError,
                          TracerBoolConversionError, TracerIntegerConversionError, UnexpectedTracerError)
