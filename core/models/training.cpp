// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace meshwright {

const char* optimizerName(const Optimizer& optimizer)
{
    if (const auto* adam = std::get_if<AdamOptimizer>(&optimizer); adam != nullptr && adam->isAdamW)
        return "adamw";
    constexpr std::array kNames = {"sgd", "adam", "none"};
    static_assert(kNames.size() == std::variant_size_v<Optimizer>);
    return kNames[optimizer.index()];
}

const UpdateChoices* updateChoices(const Optimizer& optimizer)
{
    if (const auto* sgd = std::get_if<SgdOptimizer>(&optimizer))
        return &sgd->update;
    const auto* adam = std::get_if<AdamOptimizer>(&optimizer);
    return adam != nullptr ? &adam->update : nullptr;
}

UpdateChoices* updateChoices(Optimizer& optimizer)
{
    return const_cast<UpdateChoices*>(updateChoices(std::as_const(optimizer)));
}

double learningRateAt(const Optimizer& optimizer, std::int64_t step)
{
    const UpdateChoices* update = updateChoices(optimizer);
    if (update == nullptr)
        return 0.0;
    const auto* sgd = std::get_if<SgdOptimizer>(&optimizer);
    const double peak = sgd != nullptr ? sgd->learningRate : std::get<AdamOptimizer>(optimizer).learningRate;
    const LearningRateSchedule& schedule = update->schedule;
    if (step < schedule.warmupSteps)
        return peak * static_cast<double>(step) / static_cast<double>(schedule.warmupSteps);
    const double span = static_cast<double>(std::max<std::int64_t>(1, schedule.decaySteps - schedule.warmupSteps));
    const double done = std::min(static_cast<double>(step - schedule.warmupSteps) / span, 1.0);
    switch (schedule.kind) {
    case LearningRateSchedule::Kind::Constant:
        break;
    case LearningRateSchedule::Kind::Linear:
        return peak + (schedule.finalRate - peak) * done;
    case LearningRateSchedule::Kind::Cosine:
        return schedule.finalRate + (peak - schedule.finalRate) * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
    }
    return peak;
}

bool countsSteps(const Optimizer& optimizer)
{
    const UpdateChoices* update = updateChoices(optimizer);
    return std::holds_alternative<AdamOptimizer>(optimizer)
        || (update != nullptr && (update->countsSteps || !update->schedule.isPlain()));
}

std::vector<std::string> scalarStates(const Optimizer& optimizer)
{
    std::vector<std::string> names;
    if (countsSteps(optimizer))
        names.emplace_back("opt.step");
    const UpdateChoices* update = updateChoices(optimizer);
    if (update != nullptr && update->lossScale.isDynamic())
        names.insert(names.end(), {"opt.loss_scale", "opt.good_steps"});
    return names;
}

std::vector<ArrayName::Family> stateFamilies(const Optimizer& optimizer)
{
    using enum ArrayName::Family;
    std::vector<ArrayName::Family> families;
    const auto* sgd = std::get_if<SgdOptimizer>(&optimizer);
    if (std::holds_alternative<AdamOptimizer>(optimizer))
        families = {Momentum, SecondMoment};
    else if (sgd != nullptr && sgd->momentum != 0.0)
        families = {Momentum};
    if (const UpdateChoices* update = updateChoices(optimizer); update != nullptr && update->masters)
        families.push_back(Master);
    return families;
}

void leaveShardingGroups(Function& function, std::span<const ValueId> values)
{
    // An optimiser state and what replaces it lie alike: they leave together.
    std::vector<std::pair<ValueId, ValueId>> states;
    std::vector<bool> leaves(function.values.size(), false);
    for (const ValueId value : values)
        leaves[value.at()] = true;
    for (const Donation& donation : function.donations) {
        const ValueId argument = function.arguments()[donation.argument];
        const ValueId result = function.results()[donation.result];
        if (function[argument].role != Role::OptimizerState || (!leaves[argument.at()] && !leaves[result.at()]))
            continue;
        leaves[argument.at()] = leaves[result.at()] = true;
        states.emplace_back(argument, result);
    }
    std::vector<bool> hasLeft(function.values.size(), false);
    for (auto& group : function.shardingGroups) {
        for (const ValueId member : group)
            hasLeft[member.at()] = leaves[member.at()];
        std::erase_if(group, [&](ValueId member) { return leaves[member.at()]; });
    }
    std::erase_if(function.shardingGroups, [](const auto& group) { return group.size() < 2; });
    for (const auto& [argument, result] : states) {
        if (hasLeft[argument.at()] || hasLeft[result.at()])
            function.shardingGroups.push_back({argument, result});
    }
}

} // namespace meshwright
