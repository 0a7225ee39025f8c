// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/text_editor.h"

#include <algorithm>
#include <set>

namespace meshwright {

namespace {

using Kind = DocNode::Kind;

/// The length of the word for nothing at the start of `text`; 0 when there is none.
std::size_t nullLength(std::string_view text)
{
    for (const std::string_view word : {"null", "Null", "NULL", "~"}) {
        if (text.starts_with(word)
            && (text.size() == word.size() || std::string_view(" \t\r\n,]}#").find(text[word.size()]) != std::string_view::npos))
            return word.size();
    }
    return 0;
}

std::vector<std::string> keysOf(const DocNode& map)
{
    std::vector<std::string> keys;
    for (const DocEntry& entry : map.entries)
        keys.push_back(entry.key);
    return keys;
}

} // namespace

TextEditor::TextEditor(std::string text, const std::string& file)
    : m_text(std::move(text))
    , m_file(file)
    , m_root(parseDocument(m_text, file).root)
{
}

bool TextEditor::apply(const Setting& setting)
{
    DocNode root = m_root;
    if (spellOutMesh(root, setting)) {
        const auto mesh
            = std::find_if(root.entries.begin(), root.entries.end(), [](const DocEntry& e) { return e.key == "mesh"; });
        if (!change({static_cast<std::size_t>(mesh - root.entries.begin())}, mesh->value))
            return false;
    }
    const auto target = findTarget(m_root, setting);
    if (!target)
        return false;
    if (setting.removes) {
        if (!target->missing.empty())
            return true;
        const Spot spot = spotOf(target->found);
        return spot.parent->kind == Kind::Map ? remove(target->found) : change(target->found, DocNode{});
    }
    if (target->missing.empty())
        return change(target->found, setting.value);
    const DocEntry made{target->missing.front(), 0, 0, target->made(setting)};
    const DocNode& around = nodeAt(std::as_const(m_root), target->found);
    if (around.kind == Kind::Map && !around.entries.empty())
        return add(target->found, made);
    DocNode map;
    map.kind = Kind::Map;
    map.entries.push_back(made);
    return replace(target->found, map);
}

// ---- changes

bool TextEditor::put(std::size_t begin, std::size_t end, std::string_view by)
{
    m_text.replace(begin, end - begin, by);
    Document document = parseDocument(m_text, m_file);
    m_root = std::move(document.root);
    return document.readable;
}

bool TextEditor::change(const Steps& at, const DocNode& wanted)
{
    const DocNode& now = nodeAt(std::as_const(m_root), at);
    if (sameContent(now, wanted))
        return true;
    if (isCollection(now) && isCollection(wanted) && now.kind == wanted.kind)
        return now.kind == Kind::Map ? changeMap(at, wanted) : changeList(at, wanted);
    return replace(at, wanted);
}

/// Entry by entry, so that what is around the entries stays.
bool TextEditor::changeMap(const Steps& at, const DocNode& wanted)
{
    const std::vector<std::string> keys = keysOf(nodeAt(std::as_const(m_root), at));
    const std::vector<std::string> wantedKeys = keysOf(wanted);
    std::vector<std::string> kept;
    std::copy_if(
        keys.begin(), keys.end(), std::back_inserter(kept), [&](const std::string& key) { return wanted.find(key) != nullptr; });
    if (kept.size() < keys.size() && keys.size() == wantedKeys.size())
        return renameKeys(at, wanted);
    if (kept.empty() || !std::equal(kept.begin(), kept.end(), wantedKeys.begin()))
        return replace(at, wanted);

    for (std::size_t i = keys.size(); i > 0; --i) {
        Steps entry = at;
        entry.push_back(i - 1);
        if (wanted.find(keys[i - 1]) == nullptr && !remove(entry))
            return false;
    }
    for (std::size_t i = 0; i < wanted.entries.size(); ++i) {
        Steps entry = at;
        entry.push_back(i);
        const bool done = i < kept.size() ? change(entry, wanted.entries[i].value) : add(at, wanted.entries[i]);
        if (!done)
            return false;
    }
    return true;
}

/// Gives each entry the key and the value of the wanted one in its place.
bool TextEditor::renameKeys(const Steps& at, const DocNode& wanted)
{
    const std::vector<std::string> keys = keysOf(nodeAt(std::as_const(m_root), at));
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i] != wanted.entries[i].key && nodeAt(std::as_const(m_root), at).find(wanted.entries[i].key) != nullptr)
            return replace(at, wanted); // two change places
        Steps entry = at;
        entry.push_back(i);
        const Spot spot = spotOf(entry);
        if (keys[i] != wanted.entries[i].key) {
            const auto begin = offsetOf(spot.entry->line, spot.entry->column);
            const auto end = keyEnd(*spot.entry, spot.inFlow);
            const std::string& name = wanted.entries[i].key;
            if (!begin || !end || !put(*begin, *end, m_text[*begin] == '"' ? inQuotes(name) : keyText(name)))
                return false;
        }
        if (!change(entry, wanted.entries[i].value))
            return false;
    }
    return true;
}

