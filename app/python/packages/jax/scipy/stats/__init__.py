# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.stats."""
from . import norm
