# SPDX-License-Identifier: GPL-3.0-or-later
"""absl, as pages that log, or that are programs, import it, where it is not installed."""
from . import app, flags, logging
