# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions with derivatives of their own, derivatives of complex numbers, control flow in what is differentiated or mapped, what programs print, 64-bit types,
and the errors of traced values: beside the numbers and texts of JAX's pages, or beside the same by other means. Prints what differs; the last line counts."""
import collections
import contextlib
import functools
import io
import math
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.example_libraries import stax
from jax.experimental import mesh_utils
from jax.sharding import PartitionSpec as P

wrong = compared = 0


def check(name, is_right, said=""):
    global wrong, compared
    compared += 1
    if not is_right:
        wrong += 1
        print(name, said)


def compare(name, found, expected, tolerance=1e-5):
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    check(name, len(found) == len(expected) and all(np.allclose(np.asarray(a), np.asarray(b), tolerance, tolerance) for a, b in zip(found, expected)),
          f"{found} is not {expected}")


def raises(name, function, kind, text):
    try:
        made = function()
        check(name, False, f"gave {made}")
    except Exception as error:
        check(name, type(error).__name__ == kind and text in str(error), f"{type(error).__name__}: {error}")


def printed(name, function, text):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function()
    check(name, out.getvalue() == text, repr(out.getvalue()))


# ---- rules

@jax.custom_jvp
def times(x, y):
    return jnp.sin(x) * y


@times.defjvp
def times_jvp(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    return times(x, y), jnp.cos(x) * x_dot * y + jnp.sin(x) * y_dot


@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))


log1pexp.defjvps(lambda t, ans, x: (1 - 1 / (1 + jnp.exp(x))) * t)


@jax.custom_vjp
def fives(x):
    print("called f!")
    return x ** 2


def fives_fwd(x):
    print("called f_fwd!")
    return fives(x), x


def fives_bwd(x, g):
    print("called f_bwd!")
    return (5 * g,)


fives.defvjp(fives_fwd, fives_bwd)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, a, x_guess):
    _, x_star = lax.while_loop(lambda c: jnp.abs(c[0] - c[1]) > 1e-6, lambda c: (c[1], f(a, c[1])), (x_guess, f(a, x_guess)))
    return x_star


def fixed_point_fwd(f, a, x):
    x_star = fixed_point(f, a, x)
    return x_star, (a, x_star)


def rev_iter(f, packed, u):
    a, x_star, x_star_bar = packed
    return x_star_bar + jax.vjp(lambda x: f(a, x), x_star)[1](u)[0]


def fixed_point_rev(f, res, x_star_bar):
    a, x_star = res
    a_bar, = jax.vjp(lambda a: f(a, x_star), a)[1](fixed_point(functools.partial(rev_iter, f), (a, x_star, x_star_bar), x_star_bar))
    return a_bar, jnp.zeros_like(x_star)


fixed_point.defvjp(fixed_point_fwd, fixed_point_rev)
newton_sqrt = lambda a: fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)


@jax.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.75, 0.75),))
quiet = jax.custom_vjp(lambda x: x ** 2)
quiet.defvjp(lambda x: (x ** 2, x), lambda x, g: (5 * g * x,))


def rules():
    compare("jvp rule", (jax.grad(times, (0, 1))(2.0, 3.0), jax.jvp(times, (2.0, 3.0), (1.0, 0.0))), ((-1.2484405, 0.9092974), (2.7278922, -1.2484405)))
    compare("second derivative by a rule", jax.grad(jax.grad(times))(2.0, 3.0), -np.sin(2.0) * 3)
    compare("where the function overflows", (jax.grad(log1pexp)(100.0), jax.jit(jax.grad(log1pexp))(3.0), jax.vmap(jax.jit(jax.grad(log1pexp)))(jnp.arange(3.0))),
            (1.0, 0.95257413, np.array([0.5, 0.7310586, 0.8807971])))
    compare("fixed point", (newton_sqrt(2.0), jax.grad(newton_sqrt)(2.0), jax.grad(jax.grad(newton_sqrt))(2.0)), (1.4142135, 0.35355335, -0.088388346))
    compare("clipped", jax.vmap(jax.grad(lambda x: jnp.sin(clipped(x))))(jnp.array([0.0, 1.0, 3.0])), np.array([0.75, 0.5403023, -0.75]))
    compare("rule in a loop", jax.grad(lambda x: lax.scan(lambda c, _: (quiet(c), None), x, None, length=2)[0])(3.0), 5 * 9 * 5 * 3.0)
    compare("rule in a jitted step", jax.jit(jax.grad(lambda w, x: jnp.sum(quiet(x @ w))))(jnp.ones((3, 2)), jnp.ones((4, 3))), np.full((3, 2), 4 * 15.0))
    compare("rule of a jitted function", jax.grad(jax.jit(quiet))(3.0), 15.0)
    compare("rule mapped over one of two", jax.vmap(jax.grad(times, 1), (None, 0))(2.0, jnp.arange(3.0)), np.full(3, 0.9092974))
    Point = collections.namedtuple("Point", "x y")
    tree = jax.custom_jvp(lambda pt: {"a": pt.x ** 2, "b": jnp.cos(pt.y)})
    tree.defjvp(lambda primals, tangents: (tree(*primals), {"a": 2 * primals[0].x * tangents[0].x, "b": -jnp.sin(primals[0].y) * tangents[0].y}))
    compare("trees", jax.grad(lambda pt: tree(pt)["a"] + tree(pt)["b"])(Point(1.0, 2.0)), Point(2.0, -0.9092974))
    branches = jax.custom_jvp(lambda x: jnp.sin(x) if x > 0 else jnp.cos(x))
    branches.defjvp(lambda primals, tangents: (branches(*primals), (2 if primals[0] > 0 else 3) * tangents[0]))
    compare("rule with Python's control", (jax.grad(branches)(1.0), jax.grad(branches)(-1.0)), (2.0, 3.0))
    printed("called", lambda: fives(3.0), "called f!\n")
    printed("called for a derivative", lambda: jax.grad(fives)(3.0), "called f_fwd!\ncalled f!\ncalled f_bwd!\n")
    raises("along tangents", lambda: jax.jvp(quiet, (3.0,), (1.0,)), "TypeError", "can't apply forward-mode autodiff (jvp) to a custom_vjp function.")
    raises("no rule", lambda: jax.custom_vjp(lambda x: x)(1.0), "AttributeError", "No VJP defined")
    compare("forward over a rule's reverse", jax.jvp(jax.grad(quiet), (3.0,), (2.0,))[1], 10.0)


# ---- derivatives

def derivatives():
    compare("grad of complex", jax.grad(lambda z: jnp.real(z) ** 2 + jnp.imag(z) ** 2)(3.0 + 4j), 6.0 - 8j)
    compare("holomorphic", jax.grad(jnp.sin, holomorphic=True)(3.0 + 4j), -27.034945 - 3.8511531j)
    compare("not holomorphic", jax.grad(jnp.conjugate, holomorphic=True)(3.0 + 4j), 1.0)
    z, dz = jnp.array(0.3 + 0.5j), jnp.array(0.7 - 0.2j)
    compare("jvp of complex", jax.jvp(lambda z: z * jnp.exp(z), (z,), (dz,))[1], (1 + z) * jnp.exp(z) * dz)
    compare("vjp of complex", jax.vjp(lambda z: z * z, z)[1](dz)[0], 2 * z * dz)
    raises("complex loss", lambda: jax.grad(lambda z: z * z)(1j), "TypeError", "grad requires real-valued outputs")
    f = lambda w: jnp.tanh(jnp.arange(12.0).reshape(4, 3) @ w)
    w = jnp.array([0.1, -0.2, 0.05])
    compare("jacobians", jax.jacfwd(f)(w), jax.jacrev(f)(w))
    compare("hessian", jax.hessian(lambda w: jnp.sum(w ** 3))(w), np.diag(6 * np.asarray(w)))
    compare("jacobian of trees", jax.jacrev(lambda p: p["w"] @ jnp.ones(3) * p["b"])({"w": jnp.ones((2, 3)), "b": 2.0})["b"], np.full(2, 3.0))
    compare("Python's control", [jax.grad(lambda x: 3.0 * x ** 2 if x < 3 else -4 * x)(x) for x in (2.0, 4.0)], (12.0, -4.0))
    compare("Python's loop", jax.grad(lambda x: functools.reduce(lambda y, _: y * x, range(int(x)), 1.0))(3.0), 27.0)
    _, pull = jax.vjp(lambda x: x * jnp.array([1.0, 2.0]), 3.0)
    compare("mapped pullback", jax.vmap(pull)(jnp.eye(2))[0], np.array([1.0, 2.0]))
    compare("integers beside", jax.vjp(lambda x, n: x * n, 2.0, 3)[1](1.0)[0], 3.0)
    raises("integers", lambda: jax.grad(lambda x: x * 2.0)(3), "TypeError", "grad requires real- or complex-valued inputs")
    raises("no scalar", lambda: jax.grad(lambda x: x)(jnp.ones(2)), "TypeError", "Gradient only defined for scalar-output functions. Output had shape: (2,).")
    raises("reverse of while", lambda: jax.grad(lambda x: lax.while_loop(lambda c: c < 10.0, lambda c: c * x, x))(2.0), "ValueError",
           "Reverse-mode differentiation does not work for lax.while_loop")
    raises("shape of a cotangent", lambda: jax.vjp(jnp.sin, 1.0)[1](jnp.ones(2)), "ValueError", "Shape of cotangent input to vjp pullback function")


# ---- control

