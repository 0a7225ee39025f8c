// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/mlp_search.h"

#include "core/support/text.h"
#include "sim/search/elimination.h"
#include "sim/search/plan_reasons.h"
#include "sim/search/plan_trials.h"
#include "sim/search/search_limits.h"
#include "sim/search/tested_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

namespace meshwright::sim {

namespace {

/// What a mesh axis does to a layer's product.
enum class Split : std::uint8_t {
    Batch, ///< its rows; the weight is whole on every device
    Gathered, ///< its rows, and the weight lies split and is gathered where it is used (FSDP)
    Contracting, ///< its depth: partial sums are added up
    Output, ///< its columns
    Nothing, ///< all devices of the axis do the same
};
constexpr std::array<Split, 5> kSplits{Split::Batch, Split::Gathered, Split::Contracting, Split::Output, Split::Nothing};

/// How an activation lies along one axis.
enum class ActivationSplit : std::uint8_t { Rows, Columns, Whole };

using Strategy = std::array<Split, 2>; ///< on data, on model

ActivationSplit splitBefore(Split split)
{
    return split == Split::Batch || split == Split::Gathered ? ActivationSplit::Rows
        : split == Split::Contracting                        ? ActivationSplit::Columns
                                                             : ActivationSplit::Whole;
}

ActivationSplit splitAfter(Split split)
{
    return split == Split::Batch || split == Split::Gathered ? ActivationSplit::Rows
        : split == Split::Output                             ? ActivationSplit::Columns
                                                             : ActivationSplit::Whole;
}

/// The parts of a step that plans are compared by.
enum MlpPart : std::size_t { Computing, Forward, Backward, Gradients, Gathers, Reshards, Update, MlpPartCount };
constexpr std::array<const char*, MlpPartCount> kMlpPartNames{"compute", "all-reduce of partial sums",
    "all-reduce of activations' gradients", "all-reduce of weights' gradients", "all-gather of weights",
    "reshards between layers", "optimizer"};

/// A layer under one strategy.
struct LayerChoice {
    Strategy strategy;
    std::array<double, MlpPartCount> seconds{};
    double bytes = 0.0;
    std::string weightSpec;
    std::string biasSpec;
};

std::string entryText(const std::vector<std::string>& axes)
{
    if (axes.empty())
        return "None";
    return axes.size() == 1 ? fmt::format("'{}'", axes[0]) : fmt::format("('{}', '{}')", axes[0], axes[1]);
}

/// One mesh of the search.
class MeshSearch {
public:
    MeshSearch(
        const MlpWork& work, const SearchMachine& machine, std::int64_t data, std::int64_t model, const std::stop_token& stop)
        : m_work(work)
        , m_sizes{data, model}
        , m_curve(machine.chip, {.constants = machine.constants})
        , m_cluster(machine.chip, machine.cluster, machine.constants)
        , m_groups{m_cluster.group(data, model), m_cluster.group(model, 1)}
        , m_constants(machine.constants)
        , m_stop(stop)
    {
        for (std::size_t layer = 0; layer + 1 < work.model.layers.size(); ++layer)
            m_layers.push_back(choicesOf(layer));
    }

    using Filter = std::function<bool(std::size_t layer, const Strategy&)>;
    struct Found {
        Assignment assignment;
        std::vector<std::size_t> picks; ///< index into layers' choices
        double lowerBoundSeconds = 0.0;
    };
    /// The quickest within the budget; nothing when none is.
    std::optional<Found> best(double budgetBytes, const Filter& filter = {}) const;

    std::array<double, MlpPartCount> parts(const Found& found) const;
    NoLayout whyNone(double budgetBytes, const Filter& filter) const;
    std::vector<std::size_t> slowest(
        const Found& found) const; ///< the `kOthers` layers that take most, in the order of the layers
    FoundPlan plan(const Found& found, const SearchMachine& machine) const;
    std::vector<MeshAxis> mesh() const;
    std::size_t strategies() const;
    double capacityBytes() const { return m_cluster.capacityBytes(); }
    const std::vector<std::vector<LayerChoice>>& layers() const { return m_layers; }

private:
    std::vector<LayerChoice> choicesOf(std::size_t layer) const;
    std::optional<LayerChoice> choiceOf(std::size_t layer, const Strategy& strategy, std::string* whyNot = nullptr) const;
    std::string axesText(const Strategy& strategy, std::initializer_list<Split> splits) const;
    double reshardSeconds(std::size_t boundary, const Strategy& before, const Strategy& after) const;
    double size(std::size_t axis) const { return static_cast<double>(m_sizes[axis]); }

