// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/transformer/device_curve.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace meshwright::sim {

namespace {

constexpr double kGpuMatmulEfficiency = 0.80; ///< taken where the catalogue has no figure
constexpr double kTpuMatmulEfficiency = 0.90;
constexpr double kGpuFillDepth = 96.0;
constexpr double kTpuFilledDepth = 64.0;
constexpr double kUnalignedShare = 0.12; ///< rows of not whole 16 bytes: no direct loads into the tensor cores
constexpr double kHalfAlignedShare = 0.88; ///< rows of not whole 128 bytes
constexpr KernelFigures::AttentionShare kGpuFlash1{0.38, 0.32};
constexpr KernelFigures::AttentionShare kGpuFlash2{0.62, 0.52};
constexpr KernelFigures::AttentionShare kTpuSplash{0.50, 0.45};
constexpr KernelFigures::AttentionShare kFlash3{0.62, 0.50}; ///< kernels written for one chip, on that chip
constexpr double kSplitDepth = 512.0; ///< the least that k is split into when there are few tiles

struct Tile {
    double rows;
    double columns;
    double share; ///< of the rate of the best tile
};
constexpr std::array<Tile, 6> kTiles{
    {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.96}, {128, 64, 0.80}, {64, 128, 0.80}, {64, 64, 0.62}}};

double padded(double size, double unit)
{
    return std::ceil(size / unit) * unit;
}

bool isNarrow(MathFormat format)
{
    return format == MathFormat::Fp8 || format == MathFormat::Int8 || format == MathFormat::Fp4;
}

} // namespace

DeviceCurve::DeviceCurve(const Chip& chip, const StackConstants& constants)
    : m_tpu(chip.chipClass == ChipClass::Tpu)
{
    using enum MathFormat;
    for (const MathFormat format : {Fp32, Tf32, Bf16, Fp16, Fp8, Int8, Fp4}) {
        const auto rate = matmulRate(chip, format);
        m_peaks[static_cast<std::size_t>(format)] = rate ? rate->flopsPerSecond : 0.0;
    }
    m_fillDepth = chip.kernels.fillDepth.value_or(kGpuFillDepth);
    const auto attention = [&](const char* kernel, const KernelFigures::AttentionShare& usual) {
        const auto known = chip.kernels.attention.find(kernel);
        return known == chip.kernels.attention.end() ? usual : known->second;
    };
    m_flash1 = attention("flash1", kGpuFlash1);
    m_flash2 = attention("flash2", m_tpu ? kTpuSplash : kGpuFlash2);
    const auto devices = static_cast<double>(chip.devicesPerChip);
    m_efficiency = constants.matmulEfficiency > 0.0 ? constants.matmulEfficiency
                                                    : constants.matmulResidual
            * (chip.achievableMatmulFraction ? chip.achievableMatmulFraction->value
                    : m_tpu                  ? kTpuMatmulEfficiency
                                             : kGpuMatmulEfficiency);
    m_narrowEfficiency = constants.narrowEfficiency > 0.0 ? constants.narrowEfficiency : 0.9 * m_efficiency;
    m_multiprocessors = chip.multiprocessors ? chip.multiprocessors->value / devices : 108.0;
    m_side = chip.matrixUnit ? chip.matrixUnit->value : 128.0;
    m_bytesPerSecond = (chip.hbmBytesPerSecond ? chip.hbmBytesPerSecond->value : 1e12) / devices;
    m_streamBytesPerSecond = m_bytesPerSecond * constants.memoryEfficiency;
    m_capacityBytes = (chip.hbmBytes ? chip.hbmBytes->value : 0.0) / devices;
    m_kernelSeconds = constants.kernelSeconds;
    m_hostKernelSeconds = constants.hostKernelSeconds;
    m_attentionForward = constants.attentionForward;
    m_attentionBackward = constants.attentionBackward;
}

double DeviceCurve::gpuSeconds(const Product& product, MathFormat format) const
{
    const double narrow = isNarrow(format) ? 1.0 : 0.0;
    const double efficiency = narrow > 0.0 ? m_narrowEfficiency : m_efficiency;
    const double bytes = bytesPerElement(format);
    const double depth = product.k + m_fillDepth * (1.0 + narrow);
    const double rate = peak(format) * efficiency / m_multiprocessors;
    double best = 0.0;
    for (const Tile& tile : kTiles) {
        const double tiles = std::ceil(product.m / tile.rows) * std::ceil(product.n / tile.columns) * product.batch;
        double waves = std::ceil(tiles / m_multiprocessors);
        if (tiles < m_multiprocessors) {
            const double pieces = std::floor(std::min(m_multiprocessors / tiles, std::max(1.0, product.k / kSplitDepth)));
            waves = 1.0 / pieces;
        }
        const double seconds = waves * 2.0 * tile.rows * tile.columns * depth / (rate * tile.share);
        if (best == 0.0 || seconds < best)
            best = seconds;
    }
    const double whole = 16.0 / bytes;
    if (std::fmod(product.k, whole) != 0.0 || std::fmod(product.n, whole) != 0.0)
        best /= kUnalignedShare;
    else if (std::fmod(product.k, 8.0 * whole) != 0.0 || std::fmod(product.n, 8.0 * whole) != 0.0)
        best /= kHalfAlignedShare;
    return best;
}

double DeviceCurve::tpuSeconds(const Product& product, MathFormat format) const
{
    const double efficiency = isNarrow(format) ? m_narrowEfficiency : m_efficiency;
    const double across
        = std::min(padded(product.m, 8.0) * padded(product.n, m_side), padded(product.n, 8.0) * padded(product.m, m_side));
    return product.batch * 2.0 * across * (padded(product.k, m_side) + kTpuFilledDepth) / (peak(format) * efficiency);
}

double DeviceCurve::productSeconds(const Product& product, MathFormat format) const
{
    if (product.batch <= 0.0 || product.m <= 0.0 || product.n <= 0.0 || product.k <= 0.0)
        return 0.0;
    const double computing = m_tpu ? tpuSeconds(product, format) : gpuSeconds(product, format);
    const double bytes = bytesPerElement(format);
    const double moved
        = product.batch * ((product.m + product.n) * product.k * bytes + product.m * product.n * std::max(bytes, 2.0));
    return std::max(computing, moved / m_streamBytesPerSecond);
}

double DeviceCurve::fusedAttentionSeconds(double flops, double headDim, double keys, AttentionKernel kernel, bool backward) const
{
    const KernelFigures::AttentionShare& reached = kernel == AttentionKernel::Flash1 ? m_flash1
        : kernel == AttentionKernel::Flash3                                          ? kFlash3
                                                                                     : m_flash2;
    double share = backward ? reached.backward : reached.forward;
    if (backward && m_attentionBackward > 0.0)
        share = m_attentionBackward;
    if (!backward && m_attentionForward > 0.0)
        share = m_attentionForward;
    // Heads under 128 leave the matrix units waiting for the softmax; short rows of scores leave the pipeline part full.
    const double headShare = m_tpu ? headDim / padded(headDim, 128.0) : headDim >= 128.0 ? 1.0 : 0.7 + 0.3 * headDim / 128.0;
    const double keyShare = keys / (keys + 192.0);
    return flops / (peak(MathFormat::Bf16) * share * headShare * keyShare);
}

} // namespace meshwright::sim