def control():
    doubled = lambda a: lax.while_loop(lambda c: c[0] < a, lambda c: (c[0] + 1, c[1] * 2), (0, 1))[1]
    compare("while mapped", (jax.vmap(doubled)(jnp.arange(4)), jax.jit(jax.vmap(doubled))(jnp.arange(4))), (np.array([1, 2, 4, 8]),) * 2)
    compare("while mapped twice", jax.vmap(jax.vmap(doubled))(jnp.arange(4).reshape(2, 2)), np.array([[1, 2], [4, 8]]))
    turn = lambda a: lax.scan(lambda c, x: (c + x * a, c), 0.0, jnp.arange(4.0))
    compare("scan mapped", jax.vmap(turn)(jnp.arange(3.0)), (np.array([0.0, 6.0, 12.0]), np.outer(np.arange(3.0), [0.0, 0.0, 1.0, 3.0])))
    compare("scan mapped in a program", jax.jit(jax.vmap(lambda x: lax.fori_loop(0, 3, lambda i, v: v * x + i, x)))(jnp.arange(3.0)), np.array([2.0, 4.0, 20.0]))
    compare("scan of none", lax.scan(lambda c, x: (c + x, x), 1.0, jnp.zeros(0)), (1.0, np.zeros(0)))
    items = iter(range(10))
    compare("a loop is traced once", lax.fori_loop(0, 10, lambda i, x: x + next(items), 0), 0)
    compare("cond and switch", (jax.jit(lambda x: lax.cond(x > 2, lambda y: y + 1, lambda y: y - 1, x))(3.0), lax.switch(5, [lambda: 1, lambda: 2])), (4.0, 2))
    raises("carry of another type", lambda: lax.scan(lambda c, x: (c.astype(jnp.int32), x), jnp.float32(0), jnp.arange(3.0)), "TypeError",
           "scan body function carry input and carry output must have equal types")
    raises("a scan of nothing without a length", lambda: lax.scan(lambda c, _: (c, None), 0, None), "ValueError",
           "scan got no values to scan over and `length` not provided.")
    raises("branches of other types", lambda: jax.jit(lambda x: lax.cond(x > 2, lambda y: y, lambda y: jnp.int32(1), x))(3.0), "TypeError",
           "cond branches must have equal output types")
    raises("branches of other types of a number of Python", lambda: lax.cond(True, lambda y: y, lambda y: y.astype(jnp.int32), 3.0), "TypeError",
           "cond branches must have equal output types")
    printed("print", lambda: jax.jit(lambda x: [jax.debug.print("x={x}", x=x), x][1])(3.0), "x=3.0\n")
    printed("print of Python's numbers", lambda: [print_(0.9) for print_ in (lambda x: jax.debug.print("{} {:.2f} {s}", x, x, s="words"), jax.jit(lambda _: jax.debug.print("{}", 0.9)))],
            "0.8999999761581421 0.90 words\n0.8999999761581421\n")
    printed("print turn by turn", lambda: lax.scan(lambda c, y: ([jax.debug.print("{} {}", c, y), c + y][1], c), 3, jnp.arange(3)), "3 0\n3 1\n4 2\n")
    inner = lambda c, text: lax.scan(lambda d, z: (d, jax.debug.print(text, c, z)), 0, jnp.arange(2))[0]
    printed("print of what a loop only prints", lambda: jax.jit(lambda c: inner(c, "{} {}"))(5), "5 0\n5 1\n")
    printed("print in loops of loops", lambda: jax.jit(lambda c: lax.scan(lambda c, _: (c + 1 + inner(c, "{} {}"), None), c, None, 2))(5), "5 0\n5 1\n6 0\n6 1\n")
    compare("loops that give only what is outside", jax.jit(lambda c: (lax.while_loop(lambda n: c < 0, lambda n: n + 1, 3), lax.scan(lambda d, z: (d, c), 0, None, 2)))(5),
            (3, (0, np.array([5, 5]))))
    printed("print turn by turn, from the end", lambda: lax.scan(lambda c, y: (c, jax.debug.print("{}", y)), 0, jnp.arange(2.0), reverse=True), "1.0\n0.0\n")
    seen = []
    lax.scan(lambda c, y: (c, jax.debug.callback(lambda v: seen.append((type(v), str(v.dtype), v.shape)), y)), 0, jnp.ones((2, 3), jnp.bfloat16))
    check("what a function of each turn is given", seen == [(type(jnp.ones(3)), "bfloat16", (3,))] * 2, seen)
    printed("print of examples", lambda: jax.vmap(lambda x: [jax.debug.print("{}", x), x][1])(jnp.arange(2)), "0\n1\n")
    printed("print where it holds", lambda: jax.jit(lambda x: lax.cond(x > 2, lambda: [jax.debug.print("yes"), x][1], lambda: [jax.debug.print("no"), x][1]))(3), "yes\n")
    printed("print of what is differentiated", lambda: jax.grad(lambda x: [jax.debug.print("{}", x), x * x][1])(3.0), "3.0\n")
    printed("tracer", lambda: jax.jit(lambda x: [print(x), x][1])(jnp.ones((2, 3))), "JitTracer(float32[2,3])\n")


def branches():
    """Only the branch that is chosen counts, for values and for derivatives."""
    guarded = lambda x: lax.cond(x > 0, lambda x: jnp.sqrt(x) * x, lambda x: 3 * x, x)
    for name, run in (("traced", lambda f: f), ("in a program", jax.jit)):
        compare(f"guarded root, {name}", [run(guarded)(x) for x in (4.0, 0.0, -1.0)], [8, 0, -3])
        compare(f"its derivative, {name}", [run(jax.grad(guarded))(x) for x in (4.0, 0.0, -1.0)], [3, 3, 3])
        compare(f"its second derivative, {name}", [run(jax.grad(jax.grad(guarded)))(x) for x in (4.0, -1.0)], [0.375, 0])
        compare(f"along a tangent, {name}", run(lambda x: jax.jvp(guarded, (x,), (2.0,)))(4.0), (8, 6))
    w, x = jnp.arange(9.0).reshape(3, 3) / 9, jnp.arange(3.0)
    which = lambda i, x, w: lax.switch(i, [lambda x: x @ w, jnp.tanh, lambda x: x * 2], x).sum()
    for i, plain in ((-1, lambda x, w: (x @ w).sum()), (0, lambda x, w: (x @ w).sum()), (1, lambda x, w: jnp.tanh(x).sum()), (2, lambda x, w: 2 * x.sum()),
                     (7, lambda x, w: 2 * x.sum())):
        compare(f"switch of {i}", jax.jit(jax.value_and_grad(which, (1, 2)))(i, x, w), jax.value_and_grad(plain, (0, 1))(x, w))

    def turns(x, w, choose):
        step = lambda c, i: choose(i % 2 == 0, lambda c: jnp.tanh(c @ w), lambda c: c * jnp.log(c + 2), c)
        return lax.scan(lambda c, i: (step(c, i), step(c, i).sum()), x, jnp.arange(4))
    both = lambda holds, one, other, c: jnp.where(holds, one(c), other(c))
    total = lambda choose: jax.jit(jax.value_and_grad(lambda x, w: sum(part.sum() for part in turns(x, w, choose)), (0, 1)))(x, w)
    compare("in a loop", total(lax.cond), total(both))
    compare("in a loop of which nothing is known", jax.jit(lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, lax.cond(c[1] > 2, lambda v: v * 2, lambda v: v + 1, c[1])),
                                                                                    (0, x)))(1.0), (5, 24))
    compare("a loop in a branch", jax.jit(lambda x: lax.cond(x > 0, lambda: lax.while_loop(lambda c: c < 100, lambda c: c * 2, x), lambda: x))(3.0), 192)
    mapped = jax.jit(lambda p, xs: jax.vmap(jax.value_and_grad(lambda x: lax.cond(p, lambda x: x * x, lambda x: 1.0, x)))(xs))
    compare("examples of one choice", (mapped(True, x), mapped(False, x)), ((x * x, 2 * x), (np.ones(3), np.zeros(3))))
    compare("examples that choose", jax.vmap(guarded)(jnp.array([4.0, -1.0])), np.array([8, -3]))
    compare("of trees, and of weak types", jax.jit(lambda p: lax.cond(p, lambda: {"a": 1, "b": (2.0,)}, lambda: {"a": jnp.int32(3), "b": (jnp.float32(4),)}))(False), {"a": 3, "b": (4,)})
    compare("of complex numbers", jax.jit(jax.grad(lambda x: lax.cond(x > 0, lambda: jnp.abs(jnp.exp(1j * x) * (2 + x)), lambda: x)))(3.0), 1)
    key = jax.random.key(0)
    compare("of keys", jax.random.key_data(jax.jit(lambda p: lax.cond(p, lambda: jax.random.split(key)[0], lambda: key))(True)), jax.random.key_data(jax.random.split(key)[0]))
    printed("prints of the one that is chosen", lambda: [jax.jit(lambda x: lax.cond(x > 2, lambda: [jax.debug.print("big {}", x), x][1],
                                                                                   lambda: [jax.debug.print("small {}", 2 * x), x][1]))(x) for x in (3.0, 1.0)],
            "big 3.0\nsmall 2.0\n")
    raises("number that is none", lambda: jax.jit(lambda i: lax.switch(i, [lambda: 1, lambda: 2]))(1.5), "TypeError", "Index type must be an integer, got float32")


