# SPDX-License-Identifier: GPL-3.0-or-later
"""Loops of traced functions beside Python's, convolutions and windows beside their definition, complex numbers beside NumPy's; derivatives beside
differences."""
import itertools
import sys

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

wrong = compared = 0


def compare(name, found, expected, tolerance=2e-4):
    global wrong, compared
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        compared += 1
        if np.shape(a) != np.shape(b) or not np.allclose(a, b, tolerance, tolerance):
            wrong += 1
            print(name, "\n", np.asarray(a), "\nis not\n", np.asarray(b))


def convolved(x, w, strides, pads, spread, dilation, groups):
    """NHWC with HWIO, element by element of the result."""
    padded = np.zeros((x.shape[0], *[(size - 1) * step + 1 + sum(pair) for size, step, pair in zip(x.shape[1:3], spread, pads)], x.shape[3]))
    for i, j in itertools.product(range(x.shape[1]), range(x.shape[2])):
        padded[:, pads[0][0] + i * spread[0], pads[1][0] + j * spread[1]] = x[:, i, j]
    rows, columns = ((padded.shape[1 + d] - (w.shape[d] - 1) * dilation[d] - 1) // strides[d] + 1 for d in (0, 1))
    y = np.zeros((x.shape[0], rows, columns, w.shape[3]))
    for i, j, p, q, o in itertools.product(range(rows), range(columns), range(w.shape[0]), range(w.shape[1]), range(w.shape[3])):
        group = o // (w.shape[3] // groups)
        part = padded[:, i * strides[0] + p * dilation[0], j * strides[1] + q * dilation[1], group * w.shape[2]:(group + 1) * w.shape[2]]
        y[:, i, j, o] += part @ w[p, q, :, o]
    return y


def windows(rng):
    dims = ("NHWC", "HWIO", "NHWC")
    for number in range(12):
        groups = int(rng.choice([1, 2, 4]))
        x, w = rng.standard_normal((2, 5, 6, 4)), rng.standard_normal((*rng.integers(1, 4, 2), 4 // groups, 8))
        strides, spread, dilation = (tuple(int(n) for n in rng.integers(1, 3, 2)) for _ in range(3))
        pads = [tuple(int(n) for n in rng.integers(0, 3, 2)) for _ in range(2)]
        if any((size - 1) * a + 1 + sum(pair) < (k - 1) * b + 1 for size, a, pair, k, b in zip(x.shape[1:3], spread, pads, w.shape, dilation)):
            continue
        made = lax.conv_general_dilated(x, w, strides, pads, spread, dilation, dims, groups)
        compare(f"convolution {number}", made, convolved(x, w, strides, pads, spread, dilation, groups), 1e-3)
    for size, mode in itertools.product((1, 2, 3, 4, 7), ("full", "same", "valid")):
        compare(f"convolve {size} {mode}", jnp.convolve(np.arange(5.0), np.arange(size) + 1.0, mode), np.convolve(np.arange(5.0), np.arange(size) + 1.0, mode))
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 5, 5, 3), (3, 3, 3, 4)))
    loss = lambda x, w: jnp.sum(lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=dims) ** 2)
    along = [rng.standard_normal(array.shape).astype(np.float32) for array in (x, w)]
    slope = sum(float(jnp.sum(g * d)) for g, d in zip(jax.jit(jax.grad(loss, (0, 1)))(x, w), along))
    step = 1e-2
    compare("derivative of a convolution", slope, (float(loss(x + step * along[0], w + step * along[1])) - float(loss(x - step * along[0], w - step * along[1]))) / (2 * step),
            2e-2)
    image = rng.standard_normal((1, 4, 6, 2)).astype(np.float32)
    tiles = image.reshape(1, 2, 2, 3, 2, 2)
    compare("max_pool", nnx.max_pool(image, (2, 2), strides=(2, 2)), tiles.max((2, 4)))
    compare("avg_pool", nnx.avg_pool(image, (2, 2), strides=(2, 2)), tiles.mean((2, 4)))
    compare("size of a transposed convolution", lax.conv_transpose(jnp.ones((1, 4, 4, 3)), jnp.ones((3, 3, 3, 2)), (2, 2), "SAME").shape, (1, 8, 8, 2))


