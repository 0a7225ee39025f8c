# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.scipy.fft: cosine transforms, by Fourier transforms of as many points. Source: J. Makhoul, "A Fast Cosine Transform in One and Two Dimensions",
IEEE Trans. ASSP 28, 1980."""
import math as _math

import numpy as _np

from .._src import ops as _ops
from .._src.arrays import asarray as _asarray
from ..numpy.fft import _fitted
from ..numpy.fft import fft, fft2, fftn, ifft, ifft2, ifftn
from .special import _inexact


def _turns(count, sign, like):
    return _asarray(_np.exp(sign * 0.5j * _math.pi * _np.arange(count) / count).astype(_np.complex128 if like.engine_dtype == "f64" else _np.complex64))


def _scale(count, like):
    """Of an orthonormal transform over a plain one."""
    scale = _np.full(count, 1 / _math.sqrt(2 * count))
    scale[:1] = 1 / _math.sqrt(4 * count)
    return _asarray(scale.astype(_np.float32), like.engine_dtype)


def _dct(x):
    """The even places, then the odd ones backwards."""
    order = _ops.concatenate([x[..., ::2], _ops.flip(x[..., 1::2], -1)], -1)
    return _ops.multiply(_ops.real(_ops.multiply(fft(order), _turns(x.shape[-1], -1, x))), 2.0)


def _idct(x):
    count = x.shape[-1]
    mirrored = _ops.concatenate([_ops.zeros_like(x[..., :1]), _ops.flip(x[..., 1:], -1)], -1)
    order = _ops.real(ifft(_ops.multiply(_ops.complex_(x, _ops.negative(mirrored)), _turns(count, 1, x)))) / 2
    halves = order[..., :(count + 1) // 2], _ops.flip(order[..., (count + 1) // 2:], -1)
    places = _np.argsort(_np.concatenate([_np.arange(0, count, 2), _np.arange(1, count, 2)]))
    return _ops.take(_ops.concatenate(halves, -1), _asarray(places.astype(_np.int32)), -1)


def _along(x, type, n, axis, norm, is_inverse):
    name = "idct" if is_inverse else "dct"
    if type != 2:
        raise NotImplementedError("Only DCT type 2 is implemented.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"jax.scipy.fft.{name}: norm={norm!r} is not implemented")
    x = _ops.moveaxis(_inexact(x), axis, -1)
    x = x if n is None else _fitted(x, x.ndim - 1, n)
    scale = _scale(x.shape[-1], x) if norm == "ortho" else None
    if is_inverse:
        made = _idct(x if scale is None else x / scale)
    else:
        made = _dct(x) if scale is None else _dct(x) * scale
    return _ops.moveaxis(made, -1, axis)


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
