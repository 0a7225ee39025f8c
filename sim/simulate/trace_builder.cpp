// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/trace_builder.h"

#include "core/schedule/label.h"
#include "core/support/text.h"
#include "core/support/timed_stop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>
#include <tuple>

namespace meshwright::sim {

namespace {

constexpr double kRounding = 100e-12; ///< of a collective: a tick a step

/// After calls were counted.
bool isOfOtherStages(const SimulatedCollective& collective)
{
    return collective.use.count == 0;
}

} // namespace

TraceBuilder::TraceBuilder(NetworkSites& sites, std::vector<StageWork> stages, std::vector<SimulatedCollective> uses,
    std::vector<std::uint32_t> siteOfUse, const TraceOptions& options)
    : m_sites(sites)
    , m_stages(std::move(stages))
    , m_siteOfUse(std::move(siteOfUse))
    , m_options(options)
{
    m_result.collectives = std::move(uses);
    for (std::size_t use = 0; use < m_result.collectives.size(); ++use) {
        SimulatedCollective& collective = m_result.collectives[use];
        const CollectiveEstimate& estimate = sites.estimate(m_siteOfUse[use]);
        collective.wireBytes = estimate.wireBytes;
        collective.aloneSecondsPerCall = estimate.seconds;
        collective.lowerBoundSeconds = estimate.lowerBoundSeconds;
        collective.algorithm = estimate.algorithm;
        collective.formula = estimate.formula;
    }
}

Result<Done> TraceBuilder::run()
{
    std::vector<std::int64_t> calls(m_sites.sites(), 0);
    std::int64_t most = 0;
    for (const StageWork& stage : m_stages) {
        std::vector<std::int64_t> own(calls.size(), 0);
        for (const StageLoop& loop : stage.loops) {
            for (std::uint32_t op = 0; op < loop.program.size(); ++op) {
                if (!loop.program.computes(op))
                    own[loop.program.site(op)] += loop.repeat;
            }
        }
        for (std::size_t site = 0; site < own.size(); ++site)
            calls[site] = std::max(calls[site], own[site]);
        most = std::max(most, stage.opsWritten);
    }
    auto made = m_sites.work(calls, most);
    if (!made)
        return made.error();
    StepWork work = *std::move(made);
    for (std::size_t loop = 0; loop < m_stages.front().loops.size(); ++loop) {
        StepLoop& added = work.loops.emplace_back();
        added.repeat = m_stages.front().loops[loop].repeat;
        for (StageWork& stage : m_stages)
            added.programs.push_back(std::move(stage.loops[loop].program));
    }
    const FoldedStep folded = foldStep(work, m_sites.fidelity() != Fidelity::Message);
    const std::vector<std::uint32_t> devices = shownDevices(work, folded);
    StepRunOptions options;
    options.fidelity = m_sites.fidelity();
    options.recorded = devices;
    options.stop = m_sites.stop();
    m_run = runFolded(work, folded, options);
    if (m_run.isStopped)
        return stoppedProblem();
    if (m_run.isOutOfStep)
        return Done{};
    if (m_run.isTooLong)
        return Problem{"MW1751", fmt::format("a step takes more than {}", formatSeconds(secondsOf(kLongestTicks))),
            "use a smaller model or batch, or more devices; is a link or a device of the machine slower than it should be?"};
    m_result.stepSeconds = secondsOf(m_run.end);
    m_result.events = m_run.events;
    m_result.classes = m_run.classes;
    m_result.moves = m_stages[m_stage].moves;
    // The first is the chosen one; rows come in the order of devices.
    std::vector<std::size_t> order(devices.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(work.kindOf[devices[i]], devices[i]); });
    const std::vector<std::vector<OwnSpan>> spans = spansByDevice();
    for (const std::size_t i : order) {
        if (m_sites.stop().stop_requested())
            return stoppedProblem();
        addDevice(work, devices[i], i, spans[i], i == 0);
    }
    if (m_options.rolls)
        finishRolling();
    finishCollectives();
    m_result.boundBy = boundBy();
    m_result.timeline.sort();
    return Done{};
}

