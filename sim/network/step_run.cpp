// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/step_run.h"

#include "sim/network/messages.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <deque>
#include <unordered_map>
#include <utility>

namespace meshwright::sim {

namespace {

/// The ops of a loop on classes, as a graph: what ends an op, and what it lets start.
struct LoopGraph {
    std::uint32_t firstNode = 0; ///< of all loops together
    std::uint32_t nodeCount = 0;
    std::int64_t repeat = 1;
    std::vector<Ticks> ticks; ///< computing nodes
    std::vector<std::uint32_t> group; ///< into FoldedStep::groups; kNothing: it computes
    std::vector<std::uint32_t> deviceClass; ///< computing nodes
    std::vector<std::uint32_t> together; ///< computing nodes: into `begins`, or kNothing; empty: none
    std::vector<Ticks> begins; ///< of what is to begin together; none yet: below 0
    std::vector<std::uint32_t> waits; ///< for nodes of the same iteration
    std::vector<std::uint32_t> waitsBack; ///< of the iteration before
    std::vector<std::uint32_t> waitsLoop; ///< of the loop before
    std::vector<std::uint32_t> firstNext;
    std::vector<std::pair<std::uint32_t, StepLag>> next; ///< nodes of this loop, or for StepLag::Loop of the next
};

/// One iteration that has begun and not ended.
struct Block {
    std::vector<std::uint32_t> waits; ///< still, for each node
    std::uint32_t left = 0; ///< nodes not yet over
    std::vector<Ticks> begins; ///< of each node; only where something is recorded
};

/// The collectives of an unfolded step as messages, with the face of a FluidEngine. What takes no link ends by an event of the step's own.
class StepMessages {
public:
    static constexpr std::uint32_t kBit = MessageEngine::kBit;

    StepMessages(const StepWork& work, const FoldedStep& folded, EventQueue& queue)
        : m_work(work)
        , m_folded(folded)
        , m_queue(queue)
        , m_engine(*work.links, queue)
        , m_firstGroup(work.sites.size(), 0)
        , m_number(work.sites.size(), kNothing)
    {
        std::uint32_t added = 0;
        for (std::uint32_t site = 0; site < work.sites.size(); ++site) {
            if (!work.sites[site].messages)
                continue;
            m_engine.add(*work.sites[site].messages);
            m_number[site] = added++;
        }
        for (std::uint32_t group = static_cast<std::uint32_t>(folded.groups.size()); group-- > 0;)
            m_firstGroup[folded.groups[group].site] = group;
    }

    void begin(std::uint32_t group, std::uint32_t node, std::uint32_t iteration, Ticks now)
    {
        const std::uint32_t index = m_folded.groups[group].site;
        const StepSite& site = m_work.sites[index];
        if (m_number[index] == kNothing) {
            assert(site.lanes.size() == 1 && site.lanes.front().uses.empty());
            m_queue.push(now + site.lanes.front().shape.latency, node, iteration);
            return;
        }
        m_engine.begin(m_number[index], group - m_firstGroup[index], node, iteration, now + site.start);
    }

    void handle(const Event& event) { m_engine.handle(event); }
    void settle(Ticks) { }
    std::vector<MessageEngine::Finished>& finished() { return m_engine.finished(); }
    void describe(Ticks, std::uint32_t, std::vector<std::int64_t>&) const { }
    void shift(Ticks, std::uint32_t) { }
    std::int64_t messages() const { return m_engine.messages(); }

private:
    const StepWork& m_work;
    const FoldedStep& m_folded;
    EventQueue& m_queue;
    MessageEngine m_engine;
    std::vector<std::uint32_t> m_firstGroup; ///< for each site
    std::vector<std::uint32_t> m_number; ///< of the engine's, for each site
};

/// Flows, with the face that `StepMessages` has.
class StepFlows : public FluidEngine {
public:
    StepFlows(const StepWork&, const FoldedStep& folded, EventQueue& queue)
        : FluidEngine(folded.fluid, queue)
    {
    }

