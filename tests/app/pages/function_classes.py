# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions that pages write as classes (jax.experimental.hijax), with their own derivatives and examples; and functions that are checked while they run
(jax.experimental.checkify). Expected values from the same by other means, texts from jax-ml/jax, docs/debugging/checkify_guide.md. Prints what differs; the last
line counts."""
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import checkify
from jax.experimental.hijax import (HiPspec, HiType, MappingSpec, ShapedArray, VJPHiPrimitive, linearize_from_jvp, register_hitype, vjp_from_jvp, vjp_from_lin)
from jax.sharding import NamedSharding, PartitionSpec as P

wrong = compared = 0


def check(name, found, expected):
    global wrong, compared
    compared += 1
    if found != expected:
        wrong += 1
        print(f"{name}: {found!r} is not {expected!r}")


def compare(name, found, expected, tolerance=1e-5):
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    is_close = len(found) == len(expected) and all(np.shape(a) == np.shape(b) and np.allclose(a, b, tolerance, tolerance) for a, b in zip(found, expected))
    check(name, is_close or f"{found} is not {expected}", True)


def raised(function):
    try:
        return f"gave {function()!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


class OfOne(VJPHiPrimitive):
    """sin(x) tag."""

    def __init__(self, x_aval, tag=1.0):
        self.in_avals, self.out_aval, self.params = (x_aval,), x_aval, {"tag": tag}
        super().__init__()

    def expand(self, x):
        return jnp.sin(x) * self.tag

    def batch_dim_rule(self, axis_data, dims):
        return dims[0]


class Tripled(OfOne):
    """Says that its derivative is three times what it is."""

    def vjp_fwd(self, nzs_in, x):
        return self(x), x

    def vjp_bwd_retval(self, x, g):
        return (3 * self.tag * jnp.cos(x) * g,)

    def jvp(self, primals, tangents):
        return self(*primals), 5 * self.tag * jnp.cos(primals[0]) * tangents[0]


class ByJvp(OfOne):
    def jvp(self, primals, tangents):
        return self(*primals), self.tag * jnp.cos(primals[0]) * tangents[0]

    vjp_fwd, vjp_bwd_retval = vjp_from_jvp


class ByLin(OfOne):
    def jvp(self, primals, tangents):
        return self(*primals), self.tag * jnp.cos(primals[0]) * tangents[0]

    lin, linearized = linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = vjp_from_lin


class Product(VJPHiPrimitive):
    """x y; keeps only what the derivatives that are taken need."""

    def __init__(self, x_aval, y_aval):
        self.in_avals, self.out_aval, self.params = (x_aval, y_aval), x_aval, {}
        super().__init__()

    def expand(self, x, y):
        return x * y

    def vjp_fwd(self, nzs_in, x, y):
        return self(x, y), (x if nzs_in[1] else None, y if nzs_in[0] else None)

    def vjp_bwd_retval(self, res, g):
        x, y = res
        return g * y if y is not None else None, g * x if x is not None else None


class Accumulated(Product):
    vjp_bwd_retval = VJPHiPrimitive.vjp_bwd_retval

    def vjp_fwd(self, nzs_in, x, y):
        return self(x, y), (x, y)

    def vjp_bwd(self, res, g, x_acc, y_acc):
        x_acc.accum(g * res[1])
        y_acc.accum(0.25 * g * res[0])
        y_acc.accum(0.75 * g * res[0])


class Trees(VJPHiPrimitive):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), (aval["a"], [aval["b"]]), {}
        super().__init__()

    def expand(self, tree):
        return tree["a"] * tree["b"], [tree["b"] ** 2]

    def vjp_fwd(self, nzs_in, tree):
        return self(tree), tree

    def vjp_bwd_retval(self, tree, g):
        return ({"a": g[0] * tree["b"], "b": g[0] * tree["a"] + 2 * g[1][0] * tree["b"]},)


class Rows(VJPHiPrimitive):
    """A product of a matrix, of many vectors by a rule of its own that gives twice as much."""

    def __init__(self, a_aval, x_aval):
        self.in_avals, self.out_aval, self.params = (a_aval, x_aval), ShapedArray((a_aval.shape[0],), a_aval.dtype), {}
        super().__init__()

    def expand(self, a, x):
        return a @ x

    def batch(self, axis_data, args, dims):
        check("sizes and dimensions", (axis_data.size, dims), (4, (None, 0)))
        return 2 * jnp.moveaxis(args[1], dims[1], 0) @ args[0].T, 0


def applied(kind, *options):
    type_of = lambda arg: jax.typeof(arg) if isinstance(arg, Halves) else jax.tree.map(jax.typeof, arg)
    return lambda *args: kind(*map(type_of, args), *options)(*args)


def classes():
    f = applied(Tripled, 2.0)
    compare("value", f(0.3), 2 * np.sin(0.3))
    compare("in jit and vmap", jax.jit(jax.vmap(f))(jnp.arange(3.0)), 2 * np.sin(np.arange(3)))
    compare("its own derivative", [jax.grad(f)(0.3), jax.jit(jax.grad(f))(0.3), jax.vmap(jax.grad(f))(jnp.array([0.3]))[0]], [6 * np.cos(0.3)] * 3)
    compare("its own derivative along a direction", jax.jvp(f, (0.3,), (2.0,)), (2 * np.sin(0.3), 20 * np.cos(0.3)))
    for name, kind in {"from jvp": ByJvp, "from lin": ByLin}.items():
        g = applied(kind)
        compare(f"derivatives {name}", [jax.grad(g)(0.7), jax.grad(jax.grad(g))(0.7), jax.linearize(g, 0.7)[1](2.0)], [np.cos(0.7), -np.sin(0.7), 2 * np.cos(0.7)])
    for kind in (Product, Accumulated):
        p = applied(kind)
        compare(f"{kind.__name__}: by one of both", [jax.grad(p, 0)(2.0, 3.0), jax.grad(p, 1)(2.0, 3.0)], [3.0, 2.0])
        compare(f"{kind.__name__}: by both", jax.grad(lambda x: p(x, x * x))(2.0), 12.0)
        compare(f"{kind.__name__}: of computed values in jit", jax.jit(jax.grad(lambda x, y: p(jnp.sin(x), jnp.cos(y)), (0, 1)))(0.2, 0.4),
                [np.cos(0.2) * np.cos(0.4), -np.sin(0.2) * np.sin(0.4)])
    tree = {"a": jnp.float32(2), "b": jnp.float32(5)}
    t = applied(Trees)
    compare("trees", t(tree), (10.0, [25.0]))
    compare("derivative of trees", jax.grad(lambda tree: t(tree)[0] + t(tree)[1][0])(tree), {"a": 5.0, "b": 12.0})
    a, xs = jnp.arange(6.0).reshape(2, 3), jnp.arange(12.0).reshape(4, 3)
    compare("a rule for many examples", jax.vmap(applied(Rows), in_axes=(None, 0))(a, xs), 2 * np.asarray(xs) @ np.asarray(a).T)
    total = lambda xs: lax.scan(lambda c, x: (c + applied(Tripled)(x), None), 0.0, xs)[0]
    compare("in a loop", jax.grad(total)(jnp.arange(3.0)), 3 * np.cos(np.arange(3)))

    class ByValue(OfOne):
        def vjp_fwd(self, nzs_in, x):
            return self(x), x

        def vjp_bwd_retval(self, x, g):
            return (2 * g,) if x > 0 else (3 * g,)
    compare("a rule that looks at what was kept", [jax.grad(applied(ByValue))(1.0), jax.grad(applied(ByValue))(-1.0)], [2.0, 3.0])

    class ByCotangent(ByValue):
        def vjp_bwd_retval(self, x, g):
            return (g,) if g > 0 else (-g,)

    class Mine(OfOne):
        batch_dim_rule = VJPHiPrimitive.batch_dim_rule
    for name, function, text in [
            ("no rule for derivatives", lambda: jax.grad(applied(OfOne))(1.0), "NotImplementedError: for grad support, subclass"),
            ("no rule along directions", lambda: jax.jvp(applied(ByValue), (1.0,), (1.0,)), "NotImplementedError: for jvp support, subclass"),
            ("no rule for examples", lambda: jax.vmap(applied(Mine))(jnp.ones(2)), "NotImplementedError: for vmap support, subclass"),
            ("a rule that looks at a cotangent", lambda: jax.grad(applied(ByCotangent))(1.0), "TracerBoolConversionError"),
            ("another form", lambda: OfOne(jax.typeof(1.0))(1.0, 2.0), "ValueError: OfOne takes arguments of the form"),
            ("logs", lambda: jax.vjp(applied(Product), 1.0, 2.0)[1].with_logs(1.0), "NotImplementedError: with_logs")]:
        found = raised(function)
        check(f"refused: {name}", found if not found.startswith(text) else "", "")


# ---- types of the page's own

@dataclasses.dataclass(frozen=True)
class Halves:
    """Numbers as whole multiples of 1/2, which have no derivative themselves."""
    counts: jax.Array


@dataclasses.dataclass(frozen=True)
class HalvesType(HiType):
    shape: tuple
    sharding: object

    def lo_ty(self):
        return [ShapedArray(self.shape, jnp.dtype("int8"), sharding=self.sharding)]

    def lower_val(self, value):
        return [value.counts]

    def raise_val(self, counts):
        return Halves(counts)

    def to_tangent_aval(self):
        return ShapedArray(self.shape, jnp.dtype("float32"), sharding=self.sharding)

    def str_short(self, short_dtypes=False, mesh_axis_types=False):
        return f"halves[{','.join(str(size) if axis is None else f'{size}@{axis}' for size, axis in zip(self.shape, self.sharding.spec))}]"

    __repr__ = str_short


register_hitype(Halves, lambda value: HalvesType(value.counts.shape, jax.typeof(value.counts).sharding))


class ToHalves(VJPHiPrimitive):
    def __init__(self, x_aval):
        self.in_avals, self.out_aval, self.params = (x_aval,), HalvesType(x_aval.shape, x_aval.sharding), {}
        super().__init__()

    def expand(self, x):
        return Halves(jnp.round(2 * x).astype("int8"))

    def vjp_fwd(self, nzs_in, x):
        return self(x), None

    def vjp_bwd_retval(self, res, g):
        return (g,)


class Scaled(VJPHiPrimitive):
    """The numbers times a factor."""

    def __init__(self, halves_aval, factor_aval):
        self.in_avals, self.out_aval, self.params = (halves_aval, factor_aval), ShapedArray(halves_aval.shape, jnp.dtype("float32")), {}
        super().__init__()

    def expand(self, halves, factor):
        return halves.counts.astype("float32") / 2 * factor

    def vjp_fwd(self, nzs_in, halves, factor):
        return self(halves, factor), (halves, factor)

    def vjp_bwd_retval(self, res, g):
        halves, factor = res
        return g * factor, jnp.sum(g * halves.counts / 2)


def own_types():
    to_halves, scaled = applied(ToHalves), applied(Scaled)
    x = jnp.array([0.3, 1.2, -2.0])
    rounded = np.array([0.5, 1.0, -2.0])
    value = to_halves(x)
    check("type", str(jax.typeof(value)), "halves[3]")
    check("type on a mesh", str(jax.typeof(to_halves(jax.device_put(jnp.ones((4, 2)), NamedSharding(jax.make_mesh((2,), ("i",)), P("i")))))), "halves[4@i,2]")
    compare("values", scaled(value, 3.0), 3 * rounded)
    compare("argument of jit", jax.jit(scaled)(value, 3.0), 3 * rounded)
    check("result of jit", (str(jax.typeof(jax.jit(to_halves)(x))), np.asarray(jax.jit(to_halves)(x).counts).tolist()), ("halves[3]", [1, 2, -4]))
    loss = lambda x, factor: jnp.sum(scaled(to_halves(jnp.sin(x)), factor) ** 2)
    by_hand = np.round(2 * np.sin(np.asarray(x))) / 2
    for name, gradient in {"by itself": jax.grad(loss, (0, 1)), "in jit": jax.jit(jax.grad(loss, (0, 1))), "of jit": jax.grad(jax.jit(loss), (0, 1))}.items():
        compare(f"derivative through a value, {name}", gradient(x, 3.0), (2 * by_hand * 9 * np.cos(x), np.sum(2 * by_hand ** 2 * 3)))
    compare("derivative by a value", jax.grad(lambda value: jnp.sum(scaled(value, 3.0) ** 2))(value), 2 * 9 * rounded)
    compare("derivative by values and arrays", jax.grad(lambda pair: jnp.sum(scaled(*pair) ** 2))((value, jnp.float32(3))), (18 * rounded, np.sum(6 * rounded ** 2)))
    compare("beside one that is not differentiated", jax.grad(lambda factor: jnp.sum(scaled(value, factor)))(3.0), rounded.sum())
    total, halves = lax.scan(lambda c, row: (c + jnp.sum(scaled(row, 2.0)), to_halves(scaled(row, 2.0))), 0.0, to_halves(jnp.stack([x, 2 * x])))
    compare("loop over values", [total, halves.counts], [2 * (rounded.sum() + (np.round(4 * np.asarray(x)) / 2).sum()), np.stack([4 * rounded, 2 * np.round(4 * np.asarray(x))])])

    class Axis(MappingSpec):
        pass

    class Parts(HiPspec):
        pass
    for name, function, text in [
            ("vmap over a value", lambda: jax.vmap(lambda v: scaled(v, 1.0), in_axes=Axis())(value), "NotImplementedError: jax.vmap with in_axes="),
            ("shard_map", lambda: jax.shard_map(to_halves, mesh=jax.make_mesh((1,), ("i",)), in_specs=P(), out_specs=Parts())(x),
             "NotImplementedError: jax.shard_map with specs of types of the page's own"),
            ("derivative along a direction", lambda: jax.jvp(lambda x: scaled(to_halves(x), 1.0), (x,), (x,)), "NotImplementedError: jax.jvp of ToHalves"),
            ("another type", lambda: applied(ToHalves)({"x": x}), "AttributeError")]:
        found = raised(function)
        check(f"refused: {name}", found if not found.startswith(text) else "", "")


# ---- checks

def of_two(x, i):
    checkify.check(i >= 0, "index needs to be non-negative, got {i}", i=i)
    return jnp.sin(x[i])


def guarded_loop(n):
    def turn(i, c):
        checkify.check(c < 5, "too large at {i}: {c}", i=i, c=c)
        return c + 1.5
    return lax.fori_loop(0, n, turn, 0.0)


def guarded_branch(x):
    return lax.cond(x > 0, lambda: jnp.log(x), lambda: (checkify.check(x < -1, "between: {x}", x=x), x)[1])


def checks():
    negative = "index needs to be non-negative, got {} (`check` failed)".format
    outside = "out-of-bounds indexing for array of shape (5,): index {} is out of bounds for axis 0 with size 5. ".format
    automatic = checkify.user_checks | checkify.index_checks | checkify.float_checks
    checked, plain = checkify.checkify(of_two, errors=automatic), jax.jit(checkify.checkify(of_two))
    for i, expected in ((-2, negative(-2)), (3, None), (-4, negative(-4))):  # one program for all
        check(f"in jit: {i}", plain(jnp.ones(5), i)[0].get(), expected)
    for name, x, i, expected in [("behind the end", jnp.ones(5), 100, outside(100)), ("both: the first", jnp.ones(5), -9, negative(-9)),
                                 ("nan", jnp.full(5, jnp.inf), 0, "nan generated by primitive: sin."), ("none", jnp.ones(5), 4, None)]:
        check(f"checks of each op: {name}", checked(x, i)[0].get(), expected)
    many = jnp.ones((3, 5)), jnp.array([-1, 2, 100])
    both = f"at mapped index 0: {negative(-1)}\nat mapped index 2: {outside(100)}"
    check("of each example", jax.vmap(checked)(*many)[0].get(), both)
    check("of each device", jax.pmap(checked)(*many)[0].get(), both)
    check("of examples within", checkify.checkify(jax.vmap(of_two), errors=automatic)(*many)[0].get(), negative(-1))
    check("values of the examples", [round(float(v), 5) for v in checkify.checkify(jax.vmap(of_two))(*many)[1]], [0.84147] * 3)
    for name, function, errors, expected in [
            ("zero over zero, divisions", lambda: jnp.arange(3.0) / jnp.arange(3.0), checkify.float_checks, "division by zero"),
            ("zero over zero, values", lambda: jnp.arange(3.0) / jnp.arange(3.0), checkify.nan_checks, "nan generated by primitive: div."),
            ("unasked", lambda: jnp.arange(3.0) / jnp.arange(3.0), checkify.user_checks, None),
            ("a derivative", lambda: jax.grad(lambda x: x / (1 + jnp.sqrt(x)))(0.0), checkify.nan_checks, "nan generated by a derivative."),
            ("changed behind the end", lambda: jnp.ones(5).at[jnp.array([1, 9])].set(0.0), checkify.index_checks, outside(9)),
            ("a loop that is short", lambda: guarded_loop(3), checkify.user_checks, None),
            ("a loop", lambda: guarded_loop(8), checkify.user_checks, "too large at 4: 6.0 (`check` failed)")]:
        check(name, checkify.checkify(function, errors=errors)()[0].get(), expected)
    for x, expected in ((1.0, None), (-0.5, "between: -0.5 (`check` failed)"), (-3.0, None)):
        check(f"a branch: {x}", jax.jit(checkify.checkify(guarded_branch))(x)[0].get(), expected)
    check("throw", raised(lambda: plain(jnp.ones(5), -1)[0].throw()), "JaxRuntimeError: " + negative(-1))
    check("by itself", raised(lambda: of_two(jnp.ones(5), -1)), "JaxRuntimeError: " + negative(-1))
    check("not taken apart", raised(lambda: jax.jit(of_two)(jnp.ones(5), -1)).split("checkify.check")[0], "ValueError: Cannot abstractly evaluate a ")


def main():
    classes()
    own_types()
    checks()
    print(f"{wrong} of {compared} differ")


main()
