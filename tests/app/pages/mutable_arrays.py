# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutable arrays of pages: random reads and writes beside NumPy's, by themselves and in programs; what transformations do with them, and what they refuse. And
what is kept for a derivative. Expected texts and values from jax-ml/jax, docs/array_refs.md and docs/notebooks/autodiff_remat.ipynb. Prints what differs; the last
line counts. Arguments: a seed."""
import contextlib
import io
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name, print_saved_residuals

wrong = compared = 0


def check(name, found, expected):
    global wrong, compared
    compared += 1
    if found != expected:
        wrong += 1
        print(f"{name}: {found!r} is not {expected!r}")


def compare(name, found, expected, tolerance=1e-5):
    found, expected = np.asarray(found), np.asarray(expected)
    check(name, found.shape == expected.shape and bool(np.allclose(found, expected, tolerance, tolerance)) or f"{found} is not {expected}", True)


def raised(function):
    try:
        return f"gave {function()!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


# ---- reads and writes

def steps_of(rng):
    """Random steps on an array of 4 x 5: an index, and what is written there: a constant, or a sum with what another index reads."""
    indices = [..., 1, -1, (2, 3), slice(1, 3), (slice(None), 2), (slice(0, 4, 2), slice(None, None, -1)), np.array([0, 3]), (np.array([0, 2]), np.array([1, 4])), (..., 0)]
    return [(indices[rng.integers(len(indices))], float(np.round(rng.normal(), 2)), bool(rng.integers(2))) for _ in range(rng.integers(1, 6))]


def on_numpy(array, steps, scale):
    for index, number, adds in steps:
        array[index] = array[index] * number + scale if adds else np.full(array[index].shape, number, np.float32)
    return array.sum(dtype=np.float32)


def on_ref(ref, steps, scale):
    for index, number, adds in steps:
        part = ref[index]
        ref[index] = part * number + scale if adds else jnp.full(part.shape, number, jnp.float32)
    return ref[...].sum()


def sequences(rng):
    for number in range(40):
        start, steps, scale = rng.normal(size=(4, 5)).astype(np.float32), steps_of(rng), float(rng.normal())
        expected = start.copy()
        total = on_numpy(expected, steps, scale)
        ways = {}
        ref = jax.new_ref(start)
        ways["by itself"] = on_ref(ref, steps, scale), ref[...]
        ref = jax.new_ref(start)
        ways["argument of jit"] = jax.jit(lambda r, s: on_ref(r, steps, s))(ref, scale), ref[...]
        outer = jax.new_ref(start)
        ways["taken from outside by jit"] = jax.jit(lambda s: on_ref(outer, steps, s))(scale), outer[...]

        @jax.jit
        def made_inside(x, s):
            own = jax.new_ref(x)
            made = on_ref(own, steps, s)
            return made, jax.freeze(own)
        ways["made in jit"] = made_inside(start, scale)
        branch = jax.new_ref(start)
        ways["in a branch"] = jax.jit(lambda s, take: lax.cond(take, lambda: on_ref(branch, steps, s), lambda: jnp.float32(0)))(scale, True), branch[...]
        for way, (value, final) in ways.items():
            compare(f"{number}, {way}: value", value, total, 1e-4)
            compare(f"{number}, {way}: array", final, expected, 1e-4)
        kept = jax.new_ref(start)
        jax.jit(lambda s, take: lax.cond(take, lambda: on_ref(kept, steps, s), lambda: jnp.float32(0)))(scale, False)
        compare(f"{number}: the branch that is not taken", kept[...], start)

        for takes in (True, False):  # a loop within a branch, within another
            inner = jax.new_ref(start)
            turn = lambda s: (None, on_ref(inner, steps, s))
            loop = lambda s: jnp.sum(lax.scan(lambda _, x: turn(x), None, s + jnp.arange(2.0))[1])
            jax.jit(lambda s, a, b: lax.cond(a, lambda: lax.cond(b, loop, lambda s: 0.0, s), lambda: 1.0))(scale, True, takes)
            own = start.copy()
            for turn_number in range(2 * takes):
                on_numpy(own, steps, scale + turn_number)
            compare(f"{number}: a loop in a branch of a branch, {takes}", inner[...], own, 1e-3)

        turns = int(rng.integers(1, 4))
        expected = start.copy()
        totals = [on_numpy(expected, steps, scale + turn) for turn in range(turns)]
        by_scan, by_for, by_while, by_vmap = (jax.new_ref(start) for _ in range(4))
        compare(f"{number}, scan: values", lax.scan(lambda _, s: (None, on_ref(by_scan, steps, s)), None, scale + jnp.arange(turns))[1], totals, 1e-3)
        jax.jit(lambda: lax.fori_loop(0, turns, lambda i, c: c + on_ref(by_for, steps, scale + i), 0.0))()
        lax.while_loop(lambda i: i < turns, lambda i: i + (on_ref(by_while, steps, scale + i) < jnp.inf), 0)
        for way, ref in {"scan": by_scan, "fori_loop": by_for, "while_loop": by_while}.items():
            compare(f"{number}, {way}: array", ref[...], expected, 1e-3)
        many = np.stack([start, -start, start + 1])
        by_vmap = jax.new_ref(many)
        jax.vmap(lambda r, s: on_ref(r, steps, s))(by_vmap, jnp.arange(3.0))
        for example in range(3):
            own = many[example].copy()
            on_numpy(own, steps, float(example))
            compare(f"{number}, vmap: example {example}", by_vmap[example], own, 1e-4)


# ---- what transformations do

@jax.custom_vjp
def stash(r, x):
    return x


stash.defvjp(lambda r, x: (x, r), lambda r, g: (r.__setitem__(..., g), (None, g))[1])


@jax.custom_vjp
def summed(r, x):
    return x * 2


summed.defvjp(lambda r, x: (x * 2, r), lambda r, g: (r.addupdate(g, ...), (None, 2 * g))[1])

def transformations():
    f = lambda x: (lambda r: (r.__setitem__(..., jnp.sin(x)), r[...] * r[...])[1])(jax.new_ref(0.0))
    compare("derivative of a function with a ref of its own", jax.grad(f)(0.7), np.sin(1.4))
    compare("the same in vmap", jax.vmap(jax.grad(f))(jnp.array([0.1, 0.7])), np.sin([0.2, 1.4]))
    compare("the same in jit", jax.jit(jax.grad(f))(0.7), np.sin(1.4))

    def powers(x):  # x, x^2, x^3 one after the other
        r = jax.new_ref(1.0)
        return lax.scan(lambda c, _: (r.__setitem__(..., r[...] * x), (c + r[...], None))[1], 0.0, None, length=3)[0]
    compare("derivative through a loop that changes a ref", jax.grad(powers)(2.0), 1 + 4 + 12)

    log = jax.new_ref(0.0)

    def logged(x):
        log[...] += lax.stop_gradient(x) * 2
        return x * x
    compare("derivative with a ref beside", jax.grad(logged)(3.0), 6.0)
    compare("what is left in it", log[...], 6.0)
    jax.eval_shape(logged, 1.0)
    shown = [str(jax.make_jaxpr(logged)(1.0)), str(jax.make_jaxpr(lambda r: r.__setitem__(..., r[...] * 2))(log))]
    check("shown as programs that give what refs are left with", ["return" in text and "multiply" in text for text in shown], [True, True])
    compare("types only, and what is shown, change nothing", log[...], 6.0)

    counted = jax.new_ref(0.0)

    def counts(x):
        counted[...] += 1.0
        return jnp.sin(x) * x
    linear = jax.linearize(counts, 2.0)[1]
    compare("a linear function that is called twice", [linear(1.0), linear(2.0), counted[...]], [*(np.sin(2) + 2 * np.cos(2)) * np.array([1, 2]), 1])
    compare("rows of a derivative", [jax.jacrev(counts)(2.0), counted[...]], [np.sin(2) + 2 * np.cos(2), 2])

    def square_in_place(r):
        r[...] = jnp.sin(r[...])
        return r[...] ** 2
    x, g = jax.new_ref(2.0), jax.new_ref(0.0)
    value, pullback = jax.vjp(square_in_place, x)
    check("gradient that goes to a ref", repr(pullback.with_refs(g)(1.0)), "(GradRef(),)")
    compare("value", value, np.sin(2) ** 2)
    compare("argument", x[...], np.sin(2))
    compare("gradient", g[...], np.sin(4))
    take = jax.jit(lambda x, i: x[i])
    g = jax.new_ref(jnp.zeros(6))
    for i in (3, 5, 3):
        jax.vjp(take, jnp.arange(6.0), i)[1].with_refs(g, jax.ad.GradValue())(1.0)
    compare("gradients are added", g[...], [0, 0, 0, 2, 0, 1])
    w = jnp.arange(6.0).reshape(2, 3)
    found = jax.vjp(lambda w, x: w @ x, w, jnp.ones(3))[1].with_refs(jax.ad.GradValue(), jax.ad.DontWant())(jnp.ones(2))
    check("gradient that is not wanted", repr(found[1]), "DidntWant()")
    compare("beside one that is", found[0], np.ones((2, 3)))

    def stashed(r, x):
        return jnp.sin(stash(r, x))
    for name, gradient in {"by itself": jax.grad(stashed, 1), "in jit": jax.jit(jax.grad(stashed, 1))}.items():
        r = jax.new_ref(7.0)
        compare(f"a rule that writes to a ref, {name}", [gradient(r, 1.0), r[...]], np.cos([1, 1]))
    r = jax.new_ref(7.0)
    compare("without a derivative", [stashed(r, 1.0), r[...]], [np.sin(1), 7])
    pullback = jax.vjp(lambda x: stashed(r, x), 1.0)[1]
    compare("not before the derivative is asked for", r[...], 7.0)
    compare("and each time", [*pullback(2.0), r[...], *pullback(3.0), r[...]], np.cos(1) * np.array([2, 2, 3, 3]))
    jax.grad(lambda x: x + lax.stop_gradient(stashed(r, x)))(0.5)
    compare("a rule that is not run", r[...], 3 * np.cos(1))
    r = jax.new_ref(1.0)
    compare("a rule that adds to a ref", [jax.grad(lambda x: summed(r, x) ** 2)(3.0), r[...]], [24, 13])
    pullback = jax.vjp(lambda x: summed(r, x), 3.0)[1]
    compare("the same by vjp", [*pullback(1.0), r[...]], [2, 14])
    for name, function, text in [("again", lambda: pullback(1.0), "which changed since jax.vjp was called"),
                                 ("twice", lambda: jax.grad(lambda x: summed(r, summed(r, x)))(3.0), "two rules for derivatives"),
                                 ("in a loop", lambda: jax.grad(lambda x: lax.scan(lambda c, _: (summed(r, c), None), x, None, length=2)[0])(3.0), "within a loop"),
                                 ("by both", lambda: jax.grad(lambda x: (r.__setitem__(..., 2.0), summed(r, x))[1])(3.0), "both a function and a rule")]:
        found = raised(function)
        check(f"refused: a rule that writes {name}", found if text not in found else "", "")
    compare("what is refused changes nothing", r[...], 14.0)

    sharding = jax.sharding.NamedSharding(jax.make_mesh((4,), ("i",)), jax.sharding.PartitionSpec("i"))
    placed = jax.new_ref(jax.device_put(jnp.arange(8.0), sharding))
    double = jax.jit(lambda r: r.__setitem__(..., r[...] * 2))
    for _ in range(2):
        double(placed)
    check("a ref stays where it lies", placed.sharding.spec, jax.sharding.PartitionSpec("i"))
    compare("and is changed", placed[...], 4 * np.arange(8))
    check("swap", (float(jax.ref.swap(placed, 1, 9.0)), float(jax.ref.get(placed, 1))), (4.0, 9.0))
    jax.ref.addupdate(placed, slice(0, 2), jnp.ones(2))
    jax.ref.set(placed, 7, 0.5)
    compare("functions of refs", placed[...], [1, 10, 8, 12, 16, 20, 24, 0.5])
    check("print", repr(jax.new_ref(jnp.zeros(2))), "Ref([0., 0.], dtype=float32)")


def refusals():
    x = jax.new_ref(0.0)
    said = "mutable array reference"

    @jax.jit
    def returns(r):
        return r

    @jax.jit
    def two(a, b):
        return a[...] + b[...]

    @jax.jit
    def closes(r):
        r[...] = x[...]

    @jax.jit
    def ends(r):
        return jax.freeze(r)

    def writes(v):
        x[...] = v

    def adds(v):
        x[...] += v
        return v
    ended = jax.new_ref(jnp.zeros(3))
    jax.freeze(ended)
    other = jax.new_ref(jnp.zeros(3))
    for name, function, kind, text in [
            ("a result", lambda: returns(x), "ValueError", "cannot be returned"),
            ("an argument twice", lambda: two(x, x), "ValueError", "appeared at both a and b"),
            ("an argument and from outside", lambda: closes(x), "ValueError", "both closed over and passed as the argument r"),
            ("freeze elsewhere", lambda: ends(x), "ValueError", "freeze it where jax.new_ref made it"),
            ("after freeze", lambda: ended[0], "ValueError", "after jax.freeze"),
            ("in place of an array", lambda: jnp.sin(x), "TypeError", "read its value first"),
            ("written by many examples", lambda: jax.vmap(writes)(jnp.arange(3.0)), "Exception", "vmapped value on an unbatched array reference of type Ref{float32[]}"),
            ("written with a value that has a derivative", lambda: jax.grad(adds)(1.0), "Exception", "differentiated value on a non-differentiated array reference"),
            ("differentiated", lambda: jax.grad(lambda r: r[...])(x), "TypeError", "grad cannot differentiate with respect to a Ref-typed argument"),
            ("gradient without a ref", lambda: jax.vjp(lambda r: r[...], x)[1](1.0), "ValueError", "args[0] is Ref-typed"),
            ("gradient in a ref of another type", lambda: jax.vjp(jnp.sin, 1.0)[1].with_refs(other), "ValueError", "requires a ref of type Ref{float32[]}"),
            ("behind the end", lambda: other[3], "ValueError", "Out of bound indexer: idx=3, dim=3."),
            ("another shape", lambda: other.__setitem__(..., 1.0), "ValueError", "Invalid shape for `swap`. Ref shape: (3,). Expected shape: (3,). Value shape: ()."),
            ("another type", lambda: other.__setitem__(0, 1), "ValueError", "Invalid dtype for `swap`. Ref dtype: float32. Value dtype: int32."),
            ("a ref in a ref", lambda: other.__setitem__(0, x), "ValueError", "Cannot store a Ref into another Ref"),
            ("in shard_map", lambda: jax.shard_map(lambda v: v + x[...], mesh=jax.make_mesh((2,), ("i",)), in_specs=jax.sharding.PartitionSpec("i"),
                                                   out_specs=jax.sharding.PartitionSpec("i"))(jnp.ones(2)), "NotImplementedError", said)]:
        found = raised(function)
        check(f"refused: {name}", found if not (found.startswith(kind + ": ") and text in found) else "", "")
    compare("a refused write changes nothing", x[...], 0.0)


# ---- what is kept for a derivative

def g(w, x):
    y = jnp.dot(w, x)
    return jnp.sin(y)


def three(w1, w2, w3, x):
    for number, w in enumerate((w1, w2, w3)):
        x = checkpoint_name(g(w, x), name="abc"[number])
    return x


def layers(w1, w2, w3, x):
    return g(w3, g(w2, g(w1, x)))


def apart(w1, w2, w3, x):
    for w in (w1, w2, w3):
        x = jax.checkpoint(g)(w, x)
    return x


def loss(x, y):
    return jnp.sum((jnp.exp(x) - y) ** 2)


def recursive(functions):
    if len(functions) == 1:
        return functions[0]
    first, last = recursive(functions[:len(functions) // 2]), recursive(functions[len(functions) // 2:])
    return (lambda x: first(last(x))) if len(functions) == 2 else (lambda x: first(jax.checkpoint(last)(x)))


def residuals():
    args = jnp.ones((5, 4)), jnp.ones((6, 5)), jnp.ones((7, 6)), jnp.ones(4)
    arguments = ["f32[5,4] from the argument 'w1'", "f32[6,5] from the argument 'w2'", "f32[7,6] from the argument 'w3'", "f32[4] from the argument 'x'"]
    policies = jax.checkpoint_policies
    for name, function, given, expected in [
            ("layers", layers, args, arguments + ["f32[5] output of sin (g)", "f32[5] output of cos (g)", "f32[6] output of sin (g)", "f32[6] output of cos (g)",
                                                  "f32[7] output of cos (g)"]),
            ("each layer made again", apart, args, arguments + ["f32[5] output of sin (g)", "f32[6] output of sin (g)"]),
            ("all made again", jax.checkpoint(layers), args, arguments),
            ("but for products", jax.checkpoint(layers, policy=policies.dots_with_no_batch_dims_saveable), args,
             arguments + ["f32[5] output of dot_general (g)", "f32[6] output of dot_general (g)", "f32[7] output of dot_general (g)"]),
            ("but for a name", jax.checkpoint(three, policy=policies.save_only_these_names("a")), args, arguments + ["f32[5] named 'a' (three)"]),
            ("but for other names", jax.checkpoint(three, policy=policies.save_any_names_but_these("a")), args, arguments + ["f32[6] named 'b' (three)"]),
            ("nothing made again", jax.checkpoint(apart, policy=policies.everything_saveable), args, arguments + ["f32[5] output of sin (g)", "f32[6] output of sin (g)"]),
            ("a loss", loss, (jnp.ones(3), jnp.ones(3)), ["f32[3] output of exp (loss)", "f32[3] output of mul (loss)"]),
            ("a chain in halves", recursive([jnp.sin] * 8), (3.0,), ["f32[] from the argument 'x'", "f32[] output of sin (<lambda>)"]
             + ["f32[] output of cos (<lambda>)"] * 2)]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            print_saved_residuals(function, *given)
        check(f"residuals: {name}", [re.sub(r" from \S+:\d+ ", " ", line) for line in out.getvalue().splitlines()], expected)
    said = raised(lambda: print_saved_residuals(lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=3)[0], 1.0))
    check("residuals of a loop", said.startswith("NotImplementedError: jax.ad_checkpoint.print_saved_residuals") and "a turn of the loop" in said or said, True)
    for name, function in {"layers": layers, "each layer made again": apart, "names": three}.items():
        compare(f"{name}: the value is that without", function(*args), layers(*args))


def main():
    rng = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    sequences(rng)
    transformations()
    refusals()
    residuals()
    print(f"{wrong} of {compared} differ")


main()
