// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/page_html.h"

#include "core/program/spoken_op.h"
#include "core/support/text.h"
#include "sim/pages/words_html.h"
#include "ui/theme/theme.h"

#include <QCoreApplication>
#include <QStringList>

#include <algorithm>

namespace meshwright::ui {

namespace {

QString tr(const char* text)
{
    return QCoreApplication::translate("meshwright::ui::PageView", text);
}

QString text(const std::string& plain)
{
    return QString::fromStdString(plain);
}

QString bytes(std::int64_t count)
{
    return text(formatBytes(static_cast<double>(count)));
}

/// Writes the parts of a page in the colours of a theme.
class FlowWriter {
public:
    explicit FlowWriter(Theme theme)
        : m_theme(theme)
    {
    }

    QString cell(const ShownPage& shown, std::size_t index) const
    {
        const pages::Cell& cell = shown.page.cells[index];
        const ShownCell& now = shown.cells[index];
        const bool runs = shown.running == index;
        QString html = text(pages::wordsHtml(cell.before)) + heading(shown, index, runs);
        if (cell.question)
            return html + question(*cell.question, now);
        html += block(now.source, ColourRole::Text, ColourRole::Surface);
        const pages::CellResult& result = now.result;
        const bool isOther = result.likeness && *result.likeness != pages::Likeness::Equal;
        html += isOther ? beside(result, *cell.printed) : block(result.output, ColourRole::Text, ColourRole::Background);
        html += wrong(result) + notes(result) + values(result) + collectives(result);
        if (!result.pictures.empty())
            html += paragraph(tr("An animation: `meshwright open` with -o page.html shows it."), ColourRole::MutedText);
        return html;
    }

private:
    QString name(ColourRole role) const { return qtColour(role, m_theme).name(); }

    QString coloured(const QString& html, ColourRole role) const
    {
        return QStringLiteral("<span style='color: %1'>%2</span>").arg(name(role), html);
    }

    QString paragraph(const QString& plain, ColourRole role) const
    {
        return QStringLiteral("<p style='margin: 2px 0'>%1</p>").arg(coloured(plain.toHtmlEscaped(), role));
    }

    static QString preformatted(std::string plain)
    {
        plain.erase(plain.find_last_not_of(" \n") + 1);
        const bool isDrawn = plain.find("│") != std::string::npos; // of lines that meet only where rows do
        return QStringLiteral("<pre style='margin: 0; white-space: pre-wrap%1'>%2</pre>")
            .arg(isDrawn ? QStringLiteral("; line-height: 84%") : QString(), text(pages::htmlEscaped(plain)));
    }

    /// Nothing where there is nothing to read.
    QString block(const std::string& plain, ColourRole ink, ColourRole ground) const
    {
        if (trimmed(plain).empty())
            return {};
        return QStringLiteral("<table width='100%' cellspacing='0' cellpadding='6' bgcolor='%1'><tr><td>%2</td></tr></table>")
            .arg(name(ground), coloured(preformatted(plain), ink));
    }

    /// What the cell printed here, and what the page says that it printed.
    QString beside(const pages::CellResult& result, const std::string& printed) const
    {
        const bool isDifferent = *result.likeness == pages::Likeness::Different;
        return QStringLiteral(
            "<table width='100%' cellspacing='0' cellpadding='6' border='1' style='border-color: %1; border-style: solid; "
            "border-collapse: collapse'><tr><td width='50%'>%2%3</td><td width='50%'>%4%5</td></tr></table>")
            .arg(name(ColourRole::Grid), paragraph(tr("Printed here"), isDifferent ? ColourRole::Warning : ColourRole::MutedText),
                preformatted(result.output), paragraph(tr("Printed by the page"), ColourRole::MutedText), preformatted(printed));
    }

    QString heading(const ShownPage& shown, std::size_t index, bool runs) const
    {
        const auto& cells = shown.page.cells;
        const pages::Cell& cell = cells[index];
        const auto questions = std::count_if(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(index) + 1,
            [](const pages::Cell& one) { return one.question.has_value(); });
        const QString title = cell.question ? tr("Question %1").arg(questions) : tr("Cell %1").arg(index + 1);
        return QStringLiteral(
            "<p style='margin: 12px 0 2px 0'><a name='%1'></a><a href='cell:%2' style='color: %3'>%4</a> &nbsp; %5</p>")
            .arg(cellAnchor(index))
            .arg(index)
            .arg(name(ColourRole::Accent), shown.current == index ? QStringLiteral("<b>▸ %1</b>").arg(title) : title,
                status(cell, shown.cells[index], runs));
    }

