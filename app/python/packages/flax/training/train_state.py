# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters with their optimizer. Source: google/flax, flax/training/train_state.py."""
from typing import Any, Callable

import optax

from .. import struct

_OVERWRITE = "_overwrite_with_gradient"


class TrainState(struct.PyTreeNode):
    step: Any
    apply_fn: Callable = struct.field(pytree_node=False)
    params: Any = struct.field(pytree_node=True)
    tx: Any = struct.field(pytree_node=False)
    opt_state: Any = struct.field(pytree_node=True)

    def apply_gradients(self, *, grads, **kwargs):
        if _OVERWRITE in grads:
            raise NotImplementedError(f"TrainState.apply_gradients with {_OVERWRITE}")
        updates, opt_state = self.tx.update(grads, self.opt_state, self.params)
        return self.replace(step=self.step + 1, params=optax.apply_updates(self.params, updates), opt_state=opt_state, **kwargs)

    @classmethod
    def create(cls, *, apply_fn, params, tx, **kwargs):
        return cls(step=0, apply_fn=apply_fn, params=params, tx=tx, opt_state=tx.init(params), **kwargs)
