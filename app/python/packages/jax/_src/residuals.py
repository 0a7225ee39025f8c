# SPDX-License-Identifier: GPL-3.0-or-later
"""What JAX keeps of a function for its derivative: the values that the derivatives of its ops read, or, where these lie in a function under jax.checkpoint, what
they are computed from again. Source: jax-ml/jax, jax/_src/ad_checkpoint.py, and the derivatives of jax/_src/lax/lax.py."""
import inspect
import math
import os
import sys

from . import dtypes
from .arrays import Array, ConcreteArray, Scope, Tracer, asarray
from .jaxprs import primitive, type_of
from .trees import tree_flatten, tree_flatten_with_path, tree_unflatten

regions = []  # functions under jax.checkpoint that are being traced, the outermost first
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


class Region:
    """One call of a function under jax.checkpoint. `saves(primitive, params)` says whether it keeps what an op gives."""

    def __init__(self, saves):
        self.saves = saves

    def __enter__(self):
        regions.append(self)

    def __exit__(self, *_):
        regions.pop()


class _Recorded(list):
    """Ops as Scope.recorded has them, each with where in the page it is and within which regions."""

    def __init__(self):
        super().__init__()
        self.places = []

    def append(self, op):
        super().append(op)
        self.places.append((_page_line(), tuple(regions)))


def _page_line():
    """<cell 4>:3 (g)"""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"


def is_recording():
    return bool(Scope._stack) and isinstance(Scope._stack[-1].recorded, _Recorded)


def named(x, name):
    """The value as one that has a name."""
    x = asarray(x)
    scope = Scope._stack[-1]
    if not isinstance(x, Tracer) or x.scope is not scope:
        return x
    made = Tracer(scope, x.number, x._type, x.weak_type, x.sources)
    scope.recorded.append(("name", [x], {"name": name}, [made]))
    return made


# ---- what the derivatives of ops read

class _Made:
    """A value that only the derivative computes, from others: `cos` of the operand of sine."""

    def __init__(self, primitive, operands, like):
        self.primitive, self.operands, self.like = primitive, operands, like


_LINEAR = {"add", "subtract", "negate", "reshape", "transpose", "broadcast_in_dim", "full", "slice", "pad", "concatenate", "convert", "reverse", "name", "real", "imag",
           "complex", "optimization_barrier", "fft"}
_WITHOUT = {"compare", "floor", "ceil", "round_nearest_even", "round_nearest_afz", "sign", "iota", "not", "and", "or", "xor", "is_finite", "is_inf", "bitcast_convert",
            "shift_left", "shift_right_logical", "shift_right_arithmetic", "remainder"}


def _reads(op, operands, attributes, result, active):
    """The values that the derivative of an op reads, for the operands that a derivative is taken by."""
    x = operands[0] if operands else None
    made = lambda name, *of: [_Made(name, of, result)]
    if op in _LINEAR or op == "reduce" and attributes["kind"] == "sum":
        return []
    if op == "multiply" and operands[0] is operands[1]:  # a square: 2 x
        return made("mul", x)
    if op in ("multiply", "dot_general"):
        return [operands[1 - at] for at in range(2) if active[at]]
    if op == "divide":
        return ([operands[1]] if active[0] else []) + ([x, *made("integer_pow", operands[1])] if active[1] else [])
    if op == "select":
        return [operands[0]]
    if op in ("gather", "dynamic_slice"):
        return operands[1:]
    if op == "dynamic_update_slice":
        return operands[2:]
    simple = {"sine": lambda: made("cos", x), "cosine": lambda: made("sin", x), "exponential": lambda: [result], "log": lambda: [x],
              "tanh": lambda: [result, *made("sub", result)], "logistic": lambda: made("mul", result), "sqrt": lambda: made("div", result),
              "rsqrt": lambda: made("mul", result, x), "abs": lambda: made("sign", x), "log_plus_one": lambda: made("add", x),
              "exponential_minus_one": lambda: made("add", result), "erf": lambda: made("exp", x)}
    if op in simple:
        return simple[op]()
    raise NotImplementedError(f"jax.ad_checkpoint.print_saved_residuals of a function that computes {op}: which values JAX keeps for its derivative is not known here")


