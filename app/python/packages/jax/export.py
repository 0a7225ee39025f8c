# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.export: a jitted function for arguments of fixed types, as a module's text and to be called. It is kept as long as the page runs."""
import copy as _copy
import itertools

from . import core as _core
from ._src import custom as _custom
from ._src.arrays import asarray as _asarray, astype as _astype
from ._src.machine import machine as _machine
from ._src.shardings import NamedSharding as _NamedSharding
from ._src.transforms import Jitted as _Jitted
from ._src.transforms import ShapeDtypeStruct as _ShapeDtypeStruct
from ._src.transforms import eval_shape as _eval_shape
from ._src.trees import keystr as _keystr
from ._src.trees import tree_flatten as _tree_flatten
from ._src.trees import tree_flatten_with_path as _tree_flatten_with_path
from ._src.trees import tree_unflatten as _tree_unflatten

_HEAD = b"Meshwright, exported on this page: "
_kept = {}  # what was serialized, by the bytes that stand for it
_numbers = itertools.count()


def default_export_platform():
    return _machine.platform


class DisabledSafetyCheck:
    """Names a check of what is exported; nothing of Meshwright's needs one."""

    def __init__(self, text):
        self._text = text

    @classmethod
    def custom_call(cls, target):
        return cls(f"custom_call:{target}")

    @classmethod
    def platform(cls):
        return cls("platform")

    def __repr__(self):
        return f"DisabledSafetyCheck({self._text})"


class Exported:
    """A function for arguments of the types that it was exported for."""

    _order = None  # how many derivatives it was serialized with

    def __init__(self, jitted, args, kwargs, platforms):
        lowered = jitted.lower(*args, **kwargs)
        self._jitted, self._text = jitted, lowered.as_text()
        is_type = lambda x: isinstance(x, _ShapeDtypeStruct)
        given, self.in_tree = _tree_flatten((args, kwargs), is_leaf=is_type)
        made, self.out_tree = _tree_flatten(_eval_shape(jitted, *args, **kwargs), is_leaf=is_type)
        self.fun_name = jitted.__name__
        self.in_avals = tuple(_core.get_aval(leaf) if not is_type(leaf) else _core.ShapedArray(leaf.shape, leaf.dtype) for leaf in given)
        self.out_avals = tuple(_core.ShapedArray(leaf.shape, leaf.dtype, leaf.weak_type) for leaf in made)
        self.platforms = tuple(platforms or (default_export_platform(),))
        self.nr_devices = max((len(leaf.sharding.device_set) for leaf in given if isinstance(getattr(leaf, "sharding", None), _NamedSharding)), default=1)
        self.disabled_safety_checks = ()

    def mlir_module(self):
        """The program, in Meshwright's notation of StableHLO."""
        return self._text

    def has_vjp(self):
        return self._order is None or self._order > 0

    def serialize(self, vjp_order=0):
        """Bytes by which `deserialize` finds the function again on this page; they are not the function."""
        name, kept = _HEAD + str(next(_numbers)).encode(), _copy.copy(self)
        if self._order is not None and vjp_order > self._order:
            raise ValueError("No VJP is available")
        kept._order = vjp_order
        _kept[name] = kept
        return bytearray(name)

    def call(self, *args, **kwargs):
        if default_export_platform() not in self.platforms:
            raise ValueError(f"Function '{self.fun_name}' was exported for platforms '{self.platforms}' but it is used on '{default_export_platform()}'.")
        given, form = _tree_flatten_with_path((args, kwargs))
        if form != self.in_tree:
            raise ValueError(f"Function '{self.fun_name}' was exported for arguments of the form {self.in_tree} and is called with {form}")
        for (path, value), own in zip(given, self.in_avals):
            found = _core.get_aval(value)
            if found.shape != own.shape or found.dtype != own.dtype and not found.weak_type:
                name = ("args" if path[0].idx == 0 else "kwargs") + _keystr(path[1:])
                error = ValueError(f"Function '{self.fun_name}' was exported for {name} of type {own.dtype}{list(own.shape)} and is called with "
                                   f"{found.dtype}{list(found.shape)}")
                error.add_note("  rule: an exported function has one type for each argument\n"
                               "  fix: export it for the types that it is called with")
                raise error
        arrays = [_asarray(value) for _, value in given]
        if self._order is not None and _custom.depth(arrays) > self._order and any(map(_custom.is_differentiated, arrays)):
            error = ValueError("No VJP is available")
            error.add_note(f"  rule: '{self.fun_name}' has the derivatives that it was serialized with\n  fix: serialize(vjp_order={_custom.depth(arrays)})")
            raise error
        args, kwargs = _tree_unflatten(form, [array if own.weak_type else _astype(array, own.engine_dtype) for array, own in zip(arrays, self.in_avals)])
        return self._jitted(*args, **kwargs)


def export(fun_jit, *, platforms=None, disabled_checks=(), **_):
    """Gives a function of arguments, or of their types, whose result is the exported function."""
    if not isinstance(fun_jit, _Jitted):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")

    def of_types(*args, **kwargs):
        made = Exported(fun_jit, args, kwargs, platforms)
        made.disabled_safety_checks = tuple(disabled_checks)
        return made
    return of_types


def deserialize(blob):
    """The function that `serialize` gave these bytes for."""
    found = _kept.get(bytes(blob))
    if found is None:
        raise ValueError("jax.export.deserialize: these bytes are not of a function that this page exported; Meshwright reads no StableHLO artifacts. "
                         "Export the function on the page that calls it")
    return found


def _no_symbols(name):
    def refuse(*_, **__):
        raise NotImplementedError(f"jax.export.{name}: every program of Meshwright has sizes that are numbers; export the function once for each size")
    return refuse


symbolic_shape, symbolic_args_specs, SymbolicScope = map(_no_symbols, ("symbolic_shape", "symbolic_args_specs", "SymbolicScope"))
