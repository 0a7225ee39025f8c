// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/autodiff/differentiate.h"
#include "core/program/transform.h"
#include "core/program/verify.h"

#include "tests/plain_evaluator.h"
#include "tests/values.h"

#include <QString>

#include <functional>

/// Derivative programs against finite differences.
namespace meshwright::tests {

/// What gives a function its meaning.
using Evaluator = std::function<std::vector<Array>(const Function&, const std::vector<Array>&)>;

inline std::vector<Array> evaluateWithoutMeshes(const Function& function, const std::vector<Array>& arguments)
{
    return evaluatePlainly(function, arguments);
}

/// The gradients that the two programs make, with these cotangents of the seeded results.
inline std::vector<Array> gradientsOf(const Differentiated& derivative, const std::vector<Array>& arguments,
    const std::vector<Array>& cotangents, const Evaluator& evaluator = evaluateWithoutMeshes)
{
    std::vector<Array> forward = evaluator(derivative.forward, arguments);
    const std::size_t residuals = derivative.backward.arguments().size() - cotangents.size();
    std::vector<Array> inputs(forward.end() - static_cast<std::ptrdiff_t>(residuals), forward.end());
    inputs.insert(inputs.end(), cotangents.begin(), cotangents.end());
    return evaluator(derivative.backward, inputs);
}

/// sum over the seeded results of result * cotangent
inline double weighted(
    const std::vector<Array>& results, const std::vector<std::size_t>& seeds, const std::vector<Array>& cotangents)
{
    double sum = 0.0;
    for (std::size_t s = 0; s < seeds.size(); ++s) {
        for (std::size_t i = 0; i < cotangents[s].data.size(); ++i)
            sum += results[seeds[s]].data[i] * cotangents[s].data[i];
    }
    return sum;
}

/// What is wrong with the derivative of `function`; empty when it is right: both programs are well formed, the forward one gives what
/// the function gives, every backward op is marked as such, every residual is read, and each gradient is that of central differences.
inline QString gradientFault(const Function& function, const std::vector<Array>& arguments, const std::vector<std::size_t>& wrt,
    const std::vector<std::size_t>& seeds, double tolerance = 2e-6, const std::vector<NamedMesh>& meshes = {},
    const Evaluator& evaluator = evaluateWithoutMeshes)
{
    const auto derivative = differentiate(function, wrt, seeds, {}, meshes);
    if (!derivative)
        return described(derivative);
    for (const Function* program : {&derivative->forward, &derivative->backward}) {
        if (const Problems problems = verify(*program, meshes); !problems.empty())
            return text(program->name + ": " + describe(problems));
    }
    QString fault;
    forEachOp(derivative->backward, [&](OpId id) {
        if (derivative->backward[id].phase != Phase::Backward)
            fault = QString("an op of another phase: ") + opName(derivative->backward[id].kind);
    });
    const auto uses = useCounts(derivative->backward);
    for (std::size_t i = 0; i + seeds.size() < derivative->backward.arguments().size(); ++i) {
        if (uses[derivative->backward.arguments()[i].at()] == 0)
            fault = QString("residual %1 is not read").arg(i);
    }
    Function pruned = derivative->backward;
    if (eraseDeadOps(pruned) != 0)
        fault = "the backward program has dead ops";
    if (!fault.isEmpty())
        return fault;

    const std::vector<Array> results = evaluator(function, arguments);
    const std::vector<Array> forward = evaluator(derivative->forward, arguments);
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (forward[i].data != results[i].data)
            return QString("result %1 of the forward program differs").arg(i);
    }
    std::vector<Array> cotangents;
    for (std::size_t s = 0; s < seeds.size(); ++s)
        cotangents.push_back(ramp(results[seeds[s]].shape, 0.4 + static_cast<double>(s)));
    const std::vector<Array> gradients = gradientsOf(*derivative, arguments, cotangents, evaluator);
    for (std::size_t w = 0; w < wrt.size(); ++w) {
        for (std::size_t i = 0; i < arguments[wrt[w]].data.size(); ++i) {
            constexpr double kStep = 1e-5;
            std::vector<Array> moved = arguments;
            moved[wrt[w]].data[i] += kStep;
            const double above = weighted(evaluator(function, moved), seeds, cotangents);
            moved[wrt[w]].data[i] -= 2 * kStep;
            const double below = weighted(evaluator(function, moved), seeds, cotangents);
            const double expected = (above - below) / (2 * kStep);
            const double got = gradients[w].data[i];
            if (!(std::abs(got - expected) <= tolerance * std::max(1.0, std::abs(expected))))
                return QString("gradient %1, element %2: %3, finite differences say %4")
                    .arg(wrt[w])
                    .arg(i)
                    .arg(got)
                    .arg(expected);
        }
    }
    return fault;
}

} // namespace meshwright::tests