def placed_arguments():
    mesh = jax.make_mesh((8,), ("x",))
    whole, split = (jax.sharding.NamedSharding(mesh, spec) for spec in (P(), P("x")))
    add = lambda x, y, scale=1.0: (x + y) * scale
    compare("in_shardings of each", jax.jit(add, in_shardings=(whole, split))(jnp.ones(8), jnp.arange(8.0)), 1 + np.arange(8.0))
    compare("in_shardings of all", jax.jit(add, in_shardings=split)(jnp.ones(8), jnp.arange(8.0)), 1 + np.arange(8.0))
    x, whole_rank = jax.device_put(jnp.ones((8, 4)), split), jax.sharding.NamedSharding(mesh, P("x", None))
    shown = {"put": (x, P("x")), "put with an entry for each dimension": (jax.device_put(x, whole_rank), P("x", None)), "computed": (x + 1, P("x")),
             "transposed": (x.T, P(None, "x")), "asked of a program": (jax.jit(lambda x: x * 2, out_shardings=whole)(x), P()),
             "one of two results": (jax.jit(lambda x: (x * 2, x), out_shardings=(whole_rank, None))(x)[0], P("x", None)), "made there": (jnp.zeros((8, 4), device=split), P("x"))}
    for name, (array, spec) in shown.items():
        check(f"how it lies: {name}", array.sharding == jax.sharding.NamedSharding(mesh, spec), array.sharding)
    made = jax.jit(lambda tree, y: tree["a"] + y, in_shardings=({"a": split}, None))({"a": jnp.ones(8)}, 2.0)
    check("in_shardings of a tree", made.sharding.is_equivalent_to(split, 1), made.sharding)
    raises("a size that does not divide: specs and meshes as the page prints them", lambda: jax.device_put(jnp.ones(6), split), "IndivisibleError", f"Sharding {split!r} implies that")
    for option in ("in_shardings", "out_shardings"):
        raises(f"{option} without a mesh", lambda: jax.jit(lambda x: x, **{option: P("x")})(jnp.ones(8)), "RuntimeError",
               f"jit requires a non-empty mesh in context if you are passing `PartitionSpec`s to {option}.")
    raises("reshard without a mesh", lambda: jax.sharding.reshard(jnp.ones(8), P("x")), "ValueError", "Using PartitionSpec when you are not under a mesh context")
    raises("in_shardings of fewer arguments", lambda: jax.jit(add, in_shardings=(whole,))(jnp.ones(8), jnp.ones(8)), "ValueError",
           "got a tuple or list of length 1 for an args tuple of length 2")


