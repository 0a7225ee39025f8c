// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <QAbstractTableModel>

namespace meshwright::ui {

/// What is in memory at the peak of a step, a row a value. Keeps the simulated study alive.
class LiveModel : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { Name, Kind, Bytes, Share, ColumnCount };
    static constexpr int kSortRole = Qt::UserRole; ///< a value that sorts as the figure it stands for
    static constexpr int kShareRole = Qt::UserRole + 1; ///< 0 to 1, of the column Share only
    static constexpr int kKindRole = Qt::UserRole + 2; ///< MemoryKind as an int

    using QAbstractTableModel::QAbstractTableModel;

    /// Null: nothing.
    void setSimulated(std::shared_ptr<const sim::SimulatedStudy> simulated);
    const sim::LiveValue& value(int row) const { return m_simulated->liveAtPeak[static_cast<std::size_t>(row)]; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    double shareOf(const sim::LiveValue& value) const;
    QString text(const sim::LiveValue& value, int column) const;

    std::shared_ptr<const sim::SimulatedStudy> m_simulated;
    std::int64_t m_total = 0; ///< bytes of all values
};

} // namespace meshwright::ui
