# SPDX-License-Identifier: GPL-3.0-or-later
"""Control of programs: loops are the program's own. Outside of a program a loop is one; for many examples at once it is one of all of them."""
import copy
import inspect
import weakref

import numpy as np

from . import batching, dtypes, effects, explicit, jaxprs, ops, refs, trees
from .arrays import Scope, Tracer, asarray, astype, call, type_text
from .machine import machine
from .shardings import Mesh


class _Block:
    """A function as a block of a loop: traced for arguments like these, with what it uses of the outside."""

    def __init__(self, name, function, form, likes, choice=frozenset()):
        self.scope = Scope(name, transform=name)
        self.scope.choice = choice
        around = Scope._stack[-1] if Scope._stack else None
        if around is not None and around.joins:
            self.scope.recorded, self.scope.joins = [], True
        self.arguments = [self.scope.argument(like, shape=shape) for like, shape in likes]
        with self.scope:
            made = function(*trees.tree_unflatten(form, self.arguments))
            self.results, self.form = trees.tree_flatten(made)
            refs.no_refs(self.results, f"traced for {name}")
            self.results = [asarray(result) for result in self.results]
            self.late = effects.wanted_later(self.scope)
        self.captures = self.scope.captures
        self.changed = [held.ref for held in refs.changed(self.scope)]  # refs from outside: of a loop they are further carries

    def jaxpr(self):
        made = jaxprs.Jaxpr(self.scope, self.arguments, self.results)
        made.check()
        return made

    @property
    def function(self):
        return self.scope.finished(self.results + self.late)

    def operands(self, own, changed, first):
        """For each argument of the block the operand of a loop: its own ones, then refs among `changed` where these are, and what is left from `first` on."""
        for value in self.results + effects.wanted(self.scope):
            self.scope.number(value)  # what a turn gives or shows of the outside, it takes too
        numbers, rest = list(own), []
        for capture in self.captures:
            at = next((at for at, ref in enumerate(changed) if ref is capture), None)
            if at is None:
                rest.append(capture)
            numbers.append(first + len(rest) - 1 if at is None else len(own) + at)
        return numbers, refs.resolved(rest)


def _record(op, jaxprs_, operands, results, **attributes):
    """Notes an op with blocks where what is traced is shown. `jaxprs_` by their names; what they take from outside are its first operands."""
    taken = [one for jaxpr in jaxprs_.values() for one in jaxpr.taken()]
    Scope._stack[-1].recorded.append((op, [*taken, *operands], {**jaxprs_, **attributes}, results))


def _carried(name, function, carry, others):
    """The block of a function of a carry and more, and the carry's leaves: those that are weakly typed take the type that a turn gives them."""
    leaves, form = trees.tree_flatten(carry)
    leaves = [asarray(leaf) for leaf in leaves]
    other_likes, others_form = others
    whole = trees.tree_structure((trees.tree_unflatten(form, leaves), trees.tree_unflatten(others_form, list(range(len(other_likes))))))
    for _ in range(3):
        block = _Block(name, function, whole, [(leaf, leaf.shape) for leaf in leaves] + other_likes)
        after = block.results[:len(leaves)]
        changed = [new if leaf.weak_type and new.engine_dtype != leaf.engine_dtype and new.shape == leaf.shape
                   and dtypes.promoted([(leaf.engine_dtype, True), (new.engine_dtype, new.weak_type)])[0] == new.engine_dtype else None
                   for leaf, new in zip(leaves, after)]
        if all(new is None for new in changed):
            break
        leaves = [leaf if new is None else _typed(astype(leaf, new.engine_dtype), new.weak_type) for leaf, new in zip(leaves, changed)]
    return block, leaves, form


def _axes_of(x):
    """The axes of a manual computation over which a value is known to differ, where JAX checks them: nowhere else is there a type of them."""
    manual = next((scope for scope in reversed(Scope._stack) if scope.mesh is not None), None)
    return getattr(x, "varying", frozenset()) if manual is not None and manual.is_checked and machine.has_typed_meshes else frozenset()


