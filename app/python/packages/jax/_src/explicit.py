# SPDX-License-Identifier: GPL-3.0-or-later
"""Types that say how arrays are split. On meshes with explicit axes each op has a rule for how its result is split, which refuses where there is more than one
answer; results are placed so. Source of the rules and texts: jax-ml/jax, jax/_src/lax (the sharding rules of its primitives)."""
import contextlib
import math

from . import dtypes
from .arrays import Array, ConcreteArray, Scope, Tracer, asarray, calls, kinds_text
from .errors import ShardingTypeError
from .jaxprs import primitive, short
from .machine import machine
from .shardings import AxisType, Mesh, NamedSharding, PartitionSpec, current_mesh

_suspended = 0  # functions under way whose result's place is said by other means
_unreduced = frozenset()  # the axes over which the result of the function under way is to stay a sum of parts


@contextlib.contextmanager
def suspended(unreduced=frozenset()):
    """Within it the engine chooses how results are split."""
    global _suspended, _unreduced
    before, _unreduced = _unreduced, unreduced
    _suspended += 1
    try:
        yield
    finally:
        _suspended -= 1
        _unreduced = before


def is_suspended():
    return _suspended > 0


def is_active():
    return Mesh.has_explicit and not _suspended and not any(scope.mesh is not None for scope in Scope._stack)


def split_of(x):
    """The mesh of an array's type, and the spec with an entry for each dimension; no mesh: it is on none. Nothing: it is not known here."""
    if not hasattr(x, "level"):  # a jax.ShapeDtypeStruct
        sharding = x.sharding
    elif x.level:
        return of_last(split_of(x.value), x.ndim)
    elif not isinstance(x, ConcreteArray):
        return x.split
    else:
        sharding = x.sharding if x.committed else None
    return entries_of(sharding, x.ndim) if isinstance(sharding, NamedSharding) and sharding.mesh.is_explicit else (None, PartitionSpec(*(None,) * x.ndim))


def of_last(split, rank):
    """That of the last dimensions."""
    return split and (split[0], split[1].update(split[1][len(split[1]) - rank:]))


def entries_of(sharding, rank):
    """The mesh of a sharding, and its explicit axes as a spec with an entry for each dimension."""
    mesh = sharding.mesh
    kinds = dict(zip(mesh.axis_names, mesh.axis_types or ()))
    made = []
    for entry in (*sharding.spec, *[None] * (rank - len(sharding.spec))):
        axes = tuple(axis for axis in (entry if isinstance(entry, tuple) else (entry,)) if axis is not None and kinds.get(axis) is AxisType.Explicit)
        made.append(_entry(axes))
    return mesh, sharding.spec.update(made)


def type_text(shape, engine, entries, is_short=True, varying=(), unreduced=frozenset(), reduced=frozenset()):
    """f32[8@X,4]{U:Y}; with the axes of a manual computation over which it differs, or is a part of a sum, or its derivative is."""
    sizes = [str(size) if entry is None else f"{size}@{entry if isinstance(entry, str) else '(' + ','.join(entry) + ')'}" for size, entry in zip(shape, entries)]
    return f"{short(engine) if is_short else dtypes.shown(engine).name}[{','.join(sizes)}]{kinds_text(varying, entries.unreduced | unreduced, entries.reduced | reduced)}"


def text(x, is_short=True):
    """An array's type."""
    from ..core import ShapedArray
    return ShapedArray.of(x).str_short(is_short)


def place(x, mesh, entries):
    """An array as a value of this type."""
    from .transforms import placed
    if split_of(x) == (mesh, entries):
        return x
    made = placed(x, NamedSharding(mesh, entries), is_type=True)
    made.weak_type = x.weak_type
    return made