def pieces_by_function():
    devices = [types.SimpleNamespace(id=i, slice_index=i // 4, process_index=i // 2) for i in range(8)]
    for name, sizes, options, numbers in (("slices", ((2, 2), (2, 1)), {}, [[0, 1], [2, 3], [4, 5], [6, 7]]),
                                          ("processes", ((1, 2), (2, 2)), {"process_is_granule": True}, [[0, 1, 2, 3], [4, 5, 6, 7]])):
        made = mesh_utils.create_hybrid_device_mesh(*sizes, devices, **options)
        check(f"mesh of {name}", [[device.id for device in row] for row in made] == numbers, made)
    raises("slices of one machine", lambda: mesh_utils.create_hybrid_device_mesh((4, 1), (1, 2), process_is_granule=True), "ValueError",
           "Number of slices 1 must equal the product of dcn_mesh_shape (1, 2)")
    raises("devices without slices", lambda: mesh_utils.create_hybrid_device_mesh((8,), (1,)), "ValueError", "does not have attribute slice_index")
    mesh, asked = jax.make_mesh((4, 2), ("x", "y")), []
    data = np.arange(32.0).reshape(8, 4)
    piece = lambda place: [asked.append(place), data[place]][1]
    made = jax.make_array_from_callback((8, 4), jax.sharding.NamedSharding(mesh, P("x")), piece)
    compare("pieces by their places", made, data)
    check("each device asks", len(asked) == 8 and asked[0] == (slice(0, 2), slice(None)), asked)
    del asked[:]
    jax.make_array_from_callback((8, 4), jax.sharding.NamedSharding(mesh, P()), piece)
    check("the whole is asked for once", asked == [(slice(None), slice(None))], asked)
    raises("a piece of another shape", lambda: jax.make_array_from_callback((8,), jax.sharding.NamedSharding(mesh, P("x")), lambda place: np.ones(3)), "ValueError", "(2,)")
    raises("many keys, split", lambda: jax.random.split(jax.random.split(jax.random.key(0))), "ValueError", "split accepts a single key, but was given a key array of shape (2,)")
    raises("many keys, folded", lambda: jax.random.fold_in(jax.random.split(jax.random.key(0)), 1), "ValueError", "fold_in accepts a single key")


def notation():
    shown = lambda f, *args: str(jax.make_jaxpr(f)(*args))
    rows = {
        "two ops": (shown(lambda x, y: 2 * x + y, 3, 4), "{ lambda ; a:i32[] b:i32[]. let\n    c:i32[] = mul 2:i32[] a\n    d:i32[] = add c b\n  in (d,) }"),
        "sum": (shown(lambda a, b: jnp.sum(a + jnp.sin(b) * 3.0), jnp.zeros(8), jnp.ones(8)),
                "{ lambda ; a:f32[8] b:f32[8]. let\n    c:f32[8] = sin b\n    d:f32[8] = mul c 3.0:f32[]\n    e:f32[8] = add a d\n"
                "    f:f32[] = reduce_sum[axes=(0,) out_sharding=None] e\n  in (f,) }"),
        "one op": (shown(lambda x: x + 1, 3), "{ lambda ; a:i32[]. let b:i32[] = add a 1:i32[] in (b,) }"),
        "product": (shown(jnp.dot, jnp.ones((4, 8)), jnp.ones((8, 2))),
                    "{ lambda ; a:f32[4,8] b:f32[8,2]. let\n    c:f32[4,2] = dot_general[\n      dimension_numbers=(([1], [0]), ([], []))\n"
                    "      preferred_element_type=float32\n    ] a b\n  in (c,) }"),
        "of a jitted function": (str(jax.jit(lambda x, y: 2 * x + y).trace(3, 4).jaxpr), "{ lambda ; a:i32[] b:i32[]. let\n    c:i32[] = mul 2:i32[] a\n"
                                 "    d:i32[] = add c b\n  in (d,) }")}
    rows["choice"] = (shown(lambda a: lax.cond(a >= 0.0, lambda x: x + 3.0, lambda x: x - 3.0, a), 5.0),
                      "{ lambda ; a:f32[]. let\n    b:bool[] = ge a 0.0:f32[]\n    c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b\n"
                      "    d:f32[] = cond[\n      branches=(\n        { lambda ; e:f32[]. let f:f32[] = sub e 3.0:f32[] in (f,) }\n"
                      "        { lambda ; g:f32[]. let h:f32[] = add g 3.0:f32[] in (h,) }\n      )\n    ] c a\n  in (d,) }")
    rows["loop over slices"] = (shown(lambda xs, y: lax.scan(lambda c, x: (c + x * y, c), 0.0, xs), np.ones(16), 5.0),
                                "{ lambda ; a:f32[16] b:f32[]. let\n    c:f32[] d:f32[16] = scan[\n      _split_transpose=False\n"
                                "      jaxpr={ lambda ; e:f32[] f:f32[] g:f32[]. let\n          h:f32[] = mul g e\n          i:f32[] = add f h\n        in (i, f) }\n"
                                "      length=16\n      linear=(False, False, False)\n      num_carry=1\n      num_consts=1\n      reverse=False\n      unroll=1\n"
                                "    ] b 0.0:f32[] a\n  in (c, d) }")
    rows["loop with a condition"] = (shown(lambda x: lax.while_loop(lambda c: c < 10.0, lambda c: c * 2, x), 1.0),
                                     "{ lambda ; a:f32[]. let\n    b:f32[] = while[\n      body_jaxpr={ lambda ; c:f32[]. let d:f32[] = mul c 2.0:f32[] in (d,) }\n"
                                     "      body_nconsts=0\n      cond_jaxpr={ lambda ; e:f32[]. let f:bool[] = lt e 10.0:f32[] in (f,) }\n      cond_nconsts=0\n    ] a\n"
                                     "  in (b,) }")
    Pair = collections.namedtuple("Pair", "x y")
    form = jax.tree.structure([{"a": 1, "b": (2,)}, None, Pair(1, [2]), jax.tree_util.Partial(print, 1)])
    rows["form of a tree"] = str(form)[:72], "PyTreeDef([{'a': *, 'b': (*,)}, None, CustomNode(namedtuple[Pair], [*, [*]]), CustomNode(Partial["[:72]
    for name, (found, expected) in rows.items():
        check(f"notation: {name}", found == expected, found)


# ---- errors and types

def errors():
    jitted = lambda f, *args: lambda: jax.jit(f)(*args)
    at = "This concrete value was not available in Python because it depends on the value of the argument x."
    raises("if", jitted(lambda x: 1 if x > 0 else 2, 1.0), "TracerBoolConversionError", "Attempted boolean conversion of traced array with shape bool[].")
    raises("where it comes from", jitted(lambda x, n: 1 if x > 0 else n, 1.0, 2), "TracerBoolConversionError", at)
    raises("numpy", jitted(lambda x: np.sin(x), 1.0), "TracerArrayConversionError", "The numpy.ndarray conversion method __array__() was called on traced array")
    raises("index", jitted(lambda x: [1, 2][x], 1), "TracerIntegerConversionError", "The __index__() method was called on traced array with shape int32[]")
    raises("float", jitted(lambda x: float(x), 1.0), "ConcretizationTypeError", "Abstract tracer value encountered where concrete value is expected")
    raises("mask", jitted(lambda x: x[x > 1], jnp.arange(3)), "NonConcreteBooleanIndexError", "Array boolean indices must be concrete")
    raises("mapped if", lambda: jax.vmap(lambda x: 1 if x > 0 else 2)(jnp.arange(2)), "TracerBoolConversionError", "traced array with shape bool[]")
    raises("assignment", lambda: jnp.arange(3).__setitem__(0, 1), "TypeError", "JAX arrays are immutable. Instead of ``x[idx] = y``, use ``x = x.at[idx].set(y)``")
    raises("list", lambda: jnp.sum([1, 2]), "TypeError", "sum requires ndarray or scalar arguments, got <class 'list'> at position 0.")
    raises("lax.add of two types", lambda: lax.add(1, 1.0), "TypeError", "lax.add requires arguments to have the same dtypes, got int32, float32.")
    raises("an object", jitted(lambda x: x, object()), "TypeError", "Error interpreting argument to")
    raises("mapped sizes", lambda: jax.vmap(lambda x, *rest: x)(jnp.ones(3), jnp.ones((3, 1)), {"a": jnp.ones(4)}), "ValueError",
           "to be mapped:\n  * most axes (2 of 3) had size 3, e.g. axis 0 of argument x of type float32[3];\n"
           "  * one axis had size 4: axis 0 of argument rest[1]['a'] of type float32[4]")
    for name, function, kind, text in [
            ("sizes below zero", lambda: jnp.zeros((2, -1)), "TypeError", "shape must have every element be nonnegative, got (2, -1)."),
            ("ranks side by side", lambda: jnp.concatenate([jnp.ones(3), jnp.ones((2, 2))]), "TypeError",
             "Cannot concatenate arrays with different numbers of dimensions: got (3,), (2, 2)."),
            ("sizes side by side", lambda: jnp.concatenate([jnp.ones((1, 3)), jnp.ones((1, 2))]), "TypeError", "concatenating along dimension 0 for shapes (1, 3), (1, 2)."),
            ("stacked", lambda: jnp.stack([jnp.ones(2), jnp.ones(3)]), "ValueError", "All input arrays must have the same shape."),
            ("length of a slice", jitted(lambda x: x[:x.sum()], jnp.arange(3)), "IndexError", "Array slice indices must have static start/stop/step"),
            ("drawn sizes below zero", lambda: jax.random.normal(jax.random.key(0), (2, -1)), "TypeError", "must have every element be nonnegative, got (2, -1)."),
            ("squeezed", lambda: jnp.squeeze(jnp.ones((2, 3)), 0), "ValueError", "size not equal to one, got shape=(2, 3) and dimensions=(0,)"),
            ("rank of what is mapped", lambda: jax.vmap(lambda x: x)(1.0), "ValueError", "its rank should be at least 1, but is only 0 (its shape is ())"),
            ("axes of two arguments", lambda: jax.vmap(lambda x, y: x, in_axes=(0,))(1.0, 2.0), "ValueError", "but got len(in_axes)=1, len(args)=2"),
            ("int of many", lambda: int(jnp.ones(2)), "TypeError", "Only scalar arrays can be converted to Python scalars; got arr.ndim=1"),
            ("too few leaves", lambda: jax.tree.unflatten(jax.tree.structure([1, 2]), [1]), "ValueError", "Too few leaves for PyTreeDef; expected 2, got 1"),
            ("operands", lambda: jnp.ones(2) + None, "TypeError", "'ArrayImpl' and 'NoneType'"),
            ("hash", lambda: hash(jnp.ones(3)), "TypeError", "unhashable type: 'jaxlib._jax.ArrayImpl'"),
            ("keys of two trees", lambda: jax.tree.map(lambda a, b: a, {"a": 1}, {"b": 1}), "ValueError", "Dict key mismatch; expected keys: ['a']; dict: {'b': 1}."),
            ("lengths of two trees", lambda: jax.tree.map(lambda a, b: a, [1, 2], [1]), "ValueError", "List arity mismatch: 1 != 2; list: [1].")]:
        raises(name, function, kind, text)
    raises("list as index", lambda: jnp.arange(3)[[0, 1]], "TypeError", "Using a non-tuple sequence for multidimensional indexing is not allowed")
    raises("fraction as index", lambda: jnp.arange(3)[1.5], "TypeError", "Indexer must have integer or boolean type")
    compare("trees the other way round", jax.tree.transpose(outer_treedef=jax.tree.structure([0, 0]), inner_treedef=None, pytree_to_transpose=[(1, 2), (3, 4)]),
            ([1, 3], [2, 4]))
    raises("names that have no order", lambda: jax.tree.map(lambda x: x, {1: 7, "y": 42}), "ValueError", "Comparator raised exception while sorting pytree dictionary keys")
    keys = {"k": jax.random.split(jax.random.key(0), 3)}
    check("keys are leaves", (jax.tree.map(lambda leaf: leaf.shape, keys), len(jax.tree.leaves(keys)), jax.tree.structure(keys) == jax.tree.structure({"k": 0}),
                              jax.tree.map(lambda one, more: (one, more.shape), {"k": 1}, keys)) == ({"k": (3,)}, 1, True, {"k": (1, (3,))}))
    check("type of a key", str(jax.typeof(jax.random.key(0))) == "key<fry>[]")
    raises("overflow", lambda: jnp.array(2 ** 40), "OverflowError", "too large")
    raises("returned object", jitted(lambda x: "a", 1), "TypeError", "which is not a valid JAX type")
    leaked = []
    jax.jit(lambda x: [leaked.append(x), x][1])(1.0)
    raises("leak", lambda: leaked[0] + 1, "UnexpectedTracerError", "Encountered an unexpected tracer")
    jax.config.update("jax_enable_x64", True)
    try:
        types = {"float": jnp.array(0.5), "int": jnp.arange(3), "zeros": jnp.zeros(2), "sum of truths": jnp.sum(jnp.ones(3, bool)), "float32 stays": jnp.sin(jnp.float32(1)),
                 "random": jax.random.uniform(jax.random.key(0), (2,))}
        kinds = ["float64", "int64", "float64", "int64", "float32", "float64"]
        for (name, found), kind in zip(types.items(), kinds):
            check(f"64 bits: {name}", str(found.dtype) == kind, found.dtype)
        compare("64 bits: sine", jnp.sin(1.0), np.sin(1.0), 1e-15)
        compare("64 bits: derivative", jax.grad(lambda x: jnp.sum(jnp.exp(x @ x)))(jnp.eye(2) / 3), jax.grad(lambda x: jnp.sum(jnp.exp(x @ x)))(jnp.eye(2) / 3))
        compare("64 bits: inverse", jnp.linalg.inv(jnp.array([[3.0, 1.0], [1.0, 2.0]])), np.linalg.inv(np.array([[3.0, 1.0], [1.0, 2.0]])), 1e-14)
        compare("64 bits: Bessel's function", jnp.i0(jnp.array([0.5, 3.0, 49.0, 51.0, 300.0])) / np.i0(np.array([0.5, 3.0, 49.0, 51.0, 300.0])), np.ones(5), 1e-14)
        compare("64 bits: large", jnp.array(2 ** 40) + 1, 2 ** 40 + 1)
    finally:
        jax.config.update("jax_enable_x64", False)
    check("32 bits again", str(jnp.array(0.5).dtype) == "float32")


def settings():
    """What jax.config and its contexts change: values that raise, where arrays lie, how products round, what is promoted."""
    f = lambda x: jnp.log(-3 * jnp.square(x))
    zero, devices = jnp.zeros(()), jax.devices()
    with jax.debug_nans(True):
        for name, function, text in [
                ("one op", lambda: f(5.0), "invalid value (nan) encountered in log"), ("jit", lambda: jax.jit(f)(5.0), "invalid value (nan) encountered in log"),
                ("division", lambda: zero / zero, "invalid value (nan) encountered in div"), ("vmap", lambda: jax.vmap(jnp.log)(jnp.array([-1.0, 2.0])), "in log"),
                ("argument", lambda: jax.jit(lambda x: x * 3)(jnp.nan), "the de-optimized function did not produce invalid values"),
                ("derivative", lambda: jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))(0.0), "invalid value (nan)")]:
            raises(f"nan: {name}", function, "FloatingPointError", text)
        compare("no nan", (1 / zero, jax.jit(jnp.tanh)(zero)), (np.inf, 0.0))
        with jax.debug_nans(False):
            compare("nan in between", jnp.isnan(jax.jit(f)(5.0)), True)
    with jax.debug_infs(True):
        raises("inf", lambda: 1 / zero, "FloatingPointError", "invalid value (inf) encountered in div")
    at = lambda array: [device.id for device in array.devices()]
    with jax.default_device(devices[3]):
        made = jnp.ones(3)
        placed = jax.device_put(1.0, devices[2])
        check("default device", [at(x) for x in (made, made * 2 + jnp.arange(3), jax.jit(lambda: jnp.zeros(2))(), jax.random.normal(jax.random.key(0), (2,)),
                                                 jax.jit(lambda a: a + made)(jnp.ones(3)), placed, made + placed)] == [[3]] * 5 + [[2]] * 2)
    check("after it", (at(made), at(made + 1), at(jnp.ones(3) + made)) == ([3], [0], [0]))
    x, ones = jnp.array([1.001]), jnp.ones((2, 2, 2), jnp.bfloat16)
    with jax.default_matmul_precision("BF16_BF16_F32"):
        compare("rounded operands", jnp.dot(x, jnp.ones(1)), 1.0)
    with jax.default_matmul_precision("bfloat16"):  # of a CPU: no effect
        compare("levels of a CPU", (jnp.dot(x, jnp.ones(1)), jax.jit(jnp.dot)(x, jnp.ones(1))), (1.001, 1.001))
    check("types of products", {made.dtype.name for made in (
        jnp.matmul(ones, ones, preferred_element_type=jnp.float32), jnp.einsum("bij,bjk->bik", ones, ones, preferred_element_type=jnp.float32),
        jnp.tensordot(ones, ones, preferred_element_type=jnp.float32), jnp.vecdot(ones, ones, preferred_element_type=jnp.float32),
        jnp.inner(ones, ones, preferred_element_type=jnp.float32), jnp.vdot(ones, ones, preferred_element_type=jnp.float32),
        jnp.matmul(ones[0, 0], ones, preferred_element_type=jnp.float32))} == {"float32"})
    for name, function, kind, text in [
            ("precision of a product", lambda: jnp.dot(x, x, precision="foo"), "ValueError", "Precision argument must be one of"),
            ("precision", lambda: jax.config.update("jax_default_matmul_precision", "foo"), "ValueError", "new enum value must be in"),
            ("device", lambda: jax.config.update("jax_default_device", 3), "ValueError", "jax.default_device must be passed either a Device object"),
            ("platform", lambda: jax.config.update("jax_default_device", "gpu"), "RuntimeError", "Unknown backend gpu"),
            ("truth", lambda: jax.config.update("jax_debug_nans", "yes"), "ValueError", "must be True or False"),
            ("promotion", lambda: jax.config.update("jax_numpy_dtype_promotion", "loose"), "ValueError", "new enum value must be in")]:
        raises(f"refused {name}", function, kind, text)
    with jax.set_mesh(jax.make_mesh((4, 2), ("X", "Y"))):
        abstract = lambda *sizes: jax.sharding.AbstractMesh(sizes, ("A", "B")[:len(sizes)])

        def inside(x):
            with jax.sharding.use_abstract_mesh(abstract(8)):
                return jax.reshard(x, jax.P("A", None)) * 2
        check("other axes of the mesh around", {shard.data.shape for shard in jax.jit(inside)(jnp.ones((8, 4))).addressable_shards} == {(1, 4)})
        raises("mesh of another size", lambda: jax.sharding.use_abstract_mesh(abstract(4)).__enter__(), "ValueError", "cannot change the size of the mesh")
        raises("no abstract mesh", lambda: jax.sharding.use_abstract_mesh(3).__enter__(), "ValueError", "Expected mesh of type")
    with jax.numpy_rank_promotion("raise"):
        raises("ranks", lambda: jnp.ones((2, 3)) + jnp.ones(3), "ValueError", "Operands could not be broadcast together for add on shapes (2, 3) (3,)")
    with jax.numpy_dtype_promotion("strict"):
        raises("types", lambda: jnp.ones(3) + jnp.arange(3), "TypePromotionError", "Input dtypes ('float32', 'int32') have no available implicit")
        compare("weak types", jnp.ones(3) + 1, np.full(3, 2.0))


