# SPDX-License-Identifier: GPL-3.0-or-later
"""L-BFGS, and searches along a line. Source of the formulas and defaults: google-deepmind/optax, optax/_src/transform.py and linesearch.py."""
import collections
import inspect

import jax
import jax.numpy as jnp
from jax import lax, tree
from jax._src.interpolation import least_of_cubic, least_of_parabola

from ._combining import GradientTransformation, GradientTransformationExtraArgs
from .tree_utils import tree_add_scale, tree_get, tree_norm, tree_scale, tree_sub, tree_vdot, tree_zeros_like

ScaleByLBFGSState = collections.namedtuple("ScaleByLBFGSState", "count params updates diff_params_memory diff_updates_memory weights_memory")
BacktrackingLinesearchInfo = collections.namedtuple("BacktrackingLinesearchInfo", "num_linesearch_steps decrease_error")
ScaleByBacktrackingLinesearchState = collections.namedtuple("ScaleByBacktrackingLinesearchState", "learning_rate value grad info")
ZoomLinesearchInfo = collections.namedtuple("ZoomLinesearchInfo", "num_linesearch_steps decrease_error curvature_error")
ScaleByZoomLinesearchState = collections.namedtuple("ScaleByZoomLinesearchState", "learning_rate value grad info")


def scale_by_lbfgs(memory_size=10, scale_init_precond=True):
    """The updates times an estimate of the inverse Hessian, from the last steps and how the gradient changed along them."""
    if memory_size < 1:
        raise ValueError("memory_size must be >= 1")

    def init(params):
        memory = tree.map(lambda p: jnp.zeros((memory_size,) + p.shape, p.dtype), params)
        return ScaleByLBFGSState(jnp.zeros([], jnp.int32), tree_zeros_like(params), tree_zeros_like(params), memory, memory, jnp.zeros(memory_size))

    def update(updates, state, params):
        is_later = state.count > 0
        kept = lambda some: tree.map(lambda x: jnp.where(is_later, x, jnp.zeros_like(x)), some)
        step, change = kept(tree_sub(params, state.params)), kept(tree_sub(updates, state.updates))
        product = tree_vdot(change, step)
        weight = jnp.where(product == 0.0, 0.0, 1.0 / product)
        place = (state.count - 1) % memory_size
        steps, changes, weights = tree.map(lambda memory, new: memory.at[place].set(new), (state.diff_params_memory, state.diff_updates_memory, state.weights_memory),
                                           (step, change, weight))
        factor = 1.0
        if scale_init_precond:
            size = tree_norm(change, squared=True)
            factor = jnp.where(is_later, jnp.where(size > 0.0, product / size, 1.0), jnp.minimum(1.0, 1.0 / tree_norm(updates)))
        order = (state.count % memory_size + jnp.arange(memory_size)) % memory_size
        at = lambda memory, number: tree.map(lambda x: x[number], memory)

        def back(vector, number):
            alpha = weights[number] * tree_vdot(at(steps, number), vector)
            return tree_add_scale(vector, -alpha, at(changes, number)), alpha

        def forth(vector, pair):
            number, alpha = pair
            beta = weights[number] * tree_vdot(at(changes, number), vector)
            return tree_add_scale(vector, alpha - beta, at(steps, number)), None
        vector, alphas = lax.scan(back, updates, order, reverse=True)
        vector, _ = lax.scan(forth, tree_scale(factor, vector), (order, alphas))
        return vector, ScaleByLBFGSState(state.count + 1, params, updates, steps, changes, weights)
    return GradientTransformation(init, update)


def _of_function(name, value_fn, extra):
    """The further arguments of an update, all of which are the function's."""
    unknown = sorted(set(extra) - set(inspect.signature(value_fn).parameters))
    if unknown:
        raise TypeError(f"Unexpected keyword arguments passed to `{name}.update`. These arguments were not consumed by `value_fn`: {unknown}. Ensure that all extra "
                        "keyword arguments are accepted by `value_fn`.")
    return lambda params: value_fn(params, **extra)


def _choose(holds, new, old):
    return tree.map(lambda a, b: jnp.where(holds, a, b), new, old)


