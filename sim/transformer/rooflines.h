// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

/// Where computing and moving take equally long: the bounds that a plan is first held against. FLOP/s and bytes/s are of one device, bandwidths
/// both ways along one axis. Source: jax-ml/scaling-book, roofline.md and training.md (own words, derived beside each).
namespace meshwright::sim {

/// Rows of [rows, d] x [d, f] above which the product waits for the arithmetic: 2 rows d f / C >= weightBytes d f / W.
inline double computeBoundRows(double flopsPerSecond, double memoryBytesPerSecond, double weightBytes)
{
    return weightBytes * flopsPerSecond / (2.0 * memoryBytesPerSecond);
}

/// Depth d of [b, d] x [d, f] split over two devices, above which the exchange of 16-bit partial sums (2 b f bytes) is the shorter: d / C >= 2 / W.
inline double computeBoundSplitDepth(double flopsPerSecond, double linkBytesPerSecond)
{
    return 2.0 * flopsPerSecond / linkBytesPerSecond;
}

/// FLOPs a byte of b products of a row [d] by a matrix of its own [d, f]: 2 d f over (d f + d + f) elements.
inline double batchedRowIntensity(double d, double f, double bytesPerElement)
{
    return 2.0 * d * f / (bytesPerElement * (d * f + d + f));
}

/// Tokens a device above which gradients or gathered weights (4 bytes a parameter each way, 4 tokens FLOPs a parameter backward) hide: C / (W axes).
inline double computeBoundTokens(double flopsPerSecond, double axisBytesPerSecond, double axes = 1.0)
{
    return flopsPerSecond / (axisBytesPerSecond * axes);
}

/// Degree of tensor parallelism below which the activations' collectives hide behind products of width f: f axes W / C.
inline double computeBoundTensorDegree(double width, double flopsPerSecond, double axisBytesPerSecond, double axes = 1.0)
{
    return width * axes / computeBoundTokens(flopsPerSecond, axisBytesPerSecond);
}

/// The FSDP degree of n devices that moves least, tensor parallelism taking the rest: sqrt(2 tokens n / f), one axis set each.
double bestShardDegree(double tokens, double devices, double width);

/// Sequence length at which attention's products equal the four projections: 8 d^2 = 4 t d.
inline double attentionEqualsProjections(double hidden)
{
    return 2.0 * hidden;
}

/// Seconds of so many FLOPs on so many devices at this utilisation.
inline double trainingSeconds(double flops, double devices, double flopsPerSecond, double utilisation)
{
    return flops / (devices * flopsPerSecond * utilisation);
}

} // namespace meshwright::sim
