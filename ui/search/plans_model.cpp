// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/search/plans_model.h"

#include "core/support/counted.h"
#include "ui/widgets/table.h"
#include "ui/widgets/view.h"

#include <QGuiApplication>
#include <QPalette>

#include <fmt/format.h>

#include <limits>

namespace meshwright::ui {

namespace {

constexpr double kAfterSimulated = 1e12; ///< seconds: longer than any step
constexpr double kAfterFitting = 1e15;

QString pipelineWords(const sim::FoundPlan& plan)
{
    if (plan.pipeline.stages <= 1)
        return {};
    return PlansModel::tr("%1 stages, %2, %3")
        .arg(plan.pipeline.stages)
        .arg(QString::fromStdString(counted(std::llround(plan.pipeline.microbatches), "microbatch")),
            QString::fromStdString(plan.pipeline.schedule));
}

} // namespace

std::string meshWords(const std::vector<MeshAxis>& mesh)
{
    std::vector<std::string> axes;
    for (const MeshAxis& axis : mesh)
        axes.push_back(fmt::format("{}={}", axis.name, axis.size));
    return axes.empty() ? "one device" : join(axes, " ");
}

double stepSecondsOf(const sim::FoundPlan& plan)
{
    return plan.seconds();
}

void PlansModel::setPlans(std::shared_ptr<const FoundPlans> found)
{
    beginResetModel();
    m_found = std::move(found);
    m_unfit.clear();
    if (m_found) {
        for (const sim::TemplateScore& score : m_found->result.templates) {
            if (!score.fits)
                m_unfit.push_back(&score);
        }
    }
    endResetModel();
}

int PlansModel::planOf(int row) const
{
    return m_found && row >= 0 && row < static_cast<int>(m_found->plans.size()) ? row : -1;
}

const sim::TemplateScore& PlansModel::unfit(int row) const
{
    return *m_unfit[static_cast<std::size_t>(row) - m_found->plans.size()];
}

int PlansModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() || !m_found ? 0 : static_cast<int>(m_found->plans.size() + m_unfit.size());
}

int PlansModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QString PlansModel::text(int row, int column) const
{
    if (planOf(row) < 0) {
        const sim::TemplateScore& score = unfit(row);
        if (column == Mesh)
            return QString::fromStdString(score.mesh.empty() ? score.name : fmt::format("{} ({})", score.mesh, score.name));
        return column == Note ? shownSentence(score.why) : QString();
    }
    const sim::FoundPlan& plan = m_found->plans[static_cast<std::size_t>(row)];
    switch (column) {
    case Mesh:
        return QString::fromStdString(meshWords(plan.mesh));
    case Step:
        return QString::fromStdString((plan.simulatedSeconds ? "" : "~ ") + formatSeconds(stepSecondsOf(plan)));
    case Memory:
        return QString::fromStdString(formatBytes(plan.peakBytes));
    case Mfu:
        return QStringLiteral("%1 %").arg(100.0 * plan.mfu, 0, 'f', 0);
    case Recompute:
        return QString::fromStdString(plan.recompute);
    case Pipeline:
        return pipelineWords(plan);
    case BoundBy:
        return shownSentence(plan.boundBy);
    case Note:
        if (plan.why.empty() && !plan.fits)
            return tr("needs %1 of %2")
                .arg(
                    QString::fromStdString(formatBytes(plan.peakBytes)), QString::fromStdString(formatBytes(plan.capacityBytes)));
        return plan.why.empty() ? QString() : shownSentence(plan.why.front());
    default:
        return {};
    }
}

/// What has no figure comes last, and an estimate after all that was simulated: it may be a tenth too short. What needs more memory than there is comes
/// after what fits.
QVariant PlansModel::sortValue(int row, int column) const
{
    if (planOf(row) < 0)
        return column >= Step && column <= Mfu ? QVariant(std::numeric_limits<double>::infinity()) : QVariant(text(row, column));
    const sim::FoundPlan& plan = m_found->plans[static_cast<std::size_t>(row)];
    switch (column) {
    case Step:
        return stepSecondsOf(plan) + (plan.simulatedSeconds ? 0.0 : kAfterSimulated) + (plan.fits ? 0.0 : kAfterFitting);
    case Memory:
        return plan.peakBytes;
    case Mfu:
        return plan.mfu;
    default:
        return text(row, column);
    }
}

QVariant PlansModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    switch (role) {
    case Qt::DisplayRole:
        return text(index.row(), index.column());
    case Qt::ToolTipRole:
        return text(index.row(), Note);
    case Qt::TextAlignmentRole:
        return headerData(index.column(), Qt::Horizontal, role);
    case Qt::ForegroundRole:
        return planOf(index.row()) >= 0 && !m_found->plans[static_cast<std::size_t>(index.row())].fits
            ? QVariant(QGuiApplication::palette().brush(QPalette::Disabled, QPalette::Text))
            : QVariant();
    case kSortRole:
        return sortValue(index.row(), index.column());
    default:
        return {};
    }
}

Qt::ItemFlags PlansModel::flags(const QModelIndex& index) const
{
    return index.isValid() && planOf(index.row()) < 0 ? Qt::ItemNeverHasChildren : QAbstractTableModel::flags(index);
}

QVariant PlansModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    static constexpr std::array<Heading, ColumnCount> kHeadings = {{
        {QT_TR_NOOP("Mesh"), QT_TR_NOOP("Its axes, major to minor: the last joins neighbours")},
        {QT_TR_NOOP("Step"), QT_TR_NOOP("Simulated; after ~ as the search estimates it"), true},
        {QT_TR_NOOP("Per device"), QT_TR_NOOP("Memory of the device that needs most"), true},
        {QT_TR_NOOP("MFU"), QT_TR_NOOP("Model FLOPs over what the devices could do in that time"), true},
        {QT_TR_NOOP("Recompute"), QT_TR_NOOP("What the backward pass computes again")},
        {QT_TR_NOOP("Pipeline"), QT_TR_NOOP("Stages, microbatches and schedule")},
        {QT_TR_NOOP("Bound by"), QT_TR_NOOP("What the step waits for longest")},
        {QT_TR_NOOP("Why"), QT_TR_NOOP("What a plan loses by, or why it does not fit")},
    }};
    return headingData(*this, kHeadings, section, orientation, role);
}

} // namespace meshwright::ui

#include "moc_plans_model.cpp"
