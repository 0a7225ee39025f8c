// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/cost/device_cost.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace meshwright::sim {

namespace {

constexpr double kGpuMatmulEfficiency
    = 0.80; ///< taken where the catalogue has no figure; the chips that are listed have .73 to .87
constexpr double kTpuMatmulEfficiency = 0.90;
constexpr double kGpuFillDepth = 96.0;
constexpr double kTpuFilledDepth = 64.0;
// Rows of not whole 16 bytes, which cannot be loaded into the tensor cores directly: of one product (GPT-2 124M on an A100: a step is 25 % longer with
// 50,257 words than with 50,304, A. Karpathy, nanoGPT, 2023-02), and of many small ones (heads of 150 and 225 in bloom_prequel_a100).
constexpr double kUnalignedShare = 0.5;
constexpr double kUnalignedBatchShare = 0.12;
constexpr double kHalfAlignedShare = 0.88; ///< rows of not whole 128 bytes
constexpr KernelFigures::AttentionShare kGpuFlash1{0.38, 0.32};
constexpr KernelFigures::AttentionShare kGpuFlash2{0.62, 0.52};
constexpr KernelFigures::AttentionShare kTpuSplash{0.50, 0.45};
constexpr KernelFigures::AttentionShare kFlash3{0.62, 0.50}; ///< kernels written for one chip, on that chip
constexpr double kSkinnySide
    = 8.0; ///< rows up to which a product is written as sums of products, without matrix units (cuBLAS's gemv, XLA's fusions)
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

std::string flopText(double count, const char* unit)
{
    const std::string number = formatCount(count);
    const bool prefixed = number.back() < '0' || number.back() > '9';
    return fmt::format("{}{}{}", number, prefixed ? "" : " ", unit);
}

Result<CostOptions> costOptionsOf(const Chip& chip, MatmulPrecision unstated, std::string_view stack,
    const StackTraits* statedTraits, const StackConstants* statedConstants)
{
    const Result<Calibration>& calibration = defaultCalibration();
    if (!calibration)
        return calibration.error();
    const std::string_view known = calibration->stackFor(stack, chip);
    const StackTraits& traits = statedTraits != nullptr ? *statedTraits : calibration->traits(known);
    StackConstants constants = statedConstants != nullptr ? *statedConstants : calibration->constants(known, chip);
    if (known.empty()) { // nobody's training loop
        constants.stepSeconds = 0.0;
        constants.stragglerSlowdown = 0.0;
    }
    return CostOptions{.constants = constants,
        .unstated = unstated,
        .attention = traits.attention,
        .dropsProbabilities = traits.dropout,
        .addsGradients = traits.addsGradients,
        .mergesProducts = traits.mergesProducts,
        .joinsPasses = traits.fusedElementwise,
        // XLA on TPUs ends a kernel with its reduction.
        .joinsRows = traits.fusedNorms && chip.chipClass != ChipClass::Tpu,
        .splitsNorms = !traits.fusedNorms && chip.chipClass != ChipClass::Tpu,
        .joinsMoves = traits.fusedRotary,
        .waitsForSums = traits.waitsForSums,
        .waitsForWeights = !traits.gathersAhead,
        .hidesInProducts = traits.asyncTensorParallel};
}

Result<DeviceCost> DeviceCost::create(const Machine& machine, const CostOptions& options)
{
    for (const MathFormat format : kMathFormats) {
        if (!matmulRate(machine.chip, format))
            return Problem{"MW1709",
                fmt::format(
                    "the catalogue has no figure for the rate of {} products of {}", mathFormatName(format), machine.chip.key),
                "choose another chip, or add the figure to the catalogue"};
    }
    return DeviceCost(machine.chip, options);
}

DeviceCost::DeviceCost(const Chip& chip, const CostOptions& options)
    : m_options(options)
    , m_class(chip.chipClass)
{
    const StackConstants& constants = options.constants;
    for (const MathFormat format : kMathFormats) {
        const auto rate = matmulRate(chip, format).value_or(MatmulRate{});
        m_peaks[static_cast<std::size_t>(format)] = rate.flopsPerSecond;
        m_how[static_cast<std::size_t>(format)] = rate.how;
    }
    for (const MatmulPrecision precision : {MatmulPrecision::Default, MatmulPrecision::High, MatmulPrecision::Highest})
        m_singleRates[static_cast<std::size_t>(precision)] = matmulRate(chip, MathFormat::Fp32, precision).value_or(MatmulRate{});
    const bool tpu = m_class == ChipClass::Tpu;
    m_fillDepth = chip.kernels.fillDepth.value_or(kGpuFillDepth);
    const auto shareOf = [&](const char* kernel, const KernelFigures::AttentionShare& usual) {
        const auto known = chip.kernels.attention.find(kernel);
        return known == chip.kernels.attention.end() ? usual : known->second;
    };
    m_flash1 = shareOf("flash1", kGpuFlash1);
    m_flash2 = shareOf("flash2", tpu ? kTpuSplash : kGpuFlash2);
    const auto devices = static_cast<double>(chip.devicesPerChip);
    m_efficiency = constants.matmulEfficiency > 0.0 ? constants.matmulEfficiency
                                                    : constants.matmulResidual
            * (chip.achievableMatmulFraction ? chip.achievableMatmulFraction->value
                    : tpu                    ? kTpuMatmulEfficiency
                                             : kGpuMatmulEfficiency);
    m_narrowEfficiency = constants.narrowEfficiency > 0.0 ? constants.narrowEfficiency : 0.9 * m_efficiency;
    m_multiprocessors = chip.multiprocessors ? chip.multiprocessors->value / devices : 108.0;
    m_side = chip.matrixUnit ? chip.matrixUnit->value : 128.0;
    m_memoryBytesPerSecond
        = (chip.hbmBytesPerSecond ? chip.hbmBytesPerSecond->value : 1e12) / devices * constants.memoryEfficiency;
}

double DeviceCost::efficiency(MathFormat format) const
{
    return isNarrow(format) ? m_narrowEfficiency : m_efficiency;
}

double DeviceCost::gpuSeconds(const MatmulDims& product, MathFormat format) const
{
    const double narrow = isNarrow(format) ? 1.0 : 0.0;
    const double bytes = bytesPerElement(format);
    const double depth = product.k + m_fillDepth * (1.0 + narrow);
    const double rate = peak(format) * efficiency(format) / m_multiprocessors;
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
    if (std::min(product.m, product.n) <= kSkinnySide) {
        const double single = m_singleRates[static_cast<std::size_t>(MatmulPrecision::Highest)].flopsPerSecond;
        const double sums = format == MathFormat::Fp32 || single <= 0.0 ? peak(format) : single;
        best = std::min(best, product.flops() / (sums * efficiency(format)));
    }
    const auto hasWhole = [&](double rowBytes) {
        const double elements = rowBytes / bytes;
        return product.row > 0.0 ? std::fmod(product.row, elements) == 0.0
                                 : std::fmod(product.k, elements) == 0.0 && std::fmod(product.n, elements) == 0.0;
    };
    if (!hasWhole(16.0))
        best /= product.batch > 1.0 ? kUnalignedBatchShare : kUnalignedShare;
    else if (!hasWhole(128.0))
        best /= kHalfAlignedShare;
    return best;
}

double DeviceCost::tpuSeconds(const MatmulDims& product, MathFormat format) const
{
    const double across
        = std::min(padded(product.m, 8.0) * padded(product.n, m_side), padded(product.n, 8.0) * padded(product.m, m_side));
    return product.batch * 2.0 * across * (padded(product.k, m_side) + kTpuFilledDepth) / (peak(format) * efficiency(format));
}

double DeviceCost::computeSeconds(const MatmulDims& product, MathFormat format) const
{
    assert(product.batch >= 0.0 && product.m >= 0.0 && product.n >= 0.0 && product.k >= 0.0);
    if (product.flops() == 0.0)
        return 0.0;
    switch (m_class) {
    case ChipClass::Tpu:
        return tpuSeconds(product, format);
    case ChipClass::Gpu:
        return gpuSeconds(product, format);
    case ChipClass::Cpu:
        break;
    }
    return product.flops() / (peak(format) * efficiency(format));
}

double DeviceCost::shapeEfficiency(const MatmulDims& dims, MathFormat format) const
{
    const double seconds = computeSeconds(dims, format);
    return seconds > 0.0 ? dims.flops() / (peak(format) * efficiency(format) * seconds) : 1.0;
}

double DeviceCost::productSeconds(const MatmulDims& product, MathFormat format) const
{
    const double computing = computeSeconds(product, format);
    if (computing == 0.0)
        return 0.0;
    const double bytes = bytesPerElement(format);
    const double moved
        = product.batch * ((product.m + product.n) * product.k * bytes + product.m * product.n * std::max(bytes, 2.0));
    return std::max(computing, streamSeconds(moved));
}

double DeviceCost::fusedAttentionSeconds(double flops, double headDim, double keys, AttentionKernel kernel, bool backward) const
{
    const KernelFigures::AttentionShare& reached = kernel == AttentionKernel::Flash1 ? m_flash1
        : kernel == AttentionKernel::Flash3                                          ? kFlash3
                                                                                     : m_flash2;
    double share = backward ? reached.backward : reached.forward;
    const double fitted = backward ? m_options.constants.attentionBackward : m_options.constants.attentionForward;
    if (fitted > 0.0)
        share = fitted;
    const bool tpu = m_class == ChipClass::Tpu;
    // Heads under 128 leave the matrix units waiting for the softmax; short rows of scores leave the pipeline part full.
    const double headShare = tpu ? headDim / padded(headDim, 128.0) : headDim >= 128.0 ? 1.0 : 0.7 + 0.3 * headDim / 128.0;
    const double keyShare = keys / (keys + 192.0);
    return flops / (peak(MathFormat::Bf16) * share * headShare * keyShare);
}

ScoredAttention DeviceCost::scoredAttention(
    const AttentionShape& shape, MathFormat format, AttentionKernel kernel, bool dropout, bool backward) const
{
    assert(keepsScores(kernel));
    const auto [batch, queries, keys, headDim, valueDim] = shape;
    const bool eager = kernel == AttentionKernel::Unfused;
    const double scores = batch * queries * keys;
    ScoredAttention made;
    if (backward)
        made.productSeconds = productSeconds({batch, queries, keys, valueDim}, format)
            + productSeconds({batch, keys, valueDim, queries}, format) + productSeconds({batch, queries, headDim, keys}, format)
            + productSeconds({batch, keys, headDim, queries}, format);
    else
        made.productSeconds
            = productSeconds({batch, queries, keys, headDim}, format) + productSeconds({batch, queries, valueDim, keys}, format);
    // Softmax reads and writes 2 bytes each, backward probabilities too; eager: scale, mask, to 32 bits, softmax there, back. Dropout: 2 in, 2 out,
    // 1 of the mask. Heads come to the front and go back again: q, k, v and the result, 2 bytes in and out.
    const double softmax = eager ? 24.0 : backward ? 6.0 : 4.0;
    made.bytes = scores * (softmax + (dropout ? 5.0 : 0.0)) + 4.0 * 2.0 * 2.0 * batch * queries * headDim;
    made.kernels = (backward ? 4.0 : 2.0) + (eager ? 6.0 : dropout ? 2.0 : 1.0) + 4.0;
    return made;
}

OpTime DeviceCost::scoredTime(const OpWork& work) const
{
    const ScoredAttention made = scoredAttention(
        work.attention->shape, work.format, m_options.attention, m_options.dropsProbabilities, work.attention->isBackward);
    OpTime time;
    time.computeSeconds = made.productSeconds;
    time.memorySeconds = streamSeconds(made.bytes);
    time.kernels = made.kernels;
    time.overheadSeconds = time.kernels * kernelSeconds();
    time.seconds = time.computeSeconds + time.memorySeconds + time.overheadSeconds;
    time.bound = time.computeSeconds >= time.memorySeconds ? OpBound::Compute : OpBound::Memory;
    return time;
}

double DeviceCost::computeSeconds(const OpWork& work) const
{
    double seconds = 0.0;
    if (work.matmul)
        seconds = computeSeconds(*work.matmul, work.format);
    else if (work.attention && work.attention->flops > 0.0)
        seconds = fusedAttentionSeconds(work.attention->flops, work.attention->headDim, work.attention->keys, m_options.attention,
                      work.attention->isBackward)
            * peak(MathFormat::Bf16) / peak(work.format);
    if (work.format == MathFormat::Fp32)
        seconds *= peak(MathFormat::Fp32) / m_singleRates[static_cast<std::size_t>(work.precision)].flopsPerSecond;
    return seconds;
}

OpTime DeviceCost::time(const OpWork& work) const
{
    assert(work.bytesRead >= 0 && work.bytesWritten >= 0);
    OpTime time;
    const double flops = work.flops();
    const double bytes = static_cast<double>(work.bytesRead) + static_cast<double>(work.bytesWritten);
    if (flops == 0.0 && bytes == 0.0)
        return time;
    if (work.attention && flops > 0.0 && keepsScores(m_options.attention))
        return scoredTime(work);
    time.computeSeconds = flops > 0.0 ? computeSeconds(work) : 0.0;
    time.memorySeconds = streamSeconds(bytes);
    constexpr double kBackwardKernels = 3.0; // sums of rows, the gradients, their sums in the result's type
    time.kernels = work.attention && work.attention->isBackward ? kBackwardKernels : 1.0;
    time.overheadSeconds = time.kernels * kernelSeconds();
    const double busy = std::max(time.computeSeconds, time.memorySeconds);
    time.seconds = time.overheadSeconds + busy;
    if (busy < time.overheadSeconds)
        time.bound = OpBound::Overhead;
    else
        time.bound = time.computeSeconds >= time.memorySeconds ? OpBound::Compute : OpBound::Memory;
    return time;
}

std::string DeviceCost::formula(const OpWork& work) const
{
    const OpTime result = time(work);
    const double bytes = static_cast<double>(work.bytesRead) + static_cast<double>(work.bytesWritten);
    if (work.attention && work.flops() > 0.0 && keepsScores(m_options.attention)) {
        const AttentionShape& shape = work.attention->shape;
        return fmt::format("attention with {:.5g} x {:.5g} scores in memory for each of {:.5g} heads: "
                           "{} of products + {} of passes over HBM + {} to start = {}",
            shape.queries, shape.keys, shape.batch, formatSeconds(result.computeSeconds), formatSeconds(result.memorySeconds),
            formatSeconds(result.overheadSeconds), formatSeconds(result.seconds));
    }
    std::string text;
    const bool isSingle = work.format == MathFormat::Fp32;
    const MatmulRate& single = m_singleRates[static_cast<std::size_t>(work.precision)];
    if (work.attention)
        text = fmt::format("max({} of fused attention over {:.5g} keys / ({} ({}) x {:.3g} for the kernel, the size of a head "
                           "and its rows) = {}, ",
            flopText(work.flops(), "FLOP"), work.attention->keys,
            flopText(isSingle ? single.flopsPerSecond : peak(work.format), "FLOP/s"),
            isSingle ? single.how : m_how[static_cast<std::size_t>(work.format)],
            work.flops() / ((isSingle ? single.flopsPerSecond : peak(work.format)) * result.computeSeconds),
            formatSeconds(result.computeSeconds));
    if (work.matmul) {
        text = fmt::format("max({} / ({} ({}) x {:.3g} achievable x {:.3g} for its shape) = {}, ",
            flopText(work.matmul->flops(), "FLOP"), flopText(isSingle ? single.flopsPerSecond : peak(work.format), "FLOP/s"),
            isSingle ? single.how : m_how[static_cast<std::size_t>(work.format)], efficiency(work.format),
            shapeEfficiency(*work.matmul, work.format), formatSeconds(result.computeSeconds));
    }
    text += fmt::format(
        "{} / {:.4g} GB/s of HBM = {}", formatBytes(bytes), m_memoryBytesPerSecond / 1e9, formatSeconds(result.memorySeconds));
    if (work.matmul || work.attention)
        text += ")";
    return fmt::format("{} + {} to start = {}", text, formatSeconds(result.overheadSeconds), formatSeconds(result.seconds));
}

} // namespace meshwright::sim
