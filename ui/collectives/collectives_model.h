// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/compare/alike_collectives.h"
#include "sim/session/session.h"

#include <QAbstractTableModel>

#include <memory>
#include <vector>

namespace meshwright::ui {

/// The collectives of a step: what moves, over which mesh axes, why, how much, how long. Without hardware the times are absent. Those that differ only in
/// the layers, the pieces of a pipeline or the chunks of a loss that they are of are one row, whose calls and times are of all of them.
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

    /// What a row says: of several collectives the sums, and all else of the first. Times, formula and algorithm are empty without hardware.
    /// Precondition: the row exists.
    const sim::SimulatedCollective& collective(int row) const { return m_rows[static_cast<std::size_t>(row)].all; }

    /// The collectives of a row, by their places in `stepCollectives`; never empty. Precondition: the row exists.
    const std::vector<std::size_t>& members(int row) const { return m_rows[static_cast<std::size_t>(row)].members; }

    /// The row of a collective by its place in `stepCollectives`; -1: there is none.
    int rowOf(std::size_t collective) const;

    /// All collectives of the step.
    int collectiveCount() const { return m_count; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    QString text(const sim::SimulatedCollective& collective, int column) const;
    QVariant sortValue(const sim::SimulatedCollective& collective, int column) const;

    std::vector<sim::AlikeCollectives> m_rows;
    int m_count = 0;
    bool m_timed = false;
    double m_longestSeconds = 0.0;
};

} // namespace meshwright::ui
