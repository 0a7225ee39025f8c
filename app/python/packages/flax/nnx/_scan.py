# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.lax.scan of functions of modules: a module that is scanned over is, in each turn, the slice of it along its leading dimension."""
import functools

import jax

from ._graph import variables_of


class Carry:
    """Marks the argument and the result that a turn hands to the next."""


def scan(f=None, *, length=None, reverse=False, unroll=1, in_axes=(Carry, 0), out_axes=(Carry, 0), transform_metadata=None, **_):
    if f is None:
        return functools.partial(scan, length=length, reverse=reverse, in_axes=in_axes, out_axes=out_axes)

    @functools.wraps(f)
    def scanned(*args):
        axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if any(axis not in (Carry, None, 0) for axis in axes):
            raise NotImplementedError("nnx.scan over another axis than 0")
        changed = []  # which variables of what is scanned over a turn changes

        def turn(carry, slices):
            given = iter(slices)
            before = [variable.value for _, variable in variables_of(slices)]
            made = f(*[carry if axis is Carry else next(given) if axis == 0 else arg for axis, arg in zip(axes, args)])
            after = variables_of(slices)
            changed[:] = [number for number, (old, (_, variable)) in enumerate(zip(before, after)) if variable.value is not old]
            if out_axes is Carry:
                carry, out = made, None
            elif isinstance(out_axes, (tuple, list)) and Carry in out_axes:
                at = list(out_axes).index(Carry)
                carry, rest = made[at], [part for number, part in enumerate(made) if number != at]
                out = rest[0] if len(rest) == 1 else tuple(rest)
            else:
                out = made
            return carry, (out, [after[number][1].value for number in changed])

        over = [arg for axis, arg in zip(axes, args) if axis == 0]
        first = next((arg for axis, arg in zip(axes, args) if axis is Carry), None)
        carry, (out, values) = jax.lax.scan(turn, first, over, length=length, reverse=reverse)
        originals = variables_of(over)
        for number, value in zip(changed, values):
            originals[number][1].value = value
        if out_axes is Carry:
            return carry
        if isinstance(out_axes, (tuple, list)) and Carry in out_axes:
            rest = [out] if len(out_axes) == 2 else list(out)
            rest.insert(list(out_axes).index(Carry), carry)
            return tuple(rest)
        return out
    return scanned
