# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy."""
from . import fft, linalg, signal, special, stats
