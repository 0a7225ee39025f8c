// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layout/array_model.h"

#include "core/models/array_name.h"
#include "core/study/stage_share.h"
#include "core/support/text.h"
#include "ui/widgets/table.h"

#include <QFont>

#include <array>

namespace meshwright::ui {

Shape shardShapeOf(const sim::ProgramArray& array, const sim::Analysis& analysis)
{
    return stageShareOf(analysis.built->study, array.name, array.type.shape)
        .pieceOf(localShape(array.type.shape, array.sharding));
}

std::int64_t shardBytes(const sim::ProgramArray& array, const sim::Analysis& analysis)
{
    return elementCount(shardShapeOf(array, analysis)) * byteSize(array.type.dtype);
}

void ArrayModel::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    std::vector<Group> groups; // the analysis has the arrays in the order of the groups
    for (const sim::ProgramArray& array : analysis->arrays) {
        const QString title = groupTitle(array.role);
        const bool isUpdated
            = arrayNameOf(array.name).family == ArrayName::Family::Updated; // what the step makes of parameters and states
        append(groups, isUpdated ? tr("%1, updated").arg(title) : title, array.name);
    }
    setGroups(std::move(groups), [&] { m_analysis = std::move(analysis); });
}

const sim::ProgramArray* ArrayModel::arrayAt(const QModelIndex& index) const
{
    const auto number = arrayNumber(index);
    return number ? &m_analysis->arrays[*number] : nullptr;
}

int ArrayModel::columnCount(const QModelIndex&) const
{
    return ColumnCount;
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
        return headerData(column, Qt::Horizontal, role);
    case kIsShardedRole:
        return column == Spec ? QVariant(!array.sharding.isReplicated()) : QVariant();
    default:
        return {};
    }
}

QVariant ArrayModel::data(const QModelIndex& index, int role) const
{
    if (const sim::ProgramArray* array = arrayAt(index))
        return arrayData(*array, index.column(), role);
    if (!index.isValid() || index.column() != Name)
        return {};
    if (role == Qt::DisplayRole)
        return tr("%1 (%2)").arg(groupOf(index).title).arg(groupOf(index).names.size());
    if (role == Qt::FontRole) {
        QFont bold;
        bold.setBold(true);
        return bold;
    }
    return {};
}

QVariant ArrayModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    static constexpr std::array<Heading, ColumnCount> kHeadings = {{{QT_TR_NOOP("Array")}, {QT_TR_NOOP("Layout")},
        {QT_TR_NOOP("Shape"), nullptr, true}, {QT_TR_NOOP("Per device"), nullptr, true}}};
    return headingData(*this, kHeadings, section, orientation, role);
}

} // namespace meshwright::ui

#include "moc_array_model.cpp"
