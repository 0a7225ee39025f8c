# SPDX-License-Identifier: GPL-3.0-or-later
"""NumPy's functions of many elements."""
import builtins
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
        total = astype(total, made.engine_dtype)
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
        return function(ops.where(not_equal(x, x), asarray(_identity(kind, x.engine_dtype), x.engine_dtype), x), axis, keepdims=keepdims)
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


def _cumulative(running, first):
    def function(x, *, axis=None, dtype=None, include_initial=False):
        x = asarray(x)
        axis = 0 if axis is None else ops.dimension(axis, x.ndim)
        made = running(x, axis, dtype)
        shape = [1 if dim == axis else size for dim, size in enumerate(x.shape)]
        return ops.concatenate([ops.full(shape, first, made.engine_dtype), made], axis) if include_initial else made
    return function


cumulative_sum, cumulative_prod = _cumulative(cumsum, 0), _cumulative(cumprod, 1)


def nancumprod(x, axis=None, dtype=None, out=None):
    _refuse("jax.numpy.nancumprod", {"out": out})
    return cumprod(ops.where(not_equal(x, x), 1, x), axis, dtype)


def nancumsum(x, axis=None, dtype=None, out=None):
    _refuse("jax.numpy.nancumsum", {"out": out})
    return cumsum(ops.where(not_equal(x, x), 0, x), axis, dtype)


# ---- quantiles