    std::int64_t messages() const { return 0; }
};

struct Snapshot {
    std::size_t loop = 0;
    std::uint32_t iteration = 0; ///< the first live one
    Ticks time = 0;
    std::int64_t events = 0;
    std::vector<Ticks> compute;
    std::size_t spans = 0;
    std::vector<std::int64_t> state;
};

template <typename Engine>
class Runner {
public:
    Runner(const StepWork& work, const FoldedStep& folded, const StepRunOptions& options)
        : m_work(work)
        , m_folded(folded)
        , m_jump(options.jump)
        , m_stop(options.stop)
        , m_engine(work, folded, m_queue)
    {
        for (const std::uint32_t device : options.recorded)
            m_recorded.push_back(folded.classOf[device]);
        m_result.nodeOf.resize(m_recorded.size());
        const bool allRecorded = folded.representative.size() <= m_recorded.size();
        if (work.speed.empty() && !allRecorded)
            m_joined = joinRuns(work.loops);
        build();
    }

    StepRun run();

private:
    const StepProgram& program(std::size_t loop, std::uint32_t deviceClass) const
    {
        const bool isWhole = m_joined.empty() || std::ranges::find(m_recorded, deviceClass) != m_recorded.end();
        return (isWhole ? m_work.loops : m_joined)[loop].programs[m_work.kindOf[m_folded.representative[deviceClass]]];
    }

    void build();
    void buildLoop(std::size_t loop, std::vector<std::vector<std::uint32_t>>& nodes);
    Block& block(std::size_t loop, std::int64_t iteration);
    void satisfy(std::size_t loop, std::uint32_t node, std::int64_t iteration, Ticks now);
    void start(std::size_t loop, std::uint32_t node, std::int64_t iteration, Ticks now);
    void finish(std::uint32_t global, std::uint32_t iteration, Ticks now);
    void startFree(std::size_t loop, Ticks now);
    std::size_t loopOf(std::uint32_t global) const;
    void considerJump(Ticks now);
    std::vector<std::int64_t> describe(std::size_t loop, Ticks now);
    void jump(std::size_t loop, const Snapshot& before, Ticks now);
    void repeatSpans(std::size_t first, std::int64_t times, std::uint32_t iterations, Ticks period);

    const StepWork& m_work;
    const FoldedStep& m_folded;
    bool m_jump;
    const std::stop_token m_stop;
    EventQueue m_queue;
    Engine m_engine;
    std::vector<std::uint32_t> m_recorded; ///< classes of devices
    std::vector<StepLoop> m_joined; ///< what classes that are not recorded run; empty: m_work.loops
    std::vector<bool> m_isRecorded; ///< for each node of all loops; empty: none is
    std::vector<LoopGraph> m_loops;
    std::vector<std::deque<Block>> m_blocks; ///< for each loop, the live iterations
    std::vector<std::int64_t> m_firstLive; ///< for each loop
    std::vector<Snapshot> m_snapshots;
    std::int64_t m_described = 0; ///< events when the state was last described
    std::size_t m_endedIn = kNoLoop; ///< a loop of which an iteration ended at this time
    StepRun m_result;

