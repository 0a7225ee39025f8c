# SPDX-License-Identifier: GPL-3.0-or-later
"""Fourier transforms, as products with the matrix of roots of unity."""
import math

import numpy as np

from .._src import dtypes, ops
from .._src.arrays import asarray, astype


def _along(x, n, axis, sign, norm, *, is_inverse):
    x = asarray(x)
    x = x if dtypes.is_complex(x.engine_dtype) else ops.complex_(astype(x, dtypes.inexact(x.engine_dtype)), ops.zeros_like(x, dtypes.inexact(x.engine_dtype)))
    count = x.shape[axis] if n is None else n
    x = _fitted(ops.moveaxis(x, axis, -1), count)
    turns = np.outer(np.arange(count), np.arange(count)) % count
    matrix = np.exp(sign * 2j * math.pi * turns / count).astype(dtypes.shown(x.engine_dtype))
    scale = {None: 1 / count if is_inverse else 1.0, "backward": 1 / count if is_inverse else 1.0, "ortho": 1 / math.sqrt(count),
             "forward": 1.0 if is_inverse else 1 / count}[norm]
    return ops.moveaxis(ops.multiply(ops.dot(x, asarray(matrix), precision="highest"), scale), -1, axis)


def _fitted(x, count):
    if x.shape[-1] >= count:
        return x[..., :count]
    return ops.pad(x, [0] * x.ndim, [0] * (x.ndim - 1) + [count - x.shape[-1]])


def fft(a, n=None, axis=-1, norm=None):
    return _along(a, n, axis, -1, norm, is_inverse=False)


def ifft(a, n=None, axis=-1, norm=None):
    return _along(a, n, axis, 1, norm, is_inverse=True)


def rfft(a, n=None, axis=-1, norm=None):
    made = fft(a, n, axis, norm)
    return ops.take(made, ops.arange(made.shape[axis] // 2 + 1), axis)


def irfft(a, n=None, axis=-1, norm=None):
    x = ops.moveaxis(asarray(a), axis, -1)
    count = 2 * (x.shape[-1] - 1) if n is None else n
    x = _fitted(x, count // 2 + 1)
    rest = ops.conj(ops.flip(x[..., 1:(count + 1) // 2], -1))
    return ops.moveaxis(ops.real(ifft(ops.concatenate([x, rest], -1), count, -1, norm)), -1, axis)


def hfft(a, n=None, axis=-1, norm=None):
    """Of a spectrum that is its own mirror: the real array behind it."""
    other = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}
    return irfft(ops.conj(asarray(a)), n, axis, other[norm])


def ihfft(a, n=None, axis=-1, norm=None):
    other = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}
    return ops.conj(rfft(a, n, axis, other[norm]))


def _over(function):
    def transformed(a, s=None, axes=None, norm=None):
        x = asarray(a)
        axes = (range(x.ndim) if s is None else range(-len(s), 0)) if axes is None else axes
        for number, axis in enumerate(axes):
            x = function(x, None if s is None else s[number], axis, norm)
        return x
    return transformed


fftn, ifftn = _over(fft), _over(ifft)


def fft2(a, s=None, axes=(-2, -1), norm=None):
    return fftn(a, s, axes, norm)


def ifft2(a, s=None, axes=(-2, -1), norm=None):
    return ifftn(a, s, axes, norm)


def rfftn(a, s=None, axes=None, norm=None):
    x = asarray(a)
    axes = list(range(x.ndim) if axes is None else axes)
    return fftn(rfft(x, None if s is None else s[-1], axes[-1], norm), None if s is None else s[:-1], axes[:-1], norm)


def rfft2(a, s=None, axes=(-2, -1), norm=None):
    return rfftn(a, s, axes, norm)


def irfftn(a, s=None, axes=None, norm=None):
    x = asarray(a)
    axes = list(range(x.ndim) if axes is None else axes)
    return irfft(ifftn(x, None if s is None else s[:-1], axes[:-1], norm), None if s is None else s[-1], axes[-1], norm)


def irfft2(a, s=None, axes=(-2, -1), norm=None):
    return irfftn(a, s, axes, norm)


def fftfreq(n, d=1.0, *, dtype=None):
    return asarray(np.fft.fftfreq(n, d), dtypes.default("f32") if dtype is None else dtypes.named(dtype))


def rfftfreq(n, d=1.0, *, dtype=None):
    return asarray(np.fft.rfftfreq(n, d), dtypes.default("f32") if dtype is None else dtypes.named(dtype))


def _half(axes, x):
    return range(x.ndim) if axes is None else axes if isinstance(axes, (tuple, list)) else (axes,)


def fftshift(x, axes=None):
    from ._arrangements import roll
    x = asarray(x)
    for axis in _half(axes, x):
        x = roll(x, x.shape[axis] // 2, axis)
    return x


def ifftshift(x, axes=None):
    from ._arrangements import roll
    x = asarray(x)
    for axis in _half(axes, x):
        x = roll(x, -(x.shape[axis] // 2), axis)
    return x
