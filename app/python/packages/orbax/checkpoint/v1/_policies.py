# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps of a training are saved, and which of those are kept. Source of the names and the rules: google/orbax,
checkpoint/orbax/checkpoint/_src/checkpoint_managers (save_decision_policy.py, preservation_policy.py)."""
import dataclasses
import types


@dataclasses.dataclass
class FixedIntervalPolicy:
    interval: int

    def should_save(self, step, previous_steps, *, context):
        return step.step % self.interval == 0


@dataclasses.dataclass
class SpecificStepsPolicy:
    steps: object

    def should_save(self, step, previous_steps, *, context):
        return step.step in self.steps


@dataclasses.dataclass
class InitialSavePolicy:
    def should_save(self, step, previous_steps, *, context):
        return not previous_steps


@dataclasses.dataclass
class AnySavePolicy:
    policies: object

    def should_save(self, step, previous_steps, *, context):
        return any(policy.should_save(step, previous_steps, context=context) for policy in self.policies)


@dataclasses.dataclass
class PreserveAll:
    def should_preserve(self, checkpoints, *, context):
        return [True] * len(checkpoints)


@dataclasses.dataclass
class LatestN:
    n: object = None

    def should_preserve(self, checkpoints, *, context):
        return [self.n is None or at >= len(checkpoints) - self.n for at in range(len(checkpoints))]


@dataclasses.dataclass
class EveryNSteps:
    interval_steps: int

    def should_preserve(self, checkpoints, *, context):
        if self.interval_steps == 0:
            raise ValueError("interval_steps must not be 0.")
        return [one.step % self.interval_steps == 0 for one in checkpoints]


@dataclasses.dataclass
class CustomSteps:
    steps: object

    def should_preserve(self, checkpoints, *, context):
        return [one.step in self.steps for one in checkpoints]


@dataclasses.dataclass
class AnyPreservationPolicy:
    policies: object

    def should_preserve(self, checkpoints, *, context):
        return [any(kept) for kept in zip(*(policy.should_preserve(checkpoints, context=context) for policy in self.policies))]


save_decision_policies = types.SimpleNamespace(FixedIntervalPolicy=FixedIntervalPolicy, SpecificStepsPolicy=SpecificStepsPolicy, InitialSavePolicy=InitialSavePolicy,
                                               AnySavePolicy=AnySavePolicy)
preservation_policies = types.SimpleNamespace(PreserveAll=PreserveAll, LatestN=LatestN, EveryNSteps=EveryNSteps, CustomSteps=CustomSteps,
                                              AnyPreservationPolicy=AnyPreservationPolicy)
