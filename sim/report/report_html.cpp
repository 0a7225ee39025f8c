// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/report.h"
#include "sim/report/report_style.h"

#include "core/draw/svg.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace meshwright::sim {

namespace {

/// Pictures wider than this have a row for themselves.
constexpr double kWidePixels = 500.0;

class PageWriter {
public:
    explicit PageWriter(const Report& report)
        : m_report(report)
    {
    }

    std::string page()
    {
        head();
        add("<body>\n<a class=\"skip\" href=\"#main\">Skip to the report</a>\n<div class=\"page\">\n<header>\n");
        add("<p class=\"product\">Meshwright report</p>\n<h1>{}</h1>\n", escapedXml(m_report.title));
        if (!m_report.facts.empty()) {
            add("<dl class=\"facts\">\n");
            for (const ReportInput& fact : m_report.facts)
                add("<div><dt>{}</dt><dd>{}</dd></div>\n", escapedXml(fact.name), escapedXml(fact.value));
            add("</dl>\n");
        }
        add("</header>\n<div class=\"answers\">\n");
        for (const ReportAnswer& answer : m_report.answers)
            write(answer);
        add("</div>\n<div class=\"body\">\n<nav aria-label=\"Contents\"><ol>\n");
        for (const ReportSection& section : m_report.sections)
            add("<li><a href=\"#{}\">{}</a></li>\n", escapedXml(section.id), escapedXml(section.title));
        add("</ol></nav>\n<main id=\"main\">\n");
        for (const ReportSection& section : m_report.sections)
            write(section);
        add("<footer>Written by Meshwright {}. The page loads nothing; the study and this report are embedded in it.</footer>\n"
            "</main>\n</div>\n</div>\n",
            escapedXml(m_report.version));
        add("<script type=\"application/json\" id=\"meshwright-report\">{}</script>\n", reportJson(m_report));
        add("<script>{}</script>\n</body>\n</html>\n", reportScript());
        return std::move(m_html);
    }

private:
    template <typename... Args>
    void add(fmt::format_string<Args...> format, Args&&... args)
    {
        fmt::format_to(std::back_inserter(m_html), format, std::forward<Args>(args)...);
    }

    void head()
    {
        add("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
            "'unsafe-inline'\">\n"
            "<meta name=\"generator\" content=\"Meshwright {}\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
            "<title>{}: Meshwright report</title>\n<style>\n{}</style>\n</head>\n",
            escapedXml(m_report.version), escapedXml(m_report.title), reportStyle());
    }

    void write(const ReportAnswer& answer)
    {
        const std::string id = "answer-" + answer.id;
        add("<section class=\"answer {}\" aria-labelledby=\"{}\">\n<h2 id=\"{}\">{}", reportToneName(answer.tone), escapedXml(id),
            escapedXml(id), escapedXml(answer.question));
        if (answer.tone == ReportTone::Warning || answer.tone == ReportTone::Error)
            add(" <span class=\"mark {}\">{}</span>", reportToneName(answer.tone),
                answer.tone == ReportTone::Error ? "problem" : "warning");
        constexpr std::size_t kLong = 14; // characters that fit a card at the size of figures
        add("</h2>\n<p class=\"headline{}\">{}</p>\n", displayWidth(answer.headline) > kLong ? " long" : "",
            escapedXml(answer.headline));
        if (!answer.value.text.empty())
            add("<p class=\"value\">{}</p>\n", escapedXml(answer.value.text));
        if (answer.share)
            add("<div class=\"meter\" aria-hidden=\"true\"><i style=\"width:{:.1f}%\"></i></div>\n",
                100.0 * std::clamp(*answer.share, 0.0, 1.0));
        if (!answer.sentence.empty())
            add("<p class=\"sentence\">{}</p>\n", escapedXml(answer.sentence));
        if (!answer.opening.empty() || !answer.command.empty()) {
            add("<div class=\"more stack\">\n<details><summary class=\"how\">{}</summary>\n<div class=\"opened\">\n",
                answer.command.empty() ? "Formula and inputs" : "Command and reasons");
            if (!answer.command.empty())
                add("<p class=\"formula\"><code>{}</code></p>\n", escapedXml(answer.command));
            write(answer.opening);
            add("</div>\n</details>\n</div>\n");
        }
        add("</section>\n");
    }

    void write(const ReportSection& section)
    {
        const std::string id = escapedXml(section.id);
        add("<section aria-labelledby=\"{}\">\n<h2 id=\"{}\">{}</h2>\n", id, id, escapedXml(section.title));
        for (const ReportBlock& block : section.blocks)
            std::visit([this](const auto& one) { write(one); }, block);
        add("</section>\n");
    }

    void write(const ReportOpening& opening)
    {
        if (!opening.text.empty())
            add("<p>{}</p>\n", escapedXml(opening.text));
        if (!opening.formula.empty())
            add("<p class=\"formula mono\">{}</p>\n", escapedXml(opening.formula));
        if (opening.inputs.empty())
            return;
        add("<table class=\"inputs\"><tbody>\n");
        for (const ReportInput& input : opening.inputs)
            add("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>\n", escapedXml(input.name), escapedXml(input.value),
                escapedXml(input.source));
        add("</tbody></table>\n");
    }

    void write(const ReportParagraph& paragraph)
    {
        if (paragraph.tone == ReportTone::Neutral)
            add("<p>{}</p>\n", escapedXml(paragraph.text));
        else
            add("<p class=\"{}\">{}</p>\n", reportToneName(paragraph.tone), escapedXml(paragraph.text));
    }

