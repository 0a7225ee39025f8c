# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.signal."""
from .._src import ops as _ops
from .._src.arrays import asarray as _asarray


def convolve(in1, in2, mode="full", method="auto", precision=None):
    """Of arrays of any rank. `same` gives the size of the first, as SciPy has it."""
    from ..lax import conv_general_dilated
    (x, w), _ = _ops.together(in1, in2)
    if x.ndim != w.ndim:
        raise ValueError("in1 and in2 must have the same number of dimensions")
    if mode == "valid" and any(a < b for a, b in zip(x.shape, w.shape)):
        x, w = w, x
    pads = {"valid": [(0, 0)] * w.ndim, "full": [(size - 1, size - 1) for size in w.shape], "same": [(size // 2, size - 1 - size // 2) for size in w.shape]}[mode]
    if mode == "same":
        pads = [(size - 1 - (size - 1) // 2, (size - 1) // 2) for size in w.shape]
    made = conv_general_dilated(x[None, None], _ops.flip(w)[None, None], (1,) * w.ndim, pads, precision=precision)
    return made[0, 0]


def correlate(in1, in2, mode="full", method="auto", precision=None):
    return convolve(in1, _ops.flip(_ops.conj(_asarray(in2))), mode, precision=precision)


def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0, precision=None):
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError("convolve2d() only supports boundary='fill', fillvalue=0")
    if _asarray(in1).ndim != 2 or _asarray(in2).ndim != 2:
        raise ValueError("convolve2d() only supports 2-dimensional inputs.")
    return convolve(in1, in2, mode, precision=precision)


def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0, precision=None):
    return convolve2d(in1, _ops.flip(_ops.conj(_asarray(in2))), mode, boundary, fillvalue, precision)


def detrend(data, axis=-1, type="linear", bp=0, overwrite_data=None):
    x = _ops.moveaxis(_asarray(data), axis, -1)
    x = _ops.subtract(x, _ops.mean(x, -1, keepdims=True))
    if type == "linear":
        at = _ops.subtract(_ops.arange(x.shape[-1], engine=x.engine_dtype), (x.shape[-1] - 1) / 2)
        x = _ops.subtract(x, _ops.multiply(_ops.divide(_ops.sum_(_ops.multiply(x, at), -1, keepdims=True), _ops.sum_(_ops.square(at))), at))
    return _ops.moveaxis(x, -1, axis)
