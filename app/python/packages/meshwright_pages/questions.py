# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers to the questions of a page, beside what the engine says."""
import re

from jax._src import arrays
from jax._src.shardings import PartitionSpec

_COLLECTIVES = {"allreduce": "all-reduce", "reducescatter": "reduce-scatter", "allgather": "all-gather", "alltoall": "all-to-all",
                "collectivepermute": "collective-permute", "permute": "collective-permute"}
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


def is_same(answer, text):
    """Whether a person's words are that answer."""
    if isinstance(answer, arrays.ConcreteArray):
        answer = answer.tolist()
    if isinstance(answer, bool):
        return text.strip().lower() in (("yes", "y", "true") if answer else ("no", "n", "false"))
    if isinstance(answer, (int, float)):
        said = _number(text)
        return said is not None and (said == answer if isinstance(answer, int) else abs(said - answer) <= _CLOSE * abs(answer))
    if isinstance(answer, PartitionSpec):
        return _spec(text) == _spec(answer.text)
    if isinstance(answer, tuple):
        return _numbers(text) == list(answer)
    if isinstance(answer, list):
        parts = [] if text.strip().lower().rstrip(".") in _NONE else re.split(r"[,;+]|\band\b|\bthen\b", text)
        return {_words(part) for part in parts} == {_words(str(item)) for item in answer}
    return _words(str(answer)) == _words(text)


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


def _numbers(text):
    return [int(number) for number in re.findall(r"-?\d+", text)]


def _spec(text):
    """What a spec says, without whole dimensions at its end."""
    entries = re.sub(r"^(?:jax\.sharding\.)?(?:PartitionSpec|P)(?=\()", "", text.strip()).replace('"', "'").replace(" ", "")
    entries = re.sub(r"\('(\w+)',\)", r"'\1'", entries.removeprefix("(").removesuffix(")"))
    while entries.endswith((",None", ",")) or entries == "None":
        entries = entries.removesuffix("None").removesuffix(",")
    return entries
