# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions of pieces (jax.shard_map): what each device knows of its place, derivatives within, examples at once, what is printed, and constants that lie in
several places; beside what JAX gives. Prints what differs; the last line counts."""
import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.machine import machine
from jax.sharding import NamedSharding, PartitionSpec as P

MESH = jax.make_mesh((4, 2), ("x", "y"))
X, W = jnp.arange(32.0).reshape(8, 4), jnp.float32(2.0)
ROUND = [(i, (i + 1) % 4) for i in range(4)]
by_rows = np.arange(32.0).reshape(4, 2, 4)  # the pieces of X by x
sums = by_rows.sum((1, 2))


def mapped(function, specs, out, **options):
    return jax.shard_map(function, mesh=MESH, in_specs=specs, out_specs=out, **options)


def of_weight(loss, out=P(), **options):
    """The derivative by W of a loss within the pieces."""
    return mapped(lambda w, x: jax.grad(loss)(w, x), (P(), P("x")), out, **options)(W, X)


def printed(function):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function()
    return out.getvalue()


def placed(value):
    return jax.jit(lambda: value() * 1, out_shardings=NamedSharding(MESH, P("x", "y")))()


ROWS = [  # a name, what is computed, what JAX gives
    ("place along one axis of two", lambda: mapped(lambda x: x[:, 0] * 0 + lax.axis_index("x"), P("x"), P("x"))(X), [0, 0, 1, 1, 2, 2, 3, 3]),
    ("place along the other", lambda: mapped(lambda x: x[:2, 0] * 0 + lax.axis_index("y"), P(), P("y"))(X), [0, 0, 1, 1]),
    ("place that chooses a branch", lambda: mapped(lambda x: lax.cond(lax.axis_index("x") > 0, lambda x: 2 * x, lambda x: x, x), P("x"), P("x"))(X)[:, 0],
     [0, 4, 16, 24, 32, 40, 48, 56]),
    ("derivative by what one branch has of all", lambda: of_weight(lambda w, x: lax.cond(lax.axis_index("x") > 1, lambda: (w * x).sum(), lambda: x.sum())), sum(sums[2:])),
    ("branches that all choose alike", lambda: of_weight(lambda w, x: lax.psum(lax.cond(w > 0, lambda: (w * x).sum(), lambda: x.sum()), "x")), 496),
    ("a sum over devices in a branch", lambda: of_weight(lambda w, x: lax.cond(w > 0, lambda: lax.psum((w * x).sum(), "x"), lambda: w)), 496),
    ("derivative by what all have", lambda: of_weight(lambda w, x: (w * x).sum()), 496),
    ("in a program", lambda: jax.jit(lambda: of_weight(lambda w, x: (w * x).sum()))(), 496),
    ("of a sum over devices", lambda: of_weight(lambda w, x: lax.psum((w * x).sum(), "x")), 496),
    ("of a mean over devices", lambda: of_weight(lambda w, x: lax.pmean((w * x).sum(), "x")), 124),
    ("of both kinds", lambda: of_weight(lambda w, x: 2 * w + lax.psum((w * x).sum(), "x")), 498),
    ("of a value that is said to differ", lambda: of_weight(lambda w, x: (w * x).sum() * 1.0, P(), check_vma=True), 496),
    ("by one's own copy", lambda: mapped(lambda w, x: jax.grad(lambda w: (w * x).sum())(lax.pcast(w, "x", to="varying"))[None], (P(), P("x")), P("x"))(W, X), sums),
    ("summed again", lambda: mapped(lambda w, x: lax.pmean(jax.grad(lambda w: (w * x).sum())(w), "x"), (P(), P("x")), P())(W, X), 496),
    ("unchecked, then a mean", lambda: mapped(lambda w, x: lax.pmean(jax.grad(lambda w: (w * x).sum())(w), "x"), (P(), P("x")), P(), check_vma=False)(W, X), 124),
    ("through a loop", lambda: of_weight(lambda w, x: lax.scan(lambda c, row: (c + (w * row).sum(), None), lax.pcast(0.0, "x", to="varying"), x)[0]), 496),
    ("second", lambda: of_weight(lambda w, x: jax.grad(lambda w: (w * w * x).sum())(w) * w), 3968),
    ("of gathered weights", lambda: mapped(lambda w, x: jax.grad(lambda w: (x @ lax.all_gather(w, "x", tiled=True)).sum())(w), (P("x"), P("x")), P("x"))(jnp.ones(4), X),
     by_rows.sum((0, 1))),
    ("of pieces sent on", lambda: mapped(lambda x: jax.grad(lambda x: (lax.ppermute(x, "x", ROUND) * lax.axis_index("x")).sum())(x), P("x"), P("x"))(X)[:, 0],
     [1, 1, 2, 2, 3, 3, 0, 0]),
    ("of pieces exchanged", lambda: mapped(lambda x: jax.grad(lambda x: (lax.all_to_all(x, "x", 1, 0, tiled=True) ** 2).sum())(x), P("x"), P("x"))(X), 2 * np.asarray(X)),
    ("of sums scattered", lambda: mapped(lambda x: jax.grad(lambda x: (lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True) ** 2).sum())(x), P("x"), P("x"))(X)[0],
     2 * by_rows.sum(0)[0]),
    ("pmap sums no gradients", lambda: jax.pmap(lambda w, x: jax.grad(lambda w: (w * x).sum())(w), in_axes=(None, 0))(W, X), np.asarray(X).sum(1)),
    ("pmap along other axes", lambda: jax.pmap(lambda x, n: n * x, in_axes=(1, None), out_axes=1, static_broadcasted_argnums=1)(X, 3), 3 * np.asarray(X)),
    ("many examples of pieces", lambda: jax.vmap(mapped(lambda x: lax.psum(x, "x"), P("x"), P()))(jnp.stack([X, 2 * X])), [by_rows.sum(0), 2 * by_rows.sum(0)]),
    ("pieces of many examples", lambda: mapped(jax.vmap(lambda row: lax.psum(row, "x")), P("x"), P())(X), by_rows.sum(0)),
    ("trees of pieces", lambda: mapped(lambda x: lax.all_gather({"a": x}, "x", tiled=True)["a"], P("x"), P(), check_vma=False)(X), np.asarray(X)),
    ("shapes of what differs, unchecked", lambda: jax.eval_shape(mapped(lambda x: x[:2] + lax.axis_index("x"), P(None, "y"), P(None, "y"), check_vma=False), X).shape, [2, 4]),
    ("ones in places", lambda: placed(lambda: jnp.ones((8, 4))), np.ones((8, 4))),
    ("zeros in places", lambda: placed(lambda: jnp.zeros((8, 4))), np.zeros((8, 4))),
    ("products of groups", lambda: lax.ragged_dot(jnp.ones((5, 2)), jnp.arange(8.0).reshape(2, 2, 2), jnp.array([2, 2])), [[2, 4], [2, 4], [10, 12], [10, 12], [0, 0]]),
]

def as_examples(function):
    """That a function gives the same of the examples of a vmap as of pieces that lie along an axis."""
    x = jnp.arange(64.0).reshape(4, 4, 4) ** 2
    pieces = jax.shard_map(lambda x: function(x[0])[None], mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    examples = jax.vmap(function, axis_name="x")
    with_others = jax.vmap(jax.vmap(function, axis_name="y"), axis_name="x")(jnp.stack([x, -x], 1))
    grads = [jax.grad(lambda x: (of(x) * jnp.arange(4.0)).sum())(x) for of in (pieces, examples)]
    return (np.allclose(examples(x), pieces(x)) and np.allclose(*grads) and np.allclose(jax.jit(examples)(x), pieces(x))
            and np.allclose(with_others[:, 1], examples(-x)))


ROWS += [(f"examples: {name}", lambda function=function: as_examples(function), True) for name, function in [
    ("psum", lambda x: x * lax.psum(x, "x")), ("pmax", lambda x: x - lax.pmax(x.sum(), "x")), ("index", lambda x: x + lax.axis_index("x")),
    ("ppermute", lambda x: lax.ppermute(x, "x", ROUND)), ("ppermute to some", lambda x: lax.ppermute(x, "x", [(0, 2), (3, 1)])),
    ("all_gather", lambda x: lax.all_gather(x, "x").sum(1)), ("all_gather behind", lambda x: lax.all_gather(x, "x", axis=1, tiled=True)[:, 3:7]),
    ("all_gather of the same", lambda x: x + lax.all_gather(jnp.ones(4), "x")), ("psum_scatter", lambda x: lax.psum_scatter(x, "x") * jnp.ones((4, 1))),
    ("psum_scatter in tiles", lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True) * jnp.ones(4)), ("all_to_all", lambda x: lax.all_to_all(x, "x", 0, 1)),
    ("all_to_all in tiles", lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True)[3:7] * jnp.ones(4)), ("pshuffle", lambda x: lax.pshuffle(x, "x", [1, 0, 3, 2]))]]
ROWS += [
    ("sum over two vmaps", lambda: jax.vmap(jax.vmap(lambda x: lax.psum(x, ("i", "j")), axis_name="i"), axis_name="j")(jnp.arange(6.0).reshape(2, 3)), np.full((2, 3), 15.0)),
    ("sum over a vmap and devices", lambda: mapped(lambda x: jax.vmap(lambda row: lax.psum(row, ("row", "x")), axis_name="row")(x), P("x"), P())(X),
     np.tile(np.asarray(X).sum(0), (2, 1))),
]

def of_pieces(function):
    """What the devices along x make of their own numbers, 0 to 3."""
    return mapped(function, P("x"), P("x"), check_vma=False)(jnp.arange(4))


def as_pair(x):
    return jnp.stack([x.real, x.imag], -1)


for _over, _of in (("pieces", of_pieces), ("examples", lambda function: jax.vmap(function, axis_name="x")(jnp.arange(4)))):
    ROWS += [(f"{name} of {_over}", lambda function=function, of=_of: of(lambda i: function(i > 1)), expected) for name, function, expected in (
        ("truths counted", lambda t: lax.psum(t, "x"), [2] * 4), ("their mean", lambda t: lax.pmean(t, "x"), [0.5] * 4), ("any", lambda t: lax.pmax(t, "x"), [True] * 4),
        ("all", lambda t: lax.pmin(t, "x"), [False] * 4))]
    ROWS += [(f"{name} of complex {_over}", lambda function=function, of=_of: as_pair(of(lambda i: function(i + 2j))), expected) for name, function, expected in (
        ("sum", lambda z: lax.psum(z, "x"), [[6, 8]] * 4), ("mean", lambda z: lax.pmean(z, "x"), [[1.5, 2]] * 4),
        ("ring", lambda z: lax.ppermute(z, "x", ROUND), [[3, 2], [0, 2], [1, 2], [2, 2]]))]

REFUSED = [  # a name, what is computed, a part of the text
    *[(f"{name} of pieces", lambda function=function: mapped(lambda x: function(x[:, :2].T @ x[:, :2])[None], P("x"), P("x"))(X),
       "an eigendecomposition or a singular value decomposition within jax.shard_map: call it outside")
      for name, function in (("eigenvalues", jnp.linalg.eigvalsh), ("singular values", lambda a: jnp.linalg.svd(a)[1]))],
    ("differs where it may not", lambda: mapped(lambda x: x, P("x"), P())(X), "only varying across mesh axes {} and not {x}, but it was inferred to be possibly varying over {x}"),
    ("the greatest complex number", lambda: of_pieces(lambda i: lax.pmax(i + 2j, "x")), "max is not for elements of type complex<f32>"),
    ("exchanged in other parts", lambda: mapped(lambda x: lax.all_to_all(x, "x", 0, 0), P("x"), P("x"))(X),
     "all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but they are 4 and 2 respectively."),
    ("exchanged in tiles that do not divide", lambda: mapped(lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True), P("x"), P("x"))(X),
     "The size of all_to_all split_axis (2) has to be divisible by the size of the named axis x (4)"),
    ("scattered in tiles that do not divide", lambda: mapped(lambda x: lax.psum_scatter(x, "x", tiled=True), P("x"), P("x"))(X),
     "tiled reduce_scatter operand scatter dimension size 2 must be divisible by shard_count 4"),
    ("sent to one twice", lambda: of_pieces(lambda i: lax.ppermute(i, "x", [(0, 1), (3, 1)])),
     "ppermute sources and destinations must be unique, got ((0, 1), (3, 1))."),
    ("sent from one twice, counted from the start again", lambda: of_pieces(lambda i: lax.ppermute(i, "x", [(0, 1), (4, 2)])), "must be unique"),
    ("axis that is none", lambda: lax.pcast(W, "x", to="varying"), "unbound axis name: x"),
]




def over_rows(function, **options):
    return lambda: mapped(function, P("x"), P("x"), **options)(X)


def add_rows(start, **options):
    return over_rows(lambda x: lax.scan(lambda carry, _: (carry + x, None), start(x), None, length=3)[0], **options)


TYPED = [  # of pages that write today's names: a name, what is computed, what JAX gives or a part of its text
    ("loop whose carry begins to differ", add_rows(lambda x: jnp.zeros((2, 4))),
     "The input carry carry has type float32[2,4] but the corresponding output carry component has type float32[2,4]{V:x}, so the manual axis types do not match."),
    ("what to write", add_rows(lambda x: jnp.zeros((2, 4))), "This might be fixed by applying `jax.lax.pcast(..., ('x',), to='varying')`, to the initial carry value"),
    ("carry that differs from the start", add_rows(lambda x: lax.pcast(jnp.zeros((2, 4)), "x", to="varying")), 3 * np.asarray(X)),
    ("by its older name", add_rows(lambda x: lax.pvary(jnp.zeros((2, 4)), "x")), 3 * np.asarray(X)),
    ("zeros like what differs", add_rows(jnp.zeros_like), 3 * np.asarray(X)),
    ("unchecked", add_rows(lambda x: jnp.zeros((2, 4)), check_vma=False), 3 * np.asarray(X)),
    ("carry that ends alike", over_rows(lambda x: lax.scan(lambda c, _: (lax.psum(c, "x"), None), x, None, length=2)[0]),
     "The input carry c has type float32[2,4]{V:x} but the corresponding output carry component has type float32[2,4]"),
    ("one of two", over_rows(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + x), (0, jnp.zeros((2, 4))))[1]),
     "The input carry component c[1] has type float32[2,4]"),
    ("counted", over_rows(lambda x: lax.fori_loop(0, 3, lambda i, c: c + x, jnp.zeros((2, 4)))), "output carry component has type float32[2,4]{V:x}"),
    ("branch that differs", over_rows(lambda x: lax.cond(lax.psum(x.sum(), "x") > 0, lambda: x, lambda: jnp.zeros((2, 4)))),
     "applying `jax.lax.pcast(..., ('x',), to='varying')` to the output of false_fun"),
    ("branches that all differ", over_rows(lambda x: lax.cond(lax.psum(x.sum(), "x") > 0, lambda: x, lambda: jnp.zeros_like(x))), X),
    ("loop whose result differs", lambda: mapped(lambda x: lax.scan(lambda c, _: (c + x, None), x, None, length=1)[0], P("x"), P())(X), "possibly varying over {x}"),
    ("loop whose result does not", lambda: mapped(lambda x: lax.scan(lambda c, row: (c + lax.psum(row, "x"), None), jnp.zeros(4), x)[0], P("x"), P())(X),
     np.asarray(X).sum(0)),
    ("copy that is said to differ, differentiated", lambda: of_weight(lambda w, x: (lax.pvary(w, "x") * x).sum()), 496),
    ("no part of a sum", over_rows(lambda x: lax.pcast(lax.psum(x, "x"), "x", to="unreduced")), "Unsupported pcast from=invarying, to='unreduced'"),
]


def typed(wrong):
    machine.has_typed_meshes = True
    for name, function, expected in TYPED:
        try:
            found = np.asarray(function())
            is_right = not isinstance(expected, str) and np.allclose(found, expected)
        except Exception as error:
            found, is_right = error, isinstance(expected, str) and expected in str(error)
        if not is_right:
            wrong.append(f"{name}: {found} is not {expected}")
    machine.has_typed_meshes = False


def main():
    wrong = []
    typed(wrong)
    for name, function, expected in ROWS:
        found = np.asarray(function())
        if found.shape != np.shape(expected) or not np.allclose(found, expected, 1e-5, 1e-5):
            wrong.append(f"{name}: {found} is not {expected}")
    for name, function, text in REFUSED:
        try:
            wrong.append(f"{name}: gave {function()}")
        except Exception as error:
            if text not in str(error):
                wrong.append(f"{name}: {error}")
    one = jax.make_mesh((2,), ("i",))
    shown = printed(lambda: jax.shard_map(lambda x: [print(x), x][1], mesh=one, in_specs=P("i"), out_specs=P("i"))(jnp.arange(4)))
    devices = one.devices
    text = f"On {devices[0]} at mesh coordinates (i,) = (0,):\n[0 1]\n\nOn {devices[1]} at mesh coordinates (i,) = (1,):\n[2 3]\n\n"
    if shown != text:
        wrong.append(f"printed: {shown!r} is not {text!r}")
    print(*wrong, sep="\n")
    print(f"{len(wrong)} of {len(ROWS) + len(REFUSED) + len(TYPED) + 1} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
