// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/transformer_space.h"

#include "core/study/pipeline_choice.h"
#include "core/support/checked.h"
#include "core/support/parallel_for.h"
#include "core/support/text.h"
#include "sim/search/search_limits.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace meshwright::sim {

namespace {

constexpr double kImbalance = 1.1; ///< tokens of the busiest expert rank over the mean
constexpr std::int64_t kMostMicrobatch = 1024;
constexpr std::int64_t kMostMicrobatchTokens = std::int64_t{1} << 20; ///< of short sequences more than kMostMicrobatch
constexpr double kSafety = 1.0 - 1e-9; ///< sums in another order differ in the last figures

std::vector<std::int64_t> divisors(std::int64_t number)
{
    std::vector<std::int64_t> low;
    std::vector<std::int64_t> high;
    for (std::int64_t factor = 1; factor <= number / factor; ++factor) {
        if (number % factor != 0)
            continue;
        low.push_back(factor);
        if (factor != number / factor)
            high.push_back(number / factor);
    }
    low.insert(low.end(), high.rbegin(), high.rend());
    return low;
}

std::vector<std::pair<const char*, Recomputation>> policiesOf(const SearchMachine& machine)
{
    const bool isMaxText = machine.stack == "maxtext"; // it makes something of each layer again
    std::vector<const char*> names = isMaxText || machine.chip.chipClass == ChipClass::Tpu
        ? std::vector<const char*>{"none", "minimal_with_context", "minimal", "save_dot_with_context_except_mlp",
            "save_dot_except_mlp", "save_qkv_proj", "save_context", "full"}
        : std::vector<const char*>{"none", "selective", "save_dot_with_context_except_mlp", "save_context", "full"};
    if (isMaxText)
        names.erase(names.begin());
    std::vector<std::pair<const char*, Recomputation>> policies;
    for (const char* name : names)
        policies.emplace_back(name, *recomputationOf(name));
    return policies;
}

TrainingPlan planOfWork(const SearchWork& work, const SearchMachine& machine)
{
    TrainingPlan plan;
    plan.model = work.model;
    plan.details.windowLayers = work.model.slidingWindowLayers;
    plan.details.queryRank = work.model.queryRank;
    plan.details.keyValueRank = work.model.keyValueRank;
    plan.details.ropeHeadDim = work.model.latentRotaryDim;
    plan.details.valueHeadDim = work.model.valueHeadDim;
    plan.details.dropout = machine.traits.dropout;
    plan.details.layerFactor = machine.layerFactor;
    plan.work.sequence = work.sequence;
    plan.work.globalBatch = work.globalBatch;
    plan.work.format = work.format;
    plan.work.recipe = work.recipe;
    plan.work.activationFormat = bytesPerElement(work.format) >= 2.0 ? work.format : MathFormat::Bf16;
    plan.work.attention = machine.traits.attention;
    plan.work.weightsApart = true;
    plan.work.fusedNorms = machine.traits.fusedNorms;
    plan.work.fusedRotary = machine.traits.fusedRotary;
    plan.work.fusedElementwise = machine.traits.fusedElementwise;
    plan.work.lossKernels = machine.traits.lossKernels;
    plan.layout.slices = machine.cluster.slices;
    plan.layout.asyncTensorParallel = machine.traits.asyncTensorParallel;
    plan.layout.dispatchesOnceAHost = machine.traits.dispatchesOnceAHost;
    plan.layout.expertImbalance = work.model.experts > 0 ? kImbalance : 1.0;
    return plan;
}

} // namespace

const std::vector<std::string>& fixedChoiceNames()
{
    static const std::vector<std::string> names
        = {"data", "fsdp", "expert", "context", "tensor", "pipeline", "microbatch", "chunks", "zero", "recompute", "schedule"};
    return names;
}

std::int64_t fastChips(const SearchMachine& machine)
{
    return machine.cluster.fastDomain.value_or(machine.chip.fastDomain.value_or(8));
}

std::optional<std::int64_t> largestSlice(const Chip& chip)
{
    if (chip.interconnect.kind != InterconnectKind::Torus || (!chip.maxSliceChips && chip.maxSlice.empty()))
        return std::nullopt;
    return chip.maxSliceChips ? *chip.maxSliceChips : checkedProduct(chip.maxSlice).value_or(kMostChips);
}