def bind(plain, op, operands, attributes):
    """What `arrays.bind` does on a mesh with explicit axes."""
    around = current_mesh()
    _check_context(op, operands, attributes, around)
    typed = [split_of(operand) for operand in operands]
    from .batching import Level
    if not (Scope._stack or Level.stack) and any(known and known[1].unreduced for known in typed):  # as a program: devices make parts of a sum of those that they have
        from .transforms import jit
        return jit(lambda: bind(plain, op, operands, attributes))()
    before = len(calls)
    made = plain(op, operands, attributes)
    if None in typed:
        return made
    try:
        return _with_types(made, typed, around, op, operands, attributes)
    except Exception:
        del calls[before:]  # what the types refuse did not run
        raise


def _with_types(made, typed, around, op, operands, attributes):
    """Results, placed as the types of the operands say."""
    meshes = [mesh for mesh, _ in typed if mesh is not None]
    if any(mesh != meshes[0] for mesh in meshes):
        other = next(mesh for mesh in meshes if mesh != meshes[0])
        raise ShardingTypeError(f"Mesh for all inputs should be equal. Got one mesh: {meshes[0].abstract_mesh} and another mesh: {other.abstract_mesh}")
    mesh = meshes[0] if meshes else around if around is not None and around.is_explicit else None
    if mesh is None:
        return made
    name, splits = primitive(op, operands, attributes), [entries for _, entries in typed]
    is_whole = not any(entry is not None for entries in splits for entry in entries)
    sums = _sums(op, name, operands, splits, attributes)

    def placed(one):
        entries = PartitionSpec(*(None,) * one.ndim if is_whole else _RULES.get(op, _broadcast)(name, operands, splits, attributes, one, mesh), **sums)
        _check_once(name, operands, one, entries)
        return _typed(one, mesh, entries, op in _MOVING and not is_whole or bool(entries.unreduced))
    return [placed(one) for one in made] if isinstance(made, list) else placed(made)


def _check_context(op, operands, attributes, around):
    """That no operand lies on a mesh with automatic axes where the mesh around has explicit ones. Source of the text: jax-ml/jax, jax/_src/core.py
    (check_avals_context_mesh)."""
    for x in operands if around is not None and around.is_explicit else ():
        sharding = x.sharding if isinstance(x, ConcreteArray) and x.committed else getattr(x, "lies", None)
        mesh = sharding.mesh if isinstance(sharding, NamedSharding) else around
        if not mesh.is_explicit and mesh.axis_types:
            error = ValueError(f"For primitive {primitive(op, operands, attributes)}, context mesh {around.abstract_mesh} should match the aval mesh "
                               f"{mesh.abstract_mesh} for shape {text(x, False)}.")
            error.add_note("types say how arrays are split on a mesh with explicit axes, and do not on one with automatic axes\n"
                           "  fix: make both meshes of one kind (axis_types=), or jax.device_put the array to a sharding on the mesh of jax.set_mesh")
            raise error


def keep_kind(results, operands):
    """Results that lie on the mesh of an operand have axes of its kind, also where the page has made an equal mesh with axes of another kind."""
    on = next((x.sharding.mesh for x in operands if x.committed and isinstance(x.sharding, NamedSharding)), None)
    for result in results if on is not None else ():
        own = result.sharding
        if isinstance(own, NamedSharding) and own.mesh == on and own.mesh.axis_types != on.axis_types and not own.spec.is_partial:
            spec = list(own.spec)
            while spec and spec[-1] is None and not on.is_explicit:
                spec.pop()
            result.asked = NamedSharding(on, PartitionSpec(*spec))


def _typed(x, mesh, entries, moves):
    """A result with its type. What only follows its operands lies as they do: in a program nothing needs to say so."""
    if isinstance(x, Tracer) and not moves:
        x.split = mesh, entries
        return x
    return place(x, mesh, entries)


def _check_once(name, operands, result, entries):
    """That no axis splits two dimensions."""
    if len(set(entries.axes)) != len(entries.axes):
        raise ShardingTypeError(f"{name} operation with inputs: {', '.join(map(text, operands))} produces an illegally sharded result: "
                                f"{type_text(result.shape, result.engine_dtype, entries)}")


def sharding_of(x):
    """The sharding in the type of an array on an explicit mesh."""
    known = split_of(x) if Mesh.has_explicit else None
    return None if known is None or known[0] is None else NamedSharding(*known)


