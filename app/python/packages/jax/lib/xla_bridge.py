# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.lib.xla_bridge."""
from .._src.xla_bridge import *
