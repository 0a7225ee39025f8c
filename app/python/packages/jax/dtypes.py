# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.dtypes."""
import numpy as np

from ._src import dtypes as _dtypes
from ._src.dtypes import float0


class extended(np.generic):
    """Element types that NumPy lacks, such as keys."""


class prng_key(extended):
    pass


bfloat16 = _dtypes.shown("bf16")


def canonicalize_dtype(dtype):
    return _dtypes.shown(_dtypes.named(dtype))


def issubdtype(a, b):
    from .numpy import issubdtype as of
    return of(a, b)


def result_type(*values):
    from .numpy import result_type as of
    return of(*values)


def scalar_type_of(x):
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[np.asarray(x).dtype.kind]
