# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.tools, as older pages import it."""
