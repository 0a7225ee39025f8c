# SPDX-License-Identifier: GPL-3.0-or-later
"""Convolutions and windows, as slices that are multiplied or combined: so they have derivatives and layouts. Source of the rules of padding:
jax-ml/jax, jax/_src/lax/convolution.py and jax/_src/lax/lax.py (padtype_to_pads)."""
import collections
import functools
import itertools
import math

from . import dtypes, ops
from .arrays import asarray, astype

ConvDimensionNumbers = collections.namedtuple("ConvDimensionNumbers", ["lhs_spec", "rhs_spec", "out_spec"])


def conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers):
    """Where batch, features and space are: ("NHWC", "HWIO", "NHWC") as positions, batch or output features first, then features."""
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if len(rhs_shape) != rank:
        raise TypeError(f"convolution requires lhs and rhs ndim to be equal, got {rank} and {len(rhs_shape)}.")
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    if any(len(spec) != rank for spec in dimension_numbers):
        raise ValueError(f"convolution dimension_numbers {dimension_numbers} have other lengths than the arrays' {rank} dimensions")
    lhs, rhs, out = dimension_numbers
    space = [letter for letter in rhs if letter not in "OI"]
    return ConvDimensionNumbers(tuple(map(lhs.index, ["N", "C", *space])), tuple(map(rhs.index, ["O", "I", *space])),
                                tuple(map(out.index, ["N", "C", *space])))


