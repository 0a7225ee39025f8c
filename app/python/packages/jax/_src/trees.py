# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees of containers with arrays at their leaves."""
import collections
import functools


class PyTreeDef:
    """The form of a tree: a node's kind, what is static in it, and its children."""
    __slots__ = ("kind", "data", "children", "count")

    def __init__(self, kind, data, children):
        self.kind, self.data, self.children = kind, data, children
        self.count = 1 if kind is _Leaf else sum(child.count for child in children)

    num_leaves = property(lambda self: self.count)

    def __eq__(self, other):
        return (isinstance(other, PyTreeDef) and self.kind is other.kind and self.data == other.data
                and self.children == other.children)

    def __hash__(self):
        try:
            return hash((self.kind, self.data, tuple(self.children)))
        except TypeError:  # static data without a hash
            return hash((self.kind, tuple(self.children)))

    def unflatten(self, leaves):
        return tree_unflatten(self, leaves)

    def flatten_up_to(self, tree):
        """The subtrees of `tree` at this form's leaves."""
        if self.kind is _Leaf:
            return [tree]
        parts = _parts(tree)
        if self.kind is dict and type(tree) is dict and parts[1] != self.data:
            raise ValueError(f"Dict key mismatch; expected keys: {list(self.data)}; dict: {tree}.")
        if self.kind in (tuple, list) and type(tree) is self.kind and len(tree) != len(self.children):
            name = self.kind.__name__
            raise ValueError(f"{name.title()} arity mismatch: {len(tree)} != {len(self.children)}; {name}: {tree}.")
        if parts is None or parts[0] is not self.kind or len(parts[2]) != len(self.children):
            raise ValueError(f"Mismatch of tree structures: expected {self}, got {tree_structure(tree)}")
        return [leaf for child, form in zip(parts[2], self.children) for leaf in form.flatten_up_to(child)]

    def __repr__(self):
        return f"PyTreeDef({self._shown()})"

    def _shown(self):
        parts = [child._shown() for child in self.children]
        if self.kind is _Leaf:
            return "*"
        if self.kind is type(None):
            return "None"
        if self.kind is tuple:
            return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
        if self.kind is list:
            return f"[{', '.join(parts)}]"
        if self.kind is dict:
            return "{" + ", ".join(f"{name!r}: {part}" for name, part in zip(self.data, parts)) + "}"
        if self.kind is collections.OrderedDict:
            return f"OrderedDict([{', '.join(f'({name!r}, {part})' for name, part in zip(self.data[0], parts))}])"
        name = f"namedtuple[{self.kind.__name__}]" if self.data is _Named else f"{self.kind.__name__}[{self.data}]"
        return f"CustomNode({name}, [{', '.join(parts)}])"


class _Leaf:
    pass


class _Named:  # all classes of named tuples
    pass


_REGISTERED = {}  # class -> (flatten, unflatten, keys)


def register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func=None):
    keys = flatten_with_keys_func and (lambda node: [key for key, _ in flatten_with_keys_func(node)[0]])
    register(nodetype, flatten_func, unflatten_func, keys)


def register(cls, flatten, unflatten, keys=None):
    """The same with a function that gives the keys only."""
    _REGISTERED[cls] = (flatten, unflatten, keys)


def register_pytree_node_class(cls):
    register(cls, lambda node: node.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten=None):
    def plain(node):
        children, data = flatten_with_keys(node)
        return [child for _, child in children], data
    register(cls, flatten or plain, unflatten, lambda node: [key for key, _ in flatten_with_keys(node)[0]])


def register_dataclass(cls=None, data_fields=None, meta_fields=None, drop_fields=()):
    import dataclasses
    if cls is None:
        return lambda cls: register_dataclass(cls, data_fields, meta_fields, drop_fields)
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else []
    meta_fields = [field.name for field in fields if field.metadata.get("static")] if meta_fields is None else list(meta_fields)
    names = list(data_fields) if data_fields is not None else [field.name for field in fields if field.name not in meta_fields and field.name not in drop_fields]
    register(
        cls, lambda node: ([getattr(node, name) for name in names], tuple(getattr(node, name) for name in meta_fields)),
        lambda meta, values: cls(**dict(zip(names, values)), **dict(zip(meta_fields, meta))),
        lambda node: [GetAttrKey(name) for name in names])
    return cls


