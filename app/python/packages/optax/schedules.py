# SPDX-License-Identifier: GPL-3.0-or-later
"""Learning rates by the number of the step. Source of the formulas and defaults: google-deepmind/optax, optax/schedules."""
import math

import jax.numpy as jnp


def constant_schedule(value):
    return lambda count: value


def polynomial_schedule(init_value, end_value, power, transition_steps, transition_begin=0):
    if transition_steps <= 0:
        return lambda count: init_value

    def schedule(count):
        done = jnp.clip(count - transition_begin, 0, transition_steps)
        left = 1 - done / transition_steps
        return (init_value - end_value) * (left ** power) + end_value
    return schedule


def linear_schedule(init_value, end_value, transition_steps, transition_begin=0):
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def piecewise_constant_schedule(init_value, boundaries_and_scales=None):
    def schedule(count):
        value = init_value
        for boundary, scale in sorted((boundaries_and_scales or {}).items()):
            value = value * jnp.where(count >= boundary, scale, 1.0)
        return value
    return schedule


def piecewise_interpolate_schedule(interpolate_type, init_value, boundaries_and_scales=None):
    boundaries, scales = zip(*sorted((boundaries_and_scales or {}).items())) if boundaries_and_scales else ((), ())
    bounds, values = [0, *boundaries], [init_value]
    for scale in scales:
        values.append(values[-1] * scale)

    def schedule(count):
        made = values[-1]
        for low, high, first, last in reversed(list(zip(bounds, bounds[1:], values, values[1:]))):
            share = jnp.clip((count - low) / (high - low), 0, 1)
            part = first + (last - first) * share if interpolate_type == "linear" else last + (first - last) / 2 * (jnp.cos(math.pi * share) + 1)
            made = jnp.where(count < high, part, made)
        return made
    return schedule


def exponential_decay(init_value, transition_steps, decay_rate, transition_begin=0, staircase=False, end_value=None):
    def schedule(count):
        passed = count - transition_begin
        share = passed / transition_steps
        share = jnp.floor(share) if staircase else share
        value = jnp.where(passed <= 0, init_value, init_value * jnp.power(decay_rate, share))
        if end_value is None:
            return value
        return jnp.maximum(value, end_value) if decay_rate < 1.0 else jnp.minimum(value, end_value)
    return schedule


def cosine_decay_schedule(init_value, decay_steps, alpha=0.0, exponent=1.0):
    if not decay_steps > 0:
        raise ValueError(f"The cosine_decay_schedule requires positive decay_steps, got decay_steps={decay_steps}.")

    def schedule(count):
        cosine = 0.5 * (1 + jnp.cos(math.pi * jnp.minimum(count, decay_steps) / decay_steps))
        return init_value * ((1 - alpha) * cosine ** exponent + alpha)
    return schedule


def join_schedules(schedules, boundaries):
    def schedule(count):
        made = schedules[0](count)
        for boundary, later in zip(boundaries, schedules[1:]):
            made = jnp.where(count < boundary, made, later(count - boundary))
        return made
    return schedule


def warmup_constant_schedule(init_value, peak_value, warmup_steps):
    return linear_schedule(init_value, peak_value, warmup_steps)


def warmup_cosine_decay_schedule(init_value, peak_value, warmup_steps, decay_steps, end_value=0.0, exponent=1.0):
    alpha = 0.0 if peak_value == 0 else end_value / peak_value
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps),
                           cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)], [warmup_steps])


def warmup_exponential_decay_schedule(init_value, peak_value, warmup_steps, transition_steps, decay_rate, transition_begin=0, staircase=False, end_value=None):
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps),
                           exponential_decay(peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value)], [warmup_steps])


def sgdr_schedule(cosine_kwargs):
    schedules, boundaries, step = [], [], 0
    for options in cosine_kwargs:
        schedules.append(warmup_cosine_decay_schedule(**options))
        boundaries.append(step + options["decay_steps"])
        step += options["decay_steps"]
    return join_schedules(schedules, boundaries[:-1])


def cosine_onecycle_schedule(transition_steps, peak_value, pct_start=0.3, div_factor=25.0, final_div_factor=1e4):
    return piecewise_interpolate_schedule("cosine", peak_value / div_factor,
                                          {int(pct_start * transition_steps): div_factor, int(transition_steps): 1.0 / (div_factor * final_div_factor)})


def linear_onecycle_schedule(transition_steps, peak_value, pct_start=0.3, pct_final=0.85, div_factor=25.0, final_div_factor=1e4):
    return piecewise_interpolate_schedule("linear", peak_value / div_factor, {
        int(pct_start * transition_steps): div_factor, int(pct_final * transition_steps): 1.0 / div_factor, transition_steps: 1.0 / final_div_factor})
