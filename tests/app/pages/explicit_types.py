# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes with explicit axes: the type of each operation's result, outside of functions and in them, where it lies, and what is refused. Prints what differs; the
last line counts."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax._src.arrays import calls
from jax._src.errors import ShardingTypeError
from jax.sharding import AxisType, PartitionSpec as P

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(MESH)
wrong = compared = 0


def check(name, is_right, said=""):
    global wrong, compared
    compared += 1
    if not is_right:
        wrong += 1
        print(name, said)


def put(shape, *spec, dtype=np.float32, **sums):
    return jax.device_put(np.arange(np.prod(shape), dtype=dtype).reshape(shape), P(*spec, **sums))


ROWS, COLUMNS, WEIGHTS = put((8, 4), "x"), put((8, 4), None, "y"), put((4, 16), None, "y")
SUMMED, BATCH = put((4, 16), "x"), put((8, 4, 4), "x")
PARTS, REDUCED = jnp.dot(put((8, 4), None, "x"), SUMMED, out_sharding=P(None, None, unreduced={"x"})), put((8, 16), reduced={"x"})

TYPES = [  # an operation, its operands, the type of what it gives
    ("elements", lambda a: jnp.sin(a) * 2 + 1, (ROWS,), "float32[8@x,4]"),
    ("outer product of dimensions", lambda a, b: a + b, (ROWS, COLUMNS), "float32[8@x,4@y]"),
    ("beside a whole array", lambda a: a + jnp.ones((8, 4)), (ROWS,), "float32[8@x,4]"),
    ("beside fewer dimensions", lambda a: a + jnp.ones(4), (ROWS,), "float32[8@x,4]"),
    ("comparison", lambda a: a > 3, (ROWS,), "bool[8@x,4]"),
    ("choice", lambda a: jnp.where(a > 3, a, 0), (ROWS,), "float32[8@x,4]"),
    ("sum over what is split", lambda a: a.sum(0), (ROWS,), "float32[4]"),
    ("sum over what is whole", lambda a: a.sum(1), (ROWS,), "float32[8@x]"),
    ("mean that keeps dimensions", lambda a: a.mean(-1, keepdims=True), (ROWS,), "float32[8@x,1]"),
    ("place of the largest", lambda a: jnp.argmax(a, 1), (ROWS,), "int32[8@x]"),
    ("product", lambda a, b: a @ b, (ROWS, WEIGHTS), "float32[8@x,16@y]"),
    ("product over what one side splits", lambda a, b: a @ b, (put((8, 4)), SUMMED), "float32[8,16]"),
    ("product whose place is said", lambda a, b: jnp.dot(a, b, out_sharding=P("x")), (put((8, 4), None, "x"), SUMMED), "float32[8@x,16]"),
    ("products of a batch", lambda a: a @ a, (BATCH,), "float32[8@x,4,4]"),
    ("einsum", lambda a, b: jnp.einsum("bi,ij->jb", a, b), (ROWS, WEIGHTS), "float32[16@y,8@x]"),
    ("transposed", lambda a: a.T, (ROWS,), "float32[4,8@x]"),
    ("new dimension", lambda a: a[None], (ROWS,), "float32[1,8@x,4]"),
    ("one dimension as two", lambda a: a.reshape(4, 2, 4), (ROWS,), "float32[4@x,2,4]"),
    ("axes of one dimension over two", lambda a: a.reshape(4, 2, 4), (put((8, 4), ("x", "y")),), "float32[4@x,2@y,4]"),
    ("two dimensions as one", lambda a: a.reshape(32), (ROWS,), "float32[32@x]"),
    ("part of what is whole", lambda a: a[:, 1:3], (ROWS,), "float32[8@x,2]"),
    ("part that can be split", lambda a: a[:4], (ROWS,), "float32[4@x,4]"),
    ("rows by numbers", lambda a: a.at[np.array([0, 3])].get(out_sharding=P()), (ROWS,), "float32[2,4]"),
    ("columns by numbers", lambda a: a[:, np.array([0, 3])], (ROWS,), "float32[8@x,2]"),
    ("joined", lambda a: jnp.concatenate([a, a], 1), (ROWS,), "float32[8@x,8]"),
    ("changed columns", lambda a: a.at[:, 0].set(1.0), (ROWS,), "float32[8@x,4]"),
    ("changed rows whose place is said", lambda a: a.at[0].add(1.0, out_sharding=P("x")), (ROWS,), "float32[8@x,4]"),
    ("sorted", lambda a: jnp.sort(a, 1), (ROWS,), "float32[8@x,4]"),
    ("running sum", lambda a: jnp.cumsum(a, 1), (ROWS,), "float32[8@x,4]"),
    ("best", lambda a: lax.top_k(a, 2)[1], (ROWS,), "int32[8@x,2]"),
    ("softmax", jax.nn.softmax, (ROWS,), "float32[8@x,4]"),
    ("made in its shape", jnp.zeros_like, (ROWS,), "float32[8@x,4]"),
    ("made in the shape of a type", lambda a: jnp.zeros_like(jax.eval_shape(lambda b: b * 2, a)), (ROWS,), "float32[8@x,4]"),
    ("made anew", lambda: jnp.zeros((8, 4)), (), "float32[8,4]"),
    ("made where it is to lie", lambda: jnp.array([1.0] * 8, out_sharding=P("x")), (), "float32[8@x]"),
    ("an array where it is to lie", lambda a: jnp.zeros_like(a, out_sharding=P("y")), (ROWS,), "float32[8@y,4]"),
    ("a number where it is to lie", lambda: lax.full((8, 4), 1.0, sharding=P("x")), (), "float32[8@x,4]"),
    ("places where they are to lie", lambda: lax.broadcasted_iota(jnp.int32, (8, 4), 0, out_sharding=P("x")), (), "int32[8@x,4]"),
    ("a product where it is to lie", lambda: lax.dot_general(jnp.ones((8, 4)), jnp.ones((4, 4)), (((1,), (0,)), ((), ())), out_sharding=P("x")), (), "float32[8@x,4]"),
    ("copies where they are to lie", lambda: jnp.repeat(jnp.ones(4), 2, out_sharding=P("x")), (), "float32[8@x]"),
    ("rows where they are to lie", lambda: lax.broadcast(jnp.ones(4), (8,), out_sharding=P("x")), (), "float32[8@x,4]"),
    ("ones on a diagonal where they are to lie", lambda: jnp.eye(8, out_sharding=P("x")), (), "float32[8@x,8]"),
    ("made anew at a place", lambda: jnp.ones((8, 4), out_sharding=P("x", "y")), (), "float32[8@x,4@y]"),
    ("drawn at a place", lambda: jax.random.normal(jax.random.key(0), (8, 4), out_sharding=P("x")), (), "float32[8@x,4]"),
    ("one at a time", lambda a: jax.vmap(lambda row: row * row.sum())(a), (ROWS,), "float32[8@x,4]"),
    ("loop", lambda a: lax.scan(lambda c, row: (c + row, c), jnp.zeros_like(a[0]), a)[1], (COLUMNS,), "float32[8,4@y]"),
    ("counted loop", lambda a: lax.fori_loop(0, 3, lambda i, a: a * 2, a), (ROWS,), "float32[8@x,4]"),
    ("gradient", lambda a, b: jax.grad(lambda b: (a @ b).sum())(b), (ROWS, WEIGHTS), "float32[4,16@y]"),
    ("pieces", lambda a: jax.shard_map(lambda a: lax.psum(a, "x"), out_specs=P())(a), (ROWS,), "float32[2,4]"),
    ("moved", lambda a: jax.sharding.reshard(a, P(None, "y")), (ROWS,), "float32[8,4@y]"),
    ("product that stays a sum of parts", lambda a, b: jnp.dot(a, b, out_sharding=P(None, None, unreduced={"x"})), (put((8, 4), None, "x"), SUMMED), "float32[8,16]{U:x}"),
    ("two of them, added", lambda a, b: jnp.einsum("bi,ij->bj", a, b, out_sharding=P(unreduced={"x"})) + PARTS, (put((8, 4), None, "x"), SUMMED), "float32[8,16]{U:x}"),
    ("one of them, reduced", lambda a: jax.reshard(a, P("x", "y")), (PARTS,), "float32[8@x,16@y]"),
    ("transposed and cut", lambda a: a.T[:, :2].reshape(4, 4, 2), (PARTS,), "float32[4,4,2]{U:x}"),
    ("summed", lambda a: a.sum(0), (PARTS,), "float32[16]{U:x}"),
    ("scaled", lambda a, b: a * b, (PARTS, REDUCED), "float32[8,16]{U:x}"),
    ("said to be one", lambda a: jax.reshard(a, P(None, "y", unreduced={"x"})), (put((8, 4)),), "float32[8,4@y]{U:x}"),
    ("reduced", lambda a: jnp.sin(a * 2.0), (REDUCED,), "float32[8,16]{R:x}"),
    ("product with what is reduced", lambda a, b: a @ b, (ROWS, put((4, 16), reduced={"x"})), "float32[8@x,16]"),
    ("derivative by what is reduced", lambda a, b: jax.grad(lambda b: jnp.sum((a @ b) ** 2))(b), (ROWS, put((4, 16), reduced={"x"})), "float32[4,16]{U:x}"),
    ("derivative by what is cast so", lambda a, b: jax.grad(lambda b: jnp.sum((a @ jax.reshard(b, P(reduced={"x"}))) ** 2))(b), (ROWS, put((4, 16))), "float32[4,16]"),
    ("derivative by a sum of parts", lambda a: jax.grad(lambda a: jnp.sum(jax.reshard(a, P()) ** 2))(a), (PARTS,), "float32[8,16]{R:x}"),
    ("pieces that are parts of a sum", lambda a, b: jax.shard_map(lambda a, b: lax.pcast(a @ b, "x", to="unreduced"), in_specs=(P(None, "x"), P("x")),
                                                                  out_specs=P(None, None, unreduced={"x"}))(a, b), (put((8, 4), None, "x"), SUMMED), "float32[8,16]{U:x}"),
    ("derivative of pieces by what is reduced", lambda a, b: jax.grad(lambda b: jnp.sum(jax.shard_map(
        lambda a, b: jnp.tanh(a @ b), in_specs=(P("x"), P(reduced={"x"})), out_specs=P("x"))(a, b) ** 2))(b), (ROWS, put((4, 16), reduced={"x"})), "float32[4,16]{U:x}"),
    ("pieces of a sum of parts", lambda a: jax.shard_map(lambda a: lax.psum(a, "x"), in_specs=P(None, None, unreduced={"x"}), out_specs=P())(a), (PARTS,), "float32[8,16]"),
    ("derivative by them", lambda a: jax.grad(lambda a: jnp.sum(jnp.sin(jax.shard_map(
        lambda a: lax.psum(a, "x"), in_specs=P(None, None, unreduced={"x"}), out_specs=P())(a))))(a), (PARTS,), "float32[8,16]{R:x}"),
    ("loop over parts of a sum", lambda a, b: lax.scan(lambda c, row: (c + jnp.dot(row, b, out_sharding=P(None, None, unreduced={"x"})), None),
                                                       jax.reshard(jnp.zeros((8, 16)), P(unreduced={"x"})), a)[0],
     (put((3, 8, 4), None, None, "x"), SUMMED), "float32[8,16]{U:x}"),
    ("chosen by the compiler", lambda a, b: jax.sharding.auto_axes(lambda a, b: a @ b, out_sharding=P("x"))(a, b), (put((8, 4), None, "x"), SUMMED),
     "float32[8@x,16]"),
]

