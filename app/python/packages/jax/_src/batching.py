# SPDX-License-Identifier: GPL-3.0-or-later
"""vmap: functions of one example, applied to many. A `BatchTracer` looks like one example and holds all, along a leading dimension; each op is
applied to all at once by a rule of its own, or to one example after the other where it has none."""
import collections
import functools
import inspect

import numpy as np

from . import arrays, errors, ops
from .arrays import Array, asarray, bind, type_text
from .trees import keystr, prefix_leaves, tree_flatten, tree_flatten_with_path, tree_map, tree_unflatten

_FEW_KEYS = 32
_MOST_EXAMPLES = 4096  # that an op without a rule is applied to, one after the other


class BatchTracer(Array):
    """One example of `value`, whose leading dimension counts examples. `level` is that of its vmap: 1 for the outermost."""

    def __init__(self, value, level, weak_type=False):
        self.value, self.level, self.weak_type = value, level, weak_type
        self._type = (value.engine_dtype, value.shape[1:])

    val = property(lambda self: self.value)
    batch_dim = 0

    def block_until_ready(self):
        return self

    def in_words(self):
        return f"traced array with shape {arrays.type_text(self)}"

    def origin(self):
        return ""

    def __array__(self, *_, **__):
        raise errors.TracerArrayConversionError(self)

    def __bool__(self):
        raise errors.not_concrete(bool, self)

    def __int__(self):
        raise errors.not_concrete(int, self)

    def __float__(self):
        raise errors.not_concrete(float, self)

    def __index__(self):
        raise errors.TracerIntegerConversionError(self)

    def item(self, *_):
        raise errors.ConcretizationTypeError(self)

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(len(self))])

    def __repr__(self):
        return f"VmapTracer(aval={arrays.type_text(self)}, batched={arrays.type_text(self.value)})"


class Level:
    """A vmap under way."""
    stack = []

    def __init__(self, size, name):
        self.size, self.name = size, name

    def __enter__(self):
        Level.stack.append(self)
        return len(Level.stack)

    def __exit__(self, *_):
        Level.stack.pop()


def bind_batched(op, operands, attributes):
    """What `arrays.bind` does where an operand stands for many examples: those of the innermost vmap among them."""
    level = max(operand.level for operand in operands)
    is_batched = [operand.level == level for operand in operands]
    values = [operand.value if batched else operand for operand, batched in zip(operands, is_batched)]
    size = next(value.shape[0] for value, batched in zip(values, is_batched) if batched)
    rule = _RULES.get(op, _elementwise)
    made = rule(op, values, is_batched, size, attributes)
    return [BatchTracer(one, level) for one in made] if isinstance(made, list) else BatchTracer(made, level)


def spread(x, size):
    """The same example `size` times."""
    return ops.broadcast_to(ops.expand_dims(x, 0), (size,) + x.shape)


def levels(x):
    """Of the vmaps whose examples an array stands for."""
    found = set()
    while x.level:
        found.add(x.level)
        x = x.value
    return found


def of_levels(x, wanted):
    """An array as examples of these vmaps, the outermost first, where it is of some of them."""
    if not wanted:
        return x
    *outer, level = wanted
    return BatchTracer(of_levels(x.value if x.level == level else spread(x, Level.stack[level - 1].size), outer), level, x.weak_type)


def _elementwise(op, values, is_batched, size, attributes):
    rank = max(value.ndim - batched for value, batched in zip(values, is_batched))
    aligned = [ops.reshape(value, value.shape[:1] + (1,) * (rank + 1 - value.ndim) + value.shape[1:]) if batched else value
               for value, batched in zip(values, is_batched)]
    return bind(op, *aligned, **attributes)


def _each(op, values, is_batched, size, attributes):
    """One example after the other."""
    if size > _MOST_EXAMPLES:
        raise NotImplementedError(f"vmap of {op} over {size} examples")
    made = [bind(op, *[value[i] if batched else value for value, batched in zip(values, is_batched)], **attributes) for i in range(size)]
    return [ops.stack(some) for some in zip(*made)] if isinstance(made[0], list) else ops.stack(made)


def _moved(dims):
    return tuple(dim + 1 for dim in dims)


