# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.nnx, optax and orbax: layers beside their formulas, transforms of modules beside loops, optimizers beside NumPy, checkpoints and back. Prints what
differs; the last line counts."""
import functools
import itertools
import math
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import orbax.checkpoint as ocp
from flax import nnx, traverse_util

wrong = compared = 0
RNG = np.random.default_rng(0)


def compare(name, found, expected, tolerance=1e-4):
    global wrong, compared
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    compared += 1
    if len(found) != len(expected) or not all(np.shape(a) == np.shape(b) and np.allclose(np.asarray(a), np.asarray(b), tolerance, tolerance)
                                              for a, b in zip(found, expected)):
        wrong += 1
        print(name, found, "is not", expected)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attention():
    layer = nnx.MultiHeadAttention(num_heads=2, in_features=6, qkv_features=8, decode=False, rngs=nnx.Rngs(0))
    x = RNG.standard_normal((3, 5, 6)).astype(np.float32)
    project = lambda part: np.einsum("blf,fhd->blhd", x, part.kernel.value) + np.asarray(part.bias.value)
    q, k, v = project(layer.query), project(layer.key), project(layer.value)
    scores = np.einsum("bqhd,bkhd->bhqk", q / np.sqrt(4), k)
    whole = lambda weights: np.einsum("bqhd,hdo->bqo", np.einsum("bhqk,bkhd->bqhd", weights, v), layer.out.kernel.value) + np.asarray(layer.out.bias.value)
    compare("attention", layer(x), whole(softmax(scores)))
    causal = np.tril(np.ones((5, 5), bool))
    masked = whole(softmax(np.where(causal, scores, -1e30)))
    compare("causal attention", (layer(x, mask=nnx.make_causal_mask(jnp.ones((3, 5)))), layer(x, is_causal=True)), (masked, masked))
    layer.init_cache((3, 5, 6))
    steps = [layer(x[:, at:at + 1], decode=True) for at in range(5)]
    compare("attention step by step", jnp.concatenate(steps, 1), masked)
    grads = nnx.grad(lambda layer: jnp.sum(layer(x, decode=False) ** 2))(layer)
    compare("derivative of attention", grads["query"]["kernel"].value.shape, (6, 2, 4))
    grouped = nnx.MultiHeadAttention(num_heads=4, in_features=8, num_kv_heads=2, decode=False, rngs=nnx.Rngs(0))
    compare("grouped heads", grouped(jnp.ones((2, 3, 8))).shape, (2, 3, 8))
    at, scores = np.arange(5), np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(4)
    kept, lengths = np.array([3, 5, 1]), np.array([2, 5, 4])
    of = lambda is_seen: np.einsum("bhqk,bkhd->bqhd", softmax(np.where(is_seen, scores, -1e30)), v)
    inside = lambda counts: at < counts[:, None]
    for name, options, expected in (
            ("of a window", {"local_window_size": 1}, of(abs(at[:, None] - at) <= 1)), ("of what is behind", {"local_window_size": (2, 0)}, of((at[:, None] - at <= 2) & causal)),
            ("of a window and what is behind", {"local_window_size": 2, "is_causal": True}, of((at[:, None] - at <= 2) & causal)),
            ("of lengths", {"key_value_seq_lengths": jnp.array(kept)}, of(inside(kept)[:, None, None])),
            ("of lengths of both", {"key_value_seq_lengths": jnp.array(kept), "query_seq_lengths": jnp.array(lengths)}, of(inside(kept)[:, None, None]) * inside(lengths)[:, :, None, None])):
        compare(f"attention {name}", jax.nn.dot_product_attention(q, k, v, **options), expected)


def metrics():
    logits, labels, mask = jnp.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]), jnp.array([1, 1, 0]), jnp.array([True, False, True])
    counted = nnx.MultiMetric(all=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))
    counted.update(logits=logits, labels=labels, loss=jnp.array([1.0, 2.0, 4.0]), mask=mask)
    compare("metrics under a mask", counted.compute(), {"all": 0.5, "loss": 2.5})
    binary = nnx.metrics.Accuracy(threshold=0.5)
    binary.update(logits=jnp.array([0.5, 0.4, 0.9]), labels=labels)
    compare("two classes, from the threshold on", binary.compute(), 1 / 3)
    compare("a mean is of a type", int(binary.compute().weak_type), 0)
    spread, values = nnx.metrics.Welford(), RNG.standard_normal(9).astype(np.float32)
    spread.update(values=jnp.asarray(values[:4]))
    spread.update(values=jnp.asarray(values[4:]))
    compare("Welford", tuple(spread.compute()), (values.mean(), values.std() / 3, values.std()))
    compare("a class by the module that Flax has it in", int(repr((nnx.Param, nnx.OfType(nnx.Dropout)))
                                                              == "(<class 'flax.nnx.variablelib.Param'>, OfType(<class 'flax.nnx.nn.stochastic.Dropout'>))"), 1)
    for name, given, text in (("labels as rows", {"labels": jnp.eye(2)[labels]}, "For multi-class classification, expected logits.ndim==labels.ndim+1, got 2 and 2"),
                              ("labels as fractions", {"labels": labels * 1.0}, "Expected labels.dtype==jnp.int32, got float32")):
        try:
            found = f"gave {nnx.metrics.Accuracy().update(logits=logits, **given)}"
        except ValueError as error:
            found = str(error)
        compare(name, int(text in found) or print(found), 1)


def newer_optimizers():
    """AdEMAMix, ADOPT, Yogi, RAdam, Adafactor and Polyak's steps beside their formulas."""
    start = {"w": RNG.standard_normal((3, 4)).astype(np.float32), "b": RNG.standard_normal(4).astype(np.float32)}
    gradient = lambda p: {name: 2 * value + 0.1 for name, value in p.items()}

    def steps(tx, count=7, **extra):
        state, params = tx.init(start), start
        for _ in range(count):
            given = {name: value(params) for name, value in extra.items()}
            updates, state = jax.jit(tx.update)(gradient(params), state, params, **given)
            params = optax.apply_updates(params, updates)
        return params

    def by_hand(step, count=7):
        params = {}
        for name, x in start.items():
            x, kept = x.astype(float), {}
            for t in range(1, count + 1):
                x = x + step(x, 2 * x + 0.1, t, kept)
            params[name] = x
        return params

    def yogi(x, g, t, kept):
        m, v = kept.get("m", 1e-6), kept.get("v", 1e-6)
        m, v = 0.9 * m + 0.1 * g, v - 0.001 * np.sign(v - g * g) * g * g
        kept.update(m=m, v=v)
        return -0.1 * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-3)

    def radam(x, g, t, kept):
        m, v = 0.9 * kept.get("m", 0) + 0.1 * g, 0.999 * kept.get("v", 0) + 0.001 * g * g
        kept.update(m=m, v=v)
        most = 2 / 0.001 - 1
        known = most - 2 * t * 0.999**t / (1 - 0.999**t)
        hat = m / (1 - 0.9**t)
        if known < 5:
            return -0.1 * hat
        rate = math.sqrt((known - 4) * (known - 2) * most / ((most - 4) * (most - 2) * known))
        return -0.1 * rate * hat / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)

    def adafactor(is_factored):
        def step(x, g, t, kept):
            decay, squares = 1 - float(t) ** -0.8, g * g + 1e-30
            if is_factored and x.ndim == 2:
                kept["row"] = decay * kept.get("row", 0) + (1 - decay) * squares.mean(1)
                kept["column"] = decay * kept.get("column", 0) + (1 - decay) * squares.mean(0)
                u = g / np.sqrt(kept["row"] / kept["row"].mean())[:, None] / np.sqrt(kept["column"])
            else:
                kept["v"] = decay * kept.get("v", 0) + (1 - decay) * squares
                u = g / np.sqrt(kept["v"])
            u = u / max(1.0, math.sqrt((u * u).mean()))
            return -0.1 * u * max(math.sqrt((x * x).mean()), 1e-3)
        return step
    def ademamix(x, g, t, kept):
        m, slow, v = 0.9 * kept.get("m", 0) + 0.1 * g, 0.99 * kept.get("slow", 0) + 0.01 * g, 0.999 * kept.get("v", 0) + 0.001 * g * g
        kept.update(m=m, slow=slow, v=v)
        return -0.1 * ((m / (1 - 0.9**t) + 3 * t * slow) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8) + 0.01 * x)

    def adopt(x, g, t, kept):
        if t > 1:
            most = (t - 1) ** 0.25
            kept["m"] = 0.9 * kept.get("m", 0) + 0.1 * np.clip(g / np.maximum(np.sqrt(kept["v"]), 1e-6), -most, most)
        kept["v"] = 0.99 * kept["v"] + 0.01 * g * g if t > 1 else g * g
        return -0.1 * kept.get("m", 0)
    compare("ademamix", steps(optax.contrib.ademamix(0.1, b3=0.99, alpha=lambda count: 3.0 * (count + 1), weight_decay=0.01)), by_hand(ademamix))
    compare("adopt", steps(optax.contrib.adopt(0.1, b2=0.99)), by_hand(adopt))
    compare("yogi", steps(optax.yogi(0.1)), by_hand(yogi))
    compare("radam", steps(optax.radam(0.1)), by_hand(radam))
    compare("adafactor, factored", steps(optax.adafactor(0.1, min_dim_size_to_factor=2)), by_hand(adafactor(True)))
    compare("adafactor", steps(optax.adafactor(0.1)), by_hand(adafactor(False)))
    compare("its state", optax.adafactor(0.1, min_dim_size_to_factor=2).init(start)[0].v_row["w"].shape, (3,))
    loss = lambda p: sum((value ** 2 + 0.1 * value).sum() for value in p.values())
    expected, whole = start, lambda p: sum((g * g).sum() for g in gradient(p).values())
    for _ in range(3):
        rate = min(loss(expected) / whole(expected), 1.0)
        expected = {name: value - rate * gradient(expected)[name] for name, value in expected.items()}
    compare("polyak_sgd", steps(optax.polyak_sgd(), 3, value=loss), expected)


