# SPDX-License-Identifier: GPL-3.0-or-later
"""Nested dicts as flat ones, and back."""


def flatten_dict(tree, keep_empty_nodes=False, is_leaf=None, sep=None):
    flat = {}

    def walk(part, path):
        if isinstance(part, dict) and (part or not path) and not (is_leaf is not None and is_leaf(path, part)):
            for name, value in part.items():
                walk(value, path + (name,))
        elif not (isinstance(part, dict) and not part) or keep_empty_nodes:
            flat[path if sep is None else sep.join(path)] = part
    walk(tree, ())
    return flat


def unflatten_dict(flat, sep=None):
    tree = {}
    for path, value in flat.items():
        names = path if sep is None else path.split(sep)
        at = tree
        for name in names[:-1]:
            at = at.setdefault(name, {})
        at[names[-1]] = value
    return tree


def path_aware_map(f, nested_dict):
    """f(path, value) of each leaf of nested dicts."""
    flat = flatten_dict(nested_dict, keep_empty_nodes=True)
    return unflatten_dict({path: value if isinstance(value, dict) and not value else f(path, value) for path, value in flat.items()})


from jax._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
