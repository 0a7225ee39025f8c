# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions that say themselves what their derivative is. Where one is called in a function that is being differentiated, its rule is traced beside it; else
it is called as it is. Source of the texts: jax-ml/jax, jax/_src/custom_derivatives.py."""
import functools
import inspect

import numpy as np

from . import batching, dtypes, ops, refs, transforms
from .arrays import Array, Scope, Tracer, asarray, astype, type_text
from .trees import tree_flatten, tree_leaves, tree_map, tree_unflatten

_rules = 0  # that are being traced: what a rule computes is differentiated by the derivatives further out only


def depth(leaves):
    """How many derivatives are being taken of what is computed from the leaves."""
    def inner(leaf):
        while getattr(leaf, "level", 0):
            leaf = leaf.value
        return leaf
    if not any(isinstance(inner(leaf), Tracer) for leaf in leaves):
        return 0
    return max(0, len(_derivatives()) - _rules)


def is_forward(leaves):
    """Whether the one derivative that is being taken of what is computed from the leaves is along tangents."""
    return depth(leaves) == 1 and _derivatives()[0].is_forward


def is_differentiated(x):
    """Whether derivatives may be taken by what a value comes from."""
    while getattr(x, "level", 0):
        x = x.value
    deriving = _derivatives()
    if not deriving or not isinstance(x, Tracer) or x.scope in Scope._stack[:Scope._stack.index(deriving[0])]:
        return False
    is_known = len(deriving) == 1 and x.scope is deriving[0] and x.scope.differentiated
    return bool(x.smooth & x.scope.differentiated) if is_known else True


def _rules_under_way():
    return _rules


def _derivatives():
    return [scope for scope in Scope._stack if scope.derives and not scope.is_linear]


class _Rule:
    """While a rule is traced."""

    def __enter__(self):
        global _rules
        _rules += 1

    def __exit__(self, *_):
        global _rules
        _rules -= 1


def _with_rule(forward, backward, leaves):
    """The results of `forward`, whose derivative is `backward`: forward(leaves) gives results and what the rule reads; backward(read, cotangents) gives the
    cotangents of the leaves, None for zeros."""
    if batching.Level.stack:
        with batching.Outside() as outside:
            examples = lambda wholes: [outside.example(whole) for whole in wholes]
            wholes = lambda made: [outside.whole(one) for one in made]

            def of_all(given):
                outs, read = outside.inside(forward, examples(given))
                return wholes(outs), wholes(read)

            def back_of_all(read, cotangents):
                made = outside.inside(backward, examples(read), examples(cotangents))
                return [None if one is None else outside.whole(one) for one in made]
            outs = _with_rule(of_all, back_of_all, wholes(leaves))
        return examples(outs)
    with _Rule():
        outs, read = forward(leaves)
        smooth = [at for at, out in enumerate(outs) if dtypes.is_inexact(out.engine_dtype)]
        wanted = [at for at, leaf in enumerate(leaves) if dtypes.is_inexact(leaf.engine_dtype)]
        if not smooth or not wanted:
            return outs
        if any(dtypes.is_complex(one.engine_dtype) for one in [*outs, *leaves, *read]):
            raise NotImplementedError("custom derivatives of complex numbers")
        body = Scope("rule")
        body.is_rule = True
        with body:
            given = [body.argument(one) for one in read]
            body.unknown = frozenset(range(len(read), len(read) + len(smooth)))
            cotangents = {at: body.argument(outs[at]) for at in smooth}
            made = backward(given, [cotangents[at] if at in cotangents else ops.zeros_like(out) for at, out in enumerate(outs)])
            kept = [astype(made[at], leaves[at].engine_dtype) if made[at] is not None else ops.zeros_like(leaves[at]) for at in wanted]
            changed = refs.changed(body)
            for held in changed:
                kept += [held.value, ops.full((), 1, held.value.engine_dtype)]
            rule = body.finished(kept)
    scope = Scope._stack[-1]
    sinks = refs.add_sinks(scope, changed) if changed else []
    numbers = lambda some: [scope.number(one) for one in some]
    results = scope.core.custom(rule, len(read), numbers(outs[at] for at in smooth), numbers([*(leaves[at] for at in wanted), *sinks]), numbers([*read, *refs.resolved(body.captures)]))
    for at, number in zip(smooth, results):
        outs[at] = Tracer(scope, number, scope.core.type(number), outs[at].weak_type, getattr(outs[at], "sources", frozenset()))
    return outs


class _Custom:
    """What both kinds have in common: the function, and its arguments that nothing is differentiated by."""

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        functools.update_wrapper(self, fun, updated=())
        self.fun = fun
        try:
            names = list(inspect.signature(fun).parameters)
        except (TypeError, ValueError):
            names = []
        self._names = names
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        self.nondiff_argnums = tuple(sorted({*numbers, *(names.index(name) for name in nondiff_argnames if name in names)}))

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def _split(self, args, kwargs):
        if kwargs:  # by their places
            bound = inspect.signature(self.fun).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        else:
            try:
                bound = inspect.signature(self.fun).bind(*args)
                bound.apply_defaults()
                args = bound.args
            except (TypeError, ValueError):
                pass
        fixed = [args[number] for number in self.nondiff_argnums]
        rest = [arg for number, arg in enumerate(args) if number not in self.nondiff_argnums]
        leaves, form = tree_flatten(rest)
        return args, fixed, [leaf if isinstance(leaf, refs.Ref) else asarray(leaf) for leaf in leaves], form

    def _whole(self, fixed, rest):
        """All arguments, in their places."""
        args = list(rest)
        for number, value in zip(self.nondiff_argnums, fixed):
            args.insert(number, value)
        return args


class custom_jvp(_Custom):
    jvp = None

    def defjvp(self, jvp, symbolic_zeros=False):
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps):
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals, tangents):
            out = self(*primals)
            parts = [rule(tangent, out, *primals) for rule, tangent in zip(jvps, tangents) if rule]
            zeros = tree_map(lambda x: ops.zeros_like(asarray(x)), out)
            return out, functools.reduce(lambda a, b: tree_map(ops.add, a, b), parts, zeros)
        self.jvp = jvp

    def __call__(self, *args, **kwargs):
        if self.jvp is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {self.__name__} using defjvp.")
        args, fixed, leaves, form = self._split(args, kwargs)
        if not depth(leaves):
            return self.fun(*args)
        kept = {}

        def forward(leaves):
            """The rule, run with tangents of its own: its results, and what it made of the tangents, which is linear in them."""
            def of_tangents(*steps):
                out, out_dot = self.jvp(*fixed, tree_unflatten(form, leaves), tree_unflatten(form, _tangents(leaves, steps)))
                outs, kept["form"] = tree_flatten(out)
                dots, dot_form = tree_flatten(out_dot)
                if dot_form != kept["form"]:
                    raise TypeError(f"Custom JVP rule {getattr(self.jvp, '__name__', self.jvp)} for function {self.__name__} must produce primal and tangent outputs "
                                    f"with equal container (pytree) structures, but got {kept['form']} and {dot_form} respectively.")
                outs = [asarray(one) for one in outs]
                return [_like(dot, one, self) for dot, one in zip(dots, outs) if dtypes.is_inexact(one.engine_dtype)], outs
            steps = [ops.full(leaf.shape, 0, leaf.engine_dtype) for leaf in leaves if dtypes.is_inexact(leaf.engine_dtype)]
            _, kept["pullback"], outs = transforms.vjp(of_tangents, *steps, has_aux=True, is_linear=True)
            return outs, leaves if batching.Level.stack else kept["pullback"].operands

        def backward(read, cotangents):
            if batching.Level.stack:
                forward(read)
            pullback = kept["pullback"] if batching.Level.stack else kept["pullback"].with_operands(read)
            made = iter(pullback([one for one in cotangents if dtypes.is_inexact(one.engine_dtype)]))
            return [next(made) if dtypes.is_inexact(leaf.engine_dtype) else None for leaf in leaves]
        return _unflattened(kept, _with_rule(forward, backward, leaves))


def _unflattened(kept, outs):
    return tree_unflatten(kept["form"], outs)


def _tangents(leaves, steps):
    given = iter(steps)
    return [next(given) if dtypes.is_inexact(leaf.engine_dtype) else np.zeros(leaf.shape, dtypes.float0) for leaf in leaves]


def _like(dot, out, function):
    dot = asarray(dot)
    if dot.shape != out.shape or dot.engine_dtype != out.engine_dtype and not dot.weak_type:
        raise TypeError(f"Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes. Expected {type_text(out)} (tangent type of "
                        f"{type_text(out)}) but got {type_text(dot)}.")
    return astype(dot, out.engine_dtype)


class custom_vjp(_Custom):
    fwd = bwd = None

    def defvjp(self, fwd, bwd, symbolic_zeros=False, optimize_remat=False):
        self.fwd, self.bwd = fwd, bwd

    def defvjp_with_logs(self, fwd, bwd):
        raise NotImplementedError("custom_vjp.defvjp_with_logs: what a rule gives beside gradients is left out; use defvjp")

    def __call__(self, *args, **kwargs):
        if self.fwd is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {self.__name__} using defvjp.")
        args, fixed, leaves, form = self._split(args, kwargs)
        of_refs = {at: leaf for at, leaf in enumerate(leaves) if isinstance(leaf, refs.Ref)}  # passed along: nothing is differentiated by them
        count = len(leaves)
        leaves = [leaf for at, leaf in enumerate(leaves) if at not in of_refs]
        if not depth(leaves):
            return self.fun(*args)
        kept = {}

        def forward(leaves):
            given = iter(leaves)
            made = self.fwd(*self._whole(fixed, tree_unflatten(form, [of_refs[at] if at in of_refs else next(given) for at in range(count)])))
            if not isinstance(made, (tuple, list)) or len(made) != 2:
                raise TypeError(f"Custom VJP fwd rule {getattr(self.fwd, '__name__', self.fwd)} for function {self.__name__} must produce a pair (list or tuple of "
                                "length two) where the first element represents the primal output (equal to the output of the custom_vjp-decorated function "
                                f"{self.__name__}) and the second element represents residuals (i.e. values stored from the forward pass for use on the backward "
                                f"pass), but instead the fwd rule output had type {type(made)}.")
            out, read = made
            if _derivatives()[-_rules].is_forward:
                raise TypeError("can't apply forward-mode autodiff (jvp) to a custom_vjp function.")
            outs, kept["form"] = tree_flatten(out)
            items, kept["read"] = tree_flatten(read)
            kept["is_array"] = [isinstance(item, (Array, np.ndarray, np.generic, bool, int, float, complex)) for item in items]
            kept["items"] = items
            return [asarray(one) for one in outs], [asarray(item) for item, own in zip(items, kept["is_array"]) if own]

        def backward(read, cotangents):
            given = iter(read)
            items = [next(given) if own else item for own, item in zip(kept["is_array"], kept["items"])]
            made = self.bwd(*fixed, tree_unflatten(kept["read"], items), tree_unflatten(kept["form"], cotangents))
            name = getattr(self.bwd, "__name__", self.bwd)
            if not isinstance(made, (tuple, list)):
                raise TypeError(f"Custom VJP bwd rule {name} must produce a tuple but got {type(made)}.")
            if len(made) != len(form.children):
                raise TypeError(f"Custom VJP bwd rule {name} must produce a tuple of length equal to the primal args tuple, but the bwd output has {len(made)} "
                                f"elements while the primal args have {len(form.children)}.")
            grads = []
            for own, child in zip(made, form.children):
                grads += [None] * child.num_leaves if own is None else _as_form(own, child)
            grads = [grad for at, grad in enumerate(grads) if at not in of_refs]
            for grad, leaf in zip(grads, leaves):
                if grad is not None and dtypes.is_inexact(leaf.engine_dtype) and np.shape(grad) != leaf.shape:
                    raise ValueError(f"Custom VJP bwd rule {name} must produce a tuple of cotangents with the shapes of the primal inputs, but a cotangent has shape "
                                     f"{np.shape(grad)} for an input of shape {leaf.shape}.")
            return grads
        return _unflattened(kept, _with_rule(forward, backward, leaves))


def _as_form(tree, form):
    return [None if one is None or getattr(one, "dtype", None) == dtypes.float0 else asarray(one) for one in form.flatten_up_to(tree)]


def custom_gradient(fun):
    """Gives a result, and the function of its cotangent."""
    @custom_vjp
    def called(*args):
        return fun(*args)[0]

    def fwd(*args):
        out, rule = fun(*args)
        return out, rule

    def bwd(rule, cotangent):
        made = rule(cotangent)
        return made if isinstance(made, tuple) else (made,)
    called.defvjp(fwd, bwd)
    return called


def closure_convert(fun, *example_args):
    """The function itself, and no further arguments: what it takes from outside is found when it is traced."""
    return fun, []


