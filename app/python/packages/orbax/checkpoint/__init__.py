# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints of a page, as NumPy files. A path below the system's folder of temporary files is one below the page's own."""
from . import args, checkpoint_utils, handlers, test_utils, utils, v1
from ._checkpointers import (AsyncCheckpointer, Checkpointer, PyTreeCheckpointer, StandardCheckpointer)
from ._manager import CheckpointManager, CheckpointManagerOptions
from ._trees import PLACEHOLDER, ArrayRestoreArgs, RestoreArgs, SaveArgs, Transform
from .handlers import (ArrayCheckpointHandler, AsyncCheckpointHandler, CheckpointHandler, CompositeCheckpointHandler, JsonCheckpointHandler, PyTreeCheckpointHandler,
                       StandardCheckpointHandler)

RestoreTransform = Transform
__version__ = "0.11.5"
