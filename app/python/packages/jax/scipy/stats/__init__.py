# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.stats: distributions by their densities. Source of the formulas: jax-ml/jax, jax/_src/scipy/stats."""
from . import (bernoulli, beta, binom, cauchy, chi2, dirichlet, expon, gamma, geom, laplace, logistic, multivariate_normal, norm, poisson, t, uniform)
