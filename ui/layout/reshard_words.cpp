// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layout/reshard_words.h"

#include "core/diagnose/layout_change.h"
#include "core/partition/device_program.h"
#include "core/program/spoken_op.h"
#include "core/reshard/reshard.h"
#include "core/support/text.h"
#include "sim/collective/network_cost.h"

#include <QCoreApplication>
#include <QStringList>

namespace meshwright::ui {

namespace {

QString tr(const char* text)
{
    return QCoreApplication::translate("meshwright::ui::LayoutView", text);
}

QString bytes(std::int64_t count)
{
    return QString::fromStdString(formatBytes(static_cast<double>(count)));
}

} // namespace

QString reshardWords(const sim::Analysis& analysis, const sim::ProgramArray& array, const PartitionSpec& to)
{
    const Mesh& mesh = analysis.mesh();
    const Shape& shape = array.type.shape;
    const auto target = toTensorSharding(to, shape.size(), mesh);
    if (!target)
        return QString::fromStdString(target.error().front().message);
    for (const TensorSharding* side : {&array.sharding, &*target}) {
        if (const auto unequal = unequalPieces(shape, *side); !unequal.empty())
            return tr("No plan: %1.").arg(QString::fromStdString(notDivisible(unequal.front()).message));
    }
    std::unique_ptr<CollectiveCost> cost = std::make_unique<BytesThenStepsCost>();
    if (analysis.placement)
        cost = std::make_unique<sim::NetworkCost>(*analysis.placement);
    const ReshardPlan plan = planReshard(shape, byteSize(array.type.dtype), array.sharding, *target, mesh, *cost);
    if (plan.steps.empty())
        return tr("Nothing moves: every device has its part already.");
    QStringList steps;
    double seconds = 0.0;
    for (const ReshardStep& step : plan.steps) {
        const QString name = QString::fromStdString(spokenOp(step.kind));
        const QString axes = QString::fromStdString(axesText(step.attributes.axes, mesh));
        const QString what = axes.isEmpty() ? name : tr("%1 over %2").arg(name, axes);
        steps << (step.kind == OpKind::AllSlice ? what : tr("%1, %2").arg(what, bytes(movedBytes(step))));
        if (analysis.placement && step.kind != OpKind::AllSlice)
            seconds += sim::estimateOn(*analysis.placement, step.kind, step.attributes.axes, step.payloadBytes).seconds;
    }
    QString total = tr("%1 per device").arg(bytes(movedBytes(plan)));
    if (seconds > 0.0)
        total += tr(" in %1").arg(QString::fromStdString(formatSeconds(seconds)));
    return tr("%1. In all %2.").arg(steps.join(tr("; then ")), total);
}

} // namespace meshwright::ui
