# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.version: that of the names."""
__version__ = "0.5.0"
__version_info__ = (0, 5, 0)
