// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/spec_model.h"

#include "core/support/counted.h"

#include <QColor>

namespace meshwright::ui {

namespace {

QString groupTitle(Role role)
{
    switch (role) {
    case Role::Input:
        return SpecModel::tr("Inputs");
    case Role::Parameter:
        return SpecModel::tr("Parameters");
    case Role::OptimizerState:
        return SpecModel::tr("Optimizer states");
    case Role::Gradient:
        return SpecModel::tr("Gradients");
    case Role::Activation:
    case Role::Metric:
        break;
    }
    return SpecModel::tr("Activations");
}

/// Without what the group says: `grad.layers.0.w` is layers.0.w among the gradients.
QString nameInGroup(const ArrayFacts& array)
{
    const QString name = QString::fromStdString(array.array.name);
    for (const char* family : {"act.", "grad.", "opt."}) {
        if (name.startsWith(QLatin1String(family)))
            return name.mid(static_cast<qsizetype>(qstrlen(family)));
    }
    return name;
}

QString tooltipOf(const StudyFacts& facts, const ArrayFacts& array)
{
    QStringList lines;
    lines << QString::fromStdString(fmt::format("{} {}", array.array.name, typeText({array.dtype, array.array.shape})));
    if (!array.spec.empty())
        lines << QString::fromStdString(array.spec);
    for (const SpecProblem& problem : array.problems)
        lines << QString::fromStdString(problem.problem.message);
    if (const std::string reason = facts.reasonOf(array); !reason.empty())
        lines << QString::fromStdString(reason);
    return lines.join(QLatin1Char('\n'));
}

} // namespace

SpecModel::SpecModel(QObject* parent)
    : QAbstractItemModel(parent)
{
}

std::vector<SpecModel::Group> SpecModel::groupsOf(const StudyFacts& facts)
{
    std::vector<Group> groups;
    for (std::size_t i = 0; i < facts.arrays.size(); ++i) {
        const bool hasKinds = facts.study.trains();
        const Role role = !hasKinds || facts.arrays[i].role == Role::Metric ? Role::Activation : facts.arrays[i].role;
        if (groups.empty() || groups.back().role != role)
            groups.push_back({role, {}});
        groups.back().arrays.push_back(i);
    }
    return groups;
}

bool SpecModel::hasSameRows(const StudyFacts& facts) const
{
    return m_facts
        && std::equal(facts.arrays.begin(), facts.arrays.end(), m_facts->arrays.begin(), m_facts->arrays.end(),
            [](const ArrayFacts& a, const ArrayFacts& b) { return a.array.name == b.array.name && a.role == b.role; });
}

void SpecModel::setFacts(std::shared_ptr<const StudyFacts> facts)
{
    if (!hasSameRows(*facts)) {
        beginResetModel();
        m_facts = std::move(facts);
        m_groups = groupsOf(*m_facts);
        endResetModel();
        return;
    }
    m_facts = std::move(facts);
    for (std::size_t i = 0; i < m_groups.size(); ++i) {
        const QModelIndex group = index(static_cast<int>(i), 0);
        const int rows = rowCount(group);
        Q_EMIT dataChanged(index(0, 0, group), index(rows - 1, kColumns - 1, group));
    }
    Q_EMIT factsChanged();
}

/// Program files do not say what their arrays are for.
QString SpecModel::titleOf(const Group& group) const
{
    return m_facts->study.trains() ? groupTitle(group.role) : tr("Arrays");
}

const ArrayFacts* SpecModel::arrayAt(const QModelIndex& index) const
{
    if (!index.isValid() || index.internalId() == 0)
        return nullptr;
    const Group& group = m_groups[index.internalId() - 1];
    return &m_facts->arrays[group.arrays[static_cast<std::size_t>(index.row())]];
}

QModelIndex SpecModel::indexOf(const QString& array, Column column) const
{
    const std::string name = array.toStdString();
    for (std::size_t g = 0; g < m_groups.size(); ++g) {
        const auto& rows = m_groups[g].arrays;
        const auto row
            = std::find_if(rows.begin(), rows.end(), [&](std::size_t i) { return m_facts->arrays[i].array.name == name; });
        if (row != rows.end())
            return index(static_cast<int>(row - rows.begin()), column, index(static_cast<int>(g), 0));
    }
    return {};
}

// The internal id is 0 for groups, and the group's number plus one for its arrays.

QModelIndex SpecModel::index(int row, int column, const QModelIndex& parent) const
{
    if (!hasIndex(row, column, parent))
        return {};
    return createIndex(row, column, parent.isValid() ? static_cast<quintptr>(parent.row()) + 1 : 0);
}

QModelIndex SpecModel::parent(const QModelIndex& child) const
{
    if (!child.isValid() || child.internalId() == 0)
        return {};
    return createIndex(static_cast<int>(child.internalId() - 1), 0, quintptr{0});
}

int SpecModel::rowCount(const QModelIndex& parent) const
{
    if (!parent.isValid())
        return static_cast<int>(m_groups.size());
    if (parent.internalId() != 0 || parent.column() != 0)
        return 0;
    return static_cast<int>(m_groups[static_cast<std::size_t>(parent.row())].arrays.size());
}

int SpecModel::columnCount(const QModelIndex&) const
{
    return kColumns;
}

QVariant SpecModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    const ArrayFacts* array = arrayAt(index);
    if (array == nullptr) {
        const Group& group = m_groups[static_cast<std::size_t>(index.row())];
        if (role == Qt::DisplayRole && index.column() == Name)
            return titleOf(group);
        if (role == Qt::AccessibleTextRole && index.column() == Name)
            return tr("%1, %2").arg(titleOf(group), QString::fromStdString(counted(group.arrays.size(), "array")));
        return {};
    }
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(
            Qt::Alignment(Qt::AlignVCenter | (index.column() == PerDevice ? Qt::AlignRight : Qt::AlignLeft)));
    if (role == Qt::ToolTipRole)
        return tooltipOf(*m_facts, *array);
    if (role != Qt::DisplayRole && role != Qt::EditRole && role != Qt::AccessibleTextRole)
        return {};
    switch (index.column()) {
    case Name:
        return role == Qt::AccessibleTextRole ? QString::fromStdString(array->array.name) : nameInGroup(*array);
    case Spec:
        return QString::fromStdString(array->spec);
    case PerDevice:
        break;
    default:
        return {};
    }
    const auto bytes = array->shardBytes();
    return bytes ? QString::fromStdString(formatBytes(static_cast<double>(*bytes))) : QString();
}

