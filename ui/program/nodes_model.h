// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/draw_graph.h"
#include "sim/session/program_graph.h"

#include <QAbstractTableModel>

namespace meshwright::ui {

/// The nodes of the graph as a table: the same words for those who do not see the picture, and for a search.
class NodesModel : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { Name, What, Spec, ColumnCount };

    using QAbstractTableModel::QAbstractTableModel;

    void setGraph(const sim::ProgramGraph& graph, const GraphDrawing& drawing);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    struct Row {
        QString cells[ColumnCount];
        QString tooltip;
    };
    std::vector<Row> m_rows; ///< index: the node
};

} // namespace meshwright::ui
