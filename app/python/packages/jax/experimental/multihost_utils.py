# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.experimental.multihost_utils, of one process."""


def sync_global_devices(name):
    pass


def process_allgather(x, tiled=False):
    import numpy as np
    from .._src.trees import tree_map
    return tree_map(np.asarray, x)


def host_local_array_to_global_array(local_inputs, global_mesh, pspecs):
    from ..sharding import NamedSharding
    from .._src.transforms import device_put
    from .._src.trees import tree_broadcast, tree_map
    specs = tree_broadcast(pspecs, local_inputs)
    return tree_map(lambda x, spec: device_put(x, NamedSharding(global_mesh, spec)), local_inputs, specs)


def global_array_to_host_local_array(global_inputs, global_mesh, pspecs):
    return global_inputs


def broadcast_one_to_all(x, is_source=None):
    return x


def assert_equal(x, fail_message=""):
    pass


from .._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
