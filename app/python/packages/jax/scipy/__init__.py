# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy."""
from . import fft, integrate, linalg, ndimage, optimize, signal, special, stats
