# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints of a page, as NumPy files. A path below the system's folder of temporary files is one below the page's own."""
import json
import os
import pathlib
import shutil
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.arrays import from_numpy
from jax._src.trees import keystr, tree_flatten_with_path, tree_unflatten

_SYSTEM = pathlib.Path("/tmp")


def _own(path):
    path = pathlib.Path(os.fspath(path))
    own = pathlib.Path(tempfile.gettempdir())
    if _SYSTEM in path.parents and own != _SYSTEM and own not in path.parents:
        return own / path.relative_to(_SYSTEM)
    return path


class test_utils:
    @staticmethod
    def erase_and_create_empty(directory):
        path = _own(directory)
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path


class args:
    """What `save` and `restore` are asked for, in newer pages."""

    class StandardSave:
        def __init__(self, item):
            self.item = item

    class StandardRestore:
        def __init__(self, item=None):
            self.item = item


def _leaves(tree):
    pairs, form = tree_flatten_with_path(tree)
    return [keystr(path) for path, _ in pairs], [leaf for _, leaf in pairs], form


class StandardCheckpointer:
    """Saves a tree of arrays, and restores it in the layouts that an abstract tree asks for."""

    def save(self, directory, state=None, *, args=None, force=False):
        path = _own(directory)
        if path.exists() and not force:
            raise ValueError(f"Destination {path} already exists.")
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        names, leaves, _ = _leaves(state if args is None else args.item)
        table = []
        for number, (name, leaf) in enumerate(zip(names, leaves)):
            leaf = jnp.asarray(leaf)
            np.save(path / f"{number}.npy", np.asarray(leaf))
            table.append({"name": name, "dtype": leaf.engine_dtype})
        (path / "arrays.json").write_text(json.dumps(table))

    def restore(self, directory, target=None, *, args=None):
        path = _own(directory)
        if not (path / "arrays.json").exists():
            raise FileNotFoundError(f"Checkpoint structure file does not exist at {path}.")
        saved = {row["name"]: (number, row["dtype"]) for number, row in enumerate(json.loads((path / "arrays.json").read_text()))}
        target = target if args is None else args.item
        if target is None:
            return {name: self._array(path, *at) for name, at in saved.items()}
        names, wanted, form = _leaves(target)
        missing = [name for name in names if name not in saved]
        if missing or len(names) != len(saved):
            raise ValueError(f"User-provided restore item and on-disk value metadata tree structures do not match: {missing}")
        restored = []
        for name, like in zip(names, wanted):
            array = self._array(path, *saved[name])
            if tuple(like.shape) != array.shape:
                raise ValueError(f"Requested shape: {tuple(like.shape)} is not compatible with the stored shape: {array.shape}.")
            array = array.astype(like.dtype)
            restored.append(array if getattr(like, "sharding", None) is None else jax.device_put(array, like.sharding))
        return tree_unflatten(form, restored)

    @staticmethod
    def _array(path, number, engine):
        return from_numpy(np.load(path / f"{number}.npy"), engine)

    def wait_until_finished(self):
        pass

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


PyTreeCheckpointer = StandardCheckpointer
