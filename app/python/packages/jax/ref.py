# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.ref: mutable arrays."""
from ._src.refs import Ref, freeze, new_ref


def get(ref, idx=None):
    """Reads a part of a ref; all of it without an index."""
    return ref[... if idx is None else idx]


def swap(ref, idx, value):
    """Writes a part of a ref, and gives what it was."""
    return ref.swap(... if idx is None else idx, value)


def set(ref, idx, value):  # noqa: A001
    swap(ref, idx, value)


def addupdate(ref, idx, value):
    ref.addupdate(value, ... if idx is None else idx)