def placement_of(x):
    sharding = sharding_of(x)
    return None if sharding is None else sharding.placement(x.shape)


def split_as(x, split):
    """An array with the type of another."""
    return x if not Mesh.has_explicit or split is None or split[0] is None or x.level else place(x, *split)


def like(x, other):
    return split_as(x, split_of(other)) if Mesh.has_explicit else x


def derivative(x, split):
    """A derivative by an array of this type: where that is reduced, it is left unreduced."""
    return split_as(x, split and (split[0], split[1].of_cotangent))


def derivative_placement(x):
    """Where a derivative by an array lies if it is left unreduced; nothing: wherever it is found."""
    known = split_of(x) if Mesh.has_explicit else None
    return NamedSharding(known[0], known[1].of_cotangent).placement(x.shape) if known is not None and known[1].reduced else None


def follow(result, other, is_stacked=False):
    """The result of a loop with the type that a turn gives, of all turns where `is_stacked`."""
    known = split_of(other) if Mesh.has_explicit else None
    if known is not None and isinstance(result, Tracer):
        result.split = (known[0], known[1].update((None, *known[1]))) if is_stacked else known
    return result


def check_scanned(leaves):
    """Source of the text: jax-ml/jax, jax/_src/lax/control_flow/loops.py."""
    known = [split_of(leaf) for leaf in leaves] if Mesh.has_explicit and is_active() else []
    if any(one is not None and one[1][0] is not None for one in known):
        raise ValueError(f"0th dimension of all xs should be replicated. Got {', '.join(str(one[1]) for one in known if one is not None)}")


def check_split(x, mesh, target):
    """That an array is split as a sharding says. Source of the text: jax-ml/jax, jax/_src/pjit.py (assert_shardings_equal)."""
    known = split_of(x)
    spec = target.spec if isinstance(target, NamedSharding) else target
    if known is None or not isinstance(spec, PartitionSpec):
        return
    wanted = spec.of_rank(x.ndim)
    if wanted != known[1].update([entry if entry is PartitionSpec.UNCONSTRAINED else own for entry, own in zip(wanted, known[1])]):
        raise AssertionError("`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The array sharding: "
                             f"{known[1]} did not match the sharding provided: {wanted}. Please use `jax.sharding.reshard` to "
                             "shard your input to the sharding you want.")


def check_in_spec(x, spec):
    """That an argument of shard_map is split as its spec says. Source of the text: jax-ml/jax, jax/_src/shard_map.py."""
    known = split_of(x) if is_active() else None
    if known is None or known[0] is None:
        return
    for name in ("unreduced", "reduced"):
        if getattr(spec, name) != getattr(known[1], name):
            raise ValueError(f"in_specs containing {name} {spec} passed to shard_map should be equal to the {name} present on the in_aval {text(x)}")
    wanted = spec.update([_entry(entry if isinstance(entry, tuple) else () if entry is None else (entry,)) for entry in spec.of_rank(x.ndim)])
    if wanted != known[1]:
        raise ValueError(f"in_specs passed to shard_map: {wanted} does not match the specs of the input: {known[1]} for arg: "
                         f"{text(x, False)}. `in_specs` is an optional argument so you can omit specifying it and shard_map will infer the in_specs from the "
                         "arguments. If you want to reshard your inputs, you can use `jax.reshard` on the arguments and then pass those args to shard_map.")


def beside(made, x):
    """An array that was made in the shape of another: where that lies, if it was placed."""
    if isinstance(x, ConcreteArray) and x.committed and not x.weak_type and isinstance(made, ConcreteArray):
        return ConcreteArray(made._handle.moved(x._handle.placement, True), made.weak_type)
    if isinstance(made, Tracer) and machine.has_typed_meshes:
        made.varying |= getattr(x.value if getattr(x, "level", 0) else x, "varying", frozenset())
    return like(made, x)


