// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/cost/stack.h"
#include "sim/hardware/machine.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace meshwright::sim {

/// `batch` products of [m, k] by [k, n]. All >= 0; means over several products need not be whole.
struct MatmulDims {
    double batch = 1.0;
    double m = 0.0;
    double n = 0.0;
    double k = 0.0;
    double row = 0.0; ///< what divides the elements of a row in memory, of both operands and the result; 0: k and n are such rows

    double flops() const { return 2.0 * batch * m * n * k; } ///< a multiply-add is two
};

/// The sizes of attention on one device, masked scores included.
struct AttentionShape {
    double batch = 0.0; ///< sequences times heads of queries
    double queries = 0.0;
    double keys = 0.0;
    double headDim = 0.0; ///< of queries and keys
    double valueDim = 0.0;
};

/// An op of fused attention on one device, by whatever kernels it is computed.
struct AttentionWork {
    double flops
        = 0.0; ///< of its products that masks leave, a multiply-add is two; backward with the scores that are computed again
    double headDim = 0.0; ///< of queries and keys
    double keys = 0.0; ///< that a query sees, on average
    bool isBackward = false;
    AttentionShape shape = {};
};

/// Attention whose scores lie in memory: what its kernels do, one after the other.
struct ScoredAttention {
    double productSeconds = 0.0;
    double bytes = 0.0; ///< that the other kernels move
    double kernels = 0.0; ///< products included
};

/// What one kernel does on one device.
struct OpWork {
    std::optional<MatmulDims> matmul = {}; ///< nothing: element-wise work, a reduction, a copy; its time is that of its bytes
    std::int64_t bytesRead = 0; ///< from HBM, >= 0
    std::int64_t bytesWritten = 0; ///< to HBM, >= 0
    MathFormat format = MathFormat::Fp32; ///< of the operands of the product
    MatmulPrecision precision = MatmulPrecision::Default;
    std::optional<AttentionWork> attention = {}; ///< in place of a product

    double flops() const { return matmul ? matmul->flops() : attention ? attention->flops : 0.0; }
};

/// `27.2 TFLOP`, `950 FLOP/s`: a count with a decimal prefix and its unit.
std::string flopText(double count, const char* unit);

/// What an op waits for.
enum class OpBound : std::uint8_t { Compute, Memory, Overhead };

struct OpTime {
    double seconds = 0.0; ///< overheadSeconds + max(computeSeconds, memorySeconds); of attention with scores in memory their sum
    double computeSeconds = 0.0; ///< FLOPs / (peak * achievable fraction * share that its shape leaves)
    double memorySeconds = 0.0; ///< bytes / (HBM bandwidth * achievable fraction)
    double overheadSeconds = 0.0; ///< between kernels
    double kernels = 0.0; ///< that the host starts for it
    OpBound bound = OpBound::Overhead; ///< the largest of the three
};

/// What decides the times of a program's kernels besides the machine.
struct CostOptions {
    StackConstants constants = {}; ///< of the software stack on the chip
    MatmulPrecision unstated = MatmulPrecision::Highest; ///< of products of f32 operands whose op says nothing, or DEFAULT
    AttentionKernel attention = AttentionKernel::Flash2; ///< that fused attention is computed by
    bool dropsProbabilities
        = false; ///< kernels whose scores lie in memory leave out a part of the probabilities: attention's dropout
    bool addsGradients
        = false; ///< a kernel of its own adds the gradients of a microbatch to those before it; else the product does
    bool mergesProducts = false; ///< products of one array with several others are one kernel, and products for one sum
    bool joinsPasses = true; ///< element-wise passes over the same elements are one kernel
    bool joinsRows = false; ///< and reductions of rows with what uses their results: norms, softmax
    bool splitsNorms = false; ///< each op of a norm is a kernel: it is written op by op, and not compiled
    bool joinsMoves = true; ///< and slices, pads and concatenations along rows: rotary positions
    bool waitsForSums = false; ///< all-reduces of activations and of their gradients stop the device
    bool waitsForWeights = false; ///< gathers of weights and scatters of their gradients do
    bool hidesInProducts
        = false; ///< gathers and scatters of activations run beside the product that reads or makes them, part by part
};

/// The constants of a stack on a chip: of the one that a study calls so, or the usual one there; without any stack a step takes no time besides its
/// program. `statedTraits`, `statedConstants`: in place of the stack's. Problems: those of `defaultCalibration`.
Result<CostOptions> costOptionsOf(const Chip& chip, MatmulPrecision unstated = MatmulPrecision::Highest,
    std::string_view stack = {}, const StackTraits* statedTraits = nullptr, const StackConstants* statedConstants = nullptr);

/// The time of kernels on one device, from their sizes: the only model of what computing costs. Nothing is allocated by the times; one object
/// for many threads.
///
/// Products on GPUs: tiles in waves over the multiprocessors, the best of a few tile shapes; a tile loses a fixed depth of k to filling its
/// pipeline; when there are fewer tiles than multiprocessors, k is split in pieces of at least 512; operands whose rows are not whole 16 bytes
/// cannot be loaded for the tensor cores directly (worse where products are many and small), those not whole 128 bytes load slower. On TPUs k and one of m and n are padded to the side of
/// the matrix unit, the other to 8 rows, whichever way round is better. CPUs: FLOPs over the rate. Everything else: bytes over HBM bandwidth.
class DeviceCost {
public:
    /// Problems: MW1709 the chip has no figure from which the rate of a product could be taken.
    static Result<DeviceCost> create(const Machine& machine, const CostOptions& options);

    /// Precondition: the chip has rates of products and HBM bandwidth.
    explicit DeviceCost(const Chip& chip, const CostOptions& options = {});