bool canBeBuilt(const SearchMachine& machine)
{
    if (machine.chip.interconnect.kind == InterconnectKind::Torus)
        return machine.chips <= machine.cluster.slices * largestSlice(machine.chip).value_or(machine.chips);
    return machine.chips <= fastChips(machine) || machine.chip.nicBytesPerSecond.has_value();
}

std::vector<FixedChoice> onMachine(std::vector<FixedChoice> choices, const SearchMachine& machine)
{
    std::int64_t ranks = std::min(machine.chips, fastChips(machine)) * machine.chip.devicesPerChip;
    for (const char* axis : {"tensor", "context"}) {
        const auto given = std::ranges::find(choices, axis, &FixedChoice::name);
        if (given != choices.end())
            ranks /= std::max<std::int64_t>(1, parseInteger(given->value).value_or(1));
    }
    for (FixedChoice& choice : choices) {
        if (choice.value == "host")
            choice.value = std::to_string(std::max<std::int64_t>(1, ranks));
    }
    return choices;
}

bool splitsHeads(const TransformerConfig& model, std::int64_t tensor)
{
    const std::vector<TransformerConfig> groups = layerGroups(model);
    return std::all_of(groups.begin(), groups.end(), [tensor](const TransformerConfig& c) {
        const bool splitsMixer = c.isRecurrent() ? c.stateHeads % tensor == 0 && c.stateKeyHeads % tensor == 0
                                                 : c.mixer == MixerKind::None || c.heads % tensor == 0;
        return splitsMixer && c.ffn % tensor == 0 && (c.experts == 0 || c.expertFfn % tensor == 0);
    });
}

bool TransformerSpace::Fixed::allows(const char* name, std::int64_t value) const
{
    const auto found = numbers.find(name);
    return found == numbers.end() || found->second == value;
}

TransformerSpace::TransformerSpace(const SearchWork& work, const SearchMachine& machine, const std::vector<FixedChoice>& fixed,
    unsigned threads, const std::stop_token& stop)
    : m_work(work)
    , m_machine(machine)
    , m_capacityBytes(Cluster(machine.chip, machine.cluster, machine.constants).capacityBytes())
    , m_recomputations(policiesOf(machine))
{
    for (const FixedChoice& choice : fixed) {
        if (choice.name == "recompute") {
            m_fixed.recompute = choice.value;
            const bool known = std::any_of(m_recomputations.begin(), m_recomputations.end(),
                [&](const auto& policy) { return choice.value == policy.first; });
            // Any policy that the cost model knows may be asked for.
            const std::vector<const char*>& all = recomputationNames();
            const auto other = std::find(all.begin(), all.end(), choice.value);
            if (!known && other != all.end())
                m_recomputations.emplace_back(*other, *recomputationOf(*other));
        } else if (choice.name == "schedule") {
            m_fixed.schedule = choice.value;
        } else {
            m_fixed.numbers[choice.name] = parseInteger(choice.value).value_or(0);
        }
    }
    enumerate(stop);
    m_cutShort = stop.stop_requested();
    if (m_cutShort) {
        m_candidates.clear();
        return;
    }
    const unsigned workers = workerCount(threads);
    std::vector<StepModel> models;
    std::vector<TrainingPlan> plans;
    for (unsigned worker = 0; worker < workers; ++worker) {
        models.emplace_back(machine.chip, machine.cluster, machine.constants, machine.traits);
        plans.push_back(emptyPlan());
    }
    m_shared.resize(m_sharedOf.size());
    parallelFor(m_sharedOf.size(), workers, stop,
        [&](unsigned worker, std::size_t i) { m_shared[i] = sharedCost(m_sharedOf[i], plans[worker], models[worker]); });
    parallelFor(m_candidates.size(), workers, stop,
        [&](unsigned worker, std::size_t i) { bound(m_candidates[i], plans[worker], models[worker]); });
    m_cutShort = stop.stop_requested();
    if (m_cutShort) { // of candidates without bounds nothing is known
        m_candidates.clear();
        return;
    }
    std::vector<std::pair<double, std::uint32_t>> order;
    order.reserve(m_candidates.size());
    for (std::uint32_t i = 0; i < m_candidates.size(); ++i)
        order.emplace_back(m_candidates[i].seconds, i);
    std::sort(order.begin(), order.end());
    std::vector<Candidate> sorted;
    sorted.reserve(order.size());
    for (const auto& [seconds, i] : order)
        sorted.push_back(m_candidates[i]);
    m_candidates = std::move(sorted);
}

