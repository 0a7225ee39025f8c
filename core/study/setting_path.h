// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/document.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// One `path=value`, taken apart.
struct Setting {
    std::string text; ///< as it was given
    std::vector<std::string> path; ///< keys and list indices, at least one
    DocNode value; ///< without lines
    bool removes = false; ///< nothing stands after the equals sign
};

/// Problems: MW1433 the text is not a setting; for its value those of `parseDocument`.
Result<Setting> parseSetting(const std::string& text);

/// The parts of a path, indices without their brackets: `phases[0].steps` is phases, 0, steps. Arrays keep theirs: `sharding.params['w']` is sharding,
/// params['w'].
std::vector<std::string> pathParts(std::string_view path);

/// Where a setting leads in a document: through entries that are there, then keys that are not.
struct SettingTarget {
    std::vector<std::size_t> found; ///< the index of the entry on each level, from the root down
    std::vector<std::string> missing; ///< keys to be made below it, outermost first

    /// What stands below the first missing key when the setting is made: mappings around the value. Precondition: a key is missing.
    DocNode made(const Setting& setting) const;
};

/// Problems: MW1433 the path leads into a plain value or past the end of a list.
Result<SettingTarget> findTarget(const DocNode& root, const Setting& setting);

/// Of what nobody wrote in the file, a setting or a document made for a program: nothing in it has a line.
void clearLines(DocNode& node);

/// The node that a list of entry indices leads to. Precondition: they are there.
const DocNode& nodeAt(const DocNode& root, std::span<const std::size_t> entries);
DocNode& nodeAt(DocNode& root, std::span<const std::size_t> entries);

/// Turns a mesh that is written `data=4,model=2` into the mapping that it stands for when the setting leads into it.
/// True when it did.
bool spellOutMesh(DocNode& root, const Setting& setting);

} // namespace meshwright
