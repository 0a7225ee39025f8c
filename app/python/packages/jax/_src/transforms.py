# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done to functions: jit, grad, shard_map, eval_shape; and what places arrays."""
import contextlib
import copy
import functools
import inspect
import math
import warnings
import weakref

import _meshwright as core
import numpy as np

from . import arrays as arrays_module
from . import batching, dtypes, effects, explicit, hitypes, jaxprs, refs
from .arrays import (Array, ConcreteArray, InvalidValue, Scope, Tracer, asarray, astype, call, check_devices, on_default, run, type_text)
from .shardings import (AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec, Sharding, as_placement, check_rank, current_mesh, named_placement,
                        raise_verdict, sharding_of)
from . import ops
from .machine import Device, machine
from .trees import (keystr, prefix_leaves, register_pytree_node, register_static, tree_flatten, tree_flatten_with_path, tree_map, tree_structure, tree_unflatten)


# ---- placing

def _is_target(x):
    return x is None or isinstance(x, (Sharding, PartitionSpec)) or isinstance(x, Device)


def device_put(x, device=None, *, donate=False, may_alias=None, src=None):
    """Places the leaves of a tree: committed where a place is given."""
    leaves, form = tree_flatten(x)
    targets = prefix_leaves(device, form, x, is_leaf=_is_target)
    return tree_unflatten(form, [_put(asarray(leaf), target) for leaf, target in zip(leaves, targets)])


def _put(x, target):
    if isinstance(target, PartitionSpec) and current_mesh() is None:
        error = ValueError("Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put")
        error.add_note("a PartitionSpec names axes of a mesh, and no mesh\n"
                       f"  fix: write jax.device_put(x, NamedSharding(mesh, {target.text}))")
        raise error
    placement = as_placement(target, x.shape, "device_put")
    if placement is None or x.level:  # how examples lie does not say how all of them do
        return x
    if isinstance(x, Tracer) or Scope._stack:
        return _said(_constrained(x, placement), target)
    return _asked(ConcreteArray(x._handle.moved(placement, True), x.weak_type), target)


def _asked(array, target):
    """An array with the sharding that it was put to."""
    if isinstance(target, PartitionSpec):
        target = NamedSharding(current_mesh(), target)
    is_named = isinstance(target, NamedSharding) and not isinstance(target.mesh, AbstractMesh)
    array.asked = target if is_named or getattr(target, "memory_kind", None) is not None else None
    return array


def _constrained(x, placement):
    scope = Scope._stack[-1]
    return scope.tracer(scope.core.constrain(scope.number(x), placement), x.weak_type)


def _said(tracer, target):
    """A traced value with the sharding that was asked for."""
    tracer.asked = NamedSharding(current_mesh(), target) if isinstance(target, PartitionSpec) else target
    if isinstance(tracer.asked, NamedSharding) and tracer.asked.mesh.is_explicit:
        tracer.split = explicit.entries_of(tracer.asked, tracer.ndim)
    return tracer


def with_sharding_constraint(x, shardings):
    """Where all axes of the mesh are explicit, a check."""
    mesh = current_mesh()
    if mesh is not None and mesh.is_all_explicit and explicit.is_active():
        leaves, form = tree_flatten(x)
        for leaf, target in zip(map(asarray, leaves), prefix_leaves(shardings, form, x, is_leaf=_is_target)):
            explicit.check_split(leaf, mesh, target)
    return placed(x, shardings)


def placed(x, shardings, is_type=False):
    """The leaves of a tree where shardings say. `is_type`: their specs then name all dimensions."""
    leaves, form = tree_flatten(x)
    targets = prefix_leaves(shardings, form, x, is_leaf=_is_target)
    made = []
    for leaf, target in zip(leaves, targets):
        leaf = asarray(leaf)
        placement = as_placement(target, leaf.shape, "reshard" if is_type else "with_sharding_constraint arguments")
        if leaf.level and isinstance(target, (PartitionSpec, NamedSharding)):  # the dimension of examples stays whole
            spec = target if isinstance(target, PartitionSpec) else target.spec
            spec = spec.update((None, *spec))
            whole = placed(leaf.value, spec if isinstance(target, PartitionSpec) else NamedSharding(target.mesh, spec))
            made.append(batching.BatchTracer(whole, leaf.level, leaf.weak_type))
            continue
        if placement is None or leaf.level or Scope._stack:
            made.append(leaf if placement is None or leaf.level else _said(_constrained(leaf, placement), target))
            continue
        made.append(ConcreteArray(leaf._handle.moved(placement, True)))
        if is_type and isinstance(target, (PartitionSpec, NamedSharding)):
            spec = target if isinstance(target, PartitionSpec) else target.spec
            mesh = current_mesh() if isinstance(target, PartitionSpec) else target.mesh
            _asked(made[-1], NamedSharding(mesh, spec.of_rank(leaf.ndim)))
    return tree_unflatten(form, made)


def _form_leaves(name, prefix, form, tree, is_leaf):
    """`prefix_leaves` of what an option says of arguments or results."""
    try:
        return prefix_leaves(prefix, form, tree, is_leaf=is_leaf)
    except ValueError as error:
        error.add_note(f"{name} has an entry for everything, or the form of what it is said of\n  fix: give one entry, or a tree of the form {form}")
        raise


def _check_length(shardings, count):
    """Source of the text: jax-ml/jax, jax/_src/api_util.py (flatten_axis_resources)."""
    if isinstance(shardings, (tuple, list)) and len(shardings) != count:
        raise ValueError("jit in_shardings specification must be a tree prefix of the positional arguments tuple. In particular, jit in_shardings must either be a "
                         "Sharding, a PartitionSpec, or a tuple of length equal to the number of positional arguments. But jit in_shardings is the wrong length: got "
                         f"a tuple or list of length {len(shardings)} for an args tuple of length {count}.")


# ---- jit

def _name_of(function):
    return getattr(function, "__name__", type(function).__name__).replace("<lambda>", "lambda") or "function"


def _placements(shardings, form, tree, arrays, what):
    targets = prefix_leaves(shardings, form, tree, is_leaf=_is_target)
    return [None if isinstance(target, PartitionSpec) and target is None else as_placement(target, array.shape, what)
            for target, array in zip(targets, arrays)]


def _place_of(function):
    """f at page.py:3"""
    function = inspect.unwrap(function) if callable(function) else function
    code = getattr(getattr(function, "func", function), "__code__", None)
    return f"{_plain_name(function)} at {code.co_filename}:{code.co_firstlineno}" if code is not None else _plain_name(function)


def _plain_name(function):
    return getattr(function, "__name__", type(function).__name__)


def _result(out, function, path):
    try:
        return asarray(out)
    except TypeError as error:
        where = f" at output component{keystr(path)}" if path else ""
        raise TypeError(f"function {_place_of(function)} traced for jit returned a value of type {type(out)}{where}, which is not a valid JAX type") from error


_programs_of = weakref.WeakKeyDictionary()  # by function and static arguments


