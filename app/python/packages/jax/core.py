# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.core: the classes that pages ask for."""
from ._src.arrays import Tracer