REFUSED = [  # an operation, its operands, the class of the error and a part of its text
    ("split apart", lambda a, b: a + b, (ROWS, put((8, 4), "y")), "ShardingTypeError", "add got incompatible shardings for broadcasting: ('x', None), ('y', None)."),
    ("an axis twice", lambda a, b: a + b, (ROWS, put((8, 4), None, "x")), "ShardingTypeError",
     "add operation with inputs: f32[8@x,4], f32[8,4@x] produces an illegally sharded result: f32[8@x,4@x]"),
    ("product over what both split", lambda a, b: a @ b, (put((8, 4), None, "x"), SUMMED), "ShardingTypeError",
     "Got lhs_contracting_spec=('x',) and rhs_contracting_spec=('x',)"),
    ("batches split apart", lambda a, b: a @ b, (BATCH, put((8, 4, 4), "y")), "ShardingTypeError", "to have the same sharding, got ('x',) and ('y',)."),
    ("one row", lambda a: a[0], (ROWS,), "ShardingTypeError", "slicing on sharded dims where out dim (1) is not divisible by mesh axes (4) with spec (x)"),
    ("rows by numbers", lambda a: a[np.array([0, 3])], (ROWS,), "ShardingTypeError", "Use `.at[...].get(out_sharding=)`"),
    ("changed rows", lambda a: a.at[0].set(1.0), (ROWS,), "ShardingTypeError", "Use `.at[...].set/add/mul/...(out_sharding=)`"),
    ("joined of two kinds", lambda a, b: jnp.concatenate([a, b]), (ROWS, COLUMNS), "ShardingTypeError", "All operands should have the same sharding."),
    ("two dimensions as one, the second split", lambda a: a.reshape(32), (COLUMNS,), "ShardingTypeError", "This reshape is not supported."),
    ("sorted over what is split", lambda a: jnp.sort(a, 0), (ROWS,), "ShardingTypeError", "must be unsharded over the sorting dimension"),
    ("running sum over what is split", lambda a: jnp.cumsum(a, 0), (ROWS,), "ShardingTypeError", "Input should be unsharded over the axis being reduced."),
    ("loop over what is split", lambda a: lax.scan(lambda c, row: (c, row), 0.0, a), (ROWS,), "ValueError", "0th dimension of all xs should be replicated."),
    ("constraint that is a check", lambda a: lax.with_sharding_constraint(a, P(None, "y")), (ROWS,), "AssertionError", "acts as an assert when all axes of mesh"),
    ("pieces of another kind", lambda a: jax.shard_map(lambda a: a, in_specs=P("y"), out_specs=P("y"))(a), (ROWS,), "ValueError", "in_specs passed to shard_map"),
    ("sine of a sum of parts", jnp.cos, (PARTS,), "NotImplementedError", "unreduced rule for cos is not implemented."),
    ("sum of parts and a whole", lambda a, b: b + a, (PARTS, put((8, 16))), "ShardingTypeError",
     "rhs is unreduced while lhs is not. `add` operation does not allow this because there will be implicit communication."),
    ("product of two", lambda a: a * a, (PARTS,), "ShardingTypeError", "lhs and rhs to `mul` cannot be unreduced since mul is bilinear."),
    ("scaled by a number", lambda a: a * 2.0, (PARTS,), "ShardingTypeError", "RHS should be reduced along the same axes LHS is unreduced on."),
    ("divided by one", lambda a, b: b / a, (PARTS, REDUCED), "ValueError", "The denominator cannot be unreduced passed to `div`."),
    ("product that sums over it", lambda a, b: a @ b, (PARTS, put((16, 4))), "ShardingTypeError",
     "lhs or rhs passed to dot_general cannot be unreduced. Got lhs=ShapedArray(float32[8,16]{U:x}) and rhs=ShapedArray(float32[16,4])"),
    ("product over what is whole", lambda a, b: jnp.dot(a, b, out_sharding=P(unreduced={"x"})), (put((8, 4)), put((4, 16))), "ShardingTypeError",
     "out_sharding's unreduced axes should be equal to the contracting specs."),
    ("product over what one side splits", lambda a, b: jnp.dot(a, b, out_sharding=P(unreduced={"x"})), (put((8, 4)), SUMMED), "ShardingTypeError",
     "lhs and rhs contracting dims should be sharded identically"),
    ("reduced beside a whole", lambda a, b: a + b, (REDUCED, put((8, 16))), "ShardingTypeError", "Inputs cannot be replicated on the same axes that another input is reduced"),
    ("reduced beside what is split", lambda a, b: a + b, (REDUCED, put((8, 16), "x")), "ShardingTypeError", "Inputs cannot be sharded/varying on the same axes"),
    ("axis that splits and is unreduced", lambda a: jax.reshard(a, P("x", unreduced={"x"})), (ROWS,), "ValueError", "partitions cannot overlap with unreduced axes"),
    ("carry that becomes a sum of parts", lambda a, b: lax.scan(lambda c, row: (jnp.dot(row, b, out_sharding=P(None, None, unreduced={"x"})), None),
                                                                jnp.zeros((8, 16)), a)[0], (put((3, 8, 4), None, None, "x"), SUMMED), "TypeError",
     "The input carry c has type float32[8,16] but the corresponding output carry component has type float32[8,16]{U:x}"),
    ("pieces that are no parts", lambda a: jax.shard_map(lambda a: lax.psum(a, "x"), out_specs=P(unreduced={"x"}))(a), (ROWS,), "ValueError",
     "out_specs passed to shard_map should be equal to the unreduced present on the out_aval."),
    ("no place said", lambda a: jax.sharding.auto_axes(lambda a: a)(a), (ROWS,), "TypeError", "Missing required keyword argument: 'out_sharding'"),
]


