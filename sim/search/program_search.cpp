// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/program_search.h"

#include "core/program/transform.h"
#include "core/support/parallel_for.h"
#include "core/support/text.h"
#include "sim/collective/network_cost.h"
#include "sim/search/op_graph.h"
#include "sim/search/plan_reasons.h"
#include "sim/search/plan_trials.h"
#include "sim/search/search_limits.h"
#include "sim/search/search_stop.h"
#include "sim/search/tested_plans.h"
#include "sim/search/wide_elimination.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>

namespace meshwright::sim {

namespace {

using Clock = std::chrono::steady_clock;
using Choices = std::vector<std::uint32_t>;

constexpr std::size_t kFrontPoints = 12;
constexpr std::size_t kLabels = 16;
constexpr std::size_t kEntries = 256; ///< of a table with labels

/// What is allowed of each variable; all of it where a list is empty.
using Allowed = std::function<bool(std::size_t variable, std::size_t choice)>;

/// One mesh, and the best that was found on it.
class MeshPlans {
public:
    /// Throws SearchStopped.
    MeshPlans(const Function& function, Mesh mesh, MeshPlacement placement, const DeviceCost& device, MatmulPrecision unstated,
        const std::stop_token& stop)
        : m_mesh(std::move(mesh))
        , m_placement(std::move(placement))
        , m_network(m_placement)
        , m_graph(function, m_mesh, device, m_network, unstated, stop)
    {
    }

    /// The front within the budget, the quickest first; empty when nothing fits.
    EliminationResult solve(double budgetBytes, const std::stop_token& stop, const Allowed& allowed = {}) const
    {
        std::vector<std::vector<std::uint32_t>> kept;
        const ChoiceGraph some = allowed ? restricted(allowed, kept) : ChoiceGraph{};
        const ChoiceGraph& graph = allowed ? some : m_graph.graph();
        if (std::any_of(graph.variables.begin(), graph.variables.end(), [](const auto& choices) { return choices.empty(); }))
            return {{}, kInfinite, true, false};
        EliminationLimits limits;
        limits.budgetBytes = budgetBytes;
        limits.labels = kLabels;
        limits.entries = kEntries;
        limits.stop = stop;
        EliminationResult result = m_wide ? EliminationResult{{}, 0.0, false, true} : eliminate(graph, limits);
        if (result.tooWide) {
            m_wide = true;
            WideLimits wide;
            wide.budgetBytes = budgetBytes;
            wide.morePoints = allowed ? 0 : 3;
            wide.stop = stop;
            result = eliminateWide(graph, wide);
        }
        if (allowed) {
            for (Assignment& found : result.front) {
                for (std::size_t variable = 0; variable < kept.size(); ++variable)
                    found.choices[variable] = kept[variable][found.choices[variable]];
            }
        }
        return result;
    }

    /// The assignment that needs the least memory.
    Assignment smallest() const
    {
        ChoiceGraph bytes = m_graph.graph();
        for (auto& choices : bytes.variables) {
            for (ChoiceCost& cost : choices)
                cost = {cost.bytes, 0.0};
        }
        bytes.edges.clear(); // every variable stands alone
        return costOf(m_graph.graph(), eliminate(bytes).front.front().choices);
    }

    /// Why nothing that is allowed is within the budget.
    NoLayout whyNone(double budgetBytes, const Allowed& allowed) const
    {
        double least = 0.0;
        for (std::size_t variable = 0; variable < m_graph.variables().size(); ++variable) {
            const auto& costs = m_graph.graph().variables[variable];
            double ofVariable = kInfinite;
            for (std::size_t choice = 0; choice < costs.size(); ++choice) {
                if (allowed(variable, choice))
                    ofVariable = std::min(ofVariable, costs[choice].bytes);
            }
            if (ofVariable == kInfinite)
                return {fmt::format("{} has no such layout", m_graph.variables()[variable].name)};
            least += ofVariable;
        }
        return least > budgetBytes
            ? NoLayout{fmt::format("needs {} of {}", formatBytes(least), formatBytes(budgetBytes / kUsableShare)), true}
            : NoLayout{"none was found in the time", true};
    }

    const OpGraph& graph() const { return m_graph; }
    const Mesh& mesh() const { return m_mesh; }
    const MeshPlacement& placement() const { return m_placement; }
    bool wide() const { return m_wide; }

