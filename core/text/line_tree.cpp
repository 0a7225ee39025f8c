// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/line_tree.h"

#include <fmt/format.h>

#include <array>
#include <cassert>

namespace meshwright {

namespace {

/// The numbers that names are made from; a copy for each region restores them behind it.
struct Counters {
    std::uint32_t value = 0;
    std::uint32_t conflict = 0;
    std::array<bool, 3> used = {}; ///< c, cst, iterArg

    std::string unique(std::size_t index)
    {
        constexpr std::array kNames = {"%c", "%cst", "%iterArg"};
        if (!used[index]) {
            used[index] = true;
            return kNames[index];
        }
        return fmt::format("{}_{}", kNames[index], conflict++);
    }
};

void nameLines(const LineRegion& region, Counters counters, std::vector<std::string>& names)
{
    for (const Line& line : region.lines) {
        if (line.resultCount == 0)
            continue;
        if (line.hint != NameHint::Number) {
            names[line.firstResult] = counters.unique(line.hint == NameHint::Integer ? 0 : 1);
            continue;
        }
        const std::string name = fmt::format("%{}", counters.value++);
        for (std::uint32_t i = 0; i < line.resultCount; ++i)
            names[line.firstResult + i] = line.resultCount == 1 ? name : fmt::format("{}#{}", name, i);
    }
    for (const Line& line : region.lines) {
        for (const LineRegion& inner : line.regions) {
            Counters own = counters;
            for (const TextValue argument : inner.arguments)
                names[argument] = own.unique(2);
            nameLines(inner, own, names);
        }
    }
}

void printRegion(std::string& out, const LineRegion& region, std::size_t indent, const std::vector<std::string>& names)
{
    for (const Line& line : region.lines) {
        out.append(indent, ' ');
        if (line.resultCount == 1)
            out += names[line.firstResult] + " = ";
        else if (line.resultCount > 1) // the first result's name is %4#0
            fmt::format_to(std::back_inserter(out),
                "{}:{} = ", std::string_view(names[line.firstResult]).substr(0, names[line.firstResult].size() - 2),
                line.resultCount);
        if (line.regions.empty()) {
            std::size_t next = 0;
            for (const char c : line.text) {
                if (c == kOperandMark)
                    out += names[line.operands[next++]];
                else
                    out += c;
            }
            assert(next == line.operands.size());
            out += '\n';
            continue;
        }
        const std::vector<TextValue>& arguments = line.regions.front().arguments;
        out += "stablehlo.while(";
        for (std::size_t i = 0; i < arguments.size(); ++i)
            fmt::format_to(
                std::back_inserter(out), "{}{} = {}", i == 0 ? "" : ", ", names[arguments[i]], names[line.operands[i]]);
        out += ')';
        out += line.text;
        out += '\n';
        const std::string margin(indent, ' ');
        out += margin + "cond {\n";
        printRegion(out, line.regions[0], indent + 2, names);
        out += margin + "} do {\n";
        printRegion(out, line.regions[1], indent + 2, names);
        out += margin + "}\n";
    }
}

} // namespace

void printLines(std::string& out, const LineRegion& body, std::size_t indent, std::vector<std::string>& names)
{
    for (std::size_t i = 0; i < body.arguments.size(); ++i)
        names[body.arguments[i]] = fmt::format("%arg{}", i);
    nameLines(body, Counters(), names);
    printRegion(out, body, indent, names);
}

} // namespace meshwright
