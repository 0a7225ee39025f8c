# SPDX-License-Identifier: GPL-3.0-or-later
"""Where older pages import jax.config from: the object stands for the module."""
import sys

import jax

sys.modules[__name__] = jax.config