    /// Preconditions: the dimensions and bytes are >= 0. Work of zero FLOPs and bytes takes no time at all.
    OpTime time(const OpWork& work) const;

    /// The same in words, with every input: for reports.
    std::string formula(const OpWork& work) const;

    /// A product whose operands are read once and whose result is written once, without the gap between kernels. Sizes >= 0.
    double productSeconds(const MatmulDims& product, MathFormat format) const;

    /// A kernel that moves so many bytes, likewise.
    double streamSeconds(double bytes) const { return bytes / m_memoryBytesPerSecond; }

    /// Fused attention of `flops` (a multiply-add is two) with heads of this size over so many keys on average, likewise.
    double fusedAttentionSeconds(double flops, double headDim, double keys, AttentionKernel kernel, bool backward) const;

    /// Attention by kernels whose scores lie in memory, on activations of 16 bits, forward or backward. Precondition: `keepsScores(kernel)`.
    ScoredAttention scoredAttention(
        const AttentionShape& shape, MathFormat format, AttentionKernel kernel, bool dropout, bool backward) const;

    /// The share of the achievable rate that the shape of a product leaves, in (0, 1]; 1 when a dimension is 0.
    double shapeEfficiency(const MatmulDims& dims, MathFormat format) const;

    /// Bytes read for each byte wanted, where rows of an array are picked one by one. TPUs keep arrays in tiles of 8 rows by 128 columns.
    double pickedRowShare() const { return m_class == ChipClass::Tpu ? kTileRows : 1.0; }

    /// Rows that a product over groups of `rows` each computes for every group. TPUs take whole tiles, of which two groups share the one
    /// that their border lies in, so that both compute it (Megablox).
    double groupedRows(double groups, double rows) const
    {
        return m_class == ChipClass::Tpu && groups > 0.0 ? rows + kGroupTile * (groups - 1.0) / groups : rows;
    }

    /// Whether the compiler of the chip writes element-wise work into the kernel of the product before it. XLA on TPUs does (openxla/xla,
    /// xla/service/instruction_fusion.h and HloFusionInstruction kOutput); on GPUs products are calls of a library.
    bool fusesIntoProducts() const { return m_class == ChipClass::Tpu; }

    /// Whether a reshape moves nothing: arrays are in row-major order, and a view of one is enough. TPUs keep arrays in tiles, which stay as they
    /// are where the last dimension does (`keepsRows`).
    bool reshapesInPlace(bool keepsRows) const { return m_class != ChipClass::Tpu || keepsRows; }

    /// Whether a product's kernel adds to what is in memory, as libraries' do (beta = 1), where the program adds its result to something.
    bool addsInProducts() const { return !m_options.addsGradients; }

    /// Whether products of one array with several others, that sum over the same of its dimensions, are one kernel; and products that are only added.
    bool mergesProducts() const { return m_options.mergesProducts; }

    /// Which passes over memory are one kernel: see KernelGroups.
    bool joinsPasses() const { return m_options.joinsPasses; }
    bool joinsRows() const { return m_options.joinsRows; }
    bool splitsNorms() const { return m_options.splitsNorms; }
    bool joinsMoves() const { return m_options.joinsMoves; }

    /// Whether the device waits for an all-reduce of activations, or of their gradients, where it starts.
    bool waitsForSums() const { return m_options.waitsForSums; }

    /// Whether it waits for gathers of weights and scatters of their gradients likewise.
    bool waitsForWeights() const { return m_options.waitsForWeights; }

    /// Whether products are taken part by part, so that the gather of an operand, or the scatter of the result, runs beside them
    /// (Wang et al., "Overlap Communication with Dependent Computation via Decomposition", ASPLOS 2023).
    bool hidesInProducts() const { return m_options.hidesInProducts; }

    double peak(MathFormat format) const { return m_peaks[static_cast<std::size_t>(format)]; } ///< FLOP/s of one device
    double matmulFraction() const { return m_efficiency; } ///< of the peak, that a large product reaches
    double memoryBytesPerSecond() const { return m_memoryBytesPerSecond; } ///< achievable
    double kernelSeconds() const { return m_options.constants.kernelSeconds; } ///< between two kernels
    double hostKernelSeconds() const { return m_options.constants.hostKernelSeconds; } ///< of the host, to start one

private:
    static constexpr double kTileRows = 8.0;
    static constexpr double kGroupTile = 512.0; ///< rows; MaxText's tile_batch_seq

    double computeSeconds(const MatmulDims& product, MathFormat format) const;
    double gpuSeconds(const MatmulDims& product, MathFormat format) const;
    double tpuSeconds(const MatmulDims& product, MathFormat format) const;
    double efficiency(MathFormat format) const;
    double computeSeconds(const OpWork& work) const;
    OpTime scoredTime(const OpWork& work) const;

    CostOptions m_options;
    ChipClass m_class = ChipClass::Gpu;
    double m_fillDepth = 0.0; ///< of k, that a tile loses
    KernelFigures::AttentionShare m_flash1; ///< of the bf16 peak
    KernelFigures::AttentionShare m_flash2;
    std::array<double, 7> m_peaks{}; ///< by MathFormat, FLOP/s
    std::array<MatmulRate, 3> m_singleRates; ///< of 32-bit operands, by MatmulPrecision
    std::array<std::string, 7> m_how; ///< by MathFormat
    double m_efficiency = 0.8;
    double m_narrowEfficiency = 0.7;
    double m_multiprocessors = 108.0;
    double m_side = 128.0;
    double m_memoryBytesPerSecond = 0.0;
};

} // namespace meshwright::sim
