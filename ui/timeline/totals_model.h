// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/theme.h"
#include "ui/timeline/timeline_totals.h"

#include <QAbstractTableModel>
#include <QString>

#include <optional>
#include <vector>

namespace meshwright::ui {

/// The totals of an area as a table: for each group a heading when there are several, its categories, idle time and what of the exchange of data
/// is hidden behind computing, and the operations that take longest.
class TotalsModel : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { What, Time, Share, Slices, Bytes, Bandwidth, ColumnCount };

    using QAbstractTableModel::QAbstractTableModel;

    void setTotals(std::vector<GroupTotals> totals);
    void setTheme(Theme theme);

    /// True for rows that name a group.
    bool isHeading(int row) const;

    /// The name of the operation that a row is of; empty for other rows.
    QString operationOf(int row) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Row {
        bool isHeading = false;
        bool isOperation = false;
        std::optional<SliceCategory> category;
        QString cells[ColumnCount];
        QString toolTip;
    };

    void addGroup(const GroupTotals& totals);
    void addTotal(const QString& what, const CategoryTotal& total, double length);
    void addTime(const QString& what, double seconds, double length, const QString& toolTip);
    void addHeading(const QString& what, const QString& time);

    std::vector<Row> m_rows;
    std::int64_t m_devices = 0; ///< of the group that has most; 0: the host's
    Theme m_theme = Theme::Light;
};

} // namespace meshwright::ui
