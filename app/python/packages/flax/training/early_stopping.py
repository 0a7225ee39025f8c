# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.training.early_stopping. Source of the rules: google/flax, flax/training/early_stopping.py."""
import math

from .. import struct


class EarlyStopping(struct.PyTreeNode):
    """Says when a metric has not become smaller for a while."""
    min_delta: float = 0
    patience: int = 0
    best_metric: float = float("inf")
    patience_count: int = 0
    should_stop: bool = False
    has_improved: bool = False

    def reset(self):
        return self.replace(best_metric=float("inf"), patience_count=0, should_stop=False, has_improved=False)

    def update(self, metric):
        if math.isinf(self.best_metric) or self.best_metric - metric > self.min_delta:
            return self.replace(best_metric=metric, patience_count=0, has_improved=True)
        return self.replace(patience_count=self.patience_count + 1, should_stop=self.should_stop or self.patience_count >= self.patience, has_improved=False)
