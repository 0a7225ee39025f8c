# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules put aside while a function runs. Source of the rules: google/flax, flax/nnx/module.py (capture, sow, perturb)."""
import functools
import inspect

from ._graph import State, Variable, walk
from ._layers import Module, noted
from ._pytree import data


def capture(function, *kinds, init=None, method_outputs=None):
    """The function, which gives beside its result a state of each kind of variables that `sow` and `perturb` put aside in its module: the module that it is or is a
    method of, or its first argument. `init` is a state that they begin with. With `method_outputs` what each method gives is put aside too. Given kinds
    alone: a decorator."""
    if isinstance(function, type) and issubclass(function, Variable):
        return lambda actual: capture(actual, function, *kinds, init=init, method_outputs=method_outputs)
    own = function if isinstance(function, Module) else getattr(function, "__self__", None) if inspect.ismethod(function) else None

    def captured(*args, **kwargs):
        module = own if isinstance(own, Module) else args[0]
        modules = [(path, node) for path, node in walk(module) if isinstance(node, Module)]
        known = {}
        for path, variable in init.flat_state() if init is not None else ():
            known.setdefault(path[:-1], {}).setdefault(variable.type, {})[path[-1]] = variable.value
        around = {id(node): vars(node).get("__captures__") for _, node in modules}  # of a capture around this one
        for path, node in modules:
            begun = {**{kind: {} for kind in kinds}, **known.get(path, {})}
            node.__captures__ = data(tuple(kind(values) for kind, values in begun.items()))
        changed = _noting({type(node) for _, node in modules}, method_outputs) if method_outputs else []
        noted.append({})
        try:
            result = function(*args, **kwargs)
        finally:
            elsewhere = noted.pop()
            for _, node in modules:
                for variable in vars(node)["__captures__"]:
                    elsewhere.pop(id(variable), None)
            for cls, name, method in changed:
                setattr(cls, name, method)
            found = [(path + (name,), type(variable)(value)) for path, node in modules for variable in vars(node)["__captures__"]
                     for name, value in variable.value.items()]
            for _, node in modules:
                del node.__captures__
                if around[id(node)] is not None:
                    node.__captures__ = data(around[id(node)])
        if noted:
            noted[-1].update(elsewhere)  # of a capture around
        elif elsewhere:
            raise NotImplementedError("nnx.capture of a function that puts values aside in a copy of its module, made by nnx.merge: they would be lost; call the module "
                                      "itself, or capture the function that makes the copy")
        states = [State.from_flat_path([(path, variable.to_state()) for path, variable in found if type(variable) is kind]) for kind in kinds]
        return (result, *states) if kinds else result
    return captured


def _noting(classes, kind):
    """Lets the methods of classes put aside what they give; (class, name, method) of what they were."""
    changed = []
    for cls in classes:
        for name, method in list(vars(cls).items()):
            if inspect.isfunction(method) and (name == "__call__" or not name.startswith("_")):
                setattr(cls, name, _noted(name, method, kind))
                changed.append((cls, name, method))
    return changed


def _noted(name, method, kind):
    @functools.wraps(method)
    def called(self, *args, **kwargs):
        made = method(self, *args, **kwargs)
        self.sow(kind, name, made)
        return made
    return called