def loops(rng):
    xs, w = rng.standard_normal((5, 4)).astype(np.float32), rng.standard_normal((4, 4)).astype(np.float32) / 2
    turn = lambda c, x: (jnp.tanh(c @ w + x), c.sum())
    for reverse in (False, True):
        scanned = lambda xs: lax.scan(turn, jnp.zeros(4), xs, reverse=reverse)
        compare("scan", jax.jit(scanned)(xs), scanned(xs))
        loss = lambda xs, scan: jnp.sum(scan(xs)[0] ** 2) + jnp.sum(scan(xs)[1])
        by_hand = jax.grad(lambda xs: loss(xs, scanned))(xs)  # a derivative is of a traced function too
        step = np.zeros_like(xs)
        step[2, 1] = 1e-2
        compare("derivative of scan", by_hand[2, 1], (loss(xs + step, scanned) - loss(xs - step, scanned)) / 2e-2, 1e-2)
    body = lambda i, v: v * 1.5 + i
    compare("fori_loop", jax.jit(lambda x: lax.fori_loop(1, 6, body, x))(xs), lax.fori_loop(1, 6, body, xs))
    bounded = jax.jit(lambda low, high, x: lax.fori_loop(low, high, body, x))
    for low, high in ((0, 4), (2, 3), (3, 3), (5, 2)):
        compare(f"fori_loop from {low} to {high}", bounded(low, high, xs), lax.fori_loop(low, high, body, jnp.asarray(xs)))
    halves = lambda x: lax.while_loop(lambda c: c[0] > 1.0, lambda c: (c[0] / 2, c[1] + 1), (x, 0))
    compare("while_loop", jax.jit(halves)(37.0), halves(37.0))
    compare("while_loop of no turn", jax.jit(halves)(0.5), (0.5, 0))
    compare("map", jax.jit(lambda x: lax.map(jnp.sin, x))(xs), np.sin(xs))
    compare("switch", jax.jit(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x))(7, xs), np.tanh(xs))
    compare("associative_scan", lax.associative_scan(jnp.multiply, xs, reverse=True), np.cumprod(xs[::-1], 0)[::-1])
    compare("loop in vmap", jax.vmap(lambda x: lax.fori_loop(0, 3, lambda i, v: v * x, x))(jnp.arange(3.0)), np.arange(3.0) ** 4)
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    put = lambda x, *spec: jax.device_put(x, NamedSharding(mesh, P(*spec)))
    layers, batch = rng.standard_normal((3, 8, 8)).astype(np.float32), rng.standard_normal((8, 8)).astype(np.float32)
    net = lambda layers, x: lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, layers)[0]
    compare("loop on devices", jax.jit(net)(put(layers, None, None, "model"), put(batch, "data")), net(layers, batch))
    for bad in (lambda x: lax.scan(lambda c, x: (c.astype(jnp.int32), x), 0.5 * x[0], x), lambda x: lax.while_loop(lambda v: v, lambda v: v, x)):
        try:
            jax.jit(bad)(xs[:, 0])
            compare("a wrong loop", 0, 1)
        except TypeError:
            compare("a wrong loop", 1, 1)


def modules():
    class Block(nnx.Module):
        def __init__(self, rngs):
            self.linear, self.calls = nnx.Linear(4, 4, rngs=rngs), nnx.Variable(jnp.zeros(()))

        def __call__(self, x):
            self.calls.value += 1
            return jnp.tanh(self.linear(x))
    blocks = nnx.vmap(lambda key: Block(nnx.Rngs(key)))(jax.random.split(jax.random.key(0), 3))
    forward = nnx.scan(lambda x, block: block(x), in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
    expected = jnp.ones((2, 4))
    for i in range(3):
        expected = jnp.tanh(expected @ blocks.linear.kernel.value[i] + blocks.linear.bias.value[i])
    compare("nnx.scan", forward(jnp.ones((2, 4)), blocks), expected)
    compare("nnx.scan under jit", nnx.jit(lambda blocks, x: forward(x, blocks))(blocks, jnp.ones((2, 4))), expected)
    compare("what nnx.scan changes", blocks.calls.value, np.full(3, 2.0))


def complex_numbers(rng):
    draw = lambda *shape: (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
    a, b, real = draw(4, 8), draw(8, 4), rng.standard_normal((4, 8)).astype(np.float32)
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    put = lambda x, *spec: jax.device_put(x, NamedSharding(mesh, P(*spec)))
    rows = {"product": (lambda a, b, r: a @ b, a @ b), "mixed": (lambda a, b, r: a * r + 2j, a * real + 2j), "exp": (lambda a, b, r: jnp.exp(a), np.exp(a)),
            "parts": (lambda a, b, r: (a.real, a.imag, jnp.abs(a), jnp.angle(a), a.conj()), (a.real, a.imag, abs(a), np.angle(a), a.conj())),
            "moved": (lambda a, b, r: a.T[1:3], a.T[1:3]), "sum": (lambda a, b, r: (a / (r + 4)).sum(0), (a / (real + 4)).sum(0))}
    for name, (function, expected) in rows.items():
        compare(f"complex {name}", function(jnp.asarray(a), jnp.asarray(b), jnp.asarray(real)), expected)
        compare(f"complex {name} on devices", jax.jit(function)(put(a, "data", "model"), put(b, "model"), put(real, "data")), expected)
    compare("types with complex numbers", [str((jnp.ones(2) * 1j).dtype), (jnp.ones(2) * 1j).weak_type, (jnp.arange(2) * 1j).weak_type] ==
            ["complex64", False, True], True)


rng = np.random.default_rng(int(sys.argv[1]))
windows(rng)
loops(rng)
modules()
complex_numbers(rng)
print(wrong, "of", compared, "differ")
