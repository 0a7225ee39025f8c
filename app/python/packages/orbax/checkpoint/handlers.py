# SPDX-License-Identifier: GPL-3.0-or-later
"""What writes and reads the items of a checkpoint."""
import json

from . import args as _args
from ._trees import Saved, save_tree


class CheckpointHandler:
    """`save` into a folder that is not there yet, `restore` from one."""


class StandardCheckpointHandler(CheckpointHandler):
    def __init__(self, *_, **__):
        pass

    def save(self, path, args):
        save_tree(path, args.item, args.save_args)

    def restore(self, path, args=None):
        saved, target = Saved(path), getattr(args, "item", None)
        if isinstance(args, _args.PyTreeRestore):
            return _restored(saved, args)
        return saved.whole() if target is None else saved.like(target, is_partial=args.is_partial, is_strict=args.strict)

    def metadata(self, path):
        return Saved(path).metadata()


def _restored(saved, args):
    if args.item is None:
        return saved.whole(args.restore_args)
    if args.transforms is None:
        return saved.like(args.item, args.restore_args, args.partial_restore)
    made = {}
    for name, like in args.item.items():
        rule = args.transforms.get(name)
        source = f"[{(rule.original_key or name)!r}]" if rule is not None else f"[{name!r}]"
        if source in saved.rows:
            made[name] = saved.value(source, (args.restore_args or {}).get(name))
            if rule is not None and rule.value_fn is not None:
                made[name] = rule.value_fn(made[name])
        else:
            made[name] = like
    return made


class PyTreeCheckpointHandler(StandardCheckpointHandler):
    pass


class ArrayCheckpointHandler(StandardCheckpointHandler):
    pass


AsyncCheckpointHandler = StandardCheckpointHandler


class JsonCheckpointHandler(CheckpointHandler):
    def __init__(self, *_, **__):
        pass

    def save(self, path, args):
        path.mkdir(parents=True)
        (path / "metadata").write_text(json.dumps(args.item))

    def restore(self, path, args=None):
        return json.loads((path / "metadata").read_text())

    def metadata(self, path):
        return None


def handler_of(args):
    return JsonCheckpointHandler() if isinstance(args, (_args.JsonSave, _args.JsonRestore)) else StandardCheckpointHandler()


def handler_at(path):
    """That of the files of a folder."""
    return JsonCheckpointHandler() if (path / "metadata").exists() else StandardCheckpointHandler()


class CompositeCheckpointHandler(CheckpointHandler):
    def __init__(self, *_, **__):
        pass

    def save(self, path, args):
        path.mkdir(parents=True)
        for name, item in args.items():
            handler_of(item).save(path / name, item)

    def restore(self, path, args=None):
        names = sorted(part.name for part in path.iterdir() if part.is_dir()) if args is None else list(args)
        made = {name: handler_at(path / name).restore(path / name, None if args is None else args[name]) for name in names}
        return _args.Composite(**made)

    def metadata(self, path):
        return _args.Composite(**{part.name: handler_at(part).metadata(part) for part in sorted(path.iterdir()) if part.is_dir()})
