// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/activity.h"

#include "core/autodiff/custom_derivative.h"
#include "core/autodiff/derivatives.h"

#include <algorithm>

namespace meshwright {

Activity::Activity(const Function& function, const std::vector<std::size_t>& wrt, const std::vector<std::size_t>& seeds)
    : m_function(function)
    , m_varied(function.values.size(), false)
    , m_useful(function.values.size(), false)
{
    constexpr BlockId kBody{std::int32_t{0}};
    for (const std::size_t argument : wrt)
        mark(m_varied, function.arguments()[argument]);
    markVaried(kBody);
    for (const std::size_t result : seeds)
        mark(m_useful, function.results()[result]);
    markUseful(kBody);
}

bool Activity::mark(std::vector<bool>& marks, ValueId value)
{
    const DType dtype = m_function[value].type.dtype;
    if (marks[value.at()] || !(isFloating(dtype) || isComplex(dtype)))
        return false;
    marks[value.at()] = true;
    return true;
}

bool Activity::any(const std::vector<bool>& marks, const std::vector<ValueId>& values)
{
    return std::any_of(values.begin(), values.end(), [&](ValueId value) { return marks[value.at()]; });
}

bool Activity::markAlike(
    std::vector<bool>& marks, const std::vector<ValueId>& from, const std::vector<ValueId>& to, std::size_t count)
{
    bool changed = false;
    for (std::size_t i = 0; i < count; ++i)
        changed = (marks[from[i].at()] && mark(marks, to[i])) || changed;
    return changed;
}

void Activity::markVaried(BlockId block)
{
    for (const OpId id : m_function[block].ops) {
        const Op& op = m_function[id];
        if (op.kind == OpKind::Repeat) {
            const Block& body = m_function[op.bodies.front()];
            markAlike(m_varied, op.operands, body.arguments, op.operands.size());
            do
                markVaried(op.bodies.front());
            while (markAlike(m_varied, body.results, body.arguments, op.as<RepeatAttributes>().carries));
            markAlike(m_varied, body.results, op.results, op.results.size());
        } else if (const CustomDerivative custom = customDerivative(op); custom.results > 0) {
            const auto first = op.operands.begin() + static_cast<std::ptrdiff_t>(custom.results);
            for (std::size_t i = 0;
                 i < custom.results && any(m_varied, {first, first + static_cast<std::ptrdiff_t>(custom.inputs)}); ++i)
                mark(m_varied, op.results[i]);
        } else if (op.kind == OpKind::Computation) {
            const Block& body = m_function[op.bodies.front()];
            markAlike(m_varied, op.operands, body.arguments, op.operands.size());
            markVaried(op.bodies.front());
            markAlike(m_varied, body.results, op.results, op.results.size());
        } else if (op.kind == OpKind::Case) {
            const std::vector<ValueId> used(op.operands.begin() + 1, op.operands.end());
            for (const BlockId branch : op.bodies) {
                markAlike(m_varied, used, m_function[branch].arguments, used.size());
                markVaried(branch);
                markAlike(m_varied, m_function[branch].results, op.results, op.results.size());
            }
        } else if (any(m_varied, op.operands) && differentiability(m_function, op) != Differentiability::Flat) {
            for (const ValueId result : op.results)
                mark(m_varied, result);
        }
    }
}

void Activity::markUseful(BlockId block)
{
    const auto& ops = m_function[block].ops;
    for (auto at = ops.rbegin(); at != ops.rend(); ++at) {
        const Op& op = m_function[*at];
        if (op.kind == OpKind::Repeat) {
            const Block& body = m_function[op.bodies.front()];
            markAlike(m_useful, op.results, body.results, op.results.size());
            do
                markUseful(op.bodies.front());
            while (markAlike(m_useful, body.arguments, body.results, op.as<RepeatAttributes>().carries));
            markAlike(m_useful, body.arguments, op.operands, op.operands.size());
        } else if (const CustomDerivative custom = customDerivative(op); custom.results > 0) {
            const auto last = op.results.begin() + static_cast<std::ptrdiff_t>(custom.results);
            for (std::size_t i = 0; i < custom.inputs && any(m_useful, {op.results.begin(), last}); ++i)
                mark(m_useful, op.operands[custom.results + i]);
        } else if (op.kind == OpKind::Computation) {
            const Block& body = m_function[op.bodies.front()];
            markAlike(m_useful, op.results, body.results, op.results.size());
            markUseful(op.bodies.front());
            markAlike(m_useful, body.arguments, op.operands, op.operands.size());
        } else if (op.kind == OpKind::Case) {
            for (const BlockId branch : op.bodies) {
                markAlike(m_useful, op.results, m_function[branch].results, op.results.size());
                markUseful(branch);
                for (std::size_t i = 1; i < op.operands.size(); ++i)
                    markAlike(m_useful, {m_function[branch].arguments[i - 1]}, {op.operands[i]}, 1);
            }
        } else if (any(m_useful, op.results) && differentiability(m_function, op) != Differentiability::Flat) {
            for (const ValueId operand : op.operands)
                mark(m_useful, operand);
        }
    }
}

} // namespace meshwright
