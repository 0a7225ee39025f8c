# SPDX-License-Identifier: GPL-3.0-or-later
"""orbax.checkpoint.test_utils."""
import shutil

from ._trees import own


def erase_and_create_empty(directory):
    path = own(directory)
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path