    EliminationResult best; ///< within the machine's memory
    bool solved = false;

private:
    ChoiceGraph restricted(const Allowed& allowed, std::vector<std::vector<std::uint32_t>>& kept) const
    {
        const ChoiceGraph& all = m_graph.graph();
        ChoiceGraph some;
        for (std::size_t variable = 0; variable < all.variables.size(); ++variable) {
            auto& own = kept.emplace_back();
            auto& costs = some.variables.emplace_back();
            for (std::uint32_t choice = 0; choice < all.variables[variable].size(); ++choice) {
                if (!allowed(variable, choice))
                    continue;
                own.push_back(choice);
                costs.push_back(all.variables[variable][choice]);
            }
        }
        for (const auto& edge : all.edges) {
            ChoiceGraph::Edge less{edge.from, edge.to, {}};
            for (const std::uint32_t from : kept[edge.from]) {
                for (const std::uint32_t to : kept[edge.to])
                    less.seconds.push_back(edge.seconds[from * all.variables[edge.to].size() + to]);
            }
            some.edges.push_back(std::move(less));
        }
        return some;
    }

    Mesh m_mesh;
    MeshPlacement m_placement;
    NetworkCost m_network;
    OpGraph m_graph;
    mutable bool m_wide = false;
};

/// A kind of layout that people know.
struct ProgramTemplate {
    const char* name;
    bool oneAxis; ///< only of meshes with one axis
    bool (*allows)(const OpGraph::Variable& variable, std::size_t choice);
};
constexpr ProgramTemplate kProgramTemplates[] = {
    {"every array whole on every device", false, [](const OpGraph::Variable& v, std::size_t c) { return !v.splits[c]; }},
    {"arguments whole, only what is computed split", false,
        [](const OpGraph::Variable& v, std::size_t c) { return !v.isArgument || !v.splits[c]; }},
    {"no partial sums", false, [](const OpGraph::Variable& v, std::size_t c) { return !v.partial[c]; }},
    {"one mesh axis", true, [](const OpGraph::Variable&, std::size_t) { return true; }},
};

class ProgramSearch {
public:
    ProgramSearch(const ProgramWork& work, Function function, const Machine& machine, const DeviceCost& device,
        const SearchOptions& options, const PlanTest& test)
        : m_work(work)
        , m_function(std::move(function))
        , m_machine(machine)
        , m_device(device)
        , m_options(options)
        , m_budget(kUsableShare * static_cast<double>(machine.hbmBytesPerDevice))
        , m_looked(test, testsOf(opsOf(m_function)), options.stop)
    {
    }

    SearchResult run();

private:
    /// A layout of the program.
    struct Point {
        const MeshPlans* plans;
        Assignment found;
    };
    using Looked = LookedPlans<Point>::Looked;

    /// A kind of layout at its best; null: none that is known.
    struct Kind {
        const ProgramTemplate* named;
        const Looked* found;
        std::string whyNone;
    };

    static std::size_t opsOf(const Function& function)
    {
        std::size_t ops = 0;
        forEachOp(function, [&](OpId) { ++ops; });
        return ops;
    }
    bool stopped() const { return m_options.stop.stop_requested(); }
    double elapsed() const { return std::chrono::duration<double>(Clock::now() - m_start).count(); }
    void placeMeshes();
    void solveMeshes();
    FoundPlan planOf(const MeshPlans& plans, const Assignment& found) const;
    const Looked* look(const MeshPlans& plans, const Assignment& found)
    {
        return m_looked.look({&plans, found}, planOf(plans, found));
    }
    void addPlans();
    void addFront();
    void addTemplates();
    void setTemplates();
    void addOthers();
    void addMemoryPrice();
    void reportSmallest();

