// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/logical_axes.h"

#include "core/support/text.h"
#include "core/support/text_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <set>

namespace meshwright {

namespace {

/// Reads nested lists of names.
class RuleReader {
public:
    explicit RuleReader(std::string_view text)
        : m_cursor(text)
    {
    }

    Result<LogicalRules> rules()
    {
        LogicalRules rules;
        const auto outer = open();
        if (!outer)
            return expected("\"[\" or \"(\"");
        while (!m_cursor.take(*outer)) {
            const auto inner = open();
            if (!inner)
                return expected("a rule such as ['batch', 'data']");
            LogicalRule rule;
            const auto name = readName();
            if (!name || name->name.empty() || !m_cursor.take(","))
                return expected("the name of a logical axis and \",\"");
            rule.name = name->name;
            if (!readTarget(rule.target))
                return expected("a mesh axis, a list of them or None");
            m_cursor.take(",");
            if (!m_cursor.take(*inner))
                return expected("the end of the rule");
            rules.push_back(std::move(rule));
            if (!m_cursor.take(",") && !m_cursor.peek(*outer))
                return expected("\",\" or the end of the rules");
        }
        if (!m_cursor.atEnd())
            return expected("the end of the rules");
        return rules;
    }

    Result<LogicalNames> names()
    {
        LogicalNames names;
        const auto close = open();
        if (!close)
            return expected("\"(\" or \"[\"");
        while (!m_cursor.take(*close)) {
            auto name = readName();
            if (!name)
                return expected("the name of a logical axis or None");
            names.push_back(*std::move(name));
            if (!m_cursor.take(",") && !m_cursor.peek(*close))
                return expected("\",\" or the end of the names");
        }
        if (!m_cursor.atEnd())
            return expected("the end of the names");
        return names;
    }

private:
    Problem expected(const char* wanted)
    {
        return m_cursor.expected("MW1180", "list of rules or names", wanted,
            "write rules as [['batch', 'data'], ['embed', ['fsdp', 'model']]], names as ('batch', None)");
    }

    std::optional<const char*> open()
    {
        return m_cursor.take("[") ? std::optional("]") : m_cursor.take("(") ? std::optional(")") : std::nullopt;
    }

    std::optional<LogicalName> readName()
    {
        if (auto quoted = m_cursor.quoted())
            return quoted->empty() ? std::nullopt : std::optional(LogicalName{*std::move(quoted), false});
        const std::size_t at = m_cursor.at();
        m_cursor.take("P.") || m_cursor.take("PartitionSpec.");
        const std::string word(m_cursor.word());
        if (word == "UNCONSTRAINED")
            return LogicalName{{}, true};
        if (word == "None" || word == "null")
            return LogicalName{};
        if (word.empty()) {
            m_cursor.goTo(at);
            return std::nullopt;
        }
        return LogicalName{word, false};
    }

    bool readTarget(LogicalTarget& target)
    {
        const auto close = open();
        if (!close) {
            const auto name = readName();
            if (!name)
                return false;
            target.unconstrained = name->unconstrained;
            if (!name->name.empty())
                target.axes.push_back(name->name);
            return true;
        }
        while (!m_cursor.take(*close)) {
            const auto name = readName();
            if (!name || name->name.empty())
                return false;
            target.axes.push_back(name->name);
            if (!m_cursor.take(",") && !m_cursor.peek(*close))
                return false;
        }
        return true;
    }