def register_pytree_with_keys_class(cls):
    register_pytree_with_keys(cls, lambda node: node.tree_flatten_with_keys(), cls.tree_unflatten, getattr(cls, "tree_flatten", None) and (lambda node: node.tree_flatten()))
    return cls


def register_static(cls):
    """Its objects are no arrays and hold none: they are part of a tree's form."""
    register(cls, lambda node: ((), node), lambda node, _: node)
    return cls


class FlattenedIndexKey(collections.namedtuple("FlattenedIndexKey", "key")):
    def __str__(self):
        return f"[<flat index {self.key}>]"


class DictKey(collections.namedtuple("DictKey", "key")):
    def __str__(self):
        return f"[{self.key!r}]"


class SequenceKey(collections.namedtuple("SequenceKey", "idx")):
    def __str__(self):
        return f"[{self.idx!r}]"


class GetAttrKey(collections.namedtuple("GetAttrKey", "name")):
    def __str__(self):
        return f".{self.name}"


def _parts(tree):
    """Kind, static data and children of a node; nothing for a leaf."""
    cls = type(tree)
    if tree is None:
        return type(None), None, []
    if cls is tuple or cls is list:
        return cls, None, tree
    if cls is dict:
        keys = _sorted(tree)
        return dict, tuple(keys), [tree[key] for key in keys]
    if cls in (collections.OrderedDict, collections.defaultdict):
        return cls, (tuple(tree), getattr(tree, "default_factory", None)), list(tree.values())
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return cls, _Named, list(tree)
    for base in cls.__mro__[:-1]:
        if base in _REGISTERED:
            children, data = _REGISTERED[base][0](tree)
            return cls, data, list(children)
    return None


def _sorted(names):
    try:
        return sorted(names)
    except TypeError as error:
        raise ValueError("Comparator raised exception while sorting pytree dictionary keys.") from error


def _keys(tree, count):
    cls = type(tree)
    if cls in (dict, collections.OrderedDict, collections.defaultdict):
        return [DictKey(key) for key in (sorted(tree) if cls is dict else tree)]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return [GetAttrKey(name) for name in tree._fields]
    for base in cls.__mro__[:-1]:
        if base in _REGISTERED and _REGISTERED[base][2] is not None:
            return _REGISTERED[base][2](tree)
    key = SequenceKey if cls in (tuple, list) else FlattenedIndexKey  # a class that was registered without keys has only numbers
    return [key(index) for index in range(count)]


def _flatten(tree, is_leaf, leaves, path=None):
    parts = None if is_leaf is not None and is_leaf(tree) else _parts(tree)
    if parts is None:
        leaves.append(tree if path is None else (path, tree))
        return _LEAF
    kind, data, children = parts
    if path is None:
        return PyTreeDef(kind, data, [_flatten(child, is_leaf, leaves) for child in children])
    keys = _keys(tree, len(children))
    return PyTreeDef(kind, data, [_flatten(child, is_leaf, leaves, path + (key,)) for key, child in zip(keys, children)])


_LEAF = PyTreeDef(_Leaf, None, [])


def tree_flatten(tree, is_leaf=None):
    leaves = []
    return leaves, _flatten(tree, is_leaf, leaves)


def tree_flatten_with_path(tree, is_leaf=None):
    leaves = []
    form = _flatten(tree, is_leaf, leaves, ())
    return leaves, form


def _unflatten(form, leaves):
    if form.kind is _Leaf:
        return next(leaves)
    children = [_unflatten(child, leaves) for child in form.children]
    kind, data = form.kind, form.data
    if kind is type(None):
        return None
    if kind is tuple or kind is list:
        return kind(children)
    if kind is dict:
        return dict(zip(data, children))
    if kind is collections.OrderedDict:
        return kind(zip(data[0], children))
    if kind is collections.defaultdict:
        return kind(data[1], zip(data[0], children))
    if data is _Named:
        return kind(*children)
    for base in kind.__mro__:
        if base in _REGISTERED:
            return _REGISTERED[base][1](data, children)
    raise TypeError(f"{kind} is not a tree")