def _full(op, values, is_batched, size, attributes):
    return bind("broadcast_in_dim", values[0], shape=(size,) + tuple(attributes["shape"]), dims=(0,))


def _reshape(op, values, is_batched, size, attributes):
    return bind(op, values[0], shape=(size,) + tuple(attributes["shape"]))


def _transpose(op, values, is_batched, size, attributes):
    return bind(op, values[0], permutation=(0,) + _moved(attributes["permutation"]))


def _broadcast_in_dim(op, values, is_batched, size, attributes):
    return bind(op, values[0], shape=(size,) + tuple(attributes["shape"]), dims=(0,) + _moved(attributes["dims"]))


def _concatenate(op, values, is_batched, size, attributes):
    values = [value if batched else spread(value, size) for value, batched in zip(values, is_batched)]
    return bind(op, *values, dim=attributes["dim"] + 1)


def _pad(op, values, is_batched, size, attributes):
    if is_batched[1]:
        return _each(op, values, is_batched, size, attributes)
    return bind(op, *values, **{name: (0,) + tuple(widths) for name, widths in attributes.items()})


def _slice(op, values, is_batched, size, attributes):
    return bind(op, values[0], starts=(0,) + tuple(attributes["starts"]), limits=(size,) + tuple(attributes["limits"]),
                strides=(1,) + tuple(attributes["strides"]))


def _sort(op, values, is_batched, size, attributes):
    return bind(op, values[0], dim=attributes["dim"] + 1)


def _dims(op, values, is_batched, size, attributes):
    return bind(op, values[0], **{**attributes, "dims": _moved(attributes["dims"])})


def _dot_general(op, values, is_batched, size, attributes):
    left, right = is_batched
    made = {**attributes,
            **{name: _moved(attributes[name]) for name in ("lhs_batch", "lhs_contracting") if left},
            **{name: _moved(attributes[name]) for name in ("rhs_batch", "rhs_contracting") if right}}
    batch, free = len(attributes["lhs_batch"]), values[0].ndim - len(attributes["lhs_batch"]) - len(attributes["lhs_contracting"])
    if left and right:
        made["lhs_batch"], made["rhs_batch"] = (0,) + made["lhs_batch"], (0,) + made["rhs_batch"]
        return bind(op, *values, **made)
    return ops.moveaxis(bind(op, *values, **made), batch if left else batch + free, 0)


def _dynamic_slice(op, values, is_batched, size, attributes):
    if any(is_batched[1:]):
        return _each(op, values, is_batched, size, attributes)
    return bind(op, values[0], asarray(0), *values[1:], sizes=(size,) + tuple(attributes["sizes"]))


def _dynamic_update_slice(op, values, is_batched, size, attributes):
    if any(is_batched[2:]):
        return _each(op, values, is_batched, size, attributes)
    both = [value if batched else spread(value, size) for value, batched in zip(values[:2], is_batched)]
    return bind(op, *both, asarray(0), *values[2:])


def _gather(op, values, is_batched, size, attributes):
    x, indices = values
    made = {**attributes, "window": _moved(attributes["window"])}
    if is_batched[1]:
        made["index_vector_dim"] = attributes["index_vector_dim"] + 1
    if is_batched[0]:
        made["collapsed"], made["index_map"] = _moved(attributes["collapsed"]), _moved(attributes["index_map"])
        if is_batched[1]:  # each example has indices of its own: the example's number is one more
            at = made["index_vector_dim"]
            from . import explicit
            with explicit.suspended():
                indices = ops.expand_dims(indices, at) if at == indices.ndim else indices
                shape = tuple(1 if dim == at else count for dim, count in enumerate(indices.shape))
                indices = ops.concatenate([ops.iota(indices.engine_dtype, shape, 0), indices], at)
            made["collapsed"], made["index_map"] = (0,) + made["collapsed"], (0,) + made["index_map"]
            made["slice_sizes"] = (1,) + tuple(attributes["slice_sizes"])
        else:
            made["window"] = (0,) + made["window"]
            made["slice_sizes"] = (size,) + tuple(attributes["slice_sizes"])
    return bind(op, x, indices, **made)