class _Function:
    """The ops of a function, and what is kept of them."""

    def __init__(self, recorded, arguments, results):
        self._ops, self._arguments, self._results = recorded, arguments, results
        self._producers = {id(one): number for number, (*_, made) in enumerate(recorded) for one in made}
        self._is_argument = {id(one): number for number, one in enumerate(arguments)}
        self._kept = {}  # (order) -> (the value's type, what it is)

    def kept(self):
        active = {id(one) for one in self._arguments if dtypes.is_inexact(one.engine_dtype)}
        reads = []  # (number of the op, its reads)
        for number, (op, operands, attributes, made) in enumerate(self._ops):
            own = [id(operand) in active for operand in operands]
            for operand in operands:
                if isinstance(operand, Tracer) and id(operand) not in self._producers and id(operand) not in self._is_argument:
                    raise NotImplementedError("jax.ad_checkpoint.print_saved_residuals of a function with loops, custom derivatives, or functions that were traced "
                                              "before: what JAX keeps of these is not known here; print it for a turn of the loop, or for a part without them")
            if any(own) and op not in _WITHOUT and any(dtypes.is_inexact(one.engine_dtype) for one in made):
                active |= {id(one) for one in made}
                reads.append((number, _reads(op, operands, attributes, made[0], own)))
        used = {id(one) for one in self._results}
        if any(isinstance(one, Tracer) and id(one) not in self._producers and id(one) not in self._is_argument for one in self._results):
            raise NotImplementedError("jax.ad_checkpoint.print_saved_residuals of a function whose result comes from a loop or a custom derivative: what JAX keeps of "
                                      "these is not known here; print it for a turn of the loop, or for a part without them")
        for number in reversed(range(len(self._ops))):
            if any(id(one) in used for one in self._ops[number][3]):
                used |= {id(operand) for operand in self._ops[number][1] if id(operand) in active}
        for number, values in reads:
            if any(id(one) in used for one in self._ops[number][3]):
                for at, value in enumerate(values):
                    self._keep(value, self._ops.places[number][1], (number, at + 1))
        return [self._kept[order] for order in sorted(self._kept)]

    def _keep(self, value, within, order):
        """Notes what is kept so that the derivative in these regions has the value. `order`: its op, and which value of this op it is."""
        if isinstance(value, _Made):
            number, at = order
            if within and not within[-1].saves(value.primitive, {}):
                for operand in value.operands:
                    self._keep(operand, within, order)
            elif within:
                self._keep(value, within[:-1], order)
            else:
                self._kept[(2, number, at)] = type_of(value.like), f"output of {value.primitive} from {self._ops.places[number][0]}"
            return
        if id(value) in self._is_argument:
            number = self._is_argument[id(value)]
            self._kept[(1, number, 0)] = type_of(value), number
            return
        number = self._producers.get(id(value))
        if number is None:  # a constant; scalars are written where they are used
            if value.shape:
                self._kept[(0, id(value), 0)] = type_of(value), "from a constant"
            return
        op, operands, attributes, _ = self._ops[number]
        place, own = self._ops.places[number]
        if not within:
            said = f"named '{attributes['name']}'" if op == "name" else f"output of {primitive(op, operands, attributes)}"
            self._kept[(2, number, 0)] = type_of(value), f"{said} from {place}"
        elif own[:len(within)] != within or within[-1].saves(op if op == "name" else primitive(op, operands, attributes), attributes):
            self._keep(value, within[:-1], order)  # given to the region, or kept by it
        else:
            for operand in operands:
                if isinstance(operand, Array):
                    self._keep(operand, within, order)


def saved_residuals(f, *args, **kwargs):
    """Pairs of a value's type and what it is."""
    leaves, form = tree_flatten((args, kwargs))
    leaves = [asarray(leaf) for leaf in leaves]
    try:
        names = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        names = []

    def name_of(path):
        key = getattr(path[1], "idx", getattr(path[1], "key", path[1]))
        return (names[key] if isinstance(key, int) and key < len(names) else key)
    paths = [path for path, _ in tree_flatten_with_path(tree_unflatten(form, leaves))[0]]
    scope = Scope("residuals", derives=True)
    scope.recorded = _Recorded()
    tracers = [scope.argument(leaf) for leaf in leaves]
    with scope:
        given, keywords = tree_unflatten(form, tracers)
        results = [asarray(one) for one in tree_flatten(f(*given, **keywords))[0]]
    found = _Function(scope.recorded, tracers, results).kept()
    return [(kind, f"from the argument '{name_of(paths[said])}'" if isinstance(said, int) else said) for kind, said in found]
