# SPDX-License-Identifier: GPL-3.0-or-later
"""etils, as pages on checkpoints import it, where it is not installed."""
