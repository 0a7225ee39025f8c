// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/escape.h"
#include "sim/report/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::sim {

namespace {

class MarkdownWriter {
public:
    std::string document(const Report& report)
    {
        add("# {}\n\n", markdownText(report.title));
        for (const ReportInput& fact : report.facts)
            add("- **{}**: {}\n", markdownText(fact.name), markdownText(fact.value));
        add("\n## Answers\n\n| | | |\n|---|---|---|\n");
        for (const ReportAnswer& answer : report.answers)
            add("| {} | **{}**{}{} | {} |\n", markdownText(answer.question), markdownText(answer.headline),
                answer.value.text.empty() ? "" : ", ", markdownText(answer.value.text), markdownText(answer.sentence));
        for (const ReportAnswer& answer : report.answers) {
            if (!answer.command.empty())
                add("\n{} {}\n", markdownText(answer.question), markdownCode(answer.command));
        }
        for (const ReportSection& section : report.sections) {
            add("\n## {}\n", markdownText(section.title));
            for (const ReportBlock& block : section.blocks)
                std::visit([this](const auto& one) { write(one); }, block);
        }
        add("\n---\nMeshwright {}\n", markdownText(report.version));
        return std::move(m_text);
    }

private:
    template <typename... Args>
    void add(fmt::format_string<Args...> format, Args&&... args)
    {
        fmt::format_to(std::back_inserter(m_text), format, std::forward<Args>(args)...);
    }

    /// Lines that end without a stop are parted by semicolons.
    static std::string onOneLine(std::string text)
    {
        for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
            const bool ends = at == 0 || std::string_view(".:;,!?").find(text[at - 1]) != std::string_view::npos;
            text.replace(at, 1, ends ? " " : "; ");
        }
        return text;
    }

    static std::string opened(const ReportOpening& opening)
    {
        std::string text = markdownText(onOneLine(opening.text));
        if (!opening.formula.empty())
            text += (text.empty() ? "" : " ") + markdownCode(opening.formula);
        std::string inputs;
        for (const ReportInput& input : opening.inputs) {
            inputs += fmt::format("{}{} = {}", inputs.empty() ? "" : "; ", markdownText(input.name), markdownText(input.value));
            if (!input.source.empty())
                inputs += fmt::format(" ({})", markdownText(input.source));
        }
        return inputs.empty() ? text : text + (text.empty() ? "" : " with ") + inputs;
    }

    void write(const ReportParagraph& paragraph)
    {
        add("\n{}{}\n",
            paragraph.tone == ReportTone::Warning     ? "**Warning:** "
                : paragraph.tone == ReportTone::Error ? "**Error:** "
                                                      : "",
            markdownText(paragraph.text));
    }

    void write(const ReportFigures& figures)
    {
        add("\n");
        for (const ReportFigure& figure : figures.figures) {
            const std::string how = opened(figure.opening);
            add("- {}: **{}**{}{}\n", markdownText(figure.label), markdownText(figure.value.text), how.empty() ? "" : " — ", how);
        }
    }

    void write(const ReportTable& table)
    {
        add("\n**{}**\n\n|", markdownText(table.title));
        for (const ReportColumn& column : table.columns)
            add(" {} |", markdownText(column.title));
        add("\n|");
        for (const ReportColumn& column : table.columns)
            add("{}|", column.numeric ? "---:" : "---");
        add("\n");
        bool opens = false;
        for (const ReportRow& row : table.rows) {
            add("|");
            for (const ReportValue& cell : row.cells)
                add(" {} |", markdownText(cell.text));
            add("\n");
            opens = opens || !row.opening.empty();
        }
        if (!table.note.empty())
            add("\n{}\n", markdownText(table.note));
        if (!opens)
            return;
        add("\n");
        std::size_t number = 0;
        for (const ReportRow& row : table.rows) {
            ++number;
            if (!row.opening.empty())
                add("{}. {}: {}\n", number, markdownText(row.cells.empty() ? std::string() : row.cells.front().text),
                    opened(row.opening));
            else
                add("{}. {}\n", number, markdownText(row.cells.empty() ? std::string() : row.cells.front().text));
        }
    }

    void write(const ReportPictures& pictures)
    {
        add("\n");
        for (const ReportPicture& picture : pictures.pictures)
            add("- Picture: {}{}{}\n", markdownText(picture.title), picture.caption.empty() ? "" : ". ",
                markdownText(picture.caption));
    }

    void write(const ReportProblems& problems)
    {
        add("\n");
        for (const ReportProblem& problem : problems.problems) {
            add("- **{} {}** {}{}{}{}", severityName(problem.severity), markdownText(problem.id), markdownText(problem.message),
                problem.where.empty() ? "" : " (", markdownText(problem.where), problem.where.empty() ? "" : ")");
            if (!problem.rule.empty())
                add(" Rule: {}.", markdownText(problem.rule));
            if (!problem.fix.empty())
                add(" Fix: {}.", markdownText(problem.fix));
            add("\n");
        }
    }

    void write(const ReportCode& block) { add("\n{}:\n\n{}", markdownText(block.title), markdownBlock(block.text)); }

    std::string m_text;
};

class CsvWriter {
public:
    std::string document(const Report& report)
    {
        m_text = "section,item,name,value,unit,text\n";
        for (const ReportInput& fact : report.facts)
            row("study", "", fact.name, wordsOnly(fact.value));
        for (const ReportAnswer& answer : report.answers) {
            row("answers", answer.id, "answer", wordsOnly(answer.headline));
            if (!answer.value.text.empty())
                row("answers", answer.id, "value", answer.value);
            if (!answer.sentence.empty())
                row("answers", answer.id, "sentence", wordsOnly(answer.sentence));
        }
        for (const ReportSection& section : report.sections) {
            for (const ReportBlock& block : section.blocks) {
                if (const auto* figures = std::get_if<ReportFigures>(&block)) {
                    for (const ReportFigure& figure : figures->figures)
                        row(section.id, "", figure.label, figure.value);
                } else if (const auto* table = std::get_if<ReportTable>(&block)) {
                    write(section.id, *table);
                } else if (const auto* problems = std::get_if<ReportProblems>(&block)) {
                    for (const ReportProblem& problem : problems->problems)
                        row(section.id, problem.id, severityName(problem.severity), wordsOnly(problem.message));
                }
            }
        }
        return std::move(m_text);
    }

private:
    static ReportValue wordsOnly(const std::string& text) { return {text, std::nullopt, {}}; }

    void row(const std::string& section, const std::string& item, const std::string& name, const ReportValue& value)
    {
        m_text += fmt::format("{},{},{},{},{},{}\n", csvCell(section), csvCell(item), csvCell(name),
            value.number ? fmt::format("{}", *value.number) : std::string(), csvCell(value.unit), csvCell(value.text));
    }

    void write(const std::string& section, const ReportTable& table)
    {
        for (std::size_t i = 0; i < table.rows.size(); ++i) {
            const ReportRow& cells = table.rows[i];
            for (std::size_t c = 0; c < cells.cells.size() && c < table.columns.size(); ++c)
                row(section, fmt::format("{} {}", table.title, i + 1), table.columns[c].title, cells.cells[c]);
            const std::string& text = cells.opening.text;
            if (!text.empty())
                row(section, fmt::format("{} {}", table.title, i + 1), "because", wordsOnly(text.substr(0, text.find('\n'))));
        }
    }

    std::string m_text;
};

} // namespace

std::string reportMarkdown(const Report& report)
{
    return MarkdownWriter().document(report);
}

std::string reportCsv(const Report& report)
{
    return CsvWriter().document(report);
}

} // namespace meshwright::sim
