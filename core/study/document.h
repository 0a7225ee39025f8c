// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// The largest document that is read, in bytes.
inline constexpr std::size_t kLargestDocumentBytes = std::size_t{8} << 20;
/// The deepest nesting of lists and mappings that is read.
inline constexpr int kDeepestDocument = 64;
/// The most nodes that a document may have, with every alias replaced by what it stands for.
inline constexpr std::size_t kMostDocumentNodes = 1'000'000;

struct DocEntry;

/// One node of a YAML (or JSON) document, with the place where it was written. Aliases are replaced by copies.
struct DocNode {
    enum class Kind : std::uint8_t { Null, Scalar, List, Map };

    Kind kind = Kind::Null;
    bool quoted = false; ///< a scalar in quotes: text, never a number or a truth value
    int line = 0; ///< from 1; 0 when nobody wrote it
    int column = 0;
    std::string text = {}; ///< of a scalar, without quotes and escapes
    std::vector<DocEntry> entries; ///< of a list (keys are empty) or a mapping, in file order; keys are unique
    std::shared_ptr<const std::string> file = {}; ///< the document, or the setting that the node comes from

    const DocNode* find(std::string_view key) const; ///< the value of a key of a mapping; null when there is none
    DocNode* find(std::string_view key);
    Place place(std::string path = {}) const;

    /// "a number", "a list" and so on, for messages.
    std::string kindText() const;
};

struct DocEntry {
    std::string key = {};
    int line = 0; ///< of the key
    int column = 0;
    DocNode value = {};

    Place place(std::string path = {}) const; ///< of the key; of the value in lists
};

/// True when a text begins as a program in MLIR's form does (comments apart), so that it can be no study.
bool looksLikeProgram(std::string_view text);

/// True when both read as the same: equal kinds, keys, order and texts. Places do not count, nor do quotes around what is text without them.
bool sameContent(const DocNode& a, const DocNode& b);

/// What could be read of a document, and all that is wrong with it.
struct Document {
    DocNode root;
    Problems problems;
    bool readable = true; ///< false: the text is not a document at all, and `root` is null
};

/// Reads one YAML document. Never crashes, hangs or takes more memory than the limits above allow, whatever the text.
///
/// Problems: MW1402 the text is not YAML, MW1403 bytes that are not text (not UTF-8, or control characters), MW1404 nested deeper than
/// kDeepestDocument, MW1405 an alias that stands for itself or for nothing, MW1406 larger than the limits, MW1407 several documents in
/// one file, MW1408 a key given twice (the first counts), MW1409 a PartitionSpec without quotes in a `{...}` or `[...]` (it is read as
/// if it had them, so that all else is still checked), MW1410 a tab in the indentation, MW1411 a key that is not text or a tag,
/// MW1412 the document is empty.
Document parseDocument(std::string_view text, const std::string& fileName);

/// Overrides values: each setting is `path=value`, the path keys and list indices joined by dots, the value YAML
/// (`train.steps=0`, `mesh.data=8`, `sharding.layers.1.w=P(None, 'model')`, `phases[0].steps=5`). What the document lacks is added
/// at the end of its mapping; without a value (`sharding.x=`) the key is removed. Problems that the values cause later are placed at
/// the setting.
///
/// Problems: MW1433 a setting that is not of that form or whose path leads into a plain value or past the end of a list;
/// for its value those of `parseDocument`.
Problems applySettings(DocNode& root, std::span<const std::string> settings);

} // namespace meshwright