def injected():
    """Numbers of optimizers as part of their state, which jax.jit traces: the same updates."""
    params = {"a": jnp.array([1.0, -2.0]), "b": jnp.ones((2, 3))}
    grads = jax.tree.map(lambda p: 2 * p, params)
    for name in ("adabelief", "adadelta", "adagrad", "adam", "adamax", "adamw", "amsgrad", "fromage", "lamb", "lars", "lion", "nadam", "noisy_sgd", "rmsprop", "sgd", "sign_sgd"):
        tx, inside = getattr(optax, name)(0.1), optax.inject_hyperparams(getattr(optax, name))(0.1)
        compare(f"{name}, injected", jax.jit(inside.update)(grads, inside.init(params), params)[0], tx.update(grads, tx.init(params), params)[0])


def narrow():
    """States of another type: what is added up is rounded to it between the steps, the updates are not."""
    params, grads = {"a": jnp.ones(3)}, {"a": jnp.array([0.1, 0.7, -0.3])}
    for name, tx, moment, decay in [("adam", optax.adam(0.1, mu_dtype=jnp.bfloat16), lambda state: state[0].mu, 0.9), ("nadamw", optax.nadamw(0.1, mu_dtype=jnp.bfloat16), lambda state: state[0].mu, 0.9),
                                    ("sgd", optax.sgd(0.1, 0.9, accumulator_dtype=jnp.bfloat16), lambda state: state[0].trace, None)]:
        state = tx.init(params)
        types = {moment(state)["a"].dtype.name}
        for _ in range(2):
            updates, state = tx.update(grads, state, params)
            types.add(moment(state)["a"].dtype.name)
        compare(f"{name}: types", (types == {"bfloat16"}, updates["a"].dtype == jnp.float32), (True, True))
        first = (grads["a"] * (0.1 if decay else 1.0)).astype(jnp.bfloat16)
        second = (0.9 * first + grads["a"] * (0.1 if decay else 1.0)).astype(jnp.bfloat16)
        compare(f"{name}: moments", moment(state)["a"].astype(jnp.float32), second.astype(jnp.float32), 1e-6)


