# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.experimental.maps, which is jax.sharding today."""
from .._src.shardings import Mesh
