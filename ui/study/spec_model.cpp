// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/spec_model.h"

#include "core/support/counted.h"

#include <QColor>

namespace meshwright::ui {

namespace {

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

void SpecModel::setFacts(std::shared_ptr<const StudyFacts> facts)
{
    std::vector<Group> groups;
    for (const ArrayFacts& array : facts->arrays) {
        const QString title = !facts->study.trains() ? tr("Arrays") // program files do not say what their arrays are for
            : array.role == Role::Metric             ? groupTitle(Role::Activation)
                                                     : groupTitle(array.role);
        append(groups, title, array.array.name);
    }
    if (setGroups(std::move(groups), [&] { m_facts = std::move(facts); }))
        Q_EMIT factsChanged();
}

const ArrayFacts* SpecModel::arrayAt(const QModelIndex& index) const
{
    const auto number = arrayNumber(index);
    return number ? &m_facts->arrays[*number] : nullptr;
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
        const Group& group = groupOf(index);
        if (role == Qt::DisplayRole && index.column() == Name)
            return group.title;
        if (role == Qt::AccessibleTextRole && index.column() == Name)
            return tr("%1, %2").arg(group.title, QString::fromStdString(counted(group.names.size(), "array")));
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
    const ArrayFacts* array = arrayAt(index);
    const bool canEdit = array != nullptr && index.column() == Spec && !array->path.empty();
    return canEdit ? GroupedModel::flags(index) | Qt::ItemIsEditable : GroupedModel::flags(index);
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