    const ProgramWork& m_work;
    const Function m_function;
    const Machine& m_machine;
    const DeviceCost& m_device;
    const SearchOptions& m_options;
    const double m_budget;
    const Clock::time_point m_start = Clock::now();
    std::vector<Mesh> m_meshes;
    std::vector<MeshPlacement> m_placements;
    std::vector<std::unique_ptr<MeshPlans>> m_plans; ///< of each mesh; null: not looked at
    std::vector<const MeshPlans*> m_ranked; ///< those that fit, the quickest first
    LookedPlans<Point> m_looked;
    std::vector<Kind> m_kinds;
    SearchResult m_result;
};

void ProgramSearch::placeMeshes()
{
    static constexpr std::array<const char*, 3> kNames{"x", "y", "z"};
    const auto add = [&](std::vector<MeshAxis> axes) {
        auto mesh = Mesh::create(std::move(axes));
        if (!mesh)
            return;
        if (auto placement = placeMesh(*mesh, m_machine)) {
            m_meshes.push_back(*std::move(mesh));
            m_placements.push_back(*std::move(placement));
        }
    };
    if (!m_options.mesh.empty())
        return add(m_options.mesh);
    for (const auto& sizes : orderedFactors(m_machine.deviceCount(), opsOf(m_function) <= kOpsOnThreeAxes ? 3 : 2)) {
        std::vector<MeshAxis> axes;
        for (std::size_t i = 0; i < sizes.size(); ++i)
            axes.push_back({kNames[i], sizes[i]});
        add(std::move(axes));
    }
}

void ProgramSearch::solveMeshes()
{
    std::mutex mutex;
    std::size_t looked = 0;
    double best = 0.0;
    m_plans.resize(m_meshes.size());
    const auto solve = [&](unsigned, std::size_t i) {
        std::unique_ptr<MeshPlans> plans;
        try {
            plans = std::make_unique<MeshPlans>(
                m_function, m_meshes[i], m_placements[i], m_device, m_work.cost.unstated, m_options.stop);
        } catch (const SearchStopped&) {
            return;
        }
        plans->best = plans->solve(m_budget, m_options.stop);
        const std::lock_guard lock(mutex);
        const auto& front = plans->best.front;
        if (!front.empty()) {
            if (m_result.firstPlanSeconds == 0.0)
                m_result.firstPlanSeconds = elapsed();
            best = best == 0.0 ? front.front().seconds : std::min(best, front.front().seconds);
        }
        m_plans[i] = std::move(plans);
        ++looked;
        if (m_options.progress)
            m_options.progress({static_cast<std::int64_t>(looked), static_cast<std::int64_t>(m_meshes.size()), best, 0.0});
    };
    parallelFor(m_meshes.size(), workerCount(m_options.threads), m_options.stop, solve, 1);
}

FoundPlan ProgramSearch::planOf(const MeshPlans& plans, const Assignment& found) const
{
    FoundPlan plan;
    plan.hardware = m_machine.text();
    plan.chips = m_machine.deviceCount() / std::max<std::int64_t>(1, m_machine.chip.devicesPerChip);
    plan.mesh = plans.mesh().axes();
    const auto& arguments = m_function.arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& name = m_function[arguments[i]].name;
        plan.specs.emplace_back(
            name.empty() ? fmt::format("%arg{}", i) : name, plans.graph().specOf(arguments[i], found.choices));
    }
    plan.modelSeconds = found.seconds;
    if (m_machine.chip.dollarsPerHour)
        plan.dollarsPerStep = dollarsOf(plan.modelSeconds, plan.chips, m_machine.chip.dollarsPerHour->value);
    plan.peakBytes = found.bytes;
    plan.capacityBytes = static_cast<double>(m_machine.hbmBytesPerDevice);
    plan.fits = found.bytes <= m_budget;
    const OpParts parts = plans.graph().partsOf(found.choices);
    for (std::size_t part = 0; part < kOpPartCount; ++part)
        plan.time.push_back({opPartName(static_cast<OpPart>(part)), parts[part]});
    plan.memory.push_back({"alive at the fullest moment", found.bytes});
    plan.boundBy = largestShare(plan.time);
    plan.why.push_back(fmt::format("on the machine {}", plans.placement().text()));
    auto program = std::make_shared<Program>(m_work.program);
    program->meshes = {{"mesh", plans.mesh()}};
    program->functions = {plans.graph().annotated(found.choices)};
    plan.program = std::move(program);
    return plan;
}

/// The best of each mesh.
void ProgramSearch::addPlans()
{
    std::size_t looked = 0;
    for (const MeshPlans* plans : m_ranked) {
        const std::size_t most = m_looked.simulates() ? std::min(m_options.top, kTestedMeshes) : m_options.top;
        if (looked < most && look(*plans, plans->best.front.front()) != nullptr)
            ++looked;
    }
}

/// Plans of all meshes that no other beats in both time and memory. The estimate chooses them; those that are simulated are compared by their simulations.
void ProgramSearch::addFront()
{
    std::vector<std::pair<const MeshPlans*, const Assignment*>> points;
    for (const MeshPlans* plans : m_ranked) {
        for (const Assignment& found : plans->best.front)
            points.emplace_back(plans, &found);
    }
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
        return a.second->seconds != b.second->seconds ? a.second->seconds < b.second->seconds : a.second->bytes < b.second->bytes;
    });
    double last = kInfinite;
    std::size_t count = 0;
    for (const auto& [plans, found] : points) {
        if (found->bytes > (1.0 - kFrontStep) * last || count == kFrontPoints)
            continue;
        last = found->bytes;
        ++count;
        look(*plans, *found);
    }
}

