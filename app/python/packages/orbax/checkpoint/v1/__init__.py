# SPDX-License-Identifier: GPL-3.0-or-later
"""Orbax's functions of version 1 for checkpoints of trees, by themselves and, in `training`, by the number of the step. Calls return when all is written."""
import dataclasses
import pathlib as _pathlib

from .. import args as _args
from .._checkpointers import Checkpointer as _Checkpointer
from .._trees import PLACEHOLDER
from . import options
from ._context import Context, get_context, save_args as _save_args
from ..handlers import CompositeCheckpointHandler as _CompositeCheckpointHandler, handler_at as _handler_at


@dataclasses.dataclass
class CheckpointMetadata:
    """What is known of a checkpoint: where it is, its step (of one of a training), and the types of its arrays."""
    path: object = None
    step: int = None
    metadata: object = None


class AsyncResponse:
    """What calls give that need not be waited for."""

    def __init__(self, value=None):
        self._value = value

    def result(self, timeout=None):
        return self._value


def _composite():
    return _Checkpointer(_CompositeCheckpointHandler())


def _abstract(given):
    return given.metadata if isinstance(given, CheckpointMetadata) else given


def save_checkpointables(path, checkpointables, *, overwrite=False, custom_metadata=None):
    _composite().save(path, args=_args.Composite(**{name: _args.StandardSave(tree, _save_args(tree)) for name, tree in checkpointables.items()}), force=overwrite)


def load_checkpointables(path, abstract_checkpointables=None):
    wanted = _abstract(abstract_checkpointables)
    if wanted is None:
        wanted = {part.name: None for part in sorted(_pathlib.Path(path).iterdir()) if part.is_dir()} if _pathlib.Path(path).exists() else {}
    loading = get_context()
    asked = {name: _args.StandardRestore(_abstract(tree), strict=not loading.array.loading.enable_padding_and_truncation) for name, tree in wanted.items()}
    for one in asked.values():
        one.is_partial = loading.pytree.loading.partial_load
    restored = _composite().restore(path, _args.Composite(**asked))
    return {name: restored[name] for name in wanted}


def save(path, state, *, checkpointable_name="state", overwrite=False, custom_metadata=None):
    save_checkpointables(path, {checkpointable_name: state}, overwrite=overwrite)


def load(path, abstract_state=None, *, checkpointable_name="state"):
    return load_checkpointables(path, {checkpointable_name: abstract_state})[checkpointable_name]


def checkpointables_metadata(path):
    return CheckpointMetadata(path, metadata={part.name: _handler_at(part).metadata(part) for part in sorted(_pathlib.Path(path).iterdir()) if part.is_dir()})


def metadata(path, *, checkpointable_name="state"):
    return CheckpointMetadata(path, metadata=checkpointables_metadata(path).metadata[checkpointable_name])


def at_once(function):
    """The function as one that need not be waited for."""
    return lambda *args, **kwargs: AsyncResponse(function(*args, **kwargs))


save_async, load_async = at_once(save), at_once(load)
save_checkpointables_async, load_checkpointables_async = at_once(save_checkpointables), at_once(load_checkpointables)
save_pytree, save_pytree_async, load_pytree, load_pytree_async, pytree_metadata = save, save_async, load, load_async, metadata  # as they were called first

from . import errors, training  # noqa: E402