def _scatter(op, values, is_batched, size, attributes):
    """The rows of all examples one behind the other; what is behind the end of one is behind the end of all."""
    x, places, rows = [value if batched else spread(value, size) for value, batched in zip(values, is_batched)]
    count = x.shape[1]
    is_there = ops.logical_and(ops.greater_equal(places, 0), ops.less(places, count))
    places = ops.where(is_there, ops.add(places, ops.multiply(ops.expand_dims(ops.arange(size), 1), count)), size * count)
    made = bind(op, ops.reshape(x, (size * count, *x.shape[2:])), ops.reshape(places, (-1,)), ops.reshape(rows, (-1, *x.shape[2:])), **attributes)
    return ops.reshape(made, x.shape)


def _random(op, values, is_batched, size, attributes):
    """A few keys one after the other, many as one array."""
    if size <= _FEW_KEYS:
        return _each(op, values, is_batched, size, attributes)
    from . import random_
    shape = tuple(attributes["shape"])
    if op == "uniform":
        return random_.uniform_of_each(values[0], shape, attributes["low"], attributes["high"])
    return (random_.normal_of_each if op == "normal" else random_.bits_of_each)(values[0], shape)


_RULES = {"random_bits": _random, "normal": _random, "uniform": _random, "full": _full, "reshape": _reshape, "transpose": _transpose, "broadcast_in_dim": _broadcast_in_dim,
          "concatenate": _concatenate, "sort": _sort, "pad": _pad, "slice": _slice, "reverse": _dims, "reduce": _dims, "dot_general": _dot_general,
          "dynamic_slice": _dynamic_slice, "dynamic_update_slice": _dynamic_update_slice, "gather": _gather, "scatter": _scatter}


def _at_front(leaf, axis, level):
    return BatchTracer(ops.moveaxis(asarray(leaf), axis, 0), level, asarray(leaf).weak_type)


