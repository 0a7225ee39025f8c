# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.lib, of which older pages ask for the platform."""
from .._src import xla_bridge