def norms():
    """Types of norms, and their means in float32: of numbers around 1000 that bfloat16 cannot add up."""
    x = jnp.asarray(1000 + 8 * RNG.integers(0, 8, (2, 4, 64)), jnp.bfloat16)
    wide = np.asarray(x, np.float32)
    by = lambda axes: (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + 1e-6)
    for name, norm, expected in [("LayerNorm", nnx.LayerNorm, by((-1,))), ("RMSNorm", nnx.RMSNorm, wide / np.sqrt((wide ** 2).mean(-1, keepdims=True) + 1e-6)),
                                 ("InstanceNorm", nnx.InstanceNorm, by((1,))), ("BatchNorm", functools.partial(nnx.BatchNorm, epsilon=1e-6), by((0, 1)))]:
        compare(name, norm(64, rngs=nnx.Rngs(0))(x), expected, 1e-3)
        kinds = [str(norm(64, dtype=dtype, rngs=nnx.Rngs(0))(x).dtype) for dtype in (None, jnp.bfloat16)] + [str(norm(64, use_scale=False, **(
            {} if name == "RMSNorm" else {"use_bias": False}), rngs=nnx.Rngs(0))(x).dtype)]
        compare(f"types of {name}", kinds == ["float32", "bfloat16", "bfloat16"], True)


def other_axes():
    """Norms over other dimensions than the last, borders that reflect, and sequences that end early."""
    x, rngs = jnp.asarray(RNG.standard_normal((3, 5, 4)), jnp.float32), nnx.Rngs(0)
    slopes = jnp.arange(5.0)
    for norm, mean in ((nnx.LayerNorm, x.mean((1, 2), keepdims=True)), (nnx.RMSNorm, 0.0)):
        made = norm(5, reduction_axes=(1, 2), feature_axes=1, rngs=rngs)
        made.scale.value = slopes
        compare(f"{norm.__name__} over two axes", made(x), (x - mean) / jnp.sqrt(((x - mean) ** 2).mean((1, 2), keepdims=True) + 1e-6) * slopes[:, None], 1e-5)
    convolution = nnx.Conv(4, 2, 3, padding="REFLECT", rngs=rngs)
    inner = nnx.Conv(4, 2, 3, padding="VALID", rngs=rngs)
    nnx.update(inner, nnx.state(convolution))
    compare("borders that reflect", convolution(x), inner(jnp.pad(x, [(0, 0), (1, 1), (0, 0)], mode="reflect")), 1e-5)
    cell, lengths = nnx.LSTMCell(4, 6, rngs=rngs), [2, 5, 3]
    for options in ({}, {"reverse": True}, {"reverse": True, "keep_order": True}):
        for time_major in (False, True):
            turned = lambda y: y.swapaxes(0, 1) if time_major else y
            carry, y = nnx.RNN(cell, return_carry=True, time_major=time_major, **options)(turned(x), seq_lengths=jnp.array(lengths))
            for at, length in enumerate(lengths):
                own_carry, own = nnx.RNN(cell, return_carry=True, **options)(x[at:at + 1, :length])
                compare(f"RNN of {length} steps, {options}, {time_major}", (carry[0][at], carry[1][at], turned(y)[at, :length]), (own_carry[0][0], own_carry[1][0], own[0]), 1e-5)