    const MlpWork& m_work;
    std::array<std::int64_t, 2> m_sizes;
    DeviceCost m_curve;
    Cluster m_cluster;
    std::array<RankGroup, 2> m_groups;
    StackConstants m_constants;
    std::stop_token m_stop;
    std::vector<std::vector<LayerChoice>> m_layers;
};

/// "data=4 x model=2": the axes that split so.
std::string MeshSearch::axesText(const Strategy& strategy, std::initializer_list<Split> splits) const
{
    std::vector<std::string> axes;
    for (const std::size_t axis : {0U, 1U}) {
        if (std::ranges::find(splits, strategy[axis]) != splits.end())
            axes.push_back(fmt::format("{}={}", axis == 0 ? "data" : "model", m_sizes[axis]));
    }
    return join(axes, " x ");
}

/// `whyNot`: gets what cannot be split; stays empty where the mesh has no such axis.
std::optional<LayerChoice> MeshSearch::choiceOf(std::size_t layer, const Strategy& strategy, std::string* whyNot) const
{
    const auto cannotBe = [&](std::int64_t size, const char* what, std::initializer_list<Split> splits) {
        if (whyNot != nullptr)
            *whyNot = fmt::format("{} {} are not divisible by {}", size, what, axesText(strategy, splits));
        return std::nullopt;
    };
    constexpr std::array<const char*, 2> kNames{"data", "model"};
    std::int64_t rows = 1;
    std::int64_t depth = 1;
    std::int64_t columns = 1;
    std::vector<std::string> depthAxes;
    std::vector<std::string> columnAxes;
    for (const std::size_t axis : {0U, 1U}) {
        if (m_sizes[axis] == 1 && strategy[axis] != Split::Nothing)
            return std::nullopt;
        switch (strategy[axis]) {
        case Split::Batch:
        case Split::Gathered:
            rows *= m_sizes[axis];
            break;
        case Split::Contracting:
            depth *= m_sizes[axis];
            depthAxes.emplace_back(kNames[axis]);
            break;
        case Split::Output:
            columns *= m_sizes[axis];
            columnAxes.emplace_back(kNames[axis]);
            break;
        case Split::Nothing:
            break;
        }
    }
    const std::int64_t inputs = m_work.model.layers[layer];
    const std::int64_t outputs = m_work.model.layers[layer + 1];
    if (m_work.batch % rows != 0)
        return cannotBe(m_work.batch, "examples", {Split::Batch, Split::Gathered});
    if (inputs % depth != 0)
        return cannotBe(inputs, fmt::format("inputs of layers.{}", layer).c_str(), {Split::Contracting});
    if (outputs % columns != 0)
        return cannotBe(outputs, fmt::format("outputs of layers.{}", layer).c_str(), {Split::Output});
    const std::vector<std::string> biasAxes = columnAxes;
    // A weight that is gathered is split along its first dimension that divides.
    std::int64_t storedDepth = depth;
    std::int64_t storedColumns = columns;
    for (const std::size_t axis : {0U, 1U}) {
        if (strategy[axis] != Split::Gathered)
            continue;
        if (inputs % (storedDepth * m_sizes[axis]) == 0) {
            storedDepth *= m_sizes[axis];
            depthAxes.emplace_back(kNames[axis]);
        } else if (outputs % (storedColumns * m_sizes[axis]) == 0) {
            storedColumns *= m_sizes[axis];
            columnAxes.emplace_back(kNames[axis]);
        } else {
            return cannotBe(inputs, fmt::format("inputs and {} outputs of layers.{}", outputs, layer).c_str(), {Split::Gathered});
        }
    }
    LayerChoice choice;
    choice.strategy = strategy;
    const auto b = static_cast<double>(m_work.batch / rows);
    const auto k = static_cast<double>(inputs / depth);
    const auto n = static_cast<double>(outputs / columns);
    const double width = m_work.parameterBytes;
    const bool first = layer == 0;
    const double kernels = first ? 2.0 : 3.0;
    choice.seconds[Computing] = m_curve.productSeconds({1.0, b, n, k}, m_work.format)
        + m_curve.productSeconds({1.0, k, n, b}, m_work.format)
        + (first ? 0.0 : m_curve.productSeconds({1.0, b, k, n}, m_work.format)) + kernels * m_curve.kernelSeconds()
        + m_curve.streamSeconds(4.0 * width * b * n);
    for (const std::size_t axis : {0U, 1U}) {
        const RankGroup& group = m_groups[axis];
        if (strategy[axis] == Split::Contracting)
            choice.seconds[Forward] += m_cluster.allReduceSeconds(width * b * n, group);
        if (strategy[axis] == Split::Output && !first)
            choice.seconds[Backward] += m_cluster.allReduceSeconds(width * b * k, group);
        if (strategy[axis] == Split::Batch)
            choice.seconds[Gradients] += m_cluster.allReduceSeconds(width * k * n, group);
        if (strategy[axis] == Split::Gathered)
            choice.seconds[Gathers] += (first ? 2.0 : 3.0) * m_cluster.allGatherSeconds(width * k * n, group);
    }
    const double stored = static_cast<double>(inputs / storedDepth) * static_cast<double>(outputs / storedColumns);
    choice.seconds[Update] = m_curve.streamSeconds(stored * (3.0 * width + 2.0 * m_work.stateBytes));
    choice.bytes = stored * (2.0 * width + m_work.stateBytes) + width * b * (k + n);
    choice.weightSpec = fmt::format("P({}, {})", entryText(depthAxes), entryText(columnAxes));
    choice.biasSpec = fmt::format("P({})", entryText(biasAxes));
    return choice;
}

std::vector<LayerChoice> MeshSearch::choicesOf(std::size_t layer) const
{
    std::vector<LayerChoice> choices;
    for (const Split data : kSplits) {
        for (const Split model : kSplits) {
            if (auto choice = choiceOf(layer, {data, model}))
                choices.push_back(*std::move(choice));
        }
    }
    return choices;
}

/// The activation behind layer `boundary`, forward and its gradient backward.
double MeshSearch::reshardSeconds(std::size_t boundary, const Strategy& before, const Strategy& after) const
{
    const double bytes
        = m_work.parameterBytes * static_cast<double>(m_work.batch) * static_cast<double>(m_work.model.layers[boundary + 1]);
    double seconds = 0.0;
    for (const std::size_t axis : {0U, 1U}) {
        const ActivationSplit from = splitAfter(before[axis]);
        const ActivationSplit to = splitBefore(after[axis]);
        if (from == to || m_sizes[axis] == 1)
            continue;
        const std::size_t other = 1 - axis;
        const double along = splitAfter(before[other]) == ActivationSplit::Whole ? bytes : bytes / size(other);
        if (from == ActivationSplit::Whole || to == ActivationSplit::Whole)
            seconds += m_cluster.allGatherSeconds(along, m_groups[axis]);
        else
            seconds += 2.0 * m_cluster.allToAllSeconds(along / size(axis), m_groups[axis]);
    }
    return seconds;
}

std::optional<MeshSearch::Found> MeshSearch::best(double budgetBytes, const Filter& filter) const
{
    ChoiceGraph graph;
    std::vector<std::vector<std::size_t>> allowed;
    for (std::size_t layer = 0; layer < m_layers.size(); ++layer) {
        auto& own = graph.variables.emplace_back();
        auto& picks = allowed.emplace_back();
        for (std::size_t i = 0; i < m_layers[layer].size(); ++i) {
            const LayerChoice& choice = m_layers[layer][i];
            if (filter && !filter(layer, choice.strategy))
                continue;
            double seconds = 0.0;
            for (const double part : choice.seconds)
                seconds += part;
            own.push_back({seconds, choice.bytes});
            picks.push_back(i);
        }
        if (picks.empty())
            return std::nullopt;
    }
    for (std::size_t layer = 0; layer + 1 < m_layers.size(); ++layer) {
        ChoiceGraph::Edge edge{layer, layer + 1, {}};
        for (const std::size_t before : allowed[layer]) {
            for (const std::size_t after : allowed[layer + 1])
                edge.seconds.push_back(
                    reshardSeconds(layer, m_layers[layer][before].strategy, m_layers[layer + 1][after].strategy));
        }
        graph.edges.push_back(std::move(edge));
    }
    EliminationLimits limits;
    limits.labels = 2; // keep the quickest of all exactly, which is the answer where it fits
    limits.stop = m_stop;
    EliminationResult result = eliminate(graph, limits);
    if (!result.front.empty() && result.front.front().bytes > budgetBytes) {
        limits.budgetBytes = budgetBytes;
        limits.labels = 64;
        result = eliminate(graph, limits);
    }
    if (result.front.empty())
        return std::nullopt;
    Found found{result.front.front(), {}, std::min(result.lowerBoundSeconds, result.front.front().seconds)};
    for (std::size_t layer = 0; layer < m_layers.size(); ++layer)
        found.picks.push_back(allowed[layer][found.assignment.choices[layer]]);
    return found;
}

NoLayout MeshSearch::whyNone(double budgetBytes, const Filter& filter) const
{
    double least = 0.0;
    for (std::size_t layer = 0; layer < m_layers.size(); ++layer) {
        double ofLayer = kInfinite;
        for (const LayerChoice& choice : m_layers[layer]) {
            if (filter(layer, choice.strategy))
                ofLayer = std::min(ofLayer, choice.bytes);
        }
        least += ofLayer;
        if (ofLayer < kInfinite)
            continue;
        for (const Split data : kSplits) {
            for (const Split model : kSplits) {
                NoLayout none;
                if (filter(layer, {data, model}) && !choiceOf(layer, {data, model}, &none.why) && !none.why.empty())
                    return none;
            }
        }
        return {};
    }
    return least > budgetBytes ? NoLayout{fmt::format("needs {} of {}", formatBytes(least), formatBytes(capacityBytes())), true}
                               : NoLayout{"none was found in the time", true};
}

std::array<double, MlpPartCount> MeshSearch::parts(const Found& found) const
{
    std::array<double, MlpPartCount> sums{};
    for (std::size_t layer = 0; layer < m_layers.size(); ++layer) {
        const LayerChoice& choice = m_layers[layer][found.picks[layer]];
        for (std::size_t part = 0; part < MlpPartCount; ++part)
            sums[part] += choice.seconds[part];
        if (layer + 1 < m_layers.size())
            sums[Reshards] += reshardSeconds(layer, choice.strategy, m_layers[layer + 1][found.picks[layer + 1]].strategy);
    }
    return sums;
}

std::vector<std::size_t> MeshSearch::slowest(const Found& found) const
{
    std::vector<double> seconds;
    for (std::size_t layer = 0; layer < m_layers.size(); ++layer) {
        const LayerChoice& choice = m_layers[layer][found.picks[layer]];
        seconds.push_back(std::accumulate(choice.seconds.begin(), choice.seconds.end(), 0.0));
    }
    std::vector<std::size_t> layers(m_layers.size());
    std::iota(layers.begin(), layers.end(), std::size_t{0});
    std::ranges::stable_sort(layers, std::greater{}, [&](std::size_t layer) { return seconds[layer]; });
    layers.resize(std::min(layers.size(), kOthers));
    std::ranges::sort(layers);
    return layers;
}

std::vector<MeshAxis> MeshSearch::mesh() const
{
    std::vector<MeshAxis> axes;
    if (m_sizes[0] > 1 || m_sizes[1] == 1)
        axes.push_back({"data", m_sizes[0]});
    if (m_sizes[1] > 1)
        axes.push_back({"model", m_sizes[1]});
    return axes;
}

std::size_t MeshSearch::strategies() const
{
    std::size_t count = 0;
    for (const auto& layer : m_layers)
        count += layer.size();
    return count;
}

FoundPlan MeshSearch::plan(const Found& found, const SearchMachine& machine) const
{
    FoundPlan plan;
    plan.hardware = machine.name;
    plan.chips = machine.chips;
    plan.mesh = mesh();
    plan.modelSeconds = found.assignment.seconds;
    if (machine.dollarsPerChipHour)
        plan.dollarsPerStep = dollarsOf(plan.modelSeconds, machine.chips, *machine.dollarsPerChipHour);
    plan.peakBytes = found.assignment.bytes;
    plan.capacityBytes = capacityBytes();
    plan.fits = plan.peakBytes <= kUsableShare * plan.capacityBytes;
    std::vector<std::string> rows;
    const Strategy& first = m_layers.front()[found.picks.front()].strategy;
    std::vector<std::string> inputs;
    for (const std::size_t axis : {0U, 1U}) {
        if (splitBefore(first[axis]) == ActivationSplit::Rows)
            rows.emplace_back(axis == 0 ? "data" : "model");
        if (splitBefore(first[axis]) == ActivationSplit::Columns)
            inputs.emplace_back(axis == 0 ? "data" : "model");
    }
    plan.specs.emplace_back("x", fmt::format("P({}, {})", entryText(rows), entryText(inputs)));
    plan.specs.emplace_back("y", fmt::format("P({}, None)", entryText(rows)));
    for (std::size_t layer = 0; layer < m_layers.size(); ++layer) {
        const LayerChoice& choice = m_layers[layer][found.picks[layer]];
        plan.specs.emplace_back(fmt::format("layers.{}.w", layer), choice.weightSpec);
        if (m_work.model.bias)
            plan.specs.emplace_back(fmt::format("layers.{}.b", layer), choice.biasSpec);
    }
    const auto sums = parts(found);
    for (std::size_t part = 0; part < MlpPartCount; ++part)
        plan.time.push_back({kMlpPartNames[part], sums[part]});
    plan.boundBy = largestShare(plan.time);
    double flops = 0.0;
    for (std::size_t layer = 0; layer < m_layers.size(); ++layer)
        flops += (layer == 0 ? 4.0 : 6.0) * static_cast<double>(m_work.batch) * static_cast<double>(m_work.model.layers[layer])
            * static_cast<double>(m_work.model.layers[layer + 1]);
    plan.mfu = flops / (plan.modelSeconds * static_cast<double>(machine.cluster.devices) * m_curve.peak(m_work.format));
    return plan;
}

struct MlpTemplate {
    const char* name;
    bool (*allows)(std::size_t layer, const Strategy&, std::int64_t data, std::int64_t model);
};
constexpr MlpTemplate kMlpTemplates[] = {
    {"data parallel",
        [](std::size_t, const Strategy& s, std::int64_t, std::int64_t model) { return model == 1 && s[0] == Split::Batch; }},
    {"FSDP (ZeRO-3)",
        [](std::size_t, const Strategy& s, std::int64_t, std::int64_t model) { return model == 1 && s[0] == Split::Gathered; }},
    {"tensor parallel pairs (Megatron)",
        [](std::size_t layer, const Strategy& s, std::int64_t data, std::int64_t) {
            return data == 1 && s[1] == (layer % 2 == 0 ? Split::Output : Split::Contracting);
        }},
    {"data x tensor parallel pairs",
        [](std::size_t layer, const Strategy& s, std::int64_t data, std::int64_t model) {
            return data > 1 && model > 1 && s[0] == Split::Batch && s[1] == (layer % 2 == 0 ? Split::Output : Split::Contracting);
        }},
    {"FSDP x tensor parallel pairs (2-D)",
        [](std::size_t layer, const Strategy& s, std::int64_t data, std::int64_t model) {
            return data > 1 && model > 1 && s[0] == Split::Gathered
                && s[1] == (layer % 2 == 0 ? Split::Output : Split::Contracting);
        }},
};

struct MeshFound {
    const MeshSearch* search;
    MeshSearch::Found found;

