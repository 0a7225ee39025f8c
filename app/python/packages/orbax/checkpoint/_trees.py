# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees as files: a table of their leaves and their forms, and an array file for each."""
import dataclasses
import json

import jax
import numpy as np
from jax._src import dtypes
from jax._src.arrays import Array, asarray, from_numpy
from jax._src.random_ import KeyArray
from jax._src.trees import keystr, tree_flatten_with_path, tree_unflatten


class _Placeholder:
    def __repr__(self):
        return "..."


PLACEHOLDER = _Placeholder()


class AtOnce:
    """What writes before its calls return: there is nothing to wait for, nor to close."""

    def wait_until_finished(self):
        pass

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@dataclasses.dataclass
class SaveArgs:
    dtype: object = None
    aggregate: bool = False


@dataclasses.dataclass
class RestoreArgs:
    restore_type: object = None
    dtype: object = None


@dataclasses.dataclass
class ArrayRestoreArgs(RestoreArgs):
    sharding: object = None
    mesh: object = None
    mesh_axes: object = None
    sharding_args: object = None
    global_shape: object = None
    strict: bool = True


@dataclasses.dataclass
class Transform:
    original_key: object = None
    use_fallback: bool = False
    value_fn: object = None
    multi_value_fn: object = None


@dataclasses.dataclass
class ArrayMetadata:
    """What a checkpoint knows of an array."""
    name: str
    shape: tuple
    dtype: object

    def __repr__(self):
        return f"ArrayMetadata(name='{self.name}', shape={self.shape}, dtype={self.dtype!r})"


def is_typed(node):
    return isinstance(node, (jax.ShapeDtypeStruct, ArrayRestoreArgs, RestoreArgs, _Placeholder, KeyArray))


def leaves_of(tree):
    """(names, leaves, form)"""
    pairs, form = tree_flatten_with_path(tree, is_typed)
    return [keystr(path) for path, _ in pairs], [leaf for _, leaf in pairs], form


def _steps(path):
    """How a leaf is reached: names of dictionaries and attributes, numbers of lists."""
    return [[key[0], type(key).__name__ == "SequenceKey"] for key in path]


def save_tree(path, tree, save_args=None):
    path.mkdir(parents=True)
    pairs, _ = tree_flatten_with_path(tree, is_typed)
    wanted = [None] * len(pairs) if save_args is None else leaves_of(save_args)[1]
    table = []
    for number, ((at, leaf), how) in enumerate(zip(pairs, wanted)):
        row = {"name": keystr(at), "steps": _steps(at), "kind": "array"}
        if isinstance(leaf, str):
            row.update(kind="text", value=leaf)
        else:
            if isinstance(leaf, KeyArray):
                row["kind"], leaf = "key", jax.random.key_data(leaf)
            elif isinstance(leaf, (bool, int, float)) and not isinstance(leaf, np.generic):
                row["kind"] = type(leaf).__name__
            elif not isinstance(leaf, Array):
                row["kind"] = "numpy"
            leaf = np.asarray(leaf) if row["kind"] in ("numpy", "bool", "int", "float") else asarray(leaf)
            if how is not None and how.dtype is not None:
                leaf = leaf.astype(how.dtype)
            np.save(path / f"{number}.npy", np.asarray(leaf))
            row["dtype"] = leaf.engine_dtype if isinstance(leaf, Array) else str(leaf.dtype)
        table.append(row)
    (path / "arrays.json").write_text(json.dumps(table))


