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

/// Of the part that differs of two names, with the one before: of "grad.layers.0-7.w" and "grad.layers.8-15.w" "layers.0-7" and "layers.8-15". None:
/// other parts differ too, or there is none before: it could be any word.
std::optional<Renaming::Part> renamingOfNames(std::string_view a, std::string_view b)
{
    const auto differs = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
    const auto partBefore = [&](std::size_t at) {
        const std::size_t dot = at == 0 ? std::string_view::npos : a.rfind('.', at - 1);
        return dot == std::string_view::npos ? std::size_t{0} : dot;
    };
    std::size_t begin = partBefore(differs);
    begin = partBefore(begin);
    begin += begin > 0 ? 1 : 0;
    const std::size_t endA = std::min(a.find('.', differs), a.size());
    const std::size_t endB = std::min(b.find('.', differs), b.size());
    if (a.substr(endA) != b.substr(endB) || a.substr(begin, endA - begin).find('.') == std::string_view::npos)
        return std::nullopt;
    return Renaming::Part{std::string(a.substr(begin, endA - begin)), std::string(b.substr(begin, endB - begin))};
}

/// All parts of names that differ. None: a name becomes two others.
std::optional<Renaming> renamingOfAll(const Function& function, const Function& other)
{
    Renaming names;
    for (std::size_t i = 0; i < function.values.size(); ++i) {
        const std::string& name = function.values[i].name;
        if (name == other.values[i].name)
            continue;
        auto part = renamingOfNames(name, other.values[i].name);
        if (!part)
            return std::nullopt;
        const auto known = std::ranges::find(names.parts, part->from, &Renaming::Part::from);
        if (known == names.parts.end())
            names.parts.push_back(*std::move(part));
        else if (known->to != part->to)
            return std::nullopt;
    }
    return names;
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
    std::size_t at = 0;
    while (at < text.size()) {
        const bool begins = at == 0 || !isPartOfWord(text[at - 1]);
        const auto part = !begins ? parts.end() : std::ranges::find_if(parts, [&](const Part& one) {
            const std::size_t end = at + one.from.size();
            return text.substr(at).starts_with(one.from) && (end == text.size() || !isPartOfWord(text[end]));
        });
        if (part == parts.end()) {
            made += text[at++];
        } else {
            made += part->to;
            at += part->from.size();
        }
    }
    return made;
}

std::optional<Renaming> renamingOf(const Function& function, const Function& other)
{
    if (function.values.size() != other.values.size() || function.ops.size() != other.ops.size()
        || function.blocks.size() != other.blocks.size())
        return std::nullopt;
    const auto names = renamingOfAll(function, other);
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

Function renamed(Function function, const Renaming& names)
{
    const auto rename = [&](std::string& text) {
        if (!text.empty())
            text = names(text);
    };
    for (Value& value : function.values) {
        rename(value.name);
        rename(value.annotation);
    }
    std::ranges::for_each(function.resultNames, rename);
    for (Op& op : function.ops) {
        if (auto* constraint = std::get_if<ConstraintAttributes>(&op.attributes))
            rename(constraint->origin);
        if (auto* collective = std::get_if<CollectiveAttributes>(&op.attributes)) {
            for (std::string Cause::*text : {&Cause::value, &Cause::op, &Cause::reason, &Cause::annotation})
                rename(collective->cause.*text);
        }
    }
    return function;
}

DeviceFunction renamed(DeviceFunction device, const Renaming& names)
{
    device.function = renamed(std::move(device.function), names);
    return device;
}

} // namespace meshwright