/// First the device that computes longest; for a timeline, or where the longest part counts, one for each stage and speed.
std::vector<std::uint32_t> TraceBuilder::shownDevices(const StepWork& work, const FoldedStep& folded)
{
    constexpr std::size_t kMostDevices = 64;
    std::set<std::pair<std::uint32_t, double>> seen;
    std::vector<std::uint32_t> devices;
    double longest = -1.0;
    for (const std::uint32_t device : folded.representative) {
        const double speed = work.speed.empty() ? 1.0 : work.speed[device];
        if (!seen.insert({work.kindOf[device], speed}).second)
            continue;
        const double seconds = m_stages[work.kindOf[device]].computeSeconds / speed;
        if (seconds > longest) {
            longest = seconds;
            m_stage = work.kindOf[device];
            devices.insert(devices.begin(), device);
        } else if (devices.size() < kMostDevices) {
            devices.push_back(device);
        }
    }
    if (!m_options.timeline && !m_options.rolls) {
        const auto ofMoments = std::ranges::find_if(
            devices, [&](std::uint32_t device) { return work.kindOf[device] == m_options.momentsOf.value_or(m_stage); });
        if (ofMoments != devices.end() && ofMoments != devices.begin())
            std::iter_swap(ofMoments, devices.begin() + 1);
        devices.resize(ofMoments == devices.begin() || ofMoments == devices.end() ? 1 : 2);
    }
    return devices;
}

std::uint32_t TraceBuilder::rowOf(const std::string& name)
{
    if (!m_options.timeline)
        return 0;
    const auto [row, isNew] = m_rows.try_emplace({m_device.machineDevice, name}, 0);
    if (isNew)
        row->second = m_result.timeline.addRow(m_device.machineDevice, name);
    return row->second;
}

/// How a collective or a move is shown on the device at hand; made once.
const TraceBuilder::Shown& TraceBuilder::shown(std::uint32_t use)
{
    const auto [found, isNew] = m_device.shown.try_emplace(use);
    Shown& shown = found->second;
    if (!isNew)
        return shown;
    if (use >= kFirstMove) {
        const SimulatedMove& move = m_stages[m_device.stage].moves[use - kFirstMove];
        shown.category = SliceCategory::Transfer;
        shown.row = rowOf(move.toHost ? "to host" : "from host");
        shown.name = m_result.timeline.intern(move.label);
        shown.detail = m_result.timeline.intern(formatBytes(move.bytes) + " over the host's link");
        shown.waiting = m_result.timeline.intern("wait for " + move.label);
        return shown;
    }
    const SimulatedCollective& collective = m_result.collectives[use];
    std::string row = "collectives";
    shown.category = categoryOf(collective.use.kind);
    if (const StageTransfer* transfer = m_sites.transferOf(m_siteOfUse[use])) {
        shown.category = SliceCategory::Transfer;
        row = fmt::format("{} {}", transfer->from == static_cast<std::int64_t>(m_device.stage) ? "send" : "receive",
            stageMessageName(transfer->what == StageMessage::Activations ? StageMessage::Activations : StageMessage::Gradients));
    } else if (m_sites.collectiveStreams() > 1) {
        row = fmt::format("collectives over {}", collective.use.axes);
    }
    shown.row = rowOf(row);
    shown.name = m_result.timeline.intern(collective.label);
    shown.detail = m_result.timeline.intern(collective.algorithm + ": " + collective.formula);
    shown.waiting = m_result.timeline.intern(fmt::format("wait for {}", collective.use.cause.value));
    return shown;
}

/// What the device at hand waits for: a collective, or with kNothing its host.
std::uint32_t TraceBuilder::waitingText(std::uint32_t use)
{
    return use == kNothing ? m_result.timeline.intern("wait for the host") : shown(use).waiting;
}

