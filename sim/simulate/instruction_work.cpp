// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/instruction_work.h"

#include <algorithm>

namespace meshwright::sim {

ProductShape productShape(const DotAttributes& attributes, const TensorType& lhs, const TensorType& rhs)
{
    const auto has = [](const std::vector<std::size_t>& dims, std::size_t dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); };
    ProductShape shape;
    for (std::size_t dim = 0; dim < lhs.shape.size(); ++dim) {
        if (has(attributes.lhsBatch, dim))
            shape.batch *= lhs.shape[dim];
        else if (has(attributes.lhsContracting, dim))
            shape.k *= lhs.shape[dim];
        else
            shape.m *= lhs.shape[dim];
    }
    for (std::size_t dim = 0; dim < rhs.shape.size(); ++dim) {
        if (!has(attributes.rhsBatch, dim) && !has(attributes.rhsContracting, dim))
            shape.n *= rhs.shape[dim];
    }
    return shape;
}

InstructionWork workOf(const Function& function, const Instruction& instruction)
{
    InstructionWork work;
    for (const ValueId value : instruction.reads)
        work.bytesRead += function[value].type.bytes();
    for (const ValueId value : instruction.writes)
        work.bytesWritten += function[value].type.bytes();
    for (const OpId id : instruction.ops) {
        const Op& op = function[id];
        if (op.kind == OpKind::DotGeneral) {
            const auto& attributes = op.as<DotAttributes>();
            const ProductShape shape = productShape(attributes, function[op.operands[0]].type, function[op.operands[1]].type);
            work.product = shape;
            work.operandType = attributes.operandType;
            work.flops += 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
        } else if (op.kind == OpKind::Reduce) {
            work.flops += static_cast<double>(function[op.operands.front()].type.elements());
        } else if (isElementwise(op.kind)) {
            work.flops += static_cast<double>(function[op.results.front()].type.elements());
        }
    }
    return work;
}

} // namespace meshwright::sim
