// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/program/nodes_model.h"

#include "ui/widgets/table.h"

#include <array>

namespace meshwright::ui {

namespace {

QString specOf(const sim::ProgramGraph& graph, const sim::ProgramNode& node)
{
    if (node.kind == GraphNodeKind::Collective || node.values.size() != 1)
        return {};
    const auto& sharding = (*graph.function)[node.values.front()].sharding;
    return sharding ? QString::fromStdString(layoutText(*sharding, graph.mesh())) : QString();
}

} // namespace

void NodesModel::setGraph(const sim::ProgramGraph& graph, const GraphDrawing& drawing)
{
    beginResetModel();
    m_rows.clear();
    for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
        const DrawnGraphNode& drawn = drawing.nodes[node];
        m_rows.push_back(
            {{QString::fromStdString(drawn.title), QString::fromStdString(drawn.detail), specOf(graph, graph.nodes[node])},
                QString::fromStdString(drawn.tooltip)});
    }
    endResetModel();
}

int NodesModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int NodesModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant NodesModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    const Row& row = m_rows[static_cast<std::size_t>(index.row())];
    if (role == Qt::DisplayRole)
        return row.cells[index.column()];
    if (role == Qt::ToolTipRole)
        return row.tooltip;
    return {};
}

QVariant NodesModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    static constexpr std::array<Heading, ColumnCount> kHeadings
        = {{{QT_TR_NOOP("Value or op")}, {QT_TR_NOOP("What")}, {QT_TR_NOOP("Spec")}}};
    return headingData(*this, kHeadings, section, orientation, role);
}

} // namespace meshwright::ui

#include "moc_nodes_model.cpp"