class Jitted:
    """A function that is traced once for each form and type of its arguments, and runs as one program."""

    def __init__(self, function, in_shardings=None, out_shardings=None, static_argnums=(), static_argnames=(), donate_argnums=(),
                 donate_argnames=(), keep_unused=False, inline=False):
        functools.update_wrapper(self, function, updated=())
        def numbers(given):
            return (given,) if isinstance(given, int) else tuple(given or ())
        self._function, self._in, self._out = function, in_shardings, out_shardings
        self._static = set(numbers(static_argnums))
        self._static_names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames or ())
        self._donated = set(numbers(donate_argnums))
        try:
            names = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            names = []
        donated = {donate_argnames} if isinstance(donate_argnames, str) else set(donate_argnames or ())
        self._check_chosen(function, "static", numbers(static_argnums), self._static_names)
        self._check_chosen(function, "donate", numbers(donate_argnums), donated)
        self._static = {number % len(names) if names else number for number in self._static}
        self._static |= {names.index(name) for name in self._static_names if name in names}
        self._static_names |= {names[number] for number in self._static if number < len(names)}
        self._donated |= {names.index(name) for name in donated if name in names}
        self._programs = {}
        if in_shardings is None and out_shardings is None:  # jit of a function that was jitted before finds its programs
            options = (tuple(sorted(self._static)), tuple(sorted(self._static_names)))
            try:
                self._programs = _programs_of.setdefault(function, {}).setdefault(options, self._programs)
            except TypeError:  # what cannot be told apart from others
                pass

    @staticmethod
    def _check_chosen(function, kind, numbers, names):
        """That the function has the arguments that are chosen. Source of the texts: jax-ml/jax, jax/_src/api_util.py (_validate_argnums, _validate_argnames)."""
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return
        kinds = {one.kind for one in parameters}
        count = sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)
        if numbers and inspect.Parameter.VAR_POSITIONAL not in kinds and (-min(numbers) > count or max(numbers) >= count):
            raise ValueError(f"Jitted function has {kind}_argnums={numbers}, but only accepts {count} positional arguments.")
        if unnamed := names & {one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL)}:
            raise ValueError(f"Jitted function has invalid argnames {unnamed} in {kind}_argnames. These are positional-only")
        unknown = names - {one.name for one in parameters}
        if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise ValueError(f"Jitted function has invalid argnames {unknown} in {kind}_argnames. Function does not take these args.")

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def _split(self, args, kwargs):
        static = tuple((i, arg) for i, arg in enumerate(args) if i in self._static)
        static += tuple((name, kwargs[name]) for name in sorted(kwargs) if name in self._static_names)
        dynamic = tuple(arg for i, arg in enumerate(args) if i not in self._static)
        return static, dynamic, {name: value for name, value in kwargs.items() if name not in self._static_names}

    def _joined(self, static, dynamic, keywords, count):
        fixed = dict(static)
        rest = iter(dynamic)
        args = [fixed[i] if i in fixed else next(rest) for i in range(count)]
        return args, {**keywords, **{name: value for name, value in static if isinstance(name, str)}}

    def _traced(self, arrays, form, static, count, paths, given):
        """The traced function, what it captured, the form of its result and whether results are weakly typed. `given`: which arguments are refs."""
        scope = Scope(_name_of(self._function), place=_place_of(self._function))
        tracers = [scope.argument(array, keystr(path)) for array, path in zip(arrays, paths)]
        with scope:
            first = tracers
            tracers = [refs.Ref(tracer, is_argument=True) if at in given else tracer for at, tracer in enumerate(tracers)]
            dynamic, keywords = tree_unflatten(form, tracers)
            args, kwargs = self._joined(static, dynamic, keywords, count)
            made = self._function(*args, **kwargs)
            outs, out_form = tree_flatten(made)
            refs.no_refs(outs, f"{_place_of(self._function)} traced for jit")
            outs = [_result(out, self._function, path) for out, (path, _) in zip(outs, tree_flatten_with_path(made)[0])]
            scope.changed_arguments = [at for at in given if tracers[at].value is not first[at]]
            function = scope.finished(outs + [tracers[at].value for at in scope.changed_arguments] + effects.wanted(scope))
        after = tree_flatten((dynamic, keywords))[0]
        if len(after) == len(tracers):  # jit works on copies of the containers that it is given
            returned, is_returned = set(map(id, outs)), self._are_returned(form, out_form)
            arrays_module.lost.extend((_name_of(self._function), keystr(path)) for path, old, new, is_back in zip(paths, tracers, after, is_returned)
                                      if new is not old and id(new) not in returned and not is_back)
        return function, scope, outs, out_form, made

    @staticmethod
    def _are_returned(form, out_form):
        """For each leaf of the arguments whether a container like its argument is returned: the changed one, or what was made of it."""
        forms = [out_form, *(out_form.children if out_form.kind in (tuple, list) else ())]
        return [argument in forms for part in form.children for argument in part.children for _ in range(argument.count)]

    def _inputs(self, args, kwargs):
        static, dynamic, keywords = self._split(args, kwargs)
        leaves, form = tree_flatten((dynamic, keywords))
        arrays, given = [], {}
        for leaf in leaves:
            if isinstance(leaf, refs.Ref):
                self._check_given_once(leaf, len(arrays), given, form)
                given[len(arrays)] = leaf
                leaf = leaf.read()
            try:
                arrays.append(asarray(leaf))
            except TypeError as error:
                found = TypeError(f"Error interpreting argument to {self._function} as an abstract array. The problematic value is of type {type(leaf)} and "
                                  f"was passed to the function at path {keystr(self._paths(form)[len(arrays)])}.\nThis typically means that a jit-wrapped "
                                  "function was called with a non-array argument, and this argument was not marked as static using the static_argnums or "
                                  "static_argnames parameters of jax.jit.")
                found.add_note("arguments of a function under jax.jit are trees of arrays\n  fix: "
                               + ("use nnx.jit, which takes modules and optimizers" if any(kind.__module__.startswith("flax") for kind in type(leaf).__mro__)
                                  else "pass arrays, or make the argument static with static_argnums"))
                raise found from error
        if self._in is not None:
            if not _is_target(self._in):
                _check_length(self._in, len(form.children[0].children))
            targets = ([self._in] * len(arrays) if _is_target(self._in)
                       else _form_leaves("in_shardings", (self._in, {} if not keywords else None), form, None, _is_target))
            for at, target in enumerate(targets):
                placement = as_placement(target, arrays[at].shape, "pjit arguments")
                if placement is not None:
                    memory = target if _memory_of(target) else arrays[at].asked
                    arrays[at] = self._placed(arrays[at], placement, at)
                    if _memory_of(memory) and isinstance(arrays[at], ConcreteArray):
                        arrays[at].asked = memory
        return static, arrays, form, given

    def _check_given_once(self, ref, number, given, form):
        """Source of the text: jax-ml/jax, jax/_src/api_util.py (check_no_aliased_ref_args)."""
        for other, one in given.items():
            if one is ref:
                paths = [keystr(path) for path in self._paths(form)]
                raise ValueError("only one reference to a mutable array may be passed as an argument to a function, but when tracing "
                                 f"{_place_of(self._function)} for jit the mutable array reference of type {ref.type_text()} appeared at both {paths[other]} and "
                                 f"{paths[number]}.")

    @staticmethod
    def _placed(array, placement, at):
        if array.level:
            return array
        if Scope._stack:
            return _constrained(array, placement)
        handle = array._handle
        if handle.is_committed and not handle.placement.same(placement, list(array.shape)):
            error = ValueError("Sharding passed to jit does not match the sharding on the respective arg. Got sharding: "
                               f"{sharding_of(placement)},\nand arg sharding: {array.sharding} for arg number {at} with shape "
                               f"{type_text(array)}")
            error.add_note("in_shardings says how an argument lies, and moves none that was placed with device_put\n"
                           "  fix: write the sharding that the argument has, None, or no in_shardings")
            raise error
        return ConcreteArray(handle.moved(placement, True), array.weak_type)

    def __call__(self, *args, **kwargs):
        if machine.runs_python:
            return self._function(*args, **kwargs)
        static, arrays, form, given = self._inputs(args, kwargs)
        if machine.had_default_device and not Scope._stack:
            arrays = on_default(arrays)
        if Scope._stack or batching.Level.stack:  # part of what is being traced
            dynamic, keywords = tree_unflatten(form, [given.get(at, array) for at, array in enumerate(arrays)])
            whole, keywords = self._joined(static, dynamic, keywords, len(args))
            made = self._inlined(whole, keywords)
            if refs.used:
                refs.no_refs(tree_flatten(made)[0], f"{_place_of(self._function)} traced for jit")
            return made if self._out is None else placed(made, self._out)
        try:
            program, scope, out_form, weak = self._compiled(static, arrays, form, args, given)
        except effects.NeedsValues:
            machine.runs_python = True
            try:
                return self._function(*args, **kwargs)
            finally:
                machine.runs_python = False
        try:
            results = run(program, arrays + refs.resolved(scope.captures))
        except InvalidValue as invalid:
            return self._searched(invalid, args, kwargs)
        count = len(weak)
        for at, value in zip(scope.changed_arguments, results[count:]):
            given[at].put(value)
        effects.happen(scope, results[count + len(scope.changed_arguments):])
        results = results[:count]
        self._donate(args)
        for result, is_weak in zip(results, weak):
            result.weak_type = is_weak
        for result, target in zip(results, scope.targets):
            if target is not None:
                _asked(result, target)
        if any(array.gathered for array in arrays):
            self._note_gathered(program, arrays, form)
        if self._out is not None:
            for number, dim, axis in program.gathered_results if all(result.dtype.kind != "c" for result in results) else ():
                results[number].gathered += ((program.name, dim, axis),)
        return tree_unflatten(out_form, results)

    def _inlined(self, args, kwargs):
        """What the function makes as a part of what is being traced; Python looks at values only where it does not go on without."""
        Scope.inlined += 1
        try:
            return self._function(*args, **kwargs)
        except effects.NeedsValues:
            if Scope.inlined > 1:
                raise
        finally:
            Scope.inlined -= 1
        return self._function(*args, **kwargs)

    def _searched(self, invalid, args, kwargs):
        """Runs the function op by op, for the op that gives a value which jax_debug_nans refuses. Source of the text: jax-ml/jax, jax/_src/api_util.py."""
        print("Invalid nan value encountered in the output of a jax.jit function. Calling the de-optimized version.")
        before, machine.runs_python = machine.runs_python, True
        try:
            self._function(*args, **kwargs)
        finally:
            machine.runs_python = before
        raise FloatingPointError(f"invalid value ({invalid}) encountered in jit({_name_of(self._function)}). Because jax_config.debug_nans.value and/or "
                                 "config.jax_debug_infs is set, the de-optimized function (i.e., the function as if the `jit` decorator were removed) was called in an "
                                 "attempt to get a more precise error message. However, the de-optimized function did not produce invalid values during its execution.")

    def _note_gathered(self, program, arrays, form):
        """Arguments that the program before gathered, and this one takes apart over the same axis."""
        for number, dim, axis in program.arguments_taken_apart:
            for function, own_dim, own_axis in arrays[number].gathered if number < len(arrays) else ():
                if (own_dim, own_axis) == (dim, axis):
                    arrays_module.regathered.append((function, axis, keystr(self._paths(form)[number])))

    def _donate(self, args):
        for number in self._donated:
            if number < len(args):
                for leaf in tree_flatten(args[number])[0]:
                    if isinstance(leaf, ConcreteArray):
                        leaf._handle.delete()

    def _compiled(self, static, arrays, form, args, given):
        mesh = current_mesh()
        key = (form, _hashable(static), tuple((array._handle.key, array.weak_type) for array in arrays), mesh, mesh and mesh.axis_types,
               machine.default_device, machine.matmul_precision, tuple(given), tuple(map(explicit.split_of, arrays)) if Mesh.has_explicit else None)
        entry = self._programs.get(key)
        if entry is not None and entry[1].refs:
            self._check_not_closed_over(entry[1], given, form)
            if refs.keys(entry[1]) != entry[1].keys:  # a ref lies in another way since
                entry = None
        if entry is None:
            names = [keystr(path) for path in self._paths(form)]
            check_devices(_name_of(self._function), arrays, names)
            function, scope, outs, out_form, made = self._traced(arrays, form, static, len(args), self._paths(form), given)
            self._check_not_closed_over(scope, given, form)
            scope.keys = refs.keys(scope)
            places, scope.targets = [None] * len(outs), []
            if self._out is not None:
                scope.targets = _form_leaves("out_shardings", self._out, out_form, made, _is_target)
                places = _placements(self._out, out_form, made, outs, "pjit outputs")
            else:
                scope.targets = [out.asked if _memory_of(out.asked) else None for out in outs]
                if Mesh.has_explicit:
                    scope.targets = [asked or explicit.sharding_of(out) for asked, out in zip(scope.targets, outs)]
                    places = [explicit.placement_of(out) for out in outs]
            places += [None] * (len(scope.changed_arguments) + len(effects.wanted(scope)))
            if machine.had_default_device and not any(array._handle.is_committed for array in arrays):
                scope.captures = on_default(scope.captures)
            program = core.compile(function, [array._handle for array in arrays + refs.resolved(scope.captures)], places)
            entry = program, scope, out_form, [out.weak_type for out in outs]
            self._programs[key] = entry
        return entry

    def _check_not_closed_over(self, scope, given, form):
        """Source of the text: jax-ml/jax, jax/_src/api_util.py (_check_no_aliased_closed_over_refs)."""
        for at, ref in given.items():
            if id(ref) in scope.refs:
                raise ValueError(f"when tracing {_place_of(self._function)} for jit, a mutable array reference of type {ref.type_text()} was both closed over and "
                                 f"passed as the argument {keystr(self._paths(form)[at])}")

    def _paths(self, form):
        try:
            names = list(inspect.signature(self._function).parameters)
        except (TypeError, ValueError):
            names = []
        paths = [path for path, _ in tree_flatten_with_path(tree_unflatten(form, [Array() for _ in range(form.num_leaves)]))[0]]
        return [_ArgumentPath(names, self._static, path) for path in paths]

    def lower(self, *args, **kwargs):
        return Lowered(self, args, kwargs)

    def trace(self, *args, **kwargs):
        return Lowered(self, args, kwargs)

    def eval_shape(self, *args, **kwargs):
        return eval_shape(self._function, *args, **kwargs)

    def clear_cache(self):
        self._programs.clear()


