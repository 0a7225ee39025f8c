# SPDX-License-Identifier: GPL-3.0-or-later
"""vmap beside a loop over the examples, called at once and under jit; pmap beside the whole. Argument: a seed. Prints what differs; the last line
counts what was compared."""
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

rng = np.random.default_rng(int(sys.argv[1]))
matrices, others = rng.normal(size=(5, 3, 4)).astype(np.float32), rng.normal(size=(5, 4, 2)).astype(np.float32)
vectors, weights = rng.normal(size=(5, 4)).astype(np.float32), jnp.asarray(rng.normal(size=4).astype(np.float32))
places = rng.integers(0, 3, size=5).astype(np.int32)
keys = np.asarray(jax.random.split(jax.random.PRNGKey(3), 5))
half = {"w": weights, "b": 1.0}


def by_hand(function):
    """Its Jacobian, by a pullback that is called in a vmap."""
    def jacobian(x):
        value, pull = jax.vjp(function, x)
        return jax.vmap(pull)(jnp.eye(value.size))[0]
    return jacobian


# Function, arguments, in_axes, out_axes.
ROWS = [
    (lambda a, b: a @ b, (matrices, others), 0, 0),
    (lambda a, b: a @ b, (matrices, others[0]), (0, None), 0),
    (lambda a, b: a @ b, (matrices[0], others), (None, 0), 0),
    (lambda a, x: a @ x, (matrices, vectors), 0, 0),
    (lambda x: jnp.dot(weights, x), (vectors,), 0, 0),
    (lambda a: jnp.tanh(a) + weights, (matrices,), 0, 0),
    (lambda a: a.T.reshape(-1)[::-1], (matrices,), 0, 0),
    (lambda a: jnp.concatenate([a, jnp.ones((1, 4))]).sum(0), (matrices,), 0, 0),
    (lambda a: a.sum(), (matrices,), 1, 0),
    (lambda a: a.max(0), (matrices,), 2, 1),
    (lambda a: jnp.argmax(a, 1), (matrices,), 0, 0),
    (lambda a: a[1, ::2], (matrices,), 0, 0),
    (lambda a, i: a[i], (matrices, places), 0, 0),
    (lambda i: jnp.asarray(matrices[0])[i], (places,), 0, 0),
    (lambda a: a[jnp.array([0, 2])], (matrices,), 0, 0),
    (lambda a, i: lax.dynamic_slice_in_dim(a, i, 2, 1), (matrices, places), 0, 0),
    (lambda a: lax.dynamic_slice_in_dim(a, 1, 2, 1), (matrices,), 0, 0),
    (lambda a: lax.dynamic_update_slice_in_dim(a, jnp.zeros((1, 4)), 1, 0), (matrices,), 0, 0),
    (lambda a: a.at[0].set(7.0), (matrices,), 0, 0),
    (lambda a: jnp.pad(a, 1), (matrices,), 0, 0),
    (lambda a: jax.nn.softmax(a), (matrices,), 0, 0),
    (lambda a: jnp.where(a > 0, a, 0.0), (matrices,), 0, 0),
    (lambda a: jnp.einsum("ij,kj->ik", a, a), (matrices,), 0, 0),
    (lambda x: jnp.cumsum(x), (vectors,), 0, 0),
    (lambda x: jax.nn.one_hot(jnp.argmax(x), 4), (vectors,), 0, 0),
    (lambda a: jax.jit(lambda b: b * 2 + 1)(a), (matrices,), 0, 0),
    (lambda x: jax.grad(lambda w: jnp.sum(jnp.tanh(x * w) ** 2))(weights), (vectors,), 0, 0),
    (lambda x: jax.value_and_grad(lambda p: jnp.sum(jnp.tanh(x * p["w"] + p["b"])))(half), (vectors,), 0, 0),
    (lambda x: jax.vmap(lambda y: y * x.sum() + y**2)(x), (vectors,), 0, 0),
    (lambda a: jax.vmap(jax.grad(lambda x: jnp.sum(x**3)))(a), (matrices,), 0, 0),
    (lambda a: jax.vmap(lambda x, y: x * y, (0, None))(a, weights), (matrices,), 0, 0),
    (lambda x: lax.scan(lambda carry, item: (carry + item, carry * item), 0.0, x), (vectors,), 0, 0),
    (lambda x: lax.fori_loop(0, 3, lambda i, carry: carry * x + i, jnp.ones(4)), (vectors,), 0, 0),
    (lambda x: lax.cond(x[0] > 0, lambda y: y, lambda y: -y, x), (vectors,), 0, 0),
    (by_hand(lambda x: jnp.sin(x) * x[::-1] ** 2), (vectors,), 0, 0),
    (by_hand(jax.checkpoint(lambda x: jnp.sin(x) * x[::-1] ** 2)), (vectors,), 0, 0),
    (by_hand(lambda x: jax.nn.relu(x) * x[::-1]), (vectors,), 0, 0),
    (lambda x: (lambda pull: jax.vmap(lambda a: jax.vmap(jax.jit(lambda c: pull(a * c)[0]))(weights))(x))(jax.vjp(lambda y: jnp.sin(y).sum(), x)[1]), (vectors,), 0, 0),
    (lambda x: jax.grad(lambda y: (by_hand(jnp.tanh)(y) ** 2).sum())(x), (vectors,), 0, 0),
    (lambda key: jax.random.normal(key, (3,)), (keys,), 0, 0),
    (lambda key: jax.random.uniform(jax.random.split(key)[0], (3,)), (keys,), 0, 0),
]


def main():
    wrong, compared = 0, 0

    def compare(name, found, expected):
        nonlocal wrong, compared
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            compared += 1
            if a.shape != b.shape or not np.allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-4):
                wrong += 1
                print(name, "\n", np.asarray(a), "\nis not\n", np.asarray(b))
    for number, (function, arguments, in_axes, out_axes) in enumerate(ROWS):
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(arguments)
        count = next(argument.shape[axis] for argument, axis in zip(arguments, axes) if axis is not None)
        each = [function(*[argument if axis is None else jnp.asarray(np.take(argument, i, axis)) for argument, axis in zip(arguments, axes)])
                for i in range(count)]
        expected = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves], out_axes), *each)
        batched = jax.vmap(function, in_axes, out_axes)
        compare(f"row {number}", batched(*arguments), expected)
        compare(f"row {number} under jit", jax.jit(batched)(*arguments), expected)
    loss = lambda w: jnp.sum(jax.vmap(lambda x: jnp.tanh(x @ w))(jnp.asarray(vectors)))
    compare("gradient of vmap", jax.grad(loss)(weights), jax.grad(lambda w: jnp.sum(jnp.tanh(jnp.asarray(vectors) @ w)))(weights))
    four = jnp.arange(4.0)
    compare("mean over examples", jax.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(four), np.arange(4.0) - 1.5)
    compare("pmap", jax.pmap(lambda x, y: x * y - lax.psum(x, "i"), axis_name="i", in_axes=(0, None))(four, 2.0), 2 * np.arange(4.0) - 6)
    own, whole = by_hand(lambda x: jnp.sin(x) * x[::-1] ** 2), jax.jacrev(lambda x: jnp.sin(x) * x[::-1] ** 2)
    compare("forward of a Jacobian by hand", jax.jacfwd(own)(weights), jax.jacfwd(whole)(weights))
    compare("reverse of a Jacobian by hand", jax.jacrev(own)(weights), jax.jacfwd(whole)(weights))
    compare("hessian", jax.hessian(lambda x: jnp.sum(x**3))(four), np.diag(6 * np.arange(4.0)))
    print(wrong, "of", compared, "differ")


main()
