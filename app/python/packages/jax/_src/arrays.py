# SPDX-License-Identifier: GPL-3.0-or-later
"""Arrays, tracers, and the one way in which an op is applied to them: `bind`."""
import _meshwright as core
import numpy as np

from . import dtypes
from .errors import (ConcretizationTypeError, TracerArrayConversionError, TracerBoolConversionError, TracerIntegerConversionError, UnexpectedTracerError,
                     not_concrete)
from .machine import machine
from .shardings import Mesh, PartitionSpec, placed_devices, sharding_of


class Array:
    """What jnp's functions take and give. Operators are added by jax.numpy."""
    __array_priority__ = 100
    weak_type = False
    level = 0  # of the vmap whose examples it stands for
    asked = None  # the sharding that it was put to, or that a traced value was last constrained to, as the user wrote it

    engine_dtype = property(lambda self: self._type[0])  # "f32"
    shape = property(lambda self: self._type[1])
    dtype = property(lambda self: dtypes.shown(self._type[0]))
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape, dtype=np.int64)))
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    itemsize = property(lambda self: self.dtype.itemsize)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __hash__(self):
        cls = type(self)
        raise TypeError(f"unhashable type: '{cls.__module__}.{cls.__qualname__}'")


def type_text(array):
    """float32[8,128], as JAX's messages have it."""
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def kinds_text(varying, unreduced=(), reduced=()):
    """{V:i, U:(j,k)} as JAX's types have it."""
    made = [f"{kind}:{','.join(sorted(axes)) if len(axes) == 1 else '(' + ','.join(sorted(axes)) + ')'}"
            for kind, axes in (("V", varying), ("U", unreduced), ("R", reduced)) if axes]
    return f"{{{', '.join(made)}}}" if made else ""


def varying_text(x):
    """That of a value of a manual computation."""
    return kinds_text(x.varying - x.unreduced - x.reduced, x.unreduced, x.reduced)


class Shard:
    """One device's piece."""

    def __init__(self, array, position, replica):
        self._array, self._position, self.replica_id = array, position, replica
        self.device = placed_devices(array._handle.placement)[position]

    @property
    def index(self):
        box = self._array._handle.placement.box(list(self._array.shape), self._position)
        return tuple(slice(a, b) if (a, b) != (0, size) else slice(None) for (a, b), size in zip(box, self._array.shape))

    @property
    def data(self):
        self._array._computed()
        return ConcreteArray(core.array(self._array._handle.piece(self._position), self._array.engine_dtype, self.device.id))

    def __repr__(self):
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


lost = []  # what traced functions changed in their arguments and did not return, since the runner last looked: (function, path)
regathered = []  # results that were gathered and that a program took apart again, since the runner last looked: (function, axis, name of the argument)
refused = []  # what was not computed since the runner last looked: why


class NotComputed(Exception):
    """A value that would take longer than a page may."""


