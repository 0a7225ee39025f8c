// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/search/plan_copies.h"

#include "core/support/text.h"
#include "sim/plan/launch_commands.h"
#include "sim/session/search_study.h"

#include <QCoreApplication>

#include <fmt/format.h>

#include <map>

namespace meshwright::ui {

namespace {

QString words(const char* text)
{
    return QCoreApplication::translate("PlanCopies", text);
}

std::string jaxText(const sim::FoundPlan& plan)
{
    std::vector<std::string> sizes;
    std::vector<std::string> names;
    for (const MeshAxis& axis : plan.mesh) {
        sizes.push_back(std::to_string(axis.size));
        names.push_back(fmt::format("'{}'", axis.name));
    }
    const char* const comma = plan.mesh.size() == 1 ? "," : ""; // a tuple of one
    std::string text = fmt::format(
        "import jax\nfrom jax.sharding import PartitionSpec as P\n\nmesh = jax.make_mesh(({}{}), ({}{}))\nspecs = {{\n",
        join(sizes, ", "), comma, join(names, ", "), comma);
    for (const auto& [array, spec] : plan.specs)
        text += fmt::format("    '{}': {},\n", array, spec);
    return text + "}\n";
}

} // namespace

std::vector<PlanCopy> copiesOf(const FoundPlans& found, const sim::FoundPlan& plan, const sim::Catalogue& catalogue)
{
    std::vector<PlanCopy> copies;
    if (const auto study = SearchJob::studyOf(found, plan, catalogue))
        copies.push_back({words("Study (YAML)"), QString::fromStdString(*study), {}});
    copies.push_back({words("JAX mesh and specs"), QString::fromStdString(jaxText(plan)), {}});
    const Result<sim::Calibration>& calibration = sim::defaultCalibration();
    if (found.study->transformer() == nullptr || !calibration)
        return copies;
    const auto machine = sim::searchMachineOf(*found.study, catalogue, *calibration);
    if (!machine)
        return copies;
    static const std::map<std::string, const char*> kNames
        = {{"maxtext", "MaxText"}, {"torchtitan", "torchtitan"}, {"megatron", "Megatron-LM"}, {"accelerate", "accelerate"}};
    for (const sim::LaunchCommand& launch : sim::launchCommands(plan, sim::workOf(*found.study), *machine))
        copies.push_back({words("%1 command").arg(QString::fromLatin1(kNames.at(launch.framework))),
            QString::fromStdString(launch.command), QString::fromStdString(launch.whyNot)});
    return copies;
}

} // namespace meshwright::ui
