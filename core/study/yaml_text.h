// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/document.h"

#include <string>
#include <string_view>

namespace meshwright {

// The small pieces of YAML that studies are written with, shared by the writer and the editor.

/// A space or a tab.
bool isBlank(char c);

/// A list or a mapping with at least one entry.
bool isCollection(const DocNode& node);

/// In double quotes, with YAML's escapes.
std::string inQuotes(std::string_view text);

/// A key or a name as it stands, in quotes where YAML would read something else.
std::string keyText(const std::string& name);

/// Names as a value: `null` for none, one as it stands, more as a list.
std::string namesText(const std::vector<std::string>& names);

/// True for a plain scalar that means something other than text: a number, true, null, None. Quotes would change it.
bool isMoreThanText(std::string_view scalar);

/// Where a value stands, and how its neighbours are written.
struct YamlStyle {
    bool inFlow = false; ///< inside {...} or [...]
    bool json = false; ///< texts and keys in double quotes
    char quote = '\0'; ///< of the value that stood here: kept where it may be
};

/// One line: scalars plain or in quotes as they need, collections in {...} and [...]; `null` for nothing.
std::string valueText(const DocNode& node, const YamlStyle& style);

/// `key: value` on one line.
std::string entryText(const DocEntry& entry, const YamlStyle& style);

/// A whole document in block style, short collections on one line; ends with a newline.
std::string documentText(const DocNode& root);

} // namespace meshwright
