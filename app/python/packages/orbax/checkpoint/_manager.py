# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints by the number of the step, of which the last are kept."""
import dataclasses
import pathlib
import shutil

from . import args as _args
from ._trees import AtOnce
from .handlers import CompositeCheckpointHandler, handler_at, handler_of


@dataclasses.dataclass
class CheckpointManagerOptions:
    save_interval_steps: int = 1
    max_to_keep: int = None
    keep_time_interval: object = None
    keep_period: int = None
    best_fn: object = None
    best_mode: str = "max"
    step_prefix: str = None
    step_format_fixed_length: int = None
    create: bool = True
    cleanup_tmp_directories: bool = False
    enable_async_checkpointing: bool = True
    should_save_fn: object = None
    save_on_steps: object = None
    read_only: bool = False
    step_name_format: object = None


class CheckpointManager(AtOnce):
    def __init__(self, directory, checkpointers=None, options=None, metadata=None, item_names=None, item_handlers=None, **_):
        self.directory = pathlib.Path(directory)
        self._options = options or CheckpointManagerOptions()
        self._metadata, self._names, self._metrics = metadata, item_names, {}
        self._saves_items = item_names is not None or isinstance(item_handlers, dict) or isinstance(checkpointers, dict)
        if self._options.create:
            self.directory.mkdir(parents=True, exist_ok=True)

    def all_steps(self, read=False):
        return sorted(int(part.name) for part in self.directory.iterdir() if part.name.isdigit())

    def latest_step(self):
        steps = self.all_steps()
        return steps[-1] if steps else None

    def best_step(self):
        best = self._options.best_fn
        known = [step for step in self.all_steps() if step in self._metrics]
        if best is None or not known:
            return self.latest_step()
        return (max if self._options.best_mode == "max" else min)(known, key=lambda step: best(self._metrics[step]))

    def should_save(self, step):
        last = self.latest_step()
        if last is not None and last >= step:
            return False
        if self._options.should_save_fn is not None:
            return self._options.should_save_fn(step, last)
        return step % self._options.save_interval_steps == 0 or step in (self._options.save_on_steps or ())

    def save(self, step, items=None, *, args=None, metrics=None, force=False, **_):
        if not force and not self.should_save(step):
            return False
        path = self.directory / str(step)
        if path.exists():
            raise ValueError(f"Checkpoint for step {step} already exists.")
        if args is None:
            args = _args.Composite(**{name: _args.StandardSave(item) for name, item in items.items()}) if self._saves_items else _args.StandardSave(items)
        if isinstance(args, _args.Composite):
            CompositeCheckpointHandler().save(path, args)
        else:
            path.mkdir()
            handler_of(args).save(path / "default", args)
        if metrics is not None:
            self._metrics[step] = metrics
        self._forget()
        return True

    def _forget(self):
        most, period = self._options.max_to_keep, self._options.keep_period
        steps = self.all_steps()
        if self._options.best_fn is not None:
            steps.sort(key=lambda step: self._options.best_fn(self._metrics.get(step, {})), reverse=self._options.best_mode != "max")
        for step in steps[:-most] if most else []:
            if period is None or step % period:
                shutil.rmtree(self.directory / str(step))

    def restore(self, step=None, items=None, *, args=None, **_):
        step = self.latest_step() if step is None else step
        path = self.directory / str(step)
        if step is None or not path.exists():
            raise FileNotFoundError(f"No step path found for step {step} under {self.directory}")
        default = path / "default"
        if isinstance(args, _args.Composite) or not default.exists():
            return CompositeCheckpointHandler().restore(path, args if isinstance(args, _args.Composite) else None)
        return handler_at(default).restore(default, args if args is not None else None if items is None else _args.StandardRestore(items))

    def item_metadata(self, step):
        path = self.directory / str(step)
        default = path / "default"
        return handler_at(default).metadata(default) if default.exists() else CompositeCheckpointHandler().metadata(path)

    def metrics(self, step):
        return self._metrics.get(step)

    def metadata(self, step=None):
        return self._metadata or {}

    def delete(self, step):
        shutil.rmtree(self.directory / str(step))

    def reload(self):
        pass

    def check_for_errors(self):
        pass

    def is_saving_in_progress(self):
        return False
