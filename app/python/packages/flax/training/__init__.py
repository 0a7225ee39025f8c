# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.training: what training loops of linen share."""
