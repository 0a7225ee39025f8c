// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/alike_functions.h"

#include <algorithm>
#include <cctype>

namespace meshwright {

namespace {

bool isPartOfWord(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

/// From the part that differs of two names: "layers.0-7.ffn.w" and "layers.8-15.ffn.w". None: other parts differ too.
std::optional<Renaming> renamingOfNames(std::string_view a, std::string_view b)
{
    const auto [differsA, differsB] = std::ranges::mismatch(a, b);
    const auto endOf = [](std::string_view name, std::string_view::iterator from) {
        return static_cast<std::size_t>(std::find(from, name.end(), '.') - name.begin());
    };
    const std::size_t endA = endOf(a, differsA);
    const std::size_t endB = endOf(b, differsB);
    if (a.substr(endA) != b.substr(endB))
        return std::nullopt;
    return Renaming{std::string(a.substr(0, endA)), std::string(b.substr(0, endB))};
}

bool areAlike(const Value& a, const Value& b, const Renaming& names)
{
    return a.role == b.role && a.block == b.block && a.producer == b.producer && a.index == b.index && a.type == b.type
        && a.sharding == b.sharding && a.kept == b.kept && names(a.name) == b.name && names(a.annotation) == b.annotation;
}

bool areAlike(const Op& a, const Op& b, const Renaming& names)
{
    if (a.kind != b.kind || a.phase != b.phase || a.operands != b.operands || a.results != b.results || a.bodies != b.bodies
        || a.block != b.block || a.kept != b.kept)
        return false;
    const auto* constraint = std::get_if<ConstraintAttributes>(&a.attributes);
    if (constraint == nullptr)
        return a.attributes == b.attributes;
    return constraint->sharding == b.as<ConstraintAttributes>().sharding
        && names(constraint->origin) == b.as<ConstraintAttributes>().origin;
}

bool areAlike(const Block& a, const Block& b)
{
    return a.arguments == b.arguments && a.ops == b.ops && a.results == b.results;
}

} // namespace

std::string Renaming::operator()(std::string_view text) const
{
    std::string made;
    while (true) {
        const std::size_t at = text.find(from);
        if (at == std::string_view::npos)
            return made.append(text);
        const std::size_t end = at + from.size();
        const bool isWhole = (at == 0 || !isPartOfWord(text[at - 1])) && (end == text.size() || !isPartOfWord(text[end]));
        made.append(text.substr(0, at)).append(isWhole ? to : from);
        text.remove_prefix(end);
    }
}

std::optional<Renaming> renamingOf(const Function& function, const Function& other)
{
    if (function.values.size() != other.values.size() || function.ops.size() != other.ops.size()
        || function.blocks.size() != other.blocks.size())
        return std::nullopt;
    const auto differs
        = std::ranges::mismatch(function.values, other.values, std::ranges::equal_to{}, &Value::name, &Value::name);
    if (differs.in1 == function.values.end())
        return std::nullopt;
    const auto names = renamingOfNames(differs.in1->name, differs.in2->name);
    if (!names)
        return std::nullopt;
    const auto sameValue = [&](const Value& a, const Value& b) { return areAlike(a, b, *names); };
    const auto sameOp = [&](const Op& a, const Op& b) { return areAlike(a, b, *names); };
    const auto sameName = [&](const std::string& a, const std::string& b) { return (*names)(a) == b; };
    const auto sameDonation
        = [](const Donation& a, const Donation& b) { return a.argument == b.argument && a.result == b.result; };
    const bool isSame
        = std::ranges::equal(function.blocks, other.blocks, [](const Block& a, const Block& b) { return areAlike(a, b); })
        && std::ranges::equal(function.resultNames, other.resultNames, sameName)
        && function.resultShardings == other.resultShardings && function.shardingGroups == other.shardingGroups
        && std::ranges::equal(function.donations, other.donations, sameDonation) && function.kept == other.kept
        && function.resultsKept == other.resultsKept && std::ranges::equal(function.values, other.values, sameValue)
        && std::ranges::equal(function.ops, other.ops, sameOp);
    return isSame ? names : std::nullopt;
}

DeviceFunction renamed(DeviceFunction device, const Renaming& names)
{
    const auto rename = [&](std::string& text) {
        if (!text.empty())
            text = names(text);
    };
    for (Value& value : device.function.values) {
        rename(value.name);
        rename(value.annotation);
    }
    std::ranges::for_each(device.function.resultNames, rename);
    for (Op& op : device.function.ops) {
        if (auto* constraint = std::get_if<ConstraintAttributes>(&op.attributes))
            rename(constraint->origin);
        if (auto* collective = std::get_if<CollectiveAttributes>(&op.attributes)) {
            for (std::string Cause::*text : {&Cause::value, &Cause::op, &Cause::reason, &Cause::annotation})
                rename(collective->cause.*text);
        }
    }
    return device;
}

} // namespace meshwright
