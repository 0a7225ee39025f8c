# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.experimental.hijax: functions of arrays as classes, which say how they are computed, differentiated and mapped. Source of the rules: jax-ml/jax,
docs/hijax_custom_derivatives.md, docs/hijax_types.md and jax/_src/hijax.py. Their values may be of types that the page makes, beside arrays."""
from .._src import batching, hitypes, ops, transforms
from .._src.arrays import asarray
from .._src.hitypes import HiPspec, HiType, MappingSpec, register_hitype
from .._src.custom import _derivatives, _rules_under_way, custom_jvp, custom_vjp, depth
from .._src.trees import tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten
from ..core import ShapedArray


class Zero:
    """A cotangent or tangent that is zero. Here all are given as arrays: none is one of these."""

    def __init__(self, aval):
        self.aval = aval


def instantiate_zeros(x):
    return ops.full(x.aval.shape, 0, x.aval.engine_dtype) if isinstance(x, Zero) else x


class ValAccum:
    """Takes the cotangent of an argument of type `aval`, part by part."""

    def __init__(self, aval):
        self.aval, self._sum = aval, None

    def accum(self, value):
        if value is not None and not isinstance(value, Zero):
            self._sum = value if self._sum is None else ops.add(self._sum, value)

    def freeze(self):
        return self._sum


class RefAccum(ValAccum):
    """One that adds to a ref. Rules are given none: what they give is added to the ref that with_refs names when the program has run."""


class NullAccum(ValAccum):
    """Stands for the cotangent of an argument that no derivative is taken by."""

    def accum(self, value):
        pass


class _AxisData:
    """The examples of a vmap."""

    def __init__(self, level):
        self.size, self.name, self.spmd_name, self.explicit_mesh_axis = level.size, level.name, None, None


class VJPHiPrimitive:
    """A function of arrays. Subclasses set in_avals, out_aval and params before they call this __init__, and write `expand`."""

    def __init__(self):
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        if self._says("vjp_bwd") and self._says("vjp_bwd_retval"):
            raise AttributeError(f"subclass {type(self)} should not override both `vjp_bwd` and `vjp_bwd_retval`")
        for aval in [*tree_leaves(self.in_avals), *tree_leaves(self.out_aval)]:
            if not isinstance(aval, (ShapedArray, HiType)):
                raise TypeError(f"in_avals and out_aval of {type(self).__name__} are trees of types, as jax.typeof gives them, got {aval!r}")
        self.in_tree, self.out_tree = tree_structure(self.in_avals), tree_structure(self.out_aval)
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def _says(self, name):
        return getattr(type(self), name) is not getattr(VJPHiPrimitive, name)

    # ---- what subclasses write

    def expand(self, *args):
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def check(self, *arg_tys):
        pass

    def vjp_fwd(self, nzs_in, /, *args):
        raise NotImplementedError(f"for grad support, subclass {type(self)} must implement `vjp_fwd`, or derive its reverse-mode rules from its jvp or lin rules by "
                                  "setting `vjp_fwd, vjp_bwd_retval = vjp_from_jvp` (or `= vjp_from_lin`)")

    def vjp_bwd(self, res, outgrad, /, *arg_accums):
        for accums, grads in zip(arg_accums, self.vjp_bwd_retval(res, outgrad)):
            for accum, grad in zip(tree_leaves(accums), [None] * len(tree_leaves(accums)) if grads is None else tree_leaves(grads, lambda x: x is None)):
                accum.accum(grad)

    def vjp_bwd_retval(self, res, outgrad, /):
        raise NotImplementedError(f"for grad support, subclass {type(self)} must implement `vjp_bwd` or `vjp_bwd_retval`, or derive its reverse-mode rules by setting "
                                  "`vjp_fwd, vjp_bwd_retval = vjp_from_jvp` (or `= vjp_from_lin`)")

    def jvp(self, primals, tangents):
        raise NotImplementedError(f"for jvp support, subclass {type(self)} must implement `jvp`")

    def lin(self, nzs_in, *primals):
        raise NotImplementedError(f"for linearize support, subclass {type(self)} must implement `lin` and `linearized`, or derive them from its `jvp` rule by setting "
                                  "`lin, linearized = linearize_from_jvp`")

    def linearized(self, residuals, *tangents):
        return self.lin(None)

    def batch(self, axis_data, args, dims):
        self.batch_dim_rule(axis_data, dims)
        return None

    def batch_dim_rule(self, axis_data, dims, /):
        raise NotImplementedError(f"for vmap support, subclass {type(self)} must implement `batch` or `batch_dim_rule`")

    # ---- how it is applied

    def __call__(self, *args):
        leaves, form = tree_flatten(args, hitypes.is_value)
        if form != self.in_tree:
            raise ValueError(f"{type(self).__name__} takes arguments of the form {self.in_tree}, got {form}")
        leaves = [leaf if hitypes.is_value(leaf) else asarray(leaf) for leaf in leaves]
        args = tree_unflatten(form, leaves)
        arrays = tree_flatten(leaves)[0]
        if depth(arrays):
            return self._with_rules(leaves, form)
        level = max((leaf.level for leaf in arrays), default=0)
        if level and any(map(hitypes.is_value, leaves)):
            raise NotImplementedError(f"jax.vmap of {type(self).__name__}, which takes values of a type of the page's own: map the arrays that make them up")
        return self._of_examples(leaves, form, level) if level else self.expand(*args)

    def _of_examples(self, leaves, form, level):
        """Of all examples of the innermost vmap among the arguments."""
        own = [leaf.level == level for leaf in leaves]
        dims = tree_unflatten(form, [0 if batched else None for batched in own])
        made = self.batch(_AxisData(batching.Level.stack[level - 1]), tree_unflatten(form, [leaf.value if batched else leaf for leaf, batched in zip(leaves, own)]), dims)
        if made is None:  # the rule says how the results lie: what is computed is the same
            return self.expand(*tree_unflatten(form, leaves))
        outs, out_dims = made
        outs, out_form = tree_flatten(outs)
        if any(isinstance(dim, MappingSpec) for dim in tree_leaves(out_dims)):
            raise NotImplementedError(f"jax.vmap of {type(self).__name__}, which gives values of a type of the page's own: map the arrays that make them up")
        dims = tree_leaves(out_dims, lambda x: x is None) if not isinstance(out_dims, int) else [out_dims] * len(outs)
        return tree_unflatten(out_form, [out if dim is None else batching.BatchTracer(ops.moveaxis(asarray(out), dim, 0), level) for out, dim in zip(outs, dims)])

    def _with_rules(self, leaves, form):
        """Values of types of the page's own are differentiated by their shadows."""
        nonzero = tree_unflatten(form, [not hitypes.is_constant(leaf) for leaf in leaves])
        args = tree_unflatten(form, leaves)
        if _derivatives()[-_rules_under_way()].is_forward if _rules_under_way() else _derivatives()[-1].is_forward:
            function = custom_jvp(self._expanded)
            if any(map(hitypes.is_value, leaves)) or any(isinstance(aval, HiType) for aval in tree_leaves(self.out_aval)):
                raise NotImplementedError(f"jax.jvp of {type(self).__name__}, whose values are of a type of the page's own: use jax.grad or jax.vjp")
            function.defjvp(self._lin_rule(nonzero) if self._says("lin") and not self._says("jvp") else lambda primals, tangents: self.jvp(primals, tangents))
            return function(*args)
        has_more, made = [], {}
        bare = [hitypes.with_shadow(leaf, None) if hitypes.is_value(leaf) else leaf for leaf in leaves]
        by = [at for at, leaf in enumerate(leaves) if not hitypes.is_value(leaf) or hitypes.shadow_of(leaf) is not None]

        def fwd(*inputs):
            given = dict(zip(by, inputs))
            out, read, *more = self.vjp_fwd(nonzero, *tree_unflatten(form, [leaf if hitypes.is_value(leaf) else given.get(at, leaf) for at, leaf in enumerate(bare)]))
            has_more[:] = more[1:]
            made["outs"], made["form"] = tree_flatten(out, hitypes.is_value)
            return [_zeros(hitypes.type_of(one)) if hitypes.is_value(one) else one for one in made["outs"]], (read, *has_more)

        def bwd(read, cotangents):
            avals = tree_leaves(self.in_avals)
            accums = [(ValAccum if one else NullAccum)(_tangent(aval)) for aval, one in zip(avals, tree_leaves(nonzero))]
            self.vjp_bwd(*read, tree_unflatten(made["form"], list(cotangents)), *tree_unflatten(self.in_tree, accums))
            grads = [accums[at].freeze() for at in by]
            return tuple(grad if grad is not None else ops.full(accums[at].aval.shape, 0, accums[at].aval.engine_dtype) for at, grad in zip(by, grads))
        function = custom_vjp(lambda *inputs: fwd(*inputs)[0])
        function.defvjp(fwd, bwd)
        results = function(*[hitypes.shadow_of(leaves[at]) if hitypes.is_value(leaves[at]) else leaves[at] for at in by])
        return tree_unflatten(made["form"], [hitypes.with_shadow(one, result) if hitypes.is_value(one) else result for one, result in zip(made["outs"], results)])

    def _expanded(self, *args):
        return self.expand(*args)

    def _lin_rule(self, nonzero):
        def rule(primals, tangents):
            out, *read = self.lin(nonzero, *primals)
            return out, self.linearized(*read[:1], *read[2:], *tangents)
        return rule

    def __repr__(self):
        return f"{type(self).__name__}[{self.params}]"

    def __hash__(self):
        return hash((type(self).__name__, tuple(self.params.items())))

    def __eq__(self, other):
        return type(self) is type(other) and self.params == other.params


