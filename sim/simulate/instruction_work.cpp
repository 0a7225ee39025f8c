// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/instruction_work.h"

#include <algorithm>

namespace meshwright::sim {

MatmulDims productDims(const DotAttributes& attributes, const TensorType& lhs, const TensorType& rhs)
{
    const auto has = [](const std::vector<std::size_t>& dims, std::size_t dim) {
        return std::find(dims.begin(), dims.end(), dim) != dims.end();
    };
    MatmulDims dims{1, 1, 1, 1};
    for (std::size_t dim = 0; dim < lhs.shape.size(); ++dim) {
        if (has(attributes.lhsBatch, dim))
            dims.batch *= lhs.shape[dim];
        else if (has(attributes.lhsContracting, dim))
            dims.k *= lhs.shape[dim];
        else
            dims.m *= lhs.shape[dim];
    }
    for (std::size_t dim = 0; dim < rhs.shape.size(); ++dim) {
        if (!has(attributes.rhsBatch, dim) && !has(attributes.rhsContracting, dim))
            dims.n *= rhs.shape[dim];
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

OpWork workOf(const Function& function, const Instruction& instruction)
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
        work.precision = attributes.operandType == DType::F32 ? MatmulPrecision::Highest : MatmulPrecision::Default;
    }
    return work;
}

} // namespace meshwright::sim