@jax.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def tree_flatten(self):
        return (self.x, self.y), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def explicit():
    """What types say on a mesh with explicit axes; the names of places in trees."""
    kinds = (jax.sharding.AxisType.Explicit,) * 2
    mesh = jax.make_mesh((2, 4), ("X", "Y"), axis_types=kinds)
    with jax.sharding.use_mesh(mesh):
        x = jax.device_put(jnp.arange(32.0).reshape(8, 4), P("X", "Y"))
        y = jax.sharding.reshard(x, P("X", None))
        seen = []
        jax.jit(lambda x: [seen.append(str(jax.typeof(x))), x][1])(x)
        rows = {"array": (x, "float32[8@X,4@Y]"), "transposed": (x.T, "float32[4@Y,8@X]"), "sum": (x.sum(0), "float32[4@Y]"), "resharded": (y, "float32[8@X,4]"),
                "element-wise": (jnp.sin(x) + 1, "float32[8@X,4@Y]")}
        for name, (value, text) in rows.items():
            check(f"explicit: {name}", str(jax.typeof(value)) == text, jax.typeof(value))
        check("explicit: argument", seen == ["float32[8@X,4@Y]"], seen)
    check("explicit: mesh", str(mesh) == "Mesh('X': 2, 'Y': 4, axis_types=(Explicit, Explicit))", mesh)
    jax.make_mesh((2, 4), ("X", "Y"))
    places = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path({"a": [1, 2], "b": Pair(3, 4)})]
    check("places in a tree", places == ["['a'][0]", "['a'][1]", "['b'][<flat index 0>]", "['b'][<flat index 1>]"], places)
    compare("transpose of a line", jax.linear_transpose(lambda x: 3 * x, 1.0)(2.0), [6.0])


def options():
    """Options that change values are heeded or refused."""
    import optax
    from flax import nnx
    x, table = jnp.arange(4.0), np.arange(6).reshape(2, 3)
    for order in "CF":
        for name, found in [("reshape", jnp.asarray(table).reshape(3, 2, order=order)), ("jnp.reshape", jnp.reshape(table, (3, 2), order=order))]:
            compare(f"{name}, {order}", found, table.reshape((3, 2), order=order))
        for name, found in [("ravel", jnp.ravel(table, order=order)), ("flatten", jnp.asarray(table).flatten(order)), ("array.ravel", jnp.asarray(table).ravel(order=order))]:
            compare(f"{name}, {order}", found, table.ravel(order=order))
        compare(f"ravel_multi_index, {order}", jnp.ravel_multi_index((jnp.array([1, 0]), jnp.array([2, 1])), (2, 3), order=order),
                np.ravel_multi_index(([1, 0], [2, 1]), (2, 3), order=order))
        compare(f"reshape of what is traced, {order}", jax.jit(lambda a: a.reshape((-1, 2), order=order))(table), table.reshape((-1, 2), order=order))
    for mode in ("clip", "wrap"):
        compare(f"ravel_multi_index, {mode}", jnp.ravel_multi_index((jnp.array([2]), jnp.array([4])), (2, 3), mode=mode), np.ravel_multi_index(([2], [4]), (2, 3), mode=mode))
    compare("clip", (jnp.clip(x, min=1, max=2), jnp.clip(x, a_min=1), x.clip(max=2), jnp.clip(x, 1, 2)), (np.clip(x, 1, 2), np.clip(x, 1, None), np.clip(x, None, 2), np.clip(x, 1, 2)))
    compare("compress", (jnp.compress(x > 1, x), jnp.compress(x > 1, x, size=3, fill_value=-1), jnp.extract(x > 0, x, size=2)), (x[2:], np.array([2.0, 3, -1]), np.array([1.0, 2])))
    mesh = jax.make_mesh((8,), ("i",))
    mapped = lambda function: lambda: jax.shard_map(function, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i"))(jnp.arange(8.0))
    groups = [[0, 1, 2, 3], [4, 5, 6, 7]]
    for name, function, kind, text in [
            ("psum by groups", mapped(lambda x: lax.psum(x, "i", axis_index_groups=groups)), "NotImplementedError", "jax.lax.psum with axis_index_groups"),
            ("all_gather by groups", mapped(lambda x: lax.all_gather(x, "i", axis_index_groups=groups)), "NotImplementedError", "axis_index_groups"),
            ("other random numbers", lambda: jax.random.key(0, impl="rbg"), "NotImplementedError", "only threefry2x32 is known"),
            ("other keys", lambda: jax.random.wrap_key_data(jnp.zeros(4, jnp.uint32), impl="unsafe_rbg"), "NotImplementedError", "only threefry2x32"),
            ("other random numbers by default", lambda: jax.config.update("jax_default_prng_impl", "rbg"), "NotImplementedError", "only threefry2x32"),
            ("another product", lambda: nnx.Linear(2, 2, dot_general=lax.dot_general, rngs=nnx.Rngs(0)), "NotImplementedError", "nnx.Linear with dot_general"),
            ("means over devices", lambda: nnx.BatchNorm(2, axis_name="i", rngs=nnx.Rngs(0)), "NotImplementedError", "nnx.BatchNorm with axis_name='i'"),
            ("place outside", lambda: jnp.ravel_multi_index((jnp.array([2]),), (2,)), "ValueError", "invalid entry in coordinates array"),
            ("some elements", lambda: jnp.nanmean(x, where=x > 1), "NotImplementedError", "jax.numpy.nanmean with where"),
            ("place of a result", lambda: jnp.sum(x, out=x), "NotImplementedError", "jax.numpy.sum with out"),
            ("start of a reduction", lambda: jnp.add.reduce(x, initial=2.0), "NotImplementedError", "with initial=2.0"),
            ("edges", lambda: jnp.gradient(x, edge_order=2), "NotImplementedError", "jax.numpy.gradient with edge_order=2"),
            ("numbers of another mode", lambda: jax.random.gumbel(jax.random.key(0), (2,), mode="high"), "NotImplementedError", "jax.random.gumbel with mode='high'"),
            ("order", lambda: x.reshape((2, 2), order="A"), "NotImplementedError", "order=A")]:
        raises(f"refused: {name}", function, kind, text)
    for function, given, misspelt in [  # an option by another name is not left out
            (jax.jit, (jnp.sum,), "static_argnum"), (jax.grad, (jnp.sum,), "argnum"), (jax.value_and_grad, (jnp.sum,), "has_auxs"), (jax.pmap, (jnp.sum,), "inaxes"),
            (jax.nn.softmax, (x,), "axes"), (jnp.zeros, (3,), "type"), (jnp.zeros_like, (x,), "type"), (jnp.full, (3, 1.0), "type"), (jnp.arange, (3,), "type"),
            (jnp.repeat, (x, 2), "axes"), (jnp.delete, (x, 0), "axes"), (jnp.isin, (x, x), "inverted"), (jnp.convolve, (x, x), "modes"), (jnp.einsum, ("i->", x), "precisions"),
            (lax.scan, (lambda c, x: (c, x), 0, x), "reversed"), (lax.reduce, (x, 0.0, lax.add, (0,)), "axes"), (x.at[0].set, (1.0,), "modes"),
            (jax.scipy.linalg.solve_triangular, (jnp.eye(3), x), "upper"), (jax.ShapeDtypeStruct, ((2,), jnp.float32), "shardings"), (nnx.vmap, (jnp.sum,), "axis"),
            (optax.sgd, (0.1,), "weight_decay"), (optax.adam, (0.1,), "beta1"), (optax.adamw, (0.1,), "decay")]:
        raises(f"misspelt: {misspelt}", lambda: function(*given, **{misspelt: 1}), "TypeError", f"got an unexpected keyword argument '{misspelt}'")
    step = optax.adamw(1e-3)
    raises("decay without parameters", lambda: step.update({"a": jnp.ones(2)}, step.init({"a": jnp.ones(2)})), "ValueError",
           "requires the current value of parameters")
    compare("rank by either name", [jnp.linalg.matrix_rank(jnp.diag(jnp.array([1.0, 0.1])), **{name: 0.5}) for name in ("rtol", "tol")], [1, 1])
    try:
        P("x", unreduced={"y"})
    except NotImplementedError as error:
        check("what to write in place of partial sums", "call jax.lax.psum there" in error.__notes__[0], error)
    raises("refused: devices of devices", lambda: jax.pmap(jax.pmap(lambda x: x, "b"), "a")(jnp.ones((2, 2))), "NotImplementedError", "jax.pmap within jax.pmap")
    check("types that types make together", [str(jnp.promote_types(*pair)) for pair in [("bfloat16", jnp.float32), (jnp.float32, jnp.float32), (jnp.int8, int), (jnp.int32, float)]]
          == ["float32", "float32", "int8", "float32"] and str(jnp.result_type(jnp.float16, 1.0)) == "float16")
    compare("a generator by its name", jax.random.normal(jax.random.key(0, impl="threefry2x32")), jax.random.normal(jax.random.key(0)))


def exported():
    """Functions that are exported for fixed types, and called again."""
    of = lambda f, *args, **options: jax.export.export(jax.jit(f), **options)(*args)
    square = of(lambda x: 2.0 * x * x, jax.ShapeDtypeStruct((), np.float32))
    again = jax.export.deserialize(square.serialize())
    compare("called in a program", jax.jit(lambda y: 3.0 * again.call(4.0 * y))(1.0), 96.0)
    check("its types", (str(square.in_avals), square.nr_devices, square.platforms) == ("(ShapedArray(float32[]),)", 1, ("cpu",)), square.in_avals)
    check("its result's type", not square.call(1.0).weak_type and of(lambda x: 2.0 * x, 1.0).call(1.0).weak_type)
    once = jax.export.deserialize(square.serialize(vjp_order=1))
    compare("derivatives", (jax.grad(jax.grad(square.call))(3.0), jax.grad(once.call)(3.0), jax.grad(lambda w: w * again.call(2.0))(1.0)), (4.0, 12.0, 8.0))
    check("which it has", (square.has_vjp(), once.has_vjp(), again.has_vjp()) == (True, True, False))
    raises("a derivative that it has not", lambda: jax.grad(again.call)(3.0), "ValueError", "No VJP is available")
    raises("a second one", lambda: jax.jit(jax.grad(jax.grad(once.call)))(3.0), "ValueError", "No VJP is available")
    check("its text", "func.func public" in square.mlir_module(), square.mlir_module())
    at = jax.NamedSharding(jax.make_mesh((4,), ("x",)), P("x"))
    split = of(lambda x: x + 1, jax.ShapeDtypeStruct((8,), np.float32, sharding=at))
    check("devices", split.nr_devices == 4 and split.call(jax.device_put(jnp.ones(8), at)).sharding.spec == P("x"), split.nr_devices)
    for name, function, kind, text in [
            ("shape", lambda: again.call(jnp.ones(3)), "ValueError", "exported for args[0] of type float32[] and is called with float32[3]"),
            ("type", lambda: again.call(jnp.int32(3)), "ValueError", "of type float32[] and is called with int32[]"),
            ("number of arguments", lambda: again.call(1.0, 2.0), "ValueError", "exported for arguments of the form"),
            ("platform", lambda: of(jnp.sin, 1.0, platforms=["tpu"]).call(1.0), "ValueError", "was exported for platforms '('tpu',)' but it is used on 'cpu'"),
            ("no jit", lambda: jax.export.export(jnp.sin), "ValueError", "must be the result of `jit`"),
            ("other bytes", lambda: jax.export.deserialize(b"ML"), "ValueError", "not of a function that this page exported"),
            ("symbols", lambda: jax.export.symbolic_shape("a, b"), "NotImplementedError", "export the function once for each size")]:
        raises(f"exported: {name}", function, kind, text)


def along_tangents():
    """Loops whose turns are not counted have derivatives along tangents."""
    square = lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * c, x)
    compare("while_loop", jax.jvp(square, (2.0,), (1.0,)), (16.0, 32.0))
    compare("of many", jax.vmap(lambda x: jax.jvp(square, (x,), (1.0,))[1])(jnp.array([2.0, 3.0])), np.array([32.0, 108.0]))
    compare("column by column", jax.jacfwd(lambda x: lax.while_loop(lambda c: (c < 10).all(), lambda c: c * c[::-1], x))(jnp.array([2.0, 3.0])),
            np.array([[36.0, 24.0], [36.0, 24.0]]))
    counted = lambda count: lambda x, y: lax.fori_loop(0, count, lambda i, c: (jnp.sin(c[0]) * y + i, c[1] * x, c[2] + 1), (x, y, 3))[:2]
    known, unknown = jax.jvp(counted(4), (1.3, 0.7), (1.0, 2.0)), jax.jit(lambda count: jax.jvp(counted(count), (1.3, 0.7), (1.0, 2.0)))(4)
    compare("fori_loop of so many turns as an argument says", unknown, known)
    compare("by what it takes from outside", jax.linearize(lambda x: lax.fori_loop(0, jnp.int32(3), lambda i, c: c * x, 1.0), 2.0)[1](1.0), 12.0)
    nested = lambda x: lax.while_loop(lambda c: c < 30, lambda c: lax.while_loop(lambda d: d < c + 5, lambda d: d * 1.5 * jax.nn.relu(x), c), x)
    compare("a loop within", jax.jvp(nested, (1.5,), (1.0,))[1], (nested(1.5 + 1e-3) - nested(1.5 - 1e-3)) / 2e-3, 1e-3)
    raises("backwards", lambda: jax.grad(square)(2.0), "ValueError", "Reverse-mode differentiation does not work for lax.while_loop")
    raises("backwards through it", lambda: jax.grad(lambda x: jax.jvp(square, (x,), (1.0,))[1])(2.0), "ValueError", "Reverse-mode differentiation does not work")


