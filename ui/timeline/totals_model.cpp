// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/totals_model.h"

#include "core/support/text.h"
#include "ui/timeline/legend.h"
#include "ui/timeline/slice_facts.h"

#include <QFont>
#include <QLocale>

namespace meshwright::ui {

namespace {

QString time(double seconds)
{
    return QString::fromStdString(formatSeconds(seconds));
}

QString share(double part, double whole)
{
    return whole > 0.0 ? QString::fromStdString(shareText(part / whole)) : QString();
}

} // namespace

void TotalsModel::setTotals(std::vector<GroupTotals> totals)
{
    beginResetModel();
    m_rows.clear();
    m_devices = 0;
    for (const GroupTotals& group : totals) {
        m_devices = std::max(m_devices, group.devices);
        if (totals.size() > 1)
            addHeading(QString::fromStdString(group.name), time(group.seconds.length()));
        addGroup(group);
    }
    for (const GroupTotals& group : totals) {
        if (group.longest.empty())
            continue;
        addHeading(totals.size() > 1 ? tr("longest, %1").arg(QString::fromStdString(group.name)) : tr("longest operations"), {});
        for (const NameTotal& name : group.longest) {
            addTotal(QString::fromStdString(name.name), name.total, group.seconds.length());
            m_rows.back().isOperation = true;
        }
    }
    endResetModel();
}

void TotalsModel::addHeading(const QString& what, const QString& time)
{
    Row& row = m_rows.emplace_back();
    row.isHeading = true;
    row.cells[What] = what;
    row.cells[Time] = time;
}

void TotalsModel::addTime(const QString& what, double seconds, double length, const QString& toolTip)
{
    Row& row = m_rows.emplace_back();
    row.cells[What] = what;
    row.cells[Time] = time(seconds);
    row.cells[Share] = share(seconds, length);
    row.toolTip = toolTip;
}

void TotalsModel::addTotal(const QString& what, const CategoryTotal& total, double length)
{
    addTime(what, total.seconds, length, {});
    Row& row = m_rows.back();
    row.category = total.category;
    row.cells[Slices] = QLocale(QLocale::English).toString(static_cast<qlonglong>(total.slices));
    if (total.bytes <= 0.0)
        return;
    row.cells[Bytes] = QString::fromStdString(formatBytes(total.bytes));
    row.cells[Bandwidth] = QString::fromStdString(bandwidthText(total.bytesPerSecond()));
    row.toolTip = isCommunication(total.category) ? tr("Payload per device, and payload by time")
                                                  : tr("Bytes read and written per device, and bytes by time");
}

void TotalsModel::addGroup(const GroupTotals& totals)
{
    const double length = totals.seconds.length();
    for (const CategoryTotal& total : totals.categories)
        addTotal(QString::fromUtf8(categoryName(total.category)), total, length);
    addTime(tr("idle"), totals.idleSeconds, length, tr("Time when no row of the device has a slice"));
    if (totals.communicationSeconds <= 0.0)
        return;
    addTime(tr("hidden exchange"), totals.overlapSeconds, length,
        tr("Time when the device exchanges data while it computes: %1 of the exchange")
            .arg(share(totals.overlapSeconds, totals.communicationSeconds)));
    addTime(tr("exposed exchange"), totals.exposedSeconds(), length,
        tr("Time when the device exchanges data and does not compute: %1 of the exchange")
            .arg(share(totals.exposedSeconds(), totals.communicationSeconds)));
}

QString TotalsModel::operationOf(int row) const
{
    const Row& asked = m_rows[static_cast<std::size_t>(row)];
    return asked.isOperation ? asked.cells[What] : QString();
}

void TotalsModel::setTheme(Theme theme)
{
    m_theme = theme;
    if (!m_rows.empty())
        Q_EMIT dataChanged(index(0, What), index(rowCount() - 1, What), {Qt::DecorationRole});
}

bool TotalsModel::isHeading(int row) const
{
    return m_rows[static_cast<std::size_t>(row)].isHeading;
}

int TotalsModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int TotalsModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(ColumnCount);
}

QVariant TotalsModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    const Row& row = m_rows[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return row.cells[index.column()];
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(Qt::Alignment(index.column() == What ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case Qt::DecorationRole:
        return index.column() == What && row.category ? QVariant(categorySwatch(*row.category, m_theme)) : QVariant();
    case Qt::ToolTipRole:
        return row.toolTip.isEmpty() ? QVariant() : QVariant(row.toolTip);
    case Qt::FontRole: {
        if (!row.isHeading)
            return {};
        QFont bold;
        bold.setBold(true);
        return bold;
    }
    default:
        return {};
    }
}

QVariant TotalsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(Qt::Alignment(section == What ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole && section == Share)
        return tr("Of the time shown. Rows of a device overlap, so shares may add up to more than 100 %");
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case What:
        return m_rows.empty() || m_devices == 1 ? tr("Per device")
            : m_devices == 0                    ? tr("Host")
                                                : tr("Mean of the %1 devices shown").arg(m_devices);
    case Time:
        return tr("Time");
    case Share:
        return tr("Share");
    case Slices:
        return tr("Slices");
    case Bytes:
        return tr("Bytes");
    default:
        return tr("Bandwidth");
    }
}

} // namespace meshwright::ui

#include "moc_totals_model.cpp"
