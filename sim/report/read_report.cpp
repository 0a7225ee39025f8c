// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/json_reader.h"
#include "core/support/json_text.h"
#include "sim/report/report.h"
#include "sim/report/report_schema.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <limits>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;
using Reader = JsonReader<Json>;

constexpr std::string_view kScriptStart = "<script type=\"application/json\" id=\"meshwright-report\">";
constexpr std::string_view kGenerator = "<meta name=\"generator\" content=\"Meshwright ";

class ReportReader {
public:
    explicit ReportReader(const std::string& file)
        : m_reader("MW1823", file)
    {
    }

    const Problems& problems() const { return m_reader.problems(); }

    Report read(const Json& json)
    {
        Report report;
        report.version = words(json, "meshwright", {});
        report.title = words(json, "title", {});
        report.facts = inputs(json, "facts", {}, false);
        report.command = words(json, "command", {});
        if (const Json* study = m_reader.member(json, "study", {})) {
            report.study.file = words(*study, "file", "study");
            report.study.text = words(*study, "text", "study", false, kLongestCode);
            m_reader.list(*study, "settings", "study", false, [&](const Json& setting, const std::string& at) {
                if (setting.is_string())
                    report.study.settings.push_back(setting.get<std::string>());
                else
                    m_reader.wrong(at, "expected text");
            });
        }
        m_reader.list(json, "answers", {}, false,
            [&](const Json& answer, const std::string& at) { report.answers.push_back(readAnswer(answer, at)); });
        m_reader.list(json, "sections", {}, false, [&](const Json& section, const std::string& at) {
            ReportSection read{words(section, "id", at), words(section, "title", at), {}};
            m_reader.list(section, "blocks", at, false,
                [&](const Json& block, const std::string& path) { readBlock(read.blocks, block, path); });
            report.sections.push_back(std::move(read));
        });
        if (const Json* training = m_reader.member(json, "training", {}, true)) {
            if (training->is_object())
                report.trainingResult = training->dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
            else
                m_reader.wrong("training", "expected an object");
        }
        return report;
    }

private:
    /// A text, which is drawn: one of any length would take any time and memory to break into lines.
    std::string words(
        const Json& json, const char* key, const std::string& path, bool mayBeAbsent = false, std::size_t most = kLongestText)
    {
        std::string text = m_reader.text(json, key, path, mayBeAbsent);
        if (text.size() <= most)
            return text;
        m_reader.wrong(Reader::join(path, key), fmt::format("{} bytes of text, at most {} are read", text.size(), most));
        return {};
    }

