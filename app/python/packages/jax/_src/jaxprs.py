# SPDX-License-Identifier: GPL-3.0-or-later
"""A traced function in JAX's notation. Jitted functions within are shown as what they consist of. Source of the form: jax-ml/jax, docs/jaxpr.md."""
import re
import string

import numpy as np

from . import dtypes
from .arrays import ConcreteArray, Scope, Tracer

_SHORT = {"i1": "bool", "bf16": "bf16", "f16": "f16", "complex<f32>": "c64", "complex<f64>": "c128"}
_NAMES = {"sine": "sin", "cosine": "cos", "exponential": "exp", "log_plus_one": "log1p", "exponential_minus_one": "expm1", "add": "add", "subtract": "sub",
          "multiply": "mul", "divide": "div", "negate": "neg", "maximum": "max", "minimum": "min", "power": "pow", "remainder": "rem", "shift_left": "shift_left",
          "round_nearest_even": "round[rounding_method=1]", "round_nearest_afz": "round[rounding_method=0]"}
_COMPARED = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}
_REDUCED = {"sum": "reduce_sum", "product": "reduce_prod", "max": "reduce_max", "min": "reduce_min", "or": "reduce_or", "and": "reduce_and"}


def short(engine):
    """f32, u8, bool"""
    return _SHORT.get(engine, engine.replace("ui", "u") if engine.startswith("ui") else engine)


def type_of(array):
    return f"{short(array.engine_dtype)}[{','.join(map(str, array.shape))}]"


def _numbers(values):
    values = tuple(int(value) for value in values)
    return f"({values[0]},)" if len(values) == 1 else "(" + ", ".join(map(str, values)) + ")"


def _name(number):
    """a .. z, then ba, bb as JAX counts."""
    rest, last = divmod(number, 26)
    return (_name(rest) if rest else "") + string.ascii_lowercase[last]


def _described(op, operands, attributes):
    """The primitive with its parameters, and the operands in its order."""
    shape = lambda name="shape": _numbers(attributes[name])
    if op == "compare":
        return _COMPARED[attributes["direction"]], operands
    if op == "convert":
        return f"convert_element_type[new_dtype={dtypes.shown(attributes['dtype']).name} weak_type=False]", operands
    if op == "bitcast_convert":
        return f"bitcast_convert_type[new_dtype={dtypes.shown(attributes['dtype']).name}]", operands
    if op == "full":
        return f"broadcast_in_dim[broadcast_dimensions=() shape={shape()} sharding=None]", operands
    if op == "broadcast_in_dim":
        return f"broadcast_in_dim[broadcast_dimensions={shape('dims')} shape={shape()} sharding=None]", operands
    if op == "reshape":
        return f"reshape[dimensions=None new_sizes={shape()} sharding=None]", operands
    if op == "transpose":
        return f"transpose[permutation={shape('permutation')}]", operands
    if op == "reduce":
        kind = attributes["kind"]
        return f"{_REDUCED[kind]}[axes={shape('dims')}{' out_sharding=None' if kind in ('sum', 'max', 'min') else ''}]", operands
    if op == "concatenate":
        return f"concatenate[dimension={attributes['dim']}]", operands
    if op == "integer_pow":
        return f"integer_pow[y={attributes['y']}]", operands
    if op == "iota":
        return f"iota[dimension={attributes['dim']} dtype={dtypes.shown(attributes['dtype']).name} shape={shape()} sharding=None]", operands
    if op == "select":
        return "select_n", [operands[0], operands[2], operands[1]]
    if op == "slice":
        strides = "None" if all(step == 1 for step in attributes["strides"]) else shape("strides")
        return f"slice[limit_indices={shape('limits')} start_indices={shape('starts')} strides={strides}]", operands
    if op == "reverse":
        return f"rev[dimensions={shape('dims')}]", operands
    if op == "pad":
        rows = ", ".join(f"({a}, {b}, {c})" for a, b, c in zip(attributes["low"], attributes["high"], attributes["interior"]))
        return f"pad[padding_config=({rows}{',' if len(attributes['low']) == 1 else ''})]", operands
    if op == "dynamic_slice":
        return f"dynamic_slice[slice_sizes={shape('sizes')}]", operands
    if op == "dot_general":
        pairs = lambda a, b: f"({_list(attributes[a])}, {_list(attributes[b])})"
        return (f"dot_general[dimension_numbers=({pairs('lhs_contracting', 'rhs_contracting')}, {pairs('lhs_batch', 'rhs_batch')}) "
                f"preferred_element_type={dtypes.shown(attributes['dtype']).name}]"), operands
    return _NAMES.get(op, op), operands


