// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/grouped_model.h"

#include <algorithm>

namespace meshwright::ui {

namespace {

constexpr quintptr kGroupId = 0; ///< internal id of groups; an array's is the row of its group + 1

} // namespace

QString groupTitle(Role role)
{
    switch (role) {
    case Role::Parameter:
        return QObject::tr("Parameters");
    case Role::OptimizerState:
        return QObject::tr("Optimizer states");
    case Role::Gradient:
        return QObject::tr("Gradients");
    case Role::Input:
        return QObject::tr("Inputs");
    case Role::Metric:
        return QObject::tr("Metrics");
    case Role::Activation:
        break;
    }
    return QObject::tr("Activations");
}

void GroupedModel::append(std::vector<Group>& groups, const QString& title, const std::string& name)
{
    if (groups.empty() || groups.back().title != title)
        groups.push_back({title, groups.empty() ? 0 : groups.back().first + groups.back().names.size(), {}});
    groups.back().names.push_back(name);
}

bool GroupedModel::setGroups(std::vector<Group> groups, const std::function<void()>& take)
{
    if (groups != m_groups) {
        beginResetModel();
        take();
        m_groups = std::move(groups);
        endResetModel();
        return false;
    }
    take();
    for (int row = 0; row < rowCount(); ++row) {
        const QModelIndex group = index(row, 0);
        Q_EMIT dataChanged(index(0, 0, group), index(rowCount(group) - 1, columnCount(group) - 1, group));
    }
    return true;
}

const GroupedModel::Group& GroupedModel::groupOf(const QModelIndex& index) const
{
    const quintptr row = index.internalId() == kGroupId ? static_cast<quintptr>(index.row()) : index.internalId() - 1;
    return m_groups[static_cast<std::size_t>(row)];
}

std::optional<std::size_t> GroupedModel::arrayNumber(const QModelIndex& index) const
{
    if (!index.isValid() || index.internalId() == kGroupId)
        return std::nullopt;
    return groupOf(index).first + static_cast<std::size_t>(index.row());
}

QModelIndex GroupedModel::indexOf(const QString& name, int column) const
{
    for (int row = 0; row < rowCount(); ++row) {
        const QModelIndex group = index(row, 0);
        const std::vector<std::string>& names = groupOf(group).names;
        const auto found = std::find(names.begin(), names.end(), name.toStdString());
        if (found != names.end())
            return index(static_cast<int>(found - names.begin()), column, group);
    }
    return {};
}

QModelIndex GroupedModel::index(int row, int column, const QModelIndex& parent) const
{
    if (!hasIndex(row, column, parent))
        return {};
    return createIndex(row, column, parent.isValid() ? static_cast<quintptr>(parent.row()) + 1 : kGroupId);
}

QModelIndex GroupedModel::parent(const QModelIndex& child) const
{
    if (!child.isValid() || child.internalId() == kGroupId)
        return {};
    return createIndex(static_cast<int>(child.internalId() - 1), 0, kGroupId);
}

int GroupedModel::rowCount(const QModelIndex& parent) const
{
    if (!parent.isValid())
        return static_cast<int>(m_groups.size());
    if (parent.internalId() != kGroupId || parent.column() != 0)
        return 0;
    return static_cast<int>(groupOf(parent).names.size());
}

Qt::ItemFlags GroupedModel::flags(const QModelIndex& index) const
{
    if (!index.isValid())
        return Qt::NoItemFlags;
    return arrayNumber(index) ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemNeverHasChildren : Qt::ItemIsEnabled;
}

} // namespace meshwright::ui
