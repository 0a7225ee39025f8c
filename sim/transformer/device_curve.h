// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/chip.h"
#include "sim/transformer/constants.h"

#include <cstdint>

namespace meshwright::sim {

/// `batch` products of [m, k] by [k, n].
struct Product {
    double batch = 1.0;
    double m = 0.0;
    double n = 0.0;
    double k = 0.0;
};

/// Time of kernels on one device, from their sizes. Nothing is allocated; one object for many threads.
///
/// Products on GPUs: tiles in waves over the multiprocessors, the best of a few tile shapes; a tile loses a fixed depth of k to filling its
/// pipeline; operands whose rows are not whole 16 bytes cannot be loaded for the tensor cores directly, those not whole 128 bytes load slower.
/// On TPUs dimensions are padded to the matrix unit. Everything else: bytes over HBM bandwidth.
class DeviceCurve {
public:
    /// Precondition: the chip has rates of products, HBM size and bandwidth. All figures are of one device.
    DeviceCurve(const Chip& chip, const StackConstants& constants);

    /// Without the gap between kernels. Preconditions: sizes >= 0.
    double productSeconds(const Product& product, MathFormat format) const;

    /// A kernel that moves so many bytes.
    double streamSeconds(double bytes) const { return bytes / m_streamBytesPerSecond; }

    /// Fused attention of `flops` (a multiply-add is two) with heads of this size over so many keys on average.
    double fusedAttentionSeconds(double flops, double headDim, double keys, AttentionKernel kernel, bool backward) const;

    /// Bytes read for each byte wanted, where rows of an array are picked one by one. TPUs keep arrays in tiles of 8 rows by 128 columns.
    double pickedRowShare() const { return m_tpu ? kTileRows : 1.0; }

    /// Rows that a product over groups of `rows` each computes for every group. TPUs take whole tiles, of which two groups share the one
    /// that their border lies in, so that both compute it (Megablox).
    double groupedRows(double groups, double rows) const
    {
        return m_tpu && groups > 0.0 ? rows + kGroupTile * (groups - 1.0) / groups : rows;
    }

    double peak(MathFormat format) const { return m_peaks[static_cast<std::size_t>(format)]; }
    double bytesPerSecond() const { return m_bytesPerSecond; }
    double capacityBytes() const { return m_capacityBytes; }
    double kernelSeconds() const { return m_kernelSeconds; }
    double hostKernelSeconds() const { return m_hostKernelSeconds; }

private:
    static constexpr double kTileRows = 8.0;
    static constexpr double kGroupTile = 512.0; ///< rows; MaxText's tile_batch_seq

    double gpuSeconds(const Product& product, MathFormat format) const;
    double tpuSeconds(const Product& product, MathFormat format) const;

    bool m_tpu = false;
    double m_fillDepth = 0.0;
    KernelFigures::AttentionShare m_flash1; ///< of the bf16 peak
    KernelFigures::AttentionShare m_flash2;
    double m_peaks[8] = {};
    double m_efficiency = 0.8;
    double m_narrowEfficiency = 0.7;
    double m_multiprocessors = 108.0;
    double m_side = 128.0;
    double m_bytesPerSecond = 0.0;
    double m_streamBytesPerSecond = 0.0;
    double m_capacityBytes = 0.0;
    double m_kernelSeconds = 0.0;
    double m_hostKernelSeconds = 0.0;
    double m_attentionForward = 0.0;
    double m_attentionBackward = 0.0;
};

} // namespace meshwright::sim