bool TextEditor::changeList(const Steps& at, const DocNode& wanted)
{
    const auto size = [&] { return nodeAt(std::as_const(m_root), at).entries.size(); };
    while (size() > wanted.entries.size()) {
        Steps last = at;
        last.push_back(size() - 1);
        if (!remove(last))
            return false;
    }
    for (std::size_t i = 0; i < wanted.entries.size(); ++i) {
        Steps entry = at;
        entry.push_back(i);
        const bool done = i < size() ? change(entry, wanted.entries[i].value) : add(at, wanted.entries[i]);
        if (!done)
            return false;
    }
    return true;
}

bool TextEditor::replace(const Steps& at, const DocNode& wanted)
{
    const Spot spot = spotOf(at);
    const auto old = spot.entry != nullptr ? spanOf(spot) : std::nullopt;
    if (!old)
        return false;
    if (isBlockCollection(*spot.node))
        return replaceBlock(spot, *old, wanted);
    if (old->begin == old->end) // nothing stands after the colon
        return put(old->begin, old->end, " " + valueText(wanted, styleOf(spot)));
    YamlStyle style = styleOf(spot);
    if (spot.node->kind == Kind::Scalar && (m_text[old->begin] == '"' || m_text[old->begin] == '\''))
        style.quote = m_text[old->begin];
    return put(old->begin, old->end, valueText(wanted, style));
}

/// A collection whose entries stand on lines of their own.
bool TextEditor::replaceBlock(const Spot& spot, Span old, const DocNode& wanted)
{
    if (isCollection(wanted) && wanted.kind == spot.node->kind) {
        const std::string margin = newLine() + std::string(old.begin - lineBegin(old.begin), ' ');
        std::string lines;
        for (const DocEntry& entry : wanted.entries) {
            lines += lines.empty() ? "" : margin;
            lines += wanted.kind == Kind::Map ? entryText(entry, YamlStyle{}) : "- " + valueText(entry.value, YamlStyle{});
        }
        return put(old.begin, old.end, lines);
    }
    if (spot.parent->kind == Kind::List)
        return put(old.begin, old.end, valueText(wanted, YamlStyle{}));
    const auto colon = colonEnd(*spot.entry, false);
    const std::size_t from = lineBegin(old.begin);
    if (!colon || from < *colon)
        return false;
    std::string rest = m_text.substr(*colon, from - *colon);
    if (nextLine(old.end) == m_text.size() && m_text.back() != '\n' && rest.ends_with('\n'))
        rest.erase(rest.size() - newLine().size()); // the file had no line end, and keeps none
    return put(*colon, nextLine(old.end), " " + valueText(wanted, YamlStyle{}) + rest);
}

bool TextEditor::add(const Steps& at, const DocEntry& entry)
{
    const Spot spot = spotOf(at);
    if (isBlockCollection(*spot.node))
        return addToBlock(spot, entry);
    YamlStyle style;
    style.inFlow = true;
    style.json = isJson(*spot.node);
    if (spot.node->kind == Kind::Map)
        return addToFlow(spot, entryText(entry, style));
    const auto last = itemBegin(*spot.node, spot.node->entries.size() - 1);
    if (last && m_text[*last] == '"')
        style.json = true;
    return addToFlow(spot, valueText(entry.value, style));
}