def _as_before(new, old):
    return tree.map(lambda a, b: jnp.asarray(a, jnp.asarray(b).dtype), new, old)


def _error(x):
    return jnp.where(jnp.isnan(x), jnp.inf, jnp.maximum(x, 0.0))


def scale_by_backtracking_linesearch(max_backtracking_steps, slope_rtol=1e-4, decrease_factor=0.8, increase_factor=1.5, max_learning_rate=1.0, atol=0.0, rtol=0.0,
                                     store_grad=False, verbose=False):
    """Shorter steps until the value has decreased as its slope promises; update(.., value=, grad=, value_fn=)."""
    def init(params):
        return ScaleByBacktrackingLinesearchState(jnp.array(1.0), jnp.array(jnp.inf), tree_zeros_like(params) if store_grad else None,
                                                  BacktrackingLinesearchInfo(jnp.asarray(0), jnp.array(jnp.inf)))

    def update(updates, state, params, *, value, grad, value_fn, **extra):
        function, slope = _of_function("scale_by_backtracking_linesearch", value_fn, extra), tree_vdot(updates, grad)

        def goes_on(search):
            _, _, error, number = search
            return (error > atol) & (number <= max_backtracking_steps)

        def shorter(search):
            rate, _, _, number = search
            rate = jnp.where(number > 0, decrease_factor * rate, rate)
            there = function(tree_add_scale(params, rate, updates))
            return _as_before((rate, there, _error(there - (1.0 + rtol) * value - rate * slope_rtol * slope), number + 1), search)
        start = jnp.minimum(increase_factor * state.learning_rate, max_learning_rate), jnp.asarray(value), jnp.array(jnp.inf), jnp.asarray(0)
        rate, there, error, number = lax.while_loop(goes_on, shorter, start)
        rate = jnp.where(jnp.isinf(error), 0.0, rate)
        gradient = jax.grad(function)(tree_add_scale(params, rate, updates)) if store_grad else None
        return tree_scale(rate, updates), ScaleByBacktrackingLinesearchState(rate, there, gradient, BacktrackingLinesearchInfo(number, error))
    return GradientTransformationExtraArgs(init, update)


_Search = collections.namedtuple("_Search", "count here decrease_error curvature_error found done failed low high third safe")
_Point = collections.namedtuple("_Point", "stepsize value grad slope")


