# SPDX-License-Identifier: GPL-3.0-or-later
"""`/tmp` of a page, which is a folder of its own: whatever opens, lists or makes files finds the same there."""
import builtins
import functools
import io
import os

_SYSTEM = "/tmp"
_OF_ONE = ("access chdir chmod chown lchown listdir lstat mkdir mkfifo open readlink remove rmdir scandir setxattr getxattr listxattr stat statvfs truncate unlink "
           "utime").split()
_OF_TWO = ("link", "rename", "replace", "symlink")


def make_own(folder, others):
    """Makes `folder` what the page calls /tmp. `others`: paths that stay what they are, also where they lie in /tmp."""
    kept = [os.path.realpath(path) for path in (folder, *others)]
    if os.path.realpath(_SYSTEM) in kept:
        return

    def moved(path):
        try:
            text = os.fspath(path)
        except TypeError:  # the number of an open file
            return path
        name = os.path.normpath(os.fsdecode(text))
        if name != _SYSTEM and not name.startswith(_SYSTEM + "/") or any(name == one or name.startswith(one + "/") for one in kept):
            return path
        found = folder + name[len(_SYSTEM):]
        return os.fsencode(found) if isinstance(text, bytes) else found

    def over(function, count):
        @functools.wraps(function)
        def called(*args, **kwargs):
            given = [moved(path) for path in args[:count]]
            named = {name: moved(value) if name in ("path", "file", "src", "dst") else value for name, value in kwargs.items()}
            try:
                return function(*given, *args[count:], **named)
            except OSError as error:
                for path, own in zip(args, given):  # what is said is what the page wrote
                    if error.filename == own:
                        error.filename = path
                    elif error.filename2 == own:
                        error.filename2 = path
                raise
        return called

    for count, names in ((1, _OF_ONE), (2, _OF_TWO)):
        for name in names:
            setattr(os, name, over(getattr(os, name), count))
    builtins.open = io.open = over(open, 1)