def _quantile(name, x, q, axis, out, method, keepdims, leaves_nans_out=False):
    _refuse(f"jax.numpy.{name}", {"out": out})
    if method not in ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"):
        raise ValueError("method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'")
    from ._arrangements import sort, take_along_axis
    x, q = ops.inexact(x), asarray(q)
    ops.no_complex(ValueError, "quantile does not support complex input, as the operation is poorly defined.", x)
    axes = range(x.ndim) if axis is None else [ops.dimension(one, x.ndim) for one in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    kept = [dim for dim in range(x.ndim) if dim not in axes]
    flat = ops.reshape(ops.transpose(x, (*axes, *kept)), (-1, *[x.shape[dim] for dim in kept]))
    ordered, is_nan = sort(flat, 0), not_equal(flat, flat)
    points = ops.reshape(q, (q.size,) + (1,) * len(kept))
    last = float(flat.shape[0] - 1)
    if leaves_nans_out:  # they are the last in order
        last = ops.maximum(subtract(ops.sum_(astype(ops.logical_not(is_nan), x.engine_dtype), 0), 1.0), 0.0)
    # The least value that so large a part of all is at most, or a place between two values.
    place = (ops.maximum(subtract(ops.ceil(multiply(points, add(last, 1.0))), 1.0), 0.0) if method == "inverted_cdf" else multiply(points, last))
    low, high = ops.floor(place), ops.ceil(place)
    weight = subtract(place, low)
    if leaves_nans_out:
        shape = (q.size, *flat.shape[1:])
        first, second = (take_along_axis(ordered, ops.broadcast_to(astype(bound, "i32"), shape), 0) for bound in (low, high))
    else:
        first, second = (ops.take(ordered, astype(ops.reshape(bound, (-1,)), "i32"), 0) for bound in (low, high))
    made = {"linear": lambda: add(multiply(first, subtract(1.0, weight)), multiply(second, weight)), "lower": lambda: first, "higher": lambda: second,
            "inverted_cdf": lambda: first,
            "midpoint": lambda: multiply(0.5, add(first, second)),
            "nearest": lambda: ops.where(ops.less_equal(weight, 0.5), first, second)}[method]()
    if not leaves_nans_out:
        made = ops.where(any(is_nan, 0), math.nan, made)
    made = ops.reshape(made, q.shape + made.shape[1:])
    return ops.reshape(made, q.shape + tuple(1 if dim in axes else size for dim, size in enumerate(x.shape))) if keepdims else made


def quantile(x, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    return _quantile("quantile", x, q, axis, out, method, keepdims)


def percentile(x, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    return _quantile("percentile", x, divide(asarray(q), 100.0), axis, out, method, keepdims)


def median(x, axis=None, out=None, overwrite_input=False, keepdims=False):
    return _quantile("median", x, 0.5, axis, out, "linear", keepdims)


def nanquantile(x, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    return _quantile("nanquantile", x, q, axis, out, method, keepdims, True)


def nanpercentile(x, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    return _quantile("nanpercentile", x, divide(asarray(q), 100.0), axis, out, method, keepdims, True)


def nanmedian(x, axis=None, out=None, overwrite_input=False, keepdims=False):
    return _quantile("nanmedian", x, 0.5, axis, out, "linear", keepdims, True)


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
    low, high = (ops.reduce("min", asarray(x)), ops.reduce("max", asarray(x))) if range is None else map(asarray, range)
    is_point = equal(low, high)
    return linspace(ops.where(is_point, subtract(low, 0.5), low), ops.where(is_point, add(high, 0.5), high), bins + 1)


def histogramdd(sample, bins=10, range=None, weights=None, density=None):
    """Counts in boxes: `sample` has a row for each point."""
    from ._arrangements import bincount, searchsorted
    points = asarray(sample)
    points = points if dtypes.is_float(points.engine_dtype) else astype(points, "f32")
    count = points.shape[1]
    per_dim = [bins] * count if isinstance(bins, int) else list(bins)
    if len(per_dim) != count:
        raise ValueError("should be a bin for each dimension.")
    edges = [histogram_bin_edges(points[:, dim], per_dim[dim], None if range is None else range[dim]) for dim in builtins.range(count)]
    flat, inside = 0, True
    for dim, edge in enumerate(edges):
        x = points[:, dim]
        at = ops.where(equal(x, edge[-1]), edge.size - 2, subtract(searchsorted(edge, x, side="right"), 1))
        inside = logical_and(inside, logical_and(ops.greater_equal(x, edge[0]), ops.less_equal(x, edge[-1])))
        flat = add(multiply(flat, edge.size - 1), ops.clip(at, 0, edge.size - 2))
    shape = tuple(edge.size - 1 for edge in edges)
    counted = ops.where(inside, ops.full((points.shape[0],), 1, "i32") if weights is None else asarray(weights), 0)
    counts = ops.reshape(bincount(flat, counted, length=math.prod(shape)), shape)
    if density:
        counts = divide(counts, ops.sum_(counts))
        for dim, edge in enumerate(edges):
            counts = divide(counts, ops.reshape(subtract(edge[1:], edge[:-1]), (-1,) + (1,) * (count - 1 - dim)))
    return counts, edges


def histogram2d(x, y, bins=10, range=None, weights=None, density=None):
    bins = [bins, bins] if not isinstance(bins, int) and len(bins) not in (1, 2) else bins
    counts, (first, second) = histogramdd(ops.stack([asarray(x), asarray(y)], 1), bins, range, weights, density)
    return counts, first, second


def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    x = asarray(m)
    x = ops.reshape(x, (1,) * (2 - x.ndim) + x.shape)
    x = x if rowvar or x.shape[0] == 1 else ops.transpose(x)
    if y is not None:
        other = asarray(y)
        x = ops.concatenate([x, ops.reshape(other, (1,) * (2 - other.ndim) + other.shape)], 0)
    ddof = ddof if ddof is not None else 0 if bias else 1
    if fweights is None and aweights is None:
        x = subtract(x, ops.mean(x, 1, keepdims=True))
        return ops.squeeze(divide(ops.dot(x, ops.conj(ops.transpose(x))), float(x.shape[1] - ddof)))
    weights = 1.0
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            given = asarray(given)
            if given.ndim != 1:
                raise RuntimeError("cannot handle multidimensional " + name)
            if given.shape[0] != x.shape[1]:
                raise RuntimeError("incompatible numbers of samples and " + name)
            weights = multiply(weights, given)
    total = ops.sum_(weights)
    x = subtract(x, divide(ops.sum_(multiply(x, weights), 1, keepdims=True), total))
    lost = ddof if aweights is None or not ddof else multiply(float(ddof), divide(ops.sum_(multiply(weights, asarray(aweights))), total))
    return ops.squeeze(divide(ops.dot(x, ops.conj(ops.transpose(multiply(x, weights)))), subtract(total, lost)))


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


