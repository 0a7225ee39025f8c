// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/scratch.h"
#include "core/program/program.h"
#include "core/support/stop_flag.h"

#include <functional>
#include <memory>
#include <span>

namespace meshwright {

/// Where each value of a function lies in memory, by ValueId; nullptr for values that are not in memory.
using Addresses = std::span<std::byte* const>;

/// A piece of a larger array: the array's shape, and the index of the piece's first element. What iota and random bits need to make
/// one device's part of the whole.
struct PieceOfWhole {
    Shape whole;
    Shape start;
};

/// The function that kernels are made for. Types of values are those of the pieces that the kernels work on.
struct KernelSite {
    const Function& function;
    std::function<PieceOfWhole(ValueId)> pieceOf; ///< asked when a kernel is made, for Iota, RandomBits, RngBitGenerator
};

/// What carries out one instruction on one device. Made once, run often. Threads may share a kernel, each with its own memory.
class Kernel {
public:
    virtual ~Kernel() = default;

    /// Reads and writes memory through `addresses`; a result may lie in the very place of an operand of its size. Looks at `stop` at least
    /// every few tenths of a second, and leaves the results unfinished once it is set.
    virtual void run(Addresses addresses, Scratch& scratch, const StopFlag& stop) const = 0;
};

/// A pass of tile ops on one shape that can do any stretch of its elements, with one operand that lies elsewhere: what a collective combines
/// before the pass goes on with it. Threads may share it.
class StretchKernel {
public:
    /// One operand's elements first .. last - 1.
    struct Window {
        std::int64_t first = 0;
        std::int64_t last = 0;
        const std::byte* data = nullptr; ///< of element `first`
    };

    virtual ~StretchKernel() = default;

    /// Stretches begin at multiples of this.
    virtual std::int64_t grain() const = 0;

    /// Computes the window's elements of all that the pass stores.
    virtual void run(Addresses addresses, Scratch& scratch, const StopFlag& stop, const Window& window) const = 0;
};

/// The piece that is the whole.
PieceOfWhole wholePiece(const Shape& shape);

/// True for the ops that a tile-by-tile pass can compute: element-wise ones, constants, iotas and broadcasts.
constexpr bool isTileOp(OpKind kind)
{
    return isElementwise(kind) || kind == OpKind::Constant || kind == OpKind::Iota || kind == OpKind::BroadcastInDim;
}

/// The kernel of one op, of several tile ops in one pass over memory, or of random bits and the slice that alone is taken of them. `writes` are the values that the pass stores; all others
/// that it makes never reach memory. Operands made outside are read from memory, unless they are constants, iotas or broadcasts of
/// such and `isInMemory` says no: then the pass makes them itself.
/// Preconditions: the ops are verified; several tile ops are in program order; no collective, transfer or Repeat.
std::unique_ptr<const Kernel> makeKernel(const KernelSite& site, std::span<const OpId> ops, std::span<const ValueId> writes,
    const std::function<bool(ValueId)>& isInMemory);

/// The pass of `ops` over stretches; `windowed` is the operand that a window gives. Preconditions: as `makeKernel`; the ops are element-wise on
/// one shape, read `windowed` element by element, and spread nothing that they make themselves but constants.
std::unique_ptr<const StretchKernel> makeStretchKernel(const KernelSite& site, std::span<const OpId> ops,
    std::span<const ValueId> writes, const std::function<bool(ValueId)>& isInMemory, ValueId windowed);

/// The reduction to a scalar of what one element-wise op makes, a stretch at a time, so that this never is in memory as a whole: sums of squares.
/// The bits are those of the two kernels one after the other. Nullptr when the ops are others, or small enough to be left alone. Precondition:
/// only `reduce` reads what `pass` makes.
std::unique_ptr<const Kernel> makeReducedPassKernel(
    const KernelSite& site, OpId pass, OpId reduce, const std::function<bool(ValueId)>& isInMemory);

/// Nothing, or why the runtime cannot run a function.
/// Problems: MW1501 an op between pipeline stages, one that a pass should have replaced, one that is analysed only, elements of a type
/// that is not computed with, a constant whose elements are not known; MW1502 legacy random bits for 2^32 or more elements. All are
/// reported, each op and type once. With `hasDevices` computations and what the bodies of manual ones say of devices are all right:
/// whoever runs the function knows what they mean.
Problems checkRunnable(const Function& function, bool hasDevices = false);

// The makers behind makeKernel, one for each kind of loop.
std::unique_ptr<const Kernel> makeTileKernel(const KernelSite& site, std::span<const OpId> ops, std::span<const ValueId> writes,
    const std::function<bool(ValueId)>& isInMemory);
std::unique_ptr<const Kernel> makeCopyKernel(const Function& function, OpId op); ///< Reshape, BitcastRegroup: the same bytes
std::unique_ptr<const Kernel> makeDotKernel(const Function& function, OpId op);
std::unique_ptr<const Kernel> makeReduceKernel(const Function& function, OpId op);
std::unique_ptr<const Kernel> makeTransposeKernel(const Function& function, OpId op);
std::unique_ptr<const Kernel> makePartsKernel(const Function& function, OpId op); ///< Slice .. Scatter, OptimizationBarrier
std::unique_ptr<const Kernel> makeRandomBitsKernel(const KernelSite& site, std::span<const OpId> ops);
std::unique_ptr<const Kernel> makeOtherKernel(const KernelSite& site, OpId op); ///< of a kept op; null when it cannot be run
std::unique_ptr<const Kernel> makeBitGeneratorKernel(const KernelSite& site, OpId op); ///< the same of RngBitGenerator

} // namespace meshwright
