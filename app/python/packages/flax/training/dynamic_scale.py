# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.training.dynamic_scale. Source of the rules: google/flax, flax/training/dynamic_scale.py."""
import collections
import functools
from typing import Optional

import jax
from jax import lax
from jax import numpy as jnp

from .. import struct

DynamicScaleResult = collections.namedtuple("DynamicScaleResult", "dynamic_scale finite aux grad")


class DynamicScale(struct.PyTreeNode):
    """Losses are made larger before they are differentiated, so that small gradients do not vanish in types of few bits."""
    growth_factor: float = struct.field(pytree_node=False, default=2.0)
    backoff_factor: float = struct.field(pytree_node=False, default=0.5)
    growth_interval: int = struct.field(pytree_node=False, default=2000)
    fin_steps: int = 0
    scale: float = 65536.0
    minimum_scale: Optional[float] = struct.field(pytree_node=False, default=float(jnp.finfo(jnp.float32).tiny))

    def value_and_grad(self, fun, argnums=0, has_aux=False, axis_name=None):
        @functools.wraps(fun)
        def scaled(*args):
            made = fun(*args)
            return (self.scale * made[0], made[1]) if has_aux else self.scale * made
        both = jax.value_and_grad(scaled, argnums, has_aux)

        def called(*args):
            made, grads = both(*args)
            made = (made[0] / self.scale, made[1]) if has_aux else made / self.scale
            grads = jax.tree.map(lambda g: jnp.asarray(g, jnp.float32) / self.scale, grads)
            grads = grads if axis_name is None else lax.pmean(grads, axis_name)
            finite = functools.reduce(jnp.logical_and, [jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)], jnp.array(True))
            grows = self.fin_steps == self.growth_interval
            larger = jnp.where(grows & finite, jnp.minimum(self.scale * self.growth_factor, jnp.finfo(jnp.float32).max), self.scale)
            smaller = self.scale * self.backoff_factor
            smaller = smaller if self.minimum_scale is None else jnp.maximum(smaller, self.minimum_scale)
            return DynamicScaleResult(self.replace(fin_steps=jnp.where(grows | ~finite, 0, self.fin_steps + 1), scale=jnp.where(finite, larger, smaller)),
                                      finite, made, grads)
        return called
