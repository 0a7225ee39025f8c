# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers as pairs of functions: (key, shape) -> (shape, parameters), and (parameters, inputs) -> outputs. Source of the defaults and the order of keys:
jax-ml/jax, jax/example_libraries/stax.py."""
import functools
import math

import jax
import jax.numpy as jnp
from jax import lax, nn
from jax.nn.initializers import glorot_normal, normal, ones, zeros


def _shape(function, *shapes):
    """What a function of arrays of these shapes gives. Sizes of -1 are not known, and what depends on them is not."""
    def of(size):
        return jax.eval_shape(function, *(jax.ShapeDtypeStruct(tuple(size if one == -1 else one for one in shape), jnp.float32) for shape in shapes)).shape
    return tuple(one if one == other else -1 for one, other in zip(of(2), of(3)))


def _without_parameters(function):
    def init(rng, input_shape):
        return _shape(function, input_shape), ()
    return init, lambda params, inputs, **_: function(inputs)


def Dense(out_dim, W_init=glorot_normal(), b_init=normal()):
    def init(rng, input_shape):
        first, second = jax.random.split(rng)
        return (*input_shape[:-1], out_dim), (W_init(first, (input_shape[-1], out_dim)), b_init(second, (out_dim,)))
    return init, lambda params, inputs, **_: jnp.dot(inputs, params[0]) + params[1]


def _general(convolution, dimension_numbers, out_chan, filter_shape, strides=None, padding="VALID", W_init=None, b_init=normal(1e-6)):
    of_inputs, of_kernel, of_outputs = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot_normal(of_kernel.index("I"), of_kernel.index("O"))
    convolve = lambda inputs, kernel: convolution(inputs, kernel, strides, padding, dimension_numbers=dimension_numbers)

    def init(rng, input_shape):
        sizes, first, second = iter(filter_shape), *jax.random.split(rng)
        kernel = tuple({"O": out_chan, "I": input_shape[of_inputs.index("C")]}.get(letter) or next(sizes) for letter in of_kernel)
        params = W_init(first, kernel), b_init(second, tuple(out_chan if letter == "C" else 1 for letter in of_outputs))
        return _shape(convolve, input_shape, kernel), params
    return init, lambda params, inputs, **_: convolve(inputs, params[0]) + params[1]


GeneralConv = functools.partial(_general, lax.conv_general_dilated)
GeneralConvTranspose = functools.partial(_general, lax.conv_transpose)
Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(axis=(0, 1, 2), epsilon=1e-5, center=True, scale=True, beta_init=zeros, gamma_init=ones):
    axis = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng, input_shape):
        shape, keys = tuple(size for at, size in enumerate(input_shape) if at not in axis), jax.random.split(rng)
        return input_shape, (beta_init(keys[0], shape) if center else (), gamma_init(keys[1], shape) if scale else ())

    def apply(params, x, **_):
        whole = tuple(1 if at in axis else size for at, size in enumerate(x.shape))
        x = (x - jnp.mean(x, axis, keepdims=True)) * lax.rsqrt(jnp.var(x, axis, keepdims=True) + epsilon)
        x = x * params[1].reshape(whole) if scale else x
        return x + params[0].reshape(whole) if center else x
    return init, apply


def elementwise(fun, **fun_kwargs):
    return _without_parameters(lambda x: fun(x, **fun_kwargs))


Tanh, Exp, Relu, Elu, Selu = map(elementwise, (jnp.tanh, jnp.exp, nn.relu, nn.elu, nn.selu))
Gelu, LeakyRelu, Sigmoid, Softplus = map(elementwise, (nn.gelu, nn.leaky_relu, nn.sigmoid, nn.softplus))
Softmax, LogSoftmax = elementwise(nn.softmax, axis=-1), elementwise(nn.log_softmax, axis=-1)
Identity = elementwise(lambda x: x)
Flatten = _without_parameters(lambda x: x.reshape(x.shape[0], math.prod(x.shape[1:])))


def _pooling(start, computation, is_mean=False):
    def layer(window_shape, strides=None, padding="VALID", spec=None):
        letters = spec or f"N{'S' * len(window_shape)}C"
        sizes, steps = iter(window_shape), iter(strides or (1,) * len(window_shape))
        window, strides = zip(*((1, 1) if letter in "NC" else (next(sizes), next(steps)) for letter in letters))
        pooled = lambda x: lax.reduce_window(x, start, computation, window, strides, padding)
        return _without_parameters((lambda x: pooled(x) / pooled(jnp.ones_like(x))) if is_mean else pooled)
    return layer


MaxPool, SumPool, AvgPool = _pooling(-jnp.inf, lax.max), _pooling(0.0, lax.add), _pooling(0.0, lax.add, True)


def Dropout(rate, mode="train"):
    """`rate`: the part that is kept."""
    def apply(params, inputs, rng=None, **_):
        if rng is None:
            raise ValueError("Dropout layer requires apply_fun to be called with a PRNG key argument. That is, instead of `apply_fun(params, inputs)`, call it like "
                             "`apply_fun(params, inputs, rng)` where `rng` is a PRNG key (e.g. from `jax.random.key`).")
        return jnp.where(jax.random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0) if mode == "train" else inputs
    return (lambda rng, input_shape: (input_shape, ())), apply


def FanOut(num):
    return (lambda rng, input_shape: ([input_shape] * num, ())), lambda params, inputs, **_: [inputs] * num


FanInSum = (lambda rng, input_shape: (input_shape[0], ())), lambda params, inputs, **_: functools.reduce(jnp.add, inputs)


def FanInConcat(axis=-1):
    joined = lambda *inputs: jnp.concatenate(inputs, axis)
    return (lambda rng, input_shape: (_shape(joined, *input_shape), ())), lambda params, inputs, **_: joined(*inputs)


def serial(*layers):
    def init(rng, input_shape):
        params = []
        for layer_init, _ in layers:
            rng, key = jax.random.split(rng)
            input_shape, own = layer_init(key, input_shape)
            params.append(own)
        return input_shape, params

    def apply(params, inputs, rng=None, **kwargs):
        keys = (None,) * len(layers) if rng is None else jax.random.split(rng, len(layers))
        for (_, layer), own, key in zip(layers, params, keys):
            inputs = layer(own, inputs, rng=key, **kwargs)
        return inputs
    return init, apply


def parallel(*layers):
    def init(rng, input_shape):
        made = [layer_init(key, shape) for (layer_init, _), key, shape in zip(layers, jax.random.split(rng, len(layers)), input_shape)]
        return [shape for shape, _ in made], [own for _, own in made]

    def apply(params, inputs, rng=None, **kwargs):
        keys = (None,) * len(layers) if rng is None else jax.random.split(rng, len(layers))
        return [layer(own, x, rng=key, **kwargs) for (_, layer), own, x, key in zip(layers, params, inputs, keys)]
    return init, apply


def shape_dependent(make_layer):
    return (lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape)), lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs)
