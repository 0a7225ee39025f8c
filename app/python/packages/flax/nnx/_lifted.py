# SPDX-License-Identifier: GPL-3.0-or-later
"""vmap and scan of functions of modules: within, each variable is a slice of what it is outside, along the axis that its filter says."""
import functools

import jax
from jax._src.trees import tree_flatten, tree_unflatten

from ._graph import adopt, is_graph, lent, matches, variables_of, walk
from ._spmd import PARTITION_NAME, place


class Carry:
    """Marks the argument and the result that a turn hands to the next."""


class StateAxes:
    """The axis of each variable by the first filter that means it."""

    def __init__(self, mapping):
        self._pairs = [(chosen, axis) for chosen, axis in (mapping.items() if isinstance(mapping, dict) else mapping)]

    def axis_of(self, path, variable):
        for chosen, axis in self._pairs:
            if matches(chosen, path, variable):
                return axis
        raise ValueError(f"No filter of StateAxes means {'/'.join(map(str, path))}")

    def __repr__(self):
        return f"StateAxes({dict(self._pairs)!r})"


def prefix(node, filter_map, *, graph=None):
    """The same, for one node."""
    return StateAxes(filter_map) if isinstance(filter_map, dict) else _Called(filter_map)


class _Called(StateAxes):
    def __init__(self, function):
        self._function = function

    def axis_of(self, path, variable):
        return self._function(path, variable)


def _per_argument(axes, args):
    return list(axes) if isinstance(axes, (tuple, list)) else [axes] * len(args)


def _placed(axes, value, path=()):
    """(path, variable, axis) of all variables of an argument. `axes` may be a tree of axes above it."""
    if isinstance(axes, (dict, list, tuple)) and type(axes) is type(value) and not isinstance(axes, StateAxes):
        items = axes.items() if isinstance(axes, dict) else enumerate(axes)
        for name, own in items:
            yield from _placed(own, value[name], path + (name,))
        return
    for own_path, variable in variables_of(value):
        yield path + own_path, variable, axes.axis_of(own_path, variable) if isinstance(axes, StateAxes) else axes


def _checked(rows):
    """One axis for each variable. Source of the text: google/flax, flax/nnx/extract.py (check_consistent_aliasing)."""
    seen = {}
    for path, variable, axis in rows:
        seen.setdefault(id(variable), (variable, []))[1].append((path, axis))
    wrong = [(variable, places) for variable, places in seen.values() if len({str(axis) for _, axis in places}) > 1]
    if wrong:
        text = "".join(f"\nNode: {type(variable).__name__}\n" + "\n".join(f"  {'.'.join(map(str, path[-1:]))}: {axis}" for path, axis in _to_first_other(places))
                       for variable, places in wrong)
        raise ValueError(f"Inconsistent aliasing detected. The following nodes have different prefixes:{text}")
    return [(variable, places[0][1]) for variable, places in seen.values()]


def _to_first_other(places):
    """Those up to the first whose axis is another."""
    at = next(number for number, (_, axis) in enumerate(places) if str(axis) != str(places[0][1]))
    return places[:at + 1]


def _all_paths(axes, value, path=()):
    """The same with a variable for each way to it."""
    if isinstance(axes, (dict, list, tuple)) and type(axes) is type(value):
        for name, own in axes.items() if isinstance(axes, dict) else enumerate(axes):
            yield from _all_paths(own, value[name], path + (name,))
        return
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _all_paths(axes, part, path + (name,))
    elif isinstance(value, (list, tuple)):
        for number, part in enumerate(value):
            yield from _all_paths(axes, part, path + (number,))
    else:
        yield from _placed(axes, value, path)


class _Named:
    """Within it, variables lack the name of the dimension that a transform takes."""

    def __init__(self, rows, metadata):
        self._name = (metadata or {}).get(PARTITION_NAME)
        self._rows = [(variable, axis) for variable, axis in rows if isinstance(axis, int)] if metadata and PARTITION_NAME in metadata else []

    def __enter__(self):
        self._before = [variable._metadata.get("sharding") for variable, _ in self._rows]
        for variable, axis in self._rows:
            if variable._metadata.get("sharding"):
                names = list(variable._metadata["sharding"])
                del names[axis % len(names)]
                variable._metadata["sharding"] = tuple(names)

    def __exit__(self, *_):
        for (variable, _), before in zip(self._rows, self._before):
            if before is not None:
                variable._metadata["sharding"] = before