TrainingPlan TransformerSpace::emptyPlan() const
{
    return planOfWork(m_work, m_machine);
}

double TransformerSpace::layerSeconds(const SearchWork& work, const SearchMachine& machine)
{
    TrainingPlan plan = planOfWork(work, machine);
    plan.details.layerFactor = 1.0;
    plan.work.globalBatch = 2 * kManySequences;
    const StepModel model(machine.chip, machine.cluster, machine.constants, machine.traits);
    const auto seconds = [&](double sequences) {
        plan.work.microbatch = sequences;
        LayerCost layer = layerCost(plan, model.curve(), model.cluster(), machine.constants);
        layer.forward += layer.backward;
        return layer.forward.computing() + layer.forward.kernels * model.curve().kernelSeconds();
    };
    const double many = asDouble(kManySequences);
    return asDouble(work.model.layers) * (seconds(2.0 * many) - seconds(many)) / many;
}

void TransformerSpace::apply(const Candidate& candidate, TrainingPlan& plan) const
{
    plan.work.microbatch = asDouble(candidate.microbatch);
    plan.work.recompute = m_recomputations[candidate.recompute].second;
    plan.work.lossChunks = lossChunks(candidate);
    plan.layout.dp = candidate.dp;
    plan.layout.tp = candidate.tp;
    plan.layout.pp = candidate.pp;
    plan.layout.cp = candidate.cp;
    plan.layout.ep = candidate.ep;
    plan.layout.virtualStages = candidate.chunks;
    plan.layout.schedule = candidate.schedule;
    plan.layout.expertStride = std::int64_t{candidate.tp} * candidate.cp; // see meshOf
    plan.layout.sequenceParallel = candidate.sequenceParallel;
    plan.layout.ulysses = candidate.ulysses;
    plan.layout.zeroStage = candidate.zero;
    plan.layout.shardDegree = candidate.zero >= 3 ? std::int64_t{candidate.fsdp} * candidate.cp : 0;
}

std::int64_t TransformerSpace::lossChunks(const Candidate& candidate) const
{
    constexpr double kMostWhole = 0.25; // of the device's memory: logits of which a step holds several copies
    constexpr double kMostOfChunk = 1.0 / 32.0;
    const double tokens = asDouble(candidate.microbatch) * asDouble(m_work.sequence) / candidate.cp;
    const double bytes = bytesPerElement(MathFormat::Bf16) * tokens * asDouble(m_work.model.vocabulary) / candidate.tp;
    std::int64_t chunks = 1;
    if (bytes <= kMostWhole * m_capacityBytes)
        return chunks;
    while (bytes / asDouble(chunks) > kMostOfChunk * m_capacityBytes
        && m_work.sequence % (2 * chunks * std::int64_t{candidate.cp} * candidate.tp) == 0)
        chunks *= 2;
    return chunks;
}

void TransformerSpace::enumerate(const std::stop_token& stop)
{
    const std::int64_t devices = m_machine.cluster.devices;
    const TransformerConfig& model = m_work.model;
    Candidate candidate;
    const std::vector<TransformerConfig> groups = layerGroups(model);
    // A state goes through the whole sequence.
    const bool isRecurrent
        = std::any_of(groups.begin(), groups.end(), [](const TransformerConfig& c) { return c.isRecurrent(); });
    for (const std::int64_t tp : divisors(devices)) {
        if (!splitsHeads(model, tp) || !m_fixed.allows("tensor", tp))
            continue;
        for (const std::int64_t pp : divisors(devices / tp)) {
            if (pp > model.layers || !m_fixed.allows("pipeline", pp))
                continue;
            for (const std::int64_t cp : divisors(devices / tp / pp)) {
                const std::int64_t dp = devices / tp / pp / cp;
                if (!m_fixed.allows("context", cp) || (cp > 1 && isRecurrent) || m_work.globalBatch % dp != 0
                    || (cp > 1 && m_work.sequence % (2 * cp) != 0))
                    continue;
                if (stop.stop_requested())
                    return;
                candidate.tp = static_cast<std::int32_t>(tp);
                candidate.pp = static_cast<std::int32_t>(pp);
                candidate.cp = static_cast<std::int32_t>(cp);
                candidate.dp = static_cast<std::int32_t>(dp);
                for (const std::int64_t ep : divisors(model.experts > 0 ? std::gcd(dp, model.experts) : 1)) {
                    candidate.ep = static_cast<std::int32_t>(ep);
                    if (m_fixed.allows("expert", ep))
                        addLayouts(candidate, stop);
                }
            }
        }
    }
}