def whole_along(x, axis, says):
    """How an array is split that an operation along an axis needs whole; `says` makes the error's text of its type."""
    known = split_of(x) if Mesh.has_explicit and is_active() else None
    if known is not None and known[1][axis] is not None:
        raise ShardingTypeError(says(text(x, False)))
    return known


def scattered(x, index, values):
    """How `x.at[index].set(values)` is split: as x, where what the index chooses from is whole. Nothing: no type says."""
    known = split_of(x) if Mesh.has_explicit and is_active() else None
    of_values = split_of(values) if isinstance(values, Array) else (None, ())
    if known is None or known[0] is None or of_values is None:
        return None
    parts = list(index) if isinstance(index, tuple) else [index]
    parts = [part for part in parts if part is not None]
    if Ellipsis in [part for part in parts if not isinstance(part, Array)]:
        at = next(number for number, part in enumerate(parts) if part is Ellipsis)
        parts[at:at + 1] = [slice(None)] * (x.ndim - len(parts) + 1)
    parts += [slice(None)] * (x.ndim - len(parts))
    whole = [isinstance(part, slice) and part.indices(size) == (0, size, 1) for part, size in zip(parts, x.shape)]
    chosen = [entry for entry, is_whole in zip(known[1], whole) if not is_whole]
    if any(entry is not None for entry in chosen) or any(entry is not None and entry not in known[1] for entry in of_values[1]):
        raise ShardingTypeError("Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter update as out sharding could not be "
                                f"resolved unambiguously (or would require collectives on inputs). Got operand=ShapedArray({text(x, False)}), "
                                f"updates=ShapedArray({text(asarray(values), False)})")
    return known


# ---- partial sums

# Ops that give parts of a sum from parts of a sum: the sum of what they give is what they give of the sum.
_LINEAR = {"convert", "broadcast_in_dim", "reshape", "transpose", "slice", "pad", "concatenate", "dynamic_update_slice", "select"}


def _sums(op, name, operands, splits, attributes):
    """The unreduced and the reduced axes of an op's results. Source of the rules and texts: jax-ml/jax, jax/_src/lax/lax.py (the `*_ur_rule` functions)."""
    if not any(spec.is_partial for spec in splits):
        return {}
    unreduced = [spec.unreduced for spec in splits]
    if op == "dot_general":
        if any(unreduced):
            raise ShardingTypeError("lhs or rhs passed to dot_general cannot be unreduced. Got "
                                    + " and ".join(f"{side}=ShapedArray({text(one, False)})" for side, one in zip(("lhs", "rhs"), operands)))
        return {}
    reduced = _reduced(op, operands, splits)
    if not any(unreduced):
        return {"reduced": reduced}
    if op in ("multiply", "divide"):
        return {"unreduced": _scaled(op, operands, unreduced, [spec.reduced for spec in splits])}
    if op not in _LINEAR | {"add"} and (op, attributes.get("kind")) != ("reduce", "sum"):
        error = NotImplementedError(f"unreduced rule for {name} is not implemented. Please file an issue at https://github.com/jax-ml/jax/issues")
        error.is_raised_by_jax = True
        error.add_note("a device has a part of the sum only, and the op is not linear: what it makes of the parts adds up to something else\n"
                       "  fix: jax.reshard the array to its spec without unreduced axes first")
        raise error
    if op == "add" and not all(unreduced):
        one, other = ("lhs", "rhs") if unreduced[0] else ("rhs", "lhs")
        raise ShardingTypeError(f"{one} is unreduced while {other} is not. `add` operation does not allow this because there will be implicit communication. Please "
                                f"reduce {one} via `reshard` before calling `add`.")
    several = list(dict.fromkeys(filter(None, unreduced)))
    if op == "add" and len(several) > 1:
        raise ShardingTypeError(f"lhs and rhs to `add` must be unreduced along the same mesh axes. Got lhs={unreduced[0]}, rhs={unreduced[1]}")
    if len(several) > 1:
        raise ShardingTypeError(f"All operands should be unreduced along the same mesh axes. Got unreduced specs: {set(several)}")
    return {"unreduced": several[0], "reduced": reduced}


