# SPDX-License-Identifier: GPL-3.0-or-later
"""Small libraries that older pages build networks of."""
from . import optimizers, stax