def looked_at():
    """Where values lie within a program, sizes that are not known yet, and least squares in a program."""
    mesh = jax.make_mesh((2,), ("x",))
    rows, seen = jax.device_put(jnp.ones((4, 2)), jax.NamedSharding(mesh, P("x"))), []

    @jax.jit
    def looks(x):
        jax.debug.visualize_array_sharding(2 * x)
        jax.debug.inspect_array_sharding({"turned": x.T}, callback=lambda sharding: seen.append(sharding.spec))
        return x
    drawn = io.StringIO()
    with contextlib.redirect_stdout(drawn):
        jax.debug.visualize_array_sharding(rows)
    printed("a layout is drawn when the program has run first", lambda: (looks(rows), looks(rows)), drawn.getvalue())
    check("a layout within a program", seen == [P(None, "x")], str(seen))
    init, _ = stax.serial(stax.Conv(16, (8, 8), padding="SAME", strides=(2, 2)), stax.MaxPool((2, 2), (1, 1)), stax.Flatten, stax.Dense(10))
    check("a size of -1", init(jax.random.key(0), (-1, 28, 28, 1))[0] == (-1, 10))
    a, b = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    for name, x, y in (("tall", a, b), ("wide", a.T, b[:3]), ("one right side", a, b[:, 0]), ("of lower rank", np.ones((5, 2), np.float32), b)):
        compare(f"least squares: {name}", jax.jit(jnp.linalg.lstsq)(x, y)[::2], np.linalg.lstsq(x, y, None)[::2], 1e-3)
    compare("its derivative", jax.grad(lambda b: jnp.linalg.lstsq(a, b)[0].sum())(b), np.linalg.pinv(a).sum(0)[:, None] * np.ones(3), 1e-3)
    raises("other sizes", lambda: jnp.linalg.lstsq(a, b[:4]), "ValueError", "Leading dimensions of input arrays must match")


def element_types():
    """Element types that NumPy lacks show as its extensions show them."""
    for name, value, text in [
            ("whole numbers", repr(jnp.arange(3, dtype=jnp.bfloat16)), "Array([0, 1, 2], dtype=bfloat16)"), ("others", str(jnp.array([1.5, 2], jnp.bfloat16)), "[1.5 2]"),
            ("six digits", repr(jnp.array(3.14, jnp.bfloat16)), "Array(3.14062, dtype=bfloat16)"), ("a scalar", f"{jnp.bfloat16(2)}", "2"),
            ("eight bits", str(jnp.array([[1e9, -0.0]], jnp.float8_e5m2)), "[[inf -0]]"), ("of NumPy", str(jnp.float32(2)) + repr(jnp.float16(2)), "2.0Array(2., dtype=float16)")]:
        check(f"shown: {name}", value == text, value)


