# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of Flax that pages use, on Meshwright's virtual devices."""
from .configurations import config
from . import core, errors, jax_utils, nnx, serialization, struct, traverse_util

__version__ = "0.10.4"


def __getattr__(name):
    """linen, where a page asks for it."""
    if name != "linen":
        raise AttributeError(f"module 'flax' has no attribute {name!r}")
    import importlib
    return importlib.import_module(".linen", __name__)