    static constexpr std::size_t kNoLoop = static_cast<std::size_t>(-1);
};

template <typename Engine>
void Runner<Engine>::build()
{
    const std::size_t classes = m_folded.representative.size();
    m_result.classOf = m_folded.classOf;
    m_result.classes = static_cast<std::int64_t>(classes);
    m_result.endOfClass.assign(classes, 0);
    m_result.computeOfClass.assign(classes, 0);
    m_result.endOfSite.assign(m_work.sites.size(), 0);
    std::vector<std::vector<std::uint32_t>> nodes; // of the loop before: for each class, for each op
    for (std::size_t loop = 0; loop < m_work.loops.size(); ++loop)
        buildLoop(loop, nodes);
    m_blocks.resize(m_loops.size());
    m_firstLive.assign(m_loops.size(), 0);
}

template <typename Engine>
void Runner<Engine>::buildLoop(std::size_t loop, std::vector<std::vector<std::uint32_t>>& before)
{
    const StepLoop& work = m_work.loops[loop];
    LoopGraph graph;
    graph.firstNode = m_loops.empty() ? 0 : m_loops.back().firstNode + m_loops.back().nodeCount;
    graph.repeat = work.repeat;
    std::vector<std::vector<std::uint32_t>> nodes(m_folded.representative.size());
    std::unordered_map<std::uint64_t, std::uint32_t> meetings; // group class and meeting
    std::unordered_map<std::uint64_t, std::uint32_t> together; // kind and op
    for (std::uint32_t deviceClass = 0; deviceClass < nodes.size(); ++deviceClass) {
        const std::uint32_t device = m_folded.representative[deviceClass];
        const StepProgram& program = this->program(loop, deviceClass);
        const double speed = m_work.speed.empty() ? 1.0 : m_work.speed[device];
        nodes[deviceClass].reserve(program.size());
        for (std::uint32_t op = 0; op < program.size(); ++op) {
            std::uint32_t group = kNothing;
            auto node = static_cast<std::uint32_t>(graph.ticks.size());
            if (!program.computes(op)) {
                group = m_folded.groupOf[program.site(op)][deviceClass];
                assert(group != kNothing);
                const auto [found, isNew] = meetings.try_emplace((std::uint64_t{group} << 32) | program.meeting(op), node);
                node = found->second;
                if (!isNew) {
                    nodes[deviceClass].push_back(node);
                    continue;
                }
            }
            if (program.isTogether(op)) {
                assert(work.repeat == 1);
                const std::uint64_t which = (std::uint64_t{m_work.kindOf[device]} << 32) | op;
                graph.together.resize(node, kNothing);
                graph.together.push_back(together.try_emplace(which, static_cast<std::uint32_t>(together.size())).first->second);
            }
            const Ticks ticks = speed == 1.0 ? program.ticks(op) : ticksOf(secondsOf(program.ticks(op)) / speed);
            graph.ticks.push_back(ticks);
            graph.group.push_back(group);
            graph.deviceClass.push_back(group == kNothing ? deviceClass : kNothing);
            nodes[deviceClass].push_back(node);
        }
    }
    graph.nodeCount = static_cast<std::uint32_t>(graph.ticks.size());
    graph.begins.assign(together.size(), -1);
    graph.together.resize(together.empty() ? 0 : graph.nodeCount, kNothing);
    graph.waits.assign(graph.nodeCount, 0);
    graph.waitsBack.assign(graph.nodeCount, 0);
    graph.waitsLoop.assign(graph.nodeCount, 0);

    // Edges twice: counted, then placed.
    std::vector<std::uint32_t> countHere(graph.nodeCount + 1, 0);
    std::vector<std::uint32_t> countBefore(m_loops.empty() ? 0 : m_loops.back().nodeCount + 1, 0);
    const auto forEachEdge = [&](auto visit) {
        for (std::uint32_t deviceClass = 0; deviceClass < nodes.size(); ++deviceClass) {
            const StepProgram& program = this->program(loop, deviceClass);
            for (std::uint32_t op = 0; op < program.size(); ++op) {
                for (const StepDependency& dependency : program.dependencies(op)) {
                    assert(dependency.lag != StepLag::Loop || loop > 0);
                    const auto& from = dependency.lag == StepLag::Loop ? before : nodes;
                    visit(from[deviceClass][dependency.op], nodes[deviceClass][op], dependency.lag);
                }
            }
        }
    };
    forEachEdge([&](std::uint32_t from, std::uint32_t to, StepLag lag) {
        ++(lag == StepLag::Loop ? countBefore : countHere)[from + 1];
        ++(lag == StepLag::None ? graph.waits : lag == StepLag::Iteration ? graph.waitsBack : graph.waitsLoop)[to];
    });
    for (std::size_t i = 1; i < countHere.size(); ++i)
        countHere[i] += countHere[i - 1];
    graph.firstNext = countHere;
    graph.next.resize(graph.firstNext.back());
    std::vector<std::uint32_t> place = graph.firstNext;
    std::vector<std::vector<std::uint32_t>> onward(countBefore.empty() ? 0 : countBefore.size() - 1);
    forEachEdge([&](std::uint32_t from, std::uint32_t to, StepLag lag) {
        if (lag == StepLag::Loop)
            onward[from].push_back(to);
        else
            graph.next[place[from]++] = {to, lag};
    });
    if (!onward.empty()) { // the loop before learns what waits for its last iteration
        LoopGraph& last = m_loops.back();
        std::vector<std::uint32_t> firstNext{0};
        std::vector<std::pair<std::uint32_t, StepLag>> next;
        for (std::uint32_t node = 0; node < last.nodeCount; ++node) {
            next.insert(next.end(), last.next.begin() + last.firstNext[node], last.next.begin() + last.firstNext[node + 1]);
            for (const std::uint32_t to : onward[node])
                next.emplace_back(to, StepLag::Loop);
            firstNext.push_back(static_cast<std::uint32_t>(next.size()));
        }
        last.firstNext = std::move(firstNext);
        last.next = std::move(next);
    }
    for (std::size_t i = 0; i < m_recorded.size(); ++i) {
        m_isRecorded.resize(graph.firstNode + graph.nodeCount, false);
        auto& ofOps = m_result.nodeOf[i].emplace_back(nodes[m_recorded[i]]);
        for (std::uint32_t& node : ofOps) {
            node += graph.firstNode;
            m_isRecorded[node] = true;
        }
    }
    m_loops.push_back(std::move(graph));
    before = std::move(nodes);
}

template <typename Engine>
std::size_t Runner<Engine>::loopOf(std::uint32_t global) const
{
    const auto after = std::ranges::upper_bound(m_loops, global, {}, &LoopGraph::firstNode);
    return static_cast<std::size_t>(after - m_loops.begin()) - 1;
}

template <typename Engine>
Block& Runner<Engine>::block(std::size_t loop, std::int64_t iteration)
{
    const LoopGraph& graph = m_loops[loop];
    std::deque<Block>& blocks = m_blocks[loop];
    while (m_firstLive[loop] + static_cast<std::int64_t>(blocks.size()) <= iteration) {
        const bool first = m_firstLive[loop] + static_cast<std::int64_t>(blocks.size()) == 0;
        Block added{graph.waits, graph.nodeCount, {}};
        if (!m_recorded.empty())
            added.begins.resize(graph.nodeCount);
        const auto& further = first ? graph.waitsLoop : graph.waitsBack;
        for (std::uint32_t node = 0; node < graph.nodeCount; ++node)
            added.waits[node] += further[node];
        blocks.push_back(std::move(added));
    }
    return blocks[static_cast<std::size_t>(iteration - m_firstLive[loop])];
}

template <typename Engine>
void Runner<Engine>::start(std::size_t loop, std::uint32_t node, std::int64_t iteration, Ticks now)
{
    const LoopGraph& graph = m_loops[loop];
    if (!m_recorded.empty())
        block(loop, iteration).begins[node] = now;
    if (graph.group[node] != kNothing) {
        m_engine.begin(graph.group[node], graph.firstNode + node, static_cast<std::uint32_t>(iteration), now);
        return;
    }
    if (!graph.together.empty() && graph.together[node] != kNothing) {
        Ticks& begin = m_loops[loop].begins[graph.together[node]];
        m_result.isOutOfStep |= begin >= 0 && begin != now;
        begin = now;
    }
    m_result.computeOfClass[graph.deviceClass[node]] += graph.ticks[node];
    m_queue.push(now + graph.ticks[node], graph.firstNode + node, static_cast<std::uint32_t>(iteration));
}

template <typename Engine>
void Runner<Engine>::satisfy(std::size_t loop, std::uint32_t node, std::int64_t iteration, Ticks now)
{
    if (--block(loop, iteration).waits[node] == 0)
        start(loop, node, iteration, now);
}

/// Starts what waits for nothing.
template <typename Engine>
void Runner<Engine>::startFree(std::size_t loop, Ticks now)
{
    if (m_loops[loop].repeat == 0)
        return;
    for (std::uint32_t node = 0; node < m_loops[loop].nodeCount; ++node) {
        const LoopGraph& graph = m_loops[loop];
        assert(graph.repeat == 1 || graph.waits[node] + graph.waitsBack[node] > 0);
        if (graph.waits[node] + graph.waitsLoop[node] == 0)
            start(loop, node, 0, now);
    }
}

template <typename Engine>
void Runner<Engine>::finish(std::uint32_t global, std::uint32_t iteration, Ticks now)
{
    const std::size_t loop = m_loops.size() == 1 ? 0 : loopOf(global);
    const LoopGraph& graph = m_loops[loop];
    const std::uint32_t node = global - graph.firstNode;
    if (graph.group[node] == kNothing) {
        m_result.endOfClass[graph.deviceClass[node]] = now;
    } else {
        m_result.endOfSite[m_folded.groups[graph.group[node]].site] = now;
        for (const std::uint32_t member : m_folded.groups[graph.group[node]].deviceClasses)
            m_result.endOfClass[member] = now;
    }
    m_result.end = now;
    if (!m_recorded.empty() && m_isRecorded[global])
        m_result.spans.push_back({global, iteration, block(loop, iteration).begins[node], now});
    for (std::uint32_t i = graph.firstNext[node]; i < graph.firstNext[node + 1]; ++i) {
        const auto [to, lag] = graph.next[i];
        if (lag == StepLag::None)
            satisfy(loop, to, iteration, now);
        else if (lag == StepLag::Loop && iteration + 1 == graph.repeat)
            satisfy(loop + 1, to, 0, now);
        else if (lag == StepLag::Iteration && iteration + 1 < graph.repeat)
            satisfy(loop, to, std::int64_t{iteration} + 1, now);
    }
    --block(loop, iteration).left;
    std::deque<Block>& blocks = m_blocks[loop];
    while (!blocks.empty() && blocks.front().left == 0) {
        blocks.pop_front();
        ++m_firstLive[loop];
        m_endedIn = loop;
    }
}

/// All that decides what comes, seen from now and from the first live iteration.
template <typename Engine>
std::vector<std::int64_t> Runner<Engine>::describe(std::size_t loop, Ticks now)
{
    const auto base = static_cast<std::uint32_t>(m_firstLive[loop]);
    std::vector<std::int64_t> state;
    for (const std::deque<Block>& blocks : m_blocks) { // of other loops, too: what waits there must not have moved
        state.push_back(static_cast<std::int64_t>(blocks.size()));
        for (const Block& live : blocks) {
            state.push_back(live.left);
            state.insert(state.end(), live.waits.begin(), live.waits.end());
        }
    }
    std::vector<Event> pending;
    m_queue.forEach([&](const Event& event) {
        if (!(event.what & FluidEngine::kBit))
            pending.push_back(event);
    });
    std::ranges::sort(
        pending, [](const Event& a, const Event& b) { return a.time < b.time || (a.time == b.time && a.order < b.order); });
    for (const Event& event : pending) {
        state.push_back(event.time - now);
        state.push_back(event.what);
        state.push_back(static_cast<std::int64_t>(event.which) - base);
    }
    m_engine.describe(now, base, state);
    return state;
}

/// An iteration has ended: if all is as it was after an earlier one, the loop repeats itself from there.
template <typename Engine>
void Runner<Engine>::considerJump(Ticks now)
{
    constexpr std::size_t kRemembered = 8;
    const std::size_t loop = m_endedIn;
    m_endedIn = kNoLoop;
    if (!m_jump || m_blocks[loop].empty() || m_loops[loop].repeat < 4)
        return;
    // Describing costs as much as there is to describe: not more often than there were events to pay for it.
    const auto cost = static_cast<std::int64_t>(m_blocks[loop].size()) * m_loops[loop].nodeCount / 4;
    if (m_result.events < m_described + cost)
        return;
    m_described = m_result.events;
    Snapshot snapshot{loop, static_cast<std::uint32_t>(m_firstLive[loop]), now, m_result.events, m_result.computeOfClass,
        m_result.spans.size(), describe(loop, now)};
    for (const Snapshot& before : m_snapshots) {
        if (before.loop == loop && before.state == snapshot.state) {
            jump(loop, before, now);
            m_snapshots.clear();
            return;
        }
    }
    if (m_snapshots.size() == kRemembered)
        m_snapshots.erase(m_snapshots.begin());
    m_snapshots.push_back(std::move(snapshot));
}

template <typename Engine>
void Runner<Engine>::jump(std::size_t loop, const Snapshot& before, Ticks now)
{
    const std::int64_t period = m_firstLive[loop] - before.iteration;
    const std::int64_t lastLive = m_firstLive[loop] + static_cast<std::int64_t>(m_blocks[loop].size()) - 1;
    // The last iteration is not yet begun: what waits for its ops would have to learn of those that are over.
    const std::int64_t times = (m_loops[loop].repeat - 2 - lastLive) / period;
    if (times <= 0)
        return;
    const std::int64_t iterations = times * period;
    if (static_cast<double>(times) * static_cast<double>(now - before.time) > static_cast<double>(kLongestTicks)) {
        m_result.isTooLong = true;
        return;
    }
    const Ticks by = times * (now - before.time);
    m_firstLive[loop] += iterations;
    m_result.iterationsJumped += iterations;
    for (std::size_t i = 0; i < m_result.computeOfClass.size(); ++i)
        m_result.computeOfClass[i] += times * (m_result.computeOfClass[i] - before.compute[i]);
    m_queue.forEach([&](Event& event) {
        event.time += by;
        if (!(event.what & FluidEngine::kBit))
            event.which += static_cast<std::uint32_t>(iterations);
    });
    m_engine.shift(by, static_cast<std::uint32_t>(iterations));
    repeatSpans(before.spans, times, static_cast<std::uint32_t>(period), now - before.time);
    for (Block& live : m_blocks[loop]) {
        for (Ticks& begin : live.begins)
            begin += by;
    }
}

/// What was recorded since `first` happens again and again.
template <typename Engine>
void Runner<Engine>::repeatSpans(std::size_t first, std::int64_t times, std::uint32_t iterations, Ticks period)
{
    const std::size_t last = m_result.spans.size();
    m_result.spans.reserve(last + (last - first) * static_cast<std::size_t>(times));
    for (std::int64_t time = 1; time <= times; ++time) {
        for (std::size_t i = first; i < last; ++i) {
            StepSpan span = m_result.spans[i];
            span.iteration += iterations * static_cast<std::uint32_t>(time);
            span.begin += period * time;
            span.end += period * time;
            m_result.spans.push_back(span);
        }
    }
}

template <typename Engine>
StepRun Runner<Engine>::run()
{
    for (std::size_t loop = 0; loop < m_loops.size(); ++loop)
        startFree(loop, 0);
    const auto drain = [&](Ticks now) {
        while (!m_engine.finished().empty()) {
            const auto ended = std::exchange(m_engine.finished(), {});
            for (const auto& [node, iteration] : ended)
                finish(node, iteration, now);
        }
    };
    drain(0);
    while (!m_queue.empty() && !m_result.isTooLong && !m_result.isOutOfStep) {
        if (m_stop.stop_requested()) {
            m_result.isStopped = true;
            break;
        }
        const Ticks now = m_queue.top().time;
        if (now > kLongestTicks) {
            m_result.isTooLong = true;
            break;
        }
        while (!m_queue.empty() && m_queue.top().time == now) {
            const Event event = m_queue.pop();
            ++m_result.events;
            if (event.what & FluidEngine::kBit)
                m_engine.handle(event);
            else
                finish(event.what, event.which, now);
            drain(now);
        }
        m_engine.settle(now);
        if (m_endedIn != kNoLoop && (m_queue.empty() || m_queue.top().time > now))
            considerJump(now);
    }
    [[maybe_unused]] const bool isCut = m_result.isStopped || m_result.isTooLong || m_result.isOutOfStep;
    for (std::size_t loop = 0; loop < m_loops.size(); ++loop)
        assert(isCut || m_firstLive[loop] == (m_loops[loop].nodeCount > 0 ? m_loops[loop].repeat : 0)); // nothing waits in vain
    m_result.messages = m_engine.messages();
    return std::move(m_result);
}

} // namespace

StepRun runFolded(const StepWork& work, const FoldedStep& folded, const StepRunOptions& options)
{
    if (options.fidelity != Fidelity::Message)
        return Runner<StepFlows>(work, folded, options).run();
    StepRunOptions unrolled = options;
    unrolled.jump = false;
    return Runner<StepMessages>(work, folded, unrolled).run();
}

StepRun runStep(const StepWork& work, const StepRunOptions& options)
{
    const FoldedStep folded = foldStep(work, options.fold && options.fidelity != Fidelity::Message);
    return runFolded(work, folded, options);
}

} // namespace meshwright::sim
