# SPDX-License-Identifier: GPL-3.0-or-later
"""ml_collections, as pages that train import it, where it is not installed: configurations whose keys are attributes."""
import contextlib
import json
import types


class ConfigDict:
    """What is no dict, but has its methods, and keys that are attributes; dicts within become such, too. Keys are sorted."""

    def __init__(self, initial_dictionary=None, type_safe=True, **_):
        object.__setattr__(self, "_fields", {})
        object.__setattr__(self, "_locked", False)
        object.__setattr__(self, "_type_safe", type_safe)
        for name, value in dict(initial_dictionary or {}).items():
            self[name] = value

    is_locked = property(lambda self: self._locked)
    is_type_safe = property(lambda self: self._type_safe)

    def __getitem__(self, name):
        name, _, rest = name.partition(".")
        return self._fields[name][rest] if rest else self._fields[name]

    def __setitem__(self, name, value):
        if "." in name:
            raise ValueError(f"ConfigDict does not accept dots in field names, but the key {name} contains one.")
        if self._locked and name not in self:
            raise KeyError(f"Key \"{name}\" does not exist and cannot be added since the config is locked. Other fields present: \"{self.to_dict()}\"")
        self._fields[name] = type(self)(value) if type(value) is dict else value

    def __delitem__(self, name):
        if self._locked:
            raise KeyError("This ConfigDict is locked, you have to unlock it before trying to delete a field.")
        del self._fields[name]

    def __contains__(self, name):
        return name in self._fields

    def __len__(self):
        return len(self._fields)

    def __iter__(self):
        return iter(sorted(self._fields))

    def keys(self):
        return list(self)

    def values(self):
        return [self[name] for name in self]

    def items(self):
        return [(name, self[name]) for name in self]

    def get(self, key, default=None):
        return self._fields.get(key, default)

    def __getattr__(self, name):
        if name in self.__dict__.get("_fields", ()):
            return self._fields[name]
        raise AttributeError(f"'{name}'")

    def __setattr__(self, name, value):
        try:
            self[name] = value
        except KeyError as error:
            raise AttributeError(error) from error

    def __delattr__(self, name):
        try:
            del self[name]
        except KeyError as error:
            raise AttributeError(error) from error

    def __eq__(self, other):
        return isinstance(other, type(self)) and (self._fields, self._locked) == (other._fields, other._locked)

    __hash__ = None

    def __str__(self):
        return _lines(self.to_dict())

    __repr__ = __str__

    def lock(self):
        return self._set_locked(True)

    def unlock(self):
        return self._set_locked(False)

    def _set_locked(self, is_locked):
        object.__setattr__(self, "_locked", is_locked)
        for value in self._fields.values():
            if isinstance(value, ConfigDict):
                value._set_locked(is_locked)
        return self

    @contextlib.contextmanager
    def unlocked(self):
        was_locked = self._locked
        self.unlock()
        try:
            yield self
        finally:
            self._set_locked(was_locked)

    def update(self, *others, **named):
        for other in (*others, named):
            for name, value in dict(other).items():
                if isinstance(value, (dict, ConfigDict)) and isinstance(self.get(name), ConfigDict):
                    self[name].update(value)
                else:
                    self[name] = value

    def to_dict(self):
        return {name: value.to_dict() if isinstance(value, ConfigDict) else value for name, value in self.items()}

    def to_json(self, **options):
        return json.dumps(self.to_dict(), **options)

    def copy_and_resolve_references(self):
        made = type(self)(self.to_dict())
        return made.lock() if self._locked else made


def _lines(part, indent=""):
    """A dict as YAML has it."""
    text = lambda value: "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    made = []
    for name, value in part.items():
        if isinstance(value, dict) and value:
            made.append(f"{indent}{name}:\n" + _lines(value, indent + "  "))
        elif isinstance(value, (list, tuple)) and value:
            made.append(f"{indent}{name}:\n" + "".join(f"{indent}- {text(item)}\n" for item in value))
        else:
            made.append(f"{indent}{name}: {text(value)}\n")
    return "".join(made)


class FrozenConfigDict(ConfigDict):
    """One that does not change."""

    def __init__(self, initial_dictionary=None, **_):
        super().__init__(initial_dictionary)
        self.lock()

    def __setitem__(self, name, value):
        if self._locked:
            raise AttributeError("FrozenConfigDict is immutable. Cannot call __setitem__().")
        kind = type(self) if isinstance(value, ConfigDict) else {list: tuple, set: frozenset}.get(type(value))
        super().__setitem__(name, kind(value) if kind else value)

    def unlock(self):
        raise AttributeError("FrozenConfigDict is immutable. Cannot call unlock().")

    def __hash__(self):
        return hash(tuple(sorted((name, hash(value)) for name, value in self.items())))


config_dict = types.SimpleNamespace(ConfigDict=ConfigDict, FrozenConfigDict=FrozenConfigDict)


def FieldReference(value, **_):
    raise NotImplementedError("ml_collections.FieldReference")
