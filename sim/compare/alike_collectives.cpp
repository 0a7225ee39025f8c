// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/compare/alike_collectives.h"

#include "core/models/layer_names.h"

#include <map>
#include <tuple>

namespace meshwright::sim {

std::string writtenCause(const std::string& annotation)
{
    const bool isMade = annotation.starts_with('%') || annotation.starts_with("residual.");
    return isMade ? std::string() : annotation;
}

std::vector<AlikeCollectives> alikeCollectives(const std::vector<SimulatedCollective>& step)
{
    // Specs of single layers are told apart: who has written them can change each. What the engine has made differs from piece to piece.
    std::map<std::tuple<OpKind, std::string, std::int64_t, Phase, std::string, std::string>, std::size_t> known;
    std::vector<AlikeCollectives> groups;
    for (std::size_t i = 0; i < step.size(); ++i) {
        const SimulatedCollective& one = step[i];
        const CollectiveUse& use = one.use;
        std::string value = ofAnyLayer(use.cause.value);
        const auto [at, isNew] = known.try_emplace(
            std::tuple(use.kind, use.axes, use.payloadBytes, use.phase, value, ofAnyLoop(writtenCause(use.cause.annotation))),
            groups.size());
        if (isNew) {
            groups.push_back({{i}, one});
            continue;
        }
        AlikeCollectives& group = groups[at->second];
        group.members.push_back(i);
        group.all.use.cause.value = std::move(value);
        group.all.use.count += use.count;
        group.all.seconds += one.seconds;
        group.all.exposedSeconds += one.exposedSeconds;
    }
    for (AlikeCollectives& group : groups) {
        if (group.members.size() > 1)
            group.all.secondsPerCall = group.all.seconds / static_cast<double>(group.all.use.count);
    }
    return groups;
}

} // namespace meshwright::sim