/// The spans of each recorded device, in the run's order. A collective is a span of all that take part in it.
std::vector<std::vector<TraceBuilder::OwnSpan>> TraceBuilder::spansByDevice() const
{
    struct Owner {
        std::uint32_t place = 0;
        std::uint32_t loop = 0;
        std::uint32_t op = 0;
    };
    const auto forEachNode = [&](auto visit) {
        for (std::uint32_t place = 0; place < m_run.nodeOf.size(); ++place) {
            for (std::uint32_t loop = 0; loop < m_run.nodeOf[place].size(); ++loop) {
                for (std::uint32_t op = 0; op < m_run.nodeOf[place][loop].size(); ++op)
                    visit(m_run.nodeOf[place][loop][op], Owner{place, loop, op});
            }
        }
    };
    std::vector<std::uint32_t> first; // of a node's owners; of node n the last is before first[n + 1]
    forEachNode([&](std::uint32_t node, Owner) {
        if (first.size() < std::size_t{node} + 2)
            first.resize(std::size_t{node} + 2, 0);
        ++first[node + 1];
    });
    for (std::size_t node = 1; node < first.size(); ++node)
        first[node] += first[node - 1];
    std::vector<Owner> owners(first.empty() ? 0 : first.back());
    std::vector<std::uint32_t> next = first;
    forEachNode([&](std::uint32_t node, Owner owner) { owners[next[node]++] = owner; });
    std::vector<std::vector<OwnSpan>> spans(m_run.nodeOf.size());
    for (std::uint32_t i = 0; i < m_run.spans.size(); ++i) {
        const std::size_t node = m_run.spans[i].node;
        for (std::uint32_t at = node + 1 < first.size() ? first[node] : 0; node + 1 < first.size() && at < first[node + 1]; ++at)
            spans[owners[at].place].push_back({i, owners[at].loop, owners[at].op});
    }
    return spans;
}

/// Takes a device at hand.
void TraceBuilder::beginDevice(const StepWork& work, std::uint32_t device, std::size_t place, const std::vector<OwnSpan>& spans)
{
    m_device = {};
    m_device.stage = work.kindOf[device];
    m_device.machineDevice = m_sites.machineDevice(device);
    for (const auto& nodes : m_run.nodeOf[place])
        m_device.lastEnd.emplace_back(nodes.size(), 0);
    const StageWork& stage = m_stages[m_device.stage];
    for (const OwnSpan& own : spans) {
        const StepSpan& span = m_run.spans[own.span];
        const StepOpNote& note = stage.loops[own.loop].notes[own.op];
        m_device.lastEnd[own.loop][own.op] = span.end;
        if (note.kind != StepOpNote::Kind::Function) {
            m_device.happenings.push_back({span.begin, span.end, note});
            continue;
        }
        for (const WholeFunction::Part& part : (*stage.wholes)[note.index].parts) {
            m_device.happenings.push_back({span.begin + part.begin, span.begin + part.end, part.note});
            m_device.happenings.back().note.task = note.task;
        }
    }
    m_intervals.clear();
    m_nextInterval = 0;
    m_underWay.clear();
}

void TraceBuilder::addDevice(
    const StepWork& work, std::uint32_t device, std::size_t place, const std::vector<OwnSpan>& spans, bool isChosen)
{
    beginDevice(work, device, place, spans);
    const std::uint32_t computeRow = rowOf("compute");
    if (!m_options.isPipeline && m_sites.collectiveStreams() <= 1)
        rowOf("collectives"); // though it may stay empty
    addTransfers();
    const Ticks end = addComputing(computeRow, isChosen);
    const Ticks part = end - std::max<Ticks>(0, m_device.begin);
    m_longestPart = std::max(m_longestPart, part);
    const std::size_t ofMoments = m_options.momentsOf.value_or(m_stage);
    if (m_device.stage == ofMoments && (ofMoments == m_stage ? isChosen : m_lastEnd.empty()))
        m_lastEnd = std::move(m_device.lastEnd);
    if (!isChosen)
        return;
    m_chosenPart = part;
    expose(end, m_options.rolls ? end : m_run.end);
    countTransfers();
}

void TraceBuilder::countTransfers()
{
    for (const Interval& interval : m_intervals) {
        const double seconds = secondsOf(interval.end - interval.begin);
        if (interval.use >= kFirstMove) {
            SimulatedMove& move = m_result.moves[interval.use - kFirstMove];
            move.seconds += seconds;
            ++move.count;
        } else {
            SimulatedCollective& collective = m_result.collectives[interval.use];
            collective.seconds += seconds;
            collective.secondsPerCall += 1.0; // calls, until `finishCollectives`
        }
    }
}

/// Collectives, and moves over the host's link.
void TraceBuilder::addTransfers()
{
    for (const auto& [begin, end, note] : m_device.happenings) {
        if (note.kind != StepOpNote::Kind::Collective && note.kind != StepOpNote::Kind::Move)
            continue;
        m_intervals.push_back({begin, end, note.index});
        if (!m_options.timeline)
            continue;
        const Shown& as = shown(note.index);
        const bool isMove = note.kind == StepOpNote::Kind::Move;
        const std::int64_t bytes = isMove ? m_stages[m_device.stage].moves[note.index - kFirstMove].bytes
                                          : m_result.collectives[note.index].use.payloadBytes;
        addSlice(as.row, begin, end, as.name, as.detail, as.category, bytes,
            isMove ? kNoCollective : static_cast<std::int32_t>(note.index));
    }
    std::ranges::stable_sort(m_intervals, {}, &Interval::begin);
}

