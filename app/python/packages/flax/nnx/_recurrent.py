# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells that hand a state from step to step. Source of the formulas, the defaults and the order of keys: google/flax, flax/nnx/nn/recurrent.py."""
import jax
import jax.numpy as jnp
from jax._src.options import refuse as _refuse
from jax.nn import initializers

from ._layers import Linear, Module
from ._lifted import Carry, StateAxes, scan


def _from_zeros(carry_init):
    """Carries start at zero, whatever the cell."""
    if carry_init not in (None, initializers.zeros, initializers.zeros_init()):
        raise NotImplementedError(f"a recurrent cell with carry_init={carry_init!r}")


class RNNCellBase(Module):
    def initialize_carry(self, input_shape, rngs=None, carry_init=None):
        raise NotImplementedError


def _zeros(shape, size, dtype):
    return jnp.zeros((*shape[:-1], size), dtype)


class SimpleCell(RNNCellBase):
    num_feature_axes = 1

    def __init__(self, in_features, hidden_features, *, dtype=jnp.float32, param_dtype=jnp.float32, carry_init=initializers.zeros, residual=False,
                 activation_fn=jnp.tanh, kernel_init=initializers.lecun_normal(), recurrent_kernel_init=initializers.orthogonal(),
                 bias_init=initializers.zeros, keep_rngs=False, rngs):
        _from_zeros(carry_init)
        self.in_features, self.hidden_features, self.residual, self.activation_fn, self.carry_dtype = in_features, hidden_features, residual, activation_fn, dtype
        self.dense_h = Linear(hidden_features, hidden_features, use_bias=False, param_dtype=param_dtype, kernel_init=recurrent_kernel_init, rngs=rngs)
        self.dense_i = Linear(in_features, hidden_features, param_dtype=param_dtype, kernel_init=kernel_init, bias_init=bias_init, rngs=rngs)

    def __call__(self, carry, inputs):
        new = self.dense_i(inputs) + self.dense_h(carry)
        new = self.activation_fn(new + carry if self.residual else new)
        return new, new

    def initialize_carry(self, input_shape, rngs=None, carry_init=None):
        _from_zeros(carry_init)
        return _zeros(input_shape, self.hidden_features, self.carry_dtype)


class LSTMCell(RNNCellBase):
    num_feature_axes = 1

    def __init__(self, in_features, hidden_features, *, gate_fn=jax.nn.sigmoid, activation_fn=jnp.tanh, kernel_init=initializers.lecun_normal(),
                 recurrent_kernel_init=initializers.orthogonal(), bias_init=initializers.zeros, dtype=None, param_dtype=jnp.float32,
                 carry_init=initializers.zeros, keep_rngs=False, rngs):
        _from_zeros(carry_init)
        self.in_features, self.hidden_features, self.gate_fn, self.activation_fn = in_features, hidden_features, gate_fn, activation_fn
        self.carry_dtype = param_dtype if dtype is None else dtype
        own = lambda: Linear(in_features, hidden_features, use_bias=False, param_dtype=param_dtype, kernel_init=kernel_init, rngs=rngs)
        handed = lambda: Linear(hidden_features, hidden_features, param_dtype=param_dtype, kernel_init=recurrent_kernel_init, bias_init=bias_init, rngs=rngs)
        self.ii, self.if_, self.ig, self.io = own(), own(), own(), own()
        self.hi, self.hf, self.hg, self.ho = handed(), handed(), handed(), handed()

    def __call__(self, carry, inputs):
        c, h = carry
        i, f = self.gate_fn(self.ii(inputs) + self.hi(h)), self.gate_fn(self.if_(inputs) + self.hf(h))
        g, o = self.activation_fn(self.ig(inputs) + self.hg(h)), self.gate_fn(self.io(inputs) + self.ho(h))
        new_c = f * c + i * g
        new_h = o * self.activation_fn(new_c)
        return (new_c, new_h), new_h

    def initialize_carry(self, input_shape, rngs=None, carry_init=None):
        _from_zeros(carry_init)
        return (_zeros(input_shape, self.hidden_features, self.carry_dtype),) * 2


class OptimizedLSTMCell(RNNCellBase):
    """The same with the products of the four gates as one."""
    num_feature_axes = 1

    def __init__(self, in_features, hidden_features, *, gate_fn=jax.nn.sigmoid, activation_fn=jnp.tanh, kernel_init=initializers.lecun_normal(),
                 recurrent_kernel_init=initializers.orthogonal(), bias_init=initializers.zeros, dtype=None, param_dtype=jnp.float32,
                 carry_init=initializers.zeros, keep_rngs=False, rngs):
        _from_zeros(carry_init)
        self.in_features, self.hidden_features, self.gate_fn, self.activation_fn = in_features, hidden_features, gate_fn, activation_fn
        self.carry_dtype = param_dtype if dtype is None else dtype
        self.dense_i = Linear(in_features, hidden_features * 4, use_bias=False, param_dtype=param_dtype, kernel_init=kernel_init, rngs=rngs)
        self.dense_h = Linear(hidden_features, hidden_features * 4, param_dtype=param_dtype, kernel_init=recurrent_kernel_init, bias_init=bias_init, rngs=rngs)

    def __call__(self, carry, inputs):
        c, h = carry
        i, f, g, o = jnp.split(self.dense_i(inputs) + self.dense_h(h), 4, axis=-1)
        new_c = self.gate_fn(f) * c + self.gate_fn(i) * self.activation_fn(g)
        new_h = self.gate_fn(o) * self.activation_fn(new_c)
        return (new_c, new_h), new_h

    initialize_carry = LSTMCell.initialize_carry


