# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules for drawings, colours and progress that pages import and that may not be installed: what they would show is left out."""
import importlib.abc
import importlib.machinery
import sys
import types

_MODULES = ("matplotlib", "mpl_toolkits", "seaborn", "plotly", "IPython", "ipywidgets", "rich", "tqdm", "termcolor", "colorama")


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


NOTHING = Nothing()


def _through(items=None, *_, **__):
    return NOTHING if items is None else items


# What a page needs to go on: the items that are counted, the text without its colour, two values where two are taken.
_KNOWN = {
    "tqdm": {"tqdm": _through, "trange": range},
    "termcolor": {"colored": lambda text, *_, **__: str(text), "cprint": lambda text, *_, **__: print(text)},
    "matplotlib": {"subplots": lambda *_, **__: (NOTHING, NOTHING)},
    "rich": {"print": print},
}


class _Module(types.ModuleType):
    __path__ = []
    __all__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
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
