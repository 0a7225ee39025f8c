# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of flax.nnx as trees: which attributes are data, what is refused, how objects print, and that transforms carry arrays which no variable holds. Expected
values from google/flax, docs_nnx/guides/pytree.ipynb and tests/nnx. Prints what differs; the last line counts."""
import copy
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import errors, nnx

wrong = compared = 0


def check(name, found, expected):
    global wrong, compared
    compared += 1
    if found != expected:
        wrong += 1
        print(f"{name}: {found!r} is not {expected!r}")


def raised(function):
    try:
        return f"gave {function()!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def leaves(tree):
    return {jax.tree_util.keystr(path): np.asarray(value).tolist() if hasattr(value, "shape") else value for path, value in jax.tree_util.tree_leaves_with_path(tree)}


class Holder(nnx.Pytree):
    def __init__(self, **attributes):
        for name, value in attributes.items():
            setattr(self, name, value)


class Loose(nnx.Object):
    def __init__(self, **attributes):
        for name, value in attributes.items():
            setattr(self, name, value)


@nnx.dataclass
class Fields(nnx.Pytree):
    i: int = nnx.data()
    x: jax.Array
    a: int
    s: str = nnx.static(default="hi", kw_only=True)


@dataclasses.dataclass
class PlainFields(nnx.Pytree):
    a: int = dataclasses.field(metadata={"static": False})
    b: str = dataclasses.field(metadata={"static": True})


class Annotated(nnx.Pytree):
    ls: nnx.Data[list]

    def __init__(self):
        self.ls = [jnp.array(1.0), 2]


class Own:
    pass


nnx.register_data_type(Own)
ONE = jnp.array(1.0)


def kinds():
    for name, value, expected in [
            ("array", ONE, True), ("NumPy", np.ones(2), True), ("variable", nnx.Param(1), True), ("streams", nnx.Rngs(2), True), ("registered", Own(), True),
            ("key", jax.random.key(0), True), ("text", "hello", False), ("number", 42, False), ("list", [1, ONE], False), ("function", jnp.sin, False)]:
        check(f"is_data of a {name}", nnx.is_data(value), expected)
    for name, tree, expected in [
            ("kinds", Holder(a=1, b=ONE, c="x", d=nnx.data(3), e=nnx.static(4)), {".b": 1.0, ".d": 3}),
            ("list", Holder(ls=nnx.List([ONE, "x", jnp.array(2)])), {".ls[0]": 1.0, ".ls[2]": 2}),
            ("ten of a list", nnx.List([jnp.array(at) for at in range(11)]), {f"[{at}]": at for at in range(11)}),
            ("dict", Holder(d=nnx.Dict(a=ONE, f=jnp.sin)), {".d.a": 1.0}),
            ("list as data", Holder(ls=nnx.data([1, ONE])), {".ls[0]": 1, ".ls[1]": 1.0}),
            ("variable", Holder(p=nnx.Param(ONE)), {".p.value": 1.0}),
            ("fields", Fields(1, jnp.array(42), 3), {".i": 1, ".x": 42}), ("plain fields", PlainFields(10, "hello"), {".a": 10}),
            ("annotation", Annotated(), {".ls[0]": 1.0, ".ls[1]": 2})]:
        check(f"leaves: {name}", leaves(tree), expected)
    check("no tree", jax.tree_util.all_leaves([Loose(a=[ONE])]), True)
    changed = Holder(a=ONE, b="text", c=nnx.data(3.5))
    changed.a, changed.b, changed.c = "kept", nnx.data(42), nnx.static(0.5)
    check("leaves after changes", leaves(changed), {".a": "kept", ".b": 42})
    again = jax.tree.map(lambda leaf: leaf, changed)
    again.b = 7
    check("kinds are kept by trees", leaves(again), {".a": "kept", ".b": 7})
    check("copy", leaves(copy.deepcopy(Holder(a=ONE))), {".a": 1.0})


def appended():
    class Filled(nnx.Pytree):
        def __init__(self):
            self.ls = []
            self.ls.append(ONE)
    return Filled()


def changed_inside():
    held = Holder(count=nnx.data(0))

    def increment(n):
        held.count += 1
    jax.vmap(increment)(jnp.arange(5))


def set_later(value):
    held = Holder(name="x")
    held.name = value


def refusals():
    for name, function, expected in [
            ("base of a LoRA", lambda: nnx.LoRALinear(2, 2, lora_rank=1, lora_base_module=nnx.Linear(2, 2, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(0)),
             "NotImplementedError: nnx.LoRALinear with lora_base_module="),
            ("first carry", lambda: nnx.LSTMCell(2, 2, carry_init=nnx.initializers.ones, rngs=nnx.Rngs(0)), "NotImplementedError: a recurrent cell with carry_init="),
            ("axes of an RNN", lambda: nnx.RNN(nnx.GRUCell(2, 2, rngs=nnx.Rngs(0)), state_axes={}), "NotImplementedError: nnx.RNN with state_axes="),
            ("skipped steps", lambda: optax.MultiSteps(optax.sgd(1.0), 2, should_skip_update_fn=len), "NotImplementedError: optax.MultiSteps with should_skip_update_fn="),
            ("static array", lambda: Holder(name=nnx.static(ONE)), "ValueError: Found data in value of type '<class 'jaxlib._jax.ArrayImpl'>' annotated with nnx.static("),
            ("array for a static attribute", lambda: set_later(ONE), "ValueError: Cannot assign data value of type '<class 'jaxlib._jax.ArrayImpl'>' to static attribute 'name'"),
            ("list of arrays", lambda: Holder(ls=[ONE]), "ValueError: Found data on value of type '<class 'list'>' assigned to static attribute 'ls' of Pytree type"),
            ("list of modules", lambda: Holder(ls=(nnx.Linear(1, 1, rngs=nnx.Rngs(0)),)), "ValueError: Found data on value of type '<class 'tuple'>'"),
            ("dict of variables", lambda: set_later({"a": nnx.Param(1)}), "ValueError: Found data on value of type '<class 'dict'>'"),
            ("appended", appended, "ValueError: Found unexpected data on value of type <class 'list'> in static attribute 'ls'"),
            ("marks inside", lambda: Holder(a=[nnx.data(1)]), "ValueError: Found unexpected tags {'data'} on attribute 'Holder.a'."),
            ("other trace", changed_inside, "TraceContextError: Cannot mutate 'Holder' from different trace level (https://"),
            ("both ways", lambda: nnx.data(1, default=2), "TypeError: nnx.data() accepts either a single positional argument or keyword"),
            ("slots", lambda: type("Slotted", (nnx.Pytree,), {"__slots__": ("a",)}), "TypeError: Pytree currently does not support __slots__"),
            ("object as a tree", lambda: type("Tree", (nnx.Object,), {}, pytree=True), "ValueError: Object is not a pytree"),
            ("no tree to check", lambda: nnx.check_pytree(3), "TypeError: Expected a Pytree, got <class 'int'>."),
            ("past the end", lambda: nnx.List([1])[1], "IndexError: Index out of bounds"), ("no such name", lambda: nnx.Dict()["a"], "KeyError: 'a'"),
            ("slices of other lengths", lambda: nnx.List([1, 2, 3]).__setitem__(slice(0, 2), [1]), "ValueError: Length mismatch")]:
        found = raised(function)
        check(f"refused: {name}", found[:len(expected)], expected)
    check("objects take anything", raised(lambda: Loose(a=[ONE], b={"c": ONE})).startswith("gave Loose("), True)


def containers():
    made = nnx.List([1, 2, 3])
    made.append(4)
    made.insert(1, 5)
    check("insert", list(made), [1, 5, 2, 3, 4])
    del made[2]
    made[1:3] = [6, 7]
    check("delete and slices", (list(made), made[-1], made[1:3], len(made)), ([1, 6, 7, 4], 4, [6, 7], 4))
    mixed = nnx.List([ONE, "x"])
    mixed.insert(0, "first")
    check("kinds move along", leaves(mixed), {"[1]": 1.0})
    names = nnx.Dict({"a": 1}, b=2)
    names["c"] = 3
    del names["a"]
    check("names", (sorted(names), names.setdefault("d", 4), names.c, "a" in names, len(names)), (["b", "c"], 4, 3, False, 3))
    block = nnx.Sequential(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), nnx.relu, lambda x: {"y": x}, lambda y: y + 1)
    check("sequence", (block(jnp.ones((1, 2))).shape, nnx.Sequential()(12), nnx.Sequential()(k=2)), ((1, 3), 12, {"k": 2}))
    check("paths", [path for path, _ in nnx.state(block).flat_state()], [("layers", 0, "bias"), ("layers", 0, "kernel")])


def printing():
    for name, value, expected in [
            ("object", Holder(a=ONE, b=jnp.ones((2, 3)), c="x", _d=1), "Holder(\n  a=Array(1., dtype=float32, weak_type=True),\n  b=Array(shape=(2, 3), dtype=dtype('float32')),\n  c='x'\n)"),
            ("list", nnx.List([1, "a"]), "List([\n  1,\n  'a'\n])"), ("dict", nnx.Dict(a=1), "Dict({\n  'a': 1\n})"), ("empty", Holder(), "Holder()"),
            ("class", Holder(a=int, b=(1, [2.5])), "Holder(\n  a=int,\n  b=(1, [2.5])\n)"),
            ("state", nnx.state(Holder(left=Holder(x=jnp.ones(())))), "State({\n  'left': {\n    'x': Array(1., dtype=float32)\n  }\n})")]:
        check(f"prints: {name}", repr(value), expected)
    for name, count, said in [("bytes", 250, "250 (1000 B)"), ("thousands of bytes", 3730, "3,730 (14.9 KB)"), ("millions", 67084290, "67,084,290 (268.3 MB)"),
                              ("billions", 2**29, "536,870,912 (2.1 GB)")]:
        size = nnx.Param(jax.ShapeDtypeStruct((count,), jnp.float32))
        check(f"prints {name}", repr(size).split("\n")[0], f"Param( # {said}")
    shared = Holder(x=nnx.Param(jnp.ones(())))
    check("prints an object again", repr(Holder(a=shared, b=shared)).endswith("  b=Holder(...)\n)"), True)


def counted(held, x):
    held.total = held.total + x
    held.calls += 1
    return held.total * 2


def transforms():
    """Arrays that no variable holds are state: split, merge, update, jit, grad, vmap, scan and cond carry them."""
    shared = Holder(x=jnp.arange(3.0))
    parent = Holder(left=shared, right=shared)
    check("duplicates", nnx.find_duplicates(parent), [[("left",), ("right",)]])
    form, state = nnx.split(parent)
    check("split", jax.tree.map(lambda leaf: leaf.tolist(), nnx.to_pure_dict(state)), {"left": {"x": [0.0, 1.0, 2.0]}})
    merged = nnx.merge(form, jax.tree.map(lambda leaf: leaf + 1, state))
    check("merge", (merged.left is merged.right, merged.right.x.tolist(), shared.x.tolist()), (True, [1.0, 2.0, 3.0], [0.0, 1.0, 2.0]))
    nnx.update(parent, nnx.state(merged))
    check("update", shared.x.tolist(), [1.0, 2.0, 3.0])
    linear = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    own, copies = nnx.variables(linear), nnx.state(linear)
    own["kernel"].value, copies["bias"].value = jnp.ones((2, 3)), jnp.ones(3)
    check("variables are those of the module, a state's are copies", (own["kernel"] is linear.kernel, linear.kernel.value.tolist(), linear.bias.value.tolist()),
          (True, [[1.0] * 3] * 2, [0.0] * 3))
    check("jit gives the same objects", nnx.jit(lambda m: m)(parent).left is parent.left, True)

    held = Holder(total=jnp.zeros(()), calls=nnx.data(0))
    step = nnx.jit(counted)
    found = [float(step(held, 3.0)) for _ in range(3)]
    check("jit", (found, float(held.total), int(held.calls)), ([6.0, 12.0, 18.0], 9.0, 3))
    held = Holder(total=jnp.zeros(()), calls=nnx.data(0))
    check("cond", (float(nnx.cond(True, counted, lambda held, x: x, held, 2.0)), float(held.total), int(held.calls)), (4.0, 2.0, 1))

    loose = Loose(a=[jnp.array(1), jnp.array(2)], b=jnp.array(3))

    @nnx.jit
    def double(loose):
        loose.a = [x * 2 for x in loose.a]
        loose.b *= 2
    double(loose)
    double(loose)
    check("jit of an object", jax.tree.map(int, nnx.to_pure_dict(nnx.state(loose))), {"a": {0: 4, 1: 8}, "b": 12})

    many = Holder(w=jnp.arange(3.0), n=7)
    check("vmap", nnx.vmap(lambda held, x: held.w * x)(many, jnp.ones(3)).tolist(), [0.0, 1.0, 2.0])
    check("jax.vmap", jax.vmap(lambda held: held.w * held.n)(many).tolist(), [0.0, 7.0, 14.0])
    check("jax.grad", leaves(jax.grad(lambda held: jnp.sum(held.w ** 2))(many)), {".w": [0.0, 2.0, 4.0]})
    check("jax.jit", jax.jit(lambda held: held.w * held.n)(many).tolist(), [0.0, 7.0, 14.0])
    layer = lambda key: nnx.Linear(2, 2, rngs=nnx.Rngs(key))
    keys = jax.random.split(jax.random.key(0), 3)

    @nnx.jit
    def made_inside():
        made = nnx.vmap(layer)(keys)
        made.kernel.value, made.note = made.kernel.value * 2, "changed"
        return made
    for name, made in [("vmap", nnx.vmap(layer)(keys)), ("scan", nnx.scan(lambda carry, key: (carry, layer(key)))(0.0, keys)[1]), ("jit", made_inside())]:
        made.note, made.kernel.value = "mine", made.kernel.value + 1
        check(f"what {name} made is one's own", (made.note, made.kernel.shape), ("mine", (3, 2, 2)))
    abstract = repr(nnx.eval_shape(lambda: layer(0)))
    check("types alone", ("# Param: 6 (24 B)" in abstract, "value=ShapeDtypeStruct(shape=(2, 2), dtype=float32)" in abstract), (True, True))
    check("scan", nnx.scan(lambda carry, held: (carry + held.w, carry), in_axes=(nnx.Carry, 0))(jnp.zeros(()), many)[1].tolist(), [0.0, 0.0, 1.0])

    model = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)
    check("paths of an optimizer", sorted("/".join(map(str, path)) for path, _ in nnx.state(optimizer).flat_state() if "model" not in path),
          ["opt_state/0/count", "opt_state/0/mu/bias", "opt_state/0/mu/kernel", "opt_state/0/nu/bias", "opt_state/0/nu/kernel", "step"])


class Noting(nnx.Module):
    def __init__(self):
        self.inner = nnx.Linear(2, 3, rngs=nnx.Rngs(0))

    def features(self, x):
        self.sow(nnx.Intermediate, "features", x)  # the name of a method: capture has a place of its own
        return self.inner(x)

    def __call__(self, x):
        x = self.perturb("slope", x)
        return jnp.sum(self.features(x) * 0 + 3 * x.sum()) / 3 + self.features(x).sum() * 0


def captures():
    """What `sow` and `perturb` put aside within `capture`: by google/flax, docs_nnx/guides/extracting_intermediates.ipynb."""
    model, x = Noting(), jnp.ones((1, 2))
    paths = lambda state: {"/".join(map(str, path)): jax.tree.map(jnp.shape, variable.value) for path, variable in state.flat_state()}
    result, found = nnx.capture(model, nnx.Intermediate)(x)
    check("sown twice", paths(found), {"features": ((1, 2), (1, 2))})
    check("nothing stays", sorted(vars(model)), ["inner"])
    _, slopes = nnx.capture(nnx.Perturbation)(lambda model: model(x))(model)
    check("perturbed", paths(slopes), {"slope": (1, 2)})
    (_, by_place), sown = nnx.grad(lambda model, slopes: nnx.capture(model, nnx.Intermediate, init=slopes)(x), argnums=(0, 1), has_aux=True)(model, slopes)
    check("derivative of what was perturbed", by_place["slope"].value.tolist(), [[3.0, 3.0]])
    check("sown in a derivative", paths(sown), {"features": ((1, 2), (1, 2))})
    _, results = nnx.capture(model, nnx.Intermediate, method_outputs=nnx.Intermediate)(x)
    check("of each method", sorted(paths(results)), ["__call__", "features", "inner/__call__"])
    check("methods are as they were", hasattr(Noting.features, "__wrapped__"), False)
    check("kinds", [len(one.flat_state()) for one in nnx.capture(model, nnx.Intermediate, nnx.Perturbation)(x)[1:]], [1, 1])

    def taken_apart(model):
        definition, state = nnx.split(model)
        return nnx.merge(definition, state)(x)
    check("in a copy", raised(lambda: nnx.capture(taken_apart, nnx.Perturbation)(model)).split(",")[0],
          "NotImplementedError: nnx.capture of a function that puts values aside in a copy of its module")
    _, inside = nnx.capture(lambda model: nnx.capture(model, nnx.Intermediate)(x)[0], nnx.Intermediate)(model)
    check("within another", paths(inside), {})
    check("another kind", raised(lambda: Holder.__mro__ and nnx.Linear(1, 1, rngs=nnx.Rngs(0)).sow(nnx.Intermediate, "kernel", 1)).splitlines()[0],
          "ValueError: Expected 'kernel' to be of type 'Intermediate', got 'Param'")


def states():
    model = nnx.Sequential(nnx.Linear(2, 4, rngs=nnx.Rngs(0)), nnx.relu, nnx.Linear(4, 4, rngs=nnx.Rngs(1)))
    names = nnx.map_state(lambda path, _: path[-1], nnx.state(model, nnx.Param))
    check("map_state", names["layers"][2]["bias"], "bias")
    optimizer = nnx.Optimizer(model, optax.partition({"kernel": optax.adam(0.1), "bias": optax.adam(0.01)}, names), wrt=nnx.Param)
    apart = nnx.clone(model)
    whole = nnx.Optimizer(apart, optax.adam(0.1), wrt=nnx.Param)
    for _ in range(3):
        for one, tx in ((model, optimizer), (apart, whole)):
            tx.update(one, nnx.grad(lambda one: jnp.sum(one(jnp.ones((1, 2))) ** 2) + jnp.sum(one.layers[2].bias.value))(one))
    first = nnx.Linear(2, 4, rngs=nnx.Rngs(0))
    check("each group its optimizer", np.allclose((model.layers[0].kernel.value - first.kernel.value) != 0, (apart.layers[0].kernel.value - first.kernel.value) != 0), True)
    check("steps of a bias", np.abs(np.asarray(model.layers[2].bias.value)).max().round(3) <= 0.031, True)

    rngs, said = nnx.Rngs(0), {"sharding_names": ("rows", None)}
    attention = nnx.MultiHeadAttention(2, 4, decode=False, normalize_qk=True, kernel_metadata=said, out_bias_metadata={"mine": 1}, key_ln_scale_metadata={"mine": 2}, rngs=rngs)
    named = [attention.query.kernel.sharding_names, attention.out.kernel.sharding_names, attention.out.bias.mine, attention.key_ln.scale.mine,
             nnx.Conv(1, 1, 3, kernel_metadata=said, rngs=rngs).kernel.sharding_names, nnx.Embed(3, 2, embedding_metadata=said, rngs=rngs).embedding.sharding_names,
             nnx.BatchNorm(2, bias_metadata={"mine": 3}, rngs=rngs).bias.mine, nnx.RMSNorm(2, scale_metadata={"mine": 4}, rngs=rngs).scale.mine,
             nnx.LoRALinear(2, 2, lora_rank=1, a_metadata=said, rngs=rngs).lora.lora_a.sharding_names]
    check("what layers say of their variables", named, [("rows", None), ("rows", None), 1, 2, ("rows", None), ("rows", None), 3, 4, ("rows", None)])

    table = nnx.tabulate(nnx.Sequential(nnx.Linear(3, 4, rngs=rngs), nnx.BatchNorm(4, rngs=rngs)), jnp.ones((2, 3))).splitlines()
    check("a table of modules", [[" ".join(cell.split()) for cell in row.strip("|").split("|")] for row in (table[0], table[4], table[-1])], [
        ["path", "type", "inputs", "outputs", "Param", "BatchStat"], ["layers/0", "Linear", "float32[2,3]", "float32[2,4]", "16 (64 B)", "0 (0 B)"],
        ["", "", "", "Total", "24 (96 B)", "8 (32 B)"]])

    x, searched = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]), nnx.Linear(2, 1, rngs=nnx.Rngs(0))
    loss = lambda model: jnp.mean((model(x) - x @ jnp.array([[2.0], [-1.0]])) ** 2)
    lbfgs, definition = nnx.Optimizer(searched, optax.lbfgs(), wrt=nnx.Param), nnx.graphdef(searched)
    for _ in range(10):
        value, grads = nnx.value_and_grad(loss)(searched)
        lbfgs.update(searched, grads, grad=grads, value=value, value_fn=lambda state: loss(nnx.merge(definition, state)))
    check("an optimizer that searches along a line", np.allclose(searched.kernel.value, [[2.0], [-1.0]], atol=1e-3), True)

    layer = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    averages = nnx.EMA(layer, decay=0.75)
    averaged, before = averages.apply_to(layer), layer.kernel.value
    layer.kernel.value = before + 1.0
    nnx.jit(lambda averages, layer: averages.update(layer))(averages, layer)
    check("moving average", (averaged.kernel is averages.params["kernel"], np.allclose(averaged.kernel.value - before, 0.25)), (True, True))

    class Line(nnx.Module):  # its arrays are in no variables
        def __init__(self):
            self.w, self.turns = jnp.array([2.0]), jnp.array(0)

        def __call__(self, x):
            self.turns += 1
            return x * self.w
    line, is_weight = Line(), lambda path, value: path[-1] == "w"
    steps = nnx.Optimizer(line, optax.sgd(0.5), wrt=is_weight)

    @nnx.jit
    def step(line, steps):
        grads = nnx.grad(lambda line: jnp.sum(line(3.0) ** 2), argnums=nnx.DiffState(0, is_weight))(line)
        steps.update(line, grads)
        return grads
    check("derivatives by arrays", (float(step(line, steps)["w"][0]), float(line.w[0]), int(line.turns)), (36.0, -16.0, 1))
    check("kinds and defaults of variables", (issubclass(nnx.Variable[nnx.A], nnx.Variable), nnx.var_defaults().hijax, nnx.var_defaults(hijax=False).__enter__()), (True, False, None))
    check("variables that change in place", raised(lambda: nnx.var_defaults(hijax=True)).split(",")[0], "NotImplementedError: nnx.var_defaults with hijax=True")

    lora = nnx.recursive_map(lambda _, node: nnx.LoRA(2, 1, 2, base_module=node, rngs=nnx.Rngs(0)) if isinstance(node, nnx.Linear) else node, [layer, layer])
    check("recursive_map", (type(lora[0]).__name__, lora[0] is lora[1], lora[0].base_module.kernel is layer.kernel), ("LoRA", True, True))
    adapted = nnx.Optimizer(lora[0], optax.sgd(1.0), wrt=nnx.LoRAParam)
    adapted.update(lora[0], nnx.grad(lambda one: jnp.sum(one(jnp.ones((1, 2)))))(lora[0]))
    check("an optimizer takes its part of the derivatives", np.array_equal(layer.kernel.value, before + 1.0), True)
    check("from a dict of paths", nnx.State.from_flat_path({("a", "b"): 1})["a"]["b"], 1)


def main():
    for part in (kinds, refusals, containers, printing, transforms, captures, states):
        part()
    print(f"{wrong} of {compared} differ")
    return wrong != 0


if __name__ == "__main__":
    raise SystemExit(main())
