# SPDX-License-Identifier: GPL-3.0-or-later
"""What saves one checkpoint and restores it."""
import pathlib
import shutil

from . import args as _args
from ._trees import AtOnce
from .handlers import CompositeCheckpointHandler, PyTreeCheckpointHandler, StandardCheckpointHandler


class Checkpointer(AtOnce):
    _save, _restore = _args.StandardSave, _args.StandardRestore

    def __init__(self, handler=None, **_):
        self._handler = handler or StandardCheckpointHandler()

    def save(self, directory, *given, args=None, force=False, state=None, item=None, save_args=None, **_):
        path = pathlib.Path(directory)
        if path.exists():
            if not force:
                raise ValueError(f"Destination {path} already exists.")
            shutil.rmtree(path)
        if args is None:
            what = given[0] if given else state if state is not None else item
            args = self._save(what, save_args) if issubclass(self._save, _args.StandardSave) else self._save(what)
        self._handler.save(path, args)

    def restore(self, directory, *given, args=None, target=None, item=None, restore_args=None, strict=True, **_):
        path = pathlib.Path(directory)
        if not path.exists():
            raise FileNotFoundError(f"Checkpoint at {path} not found.")
        if args is None:
            what = given[0] if given else target if target is not None else item
            if isinstance(self._handler, CompositeCheckpointHandler):
                args = what
            elif restore_args is not None or self._restore is _args.PyTreeRestore:
                args = _args.PyTreeRestore(what, restore_args)
            else:
                args = self._restore(what, strict)
        return self._handler.restore(path, args)

    def metadata(self, directory):
        return self._handler.metadata(pathlib.Path(directory))


class AsyncCheckpointer(Checkpointer):
    pass


class StandardCheckpointer(AsyncCheckpointer):
    """Saves a tree of arrays, and restores it in the layouts that an abstract tree asks for."""


class PyTreeCheckpointer(Checkpointer):
    _save, _restore = _args.PyTreeSave, _args.PyTreeRestore

    def __init__(self, *_, **__):
        super().__init__(PyTreeCheckpointHandler())
