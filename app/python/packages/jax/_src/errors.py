# SPDX-License-Identifier: GPL-3.0-or-later
"""JAX's errors of traced values. Source of the texts: jax-ml/jax, jax/_src/errors.py and jax/_src/core.py."""


class TypePromotionError(ValueError):
    """Types that jax_numpy_dtype_promotion='strict' does not join."""


class ShardingTypeError(Exception):
    """Types from which it does not follow how the result of an operation is split."""


class IndivisibleError(ValueError):
    """A sharding whose pieces of a dimension would differ in size."""


class DuplicateSpecError(Exception):
    """A spec that has an axis twice."""


class _WithPage:
    """An error that says where JAX's pages explain it."""

    def __init__(self, message):
        name = type(self).__name__
        super().__init__(f"{message}\nSee https://docs.jax.dev/en/latest/errors.html#jax.errors.{name}")


class JAXTypeError(_WithPage, TypeError):
    pass


class JAXIndexError(_WithPage, IndexError):
    pass


class ConcretizationTypeError(JAXTypeError):
    def __init__(self, tracer, context=""):
        super().__init__(f"Abstract tracer value encountered where concrete value is expected: {tracer.in_words()}\n{context}{tracer.origin()}\n")


class TracerBoolConversionError(ConcretizationTypeError):
    def __init__(self, tracer):
        JAXTypeError.__init__(self, f"Attempted boolean conversion of {tracer.in_words()}.{tracer.origin()}")


class TracerArrayConversionError(JAXTypeError):
    def __init__(self, tracer):
        super().__init__(f"The numpy.ndarray conversion method __array__() was called on {tracer.in_words()}{tracer.origin()}")


class TracerIntegerConversionError(JAXTypeError):
    def __init__(self, tracer):
        super().__init__(f"The __index__() method was called on {tracer.in_words()}{tracer.origin()}")


class NonConcreteBooleanIndexError(JAXIndexError):
    def __init__(self, tracer):
        super().__init__(f"Array boolean indices must be concrete; got {tracer.dtype}[{','.join(map(str, tracer.shape))}]\n")


class UnexpectedTracerError(JAXTypeError):
    pass


class KeyReuseError(JAXTypeError):
    pass


def not_concrete(function, tracer):
    """What converting a tracer by a Python function raises."""
    if function is bool:
        return TracerBoolConversionError(tracer)
    name = function.__name__
    return ConcretizationTypeError(
        tracer, f"The problem arose with the `{name}` function. If trying to convert the data type of a value, try using `x.astype({name})` or "
        f"`jnp.array(x, {name})` instead.")