def scale_by_zoom_linesearch(max_linesearch_steps, max_learning_rate=None, tol=0.0, increase_factor=2.0, slope_rtol=1e-4, curv_rtol=0.9, approx_dec_rtol=1e-6,
                             stepsize_precision=1e-5, initial_guess_strategy="keep", verbose=False):
    """Steps of which both the decrease and the slope at their end are as wanted: an interval with one is searched, then made smaller. Nocedal and Wright,
    Numerical Optimization, algorithms 3.5 and 3.6."""
    if initial_guess_strategy not in ("one", "keep"):
        raise ValueError(f"Unknown initial guess strategy: {initial_guess_strategy}")

    def init(params):
        return ScaleByZoomLinesearchState(jnp.asarray(1.0), jnp.asarray(jnp.inf), tree_zeros_like(params),
                                          ZoomLinesearchInfo(jnp.asarray(0), jnp.asarray(jnp.inf), jnp.asarray(jnp.inf)))

    def update(updates, state, params, *, value, grad, value_fn, **extra):
        function = jax.value_and_grad(_of_function("scale_by_zoom_linesearch", value_fn, extra))
        start = _Point(jnp.asarray(0.0), jnp.asarray(value), grad, tree_vdot(updates, grad))

        def looked_at(stepsize):
            """The point, and how far it is from the decrease and the slope that are wanted."""
            there, gradient = function(tree_add_scale(params, stepsize, updates))
            point = _Point(stepsize, there, gradient, tree_vdot(gradient, updates))
            decrease = there - start.value - slope_rtol * stepsize * start.slope
            if approx_dec_rtol is not None:
                almost = jnp.maximum(point.slope - (2 * slope_rtol - 1.0) * start.slope, there - start.value - approx_dec_rtol * jnp.abs(start.value))
                decrease = jnp.minimum(almost, decrease)
            return point, _error(decrease), _error(jnp.abs(point.slope) - curv_rtol * jnp.abs(start.slope))

        def search(now):
            guess = jnp.asarray(1.0) if initial_guess_strategy == "one" else state.learning_rate
            stepsize = jnp.where(now.count == 0, guess, increase_factor * now.here.stepsize)
            is_last = False if max_learning_rate is None else stepsize >= max_learning_rate
            stepsize = stepsize if max_learning_rate is None else jnp.minimum(stepsize, max_learning_rate)
            point, decrease, curvature = looked_at(stepsize)
            is_good = jnp.maximum(decrease, curvature) <= tol
            is_high = (decrease > 0.0) | ((point.value >= now.here.value) & (now.count > 0))
            is_low = (point.slope >= 0.0) & ~is_high
            low, high = _choose(is_low, (point, now.here), (now.here, point))
            found = is_high | is_low | is_good
            done = is_good | (is_last & ~found)
            return _Search(now.count + 1, point, decrease, curvature, found, done, (now.count + 1 >= max_linesearch_steps) & ~done, low, high, low,
                           _choose(decrease <= tol, point, now.safe))

        def zoom(now):
            low, high = now.low, now.high
            length = jnp.abs(high.stepsize - low.stepsize)
            left, right = jnp.minimum(high.stepsize, low.stepsize), jnp.maximum(high.stepsize, low.stepsize)
            cubic = least_of_cubic(low.stepsize, low.value, low.slope, high.stepsize, high.value, now.third.stepsize, now.third.value)
            parabola = least_of_parabola(low.stepsize, low.value, low.slope, high.stepsize, high.value)
            is_inside = lambda place, share: (place > left + share * length) & (place < right - share * length)
            middle = jnp.where(is_inside(cubic, 0.2), cubic, jnp.where(is_inside(parabola, 0.1), parabola, (low.stepsize + high.stepsize) / 2.0))
            point, decrease, curvature = looked_at(middle)
            done = jnp.maximum(decrease, curvature) <= tol
            safe = _choose((decrease <= tol) & (point.value < now.safe.value), point, now.safe)
            is_high = (decrease > 0.0) | (point.value >= low.value)
            turns = (point.slope * (high.stepsize - low.stepsize) >= 0.0) & ~is_high
            failed = ((now.count + 1 >= max_linesearch_steps) | ((length <= stepsize_precision) & (safe.stepsize > 0.0))) & ~done
            return _Search(now.count + 1, point, decrease, curvature, now.found, done, failed, _choose(is_high, low, point),
                           _choose(is_high, point, _choose(turns, low, high)), _choose(is_high | turns, high, low), safe)

        def turn(now):
            after = lax.cond(now.found, zoom, search, now)
            falls_back = after.failed & ((after.safe.stepsize > 0.0) | jnp.isinf(after.decrease_error))
            return _as_before(after._replace(here=_choose(falls_back, after.safe, after.here)), now)
        no = jnp.asarray(False)
        first = _Search(jnp.asarray(0), start, jnp.asarray(jnp.inf), jnp.asarray(jnp.inf), no, no, no, start, start, start, start)
        last = lax.while_loop(lambda now: ~(now.done | now.failed), turn, first)
        return tree_scale(last.here.stepsize, updates), ScaleByZoomLinesearchState(
            last.here.stepsize, last.here.value, last.here.grad, ZoomLinesearchInfo(last.count, last.decrease_error, last.curvature_error))
    return GradientTransformationExtraArgs(init, update)


def value_and_grad_from_state(value_fn):
    """jax.value_and_grad that takes what a search along a line left in the state, where that is a number."""
    def both(params, *args, state, **kwargs):
        value, grad = tree_get(state, "value"), tree_get(state, "grad")
        if value is None or grad is None:
            raise ValueError("Value or gradient not found in the state. Make sure that these values are stored in the state by the optimizer.")
        return lax.cond(jnp.isfinite(value), lambda: (value, grad), lambda: jax.value_and_grad(value_fn)(params, *args, **kwargs))
    return both
