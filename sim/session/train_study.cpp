// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"

#include "core/kernels/products.h"
#include "core/study/resolve.h"
#include "core/support/host_memory.h"
#include "core/support/text.h"
#include "core/train/training_memory.h"
#include "sim/session/device_memory.h"
#include "sim/session/same_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace meshwright::sim {

namespace {

/// The checkpoint to go on from. Of several processes the first one chooses it, and looks at all of it where it has a choice.
Result<std::unique_ptr<CheckpointReader>> openResumed(const std::filesystem::path& path, Ranks* ranks)
{
    Result<std::unique_ptr<CheckpointReader>> mine = Problem{"MW1644",
        fmt::format("the first process found no complete checkpoint in \"{}\"", path.string()), "", Place{path.string()}};
    if (ranks == nullptr || ranks->isFirst())
        mine = CheckpointReader::open(path, CheckpointCheck::Content);
    if (ranks == nullptr)
        return mine;
    const auto chosen = ranks->all(ranks->isFirst() && mine ? (*mine)->path().string() : std::string());
    if (!chosen)
        return chosen.error();
    return ranks->isFirst() || chosen->front().empty() ? std::move(mine) : CheckpointReader::open(chosen->front());
}

} // namespace

SavedState trainedAs(const Study& study)
{
    SavedState own;
    own.seed = static_cast<std::uint64_t>(study.train.seed);
    own.optimizer = optimizerName(study.optimizer);
    own.settings
        = {{"dropout", fmt::format("{}", study.dropout)}, {"train.data.held_out", fmt::format("{}", study.train.data.heldOut)}};
    if (const MlpModel* mlp = study.mlp()) {
        own.settings.emplace("model.mlp.activation", activationName(mlp->activation));
        own.settings.emplace("model.mlp.loss", lossName(mlp->loss));
    }
    return own;
}

Result<TrainerOptions> trainerOptions(const Study& study, const TrainChoices& choices)
{
    const auto options = trainingOptions(study);
    if (!options)
        return options.error();
    TrainerOptions trainer;
    const SavedState own = trainedAs(study);
    trainer.seed = own.seed;
    trainer.optimizer = own.optimizer;
    trainer.settings = own.settings;
    trainer.verify = choices.verify;
    trainer.record = choices.record;
    trainer.typical = choices.typical;
    trainer.besides = choices.besides;
    trainer.keepParameters = choices.keepParameters;
    trainer.permits = choices.permits;
    trainer.engine = choices.engine;
    const RandomKey key = keyOfSeed(trainer.seed);
    const auto keys
        = study.transformer() != nullptr ? initKeys(*study.transformer(), *options, key) : initKeys(*study.mlp(), *options, key);
    for (const auto& [name, drawn] : keys)
        trainer.initKeys.push_back(drawn);
    trainer.checkpoints = choices.checkpoints;
    trainer.faults = choices.faults;
    trainer.stallSeconds = choices.stallSeconds;
    trainer.ranks = choices.ranks;
    trainer.learningRate
        = [optimizer = phaseStudy(study, 0).optimizer](std::int64_t step) { return learningRateAt(optimizer, step); };
    trainer.evaluateEvery = study.train.evaluate.every;
    if (!choices.resume.empty()) {
        auto reader = openResumed(choices.resume, choices.ranks.get());
        if (!reader)
            return reader.error();
        trainer.resumed = *std::move(reader);
    }
    return trainer;
}

Result<Done> checkMemory(std::int64_t plannedBytes, std::optional<std::int64_t> memoryBytes)
{
    constexpr double kUsable = 0.9;
    if (!memoryBytes || static_cast<double>(plannedBytes) <= kUsable * static_cast<double>(*memoryBytes))
        return Done{};
    return Problem{"MW1630",
        fmt::format("training needs {} for its devices, and there are {}", formatBytes(plannedBytes), formatBytes(*memoryBytes)),
        "use a smaller batch or model, or shard what is replicated"};
}

Study unshardedStudy(Study study)
{
    if (!study.phases.empty())
        study.train.steps = std::accumulate(study.phases.begin(), study.phases.end(), std::int64_t{0},
            [](std::int64_t steps, const StudyPhase& phase) { return steps + phase.steps; });
    study.phases.clear();
    study.mesh.clear();
    study.deviceOrder.clear();
    study.sharding = {};
    study.pipeline = {};
    return study;
}

namespace {

/// What of the choices decides what processes do together.
std::string sharedChoices(const TrainChoices& choices)
{
    std::string text = fmt::format("{:d} {:d} {:d} {:d} {} {}", choices.verify, choices.record, choices.typical,
        choices.keepParameters, choices.checkpoints ? choices.checkpoints->every : -1, choices.resume.string());
    for (const InjectedFault& fault : choices.faults.injected)
        text += fmt::format(" {} {} {} {}", static_cast<int>(fault.kind), fault.device, fault.step, fault.factor);
    return text;
}

} // namespace

Result<TrainingResult> trainStudy(const Study& study, const TrainChoices& choices,
    const std::function<void(const TrainingProgress&)>& progress, const std::stop_token& stop)
{
    if (const auto chosen = chooseProductsFromEnvironment(); !chosen)
        return chosen.error();
    if (choices.ranks != nullptr) {
        if (const auto same = checkSameInput(*choices.ranks, "study", writeStudy(study), sharedChoices(choices)); !same)
            return same.error();
    }
    const auto phases = trainingPhases(study);
    if (!phases)
        return phases.error();
    const auto options = trainerOptions(study, choices);
    if (!options)
        return options.error();
    const auto memory = choices.memoryBytes ? choices.memoryBytes : availableMemoryBytes();
    if (choices.deviceMemoryBytes) {
        if (const auto fits = checkDeviceMemory(study, *phases, *choices.deviceMemoryBytes); !fits)
            return fits.error();
    }
    const std::int64_t planned = plannedTrainingBytes(*phases, study.train.evaluate.every > 0);
    const std::int64_t plannedHere
        = choices.ranks != nullptr ? planned / choices.ranks->size() * choices.ranks->onThisHost() : planned;
    if (const auto fits = checkMemory(plannedHere, memory); !fits)
        return fits.error();
    const auto data = datasetOf(study, stop);
    if (!data)
        return data.error();
    auto result = train(*phases, *data, *options, progress, stop);
    if (result && choices.prove && (choices.ranks == nullptr || choices.ranks->isFirst()))
        result->proof = proofOf(*phases);
    return result;
}

} // namespace meshwright::sim