def _differences(one, other):
    """What is not the same in two types, in JAX's words."""
    splits = [known and known[1] for known in (map(explicit.split_of, (one, other)) if Mesh.has_explicit and explicit.is_active() else ())]
    rows = (("the dtypes do not match", one.engine_dtype != other.engine_dtype), ("the shapes do not match", one.shape != other.shape),
            ("the manual axis types do not match", _axes_of(one) != _axes_of(other)),
            ("the shardings do not match", one.shape == other.shape and None not in splits and splits[:1] != splits[1:]))
    return [text for text, is_so in rows if is_so]


def _advice(rows):
    """Which values are to vary over more axes, of pairs of axes and what has them. Source of the text: jax-ml/jax, jax/_src/lax/control_flow/loops.py."""
    said = [f"applying `jax.lax.pcast(..., {tuple(sorted(axes))}, to='varying')`{to}" for axes, to in rows if axes]
    if not said:
        return ""
    listed = f" {said[0]}" if len(said) == 1 else ":\n" + ";\n".join(f"  * {one}" for one in said)
    return f"This might be fixed by{listed}.\nSee https://docs.jax.dev/en/latest/notebooks/shard_map.html#scan-vma for more information.\n\n"


def _check_carry(name, body, init, leaves, after):
    """Source of the text: jax-ml/jax, jax/_src/lax/control_flow/loops.py (_check_carry_type)."""
    if not any(map(_differences, leaves, after)):
        return
    try:
        carry = next(iter(inspect.signature(body).parameters), "")
    except (TypeError, ValueError):
        carry = ""
    paths = [path for path, _ in trees.tree_flatten_with_path(init)[0]]
    wrong = [(f"the input carry component {carry}{trees.keystr(path)}" if path else f"the input carry {carry}".rstrip(), leaf, new)
             for path, leaf, new in zip(paths, leaves, after) if _differences(leaf, new)]
    said = [f"{where} has type {explicit.text(leaf, False)} but the corresponding output carry component has type {explicit.text(new, False)}, so "
            + " and ".join(_differences(leaf, new)) for where, leaf, new in wrong]
    lines = ";\n".join(f"  * {one}" for one in said) if len(said) > 1 else said[0][0].upper() + said[0][1:]
    advice = _advice([(_axes_of(new) - _axes_of(leaf), f", to the initial carry value corresponding to {where}") for where, leaf, new in wrong])
    raise TypeError(f"{name} function carry input and carry output must have equal types, but they differ:\n\n{lines}.\n\n{advice}"
                    "Revise the function so that all output types match the corresponding input types.")


_as_functions = weakref.WeakKeyDictionary()  # loops outside of a program, by the function of a turn and what else says what they do


def _as_program(function, options, loop, *args):
    """Runs a loop as a program of its own; that of the same function is found again."""
    from .transforms import jit
    try:
        program = _as_functions.setdefault(function, {}).setdefault(options, jit(loop))
    except TypeError:  # what cannot be told apart from others
        program = jit(loop)
    return program(*args)


def _check_scanned(xs, leaves):
    """Source of the texts: jax-ml/jax, jax/_src/lax/control_flow/loops.py (_infer_scan_length)."""
    if any(not leaf.shape for leaf in leaves):
        raise ValueError("scan got value with no leading axis to scan over: " + ", ".join(str(leaf) for leaf in leaves if not leaf.shape) + ".")
    explicit.check_scanned(leaves)
    if len({leaf.shape[0] for leaf in leaves}) > 1:
        raise ValueError(f"scan got values with different leading axis sizes: {', '.join(str(leaf.shape[0]) for leaf in leaves)}.")