    template <typename Names>
    std::size_t nameIndex(const Json& json, const char* key, const std::string& path, const Names& names)
    {
        const std::string name = words(json, key, path, true);
        if (name.empty())
            return 0;
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (name == names[i])
                return i;
        }
        m_reader.wrong(Reader::join(path, key), fmt::format("unknown name: \"{}\"", name));
        return 0;
    }

    ReportTone tone(const Json& json, const std::string& path)
    {
        return static_cast<ReportTone>(nameIndex(json, "tone", path, kToneNames));
    }

    std::vector<ReportInput> inputs(const Json& json, const char* key, const std::string& path, bool mayBeAbsent)
    {
        std::vector<ReportInput> inputs;
        m_reader.list(json, key, path, mayBeAbsent, [&](const Json& input, const std::string& at) {
            inputs.push_back({words(input, "name", at), words(input, "value", at), words(input, "source", at, true)});
        });
        return inputs;
    }

    ReportOpening opening(const Json& json, const std::string& path)
    {
        const Json* found = m_reader.member(json, "opening", path, true);
        if (found == nullptr)
            return {};
        const std::string at = Reader::join(path, "opening");
        return {words(*found, "text", at, true), words(*found, "formula", at, true), inputs(*found, "inputs", at, true)};
    }

    ReportValue valueOf(const Json& json, const std::string& path)
    {
        return {words(json, "text", path), m_reader.optionalNumber(json, "number", path), words(json, "unit", path, true)};
    }

    ReportValue value(const Json& json, const std::string& path)
    {
        const Json* found = m_reader.member(json, "value", path);
        return found == nullptr ? ReportValue{} : valueOf(*found, Reader::join(path, "value"));
    }

    ReportAnswer readAnswer(const Json& json, const std::string& path)
    {
        ReportAnswer answer;
        answer.id = words(json, "id", path);
        answer.question = words(json, "question", path);
        answer.tone = tone(json, path);
        answer.headline = words(json, "headline", path);
        answer.value = value(json, path);
        answer.sentence = words(json, "sentence", path, true);
        answer.share = m_reader.optionalNumber(json, "share", path);
        answer.command = words(json, "command", path, true);
        answer.opening = opening(json, path);
        return answer;
    }

    void readBlock(std::vector<ReportBlock>& blocks, const Json& json, const std::string& path)
    {
        const std::string kind = words(json, "block", path);
        if (kind == "paragraph")
            blocks.push_back(ReportParagraph{words(json, "text", path), tone(json, path)});
        else if (kind == "figures")
            blocks.push_back(readFigures(json, path));
        else if (kind == "table")
            blocks.push_back(readTable(json, path));
        else if (kind == "pictures")
            blocks.push_back(readPictures(json, path));
        else if (kind == "problems")
            blocks.push_back(readProblems(json, path));
        else if (kind == "code")
            blocks.push_back(ReportCode{words(json, "title", path), words(json, "text", path, false, kLongestCode)});
        else if (json.is_object() && json.contains("block"))
            m_reader.wrong(Reader::join(path, "block"), fmt::format("unknown kind of block: \"{}\"", kind));
    }

    ReportFigures readFigures(const Json& json, const std::string& path)
    {
        ReportFigures figures;
        m_reader.list(json, "figures", path, false, [&](const Json& figure, const std::string& at) {
            figures.figures.push_back({words(figure, "label", at), value(figure, at), opening(figure, at)});
        });
        return figures;
    }

    ReportTable readTable(const Json& json, const std::string& path)
    {
        ReportTable table;
        table.title = words(json, "title", path);
        m_reader.list(json, "columns", path, false, [&](const Json& column, const std::string& at) {
            table.columns.push_back({words(column, "title", at), m_reader.truth(column, "numeric", at, true)});
        });
        if (table.columns.empty())
            m_reader.wrong(Reader::join(path, "columns"), "a table needs a column");
        m_reader.list(json, "rows", path, false, [&](const Json& row, const std::string& at) {
            ReportRow read;
            m_reader.list(row, "cells", at, false,
                [&](const Json& cell, const std::string& cellPath) { read.cells.push_back(valueOf(cell, cellPath)); });
            if (read.cells.size() != table.columns.size())
                m_reader.wrong(
                    Reader::join(at, "cells"), fmt::format("{} cells for {} columns", read.cells.size(), table.columns.size()));
            read.opening = opening(row, at);
            table.rows.push_back(std::move(read));
        });
        table.note = words(json, "note", path, true);
        return table;
    }

    ReportPictures readPictures(const Json& json, const std::string& path)
    {
        ReportPictures pictures;
        m_reader.list(json, "pictures", path, false, [&](const Json& picture, const std::string& at) {
            ReportPicture read{words(picture, "id", at), words(picture, "title", at), words(picture, "caption", at, true), {}};
            if (const Json* list = m_reader.member(picture, "picture", at))
                read.list = readList(*list, Reader::join(at, "picture"));
            pictures.pictures.push_back(std::move(read));
        });
        return pictures;
    }

    ReportProblems readProblems(const Json& json, const std::string& path)
    {
        ReportProblems problems;
        m_reader.list(json, "problems", path, false, [&](const Json& problem, const std::string& at) {
            problems.problems.push_back({static_cast<Severity>(nameIndex(problem, "severity", at, kSeverityNames)),
                words(problem, "id", at), words(problem, "where", at, true), words(problem, "message", at),
                words(problem, "rule", at, true), words(problem, "fix", at, true)});
        });
        return problems;
    }

    Paint paint(const Json& json, const char* key, const std::string& path)
    {
        const std::string name = words(json, key, path, true);
        if (name.empty())
            return {};
        std::uint32_t rgb = 0;
        const char* end = name.data() + name.size();
        if (name.size() == 7 && name[0] == '#' && std::from_chars(name.data() + 1, end, rgb, 16).ptr == end)
            return colourFromHex(rgb);
        for (const ColourRole role : kAllRoles) {
            if (name == colourRoleName(role))
                return role;
        }
        m_reader.wrong(Reader::join(path, key), fmt::format("unknown colour: \"{}\"", name));
        return {};
    }

    /// A number of a drawing, which no report has larger: whoever draws a dashed line or a letter of any size takes any time and memory.
    double within(double most, double number, const std::string& path)
    {
        if (std::abs(number) <= most)
            return number;
        m_reader.wrong(path, fmt::format("{} is more than {}, which no drawing of ours has", number, most));
        return 0.0;
    }

    double size(const Json& json, const char* key, const std::string& path, double otherwise)
    {
        return within(kLargestSize, m_reader.number(json, key, path, otherwise, true), Reader::join(path, key));
    }

    /// The numbers of `at`: as many as `count`, or with 0 an even number of at least `least`.
    std::vector<double> numbers(const Json& json, const std::string& path, std::size_t count, std::size_t least)
    {
        std::vector<double> numbers;
        m_reader.list(json, "at", path, false, [&](const Json& number, const std::string& at) {
            numbers.push_back(within(kFarthest, m_reader.numberOf(number, at), at));
        });
        if (count > 0 ? numbers.size() == count : numbers.size() >= least && numbers.size() % 2 == 0)
            return numbers;
        m_reader.wrong(Reader::join(path, "at"), fmt::format("{} numbers are not the coordinates of this shape", numbers.size()));
        numbers.assign(std::max(count, least), 0.0);
        return numbers;
    }

    static std::vector<Point> pointsOf(const std::vector<double>& numbers)
    {
        std::vector<Point> points;
        for (std::size_t i = 0; i + 1 < numbers.size(); i += 2)
            points.push_back({numbers[i], numbers[i + 1]});
        return points;
    }

    ShapeStyle style(const Json& json, const std::string& path)
    {
        ShapeStyle style;
        style.fill = paint(json, "fill", path);
        style.outline = paint(json, "line", path);
        style.outlineWidth = size(json, "line_width", path, 1.0);
        style.hatch = static_cast<Hatch>(nameIndex(json, "hatch", path, kHatchNames));
        if (style.hatch != Hatch::None)
            style.hatchPaint = paint(json, "hatch_line", path);
        return style;
    }

    DisplayItem readItem(const Json& json, const std::string& path)
    {
        DisplayItem item{TextShape{}};
        const std::string shape = words(json, "shape", path);
        if (shape == "rect") {
            const std::vector<double> at = numbers(json, path, 4, 0);
            item.shape = RectShape{{at[0], at[1]}, at[2], at[3], style(json, path), size(json, "radius", path, 0.0)};
            if (at[2] < 0.0 || at[3] < 0.0)
                m_reader.wrong(path, "a rectangle of negative size");
        } else if (shape == "polygon") {
            item.shape = PolygonShape{pointsOf(numbers(json, path, 0, 6)), style(json, path)};
        } else if (shape == "line") {
            const std::vector<double> at = numbers(json, path, 4, 0);
            item.shape = LineShape{{at[0], at[1]}, {at[2], at[3]}, paint(json, "line", path), size(json, "line_width", path, 1.0),
                m_reader.truth(json, "dashed", path, true)};
        } else if (shape == "polyline") {
            item.shape = PolylineShape{pointsOf(numbers(json, path, 0, 4)), paint(json, "line", path),
                size(json, "line_width", path, 1.0), m_reader.truth(json, "dashed", path, true)};
        } else if (shape == "text") {
            const std::vector<double> at = numbers(json, path, 2, 0);
            item.shape = TextShape{{at[0], at[1]}, words(json, "text", path), size(json, "size", path, 12.0),
                static_cast<TextAnchor>(nameIndex(json, "anchor", path, kAnchorNames)), paint(json, "fill", path),
                m_reader.truth(json, "bold", path, true)};
        } else {
            m_reader.wrong(Reader::join(path, "shape"), fmt::format("unknown shape: \"{}\"", shape));
        }
        item.id = words(json, "id", path, true);
        item.tooltip = words(json, "tooltip", path, true);
        return item;
    }

    DisplayList readList(const Json& json, const std::string& path)
    {
        DisplayList list;
        list.width = m_reader.number(json, "width", path);
        list.height = m_reader.number(json, "height", path);
        if (list.width < 0.0 || list.height < 0.0 || list.width > kFarthest || list.height > kFarthest)
            m_reader.wrong(path, fmt::format("{} x {} is not a size of a picture", list.width, list.height));
        list.title = words(json, "title", path, true);
        list.background = paint(json, "background", path);
        m_reader.list(json, "items", path, false,
            [&](const Json& item, const std::string& at) { list.items.push_back(readItem(item, at)); });
        return list;
    }

    static constexpr std::size_t kLongestText = std::size_t{1} << 18;
    static constexpr std::size_t kLongestCode = std::size_t{8} << 20; ///< the largest study
    static constexpr double kFarthest = 1e5; ///< from a picture's corner, in pixels
    static constexpr double kLargestSize = 1e3; ///< of letters, lines and round corners

    Reader m_reader;
};