def _with_name(variables, axes, metadata):
    if metadata is None or PARTITION_NAME not in metadata:
        return
    for variable, axis in zip(variables, axes):
        names = variable._metadata.get("sharding")
        if names is not None and isinstance(axis, int):
            names = list(names)
            names.insert(axis % (len(names) + 1), metadata[PARTITION_NAME])
            variable._metadata["sharding"] = tuple(names)
            place(variable)


def _plain(tree):
    leaves, form = tree_flatten(tree, is_graph)
    return [leaf for leaf in leaves if not is_graph(leaf)], leaves, form


def _given(leaves, form, values):
    """What a function gave, with its results: objects that it made are no longer within it."""
    for _, node in walk(leaves):
        adopt(node)
    return _rebuilt(leaves, form, values)


def _rebuilt(leaves, form, values):
    given = iter(values)
    return tree_unflatten(form, [leaf if is_graph(leaf) else next(given) for leaf in leaves])


def _set(variables, values):
    with lent(variables):
        for variable, value in zip(variables, values):
            variable.value = value


def vmap(f=None, *, in_axes=0, out_axes=0, axis_size=None, axis_name=None, transform_metadata=None, graph=None, graph_updates=None, spmd_axis_name=None):
    """jax.vmap of a function of objects."""
    if f is None:
        return functools.partial(vmap, in_axes=in_axes, out_axes=out_axes, axis_size=axis_size, axis_name=axis_name, transform_metadata=transform_metadata)

    @functools.wraps(f)
    def mapped(*args, **kwargs):
        axes = _per_argument(in_axes, args)
        rows = [row for own, arg in zip(axes, args) for row in _all_paths(own, arg)]
        rows += [row for arg in kwargs.values() for row in _all_paths(0, arg)]
        known = _checked(rows)
        known = [(variable, axis) for variable, axis in known if variable.value is not None]
        variables, own_axes = [variable for variable, _ in known], [axis for _, axis in known]
        before = [variable.value for variable in variables]
        plain = [_plain(arg) for arg in args]
        found = {}

        def pure(values, parts, keywords):
            _set(variables, values)
            with _Named(known, transform_metadata), lent(variables, (args, kwargs)):
                made = f(*[_rebuilt(leaves, form, part) for (_, leaves, form), part in zip(plain, parts)], **keywords)
            after = list(variables)
            after_axes = list(own_axes)
            for own, arg in zip(axes, args):
                for path, variable, axis in _all_paths(own, arg):
                    if not any(variable is other for other in after):
                        after.append(variable), after_axes.append(axis)
            outs, found["leaves"], found["form"] = _plain(made)
            out_rows = list(_all_paths(out_axes, made))
            _checked(rows + [row for row in out_rows if any(row[1] is one for one in variables)])
            fresh = []
            for _, variable, axis in out_rows:
                if not any(variable is other for other in after):
                    after.append(variable), after_axes.append(axis), fresh.append(variable)
            found.update(after=after, fresh=fresh, axes=after_axes)
            target[0][:] = [axis if isinstance(axis, int) else None for axis in after_axes]
            target[1][:] = _out_axes(out_axes, found["leaves"], found["form"])
            return [variable.value for variable in after], outs

        target = [], []
        value_axes = [axis if isinstance(axis, int) else None for axis in own_axes]
        part_axes = [_leaf_axes(axis, part) for axis, part in zip(axes, plain)]
        try:
            values, outs = jax.vmap(pure, in_axes=(value_axes, part_axes, 0), out_axes=target, axis_size=axis_size, axis_name=axis_name)(
                before, [part[0] for part in plain], kwargs)
        finally:
            _set(variables, before)
        _set(found["after"], values)
        made = _given(found["leaves"], found["form"], outs)
        own = [variable for variable in found["after"] if any(variable is one for one in found["fresh"])]
        _with_name(own, [axis for variable, axis in zip(found["after"], found["axes"]) if any(variable is one for one in own)], transform_metadata)
        return made
    return mapped