    FoundPlan plan(const SearchMachine& machine) const { return search->plan(found, machine); }
};

/// The plans that are told of, and how they compare: by what is simulated where there is a test.
class MlpAnswers {
public:
    MlpAnswers(const MlpWork& work, const SearchMachine& machine, const SearchOptions& options, const PlanTest& test,
        SearchResult& result)
        : m_machine(machine)
        , m_options(options)
        , m_result(result)
        , m_looked(test, testsOf(kOpsOfLayer * work.model.layers.size()), options.stop)
    {
    }

    /// `found`: the best of each mesh, the quickest first by the estimate; at least one.
    void add(const std::vector<std::unique_ptr<MeshSearch>>& meshes, const std::vector<MeshFound>& found)
    {
        addPlans(found);
        if (m_looked.empty()) { // no time was left
            m_looked = LookedPlans<MeshFound>({}, 0, {});
            addPlans(found);
        } else {
            addTemplates(meshes);
            addOthers();
            addMoreMemory();
        }
        m_looked.report(m_result, m_options.top);
    }

private:
    static constexpr std::size_t kOpsOfLayer = 20; ///< about, forward and backward
    static constexpr std::size_t kTemplateMeshes = 3; ///< the quickest by the estimate

    using Looked = LookedPlans<MeshFound>::Looked;

