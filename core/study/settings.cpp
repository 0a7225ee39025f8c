// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/document.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

/// One `path=value`, applied to the tree from its root.
class Setting {
public:
    /// Without a value the setting takes away what the path names.
    Setting(std::vector<std::string> path, std::optional<DocNode> value, std::string text)
        : m_path(std::move(path))
        , m_value(value ? *std::move(value) : DocNode{})
        , m_removes(!value)
        , m_text(std::move(text))
    {
    }

    std::optional<Problem> apply(DocNode& root) { return m_removes ? remove(root, 0) : descend(root, 0); }

private:
    /// Sets what `m_path` from `at` on names inside `node`.
    std::optional<Problem> descend(DocNode& node, std::size_t at)
    {
        if (at == m_path.size()) {
            node = std::move(m_value);
            return std::nullopt;
        }
        if (node.kind == DocNode::Kind::List)
            return descendList(node, at);
        if (node.kind == DocNode::Kind::Null) {
            node.kind = DocNode::Kind::Map;
            node.file = m_value.file;
        }
        if (node.kind != DocNode::Kind::Map)
            return refusal(fmt::format("\"{}\" is {}, which has no \"{}\"", joined(0, at), node.kindText(), m_path[at]),
                fmt::format("set \"{}\" itself", joined(0, at)));

        // Keys may have dots themselves (layers.1.w): the longest key that is there wins.
        for (std::size_t end = m_path.size(); end > at; --end) {
            if (DocNode* child = node.find(joined(at, end)))
                return descend(*child, end);
        }
        // Under `sharding` a new name is one key; elsewhere each part is a level.
        const std::size_t end = at > 0 && m_path[0] == "sharding" ? m_path.size() : at + 1;
        DocNode made;
        made.file = m_value.file;
        if (auto problem = descend(made, end))
            return problem;
        node.entries.push_back(DocEntry{joined(at, end), 0, 0, std::move(made)});
        return std::nullopt;
    }

    /// Takes the entry that `m_path` from `at` on names out of `node`; what is not there needs no taking out.
    std::optional<Problem> remove(DocNode& node, std::size_t at)
    {
        if (node.kind == DocNode::Kind::List)
            return refusal("an entry of a list cannot be taken out", fmt::format("set \"{}\" itself", joined(0, at)));
        const std::string rest = joined(at, m_path.size());
        if (std::erase_if(node.entries, [&](const DocEntry& entry) { return entry.key == rest; }) > 0)
            return std::nullopt;
        for (std::size_t end = m_path.size() - 1; end > at; --end) {
            if (DocNode* child = node.find(joined(at, end)))
                return remove(*child, end);
        }
        return std::nullopt;
    }

    std::optional<Problem> descendList(DocNode& node, std::size_t at)
    {
        const auto index = parseInteger(m_path[at]);
        if (!index || *index < 0 || static_cast<std::size_t>(*index) >= node.entries.size())
            return refusal(fmt::format("\"{}\" is a list of {}, and \"{}\" is no entry of it", joined(0, at), node.entries.size(),
                               m_path[at]),
                node.entries.empty() ? std::string("set the list itself")
                                     : fmt::format("name an entry: 0 to {}", node.entries.size() - 1));
        return descend(node.entries[static_cast<std::size_t>(*index)].value, at + 1);
    }

    Problem refusal(std::string message, std::string fix) const
    {
        return Problem{"MW1433", std::move(message), std::move(fix), Place{"--set " + m_text}};
    }

    std::string joined(std::size_t from, std::size_t to) const { return join(std::span(m_path).subspan(from, to - from), "."); }

    std::vector<std::string> m_path;
    DocNode m_value;
    bool m_removes;
    std::string m_text;
};

/// Settings have no lines: the setting itself is the place.
void clearLines(DocNode& node)
{
    node.line = 0;
    node.column = 0;
    for (DocEntry& entry : node.entries) {
        entry.line = 0;
        entry.column = 0;
        clearLines(entry.value);
    }
}

} // namespace

Problems applySettings(DocNode& root, std::span<const std::string> settings)
{
    Problems problems;
    for (const std::string& text : settings) {
        const std::size_t equals = text.find('=');
        std::string pathText(trimmed(std::string_view(text).substr(0, equals)));
        std::erase(pathText, ']');
        std::replace(pathText.begin(), pathText.end(), '[', '.'); // phases[0] is phases.0
        const std::vector<std::string> path = split(pathText, '.');
        if (equals == std::string::npos || std::find(path.begin(), path.end(), std::string()) != path.end()) {
            problems.push_back({"MW1433", fmt::format("\"{}\" is not a setting", text),
                "write path=value, such as train.steps=0 or mesh.data=8", Place{"--set " + text}});
            continue;
        }
        const std::string_view valueText = trimmed(std::string_view(text).substr(equals + 1));
        if (valueText.empty()) {
            if (auto problem = Setting(path, std::nullopt, text).apply(root))
                problems.push_back(*std::move(problem));
            continue;
        }
        Document value = parseDocument(valueText, "--set " + text);
        const bool usable = value.problems.empty();
        append(problems, std::move(value.problems));
        if (!usable)
            continue;
        clearLines(value.root);
        if (auto problem = Setting(path, std::move(value.root), text).apply(root))
            problems.push_back(*std::move(problem));
    }
    return problems;
}

} // namespace meshwright
