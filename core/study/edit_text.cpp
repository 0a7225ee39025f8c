// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/edit_text.h"

#include "core/study/flow_specs.h"
#include "core/study/setting_path.h"
#include "core/study/text_editor.h"
#include "core/study/yaml_text.h"

#include <algorithm>

namespace meshwright {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The comments and empty lines that a text begins with.
std::string_view headOf(std::string_view text)
{
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t content = text.find_first_not_of(" \t\r", at);
        if (content == std::string_view::npos || (text[content] != '#' && text[content] != '\n'))
            break;
        at = std::min(text.size(), text.find('\n', content)) + 1;
    }
    return text.substr(0, at);
}

/// The text with the settings, edited in place; nothing when that is not possible.
std::optional<std::string> editInPlace(std::string text, const std::string& file, std::span<const std::string> settings)
{
    TextEditor editor(std::move(text), file);
    for (const std::string& setting : settings) {
        const auto parsed = parseSetting(setting);
        if (!parsed || !editor.apply(*parsed))
            return std::nullopt;
    }
    return editor.text();
}

/// True when some PartitionSpec is torn apart for want of quotes.
bool lacksQuotes(const Problems& problems)
{
    return std::any_of(problems.begin(), problems.end(), [](const Problem& problem) { return problem.id == "MW1409"; });
}

bool readsAs(std::string_view text, const std::string& file, const DocNode& wanted)
{
    const Document document = parseDocument(text, file);
    return document.readable && !lacksQuotes(document.problems) && sameContent(document.root, wanted);
}

/// True when `path` is `above` or lies below it.
bool isWithin(const std::vector<std::string>& path, const std::vector<std::string>& above)
{
    return path.size() >= above.size() && std::equal(above.begin(), above.end(), path.begin());
}

} // namespace

Result<EditedText> editedText(std::string_view text, const std::string& file, std::span<const std::string> settings)
{
    const Document before = parseDocument(text, file);
    if (!before.readable)
        return before.problems;
    DocNode wanted = before.root;
    if (Problems problems = applySettings(wanted, settings); !problems.empty())
        return problems;

    const std::string_view mark = text.starts_with(kByteOrderMark) ? kByteOrderMark : std::string_view();
    // Quoting may mistake something for a spec: only where one is known to lack its quotes.
    const std::string_view body = text.substr(mark.size());
    const auto edited = editInPlace(lacksQuotes(before.problems) ? quoteSpecs(body).text : std::string(body), file, settings);
    if (edited && readsAs(*edited, file, wanted))
        return EditedText{std::string(mark) + *edited, false};
    EditedText anew{std::string(mark) + std::string(headOf(body)) + documentText(wanted), true};
    Document again = parseDocument(anew.text, file);
    if (!again.readable) // only what is larger than the limits
        return std::move(again.problems);
    return anew;
}

std::vector<std::string> withSetting(std::vector<std::string> settings, const std::string& path, const std::string& value)
{
    const std::vector<std::string> parts = pathParts(path);
    const std::string setting = path + "=" + value;
    bool placed = false;
    std::vector<std::string> result;
    for (std::string& earlier : settings) {
        const std::vector<std::string> its = pathParts(std::string_view(earlier).substr(0, earlier.find('=')));
        if (!isWithin(its, parts)) {
            result.push_back(std::move(earlier));
        } else if (its == parts && !placed) {
            result.push_back(setting);
            placed = true;
        }
    }
    if (!placed)
        result.push_back(setting);
    return result;
}

std::string settingText(std::string_view text)
{
    DocNode scalar;
    scalar.kind = DocNode::Kind::Scalar;
    scalar.quoted = true;
    scalar.text = text;
    return valueText(scalar, YamlStyle{});
}

} // namespace meshwright