class _ArgumentPath(tuple):
    """The path of a leaf, with the name of its argument first: params[0][1]."""

    def __new__(cls, names, static, path):
        dynamic = [name for i, name in enumerate(names) if i not in static]
        head, rest = path[:2], path[2:]
        if head[0][0] == 0 and len(head) > 1:
            number = head[1][0]
            first = dynamic[number] if isinstance(number, int) and number < len(dynamic) else f"arg{number}"
        else:
            first = str(head[-1][0])
        return tuple.__new__(cls, (first,) + tuple(rest))


def _hashable(static):
    try:
        hash(static)
        return static
    except TypeError as error:
        raise ValueError(f"Non-hashable static arguments are used in a jit function: {static!r}") from error


class Lowered:
    """A jitted function for some arguments, to be looked at."""

    def __init__(self, jitted, args, kwargs):
        args, kwargs = tree_map(_zeros_of, (args, kwargs), is_leaf=lambda x: isinstance(x, ShapeDtypeStruct))
        static, self._arrays, form, given = jitted._inputs(args, kwargs)
        self._jitted, self._given, self._input_form = jitted, (args, kwargs), form
        self._program, self._scope, self._form, self._weak = jitted._compiled(static, self._arrays, form, args, given)

    def lower(self):
        return self

    def compile(self):
        return Compiled(self)

    def as_text(self, *_, **__):
        return self._program.text()

    @property
    def jaxpr(self):
        args, kwargs = self._given
        return make_jaxpr(self._jitted._function, tuple(number for number in self._jitted._static if number < len(args)))(*args, **kwargs)

    def cost_analysis(self):
        return _counted(self._program.counts[0])

    def _donated_arrays(self):
        """Which of the program's arguments are given away."""
        numbers, first = [], 0
        for number, arg in enumerate(self._given[0]):
            if number in self._jitted._static:
                continue
            count = len(tree_flatten(arg)[0])
            numbers += range(first, first + count) if number in self._jitted._donated else ()
            first += count
        return numbers

    def _called(self, args, kwargs):
        """With arguments in place of those that it was lowered for; static ones stay what they were."""
        static = {number for number in self._jitted._static if number < len(self._given[0])}
        if static and len(args) == len(self._given[0]) - len(static):
            rest = iter(args)
            args = [self._given[0][number] if number in static else next(rest) for number in range(len(self._given[0]))]
        kwargs = {**{name: self._given[1][name] for name in self._jitted._static_names if name in self._given[1]}, **kwargs}
        _, arrays, form, _ = self._jitted._inputs(args, kwargs)
        if batching.Level.stack or any(not isinstance(array, ConcreteArray) for array in arrays):
            raise TypeError("Cannot apply JAX transformations to a function lowered and compiled for a particular signature. Detected argument of Tracer type "
                            f"{next(type(array) for array in arrays if not isinstance(array, ConcreteArray))}")
        if form == self._input_form:
            wrong = [f"Argument '{keystr(path)}' compiled with {type_text(own)} and called with {type_text(given)}"
                     for path, own, given in zip(self._jitted._paths(form), self._arrays, arrays) if (own.engine_dtype, own.shape) != (given.engine_dtype, given.shape)]
            if wrong:
                raise TypeError("Argument types differ from the types for which this computation was compiled. The mismatches are:\n" + "\n".join(wrong))
        return self._jitted(*args, **kwargs)


def _counted(counts):
    flops, transcendentals = counts
    return {"flops": flops, **({"transcendentals": transcendentals} if transcendentals else {})}


def _memory_of(sharding):
    """The kind of memory that a sharding names, if it names one."""
    return getattr(sharding, "memory_kind", None)


def _by_memory(sizes, shardings):
    """The sizes of values, and whether each lies in the host's memory: (size, bool)."""
    kinds = [_memory_of(sharding) for sharding in shardings]
    return [(size, kind not in (None, "device")) for size, kind in zip(sizes, kinds + [None] * len(sizes))]


class CompiledMemoryStats:
    """Bytes of one device. Source of the names: openxla/xla, xla/python (CompiledMemoryStats)."""
    generated_code_size_in_bytes = host_generated_code_size_in_bytes = 0

    def __init__(self, lowered):
        arguments, results, self.temp_size_in_bytes, self.host_temp_size_in_bytes = lowered._program.memory()
        arguments = _by_memory(arguments, [array.asked for array in lowered._arrays + lowered._scope.captures])
        results = _by_memory(results, lowered._scope.targets)
        donated, free = [], list(results)
        for at in lowered._donated_arrays():
            if arguments[at] in free:
                free.remove(arguments[at])
                donated.append(arguments[at])
        for name, values in (("argument", arguments), ("output", results), ("alias", donated)):
            setattr(self, f"{name}_size_in_bytes", sum(size for size, is_host in values if not is_host))
            setattr(self, f"host_{name}_size_in_bytes", sum(size for size, is_host in values if is_host))
        self.peak_memory_in_bytes = self.argument_size_in_bytes + self.output_size_in_bytes - self.alias_size_in_bytes + self.temp_size_in_bytes

    def __repr__(self):
        names = ("generated_code", "argument", "output", "alias", "temp", "host_generated_code", "host_argument", "host_output", "host_alias", "host_temp")
        sizes = ", ".join(f"{name}_size_in_bytes={getattr(self, name + '_size_in_bytes')}" for name in names)
        return f"CompiledMemoryStats({sizes})"

    __str__ = __repr__


class Compiled:
    """A program for arguments of the types that it was lowered for."""

    def __init__(self, lowered):
        self._lowered = lowered

    def __getattr__(self, name):
        if not hasattr(self._lowered, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._lowered, name)

    def as_text(self, *_, **__):
        return self._lowered._program.device_text()

    def cost_analysis(self):
        """Of what each device does."""
        return _counted(self._lowered._program.counts[1])

    @property
    def input_shardings(self):
        lowered = self._lowered
        return tree_unflatten(lowered._input_form, [sharding_of(one) for one in lowered._program.argument_placements[:len(lowered._arrays)]])

    @property
    def output_shardings(self):
        lowered = self._lowered
        found = [sharding_of(one) for one in lowered._program.result_placements[:len(lowered._weak)]]
        asked = lowered._scope.targets or [None] * len(found)
        return tree_unflatten(lowered._form, [own if isinstance(own, Sharding) else one for own, one in zip(asked, found)])

    def memory_analysis(self):
        """By the plan of buffers of the program as devices run it; of the machine's own compiler the temporaries may differ."""
        if self._lowered._scope.recomputes:
            warnings.warn("memory_analysis counts what jax.checkpoint makes again or offloads as kept: programs of a page keep what their derivatives read", stacklevel=2)
        stats = CompiledMemoryStats(self._lowered)
        if stats.host_argument_size_in_bytes or stats.host_output_size_in_bytes:
            warnings.warn("memory_analysis does not count the copies in device memory of values that the program moves from or to the host's memory: "
                          "temp_size_in_bytes is a lower bound", stacklevel=2)
        return stats

    def __call__(self, *args, **kwargs):
        return self._lowered._called(args, kwargs)


_HARMLESS = ("device", "backend", "abstracted_axes", "compiler_options")  # options of jit that change no value


def jit(function=None, **options):
    options = {name: value for name, value in options.items() if name not in _HARMLESS}
    for name in options:
        if name not in inspect.signature(Jitted).parameters:
            raise TypeError(f"jit() got an unexpected keyword argument '{name}'")
    if function is None:
        return functools.partial(jit, **options)
    return Jitted(function, **options)


# ---- shapes only

class ShapeDtypeStruct:
    """The type of an array, without its values."""

    def __init__(self, shape, dtype, *, sharding=None, weak_type=False, vma=None, is_ref=False):
        is_key = str(dtype) == "key<fry>"
        self.shape, self.engine_dtype = tuple(shape), "key<fry>" if is_key else dtypes.named(dtype)
        self.dtype, self.sharding, self.weak_type = dtype if is_key else dtypes.shown(self.engine_dtype), sharding, weak_type
        check_rank(sharding, self.ndim)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape, dtype=np.int64)))

    def __eq__(self, other):
        return (isinstance(other, ShapeDtypeStruct) and self.shape == other.shape and self.dtype == other.dtype
                and self.sharding == other.sharding)

    def __hash__(self):
        return hash((self.shape, str(self.dtype)))

    def update(self, **changed):
        return ShapeDtypeStruct(**{"shape": self.shape, "dtype": self.dtype, "sharding": self.sharding, "weak_type": self.weak_type, **changed})

    @staticmethod
    def like(x):
        x = x if getattr(x, "is_key_array", False) else asarray(x)
        return ShapeDtypeStruct(x.shape, x.dtype, sharding=getattr(x, "sharding", None), weak_type=x.weak_type)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self):
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{sharding})"


def _zeros_of(x):
    if not isinstance(x, ShapeDtypeStruct):
        return x
    if x.engine_dtype == "key<fry>":
        return _keys(ops.full((*x.shape, 2), 0, "ui32"))
    made = ops.full(x.shape, 0, x.engine_dtype)
    return made if x.sharding is None else device_put(made, x.sharding)


def _keys(words):
    from .random_ import KeyArray
    return KeyArray(words)


def eval_shape(function, *args, **kwargs):
    is_struct, is_keys = lambda x: isinstance(x, ShapeDtypeStruct), lambda x: getattr(x, "is_key_array", False)
    args, kwargs = tree_map(lambda x: _keys(ShapeDtypeStruct((*x.shape, 2), "uint32")) if is_struct(x) and x.engine_dtype == "key<fry>" else x, (args, kwargs),
                            is_leaf=is_struct)
    leaves, form = tree_flatten((args, kwargs), is_leaf=lambda x: isinstance(x, ShapeDtypeStruct))
    scope = Scope(_name_of(function))
    scope.is_of_shapes = True
    tracers = [scope.argument(leaf if isinstance(leaf, ShapeDtypeStruct) else asarray(leaf)) for leaf in leaves]
    with scope:
        args, kwargs = tree_unflatten(form, tracers)
        made = function(*args, **kwargs)
        return tree_map(lambda x: ShapeDtypeStruct(x.shape, x.dtype) if is_keys(x) else _type_of(asarray(x)), made, is_leaf=is_keys)


def _type_of(x):
    return ShapeDtypeStruct(x.shape, x.dtype, sharding=explicit.sharding_of(x) or x.asked, weak_type=x.weak_type)


# ---- derivatives

def _checked_for_grad(arrays, holomorphic, allow_int):
    """Source of the texts: jax-ml/jax, jax/_src/api.py (_check_input_dtype_revderiv)."""
    for array in arrays:
        name = array.engine_dtype
        if holomorphic and not dtypes.is_complex(name):
            raise TypeError(f"grad with holomorphic=True requires inputs with complex dtype, but got {array.dtype.name}.")
        if not (dtypes.is_float(name) or dtypes.is_complex(name) or allow_int):
            raise TypeError("grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but "
                            f"got {array.dtype.name}. If you want to use Boolean- or integer-valued inputs, use vjp or set "
                            "allow_int to True.")