class GRUCell(RNNCellBase):
    num_feature_axes = 1

    def __init__(self, in_features, hidden_features, *, gate_fn=jax.nn.sigmoid, activation_fn=jnp.tanh, kernel_init=initializers.lecun_normal(),
                 recurrent_kernel_init=initializers.orthogonal(), bias_init=initializers.zeros, dtype=None, param_dtype=jnp.float32,
                 carry_init=initializers.zeros, keep_rngs=False, rngs):
        _from_zeros(carry_init)
        self.in_features, self.hidden_features, self.gate_fn, self.activation_fn = in_features, hidden_features, gate_fn, activation_fn
        self.carry_dtype = param_dtype if dtype is None else dtype
        self.dense_i = Linear(in_features, 3 * hidden_features, param_dtype=param_dtype, kernel_init=kernel_init, bias_init=bias_init, rngs=rngs)
        self.dense_h = Linear(hidden_features, 3 * hidden_features, use_bias=False, param_dtype=param_dtype, kernel_init=recurrent_kernel_init, rngs=rngs)

    def __call__(self, carry, inputs):
        (xr, xz, xn), (hr, hz, hn) = jnp.split(self.dense_i(inputs), 3, axis=-1), jnp.split(self.dense_h(carry), 3, axis=-1)
        r, z = self.gate_fn(xr + hr), self.gate_fn(xz + hz)
        new = (1.0 - z) * self.activation_fn(xn + r * hn) + z * carry
        return new, new

    initialize_carry = SimpleCell.initialize_carry


def flip_sequences(inputs, lengths, axis):
    """Turns sequences round, each up to its length: what is behind it stays there. Source of the places: google/flax, flax/nnx/nn/recurrent.py."""
    if lengths is None:
        return jnp.flip(inputs, axis)
    steps = inputs.shape[axis]
    lengths = jnp.expand_dims(lengths, axis)
    places = jnp.arange(steps - 1, -1, -1).reshape([steps if dim == axis else 1 for dim in range(lengths.ndim)])
    places = (places + lengths) % steps
    return jnp.take_along_axis(inputs, places.reshape(places.shape + (1,) * (inputs.ndim - places.ndim)), axis)


class RNN(Module):
    """A cell over the steps of a sequence."""

    def __init__(self, cell, *, time_major=False, return_carry=False, reverse=False, keep_order=False, unroll=1, rngs=None, state_axes=None, **options):
        _refuse("nnx.RNN", {"state_axes": state_axes, **options}, ("use_fast_variance", "force_float32_reductions", "promote_dtype"))
        self.cell, self.time_major, self.return_carry, self.reverse, self.keep_order = cell, time_major, return_carry, reverse, keep_order

    def __call__(self, inputs, *, initial_carry=None, seq_lengths=None, return_carry=None, time_major=None, reverse=None, keep_order=None, rngs=None):
        choose = lambda given, own: own if given is None else given
        return_carry, time_major = choose(return_carry, self.return_carry), choose(time_major, self.time_major)
        reverse, keep_order = choose(reverse, self.reverse), choose(keep_order, self.keep_order)
        axis = 0 if time_major else inputs.ndim - 2
        inputs = flip_sequences(inputs, seq_lengths, axis) if reverse else inputs
        carry = initial_carry
        if carry is None:
            carry = self.cell.initialize_carry(inputs.shape[:axis] + inputs.shape[axis + 1:], rngs)
        def turn(cell, carry, x):
            carry, y = cell(carry, x)
            return carry, ((carry, y) if ends_early else y)
        ends_early = seq_lengths is not None and return_carry
        step = scan(turn, in_axes=(StateAxes({...: None}), Carry, axis), out_axes=(Carry, (0, axis) if ends_early else axis))
        carry, outputs = step(self.cell, carry, inputs)
        if ends_early:  # of each sequence, the carry behind its last step
            carries, outputs = outputs
            carry = jax.tree.map(lambda x: x[seq_lengths - 1, jnp.arange(x.shape[1])], carries)
        outputs = flip_sequences(outputs, seq_lengths, axis) if reverse and keep_order else outputs
        return (carry, outputs) if return_carry else outputs
