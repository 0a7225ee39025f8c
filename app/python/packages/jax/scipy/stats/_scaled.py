# SPDX-License-Identifier: GPL-3.0-or-later
"""Distributions that are moved and stretched."""
import math

from ..._src import ops


def scaled(of):
    """logpdf(x, *shape, loc, scale) and pdf, from the logarithm of the density of (x - loc) / scale."""
    def logpdf(x, *args, loc=0, scale=1, **named):
        count = of.__code__.co_argcount - 1
        shape, rest = args[:count], args[count:]
        loc, scale = (*rest, *(loc, scale)[len(rest):])
        y = ops.divide(ops.subtract(x, loc), scale)
        made = of(y, *shape, **named)
        return ops.subtract(ops.where(ops.equal(y, y), made, ops.add(y, made)), ops.log(ops.multiply(1.0, scale)))  # what is nan stays so

    def pdf(*args, **named):
        return ops.exp(logpdf(*args, **named))
    return logpdf, pdf


def shares(below, above):
    """cdf, logcdf, sf and logsf(x, *shape, loc, scale) of a distribution of positive numbers, from the shares of it that lie below and above (x - loc) / scale."""
    def of(share, count):
        def function(x, *args, loc=0, scale=1, **named):
            shape, rest = args[:count], args[count:]
            loc, scale = (*rest, *(loc, scale)[len(rest):])
            return share(ops.maximum(ops.divide(ops.subtract(x, loc), scale), 0), *shape, **named)
        return function
    cdf, sf = (of(share, share.__code__.co_argcount - 1) for share in (below, above))
    return cdf, lambda *args, **named: ops.log(cdf(*args, **named)), sf, lambda *args, **named: ops.log(sf(*args, **named))


def where(condition, value):
    """The value, and no chance where the condition does not hold."""
    return ops.where(condition, value, -math.inf)
