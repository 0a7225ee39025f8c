// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/op.h"

#include <algorithm>
#include <array>

namespace meshwright {

std::optional<OpKind> parseOpKind(std::string_view name)
{
    const auto found = std::find_if(kOpTable.begin(), kOpTable.end(), [&](const OpInfo& info) { return name == info.name(); });
    return found == kOpTable.end() ? std::nullopt : std::optional(found->kind);
}

const KeptAttribute* findAttribute(const KeptAttributes& attributes, std::string_view name)
{
    const auto found = std::find_if(attributes.begin(), attributes.end(), [&](const KeptAttribute& a) { return a.name == name; });
    return found == attributes.end() ? nullptr : &*found;
}

const char* phaseName(Phase phase)
{
    constexpr std::array kNames = {"init", "forward", "backward", "update", "metrics"};
    return kNames[static_cast<std::size_t>(phase)];
}

const char* compareDirectionName(CompareDirection direction)
{
    constexpr std::array kNames = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    return kNames[static_cast<std::size_t>(direction)];
}

} // namespace meshwright
