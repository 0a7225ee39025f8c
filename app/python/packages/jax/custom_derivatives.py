# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.custom_derivatives."""
from ._src.custom import closure_convert, custom_gradient, custom_jvp, custom_vjp
