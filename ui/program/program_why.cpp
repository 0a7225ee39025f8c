// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/program/program_why.h"

#include "core/propagate/explain.h"
#include "core/support/text.h"

#include <QCoreApplication>
#include <QStringList>

namespace meshwright::ui {

namespace {

QString tr(const char* text)
{
    return QCoreApplication::translate("meshwright::ui::ProgramView", text);
}

QString plain(const std::string& text)
{
    return QString::fromStdString(text).toHtmlEscaped();
}

QString link(const QString& target, const QString& text)
{
    return QStringLiteral("<a href=\"%1\">%2</a>").arg(target.toHtmlEscaped(), text.toHtmlEscaped());
}

QString paragraph(const QString& html)
{
    return QStringLiteral("<p style='margin: 0 0 6px 0'>%1</p>").arg(html);
}

class WhyHtml {
public:
    explicit WhyHtml(const sim::ProgramGraph& graph)
        : m_graph(graph)
        , m_function(*graph.function)
    {
    }

    QString of(ValueId value) const
    {
        const Value& shown = m_function[value];
        QString html = paragraph(QStringLiteral("<b>%1</b> %2<br>%3")
                                     .arg(plain(valueText(m_function, value)), plain(typeText(shown.type)),
                                         plain(shown.sharding ? layoutText(*shown.sharding, m_graph.mesh()) : std::string())));
        const auto ways = shardingWays(m_function, *m_graph.report, value);
        for (const auto& way : ways)
            html += wayHtml(way);
        if (ways.empty())
            html += paragraph(tr("No annotation reaches it: every device holds all of it."));
        return html + lostHtml(value);
    }

    QString valueLink(ValueId value) const
    {
        return link(QStringLiteral("value:%1").arg(value.at()), QString::fromStdString(valueText(m_function, value)));
    }

    QString axis(const AxisRef& ref) const
    {
        const auto index = static_cast<std::size_t>(ref.axis);
        const std::string& name = m_graph.mesh().axes()[index].name;
        return QString::fromStdString(ref == wholeAxis(m_graph.mesh(), index) ? name : axisText(ref, m_graph.mesh()));
    }

private:
    static QString annotationLink(const std::string& annotation)
    {
        const QString path = QString::fromStdString(annotation);
        return path.startsWith(QLatin1String("sharding.")) ? link(QStringLiteral("spec:") + path, path) : path.toHtmlEscaped();
    }

    /// One line a link: where the axis came from, and through which op.
    QString wayHtml(const std::vector<ShardingReason>& way) const
    {
        QStringList lines
            = {tr("Dimension %1 is split by <b>%2</b>:").arg(way.front().dim).arg(axis(way.front().axis).toHtmlEscaped())};
        for (const ShardingReason& reason : way) {
            if (reason.from.valid())
                lines << QStringLiteral("&nbsp;&nbsp;← ") + tr("%1, from %2").arg(plain(reason.step), valueLink(reason.from));
            else
                lines << QStringLiteral("&nbsp;&nbsp;← ") + tr("written at %1").arg(annotationLink(reason.annotation));
        }
        return paragraph(lines.join(QStringLiteral("<br>")));
    }

    /// What the value did not get, and what it kept from others.
    QString lostHtml(ValueId value) const
    {
        QString html;
        for (const ShardingConflict& conflict : m_graph.report->conflicts) {
            if (conflict.value != value && conflict.wantedBy != value)
                continue;
            QString text = tr("Conflict: %1 wanted <b>%2</b> in dimension %3 of %4, and lost: %5.")
                               .arg(conflict.wantedBy.valid() ? valueLink(conflict.wantedBy) : tr("an op"))
                               .arg(axis(conflict.axis).toHtmlEscaped())
                               .arg(conflict.dim)
                               .arg(valueLink(conflict.value), plain(conflict.reason));
            if (!conflict.loser.empty())
                text += QLatin1Char(' ') + tr("Loser: %1.").arg(annotationLink(conflict.loser));
            if (!conflict.winner.empty())
                text += QLatin1Char(' ') + tr("Winner: %1.").arg(annotationLink(conflict.winner));
            html += paragraph(text);
        }
        return html;
    }

    const sim::ProgramGraph& m_graph;
    const Function& m_function;
};

} // namespace

QString valueWhyHtml(const sim::ProgramGraph& graph, ValueId value)
{
    return WhyHtml(graph).of(value);
}

QString collectiveWhyHtml(const sim::ProgramGraph& graph, std::size_t index)
{
    const sim::SimulatedCollective& collective = graph.collectives[index];
    const CollectiveUse& use = collective.use;
    QString html = paragraph(QStringLiteral("<b>%1</b>").arg(plain(sim::collectiveTitle(collective))));
    html += paragraph(tr("Why: %1.").arg(plain(use.cause.reason)));
    html += paragraph(
        (graph.isOfWholeModel(index) ? tr("Of the whole model and batch, before stages and microbatches: %1 per device, %2.")
                                     : tr("Moves %1 per device, %2 in a step."))
            .arg(plain(formatBytes(static_cast<double>(use.payloadBytes))),
                use.count == 1 ? tr("once") : tr("%1 times").arg(use.count)));
    if (collective.seconds > 0.0)
        html += paragraph(tr("Takes %1; computing waits for %2 of it.")
                              .arg(plain(formatSeconds(collective.seconds)), plain(formatSeconds(collective.exposedSeconds))));
    if (const QString path = QString::fromStdString(use.cause.annotation); path.startsWith(QLatin1String("sharding.")))
        html += paragraph(tr("Caused by %1.").arg(link(QStringLiteral("spec:") + path, path)));
    return html;
}

std::set<ValueId> valuesOnTheWay(const sim::ProgramGraph& graph, ValueId value)
{
    std::set<ValueId> values = {value};
    for (const auto& way : shardingWays(*graph.function, *graph.report, value)) {
        for (const ShardingReason& reason : way) {
            values.insert(reason.value);
            if (reason.from.valid())
                values.insert(reason.from);
        }
    }
    return values;
}

QString stepText(const sim::ProgramGraph& graph, std::size_t step)
{
    const ShardingReason& reason = graph.report->reasons[step];
    const auto name = [&](ValueId value) { return QString::fromStdString(valueText(*graph.function, value)); };
    const QString gets
        = tr("%1 gets %2 in dimension %3").arg(name(reason.value), WhyHtml(graph).axis(reason.axis)).arg(reason.dim);
    if (!reason.from.valid())
        return tr("%1, written at %2").arg(gets, QString::fromStdString(reason.annotation));
    const QString through = reason.through.valid()
        ? QString::fromStdString(std::string(opName((*graph.function)[reason.through])))
        : QString::fromStdString(reason.step);
    return tr("%1 from %2 through %3").arg(gets, name(reason.from), through);
}

} // namespace meshwright::ui
