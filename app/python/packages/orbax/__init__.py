# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of Orbax that pages use."""
from . import checkpoint