def scan(f, init, xs=None, length=None, reverse=False, unroll=1, *, _split_transpose=None):
    leaves, form = trees.tree_flatten(xs)
    leaves = [asarray(leaf) for leaf in leaves]
    if not callable(f):
        raise TypeError(f"lax.scan: f argument should be a callable, got {f!r} of type {type(f)}")
    if batching.Level.stack:
        return _scan_of_examples(f, init, leaves, form, length, reverse)
    _check_scanned(xs, leaves)
    if not leaves and length is None:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    count = int(length) if not leaves else leaves[0].shape[0]
    if leaves and length is not None and int(length) != count:
        raise ValueError(f"scan got `length` argument of {int(length)} which disagrees with leading axis sizes {[leaf.shape[0] for leaf in leaves]}.")
    if machine.runs_python or count < 1:
        return _unrolled(f, init, leaves, form, count, reverse)
    if not Scope._stack:
        return _as_program(f, ("scan", count, bool(reverse)), lambda init, xs: scan(f, init, xs, count, reverse), init, trees.tree_unflatten(form, leaves))

    def turn(carry, x):
        made = f(carry, x)
        if not isinstance(made, tuple):
            raise TypeError(f"scan body output must be a pair, got {made!r}.")
        if len(made) != 2:
            raise TypeError(f"scan body output must be a pair, got {made!r}.")
        return made
    block, carry, carry_form = _carried("scan", turn, init, ([(leaf, leaf.shape[1:]) for leaf in leaves], form))
    after_form = trees.tree_structure(trees.tree_unflatten(block.form, block.results)[0])
    if after_form != carry_form:
        raise TypeError("scan body function carry input and carry output must have the same pytree structure, but they differ:\n\nThe input carry has "
                        f"pytree structure {carry_form}, while the output carry has {after_form}.\n\nRevise the function so that the carry output has the "
                        "same pytree structure as the carry input.")
    _check_carry("scan body", f, init, carry, block.results)
    scope = Scope._stack[-1]
    # Carries, refs that the body changes, slices, and what else it takes from outside.
    split, whole = len(carry) + len(block.changed), len(carry) + len(block.changed) + len(leaves)
    at_carries, rest = block.operands(range(len(carry)), block.changed, whole)
    at = at_carries[:len(carry)] + list(range(split, whole)) + at_carries[len(carry):]
    operands = carry + refs.resolved(block.changed) + leaves + rest
    function = block.function if not block.changed else block.scope.finished(
        block.results[:len(carry)] + refs.results(block.scope) + block.results[len(carry):] + block.late)
    numbers = scope.core.repeat(function, at, [scope.number(operand) for operand in operands], count, split, len(leaves), bool(reverse))
    refs.happen(block.scope, [scope.tracer(number) for number in numbers[len(carry):split]])
    numbers = numbers[:len(carry)] + numbers[split:]
    results = [scope.tracer(number, result.weak_type) for number, result in zip(numbers, block.results)]
    for at, (result, of_turn) in enumerate(zip(results, block.results)):
        explicit.follow(result, of_turn, at >= len(carry)).varying = getattr(of_turn, "varying", frozenset())
    if scope.joins:
        jaxpr = block.jaxpr()
        consts = len(jaxpr.taken())
        _record("scan", {"jaxpr": jaxpr}, carry + leaves, results, _split_transpose=False, length=count, linear=(False,) * (consts + len(carry) + len(leaves)),
                num_carry=len(carry), num_consts=consts, reverse=bool(reverse), unroll=unroll)
    if block.late:
        effects.of_each_turn(block.scope, [scope.tracer(number) for number in numbers[len(results):]], count, reverse)
    return trees.tree_unflatten(block.form, results)


def _unrolled(f, carry, leaves, form, count, reverse):
    made = []
    for i in reversed(range(count)) if reverse else range(count):
        carry, y = f(carry, trees.tree_unflatten(form, [leaf[i] for leaf in leaves]))
        made.append(y)
    made = made[::-1] if reverse else made
    if made:
        return carry, trees.tree_map(lambda *ys: ops.stack(ys), *made)
    from .transforms import eval_shape
    _, ys = eval_shape(f, carry, trees.tree_unflatten(form, [ops.full(leaf.shape[1:], 0, leaf.engine_dtype) for leaf in leaves]))
    return carry, trees.tree_map(lambda y: ops.full((0,) + y.shape, 0, y.engine_dtype), ys)


