# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies on all devices, for pmap. Source: google/flax, flax/jax_utils.py."""
import collections
import itertools

import jax


def replicate(tree, devices=None):
    return jax.device_put_replicated(tree, devices or jax.local_devices())


def unreplicate(tree):
    return jax.tree.map(lambda x: x[0], tree)


def prefetch_to_device(iterator, size, devices=None):
    """The iterator's batches, each part of a batch's first dimension on a device of its own."""
    devices, iterator, queue = devices or jax.local_devices(), iter(iterator), collections.deque()
    placed = lambda batch: jax.tree.map(lambda x: jax.device_put_sharded(list(x), devices), batch)
    queue.extend(map(placed, itertools.islice(iterator, size)))
    while queue:
        yield queue.popleft()
        queue.extend(map(placed, itertools.islice(iterator, 1)))
