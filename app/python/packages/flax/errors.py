# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.errors."""


class FlaxError(Exception):
    def __init__(self, message):
        name = type(self).__name__
        super().__init__(f"{message} (https://flax.readthedocs.io/en/latest/api_reference/flax.errors.html#flax.errors.{name})")


class TraceContextError(FlaxError):
    pass


def _kinds(names):
    for name in names.split():
        globals()[name] = type(name, (FlaxError,), {"__module__": __name__})


_kinds("ApplyScopeInvalidVariablesStructureError ApplyScopeInvalidVariablesTypeError AssignSubModuleError CallCompactUnboundModuleError CallUnbindOnUnboundModuleError "
       "InvalidCheckpointError InvalidFilterError InvalidInstanceModuleError InvalidRngError JaxTransformError ModifyScopeVariableError MultipleMethodsCompactError NameInUseError "
       "PartitioningUnspecifiedError ScopeVariableNotFoundError ScopeCollectionNotFound ScopeParamNotFoundError ScopeParamShapeError SetAttributeFrozenModuleError "
       "SetAttributeInModuleSetupError TransformTargetError ReservedModuleAttributeError ApplyModuleInvalidMethodError")
