# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.optimize. Source of the steps and constants: jax-ml/jax, jax/_src/scipy/optimize; Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6."""
import collections

import jax
from jax import lax
from jax import numpy as jnp
from jax._src.interpolation import least_of_cubic, least_of_parabola

OptimizeResults = collections.namedtuple("OptimizeResults", "x success status fun jac hess_inv nfev njev nit")
_Point = collections.namedtuple("_Point", "step value slope gradient")
_Zoom = collections.namedtuple("_Zoom", "done failed count low high third star")
_Line = collections.namedtuple("_Line", "done failed count before evaluations star")
_State = collections.namedtuple("_State", "converged failed count evaluations x value gradient inverse before line_status")


def _choose(holds, new, old):
    return jax.tree.map(lambda a, b: jnp.where(holds, a, b), new, old)


def _zoomed(look, is_too_high, is_flat, low, high, start, runs):
    """A step between two others where the value is low enough and the slope small enough. `runs`: whether it is asked for."""
    def turn(now):
        low, high = now.low, now.high
        length = high.step - low.step
        failed = now.failed | (length <= 1e-5)
        left, right = jnp.minimum(high.step, low.step), jnp.maximum(high.step, low.step)
        is_inside = lambda place, share: (place > left + share * length) & (place < right - share * length)
        cubic = least_of_cubic(low.step, low.value, low.slope, high.step, high.value, *now.third)
        parabola = least_of_parabola(low.step, low.value, low.slope, high.step, high.value)
        middle = jnp.where((now.count > 0) & is_inside(cubic, 0.2), cubic, jnp.where(is_inside(parabola, 0.1), parabola, (low.step + high.step) / 2.0))
        point = look(middle)
        is_high = is_too_high(point) | (point.value >= low.value)
        is_star = is_flat(point) & ~is_high
        is_low = ~is_high & ~is_star
        turns = (point.slope * length >= 0.0) & is_low
        third = _choose(is_high | turns, (high.step, high.value), _choose(is_low, (low.step, low.value), now.third))
        return _Zoom(is_star | now.done, failed | (now.count + 1 >= 30), now.count + 1, _choose(is_low, point, low),
                     _choose(is_high, point, _choose(turns, low, high)), third, _choose(is_star, point, now.star))
    first = _Zoom(jnp.asarray(False), jnp.asarray(False), 0, low, high, ((low.step + high.step) / 2.0, (low.value + high.value) / 2.0),
                  low._replace(step=jnp.ones_like(low.step), gradient=start.gradient))
    return lax.while_loop(lambda now: runs & ~now.done & ~now.failed, turn, first)


def _searched(function, x, way, value, before, gradient, most):
    """A step along a way: the line search's state."""
    def look(step):
        there, slope = jax.value_and_grad(function)(x + step * way)
        return _Point(jnp.asarray(step, x.dtype), there, jnp.dot(slope, way), slope)
    start = _Point(jnp.zeros([], x.dtype), value, jnp.dot(gradient, way), gradient)
    guess = 1.01 * 2 * (value - before) / start.slope
    guess = jnp.where(guess > 1, 1.0, guess)
    is_too_high = lambda point: point.value > value + 1e-4 * point.step * start.slope
    is_flat = lambda point: jnp.abs(point.slope) <= -0.9 * start.slope

    def turn(now):
        point = look(jnp.where(now.count == 1, guess, now.before.step * 2.0))
        is_behind = is_too_high(point) | (point.value >= now.before.value) & (now.count > 1)
        is_star = is_flat(point) & ~is_behind
        is_beyond = (point.slope >= 0.0) & ~is_behind & ~is_star
        one = _zoomed(look, is_too_high, is_flat, now.before, point, start, is_behind)
        other = _zoomed(look, is_too_high, is_flat, point, now.before, start, is_beyond)
        star = _choose(is_behind, one.star, _choose(is_star, point, _choose(is_beyond, other.star, now.star)))
        return _Line(now.done | is_behind | is_star | is_beyond, now.failed | is_behind & one.failed | is_beyond & other.failed, now.count + 1, point,
                     now.evaluations + 1 + one.count + other.count, star)
    first = _Line(jnp.asarray(False), jnp.asarray(False), 1, start, 0, start)
    return lax.while_loop(lambda now: ~now.done & (now.count <= most) & ~now.failed, turn, first)


def _bfgs(function, x, maxiter=None, norm=jnp.inf, gtol=1e-5, line_search_maxiter=10):
    maxiter = x.size * 200 if maxiter is None else maxiter
    value, gradient = jax.value_and_grad(function)(x)
    is_small = lambda gradient: jnp.linalg.norm(gradient, ord=norm) < gtol
    one = jnp.eye(x.shape[0], dtype=x.dtype)

    def turn(now):
        way = -jnp.dot(now.inverse, now.gradient)
        line = _searched(function, now.x, way, now.value, now.before, now.gradient, line_search_maxiter)
        status = jnp.where(line.failed, 1, jnp.where(line.count > line_search_maxiter, 3, 0))
        length = jnp.where(jnp.abs(line.star.step) < 1e-8, jnp.sign(line.star.step) * 1e-8, line.star.step)
        step, change = length * way, line.star.gradient - now.gradient
        factor = 1.0 / jnp.dot(change, step)
        w = one - factor * jnp.outer(step, change)
        inverse = w @ now.inverse @ w.T + factor * jnp.outer(step, step)
        return _State(is_small(line.star.gradient), line.failed | ~line.done, now.count + 1, now.evaluations + line.evaluations, now.x + step, line.star.value,
                      line.star.gradient, jnp.where(jnp.isfinite(factor), inverse, now.inverse), now.value, status)
    first = _State(is_small(gradient), jnp.asarray(False), 0, 1, x, value, gradient, one, value + jnp.linalg.norm(gradient) / 2, 0)
    last = lax.while_loop(lambda now: ~now.converged & ~now.failed & (now.count < maxiter), turn, first)
    status = jnp.where(last.converged, 0, jnp.where(last.count == maxiter, 1, jnp.where(last.failed, 2 + last.line_status, -1)))
    return OptimizeResults(last.x, last.converged & ~last.failed, status, last.value, last.gradient, last.inverse, last.evaluations, last.evaluations, last.count)


def minimize(fun, x0, args=(), *, method, tol=None, options=None):
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    if method.lower() != "bfgs":
        if method.lower() == "l-bfgs-experimental-do-not-rely-on-this":
            raise NotImplementedError(f"jax.scipy.optimize.minimize with method={method!r}: use BFGS, or optax.lbfgs")
        raise ValueError(f"Method {method} not recognized")
    return _bfgs(lambda x: fun(x, *args), jnp.asarray(x0), **(options or {}))
