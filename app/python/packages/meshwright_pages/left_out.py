# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules for drawings, colours, progress and logs that pages import and that may not be installed: what they would show is left out."""
import importlib
import importlib.abc
import importlib.machinery
import sys
import types

_MODULES = ("matplotlib", "mpl_toolkits", "seaborn", "plotly", "IPython", "ipywidgets", "rich", "tqdm", "termcolor", "colorama", "tensorboard", "tensorboardX",
            "treescope", "wandb")


class Nothing:
    """Takes every call and gives itself."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    __call__ = __getitem__ = __enter__ = lambda self, *_, **__: self

    def __setitem__(self, *_):
        pass

    def __exit__(self, *_):
        pass

    def __iter__(self):
        return iter(())

    def __repr__(self):
        return "<left out>"

    def __len__(self):
        return 0

    def __bool__(self):
        return True

    def __index__(self):
        return 0

    __int__ = __index__

    def __float__(self):
        return 0.0


def _arithmetic():
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or"):
        for full in (f"__{name}__", f"__r{name}__"):
            setattr(Nothing, full, lambda self, other: self)
    for name in ("neg", "pos", "abs", "invert"):
        setattr(Nothing, f"__{name}__", lambda self: self)


_arithmetic()
NOTHING = Nothing()


class _Counted(Nothing):
    """Items whose progress would be shown."""

    def __init__(self, items=(), *_, **__):
        self._items = items

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)

    def __enter__(self):
        return self


def _through(items=None, *_, **__):
    return NOTHING if items is None else _Counted(items)


def _counted_range(*limits, **__):
    return _Counted(range(*limits))


def _subplots(nrows=1, ncols=1, *_, squeeze=True, **__):
    """A figure, and axes in the form that a page takes apart."""
    import numpy as np
    grid = np.empty((nrows, ncols), dtype=object)
    grid.fill(NOTHING)
    grid = grid.squeeze() if squeeze else grid
    return NOTHING, grid if grid.shape else NOTHING


# What a page needs to go on: the items that are counted, the text without its colour, two values where two are taken.
_KNOWN = {
    "tqdm": {"tqdm": _through, "trange": _counted_range},
    "termcolor": {"colored": lambda text, *_, **__: str(text), "cprint": lambda text, *_, **__: print(text)},
    "matplotlib": {"subplots": _subplots},
    "rich": {"print": print},
}


class _Module(types.ModuleType):
    __path__ = []
    __all__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__ == "matplotlib" and name == "pyplot":
            return importlib.import_module("matplotlib.pyplot")
        return _KNOWN.get(self.__name__.split(".")[0], {}).get(name, NOTHING)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last to be asked, so that what is installed is what a page gets. `tell` is given the module's name."""

    def __init__(self, tell):
        self._tell, self._told = tell, set()

    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top not in _MODULES or (top in sys.modules and not isinstance(sys.modules[top], _Module)):
            return None
        if top not in self._told:
            self._told.add(top)
            self._tell(top)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass
