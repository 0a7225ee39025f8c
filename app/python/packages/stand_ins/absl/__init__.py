# SPDX-License-Identifier: GPL-3.0-or-later
"""absl, as pages that log import it, where it is not installed."""
from . import logging
