# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.integrate."""
from jax.numpy import trapezoid
