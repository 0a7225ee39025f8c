// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/collective_plan.h"

#include "core/support/checked.h"
#include "sim/collective/torus.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>

namespace meshwright::sim {

namespace {

using Lanes = PlanPhase;

class CollectivePlanner {
public:
    explicit CollectivePlanner(const CollectiveRequest& request)
        : m_request(request)
        , m_bytes(static_cast<double>(request.payloadBytes))
    {
        GroupAxis inner;
        GroupAxis network;
        for (const GroupAxis& axis : request.axes) {
            if (axis.size == 1)
                continue;
            if (axis.kind == GroupKind::Torus) {
                m_plan.axes.push_back(axis);
                continue;
            }
            GroupAxis& tier = axis.kind == GroupKind::Network ? network : inner;
            const std::int64_t size = tier.size * axis.size;
            tier = axis;
            tier.size = size;
        }
        m_torus = m_plan.axes.size();
        if (inner.size > 1) {
            m_inner = m_plan.axes.size();
            m_plan.axes.push_back(inner);
        }
        if (network.size > 1) {
            m_network = m_plan.axes.size();
            m_plan.axes.push_back(network);
        }
        m_plan.kind = request.kind;
    }

    CollectivePlan run();

private:
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    const GroupAxis& axis(std::size_t index) const { return m_plan.axes[index]; }
    void add(Lanes lanes) { m_plan.phases.push_back(std::move(lanes)); }
    void addReversed(std::vector<Lanes> phases);

    PlanLane exchange(std::size_t index, Partner partner, std::vector<std::int64_t> distance, std::vector<double> bytes) const;
    Lanes gatherLanes(std::size_t index, double bytes, bool scatter, bool oneWay) const;
    std::vector<Lanes> torusScatter(double bytes) const;
    std::vector<Lanes> innerScatter(double bytes) const;
    std::vector<Lanes> starAllReduce(std::size_t index, double bytes) const;
    std::vector<Lanes> starGather(std::size_t index, double bytes, bool scatter) const;
    Lanes pairwise(std::size_t index) const;
    Lanes torusAllToAll() const;
    Lanes torusPermute() const;
    Lanes starPermute(std::size_t index) const;
    void starBroadcast(std::size_t index);
    Lanes torusBroadcast() const;