def _no_ref_for_grad(leaves, name):
    """Source of the text: jax-ml/jax, jax/_src/api.py (_check_input_dtype_revderiv)."""
    if any(isinstance(leaf, refs.Ref) for leaf in leaves):
        raise TypeError(f"{name} cannot differentiate with respect to a Ref-typed argument, because the gradient for a ref must itself be accumulated into a ref. "
                        "Instead, use `jax.vjp` and bind a gradient ref using the returned VJP function's `with_refs` method. (Ref arguments not selected by "
                        f"{name}'s argnums are fine: they are treated as plumbing, and are not differentiated.)")


def value_and_grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, *, reduce_axes=None):
    @functools.wraps(fun)
    def differentiated(*args, **kwargs):
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        if max(numbers) >= len(args):
            raise TypeError(f"differentiating with respect to argnums={argnums} requires at least {max(numbers) + 1} positional arguments to be passed by "
                            f"the caller, but got only {len(args)} positional arguments.")
        numbers = tuple(number % len(args) for number in numbers)
        chosen = tuple(args[number] for number in numbers)
        given = chosen  # values of types of the page's own, by whose shadows the derivatives are taken
        if any(map(hitypes.is_value, tree_flatten(chosen, hitypes.is_value)[0])):
            from ..experimental.hijax import _zeros
            chosen = tree_map(lambda leaf: _zeros(hitypes.type_of(leaf)) if hitypes.is_value(leaf) else leaf, chosen, is_leaf=hitypes.is_value)
        _no_ref_for_grad(tree_flatten(chosen)[0], getattr(differentiated, "said", "value_and_grad"))
        _checked_for_grad([asarray(leaf) for leaf in tree_flatten(chosen)[0]], holomorphic, allow_int)

        @functools.wraps(fun)
        def of_chosen(*values):
            changed = list(args)
            if given is not chosen:
                values = tree_map(lambda leaf, value: hitypes.with_shadow(leaf, value) if hitypes.is_value(leaf) else value, given, values, is_leaf=hitypes.is_value)
            for number, value in zip(numbers, values):
                changed[number] = value
            made = fun(*changed, **kwargs)
            if has_aux and not (isinstance(made, tuple) and len(made) == 2):
                raise TypeError(f"expected function with aux output to return a two-element tuple, but got type {type(made)} with value {made}")
            value, aux = made if has_aux else (made, None)
            if isinstance(value, (tuple, list, dict)) or value is None:
                raise TypeError(f"Gradient only defined for scalar-output functions. Output was {value}.")
            value = asarray(value)
            if value.shape:
                raise TypeError(f"Gradient only defined for scalar-output functions. Output had shape: {value.shape}.")
            if holomorphic and not dtypes.is_complex(value.engine_dtype):
                raise TypeError(f"grad with holomorphic=True requires outputs with complex dtype, but got {value.dtype.name}.")
            if not (dtypes.is_float(value.engine_dtype) or holomorphic):
                raise TypeError("grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
                                f"{value.dtype.name}. For holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic "
                                "functions involving complex outputs, use jax.vjp directly.")
            return value, aux
        if batching.Level.stack:
            value, pullback, aux = vjp(of_chosen, *chosen, has_aux=True)
            grads = pullback(ops.ones_like(value))
        else:
            value, grads, aux = _with_gradients(of_chosen, chosen)
        grads = grads[0] if isinstance(argnums, int) else grads
        return ((value, aux) if has_aux else value), grads
    return differentiated


def grad(fun, argnums=0, has_aux=False, **options):
    both = value_and_grad(fun, argnums, has_aux, **options)
    both.said = "grad"

    @functools.wraps(fun)
    def gradient(*args, **kwargs):
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads
    return gradient


class GradValue:
    """For with_refs: the gradient is given as a value."""

    def __repr__(self):
        return f"{type(self).__name__}()"


class DontWant(GradValue):
    """For with_refs: the gradient is not computed."""


class GradRef:
    """Stands for a gradient that was added to a ref: a tree without arrays."""

    def __repr__(self):
        return f"{type(self).__name__}()"

    def __eq__(self, other):
        return type(other) is type(self)

    def __hash__(self):
        return hash(type(self))


class DidntWant(GradRef):
    """Stands for a gradient that was not computed."""


for _kind in (GradRef, DidntWant):
    register_static(_kind)


class _Pullback:
    """What `vjp` gives: takes cotangents of the results to those of the arguments. A tree of the arrays that it keeps, as JAX's is. `bound` says for each leaf of
    the arguments what becomes of its gradient: a ref to which it is added, GradValue or DontWant; nothing: each is given as a value."""

    def __init__(self, operands, traced, bound=None):
        self._operands, self._traced, self._bound = list(operands), traced, bound

    operands = property(lambda self: self._operands)

    def with_operands(self, operands):
        return _Pullback(operands, self._traced, self._bound)

    def with_refs(self, *what):
        """The same, with what becomes of the gradient of each argument."""
        bound, form = tree_flatten(what)
        if form != self._traced.form:
            raise ValueError(f"unexpected tree structure of the arguments to the VJP function's `with_refs` method: got {form}, but expected to match "
                             f"{self._traced.form}")
        for at, (one, (shape, engine, _)) in enumerate(zip(bound, self._traced.inputs)):
            if isinstance(one, refs.Ref):
                if (one.shape, one.engine_dtype) != (shape, engine):
                    raise ValueError("unexpected JAX type (e.g. shape/dtype) for gradient ref passed to the VJP function's `with_refs` method for "
                                     f"{self._traced.argument_name(at)}: the given ref has type {one.type_text()}, but accumulating this argument's gradient "
                                     f"requires a ref of type Ref{{{dtypes.shown(engine)}[{','.join(map(str, shape))}]}}")
            elif not isinstance(one, (GradValue, DontWant)):
                raise ValueError(f"with_refs takes a ref, jax.ad.GradValue() or jax.ad.DontWant() for each argument, got {one!r}")
        return _Pullback(self._operands, self._traced, bound)

    def with_logs(self, cotangents):
        raise NotImplementedError("with_logs of the function that jax.vjp gives: what rules give beside gradients is left out; write it to a jax.new_ref of the "
                                  "forward pass, or return it from the function")

    @property
    def structured_residuals(self):
        raise NotImplementedError("structured_residuals of the function that jax.vjp gives: jax.ad_checkpoint.print_saved_residuals says what is kept")

    def __call__(self, cotangents):
        seeds, form = tree_flatten(cotangents)
        if form != self._traced.out_form:
            raise ValueError(f"unexpected tree structure of argument to vjp function: got {form}, but expected to match {self._traced.out_form}")
        return self._traced.pulled(self._operands, [asarray(seed) for seed in seeds], self._bound)


class _Traced:
    """A function that was traced for its derivative."""

    def __init__(self, traced):
        self._function, self.form, self.out_form = traced.function, traced.form, traced.out_form
        self.inputs = [(array.shape, array.engine_dtype, array.weak_type) for array in traced.arrays]
        self._splits = [explicit.split_of(array) for array in traced.arrays]
        self._outs = [(out.shape, out.engine_dtype) for out in traced.outs + traced.finals]
        self._sinks, self._of_sinks = traced.sinks, traced.of_sinks
        self._in_sinks = [ref.read() for *_, ref in traced.sinks]
        self._of_refs = list(traced.of_refs)  # the arguments that are refs, whose last values are the last results
        self._backward = {}  # by the arguments whose cotangents are wanted

    def argument_name(self, number):
        path = tree_flatten_with_path(tree_unflatten(self.form, [0] * len(self.inputs)))[0][number][0]
        return f"args{keystr(path)}"

    def _check_bound(self, bound):
        """Source of the texts: jax-ml/jax, jax/_src/api.py (_vjp_accum)."""
        for at in self._of_refs:
            if bound is None:
                raise ValueError(f"{self.argument_name(at)} is Ref-typed, so its gradient must be accumulated into a ref, but no gradient ref was provided. Bind "
                                 "one using the VJP function's `with_refs` method before applying it, as in `f_vjp.with_refs(grad_ref)(ct)`; the gradient will be "
                                 "accumulated into `grad_ref` in-place via addition. Or, to skip computing this argument's gradient, pass `jax.ad.DontWant()` in "
                                 "place of a gradient ref.")
            if not isinstance(bound[at], (refs.Ref, DontWant)):
                raise ValueError(f"the gradient for {self.argument_name(at)}, which is Ref-typed, can't be returned as a value. In the arguments to the VJP "
                                 "function's `with_refs` method, pass a `Ref` for it, to accumulate the gradient into the ref in-place, or pass "
                                 "`jax.ad.DontWant()` to skip computing this argument's gradient.")

    def pulled(self, operands, seeds, bound=None):
        self._check_bound(bound)
        refs.check_sinks_are_as_before(self._sinks, self._in_sinks)
        # What a gradient's ref holds is the cotangent of the argument's last value: of its first one it becomes that.
        seeds = seeds + [bound[at].read() if isinstance(bound[at], refs.Ref) else ops.full(*self._zero(at)) for at in self._of_refs]
        for seed, (shape, engine) in zip(seeds, self._outs):
            if seed.shape != shape:
                raise ValueError(f"Shape of cotangent input to vjp pullback function {seed.shape} must be the same as the shape of corresponding primal "
                                 f"input {shape}.")
            if not dtypes.is_inexact(engine):
                continue
            if seed.engine_dtype != engine and not seed.weak_type:
                raise ValueError(f"The type of the cotangent argument to the function returned by vjp, {type_text(seed)}, does not match the type of the "
                                 f"function's result, {dtypes.shown(engine)}.")
        is_wanted = lambda at: bound is None or not isinstance(bound[at], DontWant)
        wanted = [at for at, (_, engine, _) in enumerate(self.inputs) if dtypes.is_inexact(engine) and is_wanted(at)]
        of = [at for at, (_, engine) in enumerate(self._outs) if dtypes.is_inexact(engine)]
        made = []
        if wanted and of:
            if tuple(wanted) not in self._backward:
                self._backward[tuple(wanted)] = _with_cotangents(self._function, wanted + self._of_sinks, of, False)
            made = call(self._backward[tuple(wanted)], operands + [astype(seeds[at], self._outs[at][1]) for at in of])[len(self._outs):]
            _look_at(made)
            refs.fill_sinks(self._sinks, made[len(wanted):])
        grads = {at: explicit.derivative(grad, self._splits[at]) for at, grad in zip(wanted, made)}
        results = []
        for at, (shape, engine, weak) in enumerate(self.inputs):
            if not is_wanted(at):
                results.append(DidntWant())
            elif at in grads:
                results.append(grads[at])
                grads[at].weak_type = weak
            else:
                results.append(ops.full(shape, 0, engine) if dtypes.is_inexact(engine) else np.zeros(shape, dtypes.float0))
            if bound is not None and isinstance(bound[at], refs.Ref):
                bound[at].put(results[at] if at in self._of_refs else ops.add(bound[at].read(), results[at]))
                results[at] = GradRef()
        return tree_unflatten(self.form, results)

    def _zero(self, at):
        shape, engine, _ = self.inputs[at]
        return shape, 0, engine