class _Wider(Exception):
    """More of a loop's carry differs from example to example of a vmap than was thought."""

    def __init__(self, level, numbers):
        self.level, self.numbers = level, numbers


def _of_examples(outside, init, run):
    """A loop of all examples. `run(carry, turn)` carries it out, where `turn(function)` makes a function of leaves of examples one of whole arrays, and
    gives the final carry. What differs from example to example is found by trying."""
    leaves, form = trees.tree_flatten(init)
    leaves = [asarray(leaf) for leaf in leaves]
    differs = [outside.is_example(leaf) for leaf in leaves]

    def examples(wholes):
        return trees.tree_unflatten(form, [outside.example(whole) if own else whole for whole, own in zip(wholes, differs)])

    def carried(made):
        after = [asarray(leaf) for leaf in trees.tree_leaves(made)]
        more = [number for number, (leaf, own) in enumerate(zip(after, differs)) if outside.is_example(leaf) and not own]
        if more:
            raise _Wider(outside.level, more)
        return [outside.whole(leaf) if own else leaf for leaf, own in zip(after, differs)]
    while True:
        try:
            return trees.tree_unflatten(form, [outside.example(leaf) if own else leaf for leaf, own in zip(
                run([outside.whole(leaf) if own else leaf for leaf, own in zip(leaves, differs)], examples, carried), differs)])
        except _Wider as found:
            if found.level != outside.level:
                raise
            for number in found.numbers:
                differs[number] = True


def _scan_of_examples(f, init, leaves, form, length, reverse):
    with batching.Outside() as outside:
        own = [outside.is_example(leaf) for leaf in leaves]
        slices = [ops.moveaxis(leaf.value, 1, 0) if is_own else leaf for leaf, is_own in zip(leaves, own)]
        found = {}

        def run(carry, examples, carried):
            def turn(carry, xs):
                x = trees.tree_unflatten(form, [outside.example(x) if is_own else x for x, is_own in zip(xs, own)])
                made, y = outside.inside(f, examples(carry), x)
                ys, found["form"] = trees.tree_flatten(y)
                ys = [asarray(y) for y in ys]
                found["differ"] = [outside.is_example(y) for y in ys]
                return carried(made), [outside.whole(y) if differs else y for y, differs in zip(ys, found["differ"])]
            carry, found["ys"] = scan(turn, carry, slices, length, reverse)
            return carry
        carry = _of_examples(outside, init, run)
        ys = [outside.example(ops.moveaxis(y, 1, 0)) if differs else y for y, differs in zip(found["ys"], found["differ"])]
        return carry, trees.tree_unflatten(found["form"], ys)


def map_(f, xs, *, batch_size=None):
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    is_traced = lambda x: isinstance(x, Tracer) or getattr(x, "level", 0)
    first, last = asarray(lower), asarray(upper)
    are_whole = all(dtypes.is_integer(one.engine_dtype) for one in (first, last))
    if first.engine_dtype != last.engine_dtype and not (are_whole and first.weak_type != last.weak_type):
        raise TypeError(f"lower and upper arguments to fori_loop must have equal types, got {first.dtype} and {last.dtype}")
    if is_traced(lower) or is_traced(upper) or not are_whole:
        return while_loop(lambda carry: ops.less(carry[0], last), lambda carry: (ops.add(carry[0], 1), body_fun(*carry)),
                          (astype(first, last.engine_dtype), init_val))[1]
    lower, upper = int(lower), int(upper)
    if machine.runs_python or upper <= lower:
        for i in range(lower, upper):
            init_val = body_fun(asarray(i), init_val)
        return init_val
    if not (Scope._stack or batching.Level.stack):
        return _as_program(body_fun, ("fori_loop", lower, upper), lambda init: fori_loop(lower, upper, body_fun, init), init_val)
    return scan(lambda loop_carry, i: (body_fun(i, loop_carry), None), init_val, _typed(ops.arange(lower, upper), True))[0]


