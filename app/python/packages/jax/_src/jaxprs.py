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


def key(array):
    """What tells values apart: one that is traced may be seen as of a strong and of a weak type."""
    return (id(array.scope), array.number) if isinstance(array, Tracer) else id(array)


_WITH_JAXPRS = ("cond", "scan", "while")


def _with_jaxprs(attributes, names):
    """The lines of parameters of an op that has jaxprs among them."""
    lines = []
    for name, value in sorted(attributes.items()):
        if isinstance(value, tuple) and value and isinstance(value[0], Jaxpr):
            inner = [line for one in value for line in one._text(names, True).split("\n")]
            lines += [f"{name}=(", *("  " + line for line in inner), ")"]
        else:
            lines += (f"{name}={value._text(names, True)}" if isinstance(value, Jaxpr) else f"{name}={value}").split("\n")
    return lines


class Jaxpr:
    """The ops of a function that was recorded. Those of loops and branches have jaxprs among their attributes."""

    def __init__(self, scope, arguments, results):
        self._scope, self._arguments, self._results = scope, arguments, results
        self.takes = None  # of a branch: what all branches take

    @property
    def eqns(self):
        return self._scope.recorded

    def taken(self):
        """What it takes from outside besides its arguments: arrays, and values of functions around; numbers are written where they are used."""
        if self.takes is not None:
            return self.takes
        own = {key(one) for *_, made in self.eqns for one in made} | set(map(key, self._arguments))
        used = {key(one): one for _, operands, _, _ in self.eqns for one in operands}
        used |= {key(one): one for one in self._results}
        return [one for number, one in used.items() if number not in own and not (isinstance(one, ConcreteArray) and not one.shape)]

    def check(self):
        """Raises NotRecorded where it has values of its own that no op made."""
        if any(isinstance(one, Tracer) and one.scope is self._scope for one in self.taken()):
            raise NotRecorded

    def _text(self, names, is_inner):
        """`names` are those of all variables so far, of jaxprs around and before, too."""
        own = dict()

        def variable(array):
            if key(array) not in own:
                own[key(array)] = _name(len(names))
                names.append(array)
            return own[key(array)]

        def atom(array):
            if key(array) in own:
                return own[key(array)]
            if isinstance(array, ConcreteArray) and not array.shape:
                return f"{_literal(np.asarray(array))}:{type_of(array)}"
            return variable(array)
        typed = lambda arrays: " ".join(f"{variable(array)}:{type_of(array)}" for array in arrays)
        consts = typed(self.taken())
        arguments = typed(self._arguments)
        if is_inner:
            consts, arguments = "", " ".join(filter(None, (consts, arguments)))
        lines, used = [], self._used()
        for op, operands, attributes, made in self.eqns:
            if not any(key(one) in used for one in made):
                continue
            text, ordered = _described(op, operands, attributes) if op not in _WITH_JAXPRS else (op, operands)
            given = "".join(f" {atom(operand)}" for operand in ordered)
            results = " ".join(f"{variable(one)}:{type_of(one)}" if key(one) in used else f"_:{type_of(one)}" for one in made)
            if op in _WITH_JAXPRS:
                parameters = "".join(f"      {line}\n" for line in _with_jaxprs(attributes, names))
                lines.append(f"{results} = {op}[\n{parameters}    ]{given}")
                continue
            line = f"{results} = {text}{given}"
            lines.append(line if len(line) <= 76 else _broken(line, text))
        results = f"({', '.join(map(atom, self._results))}{',' if len(self._results) == 1 else ''})"
        head = f"{{ lambda {consts}{' ' if consts else ''}; {arguments}{'.' if arguments else ''} let"
        if len(lines) <= 1 and "\n" not in "".join(lines) and len(head) + sum(map(len, lines)) < 70:
            return f"{head}{' ' if lines else ''}{''.join(lines)} in {results} }}"
        return "\n".join([head, *("    " + line for line in lines), f"  in {results} }}"])

    def __str__(self):
        return self._text([], False)

    def _used(self):
        """What the results come from."""
        used = {key(one) for one in self._results}
        for _, operands, _, made in reversed(self.eqns):
            if any(key(one) in used for one in made):
                used |= {key(one) for one in operands}
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
