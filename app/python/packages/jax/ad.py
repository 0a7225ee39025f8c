# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.ad: what becomes of the gradients that the function of jax.vjp gives."""
from ._src.transforms import DidntWant, DontWant, GradRef, GradValue
