# SPDX-License-Identifier: GPL-3.0-or-later
"""A table of a module's submodules: what they give, and their variables. Nothing is computed for it."""
import jax

from . import _module


def _type(value):
    shape = ",".join(map(str, value.shape))
    return f"{value.dtype}[{shape}]" if hasattr(value, "shape") else repr(value)


def _types(tree):
    leaves = [_type(leaf) for leaf in jax.tree.leaves(tree)]
    return ", ".join(leaves) if len(leaves) < 4 else f"{', '.join(leaves[:3])}, .."


def _size(tree):
    leaves = jax.tree.leaves(tree)
    count, size = sum(leaf.size for leaf in leaves), sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
    return f"{count:,} ({size:,} B)"


def tabulate(module, rngs, depth=None, method=None, mutable=_module.DenyList("intermediates"), **_):
    """A function of what the module takes, which gives the table as text."""
    def of(*args, **kwargs):
        rows, found = [], {}

        def note(part, name):
            if name != "__call__" or depth is not None and len(part.path) > depth:
                return False
            found.setdefault(part.path, part)
            return True

        def run(rngs, args, kwargs):
            return module.init_with_output(rngs, *args, method=method, mutable=True, capture_intermediates=note, **kwargs)[1]
        variables = jax.eval_shape(lambda: run(rngs, args, kwargs))
        outputs = variables.pop("intermediates", {})
        for path, part in sorted(found.items(), key=lambda row: row[0]):
            own = {collection: _of(tree, path) for collection, tree in variables.items()}
            rows.append(["/".join(path), type(part).__name__, _types(_of(outputs, path).get("__call__", ())), *(_size(own[collection]) for collection in variables)])
        rows.append(["", "", "Total", *(_size(tree) for tree in variables.values())])
        return _table(["path", "module", "outputs", *variables], rows)
    return of


def _of(tree, path):
    for name in path:
        tree = tree.get(name, {}) if isinstance(tree, dict) else {}
    return tree


def _table(names, rows):
    widths = [max(len(row[at]) for row in [names, *rows]) for at in range(len(names))]
    line = lambda row: "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |"
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(names), rule, *map(line, rows[:-1]), rule, line(rows[-1])]) + "\n"
