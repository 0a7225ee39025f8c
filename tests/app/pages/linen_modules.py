# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.linen: layers beside those of NumPy, names and shapes of variables, transforms beside loops, errors, logical axes; values that Flax's own guide prints.
Prints what differs; the last line counts."""
import functools
import os
import sys
import tempfile

import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.training import common_utils, train_state
from jax.sharding import Mesh, PartitionSpec as P

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(jax.__file__)), "stand_ins"))
import ml_collections

wrong = compared = 0
RNG = np.random.default_rng(0)


def compare(name, found, expected, tolerance=1e-4):
    global wrong, compared
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    compared += 1
    if len(found) != len(expected) or not all(np.shape(a) == np.shape(b) and np.allclose(np.asarray(a), np.asarray(b), tolerance, tolerance, equal_nan=True)
                                              for a, b in zip(found, expected)):
        wrong += 1
        print(name, found, "is not", expected)


def same(name, found, expected):
    global wrong, compared
    compared += 1
    if found != expected:
        wrong += 1
        print(name, found, "is not", expected)


def shapes(tree):
    return {"/".join(path): np.shape(leaf) for path, leaf in flax.traverse_util.flatten_dict(tree).items()}


def raised(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return None


class Mlp(nn.Module):
    sizes: tuple

    @nn.compact
    def __call__(self, x):
        for number, size in enumerate(self.sizes):
            x = nn.Dense(size, name=f"layers_{number}")(x)
            x = nn.relu(x) if number + 1 < len(self.sizes) else x
        return x


class Encoder(nn.Module):
    """As `setup` makes submodules: by attribute, in lists and in dicts."""
    width: int

    def setup(self):
        self.inner = nn.Dense(self.width)
        self.outer = [nn.Dense(3), nn.Dense(2)]
        self.heads = {"a": nn.Dense(1)}

    def __call__(self, x):
        x = self.encode(x)
        for layer in self.outer:
            x = layer(x)
        return self.heads["a"](x)

    def encode(self, x):
        return nn.tanh(self.inner(x))


class Twice(nn.Module):
    """A module from outside, called twice: one set of variables."""
    layer: nn.Module

    @nn.compact
    def __call__(self, x):
        return self.layer(self.layer(x)) + nn.Dense(5)(x) * nn.Dense(5)(x)


class Block(nn.Module):
    rate: float = 0.0

    @nn.compact
    def __call__(self, x, _):
        x = x + nn.Dense(x.shape[-1])(x)
        return nn.Dropout(self.rate, deterministic=self.rate == 0)(x), x.sum()


class Stack(nn.Module):
    @nn.compact
    def __call__(self, x):
        layers = nn.scan(nn.remat(Block), variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
        return layers(name="layers")(x, None)


class Counter(nn.Module):
    @nn.compact
    def __call__(self, x):
        count = self.variable("counts", "calls", lambda: jnp.zeros((), jnp.int32))
        if not self.is_initializing():
            count.value += 1
        self.sow("intermediates", "seen", x)
        return x + self.param("bias", nn.initializers.zeros, x.shape[-1:])


def key(number=0):
    return jax.random.key(number)


def layers():
    x = RNG.standard_normal((2, 6, 5, 4)).astype(np.float32)

    def params(layer, *args, **kwargs):
        return layer.init({"params": key(), "dropout": key(1)}, *args, **kwargs)["params"]
    p = params(nn.Dense(3), x)
    compare("Dense", nn.Dense(3).apply({"params": p}, x), x @ np.asarray(p["kernel"]) + np.asarray(p["bias"]))
    compare("Dense of bfloat16", nn.Dense(3, dtype=jnp.bfloat16).apply({"params": p}, x).astype(jnp.float32), x @ np.asarray(p["kernel"]), 0.1)
    same("its type", str(nn.Dense(3, dtype=jnp.bfloat16).apply({"params": p}, x).dtype), "bfloat16")
    general = nn.DenseGeneral((2, 3), axis=(-2, -1))
    p = params(general, x)
    compare("DenseGeneral", general.apply({"params": p}, x), np.einsum("abcd,cdef->abef", x, p["kernel"]) + np.asarray(p["bias"]))
    p = params(nn.Embed(7, 3), jnp.array([[1, 2]]))
    compare("Embed", (nn.Embed(7, 3).apply({"params": p}, jnp.array([[6, 0]])), nn.Embed(7, 3).apply({"params": p}, x[..., :3], method="attend")),
            (np.asarray(p["embedding"])[[[6, 0]]], x[..., :3] @ np.asarray(p["embedding"]).T))
    conv = nn.Conv(3, (3, 3), padding="VALID")
    p = params(conv, x)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    compare("Conv", conv.apply({"params": p}, x), np.einsum("nhwcij,ijco->nhwo", windows, p["kernel"]) + np.asarray(p["bias"]))
    grown = nn.ConvTranspose(3, (4, 4), strides=(2, 2), padding=0)
    p = params(grown, x)
    spread = np.zeros((2, 6 * 2 - 1, 5 * 2 - 1, 4), np.float32)
    spread[:, ::2, ::2] = x
    windows = np.lib.stride_tricks.sliding_window_view(spread, (4, 4), axis=(1, 2))
    compare("ConvTranspose", grown.apply({"params": p}, x), np.einsum("nhwcij,ijco->nhwo", windows, p["kernel"]) + np.asarray(p["bias"]))
    compare("ConvTranspose padded", nn.ConvTranspose(3, (4, 4), strides=(2, 2), padding=[1, (2, 0)]).apply({"params": p}, x)[:, 1:-1, 2:],
            grown.apply({"params": p}, x))
    for name, layer, axes in (("LayerNorm", nn.LayerNorm(), -1), ("LayerNorm over two axes", nn.LayerNorm(reduction_axes=(-2, -1), feature_axes=(-2, -1)), (-2, -1)),
                              ("InstanceNorm", nn.InstanceNorm(), (1, 2))):
        p = jax.tree.map(lambda leaf: leaf + RNG.standard_normal(leaf.shape), params(layer, x))
        y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-6)
        compare(name, layer.apply({"params": p}, x), y * np.asarray(p["scale"]) + np.asarray(p["bias"]))
    compare("RMSNorm", nn.RMSNorm().apply({"params": params(nn.RMSNorm(), x)}, x), x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6))
    group = nn.GroupNorm(num_groups=2)
    parts = x.reshape(2, 6, 5, 2, 2)
    y = (parts - parts.mean((1, 2, 4), keepdims=True)) / np.sqrt(parts.var((1, 2, 4), keepdims=True) + 1e-6)
    compare("GroupNorm", group.apply({"params": params(group, x)}, x), y.reshape(x.shape))
    batch = nn.BatchNorm(use_running_average=False, momentum=0.9)
    variables = batch.init(key(), x)
    y, changed = batch.apply(variables, x, mutable=["batch_stats"])
    compare("BatchNorm", y, (x - x.mean((0, 1, 2))) / np.sqrt(x.var((0, 1, 2)) + 1e-5))
    compare("its running means", changed["batch_stats"], {"mean": 0.1 * x.mean((0, 1, 2)), "var": 0.9 + 0.1 * x.var((0, 1, 2))})
    running = {**variables, **changed}
    compare("BatchNorm as it runs", nn.BatchNorm(use_running_average=True).apply(running, x),
            (x - 0.1 * x.mean((0, 1, 2))) / np.sqrt(0.9 + 0.1 * x.var((0, 1, 2)) + 1e-5))
    pmapped = jax.pmap(lambda x: nn.BatchNorm(use_running_average=False, axis_name="batch").apply(variables, x, mutable=["batch_stats"])[0], axis_name="batch")
    many = RNG.standard_normal((8, 3, 4)).astype(np.float32)
    compare("BatchNorm over devices", pmapped(many), (many - many.mean((0, 1))) / np.sqrt(many.var((0, 1)) + 1e-5), 1e-3)
    dropped = nn.Dropout(0.25, deterministic=False).apply({}, jnp.ones((50, 40)), rngs={"dropout": key(3)})
    same("Dropout", (sorted(set(np.round(np.unique(dropped).astype(float), 5).tolist())), 0.2 < float((dropped == 0).mean()) < 0.3), ([0.0, 1.33333], True))
    same("Dropout of nothing", float(nn.Dropout(0.25).apply({}, jnp.ones(3), deterministic=True).sum()), 3.0)


def attention():
    layer = nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=8, out_features=5)
    x, mask = RNG.standard_normal((3, 5, 6)).astype(np.float32), nn.make_causal_mask(jnp.ones((3, 5)))
    variables = layer.init(key(), x)
    p = jax.tree.map(np.asarray, variables["params"])
    project = lambda part: np.einsum("blf,fhd->blhd", x, part["kernel"]) + part["bias"]
    scores = np.where(np.tril(np.ones((5, 5), bool)), np.einsum("bqhd,bkhd->bhqk", project(p["query"]) / 2, project(p["key"])), -1e30)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    expected = np.einsum("bhqk,bkhd,hdo->bqo", weights, project(p["value"]), p["out"]["kernel"]) + p["out"]["bias"]
    compare("attention", (layer.apply(variables, x, mask=mask), layer.apply(variables, x, x, x, mask=mask)), (expected, expected))
    _, sown = layer.apply(variables, x, mask=mask, sow_weights=True, mutable=["intermediates"])
    compare("its weights", sown["intermediates"]["attention_weights"][0], weights)
    half = layer.clone(dtype=jnp.bfloat16).apply(variables, x, mask=mask)
    compare("attention of bfloat16", half.astype(jnp.float32), expected, 0.1)
    decoding = layer.clone(decode=True)
    cache = decoding.init(key(), x)["cache"]
    steps = []
    for at in range(5):
        y, changed = decoding.apply({**variables, "cache": cache}, x[:, at:at + 1], mutable=["cache"])
        cache = changed["cache"]
        steps.append(y)
    compare("attention step by step", jnp.concatenate(steps, 1), expected)


def modules():
    x = RNG.standard_normal((2, 5)).astype(np.float32)
    variables = Mlp((4, 3)).init(key(), x)
    same("names", shapes(variables["params"]), {"layers_0/kernel": (5, 4), "layers_0/bias": (4,), "layers_1/kernel": (4, 3), "layers_1/bias": (3,)})
    p = jax.tree.map(np.asarray, variables["params"])
    compare("two layers", Mlp((4, 3)).apply(variables, x),
            np.maximum(x @ p["layers_0"]["kernel"] + p["layers_0"]["bias"], 0) @ p["layers_1"]["kernel"] + p["layers_1"]["bias"])
    model = Encoder(4)
    variables = model.init(key(), x)
    same("names of setup", sorted(shapes(variables["params"])),
         [f"{name}/{part}" for name in ("heads_a", "inner", "outer_0", "outer_1") for part in ("bias", "kernel")])
    inner = jax.tree.map(np.asarray, variables["params"]["inner"])
    encoded = np.tanh(x @ inner["kernel"] + inner["bias"])
    compare("another method", (model.apply(variables, x, method="encode"), model.apply(variables, x, method=Encoder.encode),
                               model.apply(variables, x, method=lambda module, x: module.encode(x)), model.bind(variables).encode(x)), (encoded,) * 4)
    variables = Twice(nn.Dense(5)).init(key(), x)
    same("a module from outside", sorted(shapes(variables["params"])), [f"{name}/{part}" for name in ("Dense_0", "Dense_1", "layer") for part in ("bias", "kernel")])
    variables = Counter().init(key(), x)
    y, changed = Counter().apply(variables, x, mutable=["counts", "intermediates"])
    same("other collections", (int(variables["counts"]["calls"]), int(changed["counts"]["calls"]), len(changed["intermediates"]["seen"]), sorted(variables)),
         (0, 1, 1, ["counts", "params"]))
    _, kept = Mlp((4, 3)).apply(Mlp((4, 3)).init(key(), x), x, capture_intermediates=True, mutable=["intermediates"])
    same("captured", {name: np.shape(value[0]) for name, value in flax.traverse_util.flatten_dict(kept["intermediates"], sep="/").items()},
         {"layers_0/__call__": (2, 4), "layers_1/__call__": (2, 3), "__call__": (2, 3)})
    grown = nn.Sequential([nn.Dense(4), nn.relu, nn.Dense(2)])
    same("Sequential", sorted(grown.init(key(), x)["params"]), ["layers_0", "layers_2"])
    same("an RNN", {name: shape for name, shape in shapes(nn.RNN(nn.GRUCell(6)).init(key(), jnp.ones((2, 4, 3)))["params"]).items() if name.endswith("kernel")},
         {f"cell/{name}/kernel": (3 if name[0] == "i" else 6, 6) for name in ("ir", "hr", "iz", "hz", "in", "hn")})
    cell, steps = nn.LSTMCell(6), jnp.asarray(RNG.standard_normal((2, 4, 3)), jnp.float32)
    variables = nn.RNN(cell, name="rnn").init(key(), steps)
    carry, by_hand = cell.initialize_carry(key(), (2, 3)), []
    for at in range(4):
        carry, y = cell.apply({"params": variables["params"]["cell"]}, carry, steps[:, at])
        by_hand.append(y)
    compare("an LSTM beside its steps", nn.RNN(cell).apply(variables, steps), jnp.stack(by_hand, 1))


def tables():
    text = Mlp((4, 3)).tabulate(key(), jnp.ones((2, 5)))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if not line.startswith("|-")]
    same("a table", rows, [["path", "module", "outputs", "params"], ["", "Mlp", "float32[2,3]", "39 (156 B)"], ["layers_0", "Dense", "float32[2,4]", "24 (96 B)"],
                           ["layers_1", "Dense", "float32[2,3]", "15 (60 B)"], ["", "", "Total", "39 (156 B)"]])


def transforms():
    x = RNG.standard_normal((2, 5)).astype(np.float32)
    variables = Stack().init(key(), x)
    same("names of a scan", shapes(variables["params"]), {"layers/Dense_0/kernel": (3, 5, 5), "layers/Dense_0/bias": (3, 5)})
    p, y, sums = jax.tree.map(np.asarray, variables["params"]["layers"]["Dense_0"]), x, []
    for at in range(3):
        y = y + y @ p["kernel"][at] + p["bias"][at]
        sums.append(y.sum())
    compare("scan", Stack().apply(variables, x), (y, np.array(sums)))
    grads = jax.grad(lambda v: Stack().apply(v, x)[0].sum())(variables)
    same("its derivative", shapes(grads["params"]), shapes(variables["params"]))
    shared = nn.scan(Block, variable_broadcast="params", split_rngs={"params": False}, length=2)
    variables = shared().init(key(), x, None)
    p = jax.tree.map(np.asarray, variables["params"]["Dense_0"])
    once = x + x @ p["kernel"] + p["bias"]
    compare("scan of one set of parameters", shared().apply(variables, x, None)[0], once + once @ p["kernel"] + p["bias"])
    many = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=1, out_axes=1)
    stacked = RNG.standard_normal((2, 3, 5)).astype(np.float32)
    variables = many(4).init(key(), stacked)
    compare("vmap", many(4).apply(variables, stacked), np.einsum("bnf,nfo->bno", stacked, variables["params"]["kernel"]))
    same("each has its own", bool((variables["params"]["kernel"][0] == variables["params"]["kernel"][1]).any()), False)
    alike = nn.vmap(nn.Dense, variable_axes={"params": None}, split_rngs={"params": False})
    variables = alike(4).init(key(), stacked)
    compare("vmap of one set of parameters", alike(4).apply(variables, stacked), stacked @ np.asarray(variables["params"]["kernel"]))
    doubled = nn.map_variables(nn.Dense, "params", lambda kept: jax.tree.map(lambda leaf: 2 * leaf, kept), init=True)
    variables = doubled(3).init(key(), x)
    compare("map_variables", doubled(3).apply(variables, x), 2 * x @ np.asarray(variables["params"]["kernel"]))
    halved = nn.map_variables(functools.partial(nn.Dense, 3, name="inside"), "params", lambda kept: jax.tree.map(lambda leaf: leaf / 2, kept), init=True)

    class Outer(nn.Module):
        @nn.compact
        def __call__(self, x):
            return halved()(x)
    variables = Outer().init(key(), x)
    compare("a part of a class", Outer().apply(variables, x), x @ np.asarray(variables["params"]["inside"]["kernel"]) / 2)

    class Folds(nn.Module):
        @nn.compact
        def __call__(self, x):
            own = self.scope.rngs["params"]
            self.scope.rngs["params"] = own.replace(rng=jax.random.fold_in(own.rng, 7))
            return nn.Dense(3)(x)

    class Plain(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(3)(x)
    compare("a stream that is folded", Folds().init(key(), x), Plain().init(jax.random.fold_in(key(), 7), x))
    random = nn.scan(functools.partial(Block, rate=0.5).func, variable_axes={"params": 0}, split_rngs={"params": True, "dropout": True}, length=2)
    made = random(rate=0.5).init({"params": key(), "dropout": key(1)}, x, None)
    first, second = (random(rate=0.5).apply(made, x, None, rngs={"dropout": key(number)})[0] for number in (1, 2))
    same("streams are split", bool((first == second).all()), False)


def sharded():
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    rules = (("batch", "data"), ("embed", None), ("hidden", "model"), ("heads", "model"))
    model = nn.Dense(8, kernel_init=nn.with_logical_partitioning(nn.initializers.lecun_normal(), ("embed", "hidden")))
    abstract = jax.eval_shape(model.init, key(), jnp.ones((4, 6)))
    logical = nn.get_partition_spec(abstract)
    same("logical specs", (logical["params"]["kernel"], logical["params"]["bias"]), (P("embed", "hidden"), P()))
    shardings = nn.logical_to_mesh_sharding(logical, mesh, rules)
    same("specs of the mesh", shardings["params"]["kernel"].spec, P(None, "model"))
    variables = jax.jit(model.init, out_shardings=shardings)(key(), jnp.ones((4, 6)))
    same("where it lies", (variables["params"]["kernel"].value.sharding.spec, nn.unbox(variables)["params"]["kernel"].shape), (P(None, "model"), (6, 8)))
    compare("as on one device", nn.unbox(variables), nn.unbox(model.init(key(), jnp.ones((4, 6)))))
    same("a mesh axis is given once", nn.logical_to_mesh_axes(("heads", "hidden", "batch", "other"), rules), P(None, "model", "data", None))
    boxed = nn.Dense(8, kernel_init=nn.with_partitioning(nn.initializers.ones, (None, "model")))
    layers_ = nn.scan(lambda module, x, _: (module(x), None), variable_axes={"params": 0}, split_rngs={"params": True}, length=2,
                      metadata_params={nn.PARTITION_NAME: "layers"})

    class Deep(nn.Module):
        @nn.compact
        def __call__(self, x):
            return layers_(boxed.clone(name="inner", parent=self), x, None)[0]
    same("an axis more", nn.get_partition_spec(Deep().init(key(), jnp.ones((4, 8))))["params"]["inner"]["kernel"], P("layers", None, "model"))
    with mesh, nn.logical_axis_rules(rules):
        made = jax.jit(lambda x: nn.with_logical_constraint(x, ("batch", "hidden")))(jnp.ones((8, 4)))
    same("a constraint", made.sharding.spec, P("data", "model"))


def training():
    x, y = RNG.standard_normal((16, 3)).astype(np.float32), RNG.standard_normal((16, 2)).astype(np.float32)
    model = nn.Dense(2)
    state = train_state.TrainState.create(apply_fn=model.apply, params=model.init(key(), x)["params"], tx=optax.sgd(0.1, momentum=0.9))

    @jax.jit
    def step(state, x, y):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((state.apply_fn({"params": p}, x) - y) ** 2))(state.params)
        return state.apply_gradients(grads=grads), loss
    w, b, mw, mb = np.asarray(state.params["kernel"]), np.asarray(state.params["bias"]), 0.0, 0.0
    for _ in range(3):
        difference = x @ w + b - y
        state, loss = step(state, x, y)
        compare("loss", loss, (difference ** 2).mean())
        mw, mb = 0.9 * mw + 2 * x.T @ difference / 32, 0.9 * mb + 2 * difference.sum(0) / 32
        w, b = w - 0.1 * mw, b - 0.1 * mb
    compare("trained", (state.params, int(state.step)), ({"kernel": w, "bias": b}, 3))
    same("replicated", (flax.jax_utils.replicate(state.params)["bias"].shape, flax.jax_utils.unreplicate(flax.jax_utils.replicate(state.params))["bias"].shape,
                        common_utils.shard(jnp.ones((16, 3))).shape), ((8, 2), (2,), (8, 2, 3)))

    @flax.struct.dataclass
    class Metrics:
        total: jax.Array
        name: str = flax.struct.field(pytree_node=False, default="loss")
    metrics = Metrics(jnp.ones(2)).replace(total=jnp.zeros(2))
    same("struct.dataclass", (len(jax.tree.leaves(metrics)), jax.tree.map(lambda x: x + 1, metrics).name, raised(lambda: setattr(metrics, "name", "x"))),
         (1, "loss", "FrozenInstanceError"))
    frozen = flax.core.freeze({"a": {"b": 1}, "c": 2})
    same("FrozenDict", (flax.core.pop(frozen, "c"), frozen.copy({"c": 3})["c"], frozen["a"]["b"], raised(lambda: frozen.__setitem__("c", 1)),
                        jax.tree.map(lambda x: x + 1, frozen).unfreeze()), ((flax.core.freeze({"a": {"b": 1}}), 2), 3, 1, "ValueError", {"a": {"b": 2}, "c": 3}))


def saved():
    """As bytes of MessagePack and in files, and back."""
    from flax import serialization
    from flax.training import checkpoints
    values = {"none": None, "yes": True, "small": -3, "large": 1 << 40, "negative": -70000, "float": 0.1, "text": "x" * 300, "bytes": b"ab", "complex": 1 + 2j,
              "scalar": np.float32(1.5), "list": list(range(20)), "names": {str(i): i for i in range(20)}, "array": np.arange(6, dtype=np.int8).reshape(2, 3),
              "empty": np.zeros((0, 3), np.float16)}
    back = serialization.msgpack_restore(serialization.msgpack_serialize(values))
    same("values", {name: value for name, value in back.items() if not hasattr(value, "shape")}, {name: value for name, value in values.items() if not hasattr(value, "shape")})
    same("arrays", [(back[name].dtype, back[name].shape, back[name].tolist()) for name in ("scalar", "array", "empty")],
         [(values[name].dtype, values[name].shape, values[name].tolist()) for name in ("scalar", "array", "empty")])
    same("known bytes", (serialization.msgpack_serialize({"a": [1, -1, None]}), serialization.msgpack_serialize(0.5)), (b"\x81\xa1a\x93\x01\xff\xc0", b"\xcb?\xe0" + b"\x00" * 6))
    half = jnp.array([1.5, -2.0], jnp.bfloat16)
    same("bfloat16", (serialization.from_bytes(half, serialization.to_bytes(half)).tolist(), str(serialization.from_bytes(half, serialization.to_bytes(half)).dtype)),
         ([1.5, -2.0], "bfloat16"))
    state = train_state.TrainState.create(apply_fn=None, params=Mlp((4, 3)).init(key(), jnp.ones((1, 5)))["params"], tx=optax.adam(0.1))
    other = jax.tree.map(lambda leaf: leaf * 0, state)
    compare("a train state", serialization.from_bytes(other, serialization.to_bytes(state)), state)
    same("its names", sorted(serialization.to_state_dict(state)), ["opt_state", "params", "step"])
    same("another form", raised(lambda: serialization.from_state_dict({"a": 1, "b": 2}, {"a": 1})), "ValueError")
    with tempfile.TemporaryDirectory() as folder:
        same("nothing to restore", checkpoints.restore_checkpoint(folder, 5), 5)
        for step in (1, 9, 10):
            checkpoints.save_checkpoint(folder, state.replace(step=step), step, keep=2)
        restored = checkpoints.restore_checkpoint(folder, other)
        compare("the newest", (restored.params, int(restored.step), checkpoints.available_steps(folder)), (state.params, 10, [9, 10]))
        same("an older step", raised(lambda: checkpoints.save_checkpoint(folder, state, 3)), "InvalidCheckpointError")
        same("a step that is gone", raised(lambda: checkpoints.restore_checkpoint(folder, other, step=1)), "ValueError")


def errors():
    x = jnp.ones((2, 5))
    good = nn.Dense(3).init(key(), x)

    class Outside(nn.Module):
        def __call__(self, x):
            return nn.Dense(3)(x)

    class Same(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(3, name="a")(nn.Dense(3, name="a")(x))

    class Changes(nn.Module):
        @nn.compact
        def __call__(self, x):
            self.put_variable("params", "w", x)
            return x

    class Sets(nn.Module):
        def __call__(self, x):
            self.x = x
            return x
    rows = {
        "no parameter": (lambda: nn.Dense(3).apply({"params": {"bias": jnp.ones(3)}}, x), "ScopeParamNotFoundError"),
        "no collection": (lambda: nn.Dense(3).apply({}, x), "ScopeCollectionNotFound"),
        "another shape": (lambda: nn.Dense(4).apply(good, x), "ScopeParamShapeError"),
        "no stream": (lambda: nn.Dropout(0.5, deterministic=False).apply({}, x), "InvalidRngError"),
        "no key": (lambda: nn.Dense(3).init(5, x), "InvalidRngError"),
        "params within params": (lambda: nn.Dense(3).apply({"params": good}, x), "ApplyScopeInvalidVariablesStructureError"),
        "not within compact": (lambda: Outside().init(key(), x), "AssignSubModuleError"),
        "a name twice": (lambda: Same().init(key(), x), "NameInUseError"),
        "nothing may change": (lambda: Changes().apply(good, x), "ModifyScopeVariableError"),
        "frozen": (lambda: Sets().apply({}, x), "SetAttributeFrozenModuleError"),
        "frozen before it is called": (lambda: setattr(nn.Dense(3), "features", 4), "SetAttributeFrozenModuleError"),
        "not bound": (lambda: nn.Dense(3)(x), "CallCompactUnboundModuleError"),
        "nothing said of training": (lambda: nn.BatchNorm().init(key(), x), "ValueError"),
        "no attribute": (lambda: Encoder(3).inner, "AttributeError"),
    }
    for name, (call, expected) in rows.items():
        same(name, raised(call), expected)


class Drawn(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(2, kernel_init=jax.random.normal, use_bias=False)(x)
        own = self.param("own", jax.random.normal, x.shape)
        other = self.variable("other", "first", lambda: jax.random.normal(self.make_rng("params"), x.shape))
        another = self.variable("other", "second", lambda: jax.random.normal(self.make_rng("another"), x.shape))
        return nn.Dense(2, kernel_init=jax.random.normal, bias_init=jax.random.normal)(x) + own + other.value + another.value


class Dropping(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = x + self.variable("other", "kernel", lambda: jax.random.normal(self.make_rng("other"), x.shape)).value
        x = DroppingPart(name="SubModule_0")(x, train)
        return nn.Dense(2)(nn.Dropout(0.2)(x, deterministic=not train))


class DroppingPart(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = x + self.param("kernel", jax.random.normal, x.shape)
        return nn.Dense(3)(nn.Dropout(0.2)(x, deterministic=not train))


class Named(nn.Module):
    @nn.compact
    def __call__(self, outer, inner):
        return NamedPart(name=outer)(inner)


class NamedPart(nn.Module):
    @nn.compact
    def __call__(self, inner):
        return NamedLeaf(name=inner)()


class NamedLeaf(nn.Module):
    def __call__(self):
        return int(jax.random.randint(self.make_rng("rng"), (), 0, 1_000_000))


class Chosen(nn.Module):
    @nn.compact
    def __call__(self, x, first):
        one, other = lambda module, x: nn.Dense(3, name="one")(x), lambda module, x: nn.Dense(3, name="other")(x)
        if self.is_mutable_collection("params"):
            return one(self, x) + other(self, x)
        return nn.cond(first, one, other, self, x)


class Counting(nn.Module):
    @nn.compact
    def __call__(self, x, which):
        count = self.variable("state", "count", lambda: jnp.zeros((), int))

        def counted(module, x):
            module.put_variable("state", "count", module.get_variable("state", "count") + 1)
            return x
        return nn.switch(which, [counted, lambda module, x: 2 * x], self, x)


class Turning(nn.Module):
    @nn.compact
    def __call__(self, x):
        self.variable("state", "turns", lambda: jnp.zeros((), int))
        layer = nn.Dense(2, use_bias=False)

        def turn(module, x):
            module.put_variable("state", "turns", module.get_variable("state", "turns") + 1)
            return layer(x)
        if self.is_mutable_collection("params"):
            return layer(x)
        return nn.while_loop(lambda module, x: module.get_variable("state", "turns") < 5, turn, self, x, carry_variables="state")


def helpers():
    import orbax.checkpoint as ocp
    from flax.training import dynamic_scale, early_stopping, orbax_utils
    tree, folder = {"w": jax.device_put(jnp.arange(8.0), jax.sharding.NamedSharding(jax.make_mesh((8,), ("x",)), P("x"))), "n": 1}, tempfile.mkdtemp() + "/one"
    saver = ocp.PyTreeCheckpointer()
    saver.save(folder, tree, save_args=orbax_utils.save_args_from_target(tree))
    restored = saver.restore(folder, restore_args=orbax_utils.restore_args_from_target(tree))
    compare("restored by its arguments", restored, tree)
    same("restored where it lay", restored["w"].sharding, tree["w"].sharding)
    scale, loss = dynamic_scale.DynamicScale(growth_interval=1), lambda w, x: jnp.mean((x @ w) ** 2).astype(jnp.float32)
    x, w = jnp.ones((4, 3), jnp.float16), jnp.ones(3, jnp.float16)
    scale, finite, value, grads = scale.value_and_grad(loss)(w, x)
    compare("a scale that was too large", (scale.scale, finite, value), (32768, False, 9))
    small = scale.replace(scale=8.0)
    for expected in (8, 16):
        small, finite, value, grads = jax.jit(lambda scale: scale.value_and_grad(loss)(w, x))(small)
        compare(f"a scale of {expected}", (small.scale, finite, value, grads), (expected, True, 9, 6 * np.ones(3)))
    stopping, seen = early_stopping.EarlyStopping(min_delta=1e-3, patience=2), []
    for metric in (1.0, 0.5, 0.5, 0.5, 0.5):
        stopping = stopping.update(metric)
        seen.append((stopping.has_improved, stopping.should_stop))
    same("early stopping", seen, [(True, False), (True, False), (False, False), (False, False), (False, True)])


def control():
    x = jnp.ones((2, 4))
    variables = Chosen().init(key(0), x, True)
    for first, name in ((True, "one"), (False, "other")):
        found = jax.jit(jax.value_and_grad(lambda variables, first: Chosen().apply(variables, x, first).sum()))(variables, first)
        slopes = {own: {"bias": 2 * np.ones(3), "kernel": 2 * np.ones((4, 3))} if own == name else {"bias": np.zeros(3), "kernel": np.zeros((4, 3))} for own in ("one", "other")}
        compare(f"cond, {name}", found, ((x @ variables["params"][name]["kernel"]).sum(), {"params": slopes}))
    for which, expected in ((0, (np.ones(2), {"state": {"count": 4}})), (1, (2 * np.ones(2), {"state": {"count": 3}}))):
        compare(f"switch of {which}", jax.jit(lambda which: Counting().apply({"state": {"count": jnp.array(3)}}, jnp.ones(2), which, mutable=["state"]))(which), expected)
    variables = Turning().init(key(0), jnp.ones(2))
    kernel = np.asarray(variables["params"]["Dense_0"]["kernel"])
    compare("while_loop", Turning().apply(variables, jnp.ones(2), mutable=["state"]), (np.ones(2) @ np.linalg.matrix_power(kernel, 5), {"state": {"turns": 5}}))


def as_printed():
    """Values that Flax's guide to random numbers prints. Source: google/flax, docs/guides/flax_fundamentals/rng_guide.ipynb."""
    variables = Drawn().init({"params": key(0), "another": key(1)}, jnp.ones((2, 2)))
    p = variables["params"]
    compare("kernels", (p["Dense_0"]["kernel"], p["own"], variables["other"]["first"], variables["other"]["second"], p["Dense_1"]["kernel"], p["Dense_1"]["bias"]),
            (np.array([[-1.6185919, 0.700908], [-1.3146383, -0.79342234]]), np.array([[0.0761425, -1.6157459], [-1.6857724, 0.7126891]]),
             np.array([[0.60175574, 0.2553228], [0.27367848, -2.1975214]]), np.array([[1.6249592, 0.30813068], [1.6613585, 1.0404155]]),
             np.array([[0.0030665, 0.29551846], [0.16670242, -0.78252524]]), np.array([1.582462, 0.15216611])))
    params_key, other_key, train_key = jax.random.split(key(0), 3)
    x, y = jnp.ones((1, 3)), jnp.ones((1, 2))
    variables, losses = Dropping().init({"params": params_key, "other": other_key}, x, train=False), []
    for _ in range(10):
        dropout_key, train_key = jax.random.split(train_key)
        grads = jax.grad(lambda p: jnp.mean((y - Dropping().apply({**variables, "params": p}, x, train=True, rngs={"dropout": dropout_key})) ** 2))(variables["params"])
        variables = {**variables, "params": jax.tree.map(lambda p, g: p - 1e-3 * g, variables["params"], grads)}
        losses.append(jnp.mean((y - Dropping().apply(variables, x, train=False)) ** 2))
    compare("losses", jnp.stack(losses), np.array([2.518454, 2.4859657, 2.4171872, 2.412684, 2.3435805, 2.2773488, 2.2592616, 2.2009292, 2.1839895, 2.1707344]))
    drawn = [Named().apply({}, *names, rngs={"rng": key(33)}) for names in (("ab", "cdef"), ("abc", "def"))]
    same("names that join to the same", drawn[0] == drawn[1], True)
    flax.config.update("flax_fix_rng_separator", True)
    drawn = [Named().apply({}, *names, rngs={"rng": key(33)}) for names in (("ab", "cdef"), ("abc", "def"))]
    class Residual(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return x + nn.relu(nn.Dense(features=2)(x)), None

    for splits, expected in ((True, [[[-0.07838312, -0.7422982], [0.87488323, 0.13773395]], [[0.97309333, 0.9087693], [-0.12564984, -1.0920651]],
                                     [[-0.99055105, 1.1499453], [-0.15721127, -0.62520015]]]), (False, [[[-0.66715515, -0.0484313], [0.9867164, 0.75408363]]] * 3)):
        stacked = nn.scan(Residual, variable_axes={"params": 0}, variable_broadcast=False, split_rngs={"params": splits}, length=3)
        compare(f"kernels of a scan, split: {splits}", stacked().init(key(0), jnp.ones((3, 2)), None)["params"]["Dense_0"]["kernel"], np.array(expected))
    flax.config.update("flax_fix_rng_separator", False)
    same("names kept apart", drawn[0] == drawn[1], False)


class Configured(nn.Module):
    config: ml_collections.ConfigDict

    @nn.compact
    def __call__(self, x, _=None):
        return nn.Dense(self.config.model.features)(x), None


class ConfiguredStack(nn.Module):
    config: ml_collections.ConfigDict

    @nn.compact
    def __call__(self, x):
        return nn.scan(nn.remat(Configured), variable_axes={"params": 0}, split_rngs={"params": True}, length=3)(self.config, name="all")(x, None)[0]


def configurations():
    config = ml_collections.ConfigDict({"rates": [1, 2], "model": {"features": 2, "name": None}})
    same("no dict", isinstance(config, dict), False)
    same("fields that are configurations", shapes(ConfiguredStack(config).init(key(), jnp.ones((1, 2)))),
         {"params/all/Dense_0/kernel": (3, 2, 2), "params/all/Dense_0/bias": (3, 2)})
    same("keys", (list(config), config["model.features"], config.get("none", 7), "model" in config, {**config}["rates"]), (["model", "rates"], 2, 7, True, [1, 2]))
    same("lines", str(config), "model:\n  features: 2\n  name: null\nrates:\n- 1\n- 2\n")
    frozen = ml_collections.FrozenConfigDict(config)
    same("frozen", (hash(frozen) == hash(ml_collections.FrozenConfigDict(config)), frozen.rates, frozen.model.features), (True, (1, 2), 2))
    same("not changed", [raised(lambda: setattr(frozen, "rates", 1)), raised(lambda: setattr(config.lock().model, "more", 1))], ["AttributeError"] * 2)


class Normed(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.SpectralNorm(nn.Dense(4, name="first"))(x, update_stats=train)
        return nn.WeightNorm(nn.Dense(5))(x)


def reparametrized():
    model, x = Normed(), RNG.standard_normal((2, 3)).astype(np.float32)
    variables = model.init(key(), x, False)
    same("variables of norms of kernels", shapes(variables), {
        "batch_stats/SpectralNorm_0/first/kernel/u": (1, 4), "batch_stats/SpectralNorm_0/first/kernel/sigma": (), "params/first/kernel": (3, 4), "params/first/bias": (4,),
        "params/Dense_0/kernel": (4, 5), "params/Dense_0/bias": (5,), "params/WeightNorm_0/Dense_0/kernel/scale": (5,)})
    for _ in range(40):
        variables = {**variables, **model.apply(variables, x, True, mutable=["batch_stats"])[1]}
    params = variables["params"]
    first = np.asarray(params["first"]["kernel"])
    largest = np.linalg.svd(first)[1][0]
    compare("the largest singular value", variables["batch_stats"]["SpectralNorm_0"]["first/kernel/sigma"], largest)
    scaled = {**params, "WeightNorm_0": {"Dense_0/kernel/scale": jnp.arange(5.0)}}
    second = np.asarray(params["Dense_0"]["kernel"])
    compare("norms of kernels", model.apply({**variables, "params": scaled}, x, False), x @ (first / largest) @ (second / np.linalg.norm(second, axis=0) * np.arange(5.0)))
    same("more dimensions than two", raised(lambda: nn.SpectralNorm(nn.Conv(3, (2, 2)), error_on_non_matrix=True).init(key(), jnp.ones((1, 4, 4, 2)), update_stats=False)),
         "ValueError")


for check in (configurations, reparametrized, layers, attention, modules, tables, transforms, sharded, training, saved, helpers, control, errors, as_printed):
    check()
print(wrong, "of", compared, "differ")
