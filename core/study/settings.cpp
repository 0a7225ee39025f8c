// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/setting_path.h"

namespace meshwright {

namespace {

void removeEntry(DocNode& root, std::span<const std::size_t> path)
{
    DocNode& around = nodeAt(root, path.first(path.size() - 1));
    const std::size_t entry = path.back();
    if (around.kind == DocNode::Kind::Map) {
        around.entries.erase(around.entries.begin() + static_cast<std::ptrdiff_t>(entry));
    } else {
        DocNode nothing;
        nothing.file = around.entries[entry].value.file;
        around.entries[entry].value = std::move(nothing); // the entries after it keep their indices
    }
}

void apply(DocNode& root, Setting setting, const SettingTarget& target)
{
    DocNode& node = nodeAt(root, target.found);
    if (setting.removes) {
        if (target.missing.empty())
            removeEntry(root, target.found);
        return;
    }
    if (target.missing.empty()) {
        node = std::move(setting.value);
        return;
    }
    if (node.kind == DocNode::Kind::Null) {
        node.kind = DocNode::Kind::Map;
        node.file = setting.value.file;
    }
    node.entries.push_back(DocEntry{target.missing.front(), 0, 0, target.made(setting)});
}

} // namespace

Problems applySettings(DocNode& root, std::span<const std::string> settings)
{
    Problems problems;
    for (const std::string& text : settings) {
        auto setting = parseSetting(text);
        if (!setting) {
            append(problems, setting.error());
            continue;
        }
        spellOutMesh(root, *setting);
        const auto target = findTarget(root, *setting);
        if (target)
            apply(root, *std::move(setting), *target);
        else
            append(problems, target.error());
    }
    return problems;
}

} // namespace meshwright
