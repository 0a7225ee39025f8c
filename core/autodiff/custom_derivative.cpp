// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/custom_derivative.h"

#include "core/program/transform.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace meshwright {

namespace {

constexpr std::string_view kPrefix = "custom_derivative_of_";

} // namespace

std::string CustomDerivative::name() const
{
    return fmt::format("{}{}", kPrefix, results);
}

CustomDerivative customDerivative(const Op& op)
{
    const auto* computation = std::get_if<ComputationAttributes>(&op.attributes);
    if (computation == nullptr || !computation->name.starts_with(kPrefix))
        return {};
    CustomDerivative found;
    const char* end = computation->name.data() + computation->name.size();
    std::from_chars(computation->name.data() + kPrefix.size(), end, found.results);
    found.inputs = op.results.size() - found.results;
    return found;
}

std::vector<ValueId> addCustomDerivative(Builder& builder, const Function& rule, std::size_t reads,
    const std::vector<ValueId>& values, const std::vector<ValueId>& inputs, const std::vector<ValueId>& read)
{
    std::vector<ValueId> operands = values;
    operands.insert(operands.end(), inputs.begin(), inputs.end());
    operands.insert(operands.end(), read.begin(), read.end());
    for (const ValueId value : values)
        operands.push_back(builder.splat(builder.type(value), 0.0));
    std::vector<TensorType> types;
    for (const ValueId operand : operands)
        types.push_back(builder.type(operand));

    ComputationAttributes attributes;
    attributes.name = CustomDerivative{values.size(), inputs.size()}.name();
    const OpId op = builder.beginOp(OpKind::Computation, std::move(operands), std::move(attributes));
    const std::vector<ValueId> arguments = builder.beginBody(op, types);
    const auto part = [&](std::size_t first, std::size_t count) {
        const auto begin = arguments.begin() + static_cast<std::ptrdiff_t>(first);
        return std::vector<ValueId>(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    const std::size_t firstRead = values.size() + inputs.size();
    std::vector<ValueId> given = part(firstRead, reads);
    const std::vector<ValueId> cotangents = part(firstRead + read.size(), values.size());
    given.insert(given.end(), cotangents.begin(), cotangents.end());
    const std::vector<ValueId> rest = part(firstRead + reads, read.size() - reads);
    given.insert(given.end(), rest.begin(), rest.end());
    std::vector<ValueId> results = part(0, values.size());
    for (const ValueId cotangent : inlineCall(builder, rule, given))
        results.push_back(cotangent);
    types.resize(values.size());
    for (const ValueId input : inputs)
        types.push_back(builder.type(input));
    builder.setResults(std::move(results));
    std::vector<ValueId> made = builder.endOp(op, types);
    made.resize(values.size());
    return made;
}

void dropCustomDerivatives(Function& function)
{
    bool isAny = false;
    forEachOp(function, [&](OpId id) {
        const Op op = function[id];
        for (std::size_t i = 0; i < customDerivative(op).results; ++i) {
            replaceUses(function, op.results[i], op.operands[i]);
            isAny = true;
        }
    });
    if (isAny)
        eraseDeadOps(function);
}

} // namespace meshwright
