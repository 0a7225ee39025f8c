# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.special."""
from .._src.ops import erf, erfc, logistic as expit
from ..nn import log_softmax, logsumexp, softmax


def xlogy(x, y):
    from ..numpy import log, where
    return where(x == 0, 0.0, x * log(where(x == 0, 1.0, y)))