    void addPlans(const std::vector<MeshFound>& found)
    {
        std::size_t looked = 0;
        for (const MeshFound& one : found) {
            const std::vector<MeshAxis> axes = one.search->mesh();
            if (axes.size() == 1 && axes.front().name == "model")
                continue; // the mesh of one axis by its other name: templates use it
            const bool isAsked = looked < (m_looked.simulates() ? std::min(m_options.top, kTestedMeshes) : m_options.top);
            if (isAsked && m_looked.look(one, one.plan(m_machine)) != nullptr)
                ++looked;
            else
                m_result.notSimulated.push_back(fmt::format("{}: {}", meshText(axes),
                    m_options.stop.stop_requested() ? std::string("no time was left")
                        : isAsked                   ? std::string("it cannot be simulated")
                                                    : fmt::format("the first {} are simulated", looked)));
        }
        if (!m_looked.simulates())
            m_result.notSimulated.clear();
    }

    void addTemplates(const std::vector<std::unique_ptr<MeshSearch>>& meshes)
    {
        const std::int64_t devices = m_machine.cluster.devices;
        std::vector<std::pair<const char*, const Looked*>> best;
        std::vector<std::string> whyNone;
        for (const MlpTemplate& named : kMlpTemplates) {
            std::vector<MeshFound> found;
            std::vector<NoLayout> none;
            for (const auto& mesh : meshes) {
                const auto axes = mesh->mesh();
                const std::int64_t model = axes.back().name == "model" ? axes.back().size : 1;
                const MeshSearch::Filter allows = [&](std::size_t layer, const Strategy& strategy) {
                    return named.allows(layer, strategy, devices / model, model);
                };
                const double budget = kUsableShare * mesh->capacityBytes();
                if (auto one = mesh->best(budget, allows))
                    found.push_back({mesh.get(), *std::move(one)});
                else
                    none.push_back(mesh->whyNone(budget, allows));
            }
            std::ranges::stable_sort(found, {}, [](const MeshFound& one) { return one.found.assignment.seconds; });
            found.resize(std::min(found.size(), m_looked.simulates() ? kTemplateMeshes : 1));
            const Looked* quickestOfKind = nullptr;
            for (const MeshFound& one : found) {
                const Looked* looked = m_looked.look(one, one.plan(m_machine));
                if (looked != nullptr
                    && (quickestOfKind == nullptr
                        || std::pair(!looked->plan.fits, looked->plan.seconds())
                            < std::pair(!quickestOfKind->plan.fits, quickestOfKind->plan.seconds())))
                    quickestOfKind = looked;
            }
            best.emplace_back(named.name, quickestOfKind);
            whyNone.push_back(found.empty() ? whyNoneOf(none, devices) : "not simulated");
        }
        m_templates = std::move(best);
        m_whyNone = std::move(whyNone);
    }

