// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/pages/page.h"

#include "core/support/json_text.h"
#include "core/support/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace meshwright::pages {

namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> linesOf(const std::string& text)
{
    std::vector<std::string> lines = split(text, '\n');
    for (std::string& line : lines) {
        if (line.ends_with('\r'))
            line.pop_back();
    }
    return lines;
}

std::size_t indentOf(const std::string& line)
{
    return std::min(line.find_first_not_of(" \t"), line.size());
}

/// Lines without empty ones at either end.
std::string joined(std::vector<std::string> lines)
{
    const auto isEmpty = [](const std::string& line) { return trimmed(line).empty(); };
    while (!lines.empty() && isEmpty(lines.back()))
        lines.pop_back();
    lines.erase(lines.begin(), std::find_if_not(lines.begin(), lines.end(), isEmpty));
    return join(lines, "\n");
}

/// What is printed between the prompts of Python's own terminal: the lines that are neither `>>>` nor the `...` after them, nor blank. Nothing: the lines do
/// not begin with a prompt, or nothing is printed.
std::optional<std::string> printedBetweenPrompts(const std::vector<std::string>& lines)
{
    const auto isBlank = [](const std::string& line) { return trimmed(line).empty(); };
    const auto first = std::find_if_not(lines.begin(), lines.end(), isBlank);
    if (first == lines.end() || !first->starts_with(">>>"))
        return std::nullopt;
    std::vector<std::string> printed;
    bool isInput = false;
    for (const std::string& line : lines) {
        isInput = line.starts_with(">>>") || (isInput && line.starts_with("..."));
        if (!isInput && !isBlank(line))
            printed.push_back(line);
    }
    return printed.empty() ? std::nullopt : std::optional(joined(std::move(printed)));
}

/// Words that were read since the cell before are the cell's, and are none any more.
void addCell(Page& page, std::vector<std::string> lines, int line)
{
    std::optional<std::string> printed = printedBetweenPrompts(lines);
    if (std::string source = joined(std::move(lines)); !source.empty())
        page.cells.push_back({std::move(source), std::exchange(page.after, {}), std::move(printed), line});
}

/// The language that the line after a fence's backticks names: "python", "{code-cell}".
std::string languageOf(std::string_view info)
{
    std::string word(trimmed(info));
    word = word.substr(0, word.find_first_of(" \t,"));
    return lowerCase(word);
}

/// Without MyST's options, `:key: value` lines or a block between `---`.
std::vector<std::string> withoutOptions(std::vector<std::string> lines)
{
    auto body = lines.begin();
    if (body != lines.end() && trimmed(*body) == "---") {
        const auto end = std::find_if(body + 1, lines.end(), [](const std::string& line) { return trimmed(line) == "---"; });
        body = end == lines.end() ? body : end + 1;
    }
    while (body != lines.end() && body->starts_with(':'))
        ++body;
    lines.erase(lines.begin(), body);
    return lines;
}

/// The rest of a line after `name:`; nothing when it begins otherwise.
std::optional<std::string> afterName(const std::string& line, std::string_view name)
{
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':')
        return std::nullopt;
    return std::string(trimmed(std::string_view(line).substr(name.size() + 1)));
}

/// Problems: MW1568.
Result<Done> addQuestion(Page& page, const std::vector<std::string>& lines, int line)
{
    Question question;
    std::string answer;
    std::string* part = &question.text;
    for (const std::string& text : lines) {
        std::optional<std::string> rest;
        if ((rest = afterName(text, "answer")))
            part = &answer;
        else if ((rest = afterName(text, "check")))
            part = &question.check;
        else if ((rest = afterName(text, "why")))
            part = &question.why;
        else if ((rest = afterName(text, "hint")))
            part = &question.hints.emplace_back();
        *part += (part->empty() ? "" : "\n") + rest.value_or(text);
    }
    for (std::string* one : {&question.text, &question.check, &question.why})
        *one = std::string(trimmed(*one));
    for (std::string& hint : question.hints)
        hint = std::string(trimmed(hint));
    answer = std::string(trimmed(answer));
    if (answer.empty())
        return Problem{
            "MW1568", "the question has no answer", "write answer: and an expression that computes it", Place{"", line}};
    page.cells.push_back({std::move(answer), std::exchange(page.after, {}), std::nullopt, line, std::move(question)});
    return Done{};
}

