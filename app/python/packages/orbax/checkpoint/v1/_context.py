# SPDX-License-Identifier: GPL-3.0-or-later
"""Contexts: the options of the calls within them. Source of names and texts: google/orbax, checkpoint/orbax/checkpoint/experimental/v1/_src/context/context.py."""
import copy
import dataclasses

from jax._src.trees import tree_flatten_with_path, tree_unflatten

from . import options as _options
from .._trees import SaveArgs, is_typed

_KINDS = {"pytree": _options.PyTreeOptions, "array": _options.ArrayOptions, "async": _options.AsyncOptions, "multiprocessing": _options.MultiprocessingOptions,
          "file": _options.FileOptions, "checkpointables": _options.CheckpointablesOptions, "pathways": _options.PathwaysOptions,
          "deletion": _options.DeletionOptions, "memory": _options.MemoryOptions, "safetensors": _options.SafetensorsOptions,
          "atomicity": _options.AtomicityOptions}
_active = []


def _ids(value):
    if dataclasses.is_dataclass(value):
        yield id(value)
        for field in dataclasses.fields(value):
            yield from _ids(getattr(value, field.name))


class Context:
    def __init__(self, context=None, **given):
        unknown = set(given) - {f"{name}_options" for name in _KINDS}
        if unknown:
            raise NotImplementedError(f"orbax.checkpoint.v1.Context({sorted(unknown)[0]}=..)")
        for name, kind in _KINDS.items():
            own = given.get(f"{name}_options") or (getattr(context, f"{name}_options") if context is not None else None)
            self.__dict__[f"{name}_options"] = kind() if own is None else copy.deepcopy(own)

    def __setattr__(self, name, value):
        raise NotImplementedError(f"orbax.checkpoint.v1.Context().{name} = ..: set the options of one of its groups, such as context.pytree.loading.partial_load")

    def __enter__(self):
        for group, name in ((self.checkpointables, "registry"), (self.asynchronous, "post_finalization_callback")):
            if getattr(group, name) is not None:
                raise NotImplementedError(f"orbax.checkpoint.v1.Context with {name}")
        _active.append(self)
        _options.frozen.append({one for value in vars(self).values() for one in _ids(value)})
        return self

    def __exit__(self, *_):
        _active.pop()
        _options.frozen.pop()


for _name in _KINDS:
    setattr(Context, {"async": "asynchronous"}.get(_name, _name), property(lambda self, name=f"{_name}_options": self.__dict__[name]))


def get_context(default=None):
    return _active[-1] if _active else Context() if default is None else default


def save_args(tree):
    """The types that the leaves of a tree are saved with, where the context names some."""
    saving = get_context().array.saving
    scoped, whole = saving.scoped_storage_options_creator, saving.storage_options.dtype
    if scoped is None and whole is None:
        return None
    pairs, form = tree_flatten_with_path(tree, is_typed)

    def of(path, leaf):
        own = scoped(path, leaf) if scoped is not None and hasattr(leaf, "dtype") else None
        return SaveArgs((own.dtype if own is not None and own.dtype is not None else whole) if hasattr(leaf, "dtype") else None)
    return tree_unflatten(form, [of(path, leaf) for path, leaf in pairs])
