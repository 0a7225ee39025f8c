# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of Flax that pages use, on Meshwright's virtual devices."""
from . import errors, nnx

__version__ = "0.10.4"