def while_loop(cond_fun, body_fun, init_val):
    if batching.Level.stack:
        return _while_of_examples(cond_fun, body_fun, init_val)
    if machine.runs_python:
        while bool(cond_fun(init_val)):
            init_val = body_fun(init_val)
        return init_val
    if not Scope._stack:
        return _as_program(body_fun, ("while_loop", cond_fun), lambda init: while_loop(cond_fun, body_fun, init), init_val)
    body, carry, form = _carried("while_loop", lambda carry, _: body_fun(carry), init_val, ([], trees.tree_structure(None)))
    if body.form != form:
        raise TypeError("while_loop body function carry input and carry output must have the same pytree structure, but they differ:\n\nThe input carry has "
                        f"pytree structure {form}, while the output carry has {body.form}.\n\nRevise the function so that the carry output has the same pytree "
                        "structure as the carry input.")
    _check_carry("while_loop body", body_fun, init_val, carry, body.results)
    condition = _Block("while_loop", lambda carry, _: cond_fun(carry), trees.tree_structure((init_val, None)), [(leaf, leaf.shape) for leaf in carry])
    if [(result.engine_dtype, result.shape) for result in condition.results] != [("i1", ())]:
        raise TypeError(f"cond_fun must return a boolean scalar, but got output type(s) [{', '.join(map(type_text, condition.results))}].")
    if body.late or condition.late:
        import warnings
        warnings.warn("what a while_loop prints is not shown here: how often it turns is not known", stacklevel=2)
    scope = Scope._stack[-1]
    if condition.changed:
        raise NotImplementedError("jax.lax.while_loop whose cond_fun writes to a mutable array reference: write to it in body_fun")
    from . import custom
    if not body.changed and custom.is_forward([*carry, *body.operands((), (), 0)[1]]):
        return trees.tree_unflatten(form, _while_along(condition, body, carry))
    carries = len(carry) + len(body.changed)
    of_condition, more = condition.operands(range(len(carry)), body.changed, carries)
    of_body, rest = body.operands(range(len(carry)), body.changed, carries + len(more))
    operands = carry + refs.resolved(body.changed) + more + rest
    numbers = scope.core.while_loop(condition.scope.finished(condition.results), of_condition,
                                    body.scope.finished(body.results + refs.results(body.scope)), of_body,
                                    [scope.number(operand) for operand in operands], carries)
    refs.happen(body.scope, [scope.tracer(number) for number in numbers[len(carry):]])
    results = [explicit.follow(scope.tracer(number, leaf.weak_type), leaf) for number, leaf in zip(numbers, carry)]
    for result, of_turn in zip(results, body.results):
        result.varying = getattr(of_turn, "varying", frozenset())
    if scope.joins:
        jaxpr_of = {"cond_jaxpr": condition.jaxpr(), "body_jaxpr": body.jaxpr()}
        _record("while", jaxpr_of, carry, results, cond_nconsts=len(jaxpr_of["cond_jaxpr"].taken()), body_nconsts=len(jaxpr_of["body_jaxpr"].taken()))
    return trees.tree_unflatten(form, results)