EnumeratedSpace TransformerSpace::described() const
{
    std::vector<std::string> policies;
    for (const auto& policy : m_recomputations) {
        if (m_fixed.recompute.empty() || m_fixed.recompute == policy.first)
            policies.emplace_back(policy.first);
    }
    EnumeratedSpace space;
    const auto add = [&](const char* name, const char* values) {
        const auto fixed = m_fixed.numbers.find(name);
        space.choices.emplace_back(name, fixed == m_fixed.numbers.end() ? std::string(values) : std::to_string(fixed->second));
    };
    add("tensor", "divisors of the devices that divide heads and feed-forward width, with and without sequence parallelism");
    add("pipeline", "divisors of the devices up to the layers");
    add("context", "divisors of the devices that divide half the sequence, by rings and by exchanging heads");
    add("expert", "divisors of the data ranks and of the experts");
    add("zero", "0, 1, 2, 3");
    add("fsdp", "divisors of the data ranks (ZeRO-3), which hold all experts");
    add("data", "what is left; it divides the batch");
    add("microbatch", "divisors of a data rank's sequences, up to 1,024");
    add("chunks", "of interleaved stages: equal numbers of layers, or one less at both ends");
    space.choices.emplace_back("recompute", join(policies, ", "));
    space.choices.emplace_back("schedule", m_fixed.schedule.empty() ? "gpipe, 1f1b, interleaved" : m_fixed.schedule);
    space.leftOut = {"zero-bubble schedules, unless --fix schedule=zb_h1 or zb_h2 asks for them",
        "recomputation that keeps other values by name, or some in the host's memory, unless --fix recompute= asks for it",
        "specs of single arrays: all layers have the same",
        "degrees that split heads, batch, sequence or rows of weights unevenly",
        "orders of the mesh's axes: tensor joins neighbours, then context, expert, fsdp, data, pipeline",
        "capacity of experts, types of gradients: as the stack has them",
        "a loss in chunks, but for logits over a quarter of a device's memory"};
    return space;
}

/// Microbatch, recomputation and the ways to split activations.
void TransformerSpace::addLayouts(Candidate candidate, const std::stop_token& stop)
{
    const std::int64_t perRank = m_work.globalBatch / candidate.dp;
    for (const std::int64_t microbatch : divisors(perRank)) {
        if (stop.stop_requested())
            return; // the caller sees it
        if (microbatch > std::max(kMostMicrobatch, kMostMicrobatchTokens / m_work.sequence)
            || perRank / microbatch > kMostStepMicrobatches || !m_fixed.allows("microbatch", microbatch))
            continue;
        candidate.microbatch = static_cast<std::int32_t>(microbatch);
        for (std::size_t policy = 0; policy < m_recomputations.size(); ++policy) {
            if (!m_fixed.recompute.empty() && m_fixed.recompute != m_recomputations[policy].first)
                continue;
            candidate.recompute = static_cast<std::uint8_t>(policy);
            for (const bool sequenceParallel : {false, true}) {
                const bool splitsSequence = m_work.sequence % (std::int64_t{candidate.cp} * candidate.tp) == 0;
                if (sequenceParallel && (candidate.tp == 1 || !splitsSequence))
                    continue;
                candidate.sequenceParallel = sequenceParallel;
                for (const bool ulysses : {false, true}) {
                    if (ulysses
                        && (candidate.cp == 1 || m_work.model.keyValueHeads % (std::int64_t{candidate.tp} * candidate.cp) != 0))
                        continue;
                    candidate.ulysses = ulysses;
                    addStates(candidate, perRank / microbatch);
                }
            }
        }
    }
}

