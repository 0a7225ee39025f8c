# SPDX-License-Identifier: GPL-3.0-or-later
"""Where older pages look for jax.example_libraries.stax."""
from ..example_libraries.stax import *
