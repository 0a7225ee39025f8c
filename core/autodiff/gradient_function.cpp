// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/gradient_function.h"

#include "core/autodiff/differentiate.h"
#include "core/program/transform.h"

#include <fmt/format.h>

namespace meshwright {

namespace {

std::vector<std::size_t> floatingOnes(const Function& function, const std::vector<ValueId>& values)
{
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (isFloating(function[values[i]].type.dtype))
            indices.push_back(i);
    }
    return indices;
}

} // namespace

Result<Function> withGradients(const Function& function, const std::vector<NamedMesh>& meshes)
{
    const std::vector<std::size_t> wrt = floatingOnes(function, function.arguments());
    const std::vector<std::size_t> seeds = floatingOnes(function, function.results());
    if (wrt.empty() || seeds.empty())
        return Problem{"MW1264",
            fmt::format(
                "\"{}\" has no gradient: none of its {} is floating", function.name, wrt.empty() ? "arguments" : "results"),
            "take the gradient of a function of floating values"};
    const auto derivative = differentiate(function, wrt, seeds, {}, meshes);
    if (!derivative)
        return derivative.error();

    Function both;
    both.name = function.name;
    Builder builder(both);
    std::vector<ValueId> arguments;
    for (const ValueId argument : function.arguments()) {
        const Value& from = function[argument];
        arguments.push_back(builder.argument(from.type, from.name, from.role));
        both[arguments.back()].sharding = from.sharding;
        both[arguments.back()].annotation = from.annotation;
    }
    const std::vector<ValueId> forward = inlineCall(builder, derivative->forward, arguments);
    const std::size_t count = function.results().size();
    std::vector<ValueId> inputs(forward.begin() + static_cast<std::ptrdiff_t>(count), forward.end());
    builder.setPhase(Phase::Backward);
    for (const std::size_t seed : seeds)
        inputs.push_back(builder.splat(TensorType(builder.type(forward[seed])), 1.0));
    const std::vector<ValueId> gradients = inlineCall(builder, derivative->backward, inputs);

    std::vector<ValueId> results(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(count));
    results.insert(results.end(), gradients.begin(), gradients.end());
    std::vector<std::string> names = function.resultNames;
    names.resize(count);
    for (std::size_t i = 0; i < count; ++i)
        names[i] = names[i].empty() ? fmt::format("result{}", i) : names[i];
    names.insert(names.end(), derivative->backward.resultNames.begin(), derivative->backward.resultNames.end());
    builder.setResults(std::move(results), std::move(names));
    both.resultShardings = function.resultShardings;
    both.resultShardings.resize(count);
    for (const std::size_t argument : wrt)
        both.resultShardings.push_back(function[function.arguments()[argument]].sharding);
    return both;
}

} // namespace meshwright
