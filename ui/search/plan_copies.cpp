// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/search/plan_copies.h"

#include "core/support/text.h"
#include "sim/plan/launch_commands.h"
#include "sim/session/search_study.h"

#include <QApplication>
#include <QClipboard>
#include <QMenu>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace meshwright::ui {

namespace {

QString words(const char* text)
{
    return QCoreApplication::translate("PlanCopies", text);
}

using Specs = std::vector<std::pair<std::string, std::string>>;

std::string jaxText(const std::vector<MeshAxis>& mesh, const Specs& specs)
{
    std::vector<std::string> sizes;
    std::vector<std::string> names;
    for (const MeshAxis& axis : mesh) {
        sizes.push_back(std::to_string(axis.size));
        names.push_back(fmt::format("'{}'", axis.name));
    }
    const char* const comma = mesh.size() == 1 ? "," : ""; // a tuple of one
    std::string text = fmt::format(
        "import jax\nfrom jax.sharding import PartitionSpec as P\n\nmesh = jax.make_mesh(({}{}), ({}{}))\nspecs = {{\n",
        join(sizes, ", "), comma, join(names, ", "), comma);
    for (const auto& [array, spec] : specs)
        text += fmt::format("    '{}': {},\n", array, spec);
    return text + "}\n";
}

/// The plan as the command of each framework that may have one.
std::vector<PlanCopy> commandsOf(const Study& study, const sim::FoundPlan& plan, const sim::SearchMachine& machine)
{
    static const std::map<std::string, const char*> kNames
        = {{"maxtext", "MaxText"}, {"torchtitan", "torchtitan"}, {"megatron", "Megatron-LM"}, {"accelerate", "accelerate"}};
    std::vector<PlanCopy> copies;
    for (const sim::LaunchCommand& launch : sim::launchCommands(plan, sim::workOf(study), machine))
        copies.push_back({words("%1 command").arg(QString::fromLatin1(kNames.at(launch.framework))),
            QString::fromStdString(launch.command), QString::fromStdString(launch.whyNot)});
    return copies;
}

} // namespace

std::vector<PlanCopy> copiesOf(const FoundPlans& found, const sim::FoundPlan& plan, const sim::Catalogue& catalogue)
{
    std::vector<PlanCopy> copies;
    if (const auto study = SearchJob::studyOf(found, plan, catalogue))
        copies.push_back({words("Study (YAML)"), QString::fromStdString(*study), {}});
    copies.push_back({words("JAX mesh and specs"), QString::fromStdString(jaxText(plan.mesh, plan.specs)), {}});
    const Result<sim::Calibration>& calibration = sim::defaultCalibration();
    if (found.study->transformer() == nullptr || !calibration)
        return copies;
    const auto machine = sim::searchMachineOf(*found.study, catalogue, *calibration);
    if (!machine)
        return copies;
    std::ranges::move(commandsOf(*found.study, plan, *machine), std::back_inserter(copies));
    return copies;
}

std::vector<PlanCopy> copiesOf(const sim::Analysis& analysis, const sim::Catalogue& catalogue)
{
    const Study& study = *analysis.study;
    std::vector<PlanCopy> copies = {{words("Study (YAML)"), QString::fromStdString(writeStudy(study)), {}}};
    Specs specs;
    for (const sim::ProgramArray& array : analysis.arrays) {
        if (array.role == Role::Input || array.role == Role::Parameter)
            specs.emplace_back(array.name, array.spec);
    }
    copies.push_back({words("JAX mesh and specs"), QString::fromStdString(jaxText(study.mesh, specs)), {}});
    const Result<sim::Calibration>& calibration = sim::defaultCalibration();
    if (study.transformer() == nullptr || !calibration)
        return copies;
    const auto machine = sim::searchMachineOf(study, catalogue, *calibration);
    const auto plan = sim::planOf(study, catalogue, *calibration);
    if (machine && plan) {
        std::ranges::move(commandsOf(study, *plan, *machine), std::back_inserter(copies));
    } else {
        copies.push_back({words("Command"), {}, words("this layout is not one that frameworks name; choose a plan in Search")});
    }
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