def types():
    for name, function, operands, text in TYPES:
        seen = []
        outside = function(*operands)
        inside = jax.jit(lambda *operands: [made := function(*operands), seen.append(str(jax.typeof(made)))][0])(*operands)
        check(name, str(jax.typeof(outside)) == text, f"{jax.typeof(outside)} is not {text}")
        check(f"{name}, in a function", seen == [text] and str(jax.typeof(inside)) == text, f"{seen} and {jax.typeof(inside)} are not {text}")
        check(f"{name}, values", np.allclose(np.asarray(outside), np.asarray(inside)), f"{outside} is not {inside}")


def refused():
    for name, function, operands, kind, text in REFUSED:
        for place, called in (("", function), (", in a function", jax.jit(function))):
            try:
                check(name + place, False, f"gave {called(*operands)}")
            except Exception as error:
                check(name + place, type(error).__name__ == kind and text in str(error), f"{type(error).__name__}: {error}")


def training():
    """A step keeps the types of the parameters and of the optimizer's state; within auto_axes no type says how a value is split."""
    weights = put((16, 32), "x", "y")
    batch, tx = put((8, 16), "x"), optax.adam(1e-2)
    loss = lambda w, b: (jax.nn.relu(jnp.einsum("bi,ih->bh", b, w, out_sharding=P("x"))) ** 2).mean()

    @jax.jit
    def step(weights, state, batch):
        value, grads = jax.value_and_grad(loss)(weights, batch)
        updates, state = tx.update(grads, state, weights)
        return optax.apply_updates(weights, updates), state, value
    state = tx.init(weights)
    for _ in range(3):
        weights, state, value = step(weights, state, batch)
    check("training", str(jax.typeof(weights)) == str(jax.typeof(state[0].mu)) == "float32[16@x,32@y]", (jax.typeof(weights), jax.typeof(state[0].mu)))
    seen = []
    jax.sharding.auto_axes(lambda a: [a, seen.append(str(jax.typeof(a)))][0], out_sharding=P("x"))(ROWS)
    check("types within auto_axes", seen == ["float32[8,4]"], seen)
    auto = jax.make_mesh((4, 2), ("x", "y"))
    with jax.set_mesh(auto):
        check("meshes that are not explicit", jnp.dot(put((8, 4), None, "x"), SUMMED).shape == (8, 16))
        jax.jit(lambda a: jax.sharding.explicit_axes(lambda a: [a, seen.append(str(jax.typeof(a * 2)))][0], in_sharding=P("x"))(a))(put((8, 4)))
        check("explicit axes within others", seen[-1] == "float32[8@x,4]", seen)