class ConcreteArray(Array):
    """An array outside of a program. Pages print its type by JAX's name."""
    __module__, __qualname__ = "jaxlib._jax", "ArrayImpl"

    gathered = ()  # of what a program was asked to gather: (function, dimension, axis)

    def __init__(self, handle, weak_type=False):
        self._handle, self.weak_type = handle, weak_type
        self._type = (handle.dtype, handle.shape)

    # ---- where it lies
    sharding = property(lambda self: self.asked if self.asked is not None else sharding_of(self._handle.placement))
    committed = _committed = property(lambda self: self._handle.is_committed)
    is_fully_replicated = property(lambda self: self._handle.placement.is_replicated)
    is_fully_addressable = True

    def devices(self):
        return set(placed_devices(self._handle.placement))

    @property
    def device(self):
        devices = placed_devices(self._handle.placement)
        return devices[0] if len(devices) == 1 else self.sharding

    @property
    def addressable_shards(self):
        placement, seen, shards = self._handle.placement, {}, []
        for position in range(len(placement.mesh.order)):
            box = tuple(placement.box(list(self.shape), position))
            shards.append(Shard(self, position, seen.get(box, 0)))
            seen[box] = seen.get(box, 0) + 1
        return shards

    global_shards = addressable_shards

    def addressable_data(self, index):
        return self.addressable_shards[index].data

    # ---- its values
    def _computed(self):
        if self._handle.is_deleted:
            raise RuntimeError(f"Array has been deleted with shape={type_text(self)}.")
        if not self._handle.is_ready:
            try:
                self._handle.compute(machine.most_flops)
            except MemoryError as error:
                if getattr(error, "problem_id", "") == "MW1560":
                    found = NotComputed(str(error))
                    refused.append(f"{error}: {error.fix}")
                    found.__notes__ = list(error.__notes__)
                    raise found from None
                raise
        return self._handle

    def _raw(self):
        """The elements as NumPy's, floating types that NumPy lacks as float32."""
        values = self._computed().numpy()
        if isinstance(self.dtype, dtypes.ExtendedDType):
            return core.converted(values, self.engine_dtype, "f32")
        return values

    def __array__(self, dtype=None, copy=None):
        values = self._raw()
        return values if dtype is None else values.astype(dtype)

    def block_until_ready(self):
        if machine.measures:
            self._computed()
        return self  # what is not computed yet is as soon as somebody looks at it

    def copy_to_host_async(self):
        pass

    def delete(self):
        self._handle.delete()

    is_deleted = lambda self: self._handle.is_deleted
    is_ready = lambda self: True

    def item(self, *at):
        return self._raw().item(*at)

    def tolist(self):
        return self._raw().tolist()

    def __bool__(self):
        return bool(self._raw())

    def _scalar(self):
        if self.size != 1:
            raise TypeError(f"Only scalar arrays can be converted to Python scalars; got arr.ndim={self.ndim}")
        return self._raw()

    def __int__(self):
        return int(self._scalar())

    def __float__(self):
        return float(self._scalar())

    def __complex__(self):
        return complex(self._raw())

    def __index__(self):
        return self._raw().__index__()

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(len(self))])

    def __format__(self, spec):
        if self.shape or self._is_unreduced:
            return str(self)
        if not spec and isinstance(self.dtype, dtypes.ExtendedDType):
            return str(self)
        return format(self._raw()[()], spec)  # a NumPy scalar, which shows 0.1 in 32 bits with 17 digits

    @property
    def _form(self):
        """How NumPy shows it: element types that it lacks show six digits, and no point where none is needed."""
        return {"formatter": {"float_kind": "{:g}".format}} if isinstance(self.dtype, dtypes.ExtendedDType) else {}

    _is_unreduced = property(lambda self: bool(self._handle.placement.unreduced))

    def __str__(self):
        if self._is_unreduced:
            return repr(self)
        try:
            return np.array2string(self._raw(), **self._form) if self._form else str(self._raw())
        except NotComputed as error:
            return f"<{type_text(self)}, not computed: {error}>"

    def __repr__(self):
        name = self.dtype.name
        if self._is_unreduced:
            return f"Array(shape={self.shape}, dtype={name}{', weak_type=True' if self.weak_type else ''}, sharding={self.sharding})"
        try:
            values = self._raw()
        except NotComputed as error:
            return f"Array({type_text(self)}, not computed: {error})"
        end = f"dtype={name}{', weak_type=True' if self.weak_type else ''})"
        if not self.shape:
            return f"Array({np.array2string(values, **self._form)}, {end}"
        text = np.array2string(values, prefix="Array(", separator=", ", suffix=",", **self._form)
        if self.size == 0:
            return f"Array([], shape={self.shape}, {end}"
        last = text.splitlines()[-1]
        joint = ",\n      " if len(last) + len(end) + 2 > 77 else ", "
        return f"Array({text}{joint}{end}"

    def __deepcopy__(self, memo):
        return self


def _escaped(value):
    return UnexpectedTracerError("Encountered an unexpected tracer. A function transformed by JAX had a side effect, allowing for a reference to an intermediate "
                                 f"value with type {type_text(value)} wrapped in a JitTracer to escape the scope of the transformation.")