def _argument_names(fun, count):
    """What JAX's messages call the arguments at the first `count` places."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return [f"args[{at}]" for at in range(count)]
    named = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), "args")
    return [f"argument {named[at] if at < len(named) else f'{rest}[{at - len(named)}]'}" for at in range(count)]


def _of_sizes(fun, args, kwargs, axes):
    """The message for axes of different sizes. Source of the text: jax-ml/jax, jax/_src/api.py (_mapped_axis_size)."""
    names = _argument_names(fun, len(args))
    places = [names[path[0].idx] + keystr(path[1:]) for path, _ in tree_flatten_with_path(args)[0]] + \
             [f"kwargs{keystr(path)}" for path, _ in tree_flatten_with_path(kwargs)[0]]
    leaves = [asarray(getattr(leaf, "value", leaf)) for leaf in tree_flatten((args, kwargs))[0]]
    mapped = [(leaf.shape[axis], f"axis {axis} of {place} of type {type_text(leaf)}")
              for leaf, axis, place in zip(leaves, [*axes, *[0] * len(leaves)], places) if axis is not None]
    lines = []
    for size, count in collections.Counter(size for size, _ in mapped).most_common():
        example = next(text for own, text in mapped if own == size)
        lines.append(f"  * one axis had size {size}: {example}" if count == 1
                     else f"  * {'some' if lines else 'most'} axes ({count} of {len(leaves)}) had size {size}, e.g. {example}")
    return "vmap got inconsistent sizes for array axes to be mapped:\n" + ";\n".join(lines)


def _no_mapping(axes, name):
    from .hitypes import MappingSpec
    for axis in tree_flatten(axes)[0]:
        if isinstance(axis, MappingSpec):
            raise NotImplementedError(f"jax.vmap with {name}={axis!r}: how it maps values of a type of the page's own is not known here; map the arrays that make "
                                      "them up")


def vmap(fun, in_axes=0, out_axes=0, axis_name=None, axis_size=None, spmd_axis_name=None):
    """`fun` of one example as a function of many."""
    is_axis = lambda axis: axis is None or isinstance(axis, int)

    @functools.wraps(fun)
    def batched(*args, **kwargs):
        leaves, form = tree_flatten(args)
        given = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        _no_mapping(given, "in_axes"), _no_mapping(out_axes, "out_axes")
        if isinstance(given, tuple) and len(given) != len(args):
            raise ValueError("vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed to the function, but got "
                             f"len(in_axes)={len(given)}, len(args)={len(args)}")
        axes = prefix_leaves(given, form, args, is_leaf=is_axis)
        for leaf, axis in zip(leaves, axes):
            if axis is not None and len(shape := np.shape(leaf)) < (axis + 1 if axis >= 0 else -axis):
                raise ValueError(f"vmap was requested to map its argument along axis {axis}, which implies that its rank should be at least "
                                 f"{axis + 1 if axis >= 0 else -axis}, but is only {len(shape)} (its shape is {shape})")
        keywords, keyword_form = tree_flatten(kwargs)
        from . import refs
        sizes = {(leaf if isinstance(leaf, refs.Ref) else asarray(leaf)).shape[axis] for leaf, axis in zip(leaves, axes) if axis is not None}
        sizes |= {asarray(leaf).shape[0] for leaf in keywords} | ({axis_size} if axis_size is not None else set())
        if not sizes:
            raise ValueError("vmap must have at least one non-None value in in_axes")
        if len(sizes) > 1:
            raise ValueError(_of_sizes(fun, args, kwargs, axes))
        size = sizes.pop()
        with Level(size, axis_name) as level:
            given = [leaf if axis is None else refs.Ref(_at_front(leaf.read(), axis, level), is_argument=True) if isinstance(leaf, refs.Ref)
                     else _at_front(leaf, axis, level) for leaf, axis in zip(leaves, axes)]
            made = fun(*tree_unflatten(form, given),
                       **tree_unflatten(keyword_form, [_at_front(leaf, 0, level) for leaf in keywords]))
        for leaf, axis, one in zip(leaves, axes, given):
            if isinstance(leaf, refs.Ref) and one is not leaf:
                leaf.put(ops.moveaxis(one.value.value, 0, ops.dimension(axis, leaf.ndim)))
        outs, out_form = tree_flatten(made)
        refs.no_refs(outs, f"{getattr(fun, '__name__', 'function')} traced for vmap")
        targets = prefix_leaves(tuple(out_axes) if isinstance(out_axes, list) else out_axes, out_form, made, is_leaf=is_axis)
        results = []
        for out, axis in zip(map(asarray, outs), targets):
            is_mapped = out.level == level
            if axis is None and is_mapped:
                raise ValueError("vmap has mapped output but out_axes is None")
            whole = out.value if is_mapped else out if axis is None else spread(out, size)
            results.append(whole if axis is None else ops.moveaxis(whole, 0, ops.dimension(axis, whole.ndim)))
        return tree_unflatten(out_form, results)
    return batched


def level_named(axis_name):
    """The number of the vmap of this name; None: there is none."""
    return next((at + 1 for at, one in enumerate(Level.stack) if one.name is not None and one.name == axis_name), None)


def over_examples(op, x, axis_name, **attributes):
    """A collective over the examples of the vmap of this name."""
    level = level_named(axis_name)
    size = Level.stack[level - 1].size
    if op == "axis_index":
        return BatchTracer(ops.iota("i32", (size,)), level)

    def one(leaf, inner=0):
        if leaf.level > level:  # the examples of a vmap within lie in front
            return BatchTracer(one(leaf.value, inner + 1), leaf.level, leaf.weak_type)
        if leaf.level != level and op in ("psum", "pmax", "pmin"):
            return ops.multiply(leaf, size) if op == "psum" else leaf
        whole = leaf.value if leaf.level == level else spread(leaf, size)
        return _EXCHANGES[op](whole, level, **{name: value + inner if name in ("join", "split") else value for name, value in attributes.items()})
    return tree_map(lambda leaf: one(asarray(leaf)), x)


def _joined(x, dim):
    """The first dimension and another one, which it then is in front of, as one."""
    x = ops.moveaxis(x, 0, dim)
    return ops.reshape(x, (*x.shape[:dim], x.shape[dim] * x.shape[dim + 1], *x.shape[dim + 2:]))


def _taken_apart(x, dim, count):
    """Equal parts of a dimension, one behind the other."""
    if x.shape[dim] % count:
        raise ValueError(f"dimension {dim} of size {x.shape[dim]} is not divisible by the {count} examples of a vmap")
    return ops.moveaxis(ops.reshape(x, (*x.shape[:dim], count, x.shape[dim] // count, *x.shape[dim + 1:])), dim, 0)


def _permuted(x, level, sources):
    is_given = ops.reshape(asarray(np.array(sources) >= 0), (len(sources),) + (1,) * (x.ndim - 1))
    moved = ops.take(x, asarray(np.maximum(sources, 0).astype(np.int32)), 0)
    return BatchTracer(ops.where(is_given, moved, ops.zeros_like(moved)), level)


# What collectives make of all examples.
_EXCHANGES = {
    "psum": lambda x, level: ops.reduce("sum", x, 0),
    "pmax": lambda x, level: ops.reduce("max", x, 0),
    "pmin": lambda x, level: ops.reduce("min", x, 0),
    "ppermute": _permuted,
    "all_gather": lambda x, level, join: _joined(x, join),
    "psum_scatter": lambda x, level, split: BatchTracer(_taken_apart(ops.reduce("sum", x, 0), split, x.shape[0]), level),
    "all_to_all": lambda x, level, split, join: BatchTracer(
        _joined(ops.moveaxis(_taken_apart(x, split + 1, x.shape[0]), 1, 0), join + 1), level),
}


class Outside:
    """Within it, a vmap is not under way, nor are those within it: its examples are whole arrays. The innermost one, where no level is given."""

    def __init__(self, level=None):
        self.level = level

    def __enter__(self):
        self.level = self.level or len(Level.stack)
        self._inner = Level.stack[self.level - 1:]
        del Level.stack[self.level - 1:]
        return self

    def __exit__(self, *_):
        Level.stack.extend(self._inner)

    size = property(lambda self: self._inner[0].size)

    def is_example(self, x):
        return x.level == self.level

    def whole(self, x):
        """All examples of an array, one behind the other."""
        x = asarray(x)
        return x.value if x.level == self.level else spread(x, self.size)

    def example(self, x):
        x = asarray(x)
        return BatchTracer(x, self.level, x.weak_type)

    def inside(self, function, *args):
        """Calls it with the vmap under way again."""
        before = len(Level.stack)
        Level.stack.extend(self._inner)
        try:
            return function(*args)
        finally:
            del Level.stack[before:]


def vjp_of_examples(vjp, fun, primals, has_aux):
    """`vjp` of each example, as one of all of them, none of which depends on another."""
    with Outside() as outside:
        leaves, form = tree_flatten(primals)

        def of_all(*wholes):
            made = outside.inside(lambda: fun(*tree_unflatten(form, [outside.example(whole) for whole in wholes])))
            made, aux = made if has_aux else (made, None)
            return tree_map(outside.whole, made), tree_map(outside.whole, aux)
        value, pullback, aux = vjp(of_all, *[outside.whole(leaf) for leaf in leaves], has_aux=True)

    def pulled(cotangents):
        seeds, seed_form = tree_flatten(cotangents)

        def of_seeds(seeds):
            if any(seed.level > outside.level for seed in seeds):  # the pullback is called in a vmap within
                return one_by_one(of_seeds, seeds)
            with Outside(outside.level) as now:
                grads = pullback(tree_unflatten(seed_form, [now.whole(seed) for seed in seeds]))
            return [now.example(grad) if hasattr(grad, "engine_dtype") else grad for grad in grads]
        return tree_unflatten(form, of_seeds([asarray(seed) for seed in seeds]))
    value = tree_map(outside.example, value)
    return (value, pulled, tree_map(outside.example, aux)) if has_aux else (value, pulled)


def one_by_one(function, operands):
    """A function of a list of arrays that gives another, for one example of the innermost vmap after the other."""
    level = max(operand.level for operand in operands)
    size = next(operand.value.shape[0] for operand in operands if operand.level == level)
    if size > _MOST_EXAMPLES:
        raise NotImplementedError(f"vmap of a derivative over {size} examples")
    made = [function([operand.value[i] if operand.level == level else operand for operand in operands]) for i in range(size)]
    return [BatchTracer(ops.stack(list(some)), level) if isinstance(some[0], Array) else some[0] for some in zip(*made)]
