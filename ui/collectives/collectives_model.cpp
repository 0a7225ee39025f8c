// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/collectives/collectives_model.h"

#include "core/program/spoken_op.h"
#include "core/support/text.h"
#include "ui/models/step_collectives.h"
#include "ui/widgets/table.h"
#include "ui/widgets/view.h"

#include <algorithm>

namespace meshwright::ui {

void CollectivesModel::setAnalysis(const std::shared_ptr<const sim::Analysis>& analysis)
{
    beginResetModel();
    m_timed = analysis->simulated != nullptr;
    const std::vector<sim::SimulatedCollective> collectives = stepCollectives(*analysis);
    m_count = static_cast<int>(collectives.size());
    m_rows = sim::alikeCollectives(collectives);
    m_longestSeconds = 0.0;
    for (const sim::AlikeCollectives& row : m_rows)
        m_longestSeconds = std::max(m_longestSeconds, row.all.seconds);
    endResetModel();
}

int CollectivesModel::rowOf(std::size_t collective) const
{
    const auto found = std::ranges::find_if(
        m_rows, [&](const sim::AlikeCollectives& row) { return std::ranges::binary_search(row.members, collective); });
    return found == m_rows.end() ? -1 : static_cast<int>(found - m_rows.begin());
}

int CollectivesModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int CollectivesModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QString CollectivesModel::text(const sim::SimulatedCollective& collective, int column) const
{
    const CollectiveUse& use = collective.use;
    switch (column) {
    case Operation:
        return QString::fromStdString(spokenOp(use.kind));
    case Axes:
        return QString::fromStdString(use.axes);
    case Value:
        return QString::fromStdString(use.cause.value);
    case Cause:
        return writtenCause(use.cause.annotation);
    case Phase:
        return QString::fromUtf8(phaseName(use.phase));
    case Calls:
        return QString::number(use.count);
    case Bytes:
        return QString::fromStdString(formatBytes(static_cast<double>(use.payloadBytes)));
    case Time:
        return m_timed ? QString::fromStdString(formatSeconds(collective.seconds)) : QString();
    case Exposed:
        return m_timed ? QString::fromStdString(formatSeconds(collective.exposedSeconds)) : QString();
    default:
        return {};
    }
}

QVariant CollectivesModel::sortValue(const sim::SimulatedCollective& collective, int column) const
{
    switch (column) {
    case Calls:
        return static_cast<qlonglong>(collective.use.count);
    case Bytes:
        return static_cast<qlonglong>(collective.use.payloadBytes);
    case Time:
        return collective.seconds;
    case Exposed:
        return collective.exposedSeconds;
    default:
        return text(collective, column);
    }
}

QVariant CollectivesModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    const sim::SimulatedCollective& shown = collective(index.row());
    switch (role) {
    case Qt::DisplayRole:
        return text(shown, index.column());
    case Qt::ToolTipRole:
        return QString::fromStdString(shown.use.cause.reason);
    case Qt::TextAlignmentRole:
        return headerData(index.column(), Qt::Horizontal, role);
    case kSortRole:
        return sortValue(shown, index.column());
    case kShareRole:
        return index.column() == Time && m_longestSeconds > 0.0 ? QVariant(shown.seconds / m_longestSeconds) : QVariant();
    default:
        return {};
    }
}

QVariant CollectivesModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    static constexpr std::array<Heading, ColumnCount> kHeadings = {{
        {QT_TR_NOOP("Collective"), QT_TR_NOOP("The operation between devices")},
        {QT_TR_NOOP("Over"), QT_TR_NOOP("The mesh axes along which devices exchange")},
        {QT_TR_NOOP("Value"), QT_TR_NOOP("The array that moves")},
        {QT_TR_NOOP("Time"), QT_TR_NOOP("Of all calls in a step, hidden behind computing or not"), true},
        {QT_TR_NOOP("Exposed"), QT_TR_NOOP("Of it, the time that computing waits"), true},
        {QT_TR_NOOP("Per device"),
            QT_TR_NOOP("Payload bytes of one device and call: the operand's, of an all-gather the result's"), true},
        {QT_TR_NOOP("Calls"), QT_TR_NOOP("How often in a step"), true},
        {QT_TR_NOOP("Phase"), QT_TR_NOOP("The part of the step that it belongs to")},
        {QT_TR_NOOP("Caused by"), QT_TR_NOOP("The spec in the study behind it, where one is known")},
    }};
    return headingData(*this, kHeadings, section, orientation, role);
}

} // namespace meshwright::ui

#include "moc_collectives_model.cpp"