class Scope:
    """A function that is being traced. Arrays from outside become captured arguments. `derives`: it is traced for its derivative only, so that
    Python may look at its values where those of its arguments are known."""
    _stack = []
    inlined = 0  # functions under jax.jit that are part of what is being traced: their values are nobody's to look at

    def __init__(self, name, mesh=None, *, derives=False, place="", transform="jit"):
        self.core, self.captures, self._ids = core.Trace(name), [], {}
        self.mesh = mesh  # of the manual computation around; its axes have names for collectives
        self.derives, self.place, self.transform = derives, place, transform
        self.recomputes = False  # jax.checkpoint is within
        self.is_of_shapes = False  # only the types of its results are asked for
        self.is_forward = self.is_linear = False  # of what derives: see `vjp`
        self.inputs, self.names = [], []  # the arrays that its arguments stand for, and what they are called
        self.sinks = []  # of what derives: (argument, argument, whether it is read, ref) for each ref that a rule writes to, see refs.add_sinks
        self.unknown = None  # of a rule for a derivative: the numbers of the arguments that are cotangents; Python may look at what comes from the others
        self.recorded = None  # of a function that is shown: (op, operands, attributes, results)
        self.is_rule = False  # of what a rule does with cotangents
        self.is_checked = False  # of a manual computation: the axes are known along which a value is the same
        self.evens = False  # of what derives in such a computation: what is the same along an axis meets what is not by `transforms.evened`
        self.choice = frozenset()  # of a branch: the axes along which devices may take another
        self.shows = None  # of a manual computation outside of a program: a function that says what each device has of a value
        self.joins = False  # of one that is shown in JAX's notation: ops that JAX has as one are one
        self.effects = []  # (function of values, the arrays that it wants) for what is called when the program has run
        self.refs = {}  # mutable arrays from outside, by their id: see refs.Held
        self.differentiated = frozenset()  # of what derives: the numbers of the arguments that derivatives are taken by

    def __enter__(self):
        self.evens = self.evens or bool(Scope._stack) and Scope._stack[-1].evens
        Scope._stack.append(self)
        return self

    def __exit__(self, *_):
        Scope._stack.pop()

    def argument(self, like, name="", shape=None):
        shape = like.shape if shape is None else shape
        number = self.core.argument(like.engine_dtype, list(shape), name)
        self.inputs.append(like)
        self.names.append(name)
        made = Tracer(self, number, (like.engine_dtype, tuple(shape)), like.weak_type, frozenset([len(self.inputs) - 1]))
        if isinstance(like, Tracer) and like.varying:
            made.varying = like.varying
        if Mesh.has_explicit:
            from . import explicit
            made.split = explicit.of_last(explicit.split_of(like), len(shape))  # of a turn of a loop, the slices of an array
        made.lies = like.lies if isinstance(like, Tracer) else like.sharding if isinstance(like, ConcreteArray) and like.committed else None
        return made

    def number(self, value):
        """The engine's number of a value here."""
        if isinstance(value, Tracer) and value.scope is self:
            return value.number
        if id(value) not in self._ids:
            if isinstance(value, Tracer) and value.scope not in Scope._stack:
                raise _escaped(value)
            if isinstance(value, ConcreteArray) and value.size <= 16 and value._handle.is_ready and not value.committed:
                number = self.core.constant(value._handle.numpy(), value.engine_dtype)
            else:
                number = self.argument(value).number
                self.captures.append(value)
            self._ids[id(value)] = (number, value)  # the value lives as long as its number
        return self._ids[id(value)][0]

    def tracer(self, number, weak=False, of=()):
        """A value by its number; `of`: what it comes from."""
        made = Tracer(self, number, self.core.type(number), weak)
        own = [operand for operand in of if isinstance(operand, Tracer)]
        made.varying = frozenset().union(*[operand.varying for operand in own])
        own = [operand for operand in own if operand.scope is self]
        made.sources = frozenset().union(*[operand.sources for operand in own])
        if self.differentiated and dtypes.is_inexact(made.engine_dtype):
            made.smooth = frozenset().union(*[operand.smooth for operand in own])
        return made

    def bind(self, op, operands, attributes):
        if any(size < 0 for size in attributes.get("shape", ())):
            raise TypeError(f"{'broadcast_in_dim' if op == 'full' else op} shape must have every element be nonnegative, got {tuple(attributes['shape'])}.")
        numbers = self.core.add(op, [self.number(operand) for operand in operands], attributes)
        made = [self.tracer(number, of=operands) for number in numbers]
        if self.recorded is not None:
            self.recorded.append((op, operands, attributes, made))
        return made

    def finished(self, results):
        return self.core.finished([self.number(result) for result in results])

    def value_of(self, tracer):
        """The value of a tracer, computed now; None: it depends on what is not known."""
        if not (self.derives or self.unknown is not None) or Scope.inlined:
            return None
        if self.unknown is not None and (not tracer.sources or tracer.sources & self.unknown):
            return None
        known = []
        for array in self.inputs:
            known.append(array.scope.value_of(array) if isinstance(array, Tracer) else array if isinstance(array, ConcreteArray) else None)
        if any(array is None for array in known):
            return None
        outside, Scope._stack = Scope._stack, []
        try:
            return call(self.finished([tracer]), known)[0]
        finally:
            Scope._stack = outside


