// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/collective/collective.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace meshwright::sim {

/// How the members of a line along one axis send. Members count from 0 in the order of their places.
enum class LaneShape : std::uint8_t {
    Ring, ///< each to the next; the last to the first. What arrives is sent on
    LineGather, ///< no last to first: each sends its own piece, then what arrives
    LineScatter, ///< the same backwards in time: the first sends the pieces of all others, the furthest first; the others pass on
    Chain, ///< pieces from the first member to the last
    Exchange, ///< one message a step to a partner; the next step when this one's message has arrived
    AtOnce, ///< the same without waiting
    Tree, ///< pieces up one of two binary trees to its root and down again
};

/// Whom a member sends to in a step of distance d.
enum class Partner : std::uint8_t {
    Shift, ///< member + d, round the end
    Xor, ///< member xor d
    FoldIn, ///< members from d on to member - d
    FoldOut, ///< the reverse
    Double, ///< members before d to member + d
    Line, ///< member + d, downward member - d, where there is one
};

/// What one line of devices does along one axis, all lines of the group doing the same.
struct PlanLane {
    std::size_t axis = 0; ///< into CollectivePlan::axes
    LaneShape shape = LaneShape::Ring;
    bool up = true; ///< to higher members; of a Tree: the first of the two
    std::vector<double> stepBytes; ///< of each message, in order
    Partner partner = Partner::Shift;
    std::vector<std::int64_t> distance; ///< Exchange, AtOnce: for each step
    double latencySeconds = 0.0; ///< the lane's time when bytes cost nothing
    double linkBytes
        = 0.0; ///< through the busiest link (a hop of the group): the lane alone takes latency + linkBytes / bandwidth
};

/// Lanes that run together; the next phase of a device starts when it has received all that this one brings it.
using PlanPhase = std::vector<PlanLane>;

/// A collective as a schedule: what the fluid and the message fidelities run.
struct CollectivePlan {
    CollectiveKind kind = CollectiveKind::AllReduce;
    std::vector<GroupAxis> axes; ///< of size > 1; the parts of a switch or network are one axis
    std::vector<PlanPhase> phases;
    bool isPipelined = false; ///< a library does all phases at once, piece after piece

    /// Sum over phases of the slowest lane: equal to the closed form of the same request without a library but for rounding. Pipelined: the slowest
    /// axis, whose links carry the bytes of all phases.
    double secondsAlone() const;
};

/// The schedule of the algorithm that `estimateCollective` takes for the request.
CollectivePlan planCollective(const CollectiveRequest& request);

} // namespace meshwright::sim
