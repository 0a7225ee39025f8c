# SPDX-License-Identifier: GPL-3.0-or-later
"""The checkpoints of a training, by the number of the step. Source of the texts: google/orbax, checkpoint/orbax/checkpoint/experimental/v1/_src/training."""
import pathlib
import shutil

from . import CheckpointMetadata, Context, at_once, get_context, load_checkpointables, metadata, save_checkpointables
from .._trees import AtOnce
from ._policies import preservation_policies, save_decision_policies
from .errors import StepAlreadyExistsError, StepNotFoundError


class Checkpointer(AtOnce):
    def __init__(self, directory, *, context=None, save_decision_policy=None, preservation_policy=None, **options):
        asked = [name for name, value in options.items() if value is not None]
        if asked:
            raise NotImplementedError(f"orbax.checkpoint.v1.training.Checkpointer({asked[0]}=..): leave it out")
        self._context, self._saves, self._keeps = Context(context or get_context()), save_decision_policy, preservation_policy
        self.directory = pathlib.Path(directory)
        pathlib.Path(directory).mkdir(parents=True, exist_ok=True)

    @property
    def checkpoints(self):
        steps = sorted(int(part.name) for part in pathlib.Path(self.directory).iterdir() if part.name.isdigit())
        return [CheckpointMetadata(self.directory / str(step), step) for step in steps]

    latest = property(lambda self: self.checkpoints[-1] if self.checkpoints else None)

    def should_save(self, step):
        """Where no policy says which, each step that is later than the last."""
        is_later = self.latest is None or step > self.latest.step
        return is_later and (self._saves is None or self._saves.should_save(CheckpointMetadata(step=step), self.checkpoints, context=None))

    def save_checkpointables(self, step, checkpointables, *, force=False, overwrite=False, metrics=None, custom_metadata=None):
        if any(one.step == step for one in self.checkpoints):
            if not overwrite:
                raise StepAlreadyExistsError(f"Step {step} already exists.")
            shutil.rmtree(pathlib.Path(self.directory / str(step)))
        elif not (force or self.should_save(step)):
            return False
        with self._context:
            save_checkpointables(self.directory / str(step), checkpointables)
        if self._keeps is not None:
            known = self.checkpoints
            for one, is_kept in zip(known, self._keeps.should_preserve(known, context=None)):
                if not is_kept:
                    shutil.rmtree(pathlib.Path(one.path))
        return True

    def _path(self, step):
        step = self.latest if step is None else step
        if step is None:
            raise StepNotFoundError("No checkpoints found.")
        step = step.step if isinstance(step, CheckpointMetadata) else step
        if all(one.step != step for one in self.checkpoints):
            raise StepNotFoundError(f"No checkpoint found at step {step}.")
        return self.directory / str(step)

    def load_checkpointables(self, step=None, abstract_checkpointables=None):
        with self._context:
            return load_checkpointables(self._path(step), abstract_checkpointables)

    def save(self, step, state, **options):
        return self.save_checkpointables(step, {"state": state}, **options)

    def load(self, step=None, abstract_state=None):
        return self.load_checkpointables(step, {"state": abstract_state})["state"]

    def metadata(self, step=None):
        path = self._path(step)
        return CheckpointMetadata(path, int(path.name), metadata(path).metadata)

    def save_async(self, step, state, **options):
        return at_once(self.save)(step, state, **options)

    def save_checkpointables_async(self, step, checkpointables, **options):
        return at_once(self.save_checkpointables)(step, checkpointables, **options)

    save_pytree, save_pytree_async, load_pytree, pytree_metadata = save, save_async, load, metadata
