# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks inside of functions that are known when the program has run. Those that a page writes are carried out; of those that JAX adds to each op none is."""
import functools

from .._src import effects
from .._src.arrays import Scope, asarray

user_checks, nan_checks, index_checks, div_checks = (frozenset([name]) for name in ("user_check", "nan_check", "index_check", "div_check"))
float_checks, automatic_checks = nan_checks | div_checks, nan_checks | div_checks | index_checks
all_checks = automatic_checks | user_checks
_errors = []  # of the functions that are being checked, innermost last


class JaxRuntimeError(ValueError):
    pass


class Error:
    def __init__(self):
        self._message = None

    def get(self):
        return self._message

    def throw(self):
        if self._message is not None:
            raise JaxRuntimeError(self._message)

    def __repr__(self):
        return f"Error({self._message})"


def check(pred, msg, *args, debug=False, **kwargs):
    if not _errors and Scope._stack:
        raise ValueError("Cannot abstractly evaluate a checkify.check which was not functionalized. This probably means you tried to stage (jit/scan/pmap/...) a "
                         "`check` without functionalizing it through `checkify.checkify`.")
    if not _errors:
        if not bool(pred):
            raise JaxRuntimeError(f"{msg.format(*args, **kwargs)} (`check` failed)")
        return
    error = _errors[-1]

    def found(pred, *args, **kwargs):
        if not bool(pred) and error[0]._message is None:
            error[0]._message = f"{msg.format(*args, **kwargs)} (`check` failed)"
    effects.add(found, (asarray(pred), *args), kwargs)


def check_error(error):
    error.throw()


def debug_check(pred, msg, *args, **kwargs):
    if _errors:
        check(pred, msg, *args, **kwargs)


def checkify(f, errors=user_checks):
    if set(errors) - set(user_checks):
        raise NotImplementedError("checkify with checks that JAX adds to each op")

    @functools.wraps(f)
    def checked(*args, **kwargs):
        holder = [Error()]
        _errors.append(holder)
        try:
            made = f(*args, **kwargs)
        finally:
            _errors.pop()
        return holder[0], made
    return checked