    void write(const ReportFigures& figures)
    {
        add("<div class=\"block figures\">\n");
        for (const ReportFigure& figure : figures.figures) {
            const std::string face = fmt::format("<span class=\"label\">{}</span><span class=\"number\">{}</span>",
                escapedXml(figure.label), escapedXml(figure.value.text));
            if (figure.opening.empty()) {
                add("<div class=\"figure\">{}</div>\n", face);
                continue;
            }
            add("<details class=\"figure stack\"><summary>{}</summary>\n<div class=\"opened\">\n", face);
            write(figure.opening);
            add("</div>\n</details>\n");
        }
        add("</div>\n");
    }

    void write(const ReportTable& table)
    {
        add("<div class=\"block\">\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n<table "
            "class=\"data\">\n<caption>{0}</caption>\n"
            "<thead><tr>",
            escapedXml(table.title));
        for (const ReportColumn& column : table.columns)
            add("<th scope=\"col\"{}>{}</th>", column.numeric ? " class=\"n\"" : "", escapedXml(column.title));
        add("</tr></thead>\n");
        for (const ReportRow& row : table.rows)
            write(table, row);
        add("</table>\n</div>\n");
        if (!table.note.empty())
            add("<p class=\"note\">{}</p>\n", escapedXml(table.note));
        add("</div>\n");
    }

    void write(const ReportTable& table, const ReportRow& row)
    {
        add("<tbody>\n<tr>");
        for (std::size_t i = 0; i < row.cells.size() && i < table.columns.size(); ++i) {
            const ReportValue& cell = row.cells[i];
            const char* tag = i == 0 ? "th" : "td";
            add("<{}{}{}", tag, i == 0 ? " scope=\"row\"" : "", table.columns[i].numeric ? " class=\"n\"" : "");
            if (cell.number)
                add(" data-v=\"{}\"", *cell.number);
            if (i == 0 && opensFromItsName(row))
                add("><details class=\"opener\"><summary>{}</summary></details></{}>", escapedXml(cell.text), tag);
            else
                add(">{}</{}>", escapedXml(cell.text), tag);
        }
        add("</tr>\n");
        writeOpening(row, table.columns.size());
        add("</tbody>\n");
    }

    /// A row without words of its own opens from its first cell: the style sheet shows the next line while that one is open.
    static bool opensFromItsName(const ReportRow& row) { return row.opening.text.empty() && !row.opening.empty(); }

    void writeOpening(const ReportRow& row, std::size_t columns)
    {
        if (row.opening.empty())
            return;
        const bool fromName = opensFromItsName(row);
        add("<tr class=\"opening{}\"><td colspan=\"{}\"><div class=\"inner\">", fromName ? " closed" : "", columns);
        // The first line of a reason stands there always; the rest opens.
        const std::size_t lineEnd = row.opening.text.find('\n');
        ReportOpening rest = row.opening;
        rest.text = lineEnd == std::string::npos ? std::string() : row.opening.text.substr(lineEnd + 1);
        const std::string first = escapedXml(row.opening.text.substr(0, lineEnd));
        if (fromName) {
            add("<div class=\"opened\">\n");
            write(rest);
            add("</div>");
        } else if (rest.empty()) {
            add("<span class=\"note\">{}</span>", first);
        } else {
            add("<details><summary>{}</summary>\n<div class=\"opened\">\n", first);
            write(rest);
            add("</div>\n</details>");
        }
        add("</div></td></tr>\n");
    }

    void write(const ReportPictures& pictures)
    {
        const bool wide = std::any_of(pictures.pictures.begin(), pictures.pictures.end(),
            [](const ReportPicture& picture) { return picture.list.width > kWidePixels; });
        add("<div class=\"block pictures{}\">\n", wide ? " wide" : "");
        for (const ReportPicture& picture : pictures.pictures) {
            add("<figure id=\"picture-{}\">\n<div class=\"scroll\"{}>\n{}</div>\n", escapedXml(picture.id),
                wide ? fmt::format(" role=\"region\" tabindex=\"0\" aria-label=\"{}\"", escapedXml(picture.title))
                     : std::string(),
                svgFragment(picture.list, picture.id + "-"));
            if (!picture.caption.empty())
                add("<figcaption>{}</figcaption>\n", escapedXml(picture.caption));
            add("</figure>\n");
        }
        add("</div>\n");
    }

    void write(const ReportProblems& problems)
    {
        add("<div class=\"block\">\n");
        for (const ReportProblem& problem : problems.problems) {
            const char* severity = severityName(problem.severity);
            add("<div class=\"problem {}\">\n<p><span class=\"mark {}\">{} {}</span> {}</p>\n", severity, severity, severity,
                escapedXml(problem.id), escapedXml(problem.message));
            if (!problem.rule.empty())
                add("<p>Rule: {}</p>\n", escapedXml(problem.rule));
            if (!problem.fix.empty())
                add("<p>Fix: {}</p>\n", escapedXml(problem.fix));
            if (!problem.where.empty())
                add("<p class=\"where mono\">{}</p>\n", escapedXml(problem.where));
            add("</div>\n");
        }
        add("</div>\n");
    }

    void write(const ReportCode& code)
    {
        add("<div class=\"block\">\n<h3>{}</h3>\n<pre tabindex=\"0\"><code>{}</code></pre>\n</div>\n", escapedXml(code.title),
            escapedXml(code.text));
    }

    const Report& m_report;
    std::string m_html;
};

} // namespace

std::string reportHtml(const Report& report)
{
    return PageWriter(report).page();
}

} // namespace meshwright::sim