def check_summed(lhs, rhs, contracting):
    """That a product whose result is to stay a sum of parts sums over the axes that are named. Source of the texts: jax-ml/jax, jax/_src/lax/lax.py
    (_dot_general_unreduced_rule)."""
    known = [split_of(one) for one in (lhs, rhs)] if _unreduced else [None]
    if None in known:
        return
    specs = [tuple(split[1][dim] for dim in dims) for split, dims in zip(known, contracting)]
    if specs[0] != specs[1]:
        raise ShardingTypeError("lhs and rhs contracting dims should be sharded identically when out_sharding provided to dot_general mentions unreduced_axes. Got "
                                f"lhs_contracting_spec={specs[0]}, rhs_contracting_spec={specs[1]}")
    if _unreduced != frozenset(PartitionSpec(*specs[0]).axes):
        raise ShardingTypeError("out_sharding's unreduced axes should be equal to the contracting specs. Got unreduced axes="
                                f"{_unreduced} and contracting spec={specs[0]}")


def _reduced(op, operands, splits):
    several = list(dict.fromkeys(spec.reduced for spec in splits if spec.reduced))
    if len(several) > 1:
        raise ShardingTypeError(f"All inputs should be reduced across the same mesh axes. Got specs: {set(several)}")
    reduced = several[0] if several else frozenset()
    if op in _RULES:
        return reduced
    for one, spec in zip(operands, splits):
        if reduced.intersection(spec.axes):
            raise ShardingTypeError("Inputs cannot be sharded/varying on the same axes that another input is reduced on. Reshard the input which is reduced to be "
                                    "sharded on the mesh axes it is reduced on via `jax.sharding.reshard(inp, jax.P(...))`. Got input type: "
                                    f"{text(one, False)} and reduced spec: {reduced}")
        if one.ndim and reduced - spec.reduced - spec.unreduced:
            raise ShardingTypeError("Inputs cannot be replicated on the same axes that another input is reduced on. Got input type: "
                                    f"{text(one, False)} and reduced spec: {reduced}")
    return reduced


def _scaled(op, operands, unreduced, reduced):
    """The unreduced axes of a product or quotient of parts of a sum."""
    texts = [f"ShapedArray({text(one, False)})" for one in operands]
    if op == "divide":
        if unreduced[1]:
            raise ValueError(f"The denominator cannot be unreduced passed to `div`. Got y={texts[1]}")
        if unreduced[0] != reduced[1]:
            raise ValueError(f"Denominator should be reduced along the same axes numerator is unreduced on. Got x={texts[0]}, y={texts[1]}")
    elif all(unreduced):
        raise ShardingTypeError(f"lhs and rhs to `mul` cannot be unreduced since mul is bilinear. Got lhs={unreduced[0]}, rhs={unreduced[1]}")
    elif (unreduced[0] or reduced[0]) != (unreduced[1] or reduced[1]):
        one, other = ("RHS", "LHS") if unreduced[0] else ("LHS", "RHS")
        raise ShardingTypeError(f"{one} should be reduced along the same axes {other} is unreduced on. Got lhs={texts[0]} and rhs={texts[1]}")
    return unreduced[0] or unreduced[1]


# ---- rules: (name, operands, how each is split, attributes, result, mesh), give how the result is split

def _broadcast(name, operands, splits, attributes, result, mesh):
    """Of operations on elements: dimensions of size 1 that nothing splits do not count."""
    rank = result.ndim
    several = [((1,) * (rank - one.ndim) + tuple(one.shape), (None,) * (rank - one.ndim) + tuple(entries))
               for one, entries in zip(operands, splits) if one.shape]
    made = []
    for dim in range(rank):
        own = [(shape[dim], entries[dim]) for shape, entries in several]
        counting = [entry for size, entry in own if size != 1 or entry is not None]
        named = list(dict.fromkeys(entry for entry in counting if entry is not None))
        if len(named) > 1:
            raise ShardingTypeError(f"{name} got incompatible shardings for broadcasting: {', '.join(str(entries) for _, entries in several)}.")
        made.append(named[0] if named else None)
    return made


