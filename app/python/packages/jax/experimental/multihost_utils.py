# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.experimental.multihost_utils, of one process."""


def sync_global_devices(name):
    pass


def process_allgather(x, tiled=False):
    import numpy as np
    from .._src.trees import tree_map
    return tree_map(np.asarray, x)


def broadcast_one_to_all(x, is_source=None):
    return x


def assert_equal(x, fail_message=""):
    pass
