# SPDX-License-Identifier: GPL-3.0-or-later
"""Control of programs: loops are the program's own where a function is traced; outside, and for many examples at once, Python runs them."""
from . import batching, ops, trees
from .arrays import Scope, Tracer, asarray, astype, type_text


def _is_traced():
    return bool(Scope._stack) and not batching.Level.stack


class _Block:
    """A function as a block of a loop: traced for arguments like these, with what it uses of the outside."""

    def __init__(self, name, function, form, likes):
        self.scope = Scope(name)
        with self.scope:
            made = function(*trees.tree_unflatten(form, [self.scope.argument(like, shape=shape) for like, shape in likes]))
            self.results, self.form = trees.tree_flatten(made)
            self.results = [asarray(result) for result in self.results]
            self.function = self.scope.finished(self.results)

    captures = property(lambda self: self.scope.captures)


def _carried(name, function, carry, others):
    """The block of a function of a carry and more, and the carry's leaves: those that are weakly typed take the type that a turn gives them."""
    leaves, form = trees.tree_flatten(carry)
    leaves = [asarray(leaf) for leaf in leaves]
    other_likes, others_form = others
    whole = trees.tree_structure((trees.tree_unflatten(form, leaves), trees.tree_unflatten(others_form, list(range(len(other_likes))))))
    for _ in range(3):
        block = _Block(name, function, whole, [(leaf, leaf.shape) for leaf in leaves] + other_likes)
        after = block.results[:len(leaves)]
        changed = [new.engine_dtype if leaf.weak_type and new.engine_dtype != leaf.engine_dtype and new.shape == leaf.shape else None
                   for leaf, new in zip(leaves, after)]
        if not any(changed):
            break
        leaves = [leaf if dtype is None else astype(leaf, dtype) for leaf, dtype in zip(leaves, changed)]
    for leaf, new in zip(leaves, after):
        if (leaf.engine_dtype, leaf.shape) != (new.engine_dtype, new.shape):
            raise TypeError(f"{name} body function carry input and carry output must have equal types, but they differ: the input carry has type "
                            f"{type_text(leaf)} but the corresponding output carry component has type {type_text(new)}, so the shapes or "
                            "dtypes do not match.")
    return block, leaves, form


def scan(f, init, xs=None, length=None, reverse=False, unroll=1, **_):
    leaves, form = trees.tree_flatten(xs)
    leaves = [asarray(leaf) for leaf in leaves]
    count = int(length) if not leaves else leaves[0].shape[0]
    if not _is_traced() or count < 2:
        return _unrolled(f, init, leaves, form, count, reverse)

    def turn(carry, x):
        made = f(carry, x)
        if not isinstance(made, tuple) or len(made) != 2:
            raise TypeError(f"scan body output must be a pair, got {made!r}.")
        return made
    block, carry, carry_form = _carried("scan", turn, init, ([(leaf, leaf.shape[1:]) for leaf in leaves], form))
    if trees.tree_structure(trees.tree_unflatten(block.form, block.results)[0]) != carry_form:
        raise TypeError("scan body function carry input and carry output must have the same pytree structure, but they differ")
    scope = Scope._stack[-1]
    operands = carry + leaves + block.captures
    numbers = scope.core.repeat(block.function, list(range(len(operands))), [scope.number(operand) for operand in operands], count, len(carry),
                                len(leaves), bool(reverse))
    return trees.tree_unflatten(block.form, [scope.tracer(number, result.weak_type) for number, result in zip(numbers, block.results)])


def _unrolled(f, carry, leaves, form, count, reverse):
    made = []
    for i in reversed(range(count)) if reverse else range(count):
        carry, y = f(carry, trees.tree_unflatten(form, [leaf[i] for leaf in leaves]))
        made.append(y)
    made = made[::-1] if reverse else made
    return carry, trees.tree_map(lambda *ys: ops.stack(ys), *made) if made else None


def map_(f, xs, *, batch_size=None):
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    if isinstance(lower, Tracer) or isinstance(upper, Tracer):
        first, last = asarray(lower), asarray(upper)
        return while_loop(lambda carry: ops.less(carry[0], last), lambda carry: (ops.add(carry[0], 1), body_fun(*carry)),
                          (astype(first, last.engine_dtype), init_val))[1]
    lower, upper = int(lower), int(upper)
    if _is_traced() and upper - lower > 1:
        return scan(lambda carry, i: (body_fun(i, carry), None), init_val, ops.arange(lower, upper))[0]
    for i in range(lower, upper):
        init_val = body_fun(asarray(i), init_val)
    return init_val


def while_loop(cond_fun, body_fun, init_val):
    if not _is_traced():
        while bool(cond_fun(init_val)):
            init_val = body_fun(init_val)
        return init_val
    body, carry, form = _carried("while_loop", lambda carry, _: body_fun(carry), init_val, ([], trees.tree_structure(None)))
    if body.form != form:
        raise TypeError("while_loop body function carry input and carry output must have the same pytree structure, but they differ")
    condition = _Block("while_loop", lambda carry, _: cond_fun(carry), trees.tree_structure((init_val, None)), [(leaf, leaf.shape) for leaf in carry])
    if [(result.engine_dtype, result.shape) for result in condition.results] != [("i1", ())]:
        raise TypeError(f"cond_fun must return a boolean scalar, but got {', '.join(map(type_text, condition.results))}")
    scope = Scope._stack[-1]
    operands = carry + condition.captures + body.captures
    mine = list(range(len(carry)))
    split = len(carry) + len(condition.captures)
    numbers = scope.core.while_loop(condition.function, mine + list(range(len(carry), split)), body.function, mine + list(range(split, len(operands))),
                                    [scope.number(operand) for operand in operands], len(carry))
    return trees.tree_unflatten(form, [scope.tracer(number, leaf.weak_type) for number, leaf in zip(numbers, carry)])


def cond(pred, true_fun, false_fun, *operands, operand=None):
    operands = operands if operand is None else (operand,)
    if not (isinstance(pred, Tracer) or getattr(pred, "level", 0)):
        return (true_fun if bool(pred) else false_fun)(*operands)
    return trees.tree_map(lambda a, b: ops.where(pred, a, b), true_fun(*operands), false_fun(*operands))


def switch(index, branches, *operands):
    """Of the results of all branches the one of `index`, which is clamped."""
    if not (isinstance(index, Tracer) or getattr(index, "level", 0)):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    made = branches[-1](*operands)
    for number in reversed(range(len(branches) - 1)):
        made = trees.tree_map(lambda a, b: ops.where(ops.less_equal(index, number), a, b), branches[number](*operands), made)
    return made


def associative_scan(fn, elems, reverse=False, axis=0):
    """All partial results of an associative operation along an axis, by doubling steps."""
    leaves, form = trees.tree_flatten(elems)
    leaves = [ops.moveaxis(asarray(leaf), axis, 0) for leaf in leaves]
    leaves = [ops.flip(leaf, 0) for leaf in leaves] if reverse else leaves
    step, count = 1, leaves[0].shape[0]
    while step < count:
        joined = trees.tree_flatten(fn(trees.tree_unflatten(form, [leaf[:-step] for leaf in leaves]), trees.tree_unflatten(form, [leaf[step:] for leaf in leaves])))[0]
        leaves = [ops.concatenate([leaf[:step], new]) for leaf, new in zip(leaves, joined)]
        step *= 2
    leaves = [ops.flip(leaf, 0) for leaf in leaves] if reverse else leaves
    return trees.tree_unflatten(form, [ops.moveaxis(leaf, 0, axis) for leaf in leaves])
