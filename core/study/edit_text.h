// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// A study's text with settings written into it.
struct EditedText {
    std::string text;
    /// The text could not be edited in place (an alias on the path, say) and was written anew: the same document, but only the comments
    /// before its first line are kept.
    bool rewritten = false;
};

/// Writes settings (`path=value`, see `applySettings`) into a text, in order. All else stays as it was written: comments, order,
/// indentation, quotes, block or flow style. Values are replaced where they stand, new keys go to the end of their mapping in its own style.
/// PartitionSpecs that lacked quotes (MW1409) get them. Reading the edited text gives the same document as `applySettings` on the original.
///
/// Problems: those of `parseDocument` that make the text unreadable, and of `applySettings`; then nothing is edited.
Result<EditedText> editedText(std::string_view text, const std::string& file, std::span<const std::string> settings);

/// The settings with one more. It takes the place of an earlier one on the same path, and removes those on paths below it.
std::vector<std::string> withSetting(std::vector<std::string> settings, const std::string& path, const std::string& value);

/// A text as the value of a setting: in quotes where YAML would read something else than this text.
std::string settingText(std::string_view text);

} // namespace meshwright