def _new(name, operands, splits, attributes, result, mesh):
    return (None,) * result.ndim


def _broadcast_in_dim(name, operands, splits, attributes, result, mesh):
    made = [None] * result.ndim
    for dim, entry in zip(attributes["dims"], splits[0]):
        made[dim] = entry
    return made


def _transpose(name, operands, splits, attributes, result, mesh):
    return [splits[0][dim] for dim in attributes["permutation"]]


def _reduce(name, operands, splits, attributes, result, mesh):
    return [entry for dim, entry in enumerate(splits[0]) if dim not in attributes["dims"]]


def _concatenate(name, operands, splits, attributes, result, mesh):
    typed = [split_of(one) for one in operands]
    on_mesh = [entries for own, entries in typed if own is not None]
    if any(entries != on_mesh[0] for entries in on_mesh):
        texts = ", ".join(str(NamedSharding(own, entries)) if own is not None else f"NamedSharding(mesh=AbstractMesh(), spec={entries})"
                          for own, entries in typed)
        raise ShardingTypeError(f"All operands should have the same sharding. Got shardings {texts}")
    return on_mesh[0]


def _dot_general(name, operands, splits, attributes, result, mesh):
    (left, right), at = splits, attributes
    of = lambda entries, dims: tuple(entries[dim] for dim in dims)
    batches = of(left, at["lhs_batch"]), of(right, at["rhs_batch"])
    if batches[0] != batches[1]:
        raise ShardingTypeError("dot_general requires lhs batch dimensions and rhs batch dimensions to have the same sharding, got "
                                f"{batches[0]} and {batches[1]}.")
    summed = of(left, at["lhs_contracting"]), of(right, at["rhs_contracting"])
    if any(a is not None and b is not None for a, b in zip(*summed)):
        raise ShardingTypeError("Contracting dimensions are sharded and it is ambiguous how the output should be sharded. Please specify the output sharding via the "
                                f"`out_sharding` parameter. Got lhs_contracting_spec={summed[0]} and rhs_contracting_spec={summed[1]}")
    free = lambda entries, *gone: tuple(entry for dim, entry in enumerate(entries) if dim not in {dim for dims in gone for dim in dims})
    return batches[0] + free(left, at["lhs_batch"], at["lhs_contracting"]) + free(right, at["rhs_batch"], at["rhs_contracting"])


def _count(mesh, entry):
    return math.prod(mesh.shape[axis] for axis in (entry if isinstance(entry, tuple) else (entry,)))


def _of_other_size(name, operands, splits, attributes, result, mesh):
    """Of operations that change sizes only: a dimension that is split must stay so."""
    name = {"slice": "slicing", "pad": "padding"}.get(name, name)
    if all(size == 1 for size in result.shape):
        return (None,) * result.ndim
    for before, after, entry in zip(operands[0].shape, result.shape, splits[0]):
        if before != after and entry is not None and after % _count(mesh, entry):
            raise ShardingTypeError(f"{name} on sharded dims where out dim ({after}) is not divisible by mesh axes ({_count(mesh, entry)}) with spec ({entry}) is not "
                                    f"implemented. Got input type={text(operands[0])} and output shape={tuple(result.shape)}")
    return splits[0]


def _dynamic_update_slice(name, operands, splits, attributes, result, mesh):
    if splits[0] != splits[1]:
        raise ShardingTypeError("dynamic_update_slice operand sharding must be equal to update sharding, got operand sharding "
                                f"{text(operands[0], False)} and update sharding {text(operands[1], False)}.")
    return splits[0]


def _reshape(name, operands, splits, attributes, result, mesh):
    """Sizes of 1 come and go; one dimension may become several, or several one: its axes go to the parts in their order."""
    x, entries = operands[0], splits[0]
    old = [(size, entry) for size, entry in zip(x.shape, entries) if size != 1]
    new = [size for size in result.shape if size != 1]
    made = _regrouped(old, new, mesh)
    if made is None:
        raise ShardingTypeError("This reshape is not supported. Please specify the sharding of the output via the `out_sharding` argument of jax.lax.reshape. Got "
                                f"operand type: {text(x, False)}, new sizes: {tuple(result.shape)}")
    rest = iter(made)
    return [None if size == 1 else next(rest) for size in result.shape]


