# SPDX-License-Identifier: GPL-3.0-or-later
"""ml_collections, as pages that train import it, where it is not installed: dicts whose keys are attributes."""


class ConfigDict(dict):
    """A dict whose keys are attributes, and whose dicts are such dicts."""
    _type_safe = True

    def __init__(self, initial_dictionary=None, type_safe=True, **_):
        super().__init__()
        object.__setattr__(self, "_locked", False)
        for name, value in dict(initial_dictionary or {}).items():
            self[name] = value

    def __setitem__(self, name, value):
        if self._locked and name not in self:
            raise KeyError(f"Key \"{name}\" does not exist and cannot be added since the config is locked. Other fields present: \"{self.to_dict()}\"")
        super().__setitem__(name, type(self)(value) if type(value) is dict else value)

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(f"'{name}'")

    def __setattr__(self, name, value):
        self[name] = value

    def __delattr__(self, name):
        del self[name]

    def lock(self):
        object.__setattr__(self, "_locked", True)
        return self

    def unlock(self):
        object.__setattr__(self, "_locked", False)
        return self

    def unlocked(self):
        import contextlib

        @contextlib.contextmanager
        def within():
            before = self._locked
            self.unlock()
            try:
                yield
            finally:
                object.__setattr__(self, "_locked", before)
        return within()

    def update(self, *others, **named):
        for other in (*others, named):
            for name, value in dict(other).items():
                if isinstance(value, dict) and isinstance(self.get(name), ConfigDict):
                    self[name].update(value)
                else:
                    self[name] = value

    def to_dict(self):
        return {name: value.to_dict() if isinstance(value, ConfigDict) else value for name, value in self.items()}

    def copy_and_resolve_references(self):
        return type(self)(self.to_dict())

    __hash__ = None


class FrozenConfigDict(ConfigDict):
    """One that does not change."""

    def __init__(self, initial_dictionary=None, **_):
        super().__init__(initial_dictionary)
        self.lock()

    def __setitem__(self, name, value):
        if self._locked:
            raise AttributeError("FrozenConfigDict is immutable. Cannot call __setitem__().")
        super().__setitem__(name, value)

    def __hash__(self):
        return hash(tuple(sorted((name, hash(value)) for name, value in self.items())))


config_dict = __import__("types").SimpleNamespace(ConfigDict=ConfigDict, FrozenConfigDict=FrozenConfigDict)


def FieldReference(value, **_):
    raise NotImplementedError("ml_collections.FieldReference")
