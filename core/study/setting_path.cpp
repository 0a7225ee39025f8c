// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/setting_path.h"

#include "core/mesh/mesh.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

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

namespace {

/// Walks down from the root as far as there is something.
class Descent {
public:
    Descent(const DocNode& root, const Setting& setting)
        : m_node(&root)
        , m_setting(setting)
        , m_path(setting.path)
    {
    }

    Result<SettingTarget> run()
    {
        while (m_at < m_path.size() && m_target.missing.empty()) {
            if (auto problem = step())
                return *std::move(problem);
        }
        return std::move(m_target);
    }

private:
    std::optional<Problem> step()
    {
        switch (m_node->kind) {
        case DocNode::Kind::List:
            return intoList();
        case DocNode::Kind::Map:
            intoMap();
            return std::nullopt;
        case DocNode::Kind::Null:
            addMissing();
            return std::nullopt;
        case DocNode::Kind::Scalar:
            break;
        }
        return refusal(fmt::format("\"{}\" is {}, which has no \"{}\"", joined(0, m_at), m_node->kindText(), m_path[m_at]),
            fmt::format("set \"{}\" itself", joined(0, m_at)));
    }

    std::optional<Problem> intoList()
    {
        const auto index = parseInteger(m_path[m_at]);
        const std::size_t size = m_node->entries.size();
        if (!index || *index < 0 || static_cast<std::size_t>(*index) >= size)
            return refusal(
                fmt::format("\"{}\" is a list of {}, and \"{}\" is not an entry of it", joined(0, m_at), size, m_path[m_at]),
                size == 0 ? std::string("set the list itself") : fmt::format("name an entry: 0 to {}", size - 1));
        enter(static_cast<std::size_t>(*index), m_at + 1);
        return std::nullopt;
    }

    void intoMap()
    {
        // Keys may have dots themselves (layers.1.w): the longest key that is there wins.
        for (std::size_t end = m_path.size(); end > m_at; --end) {
            const std::string key = joined(m_at, end);
            const auto entry = std::find_if(
                m_node->entries.begin(), m_node->entries.end(), [&](const DocEntry& candidate) { return candidate.key == key; });
            if (entry != m_node->entries.end() && !isSpec(entry->value, end)) {
                enter(static_cast<std::size_t>(entry - m_node->entries.begin()), end);
                return;
            }
        }
        addMissing();
    }

    /// A spec of an array, before the end of the path: the path is of another array, whose name goes on (act.layers.attention and its .input).
    bool isSpec(const DocNode& node, std::size_t end) const
    {
        const bool isValue = node.kind == DocNode::Kind::Scalar
            || (node.kind == DocNode::Kind::List && end < m_path.size() && !parseInteger(m_path[end]));
        return isValue && m_path[0] == "sharding" && m_at > 0 && end < m_path.size();
    }

    void enter(std::size_t entry, std::size_t next)
    {
        m_target.found.push_back(entry);
        m_node = &m_node->entries[entry].value;
        m_at = next;
    }

    /// Under `sharding` a new name is one key; elsewhere each part is a level.
    void addMissing()
    {
        while (m_at < m_path.size()) {
            const std::size_t end = m_at > 0 && m_path[0] == "sharding" ? m_path.size() : m_at + 1;
            m_target.missing.push_back(joined(m_at, end));
            m_at = end;
        }
    }

    Problem refusal(std::string message, std::string fix) const
    {
        return Problem{"MW1433", std::move(message), std::move(fix), Place{"--set " + m_setting.text}};
    }

    std::string joined(std::size_t from, std::size_t to) const { return join(std::span(m_path).subspan(from, to - from), "."); }

    const DocNode* m_node;
    const Setting& m_setting;
    const std::vector<std::string>& m_path;
    std::size_t m_at = 0;
    SettingTarget m_target;
};

} // namespace

std::vector<std::string> pathParts(std::string_view path)
{
    std::string dotted(trimmed(path));
    constexpr std::string_view kSharding = "sharding.";
    const std::string_view name = std::string_view(dotted).substr(std::min(kSharding.size(), dotted.size()));
    if (dotted.starts_with(kSharding) && !name.starts_with("match[") && !name.starts_with("rules["))
        return split(dotted, '.'); // a program's array may be called params['w']
    std::erase(dotted, ']');
    std::replace(dotted.begin(), dotted.end(), '[', '.'); // phases[0] is phases.0
    return split(dotted, '.');
}

Result<Setting> parseSetting(const std::string& text)
{
    const std::size_t equals = text.find('=');
    Setting setting{text, pathParts(std::string_view(text).substr(0, equals)), {}, false};
    const auto& path = setting.path;
    if (equals == std::string::npos || std::find(path.begin(), path.end(), std::string()) != path.end())
        return Problem{"MW1433", fmt::format("\"{}\" is not a setting", text),
            "write path=value, such as train.steps=0 or mesh.data=8", Place{"--set " + text}};
    const std::string_view valueText = trimmed(std::string_view(text).substr(equals + 1));
    setting.removes = valueText.empty();
    Document value = parseDocument(valueText, "--set " + text);
    std::erase_if(value.problems, [](const Problem& problem) { return problem.id == "MW1412"; }); // nothing, or null
    if (!value.problems.empty())
        return std::move(value.problems);
    clearLines(value.root);
    setting.value = std::move(value.root);
    return setting;
}

DocNode SettingTarget::made(const Setting& setting) const
{
    DocNode node = setting.value;
    for (std::size_t i = missing.size(); i > 1; --i) {
        DocNode around;
        around.kind = DocNode::Kind::Map;
        around.file = setting.value.file;
        around.entries.push_back(DocEntry{missing[i - 1], 0, 0, std::move(node)});
        node = std::move(around);
    }
    return node;
}

Result<SettingTarget> findTarget(const DocNode& root, const Setting& setting)
{
    return Descent(root, setting).run();
}

const DocNode& nodeAt(const DocNode& root, std::span<const std::size_t> entries)
{
    const DocNode* node = &root;
    for (const std::size_t entry : entries)
        node = &node->entries[entry].value;
    return *node;
}

DocNode& nodeAt(DocNode& root, std::span<const std::size_t> entries)
{
    DocNode* node = &root;
    for (const std::size_t entry : entries)
        node = &node->entries[entry].value;
    return *node;
}

bool spellOutMesh(DocNode& root, const Setting& setting)
{
    DocNode* node = setting.path.size() > 1 && setting.path[0] == "mesh" ? root.find("mesh") : nullptr;
    if (node == nullptr || node->kind != DocNode::Kind::Scalar || node->text.find('=') == std::string::npos)
        return false;
    const auto mesh = parseMesh(node->text);
    if (!mesh)
        return false;
    DocNode map = *node;
    map.kind = DocNode::Kind::Map;
    map.quoted = false;
    map.text.clear();
    for (const MeshAxis& axis : mesh->axes()) {
        DocNode size = *node;
        size.quoted = false;
        size.text = std::to_string(axis.size);
        map.entries.push_back(DocEntry{axis.name, node->line, node->column, std::move(size)});
    }
    *node = std::move(map);
    return true;
}

} // namespace meshwright