def _leaf_axes(axis, part):
    """Axes of the leaves of an argument that are no objects."""
    plain, leaves, form = part
    if axis is None or isinstance(axis, (int, StateAxes)):
        return [None if isinstance(axis, StateAxes) else axis] * len(plain)
    from jax._src.trees import prefix_leaves
    own = prefix_leaves(axis, form, None, is_leaf=lambda one: one is None or isinstance(one, (int, StateAxes)))
    return [one for one, leaf in zip(own, leaves) if not is_graph(leaf)]


def _out_axes(axes, leaves, form):
    if axes is None or isinstance(axes, (int, StateAxes)):
        return [axes if isinstance(axes, int) else None] * sum(not is_graph(leaf) for leaf in leaves)
    from jax._src.trees import prefix_leaves
    own = prefix_leaves(tuple(axes) if isinstance(axes, list) else axes, form, None, is_leaf=lambda one: one is None or isinstance(one, (int, StateAxes)))
    return [one for one, leaf in zip(own, leaves) if not is_graph(leaf)]


class _Changes(Exception):
    """A turn changes variables that were thought to stay as they are."""

    def __init__(self, numbers):
        self.numbers = numbers


def scan(f=None, *, length=None, reverse=False, unroll=1, in_axes=(Carry, 0), out_axes=(Carry, 0), transform_metadata=None, graph=None, graph_updates=None, _split_transpose=None):
    """jax.lax.scan of a function of objects: a variable is in each turn the slice of it along its axis, or is handed on."""
    if f is None:
        return functools.partial(scan, length=length, reverse=reverse, in_axes=in_axes, out_axes=out_axes, transform_metadata=transform_metadata)

    @functools.wraps(f)
    def scanned(*args):
        axes = _per_argument(in_axes, args)
        carried = next((number for number, axis in enumerate(axes) if axis is Carry), None)
        rows = _checked([row for own, arg in zip(axes, args) for row in _all_paths(own, arg)])
        variables, own_axes = [variable for variable, _ in rows], [axis for _, axis in rows]
        before = [variable.value for variable in variables]
        handed = {number for number, axis in enumerate(own_axes) if axis is Carry}
        plain = [_plain(arg) for arg in args]
        xs_axes = [_leaf_axes(None if axis is Carry else axis, part) for axis, part in zip(axes, plain)]
        xs = [[jax.numpy.moveaxis(leaf, axis, 0) for leaf, axis in zip(part[0], own) if isinstance(axis, int)] for part, own in zip(plain, xs_axes)]
        found = {}
        while True:
            slices = [number for number, axis in enumerate(own_axes) if isinstance(axis, int)]

            def turn(carry, given, handed=tuple(sorted(handed)), slices=tuple(slices)):
                (state, values), (parts, sliced) = carry, given
                now = list(before)
                for numbers, some in ((handed, values), (slices, sliced)):
                    for number, value in zip(numbers, some):
                        now[number] = value
                _set(variables, now)
                whole = []
                for number, (kept, leaves, form) in enumerate(plain):
                    if number == carried:
                        whole.append(_rebuilt(leaves, form, state))
                        continue
                    rest = iter(parts[number])
                    whole.append(_rebuilt(leaves, form, [next(rest) if isinstance(axis, int) else leaf for leaf, axis in zip(kept, xs_axes[number])]))
                with _Named(rows, transform_metadata), lent(variables, args):
                    made = f(*whole)
                after = [variable.value for variable in variables]
                changed = [number for number, (old, new) in enumerate(zip(now, after)) if old is not new and number not in handed and number not in slices]
                if changed:
                    raise _Changes(changed)
                found["changed"] = [number for number in slices if after[number] is not now[number]]
                new, out = _taken(made, out_axes)
                new_plain, found["carry_leaves"], found["carry_form"] = _plain(new)
                outs, found["leaves"], found["form"] = _plain(out)
                found["fresh"] = [variable for _, variable in variables_of(out) if not any(variable is one for one in variables)]
                return (new_plain, [after[number] for number in handed]), (outs, [after[number] for number in found["changed"]],
                                                                          [variable.value for variable in found["fresh"]])

            over = ([list(part) for part in xs], [jax.numpy.moveaxis(_array(before[number]), own_axes[number], 0) if own_axes[number] else before[number]
                                                   for number in slices])
            start = (plain[carried][0] if carried is not None else [], [before[number] for number in sorted(handed)])
            try:
                (last, values), (outs, changed, fresh) = jax.lax.scan(turn, start, over, length=length, reverse=reverse)
                break
            except _Changes as more:
                handed |= set(more.numbers)
            finally:
                _set(variables, before)
        _set([variables[number] for number in sorted(handed)], values)
        _set([variables[number] for number in found["changed"]],
             [jax.numpy.moveaxis(value, 0, own_axes[number]) if own_axes[number] else value for number, value in zip(found["changed"], changed)])
        out_axis = _out_axes(_of_outs(out_axes), found["leaves"], found["form"])
        outs = [jax.numpy.moveaxis(out, 0, axis) if axis else out for out, axis in zip(outs, out_axis)]
        _set(found["fresh"], fresh)
        for variable in found["fresh"]:
            adopt(variable)
        _with_name(found["fresh"], [0] * len(fresh), transform_metadata)
        new = _given(found["carry_leaves"], found["carry_form"], last)
        return _given_back(new, _given(found["leaves"], found["form"], outs), out_axes)
    return scanned