    const CollectiveRequest& m_request;
    double m_bytes;
    ChosenAlgorithm m_chosen;
    CollectivePlan m_plan;
    std::size_t m_torus = 0; ///< so many torus axes come first
    std::size_t m_inner = kNone;
    std::size_t m_network = kNone;
};

/// The all-gather of a reduce-scatter: everything in the other order, pieces going the other way in time.
void CollectivePlanner::addReversed(std::vector<Lanes> phases)
{
    std::ranges::reverse(phases);
    for (Lanes& lanes : phases) {
        for (PlanLane& lane : lanes) {
            if (lane.shape == LaneShape::LineScatter)
                lane.shape = LaneShape::LineGather;
            std::ranges::reverse(lane.stepBytes);
            std::ranges::reverse(lane.distance);
        }
        add(std::move(lanes));
    }
}

PlanLane CollectivePlanner::exchange(
    std::size_t index, Partner partner, std::vector<std::int64_t> distance, std::vector<double> bytes) const
{
    PlanLane lane;
    lane.axis = index;
    lane.shape = LaneShape::Exchange;
    lane.partner = partner;
    lane.latencySeconds = static_cast<double>(distance.size()) * axis(index).link.latencySeconds;
    lane.linkBytes = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    lane.distance = std::move(distance);
    lane.stepBytes = std::move(bytes);
    return lane;
}

/// A reduce-scatter or all-gather of `bytes` along one axis; both ways unless the chosen algorithm goes one way.
Lanes CollectivePlanner::gatherLanes(std::size_t index, double bytes, bool scatter, bool oneWay) const
{
    const GroupAxis& along = axis(index);
    const std::int64_t k = along.size;
    const double piece = bytes / asDouble(k);
    PlanLane lane;
    lane.axis = index;
    if (along.kind == GroupKind::FullMesh) {
        lane = exchange(index, Partner::Shift, {}, {});
        lane.shape = LaneShape::AtOnce;
        for (std::int64_t d = 1; d < k; ++d) {
            lane.distance.push_back(d);
            lane.stepBytes.push_back(piece);
        }
        lane.latencySeconds = along.link.latencySeconds;
        lane.linkBytes = piece;
        return {lane};
    }
    const bool torus = along.kind == GroupKind::Torus;
    const bool ring = !torus || along.wraps;
    if (ring && (oneWay || !torus)) {
        lane.stepBytes.assign(static_cast<std::size_t>(k - 1), piece);
        lane.latencySeconds = asDouble(k - 1) * along.link.latencySeconds;
        lane.linkBytes = asDouble(k - 1) * piece;
        return {lane};
    }
    if (along.opposite) {
        // Two members with two ways between them: half of the piece each way.
        lane.stepBytes = {piece / 2.0};
        lane.latencySeconds = along.link.latencySeconds;
        lane.linkBytes = piece; // at the bandwidth of both ways
    } else if (ring) {
        // The member opposite on an even ring gets half of its piece from each side: the shortest step, first when scattering.
        lane.stepBytes.assign(static_cast<std::size_t>(k / 2), piece);
        if (k % 2 == 0)
            (scatter ? lane.stepBytes.front() : lane.stepBytes.back()) = piece / 2.0;
        lane.latencySeconds = asDouble(k / 2) * along.link.latencySeconds;
        lane.linkBytes = asDouble(k - 1) / 2.0 * piece;
    } else {
        lane.shape = scatter ? LaneShape::LineScatter : LaneShape::LineGather;
        lane.stepBytes.assign(static_cast<std::size_t>(k - 1), piece);
        lane.latencySeconds = asDouble(k - 1) * along.link.latencySeconds;
        lane.linkBytes = asDouble(k - 1) * piece;
    }
    PlanLane down = lane;
    down.up = false;
    return {lane, down};
}

std::vector<Lanes> CollectivePlanner::torusScatter(double bytes) const
{
    const bool oneWay = m_request.algorithm == CollectiveAlgorithm::Ring;
    std::vector<Lanes> phases;
    const std::vector<std::uint8_t>& order = m_chosen.order;
    for (std::size_t i = 0; i < m_chosen.oneByOne; ++i) {
        phases.push_back(gatherLanes(order[i], bytes, true, oneWay));
        bytes /= asDouble(axis(order[i]).size);
    }
    const std::size_t count = order.size() - m_chosen.oneByOne;
    std::vector<double> left(count, bytes / static_cast<double>(std::max<std::size_t>(count, 1)));
    for (std::size_t phase = 0; phase < count; ++phase) {
        Lanes lanes;
        for (std::size_t part = 0; part < count; ++part) {
            const std::size_t index = order[m_chosen.oneByOne + (part + phase) % count];
            for (PlanLane& lane : gatherLanes(index, left[part], true, oneWay))
                lanes.push_back(std::move(lane));
            left[part] /= asDouble(axis(index).size);
        }
        phases.push_back(std::move(lanes));
    }
    return phases;
}

std::vector<Lanes> CollectivePlanner::innerScatter(double bytes) const
{
    return m_torus > 0 ? torusScatter(bytes) : std::vector<Lanes>{gatherLanes(m_inner, bytes, true, true)};
}

std::vector<Lanes> CollectivePlanner::starGather(std::size_t index, double bytes, bool scatter) const
{
    if (m_chosen.algorithm != CollectiveAlgorithm::HalvingDoubling)
        return {gatherLanes(index, bytes, scatter, true)};
    std::vector<std::int64_t> distance;
    std::vector<double> sizes;
    for (std::int64_t d = axis(index).size / 2; d >= 1; d /= 2) {
        distance.push_back(d);
        bytes /= 2.0;
        sizes.push_back(bytes);
    }
    if (!scatter) {
        std::ranges::reverse(distance);
        std::ranges::reverse(sizes);
    }
    return {{exchange(index, Partner::Xor, std::move(distance), std::move(sizes))}};
}

std::vector<Lanes> CollectivePlanner::starAllReduce(std::size_t index, double bytes) const
{
    const GroupAxis& along = axis(index);
    const std::int64_t n = along.size;
    switch (m_chosen.algorithm) {
    case CollectiveAlgorithm::Tree: {
        const std::int64_t pieces = pipelineChunks(bytes);
        const double piece = bytes / asDouble(pieces);
        Lanes lanes;
        for (const bool first : {true, false}) {
            PlanLane lane;
            lane.axis = index;
            lane.shape = LaneShape::Tree;
            lane.up = first;
            // Half of the data through each tree: twice, up and down, through the port of who is inside one and leaf of the other.
            lane.stepBytes.assign(static_cast<std::size_t>(pieces), piece / 2.0);
            lane.latencySeconds = 4.0 * asDouble(ceilLog2(n)) * (along.link.latencySeconds + piece / along.link.bytesPerSecond);
            lane.linkBytes = 2.0 * bytes;
            lanes.push_back(std::move(lane));
        }
        return {lanes};
    }
    case CollectiveAlgorithm::InSwitch: {
        // As if to itself: up to the switch and, added, down. Its rate is the adding's.
        PlanLane lane = exchange(index, Partner::Shift, {0}, {bytes * along.link.bytesPerSecond / along.inSwitchBytesPerSecond});
        return {{lane}};
    }
    case CollectiveAlgorithm::HalvingDoubling: {
        const auto core = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
        std::vector<Lanes> phases;
        if (core != n)
            phases.push_back({exchange(index, Partner::FoldIn, {core}, {bytes})});
        std::vector<std::int64_t> distance;
        std::vector<double> sizes;
        double left = bytes;
        for (std::int64_t d = core / 2; d >= 1; d /= 2) {
            distance.push_back(d);
            left /= 2.0;
            sizes.push_back(left);
        }
        auto back = distance;
        auto backSizes = sizes;
        std::ranges::reverse(back);
        std::ranges::reverse(backSizes);
        distance.insert(distance.end(), back.begin(), back.end());
        sizes.insert(sizes.end(), backSizes.begin(), backSizes.end());
        phases.push_back({exchange(index, Partner::Xor, std::move(distance), std::move(sizes))});
        if (core != n)
            phases.push_back({exchange(index, Partner::FoldOut, {core}, {bytes})});
        return phases;
    }
    case CollectiveAlgorithm::RecursiveDoubling: {
        std::vector<std::int64_t> distance;
        for (std::int64_t d = 1; d < n; d *= 2)
            distance.push_back(d);
        std::vector<double> sizes(distance.size(), bytes);
        return {{exchange(index, Partner::Xor, std::move(distance), std::move(sizes))}};
    }
    default: {
        const Lanes lanes = gatherLanes(index, bytes, true, true);
        return {lanes, lanes};
    }
    }
}

/// All-to-all: pairwise, by doubling distances (Bruck), directly over a full mesh, or round a logical ring.
Lanes CollectivePlanner::pairwise(std::size_t index) const
{
    const GroupAxis& along = axis(index);
    const std::int64_t n = along.size;
    if (along.kind == GroupKind::FullMesh)
        return gatherLanes(index, m_bytes, true, true);
    if (along.kind == GroupKind::Scattered) {
        // What still has to travel on: everyone's pieces for the n - 1, n - 2, ... members ahead.
        PlanLane lane;
        lane.axis = index;
        for (std::int64_t step = 1; step < n; ++step)
            lane.stepBytes.push_back(asDouble(n - step) * m_bytes / asDouble(n));
        lane.latencySeconds = asDouble(n - 1) * along.link.latencySeconds;
        lane.linkBytes = asDouble(n - 1) / 2.0 * m_bytes;
        return {lane};
    }
    std::vector<std::int64_t> distance;
    std::vector<double> sizes;
    if (m_chosen.algorithm == CollectiveAlgorithm::Bruck) {
        for (std::int64_t d = 1; d < n; d *= 2) {
            distance.push_back(d);
            sizes.push_back(m_bytes / 2.0);
        }
    } else {
        for (std::int64_t d = 1; d < n; ++d) {
            distance.push_back(d);
            sizes.push_back(m_bytes / asDouble(n));
        }
    }
    PlanLane lane = exchange(index, Partner::Shift, std::move(distance), std::move(sizes));
    if (along.perLeaf > 0 && along.perLeaf < n && along.oversubscription > 1.0) {
        const double leaving = asDouble(n - along.perLeaf) / asDouble(n);
        lane.linkBytes = (asDouble(along.perLeaf - 1) / asDouble(n) + leaving * along.oversubscription) * m_bytes;
    }
    return {lane};
}

/// Every axis at once, as its busiest link rules; each is given the latencies of all.
Lanes CollectivePlanner::torusAllToAll() const
{
    double latency = 0.0;
    Lanes lanes;
    for (std::size_t index = 0; index < m_torus; ++index) {
        const GroupAxis& along = axis(index);
        const std::int64_t k = along.size;
        const double piece = m_bytes / asDouble(k);
        latency += asDouble(along.wraps ? k / 2 : k - 1) * along.link.latencySeconds;
        PlanLane lane;
        lane.axis = index;
        if (along.wraps) {
            // Step s carries what has s hops or more to go; the opposite member of an even ring is reached half and half.
            for (std::int64_t step = 1; step <= k / 2; ++step) {
                const double further = asDouble((k - 1) / 2 - step + 1);
                lane.stepBytes.push_back((std::max(further, 0.0) + (k % 2 == 0 ? 0.5 : 0.0)) * piece);
            }
            lane.linkBytes = std::accumulate(lane.stepBytes.begin(), lane.stepBytes.end(), 0.0);
        } else if (along.opposite) {
            lane.stepBytes = {piece / 2.0};
            lane.linkBytes = piece;
        } else {
            lane.shape = LaneShape::AtOnce;
            lane.partner = Partner::Line;
            for (std::int64_t d = k - 1; d >= 1; --d) {
                lane.distance.push_back(d);
                lane.stepBytes.push_back(piece);
            }
            lane.linkBytes = asDouble(k / 2) * asDouble(k - k / 2) * piece;
        }
        PlanLane down = lane;
        down.up = false;
        lanes.push_back(std::move(lane));
        lanes.push_back(std::move(down));
    }
    for (PlanLane& lane : lanes)
        lane.latencySeconds = latency;
    return lanes;
}

Lanes CollectivePlanner::torusPermute() const
{
    const bool shift = m_request.pattern == PermutePattern::Shift;
    double latency = 0.0;
    for (std::size_t index = 0; index < m_torus; ++index) {
        const GroupAxis& along = axis(index);
        const std::int64_t across = along.wraps ? along.size / 2 : along.size - 1;
        latency += asDouble(shift && along.wraps ? 1 : across) * along.link.latencySeconds;
    }
    Lanes lanes;
    for (std::size_t index = 0; index < m_torus; ++index) {
        const GroupAxis& along = axis(index);
        PlanLane lane;
        lane.axis = index;
        lane.latencySeconds = latency;
        lane.linkBytes = m_bytes;
        if (along.opposite) {
            lane.stepBytes = {m_bytes / 2.0};
        } else if (along.wraps && shift) {
            lane.stepBytes = {m_bytes};
            lanes.push_back(std::move(lane));
            continue;
        } else if (along.wraps) {
            lane.linkBytes = std::max(1.0, asDouble(along.size / 2) / 2.0) * m_bytes;
            lane.stepBytes.assign(static_cast<std::size_t>(along.size / 2), lane.linkBytes / asDouble(along.size / 2));
        } else {
            lane.shape = LaneShape::AtOnce;
            lane.partner = Partner::Line;
            lane.distance = {shift ? 1 : along.size / 2};
            lane.stepBytes = {m_bytes};
            lane.linkBytes = (shift ? 1.0 : asDouble(along.size / 2)) * m_bytes;
            if (shift) {
                PlanLane back = lane;
                back.up = false;
                back.distance = {along.size - 1};
                lanes.push_back(std::move(lane));
                lanes.push_back(std::move(back));
                continue;
            }
        }
        PlanLane down = lane;
        down.up = false;
        lanes.push_back(std::move(lane));
        lanes.push_back(std::move(down));
    }
    return lanes;
}

Lanes CollectivePlanner::starPermute(std::size_t index) const
{
    const GroupAxis& along = axis(index);
    if (along.kind == GroupKind::Scattered && m_request.pattern == PermutePattern::Any) {
        PlanLane lane;
        lane.axis = index;
        lane.stepBytes.assign(static_cast<std::size_t>(along.size / 2), m_bytes);
        lane.latencySeconds = asDouble(along.size / 2) * along.link.latencySeconds;
        lane.linkBytes = asDouble(along.size / 2) * m_bytes;
        return {lane};
    }
    return {exchange(index, Partner::Shift, {m_request.pattern == PermutePattern::Shift ? 1 : along.size / 2}, {m_bytes})};
}

void CollectivePlanner::starBroadcast(std::size_t index)
{
    const GroupAxis& along = axis(index);
    const std::int64_t n = along.size;
    if (along.kind == GroupKind::FullMesh) {
        const Lanes pieces = gatherLanes(index, m_bytes, true, true);
        add(pieces);
        add(pieces);
        return;
    }
    if (m_chosen.algorithm == CollectiveAlgorithm::Binomial) {
        std::vector<std::int64_t> distance;
        for (std::int64_t d = 1; d < n; d *= 2)
            distance.push_back(d);
        std::vector<double> sizes(distance.size(), m_bytes);
        add({exchange(index, Partner::Double, std::move(distance), std::move(sizes))});
        return;
    }
    PlanLane lane;
    lane.axis = index;
    lane.shape = LaneShape::Chain;
    const std::int64_t pieces = pipelineChunks(m_bytes);
    const double piece = m_bytes / asDouble(pieces);
    lane.stepBytes.assign(static_cast<std::size_t>(pieces), piece);
    lane.latencySeconds = asDouble(n - 1) * along.link.latencySeconds + asDouble(n - 2) * piece / along.link.bytesPerSecond;
    lane.linkBytes = m_bytes;
    add({lane});
}

Lanes CollectivePlanner::torusBroadcast() const
{
    const std::int64_t pieces = pipelineChunks(m_bytes);
    std::vector<TorusAxis> axes;
    for (std::size_t index = 0; index < m_torus; ++index)
        axes.push_back({axis(index).size, axis(index).wraps, axis(index).link});
    const double seconds = torusBroadcastSeconds(m_bytes, axes, pieces);
    Lanes lanes;
    for (std::size_t index = 0; index < m_torus; ++index) {
        const GroupAxis& along = axis(index);
        const double share = along.wraps ? 0.5 : 1.0;
        PlanLane lane;
        lane.axis = index;
        lane.shape = LaneShape::Chain;
        lane.stepBytes.assign(static_cast<std::size_t>(pieces), share * m_bytes / asDouble(pieces));
        lane.linkBytes = share * m_bytes;
        lane.latencySeconds = seconds - lane.linkBytes / along.link.bytesPerSecond;
        lanes.push_back(lane);
        if (along.wraps) {
            lane.up = false;
            lanes.push_back(std::move(lane));
        }
    }
    return lanes;
}

CollectivePlan CollectivePlanner::run()
{
    if (m_plan.axes.empty())
        return std::move(m_plan);
    m_chosen = chosenAlgorithm(m_request);
    const bool two = m_network != kNone && (m_inner != kNone || m_torus > 0);
    const std::size_t star = m_network != kNone ? m_network : m_inner;
    const auto addAll = [&](std::vector<Lanes> phases) {
        for (Lanes& lanes : phases)
            add(std::move(lanes));
    };
    double perInner = m_bytes;
    for (std::size_t index = 0; index < m_plan.axes.size() && two; ++index) {
        if (index != m_network)
            perInner /= asDouble(axis(index).size);
    }
    switch (m_request.kind) {
    case CollectiveKind::ReduceScatter:
        if (two || star == kNone)
            addAll(innerScatter(m_bytes));
        if (star != kNone)
            addAll(starGather(star, perInner, true));
        break;
    case CollectiveKind::AllGather:
        if (star != kNone)
            addAll(starGather(star, perInner, false));
        if (two || star == kNone)
            addReversed(innerScatter(m_bytes));
        break;
    case CollectiveKind::AllReduce:
        if (two || star == kNone)
            addAll(innerScatter(m_bytes));
        if (star != kNone)
            addAll(starAllReduce(star, perInner));
        if (two || star == kNone)
            addReversed(innerScatter(m_bytes));
        break;
    case CollectiveKind::AllToAll:
        if (m_torus > 0)
            add(torusAllToAll());
        else if (two)
            add(gatherLanes(m_inner, m_bytes, true, true));
        if (star != kNone)
            add(pairwise(star));
        break;
    case CollectiveKind::Permute: {
        Lanes lanes = m_torus > 0 ? torusPermute() : Lanes{};
        for (const std::size_t index : {m_inner, m_network}) {
            if (index == kNone)
                continue;
            for (PlanLane& lane : starPermute(index))
                lanes.push_back(std::move(lane));
        }
        add(std::move(lanes));
        break;
    }
    case CollectiveKind::Broadcast:
        if (m_network != kNone)
            starBroadcast(m_network);
        if (m_inner != kNone)
            starBroadcast(m_inner);
        if (m_torus > 0)
            add(torusBroadcast());
        break;
    }
    return std::move(m_plan);
}

} // namespace

double CollectivePlan::secondsAlone() const
{
    double seconds = 0.0;
    std::vector<double> latency(axes.size(), 0.0);
    std::vector<double> moving(axes.size(), 0.0);
    for (const PlanPhase& phase : phases) {
        double slowest = 0.0;
        std::vector<double> busiest(axes.size(), 0.0);
        for (const PlanLane& lane : phase) {
            const double bytes = lane.linkBytes / axes[lane.axis].link.bytesPerSecond;
            slowest = std::max(slowest, lane.latencySeconds + bytes);
            latency[lane.axis] = std::max(latency[lane.axis], lane.latencySeconds);
            busiest[lane.axis] = std::max(busiest[lane.axis], bytes);
        }
        seconds += slowest;
        for (std::size_t axis = 0; axis < axes.size(); ++axis)
            moving[axis] += busiest[axis];
    }
    if (!isPipelined)
        return seconds;
    double slowest = 0.0;
    for (std::size_t axis = 0; axis < axes.size(); ++axis)
        slowest = std::max(slowest, latency[axis] + moving[axis]);
    return slowest;
}

CollectivePlan planCollective(const CollectiveRequest& request)
{
    CollectivePlan plan = CollectivePlanner(request).run();
    plan.isPipelined = plan.axes.size() > 1 && plan.phases.size() > 1 && isPipelined(request);
    return plan;
}

} // namespace meshwright::sim