/// What is split over the data ranks.
void TransformerSpace::addStates(Candidate candidate, std::int64_t microbatches)
{
    for (const int zero : {0, 1, 2, 3}) {
        if (!m_fixed.allows("zero", zero) || (zero > 0 && candidate.dp * candidate.cp == 1))
            continue;
        // Rows of weights are split evenly or not at all.
        const auto splitsRows
            = [&](std::int32_t ranks) { return m_work.model.hidden % (std::int64_t{ranks} * candidate.cp) == 0; };
        if ((zero == 1 || zero == 2) && !splitsRows(candidate.dp))
            continue;
        candidate.zero = static_cast<std::uint8_t>(zero);
        candidate.fsdp = 1;
        candidate.layer = sharedIndex(candidate, microbatches);
        if (zero < 3) {
            if (m_fixed.allows("fsdp", 1) && m_fixed.allows("data", candidate.dp / candidate.ep))
                addChunks(candidate, microbatches);
            continue;
        }
        for (const std::int64_t fsdp : divisors(candidate.dp)) {
            if (fsdp * candidate.cp == 1 || !splitsRows(static_cast<std::int32_t>(fsdp)) || fsdp % candidate.ep != 0
                || !m_fixed.allows("fsdp", fsdp / candidate.ep) || !m_fixed.allows("data", candidate.dp / fsdp))
                continue;
            candidate.fsdp = static_cast<std::int32_t>(fsdp);
            addChunks(candidate, microbatches);
        }
    }
}

void TransformerSpace::addChunks(const Candidate& candidate, std::int64_t microbatches)
{
    const std::int64_t layers = m_work.model.layers;
    const auto add = [&](std::int64_t chunks, PipelineOrder schedule) {
        if (chunks * candidate.pp * microbatches > kMostPipelineTasks || !m_fixed.allows("chunks", chunks)
            || (!m_fixed.schedule.empty() && m_fixed.schedule != scheduleName(schedule)))
            return;
        Candidate one = candidate;
        one.chunks = static_cast<std::int32_t>(chunks);
        one.schedule = schedule;
        m_candidates.push_back(one);
    };
    if (candidate.pp == 1) {
        add(1, PipelineOrder::OneForwardOneBackward);
        return;
    }
    add(1, PipelineOrder::GPipe);
    add(1, PipelineOrder::OneForwardOneBackward);
    // Few trainers have them: only on request.
    if (const auto wanted = scheduleNamed(m_fixed.schedule); wanted && splitsBackward(*wanted))
        add(1, *wanted);
    if (microbatches % candidate.pp != 0)
        return;
    for (std::int64_t chunks = 2; chunks * candidate.pp <= layers + 2; ++chunks) {
        const std::int64_t all = chunks * candidate.pp;
        if (layers % all == 0 || (layers + 2) % all == 0)
            add(chunks, PipelineOrder::Interleaved);
    }
}

std::uint32_t TransformerSpace::sharedIndex(const Candidate& candidate, std::int64_t microbatches)
{
    // Gradients of weights are added up where there are several passes; 8-bit weights are made once a step.
    const bool narrow = bytesPerElement(m_work.format) < 2.0;
    const auto passes = static_cast<std::int32_t>(narrow ? microbatches : std::min<std::int64_t>(microbatches, 2));
    const std::array<std::int32_t, 9> key = {candidate.tp, candidate.cp, candidate.ep, candidate.microbatch, candidate.recompute,
        candidate.sequenceParallel ? 1 : 0, candidate.ulysses ? 1 : 0, candidate.zero >= 3 ? 1 : 0, passes};
    const auto [found, isNew] = m_sharedIndex.try_emplace(key, static_cast<std::uint32_t>(m_sharedOf.size()));
    if (isNew)
        m_sharedOf.push_back(candidate);
    return found->second;
}

