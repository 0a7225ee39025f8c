# SPDX-License-Identifier: GPL-3.0-or-later
"""NumPy's functions of many elements."""
import math

import numpy as np

from .._src import dtypes, ops
from .._src.arrays import asarray, astype
from .._src.ops import (add, divide, equal, logical_and, multiply, not_equal, sqrt, square, subtract)
from .._src.options import refuse as _refuse

_IDENTITY = {"sum": 0, "product": 1, "max": -math.inf, "min": math.inf, "or": False, "and": True}


def _least(engine, sign):
    if dtypes.is_float(engine):
        return sign * math.inf
    if engine == "i1":
        return sign > 0
    limits = np.iinfo(dtypes.shown(engine))
    return limits.max if sign > 0 else limits.min


def _identity(kind, engine):
    return _least(engine, -1) if kind == "max" else _least(engine, 1) if kind == "min" else _IDENTITY[kind]


def _chosen(x, where, kind):
    return x if where is None else ops.where(where, x, asarray(_identity(kind, x.engine_dtype), x.engine_dtype))


def sum(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, promote_integers=True):
    _refuse("jax.numpy.sum", {"out": out})
    made = ops.sum_(_chosen(asarray(x), where, "sum"), axis, dtype, keepdims)
    return made if initial is None else add(made, initial)


def prod(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, promote_integers=True):
    _refuse("jax.numpy.prod", {"out": out})
    x = asarray(x) if dtype is None else astype(asarray(x), dtypes.named(dtype))
    made = ops.prod(_chosen(x, where, "product"), axis, keepdims)
    return made if initial is None else multiply(made, initial)


def _extreme(kind, name):
    def function(x, axis=None, out=None, keepdims=False, initial=None, where=None):
        _refuse("a reduction of jax.numpy", {"out": out})
        x = asarray(x)
        axes = ops._axes(x, axis)
        if any_empty(x, axes) and initial is None:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        if where is not None and initial is None:
            raise ValueError(f"reduction operation {name} does not have an identity, so to use a where mask one has to specify 'initial'")
        if any_empty(x, axes):
            shape = [1 if dim in axes else size for dim, size in enumerate(x.shape)]
            made = ops.full(shape if keepdims else [size for dim, size in enumerate(x.shape) if dim not in axes], initial, x.engine_dtype)
        else:
            made = ops.reduce(kind, _chosen(x, where, kind), axis, keepdims)
        return made if initial is None else (ops.maximum if kind == "max" else ops.minimum)(made, initial)
    function.__name__ = name
    return function


def any_empty(x, axes):
    return math.prod(x.shape[dim] for dim in axes) == 0


max = amax = _extreme("max", "max")
min = amin = _extreme("min", "min")


def any(x, axis=None, out=None, keepdims=False, where=None):
    _refuse("jax.numpy.any", {"out": out})
    return ops.reduce("or", _chosen(_truths(x), where, "or"), axis, keepdims)


def all(x, axis=None, out=None, keepdims=False, where=None):
    _refuse("jax.numpy.all", {"out": out})
    return ops.reduce("and", _chosen(_truths(x), where, "and"), axis, keepdims)


def _truths(x):
    x = asarray(x)
    return x if x.engine_dtype == "i1" else not_equal(x, 0)


def mean(x, axis=None, dtype=None, out=None, keepdims=False, where=None):
    _refuse("jax.numpy.mean", {"out": out})
    x = asarray(x)
    if where is None:
        return ops.mean(x, axis, dtype, keepdims)
    where = ops.broadcast_to(where, x.shape)
    return divide(sum(x, axis, dtype, keepdims=keepdims, where=where), ops.sum_(astype(where, dtypes.inexact(x.engine_dtype)), axis, keepdims=keepdims))


def var(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, *, correction=None):
    _refuse("jax.numpy.var", {"dtype": dtype, "out": out})
    x = asarray(x)
    ddof = ddof if correction is None else correction
    if where is None:
        return ops.var(x, axis, keepdims, ddof)
    count = ops.sum_(astype(ops.broadcast_to(where, x.shape), "f32"), axis, keepdims=keepdims)
    apart = subtract(x, mean(x, axis, keepdims=True, where=where))
    return divide(sum(square(apart), axis, keepdims=keepdims, where=where), subtract(count, ddof))


def std(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, *, correction=None):
    _refuse("jax.numpy.std", {"out": out})
    return sqrt(var(x, axis, dtype, None, ddof, keepdims, where, correction=correction))