ConcreteArray.__name__ = ConcreteArray.__qualname__  # Python's own errors say it


class Tracer(Array):
    """A value of a function that is being traced. `sources` are the numbers of the arguments that it comes from."""
    lies = None  # of an argument: where the array that is given for it lies
    split = None  # on a mesh with explicit axes: that and how its type says that it is split, see `explicit`
    varying = frozenset()  # in a manual computation: the axes over which it may differ
    unreduced = reduced = frozenset()  # and those of these over which the page says that it is a part of a sum, or that its derivative is
    smooth = frozenset()  # the arguments that it has a derivative by, as far as the ops of its own function tell

    def __init__(self, scope, number, type_, weak_type=False, sources=frozenset()):
        self.scope, self.number, self._type, self.weak_type, self.sources = scope, number, type_, weak_type, sources

    def block_until_ready(self):
        return self

    def __array__(self, *_, **__):
        raise TracerArrayConversionError(self)

    def in_words(self):
        return f"traced array with shape {type_text(self)}"

    def origin(self):
        """Where the value comes from, in JAX's words."""
        if not self.scope.place:
            return ""
        names = [self.scope.names[number] for number in sorted(self.sources) if self.scope.names[number]]
        said = f"\nThe error occurred while tracing the function {self.scope.place} for {self.scope.transform}. "
        if not names:
            return said
        listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])}{',' if len(names) > 2 else ''} and {names[-1]}"
        many = "s" if len(names) > 1 else ""
        return (f"{said}This concrete value was not available in Python because it depends on the value{many} of the argument{many} "
                f"{listed}.")

    def _looked_at(self, function):
        value = self.scope.value_of(self)
        if value is None:
            raise not_concrete(function, self)
        return function(value)

    def __bool__(self):
        return self._looked_at(bool)

    def __int__(self):
        return self._looked_at(int)

    def __float__(self):
        return self._looked_at(float)

    def __complex__(self):
        return self._looked_at(complex)

    def __index__(self):
        value = self.scope.value_of(self)
        if value is None:
            raise TracerIntegerConversionError(self)
        return value.__index__()

    def item(self, *at):
        value = self.scope.value_of(self)
        if value is None:
            raise ConcretizationTypeError(self)
        return value.item(*at)

    tolist = item

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(len(self))])

    def __format__(self, spec):
        return str(self) if not spec else format(self._looked_at(lambda value: value), spec)

    def __repr__(self):
        if self.scope.shows is not None and Scope._stack and Scope._stack[-1] is self.scope:
            return self.scope.shows(self)
        shown = f"{'~' if self.weak_type else ''}{type_text(self)}{varying_text(self)}"
        return f"LinearizeTracer<{shown}>" if self.scope.derives else f"JitTracer({shown})"


watch = None  # of a function under checkify: what looks at each op
_programs = {}
calls = []  # what the page asked for, since the runner last looked: (executable)


def check_devices(name, operands, names=None):
    """Committed operands are on the same devices, in one order. Source: jax-ml/jax, jax/_src/pjit.py (_resolve_in_shardings)."""
    first = None
    for index, operand in enumerate(operands):
        if not operand._handle.is_committed:
            continue
        order = operand._handle.placement.mesh.order
        if first is None:
            first = (index, order)
        elif order != first[1]:
            def said(at):
                which = names[at] if names else "xyzuvw"[at] if at < 6 else f"args[{at}]"
                array = operands[at]
                return (f"argument {which} of {name} with shape {type_text(array)} and device ids "
                        f"{array._handle.placement.mesh.order} on platform {machine.label}")
            raise ValueError("Received incompatible devices for jitted computation. Got "
                             f"{said(first[0])} and {said(index)}")


