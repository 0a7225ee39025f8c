# SPDX-License-Identifier: GPL-3.0-or-later
"""Where older pages look for jax.example_libraries.optimizers."""
from ..example_libraries.optimizers import *