def sums():
    """What devices have of a sum of parts, when it is reduced, and what is printed of it."""
    rows, columns = np.asarray(SUMMED), np.arange(32.0).reshape(8, 4)
    parts = [np.outer(columns[:, i], rows[i]) for i in range(4)]
    for name, made, factor in (("parts", PARTS, 1), ("parts of a sum", PARTS + PARTS, 2)):
        check(name, all(np.allclose(shard.data, factor * parts[at // 2]) for at, shard in enumerate(made.addressable_shards)), [shard.data for shard in made.addressable_shards])
    check("printed", repr(PARTS).startswith("Array(shape=(8, 16), dtype=float32, sharding=NamedSharding(") and "unreduced={'x'}" in str(PARTS), PARTS)
    check("is no copy", not PARTS.sharding.is_fully_replicated and REDUCED.sharding.is_fully_replicated)
    specs = P("x", None, unreduced={"y"}), P(None, reduced={"x"}), P("x", None)
    check("specs", [repr(spec) for spec in specs] == ["PartitionSpec('x', None, unreduced={'y'})", "PartitionSpec(None, reduced={'x'})", "PartitionSpec('x', None)"]
          and len({*specs, P(None), P("x", None, unreduced={"y"})}) == 4 and specs[2] == ("x", None) and specs[0] + P("z") == P("x", None, "z", unreduced={"y"}) and repr(("z",) + specs[2]) == "PartitionSpec('z', 'x', None)", specs)

    def reductions(function, *operands):
        collectives = jax.jit(function).lower(*operands)._program.collectives
        return sum(one["count"] for one in collectives if one["bytes_per_device"] > 4)
    weights, batches = put((3, 4, 4), reduced={"x"}), put((5, 8, 4), None, "x")

    def loss(weights, batch):
        return jnp.sum(lax.scan(lambda batch, w: (jnp.tanh(batch @ w), None), batch, weights)[0] ** 2)

    def step(start, weights, batches):
        return jax.reshard(lax.scan(lambda total, batch: (total + jax.grad(loss)(weights, batch), None), start, batches)[0], P())
    zeros = np.zeros((3, 4, 4), np.float32)
    waits = lambda weights, batches: step(jax.reshard(jnp.asarray(zeros), P(unreduced={"x"})), weights, batches)
    at_once = lambda weights, batches: step(jnp.asarray(zeros), jax.reshard(weights, P()), batches)
    check("gradients of loops, reduced once", reductions(waits, weights, batches) == 1, jax.jit(waits).lower(weights, batches)._program.collectives)
    lines = {name: [line for line in jax.jit(function).lower(weights, batches).compile().as_text().split("\n") if " all-reduce(" in line and "f32[]" not in line]
             for name, function in (("once", waits), ("in loops", at_once))}
    check("and in the text of the program", len(lines["once"]) == 1 and "while/body" not in lines["once"][0] and "replica_groups={{0,2,4,6},{1,3,5,7}}" in lines["once"][0]
          and any("while/body/while/body" in line for line in lines["in loops"]), lines)
    check("and their values", np.allclose(waits(weights, batches), at_once(weights, batches), 1e-4, 1e-4))
    derivative = jax.grad(lambda a: jnp.sum(jnp.sin(jax.shard_map(lambda a: lax.psum(a, "x"), in_specs=P(None, None, unreduced={"x"}), out_specs=P())(a))))
    check("derivative by pieces of a sum of parts", np.allclose(derivative(PARTS), np.cos(np.asarray(PARTS)), 1e-4, 1e-4))
    pieces = jax.shard_map(lambda a, b: a @ b, in_specs=(P(None, "x"), P("x")), out_specs=P(None, None, unreduced={"x"}))
    a, b = put((8, 4), None, "x"), SUMMED
    check("pieces, reduced once", reductions(lambda a, b: jax.reshard(pieces(a, b), P()), a, b) == 1)
    back = jax.grad(lambda a, b: jnp.sum(jax.reshard(pieces(a, b), P())))
    check("nothing to reduce behind them", reductions(back, a, b) == 0, jax.jit(back).lower(a, b)._program.collectives)


def beside_others():
    """Arrays keep the kind of their mesh where the page also made one of the other kind over the same devices, last."""
    kinds = {"explicit": AxisType.Explicit, "auto": AxisType.Auto}
    arrays = {kind: jax.device_put(np.ones((8, 4), np.float32), jax.NamedSharding(jax.make_mesh((4, 2), ("x", "y"), axis_types=(axes,) * 2), P("x", "y")))
              for kind, axes in kinds.items()}
    twice, square = jax.jit(lambda a: a * 2), lambda a: jnp.sum(a * a)
    functions = {"as it is": lambda a: a, "op": lambda a: a * 2, "function": twice, "function of a function's": lambda a: twice(twice(a)), "derivative": jax.grad(square),
                 "derivative in a function": jax.jit(jax.grad(square))}
    for name, function in functions.items():
        for kind, array in arrays.items():
            with jax.set_mesh(array.sharding.mesh):
                made = function(array)
            expected = "float32[8@x,4@y]" if kind == "explicit" else "float32[8,4]"
            check(f"{name}, {kind}", str(jax.typeof(made)) == expected and set(made.sharding.mesh.axis_types) == {kinds[kind]} and made.sharding.spec == P("x", "y"),
                  (jax.typeof(made), made.sharding))
    check("reshard", str(jax.typeof(jnp.sin(jax.reshard(np.arange(8.0), P("x"))))) == "float32[8@x]", jax.typeof(jax.reshard(np.arange(8.0), P("x"))))
    with jax.set_mesh(jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)):
        made = jax.jit(lambda a: jax.sharding.explicit_axes(lambda a: a * 2, in_sharding=P("x"))(a) + 1)(jnp.ones((8, 4)))
    automatic = arrays["auto"]
    for name, function in {"op": jnp.sin, "function": jax.jit(lambda a: a * 2), "derivative": jax.grad(square)}.items():
        with jax.set_mesh(automatic.sharding.mesh):
            jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)  # the mesh that the page makes last
            made = function(automatic)
        check(f"{name}, auto, another mesh made last", set(made.sharding.mesh.axis_types) == {AxisType.Auto} and made.sharding.spec == P("x", "y"), made.sharding)
        try:
            with jax.set_mesh(MESH):
                check(f"{name}, auto, explicit mesh around", False, function(automatic))
        except ValueError as error:
            check(f"{name}, auto, explicit mesh around", f"should match the aval mesh {automatic.sharding.mesh.abstract_mesh} for shape float32[8,4]." in str(error), error)
    check("what explicit axes within others leave", str(jax.typeof(made)) == "float32[8,4]", (jax.typeof(made), made.sharding))


def not_run():
    """What the types refuse asked for nothing."""
    before = len(calls)
    for name, function in {"add": lambda: put((8, 4), "x", "y") + put((8, 4), "y", "x"), "slice": lambda: put((8, 4), "x")[:3]}.items():
        try:
            check(name, False, function())
        except ShardingTypeError:
            check(f"{name} that is refused", len(calls) == before, calls[before:])


def main():
    for part in (types, refused, not_run, training, sums, beside_others):
        part()
    print(f"{wrong} of {compared} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