class Counted(nnx.Module):
    def __init__(self, kernel, count):
        self.kernel, self.count = nnx.Param(kernel), nnx.BatchStat(count)

    def __call__(self, x):
        self.count += 1
        return x @ self.kernel.value


def transforms():
    kernels, xs = RNG.standard_normal((4, 2, 3)).astype(np.float32), RNG.standard_normal((4, 2)).astype(np.float32)
    each = np.einsum("nij,ni->nj", kernels, xs)
    model = Counted(kernels, jnp.zeros(4))
    compare("vmap of a module", nnx.vmap(lambda model, x: model(x))(model, xs), each)
    compare("what it changed", model.count.value, np.ones(4))
    model = Counted(kernels, jnp.array(0))
    axes = nnx.StateAxes({nnx.Param: 0, nnx.BatchStat: None})
    compare("vmap along axes by kind", nnx.vmap(lambda model, x: model(x), in_axes=(axes, 0), out_axes=1)(model, xs), each.T)
    compare("what is one for all", model.count.value, 1)
    made = nnx.vmap(lambda key: nnx.Linear(2, 3, rngs=nnx.Rngs(key)))(jax.random.split(jax.random.key(0), 4))
    compare("modules made by vmap", made.kernel.value.shape, (4, 2, 3))
    squares = Counted(RNG.standard_normal((5, 3, 3)).astype(np.float32) / 2, jnp.zeros(5))
    x = y = np.ones(3, np.float32)
    for kernel in np.asarray(squares.kernel.value):
        y = y @ kernel
    compare("scan over layers", nnx.scan(lambda layer, x: layer(x), in_axes=(0, nnx.Carry), out_axes=nnx.Carry)(squares, x), y)
    compare("what it changed turn by turn", squares.count.value, np.ones(5))
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    inputs = RNG.standard_normal((2, 6, 3)).astype(np.float32)
    carry, outs = cell.initialize_carry((2, 3)), []
    for at in range(6):
        carry, out = cell(carry, inputs[:, at])
        outs.append(out)
    compare("RNN", nnx.RNN(cell)(inputs), np.stack(outs, 1))
    rngs = nnx.Rngs(0)
    split = rngs.split(3)
    compare("split streams", (split.default.key.value.shape, split.default.count.value), ((3,), np.zeros(3)))
    dropout = nnx.Dropout(0.5, rngs=nnx.Rngs(dropout=1))
    first = dropout(jnp.ones(64))
    second = dropout(jnp.ones(64))
    nnx.reseed(dropout, dropout=1)
    compare("seeded again", (dropout(jnp.ones(64)), bool((first == second).all())), (first, False))
    try:
        nnx.vmap(lambda a, b: None, in_axes=(0, 1))({"a": model}, [model])
        compare("two axes for one module", 0, 1)
    except ValueError as error:
        compare("two axes for one module", int("Inconsistent aliasing detected" in str(error)), 1)
    outside = Counted(kernels[0], jnp.array(0))
    try:
        nnx.jit(lambda x: outside(x))(jnp.ones(2))
        compare("changed from within", 0, 1)
    except Exception as error:
        compare("changed from within", int(type(error).__name__ == "TraceContextError" and "Cannot mutate BatchStat" in str(error)), 1)

    class Bare(nnx.Module):
        def __init__(self):
            self.x = jnp.array(1.0)
    compare("arrays that are no variables", jax.jit(lambda m: m)(Bare()).x, 1.0)
    shown = repr(nnx.Param(jnp.arange(3)))
    compare("as text", int(shown == "Param( # 3 (12 B)\n  value=Array([0, 1, 2], dtype=int32)\n)") or print(shown), 1)


def stepped(optimizer, gradients, p):
    state = optimizer.init(p)
    for g in gradients:
        updates, state = optimizer.update(jnp.asarray(g), state, p)
        p = optax.apply_updates(p, updates)
    return p