def _while_along(condition, body, carry):
    """A loop that is differentiated along tangents: these are carried, too. Of the function that takes cotangents back nobody looks at more than its derivative,
    which is that loop (see `transforms.jvp`)."""
    from .custom import _with_rule
    from .transforms import jvp
    (_, more), (_, rest) = (block.operands(range(len(carry)), [], len(carry)) for block in (condition, body))
    goes_on, turn = condition.scope.finished(condition.results), body.scope.finished(body.results)
    leaves = [*carry, *rest, *more]
    is_smooth = [dtypes.is_inexact(leaf.engine_dtype) for leaf in leaves[:len(carry) + len(rest)]]
    of_carry = [at for at, leaf in enumerate(carry) if is_smooth[at]]

    def run(given, steps, of_turn):
        """The loop, `of_turn` of which gives a turn's carry and tangents, of what both are and what the body takes from outside."""
        first, fixed, known = given[:len(carry)], given[len(carry):len(is_smooth)], given[len(is_smooth):]
        return while_loop(lambda state: call(goes_on, [*state[0], *known])[0], lambda state: of_turn([*state[0], *fixed], state[1]), (first, steps))

    def forward(given):
        return run(given, [], lambda values, _: (call(turn, values), []))[0], given

    def backward(read, cotangents):
        def along(_, steps):
            steps = iter(steps)
            tangents = [next(steps) if smooth else None for smooth in is_smooth]

            def turned(values, of_values):
                own = iter(of_values)
                moved = [next(own) if at < len(carry) else tangents[at] for at, smooth in enumerate(is_smooth) if smooth]

                def of_smooth(*given):
                    given = iter(given)
                    made = call(turn, [next(given) if smooth else value for value, smooth in zip(values, is_smooth)])
                    return [made[at] for at in of_carry], made
                _, changes, made = jvp(of_smooth, [value for value, smooth in zip(values, is_smooth) if smooth], moved, has_aux=True)
                return made, changes
            return run(read, [tangents[at] for at in of_carry], turned)[1]
        nothing = [ops.zeros_like(leaf) for leaf, smooth in zip(leaves, is_smooth) if smooth]
        made = iter(_with_rule(lambda _: (nothing, []), along, [cotangents[at] for at in of_carry]))
        return [next(made) if smooth else None for smooth in is_smooth] + [None] * len(more)
    return _with_rule(forward, backward, leaves)


def _while_of_examples(cond_fun, body_fun, init_val):
    """Turns as long as one of the examples goes on; those that do not stay as they are."""
    with batching.Outside() as outside:
        def run(carry, examples, carried):
            goes_on = lambda carry: asarray(outside.inside(cond_fun, examples(carry)))
            found = {}

            def condition(carry):
                on = goes_on(carry)
                found["each"] = outside.is_example(on)
                return ops.reduce("or", on.value) if found["each"] else on

            def turn(carry):
                with refs.Branch() as changes:
                    on, after = goes_on(carry), carried(outside.inside(body_fun, examples(carry)))
                if changes.after:
                    raise NotImplementedError("jax.vmap of a jax.lax.while_loop whose body writes to a mutable array reference: carry its value in the loop")
                if not outside.is_example(on):
                    return after
                whole = on.value
                kept = []
                for number, (new, old) in enumerate(zip(after, carry)):
                    if not outside.is_example(asarray(trees.tree_leaves(examples(carry))[number])):
                        raise _Wider(outside.level, [number])
                    kept.append(ops.where(ops.reshape(whole, whole.shape + (1,) * (new.ndim - 1)), new, old))
                return kept
            return while_loop(condition, turn, carry)
        return _of_examples(outside, init_val, run)


def _is_traced(x):
    return isinstance(x, Tracer) and x.scope.value_of(x) is None or getattr(x, "level", 0)


def _as_arrays(operands):
    """What branches are given: they are traced, so a number of Python is an array there."""
    if machine.runs_python:
        return operands
    return trees.tree_map(lambda leaf: asarray(leaf) if isinstance(leaf, (bool, int, float, complex, np.generic, np.ndarray)) else leaf, operands)


def _taken(name, at, functions, operands):
    """What the function at this place gives. The others are looked at only: all give the same types."""
    if machine.runs_python:
        return functions[at](*operands)
    made = []
    for number, function in enumerate(functions):
        if number == at:
            made.append(function(*operands))
            refs.no_refs(trees.tree_leaves(made[-1]), f"traced for {name}")
            continue
        with refs.Branch():
            block = _Block(name, lambda: function(*operands), trees.tree_structure(()), [])
        made.append(trees.tree_unflatten(block.form, block.results))
    _same_types(name, made)
    rows = zip(*map(trees.tree_leaves, made))
    leaves, form = trees.tree_flatten(made[at])
    return trees.tree_unflatten(form, [_typed(asarray(leaf), all(asarray(one).weak_type for one in row)) for leaf, row in zip(leaves, rows)])


def _typed(x, weak):
    if x.weak_type == weak:
        return x
    made = copy.copy(x)
    made.weak_type = weak
    return made


