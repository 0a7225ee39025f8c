# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.fft."""
from ..numpy.fft import fft, fft2, fftn, ifft, ifft2, ifftn
