# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.image: resizing, as a product with weights along each dimension. Source of the weights: jax-ml/jax, jax/_src/image/scale.py."""
import enum

import numpy as np

from ._src import dtypes, ops
from ._src.arrays import asarray, astype


class ResizeMethod(enum.Enum):
    NEAREST, LINEAR, LANCZOS3, LANCZOS5, CUBIC = range(5)

    @staticmethod
    def from_string(name):
        known = {"nearest": ResizeMethod.NEAREST, "lanczos3": ResizeMethod.LANCZOS3, "lanczos5": ResizeMethod.LANCZOS5}
        known |= dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR) | dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC)
        if name not in known:
            raise ValueError(f'Unknown resize method "{name}"')
        return known[name]


def _lanczos(radius):
    def kernel(x):
        with np.errstate(divide="ignore", invalid="ignore"):
            y = radius * np.sin(np.pi * x) * np.sin(np.pi * x / radius)
            out = np.where(x > 1e-3, y / (np.pi**2 * x**2), 1)
        return np.where(x > radius, 0.0, out)
    return kernel


def _cubic(x):
    inner, outer = ((1.5 * x - 2.5) * x) * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x >= 2.0, 0.0, np.where(x >= 1.0, outer, inner))


_KERNELS = {ResizeMethod.LINEAR: lambda x: np.maximum(0, 1 - x), ResizeMethod.CUBIC: _cubic, ResizeMethod.LANCZOS3: _lanczos(3.0), ResizeMethod.LANCZOS5: _lanczos(5.0)}


def _weights(size, wanted, kernel, antialias):
    scale = wanted / size
    spread = max(1.0, 1 / scale) if antialias else 1.0
    sample = (np.arange(wanted) + 0.5) / scale - 0.5
    weights = kernel(np.abs(sample[None] - np.arange(size)[:, None]) / spread)
    total = weights.sum(0, keepdims=True)
    weights = np.where(np.abs(total) > 1000 * np.finfo(np.float32).eps, weights / np.where(total != 0, total, 1), 0)
    return np.where((sample >= -0.5) & (sample <= size - 0.5), weights, 0)


def resize(image, shape, method, antialias=True, precision=None):
    image = asarray(image)
    if len(shape) != image.ndim:
        raise ValueError(f"shape must have length equal to the number of dimensions of x; {tuple(shape)} vs {image.shape}")
    method = ResizeMethod.from_string(method) if isinstance(method, str) else method
    made = image if dtypes.is_inexact(image.engine_dtype) else astype(image, dtypes.default("f32"))
    for axis, (size, wanted) in enumerate(zip(image.shape, shape)):
        if size == wanted:
            continue
        if method == ResizeMethod.NEAREST:
            made = ops.take(made, asarray(np.floor((np.arange(wanted) + 0.5) * size / wanted).astype(np.int32)), axis)
        else:
            weights = asarray(_weights(size, wanted, _KERNELS[method], antialias), made.engine_dtype)
            made = ops.moveaxis(ops.dot(ops.moveaxis(made, axis, -1), weights, precision="highest"), -1, axis)
    return made if method != ResizeMethod.NEAREST else astype(made, image.engine_dtype)