def _chosen(name, which, functions, operands):
    """What one of the functions gives: `which` is its number, or a truth value for the first or the second. The others are not carried out."""
    holds = [which, ops.logical_not(which)] if which.engine_dtype == "i1" else [ops.equal(which, number) for number in range(len(functions))]
    if which.level:
        return _chosen_of_examples(name, holds, functions, operands)
    blocks = [_Block(name, lambda function=function: function(*operands), trees.tree_structure(()), [], which.varying) for function in functions]
    _same_types(name, [trees.tree_unflatten(block.form, block.results) for block in blocks], which.varying)
    rows = [(row, dtypes.promoted([(one.engine_dtype, one.weak_type) for one in row]), sorted(set().union(*map(batching.levels, row))))
            for row in zip(*[block.results for block in blocks])]
    changed = list({id(held.ref): held.ref for block in blocks for held in refs.changed(block.scope)}.values())
    late = [(block, leaf) for block in blocks for leaf in block.late]
    programs = []
    for at, block in enumerate(blocks):
        with block.scope:
            given = [refs.raw(batching.of_levels(astype(row[at], engine), levels)) for row, (engine, _), levels in rows]
            if block.scope.evens:
                from .transforms import evened
                along = [frozenset().union(*[getattr(refs.raw(other), "varying", ()) for other in row]) for row, _, _ in rows]
                given = [evened([one], axes)[0] for one, axes in zip(given, along)]
            given += [refs.raw(ref.read()) for ref in changed]
            given += [leaf if owner is block else ops.full(leaf.shape, 0, leaf.engine_dtype) for owner, leaf in late]
            programs.append(block.scope.finished(given))
    scope = Scope._stack[-1]
    used = list({id(capture): capture for block in blocks for capture in block.captures}.values())
    places = {id(capture): place for place, capture in enumerate(used)}
    taken = [which, *refs.resolved(used)]
    numbers = scope.core.choose([(program, [places[id(capture)] for capture in block.captures]) for program, block in zip(programs, blocks)],
                                [scope.number(one) for one in taken])
    made = [scope.tracer(number, of=taken) for number in numbers]
    for one, (row, *_) in zip(made, rows):
        one.varying = which.varying.union(*[getattr(refs.raw(given), "varying", ()) for given in row])
    results = []
    for one, (row, (_, weak), levels) in zip(made, rows):
        one.weak_type = weak
        for level in levels:
            one = batching.BatchTracer(one, level, weak)
        results.append(one if levels else explicit.follow(one, next((given for given in row if explicit.split_of(given) is not None), row[0])))
    for ref, value in zip(changed, made[len(rows):]):
        ref.put(refs.alike(value, ref.read()))
    if scope.joins:
        _record_choice(which, blocks, results)
    values = iter(made[len(rows) + len(changed):])
    for held, block in zip(holds, blocks):
        for happen, leaves in block.scope.effects:
            scope.effects.append((_where_it_holds(happen), [held, *[next(values) for _ in leaves]]))
    return trees.tree_unflatten(blocks[0].form, results)


def _record_choice(which, blocks, results):
    """A choice as JAX has it: branches by their number, which of a truth value is 0 for false, and all take the same from outside."""
    scope, branches = Scope._stack[-1], [block.jaxpr() for block in blocks]
    if which.engine_dtype == "i1":
        branches.reverse()
        which = astype(which, "i32")
    taken = list({jaxprs.key(one): one for jaxpr in branches for one in jaxpr.taken()}.values())
    for jaxpr in branches:
        jaxpr.takes = taken
    scope.recorded.append(("cond", [which, *taken], {"branches": tuple(branches)}, results))


def _where_it_holds(happen):
    return lambda values: happen(values[1:]) if bool(values[0]) else None