    TextCursor m_cursor;
};

std::string targetText(const LogicalTarget& target)
{
    if (target.unconstrained)
        return "UNCONSTRAINED";
    if (target.axes.empty())
        return "None";
    return target.axes.size() == 1 ? target.axes.front() : fmt::format("[{}]", join(target.axes, ", "));
}

std::string ruleText(const LogicalRule& rule, std::size_t index)
{
    return fmt::format("rule {} ({} -> {})", index + 1, rule.name, targetText(rule.target));
}

std::string dimText(std::size_t dim, const LogicalNames& names)
{
    return fmt::format("dim {} ({})", dim, names[dim].name);
}

} // namespace

Result<LogicalRules> parseLogicalRules(std::string_view text)
{
    return RuleReader(text).rules();
}

Result<LogicalNames> parseLogicalNames(std::string_view text)
{
    return RuleReader(text).names();
}

Result<LogicalDecision> linenAxes(const LogicalNames& names, const LogicalRules& rules)
{
    std::map<std::string, std::size_t> dimOfName;
    std::set<std::string> twice;
    LogicalDecision decision;
    decision.spec.dims.resize(names.size());
    // What is assigned: names of None and UNCONSTRAINED pass through.
    std::vector<bool> assigned(names.size(), false);
    for (std::size_t dim = 0; dim < names.size(); ++dim) {
        if (names[dim].name.empty()) {
            assigned[dim] = true;
            decision.spec.dims[dim].unconstrained = names[dim].unconstrained;
        } else if (!dimOfName.emplace(names[dim].name, dim).second) {
            twice.insert(names[dim].name);
        }
    }
    if (!twice.empty())
        return Problem{"MW1181",
            fmt::format("dimensions {} occur more than once in array names",
                join(std::vector<std::string>(twice.begin(), twice.end()), ", ")),
            "give each dimension a name of its own, or None"};

    std::map<std::string, std::size_t> userOfAxis;
    for (std::size_t index = 0; index < rules.size(); ++index) {
        const LogicalRule& rule = rules[index];
        const auto found = dimOfName.find(rule.name);
        if (found == dimOfName.end()) {
            decision.trace.push_back({LogicalVerdict::NameAbsent, index, {}, {},
                fmt::format("{}: the array has no such dimension", ruleText(rule, index))});
            continue;
        }
        const std::size_t dim = found->second;
        if (assigned[dim]) {
            decision.trace.push_back({LogicalVerdict::AlreadyAssigned, index, dim, {},
                fmt::format("{}: {} has its axes already", ruleText(rule, index), dimText(dim, names))});
            continue;
        }
        const auto taken = std::find_if(
            rule.target.axes.begin(), rule.target.axes.end(), [&](const std::string& axis) { return userOfAxis.contains(axis); });
        if (taken != rule.target.axes.end()) {
            const std::size_t user = userOfAxis.at(*taken);
            decision.trace.push_back({LogicalVerdict::AxisTaken, index, dim, user,
                fmt::format("{}: refused for {}, {} is used by {}", ruleText(rule, index), dimText(dim, names), *taken,
                    dimText(user, names))});
            continue;
        }
        assigned[dim] = true;
        decision.spec.dims[dim] = {rule.target.axes, rule.target.unconstrained};
        for (const std::string& axis : rule.target.axes)
            userOfAxis[axis] = dim;
        decision.trace.push_back({LogicalVerdict::Applied, index, dim, {},
            fmt::format("{}: {} gets {}", ruleText(rule, index), dimText(dim, names), targetText(rule.target))});
    }
    for (std::size_t dim = 0; dim < names.size(); ++dim) {
        if (!assigned[dim]) {
            decision.unmatched.push_back(dim);
            decision.trace.push_back({LogicalVerdict::NoRule, {}, dim, {},
                fmt::format("{} is not sharded: no rule applied to it", dimText(dim, names))});
        }
    }
    return decision;
}

Result<LogicalDecision> nnxAxes(const LogicalNames& names, const LogicalRules& context, const LogicalRules& local)
{
    LogicalRules rules = context;
    rules.insert(rules.end(), local.begin(), local.end());
    Problems problems;
    std::map<std::string, std::size_t> ruleOfName;
    for (std::size_t index = 0; index < context.size(); ++index)
        ruleOfName[context[index].name] = index; // a dictionary: the last of a name stays
    std::map<std::string, std::size_t> localOfName;
    for (std::size_t index = context.size(); index < rules.size(); ++index)
        localOfName[rules[index].name] = index;
    for (const auto& [name, index] : localOfName) {
        const auto other = ruleOfName.find(name);
        if (other != ruleOfName.end() && rules[other->second].target != rules[index].target)
            problems.push_back({"MW1183",
                fmt::format("inconsistent logical axis annotations for {}: {} and {}", name,
                    targetText(rules[other->second].target), targetText(rules[index].target)),
                "give the name one target, in the context or with the variable"});
        ruleOfName[name] = index;
    }
    if (!problems.empty())
        return problems;

    LogicalDecision decision;
    for (std::size_t dim = 0; dim < names.size(); ++dim) {
        const LogicalName& name = names[dim];
        JaxSpec::Entry entry;
        entry.unconstrained = name.unconstrained;
        const auto rule = ruleOfName.find(name.name);
        if (!name.name.empty() && rule != ruleOfName.end()) {
            const LogicalTarget& target = rules[rule->second].target;
            entry = {target.axes, target.unconstrained};
            decision.trace.push_back({LogicalVerdict::Renamed, rule->second, dim, {},
                fmt::format(
                    "{}: {} is {}", ruleText(rules[rule->second], rule->second), dimText(dim, names), targetText(target))});
        } else if (!name.name.empty()) {
            entry.axes = {name.name};
            decision.unmatched.push_back(dim);
            decision.trace.push_back({LogicalVerdict::Kept, {}, dim, {},
                fmt::format("{} has no rule and is taken for a mesh axis", dimText(dim, names))});
        }
        decision.spec.dims.push_back(std::move(entry));
    }
    return decision;
}

LogicalNames stackedNames(const LogicalNames& names, const std::string& layerName, std::int64_t at)
{
    const auto rank = static_cast<std::int64_t>(names.size());
    const std::int64_t place = at < 0 ? at + rank + 1 : at;
    assert(place >= 0 && place <= rank);
    LogicalNames stacked = names;
    stacked.insert(stacked.begin() + place, {layerName, false});
    return stacked;
}

std::vector<std::string> dropAbsentAxes(JaxSpec& spec, const Mesh& mesh)
{
    std::vector<std::string> dropped;
    for (JaxSpec::Entry& entry : spec.dims) {
        std::erase_if(entry.axes, [&](const std::string& axis) {
            const bool absent = !mesh.findAxis(axis);
            if (absent)
                dropped.push_back(axis);
            return absent;
        });
    }
    return dropped;
}

} // namespace meshwright