def _pairs(padding, sizes, windows, strides):
    """Elements that are added before and behind each dimension."""
    if not isinstance(padding, str):
        return [tuple(pair) for pair in padding]
    if padding.upper() == "VALID":
        return [(0, 0)] * len(sizes)
    needed = [max(0, (-(-size // stride) - 1) * stride + window - size) for size, window, stride in zip(sizes, windows, strides)]
    if padding.upper() == "SAME":
        return [(total // 2, total - total // 2) for total in needed]
    if padding.upper() == "SAME_LOWER":
        return [(total - total // 2, total // 2) for total in needed]
    raise RuntimeError(f"Unrecognized padding type: {padding}")


def _windows(x, first, sizes, strides, dilation):
    """For each place of a window over the dimensions from `first` on, the elements that are there."""
    spans = [(size - 1) * step + 1 for size, step in zip(sizes, dilation)]
    counts = [max(0, (x.shape[first + i] - span) // stride + 1) for i, (span, stride) in enumerate(zip(spans, strides))]
    rest = x.ndim - first - len(sizes)
    for place in itertools.product(*map(range, sizes)):
        starts = [at * step for at, step in zip(place, dilation)]
        limits = [start + (count - 1) * stride + 1 if count else start for start, count, stride in zip(starts, counts, strides)]
        yield ops.slice_(x, [0] * first + starts + [0] * rest, list(x.shape[:first]) + limits + list(x.shape[x.ndim - rest:]),
                         [1] * first + list(strides) + [1] * rest)


def conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation=None, rhs_dilation=None, dimension_numbers=None,
                         feature_group_count=1, batch_group_count=1, precision=None, preferred_element_type=None, **_):
    x, w = asarray(lhs), asarray(rhs)
    if x.engine_dtype != w.engine_dtype and preferred_element_type is None:
        raise TypeError(f"lax.conv_general_dilated requires arguments to have the same dtypes, got {x.dtype}, {w.dtype}.")
    (x, w), _ = ops.together(x, w)
    dims = conv_dimension_numbers(x.shape, w.shape, dimension_numbers)
    space = x.ndim - 2
    strides, dilation = tuple(window_strides or (1,) * space), tuple(rhs_dilation or (1,) * space)
    spread = tuple(lhs_dilation or (1,) * space)
    x = ops.transpose(x, (dims.lhs_spec[0], *dims.lhs_spec[2:], dims.lhs_spec[1]))
    w = ops.transpose(w, (*dims.rhs_spec[2:], dims.rhs_spec[1], dims.rhs_spec[0]))
    sizes, (inputs, outputs), groups = w.shape[:space], w.shape[space:], feature_group_count
    if x.shape[-1] != inputs * groups:
        raise TypeError(f"conv_general_dilated lhs feature dimension size divided by feature_group_count must equal the rhs input feature dimension "
                        f"size, but {x.shape[-1]} // {groups} != {inputs}.")
    if outputs % groups or batch_group_count != 1 and (groups != 1 or x.shape[0] % batch_group_count or outputs % batch_group_count):
        raise ValueError(f"conv_general_dilated rhs output feature dimension size {outputs} must be a multiple of the number of groups")
    spread_sizes = [max(0, (size - 1) * step + 1) for size, step in zip(x.shape[1:-1], spread)]
    pads = _pairs(padding, spread_sizes, [(size - 1) * step + 1 for size, step in zip(sizes, dilation)], strides)
    if any(low or high for low, high in pads) or any(step > 1 for step in spread):
        x = ops.pad(x, [0, *(low for low, _ in pads), 0], [0, *(high for _, high in pads), 0], interior=[0, *(step - 1 for step in spread), 0])
    if batch_group_count != 1:  # each group of examples has output features of its own
        parts = x.shape[0] // batch_group_count
        made = [conv_general_dilated(x[i * parts:(i + 1) * parts], w[..., i * (outputs // batch_group_count):(i + 1) * (outputs // batch_group_count)],
                                     strides, "VALID", None, dilation, _channels_last(space), 1, 1, precision) for i in range(batch_group_count)]
        y = ops.concatenate(made, -1)
    else:
        patches = ops.stack(list(_windows(x, 1, sizes, strides, dilation)), -2)  # batch, space, places, features
        patches = ops.reshape(patches, patches.shape[:-1] + (groups, inputs))
        w = ops.reshape(w, (math.prod(sizes), inputs, groups, outputs // groups))
        letters = "abdefh"[:space]
        y = ops.einsum(f"n{letters}kgc,kcgo->n{letters}go", patches, w, precision=precision)
        y = ops.reshape(y, y.shape[:-2] + (outputs,))
    if preferred_element_type is not None:
        y = y.astype(preferred_element_type)
    place = {dims.out_spec[0]: 0, dims.out_spec[1]: space + 1, **{at: 1 + i for i, at in enumerate(dims.out_spec[2:])}}
    return ops.transpose(y, tuple(place[dim] for dim in range(space + 2)))


def _channels_last(space):
    return ConvDimensionNumbers((0, space + 1, *range(1, space + 1)), (space + 1, space, *range(space)), (0, space + 1, *range(1, space + 1)))


def conv(lhs, rhs, window_strides, padding, precision=None, preferred_element_type=None):
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type)


def conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=None, preferred_element_type=None):
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_transpose(lhs, rhs, strides, padding, rhs_dilation=None, dimension_numbers=None, transpose_kernel=False, precision=None, *, preferred_element_type=None, use_consistent_padding=None):
    """The convolution of what `strides` spread apart, padded so that SAME gives size times stride."""
    lhs, rhs = asarray(lhs), asarray(rhs)
    space = lhs.ndim - 2
    dims = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers or (
        _channels_last(space) if space else None))
    dilation = tuple(rhs_dilation or (1,) * space)
    if isinstance(padding, str):
        pads = []
        for at, stride, step in zip(dims.rhs_spec[2:], strides, dilation):
            size = (rhs.shape[at] - 1) * step + 1
            total = size + stride - 2 + (max(size - stride, 0) if padding.upper() == "VALID" else 0)
            low = size - 1 if padding.upper() == "VALID" or stride > size - 1 else -(-total // 2)
            pads.append((low, total - low))
        padding = pads
    if transpose_kernel:
        rhs = ops.swapaxes(ops.flip(rhs, dims.rhs_spec[2:]), dims.rhs_spec[0], dims.rhs_spec[1])
    return conv_general_dilated(lhs, rhs, (1,) * space, padding, tuple(strides), dilation, dims, precision=precision)


def reduce_window(operand, init_value, computation, window_dimensions, window_strides=None, padding="VALID", base_dilation=None, window_dilation=None):
    """The elements of each window, put together by `computation`, beginning with `init_value`."""
    x = asarray(operand)
    sizes = tuple(window_dimensions)
    strides, dilation = tuple(window_strides or (1,) * x.ndim), tuple(window_dilation or (1,) * x.ndim)
    spread = tuple(base_dilation or (1,) * x.ndim)
    shape = [max(0, (size - 1) * step + 1) for size, step in zip(x.shape, spread)]
    pads = _pairs(padding, shape, [(size - 1) * step + 1 for size, step in zip(sizes, dilation)], strides)
    x = ops.pad(x, [low for low, _ in pads], [high for _, high in pads], init_value, [step - 1 for step in spread])
    return functools.reduce(computation, _windows(x, 0, sizes, strides, dilation), ops.asarray(init_value, x.engine_dtype))


def convolve(a, v, mode="full", precision=None, *, preferred_element_type=None):
    """Of two vectors, as numpy.convolve."""
    (a, v), _ = ops.together(a, v)
    a, v = (one if dtypes.is_inexact(one.engine_dtype) else astype(one, dtypes.default("f32")) for one in (a, v))
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError("convolve() only support 1-dimensional inputs.")
    if a.size < v.size:
        a, v = v, a
    low = {"full": v.size - 1, "same": v.size // 2, "valid": 0}[mode]
    high = {"full": v.size - 1, "same": v.size - 1 - v.size // 2, "valid": 0}[mode]
    return conv_general_dilated(a[None, None], ops.flip(v)[None, None], (1,), [(low, high)], precision=precision)[0, 0]