def _chosen_of_examples(name, holds, functions, operands):
    """The same where each example chooses: all are carried out. What one leaves in refs, they hold where it was chosen."""
    made = []
    for function, held in zip(functions, holds):
        with refs.Branch() as changes:
            made.append((function(*operands), changes))
        refs.no_refs(trees.tree_leaves(made[-1][0]), f"traced for {name}")
    for held, (_, changes) in zip(holds, made):
        for ref, value in changes.after.values():
            ref.put(ops.where(held, value, ref.read()))
    made = [one for one, _ in made]
    _same_types(name, made)
    result = made[-1]
    for held, one in reversed(list(zip(holds, made[:-1]))):
        result = trees.tree_map(lambda a, b: ops.where(held, a, b), one, result)
    return result


def _same_types(name, made, along=frozenset()):
    """That branches give the same types. `along`: the axes over which devices take different ones, over which all results differ. Source of the text: jax-ml/jax,
    jax/_src/lax/control_flow/conditionals.py."""
    names = lambda at: ("true_fun", ("true_fun", "false_fun")[at]) if name == "cond" else ("branch 0", f"branch{at}")
    forms = [trees.tree_structure(one) for one in made]
    if at := next((at for at, form in enumerate(forms) if form != forms[0]), None):
        one, other = names(at)
        raise TypeError(f"{name} branch outputs must have the same pytree structure, but they differ:\n\n{one} output has pytree structure {forms[0]}, while "
                        f"{other} output has {forms[at]}.\n\nRevise {one} and/or {other} so that they have the same pytree structure.")
    for leaves in zip(*[[asarray(leaf) for leaf in trees.tree_leaves(one)] for one in made]):
        if at := next((at for at, leaf in enumerate(leaves) if (leaf.shape, leaf.engine_dtype) != (leaves[0].shape, leaves[0].engine_dtype)), None):
            one, other = names(at)
            raise TypeError(f"{name} branches must have equal output types but they differ.\n\nThe output of {one} has type {type_text(leaves[0])} but the "
                            f"corresponding output of {other} has type {type_text(leaves[at])}, so {' and '.join(_differences(leaves[0], leaves[at]))}.\n\n"
                            f"Revise {one} and/or {other} so that all output types match.")
        axes = [_axes_of(leaf) | along for leaf in leaves]
        if any(own != axes[0] for own in axes):
            at = next(at for at, own in enumerate(axes) if own != axes[0])
            one, other = names(at)
            advice = _advice([(axes[at] - axes[0], f" to the output of {one}"), (axes[0] - axes[at], f" to the output of {other}")])
            raise TypeError(f"{name} branches must have equal output types but they differ.\n\nThe output of {one} has type {explicit.text(leaves[0], False)} but the "
                            f"corresponding output of {other} has type {explicit.text(leaves[at], False)}, so the manual axis types do not match.\n\n{advice}"
                            f"Revise {one} and/or {other} so that all output types match.")


_NO_OPERAND = object()


def cond(pred, true_fun, false_fun, *operands, operand=_NO_OPERAND, linear=None):
    operands = _as_arrays(operands if operand is _NO_OPERAND else (operand,))
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    if isinstance(pred, (tuple, list)) or hasattr(pred, "shape") and pred.shape != ():
        raise TypeError(f"Pred must be a scalar, got {pred} of {'shape ' + str(pred.shape) if hasattr(pred, 'shape') else 'type ' + str(type(pred))}.")
    if not _is_traced(pred):
        return _taken("cond", 0 if bool(pred) else 1, [true_fun, false_fun], operands)
    return _chosen("cond", ops.not_equal(pred, 0) if asarray(pred).engine_dtype != "i1" else asarray(pred), [true_fun, false_fun], operands)


def switch(index, branches, *operands, operand=_NO_OPERAND):
    """Of the results of all branches the one of `index`, which is clamped."""
    operands = _as_arrays(operands if operand is _NO_OPERAND else (operand,))
    if not branches:
        raise ValueError("Empty branch sequence")
    if not dtypes.is_integer(asarray(index).engine_dtype):
        raise TypeError(f"Index type must be an integer, got {asarray(index).dtype}")
    if not _is_traced(index):
        return _taken("switch", min(max(int(index), 0), len(branches) - 1), branches, operands)
    return _chosen("switch", astype(ops.clip(index, 0, len(branches) - 1), "i32"), branches, operands)


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