def _with_cotangents(function, wanted, of, is_one):
    try:
        return function.with_cotangents(wanted, of, is_one)
    except (RuntimeError, TypeError) as error:
        if "derivative is known for while" in str(error):
            raise ValueError("Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic start/stop values. Try using "
                             "lax.scan, or using fori_loop with static start/stop.") from error
        raise


register_pytree_node(_Pullback, lambda pullback: (pullback._operands, (pullback._traced, pullback._bound)), lambda data, operands: _Pullback(operands, *data))


class _Tracing:
    """A function that is traced for its derivative: its results, what it gives besides, and the programs of these."""

    def __init__(self, fun, primals, is_forward=False, is_linear=False):
        leaves, self.form = tree_flatten(primals)
        self.of_refs = {at: leaf for at, leaf in enumerate(leaves) if isinstance(leaf, refs.Ref)}
        self.arrays = [asarray(leaf.read() if at in self.of_refs else leaf) for at, leaf in enumerate(leaves)]
        scope = self._scope = Scope(_name_of(fun), derives=True)
        scope.is_forward, scope.is_linear = is_forward, is_linear
        scope.evens = any(around.is_checked for around in Scope._stack)
        paths = tree_flatten_with_path(tree_unflatten(self.form, self.arrays))[0]
        tracers = [scope.argument(array, keystr(path)) for array, (path, _) in zip(self.arrays, paths)]
        scope.differentiated = frozenset(at for at, array in enumerate(self.arrays) if dtypes.is_inexact(array.engine_dtype))
        for at in scope.differentiated:
            tracers[at].smooth = frozenset([at])
        with scope:
            tracers = [refs.Ref(tracer, is_argument=True) if at in self.of_refs else tracer for at, tracer in enumerate(tracers)]
            made, aux = fun(*tree_unflatten(self.form, tracers))
            outs, self.out_form = tree_flatten(made)
            self._extra, self._aux_form = tree_flatten(aux)
            self.outs, self._extra = [asarray(out) for out in outs], [_kept(item) for item in self._extra]
            self._more = [item for item in self._extra if isinstance(item, Array)]
            self.finals = [tracers[at].value for at in self.of_refs]
            self.whole = scope.finished(self.outs + self._more + self.finals + effects.wanted(scope))
            self.function = scope.finished(self.outs + self.finals)
        self.operands = self.arrays + refs.resolved(scope.captures)
        refs.check_sinks(scope)
        self.sinks = scope.sinks
        self.of_sinks = [number for *numbers, _, _ in scope.sinks for number in numbers]

    def given(self, results):
        """The results and what is given besides, of those of the whole; what comes behind them is left over."""
        for result, out in zip(results, self.outs + self._more):
            result.weak_type = out.weak_type
            if isinstance(result, Tracer):
                result.split, result.varying = explicit.split_of(out), getattr(out, "varying", frozenset())
        values = iter(results[len(self.outs):])
        aux = tree_unflatten(self._aux_form, [next(values) if isinstance(item, Array) else item for item in self._extra])
        for ref in self.of_refs.values():
            ref.put(next(values))
        late = [next(values) for _ in effects.wanted(self._scope)]
        effects.happen(self._scope, late)
        return tree_unflatten(self.out_form, results[:len(self.outs)]), aux, list(values)


def _look_at(derivatives):
    """Lets checkify look at what a program of derivatives gave."""
    watch, arrays_module.watch = arrays_module.watch, None
    try:
        if watch is not None:
            watch.derivative(derivatives)
    finally:
        arrays_module.watch = watch


def _with_gradients(fun, primals):
    """The value, its gradients and what is given besides, by one program."""
    traced = _Tracing(fun, primals)
    wanted = [at for at, array in enumerate(traced.arrays) if dtypes.is_inexact(array.engine_dtype)]
    is_real = dtypes.is_float(traced.outs[0].engine_dtype)
    backward = _with_cotangents(traced.whole, wanted + traced.of_sinks, [0], is_real)
    places = [None] * len(traced.whole.result_types) + [explicit.derivative_placement(traced.arrays[at]) for at in wanted] + [None] * len(traced.of_sinks)
    value, aux, made = traced.given(call(backward, traced.operands + ([] if is_real else [ops.ones_like(traced.outs[0])]), places if any(places) else ()))
    _look_at(made)
    refs.fill_sinks(traced.sinks, made[len(wanted):])
    grads = {at: explicit.derivative(grad, explicit.split_of(traced.arrays[at])) for at, grad in zip(wanted, made)}
    for at, grad in grads.items():
        grad.weak_type = traced.arrays[at].weak_type
        if isinstance(grad, Tracer):
            grad.varying = getattr(traced.arrays[at], "varying", frozenset())
    return value, tree_unflatten(traced.form, [grads[at] if at in grads else np.zeros(array.shape, dtypes.float0) for at, array in enumerate(traced.arrays)]), aux


def vjp(fun, *primals, has_aux=False, is_forward=False, is_linear=False):
    """`is_forward`: for a derivative along tangents, which functions with a rule for cotangents only refuse. `is_linear`: the transpose of a function that
    is linear; no derivative."""
    if batching.Level.stack:
        if any(isinstance(leaf, refs.Ref) for leaf in tree_flatten(primals)[0]):
            raise NotImplementedError("jax.vjp with respect to a Ref within jax.vmap: pass its value, ref[...]")
        return batching.vjp_of_examples(functools.partial(vjp, is_forward=is_forward, is_linear=is_linear), fun, primals, has_aux)
    traced = _Tracing(fun if has_aux else functools.wraps(fun)(lambda *args: (fun(*args), None)), primals, is_forward, is_linear)
    value, aux, _ = traced.given(call(traced.whole, traced.operands))
    pullback = _Pullback(traced.operands, _Traced(traced))
    return (value, pullback, aux) if has_aux else (value, pullback)


def _kept(item):
    """What a function gives besides: an array, or anything else as it is."""
    try:
        return asarray(item)
    except TypeError:
        return item


# ---- pieces

def _whole_shape(piece, spec, mesh):
    """The shape of an array of which each device has such a piece."""
    split = [1 if entry is None else math.prod(mesh.shape.get(axis, 1) for axis in (entry if isinstance(entry, tuple) else (entry,)))
             for entry in spec]
    return [size * count for size, count in zip(piece, split + [1] * len(piece))]


def _own_spec(array, mesh):
    """How an array lies on the mesh: what shard_map takes where no in_specs are given."""
    sharding = array.sharding if isinstance(array, ConcreteArray) else explicit.sharding_of(array) or getattr(array, "asked", None) or getattr(array, "lies", None)
    return sharding.spec if isinstance(sharding, NamedSharding) and sharding.mesh == mesh else PartitionSpec()


def _shard_map_of_examples(f, mesh, arrays, specs, form, out_specs, is_checked):
    """shard_map of all examples of the innermost vmap: the dimension that counts them is not split."""
    with batching.Outside() as outside:
        own = [outside.is_example(array) for array in arrays]
        found = {}

        @functools.wraps(f)
        def of_all(*pieces):
            made = outside.inside(f, *tree_unflatten(form, [outside.example(piece) if is_own else piece for piece, is_own in zip(pieces, own)]))
            outs, found["form"] = tree_flatten(made)
            specs = prefix_leaves(out_specs, found["form"], made, is_leaf=lambda x: isinstance(x, PartitionSpec))
            found["specs"] = tuple(PartitionSpec(None) if spec is None else spec.update((None, *spec)) for spec in specs)
            return tuple(outside.whole(out) for out in outs)
        wholes = [array.value if is_own else array for array, is_own in zip(arrays, own)]
        within = tuple(spec.update((None, *spec)) if is_own else spec for spec, is_own in zip(specs, own))
        results = shard_map(of_all, mesh=mesh, in_specs=within, out_specs=lambda: found["specs"], check_vma=is_checked)(*wholes)
        return tree_unflatten(found["form"], [outside.example(result) for result in results])


def _on_devices(body, arrays, specs, tracer):
    """What print shows of a piece where shard_map is called outside of a program: that of each device. Source of the form: jax-ml/jax, jax/_src/shard_map.py."""
    mesh = body.mesh
    row = ops.reshape(tracer, (1,) + tracer.shape)
    function = body.finished([row])
    operands = arrays + refs.resolved(body.captures)
    inner, Scope._stack = Scope._stack, []
    try:
        outer = Scope("print")
        texts = [spec.text for spec in specs] + ["P()"] * len(body.captures)
        made = outer.core.manual(function, [outer.number(operand) for operand in operands], mesh.core, texts, [PartitionSpec(tuple(mesh.axis_names)).text])
        program = core.compile(outer.core.finished(made), [array._handle for array in outer.captures], [])
        pieces = np.asarray(ConcreteArray(program([array._handle for array in outer.captures])[0]))
    finally:
        Scope._stack = inner
    names = f"({', '.join(map(str, mesh.axis_names))},)"
    return "\n".join(f"On {device} at mesh coordinates {names} = {place}:\n{piece}\n" for (place, device), piece in zip(np.ndenumerate(mesh.devices), pieces))


def _along(spec, mesh, axes):
    """The spec of an array that has one row for each device along these axes, behind which its dimensions lie as `spec` says."""
    return PartitionSpec(tuple(axis for axis in mesh.axis_names if axis in axes), *spec)


def _in_rows(array, spec, mesh):
    """An argument of shard_map that is reduced or unreduced as one of which each device has a row of its own: derivatives by what is reduced are then left unreduced."""
    sharding = NamedSharding(mesh, _along(spec, mesh, spec.reduced or spec.unreduced))
    if spec.reduced and spec.unreduced:
        raise NotImplementedError(f"jax.shard_map with an argument that is reduced over some axes and unreduced over others, {spec}: jax.reshard it to one of both")
    if spec.reduced:
        with explicit.suspended():
            return placed(ops.broadcast_to(array, (math.prod(mesh.shape[axis] for axis in spec.reduced), *array.shape)), sharding)

    def parts(array):
        body = Scope("parts", mesh)
        with body:
            piece = body.argument(array, shape=[stop - start for start, stop in named_placement(mesh, spec, array.shape).box(list(array.shape), 0)])
            function = body.finished([ops.reshape(piece, (1, *piece.shape))])
        scope = Scope._stack[-1]
        return _said(scope.tracer(scope.core.manual(function, [scope.number(array)], mesh.core, [spec.text], [sharding.spec.text])[0]), sharding)

    def back(_, cotangents):  # a derivative by a sum is that by each of its parts: all rows are the same
        with explicit.suspended():
            return [ops.divide(ops.sum_(cotangents[0], 0), float(cotangents[0].shape[0]))]
    if not any(scope.derives for scope in Scope._stack):
        return parts(array)
    from .custom import _with_rule
    return _with_rule(lambda leaves: ([parts(leaves[0])], []), back, [array])[0]


