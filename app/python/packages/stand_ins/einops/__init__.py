# SPDX-License-Identifier: GPL-3.0-or-later
"""einops, as pages on attention import it, where it is not installed: dimensions by name."""
import math

import jax.numpy as jnp
import numpy as np


class EinopsError(RuntimeError):
    """A pattern that does not fit an array."""


def _groups(side):
    """"b (h w) 1" as [["b"], ["h", "w"], []]."""
    groups, inside = [], None
    for word in side.replace("(", " ( ").replace(")", " ) ").replace("...", " ... ").split():
        if word == "(":
            inside = []
        elif word == ")":
            groups.append(inside)
            inside = None
        elif inside is not None:
            inside += [] if word == "1" else [word]
        else:
            groups.append([] if word == "1" else [word])
    return groups


def _expanded(groups, count):
    """With a name for each dimension that the dots stand for."""
    names = [f".{number}" for number in range(count)]
    made = []
    for group in groups:
        made += [[name] for name in names] if group == ["..."] else [[part for one in group for part in (names if one == "..." else [one])]]
    return made


def _solved(pattern, shape, sizes):
    left, arrow, right = pattern.partition("->")
    if not arrow:
        raise EinopsError(f"Expected an arrow in the pattern {pattern!r}")
    given, wanted = _groups(left), _groups(right)
    dots = len(shape) - len(given) + 1 if ["..."] in given else 0
    given, wanted = _expanded(given, dots), _expanded(wanted, dots)
    if len(given) != len(shape):
        raise EinopsError(f"Error while processing the pattern {pattern!r}: expected {len(given)} dimensions, got an array of shape {shape}")
    known = dict(sizes)
    for group, size in zip(given, shape):
        unknown = [name for name in group if name not in known]
        rest = math.prod(known[name] for name in group if name in known)
        if len(unknown) > 1 or size % max(rest, 1) or not unknown and rest != size:
            raise EinopsError(f"Error while processing the pattern {pattern!r}: {' '.join(group) or '1'} does not fit a dimension of size {size}; sizes: {sizes}")
        if unknown:
            known[unknown[0]] = size // rest
    return given, wanted, known


def _numpy_of(x):
    return np if isinstance(x, np.ndarray) else jnp


def _carried_out(x, pattern, sizes, reduction, may_repeat):
    x = jnp.stack(x) if isinstance(x, (list, tuple)) else x
    given, wanted, known = _solved(pattern, x.shape, sizes)
    names, after = [name for group in given for name in group], [name for group in wanted for name in group]
    new, gone = [name for name in after if name not in names], [name for name in names if name not in after]
    if new and not may_repeat or gone and reduction is None or len(set(after)) != len(after):
        raise EinopsError(f"Identifiers only on one side of the pattern (should be on both): {sorted(set(new + gone))}")
    if any(name not in known for name in new):
        raise EinopsError(f"Specify sizes for new axes in repeat: {[name for name in new if name not in known]}")
    xp = _numpy_of(x)
    x = xp.reshape(x, [known[name] for name in names])
    if gone:
        axes = tuple(names.index(name) for name in gone)
        x = reduction(x, axes) if callable(reduction) else getattr(xp, reduction)(x, axis=axes)
        names = [name for name in names if name not in gone]
    x = xp.transpose(x, [names.index(name) for name in after if name in names])
    if new:
        x = xp.reshape(x, [1 if name in new else known[name] for name in after])
        x = xp.broadcast_to(x, tuple(known[name] for name in after))
    return xp.reshape(x, tuple(math.prod(known[name] for name in group) for group in wanted))


def rearrange(tensor, pattern, **sizes):
    return _carried_out(tensor, pattern, sizes, None, False)


def reduce(tensor, pattern, reduction, **sizes):
    return _carried_out(tensor, pattern, sizes, reduction, False)


def repeat(tensor, pattern, **sizes):
    return _carried_out(tensor, pattern, sizes, None, True)


def einsum(*tensors_and_pattern):
    """Like jnp.einsum, with words for dimensions, behind the arrays."""
    *tensors, pattern = tensors_and_pattern
    left, _, right = pattern.partition("->")
    words = list(dict.fromkeys(word for term in [*left.split(","), right] for word in term.split() if word != "..."))
    letter = dict(zip(words, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    text = lambda term: "".join(letter.get(word, word) for word in term.split())
    return _numpy_of(tensors[0]).einsum(f"{','.join(map(text, left.split(',')))}->{text(right)}", *tensors)


def parse_shape(x, pattern):
    return {word: size for word, size in zip(pattern.split(), x.shape) if word != "_"}