# Ops that only move elements: what they make of weakly typed ones is so too. Source: jax-ml/jax, jax/_src/lax/lax.py (_standard_weak_type_rule).
_MOVES = {"reshape", "transpose", "broadcast_in_dim", "full", "slice", "reverse", "pad", "concatenate"}


def bind(op, *operands, **attributes):
    """Applies an op: in a function that is being traced it is recorded, else it runs. Gives the op's result, or a list of several."""
    made = _bind(op, operands, attributes)
    if op in _MOVES and all([operand.weak_type for operand in operands]):
        made.weak_type = True
    return made


def _bind(op, operands, attributes):
    if watch is not None:
        return _watched(op, operands, attributes)
    if any([operand.level for operand in operands]):
        from .batching import bind_batched
        return bind_batched(op, operands, attributes)
    if Mesh.has_explicit:
        from . import explicit
        if explicit.is_active():
            return explicit.bind(_bound, op, operands, attributes)
    return _bound(op, operands, attributes)


def _bound(op, operands, attributes):
    if Scope._stack:
        if Scope._stack[-1].evens:
            from .transforms import evened
            operands = evened(operands)
        results = Scope._stack[-1].bind(op, operands, attributes)
    else:
        if machine.had_default_device:
            operands = on_default(operands)
        try:
            handles = [operand._handle for operand in operands]
        except AttributeError:
            raise _escaped(next(operand for operand in operands if isinstance(operand, Tracer))) from None
        key = (op, tuple(attributes.items()), *[handle.key for handle in handles])
        program = _programs.get(key)
        if program is None:
            check_devices(op, operands)
            scope = Scope(op)
            arguments = [scope.argument(operand) for operand in operands]
            program = core.compile(scope.finished(scope.bind(op, arguments, attributes)), handles, [])
            _programs[key] = program
        results = _run_one(op, program, handles, operands, attributes)
    return results[0] if len(results) == 1 else results


def _watched(op, operands, attributes):
    global watch
    before, watch = watch, None
    try:
        made = bind(op, *operands, **attributes)
        before.op(op, operands, attributes, made if isinstance(made, list) else [made])
    finally:
        watch = before
    return made


def as_one(op, operands, attributes, function):
    """What a function gives, whose ops are shown as one where what is traced is shown."""
    recorded = Scope._stack[-1].recorded if Scope._stack and Scope._stack[-1].joins else None
    if recorded is None or any(operand.level for operand in operands):
        return function()
    before = len(recorded)
    made = function()
    recorded[before:] = [(op, operands, attributes, [made])]
    return made


def run(program, operands, handles=None):
    handles = [operand._handle for operand in operands] if handles is None else handles
    for operand, handle in zip(operands, handles):
        if handle.is_deleted:
            raise RuntimeError(f"Array has been deleted with shape={type_text(operand)}.")
    calls.append(program)
    results = [ConcreteArray(result) for result in program(handles)]
    if Mesh.has_explicit:
        from . import explicit
        explicit.keep_kind(results, operands)
    if not handles and machine.had_default_device:
        results = on_default(results)
    if machine.raises_nans or machine.raises_infs:
        for result in results:
            _check_values(result)
    return results


def on_default(arrays):
    """Arrays of one computation, those that nobody placed on the device that jax.default_device names, if all are such."""
    if any(array._handle.is_committed for array in arrays if isinstance(array, ConcreteArray)):
        return arrays
    device = (machine.default_device or machine.devices[0]).id
    return [ConcreteArray(array._handle.moved(core.single(device, array.ndim), False), array.weak_type) if isinstance(array, ConcreteArray) else array
            for array in arrays]


class InvalidValue(Exception):
    """A result that jax_debug_nans or jax_debug_infs refuses: nan or inf."""


def _check_values(array):
    if array.engine_dtype.startswith(("f", "bf", "complex")):
        values = np.asarray(array)
        values = values if values.dtype.kind in "fc" else values.astype(np.float32)
        for is_checked, name, test in ((machine.raises_nans, "nan", np.isnan), (machine.raises_infs, "inf", np.isinf)):
            if is_checked and test(values).any():
                raise InvalidValue(name)


