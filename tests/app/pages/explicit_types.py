# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes with explicit axes: the type of each operation's result, outside of functions and in them, where it lies, and what is refused. Prints what differs; the
last line counts."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
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


def put(shape, *spec, dtype=np.float32):
    return jax.device_put(np.arange(np.prod(shape), dtype=dtype).reshape(shape), P(*spec))


ROWS, COLUMNS, WEIGHTS = put((8, 4), "x"), put((8, 4), None, "y"), put((4, 16), None, "y")
SUMMED, BATCH = put((4, 16), "x"), put((8, 4, 4), "x")

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
    ("made anew", lambda: jnp.zeros((8, 4)), (), "float32[8,4]"),
    ("made anew at a place", lambda: jnp.ones((8, 4), out_sharding=P("x", "y")), (), "float32[8@x,4@y]"),
    ("drawn at a place", lambda: jax.random.normal(jax.random.key(0), (8, 4), out_sharding=P("x")), (), "float32[8@x,4]"),
    ("one at a time", lambda a: jax.vmap(lambda row: row * row.sum())(a), (ROWS,), "float32[8@x,4]"),
    ("loop", lambda a: lax.scan(lambda c, row: (c + row, c), jnp.zeros_like(a[0]), a)[1], (COLUMNS,), "float32[8,4@y]"),
    ("counted loop", lambda a: lax.fori_loop(0, 3, lambda i, a: a * 2, a), (ROWS,), "float32[8@x,4]"),
    ("gradient", lambda a, b: jax.grad(lambda b: (a @ b).sum())(b), (ROWS, WEIGHTS), "float32[4,16@y]"),
    ("pieces", lambda a: jax.shard_map(lambda a: lax.psum(a, "x"), out_specs=P())(a), (ROWS,), "float32[2,4]"),
    ("moved", lambda a: jax.sharding.reshard(a, P(None, "y")), (ROWS,), "float32[8,4@y]"),
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
    check("what explicit axes within others leave", str(jax.typeof(made)) == "float32[8,4]", (jax.typeof(made), made.sharding))


def main():
    for part in (types, refused, training, beside_others):
        part()
    print(f"{wrong} of {compared} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
