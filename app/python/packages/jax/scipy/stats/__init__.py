# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.stats: distributions by their densities. Source of the formulas: jax-ml/jax, jax/_src/scipy/stats."""
import collections as _collections

from ..._src import ops as _ops
from ..._src.arrays import asarray as _asarray
from . import (bernoulli, beta, betabinom, binom, cauchy, chi2, dirichlet, expon, gamma, gennorm, geom, gumbel_l, gumbel_r, laplace, logistic, multinomial,
               multivariate_normal, nbinom, norm, pareto, poisson, t, truncnorm, uniform, vonmises)

ModeResult = _collections.namedtuple("ModeResult", "mode count")


def mode(a, axis=0, nan_policy="propagate", keepdims=False):
    """The element that comes most often, the least of them; and how often."""
    if nan_policy != "propagate":
        raise NotImplementedError(f"jax.scipy.stats.mode with nan_policy={nan_policy!r}")
    x = _asarray(a)
    x, axis = (_ops.reshape(x, (x.size,)), 0) if axis is None else (x, _ops.dimension(axis, x.ndim))
    from ...numpy import sort, take_along_axis
    ordered = sort(x, axis)
    counts = _ops.sum_(_ops.astype(_ops.equal(_ops.expand_dims(ordered, axis), _ops.expand_dims(ordered, axis + 1)), "i32"), axis + 1)
    at = _ops.expand_dims(_ops.argmax(counts, axis), axis)
    made = ModeResult(take_along_axis(ordered, at, axis), take_along_axis(counts, at, axis))
    return made if keepdims else ModeResult(*(_ops.squeeze(part, axis) for part in made))


def rankdata(a, method="average", *, axis=None, nan_policy="propagate"):
    """The places of elements in their order, from 1; those of equal ones together as `method` says."""
    if nan_policy != "propagate" or method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"unknown method '{method}'" if nan_policy == "propagate" else f"nan_policy={nan_policy!r}")
    from ...numpy import argsort
    x = _asarray(a)
    x, axis = (_ops.reshape(x, (x.size,)), 0) if axis is None else (x, axis)
    x = _ops.moveaxis(x, axis, -1)
    if method == "ordinal":
        return _ops.moveaxis(_ops.add(argsort(argsort(x, -1), -1), 1), -1, axis)
    mine, other = _ops.expand_dims(x, -1), _ops.expand_dims(x, -2)
    below, same = _ops.less(other, mine), _ops.equal(other, mine)
    if method == "dense":  # of equal ones the first counts
        earlier = _ops.less(_ops.iota("i32", (x.shape[-1],) * 2, 1), _ops.iota("i32", (x.shape[-1],) * 2, 0))
        is_first = _ops.logical_not(_ops.reduce("or", _ops.logical_and(same, earlier), -1))
        made = _ops.add(_ops.sum_(_ops.astype(_ops.logical_and(below, _ops.expand_dims(is_first, -2)), "i32"), -1), 1)
    else:
        least = _ops.add(_ops.sum_(_ops.astype(below, "i32"), -1), 1)
        most = _ops.subtract(_ops.add(least, _ops.sum_(_ops.astype(same, "i32"), -1)), 1)
        made = {"min": least, "max": most, "average": _ops.divide(_ops.add(least, most), 2.0)}[method]
    return _ops.moveaxis(made, -1, axis)


def sem(a, axis=0, ddof=1, nan_policy="propagate", *, keepdims=False):
    """The deviation of the mean."""
    if nan_policy != "propagate":
        raise NotImplementedError(f"jax.scipy.stats.sem with nan_policy={nan_policy!r}")
    from ...numpy import std
    x = _asarray(a)
    count = x.size if axis is None else x.shape[axis]
    return _ops.divide(std(x, axis, ddof=ddof, keepdims=keepdims), float(count) ** 0.5)