/// The JSON in a page or the text itself.
Result<std::string_view> embedded(std::string_view text, const std::string& file)
{
    const auto problem = [&](const char* id, std::string message) {
        return Problem{id, std::move(message), "name a page or JSON that `meshwright report` wrote", Place{file}};
    };
    if (text.size() > kLargestReportBytes)
        return problem("MW1824", fmt::format("{} bytes are more than any report has", text.size()));
    const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (first == std::string_view::npos)
        return problem("MW1820", "the file is empty");
    if (text[first] == '{')
        return text.substr(first);
    const std::size_t start = text.find(kScriptStart);
    if (start == std::string_view::npos) {
        if (text.find(kGenerator) != std::string_view::npos)
            return problem("MW1821", "the page is cut off: its last part, which holds the report itself, is missing");
        return problem("MW1820", "the text is not a page of Meshwright");
    }
    const std::string_view rest = text.substr(start + kScriptStart.size());
    const std::size_t end = rest.find('<');
    if (end == std::string_view::npos)
        return problem("MW1821", "the page is cut off in the middle of the report");
    return rest.substr(0, end);
}

} // namespace

bool isReport(std::string_view text)
{
    const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (first == std::string_view::npos)
        return false;
    constexpr std::size_t kHead = 256; // the schema is the first member
    return text[first] == '<' || (text[first] == '{' && text.substr(first, kHead).find(kSchemaName) != std::string_view::npos);
}

