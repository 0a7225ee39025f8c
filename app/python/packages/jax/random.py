# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.random."""
from ._src.random_ import (KeyArray, PRNGKey, bernoulli, bits, categorical, choice, exponential, fold_in, gumbel, key, key_data, normal,
                           permutation, randint, split, truncated_normal, uniform, wrap_key_data)