def _as_part(out, spec):
    """A result of shard_map that is a part of a sum, as a row of an array. Source of the text: jax-ml/jax, jax/_src/shard_map.py (_unshard_shaped_array)."""
    is_known = isinstance(out, Tracer)
    said, varying = (out.unreduced, out.varying) if is_known else (frozenset(), frozenset())
    if said - spec.unreduced or spec.unreduced - varying:
        from ..core import ShapedArray
        raise ValueError(f"out_specs passed to shard_map should be equal to the unreduced present on the out_aval. Got out_specs={spec} and "
                         f"out_aval={ShapedArray.of(out)}")
    if spec.reduced:
        raise NotImplementedError(f"jax.shard_map with out_specs of reduced axes, {spec}: leave them out, and jax.reshard the result to that spec")
    return ops.reshape(out, (1, *out.shape)) if spec.unreduced else out


def _summed(rows, sharding):
    """What the rows make up that devices have along the unreduced axes of a sharding."""
    with explicit.suspended():
        whole = ops.sum_(rows, 0)
    return placed(whole, sharding, is_type=True)


def _check_replicated(f, mesh, outs, specs, tree):
    """That results are the same along the axes that their specs leave out. Source of the text: jax-ml/jax, jax/_src/shard_map.py."""
    said = []
    for out, spec, (path, _) in zip(outs, specs, tree_flatten_with_path(tree)[0]):
        named = {*spec.axes, *spec.unreduced}
        varying = [axis for axis in mesh.axis_names if axis in getattr(out, "varying", ()) and mesh.shape[axis] > 1]
        wrong = [axis for axis in varying if axis not in named]
        if wrong:
            braces = lambda axes: "{" + ",".join(axes) + "}"
            left_out = [axis for axis in mesh.axis_names if axis not in named]
            what = (f"only varying across mesh axes {braces([axis for axis in mesh.axis_names if axis in named])} and not {braces(wrong)}, but it was inferred to be "
                    f"possibly varying over {braces(varying)}") if len(left_out) > 1 else \
                f"replicated across mesh axis '{left_out[0]}', but could not infer replication over any axes"
            said.append(f"* out_specs{keystr(path)} is {spec} which implies that the corresponding output value is {what}")
    if said:
        listed = said[0][2:] if len(said) == 1 else "\n\n".join(said)
        error = ValueError(
            f"shard_map applied to the function {_plain_name(f)!r} was given out_specs which require replication which can't be statically inferred given the mesh:\n\n"
            f"The mesh given has shape {tuple(mesh.shape.values())} with corresponding axis names {mesh.axis_names}.\n\n{listed}\n\nCheck if these output values are "
            "meant to be replicated over those mesh axes. If not, consider revising the corresponding out_specs entries. If so, consider disabling the check by passing "
            "the check_vma=False argument to `jax.shard_map`.")
        error.add_note("what leaves a manual computation is equal along the axes that its out_specs leave out\n  fix: sum or gather it over them (jax.lax.psum, "
                       "jax.lax.all_gather), or name them in its out_specs")
        raise error


def shard_map(f=None, mesh=None, in_specs=None, out_specs=None, check_rep=True, check_vma=True, auto=frozenset(), axis_names=None):
    """The function sees one device's pieces, and says itself what devices exchange."""
    if f is None:
        return functools.partial(shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_rep=check_rep, check_vma=check_vma, axis_names=axis_names)
    is_checked = check_rep and check_vma

    @functools.wraps(f)
    def mapped(*args):
        if any(isinstance(spec, hitypes.HiPspec) for spec in tree_flatten((in_specs, out_specs))[0]):
            raise NotImplementedError("jax.shard_map with specs of types of the page's own (hijax.HiPspec): pass the arrays that make the values up")
        at = mesh or current_mesh()
        if at is None:
            raise ValueError("The context mesh cannot be empty: pass mesh= to shard_map, or call it within `with mesh:`.")
        leaves, form = tree_flatten(args)
        arrays = [asarray(leaf) for leaf in leaves]
        is_spec = lambda x: isinstance(x, PartitionSpec)
        specs = [_own_spec(array, at) for array in arrays] if in_specs is None else [
            PartitionSpec() if spec is None else spec
            for spec in _form_leaves("in_specs", (in_specs,) * len(args) if is_spec(in_specs) else in_specs, form, args, is_spec)]
        if any(array.level for array in arrays):
            return _shard_map_of_examples(f, at, arrays, specs, form, out_specs, is_checked)
        if not Scope._stack and any(is_spec(spec) and spec.is_partial for spec in [*specs, *tree_flatten(out_specs, is_spec)[0]]):
            return jit(lambda: mapped(*args))()  # what devices have of the result is what they make of their pieces
        for array, spec in zip(arrays, specs):
            explicit.check_in_spec(array, spec)
        given = specs
        arrays = [_in_rows(array, spec, at) if spec.is_partial else array for array, spec in zip(arrays, specs)]
        specs = [_along(spec, at, spec.reduced or spec.unreduced) if spec.is_partial else spec for spec in specs]
        pieces = []
        for array, spec in zip(arrays, specs):
            raise_verdict(core.jax_verdict(spec.text, at.core, list(array.shape), place="in", argument="shard_map"),
                          lambda: named_placement(at, spec, array.shape))
            box = named_placement(at, spec, array.shape).box(list(array.shape), 0)
            pieces.append([stop - start for start, stop in box])
        body = Scope(_name_of(f), at)
        body.is_checked = is_checked
        if not Scope._stack and not batching.Level.stack:
            body.shows = functools.partial(_on_devices, body, arrays, specs)
        with body:
            inner = [body.argument(array, shape=shape) for array, shape in zip(arrays, pieces)]
            for number, (piece, spec, own) in enumerate(zip(inner, specs, given)):
                piece.varying = frozenset(spec.axes)
                if own.is_partial:
                    inner[number] = ops.reshape(piece, piece.shape[1:])
                    inner[number].unreduced, inner[number].reduced = own.unreduced, own.reduced
            try:
                made = f(*tree_unflatten(form, inner))
            except effects.NeedsValues as needed:
                raise NotImplementedError(f"{needed} within jax.shard_map: call it outside, with the whole arrays") from None
            outs, out_form = tree_flatten(made)
            outs = [asarray(out) for out in outs]
            out_list = [PartitionSpec() if spec is None else spec
                        for spec in _form_leaves("out_specs", out_specs() if callable(out_specs) else out_specs, out_form, made, is_spec)]
            if is_checked:
                _check_replicated(f, at, outs, out_list, made)
            asked = [NamedSharding(at, spec) for spec in out_list]
            outs = [_as_part(out, spec) for out, spec in zip(outs, out_list)]
            out_list = [_along(spec, at, spec.unreduced) if spec.unreduced else spec for spec in out_list]
            for out, spec in zip(outs, out_list):
                raise_verdict(core.jax_verdict(spec.text, at.core, _whole_shape(out.shape, spec, at), place="out", argument="shard_map"))
            function = body.finished(outs)
        operands = arrays + refs.resolved(body.captures)
        texts = [spec.text for spec in specs] + ["P()"] * len(body.captures)
        if not Scope._stack:
            check_devices("shard_map", operands)
        outer = Scope._stack[-1] if Scope._stack else Scope(_name_of(f))
        if not is_checked and any(scope.is_of_shapes for scope in Scope._stack):  # pieces may differ that out_specs say to be the same: nobody sees them
            results = [outer.number(ops.full(_whole_shape(out.shape, spec, at), 0, out.engine_dtype)) for out, spec in zip(outs, out_list)]
        else:
            results = outer.core.manual(function, [outer.number(operand) for operand in operands], at.core, texts, [spec.text for spec in out_list])
        if Scope._stack:
            wholes = [_said(outer.tracer(number), NamedSharding(at, spec)) for number, spec in zip(results, out_list)]
            return tree_unflatten(out_form, [_summed(whole, own) if own.spec.unreduced else whole for whole, own in zip(wholes, asked)])
        constants = outer.captures
        program = core.compile(outer.core.finished(results), [array._handle for array in constants], [])
        return tree_unflatten(out_form, run(program, constants))
    return mapped


def pmap(fun, axis_name=None, *, in_axes=0, out_axes=0, devices=None, static_broadcasted_argnums=(), donate_argnums=(), backend=None, axis_size=None, global_arg_shapes=None):
    """One example for each device: shard_map over a mesh of one axis, whose pieces lose their leading dimension."""
    name = axis_name or "pmap"
    static = {static_broadcasted_argnums} if isinstance(static_broadcasted_argnums, int) else set(static_broadcasted_argnums or ())
    is_axis = lambda axis: axis is None or isinstance(axis, int)

    @functools.wraps(fun)
    def mapped(*args):
        if any(scope.mesh is not None for scope in Scope._stack):
            error = NotImplementedError("jax.pmap within jax.pmap or jax.shard_map: Meshwright gives an inner pmap no devices of its own")
            error.add_note("  fix: name both axes in one mesh, jax.make_mesh((4, 2), ('rows', 'cols')), and use one jax.shard_map over it")
            raise error
        dynamic = [number for number in range(len(args)) if number not in static]
        given = tuple(args[number] for number in dynamic)

        def of_dynamic(*values):
            whole = list(args)
            for number, value in zip(dynamic, values):
                whole[number] = value
            return fun(*whole)
        own_axes = tuple(in_axes[number] for number in dynamic) if isinstance(in_axes, (tuple, list)) else in_axes
        leaves, form = tree_flatten(given)
        axes = prefix_leaves(own_axes, form, given, is_leaf=is_axis)
        leaves = [leaf if axis is None else ops.moveaxis(leaf, axis, 0) if axis else leaf for leaf, axis in zip(leaves, axes)]
        count = next((asarray(leaf).shape[0] for leaf, axis in zip(leaves, axes) if axis is not None), None)
        if count is None:
            raise ValueError("pmap must have at least one non-None value in in_axes")
        available = list(devices) if devices is not None else list(machine.devices)
        if count > len(available):
            raise ValueError(f"compiling computation that requires {count} logical devices, but only {len(available)} XLA devices are "
                             "available")
        mesh = Mesh(np.array(available[:count], dtype=object), (name,))

        def piece(*pieces):
            made = of_dynamic(*tree_unflatten(form, [x if axis is None else x[0] for x, axis in zip(pieces, axes)]))
            return tree_map(lambda x: ops.expand_dims(x, 0), made)
        specs = tuple(PartitionSpec() if axis is None else PartitionSpec(name) for axis in axes)
        made = jit(shard_map(piece, mesh=mesh, in_specs=specs, out_specs=PartitionSpec(name), check_vma=False))(*leaves)
        outs, out_form = tree_flatten(made)
        return tree_unflatten(out_form, [out[0] if axis is None else ops.moveaxis(out, 0, axis) if axis else out
                                         for out, axis in zip(outs, prefix_leaves(out_axes, out_form, made, is_leaf=is_axis))])
    return mapped