QVariant SpecModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= kColumns)
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(Qt::Alignment(Qt::AlignVCenter | (section == PerDevice ? Qt::AlignRight : Qt::AlignLeft)));
    if (role != Qt::DisplayRole)
        return {};
    return section == Name ? tr("Array") : section == Spec ? tr("Spec") : tr("Per device");
}

Qt::ItemFlags SpecModel::flags(const QModelIndex& index) const
{
    if (!index.isValid())
        return Qt::NoItemFlags;
    const ArrayFacts* array = arrayAt(index);
    if (array == nullptr)
        return Qt::ItemIsEnabled;
    const Qt::ItemFlags plain = Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemNeverHasChildren;
    return index.column() == Spec && !array->path.empty() ? plain | Qt::ItemIsEditable : plain;
}

bool SpecModel::setData(const QModelIndex& index, const QVariant& value, int role)
{
    const ArrayFacts* array = arrayAt(index);
    if (array == nullptr || role != Qt::EditRole || index.column() != Spec)
        return false;
    const QString text = value.toString().trimmed();
    const bool same = text == QString::fromStdString(array->spec);
    if (same || (text.isEmpty() && !array->isOwn))
        return true;
    Q_EMIT specEdited(QString::fromStdString(array->path), text);
    return true;
}

} // namespace meshwright::ui

#include "moc_spec_model.cpp"
