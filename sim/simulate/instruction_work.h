// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"
#include "sim/cost/device_cost.h"
#include "sim/simulate/kernel_groups.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace meshwright::sim {

/// What one computing instruction does on one device: its product, if it is one, and the bytes of everything it reads and writes, each
/// value once (what a fused pass keeps to itself touches no memory). How precisely f32 operands are multiplied is what the op's text says
/// (`precision = [HIGHEST, HIGHEST]`), `unstated` where it says nothing or DEFAULT; a program that rounds its operands to bf16 says so in
/// DotAttributes::operandType. Of the array that rows are picked from one by one, or added to, those rows count, times `pickedRowShare` (DeviceCost).
OpWork workOf(const Function& function, const Instruction& instruction, MatmulPrecision unstated = MatmulPrecision::Highest,
    double pickedRowShare = 1.0);

/// The type whose products a product takes: that of its operands, or of 8 bits where they are numbers rounded to these.
DType productType(const Function& function, const Op& dot);

/// How precisely a product multiplies operands of a type: as its text says, `unstated` for f32 where it says nothing or DEFAULT.
MatmulPrecision precisionOf(const Op& op, DType operandType, MatmulPrecision unstated);

/// How long the computing instructions of a schedule take, asked for in their order: an element-wise pass on the result of a product may be
/// fused into it (DeviceCost::fusesIntoProducts, addsInProducts), and then moves its other bytes while the product still computes. A small one is no
/// kernel of its own where others read its result: compilers and hand-written kernels compute it there. Of passes that share a kernel (KernelGroups), and
/// of products of one array or for one sum where stacks take them at once (DeviceCost::mergesProducts), each takes what it adds to the kernel.
/// Both must outlive this.
class InstructionTimes {
public:
    InstructionTimes(const ScheduledFunction& scheduled, const DeviceCost& cost, MatmulPrecision unstated);

    struct Kernel {
        OpWork work;
        OpTime time;
        std::string formula;
    };
    Kernel of(const Instruction& instruction);

private:
    /// An operand of products, which of its dimensions they sum over, and the type they multiply.
    using Shared = std::tuple<ValueId, bool, std::vector<std::size_t>, MathFormat>;

    std::optional<ValueId> fusedInto(const Instruction& instruction) const;
    bool addsToOne(const Instruction& instruction) const;
    bool isPartOfReaders(const Instruction& instruction, const OpTime& time) const;
    void joinPass(const KernelGroups::Member& member, Kernel& kernel) const;
    void splitPass(const Instruction& instruction, Kernel& kernel) const;
    std::int64_t bytesTaken(ValueId value) const;
    void mergeProduct(const Instruction& instruction, Kernel& kernel);
    void growProduct(OpWork& before, const OpWork& whole, Kernel& kernel) const;

    const Function& m_function;
    const DeviceCost& m_cost;
    MatmulPrecision m_unstated;
    KernelGroups m_groups;
    std::map<Shared, OpWork> m_merged; ///< the products of an array so far, as one
    std::map<const Instruction*, OpWork> m_summed; ///< the products of a sum so far, as one
    std::vector<bool> m_hasKernel; ///< by value: read by an op whose kernel can compute it
    std::vector<bool> m_isKept; ///< by value: read by an op that needs it in memory
    std::map<ValueId, double> m_idle; ///< results of products: seconds of them in which the memory has nothing to do
};

/// The plain form of a dot_general with these operand types.
MatmulDims productDims(const DotAttributes& attributes, const TensorType& lhs, const TensorType& rhs);

/// Fused attention, or its derivative, of `function` on operands of these types. Where queries are fewer than keys they are the last ones, which see
/// most: a step waits for the device that has them.
AttentionWork attentionWork(const Function& function, const Op& op, std::span<const TensorType> operands);

/// The number format in which a product of operands of this type runs; nothing for types that chips do not multiply fast.
std::optional<MathFormat> mathFormatOf(DType dtype);

} // namespace meshwright::sim