def _basis(leaves):
    """For each element of the leaves, all of them as they are where it alone is 1: leaves with one more dimension in front."""
    sizes = [leaf.size for leaf in leaves]
    total, at, made = sum(sizes), 0, []
    for leaf, size in zip(leaves, sizes):
        rows = ops.equal(ops.iota("i32", (total, size), 0), ops.add(ops.iota("i32", (total, size), 1), at))
        made.append(ops.reshape(astype(rows, leaf.engine_dtype), (total,) + leaf.shape))
        at += size
    return made


def _parts(x, leaves):
    """Rows of a derivative, by the leaves whose elements they belong to."""
    at, made = 0, []
    for leaf in leaves:
        made.append(ops.reshape(ops.slice_(x, [at] + [0] * (x.ndim - 1), [at + leaf.size] + list(x.shape[1:])), leaf.shape + x.shape[1:]))
        at += leaf.size
    return made


def _of_argument(fun, args, kwargs, argnums, has_aux):
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    numbers = tuple(number % len(args) for number in numbers)

    def of_chosen(*values):
        changed = list(args)
        for number, value in zip(numbers, values):
            changed[number] = value
        made = fun(*changed, **kwargs)
        return made if has_aux else (made, None)
    return of_chosen, tuple(args[number] for number in numbers)


def _jacobian_type(arrays, holomorphic, name, of):
    for array in arrays:
        if holomorphic and not dtypes.is_complex(array.engine_dtype):
            raise TypeError(f"{name} with holomorphic=True requires {of} with complex dtype, but got {array.dtype.name}.")
        if not holomorphic and not dtypes.is_float(array.engine_dtype):
            raise TypeError(f"{name} requires real-valued {of} ({of[:-1]} dtype that is a sub-dtype of np.floating), but got {array.dtype.name}.")


