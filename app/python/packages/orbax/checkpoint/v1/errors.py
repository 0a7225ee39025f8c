# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of checkpoints by their steps."""


class StepAlreadyExistsError(ValueError):
    pass


class StepNotFoundError(ValueError):
    pass
