# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.random."""
from ._src.draws import (ball, beta, binomial, chisquare, dirichlet, double_sided_maxwell, f, gamma, generalized_normal, geometric, loggamma, multinomial, poisson, t,
                         triangular, wald)
from ._src.random_ import (KeyArray, PRNGKey, bernoulli, bits, categorical, cauchy, choice, clone, exponential, fold_in, gumbel, key, key_data, key_impl, laplace,
                           logistic, lognormal, maxwell, multivariate_normal, normal, orthogonal, pareto, permutation, rademacher, randint, rayleigh, shuffle, split,
                           truncated_normal, uniform, weibull_min, wrap_key_data)


from ._src.random_ import check_types as _check_types, of_one_key as _of_one_key

for _name, _function in list(globals().items()):
    if callable(_function) and not _name.startswith("_") and _name not in ("KeyArray", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_impl", "split", "wrap_key_data"):
        globals()[_name] = _of_one_key(_name, _function)

for _name in ("uniform cauchy exponential gumbel laplace logistic maxwell pareto rayleigh truncated_normal weibull_min multivariate_normal beta binomial chisquare "
              "dirichlet double_sided_maxwell f gamma loggamma t triangular wald").split():
    globals()[_name] = _check_types(_name, globals()[_name], "a float dtype", ("float",))
for _name in ("normal", "lognormal", "orthogonal"):
    globals()[_name] = _check_types(_name, globals()[_name], "a float or complex dtype", ("float", "complex"))
bits = _check_types("bits", bits, "an unsigned int dtype", ("unsigned",))
geometric = _check_types("geometric", geometric, "an int dtype", ("int", "unsigned"))


from ._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
