# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of files."""
import pathlib
import shutil


class Path(type(pathlib.Path())):
    """One of pathlib's, with the methods that etils has besides."""

    def rmtree(self, missing_ok=False):
        if not missing_ok or self.exists():
            shutil.rmtree(self)

    def copy(self, target, overwrite=False):
        if not overwrite and pathlib.Path(target).exists():
            raise FileExistsError(target)
        return Path(shutil.copy(self, target))


PathLike = Path
