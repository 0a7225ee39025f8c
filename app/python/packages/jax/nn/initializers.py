# SPDX-License-Identifier: GPL-3.0-or-later
"""Initial values, drawn as JAX draws them. Source of the constants: jax-ml/jax, jax/_src/nn/initializers.py."""
import math

from .._src import dtypes, ops, random_

_DEVIATION_OF_TRUNCATED = 0.87962566103423978  # of a normal cut at two standard deviations


def _size(shape, axes):
    return math.prod(shape[axis] for axis in ((axes,) if isinstance(axes, int) else axes))


def _fans(shape, in_axis=-2, out_axis=-1, batch_axis=()):
    if len(shape) <= 1:
        raise ValueError(f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor. Must be at least 2D.")
    into, out = _size(shape, in_axis), _size(shape, out_axis)
    field = math.prod(shape) / into / out / _size(shape, batch_axis) if math.prod(shape) else 0
    return into * field, out * field


def _initializer(default):
    """A function of a key, a shape and a type, `default` where none is given, that also takes where its result is to lie."""
    def decorator(draw):
        def init(key, shape, dtype=default, out_sharding=None):
            return ops.placeable(draw)(key, shape, default if dtype is None else dtype, out_sharding=out_sharding)
        init.__name__ = init.__qualname__ = draw.__name__
        return init
    return decorator


def variance_scaling(scale, mode, distribution, in_axis=-2, out_axis=-1, batch_axis=(), dtype="float32"):
    @_initializer(dtype)
    def init(key, shape, dtype):
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode]
        variance = scale / fan
        if distribution == "uniform":
            return ops.multiply(random_.uniform(key, shape, dtype, -1.0, 1.0), math.sqrt(3 * variance))
        if distribution == "normal":
            return ops.multiply(random_.normal(key, shape, dtype), math.sqrt(variance))
        return ops.multiply(random_.truncated_normal(key, -2, 2, shape, dtype), math.sqrt(variance) / _DEVIATION_OF_TRUNCATED)
    return init


def _named(scale, mode, distribution):
    return lambda in_axis=-2, out_axis=-1, batch_axis=(), dtype="float32": variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)


lecun_normal, lecun_uniform = _named(1.0, "fan_in", "truncated_normal"), _named(1.0, "fan_in", "uniform")
he_normal = kaiming_normal = _named(2.0, "fan_in", "truncated_normal")
he_uniform = kaiming_uniform = _named(2.0, "fan_in", "uniform")
glorot_normal = xavier_normal = _named(1.0, "fan_avg", "truncated_normal")
glorot_uniform = xavier_uniform = _named(1.0, "fan_avg", "uniform")


@_initializer("float32")
def zeros(key, shape, dtype):
    return ops.full(shape, 0, dtypes.named(dtype))


@_initializer("float32")
def ones(key, shape, dtype):
    return ops.full(shape, 1, dtypes.named(dtype))


def constant(value, dtype="float32"):
    @_initializer(dtype)
    def init(key, shape, dtype):
        return ops.broadcast_to(ops.astype(ops.asarray(value), dtypes.named(dtype)), shape)
    return init


def normal(stddev=1e-2, dtype="float32"):
    @_initializer(dtype)
    def init(key, shape, dtype):
        return ops.multiply(random_.normal(key, shape, dtype), stddev)
    return init


def uniform(scale=1e-2, dtype="float32"):
    @_initializer(dtype)
    def init(key, shape, dtype):
        return random_.uniform(key, shape, dtype, 0.0, scale)
    return init


def truncated_normal(stddev=1e-2, dtype="float32", lower=-2.0, upper=2.0):
    @_initializer(dtype)
    def init(key, shape, dtype):
        return ops.multiply(random_.truncated_normal(key, lower, upper, shape, dtype), stddev)
    return init


def zeros_init():
    return zeros


def ones_init():
    return ones


def orthogonal(scale=1.0, column_axis=-1, dtype="float32"):
    """Source: jax-ml/jax, jax/_src/nn/initializers.py (orthogonal)."""
    @_initializer(dtype)
    def init(key, shape, dtype):
        from ..numpy import diagonal, linalg
        columns = shape[column_axis]
        rows = math.prod(shape) // columns
        drawn = random_.normal(key, (rows, columns) if rows > columns else (columns, rows), dtype)
        q, r = linalg.qr(drawn)
        q = ops.multiply(q, ops.expand_dims(ops.sign(diagonal(r)), 0))
        q = ops.transpose(q) if rows < columns else q
        q = ops.reshape(q, tuple(size for at, size in enumerate(shape) if at != column_axis % len(shape)) + (columns,))
        return ops.multiply(ops.moveaxis(q, -1, column_axis), scale)
    return init
