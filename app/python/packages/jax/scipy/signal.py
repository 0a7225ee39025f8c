# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.signal."""
import numpy as _np

from .._src import ops as _ops
from .._src.arrays import asarray as _asarray
from .special import _inexact


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
    x, w = _asarray(in1), _ops.conj(_asarray(in2))
    if mode == "same":  # where an even size has its middle: SciPy turns the whole over
        return _ops.flip(convolve2d(_ops.flip(x), w, mode, boundary, fillvalue, precision))
    return convolve2d(x, _ops.flip(w), mode, boundary, fillvalue, precision)


def detrend(data, axis=-1, type="linear", bp=0, overwrite_data=None):
    """Less the mean or the line of least squares, of each part between the breakpoints `bp`."""
    if type not in ("linear", "constant"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    x = _ops.moveaxis(_inexact(data), axis, -1)
    size = x.shape[-1]
    if type == "constant":
        return _ops.moveaxis(_ops.subtract(x, _ops.mean(x, -1, keepdims=True)), -1, axis)
    breaks = sorted({0, size, *_np.atleast_1d(_np.asarray(bp)).tolist()})
    if breaks[0] < 0 or breaks[-1] > size:
        raise ValueError("Breakpoints must be non-negative and less than length of data along given axis.")
    parts = []
    for start, stop in zip(breaks, breaks[1:]):
        part = x[..., start:stop]
        part = _ops.subtract(part, _ops.mean(part, -1, keepdims=True))
        at = _ops.subtract(_ops.arange(stop - start, engine=x.engine_dtype), (stop - start - 1) / 2)
        total = max(float((_np.arange(stop - start) - (stop - start - 1) / 2) @ (_np.arange(stop - start) - (stop - start - 1) / 2)), 1e-30)
        parts.append(_ops.subtract(part, _ops.multiply(_ops.divide(_ops.sum_(_ops.multiply(part, at), -1, keepdims=True), total), at)))
    return _ops.moveaxis(_ops.concatenate(parts, -1), -1, axis)
