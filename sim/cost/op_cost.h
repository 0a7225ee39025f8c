// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/hardware/machine.h"

#include <cstdint>
#include <optional>
#include <string>

namespace meshwright::sim {

/// `batch` products of [m, k] by [k, n]. All >= 0.
struct MatmulDims {
    std::int64_t batch = 1;
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;

    /// A multiply-add is two.
    double flops() const
    {
        return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    }
};

/// What one kernel does on one device.
struct OpWork {
    std::optional<MatmulDims> matmul = {}; ///< nothing: element-wise work, a reduction, a copy; its time is that of its bytes
    std::int64_t bytesRead = 0; ///< from HBM, >= 0
    std::int64_t bytesWritten = 0; ///< to HBM, >= 0
    MathFormat format = MathFormat::Fp32; ///< of the operands of the product
    MatmulPrecision precision = MatmulPrecision::Default;
};

/// `27.2 TFLOP`, `950 FLOP/s`: a count with a decimal prefix and its unit.
std::string flopText(double count, const char* unit);

/// What an op waits for.
enum class OpBound : std::uint8_t { Compute, Memory, Overhead };

struct OpTime {
    double seconds = 0.0; ///< overheadSeconds + max(computeSeconds, memorySeconds)
    double computeSeconds = 0.0; ///< FLOPs / (peak * achievable fraction * share of full tiles)
    double memorySeconds = 0.0; ///< bytes / (HBM bandwidth * achievable fraction)
    double overheadSeconds = 0.0; ///< starting the kernel
    OpBound bound = OpBound::Overhead; ///< the largest of the three
};

/// Taken where the catalogue has no figure; none is fitted to a record that the program is judged by.
inline constexpr double kAssumedTpuMatmulFraction = 0.90; ///< of peak; residual .90-.95 is usual for large products
inline constexpr double kAssumedGpuMatmulFraction = 0.80; ///< of peak; the chips that are listed have .73 to .87
inline constexpr double kTpuMemoryFraction = 0.87; ///< of HBM bandwidth; a copy on TPU7x, AI-Hypercomputer/tpu-recipes
inline constexpr double kGpuMemoryFraction = 0.90; ///< for 100 MB and more; calculon-ai/calculon, systems/a100_80e.json
inline constexpr double kTpuLaunchSeconds = 1e-6; ///< between ops of one compiled program
inline constexpr double kGpuLaunchSeconds = 4e-6; ///< of one kernel
inline constexpr double kCpuLaunchSeconds = 1e-6;

/// The roofline of one device, with tiles.
class DeviceCost {
public:
    /// Problems: MW1709 the chip has no figure from which the rate of a product could be taken.
    static Result<DeviceCost> create(const Machine& machine);

    /// Preconditions: the dimensions and bytes are >= 0. Work of zero FLOPs and bytes takes no time at all.
    OpTime time(const OpWork& work) const;

    /// The same in words, with every input: for reports.
    std::string formula(const OpWork& work) const;

    /// The share of the padded product that is asked for, in (0, 1]; 1 when a dimension is 0. TPU: k and one of m and n are padded to
    /// the side of the matrix unit, the other to 8 rows, whichever way round is better. GPU: tiles of 128 x 128 (64 along a dimension
    /// of at most 64), k to 32; the tiles run in waves over the multiprocessors, of which the last may be part full; when
    /// there are fewer tiles than multiprocessors, k is split in pieces of at least 512.
    double tileEfficiency(const MatmulDims& dims) const;

    /// Whether the compiler of the chip writes element-wise work into the kernel of the product before it. XLA on TPUs does (openxla/xla,
    /// xla/service/instruction_fusion.h and HloFusionInstruction kOutput); on GPUs products are calls of a library.
    bool fusesIntoProducts() const { return m_chip.chipClass == ChipClass::Tpu; }

    double matmulFraction() const { return m_matmulFraction; }
    double memoryBytesPerSecond() const { return m_memoryBytesPerSecond; } ///< achievable

private:
    explicit DeviceCost(const Machine& machine);

    Chip m_chip;
    double m_matmulFraction = 1.0;
    double m_memoryBytesPerSecond = 0.0;
    double m_launchSeconds = 0.0;
};

} // namespace meshwright::sim