/// Problems: MW1568.
Result<Done> readMarkdown(Page& page)
{
    constexpr std::array kPython = {"python", "python3", "py", "ipython", "ipython3", "{python}"};
    const bool isMyst = page.text.find("```{code-cell}") != std::string::npos;
    const std::vector<std::string> lines = linesOf(page.text);
    std::size_t start = 0; // behind the block of metadata
    if (!lines.empty() && lines.front() == "---") {
        const auto end = std::find(lines.begin() + 1, lines.end(), "---");
        start = end == lines.end() ? 0 : static_cast<std::size_t>(end - lines.begin()) + 1;
        for (std::size_t i = 1; i < start; ++i)
            page.hardware = afterName(lines[i], "hardware").value_or(page.hardware);
    }
    for (std::size_t i = start; i < lines.size(); ++i) {
        const std::size_t indent = indentOf(lines[i]);
        const std::string_view opening = std::string_view(lines[i]).substr(indent);
        const char mark = opening.empty() ? ' ' : opening.front();
        const std::size_t length = std::min(opening.find_first_not_of(mark), opening.size());
        if ((mark != '`' && mark != '~') || length < 3) {
            if (lines[i] != "+++") // where MyST ends a cell of words
                page.after += lines[i] + "\n";
            continue;
        }
        const std::string language = languageOf(opening.substr(length));
        const std::size_t first = i + 1;
        std::vector<std::string> body;
        for (++i; i < lines.size(); ++i) {
            const std::string_view line = trimmed(lines[i]);
            if (line.size() >= length && line.find_first_not_of(mark) == std::string_view::npos)
                break;
            body.push_back(lines[i].substr(std::min(indent, indentOf(lines[i]))));
        }
        const bool isCell = language == "{code-cell}";
        if (isCell)
            body = withoutOptions(std::move(body));
        if (language == "question") {
            if (const auto added = addQuestion(page, body, static_cast<int>(first) + 1); !added)
                return added.error();
        } else if (isCell || (!isMyst && std::find(kPython.begin(), kPython.end(), language) != kPython.end()))
            addCell(page, std::move(body), static_cast<int>(first) + 1);
    }
    return Done{};
}

bool isCellMark(const std::string& line)
{
    return line.starts_with("# %%") || line.starts_with("#%%");
}

void readScript(Page& page)
{
    std::vector<std::string> body;
    bool isText = false;
    int first = 1;
    int number = 0;
    const auto finish = [&](int next) {
        if (!isText)
            addCell(page, std::move(body), first);
        for (const std::string& line : isText ? body : std::vector<std::string>())
            page.after += line.substr(std::min(line.size(), line.find_first_not_of("# "))) + "\n";
        body.clear();
        first = next;
    };
    for (const std::string& line : linesOf(page.text)) {
        ++number;
        if (isCellMark(line)) {
            finish(number + 1);
            isText = line.find("[markdown]") != std::string::npos || line.find("[md]") != std::string::npos;
        } else {
            body.push_back(line);
        }
    }
    finish(number);
}

/// The rest of a line after `In [12]:` or `Out[12]:`; nothing when it does not begin so.
std::optional<std::string> afterPrompt(const std::string& line, std::string_view word)
{
    if (!line.starts_with(word))
        return std::nullopt;
    const std::size_t close = line.find("]:", word.size());
    const std::string_view number = std::string_view(line).substr(word.size(), close - word.size());
    if (close == std::string::npos || (!trimmed(number).empty() && !parseInteger(trimmed(number))))
        return std::nullopt;
    std::string rest = line.substr(close + 2);
    return rest.starts_with(' ') ? rest.substr(1) : rest;
}

