// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <QAbstractTableModel>

#include <memory>
#include <vector>

namespace meshwright::ui {

/// A row for each collective of a step: what moves, over which mesh axes, why, how much, how long. Without hardware the times are absent.
class CollectivesModel : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { Operation, Axes, Value, Time, Exposed, Bytes, Calls, Phase, Cause, ColumnCount };

    /// The value to sort by: a number or a text.
    static constexpr int kSortRole = Qt::UserRole;
    /// Of the time column: the share of the longest time, 0 to 1, for a bar behind the text.
    static constexpr int kShareRole = Qt::UserRole + 1;

    using QAbstractTableModel::QAbstractTableModel;

    /// Precondition: analysis->scheduled.
    void setAnalysis(const std::shared_ptr<const sim::Analysis>& analysis);

    /// Times, formula and algorithm are empty without hardware. Precondition: the row exists.
    const sim::SimulatedCollective& collective(int row) const { return m_collectives[static_cast<std::size_t>(row)]; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    QString text(const sim::SimulatedCollective& collective, int column) const;
    QVariant sortValue(const sim::SimulatedCollective& collective, int column) const;

    std::vector<sim::SimulatedCollective> m_collectives;
    bool m_timed = false;
    double m_longestSeconds = 0.0;
};

/// "all-reduce" for AllReduce: as people say it.
QString spokenName(OpKind kind);

} // namespace meshwright::ui