def jacrev(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """The derivatives of each element of the result, row by row."""
    @functools.wraps(fun)
    def jacobian(*args, **kwargs):
        of_chosen, chosen = _of_argument(fun, args, kwargs, argnums, has_aux)
        value, pullback, aux = vjp(of_chosen, *chosen, has_aux=True)
        outs, out_form = tree_flatten(value)
        _jacobian_type(outs, holomorphic, "jacrev", "outputs")
        with refs.Branch():  # the function was called above: what it does to refs is done
            rows = batching.vmap(lambda *cotangents: vjp(of_chosen, *chosen, has_aux=True)[1](tree_unflatten(out_form, list(cotangents))))(*_basis(outs))
        leaves, form = tree_flatten(rows[0] if isinstance(argnums, int) else rows)
        parts = [_parts(leaf, outs) for leaf in leaves]
        made = tree_unflatten(out_form, [tree_unflatten(form, [part[at] for part in parts]) for at in range(len(outs))])
        return (made, aux) if has_aux else made
    return jacobian


def jacfwd(fun, argnums=0, has_aux=False, holomorphic=False):
    """The same, column by column."""
    @functools.wraps(fun)
    def jacobian(*args, **kwargs):
        of_chosen, chosen = _of_argument(fun, args, kwargs, argnums, has_aux)
        leaves, form = tree_flatten(chosen)
        leaves = [asarray(leaf) for leaf in leaves]
        _jacobian_type(leaves, holomorphic, "jacfwd", "inputs")
        value, aux = of_chosen(*chosen) if has_aux else (None, None)
        columns = batching.vmap(lambda *tangents: jvp(lambda *values: of_chosen(*values)[0], chosen, tree_unflatten(form, list(tangents)))[1],
                                out_axes=-1)(*_basis(leaves))

        def split(column):
            parts = [ops.moveaxis(part, list(range(leaf.ndim)), list(range(-leaf.ndim, 0))) if leaf.ndim else part
                     for part, leaf in zip(_parts(ops.moveaxis(column, -1, 0), leaves), leaves)]
            tree = tree_unflatten(form, parts)
            return tree[0] if isinstance(argnums, int) else tree
        made = tree_map(split, columns)
        return (made, aux) if has_aux else made
    return jacobian


def jvp(fun, primals, tangents, has_aux=False):
    """The values, and how they change along `tangents`: the derivative of <pullback(c), tangents> by c, which is linear in c."""
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(f"primal and tangent arguments to jax.jvp must be tuples or lists; found {type(primals).__name__} and {type(tangents).__name__}.")
    primals, tangents = tuple(primals), tuple(tangents)
    leaves, form = tree_flatten(primals)
    steps, step_form = tree_flatten(tangents)
    if form != step_form:
        raise TypeError(f"primal and tangent arguments to jax.jvp must have the same tree structure; primals have tree structure {form} whereas tangents "
                        f"have tree structure {step_form}.")
    for leaf, step in zip(map(asarray, leaves), steps):
        wanted = leaf.dtype if dtypes.is_inexact(leaf.engine_dtype) else dtypes.float0
        found = step.dtype if getattr(step, "dtype", None) == dtypes.float0 else asarray(step).dtype
        if wanted != found:
            raise TypeError("primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of int/bool primal dtype the tangent dtype must be "
                            f"float0.Got primal dtype {leaf.dtype} and so expected tangent dtype {wanted}, but got tangent dtype {found} instead.")
        if leaf.shape != np.shape(step):
            raise ValueError(f"jvp called with different primal and tangent shapes;Got primal shape {leaf.shape} and tangent shape as {np.shape(step)}")
    value, pullback, aux = vjp(fun if has_aux else (lambda *args: (fun(*args), None)), *primals, has_aux=True, is_forward=True)
    moved = [(leaf, asarray(step)) for leaf, step in zip(map(asarray, leaves), steps) if dtypes.is_inexact(leaf.engine_dtype)]
    outs, out_form = tree_flatten(value)
    smooth = [at for at, out in enumerate(outs) if dtypes.is_inexact(out.engine_dtype)]

    def along(*cotangents):
        whole = [ops.full(out.shape, 0, out.engine_dtype) for out in outs]
        for at, cotangent in zip(smooth, cotangents):
            whole[at] = cotangent
        grads = [grad for grad in tree_flatten(pullback(tree_unflatten(out_form, whole)))[0] if isinstance(grad, Array)]
        products = [ops.real(ops.sum_(ops.multiply(grad, step))) for grad, (_, step) in zip(grads, moved)]
        return functools.reduce(ops.add, products)
    if smooth and moved:
        derivatives = dict(zip(smooth, grad(along, tuple(range(len(smooth))))(*[ops.full(outs[at].shape, 0, outs[at].engine_dtype) for at in smooth])))
    else:
        derivatives = dict.fromkeys(smooth, None)
    changes = [derivatives[at] if derivatives.get(at) is not None else ops.full(out.shape, 0, out.engine_dtype) if at in derivatives
               else np.zeros(out.shape, dtypes.float0) for at, out in enumerate(outs)]
    for change, out in zip(changes, outs):
        if isinstance(change, Array):
            change.weak_type = out.weak_type
    change = tree_unflatten(out_form, changes)
    return (value, change, aux) if has_aux else (value, change)


def linearize(fun, *primals, has_aux=False):
    def linear(*tangents):
        with refs.Branch():  # the function was called before: what it does to refs is done
            return jvp((lambda *args: fun(*args)[0]) if has_aux else fun, primals, tangents)[1]
    if has_aux:
        value, aux = fun(*primals)
        return value, linear, aux
    return fun(*primals), linear


def linear_transpose(fun, *primals):
    """The transpose of a function that is linear; its arguments may be types only."""
    zeros = tree_map(lambda x: _zeros_of(x) if isinstance(x, ShapeDtypeStruct) else ops.zeros_like(asarray(x)), primals,
                     is_leaf=lambda x: isinstance(x, ShapeDtypeStruct))
    return vjp(fun, *zeros)[1]


def hessian(fun, argnums=0, has_aux=False, holomorphic=False):
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


class _ProgramText:
    """A traced function as text: StableHLO where JAX shows a jaxpr."""

    def __init__(self, text):
        self._text = text

    @property
    def jaxpr(self):
        return self

    @property
    def eqns(self):
        raise NotImplementedError("jax.make_jaxpr(f)(..).eqns of a function with derivatives or loops: they are shown as StableHLO, print the jaxpr")

    def __repr__(self):
        return self._text


def make_jaxpr(fun, static_argnums=(), axis_env=None, return_shape=False, abstracted_axes=None):
    """The function in JAX's notation; as StableHLO where what it calls was traced before, such as derivatives and loops."""
    fixed = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @functools.wraps(fun)
    def traced(*args, **kwargs):
        args, kwargs = tree_map(_zeros_of, (args, kwargs), is_leaf=lambda x: isinstance(x, ShapeDtypeStruct))
        dynamic = tuple(arg for number, arg in enumerate(args) if number not in fixed)

        def of_dynamic(*given, **keywords):
            rest = iter(given)
            return fun(*[arg if number in fixed else next(rest) for number, arg in enumerate(args)], **keywords)
        leaves, form = tree_flatten((dynamic, kwargs))
        try:
            if any(isinstance(leaf, refs.Ref) for leaf in leaves):
                raise jaxprs.NotRecorded
            made, _ = jaxprs.recorded(_name_of(fun), of_dynamic, [asarray(leaf) for leaf in leaves], form)
            made.check()
        except jaxprs.NotRecorded:
            made = _ProgramText(jit(fun, static_argnums=static_argnums).lower(*args, **kwargs).as_text())
        if return_shape:
            return made, eval_shape(fun, *args, **kwargs)
        return made
    return traced


def reshard(x, out_shardings):
    return placed(x, out_shardings, is_type=True)


def _with_axes(mesh, axes, kind):
    """The mesh with some of its axes of another kind; all, where none are named."""
    chosen = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    kinds = mesh.axis_types or (AxisType.Auto,) * len(mesh.axis_names)
    return Mesh(mesh.devices, mesh.axis_names, axis_types=tuple(kind if name in chosen else own for name, own in zip(mesh.axis_names, kinds)), is_within=True)


def _mesh_of(shardings):
    """The mesh around, else that of the shardings."""
    named = (one for one in tree_flatten(shardings, _is_target)[0] if isinstance(one, NamedSharding))
    return current_mesh() or next((one.mesh.concrete for one in named), None)


def _within_axes(kind, name):
    """Makes a decorator of what calls a function within a mesh with axes of a kind: its argument `name`, a sharding, is known under its older name, too."""
    def of(call):
        def taken(arguments):
            now, before = arguments.pop(name, None), arguments.pop(f"{name}s", None)
            return before if now is None else now

        @functools.wraps(call)
        def decorator(fun=None, *, axes=None, **given):
            if fun is None:
                return functools.partial(decorator, axes=axes, **given)
            said = taken(given)
            if given:
                raise TypeError(f"{call.__name__}() got an unexpected keyword argument {next(iter(given))!r}")

            @functools.wraps(fun)
            def called(*args, **kwargs):
                sharding = taken(kwargs)
                sharding = said if sharding is None else sharding
                if sharding is None:
                    raise TypeError(f"Missing required keyword argument: '{name}'")
                mesh = _mesh_of(sharding)
                if mesh is None:
                    raise ValueError(f"jax.sharding.{call.__name__} needs a mesh around: use jax.set_mesh")
                return call(functools.partial(fun, **kwargs), args, sharding, _with_axes(mesh, axes, kind))
            return called
        return decorator
    return of


@_within_axes(AxisType.Auto, "out_sharding")
def auto_axes(fun, args, sharding, within):
    """The function, within which the engine chooses how values are split over the axes. Its results lie as `out_sharding` says."""
    with within, explicit.suspended() if not within.is_explicit else contextlib.nullcontext():
        made = fun(*args)
    return placed(made, sharding)


@_within_axes(AxisType.Explicit, "in_sharding")
def explicit_axes(fun, args, sharding, within):
    """The function, within which types say how values are split over the axes. Its arguments lie as `in_sharding` says."""
    with within:
        made = fun(*placed(args, sharding))
    around = current_mesh()
    return made if around is not None and around.is_explicit else tree_map(_without_type, made)


def _without_type(x):
    """A traced value whose type does not say how it is split."""
    if not isinstance(x, Tracer):
        return x
    made = copy.copy(x)
    made.split = None
    return made


def _inverse(sources):
    made = [-1] * len(sources)
    for target, source in enumerate(sources):
        if source >= 0:
            made[source] = target
    return tuple(made)


# What the derivatives of collectives do with cotangents: (cotangent, axes, attributes, whether the axes along which values are the same are known). Source:
# jax-ml/jax, jax/_src/lax/parallel.py.
_TRANSPOSES = {
    "psum": lambda x, axes, at, is_checked: varied(x, frozenset(axes)) if is_checked else collective("psum", x, axes),
    "all_gather": lambda x, axes, at, _: collective("psum_scatter", x, axes, split=at["join"]),
    "psum_scatter": lambda x, axes, at, _: collective("all_gather", x, axes, join=at["split"]),
    "all_to_all": lambda x, axes, at, _: collective("all_to_all", x, axes, split=at["join"], join=at["split"]),
    "ppermute": lambda x, axes, at, _: collective("ppermute", x, axes, sources=_inverse(at["sources"])),
}


def collective(op, x, axis_name, **attributes):
    """A collective over axes of the manual computation around, or over the examples of a vmap."""
    axes = (axis_name,) if isinstance(axis_name, str) else tuple(axis_name)
    mapped = [axis for axis in axes if batching.level_named(axis) is not None]
    if mapped and len(axes) > 1 and op not in ("psum", "pmax", "pmin"):
        raise NotImplementedError(f"jax.lax.{op} over the examples of a vmap and another axis at once")
    for axis in mapped:
        x = batching.over_examples(op, x, axis, **attributes)
    axes = tuple(axis for axis in axes if axis not in mapped)
    if not axes:
        return x
    scope = next((scope for scope in reversed(Scope._stack) if scope.mesh is not None), None)
    for axis in axes:
        if scope is None or axis not in scope.mesh.axis_names:
            raise NameError(f"unbound axis name: {axis}. The following axis names are available: "
                            f"{list(scope.mesh.axis_names) if scope else []}")

    def plain(leaf):
        number = Scope._stack[-1].core.collective(op, [Scope._stack[-1].number(leaf)], scope.mesh.core, list(axes), attributes)
        made = Scope._stack[-1].tracer(number)
        before = getattr(leaf, "varying", frozenset())
        equal = ("psum", "pmax", "pmin") if machine.has_typed_meshes else ("psum", "pmax", "pmin", "all_gather")
        made.varying = before - set(axes) if op in equal else before | set(axes)
        return made

    def one(leaf):
        leaf = asarray(leaf)
        if dtypes.is_complex(leaf.engine_dtype) and op not in ("pmax", "pmin"):
            return ops.complex_(*(one(part(leaf)) for part in (ops.real, ops.imag)))
        if leaf.level:  # of many examples at once
            moved = {name: value + 1 if name in ("join", "split") else value for name, value in attributes.items()}
            return batching.BatchTracer(collective(op, leaf.value, axes, **moved), leaf.level, leaf.weak_type)
        inner = next((inner for inner in reversed(Scope._stack) if inner is scope or inner.derives or inner.is_rule), scope)
        if not inner.derives or op not in _TRANSPOSES or not dtypes.is_inexact(leaf.engine_dtype):
            return plain(leaf)
        from .custom import _with_rule
        back = lambda _, cotangents: [_TRANSPOSES[op](cotangents[0], axes, attributes, scope.is_checked)]
        made = _with_rule(lambda leaves: ([plain(leaves[0])], []), back, [leaf])[0]
        before = getattr(leaf, "varying", frozenset())  # gathered ones may differ, to the transpose of what follows
        made.varying = before - set(axes) if op == "psum" else before | set(axes)
        return made
    if op == "axis_index":
        made = Scope._stack[-1].tracer(Scope._stack[-1].core.collective(op, [], scope.mesh.core, list(axes), {}))
        made.varying = frozenset(axes)
        return made
    return tree_map(one, x)


def cast(x, axes, to):
    """A value as one that differs over axes of the manual computation around, or that is a part of a sum over them, or whose derivative is. Source of the rules and
    texts: jax-ml/jax, jax/_src/lax/parallel.py (pcast)."""
    if to not in ("unreduced", "reduced", "varying"):
        raise ValueError("Got unexpected `to` value. Allowed `to` values are: {'unreduced', 'reduced', 'varying'}")
    state = lambda axis: next((name for name in ("unreduced", "reduced", "varying") if axis in getattr(x, name, ())), "invarying")
    states = {state(axis) for axis in axes}
    if len(states) > 1:
        raise ValueError("jax.lax.pcast can only accept axis_name which corresponds to one of varying, unreduced, reduced or invarying state of the input. Got input "
                         f"type: {type_text(x)}{arrays_module.varying_text(x)}, axes: {tuple(sorted(axes))} and input state: {states}")
    is_checked = next((scope.is_checked for scope in reversed(Scope._stack) if scope.mesh is not None), True)
    if (*states, to) not in {("invarying", "varying"), ("invarying", "reduced"), ("varying", "unreduced"), ("reduced", "varying")} and is_checked and to != "varying":
        raise ValueError(f"Unsupported pcast from={next(iter(states))}, to={to!r}")
    made = varied(evened_along(x, axes) if Scope._stack and Scope._stack[-1].evens and states == {"invarying"} else x, axes)
    made.unreduced, made.reduced = (axes if to == name else frozenset() for name in ("unreduced", "reduced"))
    return made


def varied(x, axes):
    """A value that may differ over axes of the manual computation around."""
    if not any(scope.mesh is not None for scope in Scope._stack):
        raise NameError(f"unbound axis name: {', '.join(sorted(axes))}")
    scope = Scope._stack[-1]
    made = scope.tracer(scope.number(x), x.weak_type)
    made.varying = getattr(x, "varying", frozenset()) | axes
    return made


def evened(operands, along=frozenset()):
    """Operands of an op in what is differentiated within shard_map: those that are the same along an axis along which others differ are summed over it when
    they are differentiated, as JAX does (pvary)."""
    operands = tuple(map(_outside_of_branches, operands))
    varying = along.union(*[getattr(operand, "varying", ()) for operand in operands])
    return tuple(evened_along(operand, varying) for operand in operands) if varying else operands


def evened_along(x, varying):
    """A value as one that differs along these axes."""
    missing = varying - x.varying if isinstance(x, Tracer) and dtypes.is_inexact(x.engine_dtype) else frozenset()
    if not missing:
        return x
    from .custom import _with_rule
    known = x.scope.__dict__.setdefault("evened", {})
    if (x.number, missing) not in known:
        summed = lambda _, cotangents: [collective("psum", cotangents[0], tuple(sorted(missing)))]
        made = _with_rule(lambda leaves: ([varied(leaves[0], missing)], []), summed, [x])[0]
        made.varying = x.varying | missing
        if x.scope is not Scope._stack[-1]:
            return made
        known[x.number, missing] = made
    return known[x.number, missing]


def _outside_of_branches(x):
    """A value from outside of branches that not all devices take: only outside, all of them can sum its cotangents."""
    if not isinstance(x, Tracer) or x.scope not in Scope._stack:
        return x
    first = Scope._stack.index(x.scope) + 1
    chosen = [at for at in range(first, len(Scope._stack)) if Scope._stack[at].choice]
    if not chosen:
        return x
    inside, Scope._stack = Scope._stack, Scope._stack[:chosen[0]]
    try:
        return evened_along(x, frozenset().union(*[inside[at].choice for at in chosen]))
    finally:
        Scope._stack = inside


def _manual_mesh():
    return next((scope.mesh for scope in reversed(Scope._stack) if scope.mesh is not None), None)


def check_permuted_axes(axis_name):
    """Raises where axes are not in the mesh's order: devices are counted in that order. Source of the text: jax-ml/jax, jax/_src/lax/parallel.py
    (_pcollectives_lowering_common)."""
    mesh = _manual_mesh()
    if isinstance(axis_name, str) or mesh is None:
        return
    named = [axis for axis in axis_name if mesh.shape.get(axis, 1) > 1]
    ordered = sorted(named, key=mesh.axis_names.index)
    if named != ordered and not machine.permutes_any_order:
        error = RuntimeError(f"Make sure that the axis_name passed to jax.lax.ppermute is in the same order as the axis_names of the mesh. Got {tuple(axis_name)} "
                             f"and {tuple(mesh.axis_names)}")
        error.add_note(f"ppermute numbers devices in the mesh's order\n  fix: write {tuple(ordered)}, and the pairs in that order")
        raise error


def axis_size(axis_name):
    for level in batching.Level.stack:
        if level.name is not None and level.name == axis_name:
            return level.size
    axes = (axis_name,) if isinstance(axis_name, str) else tuple(axis_name)
    mesh = _manual_mesh()
    if mesh is None:
        raise NameError(f"unbound axis name: {axes[0]}")
    return int(np.prod([mesh.shape[axis] for axis in axes]))
