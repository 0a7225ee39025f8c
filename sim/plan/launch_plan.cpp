// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/launch_reader.h"

#include "core/models/array_name.h"
#include "core/models/model_file.h"
#include "core/support/checked.h"
#include "core/support/text.h"
#include "sim/search/plan_trials.h"
#include "sim/search/search_request.h"
#include "sim/search/transformer_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <numeric>
#include <utility>

namespace meshwright::sim {

namespace {

/// "1, 2, 4 or 8". Precondition: number >= 1.
std::string divisorsText(std::int64_t number)
{
    constexpr std::int64_t kMostDegree = 1024; // more ranks share no layer
    std::vector<std::string> divisors;
    for (std::int64_t one = 1; one <= std::min(number, kMostDegree); ++one) {
        if (number % one == 0)
            divisors.push_back(std::to_string(one));
    }
    if (divisors.size() == 1)
        return divisors.front();
    const std::string last = std::move(divisors.back());
    divisors.pop_back();
    return join(divisors, ", ") + " or " + last;
}

} // namespace

void LaunchReader::takeModel(const std::string& name, const LaunchOption& option)
{
    const std::vector<std::string> names = shippedModels();
    if (std::ranges::find(names, name) != names.end())
        readModel(name);
    else
        m_options.problems.push_back(
            {"MW1494", fmt::format("the model \"{}\" is not one that comes with Meshwright", option.value),
                "give its configuration: --set model.transformer.config=config.json",
                m_options.place(option.line > 0 ? option.line : m_launch.line)});
}

void LaunchReader::readModel(const std::string& nameOrFile)
{
    std::vector<std::string> ignored;
    if (auto model = modelNamed(nameOrFile, &m_notes, ignored))
        m_asked.model = *std::move(model);
    else
        append(m_options.problems, model.error());
}

void LaunchReader::takeLossChunks(std::int64_t chunks)
{
    m_asked.lossChunks = std::gcd(chunks, m_asked.sequence);
    if (m_asked.lossChunks != chunks)
        m_notes.push_back(fmt::format("the loss is taken in {} chunks of a sequence: {} do not divide its {} tokens",
            m_asked.lossChunks, chunks, m_asked.sequence));
}

void LaunchReader::readOptimizer(std::string_view option, std::string_view adam, std::string_view otherAdam, double momentum)
{
    const std::string optimizer = lowerCase(m_options.word(option, std::string(adam)));
    if (optimizer == "sgd")
        m_asked.sgdMomentum = momentum;
    else if (optimizer != adam && optimizer != otherAdam)
        m_options.refuse(
            *m_options.find(option), fmt::format("\"{}\" is not known", optimizer), fmt::format("leave it out: {}", adam));
}

/// The study's optimizer in place of Adam, with specs of the states that it has.
void LaunchReader::addSgd(const FoundPlan& plan)
{
    const double momentum = *m_asked.sgdMomentum;
    const bool masters = m_asked.masters && m_asked.format != MathFormat::Fp32;
    m_settings.push_back(fmt::format("optimizer={{sgd: {{momentum: {}, masters: {}}}}}", momentum, masters));
    for (const auto& [array, spec] : plan.specs) {
        const ArrayName::Family family = arrayNameOf(array).family;
        if (family == ArrayName::Family::SecondMoment || (momentum == 0.0 && family == ArrayName::Family::Momentum))
            m_settings.push_back(fmt::format("sharding.{}=", array));
    }
}

/// Each tensor rank has as many heads, and as much of the feed-forward width, as the others.
void LaunchReader::checkTensor()
{
    if (splitsHeads(m_asked.model, m_asked.tensor))
        return;
    std::vector<std::string> undivided;
    std::int64_t common = 0;
    const auto divide = [&](const char* what, std::int64_t size) {
        common = std::gcd(common, size);
        std::string one = fmt::format("the {} ({})", what, size);
        if (size % m_asked.tensor != 0 && std::ranges::find(undivided, one) == undivided.end())
            undivided.push_back(std::move(one));
    };
    for (const TransformerConfig& c : layerGroups(m_asked.model)) {
        if (c.isRecurrent()) {
            divide("heads of the state", c.stateHeads);
            divide("key heads of the state", c.stateKeyHeads);
        } else if (c.mixer != MixerKind::None) {
            divide("heads", c.heads);
        }
        divide("feed-forward width", c.ffn);
        if (c.experts > 0)
            divide("width of an expert", c.expertFfn);
    }
    impossible(fmt::format("tensor {} does not divide {}", m_asked.tensor, join(undivided, " and ")),
        "choose a divisor: " + divisorsText(common));
}

/// What the framework asks of its degrees before it trains, beside what any plan needs. Precondition: nothing else is wrong.
/// Sources: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py and moe/moe_layer.py, megatron/training/arguments.py and utils.py;
/// NVIDIA/TransformerEngine, transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py; pytorch/torchtitan,
/// torchtitan/distributed/parallel_dims.py and models/common/decoder.py (all of August 2026).
void LaunchReader::checkFrameworkRules()
{
    const LaunchedTraining& a = m_asked;
    const TransformerConfig& c = a.model;
    const bool isMegatron = m_launch.framework == "megatron";
    if (m_launch.framework == "maxtext")
        return;
    if (a.context > 1 && a.sequence % (2 * a.context) != 0)
        impossible(
            fmt::format("{} tokens of a sequence are not divided by 2 x context {}: each rank takes a piece from either end",
                a.sequence, a.context),
            fmt::format("give sequences of a multiple of {}", 2 * a.context));
    const bool hasGroups = c.keyValueRank == 0 && c.mixer == MixerKind::Attention && a.tensor > 1;
    const bool areGroupsSplit = !hasGroups || c.keyValueHeads % a.tensor == 0;
    const std::string divisors = "choose a tensor degree that divides both: " + divisorsText(std::gcd(c.heads, c.keyValueHeads));
    if (!isMegatron) {
        if (!areGroupsSplit)
            impossible(fmt::format("tensor {} does not divide the {} key and value heads, as torchtitan needs", a.tensor,
                           c.keyValueHeads),
                divisors);
        return;
    }
    if (!areGroupsSplit && a.tensor % c.keyValueHeads != 0)
        impossible(fmt::format("{} query groups are neither a multiple nor a divisor of tensor {}: Megatron-LM refuses them",
                       c.keyValueHeads, a.tensor),
            divisors);
    else if (!areGroupsSplit)
        m_warnings.push_back({"MW1497",
            fmt::format("{} not a multiple of tensor {}: older releases of Megatron-LM refuse {}",
                c.keyValueHeads == 1 ? "1 query group is" : fmt::format("{} query groups are", c.keyValueHeads), a.tensor,
                c.keyValueHeads == 1 ? "it" : "them"),
            divisors + "; or train with a release whose ranks may share a group", m_options.place(), Severity::Warning,
            fmt::format("num_query_groups must be a multiple of tensor_model_parallel_size; later releases let {} ranks share "
                        "each group",
                a.tensor / c.keyValueHeads)});
    const std::int64_t groups = areGroupsSplit ? c.keyValueHeads / a.tensor : 1;
    if (a.exchangesHeads && a.context > 1 && (groups % a.context != 0 || c.heads / a.tensor % a.context != 0))
        impossible(fmt::format("--cp-comm-type a2a shares the heads of a tensor rank out to context {}, which does not divide {} "
                               "heads and {} query group{}",
                       a.context, c.heads / a.tensor, groups, groups == 1 ? "" : "s"),
            "choose a context degree that divides them: " + divisorsText(std::gcd(c.heads / a.tensor, groups))
                + "; or --cp-comm-type p2p");
    if (c.experts > 0 && a.tensor > 1 && !a.sequenceParallel)
        impossible(
            fmt::format("experts beside tensor {} without sequence parallelism, which Megatron-LM refuses to train", a.tensor),
            "add --sequence-parallel");
    if (m_modelFile.empty() && c.maxPositions < a.sequence)
        impossible(
            fmt::format("--max-position-embeddings {} is less than the {} tokens of --seq-length", c.maxPositions, a.sequence),
            fmt::format("give --max-position-embeddings {}", a.sequence));
}

Result<LaunchedPlan> LaunchReader::planned()
{
    LaunchedTraining& a = m_asked;
    const std::int64_t split = checkedProduct(std::array{a.tensor, a.pipeline, a.context}).value_or(0);
    if (split < 1 || m_devices % split != 0)
        impossible(fmt::format("tensor {} x pipeline {} x context {} do not divide {} devices", a.tensor, a.pipeline, a.context,
                       m_devices),
            split > 0 ? fmt::format("give --hw a multiple of {} devices", split) : "choose smaller degrees");
    if (!m_options.problems.empty())
        return m_options.problems;
    const std::int64_t ranks = m_devices / split;
    if (a.expert > 1 && (a.model.experts == 0 || a.model.experts % a.expert != 0))
        impossible(fmt::format("expert {} does not divide the {} experts", a.expert, a.model.experts), "choose a divisor");
    else if (ranks % a.expert != 0)
        impossible(
            fmt::format("expert {} goes over more than the {} data ranks, which no plan of Meshwright's does", a.expert, ranks),
            "choose a divisor of the data ranks");
    if (m_launch.framework != "torchtitan"
        && a.layersToShare.value_or(a.model.layers) % checkedMultiply(a.pipeline, a.chunks).value_or(1) != 0)
        impossible(fmt::format("{} layers are not divided among {} stages{}", a.model.layers, a.pipeline,
                       a.chunks > 1 ? fmt::format(" of {} pieces", a.chunks) : std::string()),
            "choose a number of stages that divides them");
    if (const std::int64_t parts = a.tensor * a.context; a.sequenceParallel && a.sequence % parts != 0)
        impossible(fmt::format("sequence parallelism over tensor {}{} does not divide sequences of {} tokens", a.tensor,
                       a.context > 1 ? fmt::format(" and context {}", a.context) : std::string(), a.sequence),
            fmt::format("give sequences of a multiple of {}", parts));
    checkTensor();
    const std::int64_t shards = a.zero < 3 ? 1 : a.shards < 0 ? ranks / std::min(ranks, -a.shards) : a.shards;
    if (shards < 1 || ranks % shards != 0 || (a.zero == 3 && shards % a.expert != 0))
        impossible(fmt::format("weights cannot be split over {} of {} data ranks{}", shards, ranks,
                       a.expert > 1 ? fmt::format(", with expert {}", a.expert) : ""),
            "choose a divisor");
    if (a.globalBatch == 0)
        a.globalBatch = a.microbatch * ranks;
    if (a.globalBatch % (ranks * a.microbatch) != 0)
        impossible(fmt::format("a batch of {} sequences is not divided into microbatches of {} on {} data ranks", a.globalBatch,
                       a.microbatch, ranks),
            fmt::format("give a multiple of {}", ranks * a.microbatch));
    if (m_options.problems.empty())
        checkFrameworkRules();
    for (const std::int64_t degree : {a.tensor, a.pipeline, a.context, a.expert, shards, ranks, a.chunks, a.microbatch}) {
        if (degree > std::numeric_limits<std::int32_t>::max())
            impossible(fmt::format("{} is more than any plan has", degree), "choose a smaller number");
    }
    if (!m_options.problems.empty())
        return m_options.problems;
    if (Problems problems = transformerProblems(a.model); hasErrors(problems)) {
        for (Problem& problem : problems)
            problem.place = m_options.place();
        return problems;
    }
    Candidate candidate;
    const auto narrow = [](std::int64_t degree) { return static_cast<std::int32_t>(degree); };
    candidate.pp = narrow(a.pipeline);
    candidate.dp = narrow(ranks);
    candidate.fsdp = narrow(shards);
    candidate.ep = narrow(a.expert);
    candidate.cp = narrow(a.context);
    candidate.tp = narrow(a.tensor);
    candidate.chunks = narrow(a.chunks);
    candidate.microbatch = narrow(a.microbatch);
    candidate.zero = static_cast<std::uint8_t>(ranks * a.context > 1 ? a.zero : 0);
    candidate.sequenceParallel = a.sequenceParallel;
    candidate.ulysses = a.exchangesHeads && a.context > 1;

    LaunchedPlan launched;
    launched.work.model = a.model;
    launched.work.sequence = a.sequence;
    launched.work.globalBatch = a.globalBatch;
    launched.work.format = a.format;
    launched.work.recipe = a.recipe;
    launched.work.masters = a.masters;
    FoundPlan& plan = launched.plan;
    plan.hardware = m_machine.name;
    plan.chips = m_machine.chips;
    plan.kind = kindOf(candidate);
    plan.mesh = meshOf(candidate);
    plan.specs = specsOf(candidate, a.model);
    const double microbatches = static_cast<double>(a.globalBatch / ranks / a.microbatch);
    plan.pipeline = {a.pipeline, a.chunks, microbatches, a.pipeline > 1 ? a.schedule : "none"};
    plan.recompute = a.recompute;
    plan.lossChunks = a.lossChunks;
    plan.microbatch = static_cast<double>(a.microbatch);
    plan.zeroStage = candidate.zero;
    plan.sequenceParallel = candidate.sequenceParallel;
    plan.exchangesHeads = candidate.ulysses;
    plan.gathersContext = a.gathersContext && a.context > 1;
    launched.notes.push_back(
        fmt::format("{} as {}: {}, {} sequences of {}, {} microbatch{} of {}", std::filesystem::path(m_file).filename().string(),
            m_launch.framework == "megatron"      ? "Megatron-LM"
                : m_launch.framework == "maxtext" ? "MaxText"
                                                  : "torchtitan",
            plan.kind, a.globalBatch, a.sequence, microbatches, microbatches == 1.0 ? "" : "es", a.microbatch));
    if (m_launch.trainings > 1)
        launched.notes.push_back(fmt::format("the first of {} trainings in the file", m_launch.trainings));
    if (m_launch.devices && *m_launch.devices != m_devices)
        launched.notes.push_back(
            fmt::format("the line starts {} processes; the plan is for the {} devices of --hw", *m_launch.devices, m_devices));
    if (a.sgdMomentum)
        addSgd(plan);
    launched.settings = m_settings;
    launched.warnings = m_warnings;
    launched.notes.insert(launched.notes.end(), m_notes.begin(), m_notes.end());
    return launched;
}

Result<LaunchedPlan> LaunchReader::read()
{
    if (!m_modelFile.empty())
        readModel(m_modelFile);
    if (m_launch.framework == "megatron")
        readMegatron();
    else if (m_launch.framework == "maxtext")
        readMaxText();
    else
        readTorchtitan();
    return planned();
}

Result<LaunchedPlan> planOf(
    const LaunchLine& launch, const std::string& file, const SearchMachine& machine, const std::string& model)
{
    return LaunchReader(launch, file, machine, model).read();
}

} // namespace meshwright::sim