def _run_one(op, program, handles, operands, attributes):
    try:
        return run(program, operands, handles)
    except InvalidValue as invalid:
        from .jaxprs import primitive
        raise FloatingPointError(f"invalid value ({invalid}) encountered in {primitive(op, operands, attributes)}") from None


def call(function, operands, results=()):
    """Calls a traced function: inlined in what is being traced, else it runs."""
    if any([operand.level for operand in operands]):
        from .batching import one_by_one
        return one_by_one(lambda operands: call(function, operands, results), operands)
    if Scope._stack:
        scope = Scope._stack[-1]
        return [scope.tracer(number) for number in scope.core.call(function, [scope.number(operand) for operand in operands])]
    if machine.had_default_device:
        operands = on_default(operands)
    handles = [operand._handle for operand in operands]
    key = (id(function), *[handle.key for handle in handles])
    known = _called.get(key) if not results else None
    if known is None:
        known = core.compile(function, handles, list(results)), function  # the function lives as long as its key
        if not results:
            if len(_called) >= 256:
                _called.clear()
            _called[key] = known
    try:
        return run(known[0], operands, handles)
    except InvalidValue as invalid:  # JAX says it of the first op that gives one: here they are one program
        raise FloatingPointError(f"invalid value ({invalid}) encountered in {known[0].name}") from None


_called = {}  # programs of traced functions


def from_numpy(values, engine=None, weak=False):
    values = np.asarray(values)
    engine = engine or dtypes.named(values.dtype)
    if engine not in dtypes._EXTENDED:
        values = values.astype(dtypes.shown(engine), copy=False)
    else:
        values = core.converted(values.astype(np.float32), "f32", engine)
    default = (machine.default_device or machine.devices[0]).id
    return ConcreteArray(core.array(values, engine, default), weak)


_scalars = {}


def asarray(value, engine=None):
    """An array of what can be one; Python's numbers are weakly typed."""
    if isinstance(value, Array):
        return value if engine is None or value.engine_dtype == engine else astype(value, engine)
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        key = (type(value), value, engine, dtypes.is_x64()) if value == value else None
        found = _scalars.get(key)
        if found is None or (value == 0 and np.signbit(np.real(value))):
            weak = {bool: "i1", int: "i32", float: "f32", complex: "complex<f32>"}[type(value)]
            weak = weak if weak == "i1" else dtypes.default(weak)
            if isinstance(value, int) and engine is None and weak == "i32" and not -2**31 <= value < 2**31:
                raise OverflowError(f"Python int {value} too large to convert to int32")
            found = from_numpy(np.asarray(value), engine or weak, engine is None and not isinstance(value, bool))
            if key is not None and len(_scalars) < 4096 and not (value == 0 and np.signbit(np.real(value))):  # -0. is found under the name of 0.
                _scalars[key] = found
        return found
    if hasattr(type(value), "__jax_array__"):
        return asarray(value.__jax_array__(), engine)
    if isinstance(value, (list, tuple)) and any(isinstance(leaf, Array) for leaf in _leaves(value)):
        from . import ops
        made = ops.stack([asarray(item) for item in value])
        return made if engine is None else astype(made, engine)
    if value is None or isinstance(value, str):
        raise TypeError(f"Value {value!r} of type {type(value)} is not a valid JAX type.")
    values = np.asarray(value)
    if values.dtype == object:
        raise TypeError(f"Value {value!r} with dtype {values.dtype} is not a valid JAX array type.")
    return from_numpy(values, engine)


def _leaves(value):
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def astype(value, engine):
    value = asarray(value)
    if value.engine_dtype == engine:
        return value if not value.weak_type else _strong(value)
    return bind("convert", value, dtype=engine)


def _strong(value):
    if isinstance(value, ConcreteArray):
        return ConcreteArray(value._handle)
    if value.level:
        from .batching import BatchTracer
        return BatchTracer(value.value, value.level)
    made = Tracer(value.scope, value.number, value._type, False, value.sources)
    made.smooth, made.varying, made.split, made.asked = value.smooth, value.varying, value.split, value.asked
    return made