bool isPrompt(const std::string& line)
{
    return afterPrompt(line, "In [").has_value();
}

bool hasLine(const std::string& text, bool (*isWanted)(const std::string&))
{
    const std::vector<std::string> lines = linesOf(text);
    return std::any_of(lines.begin(), lines.end(), isWanted);
}

void readTranscript(Page& page)
{
    std::vector<std::string> body;
    std::optional<std::vector<std::string>> printed;
    bool isInCell = false;
    int first = 0;
    int number = 0;
    const auto finish = [&] {
        const std::size_t before = page.cells.size();
        if (isInCell)
            addCell(page, body, first);
        if (printed && page.cells.size() > before)
            page.cells.back().printed = joined(*printed);
    };
    for (const std::string& line : linesOf(page.text)) {
        ++number;
        if (const auto input = afterPrompt(line, "In [")) {
            finish();
            body = {*input};
            printed.reset();
            isInCell = true;
            first = trimmed(*input).empty() ? number + 1 : number;
        } else if (const auto output = afterPrompt(line, "Out[")) {
            printed = printed.value_or(std::vector<std::string>());
            printed->push_back(*output);
        } else if (printed) {
            printed->push_back(line);
        } else {
            const std::string_view plain = trimmed(line);
            const std::size_t dots
                = plain.starts_with("...:") ? line.find("...:") + 4 : 0; // IPython's mark of a line that goes on
            body.push_back(dots == 0 ? line : line.substr(std::min(line.size(), dots + 1)));
        }
    }
    finish();
}

/// A value of a notebook that is a string, or a list of strings.
std::string stringOf(const Json& value)
{
    if (value.is_string())
        return value.get<std::string>();
    std::string text;
    for (const Json& part : value.is_array() ? value : Json::array())
        text += part.is_string() ? part.get<std::string>() : std::string();
    return text;
}

/// Whether an output is a picture, beside which stands what its object would print: <Figure size 640x480 with 1 Axes>. Pages keep that without the picture too.
bool isPicture(const Json& data)
{
    const std::string text = stringOf(data["text/plain"]);
    const std::string_view plain = trimmed(std::string_view(text));
    return plain.find("<matplotlib.") != std::string_view::npos || plain.starts_with("<Figure size ")
        || (data.size() > 1 && plain.starts_with('<') && plain.ends_with('>'));
}

/// What the outputs of a cell say that it printed. Warnings and logs (stderr) name the writer's machine and are not compared. Nothing where a part is
/// only there as HTML.
std::optional<std::string> printedIn(const Json& cell)
{
    std::optional<std::string> text;
    for (const Json& output : cell.value("outputs", Json::array())) {
        if (!output.is_object() || output.value("name", Json()) == Json("stderr"))
            continue;
        const Json data = output.value("data", Json::object());
        if (data.is_object() && data.contains("text/html")
            && stringOf(data.value("text/plain", Json())).starts_with("<IPython.core.display.HTML object"))
            return std::nullopt;
        if (output.contains("text"))
            text = text.value_or("") + stringOf(output["text"]);
        else if (data.is_object() && data.contains("text/plain") && !isPicture(data))
            text = text.value_or("") + stringOf(data["text/plain"]) + "\n";
    }
    return text;
}

/// Jupyter numbers the cells that it runs, and takes the number from a cell that is changed afterwards: marks those of `cells` whose number is the only one
/// missing between their neighbours'. `numbers`: 0 where a cell has none.
void markChangedSinceRun(std::vector<Cell>& cells, const std::vector<std::int64_t>& numbers)
{
    for (std::size_t i = 1; i + 1 < cells.size(); ++i)
        cells[i].isChangedSinceRun = numbers[i] == 0 && numbers[i - 1] > 0 && numbers[i + 1] - numbers[i - 1] == 2;
}

