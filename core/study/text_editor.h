// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/setting_path.h"
#include "core/study/yaml_text.h"

#include <optional>
#include <span>
#include <string>

namespace meshwright {

/// Changes single values of a YAML text and leaves every other byte as it is.
///
/// What it does not understand it refuses; what it does is to be checked by reading the text again (`editedText` does).
class TextEditor {
public:
    /// `text` has no byte order mark and is readable (`parseDocument`).
    TextEditor(std::string text, const std::string& file);

    /// Writes a setting into the text; false when that is not possible in place (the text may then be changed in part).
    bool apply(const Setting& setting);

    const std::string& text() const { return m_text; }

private:
    /// Entry indices from the root down to a node.
    using Steps = std::vector<std::size_t>;

    /// Bytes [begin, end) of the text.
    struct Span {
        std::size_t begin = 0;
        std::size_t end = 0;
    };

    /// A value with what surrounds it.
    struct Spot {
        const DocNode* parent = nullptr; ///< null for the root
        const DocEntry* entry = nullptr; ///< null for the root
        const DocNode* node = nullptr;
        bool inFlow = false; ///< the entry stands inside {...} or [...]
    };

    // Changes, each followed by reading the text again. False: not possible in place.
    bool change(const Steps& at, const DocNode& wanted);
    bool changeMap(const Steps& at, const DocNode& wanted);
    bool changeList(const Steps& at, const DocNode& wanted);
    bool renameKeys(const Steps& at, const DocNode& wanted);
    bool replace(const Steps& at, const DocNode& wanted);
    bool replaceBlock(const Spot& spot, Span old, const DocNode& wanted);
    bool add(const Steps& at, const DocEntry& entry);
    bool addToFlow(const Spot& spot, const std::string& item);
    bool addToBlock(const Spot& spot, const DocEntry& entry);
    bool remove(const Steps& at);
    bool removeFromFlow(const Spot& collection, std::size_t index);
    bool removeFromBlock(const Spot& collection, std::size_t index);
    bool put(std::size_t begin, std::size_t end, std::string_view by);

    // Where things are.
    Spot spotOf(const Steps& at) const;
    bool isFlow(const DocNode& node) const;
    bool isBlockCollection(const DocNode& node) const;
    bool isJson(const DocNode& map) const;
    YamlStyle styleOf(const Spot& spot) const;
    std::optional<std::size_t> offsetOf(int line, int column) const;
    std::optional<std::size_t> keyEnd(const DocEntry& entry, bool inFlow) const;
    std::optional<std::size_t> colonEnd(const DocEntry& entry, bool inFlow) const;
    std::optional<std::size_t> itemBegin(const DocNode& collection, std::size_t index) const;
    std::optional<Span> spanOf(const DocEntry& entry, bool inMap, bool inFlow) const;
    std::optional<Span> spanOf(const Spot& spot) const;
    std::optional<Span> spanOfCollection(const DocNode& node) const;
    std::optional<std::size_t> plainEnd(std::size_t begin, std::string_view value, bool inFlow) const;
    std::optional<std::size_t> quotedEnd(std::size_t begin) const;
    std::size_t blockScalarEnd(std::size_t begin) const;
    std::optional<std::size_t> flowEnd(std::size_t begin) const;
    std::size_t afterBlanksAndComments(std::size_t at) const;
    std::size_t lineBegin(std::size_t at) const;
    std::size_t lineEnd(std::size_t at) const; ///< of its content, before the line's end marks
    std::size_t nextLine(std::size_t at) const;
    std::size_t indentAt(std::size_t lineStart) const;
    bool isFirstOnLine(std::size_t at) const;
    std::string newLine() const { return m_text.find("\r\n") != std::string::npos ? "\r\n" : "\n"; }

    std::string m_text;
    std::string m_file;
    DocNode m_root;
};

} // namespace meshwright
