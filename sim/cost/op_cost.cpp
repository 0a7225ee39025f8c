// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/cost/op_cost.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace meshwright::sim {

std::string flopText(double count, const char* unit)
{
    const std::string number = formatCount(count);
    const bool prefixed = number.back() < '0' || number.back() > '9';
    return fmt::format("{}{}{}", number, prefixed ? "" : " ", unit);
}

namespace {

constexpr std::int64_t kOldMatrixUnitSide = 128; ///< of TPU v2 to v5p; later ones are listed in the catalogue
constexpr std::int64_t kTpuRows = 8;
constexpr std::int64_t kGpuTile = 128;
constexpr std::int64_t kGpuSmallTile = 64;
constexpr std::int64_t kGpuDepth = 32;
constexpr std::int64_t kGpuSplitDepth = 512;

/// How much of `size` padded to a multiple of `unit` is used.
double filled(std::int64_t size, std::int64_t unit)
{
    return static_cast<double>(size) / static_cast<double>(ceilDiv(size, unit) * unit);
}

double gpuTileEfficiency(const MatmulDims& dims, std::optional<std::int64_t> multiprocessors)
{
    const std::int64_t rows = dims.m <= kGpuSmallTile ? kGpuSmallTile : kGpuTile;
    const std::int64_t columns = dims.n <= kGpuSmallTile ? kGpuSmallTile : kGpuTile;
    const double inTiles = filled(dims.m, rows) * filled(dims.n, columns) * filled(dims.k, kGpuDepth);
    if (!multiprocessors)
        return inTiles;
    const double tiles = static_cast<double>(ceilDiv(dims.m, rows)) * static_cast<double>(ceilDiv(dims.n, columns))
        * static_cast<double>(dims.batch);
    const auto places = static_cast<double>(*multiprocessors);
    if (tiles >= places)
        return inTiles * tiles / (std::ceil(tiles / places) * places);
    const auto pieces = static_cast<double>(std::max<std::int64_t>(1, dims.k / kGpuSplitDepth));
    return inTiles * std::min(1.0, tiles * pieces / places);
}

} // namespace

Result<DeviceCost> DeviceCost::create(const Machine& machine)
{
    using enum MathFormat;
    for (const MathFormat format : {Fp32, Tf32, Bf16, Fp16, Fp8, Int8, Fp4}) {
        if (!matmulRate(machine.chip, format))
            return Problem{"MW1709",
                fmt::format(
                    "the catalogue has no figure for the rate of {} products of {}", mathFormatName(format), machine.chip.key),
                "choose another chip, or add the figure to the catalogue"};
    }
    return DeviceCost(machine);
}

DeviceCost::DeviceCost(const Machine& machine)
    : m_chip(machine.chip)
{
    const bool tpu = m_chip.chipClass == ChipClass::Tpu;
    m_matmulFraction = m_chip.achievableMatmulFraction ? m_chip.achievableMatmulFraction->value
        : tpu                                          ? kAssumedTpuMatmulFraction
                                                       : kAssumedGpuMatmulFraction;
    m_memoryBytesPerSecond = machine.hbmBytesPerSecondPerDevice * (tpu ? kTpuMemoryFraction : kGpuMemoryFraction);
    m_launchSeconds = tpu ? kTpuLaunchSeconds : m_chip.chipClass == ChipClass::Gpu ? kGpuLaunchSeconds : kCpuLaunchSeconds;
}

double DeviceCost::tileEfficiency(const MatmulDims& dims) const
{
    assert(dims.batch >= 0 && dims.m >= 0 && dims.n >= 0 && dims.k >= 0);
    if (dims.flops() == 0.0)
        return 1.0;
    if (m_chip.chipClass == ChipClass::Tpu) {
        const std::int64_t side = m_chip.matrixUnit ? static_cast<std::int64_t>(m_chip.matrixUnit->value) : kOldMatrixUnitSide;
        const double across
            = std::max(filled(dims.m, kTpuRows) * filled(dims.n, side), filled(dims.n, kTpuRows) * filled(dims.m, side));
        return across * filled(dims.k, side);
    }
    if (m_chip.chipClass == ChipClass::Cpu)
        return 1.0;
    std::optional<std::int64_t> multiprocessors;
    if (m_chip.multiprocessors)
        multiprocessors = static_cast<std::int64_t>(m_chip.multiprocessors->value) / m_chip.devicesPerChip;
    return gpuTileEfficiency(dims, multiprocessors);
}

OpTime DeviceCost::time(const OpWork& work) const
{
    assert(work.bytesRead >= 0 && work.bytesWritten >= 0);
    OpTime time;
    const double flops = work.matmul ? work.matmul->flops() : 0.0;
    const double bytes = static_cast<double>(work.bytesRead) + static_cast<double>(work.bytesWritten);
    if (flops == 0.0 && bytes == 0.0)
        return time;
    if (flops > 0.0) {
        const double rate = matmulRate(m_chip, work.format, work.precision)->flopsPerSecond;
        time.computeSeconds = flops / (rate * m_matmulFraction * tileEfficiency(*work.matmul));
    }
    time.memorySeconds = bytes / m_memoryBytesPerSecond;
    time.overheadSeconds = m_launchSeconds;
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
    std::string text;
    if (work.matmul) {
        const auto rate = *matmulRate(m_chip, work.format, work.precision);
        text = fmt::format("max({} / ({} ({}) x {:.3g} achievable x {:.3g} in full tiles) = {}, ",
            flopText(work.matmul->flops(), "FLOP"), flopText(rate.flopsPerSecond, "FLOP/s"), rate.how, m_matmulFraction,
            tileEfficiency(*work.matmul), formatSeconds(result.computeSeconds));
    }
    text += fmt::format(
        "{} / {:.4g} GB/s of HBM = {}", formatBytes(bytes), m_memoryBytesPerSecond / 1e9, formatSeconds(result.memorySeconds));
    if (work.matmul)
        text += ")";
    return fmt::format("{} + {} to start = {}", text, formatSeconds(result.overheadSeconds), formatSeconds(result.seconds));
}

} // namespace meshwright::sim
