# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions called with the names of their parameters, beside NumPy with the same names; options and names of other ages. Prints what differs; the last line counts."""
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.example_libraries import optimizers, stax

wrong = compared = 0
RNG = np.random.default_rng(0)
A = RNG.standard_normal((4, 6)).astype(np.float32)
B = RNG.standard_normal((4, 6)).astype(np.float32)
I = RNG.integers(-9, 10, (4, 6)).astype(np.int32)
N = np.where(A > 0.5, np.nan, A)


def compare(name, found, expected, tolerance=1e-5):
    global wrong, compared
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    compared += 1
    if isinstance(expected[0], str):
        if found != expected:
            wrong += 1
            print(name, found, "is not", expected)
    elif len(found) != len(expected) or not all(np.shape(a) == np.shape(b) and np.allclose(np.asarray(a, float), np.asarray(b, float), tolerance, tolerance, equal_nan=True)
                                              for a, b in zip(found, expected)):
        wrong += 1
        print(name, found, "is not", expected)


def raised(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return None


# Names of NumPy's functions, and arguments by the names that JAX and NumPy share.
SHARED = {
    "tile": dict(A=A, reps=(2, 1)), "split": dict(ary=A, indices_or_sections=2, axis=1), "array_split": dict(ary=A, indices_or_sections=4, axis=1),
    "hsplit": dict(ary=A, indices_or_sections=3), "vsplit": dict(ary=A, indices_or_sections=2), "transpose": dict(a=A, axes=(1, 0)),
    "moveaxis": dict(a=A, source=0, destination=1), "swapaxes": dict(a=A, axis1=0, axis2=1), "reshape": dict(a=A, shape=(6, 4)),
    "pad": dict(array=A, pad_width=((1, 0), (0, 2)), mode="constant", constant_values=3), "repeat": dict(a=A, repeats=2, axis=1), "roll": dict(a=A, shift=2, axis=1),
    "flip": dict(m=A, axis=1), "rot90": dict(m=A, k=3), "tril": dict(m=A, k=-1), "triu": dict(m=A, k=1), "diag": dict(v=A, k=1), "diagonal": dict(a=A, offset=1),
    "trace": dict(a=A, offset=-1), "expand_dims": dict(a=A, axis=(0, -1)), "squeeze": dict(a=A[None], axis=0), "broadcast_to": dict(array=A, shape=(2, 4, 6)),
    "stack": dict(arrays=[A, B], axis=1), "vstack": dict(tup=[A, B]), "hstack": dict(tup=[A, B]), "column_stack": dict(tup=[A, B]), "append": dict(arr=A, values=B, axis=0),
    "delete": dict(arr=A, obj=1, axis=0), "insert": dict(arr=A, obj=1, values=0.0, axis=0), "take": dict(a=A, indices=[0, -1], axis=1),
    "take_along_axis": dict(arr=A, indices=np.argsort(A, 1), axis=1), "resize": dict(a=A, new_shape=(3, 5)), "sum": dict(a=A, axis=0), "mean": dict(a=A, axis=1, keepdims=True),
    "prod": dict(a=A, axis=-1), "max": dict(a=A, axis=0), "min": dict(a=A, axis=-2), "any": dict(a=I, axis=0), "all": dict(a=I, axis=1), "std": dict(a=A, axis=0, ddof=1),
    "var": dict(a=A, axis=0), "median": dict(a=A, axis=1), "ptp": dict(a=A, axis=0), "argmax": dict(a=A, axis=1), "argmin": dict(a=A, axis=-1, keepdims=True),
    "argsort": dict(a=A, axis=0), "sort": dict(a=A, axis=0), "argwhere": dict(a=I), "nonzero": dict(a=I), "flatnonzero": dict(a=I), "count_nonzero": dict(a=I, axis=0),
    "cumsum": dict(a=A, axis=1), "cumprod": dict(a=A, axis=0), "diff": dict(a=A, n=2, axis=1), "ediff1d": dict(ary=A), "quantile": dict(a=A, q=0.3, axis=0),
    "percentile": dict(a=A, q=30, axis=0), "histogram": dict(a=A, bins=5), "unique": dict(ar=I), "isin": dict(element=I, test_elements=[1, 2]),
    "union1d": dict(ar1=I, ar2=[1, 50]), "intersect1d": dict(ar1=I, ar2=[1, 2, 50]), "setdiff1d": dict(ar1=I, ar2=[1, 2]), "dot": dict(a=A, b=B.T), "outer": dict(a=A, b=B),
    "kron": dict(a=A[:2, :2], b=B[:2, :2]), "tensordot": dict(a=A, b=B, axes=2), "cross": dict(a=A[:, :3], b=B[:, :3]),
    "select": dict(condlist=[A > 0, A < -1], choicelist=[A, B], default=7.0), "piecewise": dict(x=A, condlist=[A < 0, A >= 0], funclist=[-1.0, 1.0]),
    "unravel_index": dict(indices=np.array([3, 7]), shape=(4, 6)), "array_equal": dict(a1=A, a2=A), "nansum": dict(a=N, axis=0), "nanmax": dict(a=N, axis=0),
    "nanmean": dict(a=N, axis=0), "real": dict(val=A), "isscalar": dict(element=3.0), "apply_along_axis": dict(func1d=lambda row: row.sum(), axis=1, arr=A),
    "clip": dict(a_min=-0.5, a_max=0.5), "angle": dict(z=A + 1j * B, deg=True), "empty_like": None, "concatenate": dict(arrays=[A, B], axis=1, dtype="float16"),
}

# Functions of jax.lax and others by the names of JAX's documentation, and what they are.
OTHERS = {
    "dynamic_slice": (lambda: lax.dynamic_slice(operand=A, start_indices=(1, 2), slice_sizes=(2, 3)), A[1:3, 2:5]),
    "dynamic_slice_in_dim": (lambda: lax.dynamic_slice_in_dim(A, start_index=3, slice_size=2, axis=1), A[:, 3:5]),
    "a slice that would begin too late": (lambda: lax.dynamic_slice_in_dim(operand=A, start_index=9, slice_size=2, axis=1), A[:, 4:]),
    "dynamic_update_slice": (lambda: lax.dynamic_update_slice(operand=A, update=B[:2, :2], start_indices=(0, 1))[:2, 1:3], B[:2, :2]),
    "dynamic_update_slice_in_dim": (lambda: lax.dynamic_update_slice_in_dim(operand=A, update=B[:1], start_index=-1, axis=0)[3], B[0]),
    "a slice that counts from the end": (lambda: jax.jit(lambda i: lax.dynamic_slice_in_dim(A, i, 2, 0))(-2), A[2:4]),
    "one that would end too late": (lambda: lax.dynamic_slice(A, jnp.array([-1, -6]), (2, 3)), A[2:4, :3]),
    "dynamic_index_in_dim": (lambda: lax.dynamic_index_in_dim(operand=A, index=np.int8(-1), axis=1, keepdims=False), A[:, -1]),
    "convert_element_type": (lambda: lax.convert_element_type(operand=A, new_dtype=jnp.int8), A.astype(np.int8)),
    "reshape": (lambda: lax.reshape(operand=A, new_sizes=(24,)), A.reshape(24)),
    "transpose": (lambda: lax.transpose(operand=A, permutation=(1, 0)), A.T),
    "clamp": (lambda: lax.clamp(min=-0.5, x=A, max=0.5), np.clip(A, -0.5, 0.5)),
    "dot_general": (lambda: lax.dot_general(lhs=A, rhs=B, dimension_numbers=(((1,), (1,)), ((), ()))), A @ B.T),
    "select": (lambda: lax.select(pred=A > 0, on_true=A, on_false=B), np.where(A > 0, A, B)),
    "binary": (lambda: lax.sub(x=A, y=B), A - B),
    "unary": (lambda: lax.tanh(x=A), np.tanh(A)),
    "squeeze": (lambda: lax.squeeze(array=A[None], dimensions=(0,)), A),
    "reduce_max": (lambda: lax.reduce_max(operand=A, axes=(0,)), A.max(0)),
    "jit": (lambda: jax.jit(fun=lambda x: x + 1)(A), A + 1),
    "where of a size": (lambda: jax.jit(lambda x: jnp.where(x > 0, size=9, fill_value=-1))(A[0]),
                        (np.concatenate([np.nonzero(A[0] > 0)[0], -np.ones(9 - (A[0] > 0).sum(), int)]),)),
    "argmax of all, dimensions kept": (lambda: jnp.argmax(A, keepdims=True), np.argmax(A, keepdims=True)),
    "argmax, the fourth argument": (lambda: jnp.argmax(A, 1, None, True), np.argmax(A, 1, None, keepdims=True)),
    "nanmin, the fourth argument": (lambda: jnp.nanmin(N, 0, None, True), np.nanmin(N, 0, None, True)),
    "standardize by a mean": (lambda: jax.nn.standardize(A, -1, 0.5, 4.0, 0.0), (A - 0.5) / 2),
    "standardize of a part": (lambda: jax.nn.standardize(A, where=np.arange(6) < 3),
                              (A - A[:, :3].mean(1, keepdims=True)) / np.sqrt(A[:, :3].var(1, keepdims=True) + 1e-5)),
    "logmeanexp of a part": (lambda: jax.nn.logmeanexp(A, -1, np.arange(6) < 3), np.log(np.exp(A[:, :3]).mean(1))),
    "an initializer with an axis of batches": (lambda: jax.nn.initializers.he_normal(batch_axis=0)(jax.random.key(0), (3, 4, 5)),
                                               jax.nn.initializers.he_normal()(jax.random.key(0), (3, 4, 5)) * np.sqrt(3)),
    "segment_sum": (lambda: jax.ops.segment_sum(data=A, segment_ids=jnp.array([0, 2, 0, 5]), num_segments=4), np.stack([A[0] + A[2], 0 * A[0], A[1], 0 * A[0]])),
    "segment_max of integers": (lambda: jax.ops.segment_max(I, jnp.array([1, 1, 0, 0])), np.stack([I[2:].max(0), I[:2].max(0)])),
    "segment_min without elements": (lambda: jax.ops.segment_min(A[:, 0], jnp.array([0, 0, 0, 2]))[1], np.inf),
    "segment_prod": (lambda: jax.ops.segment_prod(A, jnp.array([0, 0, 1, 1])), np.stack([A[0] * A[1], A[2] * A[3]])),
    "finfo of bfloat16": (lambda: [float(getattr(jnp.finfo(jnp.bfloat16), name)) for name in ("max", "eps", "tiny")], [3.3895313892515355e38, 2.0**-7, 2.0**-126]),
    "finfo of float8": (lambda: [float(jnp.finfo(kind).max.item()) for kind in (jnp.float8_e4m3fn, jnp.float8_e5m2)], [448.0, 57344.0]),
    "device_put_sharded": (lambda: jax.device_put_sharded([A[0], B[0]], jax.devices()[:2]), np.stack([A[0], B[0]])),
    "device_put_replicated": (lambda: jax.device_put_replicated(A, jax.devices()), np.stack([A] * 8)),
    "its pieces": (lambda: jax.device_put_replicated(A, jax.devices()).addressable_shards[3].data.shape, (1, 4, 6)),
    "tree_multimap": (lambda: jax.tree_multimap(lambda a, b: a + b, {"a": A}, {"a": B}), {"a": A + B}),
    "index_update": (lambda: jax.ops.index_update(jnp.asarray(A), jax.ops.index[1:, 0], 5.0)[:, 0], np.array([A[0, 0], 5, 5, 5])),
    "cond of None": (lambda: lax.cond(True, lambda _: 1.0, lambda _: 2.0, operand=None), 1.0),
    "names of many values": (lambda: len(jax.make_jaxpr(lambda x: [x + 0.5 * i for i in range(800)])(1.0).jaxpr.eqns), 800),
    "the platform, as it was asked for": (lambda: __import__("jax.lib.xla_bridge").lib.xla_bridge.get_backend().platform == "cpu", True),
    "a scope as a decorator": (lambda: jax.named_scope("f")(lambda x: x + 1)(A), A + 1),
}
REFUSED = {
    "where of two": (lambda: jnp.where(A > 0, A), "ValueError"), "where of three with a size": (lambda: jnp.where(A > 0, A, B, size=3), "ValueError"),
    "argmax of nothing": (lambda: jnp.argmax(jnp.zeros((0, 3)), 0), "ValueError"), "no parameter of this name": (lambda: jnp.tile(B=A, reps=2), "TypeError"),
    "a parameter twice": (lambda: jnp.tile(A, A=A, reps=2), "TypeError"), "other numbers of devices": (lambda: jax.device_put_sharded([A], jax.devices()[:2]), "ValueError"),
    "a slice of too few starts": (lambda: lax.dynamic_slice(A, (1,), (2, 2)), "ValueError"),
    "a vector's fans": (lambda: jax.nn.initializers.he_normal()(jax.random.key(0), (3,)), "ValueError"),
}


# Functions that take an axis, besides those of SHARED.
ALONG = {
    "roll": lambda m, axis: m.roll(A, 1, axis=axis), "flip": lambda m, axis: m.flip(A, axis), "stack": lambda m, axis: m.stack([A, B], axis),
    "concatenate": lambda m, axis: m.concatenate([A, B], axis), "moveaxis": lambda m, axis: m.moveaxis(A, axis, 0), "moveaxis to": lambda m, axis: m.moveaxis(A, 0, axis),
    "swapaxes": lambda m, axis: m.swapaxes(A, axis, 0), "rollaxis": lambda m, axis: m.rollaxis(A, axis), "squeeze": lambda m, axis: m.squeeze(A[:1], axis),
    "transpose": lambda m, axis: m.transpose(A, (axis, 0)), "tensordot": lambda m, axis: m.tensordot(A, B, axes=([axis], [axis])),
    "trace": lambda m, axis: m.trace(A, axis1=axis, axis2=0), "rot90": lambda m, axis: m.rot90(A, axes=(axis, 0)), "fft": lambda m, axis: m.fft.fft(A, axis=axis),
    "norm": lambda m, axis: m.linalg.norm(A, axis=axis), "two sums": lambda m, axis: m.sum(A, (0, axis)), "average": lambda m, axis: m.average(A, axis, weights=np.ones(4)),
    "softmax": lambda m, axis: (jax.nn.softmax if m is jnp else np.sum)(A, axis), "lax.cumsum": lambda m, axis: (lax.cumsum if m is jnp else np.cumsum)(A, axis),
}
TWICE = {"sum": lambda m: m.sum(A, (0, -2)), "flip": lambda m: m.flip(A, (1, 1)), "expand_dims": lambda m: m.expand_dims(A, (0, -4)), "squeeze": lambda m: m.squeeze(A[:1], (0, -2))}


def axes():
    """Axes that an array has not are errors, as NumPy has them, and none that counts on."""
    calls = {**ALONG, **{name: (lambda m, axis, name=name, named=named: getattr(m, name)(**{**named, "axis": axis}))
                         for name, named in SHARED.items() if named and "axis" in named and name not in ALONG}}
    for name, call in calls.items():
        for axis in (5, 9, -5, -9):
            ours, theirs = (raised(lambda: call(m, axis)) for m in (jnp, np))
            compare(f"{name} along {axis}: {ours}, {theirs}", ours in ("ValueError", "AxisError", theirs), True)
    for name, call in TWICE.items():
        compare(f"{name} along an axis twice", [raised(lambda: call(m)) for m in (jnp, np)], [raised(lambda: call(np))] * 2)
    compare("axes as a range", jnp.expand_dims(A, range(2)).shape, (1, 1, 4, 6))


def optimizers_beside_numpy():
    """Three steps on the sum of squares."""
    rates = dict(sgd=(0.1,), momentum=(0.1, 0.9), nesterov=(0.1, 0.9), adagrad=(0.1,), rmsprop=(0.1,), rmsprop_momentum=(0.1,), adam=(0.1,), adamax=(0.1,))

    def by_hand(name):
        x, m, v = A.astype(float), np.zeros_like(A, float), np.zeros_like(A, float)
        for i in range(3):
            g = 2 * x
            if name == "sgd":
                x = x - 0.1 * g
            elif name in ("momentum", "nesterov"):
                m = 0.9 * m + g
                x = x - 0.1 * (m if name == "momentum" else 0.9 * m + g)
            elif name == "adagrad":
                v = v + g**2
                m = 0.1 * g / np.sqrt(v) + 0.9 * m
                x = x - 0.1 * m
            elif name.startswith("rmsprop"):
                v = 0.9 * v + 0.1 * g**2
                m = (0.9 * m if name.endswith("momentum") else 0) + 0.1 * g / np.sqrt(v + 1e-8)
                x = x - m
            elif name == "adam":
                m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
                x = x - 0.1 * m / (1 - 0.9 ** (i + 1)) / (np.sqrt(v / (1 - 0.999 ** (i + 1))) + 1e-8)
            else:
                m, v = 0.9 * m + 0.1 * g, np.maximum(0.999 * v, np.abs(g))
                x = x - 0.1 / (1 - 0.9 ** (i + 1)) * m / (v + 1e-8)
        return x
    for name, options in rates.items():
        init, update, params = getattr(optimizers, name)(*options)
        state = init({"w": A})
        for i in range(3):
            state = jax.jit(update)(i, {"w": 2 * params(state)["w"]}, state)
        compare(f"optimizers.{name}", params(state), {"w": by_hand(name)}, 1e-4)


def networks():
    init, apply = stax.serial(stax.Conv(3, (3, 3), padding="SAME"), stax.Relu, stax.MaxPool((2, 2)), stax.Flatten, stax.Dense(5), stax.LogSoftmax)
    shape, params = init(jax.random.key(0), (2, 4, 6, 1))
    compare("the shapes of stax", (shape, [[leaf.shape for leaf in layer] for layer in params]), ((2, 5), [[(3, 3, 1, 3), (1, 1, 1, 3)], [], [], [], [(45, 5), (5,)], []]))
    x = RNG.standard_normal((2, 4, 6, 1)).astype(np.float32)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    y = np.maximum(np.einsum("nhwcij,ijco->nhwo", windows, params[0][0]) + np.asarray(params[0][1]), 0)
    pooled = np.lib.stride_tricks.sliding_window_view(y, (2, 2), axis=(1, 2)).max((-2, -1)).reshape(2, -1)
    logits = pooled @ np.asarray(params[4][0]) + np.asarray(params[4][1])
    compare("a network of stax", apply(params, x), logits - np.log(np.exp(logits).sum(-1, keepdims=True)), 1e-4)
    init, apply = stax.serial(stax.FanOut(2), stax.parallel(stax.Identity, stax.Dense(3)), stax.FanInConcat())
    shape, params = init(jax.random.key(0), (4, 6))
    compare("branches of stax", (shape, apply(params, A)), ((4, 9), np.concatenate([A, A @ np.asarray(params[1][1][0]) + np.asarray(params[1][1][1])], 1)))


def main():
    global wrong, compared
    for name, named in SHARED.items():
        if named is None:
            compare(name, getattr(jnp, name)(prototype=A).shape, A.shape)
        elif name == "clip":
            compare(name, jnp.clip(A, **named), np.clip(A, **named))
        else:
            theirs = dict(named)
            if name == "reshape" and np.lib.NumpyVersion(np.__version__) < "2.1.0":
                theirs["newshape"] = theirs.pop("shape")
            first = [theirs.pop("arrays")] if name == "concatenate" else []
            compare(name, getattr(jnp, name)(**named), getattr(np, name)(*first, **theirs), 1e-3)
    for name, (call, expected) in OTHERS.items():
        compare(name, call(), expected)
    for name, (call, expected) in REFUSED.items():
        compared += 1
        if raised(call) != expected:
            wrong += 1
            print(name, "raises", raised(call), "and not", expected)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compare("an array's device, as it was asked for", jnp.ones(2).device().id, 0)
    compare("a warning says today's name", len(caught), 1)
    from jax.config import config
    compare("jax.config as a module", config is jax.config, True)
    axes()
    optimizers_beside_numpy()
    networks()
    print(wrong, "of", compared, "differ")


main()
