// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/study_exports.h"

#include "core/study/jax_code.h"
#include "core/support/text.h"
#include "sim/plan/launch_commands.h"
#include "sim/session/search_study.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace meshwright::sim {

namespace {

/// The layouts that a program in JAX states: of what comes in, of states, and of what the study constrains; the rest follows there, too.
SpecTexts statedSpecs(const Analysis& analysis)
{
    SpecTexts specs;
    for (const ProgramArray& array : analysis.arrays) {
        const bool comesIn = array.role == Role::Input || array.role == Role::Parameter || array.role == Role::OptimizerState;
        if (!comesIn && array.annotation.empty())
            continue;
        std::string spec = array.spec;
        if (spec.ends_with(",)")) // of one entry, which P may be given alone
            spec.erase(spec.size() - 2, 1);
        specs.emplace_back(array.name, std::move(spec));
    }
    return specs;
}

/// What of a study a framework's command does not say.
std::vector<std::string> notesOf(const Study& study, std::string_view framework)
{
    std::vector<std::string> notes;
    const bool hasOptions = framework == "megatron" || framework == "maxtext"; // for the optimizer
    const auto* adam = std::get_if<AdamOptimizer>(&study.optimizer);
    if (std::holds_alternative<SgdOptimizer>(study.optimizer) && !hasOptions)
        notes.push_back(fmt::format("the optimizer sgd is left out: name it where {} takes its learning rate", framework));
    const AdamOptimizer usual;
    if (adam != nullptr && !hasOptions
        && (adam->update.weightDecay != 0.0 || adam->beta1 != usual.beta1 || adam->beta2 != usual.beta2
            || adam->epsilon != usual.epsilon))
        notes.push_back(fmt::format("Adam's weight_decay, beta1, beta2 and epsilon are left out: give them where {} takes its "
                                    "learning rate",
            framework));
    if (study.transformer()->recompute == Recompute::Full && framework != "maxtext")
        notes.push_back(fmt::format("recompute: full is written as what {} has: each layer as a whole is computed again, "
                                    "which is recompute: layer",
            framework));
    return notes;
}

std::vector<StudyExport> commands(const Study& study, const Catalogue& catalogue)
{
    const auto none = [](const std::string& why) {
        std::vector<StudyExport> all;
        for (const char* to : {"maxtext", "torchtitan", "megatron", "accelerate"})
            all.push_back({to, {}, why});
        return all;
    };
    if (study.transformer() == nullptr)
        return none("frameworks have options for transformers only");
    const Result<Calibration>& calibration = defaultCalibration();
    if (!calibration)
        return none(calibration.error().front().message);
    const auto sentence = [](const Problem& problem) { return fmt::format("{}; {}", problem.message, problem.fix); };
    const auto plan = planOf(study, catalogue, *calibration);
    if (!plan)
        return none(sentence(plan.error().front()));
    auto all = commandsOf(study, *plan, catalogue, *calibration);
    return all ? *std::move(all) : none(sentence(all.error().front()));
}

} // namespace

std::string whyTooLarge(const Simulation& step, std::string_view framework)
{
    if (step.fits)
        return {};
    const auto bytes = [](std::int64_t count) { return formatBytes(static_cast<double>(count)); };
    return fmt::format("with {} this does not fit: a device needs {}, and programs may use {} of its {}", framework,
        bytes(step.peakBytes), bytes(step.capacityBytes - step.reserveBytes), bytes(step.capacityBytes));
}

Result<std::vector<StudyExport>> commandsOf(
    const Study& study, const FoundPlan& plan, const Catalogue& catalogue, const Calibration& calibration)
{
    const auto machine = searchMachineOf(study, catalogue, calibration);
    if (!machine)
        return machine.error();
    std::vector<StudyExport> all;
    LaunchChoices choices{study.dropout, study.gradientType && byteSize(*study.gradientType) == 2};
    if (const TransformerModel* model = study.transformer(); model != nullptr && model->recompute == Recompute::Named) {
        choices.kept = model->kept;
        choices.offloaded = model->offloaded;
    }
    choices.optimizer = study.optimizer;
    const UpdateChoices* update = updateChoices(study.optimizer);
    choices.narrowWeights = byteSize(study.parameterType) == 2 && (update == nullptr || !update->masters);
    for (const LaunchCommand& launch : launchCommands(plan, workOf(study), *machine, choices))
        all.push_back({launch.framework, launch.command, launch.whyNot, notesOf(study, launch.framework)});
    return all;
}

std::vector<StudyExport> exportsOf(const Analysis& analysis, const Catalogue& catalogue)
{
    const Study& study = *analysis.study;
    std::vector<StudyExport> all = {{"study", writeStudy(study), {}}};
    if (analysis.built == nullptr) {
        all.push_back({"jax", {}, "the study has mistakes"});
        all.push_back({"flax", {}, "the study has mistakes"});
    } else if (study.mlp() != nullptr) {
        const SpecTexts specs = statedSpecs(analysis);
        all.push_back({"jax", jaxTraining(study, specs), {}});
        all.push_back({"flax", flaxTraining(study, specs), {}});
    } else {
        all.push_back({"jax", jaxSpecs(study.mesh, study.deviceOrder, statedSpecs(analysis)), {}});
        all.push_back({"flax", {}, "only of an MLP: other models have code of their own, whose specs `jax` gives"});
    }
    for (StudyExport& command : commands(study, catalogue))
        all.push_back(std::move(command));
    return all;
}

} // namespace meshwright::sim
