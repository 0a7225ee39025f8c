// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/logical_rules_file.h"

#include "core/study/document.h"

namespace meshwright {

namespace {

Problem wrong(const DocNode& node, const std::string& path, std::string message)
{
    return {"MW1180", std::move(message),
        "write logical_axis_rules: [['batch', 'data'], ['embed', ['fsdp', 'model']], ['kv', null]]", node.place(path)};
}

bool isNone(const DocNode& node)
{
    return node.kind == DocNode::Kind::Null || (node.kind == DocNode::Kind::Scalar && !node.quoted && node.text == "None");
}

Result<LogicalRule> readRule(const DocNode& node, const std::string& path)
{
    const bool isPair = node.kind == DocNode::Kind::List && node.entries.size() == 2
        && node.entries[0].value.kind == DocNode::Kind::Scalar && !node.entries[0].value.text.empty();
    if (!isPair)
        return wrong(node, path, "a rule is a pair of a logical name and mesh axes");
    LogicalRule rule{node.entries[0].value.text, {}};
    const DocNode& target = node.entries[1].value;
    if (isNone(target))
        return rule;
    if (target.kind == DocNode::Kind::Scalar) {
        rule.target.unconstrained = target.text == "UNCONSTRAINED";
        if (!rule.target.unconstrained)
            rule.target.axes.push_back(target.text);
        return rule;
    }
    if (target.kind != DocNode::Kind::List)
        return wrong(target, path, "a rule gives a mesh axis, a list of mesh axes or null");
    for (const DocEntry& axis : target.entries) {
        if (axis.value.kind != DocNode::Kind::Scalar)
            return wrong(axis.value, path, "a rule gives a mesh axis, a list of mesh axes or null");
        rule.target.axes.push_back(axis.value.text);
    }
    return rule;
}

} // namespace

Result<LogicalRules> readLogicalRules(std::string_view text, const std::string& file)
{
    const Document document = parseDocument(text, file);
    if (!document.readable)
        return document.problems;
    const DocNode* list = &document.root;
    std::string path = "rules";
    for (const char* key : {"rules", "logical_axis_rules"}) {
        if (const DocNode* found = document.root.find(key)) {
            list = found;
            path = key;
        }
    }
    if (list->kind != DocNode::Kind::List)
        return wrong(*list, path, "the document has no list of logical axis rules");
    LogicalRules rules;
    Problems problems;
    for (std::size_t i = 0; i < list->entries.size(); ++i) {
        auto rule = readRule(list->entries[i].value, fmt::format("{}[{}]", path, i));
        if (rule)
            rules.push_back(*std::move(rule));
        else
            append(problems, rule.error());
    }
    if (!problems.empty())
        return inFile(std::move(problems), file);
    return rules;
}

} // namespace meshwright
