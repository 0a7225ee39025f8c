# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.stages: a jitted function on its way to a program."""
from ._src.transforms import Jitted as Wrapped
from ._src.transforms import Compiled, Lowered

Traced = Lowered

Compiled.__module__ = Lowered.__module__ = "jax._src.stages"
