# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.typing."""
from typing import Any

from ._src.arrays import Array

ArrayLike = Array | Any