void ProgramSearch::addTemplates()
{
    for (const ProgramTemplate& named : kProgramTemplates) {
        std::vector<NoLayout> none;
        std::optional<std::pair<const MeshPlans*, Assignment>> best; // by the estimate
        for (const MeshPlans* plans : m_ranked) {
            if (stopped())
                return;
            if (named.oneAxis && plans->mesh().axes().size() > 1)
                continue;
            if (plans->wide() && plans != m_ranked.front())
                continue; // too slow to try everywhere
            const auto& variables = plans->graph().variables();
            const Allowed allowed
                = [&](std::size_t variable, std::size_t choice) { return named.allows(variables[variable], choice); };
            const EliminationResult found = plans->solve(m_budget, m_options.stop, allowed);
            if (found.front.empty())
                none.push_back(plans->whyNone(m_budget, allowed));
            else if (!best || found.front.front().seconds < best->second.seconds)
                best.emplace(plans, found.front.front());
        }
        const Looked* looked = best ? look(*best->first, best->second) : nullptr;
        m_kinds.push_back({&named, looked, best ? std::string("not simulated") : whyNoneOf(none, m_machine.deviceCount())});
    }
}

/// Against the best of all that was looked at.
void ProgramSearch::setTemplates()
{
    for (const Kind& kind : m_kinds)
        m_result.templates.push_back(scoreOf(
            kind.named->name, kind.found != nullptr ? &kind.found->plan : nullptr, m_looked.quickest().plan, kind.whyNone));
}

/// The next best strategy of the ops that take most, all others free again. One that turns out quicker takes the place of the best, and its own next best
/// are asked for.
void ProgramSearch::addOthers()
{
    constexpr int kMostFirsts = 4;
    for (int times = 0; times < kMostFirsts; ++times) {
        const Looked& chosen = m_looked.quickest();
        m_result.others.clear();
        const MeshPlans& plans = *chosen.layout.plans;
        const Choices& choices = chosen.layout.found.choices;
        const ChoiceGraph& graph = plans.graph().graph();
        std::vector<double> weight(graph.variables.size());
        for (std::size_t variable = 0; variable < weight.size(); ++variable)
            weight[variable] = graph.variables[variable][choices[variable]].seconds
                + 1e-30 * graph.variables[variable][choices[variable]].bytes;
        for (const auto& edge : graph.edges) {
            const double seconds = edge.seconds[choices[edge.from] * graph.variables[edge.to].size() + choices[edge.to]];
            weight[edge.from] += seconds;
            weight[edge.to] += seconds;
        }
        std::vector<std::size_t> order;
        for (std::size_t variable = 0; variable < weight.size(); ++variable) {
            if (graph.variables[variable].size() > 1)
                order.push_back(variable);
        }
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return weight[a] > weight[b]; });
        order.resize(std::min(order.size(), plans.wide() ? kOthers / 4 : kOthers));
        for (const std::size_t variable : order) {
            if (stopped())
                break;
            const auto& texts = plans.graph().variables()[variable].texts;
            const std::string& taken = texts[choices[variable]];
            const EliminationResult found = plans.solve(m_budget, m_options.stop,
                [&](std::size_t at, std::size_t choice) { return at != variable || texts[choice] != taken; });
            const Looked* looked = found.front.empty() ? nullptr : look(plans, found.front.front());
            if (looked != nullptr && looked->plan.fits)
                m_result.others.push_back(otherChoice(fmt::format("{}: {}", plans.graph().variables()[variable].name, taken),
                    texts[looked->layout.found.choices[variable]], looked->plan, chosen.plan));
        }
        if (&m_looked.quickest() == &chosen || stopped())
            break;
    }
    std::erase_if(m_result.others, [](const OtherChoice& other) { return other.loss < 0.0; });
}

void ProgramSearch::addMemoryPrice()
{
    const Looked& best = m_looked.quickest();
    const MeshPlans& plans = *best.layout.plans;
    const EliminationResult more = plans.solve(kMoreMemory * m_budget, m_options.stop);
    if (more.front.empty())
        return;
    FoundPlan plan = planOf(plans, more.front.front());
    if (m_looked.take(plan))
        setMoreMemory(m_result, best.plan, plan, (kMoreMemory - 1.0) * m_budget);
}

/// Nothing fits: the least that any mesh needs.
void ProgramSearch::reportSmallest()
{
    const MeshPlans* plans = nullptr;
    std::optional<Assignment> least;
    for (const auto& one : m_plans) {
        if (one == nullptr)
            continue;
        Assignment found = one->smallest();
        if (!least || found.bytes < least->bytes) {
            plans = one.get();
            least = std::move(found);
        }
    }
    if (!least)
        return;
    FoundPlan plan = planOf(*plans, *least);
    setShares(plan, 0.0);
    m_result.plans.push_back(std::move(plan));
    const double wanted = least->bytes / kUsableShare;
    m_result.changes.push_back(fmt::format("devices with {} of memory each", formatBytes(wanted)));
    m_result.changes.push_back(fmt::format("{:.0f} times as many devices, if all arrays divide by so many",
        std::exp2(std::ceil(std::log2(wanted / static_cast<double>(m_machine.hbmBytesPerDevice))))));
}

