# SPDX-License-Identifier: GPL-3.0-or-later
"""An optimizer that holds its state, and in older versions the model too. Source: google/flax, flax/nnx/training/optimizer.py."""
import jax
import jax.numpy as jnp
import optax

from ._graph import State, Variable, VariableState, copied, is_variable, matches, state, update, variables_of
from ._pytree import Pytree, data
from ._variables import Param


class OptState(Variable):
    pass


def _is_state(node):
    return isinstance(node, VariableState)


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
        grads = state(grads, self.wrt) if isinstance(grads, Pytree) else grads.filter(self.wrt) if isinstance(grads, State) else grads
        params = state(model, self.wrt)
        shown = state(model, self.wrt)
        before = jax.tree.map(lambda variable: VariableState(OptState, variable.value), self.opt_state, is_leaf=is_variable)
        kwargs = {name: _bare(state(value) if isinstance(value, Pytree) else value) for name, value in kwargs.items()}  # such as the gradients, for a line search
        updates, after = self.tx.update(_bare(grads), _bare(before), _bare(params), **kwargs)
        changed = optax.apply_updates(_bare(params), updates)
        update(model, _clothed(changed, shown))
        self._set_state(after)
        self.step.value = self.step.value + jnp.uint32(1)
        return updates

    def _set_state(self, after):
        variables = jax.tree.leaves(self.opt_state, is_leaf=is_variable)
        form = jax.tree.structure(jax.tree.map(lambda _: 0, self.opt_state, is_leaf=is_variable))
        for variable, value in zip(variables, form.flatten_up_to(after)):  # a variable may hold a tree: what a mask leaves out
            variable.value = value


def _bare(tree):
    """Values in place of the states of variables."""
    return jax.tree.map(lambda node: node.value if _is_state(node) else node, tree, is_leaf=_is_state)


def _clothed(tree, like):
    return jax.tree.map(lambda node, value: node.replace(value) if _is_state(node) else value, like, tree, is_leaf=_is_state)


class ModelAndOptimizer(Optimizer):
    """An optimizer that holds its model."""

    def __init__(self, model, tx, wrt=Param):
        super().__init__(model, tx, wrt)


class EMA(Pytree):
    """Moving averages of variables, each of a copy of its own: average = decay * average + (1 - decay) * value."""

    def __init__(self, params, decay, *, only=..., graph=None):
        self.decay, self.filter, self.graph = decay, only, graph
        chosen = [(path, variable) for path, variable in variables_of(params) if matches(only, path, variable)]
        for path, variable in chosen:
            if not is_variable(variable):
                raise TypeError(f"EMA only supports Variable leaves, got {type(variable.value).__name__} at path '{'/'.join(map(str, path))}'. Use the `only` filter to "
                                "select Variable leaves.")
        self.params = data(State.from_flat_path([(path, variable.copy()) for path, variable in chosen]))

    def update(self, updates):
        known = dict(self.params.flat_state())
        for path, new in state(updates, self.filter).flat_state() if isinstance(updates, Pytree) else updates.filter(self.filter).flat_state():
            known[path].value = self.decay * known[path].value + (1.0 - self.decay) * new.value

    def apply_to(self, model):
        """The model with the averages in place of its variables: what is learned later shows in it."""
        known, places = dict(self.params.flat_state()), {id(variable): path for path, variable in variables_of(model)}
        return copied(model, {}, lambda variable: known.get(places[id(variable)], variable))
