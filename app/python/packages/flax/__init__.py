# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of Flax that pages use, on Meshwright's virtual devices."""
from .configurations import config
from . import core, errors, jax_utils, linen, nnx, serialization, struct, traverse_util

__version__ = "0.10.4"
