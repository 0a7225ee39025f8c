# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.sharding."""
import enum

from ._src.shardings import (GSPMDSharding, Mesh, NamedSharding, PartitionSpec, PositionalSharding, Sharding,
                              SingleDeviceSharding, set_mesh)
from ._src.shardings import set_mesh as use_mesh


class AxisType(enum.Enum):
    Auto, Explicit, Manual = 0, 1, 2

    def __repr__(self):
        return self.name
