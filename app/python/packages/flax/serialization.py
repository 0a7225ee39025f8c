# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees as nested dicts with names, and these as bytes of MessagePack. Source of the form: google/flax, flax/serialization.py, and the specification of MessagePack."""
import struct as _struct

import jax
import jax.numpy as jnp
import numpy as np

from .core.frozen_dict import FrozenDict

_KINDS = {}  # class -> (to a dict, from the object and a dict)


def register_serialization_state(ty, ty_to_state_dict, ty_from_state_dict, override=False):
    if ty in _KINDS and not override:
        raise ValueError(f'a serialization handler for "{ty.__name__}" is already registered')
    _KINDS[ty] = ty_to_state_dict, ty_from_state_dict


class _Named:  # all classes of named tuples
    pass


def _kind(target):
    return _Named if isinstance(target, tuple) and hasattr(target, "_fields") else type(target)


def is_serializable(target):
    return _kind(target) in _KINDS


def to_state_dict(target):
    return _KINDS[_kind(target)][0](target) if is_serializable(target) else target


def from_state_dict(target, state, name="."):
    """What has the form of `target` and the values of `state`."""
    return _KINDS[_kind(target)][1](target, state) if is_serializable(target) else state


def _of_names(target, names, state):
    missing = {str(name) for name in names} - set(state)
    if missing:
        raise ValueError(f"The target dict keys and state dict keys do not match, target dict contains keys {missing} which are not present in state dict")
    return {name: from_state_dict(target[name], state[str(name)], str(name)) for name in names}


def _list_from(target, state):
    if len(state) != len(target):
        raise ValueError(f"The size of the list and the state dict do not match, got {len(target)} and {len(state)}")
    return type(target)(from_state_dict(target[at], state[str(at)], str(at)) for at in range(len(target)))


def _named_from(target, state):
    if set(state) != set(target._fields):
        raise ValueError(f"The field names of the state dict and the named tuple do not match, got {set(state)} and {set(target._fields)}")
    return type(target)(**_of_names(target._asdict(), target._fields, state))


_dict_to = lambda tree: {str(name): to_state_dict(value) for name, value in tree.items()}
_list_to = lambda parts: {str(at): to_state_dict(part) for at, part in enumerate(parts)}
register_serialization_state(dict, _dict_to, lambda target, state: _of_names(target, target, state))
register_serialization_state(FrozenDict, _dict_to, lambda target, state: FrozenDict(_of_names(target, target, state)))
register_serialization_state(list, _list_to, _list_from)
register_serialization_state(tuple, _list_to, _list_from)
register_serialization_state(_Named, lambda target: _dict_to(target._asdict()), _named_from)


def register_dataclass(kind, names):
    """A dataclass of which these fields are saved."""
    register_serialization_state(kind, lambda node: {name: to_state_dict(getattr(node, name)) for name in names},
                                 lambda node, state: node.replace(**_of_names({name: getattr(node, name) for name in names}, names, state)))


# ---- bytes

_ARRAY, _COMPLEX, _SCALAR = 1, 2, 3  # kinds of extensions


def _sized(value, short, tags, size):
    """A head with a size: within the tag where it is short (first tag, sizes below), else behind it in 1, 2 or 4 bytes."""
    if short is not None and size < short[1]:
        return bytes([short[0] | size]) + value
    for tag, letter, most in zip(tags, "BHI", (1 << 8, 1 << 16, 1 << 32)):
        if tag is not None and size < most:
            return _struct.pack(f">B{letter}", tag, size) + value
    raise ValueError("an object of more than 4 GiB")


def _array_bytes(array):
    name = str(array.dtype)
    array = np.asarray(jax.lax.bitcast_convert_type(array, jnp.uint16) if name == "bfloat16" else array)
    return _packed((tuple(array.shape), name, array.tobytes()))


def _extension(kind, data):
    return _sized(bytes([kind]) + data, None, (0xC7, 0xC8, 0xC9), len(data))