    /// The next best strategy of the layers that take most, all others free again. One that turns out quicker takes the place of the best, and its own next
    /// best are asked for.
    void addOthers()
    {
        constexpr int kMostFirsts = 8;
        for (int times = 0; times < kMostFirsts; ++times) {
            const Looked& chosen = m_looked.quickest();
            const auto& [search, taken] = chosen.layout;
            m_result.others.clear();
            for (const std::size_t layer : search->slowest(taken)) {
                if (m_options.stop.stop_requested())
                    break;
                const LayerChoice& choice = search->layers()[layer][taken.picks[layer]];
                const auto other = search->best(kUsableShare * search->capacityBytes(),
                    [&](std::size_t at, const Strategy& strategy) { return at != layer || strategy != choice.strategy; });
                const Looked* looked = other ? m_looked.look({search, *other}, search->plan(*other, m_machine)) : nullptr;
                if (looked == nullptr || !looked->plan.fits)
                    continue;
                const LayerChoice& instead = search->layers()[layer][other->picks[layer]];
                m_result.others.push_back(otherChoice(fmt::format("layers.{}.w {}", layer, choice.weightSpec),
                    instead.weightSpec == choice.weightSpec ? instead.weightSpec + ", sharded differently" : instead.weightSpec,
                    looked->plan, chosen.plan));
            }
            if (&m_looked.quickest() == &chosen || m_options.stop.stop_requested())
                break;
        }
        std::erase_if(m_result.others, [](const OtherChoice& other) { return other.loss < 0.0; });
        for (std::size_t i = 0; i < m_templates.size(); ++i)
            m_result.templates.push_back(
                scoreOf(m_templates[i].first, m_templates[i].second != nullptr ? &m_templates[i].second->plan : nullptr,
                    m_looked.quickest().plan, m_whyNone[i]));
    }

