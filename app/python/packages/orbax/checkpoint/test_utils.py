# SPDX-License-Identifier: GPL-3.0-or-later
"""orbax.checkpoint.test_utils."""
import pathlib
import shutil


def erase_and_create_empty(directory):
    path = pathlib.Path(directory)
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path