def _packed(value):
    if value is None or isinstance(value, (bool, np.bool_)):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[None if value is None else bool(value)]
    if isinstance(value, int):
        if -32 <= value < 128:
            return _struct.pack("b", value) if value < 0 else bytes([value])
        return _struct.pack(">Bq", 0xD3, value) if value < 1 << 63 else _struct.pack(">BQ", 0xCF, value)
    if isinstance(value, float) and not isinstance(value, np.generic):
        return _struct.pack(">Bd", 0xCB, value)
    if isinstance(value, str):
        data = value.encode()
        return _sized(data, (0xA0, 32), (0xD9, 0xDA, 0xDB), len(data))
    if isinstance(value, bytes):
        return _sized(value, None, (0xC4, 0xC5, 0xC6), len(value))
    if isinstance(value, (list, tuple)):
        return _sized(b"".join(map(_packed, value)), (0x90, 16), (None, 0xDC, 0xDD), len(value))
    if isinstance(value, dict):
        return _sized(b"".join(_packed(name) + _packed(part) for name, part in value.items()), (0x80, 16), (None, 0xDE, 0xDF), len(value))
    if isinstance(value, np.generic):
        return _extension(_SCALAR, _array_bytes(value))
    if isinstance(value, complex):
        return _extension(_COMPLEX, _packed((value.real, value.imag)))
    if isinstance(value, (np.ndarray, jax.Array)):
        return _extension(_ARRAY, _array_bytes(value))
    raise TypeError(f"can not serialize {type(value).__name__!r} object")


class _Reader:
    def __init__(self, data):
        self._data, self._at = data, 0

    def _take(self, count):
        if self._at + count > len(self._data):
            raise ValueError("Unpack failed: incomplete input")
        self._at += count
        return self._data[self._at - count:self._at]

    def _number(self, letter):
        return _struct.unpack(">" + letter, self._take(_struct.calcsize(">" + letter)))[0]

    def value(self):
        tag = self._number("B")
        if tag < 0x80 or tag >= 0xE0:
            return tag if tag < 0x80 else tag - 256
        if tag < 0xC0:
            count = tag & (0x1F if tag >= 0xA0 else 0x0F)
            return self._take(count).decode() if tag >= 0xA0 else self._list(count) if tag >= 0x90 else self._dict(count)
        if tag in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[tag]
        if 0xCA <= tag <= 0xD3:
            return self._number("fdBHIQbhiq"[tag - 0xCA])
        if 0xD4 <= tag <= 0xD8:
            return self._extended(1 << (tag - 0xD4))
        for first, letters, read in ((0xC4, "BHI", self._take), (0xC7, "BHI", self._extended), (0xD9, "BHI", lambda count: self._take(count).decode()),
                                     (0xDC, "HI", self._list), (0xDE, "HI", self._dict)):
            if first <= tag < first + len(letters):
                return read(self._number(letters[tag - first]))
        raise ValueError(f"Unpack failed: tag {tag:#x}")

    def _list(self, count):
        return [self.value() for _ in range(count)]

    def _dict(self, count):
        return {self.value(): self.value() for _ in range(count)}

    def _extended(self, count):
        kind, data = self._number("B"), self._take(count)
        if kind == _COMPLEX:
            return complex(*_Reader(data).value())
        if kind not in (_ARRAY, _SCALAR):
            raise ValueError(f"Unpack failed: an extension of kind {kind}")
        shape, name, data = _Reader(data).value()
        if name == "bfloat16":
            bits = np.frombuffer(data, np.uint16).reshape(shape)
            return jax.lax.bitcast_convert_type(jnp.asarray(bits), jnp.bfloat16)
        array = np.frombuffer(data, np.dtype(name)).reshape(shape)
        return array[()] if kind == _SCALAR else array


def msgpack_serialize(pytree, in_place=False):
    return _packed(pytree)


def msgpack_restore(encoded_pytree):
    return _Reader(encoded_pytree).value()


def to_bytes(target):
    return msgpack_serialize(to_state_dict(target))


def from_bytes(target, encoded_bytes):
    return from_state_dict(target, msgpack_restore(encoded_bytes))
