// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explain/explanation_html.h"

#include "core/draw/draw_layout.h"
#include "core/sharding/layout.h"

#include <QCoreApplication>
#include <QStringList>

namespace meshwright::ui {

namespace {

QString tr(const char* text)
{
    return QCoreApplication::translate("meshwright::ui::ExplainView", text);
}

QString escaped(const std::string& text)
{
    return QString::fromStdString(text).toHtmlEscaped();
}

QString preformatted(const std::string& text)
{
    return QStringLiteral("<pre style='margin: 2px 0 8px 12px'>%1</pre>").arg(escaped(text));
}

/// The same with long lines broken.
QString quoted(const std::string& text)
{
    return QStringLiteral("<pre style='margin: 2px 0 8px 12px; white-space: pre-wrap'>%1</pre>").arg(escaped(text));
}

} // namespace

QString linesText(const Explanation& explanation)
{
    QStringList lines;
    for (const std::size_t line : explanation.lines)
        lines << QString::number(line);
    const std::size_t more = explanation.times > explanation.lines.size() ? explanation.times - explanation.lines.size() : 0;
    const QString text
        = lines.size() == 1 ? tr("line %1").arg(lines.front()) : tr("lines %1").arg(lines.join(QStringLiteral(", ")));
    return more == 0 ? text : tr("%1 and %2 more").arg(text).arg(more);
}

QString explanationHtml(const Explanation& explanation, const std::vector<QSize>& pictureSizes, std::size_t across)
{
    QString html = QStringLiteral("<h3>%1</h3><p>%2, %3</p>")
                       .arg(escaped(explanation.title), escaped(explanation.source), linesText(explanation));
    html += quoted(explanation.quote);
    html += QStringLiteral("<p>%1</p>").arg(escaped(explanation.meaning));
    if (!explanation.facts.empty()) {
        html += QStringLiteral("<table cellspacing='0' cellpadding='2'>");
        for (const MessageFact& fact : explanation.facts)
            html += QStringLiteral("<tr><td style='padding-right: 14px'><b>%1</b></td><td>%2</td></tr>")
                        .arg(escaped(fact.name), escaped(fact.value));
        html += QStringLiteral("</table>");
    }
    if (!explanation.remedies.empty())
        html += QStringLiteral("<h4>%1</h4>").arg(tr("What to do"));
    for (const Remedy& remedy : explanation.remedies) {
        html += QStringLiteral("<p>%1</p>").arg(escaped(remedy.text));
        if (!remedy.code.empty())
            html += preformatted(remedy.code);
    }
    if (!explanation.pictures.empty()) { // beside each other: before and after
        html += QStringLiteral("<table cellspacing='0' cellpadding='0'><tr>");
        for (std::size_t i = 0; i < explanation.pictures.size(); ++i) {
            const MessagePicture& picture = explanation.pictures[i];
            const QString image = QStringLiteral("<p><img src='layout:%1' width='%2' height='%3'/></p>")
                                      .arg(i)
                                      .arg(pictureSizes[i].width())
                                      .arg(pictureSizes[i].height());
            if (i > 0 && i % across == 0)
                html += QStringLiteral("</tr><tr>");
            html += QStringLiteral("<td style='padding-right: 28px; vertical-align: top'><p><b>%1</b></p>%2</td>")
                        .arg(escaped(picture.title), picture.layout ? image : preformatted(picture.drawing));
        }
        html += QStringLiteral("</tr></table>");
    }
    return html;
}

QString ncclHtml(const Result<sim::NcclLog>& log, const QString& path)
{
    QString html = QStringLiteral("<h3>%1</h3>").arg(tr("A log of nccl-tests"));
    html += log ? preformatted(sim::ncclText({*log})) : quoted(describe(log.error()));
    html += QStringLiteral("<h4>%1</h4><p>%2</p>").arg(tr("What to do"), tr("Make a profile of the links:"));
    html += preformatted("meshwright calibrate --nccl " + path.toStdString() + " -o links.json");
    html += QStringLiteral("<p>%1</p>").arg(tr("A study that names the profile is predicted with what was measured:"));
    html += preformatted("hardware: {profile: links.json}");
    return html;
}

DisplayList layoutPicture(const PicturedLayout& layout, QSize size)
{
    LayoutDrawing drawing;
    drawing.heading = false;
    drawing.platform = "device";
    drawing.deviceColours = DeviceColours(layout.mesh);
    DisplayList picture
        = drawLayoutInto(layoutOf(layout.shape, layout.sharding, layout.mesh), drawing, size.width(), size.height());
    picture.title = layoutText(layout.sharding, layout.mesh);
    return picture;
}

} // namespace meshwright::ui