def optimizers():
    p, gs = np.array([1.0, -2.0, 0.5], np.float32), [np.array([0.3, -0.1, 2.0], np.float32), np.array([-0.2, 0.4, 1.0], np.float32)]

    def adam(rate, b1=0.9, b2=0.999, eps=1e-8, decay=0.0, of=lambda m, v, t, g: (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-8)):
        q, m, v = p.astype(np.float64), np.zeros(3), np.zeros(3)
        for t, g in enumerate(gs, 1):
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
            q = q - rate * (of(m, v, t, g) + decay * q)
        return q

    def by(change, state=0.0):
        q = p.astype(np.float64)
        for g in gs:
            step, state = change(g, state, q)
            q = q + step
        return q
    rows = {
        "sgd": (optax.sgd(0.1), by(lambda g, s, q: (-0.1 * g, s))),
        "momentum": (optax.sgd(0.1, 0.9), by(lambda g, s, q: (-0.1 * (g + 0.9 * s), g + 0.9 * s))),
        "nesterov": (optax.sgd(0.1, 0.9, True), by(lambda g, s, q: (-0.1 * (g + 0.9 * (g + 0.9 * s)), g + 0.9 * s))),
        "adam": (optax.adam(0.1), adam(0.1)), "adamw": (optax.adamw(0.1, weight_decay=0.01), adam(0.1, decay=0.01)),
        "rmsprop": (optax.rmsprop(0.1), by(lambda g, s, q: (-0.1 * g / np.sqrt(0.9 * s + 0.1 * g * g + 1e-8), 0.9 * s + 0.1 * g * g))),
        "adagrad": (optax.adagrad(0.1), by(lambda g, s, q: (-0.1 * g / np.sqrt(s + g * g + 1e-7), s + g * g), 0.1)),
        "lion": (optax.lion(0.1, weight_decay=0.0), by(lambda g, s, q: (-0.1 * np.sign(0.9 * s + 0.1 * g), 0.99 * s + 0.01 * g))),
        "sign": (optax.sign_sgd(0.1), by(lambda g, s, q: (-0.1 * np.sign(g), s))),
        "clipped": (optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1)), by(lambda g, s, q: (-0.1 * g / max(1.0, np.linalg.norm(g)), s))),
        "optimistic": (optax.optimistic_gradient_descent(0.1), by(lambda g, s, q: (-0.1 * (2 * g - (g if s is None else s)), g), None)),
        "scheduled": (optax.sgd(optax.piecewise_constant_schedule(0.1, {1: 0.5})), by(lambda g, s, q: (-0.1 * 0.5 ** s * g, s + 1), 0)),
        "injected": (optax.inject_hyperparams(optax.sgd)(learning_rate=0.1), by(lambda g, s, q: (-0.1 * g, s))),
        "masked": (optax.masked(optax.sgd(1.0), True), by(lambda g, s, q: (-g, s))), "flat": (optax.flatten(optax.adam(0.1)), adam(0.1)),
        "every second step": (optax.MultiSteps(optax.sgd(0.1), 2), by(lambda g, s, q: (-0.05 * g, s))),
        "adamax": (optax.adamax(0.1), by(lambda g, s, q: (-0.1 * ((0.9 * s[0] + 0.1 * g) / (1 - 0.9 ** s[2])) / np.maximum(np.abs(g) + 1e-8, 0.999 * s[1]),
                                                          (0.9 * s[0] + 0.1 * g, np.maximum(np.abs(g) + 1e-8, 0.999 * s[1]), s[2] + 1)), (0.0, 0.0, 1)))}
    for name, (optimizer, expected) in rows.items():
        compare(name, stepped(optimizer, gs, jnp.asarray(p)), expected)
    square = lambda x: jnp.sum(x ** 2)
    gradients = lambda solver, look=lambda state, params: params: descent(solver, lambda params, state: (jax.grad(square)(params), {}), look)
    searching = lambda solver: descent(solver, lambda params, state: (lambda value, grad: (grad, {"value": value, "grad": grad, "value_fn": square}))(
        *optax.value_and_grad_from_state(square)(params, state=state)))
    means = optax.contrib.schedule_free_eval_params
    shown = {  # what the packages' own pages show of sum(x ** 2) from [1, 2, 3]
        "backtracking": (searching(optax.chain(optax.sgd(1.0), optax.scale_by_backtracking_linesearch(15, store_grad=True))), [5.04, 1.81, 0.653, 0.235, 0.0847]),
        "L-BFGS": (searching(optax.lbfgs()), [7.52, 0, 0, 0, 0]),
        "without a schedule, sgd": (gradients(optax.contrib.schedule_free_sgd(), means), [14, 0, 0.996, 0.806, 0.241]),
        "without a schedule, adamw": (gradients(optax.contrib.schedule_free_adamw(1.0), means), [5, 3.05, 1.73, 0.894, 0.413]),
        "sm3 of one number each": (gradients(optax.sm3(0.1, 0.0)), by_squares(0.1, lambda s, g: s + g * g)),
        "rprop, which is one step behind": (gradients(optax.rprop(0.003)), [14, 13.964027, 13.920931, 13.869318, 13.80753]),
        "signum": (gradients(optax.signum(0.1)), [square(jnp.array([1, 2, 3]) - 0.1 * t) for t in range(1, 6)])}
    for name, (found, expected) in shown.items():
        compare(name, found, np.asarray(expected, np.float32), 4e-3)
    banana = lambda x: sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    solver, x = optax.lbfgs(), jnp.array([-1.2, 1.0, -0.5, 2.0])
    state, both = solver.init(x), jax.jit(optax.value_and_grad_from_state(banana))
    step = jax.jit(lambda value, grad, state, x: solver.update(grad, state, x, value=value, grad=grad, value_fn=banana))
    for _ in range(60):
        updates, state = step(*both(x, state=state), state, x)
        x = optax.apply_updates(x, updates)
    compare("least of the banana", x, np.ones(4))
    tree = {"w": jax.random.normal(jax.random.key(0), (4, 6)), "b": jnp.ones(4)}
    muon = optax.contrib.muon(0.1)
    updates, state = jax.jit(muon.update)(tree, muon.init(tree), tree)
    compare("muon: singular values", np.linalg.svd(np.asarray(updates["w"]))[1] / 0.1 / np.sqrt(1.5), np.full(4, 1.0), 0.3)
    compare("muon: what is no matrix", updates["b"], optax.nadam(0.1).update(tree["b"], optax.nadam(0.1).init(tree["b"]))[0])
    plateau, rates = optax.contrib.reduce_on_plateau(0.5, 2), []
    state = plateau.init(jnp.ones(1))
    for value in (1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5):
        updates, state = plateau.update(jnp.ones(1), state, value=value)
        rates.append(updates[0])
    compare("plateaus", rates, [1, 1, 0.5, 0.5, 0.5, 0.5, 0.25])
    grads = jnp.asarray(RNG.standard_normal((8, 3)).astype(np.float32) * 3)
    private = optax.contrib.dpsgd(0.1, 1.0, 0.0)
    compare("private means", private.update(grads, private.init(jnp.zeros(3)))[0],
            -0.1 * (np.asarray(grads) / np.maximum(1, np.linalg.norm(grads, axis=1))[:, None]).mean(0))
    compare("projections", (optax.projections.projection_simplex(jnp.array([0.5, 1.2, -0.3])), optax.projections.projection_l1_ball(jnp.array([3.0, 1.0])),
                            optax.projections.projection_l2_ball(jnp.array([3.0, 4.0]))), (np.array([0.15, 0.85, 0]), np.array([1.0, 0]), np.array([0.6, 0.8])))
    state = optax.tree_map_params(optax.adam(1e-3), lambda x: x + 1, optax.adam(1e-3).init(tree))
    compare("what a state keeps of parameters", (state[0].mu["b"], state[0].count), (np.ones(4), 0))
    factors = {"w": 2.0, "b": 3.0}
    state = optax.tree_utils.tree_map_params(optax.adam(1e-3), lambda x, factor: (x + 1) * factor, state, factors, transform_non_params=lambda count: count + 5)
    compare("beside a tree like the parameters", (state[0].mu["b"], state[0].nu["w"][0, 0], state[0].count), (np.full(4, 6.0), 4.0, 5))
    scores, sequences = RNG.standard_normal((2, 5, 4)), np.array([[1, 1], [2, 3]])
    compare("connectionist loss", optax.ctc_loss(jnp.asarray(scores), jnp.zeros((2, 5)), sequences, np.array([[0, 0], [0, 1.0]])),
            np.array([all_paths(scores[0], [1, 1]), all_paths(scores[1], [2])]))
    labels = optax.partition({"a": optax.sgd(1.0), "b": optax.set_to_zero()}, {"x": "a", "y": "b"})
    tree = {"x": jnp.ones(2), "y": jnp.ones(3)}
    compare("partition", labels.update(tree, labels.init(tree), tree)[0], {"x": -np.ones(2), "y": np.zeros(3)})
    schedules = {"exponential": (optax.exponential_decay(1.0, 10, 0.5), 0.5), "staircase": (optax.exponential_decay(1.0, 4, 0.5, staircase=True), 0.25),
                 "polynomial": (optax.polynomial_schedule(1.0, 0.0, 2, 20), 0.25), "warm": (optax.warmup_cosine_decay_schedule(0.0, 1.0, 10, 30), 1.0),
                 "linear": (optax.linear_schedule(0.0, 1.0, 20), 0.5)}
    for name, (schedule, expected) in schedules.items():
        compare(f"schedule {name}", schedule(10), expected)
    logits, labels = np.array([[1.0, 2.0, 0.5]], np.float32), np.array([1])
    chance = -np.log(softmax(logits)[0, 1])
    losses = {"cross entropy": (optax.softmax_cross_entropy_with_integer_labels(logits, labels), np.array([chance])), "hinge": (optax.hinge_loss(jnp.array(0.3), 1.0), 0.7),
              "huber": (optax.huber_loss(jnp.array(3.0)), 2.5), "binary": (optax.sigmoid_binary_cross_entropy(jnp.array(0.3), 1.0), np.log1p(np.exp(-0.3))),
              "cosine": (optax.cosine_similarity(jnp.array([1.0, 0.0]), jnp.array([1.0, 1.0])), np.sqrt(0.5)), "norm": (optax.tree.norm(tree), np.sqrt(5))}
    for name, (found, expected) in losses.items():
        compare(f"loss {name}", found, expected)
    costs = RNG.uniform(size=(5, 7))
    rows, columns = optax.assignment.hungarian_algorithm(jnp.asarray(costs))
    compare("assignment", costs[np.asarray(rows), np.asarray(columns)].sum(), min(costs[range(5), list(c)].sum() for c in itertools.permutations(range(7), 5)))


