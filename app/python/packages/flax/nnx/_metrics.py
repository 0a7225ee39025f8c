# SPDX-License-Identifier: GPL-3.0-or-later
"""Means that are added up batch by batch. Source: google/flax, flax/nnx/training/metrics.py."""
import collections

import jax.numpy as jnp

from ._graph import Variable
from ._pytree import Pytree


class MetricState(Variable):
    pass


class Metric(Pytree):
    def reset(self):
        raise NotImplementedError

    def update(self, **_):
        raise NotImplementedError

    def compute(self):
        raise NotImplementedError


def _named(name, values):
    if name not in values:
        raise TypeError(f"Expected keyword argument '{name}'")
    return values[name]


class Average(Metric):
    def __init__(self, argname="values"):
        self.argname = argname
        self.total, self.count = MetricState(jnp.array(0, jnp.float32)), MetricState(jnp.array(0, jnp.int32))

    def reset(self):
        self.total.value, self.count.value = jnp.array(0, jnp.float32), jnp.array(0, jnp.int32)

    def update(self, mask=None, **values):
        given = _named(self.argname, values)
        if mask is None:
            given = jnp.asarray(given)
            total, count = given.sum(), given.size
        elif isinstance(given, (int, float)):
            raise ValueError(f"If mask is provided, {self.argname} should be a jax array")
        else:
            total, count = (given * mask.astype(given.dtype)).sum(), mask.sum().astype(jnp.int32)
        self.total.value, self.count.value = self.total.value + total, self.count.value + count

    def compute(self):
        return self.total.value / self.count.value


Statistics = collections.namedtuple("Statistics", "mean standard_error_of_mean standard_deviation")


class Welford(Metric):
    """Mean and spread, of which each batch adds its own mean and squares."""

    def __init__(self, argname="values"):
        self.argname = argname
        self.count, self.mean, self.m2 = MetricState(jnp.array(0, jnp.int32)), MetricState(jnp.array(0, jnp.float32)), MetricState(jnp.array(0, jnp.float32))

    def reset(self):
        self.count.value, self.mean.value, self.m2.value = jnp.array(0, jnp.int32), jnp.array(0, jnp.float32), jnp.array(0, jnp.float32)

    def update(self, **values):
        given = jnp.asarray(_named(self.argname, values))
        before, size = self.count.value, given.size
        step = given.mean() - self.mean.value
        self.count.value = before + size
        self.mean.value = self.mean.value + step * size / self.count.value
        self.m2.value = self.m2.value + given.var() * size + step * step * size * before / self.count.value

    def compute(self):
        spread = (self.m2.value / self.count.value) ** 0.5
        return Statistics(self.mean.value, spread / self.count.value ** 0.5, spread)


class Accuracy(Average):
    def __init__(self, threshold=None, *args, **kwargs):
        if threshold is not None and not isinstance(threshold, float):
            raise TypeError(f"Expected threshold to be a float, got {type(threshold)}")
        self.threshold = threshold
        super().__init__(*args, **kwargs)

    def update(self, *, logits, labels, mask=None, **_):
        is_binary = self.threshold is not None
        if logits.ndim != labels.ndim + (not is_binary):
            kind, more = ("binary", "") if is_binary else ("multi-class", "+1")
            raise ValueError(f"For {kind} classification, expected logits.ndim==labels.ndim{more}, got {logits.ndim} and {labels.ndim}")
        if labels.dtype not in (jnp.int32, "int64"):
            raise ValueError(f"Expected labels.dtype==jnp.int32, got {labels.dtype}")
        is_right = (logits >= self.threshold) == (labels > 0) if is_binary else jnp.argmax(logits, -1) == labels
        super().update(mask, **{self.argname: is_right})


class MultiMetric(Metric):
    def __init__(self, **metrics):
        self._names = tuple(metrics)
        for name, metric in metrics.items():
            setattr(self, name, metric)

    def reset(self):
        for name in self._names:
            getattr(self, name).reset()

    def update(self, **values):
        for name in self._names:
            getattr(self, name).update(**values)

    def compute(self):
        return {name: getattr(self, name).compute() for name in self._names}
