# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.tools.colab_tpu, which older pages call first."""


def setup_tpu(tpu_driver_version=None):
    """The devices are there."""
