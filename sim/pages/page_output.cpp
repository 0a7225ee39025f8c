// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/pages/page_output.h"

#include "core/support/counted.h"
#include "core/support/escape.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/pages/words_html.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>

namespace meshwright::pages {

namespace {

using Json = nlohmann::ordered_json;

std::string indented(const std::string& text, const std::string& indent)
{
    std::string made;
    for (const std::string& line : split(std::string(trimmed(text).empty() ? "" : text), '\n'))
        made += line.empty() ? "\n" : indent + line + "\n";
    while (made.ends_with("\n\n"))
        made.pop_back();
    return made == "\n" ? "" : made;
}

TextTable collectivesTable(const CellResult& cell)
{
    using Align = TextTable::Align;
    TextTable table(
        {{"collective"}, {"axes"}, {"calls", Align::Right}, {"bytes/device", Align::Right}, {"in"}, {"value"}, {"because"}});
    for (const PageCollective& row : cell.collectives)
        table.addRow(
            {row.op, row.axes, fmt::format("{}", row.calls), formatBytes(row.bytesPerDevice), row.program, row.value, row.cause});
    return table;
}

TextTable valuesTable(const CellResult& cell)
{
    using Align = TextTable::Align;
    TextTable table({{"array"}, {"type"}, {"layout"}, {"bytes/device", Align::Right}});
    for (const PlacedValue& value : cell.values)
        table.addRow({value.name, value.type, value.layout, formatBytes(value.bytesPerDevice)});
    return table;
}

std::string errorText(const PageError& error)
{
    const std::string where = error.line > 0 ? fmt::format(" in line {} of the cell", error.line) : "";
    return fmt::format("{}: {}{}{}", error.type, error.message, where, error.isMissing ? " (Meshwright does not know this)" : "");
}

std::string statusText(const CellResult& cell)
{
    std::string text = statusName(cell.status);
    if (cell.status == CellStatus::Ran || cell.status == CellStatus::Raised)
        text += fmt::format(" in {}{}", formatSeconds(cell.seconds),
            cell.simulatedSeconds ? fmt::format(" here, {} there (simulated)", formatSeconds(*cell.simulatedSeconds)) : "");
    if (cell.likeness)
        text += fmt::format(
            ", output {} {} the page's", likenessName(*cell.likeness), *cell.likeness == Likeness::Different ? "from" : "to");
    return text;
}

std::string htmlBlock(const char* kind, const std::string& text)
{
    return trimmed(text).empty() ? "" : fmt::format("<pre class=\"{}\">{}</pre>\n", kind, htmlEscaped(text));
}

std::string findingsText(const CellResult& cell)
{
    std::string text;
    if (cell.error) {
        text += errorText(*cell.error) + "\n";
        for (const std::string& note : cell.error->notes)
            text += note + "\n";
    }
    for (const PageFinding& finding : cell.findings)
        text += fmt::format("{} {}{}\n", finding.id, finding.message, finding.fix.empty() ? "" : "\n  fix: " + finding.fix);
    return text;
}

constexpr const char* kStyle
    = R"css(body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
details{margin:.3em 0}summary{cursor:pointer}.question{border:1px solid #36c;border-radius:6px;padding:.2em 1em;margin:1em 0}
code{font:13px monospace;background:#8882;padding:0 .2em}table{border-collapse:collapse}td,th{border:1px solid #8886;padding:.2em .6em;text-align:left}
pre{overflow-x:auto;padding:.6em;margin:.3em 0;font:13px/1.2 monospace;border-left:4px solid #ccc;background:#f6f6f6}
pre.source{border-color:#36c}pre.wrong{border-color:#c33;background:#fdf3f3}pre.page{border-color:#999}
h2.cell{font-size:1em;margin:1.6em 0 .2em}.status{color:#666;font-weight:normal}
@media(prefers-color-scheme:dark){body{background:#1b1b1b;color:#ddd}pre{background:#262626}pre.wrong{background:#3a2222}}
)css";

/// A question with its hints and its answer folded.
std::string questionHtml(const Question& question, const CellResult& result)
{
    std::string html = "<div class=\"question\">\n" + wordsHtml(question.text);
    for (const std::string& hint : question.hints)
        html += "<details><summary>Hint</summary>" + wordsHtml(hint) + "</details>\n";
    return html + "<details><summary>Answer</summary>" + wordsHtml(result.output) + "</details>\n</div>\n";
}

/// As in `meshwright.problems/1`; lines are those of the file, in notebooks those of the cell.
Json findingJson(const PageFinding& finding, const Cell& cell, std::size_t number)
{
    const int line = finding.line == 0 || cell.line == 0 ? finding.line : cell.line + finding.line - 1;
    return {{"id", finding.id}, {"severity", "warning"}, {"line", line}, {"path", fmt::format("cells[{}]", number)},
        {"message", finding.message}, {"fix", finding.fix}};
}

Json cellJson(const Cell& cell, const CellResult& result, std::size_t number)
{
    Json values = Json::array();
    for (const PlacedValue& value : result.values)
        values.push_back(
            {{"name", value.name}, {"type", value.type}, {"layout", value.layout}, {"bytes_per_device", value.bytesPerDevice}});
    Json collectives = Json::array();
    for (const PageCollective& row : result.collectives)
        collectives.push_back({{"op", row.op}, {"axes", row.axes}, {"count", row.calls}, {"bytes_per_device", row.bytesPerDevice},
            {"program", row.program}, {"value", row.value}, {"cause", row.cause}});
    Json findings = Json::array();
    for (const PageFinding& finding : result.findings)
        findings.push_back(findingJson(finding, cell, number));
    // A value that was not computed is an error of a class of its own.
    const char* status = result.status == CellStatus::NotRun ? "skipped"
        : result.status == CellStatus::NotComputed           ? "raised"
                                                             : statusName(result.status);
    Json made = {{"index", number}, {"kind", cell.question ? "question" : "code"}, {"line", cell.line}, {"status", status},
        {"time_s", result.seconds}, {"simulated_s", result.simulatedSeconds ? Json(*result.simulatedSeconds) : Json(nullptr)},
        {"output", result.output}, {"printed", cell.printed ? Json(*cell.printed) : Json(nullptr)},
        {"agrees", result.likeness ? likenessName(*result.likeness) : "none"}, {"error", nullptr}, {"values", std::move(values)},
        {"collectives", std::move(collectives)}, {"findings", std::move(findings)}, {"notes", result.notes}};
    if (result.error)
        made["error"] = {{"class", result.error->type}, {"message", result.error->message}, {"line", result.error->line},
            {"unknown_to_meshwright", result.error->isMissing}, {"notes", result.error->notes}};
    return made;
}

std::string machineText(const PageMachine& machine)
{
    return fmt::format("{} {} ({}{})", machine.devices, machine.platform == "cpu" ? "CPU devices" : machine.kind + " devices",
        machine.reason, machine.legacyRandom ? "; random numbers as before JAX 0.5" : "");
}

/// The outputs of a cell as Jupyter writes them.
Json notebookOutputs(const CellResult& result)
{
    Json outputs = Json::array();
    if (!result.output.empty())
        outputs.push_back({{"output_type", "stream"}, {"name", "stdout"}, {"text", result.output}});
    if (result.error)
        outputs.push_back({{"output_type", "error"}, {"ename", result.error->type}, {"evalue", result.error->message},
            {"traceback", Json::array({errorText(*result.error)})}});
    std::string words = findingsText(result);
    if (!result.collectives.empty())
        words += collectivesTable(result).text();
    if (!words.empty())
        outputs.push_back({{"output_type", "stream"}, {"name", "stderr"}, {"text", words}});
    return outputs;
}

bool isWrong(const CellResult& cell)
{
    return cell.status == CellStatus::Raised || cell.status == CellStatus::Stopped || !cell.findings.empty()
        || cell.likeness == Likeness::Different;
}

} // namespace

bool hasFindings(const PageRun& run)
{
    return std::any_of(run.cells.begin(), run.cells.end(), isWrong);
}

std::string summaryText(const PageReport& report)
{
    std::map<CellStatus, int> counts;
    std::map<Likeness, int> outputs;
    std::size_t findings = 0;
    for (const CellResult& cell : report.run.cells) {
        ++counts[cell.status];
        if (cell.likeness)
            ++outputs[*cell.likeness];
        findings += cell.findings.size();
    }
    std::string text = fmt::format("{} of {} cells ran", counts[CellStatus::Ran], report.run.cells.size());
    for (const CellStatus status : {CellStatus::Raised, CellStatus::NotComputed, CellStatus::Stopped, CellStatus::NotRun}) {
        if (counts[status] > 0)
            text += fmt::format(", {} {}", counts[status], statusName(status));
    }
    std::vector<std::string> compared;
    for (const auto& [likeness, count] : outputs)
        compared.push_back(fmt::format("{} {}", count, likenessName(likeness)));
    if (!compared.empty())
        text += "; outputs: " + join(compared, ", ");
    return findings == 0 ? text : text + "; " + counted(findings, "finding");
}

std::string pageText(const PageReport& report)
{
    std::string text = fmt::format("{}: on {}\n", report.name, machineText(report.machine));
    for (std::size_t i = 0; i < report.run.cells.size(); ++i) {
        const CellResult& cell = report.run.cells[i];
        const int line = report.page.cells[i].line;
        text += fmt::format("\n{} {}{}: {}\n", report.page.cells[i].question ? "question" : "cell", i + 1,
            line > 0 ? fmt::format(" (line {})", line) : "", statusText(cell));
        text += indented(cell.output, "  | ");
        for (const std::string& note : cell.notes)
            text += "  note: " + note + "\n";
        text += indented(findingsText(cell), "  ! ");
        if (!cell.values.empty())
            text += valuesTable(cell).text(2);
        if (!cell.collectives.empty())
            text += collectivesTable(cell).text(2);
        if (cell.likeness == Likeness::Different)
            text += "  the page printed:\n" + indented(*report.page.cells[i].printed, "  : ");
    }
    return text + "\n" + summaryText(report) + "\n";
}

std::string pageJson(const PageReport& report)
{
    Json cells = Json::array();
    for (std::size_t i = 0; i < report.run.cells.size(); ++i)
        cells.push_back(cellJson(report.page.cells[i], report.run.cells[i], i + 1));
    Json findings = Json::array();
    for (const Json& cell : cells)
        findings.insert(findings.end(), cell["findings"].begin(), cell["findings"].end());
    const Json document = {{"schema", "meshwright.page/1"}, {"meshwright", kVersion}, {"page", report.name},
        {"machine",
            {{"platform", report.machine.platform}, {"kind", report.machine.kind}, {"devices", report.machine.devices},
                {"reason", report.machine.reason}, {"legacy_random", report.machine.legacyRandom}}},
        {"cells", std::move(cells)}, {"findings", std::move(findings)}};
    return jsonText(document);
}

std::string pageHtml(const PageReport& report)
{
    std::string html
        = fmt::format("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n<style>{1}</style>"
                      "</head><body>\n<h1>{0}</h1>\n<p>On {2}. {3}.</p>\n",
            htmlEscaped(report.name), kStyle, htmlEscaped(machineText(report.machine)), htmlEscaped(summaryText(report)));
    std::string wrong;
    for (std::size_t i = 0; i < report.run.cells.size(); ++i) {
        if (isWrong(report.run.cells[i]))
            wrong += fmt::format(" <a href=\"#cell-{0}\">{0}</a>", i + 1);
    }
    if (!wrong.empty())
        html += "<p>Cells to look at:" + wrong + "</p>\n";
    for (std::size_t i = 0; i < report.run.cells.size(); ++i) {
        const CellResult& cell = report.run.cells[i];
        const auto& question = report.page.cells[i].question;
        html += wordsHtml(report.page.cells[i].before);
        html += fmt::format("<h2 class=\"cell\" id=\"cell-{0}\">{1} {0} <span class=\"status\">{2}</span></h2>\n", i + 1,
            question ? "Question" : "Cell", question && cell.status == CellStatus::Ran ? "" : htmlEscaped(statusText(cell)));
        html += question ? questionHtml(*question, cell)
                         : htmlBlock("source", report.page.cells[i].source) + htmlBlock("output", cell.output);
        for (const std::string& picture : cell.pictures) // scripts of a picture do not run in an image
            html
                += fmt::format("<img alt=\"picture of cell {}\" src=\"data:image/svg+xml;base64,{}\">\n", i + 1, base64(picture));
        html += htmlBlock("wrong", findingsText(cell)) + htmlBlock("notes", join(cell.notes, "\n"));
        if (!cell.values.empty())
            html += htmlBlock("values", valuesTable(cell).text());
        if (!cell.collectives.empty())
            html += htmlBlock("collectives", collectivesTable(cell).text());
        if (cell.likeness && *cell.likeness != Likeness::Equal)
            html += "<p>The page printed:</p>\n" + htmlBlock("page", *report.page.cells[i].printed);
    }
    return html + wordsHtml(report.page.after) + "</body></html>\n";
}

std::optional<std::string> pageAs(const PageReport& report, std::string_view ending)
{
    if (ending == ".html")
        return pageHtml(report);
    if (ending == ".ipynb")
        return pageNotebook(report);
    if (ending == ".json")
        return pageJson(report);
    if (ending.empty() || ending == ".txt")
        return pageText(report);
    return std::nullopt;
}

std::string pageNotebook(const PageReport& report)
{
    Json document;
    if (report.page.isNotebook)
        document = parsedJson(report.page.text);
    else
        document = {{"cells", Json::array()}, {"metadata", {{"language_info", {{"name", "python"}}}}}, {"nbformat", 4},
            {"nbformat_minor", 4}};
    if (!report.page.isNotebook) {
        for (const Cell& cell : report.page.cells) {
            if (!trimmed(cell.before).empty())
                document["cells"].push_back(
                    {{"cell_type", "markdown"}, {"metadata", Json::object()}, {"source", std::string(trimmed(cell.before))}});
            document["cells"].push_back({{"cell_type", "code"}, {"execution_count", nullptr}, {"metadata", Json::object()},
                {"outputs", Json::array()},
                {"source",
                    cell.question ? "# " + join(split(cell.question->text, '\n'), "\n# ") + "\n" + cell.source : cell.source}});
        }
    }
    std::size_t at = 0;
    for (Json& cell : document["cells"]) {
        // The same cells as `readPage` took.
        if (at >= report.run.cells.size() || !cell.is_object() || cell.value("cell_type", Json()) != Json("code"))
            continue;
        const Json source = cell.value("source", Json());
        std::string text = source.is_string() ? source.get<std::string>() : std::string();
        for (const Json& line : source.is_array() ? source : Json::array())
            text += line.is_string() ? line.get<std::string>() : std::string();
        if (trimmed(text).empty())
            continue;
        if (report.page.isNotebook && text != report.page.cells[at].source)
            cell["source"] = report.page.cells[at].source;
        const CellResult& result = report.run.cells[at++];
        if (result.status == CellStatus::NotRun)
            continue;
        cell["outputs"] = notebookOutputs(result);
        cell["execution_count"] = at;
    }
    return jsonText(document, 1);
}

} // namespace meshwright::pages
