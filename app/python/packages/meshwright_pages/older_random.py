# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the numbers that a page says it printed are those that JAX drew before 0.5."""
import re

import numpy as np

import jax
from jax._src.machine import machine

_SEED = re.compile(r"\b(?:PRNGKey|key)\((?:seed=)?(\d+)\)")
_NUMBER = re.compile(r"[-+]?\d*\.\d+(?:e[-+]?\d+)?")
_MOST_NUMBERS, _MOST_ARRAYS = 4096, 12


def _arrays(text):
    """The numbers of each array that a text shows as a whole, and those that stand alone with all their digits."""
    start, depth = 0, 0
    for at, letter in enumerate(text):
        if letter == "[":
            start, depth = (at, 1) if depth == 0 else (start, depth + 1)
        elif letter == "]" and depth:
            depth -= 1
            numbers = _NUMBER.findall(text[start:at])
            if depth == 0 and "..." not in text[start:at] and 2 <= len(numbers) <= _MOST_NUMBERS and len(numbers[0]) > 5:
                yield [float(number) for number in numbers]
    for number in _NUMBER.findall(re.sub(r"\[.*?\]", "", text, flags=re.S)):
        if len(number.strip("-+0.")) >= 7:
            yield [float(number)]


def _keys(seed):
    """The key of a seed, and those that pages split it into first."""
    first = jax.random.key(seed)
    pair = jax.random.split(first)
    return [first, *pair, *jax.random.split(first, 3), *jax.random.split(pair[0]), *jax.random.split(pair[1])]


def _are_drawn(numbers, seeds):
    for seed in seeds:
        for key in _keys(seed):
            for draw in (jax.random.normal, jax.random.uniform):
                if np.allclose(np.asarray(draw(key, (len(numbers),))), numbers, 1e-4, 1e-6):
                    return True
    return False


def is_older(cells):
    """`cells`: [{"source", "printed"?}]. The first array that comes straight from a key of the page decides."""
    seeds = list(dict.fromkeys(int(seed) % 2**32 for cell in cells for seed in _SEED.findall(cell["source"])))[:4]
    shown = [numbers for cell in cells if seeds for numbers in _arrays(cell.get("printed") or "")][:_MOST_ARRAYS]
    before = machine.legacy_random
    try:
        for numbers in shown:
            found = []
            for machine.legacy_random in (True, False):
                found.append(_are_drawn(numbers, seeds))
            if any(found):
                return found == [True, False]
    finally:
        machine.legacy_random = before
    return False