SearchResult ProgramSearch::run()
{
    m_result.about = fmt::format("{}, function {}", m_work.name.empty() ? "the program" : m_work.name, m_function.name);
    m_result.space
        = {{{"mesh",
                m_options.mesh.empty() ? "all orders of two axes whose product is the devices; of small programs three"
                                       : meshText(m_options.mesh)},
               {"layouts", "each op's dimensions over each axis, as far as they divide; one layout for each use of a value"}},
            {"pipelines, microbatches and recomputation: the program says them", "uneven shards",
                "one dimension over parts of an axis"}};
    if (!m_looked.simulates())
        m_result.assumptions = {"nothing is hidden behind anything else: the simulator's step may be shorter"};
    if (!m_machine.chip.dollarsPerHour)
        m_result.assumptions.emplace_back(kNoPrice);
    placeMeshes();
    solveMeshes();
    double bound = kInfinite;
    for (const auto& plans : m_plans) {
        if (plans == nullptr) {
            m_result.complete = false;
            bound = 0.0;
            continue;
        }
        for (const auto& choices : plans->graph().graph().variables)
            m_result.candidates += static_cast<std::int64_t>(choices.size());
        bound = std::min(bound, plans->best.lowerBoundSeconds);
        m_result.complete = m_result.complete && !(plans->best.front.empty() && stopped());
        if (!plans->best.front.empty())
            m_ranked.push_back(plans.get());
    }
    std::stable_sort(m_ranked.begin(), m_ranked.end(),
        [](const MeshPlans* a, const MeshPlans* b) { return a->best.front.front().seconds < b->best.front.front().seconds; });
    if (m_ranked.empty()) {
        reportSmallest();
    } else {
        const Assignment& best = m_ranked.front()->best.front.front();
        m_result.lowerBoundSeconds = std::min(bound, best.seconds);
        m_result.gap = best.seconds > 0.0 ? (best.seconds - m_result.lowerBoundSeconds) / best.seconds : 0.0;
        addPlans();
        if (m_looked.empty()) { // no time was left, or none can be simulated
            m_looked = LookedPlans<Point>({}, 0, {});
            addPlans();
        }
        addFront();
        addTemplates();
        addOthers();
        setTemplates();
        addMemoryPrice();
        m_result.front = frontOf(m_looked.report(m_result, m_options.top), kInfinite);
        m_result.front.resize(std::min(m_result.front.size(), kFrontPoints));
    }
    m_result.wallSeconds = elapsed();
    return std::move(m_result);
}

void addFactors(
    std::int64_t number, std::size_t most, std::vector<std::int64_t>& now, std::vector<std::vector<std::int64_t>>& all)
{
    if (now.size() < most) {
        now.push_back(number);
        all.push_back(now);
        now.pop_back();
    }
    if (now.size() + 1 >= most)
        return;
    for (std::int64_t factor = 2; factor <= number / 2; ++factor) {
        if (number % factor != 0)
            continue;
        now.push_back(factor);
        addFactors(number / factor, most, now, all);
        now.pop_back();
    }
}

} // namespace

std::vector<std::vector<std::int64_t>> orderedFactors(std::int64_t number, std::size_t most)
{
    std::vector<std::vector<std::int64_t>> all;
    std::vector<std::int64_t> now;
    addFactors(number, most, now, all);
    return all;
}

Result<Done> checkSearchable(const ProgramWork& work, const Machine& machine)
{
    if (const auto free = withoutLayouts(*work.program.find(work.function)); !free)
        return free.error();
    if (const auto device = DeviceCost::create(machine, work.cost); !device)
        return device.error();
    return Done{};
}

Result<SearchResult> searchProgram(
    const ProgramWork& work, const Machine& machine, const SearchOptions& options, const PlanTest& test)
{
    const Function* function = work.program.find(work.function);
    assert(function != nullptr);
    auto free = withoutLayouts(*function);
    if (!free)
        return free.error();
    const auto device = DeviceCost::create(machine, work.cost);
    if (!device)
        return device.error();
    ProgramSearch search(work, *std::move(free), machine, *device, options, test);
    return search.run();
}

} // namespace meshwright::sim