/// Returns when the device has computed all.
Ticks TraceBuilder::addComputing(std::uint32_t row, bool isChosen)
{
    const std::vector<KernelWork>& works = *m_stages[m_device.stage].works;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint32_t, std::uint32_t>>
        texts; // of works in tasks: label and detail
    const std::vector<std::string>& tasks = m_stages[m_device.stage].tasks;
    Ticks free = 0;
    for (const Happening& span : m_device.happenings) {
        const StepOpNote* note = &span.note;
        if (note->kind != StepOpNote::Kind::Compute && note->kind != StepOpNote::Kind::Wait)
            continue;
        if (span.begin > free) {
            assert(note->kind == StepOpNote::Kind::Wait); // computing waits for nothing else
            if (m_options.timeline)
                addSlice(row, free, span.begin, waitingText(note->index), 0, SliceCategory::Wait, 0);
            if (isChosen && note->index == kNothing)
                addLaunch(secondsOf(span.begin - free));
            else if (isChosen && !(m_options.rolls && m_device.begin < 0))
                expose(free, span.begin);
        }
        free = span.end;
        if (note->kind == StepOpNote::Kind::Wait)
            continue;
        if (m_device.begin < 0)
            m_device.begin = span.begin;
        const KernelWork& done = works[note->index];
        if (m_options.timeline) {
            const auto [text, isNew] = texts.try_emplace({note->index, note->task}, 0, 0);
            if (isNew)
                text->second = {m_result.timeline.intern(done.label),
                    m_result.timeline.intern(note->task < tasks.size() ? tasks[note->task] + ": " + done.formula : done.formula)};
            addSlice(row, span.begin, span.end, text->second.first, text->second.second, SliceCategory::Compute, done.bytes);
        }
        if (isChosen)
            addCompute(done, span);
    }
    return free;
}

void TraceBuilder::addCompute(const KernelWork& work, const Happening& done)
{
    const double seconds = secondsOf(done.end - done.begin);
    m_result.computeSeconds += seconds;
    if (work.isUpdate)
        m_result.updateSeconds += seconds;
    if (work.isProduct) {
        m_result.productSeconds += seconds;
        m_result.productFlopsPerDevice += work.flops;
    } else {
        m_result.otherTrafficBytes += static_cast<double>(work.bytes);
    }
    m_secondsBoundBy[static_cast<std::size_t>(work.time.bound)] += seconds;
}

/// The device waits for the host to start a kernel.
void TraceBuilder::addLaunch(double seconds)
{
    m_result.launchSeconds += seconds;
    m_secondsBoundBy[static_cast<std::size_t>(OpBound::Overhead)] += seconds;
}

void TraceBuilder::expose(std::uint32_t use, double seconds)
{
    if (use >= kFirstMove) {
        m_result.moves[use - kFirstMove].exposedSeconds += seconds;
        m_result.hostExposedSeconds += seconds;
    } else {
        m_result.collectives[use].exposedSeconds += seconds;
    }
}

/// Charges a time of waiting to the collectives and moves that were under way, those of one moment equally: the one that is waited for may have queued
/// behind others. What is left is waiting for other devices.
void TraceBuilder::expose(Ticks from, Ticks to)
{
    std::erase_if(m_underWay, [&](const Interval& interval) { return interval.end <= from; });
    for (; m_nextInterval < m_intervals.size() && m_intervals[m_nextInterval].begin < to; ++m_nextInterval) {
        if (m_intervals[m_nextInterval].end > from)
            m_underWay.push_back(m_intervals[m_nextInterval]);
    }
    std::vector<Ticks> edges{from, to};
    for (const Interval& interval : m_underWay) {
        edges.push_back(std::clamp(interval.begin, from, to));
        edges.push_back(std::clamp(interval.end, from, to));
    }
    std::ranges::sort(edges);
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
        const double seconds = secondsOf(edges[i + 1] - edges[i]);
        const auto isOver = [&](const Interval& one) { return one.begin <= edges[i] && one.end >= edges[i + 1]; };
        const auto sharers = static_cast<double>(std::ranges::count_if(m_underWay, isOver));
        if (seconds <= 0.0)
            continue;
        (sharers > 0.0 || !m_options.isPipeline ? m_result.exposedSeconds : m_result.bubbleSeconds) += seconds;
        for (const Interval& interval : m_underWay) {
            if (isOver(interval))
                expose(interval.use, seconds / sharers);
        }
    }
}