    QString status(const pages::Cell& cell, const ShownCell& now, bool runs) const
    {
        if (runs)
            return coloured(tr("running…"), ColourRole::Accent);
        const pages::CellResult& result = now.result;
        QStringList parts;
        if (result.status == pages::CellStatus::NotRun)
            parts << tr("not run yet");
        else if (!cell.question || result.status != pages::CellStatus::Ran)
            parts << text(pages::statusName(result.status));
        if (now.isAnswered)
            parts << (now.isRight ? tr("✓ right") : tr("answer shown"));
        if (!cell.question && result.seconds > 0.0)
            parts << tr("%1 here").arg(text(formatSeconds(result.seconds)));
        if (result.simulatedSeconds)
            parts << tr("%1 on the page's machine (simulated)").arg(text(formatSeconds(*result.simulatedSeconds)));
        if (result.likeness)
            parts << (*result.likeness == pages::Likeness::Equal ? tr("prints what the page prints")
                    : *result.likeness == pages::Likeness::Close ? tr("prints numbers close to the page's")
                                                                 : tr("prints something else than the page"));
        if (now.isOutdated)
            parts << tr("older than an edit above");
        const bool isWrong = result.status == pages::CellStatus::Raised || result.status == pages::CellStatus::Stopped;
        const bool isOdd = !result.findings.empty() || result.likeness == pages::Likeness::Different;
        return coloured(parts.join(QStringLiteral(" · ")).toHtmlEscaped(),
            isWrong     ? ColourRole::Error
                : isOdd ? ColourRole::Warning
                        : ColourRole::MutedText);
    }

    QString question(const pages::Question& question, const ShownCell& now) const
    {
        QString html
            = QStringLiteral("<table width='100%' cellspacing='0' cellpadding='8' bgcolor='%1'><tr><td>%2</td></tr></table>")
                  .arg(name(ColourRole::Surface), text(pages::wordsHtml(question.text)));
        if (now.isAnswered)
            html += text(pages::wordsHtml(now.result.output));
        return html;
    }

    QString wrong(const pages::CellResult& result) const
    {
        QString html;
        if (result.error) {
            const pages::PageError& error = *result.error;
            html += coloured(
                preformatted(error.type + ": " + error.message), error.isMissing ? ColourRole::Warning : ColourRole::Error);
            if (error.line > 0)
                html += paragraph(tr("in line %1 of the cell").arg(error.line), ColourRole::MutedText);
            if (error.isMissing)
                html += paragraph(tr("The page is correct: Meshwright does not support this yet."), ColourRole::MutedText);
            for (const std::string& note : error.notes) { // the message, the rule and the fix, a line each
                for (const QString& line : text(note).split(QLatin1Char('\n')))
                    html += paragraph(line, ColourRole::Text);
            }
        }
        for (const pages::PageFinding& finding : result.findings) {
            html += paragraph(text(finding.id + " " + finding.message), ColourRole::Warning);
            if (!finding.fix.empty())
                html += paragraph(tr("fix: %1").arg(text(finding.fix)), ColourRole::Text);
        }
        return html;
    }

    QString notes(const pages::CellResult& result) const
    {
        QString html;
        for (const std::string& note : result.notes)
            html += paragraph(text(note), ColourRole::MutedText);
        return html;
    }

    QString table(const QStringList& titles, const std::vector<QStringList>& rows) const
    {
        QString html = QStringLiteral("<table cellspacing='0' cellpadding='3' style='margin: 4px 0'><tr>");
        for (const QString& title : titles)
            html += QStringLiteral("<th align='left'>%1&nbsp;&nbsp;</th>")
                        .arg(coloured(title.toHtmlEscaped(), ColourRole::MutedText));
        html += QStringLiteral("</tr>");
        for (const QStringList& row : rows) {
            html += QStringLiteral("<tr>");
            for (const QString& part : row)
                html += QStringLiteral("<td>%1&nbsp;&nbsp;</td>").arg(part.toHtmlEscaped());
            html += QStringLiteral("</tr>");
        }
        return html + QStringLiteral("</table>");
    }

    QString values(const pages::CellResult& result) const
    {
        std::vector<QStringList> rows;
        for (const pages::PlacedValue& value : result.values)
            rows.push_back({text(value.name), text(value.type), text(value.layout), bytes(value.bytesPerDevice)});
        return rows.empty() ? QString() : table({tr("array"), tr("type"), tr("layout"), tr("bytes/device")}, rows);
    }

    QString collectives(const pages::CellResult& result) const
    {
        std::vector<QStringList> rows;
        for (const pages::PageCollective& row : result.collectives)
            rows.push_back({text(spokenOp(row.op)), text(row.axes), QString::number(row.calls), bytes(row.bytesPerDevice),
                text(row.program), text(row.cause)});
        return rows.empty()
            ? QString()
            : table({tr("collective"), tr("axes"), tr("calls"), tr("bytes/device"), tr("in"), tr("because")}, rows);
    }

    Theme m_theme;
};

} // namespace

QString cellAnchor(std::size_t cell)
{
    return QStringLiteral("cell-%1").arg(cell);
}

QString pageFlowHtml(const ShownPage& page, Theme theme)
{
    const FlowWriter writer(theme);
    QString html;
    for (std::size_t i = 0; i < page.count; ++i)
        html += writer.cell(page, i);
    if (page.count == page.page.cells.size())
        html += text(pages::wordsHtml(page.page.after));
    return html;
}

} // namespace meshwright::ui