def _array(value):
    return value if hasattr(value, "ndim") and not hasattr(value, "_data") else jax.numpy.asarray(value)


def _taken(made, out_axes):
    """The carry and the rest of what a turn gives."""
    if out_axes is Carry:
        return made, None
    if isinstance(out_axes, (tuple, list)) and Carry in out_axes:
        at = list(out_axes).index(Carry)
        rest = [part for number, part in enumerate(made) if number != at]
        return made[at], rest[0] if len(rest) == 1 else tuple(rest)
    return None, made


def _of_outs(out_axes):
    if out_axes is Carry:
        return 0
    if isinstance(out_axes, (tuple, list)) and Carry in out_axes:
        rest = [axis for axis in out_axes if axis is not Carry]
        return rest[0] if len(rest) == 1 else tuple(rest)
    return out_axes


def _given_back(carry, out, out_axes):
    if out_axes is Carry:
        return carry
    if isinstance(out_axes, (tuple, list)) and Carry in out_axes:
        rest = [out] if len(out_axes) == 2 else list(out)
        rest.insert(list(out_axes).index(Carry), carry)
        return tuple(rest)
    return out


# ---- control

def _lifted(functions, args, apply):
    """A transformation of jax.lax of functions of objects: their variables are handed on beside their arguments."""
    variables = [variable for _, variable in variables_of(args)]
    before = [variable.value for variable in variables]
    plain, leaves, form = _plain(args)
    found = {}

    def pure_of(function):
        def pure(values, parts):
            _set(variables, values)
            try:
                with lent(variables, args):
                    outs, out_leaves, out_form = _plain(function(*_rebuilt(leaves, form, parts)))
                found.setdefault("leaves", out_leaves), found.setdefault("form", out_form)
                return [variable.value for variable in variables], outs
            finally:
                _set(variables, before)
        return pure
    values, outs = apply([pure_of(function) for function in functions], before, plain)
    _set(variables, values)
    return _given(found["leaves"], found["form"], outs)


def cond(pred, true_fun, false_fun, *operands):
    return _lifted([true_fun, false_fun], operands, lambda pures, values, parts: jax.lax.cond(pred, *pures, values, parts))


def switch(index, branches, *operands):
    return _lifted(list(branches), operands, lambda pures, values, parts: jax.lax.switch(index, pures, values, parts))


def while_loop(cond_fun, body_fun, init_val):
    def apply(pures, values, parts):
        body, condition = pures
        return jax.lax.while_loop(lambda carry: condition(*carry)[1][0], lambda carry: body(*carry), (values, parts))
    return _lifted([body_fun, cond_fun], (init_val,), apply)


def fori_loop(lower, upper, body_fun, init_val):
    def apply(pures, values, parts):
        return jax.lax.fori_loop(lower, upper, lambda i, carry: _at(pures[0], i)(*carry), (values, parts))
    number = {}

    def _at(pure, i):
        number["i"] = i
        return pure
    return _lifted([lambda arg: body_fun(number["i"], arg)], (init_val,), apply)


def remat(f=None, *, prevent_cse=None, static_argnums=None, policy=None, graph=None, graph_updates=None):
    if f is None:
        return remat
    return f


checkpoint = remat