bool TextEditor::addToFlow(const Spot& spot, const std::string& item)
{
    const DocNode& node = *spot.node;
    const DocEntry& lastEntry = node.entries.back();
    const auto begin = itemBegin(node, node.entries.size() - 1);
    const auto last = spanOf(lastEntry, node.kind == Kind::Map, true);
    if (!begin || !last)
        return false;
    const std::size_t next = afterBlanksAndComments(last->end);
    const bool trailingComma = next < m_text.size() && m_text[next] == ',';
    const bool ownLine = isFirstOnLine(*begin);
    if (!ownLine)
        return trailingComma ? put(next + 1, next + 1, " " + item) : put(last->end, last->end, ", " + item);
    const std::string line = newLine() + std::string(*begin - lineBegin(*begin), ' ') + item;
    if (trailingComma) {
        const std::size_t end = lineEnd(next);
        return put(end, end, line + ",");
    }
    // The comma goes right behind the last value, the new entry on a line of its own behind its comment.
    const std::size_t end = lineBegin(next) > last->end ? lineEnd(last->end) : last->end;
    return put(last->end, end, "," + m_text.substr(last->end, end - last->end) + line);
}

bool TextEditor::addToBlock(const Spot& spot, const DocEntry& entry)
{
    const DocNode& node = *spot.node;
    const auto span = spanOfCollection(node);
    if (!span)
        return false;
    const std::size_t column = span->begin - lineBegin(span->begin);
    const std::string margin = newLine() + std::string(column, ' ');
    std::string lines = margin;
    if (node.kind == Kind::List) {
        lines += "- " + valueText(entry.value, YamlStyle{});
    } else if (entry.key == "sharding" && isCollection(entry.value) && entry.value.kind == Kind::Map) {
        lines += "sharding:"; // specs need no quotes on lines of their own
        for (const DocEntry& spec : entry.value.entries)
            lines += margin + "  " + entryText(spec, YamlStyle{});
    } else {
        lines += entryText(entry, YamlStyle{});
    }
    std::size_t at = lineEnd(span->end);
    // Comments that are indented like the entries belong to them, others to what follows.
    for (std::size_t line = nextLine(at); column > 0 && line < m_text.size(); line = nextLine(line)) {
        const std::size_t indent = indentAt(line);
        if (indent < column || line + indent >= m_text.size() || m_text[line + indent] != '#')
            break;
        at = lineEnd(line);
    }
    return put(at, at, lines);
}

bool TextEditor::remove(const Steps& at)
{
    const Steps around(at.begin(), at.end() - 1);
    const Spot collection = spotOf(around);
    if (collection.node->entries.size() == 1) {
        DocNode empty;
        empty.kind = collection.node->kind;
        return !around.empty() && replace(around, empty);
    }
    return isBlockCollection(*collection.node) ? removeFromBlock(collection, at.back()) : removeFromFlow(collection, at.back());
}

bool TextEditor::removeFromFlow(const Spot& collection, std::size_t index)
{
    const DocNode& node = *collection.node;
    const bool isMap = node.kind == Kind::Map;
    const auto begin = itemBegin(node, index);
    const auto span = spanOf(node.entries[index], isMap, true);
    if (!begin || !span)
        return false;
    if (index + 1 < node.entries.size()) {
        const auto next = itemBegin(node, index + 1);
        return next && put(*begin, *next, "");
    }
    const auto before = spanOf(node.entries[index - 1], isMap, true);
    return before && put(before->end, span->end, "");
}

bool TextEditor::removeFromBlock(const Spot& collection, std::size_t index)
{
    const DocNode& node = *collection.node;
    const auto begin = itemBegin(node, index);
    const auto span = spanOf(node.entries[index], node.kind == Kind::Map, false);
    if (!begin || !span || !isFirstOnLine(*begin))
        return false;
    return put(lineBegin(*begin), nextLine(span->end), "");
}

// ---- where things are

TextEditor::Spot TextEditor::spotOf(const Steps& at) const
{
    Spot spot;
    spot.node = &m_root;
    for (const std::size_t step : at) {
        spot.inFlow = spot.inFlow || isFlow(*spot.node);
        spot.parent = spot.node;
        spot.entry = &spot.node->entries[step];
        spot.node = &spot.entry->value;
    }
    return spot;
}

bool TextEditor::isFlow(const DocNode& node) const
{
    const auto begin = offsetOf(node.line, node.column);
    return begin && *begin < m_text.size() && (m_text[*begin] == '{' || m_text[*begin] == '[');
}

bool TextEditor::isBlockCollection(const DocNode& node) const
{
    return isCollection(node) && !isFlow(node);
}

/// A mapping whose keys are in double quotes.
bool TextEditor::isJson(const DocNode& map) const
{
    if (map.kind != Kind::Map || map.entries.empty())
        return false;
    const auto key = offsetOf(map.entries.front().line, map.entries.front().column);
    return key && m_text[*key] == '"';
}