def descent(solver, given, look=lambda state, params: params):
    """sum(x ** 2) of what there is to see after each of five steps."""
    params = jnp.array([1.0, 2.0, 3.0])
    state, values = solver.init(params), []
    for _ in range(5):
        grad, more = given(params, state)
        updates, state = solver.update(grad, state, params, **more)
        params = optax.apply_updates(params, updates)
        values.append(jnp.sum(look(state, params) ** 2))
    return jnp.stack(values)


def by_squares(rate, sums):
    """The same of steps that are divided by the root of sums of squares."""
    x, s, values = np.array([1.0, 2.0, 3.0]), 0.0, []
    for _ in range(5):
        s = sums(s, 2 * x)
        x = x - rate * 2 * x / np.sqrt(s)
        values.append((x ** 2).sum())
    return values


def all_paths(scores, labels):
    """Minus the logarithm of how likely all paths together are that say the labels, blanks and repeats left out."""
    logs, total = np.log(softmax(scores)), 0.0
    for path in itertools.product(range(scores.shape[1]), repeat=scores.shape[0]):
        if [label for label, _ in itertools.groupby(path) if label] == labels:
            total += np.exp(sum(logs[time, label] for time, label in enumerate(path)))
    return -np.log(total)


def rarer_parts():
    """Steps now and then, means of functions with noise, and losses of pairs, regions and lists."""
    tx = optax.apply_every(3)
    state, steps = tx.init({"a": jnp.ones(1)}), []
    for number in range(1, 7):
        update, state = tx.update({"a": jnp.full(1, float(number))}, state)
        steps.append(float(update["a"][0]))
    compare("each third step", steps, [0.0, 0.0, 6.0, 0.0, 0.0, 15.0])
    scores = jnp.array([1.0, 1.2, 0.8])
    of_best = optax.perturbations.make_perturbed_fun(lambda x: jax.nn.one_hot(jnp.argmax(x), 3), 3000, 0.5)
    soft = lambda x: jax.nn.softmax(x / 0.5)
    compare("the best with Gumbel's noise is soft", of_best(jax.random.key(0), scores), soft(scores), 0.04)
    compare("its derivative", jax.jacobian(of_best, 1)(jax.random.key(0), scores), jax.jacobian(soft)(scores), 0.08)
    rows, labels = RNG.standard_normal((6, 4)).astype(np.float32), np.array([0, 0, 1, 1, 2, 2])
    alike = np.exp((unit := rows / np.linalg.norm(rows, axis=1, keepdims=True)) @ unit.T / 0.07)
    pairs = [alike[i, i ^ 1] / (alike[i, labels != labels[i]].sum() + alike[i, i ^ 1]) for i in range(6)]
    compare("ntxent", optax.losses.ntxent(jnp.asarray(rows), jnp.asarray(labels)), -np.mean(np.log(pairs)))
    logits, kinds = RNG.standard_normal((2, 5, 3)).astype(np.float32), np.eye(3, dtype=np.float32)[RNG.integers(0, 3, (2, 5))]
    common, total = (softmax(logits) * kinds).sum(1), softmax(logits).sum(1) + kinds.sum(1)
    dice = 1 - (common + 1) / (total / 2 + 1)
    rare = 1 / (kinds.sum((0, 1)) ** 2 + 1e-7)
    compare("dice", (optax.losses.dice_loss(jnp.asarray(logits), jnp.asarray(kinds)), optax.losses.multiclass_generalized_dice_loss(jnp.asarray(logits), jnp.asarray(kinds))),
            (dice.mean(-1), (dice * rare / rare.sum() * 3).mean()))
    listed = jnp.array([[0.0, 3.0, 2.0]]), jnp.array([[0.0, 1.0, 0.0]])
    compare("ranking", (optax.losses.ranking_softmax_loss(*listed), optax.losses.ranking_softmax_loss(*listed, where=jnp.array([[True, True, False]]))),
            (np.log(1 + np.exp(-1) + np.exp(-3)), np.log(1 + np.exp(-3))))
    compare("Fenchel and Young", optax.losses.make_fenchel_young_loss(jax.nn.logsumexp)(jnp.asarray(logits), jnp.asarray(kinds)), -np.log((softmax(logits) * kinds).sum(-1)))
    compare("paths of nested dicts", int(traverse_util.path_aware_map(lambda path, x: (path, x), {"a": {"b": 1, "c": {}}}) == {"a": {"b": (("a", "b"), 1), "c": {}}}), 1)


