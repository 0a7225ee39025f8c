# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks inside of functions, known when the program has run: those that a page writes, and those of each op: results that are nan, divisions by zero, indices
behind the end. The first that fails is kept in refs while the function runs, and is what its Error holds. Source of the texts: jax-ml/jax, jax/_src/checkify.py."""
import functools

import numpy as np

from .._src import arrays, dtypes, ops, transforms
from .._src.arrays import Array, Scope, asarray, astype
from .._src.jaxprs import primitive
from .._src.refs import Ref, without_scopes
from .._src.trees import register, tree_flatten

user_checks, nan_checks, index_checks, div_checks = (frozenset([name]) for name in ("user_check", "nan_check", "index_check", "div_check"))
float_checks, automatic_checks = nan_checks | div_checks, nan_checks | div_checks | index_checks
all_checks = automatic_checks | user_checks
_watches = []  # of the functions that are being checked, innermost last


class JaxRuntimeError(ValueError):
    pass


class Error:
    """What the checks of a function found. `codes`: for each example the number of the check that failed first, 0 where none did; `sites` says of each check what it
    says and how many of the values behind the codes it is said with."""

    def __init__(self, codes=None, values=(), sites=()):
        self._codes, self._values, self._sites = codes, list(values), tuple(sites)

    def get(self):
        if self._codes is None:
            return None
        codes = np.asarray(self._codes)
        lines = []
        for at in np.ndindex(*codes.shape):
            if codes[at]:
                said, first, count = self._sites[int(codes[at]) - 1]
                text = said(*[np.asarray(value)[at] for value in self._values[first:first + count]])
                lines.append(f"at mapped index {', '.join(map(str, at))}: {text}" if at else text)
        return "\n".join(lines) or None

    def throw(self):
        message = self.get()
        if message is not None:
            raise JaxRuntimeError(message)

    def __repr__(self):
        return f"Error({self.get()})"


class _Sites(tuple):
    """Compared by what they are: functions of one trace are those of another."""

    def __eq__(self, other):
        return isinstance(other, _Sites) and len(self) == len(other)

    def __hash__(self):
        return len(self)


register(Error, lambda error: ([error._codes, *error._values], _Sites(error._sites)), lambda sites, leaves: Error(leaves[0], leaves[1:], sites))


class _Watch:
    """The checks of one function."""

    def __init__(self, errors):
        self.errors, self.sites, self._values = errors, [], []
        self._home = Scope._stack[-1] if Scope._stack else None
        self._levels = list(arrays_levels())
        self._code = self._ref(asarray(0, "i32"))
        self._is_checking = False

    def _ref(self, like):
        zeros = without_scopes(lambda: ops.full(like.shape, 0, like.engine_dtype))
        from .._src.batching import BatchTracer
        for number, level in enumerate(self._levels, 1):
            zeros = BatchTracer(without_scopes(lambda: ops.full((level.size, *_whole(zeros).shape), 0, like.engine_dtype)), number)
        made = Ref(zeros)
        made._home = self._home
        return made

    def add(self, failed, said, values):
        """Notes a check that fails where `failed` holds, unless one did before. `said`: of the values."""
        if self._is_checking:
            return
        self._is_checking = True
        try:
            failed, values = self._first(asarray(failed), [_without_derivative(value) for value in values])
            self.sites.append((said, len(self._values), len(values)))
            own = [self._ref(value) for value in values]
            self._values += own
            is_first = ops.logical_and(failed, ops.equal(self._code[...], 0))
            for ref, value in [(self._code, asarray(len(self.sites), "i32")), *zip(own, values)]:
                ref.put(ops.where(is_first, value, ref.read()))
        finally:
            self._is_checking = False

    def _first(self, failed, values):
        """Of all elements, and of examples of vmaps within the function, whether one fails, and the values of the first that does."""
        if failed.shape:
            failed = ops.reduce("or", failed)
        while failed.level > len(self._levels):
            whole, level = failed.value, failed.level
            at = ops.argmax(astype(whole, "i32"))
            failed = ops.reduce("or", whole, 0)
            values = [ops.take(value.value, at, 0) if value.level == level else value for value in values]
        return failed, values

    def error(self):
        return Error(self._code.read(), [ref.read() for ref in self._values], self.sites)

    # ---- checks of each op

    def op(self, op, operands, attributes, results):
        if self._is_checking:
            return
        if "div_check" in self.errors and op in ("divide", "remainder"):
            self.add(self._any(ops.equal(operands[1], 0)), lambda: "division by zero", [])
        if "nan_check" in self.errors and op not in ("bitcast_convert", "full", "iota"):
            for result in results:
                if dtypes.is_inexact(result.engine_dtype):
                    name = primitive(op, operands, attributes)
                    self.add(self._any(ops.isnan(result)), lambda: f"nan generated by primitive: {name}.", [])

    def derivative(self, results):
        """Of functions that were traced for their derivative: which of their ops gives a nan is not known."""
        if "nan_check" in self.errors and not self._is_checking:
            for result in results:
                if dtypes.is_inexact(result.engine_dtype):
                    self.add(self._any(ops.isnan(result)), lambda: "nan generated by a derivative.", [])

    def index(self, shape, axis, index):
        if "index_check" in self.errors and not self._is_checking:
            size = shape[axis]
            index = asarray(index)
            wrong = ops.logical_or(ops.greater_equal(index, size), ops.less(index, -size))
            bad = ops.reshape(index, (index.size,))
            at = ops.argmax(astype(ops.reshape(wrong, (index.size,)), "i32")) if index.shape else None
            self.add(self._any(wrong), lambda value: f"out-of-bounds indexing for array of shape {tuple(shape)}: index {value} is out of bounds for axis {axis} with "
                     f"size {size}. ", [index if at is None else ops.take(bad, at, 0)])

    @staticmethod
    def _any(holds):
        return ops.reduce("or", holds) if holds.shape else holds


def arrays_levels():
    from .._src.batching import Level
    return Level.stack


def _whole(value):
    while value.level:
        value = value.value
    return value


def _without_derivative(value):
    from ..lax import stop_gradient
    return stop_gradient(asarray(value))


def check(pred, msg, *args, debug=False, **kwargs):
    if not _watches and Scope._stack:
        raise ValueError("Cannot abstractly evaluate a checkify.check which was not functionalized. This probably means you tried to stage (jit/scan/pmap/...) a "
                         "`check` without functionalizing it through `checkify.checkify`.")
    if not _watches:
        if not bool(pred):
            raise JaxRuntimeError(f"{msg.format(*args, **kwargs)} (`check` failed)")
        return
    if "user_check" not in _watches[-1].errors:
        return
    leaves, form = tree_flatten((args, kwargs))
    is_array = [isinstance(leaf, Array) for leaf in leaves]

    def said(*values):
        from .._src.trees import tree_unflatten
        given = iter(values)
        args, kwargs = tree_unflatten(form, [next(given) if own else leaf for own, leaf in zip(is_array, leaves)])
        return f"{msg.format(*args, **kwargs)} (`check` failed)"
    _watches[-1].add(ops.logical_not(pred), said, [leaf for leaf, own in zip(leaves, is_array) if own])


def check_error(error):
    """Raises what an error holds; within a function that is checked it is one of its own."""
    if not _watches:
        error.throw()
    elif error._codes is not None:
        codes = asarray(error._codes)
        for number, (said, first, count) in enumerate(error._sites, 1):
            _watches[-1].add(ops.equal(codes, number), said, error._values[first:first + count])


def debug_check(pred, msg, *args, **kwargs):
    if _watches:
        check(pred, msg, *args, **kwargs)


def checkify(f, errors=user_checks):
    """The function, which gives beside its result what its checks found."""
    def watched(*args, **kwargs):
        watch = _Watch(frozenset(errors))
        _watches.append(watch)
        before, arrays.watch = arrays.watch, watch if set(errors) & set(automatic_checks) else None
        try:
            made = f(*args, **kwargs)
        finally:
            _watches.pop()
            arrays.watch = before
        return watch.error(), made

    @functools.wraps(f)
    def checked(*args, **kwargs):
        return watched(*args, **kwargs) if Scope._stack or arrays_levels() else transforms.jit(watched)(*args, **kwargs)
    return checked
