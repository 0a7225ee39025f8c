// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/search/plan_copies.h"

#include "core/study/jax_code.h"
#include "sim/session/study_exports.h"

#include <QApplication>
#include <QClipboard>
#include <QMenu>

#include <map>

namespace meshwright::ui {

namespace {

QString words(const char* text)
{
    return QCoreApplication::translate("PlanCopies", text);
}

QString titleOf(const std::string& to)
{
    static const std::map<std::string, const char*> kTitles
        = {{"study", "Study (YAML)"}, {"jax", "JAX code"}, {"flax", "Flax code"}, {"maxtext", "MaxText command"},
            {"torchtitan", "torchtitan command"}, {"megatron", "Megatron-LM command"}, {"accelerate", "accelerate command"}};
    return words(kTitles.at(to));
}

/// What several commands cannot say for one reason is one row.
void append(std::vector<PlanCopy>& copies, const std::vector<sim::StudyExport>& exports)
{
    for (const sim::StudyExport& one : exports) {
        PlanCopy copy{titleOf(one.to), QString::fromStdString(one.text), QString::fromStdString(one.whyNot)};
        if (!copies.empty() && copies.back().isCommand && one.text.empty() && copies.back().whyNot == copy.whyNot) {
            copies.back().title = words("Command");
            continue;
        }
        copy.isCommand = one.isCommand();
        copies.push_back(std::move(copy));
    }
}

} // namespace

std::vector<PlanCopy> copiesOf(const FoundPlans& found, const sim::FoundPlan& plan, const sim::Catalogue& catalogue)
{
    std::vector<PlanCopy> copies;
    if (const auto study = SearchJob::studyOf(found, plan, catalogue))
        append(copies, {{"study", *study, {}}});
    copies.push_back({words("JAX mesh and specs"), QString::fromStdString(jaxSpecs(plan.mesh, {}, plan.specs)), {}});
    const Result<sim::Calibration>& calibration = sim::defaultCalibration();
    if (found.study->transformer() == nullptr || !calibration)
        return copies;
    if (const auto commands = sim::commandsOf(*found.study, plan, catalogue, *calibration))
        append(copies, *commands);
    return copies;
}

std::vector<PlanCopy> copiesOf(const sim::Analysis& analysis, const sim::Catalogue& catalogue)
{
    std::vector<PlanCopy> copies;
    append(copies, sim::exportsOf(analysis, catalogue));
    return copies;
}

void fillCopies(QMenu& menu, const std::vector<PlanCopy>& copies, const std::function<void(const PlanCopy&)>& copied)
{
    menu.clear();
    for (const PlanCopy& copy : copies) {
        const QString text = copy.whyNot.isEmpty() ? copy.title : QStringLiteral("%1: %2").arg(copy.title, copy.whyNot);
        QAction* action = menu.addAction(text, &menu, [copy, copied] {
            QApplication::clipboard()->setText(copy.text);
            copied(copy);
        });
        action->setEnabled(copy.whyNot.isEmpty());
    }
}

} // namespace meshwright::ui
