# SPDX-License-Identifier: GPL-3.0-or-later
"""orbax.checkpoint.utils."""
import jax
import numpy as np


def to_shape_dtype_struct(x, dtype=None, scalar_dtype=None):
    """The type and the layout of an array; numbers stay as they are."""
    if isinstance(x, jax.ShapeDtypeStruct):
        return x if dtype is None else jax.ShapeDtypeStruct(x.shape, dtype, sharding=x.sharding)
    if isinstance(x, jax.Array):
        return jax.ShapeDtypeStruct(x.shape, dtype or x.dtype, sharding=x.sharding)
    if isinstance(x, np.ndarray):
        return jax.ShapeDtypeStruct(x.shape, dtype or x.dtype)
    if isinstance(x, (int, float)):
        return x if scalar_dtype is None else scalar_dtype(x)
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return jax.ShapeDtypeStruct(x.shape, dtype or x.dtype)
    raise ValueError(f"Unexpected type: {type(x)}.")