def _tangent(aval):
    """The type of the tangents of a value."""
    if not isinstance(aval, HiType):
        return aval
    made = aval.to_tangent_aval()
    if not isinstance(made, ShapedArray):
        raise NotImplementedError(f"derivatives by a value of type {aval}, whose tangents are of type {made}: only tangents that are arrays are known here")
    return made


def _zeros(ty):
    aval = _tangent(ty)
    return ops.full(aval.shape, 0, aval.engine_dtype)


# ---- rules that follow from others

def _transposed(function, avals, cotangents):
    zeros = tree_map(lambda aval: ops.full(aval.shape, 0, aval.engine_dtype), avals)
    return transforms.vjp(function, *zeros, is_linear=True)[1](cotangents)


linearize_from_jvp = (lambda self, nzs_in, *primals: (self(*primals), primals),
                      lambda self, primals, *tangents: self.jvp(primals, tangents)[1])
vjp_from_lin = (lambda self, nzs_in, *args: self.lin(nzs_in, *args)[:2],
                lambda self, res, cotangents: _transposed(lambda *tangents: self.linearized(res, *tangents), self.in_avals, cotangents))
vjp_from_jvp = (lambda self, nzs_in, *args: (self(*args), args),
                lambda self, args, cotangents: _transposed(lambda *tangents: self.jvp(args, tangents)[1], self.in_avals, cotangents))