class Saved:
    """A tree in its files."""

    def __init__(self, path):
        if not (path / "arrays.json").exists():
            raise FileNotFoundError(f"Checkpoint structure file does not exist at {path}.")
        self._path, self.rows = path, {row["name"]: (number, row) for number, row in enumerate(json.loads((path / "arrays.json").read_text()))}

    def value(self, name, how=None):
        number, row = self.rows[name]
        if row["kind"] == "text":
            return row["value"]
        values = np.load(self._path / f"{number}.npy")
        kind = getattr(how, "restore_type", None)
        if kind is np.ndarray:
            return values if how.dtype is None else values.astype(how.dtype)
        if row["kind"] in ("bool", "int", "float") and how is None:
            return values.item()
        made = from_numpy(values, row["dtype"]) if row["kind"] in ("array", "key") else from_numpy(values)
        if row["kind"] == "key":
            return jax.random.wrap_key_data(made)
        if getattr(how, "dtype", None) is not None:
            made = made.astype(how.dtype)
        sharding = getattr(how, "sharding", None)
        return made if sharding is None else jax.device_put(made, sharding)

    def whole(self, restore_args=None):
        """The tree as it was saved, of dictionaries and lists."""
        how = {} if restore_args is None else dict(zip(*leaves_of(restore_args)[:2]))
        return _nested([(row["steps"], self.value(name, how.get(name))) for name, (_, row) in self.rows.items()])

    def like(self, target, restore_args=None, is_partial=False, is_strict=True):
        """The leaves that a tree has, in its form and as it says."""
        names, wanted, form = leaves_of(target)
        how = {} if restore_args is None else dict(zip(*leaves_of(restore_args)[:2]))
        missing, more = [name for name in names if name not in self.rows], [name for name in self.rows if name not in names]
        if missing or more and not is_partial:
            lines = [f"{name}: only in the {'target' if name in missing else 'checkpoint'}" for name in missing + more]
            raise ValueError("User-provided restore item and on-disk value metadata tree structures do not match:\n" + "\n".join(lines))
        made = []
        for name, like in zip(names, wanted):
            if isinstance(like, _Placeholder):
                made.append(PLACEHOLDER)
                continue
            value = self.value(name, how.get(name))
            made.append(value if name in how else _as(value, like, is_strict))
        return tree_unflatten(form, made)

    def metadata(self):
        return _nested([(row["steps"], self._described(name)) for name, (_, row) in self.rows.items()])

    def _described(self, name):
        number, row = self.rows[name]
        if row["kind"] == "text":
            return row["value"]
        values = np.load(self._path / f"{number}.npy", mmap_mode="r")
        return ArrayMetadata("".join(f".{step}" for step, _ in row["steps"]).lstrip("."), values.shape, dtypes.shown(row["dtype"]) if row["kind"] == "array" else values.dtype)


def _as(value, like, is_strict):
    if isinstance(like, (str, bool, int, float)) and not isinstance(like, np.generic) or isinstance(value, (str, KeyArray)):
        return type(like)(value) if isinstance(like, (bool, int, float)) else value
    if like is None or like is ...:
        return value
    value = asarray(value)
    if tuple(like.shape) != value.shape:
        if is_strict:
            raise ValueError(f"Requested shape: {tuple(like.shape)} is not compatible with the stored shape: {value.shape}. Truncating/padding is disabled by setting "
                             "of `strict=True`. When using standard Orbax APIs, this behavior can be modified by specifying `strict=False` in `ArrayRestoreArgs` for "
                             "any array in which padding/truncation is desired.")
        cut = value[tuple(slice(0, size) for size in like.shape)]
        value = jax.numpy.pad(cut, [(0, wanted - size) for wanted, size in zip(like.shape, cut.shape)])
    if isinstance(like, np.ndarray) and not isinstance(like, Array):
        return np.asarray(value).astype(like.dtype)
    value = value.astype(like.dtype)
    sharding = getattr(like, "sharding", None)
    return value if sharding is None else jax.device_put(value, sharding)


def _nested(pairs):
    if len(pairs) == 1 and not pairs[0][0]:
        return pairs[0][1]
    groups, is_list = {}, False
    for steps, value in pairs:
        is_list = steps[0][1]
        groups.setdefault(steps[0][0], []).append((steps[1:], value))
    made = {name: _nested(rest) for name, rest in groups.items()}
    return [made[name] for name in sorted(made)] if is_list else made