def ptp(x, axis=None, out=None, keepdims=False):
    _refuse("jax.numpy.ptp", {"out": out})
    return subtract(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


def count_nonzero(x, axis=None, keepdims=False):
    return ops.sum_(_truths(x), axis, keepdims=keepdims)


def average(x, axis=None, weights=None, returned=False, keepdims=False):
    x = asarray(x)
    if weights is None:
        made = ops.mean(x, axis, keepdims=keepdims)
        total = ops.full(made.shape, x.size / made.size if made.size else 0, made.engine_dtype)
    else:
        weights = asarray(weights)
        if weights.shape != x.shape:
            weights = ops.reshape(weights, [size if dim == ops.dimension(axis, x.ndim) else 1 for dim, size in enumerate(x.shape)])
        weights = ops.broadcast_to(weights, x.shape)
        total = ops.sum_(weights, axis, keepdims=keepdims)
        made = divide(ops.sum_(multiply(x, weights), axis, keepdims=keepdims), total)
    return (made, total) if returned else made


# ---- without what is not a number

def _without_nans(function, kind):
    def reduced(x, axis=None, out=None, keepdims=False, initial=None, where=None):
        _refuse("a reduction of jax.numpy", {"out": out, "initial": initial, "where": where})
        x = asarray(x)
        known = ops.where(not_equal(x, x), asarray(_identity(kind, x.engine_dtype), x.engine_dtype), x) if dtypes.is_inexact(x.engine_dtype) else x
        made = function(known, axis, keepdims=keepdims)
        if kind in ("max", "min") and dtypes.is_float(x.engine_dtype):
            return ops.where(all(not_equal(x, x), axis, keepdims=keepdims), math.nan, made)
        return made
    reduced.__name__ = "nan" + function.__name__
    if kind in ("max", "min"):
        return reduced

    def of_type(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
        _refuse("a reduction of jax.numpy", {"dtype": dtype})
        return reduced(x, axis, out, keepdims, initial, where)
    of_type.__name__ = reduced.__name__
    return of_type


nansum, nanprod, nanmax, nanmin = _without_nans(sum, "sum"), _without_nans(prod, "product"), _without_nans(max, "max"), _without_nans(min, "min")


def nanmean(x, axis=None, dtype=None, out=None, keepdims=False, where=None):
    _refuse("jax.numpy.nanmean", {"out": out, "where": where})
    return mean(x, axis, dtype, keepdims=keepdims, where=equal(x, x))


def nanvar(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None):
    _refuse("jax.numpy.nanvar", {"out": out, "where": where})
    return var(x, axis, dtype, None, ddof, keepdims, where=equal(x, x))


def nanstd(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None):
    _refuse("jax.numpy.nanstd", {"out": out, "where": where})
    return sqrt(nanvar(x, axis, dtype, None, ddof, keepdims))


def _without_nans_at(function, kind):
    def found(x, axis=None, out=None, keepdims=False):
        _refuse("a reduction of jax.numpy", {"out": out})
        x = asarray(x)
        return function(ops.where(not_equal(x, x), asarray(_identity(kind, x.engine_dtype), x.engine_dtype), x), axis, keepdims)
    return found


nanargmax, nanargmin = _without_nans_at(ops.argmax, "max"), _without_nans_at(ops.argmin, "min")


# ---- running

def _running(combine, empty):
    def function(x, axis=None, dtype=None, out=None):
        _refuse("a reduction of jax.numpy", {"out": out})
        x = asarray(x) if dtype is None else astype(asarray(x), dtypes.named(dtype))
        if x.engine_dtype == "i1":
            x = astype(x, "i32")
        x, axis = (ops.reshape(x, (x.size,)), 0) if axis is None else (x, axis)
        return ops.cumulative(x, axis, combine, _identity(empty, x.engine_dtype))
    return function


cumsum, cumprod = _running(add, "sum"), _running(multiply, "product")


def cumulative_sum(x, *, axis=None, dtype=None, include_initial=False):
    x = asarray(x)
    axis = 0 if axis is None else axis
    made = cumsum(x, axis, dtype)
    if not include_initial:
        return made
    shape = [1 if dim == ops.dimension(axis, x.ndim) else size for dim, size in enumerate(x.shape)]
    return ops.concatenate([ops.full(shape, 0, made.engine_dtype), made], axis)


def nancumsum(x, axis=None, dtype=None, out=None):
    _refuse("jax.numpy.nancumsum", {"out": out})
    return cumsum(ops.where(not_equal(x, x), 0, x), axis, dtype)


# ---- quantiles

def quantile(x, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    _refuse("jax.numpy.quantile", {"out": out})
    from ._arrangements import sort
    x, q = asarray(x), asarray(q)
    x = x if dtypes.is_float(x.engine_dtype) else astype(x, "f32")
    if axis is None:
        flat, at, rank = ops.reshape(x, (x.size,)), 0, x.ndim
    else:
        at = ops.dimension(axis, x.ndim)
        flat, rank = ops.moveaxis(x, at, 0), None
    ordered, count = sort(flat, 0), flat.shape[0]
    place = multiply(q, float(count - 1))
    low, high = ops.floor(place), ops.ceil(place)
    rest = subtract(place, low)
    first, last = (ops.take(ordered, astype(bound, "i32"), 0) for bound in (low, high))
    weight = ops.reshape(rest, rest.shape + (1,) * (flat.ndim - 1))
    made = {"linear": lambda: add(multiply(first, subtract(1.0, weight)), multiply(last, weight)), "lower": lambda: first, "higher": lambda: last,
            "midpoint": lambda: multiply(0.5, add(first, last)),
            "nearest": lambda: ops.where(ops.less_equal(weight, 0.5), first, last)}[method]()
    made = ops.where(any(not_equal(flat, flat), 0), math.nan, made)
    if keepdims:
        made = ops.reshape(made, q.shape + (1,) * rank) if axis is None else ops.expand_dims(made, q.ndim + at)
    return made


def percentile(x, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    _refuse("jax.numpy.percentile", {"out": out})
    return quantile(x, divide(asarray(q), 100.0), axis, method=method, keepdims=keepdims)


def median(x, axis=None, out=None, overwrite_input=False, keepdims=False):
    _refuse("jax.numpy.median", {"out": out})
    return quantile(x, 0.5, axis, keepdims=keepdims)


def histogram(x, bins=10, range=None, weights=None, density=None):
    from ._arrangements import bincount, searchsorted
    x = ops.reshape(asarray(x), (-1,))
    edges = histogram_bin_edges(x, bins, range)
    at = ops.clip(subtract(searchsorted(edges, x, side="right"), 1), -1, edges.size - 1)
    at = ops.where(equal(x, edges[-1]), edges.size - 2, at)
    inside = logical_and(ops.greater_equal(x, edges[0]), ops.less_equal(x, edges[-1]))
    counted = ops.where(inside, ops.ones_like(x, "f32") if weights is None else weights, 0)
    counts = bincount(ops.where(inside, at, 0), counted, length=edges.size - 1)
    if density:
        return divide(counts, multiply(subtract(edges[1:], edges[:-1]), ops.sum_(counts))), edges
    return counts, edges


def histogram_bin_edges(x, bins=10, range=None, weights=None):
    from . import linspace
    if not isinstance(bins, int):
        return asarray(bins)
    low, high = (ops.reduce("min", asarray(x)), ops.reduce("max", asarray(x))) if range is None else range
    return add(low, multiply(linspace(0.0, 1.0, bins + 1), subtract(high, low)))


def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    _refuse("jax.numpy.cov", {"fweights": fweights, "aweights": aweights})
    x = asarray(m)
    x = ops.reshape(x, (1,) * (2 - x.ndim) + x.shape)
    x = x if rowvar or x.shape[0] == 1 else ops.transpose(x)
    if y is not None:
        other = asarray(y)
        x = ops.concatenate([x, ops.reshape(other, (1,) * (2 - other.ndim) + other.shape)], 0)
    x = subtract(x, ops.mean(x, 1, keepdims=True))
    rest = x.shape[1] - (ddof if ddof is not None else 0 if bias else 1)
    return ops.squeeze(divide(ops.dot(x, ops.conj(ops.transpose(x))), float(rest)))


def corrcoef(x, y=None, rowvar=True):
    c = cov(x, y, rowvar)
    if not c.shape:
        return divide(c, c)
    from ._arrangements import diagonal
    root = sqrt(ops.real(diagonal(c)))
    return ops.clip(divide(divide(c, root[:, None]), root[None, :]), -1, 1)


def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = ops.moveaxis(asarray(y), axis, -1)
    steps = dx
    if x is not None:
        x = asarray(x)
        steps = subtract(x[..., 1:], x[..., :-1])
    return multiply(0.5, ops.sum_(multiply(steps, add(y[..., 1:], y[..., :-1])), -1))