def solved():
    """Roots and solutions that functions of the page find, shares of beta distributions, and arrays with more at their ends."""
    def halve(f, _):
        goes_on = lambda ends: (ends[0] < sum(ends) / 2) & (sum(ends) / 2 < ends[1])
        turn = lambda ends: (jnp.where(f(sum(ends) / 2) > 0, ends[0], sum(ends) / 2), jnp.where(f(sum(ends) / 2) > 0, sum(ends) / 2, ends[1]))
        return lax.while_loop(goes_on, turn, (0.0, 100.0))[0]
    cube = lambda x: lax.custom_root(lambda y: y ** 3 - x, 1.0, halve, lambda g, y: y / g(1.0))
    third = jax.grad(jax.grad(jax.grad(cube)))
    compare("a root and its derivatives", (cube(8.0), jax.grad(cube)(8.0), jax.jvp(cube, (8.0,), (3.0,))[1], jax.jit(jax.grad(jax.grad(cube)))(8.0), third(8.0)),
            (2.0, 1 / 12, 1 / 4, -2 / 9 * 8 ** (-5 / 3), 10 / 27 * 8 ** (-8 / 3)))
    compare("of many", jax.vmap(jax.grad(cube))(jnp.array([8.0, 27.0])), np.array([1 / 12, 1 / 27]))
    a, b = jnp.array([[4.0, 1.0], [2.0, 3.0]]), jnp.array([1.0, 2.0])
    own = lambda matvec, b: jnp.linalg.solve(lax.stop_gradient(jax.jacobian(matvec)(b)), b)
    by = lambda transpose: lambda a, b: (lax.custom_linear_solve(lambda x: a @ x, b, own, transpose) ** 2).sum()
    plain = lambda a, b: (jnp.linalg.solve(a, b) ** 2).sum()
    compare("a solution backwards", jax.grad(by(own), (0, 1))(a, b), jax.grad(plain, (0, 1))(a, b))
    compare("along tangents", [jax.jvp(by(transpose), (a, b), (0.1 * a, b)) for transpose in (own, None)], [jax.jvp(plain, (a, b), (0.1 * a, b))] * 2)
    raises("backwards by no rule", lambda: jax.grad(by(None))(a, b), "TypeError", "transpose_solve required for backwards mode")
    raises("twice", lambda: jax.hessian(by(own))(a, b), "NotImplementedError", "second derivatives of jax.lax.custom_linear_solve")

    def below(a, b, x):  # of whole numbers: that so many of so many trials succeed
        return sum(math.comb(a + b - 1, k) * x ** k * (1 - x) ** (a + b - 1 - k) for k in range(a, a + b))
    cases = [(2, 3, 0.5), (10, 20, 0.2), (50, 60, 0.5), (1, 1, 0.25), (200, 100, 0.7), (3, 40, 0.01)]
    compare("betainc", jax.scipy.special.betainc(*map(jnp.array, zip(*[map(float, case) for case in cases]))), np.array([below(*case) for case in cases]), 1e-4)
    compare("at its ends", jnp.isnan(jax.scipy.special.betainc(2.0, 3.0, jnp.array([0.0, 1.0, -0.1, 1.1]))), np.array([False, False, True, True]))
    compare("its slope", jax.grad(jax.scipy.special.betainc, 2)(2.0, 3.0, 0.3), jax.scipy.stats.beta.pdf(0.3, 2.0, 3.0))
    compare("stats.beta.cdf", jax.scipy.stats.beta.cdf(jnp.array([-1.0, 0.5, 3.0]), 2.0, 3.0), np.array([0.0, below(2, 3, 0.5), 1.0]))
    raises("its other slopes", lambda: jax.grad(jax.scipy.special.betainc)(2.0, 3.0, 0.3), "ValueError", "Betainc gradient with respect to a and b not supported.")

    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    for mode, options in (("linear_ramp", {}), ("linear_ramp", {"end_values": ((1, 2), (3, 4))}), ("maximum", {}), ("minimum", {"stat_length": 2}), ("mean", {}),
                          ("median", {"stat_length": ((1, 2), (3, 2))})):
        compare(f"pad: {mode}", jnp.pad(x, ((1, 2), (2, 3)), mode, **options), np.pad(x, ((1, 2), (2, 3)), mode, **options))
    compare("pad: mean of integers", jnp.pad(jnp.array([1, 2, 4]), 1, "mean"), np.array([2, 1, 2, 4, 2]))
    raises("pad: no values", lambda: jnp.pad(x, 1, "mean", stat_length=0), "ValueError", "stat_length of 0 yields no value for padding")
    raises("bits of XLA", lambda: lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (3,)), "NotImplementedError", "jax.random.bits")
    check("devices of a process", jax.local_devices(process_index=0) == jax.devices())


def other_types():
    """Operands and branches whose types JAX refuses to bring together."""
    x, whole, square = jnp.ones(2), jnp.ones(2, int), jnp.eye(2)
    same = "requires arguments to have the same dtypes, got"
    for name, function, kind, text in [
            ("select", lambda: lax.select(True, x, whole), "TypeError", f"lax.select {same} int32, float32. (Tip: jnp.where"),
            ("select of a number", lambda: lax.select(True, x, 0), "TypeError", "select cases must have the same shapes, got [(), (2,)]"),
            ("select by fewer", lambda: lax.select(jnp.array([True]), x, x), "TypeError", "must be scalar or have the same shape as cases, got `which` shape (1,) but"),
            ("select under jit", lambda: jax.jit(lambda x: lax.select(True, x, whole))(x), "TypeError", "lax.select requires"),
            ("select_n by floats", lambda: lax.select_n(x, x, x), "TypeError", "select `which` must be boolean or integer type, got float32."),
            ("concatenate", lambda: lax.concatenate([x, whole], 0), "TypeError", f"lax.concatenate {same} float32, int32."),
            ("concatenate nothing", lambda: lax.concatenate([], 0), "ValueError", "concatenate requires a non-empty sequences of arrays"),
            ("clamp", lambda: lax.clamp(0.0, x, jnp.array(1)), "TypeError", f"lax.clamp {same} float32, float32, int32."),
            ("clamp by more", lambda: lax.clamp(0.0, x, jnp.ones(1)), "TypeError", "clamp requires max.shape == operand.shape or max.shape == (), got max.shape=(1,)"),
            ("pad", lambda: lax.pad(x, 0, [(1, 1, 0)]), "TypeError", "pad operand and padding_value must be same dtype: got float32 and int32."),
            ("pad of fewer dimensions", lambda: lax.pad(square, 0.0, [(1, 1, 0)]), "ValueError", "length of padding_config must equal the number of axes of operand"),
            ("update", lambda: lax.dynamic_update_slice(x, whole[:1], (0,)), "TypeError", f"lax.dynamic_update_slice {same} float32, int32."),
            ("update of more", lambda: lax.dynamic_update_slice(x, jnp.ones(5), (0,)), "TypeError", "got update shape (5,) for operand shape (2,)."),
            ("slice of more", lambda: lax.dynamic_slice(x, (0,), (5,)), "TypeError", "got slice_sizes (5,) for operand shape (2,)."),
            ("solve", lambda: jnp.linalg.solve(square, jnp.ones(3)), "ValueError", "inconsistent size for core dimension 'm': 3 vs 2"),
            ("solve for many vectors", lambda: jnp.linalg.solve(jnp.ones((3, 2, 2)), jnp.ones((3, 2))), "ValueError", "would have been treated as a batched 1-dimensional solve"),
            ("solve_triangular", lambda: jax.scipy.linalg.solve_triangular(square, jnp.ones((3, 1))), "ValueError", "inconsistent size for core dimension 'n': 3 vs 2"),
            ("cho_solve", lambda: jax.scipy.linalg.cho_solve((square, True), jnp.ones(3)), "ValueError", "inconsistent size for core dimension 'n'"),
            ("lu_solve", lambda: jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(square), jnp.ones(3)), "ValueError", "(shape (2, 2)) and b array (shape (3,)) must match"),
            ("vectorize", lambda: jnp.vectorize(jnp.dot, signature="(n),(n)->()")(x, jnp.ones((4, 3))), "ValueError", "core dimension 'n': 3 vs 2 on vectorized function"),
            ("cond", lambda: lax.cond(True, lambda x: x, lambda x: x.astype(int), x), "TypeError",
             "The output of true_fun has type float32[2] but the corresponding output of false_fun has type int32[2], so the dtypes do not match."),
            ("cond of other shapes", lambda: lax.cond(False, lambda x: x, lambda x: x[:1], x), "TypeError", "so the shapes do not match"),
            ("cond of other trees", lambda: lax.cond(True, lambda x: x, lambda x: (x, x), x), "TypeError", "must have the same pytree structure"),
            ("cond within a function", lambda: jax.jit(lambda x: lax.cond(True, lambda x: x, lambda x: x[:1], x))(x), "TypeError", "so the shapes do not match"),
            ("switch", lambda: lax.switch(0, [lambda x: x, lambda x: x, lambda x: x[:1]], x), "TypeError", "corresponding output of branch2 has type float32[1]"),
            ("branches of numbers", lambda: lax.switch(jnp.int32(0), [lambda: 1, lambda: 2.5]), "TypeError", "has type int32[] but the corresponding output of branch1"),
            ("convolution", lambda: lax.conv(jnp.ones((1, 1, 4, 4)), jnp.ones((1, 1, 2, 2), jnp.bfloat16), (1, 1), "SAME"), "TypeError", "lax.conv_general_dilated requires"),
            ("top_k", lambda: lax.top_k(x, 9), "ValueError", "must be no larger than size along axis; got k=9 with shape=[2] and axis=0"),
            ("split", lambda: lax.split(jnp.ones(4), (1, 1)), "ValueError", "Sum of sizes 2 must be equal to dimension 0 of the operand shape [4]"),
            ("sort", lambda: lax.sort((x, jnp.ones(3))), "TypeError", "Arguments to sort must have equal shapes, got: (2,) (3,)"),
            ("slice from between", lambda: lax.dynamic_slice(x, (0.5,), (1,)), "TypeError", "must be integers of the same type, got: float32"),
            ("fori_loop", lambda: lax.fori_loop(0, 2.5, lambda i, c: c, 0), "TypeError", "fori_loop must have equal types, got int32 and float32"),
            ("randint", lambda: jax.random.randint(jax.random.key(0), (2,), 0, 5, float), "TypeError", "randint only accepts integer dtypes, got float32"),
            ("choice", lambda: jax.random.choice(jax.random.key(0), 4, p=jnp.ones(3)), "ValueError", "p has shape (3,) and a.shape[axis] is 4."),
            ("cross", lambda: jnp.cross(jnp.ones(4), jnp.ones(4)), "ValueError", "Dimension must be either 2 or 3 for cross product"),
            ("searchsorted", lambda: jnp.searchsorted(square, 1.0), "ValueError", "a should be 1-dimensional"),
            ("interp", lambda: jnp.interp(1.0, jnp.arange(4.0), jnp.ones(3)), "ValueError", "xp and fp must be one-dimensional arrays of equal size"),
            ("meshgrid", lambda: jnp.meshgrid(square, x), "ValueError", "must be 1D, got shapes [(2, 2), (2,)]"),
            ("bincount", lambda: jnp.bincount(x), "TypeError", "must have an integer type; got float32"),
            ("concatenate of numpy", lambda: jnp.concatenate([]), "ValueError", "Need at least one array to concatenate."),
            ("uniform", lambda: jax.random.uniform(jax.random.key(0), (2,), int), "ValueError", "dtype argument to `uniform` must be a float dtype, got int32"),
            ("normal", lambda: jax.random.normal(jax.random.key(0), (2,), dtype="int32"), "ValueError", "must be a float or complex dtype, got int32"),
            ("bits", lambda: jax.random.bits(jax.random.key(0), (2,), "int32"), "ValueError", "must be an unsigned int dtype, got int32"),
            ("tangent", lambda: jax.jvp(jnp.sin, (1.0,), (1,)), "TypeError", "and so expected tangent dtype float32, but got tangent dtype int32 instead."),
            ("tangent of an integer", lambda: jax.jvp(lambda n: n * 2.0, (1,), (1,)), "TypeError", "but got tangent dtype int32 instead."),
            ("static name", lambda: jax.jit(lambda x: x, static_argnames="y"), "ValueError", "invalid argnames {'y'} in static_argnames. Function does not take these args."),
            ("static number", lambda: jax.jit(lambda x, y: x, static_argnums=5), "ValueError", "static_argnums=(5,), but only accepts 2 positional arguments."),
            ("donated name", lambda: jax.jit(lambda x: x, donate_argnames="y"), "ValueError", "in donate_argnames"),
            ("linspace", lambda: jnp.linspace(0, 1, 3.5), "TypeError", "cannot be interpreted as an integer")]:
        raises(f"other types: {name}", function, kind, text)
    compare("a branch of a known truth", (lax.cond(True, lambda x: 2 * x, lambda x: x, x), lax.switch(7, [lambda: 1.0, lambda: 2.5])), (np.full(2, 2.0), 2.5))
    check("its type is that of all", lax.cond(True, lambda: 1.0, lambda: jnp.float32(2)).weak_type is False and lax.cond(True, lambda: 1.0, lambda: 2.0).weak_type)
    compare("a loop from 0.0", lax.fori_loop(0.0, 2.5, lambda i, c: c + i, 0.0), 3.0)
    loops = [lax.fori_loop(0, 3, lambda i, c: c + 1.5, 0), lax.while_loop(lambda c: c < 3, lambda c: c + jnp.float32(1.5), 0), lax.scan(lambda c, x: (c + 1.5, x), 0, x)[0]]
    check("a carry takes the type that a turn gives it", [(float(one), str(one.dtype), one.weak_type) for one in loops] == [(4.5, "float32", True), (3.0, "float32", False), (3.0, "float32", True)],
          str(loops))
    printed("what the other shows is not shown", lambda: lax.cond(True, lambda: jax.debug.print("one"), lambda: jax.debug.print("other")), "one\n")
    drawn = jax.random.normal(jax.random.key(0), (1000,), complex)
    check("complex numbers", drawn.dtype == "complex64" and abs(float(jnp.abs(drawn.imag).std()) - 0.43) < 0.05, str(drawn[:3]))


