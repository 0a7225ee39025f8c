# SPDX-License-Identifier: GPL-3.0-or-later
"""optax.tree: arithmetic of trees."""
from . import tree_utils as _utils

globals().update({name[5:]: getattr(_utils, name) for name in dir(_utils) if name.startswith("tree_")})
