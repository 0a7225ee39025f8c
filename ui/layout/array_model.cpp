// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layout/array_model.h"

#include "core/models/array_name.h"
#include "core/study/stage_share.h"
#include "core/support/text.h"

#include <QFont>

namespace meshwright::ui {

namespace {

constexpr quintptr kGroupId = 0; ///< internal id of groups; an array's is the row of its group + 1

} // namespace

QString groupTitle(Role role)
{
    switch (role) {
    case Role::Parameter:
        return ArrayModel::tr("Parameters");
    case Role::OptimizerState:
        return ArrayModel::tr("Optimizer states");
    case Role::Gradient:
        return ArrayModel::tr("Gradients");
    case Role::Input:
        return ArrayModel::tr("Inputs");
    case Role::Metric:
        return ArrayModel::tr("Metrics");
    case Role::Activation:
        break;
    }
    return ArrayModel::tr("Activations");
}

Shape shardShapeOf(const sim::ProgramArray& array, const sim::Analysis& analysis)
{
    return stageShareOf(analysis.built->study, array.name, array.type.shape)
        .pieceOf(localShape(array.type.shape, array.sharding));
}

std::int64_t shardBytes(const sim::ProgramArray& array, const sim::Analysis& analysis)
{
    return elementCount(shardShapeOf(array, analysis)) * byteSize(array.type.dtype);
}

std::vector<ArrayModel::Group> ArrayModel::groupsOf(const sim::Analysis& analysis)
{
    std::vector<Group> groups; // the analysis has the arrays in the order of the groups
    for (std::size_t i = 0; i < analysis.arrays.size(); ++i) {
        const Role role = analysis.arrays[i].role;
        const bool isUpdated = arrayNameOf(analysis.arrays[i].name).family == ArrayName::Family::Updated;
        if (groups.empty() || groups.back().role != role || groups.back().isUpdated != isUpdated)
            groups.push_back({role, isUpdated, {}});
        groups.back().arrays.push_back(i);
    }
    return groups;
}

bool ArrayModel::hasSameRows(const sim::Analysis& analysis, const std::vector<Group>& groups) const
{
    return m_analysis
        && std::equal(groups.begin(), groups.end(), m_groups.begin(), m_groups.end(),
            [&](const Group& a, const Group& b) {
                return a.role == b.role && a.isUpdated == b.isUpdated && a.arrays == b.arrays;
            })
        && std::equal(analysis.arrays.begin(), analysis.arrays.end(), m_analysis->arrays.begin(), m_analysis->arrays.end(),
            [](const sim::ProgramArray& a, const sim::ProgramArray& b) { return a.name == b.name; });
}

void ArrayModel::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    std::vector<Group> groups = groupsOf(*analysis);
    if (hasSameRows(*analysis, groups)) {
        m_analysis = std::move(analysis);
        for (int group = 0; group < rowCount(); ++group) {
            const QModelIndex parent = index(group, 0);
            Q_EMIT dataChanged(index(0, 0, parent), index(rowCount(parent) - 1, ColumnCount - 1, parent));
        }
        return;
    }
    beginResetModel();
    m_analysis = std::move(analysis);
    m_groups = std::move(groups);
    endResetModel();
}

const sim::ProgramArray* ArrayModel::arrayAt(const QModelIndex& index) const
{
    if (!index.isValid() || index.internalId() == kGroupId)
        return nullptr;
    const Group& group = m_groups[static_cast<std::size_t>(index.internalId() - 1)];
    return &m_analysis->arrays[group.arrays[static_cast<std::size_t>(index.row())]];
}

QModelIndex ArrayModel::indexOf(const QString& name) const
{
    for (int group = 0; group < rowCount(); ++group) {
        const QModelIndex parent = index(group, 0);
        for (int row = 0; row < rowCount(parent); ++row) {
            const QModelIndex found = index(row, 0, parent);
            if (QString::fromStdString(arrayAt(found)->name) == name)
                return found;
        }
    }
    return {};
}

QModelIndex ArrayModel::index(int row, int column, const QModelIndex& parent) const
{
    if (!hasIndex(row, column, parent))
        return {};
    return createIndex(row, column, parent.isValid() ? static_cast<quintptr>(parent.row()) + 1 : kGroupId);
}

QModelIndex ArrayModel::parent(const QModelIndex& child) const
{
    if (!child.isValid() || child.internalId() == kGroupId)
        return {};
    return createIndex(static_cast<int>(child.internalId() - 1), 0, kGroupId);
}

int ArrayModel::rowCount(const QModelIndex& parent) const
{
    if (!parent.isValid())
        return static_cast<int>(m_groups.size());
    if (parent.internalId() != kGroupId || parent.column() != 0)
        return 0;
    return static_cast<int>(m_groups[static_cast<std::size_t>(parent.row())].arrays.size());
}

int ArrayModel::columnCount(const QModelIndex&) const
{
    return ColumnCount;
}

QVariant ArrayModel::groupData(const Group& group, int column, int role) const
{
    if (column != Name)
        return {};
    if (role == Qt::DisplayRole)
        return tr(group.isUpdated ? "%1, updated (%2)" : "%1 (%2)").arg(groupTitle(group.role)).arg(group.arrays.size());
    if (role == Qt::FontRole) {
        QFont bold;
        bold.setBold(true);
        return bold;
    }
    return {};
}

QVariant ArrayModel::arrayData(const sim::ProgramArray& array, int column, int role) const
{
    const auto text = [&](int of) {
        switch (of) {
        case Name:
            return array.name;
        case Spec:
            return array.spec;
        case Sizes:
            return shapeText(array.type.shape);
        default:
            return formatBytes(static_cast<double>(shardBytes(array, *m_analysis)));
        }
    };
    switch (role) {
    case Qt::DisplayRole:
        return QString::fromStdString(text(column));
    case Qt::ToolTipRole:
        return tr("%1: %2 as %3, %4 a device")
            .arg(QString::fromStdString(array.name), QString::fromStdString(typeText(array.type)),
                QString::fromStdString(array.spec), QString::fromStdString(text(Bytes)));
    case Qt::AccessibleTextRole:
        return column == Name ? QString::fromStdString(array.name + ", " + array.spec) : QString::fromStdString(text(column));
    case Qt::TextAlignmentRole:
        return int(column >= Sizes ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
    case kIsShardedRole:
        return column == Spec ? QVariant(!array.sharding.isReplicated()) : QVariant();
    default:
        return {};
    }
}

QVariant ArrayModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    if (const sim::ProgramArray* array = arrayAt(index))
        return arrayData(*array, index.column(), role);
    return groupData(m_groups[static_cast<std::size_t>(index.row())], index.column(), role);
}

QVariant ArrayModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    const std::array names = {tr("Array"), tr("Layout"), tr("Shape"), tr("Per device")};
    if (role == Qt::DisplayRole)
        return names[static_cast<std::size_t>(section)];
    if (role == Qt::TextAlignmentRole)
        return int(section >= Sizes ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
    return {};
}

Qt::ItemFlags ArrayModel::flags(const QModelIndex& index) const
{
    if (!index.isValid())
        return Qt::NoItemFlags;
    return arrayAt(index) ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemNeverHasChildren : Qt::ItemIsEnabled;
}

} // namespace meshwright::ui

#include "moc_array_model.cpp"