YamlStyle TextEditor::styleOf(const Spot& spot) const
{
    return YamlStyle{spot.inFlow, spot.inFlow && isJson(*spot.parent), '\0'};
}

std::optional<std::size_t> TextEditor::offsetOf(int line, int column) const
{
    std::size_t begin = 0;
    for (int i = 1; i < line && begin < m_text.size(); ++i)
        begin = nextLine(begin);
    const std::size_t offset = begin + static_cast<std::size_t>(std::max(0, column - 1));
    if (line < 1 || column < 1 || offset >= m_text.size())
        return std::nullopt;
    return offset;
}

std::optional<std::size_t> TextEditor::keyEnd(const DocEntry& entry, bool inFlow) const
{
    const auto begin = offsetOf(entry.line, entry.column);
    if (!begin)
        return std::nullopt;
    const bool quoted = m_text[*begin] == '"' || m_text[*begin] == '\'';
    return quoted ? quotedEnd(*begin) : plainEnd(*begin, entry.key, inFlow);
}

/// Just behind the colon of an entry.
std::optional<std::size_t> TextEditor::colonEnd(const DocEntry& entry, bool inFlow) const
{
    auto at = keyEnd(entry, inFlow);
    while (at && *at < m_text.size() && isBlank(m_text[*at]))
        ++*at;
    return at && *at < m_text.size() && m_text[*at] == ':' ? std::optional(*at + 1) : std::nullopt;
}

/// Where an entry begins: its key, its dash, or its value in [...].
std::optional<std::size_t> TextEditor::itemBegin(const DocNode& collection, std::size_t index) const
{
    const DocEntry& entry = collection.entries[index];
    const auto begin = offsetOf(entry.line, entry.column);
    if (!begin || collection.kind == Kind::Map || isFlow(collection))
        return begin;
    const std::size_t dash = lineBegin(*begin) + indentAt(lineBegin(*begin));
    return m_text[dash] == '-' ? std::optional(dash) : std::nullopt;
}

std::optional<TextEditor::Span> TextEditor::spanOf(const Spot& spot) const
{
    return spanOf(*spot.entry, spot.parent->kind == Kind::Map, spot.inFlow);
}

std::optional<TextEditor::Span> TextEditor::spanOf(const DocEntry& entry, bool inMap, bool inFlow) const
{
    const std::size_t colon = inMap ? colonEnd(entry, inFlow).value_or(std::string::npos) : 0;
    if (colon == std::string::npos)
        return std::nullopt;
    const DocNode& value = entry.value;
    const auto begin = offsetOf(value.line, value.column);
    const bool placed = begin && *begin >= colon;
    if (value.kind == Kind::Null) {
        const bool sameLine = placed && (!inMap || lineBegin(*begin) == lineBegin(colon));
        if (const std::size_t length = sameLine ? nullLength(std::string_view(m_text).substr(*begin)) : 0; length > 0)
            return Span{*begin, *begin + length};
        return inMap ? std::optional(Span{colon, colon}) : std::nullopt;
    }
    if (!placed || std::string_view("&*!").find(m_text[*begin]) != std::string_view::npos)
        return std::nullopt;
    if (value.kind != Kind::Scalar)
        return spanOfCollection(value);
    std::optional<std::size_t> end;
    if (!value.quoted)
        end = plainEnd(*begin, value.text, inFlow);
    else if (m_text[*begin] == '|' || m_text[*begin] == '>')
        end = blockScalarEnd(*begin);
    else
        end = quotedEnd(*begin);
    return end ? std::optional(Span{*begin, *end}) : std::nullopt;
}

std::optional<TextEditor::Span> TextEditor::spanOfCollection(const DocNode& node) const
{
    if (!isBlockCollection(node)) {
        const auto begin = offsetOf(node.line, node.column);
        const auto end = begin && isFlow(node) ? flowEnd(*begin) : std::nullopt;
        return end ? std::optional(Span{*begin, *end}) : std::nullopt;
    }
    const auto begin = itemBegin(node, 0);
    const auto last = spanOf(node.entries.back(), node.kind == Kind::Map, false);
    return begin && last ? std::optional(Span{*begin, last->end}) : std::nullopt;
}