def contexts(folder, tree):
    """Options of orbax.checkpoint.v1 that change what is saved and loaded, and policies of steps."""
    def context(change):
        made = ocp.v1.Context()
        change(made)
        return made

    def raised(function):
        try:
            return f"gave {function()}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    partial = context(lambda made: setattr(made.pytree.loading, "partial_load", True))
    compare("a part refused", int("['b']['c']: only in the checkpoint" in raised(lambda: ocp.v1.load(folder + "/newer", {"a": tree["a"]}))), 1)
    with partial:
        compare("a part", ocp.v1.load(folder + "/newer", {"a": tree["a"]}), {"a": tree["a"]})
        inner = ocp.v1.Context(partial)
        inner.pytree.loading.partial_load = False
        compare("options in use", int(raised(lambda: setattr(partial.asynchronous, "timeout_secs", 1)).startswith("RuntimeError: Cannot mutate options of an active context.")), 1)
        compare("the context in use", [ocp.v1.get_context() is partial, partial.pytree.loading.partial_load, partial.array_options is partial.array], [True, True, True])
    with context(lambda made: setattr(made.array.loading, "enable_padding_and_truncation", True)):
        compare("cut and filled up", ocp.v1.load(folder + "/newer", {"a": jax.ShapeDtypeStruct((10,), jnp.int32), "b": {"c": 0, "d": [np.ones(1), jnp.bfloat16(0)]}}),
                {"a": np.array([*range(8), 0, 0]), "b": {"c": 42, "d": [np.ones(1), 1.5]}})

    def typed(made):
        made.array.saving.storage_options.dtype = jnp.float16
        made.array.saving.scoped_storage_options_creator = lambda path, _: ocp.v1.options.ArrayOptions.Saving.StorageOptions(dtype=jnp.bfloat16) if len(path) == 1 else None
    with context(typed):
        ocp.v1.save(folder + "/typed", tree)
    kinds = [str(getattr(leaf, "dtype", leaf)) for leaf in jax.tree.leaves(ocp.v1.load(folder + "/typed"))]
    compare("types that are stored", int(kinds == ["bfloat16", "42", "float16", "float16"] or print(kinds)), 1)
    training = ocp.v1.training
    with training.Checkpointer(folder + "/chosen", save_decision_policy=training.save_decision_policies.FixedIntervalPolicy(3)) as chosen:
        saved = [chosen.save(step, {"n": step}) for step in range(10)]
        compare("steps that a policy chooses", [step for step in range(10) if saved[step]], [0, 3, 6, 9])
    keeps = training.preservation_policies.AnyPreservationPolicy([training.preservation_policies.LatestN(2), training.preservation_policies.EveryNSteps(4)])
    with training.Checkpointer(folder + "/chosen", preservation_policy=keeps) as chosen:
        chosen.save(10, {"n": 10})
        compare("steps that are kept", [one.step for one in chosen.checkpoints], [0, 9, 10])


