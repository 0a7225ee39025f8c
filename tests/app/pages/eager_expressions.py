# SPDX-License-Identifier: GPL-3.0-or-later
"""Random expressions of arrays, as jax.numpy and as NumPy compute them; gradients of random functions against finite differences.

Arguments: a seed, the number of expressions, and of gradients. Prints what differs; the last line counts what was compared."""
import random
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

SHAPES = [(), (4,), (1, 4), (8, 4), (8, 1), (2, 8, 4)]
DTYPES = ["float32", "int32", "bool"]
UNARY = ["negative", "abs", "exp", "sin", "cos", "tanh", "square", "sqrt", "log1p", "floor", "sign"]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "greater_equal", "equal", "floor_divide", "remainder"]
REDUCE = ["sum", "mean", "max", "min", "argmax"]
SMOOTH = ["sin", "cos", "tanh", "square"]


def value(rng, shape, dtype):
    numbers = np.random.default_rng(rng.randrange(2**31))
    if dtype == "float32":
        return numbers.uniform(-2, 2, shape).astype(dtype)
    return numbers.integers(-4, 5, shape).astype(dtype) if dtype == "int32" else numbers.integers(0, 2, shape).astype(bool)


def placed(rng, array, meshes):
    """The array somewhere: on one device, or split over a mesh as far as it divides."""
    if rng.random() < 0.4 or array.ndim == 0:
        return jnp.asarray(array)
    mesh = rng.choice(meshes)
    axes = list(mesh.axis_names)
    rng.shuffle(axes)
    spec = []
    for size in array.shape:
        axis = axes.pop() if axes and rng.random() < 0.6 else None
        spec.append(axis if axis is not None and size % mesh.shape[axis] == 0 else None)
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


def expression(rng, depth, leaves):
    """A tree of names and numbers of leaves."""
    if depth == 0 or rng.random() < 0.15:
        leaves.append((rng.choice(SHAPES), rng.choice(DTYPES)))
        return len(leaves) - 1
    kind = rng.random()
    if kind < 0.3:
        return rng.choice(UNARY), expression(rng, depth - 1, leaves)
    if kind < 0.75:
        return rng.choice(BINARY), expression(rng, depth - 1, leaves), expression(rng, depth - 1, leaves)
    if kind < 0.9:
        return rng.choice(REDUCE), expression(rng, depth - 1, leaves)
    return rng.choice(["T", "where"]), expression(rng, depth - 1, leaves), expression(rng, depth - 1, leaves)


def evaluated(tree, values, names):
    """NumPy works with JAX's types: 32 bits, floating results of integers as float32."""
    if isinstance(tree, int):
        return values[tree]
    op, *parts = tree
    args = [evaluated(part, values, names) for part in parts]
    narrow = (lambda x: x) if names is jnp else lambda x: narrowed(np.asarray(x))
    if op in ("sqrt", "log1p"):
        args[0] = names.abs(narrow(args[0] * 1.0))
    if op in ("floor_divide", "remainder", "divide"):
        args[1] = narrow(names.abs(args[1] * 1.0) + 0.5)
    if op in ("negative", "sign", "subtract", "abs", "square") or op in REDUCE:
        args = [narrow(arg + 0) for arg in args]  # not of truths
    if op in ("exp", "sin", "cos", "tanh", "floor"):
        args = [narrow(arg * 1.0) for arg in args]  # NumPy gives half precision for truths
    if op in ("sin", "cos"):
        args = [narrow(names.clip(arg, -100.0, 100.0)) for arg in args]  # of larger numbers the last digit alone decides
    if op == "T":
        return args[0].T
    if op == "where":
        return narrow(names.where(args[0] > 0, args[0], args[1]))
    return narrow(getattr(names, op)(*args))


def narrowed(array):
    return array.astype({"f": np.float32, "i": np.int32, "u": np.uint32, "b": bool}[array.dtype.kind])


def smooth(rng, depth):
    """A smooth scalar function of two arrays of shape (4, 4), as a function of a module of names."""
    if depth == 0:
        pick = rng.randrange(2)
        return lambda x, names: x[pick]
    kind = rng.random()
    if kind < 0.45:
        op, inner = rng.choice(SMOOTH), smooth(rng, depth - 1)
        return lambda x, names: getattr(names, op)(inner(x, names) * 0.5)
    op, left, right = rng.choice(["add", "multiply", "subtract", "matmul"]), smooth(rng, depth - 1), smooth(rng, depth - 1)
    return lambda x, names: getattr(names, op)(left(x, names), right(x, names))


def main():
    rng = random.Random(int(sys.argv[1]))
    devices = np.array(jax.devices())
    meshes = [Mesh(devices.reshape(4, 2), ("a", "b")), Mesh(devices.reshape(2, 4), ("a", "b"))]
    wrong, compared = 0, 0
    for number in range(int(sys.argv[2])):
        leaves = []
        tree = expression(rng, 3, leaves)
        values = [value(rng, *leaf) for leaf in leaves]
        mesh = [rng.choice(meshes)]
        try:
            with np.errstate(all="ignore"):
                expected = np.asarray(evaluated(tree, values, np))
        except (ValueError, np.AxisError):
            continue  # shapes that do not broadcast
        arrays = [placed(rng, v, mesh) for v in values]
        found = evaluated(tree, arrays, jnp)
        compared += 1
        same = found.dtype == expected.dtype or expected.dtype == np.int64
        if not same or found.shape != expected.shape or not np.allclose(np.asarray(found), expected, rtol=2e-4, atol=1e-4, equal_nan=True):
            wrong += 1
            print("expression", number, tree, leaves, "\n", np.asarray(found), found.dtype, "\nbut NumPy\n", expected, expected.dtype)
    for number in range(int(sys.argv[3])):
        body = smooth(rng, 3)
        x = [value(rng, (4, 4), "float32") for _ in range(2)]
        places = [placed(rng, v, meshes[:1]) for v in x]
        gradient = jax.grad(lambda *args: jnp.sum(body(args, jnp)), argnums=(0, 1))
        found = (jax.jit(gradient) if rng.random() < 0.5 else gradient)(*places)
        steps = [value(rng, (4, 4), "float32").astype(np.float64) for _ in x]
        along = sum(float(np.sum(np.asarray(g).astype(np.float64) * s)) for g, s in zip(found, steps))
        at = lambda e: float(np.sum(body([v.astype(np.float64) + e * s for v, s in zip(x, steps)], np)))
        expected = (at(1e-5) - at(-1e-5)) / 2e-5
        compared += 1
        if abs(along - expected) > 2e-3 * max(1.0, abs(expected)):
            wrong += 1
            print("gradient", number, along, "but by differences", expected)
    print(wrong, "of", compared, "differ")


main()