/// The end of a scalar without quotes; nothing when the text there does not read as `value`.
std::optional<std::size_t> TextEditor::plainEnd(std::size_t begin, std::string_view value, bool inFlow) const
{
    constexpr std::string_view kFlowMarks = ",[]{}";
    std::string folded;
    for (std::size_t at = begin; at < m_text.size();) {
        const std::size_t stop = lineEnd(at);
        std::size_t end = at;
        for (; end < stop; ++end) {
            const char c = m_text[end];
            const char next = end + 1 < stop ? m_text[end + 1] : ' ';
            if ((c == '#' && end > at && isBlank(m_text[end - 1])) || (inFlow && kFlowMarks.find(c) != std::string_view::npos))
                break;
            if (c == ':' && (isBlank(next) || (inFlow && kFlowMarks.find(next) != std::string_view::npos)))
                break;
        }
        const bool wholeLine = end == stop;
        while (end > at && isBlank(m_text[end - 1]))
            --end;
        folded += m_text.substr(at, end - at);
        if (folded == value)
            return end;
        if (!wholeLine || folded.size() >= value.size())
            break;
        folded += ' '; // the scalar goes on: its lines are joined by spaces
        at = nextLine(at);
        at += indentAt(at);
    }
    return std::nullopt;
}

std::optional<std::size_t> TextEditor::quotedEnd(std::size_t begin) const
{
    const char quote = m_text[begin];
    if (quote != '"' && quote != '\'')
        return std::nullopt;
    for (std::size_t at = begin + 1; at < m_text.size(); ++at) {
        if (quote == '"' && m_text[at] == '\\')
            ++at;
        else if (m_text[at] == quote && quote == '\'' && m_text.compare(at, 2, "''") == 0)
            ++at;
        else if (m_text[at] == quote)
            return at + 1;
    }
    return std::nullopt;
}

/// The end of the last line of a scalar that `|` or `>` begins: its lines are indented more than the one with the mark.
std::size_t TextEditor::blockScalarEnd(std::size_t begin) const
{
    const std::size_t indent = indentAt(lineBegin(begin));
    std::size_t end = lineEnd(begin);
    for (std::size_t line = nextLine(begin); line < m_text.size(); line = nextLine(line)) {
        const bool empty = line + indentAt(line) >= lineEnd(line);
        if (!empty && indentAt(line) <= indent)
            break;
        if (!empty)
            end = lineEnd(line);
    }
    return end;
}

/// Just behind the bracket that closes the one at `begin`.
std::optional<std::size_t> TextEditor::flowEnd(std::size_t begin) const
{
    int depth = 0;
    for (std::size_t at = begin; at < m_text.size(); ++at) {
        const char c = m_text[at];
        const char before = at > 0 ? m_text[at - 1] : ' ';
        const bool mayStart
            = isBlank(before) || before == '\n' || std::string_view("[{,:").find(before) != std::string_view::npos;
        if ((c == '"' || c == '\'') && mayStart) {
            const auto end = quotedEnd(at);
            if (!end)
                return std::nullopt;
            at = *end - 1;
        } else if (c == '#' && (isBlank(before) || before == '\n')) {
            at = lineEnd(at);
        } else if (c == '{' || c == '[') {
            ++depth;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            return at + 1;
        }
    }
    return std::nullopt;
}

std::size_t TextEditor::afterBlanksAndComments(std::size_t at) const
{
    while (at < m_text.size()) {
        if (m_text[at] == '#')
            at = lineEnd(at);
        else if (isBlank(m_text[at]) || m_text[at] == '\r' || m_text[at] == '\n')
            ++at;
        else
            break;
    }
    return at;
}

std::size_t TextEditor::lineBegin(std::size_t at) const
{
    const std::size_t before = at == 0 ? std::string::npos : m_text.rfind('\n', at - 1);
    return before == std::string::npos ? 0 : before + 1;
}

std::size_t TextEditor::lineEnd(std::size_t at) const
{
    const std::size_t end = std::min(m_text.size(), m_text.find('\n', at));
    return end > at && end > 0 && m_text[end - 1] == '\r' ? end - 1 : end;
}

std::size_t TextEditor::nextLine(std::size_t at) const
{
    const std::size_t end = m_text.find('\n', at);
    return end == std::string::npos ? m_text.size() : end + 1;
}

/// How many blanks a line begins with.
std::size_t TextEditor::indentAt(std::size_t lineStart) const
{
    std::size_t at = lineStart;
    while (at < m_text.size() && isBlank(m_text[at]))
        ++at;
    return at - lineStart;
}

bool TextEditor::isFirstOnLine(std::size_t at) const
{
    return lineBegin(at) + indentAt(lineBegin(at)) == at;
}

} // namespace meshwright
