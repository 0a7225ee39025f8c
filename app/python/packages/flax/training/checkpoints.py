# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints as files with their step in the name. Source of the names: google/flax, flax/training/checkpoints.py."""
import os
import re

from .. import errors
from ..serialization import from_state_dict, msgpack_restore, to_bytes


def _step(path):
    return float(re.search(r"[-+]?\d*\.?\d+$", path)[0])


def _all(ckpt_dir, prefix):
    folder = os.fspath(ckpt_dir)
    if not os.path.isdir(folder):
        return []
    return sorted((os.path.join(folder, name) for name in os.listdir(folder) if re.fullmatch(re.escape(prefix) + r"[-+]?\d*\.?\d+", name)), key=_step)


def latest_checkpoint(ckpt_dir, prefix="checkpoint_"):
    found = _all(ckpt_dir, prefix)
    return found[-1] if found else None


def available_steps(ckpt_dir, prefix="checkpoint_", step_type=int):
    return [step_type(_step(path)) for path in _all(ckpt_dir, prefix)]


def save_checkpoint(ckpt_dir, target, step, prefix="checkpoint_", keep=1, overwrite=False, keep_every_n_steps=None, async_manager=None, orbax_checkpointer=None):
    """Writes a file, and removes all but the newest `keep`."""
    os.makedirs(ckpt_dir, exist_ok=True)
    before, path = _all(ckpt_dir, prefix), os.path.join(ckpt_dir, f"{prefix}{step}")
    if not overwrite and before and _step(before[-1]) >= step:
        raise errors.InvalidCheckpointError(f'Trying to save an outdated checkpoint at step: "{step}" and path: "{path}".')
    for newer in before if overwrite else ():
        if _step(newer) > step:
            os.remove(newer)
    with open(path, "wb") as file:
        file.write(to_bytes(target))
    last = None
    for old in _all(ckpt_dir, prefix)[:-keep]:
        if keep_every_n_steps and (last is None or _step(old) - last >= keep_every_n_steps):
            last = _step(old)
        else:
            os.remove(old)
    return path


save_checkpoint_multiprocess = save_checkpoint


def restore_checkpoint(ckpt_dir, target, step=None, prefix="checkpoint_", parallel=True, orbax_checkpointer=None, orbax_transforms=None):
    """What the newest file, or that of a step, has, in the form of `target`; `target` where there is no file."""
    if step is not None:
        path = os.path.join(ckpt_dir, f"{prefix}{step}")
        if not os.path.exists(path):
            raise ValueError(f"Matching checkpoint not found: {path}")
    else:
        path = ckpt_dir if os.path.isfile(ckpt_dir) else latest_checkpoint(ckpt_dir, prefix)
        if path is None:
            return target
    with open(path, "rb") as file:
        state = msgpack_restore(file.read())
    return state if target is None else from_state_dict(target, state)