def _list(values):
    return "[" + ", ".join(map(str, values)) + "]"


def _broken(line, text):
    """A long equation with its parameters on lines of their own."""
    name, _, parameters = text.partition("[")
    parts = re.split(r" (?=\w+=)", parameters[:-1]) if parameters else []
    return line if not parts else line.replace(text, f"{name}[\n" + "".join(f"      {part}\n" for part in parts) + "    ]")


def _literal(value):
    return str(value) if value.dtype.kind == "f" else repr(value.item())


class Jaxpr:
    """The ops of a function that was recorded."""

    def __init__(self, scope, arguments, results):
        self._scope, self._arguments, self._results = scope, arguments, results

    @property
    def eqns(self):
        return self._scope.recorded

    def __str__(self):
        names, consts = {}, []

        def variable(array):
            names.setdefault(id(array), _name(len(names)))
            return names[id(array)]

        def atom(array):
            if id(array) in names:
                return names[id(array)]
            if isinstance(array, ConcreteArray) and not array.shape:
                return f"{_literal(np.asarray(array))}:{type_of(array)}"
            return variable(array)
        captured = [array for array in self._scope.captures if array.shape or not isinstance(array, ConcreteArray)]
        consts = [f"{variable(array)}:{type_of(array)}" for array in captured]
        arguments = [f"{variable(array)}:{type_of(array)}" for array in self._arguments]
        lines = []
        used = self._used()
        for op, operands, attributes, made in self._scope.recorded:
            if not any(id(one) in used for one in made):
                continue
            text, ordered = _described(op, operands, attributes)
            given = "".join(f" {atom(operand)}" for operand in ordered)
            line = f"{' '.join(f'{variable(one)}:{type_of(one)}' for one in made)} = {text}{given}"
            lines.append(line if len(line) <= 76 else _broken(line, text))
        results = f"({', '.join(map(atom, self._results))}{',' if len(self._results) == 1 else ''})"
        head = f"{{ lambda {' '.join(consts)}{' ' if consts else ''}; {' '.join(arguments)}{'.' if arguments else ''} let"
        if len(lines) <= 1 and len(head) + sum(map(len, lines)) < 70:
            return f"{head}{' ' if lines else ''}{''.join(lines)} in {results} }}"
        return "\n".join([head, *("    " + line for line in lines), f"  in {results} }}"])

    def _used(self):
        """What the results come from."""
        used = {id(one) for one in self._results}
        for _, operands, _, made in reversed(self._scope.recorded):
            if any(id(one) in used for one in made):
                used |= {id(one) for one in operands}
        return used

    __repr__ = __str__

    @property
    def jaxpr(self):
        return self

    @property
    def consts(self):
        return list(self._scope.captures)

    @property
    def in_avals(self):
        from ..core import ShapedArray
        return [ShapedArray.of(array) for array in self._arguments]

    @property
    def out_avals(self):
        from ..core import ShapedArray
        return [ShapedArray.of(array) for array in self._results]

    invars = property(lambda self: self._arguments)
    outvars = property(lambda self: self._results)


class NotRecorded(Exception):
    """What is traced contains functions that were traced before."""


def recorded(name, function, arrays, form):
    """The jaxpr of a function, and the form of its results. Raises NotRecorded."""
    from .arrays import asarray
    from .trees import tree_flatten, tree_unflatten
    scope = Scope(name)
    scope.recorded, scope.joins = [], True
    tracers = [scope.argument(array) for array in arrays]
    with scope:
        args, kwargs = tree_unflatten(form, tracers)
        outs, out_form = tree_flatten(function(*args, **kwargs))
        outs = [asarray(out) for out in outs]
        scope.finished(outs)
    if scope.refs or any(isinstance(out, Tracer) and out.scope is not scope for out in outs):
        raise NotRecorded
    return Jaxpr(scope, tracers, outs), out_form


def primitive(op, operands, attributes):
    """The name of the primitive alone."""
    return _described(op, operands, attributes)[0].split("[")[0]