/// The stages' parts of a step follow each other without waiting for the whole: a step takes as long as the longest part.
void TraceBuilder::finishRolling()
{
    m_result.stepSeconds = secondsOf(m_longestPart);
    m_result.bubbleSeconds += secondsOf(m_longestPart - m_chosenPart);
}

/// Means of calls; of a pipeline, only what the stage that is told of takes part in.
void TraceBuilder::finishCollectives()
{
    for (SimulatedCollective& collective : m_result.collectives) {
        const double calls = collective.secondsPerCall;
        collective.secondsPerCall = calls > 0.0 ? collective.seconds / calls : collective.aloneSecondsPerCall;
        collective.use.count = static_cast<std::int64_t>(calls);
        m_result.collectiveSeconds += collective.seconds;
        const double longer = collective.seconds - calls * collective.aloneSecondsPerCall;
        if (longer > calls * kRounding)
            m_result.contentionSeconds += longer;
        assert(collective.secondsPerCall >= collective.lowerBoundSeconds * (1.0 - 1e-9) - 1e-12);
    }
    if (m_options.timeline)
        numberCollectivesOfSlices();
    std::erase_if(m_result.collectives, isOfOtherStages);
}

/// By those that are left. Other stages' calls count as calls of the collective of the same name and size, where the stage that is told of has one.
void TraceBuilder::numberCollectivesOfSlices()
{
    const auto called = [](const SimulatedCollective& collective) {
        return std::tuple(collective.label, collective.use.axes, collective.use.payloadBytes);
    };
    std::vector<std::int32_t> numbers;
    std::map<std::tuple<std::string, std::string, std::int64_t>, std::int32_t> first;
    std::int32_t left = 0;
    for (const SimulatedCollective& collective : m_result.collectives) {
        numbers.push_back(isOfOtherStages(collective) ? kNoCollective : left++);
        if (numbers.back() != kNoCollective)
            first.try_emplace(called(collective), numbers.back());
    }
    for (std::size_t use = 0; use < numbers.size(); ++use) {
        if (const auto same = first.find(called(m_result.collectives[use])); numbers[use] == kNoCollective && same != first.end())
            numbers[use] = same->second;
    }
    m_result.timeline.renumberCollectives(numbers);
}

void TraceBuilder::addSlice(std::uint32_t row, Ticks begin, Ticks end, std::uint32_t name, std::uint32_t detail,
    SliceCategory category, std::int64_t bytes, std::int32_t collective)
{
    if (end <= begin)
        return;
    Slice slice;
    slice.startSeconds = secondsOf(begin);
    slice.durationSeconds = secondsOf(end - begin);
    slice.cpuSeconds = slice.durationSeconds;
    slice.bytes = bytes;
    slice.row = row;
    slice.name = name;
    slice.detail = detail;
    slice.category = category;
    slice.collective = collective;
    m_result.timeline.add(slice);
}

/// The collective, or the host's link, that is waited for longest, when waiting takes longer than computing; otherwise what computing spends most of its time on.
StepPart TraceBuilder::boundBy() const
{
    using enum StepPart::Kind;
    std::map<StepPart, double> share;
    if (m_result.bubbleSeconds > std::max(m_result.computeSeconds, m_result.exposedSeconds))
        return {Bubble};
    if (m_result.exposedSeconds > m_result.computeSeconds) {
        for (const SimulatedCollective& collective : m_result.collectives)
            share[{Collective, collective.use.kind, collective.use.axes}] += collective.exposedSeconds;
        if (m_result.hostExposedSeconds > 0.0)
            share[{HostLink}] = m_result.hostExposedSeconds;
    }
    if (share.empty()) {
        share[{Compute}] = m_secondsBoundBy[static_cast<std::size_t>(OpBound::Compute)];
        share[{Memory}] = m_secondsBoundBy[static_cast<std::size_t>(OpBound::Memory)];
        share[{Launch}] = m_secondsBoundBy[static_cast<std::size_t>(OpBound::Overhead)];
    }
    return std::max_element(share.begin(), share.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
}

} // namespace meshwright::sim
