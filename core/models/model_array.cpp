// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/model_array.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

std::string DimMeaning::text() const
{
    switch (role) {
    case DimRole::Batch:
        return "batch";
    case DimRole::Sequence:
        return "sequence";
    case DimRole::Hidden:
        return "hidden";
    case DimRole::Vocabulary:
        return "vocabulary";
    case DimRole::Positions:
        return "positions";
    case DimRole::Layers:
        return "layers";
    case DimRole::Heads:
        return "heads";
    case DimRole::KeyValueHeads:
        return "key and value heads";
    case DimRole::HeadsOfEach:
        return "heads of each";
    case DimRole::HeadSize:
        return "head size";
    case DimRole::QueryRank:
        return "query rank";
    case DimRole::KeyValueRank:
        return "key and value rank";
    case DimRole::Tokens:
        return "tokens";
    case DimRole::Ffn:
        return "ffn";
    case DimRole::ExpertFfn:
        return "ffn of an expert";
    case DimRole::SharedFfn:
        return "ffn of the shared experts";
    case DimRole::Experts:
        return "experts";
    case DimRole::ExpertHidden:
        return "hidden of experts";
    case DimRole::Groups:
        return "groups";
    case DimRole::Capacity:
        return "capacity";
    case DimRole::LayerInputs:
        return fmt::format("inputs of layer {}", layer);
    case DimRole::LayerOutputs:
        return fmt::format("outputs of layer {}", layer);
    }
    return "";
}

std::optional<std::size_t> dimOf(DimRole role, std::span<const DimMeaning> meaning)
{
    const auto found = std::ranges::find(meaning, role, &DimMeaning::role);
    return found == meaning.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - meaning.begin()));
}

} // namespace meshwright