def checkpoints():
    folder = tempfile.mkdtemp()
    tree = {"a": jnp.arange(8), "b": {"c": 42, "d": [np.ones(2), jnp.bfloat16(1.5)]}}
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder + "/one", tree)
        compare("restored", checkpointer.restore(folder + "/one"), tree)
        mesh = jax.make_mesh((8,), ("x",))
        like = {"a": jax.ShapeDtypeStruct((8,), jnp.float32, sharding=jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))), "b": tree["b"]}
        restored = checkpointer.restore(folder + "/one", like)
        compare("restored elsewhere", (restored["a"], int(str(restored["a"].sharding.spec) == "PartitionSpec('x',)")), (np.arange(8.0), 1))
    ocp.v1.save(folder + "/newer", tree)
    compare("of version 1", ocp.v1.load(folder + "/newer"), tree)
    restored = ocp.v1.load(folder + "/newer", like)["a"]
    compare("of version 1, elsewhere", (restored, int(str(restored.sharding.spec) == "PartitionSpec('x',)")), (np.arange(8.0), 1))
    compare("several trees", ocp.v1.load_checkpointables(folder + "/newer", {"state": None})["state"]["a"], tree["a"])
    with ocp.v1.training.Checkpointer(folder + "/training") as training:
        saved = [training.latest is None] + [training.save(step, {"n": jnp.array(step)}) for step in (0, 2, 1)] + [training.save_async(4, {"n": jnp.array(4)}).result()]
        compare("steps of version 1", (saved, [one.step for one in training.checkpoints], training.latest.step, training.load()["n"], training.load(2)["n"]),
                ([True, True, True, False, True], [0, 2, 4], 4, 4, 2))
        for error, call in ((ocp.v1.errors.StepAlreadyExistsError, lambda: training.save(2, {})), (ocp.v1.errors.StepNotFoundError, lambda: training.load(3)),
                            (ValueError, lambda: ocp.v1.save(folder + "/newer", tree)), (NotImplementedError, lambda: ocp.v1.Context(checkpoint_layout="safetensors"))):
            try:
                call()
                compare(error.__name__, 0, 1)
            except error:
                compare(error.__name__, 1, 1)
    contexts(folder, tree)
    manager = ocp.CheckpointManager(folder + "/many", options=ocp.CheckpointManagerOptions(max_to_keep=3, save_interval_steps=2))
    for step in range(11):
        manager.save(step, args=ocp.args.Composite(state=ocp.args.StandardSave({"n": jnp.array(step)}), more=ocp.args.JsonSave([step])))
    restored = manager.restore(manager.latest_step())
    compare("steps", (manager.all_steps(), restored.state["n"], restored.more), ([6, 8, 10], 10, [10]))


def main():
    for part in (rarer_parts, attention, metrics, transforms, optimizers, newer_optimizers, injected, narrow, norms, other_axes, checkpoints):
        part()
    print(f"{wrong} of {compared} differ")


main()