Result<Done> readNotebook(Page& page)
{
    page.isNotebook = true;
    const Json document = parsedJson(page.text);
    if (!document.is_object() || !document.contains("cells") || !document["cells"].is_array())
        return Problem{
            "MW1564", "the file is not a notebook: it is not JSON with a list of \"cells\"", "save it again in Jupyter"};
    std::vector<std::int64_t> numbers;
    for (const Json& cell : document["cells"]) {
        if (!cell.is_object())
            continue;
        const std::string source = stringOf(cell.value("source", Json()));
        if (cell.value("cell_type", Json()) != Json("code")) {
            page.after += source + "\n";
        } else if (!trimmed(source).empty()) {
            page.cells.push_back({source, std::exchange(page.after, {}), printedIn(cell), 0});
            const Json number = cell.value("execution_count", Json());
            numbers.push_back(number.is_number_integer() ? number.get<std::int64_t>() : 0);
        }
    }
    markChangedSinceRun(page.cells, numbers);
    return Done{};
}

} // namespace

Result<Page> readPage(std::string text, std::string_view name)
{
    Page page;
    page.text = std::move(text);
    if (name.ends_with(".ipynb")) {
        if (const auto read = readNotebook(page); !read)
            return read.error();
    } else if (name.ends_with(".py")
        || (!name.ends_with(".md") && hasLine(page.text, isCellMark) && !hasLine(page.text, isPrompt))) {
        readScript(page);
    } else if (!name.ends_with(".md") && hasLine(page.text, isPrompt)) {
        readTranscript(page);
    } else if (const auto read = readMarkdown(page); !read) {
        return read.error();
    }
    if (page.cells.empty())
        return Problem{"MW1563", "the page has no cells of Python",
            "fence them as ```python or ```{code-cell}, begin them with In [1]: or # %%, or open a notebook"};
    return page;
}

namespace {

/// Replaces a cell's lines in the file. False: it does not have them.
bool replaceSource(std::vector<std::string>& lines, const Cell& cell, const std::string& source)
{
    const std::vector<std::string> before = split(cell.source, '\n');
    const auto indentedBy = [](std::string_view line, std::string_view text) { // nothing: it is another line
        const std::string_view plain = line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
        const bool isSame = plain.ends_with(text) && trimmed(plain.substr(0, plain.size() - text.size())).empty();
        return isSame ? std::optional(plain.substr(0, plain.size() - text.size())) : std::nullopt;
    };
    const auto from = lines.begin() + std::max(0, cell.line - 1);
    const auto first = std::search(from, lines.end(), before.begin(), before.end(),
        [&](const std::string& line, const std::string& text) { return indentedBy(line, text).has_value(); });
    if (cell.line < 1 || first == lines.end())
        return false;
    const std::string indent(*indentedBy(*first, before.front()));
    const std::string ending = first->ends_with('\r') ? "\r" : "";
    std::vector<std::string> after = split(source, '\n');
    for (std::string& line : after)
        line = (line.empty() ? std::string() : indent) + line + ending;
    const auto place = lines.erase(first, first + static_cast<std::ptrdiff_t>(before.size()));
    lines.insert(place, after.begin(), after.end());
    return true;
}

} // namespace

std::optional<std::string> withSources(const Page& page, const std::vector<std::string>& sources)
{
    if (page.isNotebook) {
        Json document = parsedJson(page.text);
        std::size_t at = 0;
        for (Json& cell : document["cells"]) { // those that `readNotebook` took
            if (at == sources.size() || !cell.is_object() || cell.value("cell_type", Json()) != Json("code")
                || trimmed(stringOf(cell.value("source", Json()))).empty())
                continue;
            if (sources[at] != page.cells[at].source)
                cell["source"] = sources[at];
            ++at;
        }
        return jsonText(document, 1);
    }
    std::vector<std::string> lines = split(page.text, '\n');
    for (std::size_t i = sources.size(); i-- > 0;) { // the last first: those before stay where they are
        if (sources[i] != page.cells[i].source && !replaceSource(lines, page.cells[i], sources[i]))
            return std::nullopt;
    }
    return join(lines, "\n");
}

} // namespace meshwright::pages