def tree_unflatten(treedef, leaves):
    leaves = list(leaves)
    if len(leaves) != treedef.count:
        raise ValueError(f"Too few leaves for PyTreeDef; expected {treedef.count}, got {len(leaves)}" if len(leaves) < treedef.count
                         else f"Too many leaves for PyTreeDef; expected {treedef.count}.")
    return _unflatten(treedef, iter(leaves))


def tree_leaves(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f, tree, *rest, is_leaf=None):
    leaves, form = tree_flatten(tree, is_leaf)
    others = [form.flatten_up_to(other) for other in rest]
    return tree_unflatten(form, [f(*items) for items in zip(leaves, *others)])


def tree_map_with_path(f, tree, *rest, is_leaf=None):
    leaves, form = tree_flatten_with_path(tree, is_leaf)
    others = [form.flatten_up_to(other) for other in rest]
    return tree_unflatten(form, [f(path, leaf, *more) for (path, leaf), *more in zip(leaves, *others)])


def tree_leaves_with_path(tree, is_leaf=None):
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_broadcast(prefix, tree, is_leaf=None):
    """A tree of the form of `tree`, with each leaf of `prefix` where its subtree is."""
    form = tree_structure(tree, is_leaf)
    return tree_unflatten(form, prefix_leaves(prefix, form, tree, is_leaf))


def all_leaves(items, is_leaf=None):
    return all(_parts(item) is None or is_leaf is not None and is_leaf(item) for item in items)


def treedef_is_leaf(form):
    return form.kind is _Leaf


def build_tree(form, leaves):
    return tree_unflatten(form, tree_leaves(leaves))


def tree_reduce(function, tree, *initializer, is_leaf=None, **named):
    return functools.reduce(function, tree_leaves(tree, is_leaf), *initializer, *named.values())


def tree_all(tree, *, is_leaf=None):
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef, inner_treedef, pytree_to_transpose):
    """A tree of trees the other way round; without the inner form, that of the first subtree."""
    subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
    inner = tree_structure(subtrees[0]) if inner_treedef is None else inner_treedef
    leaves = [inner.flatten_up_to(subtree) for subtree in subtrees]
    return tree_unflatten(inner, [tree_unflatten(outer_treedef, list(column)) for column in zip(*leaves)])


def prefix_leaves(prefix, form, tree, is_leaf=None):
    """A value for each leaf of `tree`, from a tree whose leaves stand for whole subtrees. `is_leaf` says what a prefix's leaf is."""
    leaves = []

    def walk(part, form, subtree):
        if form.kind is _Leaf or is_leaf is not None and is_leaf(part) or _parts(part) is None:
            leaves.extend([part] * form.count)
            return
        own = _parts(part)
        if own[0] is not form.kind and not (own[0] in (tuple, list) and form.kind in (tuple, list)) \
                or len(own[2]) != len(form.children):
            raise ValueError(f"pytree structure error: the prefix {part!r} does not match {form}")
        for child, child_form in zip(own[2], form.children):
            walk(child, child_form, None)

    walk(prefix, form, tree)
    return leaves


def keystr(path, simple=False, separator=""):
    if simple:
        return separator.join(str(key[0]) for key in path)
    return separator.join(str(key) for key in path)


def of_page(function):
    """A function of trees as pages call it: an array of keys is a leaf, where programs take it apart."""
    def is_end(is_leaf):
        return lambda node: getattr(type(node), "is_key_array", False) or is_leaf is not None and is_leaf(node)
    if function in (tree_map, tree_map_with_path, tree_reduce):
        @functools.wraps(function)
        def called(f, tree, *rest, is_leaf=None, **named):
            return function(f, tree, *rest, is_leaf=is_end(is_leaf), **named)
    else:
        @functools.wraps(function)
        def called(tree, is_leaf=None):
            return function(tree, is_leaf=is_end(is_leaf))
    return called
