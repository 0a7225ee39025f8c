# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers to the questions of a page, beside what the engine says."""
import ast
import re

import numpy as np
from jax._src import arrays
from jax._src.shardings import PartitionSpec

_COLLECTIVES = {"allreduce": "all-reduce", "reducescatter": "reduce-scatter", "allgather": "all-gather", "alltoall": "all-to-all",
                "collectivepermute": "collective-permute", "permute": "collective-permute"}
_TRUTHS = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
_SPEC = r"(?:jax\.)?(?:sharding\.)?(?:PartitionSpec|P)"
_FILLING = {"over", "along", "the", "a", "an", "of", "axis", "axes", "is", "it", "on"}
_NONE = {"", "none", "nothing", "no", "0", "no collective", "no collectives"}
_UNITS = {"": 1, "%": 0.01, "b": 1, "byte": 1, "bytes": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30,
          "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "x": 1}
_CLOSE = 0.02  # of a number that is not whole


def text_of(answer):
    """An answer as a person writes it."""
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    if isinstance(answer, (list, tuple)) and not isinstance(answer, PartitionSpec):
        return ", ".join(map(text_of, answer)) or "none"
    if isinstance(answer, PartitionSpec):
        return answer.text
    return f"{answer:.4g}" if isinstance(answer, float) else str(answer)


class NotRead(Exception):
    """A person's words are no answer of this kind. Says what is expected."""


def _plain(answer):
    """An answer without arrays; numbers in a row are a tuple."""
    answer = answer.tolist() if isinstance(answer, (arrays.ConcreteArray, np.generic, np.ndarray)) else answer
    return tuple(answer) if isinstance(answer, list) and answer and all(isinstance(item, int) for item in answer) else answer


def _is_spec(value):
    return isinstance(value, PartitionSpec)


def read(answer, text, names=None):
    """What a person's words say, as a value of the kind of the answer; of another kind than those known here, as a Python expression of `names`. Raises NotRead."""
    answer = _plain(answer)
    if isinstance(answer, bool):
        word = text.strip().lower().rstrip(".")
        if word not in _TRUTHS:
            raise NotRead("expected yes or no")
        return _TRUTHS[word]
    if isinstance(answer, (int, float)):
        number = _number(text)
        if number is None:
            raise NotRead("expected a number, such as 128")
        return int(number) if isinstance(answer, int) and number == int(number) else number
    if _is_spec(answer):
        return _spec(text)
    if isinstance(answer, tuple) and answer and all(map(_is_spec, answer)):
        found = re.findall(rf"{_SPEC}\([^()]*(?:\([^()]*\)[^()]*)*\)", text)
        if len(found) != len(answer):
            raise NotRead(f"expected {len(answer)} specs, such as {', '.join(['P(None)'] * len(answer))}")
        return tuple(map(_spec, found))
    if isinstance(answer, tuple):
        numbers = tuple(int(number) for number in re.findall(r"(?<![\d.])-?\d+(?![\d.])", text))
        if not numbers:
            raise NotRead("expected whole numbers, such as 0, 7 or 2x4")
        return numbers
    if isinstance(answer, list):
        return _parts(answer, text)
    if isinstance(answer, str):
        return text
    try:
        return eval(text, dict(names or {}))
    except Exception as error:
        raise NotRead(f"{type(error).__name__}: {error}") from None


def is_same(answer, said):
    """Whether what `read` gives is that answer."""
    answer = _plain(answer)
    if isinstance(answer, float):
        return abs(said - answer) <= _CLOSE * abs(answer)
    if _is_spec(answer):
        return _entries(said) == _entries(answer)
    if isinstance(answer, list):
        return {_words(part) for part in said} == {_words(str(item)) for item in answer}
    if isinstance(answer, tuple):
        return len(said) == len(answer) and all(map(is_same, answer, said))
    return _words(said) == _words(answer) if isinstance(answer, str) else said == answer


def _words(text):
    """The words that matter, in any order, collectives by one name."""
    text = re.sub(r"\b(all|reduce|collective)[-_ ](reduce|gather|to|scatter|permute)(?:[-_ ](all))?\b",
                  lambda match: "".join(filter(None, match.groups())), text.lower())
    return frozenset(_COLLECTIVES.get(word, word) for word in re.findall(r"[\w-]+", text) if word not in _FILLING)


def _number(text):
    match = re.fullmatch(r"\s*([-+]?[\d_,']*\.?\d+(?:e[-+]?\d+)?)\s*([a-zµ%]*)\s*", text.lower())
    if match is None or match[2] not in _UNITS:
        return None
    return float(re.sub("[_,']", "", match[1])) * _UNITS[match[2]]


def _parts(answer, text):
    """The items that words list; where those of the answer are collectives, each is one with its axes."""
    parts = [] if text.strip().lower().rstrip(".") in _NONE else re.split(r"[,;+]|\band\b|\bthen\b", text)
    is_collective = lambda item: bool(_words(str(item)) & set(_COLLECTIVES.values()))
    if all(map(is_collective, answer)) and not all(map(is_collective, parts)):
        raise NotRead("expected collectives with their axes, such as all-to-all over model, or none")
    return parts


def _spec(text):
    """A spec, also without quotes, or as a tuple of its entries."""
    def entry(node):
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(map(entry, node.elts))
        if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str)):
            return node.value
        raise SyntaxError
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if isinstance(node, ast.Call) and re.fullmatch(_SPEC, ast.unparse(node.func)) and not node.keywords:
            return PartitionSpec(*map(entry, node.args))
        return PartitionSpec(*map(entry, node.elts)) if isinstance(node, (ast.Tuple, ast.List)) else PartitionSpec(entry(node))
    except (SyntaxError, ValueError):
        raise NotRead("expected a spec, such as P(None)") from None


def _entries(spec):
    """What a spec says, without whole dimensions at its end."""
    entries = [entry[0] if isinstance(entry, tuple) and len(entry) == 1 else entry for entry in spec]
    while entries and entries[-1] is None:
        entries.pop()
    return entries