Result<Report> readReport(std::string_view text, const std::string& file)
{
    const auto found = embedded(text, file);
    if (!found)
        return found.error();
    if (!isWithinJsonLimits(*found))
        return Problem{"MW1824", "the report is nested too deep, or has too many values, to be one", {}, Place{file}};
    const Json json = parsedJson(*found);
    if (json.is_discarded())
        return Problem{
            "MW1821", "the report in the file is cut off or damaged: it is not JSON", "write the report again", Place{file}};
    const auto schema = json.is_object() ? json.find("schema") : json.end();
    const std::string name = schema != json.end() && schema->is_string() ? schema->get<std::string>() : std::string();
    if (!name.starts_with(kSchemaName))
        return Problem{"MW1820",
            name.empty() ? std::string("the JSON is not a report") : fmt::format("the JSON is a \"{}\", not a report", name),
            "name a page or JSON that `meshwright report` wrote", Place{file}};
    if (name != kSchema)
        return Problem{"MW1822", fmt::format("the report is a \"{}\"; this program reads \"{}\"", name, kSchema),
            "open it with a newer Meshwright, or write the report again", Place{file}};
    ReportReader reader(file);
    Report report = reader.read(json);
    if (!reader.problems().empty())
        return reader.problems();
    return report;
}

} // namespace meshwright::sim