    void addMoreMemory()
    {
        const Looked& chosen = m_looked.quickest();
        const MeshSearch& search = *chosen.layout.search;
        const double budget = kUsableShare * search.capacityBytes();
        const auto more = m_options.stop.stop_requested() ? std::nullopt : search.best(kMoreMemory * budget);
        if (!more)
            return;
        FoundPlan plan = search.plan(*more, m_machine);
        if (m_looked.take(plan))
            setMoreMemory(m_result, chosen.plan, plan, (kMoreMemory - 1.0) * budget);
    }

    const SearchMachine& m_machine;
    const SearchOptions& m_options;
    SearchResult& m_result;
    LookedPlans<MeshFound> m_looked;
    std::vector<std::pair<const char*, const Looked*>> m_templates; ///< each at its best; null: none
    std::vector<std::string> m_whyNone; ///< of each template
};

} // namespace

SearchResult searchMlp(const MlpWork& work, const SearchMachine& machine, const SearchOptions& options, const PlanTest& test)
{
    const auto start = std::chrono::steady_clock::now();
    SearchResult result;
    result.about = fmt::format("{}, batch {}", work.name, work.batch);
    result.space = {{{"mesh", "data x model, all sizes whose product is the devices"},
                        {"layouts", "each layer's weight and activation over data, model or none, as far as they divide"}},
        {"three axes and more", "pipelines, microbatches and recomputation"}};
    if (!machine.dollarsPerChipHour)
        result.assumptions.emplace_back(kNoPrice);
    const std::int64_t devices = machine.cluster.devices;
    std::vector<std::unique_ptr<MeshSearch>> meshes;
    std::vector<MeshFound> found;
    double bound = kInfinite;
    for (std::int64_t model = 1; model <= devices; ++model) {
        if (devices % model != 0)
            continue;
        if (options.stop.stop_requested()) {
            result.complete = false;
            bound = 0.0;
            break;
        }
        meshes.push_back(std::make_unique<MeshSearch>(work, machine, devices / model, model, options.stop));
        const MeshSearch& mesh = *meshes.back();
        result.candidates += static_cast<std::int64_t>(mesh.strategies());
        if (auto best = mesh.best(kUsableShare * mesh.capacityBytes())) {
            bound = std::min(bound, best->lowerBoundSeconds);
            if (found.empty())
                result.firstPlanSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            found.push_back({&mesh, *std::move(best)});
        } else if (options.stop.stop_requested()) {
            result.complete = false;
            bound = 0.0;
            break;
        }
    }
    if (found.empty() && !result.complete)
        return result;
    std::stable_sort(found.begin(), found.end(),
        [](const MeshFound& a, const MeshFound& b) { return a.found.assignment.seconds < b.found.assignment.seconds; });
    if (found.empty()) {
        // The least that any mesh needs.
        for (const auto& mesh : meshes) {
            if (const auto best = mesh->best(kInfinite);
                best && (result.plans.empty() || best->assignment.bytes < result.plans.front().peakBytes))
                result.plans = {mesh->plan(*best, machine)};
        }
        for (FoundPlan& plan : result.plans)
            setShares(plan, 0.0);
        result.changes.push_back("more chips, a smaller batch, or chips with more memory");
        return result;
    }
    const double best = found.front().found.assignment.seconds;
    result.lowerBoundSeconds = std::min(bound, best);
    result.gap = (best - result.lowerBoundSeconds) / best;
    MlpAnswers(work, machine, options, test, result).add(meshes, found);
    result.wallSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
}

} // namespace meshwright::sim
