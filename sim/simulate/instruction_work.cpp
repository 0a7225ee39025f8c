// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/instruction_work.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::sim {

MatmulDims productDims(const DotAttributes& attributes, const TensorType& lhs, const TensorType& rhs)
{
    const auto has = [](const std::vector<std::size_t>& dims, std::size_t dim) {
        return std::find(dims.begin(), dims.end(), dim) != dims.end();
    };
    MatmulDims dims{1, 1, 1, 1};
    for (std::size_t dim = 0; dim < lhs.shape.size(); ++dim) {
        const auto size = static_cast<double>(lhs.shape[dim]);
        if (has(attributes.lhsBatch, dim))
            dims.batch *= size;
        else if (has(attributes.lhsContracting, dim))
            dims.k *= size;
        else
            dims.m *= size;
    }
    for (std::size_t dim = 0; dim < rhs.shape.size(); ++dim) {
        if (!has(attributes.rhsBatch, dim) && !has(attributes.rhsContracting, dim))
            dims.n *= static_cast<double>(rhs.shape[dim]);
    }
    return dims;
}

std::optional<MathFormat> mathFormatOf(DType dtype)
{
    switch (dtype) {
    case DType::F32:
        return MathFormat::Fp32;
    case DType::BF16:
        return MathFormat::Bf16;
    case DType::F16:
        return MathFormat::Fp16;
    case DType::S8:
    case DType::U8:
        return MathFormat::Int8;
    default:
        return std::nullopt;
    }
}

MatmulPrecision precisionOf(const Op& op, DType operandType, MatmulPrecision unstated)
{
    if (operandType != DType::F32)
        return MatmulPrecision::Default;
    const KeptAttribute* stated = op.kept == nullptr ? nullptr : findAttribute(op.kept->attributes, "precision");
    if (stated == nullptr)
        return unstated;
    return stated->text.find("HIGHEST") != std::string::npos ? MatmulPrecision::Highest
        : stated->text.find("HIGH") != std::string::npos     ? MatmulPrecision::High
                                                             : unstated;
}

OpWork workOf(const Function& function, const Instruction& instruction, MatmulPrecision unstated)
{
    OpWork work;
    for (const ValueId value : instruction.reads)
        work.bytesRead += function[value].type.bytes();
    for (const ValueId value : instruction.writes)
        work.bytesWritten += function[value].type.bytes();
    for (const OpId id : instruction.ops) {
        const Op& op = function[id];
        if (op.kind != OpKind::DotGeneral)
            continue;
        const auto& attributes = op.as<DotAttributes>();
        work.matmul = productDims(attributes, function[op.operands[0]].type, function[op.operands[1]].type);
        work.format = mathFormatOf(attributes.operandType).value_or(MathFormat::Fp32);
        work.precision = precisionOf(op, attributes.operandType, unstated);
    }
    return work;
}

/// The product's result that an element-wise pass takes, if it takes one and does nothing that needs a whole row or column.
std::optional<ValueId> InstructionTimes::fusedInto(const Instruction& instruction) const
{
    for (const OpId id : instruction.ops) {
        const OpKind kind = m_function[id].kind;
        if (!isElementwise(kind) && kind != OpKind::BroadcastInDim && kind != OpKind::Constant)
            return std::nullopt;
    }
    for (const ValueId value : instruction.reads) {
        if (m_idle.contains(value))
            return value;
    }
    return std::nullopt;
}

InstructionTimes::Kernel InstructionTimes::of(const Instruction& instruction)
{
    Kernel kernel{workOf(m_function, instruction, m_unstated), {}, {}};
    kernel.time = m_cost.time(kernel.work);
    kernel.formula = m_cost.formula(kernel.work);
    if (!m_cost.fusesIntoProducts())
        return kernel;
    if (kernel.work.matmul) {
        for (const ValueId value : instruction.writes)
            m_idle[value] = std::max(0.0, kernel.time.computeSeconds - kernel.time.memorySeconds);
        return kernel;
    }
    const auto product = fusedInto(instruction);
    if (!product)
        return kernel;
    // The product's result never leaves the chip on its way here.
    kernel.work.bytesRead -= m_function[*product].type.bytes();
    const double moving = m_cost.time(kernel.work).memorySeconds;
    double& idle = m_idle[*product];
    const double hidden = std::min(idle, moving);
    idle -= hidden;
    kernel.time = {};
    kernel.time.memorySeconds = kernel.time.seconds = moving - hidden;
    kernel.time.bound = OpBound::Memory;
    kernel.formula
        = fmt::format("fused into the product of its operand: {} of other operands and results in {}, of which {} while the "
                      "product computes",
            formatBytes(static_cast<double>(kernel.work.bytesRead + kernel.work.bytesWritten)), formatSeconds(moving),
            formatSeconds(hidden));
    return kernel;
}

} // namespace meshwright::sim
