# SPDX-License-Identifier: GPL-3.0-or-later
"""Means that are added up batch by batch. Source: google/flax, flax/nnx/training/metrics.py."""
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


class Average(Metric):
    def __init__(self, argname="values"):
        self.argname = argname
        self.total, self.count = MetricState(jnp.array(0.0)), MetricState(jnp.array(0, jnp.int32))

    def reset(self):
        self.total.value, self.count.value = jnp.array(0.0), jnp.array(0, jnp.int32)

    def update(self, **values):
        if self.argname not in values:
            raise TypeError(f"Expected keyword argument '{self.argname}'")
        given = jnp.asarray(values[self.argname])
        self.total.value = self.total.value + given.sum()
        self.count.value = self.count.value + given.size

    def compute(self):
        return self.total.value / self.count.value


class Accuracy(Average):
    def __init__(self, threshold=None):
        super().__init__("values")
        self.threshold = threshold

    def update(self, *, logits, labels, **_):
        chosen = jnp.argmax(logits, -1) if self.threshold is None else (logits > self.threshold)
        super().update(values=(chosen == labels).astype(jnp.float32))


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
