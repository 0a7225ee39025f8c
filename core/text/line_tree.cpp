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
    std::size_t argument = 0;
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
                names[argument] = inner.isLoop ? own.unique(2) : fmt::format("%arg{}", own.argument++);
            nameLines(inner, own, names);
        }
    }
}

void printRegion(std::string& out, const LineRegion& region, std::size_t indent, const std::vector<std::string>& names);

/// `{`, the label with its arguments if it is shown, the lines, and `}` under the op.
void printBlock(
    std::string& out, const LineRegion& region, bool hasLabel, std::size_t indent, const std::vector<std::string>& names)
{
    out += "{\n";
    if (hasLabel && !region.arguments.empty()) {
        out.append(indent, ' ');
        out += "^bb0(";
        for (std::size_t i = 0; i < region.arguments.size(); ++i)
            fmt::format_to(std::back_inserter(out), "{}{}: {}", i == 0 ? "" : ", ", names[region.arguments[i]], region.types[i]);
        out += "):\n";
    }
    printRegion(out, region, indent + 2, names);
    out.append(indent, ' ');
    out += '}';
}

void printLine(std::string& out, const Line& line, std::size_t indent, const std::vector<std::string>& names)
{
    std::size_t operand = 0;
    std::size_t region = 0;
    for (const char c : line.text) {
        switch (c) {
        case kOperandMark:
            out += names[line.operands[operand++]];
            break;
        case kRegionMark:
        case kLabelMark:
            printBlock(out, line.regions[region++], c == kLabelMark, indent, names);
            break;
        case '\n':
            out += c;
            out.append(indent, ' ');
            break;
        default:
            out += c;
        }
    }
    assert(operand == line.operands.size() && region == line.regions.size());
    out += '\n';
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
        printLine(out, line, indent, names);
    }
}

} // namespace

void printLines(std::string& out, const LineRegion& body, std::size_t indent, std::vector<std::string>& names)
{
    for (std::size_t i = 0; i < body.arguments.size(); ++i)
        names[body.arguments[i]] = fmt::format("%arg{}", i);
    Counters counters;
    counters.argument = body.arguments.size();
    nameLines(body, counters, names);
    printRegion(out, body, indent, names);
}

} // namespace meshwright
