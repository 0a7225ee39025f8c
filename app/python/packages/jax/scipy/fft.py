# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.fft: cosine transforms as products with their matrices. Source: N. Ahmed et al., "Discrete Cosine Transform", IEEE Trans. Computers C-23, 1974."""
import math as _math

import numpy as _np

from .._src import ops as _ops
from .._src.arrays import asarray as _asarray
from ..numpy.fft import _fitted
from ..numpy.fft import fft, fft2, fftn, ifft, ifft2, ifftn
from .special import _inexact


def _matrix(count, norm, is_inverse):
    at = _np.arange(count)
    waves = 2 * _np.cos(_math.pi * at[:, None] * (2 * at + 1) / (2 * count))
    scale = _np.full(count, _math.sqrt(1 / (2 * count)) if norm == "ortho" else 1.0)
    scale[0] *= _math.sqrt(0.5) if norm == "ortho" else 1.0
    waves = waves * scale[:, None]
    return _np.linalg.inv(waves) if is_inverse else waves


def _along(x, type, n, axis, norm, is_inverse):
    name = "idct" if is_inverse else "dct"
    if type != 2:
        raise NotImplementedError("Only DCT type 2 is implemented.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"jax.scipy.fft.{name}: norm={norm!r} is not implemented")
    x = _ops.moveaxis(_inexact(x), axis, -1)
    x = x if n is None else _fitted(x, n)
    matrix = _asarray(_matrix(x.shape[-1], norm, is_inverse).T.astype(_np.float32), x.engine_dtype)
    return _ops.moveaxis(_ops.dot(x, matrix, precision="highest"), -1, axis)


def dct(x, type=2, n=None, axis=-1, norm=None):
    return _along(x, type, n, axis, norm, False)


def idct(x, type=2, n=None, axis=-1, norm=None):
    return _along(x, type, n, axis, norm, True)


def _over(function):
    def transformed(x, type=2, s=None, axes=None, norm=None):
        x = _asarray(x)
        axes = (range(x.ndim) if s is None else range(-len(s), 0)) if axes is None else axes
        for number, axis in enumerate(axes):
            x = function(x, type, None if s is None else s[number], axis, norm)
        return x
    return transformed


dctn, idctn = _over(dct), _over(idct)
