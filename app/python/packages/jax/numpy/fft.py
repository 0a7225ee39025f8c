# SPDX-License-Identifier: GPL-3.0-or-later
"""Fourier transforms."""
import math

import numpy as np

from .._src import dtypes, ops
from .._src.arrays import asarray, astype, bind

_MOST = 3  # dimensions of one transform


def _axes(x, s, axes):
    """The transformed axes and their lengths. Source of the texts: jax-ml/jax, jax/_src/numpy/fft.py."""
    if s is not None:
        s = tuple(map(int, s))
        if any(length < 0 for length in s):
            raise ValueError("Shape should be non-negative.")
    axes = (range(x.ndim) if s is None else range(-len(s), 0)) if axes is None else axes
    axes = tuple(ops.dimensions(axes, x.ndim))
    if len(set(axes)) != len(axes):
        raise ValueError(f"jax.numpy.fft does not support repeated axes. Got axes {list(axes)}.")
    if s is not None and len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    return axes, s


def _transformed(a, kind, s, axes, norm):
    x = asarray(a)
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"jax.numpy.fft only supports norm in ['backward', 'ortho', 'forward'] but got norm={norm!r}.")
    axes, s = _axes(x, s, axes)
    if not axes:
        return x
    if len(axes) > _MOST:
        outer = (None if s is None else s[:-_MOST], axes[:-_MOST], norm)
        inner = (None if s is None else s[-_MOST:], axes[-_MOST:], norm)
        if kind == "IRFFT":
            return _transformed(_transformed(x, "IFFT", *outer), kind, *inner)
        return _transformed(_transformed(x, kind, *inner), "IFFT" if kind == "IFFT" else "FFT", *outer)
    real = dtypes.inexact(x.engine_dtype)
    if kind == "RFFT":
        if dtypes.is_complex(x.engine_dtype):
            raise ValueError("only real valued inputs supported for rfft")
        x = astype(x, "f64" if real == "f64" else "f32")
    elif not dtypes.is_complex(x.engine_dtype):
        x = astype(x, "f64" if real == "f64" else "f32")
        x = ops.complex_(x, ops.zeros_like(x, x.engine_dtype))
    last = tuple(range(x.ndim - len(axes), x.ndim))
    x = ops.moveaxis(x, axes, last)
    if s is None:
        s = x.shape[x.ndim - len(axes):]
        s = (*s[:-1], max(0, 2 * (s[-1] - 1))) if kind == "IRFFT" else s
    for axis, length in zip(last, s[:-1] + (s[-1] // 2 + 1,) if kind == "IRFFT" else s):
        x = _fitted(x, axis, length)
    made = bind("fft", x, type=kind, lengths=tuple(s))
    points = math.prod(s)
    scale = {"ortho": math.sqrt(points), "forward": points}.get(norm, 1)
    if scale != 1:
        made = ops.multiply(made, scale if kind.startswith("I") else 1 / scale)
    return ops.moveaxis(made, last, axes)


def _fitted(x, axis, length):
    """With zeros behind, or cut."""
    if x.shape[axis] >= length:
        return x if x.shape[axis] == length else x[(slice(None),) * axis + (slice(length),)]
    return ops.pad(x, [0] * x.ndim, [length - x.shape[axis] if dim == axis else 0 for dim in range(x.ndim)])


def _along(kind):
    def transformed(a, n=None, axis=-1, norm=None):
        if isinstance(axis, (tuple, list)):
            raise ValueError("jax.numpy.fft does not support multiple axes. "
                             f"Please use jax.numpy.fft.{kind.lower()}n. Got axis = {axis!r}.")
        return _transformed(a, kind, None if n is None else (n,), (axis,), norm)
    transformed.__name__ = kind.lower()
    return transformed


def _over(kind, suffix, all_axes):
    def transformed(a, s=None, axes=all_axes, norm=None):
        return _transformed(a, kind, s, axes, norm)
    transformed.__name__ = kind.lower() + suffix
    return transformed


_KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")
fft, ifft, rfft, irfft = (_along(kind) for kind in _KINDS)
fftn, ifftn, rfftn, irfftn = (_over(kind, "n", None) for kind in _KINDS)
fft2, ifft2, rfft2, irfft2 = (_over(kind, "2", (-2, -1)) for kind in _KINDS)

_OTHER_WAY = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(a, n=None, axis=-1, norm=None):
    """Of a spectrum that is its own mirror: the real array behind it."""
    return irfft(ops.conj(asarray(a)), n, axis, _OTHER_WAY[norm])


def ihfft(a, n=None, axis=-1, norm=None):
    return ops.conj(rfft(a, n, axis, _OTHER_WAY[norm]))


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