def given_away():
    """Arguments that a program may take the memory of: deleted at once, and read by what was asked for before."""
    step = jax.jit(lambda p, x: (p + x.sum(), p.mean()), donate_argnums=0)
    p, x = jnp.ones((512, 512)), jnp.full(4, 0.5)
    means = []
    for _ in range(3):
        before, (p, mean) = p, step(p, x)
        check("a donated array is deleted", before.is_deleted())
        means.append(float(mean))
    compare("each step reads the one before", (means, p[0, 0]), ([1.0, 3.0, 5.0], 7.0))
    later = [step(p + i, x) for i in range(3)]
    read = p * 2
    p.delete()
    compare("deleted before its readers ran", (read[1, 1], [mean for _, mean in later]), (14.0, [7.0, 8.0, 9.0]))
    raises("a deleted array", lambda: p + 1, "RuntimeError", f"Array has been deleted with shape=float32[{','.join(map(str, p.shape))}].")
    for _ in range(2000):  # nothing looks at these; their chain is given back without recursion
        read = step(read, x)[0]

    mesh = jax.make_mesh((4,), ("x",))
    rows = jax.device_put(jnp.ones((64, 32)), jax.NamedSharding(mesh, P("x")))
    stats = jax.jit(lambda p, w: (p + (jnp.sin(p @ w) @ w.T).sum(), w), donate_argnums=0).lower(rows, jnp.ones((32, 128))).compile().memory_analysis()
    check("bytes of arguments", stats.argument_size_in_bytes == 4 * (16 * 32 + 32 * 128), str(stats))
    check("bytes of results", stats.output_size_in_bytes == 4 * (16 * 32 + 32 * 128), str(stats))
    check("of those in the place of arguments", stats.alias_size_in_bytes == 4 * 16 * 32, str(stats))
    check("temporaries: a product, the weights turned, their product", 4 * 16 * 128 <= stats.temp_size_in_bytes <= 4 * (16 * 128 + 32 * 128 + 16 * 32), str(stats))

    for name, function, of, whole, each in (  # as XLA counts flops and transcendentals, of the whole program and of each device
            ("product", lambda a, b: a @ b, (rows, jnp.ones((32, 128))), {"flops": 2 * 64 * 32 * 128}, {"flops": 2 * 16 * 32 * 128}),
            ("one of each element", lambda a: a + 1, (jnp.ones((8, 8)),), {"flops": 64}, {"flops": 64}), ("sum", lambda a: a.sum(), (jnp.ones((8, 8)),), {"flops": 63}, {"flops": 63}),
            ("sine", jnp.sin, (rows,), {"flops": 0, "transcendentals": 2048}, {"flops": 0, "transcendentals": 512}),
            ("a turn of a loop", lambda a: lax.fori_loop(0, 9, lambda i, a: a * 2, a), (jnp.ones(100),), {"flops": 100}, {"flops": 100})):
        lowered = jax.jit(function).lower(*of)
        check(f"operations of a {name}", (lowered.cost_analysis(), lowered.compile().cost_analysis()) == (whole, each),
              (lowered.cost_analysis(), lowered.compile().cost_analysis()))
    compiled = jax.jit(lambda tree, x: {"a": tree["w"] @ x, "b": x}).lower({"w": rows}, jnp.ones((32, 8))).compile()
    check("where its results lie", {name: sharding.spec for name, sharding in compiled.output_shardings.items()} == {"a": P("x"), "b": P()}, compiled.output_shardings)
    check("where it takes its arguments", compiled.input_shardings[0][0]["w"].spec == P("x") and compiled.input_shardings[1] == {}, compiled.input_shardings)
    raises("what it lacks", lambda: compiled.nothing, "AttributeError", "'Compiled' object has no attribute 'nothing'")
    check("its class", isinstance(compiled, jax.stages.Compiled) and not isinstance(compiled, jax.stages.Lowered), type(compiled))
    check("the type of an array", (repr(jnp.ones(3).aval), repr(jnp.asarray(1).aval)) == ("ShapedArray(float32[3])", "ShapedArray(int32[], weak_type=True)"), repr(jnp.ones(3).aval))

    again = jax.jit(jax.grad(lambda w: jax.checkpoint(lambda w: jnp.sin(w @ w))(w).sum())).lower(rows[:32]).compile()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again.memory_analysis()
    check("what is not made again is said", any("jax.checkpoint makes again" in str(one.message) for one in caught), str(caught))

    host = jax.NamedSharding(mesh, P("x"), memory_kind="device").with_memory_kind("pinned_host")
    there = jax.device_put(rows, host)
    check("memory kinds", (there.sharding.memory_kind, repr(host).endswith("memory_kind=pinned_host)"), host == host.with_memory_kind("device")) == ("pinned_host", True, False))
    for name, function, of, expected in (  # bytes of arguments and results: a device's, the host's
            ("an argument on the host", jax.jit(lambda x, y: jax.device_put(x, host.with_memory_kind("device")) + y), (there, rows), (2048, 2048, 2048, 0)),
            ("one of such a type", jax.jit(lambda x: x), (jax.ShapeDtypeStruct((64, 32), jnp.float32, sharding=host),), (0, 2048, 2048, 0)),
            ("arguments that are put there", jax.jit(lambda x: x, in_shardings=host), (jnp.ones((64, 32)),), (0, 2048, 2048, 0)),
            ("a result on the host", jax.jit(lambda x: (x, x + 1), out_shardings=(rows.sharding, host)), (rows,), (2048, 0, 2048, 2048)),
            ("a result that the function puts there", jax.jit(lambda x: jax.device_put(x, host)), (rows,), (2048, 0, 0, 2048))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stats = function.lower(*of).compile().memory_analysis()
        found = (stats.argument_size_in_bytes, stats.host_argument_size_in_bytes, stats.output_size_in_bytes, stats.host_output_size_in_bytes)
        check(name, found == expected and any("lower bound" in str(one.message) for one in caught), str(stats))
    check("and its sharding", jax.jit(lambda x: jax.device_put(x, host))(rows).sharding.memory_kind == "pinned_host", "")
    compare("a value is the same in each", jax.jit(lambda x: x + 1, out_shardings=host)(there)[0, 0], 2.0)


def main():
    for part in (solved, element_types, looked_at, along_tangents, other_types, given_away, exported, rules, derivatives, control, branches, placed_arguments, pieces_by_function, notation, errors, settings, explicit, options):
        part()
    print(f"{wrong} of {compared} differ")


main()