TransformerSpace::SharedCost TransformerSpace::sharedCost(
    const Candidate& candidate, TrainingPlan& plan, const StepModel& model) const
{
    apply(candidate, plan);
    const LayerCost layer = layerCost(plan, model.curve(), model.cluster(), m_machine.constants);
    const EndCost ends = endCost(plan, model.curve(), model.cluster(), m_machine.traits);
    PassCost backward = layer.backward;
    backward += layer.again;
    const auto seconds = [&](const PassCost& pass) { return passSeconds(pass, model.curve()); };
    return {seconds(layer.forward), seconds(backward), seconds(ends.embeddingForward), seconds(ends.embeddingBackward),
        seconds(ends.headForward), seconds(ends.headBackward), layer.keptBytes, ends.logitBytes};
}

/// A stage begins when the first microbatch reaches it, does its microbatches one after the other, and the step ends when its last one is back at
/// the first stage.
double TransformerSpace::pipelineSeconds(const TrainingPlan& plan, const SharedCost& shared, double layerSeconds) const
{
    const ParallelLayout& layout = plan.layout;
    const std::int64_t places = layout.pp * layout.virtualStages;
    const double passes = plan.microbatches();
    const double embedding = shared.embeddingForward + shared.embeddingBackward;
    const double head = shared.headForward + shared.headBackward;
    const double busy = m_machine.constants.microbatchSeconds;
    const bool waits = !splitsBackward(layout.schedule); // a step of the others counts from each stage's first task
    if (waits && plan.model.layers % places == 0 && layout.pp > 2) {
        // Stages between the ends are alike: the last of them begins latest.
        const double chunk = asDouble(plan.model.layers / places) * layerSeconds + busy;
        const double stage = asDouble(layout.virtualStages) * chunk;
        const double last = embedding + asDouble(layout.pp - 1) * chunk + passes * (stage + head);
        const double between = embedding + asDouble(layout.pp - 2) * chunk + passes * stage;
        return std::max({passes * (stage + embedding), between, last});
    }
    double lead = 0.0;
    double most = 0.0;
    for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
        double seconds = 0.0;
        double first = 0.0;
        for (std::int64_t turn = 0; turn < layout.virtualStages; ++turn) {
            const std::int64_t place = turn * layout.pp + stage;
            double own = asDouble(layersOfChunk(plan.model.layers, places, place)) * layerSeconds + busy;
            if (place == 0)
                own += embedding;
            if (place == places - 1)
                own += head;
            seconds += own;
            if (turn == 0)
                first = own;
        }
        most = std::max(most, lead + passes * seconds);
        lead += waits ? first : 0.0;
    }
    return most;
}

