// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/text.h"

#include <string>
#include <string_view>

/// Shardings as short text for tables of tests: `[{a, ?}, {b:(1)2}p1, {}]`, then optionally ` replicated={c} unreduced={d}`.
namespace meshwright::testing {

inline AxisRefs axesOf(std::string_view text, const Mesh& mesh)
{
    AxisRefs axes;
    for (const std::string& part : split(text, ',')) {
        const std::string_view entry = trimmed(part);
        if (entry.empty() || entry == "?")
            continue;
        const std::size_t colon = entry.find(':');
        const auto index = mesh.findAxis(entry.substr(0, colon));
        assert(index);
        AxisRef axis = wholeAxis(mesh, *index);
        if (colon != std::string_view::npos) {
            const std::size_t close = entry.find(')');
            axis.pre = *parseInteger(entry.substr(colon + 2, close - colon - 2));
            axis.size = *parseInteger(entry.substr(close + 1));
        }
        axes.push_back(axis);
    }
    return axes;
}

inline TensorSharding shardingOf(std::string_view text, const Mesh& mesh)
{
    TensorSharding sharding;
    const std::size_t end = text.find(']');
    std::size_t at = 0;
    while ((at = text.find('{', at)) < end) {
        const std::size_t close = text.find('}', at);
        const std::string_view inner = text.substr(at + 1, close - at - 1);
        DimSharding dim;
        dim.axes = axesOf(inner, mesh);
        dim.open = inner.find('?') != std::string_view::npos;
        if (close + 1 < text.size() && text[close + 1] == 'p')
            dim.priority = text[close + 2] - '0';
        sharding.dims.push_back(dim);
        at = close;
    }
    const auto listAfter = [&](std::string_view title) {
        const std::size_t found = text.find(title);
        if (found == std::string_view::npos)
            return AxisRefs();
        const std::size_t open = found + title.size();
        return axesOf(text.substr(open, text.find('}', open) - open), mesh);
    };
    sharding.replicated = listAfter("replicated={");
    sharding.unreduced = listAfter("unreduced={");
    return sharding;
}

/// As above, without Shardy's quotes; `-` for none.
inline std::string textOf(const std::optional<TensorSharding>& sharding, const Mesh& mesh)
{
    if (!sharding)
        return "-";
    std::string text = shardyText(*sharding, mesh);
    std::erase(text, '"');
    return text;
}

inline void annotate(Function& function, ValueId value, std::string_view text, const Mesh& mesh)
{
    function[value].sharding = shardingOf(text, mesh);
    function[value].annotation = "sharding." + function[value].name;
}

} // namespace meshwright::testing
