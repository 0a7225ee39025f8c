// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/explain.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace meshwright {

namespace {

constexpr std::size_t kStepsShown = 4;

/// The reasons by value, for walks that are as long as the program is deep.
class ReasonIndex {
public:
    ReasonIndex(const Function& function, const PropagationReport& report)
        : m_begin(function.values.size() + 1, 0)
        , m_reasons(report.reasons.size())
    {
        for (const ShardingReason& reason : report.reasons)
            ++m_begin[reason.value.at() + 1];
        std::partial_sum(m_begin.begin(), m_begin.end(), m_begin.begin());
        std::vector<std::size_t> next = m_begin;
        for (const ShardingReason& reason : report.reasons)
            m_reasons[next[reason.value.at()]++] = &reason;
    }

    /// Why the value has the axis, or a part of it.
    const ShardingReason* find(ValueId value, const AxisRef& axis) const
    {
        for (std::size_t i = m_begin[value.at()]; i < m_begin[value.at() + 1]; ++i) {
            if (m_reasons[i]->axis == axis || overlaps(m_reasons[i]->axis, axis))
                return m_reasons[i];
        }
        return nullptr;
    }

private:
    std::vector<std::size_t> m_begin; ///< of each value, in m_reasons
    std::vector<const ShardingReason*> m_reasons;
};

/// "dot_general and add"; of a long way its first steps and how many more there are.
std::string wayText(const std::vector<std::string>& way)
{
    if (way.size() == 1)
        return way.front();
    const std::size_t shown = way.size() > kStepsShown ? kStepsShown - 1 : way.size() - 1;
    const std::string last = shown + 1 == way.size() ? way.back() : fmt::format("{} more steps", way.size() - shown);
    return fmt::format("{} and {}", fmt::join(way.begin(), way.begin() + static_cast<std::ptrdiff_t>(shown), ", "), last);
}

/// The reason and those behind it, as far as they are known.
std::vector<const ShardingReason*> wayBack(const Function& function, const ReasonIndex& index, const ShardingReason& reason)
{
    std::vector<const ShardingReason*> way = {&reason};
    while (way.back()->from.valid() && way.size() <= function.values.size()) {
        const ShardingReason* before = index.find(way.back()->from, way.back()->axis);
        if (before == nullptr)
            break;
        way.push_back(before);
    }
    return way;
}

std::string originText(const Function& function, const ReasonIndex& index, const ShardingReason& reason)
{
    const auto links = wayBack(function, index, reason);
    const ShardingReason* origin = links.back();
    std::vector<std::string> way;
    for (auto link = links.rbegin(); link != links.rend(); ++link) {
        if ((*link)->from.valid())
            way.push_back((*link)->through.valid() ? std::string(opName(function[(*link)->through])) : (*link)->step);
    }
    if (origin->step == "function result")
        return way.empty() ? fmt::format("asked of {}", reason.annotation)
                           : fmt::format("asked of {}, through {}", reason.annotation, wayText(way));
    if (way.empty())
        return fmt::format("by {}", reason.annotation);
    return fmt::format("from {} ({}) through {}", valueText(function, origin->value), reason.annotation, wayText(way));
}

} // namespace

std::vector<ShardingReason> PropagationReport::reasonsOf(ValueId value) const
{
    std::vector<ShardingReason> own;
    std::copy_if(reasons.begin(), reasons.end(), std::back_inserter(own),
        [&](const ShardingReason& reason) { return reason.value == value; });
    // Within a dimension axes are only ever appended, so the order in which they came is theirs.
    std::stable_sort(own.begin(), own.end(), [](const ShardingReason& a, const ShardingReason& b) { return a.dim < b.dim; });
    return own;
}

std::string axisName(const AxisRef& axis, const Mesh& mesh)
{
    const auto index = static_cast<std::size_t>(axis.axis);
    return axis == wholeAxis(mesh, index) ? mesh.axes()[index].name : axisText(axis, mesh);
}

std::vector<std::vector<ShardingReason>> shardingWays(const Function& function, const PropagationReport& report, ValueId value)
{
    const ReasonIndex index(function, report);
    std::vector<std::vector<ShardingReason>> ways;
    for (const ShardingReason& reason : report.reasonsOf(value)) {
        ways.emplace_back();
        for (const ShardingReason* link : wayBack(function, index, reason))
            ways.back().push_back(*link);
    }
    return ways;
}

std::string explainSharding(const Function& function, const PropagationReport& report, const Mesh& mesh, ValueId value)
{
    const auto& sharding = function[value].sharding;
    const ReasonIndex index(function, report);
    std::vector<std::string> parts;
    for (const ShardingReason& reason : report.reasonsOf(value))
        parts.push_back(
            fmt::format("dim {} by {}, {}", reason.dim, axisName(reason.axis, mesh), originText(function, index, reason)));
    if (parts.empty())
        parts.push_back("no annotation reaches it");
    for (const ShardingConflict& conflict : report.conflicts) {
        if (conflict.value == value)
            parts.push_back(
                fmt::format("dim {} does not have {}: {}", conflict.dim, axisName(conflict.axis, mesh), conflict.reason));
    }
    return fmt::format("{}: {}", sharding ? layoutText(*sharding, mesh) : "no sharding", join(parts, "; "));
}

} // namespace meshwright
