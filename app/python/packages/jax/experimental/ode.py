# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.experimental.ode: Dormand and Prince's method, with the adjoint equation for derivatives. Source of the steps and constants: jax-ml/jax,
jax/experimental/ode.py."""
import functools

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.flatten_util import ravel_pytree

_TIMES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0], np.float32)
_STAGES = np.array([[1 / 5, 0, 0, 0, 0, 0, 0], [3 / 40, 9 / 40, 0, 0, 0, 0, 0], [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
                    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0], [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
                    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0]])
_FIFTH = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0])
_ERROR = _FIFTH - np.array([1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60])
_MIDDLE = np.array([6025192743 / 30085553152, 0, 51252292925 / 65400821598, -2691868925 / 45128329728, 187940372067 / 1594534317056, -1776094331 / 19743644256,
                    11237099 / 235043384]) / 2


def _first_step(f, t, y, slope, rtol, atol):
    scale = atol + jnp.abs(y) * rtol
    size, speed = jnp.linalg.norm(y / scale), jnp.linalg.norm(slope / scale)
    small = jnp.where((size < 1e-5) | (speed < 1e-5), 1e-6, 0.01 * size / speed)
    bend = jnp.linalg.norm((f(y + small * slope, t + small) - slope) / scale) / small
    step = jnp.where((speed <= 1e-15) & (bend <= 1e-15), jnp.maximum(1e-6, small * 1e-3), (0.01 / jnp.maximum(speed, bend)) ** (1 / 5))
    return jnp.minimum(100.0 * small, step)


def _solved(f, rtol, atol, mxstep, hmax, y, ts):
    """y at each time. `f` of a vector and a time."""
    constant = lambda values: jnp.asarray(values, y.dtype)

    def step(state):
        count, y, slope, t, h, last, fit = state
        slopes = [slope]
        for time, row in zip(_TIMES, _STAGES):
            slopes.append(f(y + h * jnp.dot(constant(row[:len(slopes)]), jnp.stack(slopes)), t + h * time))
        slopes = jnp.stack(slopes)
        after, error, middle = y + h * (constant(_FIFTH) @ slopes), h * (constant(_ERROR) @ slopes), y + h * (constant(_MIDDLE) @ slopes)
        ratio = jnp.sqrt(jnp.mean((error / (atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(after)))) ** 2))
        start, end = h * slope, h * slopes[-1]
        curve = jnp.stack([-2 * start + 2 * end - 8 * y - 8 * after + 16 * middle, 5 * start - 3 * end + 18 * y + 14 * after - 32 * middle,
                           -4 * start + end - 11 * y - 5 * after + 16 * middle, start, y])
        factor = jnp.minimum(10.0, jnp.maximum(ratio ** (-1 / 5) * 0.9, jnp.where(ratio < 1, 1.0, 0.2)))
        h_after = jnp.clip(h * jnp.where(ratio == 0, 10.0, factor), 0.0, hmax)
        return jax.tree.map(lambda new, old: jnp.where(ratio <= 1.0, new, old), (count + 1, after, slopes[-1], t + h, h_after, t, curve),
                            (count + 1, y, slope, t, h_after, last, fit))

    def until(carry, target):
        _, *carry = lax.while_loop(lambda state: (state[3] < target) & (state[0] < mxstep) & (state[4] > 0), step, (0, *carry))
        _, _, t, _, last, fit = carry
        place = (target - last) / (t - last)
        return tuple(carry), functools.reduce(lambda made, part: made * place + part, [fit[at] for at in range(5)])
    slope = f(y, ts[0])
    first = jnp.clip(_first_step(f, ts[0], y, slope, rtol, atol), 0.0, hmax)
    _, ys = lax.scan(until, (y, slope, ts[0], first, ts[0], jnp.stack([y] * 5)), ts[1:])
    return jnp.concatenate([y[None], ys])


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _odeint(f, rtol, atol, mxstep, hmax, y, ts, args):
    return _solved(lambda y, t: f(y, t, args), rtol, atol, mxstep, hmax, y, ts)


def _forward(f, rtol, atol, mxstep, hmax, y, ts, args):
    ys = _odeint(f, rtol, atol, mxstep, hmax, y, ts, args)
    return ys, (ys, ts, args)


def _backward(f, rtol, atol, mxstep, hmax, kept, cotangents):
    """The adjoint equation from time to time, backwards."""
    ys, ts, args = kept
    zeros = jax.tree.map(jnp.zeros_like, args)
    example = (ys[0], ys[0], jnp.zeros_like(ts[0]), zeros)
    back = ravel_pytree(example)[1]

    def adjoint(state, t, args):
        y, y_bar, _, _ = back(state)
        slope, pull = jax.vjp(f, y, -t, args)
        return ravel_pytree((-slope, *pull(y_bar)))[0]

    def turn(carry, at):
        y_bar, t0_bar, args_bar = carry
        t_bar = jnp.dot(f(ys[at], ts[at], args), cotangents[at])
        start = ravel_pytree((ys[at], y_bar, t0_bar - t_bar, args_bar))[0]
        end = _odeint(adjoint, rtol, atol, mxstep, hmax, start, jnp.stack([-ts[at], -ts[at - 1]]), args)[1]
        _, y_bar, t0_bar, args_bar = back(end)
        return (y_bar + cotangents[at - 1], t0_bar, args_bar), t_bar
    (y_bar, t0_bar, args_bar), t_bars = lax.scan(turn, (cotangents[-1], jnp.zeros_like(ts[0]), zeros), jnp.arange(ts.shape[0] - 1, 0, -1))
    return y_bar, jnp.concatenate([t0_bar[None], t_bars[::-1]]), args_bar


_odeint.defvjp(_forward, _backward)


def odeint(func, y0, t, *args, rtol=1.4e-8, atol=1.4e-8, mxstep=jnp.inf, hmax=jnp.inf):
    """The solution of dy/dt = func(y, t, *args) at the times `t`, from y0 at the first. What `func` takes from outside has no derivative: give it as one of `args`."""
    t = jnp.asarray(t)
    if not jnp.issubdtype(t.dtype, jnp.floating):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    y, back = ravel_pytree(y0)
    args = jax.tree.map(lambda arg: jnp.asarray(arg, jnp.result_type(arg, y.dtype)), args)
    flat = lambda y, t, args: ravel_pytree(func(back(y), t, *args))[0]
    return jax.vmap(back)(_odeint(flat, rtol, atol, mxstep, hmax, y, t, args))
