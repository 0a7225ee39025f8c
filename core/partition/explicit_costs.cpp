// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/explicit_costs.h"

#include "core/partition/device_program.h"
#include "core/program/spoken_op.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace meshwright {

namespace {

constexpr std::size_t kChoicesShown = 6;

/// Without axes of size 1, which place nothing.
TensorSharding placed(TensorSharding sharding)
{
    const auto drop = [](AxisRefs& axes) { std::erase_if(axes, [](const AxisRef& axis) { return axis.size == 1; }); };
    for (DimSharding& dim : sharding.dims)
        drop(dim.axes);
    drop(sharding.unreduced);
    drop(sharding.replicated);
    return sharding;
}

void addWay(PricedChoice& priced, const std::string& moves, const TensorType& type, const TensorSharding& from,
    const TensorSharding& to, const Mesh& mesh, const CollectiveCost& cost)
{
    const TensorSharding start = placed(from);
    const TensorSharding end = placed(to);
    if (start.dims == end.dims && start.unreduced == end.unreduced)
        return;
    const ReshardPlan plan = planReshard(type.shape, byteSize(type.dtype), start, end, mesh, cost);
    priced.cost += plan.cost;
    for (const ReshardStep& step : plan.steps) {
        if (step.kind == OpKind::AllSlice)
            continue;
        priced.steps.push_back({moves, step.kind, step.attributes.axes, step.payloadBytes});
        priced.totalPayloadBytes += step.payloadBytes;
    }
}

} // namespace

std::vector<PricedChoice> pricedChoices(
    const Function& function, const Mesh& mesh, const ExplicitFinding& finding, const CollectiveCost& cost)
{
    const Op& op = function[finding.op];
    std::vector<PricedChoice> all;
    for (const ExplicitChoice& choice : finding.choices) {
        PricedChoice priced;
        priced.choice = choice;
        for (std::size_t i = 0; i < finding.operands.size() && i < choice.operands.size(); ++i) {
            if (finding.operands[i] && choice.operands[i])
                addWay(priced, fmt::format("operand {}", i), function[op.operands[i]].type, *finding.operands[i],
                    *choice.operands[i], mesh, cost);
        }
        addWay(priced, "the result", function[op.results.front()].type, choice.computed, choice.result, mesh, cost);
        all.push_back(std::move(priced));
    }
    std::stable_sort(all.begin(), all.end(), [](const PricedChoice& a, const PricedChoice& b) {
        const bool aPartial = !a.choice.result.unreduced.empty();
        const bool bPartial = !b.choice.result.unreduced.empty();
        return aPartial != bPartial ? bPartial : a.cost < b.cost;
    });
    std::vector<PricedChoice> distinct;
    for (PricedChoice& priced : all) {
        const bool known = std::any_of(distinct.begin(), distinct.end(),
            [&](const PricedChoice& other) { return other.choice.result == priced.choice.result; });
        if (!known)
            distinct.push_back(std::move(priced));
    }
    return distinct;
}

std::string priceText(const PricedChoice& choice, const Mesh& mesh)
{
    std::vector<std::string> steps;
    for (const PricedStep& step : choice.steps) {
        steps.push_back(fmt::format("{}{}{} of {}, {}", spokenOp(step.kind), step.axes.empty() ? "" : " over ",
            step.axes.empty() ? "" : axesText(step.axes, mesh), step.moves, formatBytes(step.payloadBytes)));
    }
    return fmt::format("{}: {}{}", layoutText(choice.choice.result, mesh),
        steps.empty() ? std::string("nothing moves") : join(steps, " and "), steps.empty() ? "" : " per device");
}

void PricingChooser::settle(const Function& function, const Mesh& mesh, ExplicitFinding& finding) const
{
    const std::vector<PricedChoice> priced = pricedChoices(function, mesh, finding, m_cost);
    std::vector<std::string> texts;
    finding.choices.clear();
    for (const PricedChoice& choice : priced) {
        finding.choices.push_back(choice.choice);
        if (texts.size() < kChoicesShown)
            texts.push_back(priceText(choice, mesh));
    }
    finding.problem.fix += fmt::format("; legal results: {}", join(texts, "; "));
    if (priced.size() > kChoicesShown)
        finding.problem.fix += fmt::format("; and {} more expensive ones", priced.size() - kChoicesShown);
}

} // namespace meshwright
