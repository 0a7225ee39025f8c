# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells that hand a state from step to step. Source of the formulas and the names: google/flax, flax/linen/recurrent.py."""
from typing import Any, Callable

import jax
import jax.numpy as jnp
from jax.nn import initializers

from ._layers import Dense
from ._lifted import scan
from ._module import Module, compact, nowrap


class RNNCellBase(Module):
    def initialize_carry(self, rng, input_shape):
        raise NotImplementedError

    num_feature_axes = 1


class _Cell(RNNCellBase):
    """`features`: the size of the state."""
    features: int
    gate_fn: Callable = jax.nn.sigmoid
    activation_fn: Callable = jnp.tanh
    kernel_init: Callable = initializers.lecun_normal()
    recurrent_kernel_init: Callable = initializers.orthogonal()
    bias_init: Callable = initializers.zeros
    dtype: Any = None
    param_dtype: Any = jnp.float32
    carry_init: Callable = initializers.zeros

    @nowrap
    def _own(self, name, use_bias=True):
        return Dense(self.features, use_bias=use_bias, name=name, kernel_init=self.kernel_init, bias_init=self.bias_init, dtype=self.dtype, param_dtype=self.param_dtype)

    @nowrap
    def _handed(self, name, use_bias=True):
        return Dense(self.features, use_bias=use_bias, name=name, kernel_init=self.recurrent_kernel_init, bias_init=self.bias_init, dtype=self.dtype,
                     param_dtype=self.param_dtype)

    def initialize_carry(self, rng, input_shape):
        return self.carry_init(rng, (*input_shape[:-1], self.features), self.param_dtype)


class SimpleCell(_Cell):
    residual: bool = False

    @compact
    def __call__(self, carry, inputs):
        new = self._own("i")(inputs) + self._handed("h", False)(carry)
        new = self.activation_fn(new + carry if self.residual else new)
        return new, new


class GRUCell(_Cell):
    @compact
    def __call__(self, carry, inputs):
        r = self.gate_fn(self._own("ir")(inputs) + self._handed("hr", False)(carry))
        z = self.gate_fn(self._own("iz")(inputs) + self._handed("hz", False)(carry))
        n = self.activation_fn(self._own("in")(inputs) + r * self._handed("hn")(carry))
        new = (1.0 - z) * n + z * carry
        return new, new


class LSTMCell(_Cell):
    @compact
    def __call__(self, carry, inputs):
        c, h = carry
        gate = lambda name, function: function(self._own(f"i{name}", False)(inputs) + self._handed(f"h{name}")(h))
        i, f, g, o = gate("i", self.gate_fn), gate("f", self.gate_fn), gate("g", self.activation_fn), gate("o", self.gate_fn)
        c = f * c + i * g
        h = o * self.activation_fn(c)
        return (c, h), h

    def initialize_carry(self, rng, input_shape):
        first, second = jax.random.split(rng)
        shape = (*input_shape[:-1], self.features)
        return self.carry_init(first, shape, self.param_dtype), self.carry_init(second, shape, self.param_dtype)


class OptimizedLSTMCell(LSTMCell):
    pass


class RNN(Module):
    """A cell over the steps of a sequence."""
    cell: RNNCellBase
    time_major: bool = False
    return_carry: bool = False
    reverse: bool = False
    keep_order: bool = False
    unroll: int = 1
    variable_axes: Any = None
    variable_broadcast: Any = "params"
    variable_carry: Any = False
    split_rngs: Any = None

    def __call__(self, inputs, *, init_key=None, initial_carry=None, seq_lengths=None, return_carry=None, time_major=None, reverse=None, keep_order=None):
        choose = lambda given, own: own if given is None else given
        return_carry, time_major = choose(return_carry, self.return_carry), choose(time_major, self.time_major)
        reverse, keep_order = choose(reverse, self.reverse), choose(keep_order, self.keep_order)
        if seq_lengths is not None:
            raise NotImplementedError("flax.linen.RNN with seq_lengths")
        axis = 0 if time_major else inputs.ndim - (self.cell.num_feature_axes + 1)
        inputs = jnp.flip(inputs, axis) if reverse else inputs
        carry = initial_carry
        if carry is None:
            carry = self.cell.initialize_carry(jax.random.key(0) if init_key is None else init_key, inputs.shape[:axis] + inputs.shape[axis + 1:])
        step = scan(lambda cell, carry, x: cell(carry, x), variable_axes=self.variable_axes, variable_broadcast=self.variable_broadcast,
                    variable_carry=self.variable_carry, split_rngs={"params": False} if self.split_rngs is None else self.split_rngs, in_axes=axis, out_axes=axis,
                    unroll=self.unroll)
        carry, outputs = step(self.cell, carry, inputs)
        outputs = jnp.flip(outputs, axis) if reverse and keep_order else outputs
        return (carry, outputs) if return_carry else outputs


class Bidirectional(Module):
    """Two cells over a sequence, one of which runs backwards."""
    forward_rnn: RNN
    backward_rnn: RNN
    merge_fn: Callable = lambda forward, backward: jnp.concatenate([forward, backward], axis=-1)
    time_major: bool = False
    return_carry: bool = False

    def __call__(self, inputs, *, init_key=None, initial_carry=None, seq_lengths=None, return_carry=None, time_major=None):
        return_carry = self.return_carry if return_carry is None else return_carry
        keys = (None, None) if init_key is None else jax.random.split(init_key)
        starts = (None, None) if initial_carry is None else initial_carry
        options = dict(seq_lengths=seq_lengths, return_carry=True, time_major=self.time_major if time_major is None else time_major)
        forward_carry, forward = self.forward_rnn(inputs, init_key=keys[0], initial_carry=starts[0], reverse=False, **options)
        backward_carry, backward = self.backward_rnn(inputs, init_key=keys[1], initial_carry=starts[1], reverse=True, keep_order=True, **options)
        made = self.merge_fn(forward, backward)
        return ((forward_carry, backward_carry), made) if return_carry else made
