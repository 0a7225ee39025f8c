# SPDX-License-Identifier: GPL-3.0-or-later
"""A table of a module's submodules: what they take and give, and their variables. Nothing is computed for it."""
import contextlib

import jax

from ._graph import is_variable, merge, split, variables_of
from ._layers import iter_modules


@contextlib.contextmanager
def _watched(classes, name, note):
    """Tells of each call of this method of these classes."""
    before = {cls: vars(cls)[name] for cls in classes if name in vars(cls)}

    def watching(method):
        def called(self, *args, **kwargs):
            made = method(self, *args, **kwargs)
            note(self, (args, kwargs), made)
            return made
        return called
    for cls, method in before.items():
        setattr(cls, name, watching(method))
    try:
        yield
    finally:
        for cls, method in before.items():
            setattr(cls, name, method)


def tabulate(obj, *input_args, depth=None, method="__call__", row_filter=None, table_kwargs=None, column_kwargs=None, console_kwargs=None, compute_flops=False,
             compute_vjp_flops=False, **input_kwargs):
    if compute_flops or compute_vjp_flops or row_filter is not None:
        raise NotImplementedError("nnx.tabulate with compute_flops, compute_vjp_flops or row_filter")
    from ..linen._summary import _size, _table, _types
    definition, state = split(obj)
    seen = {}

    def run(state, args, kwargs):
        model = merge(definition, state)
        parts = {id(part): path for path, part in iter_modules(model)}
        classes = {base for _, part in iter_modules(model) for base in type(part).__mro__}

        def note(part, given, made):
            if id(part) in parts:
                seen[parts[id(part)]] = _types(given), _types(made)
        with _watched(classes, "__call__", note), _watched(classes if method != "__call__" else (), method, note):
            return getattr(model, method)(*args, **kwargs)
    if input_args or input_kwargs:
        jax.eval_shape(run, state, input_args, input_kwargs)
    kinds = list(dict.fromkeys(type(variable) for _, variable in variables_of(obj) if is_variable(variable)))
    of_kind = lambda part, kind: [variable.value for _, variable in variables_of(part) if type(variable) is kind]
    rows = [["/".join(map(str, path)), type(part).__name__, *seen.get(path, ("", "")), *(_size(of_kind(part, kind)) for kind in kinds)]
            for path, part in sorted(iter_modules(obj), key=lambda row: list(map(str, row[0]))) if depth is None or len(path) <= depth]
    rows.append(["", "", "", "Total", *(_size(of_kind(obj, kind)) for kind in kinds)])
    return _table(["path", "type", "inputs", "outputs", *(kind.__name__ for kind in kinds)], rows)
