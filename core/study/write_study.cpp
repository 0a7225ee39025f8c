// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/study.h"

#include "core/study/axis_edits.h"
#include "core/study/transformer_keys.h"
#include "core/study/yaml_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

namespace meshwright {

namespace {

/// The shortest text that reads back as the same number.
std::string number(double value)
{
    return fmt::format("{}", value);
}

std::string hardwareText(const HardwareChoice& hardware)
{
    std::vector<std::string> parts;
    if (!hardware.chip.empty())
        parts.push_back("chip: " + keyText(hardware.chip));
    if (!hardware.topology.empty())
        parts.push_back(fmt::format("topology: [{}]", fmt::join(hardware.topology, ", ")));
    if (hardware.hosts)
        parts.push_back(fmt::format("hosts: {}", *hardware.hosts));
    if (hardware.chipsPerHost)
        parts.push_back(fmt::format("per_host: {}", *hardware.chipsPerHost));
    if (hardware.slices)
        parts.push_back(fmt::format("slices: {}", *hardware.slices));
    if (!hardware.profile.empty())
        parts.push_back("profile: " + inQuotes(hardware.profile));
    return fmt::format("hardware: {{{}}}\n", fmt::join(parts, ", "));
}

std::string modelText(const StudyModel& model)
{
    if (const auto* program = std::get_if<ProgramFile>(&model)) {
        if (program->function.empty())
            return fmt::format("model: {{program: {}}}\n", inQuotes(program->file));
        return fmt::format(
            "model: {{program: {{file: {}, function: {}}}}}\n", inQuotes(program->file), inQuotes(program->function));
    }
    if (const auto* transformer = std::get_if<TransformerModel>(&model))
        return fmt::format("model:\n  {}\nsequence: {}\nrecompute: {}\n", transformerText(*transformer), transformer->sequence,
            recomputeText(*transformer));
    const auto* mlp = std::get_if<MlpModel>(&model);
    assert(mlp != nullptr);
    return fmt::format("model:\n  mlp: {{layers: [{}], activation: {}, bias: {}, loss: {}}}\n", fmt::join(mlp->layers, ", "),
        activationName(mlp->activation), mlp->bias, lossName(mlp->loss));
}

std::string shardingText(const StudySharding& sharding)
{
    std::string text;
    for (const ShardingEntry& entry : sharding.entries)
        text += fmt::format("  {}: {}\n", keyText(entry.path.starts_with("sharding.") ? entry.path.substr(9) : entry.name),
            inQuotes(specText(entry.spec)));
    if (!sharding.match.empty())
        text += "  match:\n";
    for (const MatchRule& rule : sharding.match) {
        text += fmt::format("    - {{path: {}", inQuotes(rule.glob));
        if (rule.minElements != 0)
            text += fmt::format(", min_elements: {}", rule.minElements);
        if (rule.largestDivisibleDim)
            text += ", divisible: largest_dim";
        text += fmt::format(", spec: {}}}\n", inQuotes(specText(rule.spec)));
    }
    if (!sharding.ruleList.empty()) {
        text += fmt::format("  rules: {}\n", sharding.ruleList);
    } else if (!sharding.rules.empty()) {
        text += "  rules:\n";
        for (const LogicalRule& rule : sharding.rules)
            text += fmt::format("    - [{}, {}]\n", keyText(rule.name), namesText(rule.target.axes));
    }
    return text.empty() ? text : "sharding:\n" + text;
}

std::string trainText(const TrainChoice& train, bool withSteps)
{
    std::string data = "random";
    if (train.data.kind == TrainingData::Kind::Digits)
        data = "digits";
    if (train.data.kind == TrainingData::Kind::File)
        data = fmt::format("{{file: {}{}, scale: {}, held_out: {}, shuffle: {}}}", inQuotes(train.data.file),
            train.data.labels.empty() ? "" : ", labels: " + inQuotes(train.data.labels), number(train.data.scale),
            train.data.heldOut, train.data.shuffle);
    std::string rest;
    if (train.accumulate != 1)
        rest += fmt::format(", accumulate: {}", train.accumulate);
    if (train.gradientNorm)
        rest += ", grad_norm: true";
    if (const EvaluationChoice& evaluate = train.evaluate; evaluate != EvaluationChoice{}) {
        std::vector<std::string> parts;
        if (evaluate.every != 0)
            parts.push_back(fmt::format("every: {}", evaluate.every));
        if (!evaluate.file.empty())
            parts.push_back("file: " + inQuotes(evaluate.file));
        if (!evaluate.labels.empty())
            parts.push_back("labels: " + inQuotes(evaluate.labels));
        rest += fmt::format(", evaluate: {{{}}}", fmt::join(parts, ", "));
    }
    return fmt::format(
        "train: {{{}seed: {}, data: {}{}}}\n", withSteps ? fmt::format("steps: {}, ", train.steps) : "", train.seed, data, rest);
}

std::string pipelineText(const PipelineChoice& pipeline)
{
    return fmt::format("pipeline: {{{}stages: {}, microbatches: {}, schedule: {}{}{}}}\n",
        pipeline.axis.empty() ? "" : fmt::format("axis: {}, ", keyText(pipeline.axis)), pipeline.stages, pipeline.microbatches,
        scheduleName(pipeline.schedule), pipeline.chunks == 1 ? "" : fmt::format(", chunks: {}", pipeline.chunks),
        pipeline.layers.empty() ? "" : fmt::format(", layers: [{}]", fmt::join(pipeline.layers, ", ")));
}

std::string faultsText(const FaultsChoice& faults)
{
    std::vector<std::string> slow;
    for (const FaultsChoice::Slow& one : faults.slow)
        slow.push_back(fmt::format("{{device: {}, speed: {}}}", one.device, number(one.speed)));
    std::vector<std::string> links;
    for (const FaultsChoice::Link& one : faults.links)
        links.push_back(fmt::format("{{device: {}, axis: {}, share: {}}}", one.device, inQuotes(one.axis), number(one.share)));
    return fmt::format("faults: {{slow: [{}], links: [{}]}}\n", fmt::join(slow, ", "), fmt::join(links, ", "));
}

std::string networkText(const NetworkChoice& network)
{
    std::vector<std::string> parts;
    if (!network.fidelity.empty())
        parts.push_back("fidelity: " + inQuotes(network.fidelity));
    if (network.algorithms.size() == 1 && network.algorithms.front().first.empty()) {
        parts.push_back("algorithms: " + inQuotes(network.algorithms.front().second));
    } else if (!network.algorithms.empty()) {
        std::vector<std::string> kinds;
        for (const auto& [kind, algorithm] : network.algorithms)
            kinds.push_back(fmt::format("{}: {}", keyText(kind), inQuotes(algorithm)));
        parts.push_back(fmt::format("algorithms: {{{}}}", fmt::join(kinds, ", ")));
    }
    if (network.oversubscription)
        parts.push_back(fmt::format("oversubscription: {}", number(*network.oversubscription)));
    if (network.perLeaf)
        parts.push_back(fmt::format("per_leaf: {}", *network.perLeaf));
    return fmt::format("network: {{{}}}\n", fmt::join(parts, ", "));
}

} // namespace

std::string dtypeValue(const Study& study)
{
    return fmt::format("{{parameters: {}, matmul: {}{}{}{}}}", dtypeName(study.parameterType), dtypeName(study.matmulType),
        study.activationType ? fmt::format(", activations: {}", dtypeName(*study.activationType)) : "",
        study.gradientType ? fmt::format(", gradients: {}", dtypeName(*study.gradientType)) : "",
        study.fp8 != Fp8Recipe::None ? fmt::format(", fp8: {}", fp8RecipeName(study.fp8)) : "");
}

std::string optimizerValue(const Optimizer& optimizer, bool withUsual)
{
    std::vector<std::string> parts;
    const auto add = [&](const char* key, const auto& value, const auto& usual, bool always) {
        if (always || value != usual)
            parts.push_back(fmt::format("{}: {}", key, value));
    };
    const auto* adam = std::get_if<AdamOptimizer>(&optimizer);
    if (const auto* sgd = std::get_if<SgdOptimizer>(&optimizer)) {
        add("learning_rate", sgd->learningRate, 0.0, true);
        add("momentum", sgd->momentum, 0.0, withUsual);
    } else if (adam != nullptr) {
        const AdamOptimizer usual;
        add("learning_rate", adam->learningRate, 0.0, true);
        add("beta1", adam->beta1, usual.beta1, withUsual);
        add("beta2", adam->beta2, usual.beta2, withUsual);
        add("epsilon", adam->epsilon, usual.epsilon, withUsual);
    } else {
        return "none";
    }
    const UpdateChoices& update = *updateChoices(optimizer);
    const LearningRateSchedule& schedule = update.schedule;
    const LearningRateSchedule constant;
    const bool isAdamW = adam != nullptr && adam->isAdamW;
    add("weight_decay", update.weightDecay, isAdamW ? AdamOptimizer::adamW().update.weightDecay : 0.0, isAdamW && withUsual);
    add("clip_norm", update.clipNorm, 0.0, false);
    if (schedule.kind != constant.kind)
        parts.push_back(fmt::format("schedule: {}", rateScheduleName(schedule.kind)));
    add("warmup_steps", schedule.warmupSteps, constant.warmupSteps, false);
    add("decay_steps", schedule.decaySteps, constant.decaySteps, false);
    add("final_learning_rate", schedule.finalRate, constant.finalRate, false);
    if (update.masters)
        parts.emplace_back("masters: true");
    if (update.lossScale.isDynamic())
        parts.push_back(
            fmt::format("loss_scale: {{first: {}, growth_steps: {}}}", update.lossScale.scale, update.lossScale.growthSteps));
    else
        add("loss_scale", update.lossScale.scale, 1.0, false);
    return fmt::format("{{{}: {{{}}}}}", optimizerName(optimizer), fmt::join(parts, ", "));
}

std::string writeStudy(const Study& study)
{
    std::string text = "meshwright: 1\n";
    if (!study.name.empty())
        text += fmt::format("name: {}\n", inQuotes(study.name));
    if (study.hardware)
        text += hardwareText(*study.hardware);
    if (!study.mesh.empty() || !study.deviceOrder.empty())
        text += fmt::format("mesh: {}\n", meshValue(study.mesh, study.deviceOrder));
    text += modelText(study.model);
    text += fmt::format("init: {{w: {}, b: {}{}}}\n", initializerName(study.weightInit), initializerName(study.biasInit),
        study.partitionableRandom ? "" : ", random: legacy");
    text += fmt::format("batch: {}\n", study.batch);
    text += fmt::format("dtype: {}\n", dtypeValue(study));
    text += shardingText(study.sharding);
    text += fmt::format("optimizer: {}\n", optimizerValue(study.optimizer, true));
    if (study.dropout != 0.0)
        text += fmt::format("dropout: {}\n", study.dropout);
    // With phases, steps that were never written are the default; writing them would only earn a warning.
    text += trainText(study.train, study.phases.empty() || study.train.steps != TrainChoice{}.steps);
    if (!study.phases.empty())
        text += "phases:\n";
    for (const StudyPhase& phase : study.phases)
        text += fmt::format("  - {{steps: {}, mesh: {}}}\n", phase.steps, meshValue(phase.mesh, phase.deviceOrder));
    if (study.pipeline != PipelineChoice{})
        text += pipelineText(study.pipeline);
    if (study.faults != FaultsChoice{})
        text += faultsText(study.faults);
    if (study.network != NetworkChoice{})
        text += networkText(study.network);
    if (!study.stack.empty())
        text += fmt::format("stack: {}\n", inQuotes(study.stack));
    return text;
}

} // namespace meshwright
