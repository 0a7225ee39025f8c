# SPDX-License-Identifier: GPL-3.0-or-later
"""An optimizer that holds its state, and in older versions the model too. Source: google/flax, flax/nnx/training/optimizer.py."""
import jax
import jax.numpy as jnp
import optax

from ._graph import Variable, VariableState, state, update
from ._pytree import Pytree, data
from ._variables import Param


class OptState(Variable):
    pass


def _is_state(node):
    return isinstance(node, VariableState)


def _is_variable(node):
    return isinstance(node, Variable)


def _wrapped(leaf):
    return OptState(leaf.value, **leaf._metadata) if _is_state(leaf) else OptState(leaf)


class Optimizer(Pytree):
    def __init__(self, model, tx, wrt=Param):
        self.step = OptState(jnp.array(0, jnp.uint32))
        self.model, self.tx, self.wrt = model, tx, wrt
        self.opt_state = data(jax.tree.map(_wrapped, tx.init(state(model, wrt)), is_leaf=_is_state))

    def update(self, *given, **kwargs):
        """update(grads), or in later versions update(model, grads)."""
        model, grads = given if len(given) == 2 else (self.model, given[0])
        grads = state(grads, self.wrt) if isinstance(grads, Pytree) else grads
        params = state(model, self.wrt)
        shown = state(model, self.wrt)
        before = jax.tree.map(lambda variable: VariableState(OptState, variable.value), self.opt_state, is_leaf=_is_variable)
        updates, after = self.tx.update(_bare(grads), _bare(before), _bare(params), **kwargs)
        changed = optax.apply_updates(_bare(params), updates)
        update(model, _clothed(changed, shown))
        self._set_state(after)
        self.step.value = self.step.value + jnp.uint32(1)

    def _set_state(self, after):
        variables = jax.tree.leaves(self.opt_state, is_leaf=_is_variable)
        for variable, value in zip(variables, jax.tree.leaves(after)):
            variable.value = value


def _bare(tree):
    """Values in place of the states of variables."""
    return jax.tree.map(lambda node: node.value if _is_state(node) else node, tree, is_leaf=_is_state)


def _clothed(tree, like):
    return jax.tree.map(lambda node, value: node.replace(value), like, tree, is_leaf=_is_state)


class ModelAndOptimizer(Optimizer):
    """An optimizer that holds its model."""

    def __init__(self, model, tx, wrt=Param):
        super().__init__(model, tx, wrt)