void TransformerSpace::bound(Candidate& candidate, TrainingPlan& plan, const StepModel& model) const
{
    apply(candidate, plan);
    const SharedCost& shared = m_shared[candidate.layer];
    const StackConstants& constants = m_machine.constants;
    const StackTraits& traits = m_machine.traits;
    const Cluster& cluster = model.cluster();
    const ParallelLayout& layout = plan.layout;
    const RankParameters parameters = rankParameters(plan);
    const double microbatches = plan.microbatches();
    const std::int64_t shards = plan.shardGroup();
    const double dataRanks = asDouble(layout.dp * layout.cp);
    const double expertRanks = std::max(1.0, dataRanks / asDouble(layout.ep));

    double forward = shared.forward;
    double backward = shared.backward;
    double reduce = 0.0;
    const double ownDense = asDouble(plan.model.layers) / asDouble(layout.pp) * parameters.layer;
    const double ownExperts = asDouble(plan.model.layers) / asDouble(layout.pp) * parameters.experts;
    if (layout.zeroStage >= 3 && shards > 1) {
        const RankGroup group = cluster.group(shards, layout.tp);
        const RankGroup expertGroup = cluster.expertShards(layout, shards);
        const auto seconds = [&](double bytes) {
            return weightGatherSeconds(cluster, plan.work, parameters.layer * bytes, parameters.layerMatrices, group)
                + weightGatherSeconds(cluster, plan.work, parameters.experts * bytes, parameters.expertMatrices, expertGroup);
        };
        const double gather = seconds(plan.work.gatheredBytes());
        const double reduced = seconds(traits.gradientBytes);
        forward = std::max(forward, gather);
        backward = std::max(backward, gather + (traits.gradientsOncePerStep ? reduced / microbatches : reduced));
        reduce = gather + reduced;
    } else if (layout.zeroStage < 3 && dataRanks > 1.0) {
        const RankGroup group = cluster.group(layout.dp * layout.cp, layout.tp);
        const double times = layout.zeroStage == 2 && !traits.gradientsOncePerStep ? microbatches : 1.0;
        const auto sum = [&](double count, double matrices, const RankGroup& over) {
            return layout.zeroStage == 0
                ? weightReduceSeconds(cluster, plan.work, count * traits.gradientBytes, matrices, over)
                : times * weightGatherSeconds(cluster, plan.work, count * traits.gradientBytes, matrices, over)
                    + weightGatherSeconds(cluster, plan.work, count * traits.weightBytes, matrices, over);
        };
        const double all = sum(ownDense, parameters.layerMatrices, group)
            + sum(ownExperts, parameters.expertMatrices,
                cluster.group(static_cast<std::int64_t>(expertRanks), layout.tp * layout.ep));
        reduce = (1.0 - constants.dataOverlap) * all;
    }

    const double pipeline = pipelineSeconds(plan, shared, forward + backward);
    const double optimizer = model.curve().streamSeconds(constants.optimizerBytes
        * (ownDense / (layout.zeroStage >= 1 ? asDouble(shards) : 1.0)
            + ownExperts / (layout.zeroStage >= 1 ? plan.expertShards() : 1.0)));
    const double plain = pipeline + reduce + optimizer + constants.stepSeconds;
    candidate.seconds = kSafety * plain * (1.0 + stragglerDelay(constants, cluster.hosts()));

    const std::int64_t places = layout.pp * layout.virtualStages;
    const double expertShards = plan.expertShards();
    for (const std::int64_t stage : {std::int64_t{0}, layout.pp - 1}) {
        double layers = 0.0;
        for (std::int64_t turn = 0; turn < layout.virtualStages; ++turn)
            layers += asDouble(layersOfChunk(plan.model.layers, places, turn * layout.pp + stage));
        const double dense = layers * parameters.layer + (stage == 0 ? parameters.embedding : 0.0)
            + (stage == layout.pp - 1 ? parameters.head : 0.0);
        const double experts = layers * parameters.experts;
        const double stateBytes = optimizerStateBytes(plan.work, traits);
        const auto held = [&](double bytes, int splitFrom) {
            return bytes * (layout.zeroStage >= splitFrom ? dense / asDouble(shards) + experts / expertShards : dense + experts);
        };
        const double inFlight = heldChunks(layout.schedule, asDouble(layout.pp), asDouble(stage), asDouble(layout.virtualStages),
                                    std::ceil(microbatches))
            / asDouble(layout.virtualStages);
        const double bytes = held(traits.weightBytes, 3) + held(traits.gradientBytes, 2) + held(stateBytes, 1)
            + inFlight * layers * shared.keptBytes + (stage == layout.pp - 1 ? shared.logitBytes : 0.0);
        candidate.bytes = std::max(candidate.bytes, kSafety * bytes);
    }
}

const char* axisRoleName(AxisRole role)
{
    switch (role) {
    case AxisRole::Pipeline:
        return "pipeline";
    case AxisRole::Data:
        return "data";
    case AxisRole::Fsdp:
        return "fsdp";
    case AxisRole::Expert:
        return "expert";
    case AxisRole::Context:
        return "context";
    case AxisRole::Tensor:
        return "tensor";
    }
    return "";
}

std::int64_t axisSize(const Candidate& c, AxisRole role)
{
    switch (role) {
    case AxisRole::Pipeline:
        return c.pp;
    case AxisRole::Data:
        return c.zero >= 3 ? c.dp / c.fsdp : c.dp / c.ep;
    case AxisRole::Fsdp:
        return c.zero >= 3 ? c.fsdp / c.ep : 1;
    case AxisRole::Expert:
        return c.ep;
    case AxisRole::Context:
        return c.cp;
    case AxisRole::Tensor:
        return c.tp;
    }
    return 1;
}

std::vector<MeshAxis> meshOf(const Candidate& c)
{
    std::vector<MeshAxis> mesh;
    for (const AxisRole role : kAxisRoles) {
        if (const std::int64_t size = axisSize(c, role); size > 1)
            mesh.push_back({axisRoleName(role), size});
    }
    if (mesh.empty())
        mesh.push_back({axisRoleName(AxisRole::Data), 1});
    return mesh;
}

} // namespace meshwright::sim