def _regrouped(old, new, mesh):
    """How sizes are split that one dimension was taken apart into, or several were put together as; nothing: these are others."""
    made, changed, at = [], 0, 0
    olds, news = [size for size, _ in old], list(new)
    while olds or news:
        many, one = (news, olds) if len(new) > len(old) else (olds, news)
        if not one:
            return None
        size, count = one[0], 0
        while math.prod(many[:count]) != size or not count:
            count += 1
            if count > len(many) or math.prod(many[:count]) > size:
                return None
        changed += count > 1
        if changed > 1:
            return None
        is_apart = many is news
        taken = [entry for _, entry in old[at:at + (1 if is_apart else count)]]
        axes = [axis for entry in taken for axis in (entry if isinstance(entry, tuple) else (entry,))]
        while axes and axes[-1] is None:
            axes.pop()
        parts = _spread(axes, news[:count if is_apart else 1], mesh) if count > 1 else taken
        if parts is None:
            return None
        made += parts
        at += len(taken)
        del one[:1], many[:count]
    return made


def _spread(axes, sizes, mesh):
    """Axes over parts of a dimension, the first ones over the first part."""
    if None in axes:
        return None
    made = []
    for size in sizes:
        own = []
        while size > 1 and axes:
            size, rest = divmod(size, mesh.shape[axes[0]])
            if rest:
                return None
            own.append(axes.pop(0))
        made.append(_entry(own))
    return None if axes else made


def _entry(axes):
    return None if not axes else axes[0] if len(axes) == 1 else tuple(axes)


def _gather(name, operands, splits, attributes, result, mesh):
    (x, indices), (own, of_indices) = operands, splits
    sizes, window = attributes["slice_sizes"], attributes["window"]
    if any(of_indices) or any(entry is not None and sizes[dim] != x.shape[dim] for dim, entry in enumerate(own) if dim in attributes["index_map"]):
        raise ShardingTypeError("Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out sharding could not be resolved "
                                f"unambiguously (or would require collectives on inputs). Got operand=ShapedArray({text(x, False)}), "
                                f"indices=ShapedArray({text(indices, False)})")
    kept = iter([entry for dim, entry in enumerate(own) if dim not in attributes["collapsed"]])
    return [next(kept) if dim in window else None for dim in range(result.ndim)]


def _fft(name, operands, splits, attributes, result, mesh):
    own, transformed = list(splits[0]), len(attributes["lengths"])
    if any(own[result.ndim - transformed:]):
        raise ShardingTypeError(f"{name} of dimensions that are split: {text(operands[0], False)}. Reshard the operand so that the last {transformed} are not.")
    return own


def _unknown(name, operands, splits, attributes, result, mesh):
    raise ShardingTypeError(f"sharding rule for {name} is not implemented. Please file an issue at https://github.com/jax-ml/jax/issues. You can work around this error by "
                            "dropping that operation into full auto sharding mode via: `jax.sharding.auto_axes(fun, out_shardings=...)`")


_RULES = {"full": _new, "iota": _new, "random_bits": _new, "uniform": _new, "normal": _new, "broadcast_in_dim": _broadcast_in_dim, "transpose": _transpose,
          "reduce": _reduce, "concatenate": _concatenate, "dot_general": _dot_general, "slice": _of_other_size, "pad": _of_other_size,
          "dynamic_slice": _of_other_size, "dynamic_update_slice": _dynamic_update_slice, "reshape": _reshape, "gather": _gather, "scatter": _unknown,
          "sort": _unknown, "fft": _fft}
_MOVING = {"dot_general", "reduce", "gather", "reshape", "full", "iota", "random_bits", "uniform", "normal"}  # whose results may lie in more than one way
