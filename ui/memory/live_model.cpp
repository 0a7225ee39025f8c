// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/memory/live_model.h"

#include "core/support/text.h"
#include "ui/widgets/table.h"

#include <algorithm>
#include <array>

namespace meshwright::ui {

void LiveModel::setSimulated(std::shared_ptr<const sim::SimulatedStudy> simulated)
{
    beginResetModel();
    m_simulated = std::move(simulated);
    m_total = 0;
    for (int row = 0; row < rowCount(); ++row)
        m_total += value(row).bytes;
    endResetModel();
}

int LiveModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() || !m_simulated ? 0 : static_cast<int>(m_simulated->liveAtPeak.size());
}

int LiveModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

double LiveModel::shareOf(const sim::LiveValue& value) const
{
    return m_total > 0 ? static_cast<double>(value.bytes) / static_cast<double>(m_total) : 0.0;
}

QString LiveModel::text(const sim::LiveValue& value, int column) const
{
    switch (column) {
    case Name:
        return QString::fromStdString(value.name);
    case Kind:
        return QString::fromUtf8(memoryKindName(value.kind));
    case Bytes:
        return QString::fromStdString(formatBytes(static_cast<double>(value.bytes)));
    case Share: {
        const double percent = 100.0 * shareOf(value);
        return percent > 0.0 && percent < 0.1 ? tr("< 0.1 %") : tr("%1 %").arg(percent, 0, 'f', 1);
    }
    default:
        return {};
    }
}

QVariant LiveModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    const sim::LiveValue& shown = value(index.row());
    switch (role) {
    case Qt::DisplayRole:
        return text(shown, index.column());
    case Qt::TextAlignmentRole:
        return headerData(index.column(), Qt::Horizontal, role);
    case kSortRole:
        return index.column() >= Bytes ? QVariant(static_cast<qlonglong>(shown.bytes)) : QVariant(text(shown, index.column()));
    case kShareRole:
        return index.column() == Share ? QVariant(shareOf(shown)) : QVariant();
    case kKindRole:
        return static_cast<int>(shown.kind);
    default:
        return {};
    }
}

QVariant LiveModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    static constexpr std::array<Heading, ColumnCount> kHeadings = {{
        {QT_TR_NOOP("Array"), QT_TR_NOOP("The value whose buffer is in use at the peak; others may follow it in the same place")},
        {QT_TR_NOOP("Kind"), QT_TR_NOOP("What the memory is used for")},
        {QT_TR_NOOP("Bytes"), QT_TR_NOOP("On one device"), true},
        {QT_TR_NOOP("Share"), QT_TR_NOOP("Of all that is in use at the peak"), true},
    }};
    return headingData(*this, kHeadings, section, orientation, role);
}

} // namespace meshwright::ui

#include "moc_live_model.cpp"
