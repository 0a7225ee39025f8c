// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace meshwright::sim {

/// How much of a link a flow takes when it moves at rate 1, in units of 2^-30: whole numbers, so that sums do not depend on their order
/// and a class of flows weighs exactly as much as its members.
struct LinkUse {
    std::uint32_t link = 0;
    std::int64_t amount = 0; ///< > 0

    friend bool operator==(const LinkUse&, const LinkUse&) = default;
};
inline constexpr double kWholeLink = 1073741824.0;

/// Rates of flows that share links, max-min fair: no flow can be quicker without slowing one that is not quicker than it.
///
/// Progressive filling: all rates grow together; a flow stops at its own limit or when a link that it uses is full. After changes only
/// the flows that are joined to a changed link by links and flows are filled anew.
///
/// Source: D. Bertsekas, R. Gallager, "Data Networks", 2nd edition, section 6.5.2 (the algorithm and that it is max-min fair).
class MaxMinNetwork {
public:
    /// Precondition: capacities > 0 for links that flows use.
    explicit MaxMinNetwork(std::vector<double> capacity);

    /// A flow begins. Its rate is 0 until `settle`. Precondition: limit > 0; each link at most once in `uses`.
    std::uint32_t start(std::span<const LinkUse> uses, double limit);

    /// A flow ends; its number is given to a later one.
    void stop(std::uint32_t flow);

    /// Gives every flow that the changes since the last call may touch its new rate; `changed` then names those whose rate is another.
    void settle();
    std::span<const std::uint32_t> changed() const { return m_changed; }

    double rate(std::uint32_t flow) const { return m_flows[flow].rate; }

    /// How many flows were filled by all calls of `settle`.
    std::int64_t filled() const { return m_filled; }

private:
    struct Node { // one flow on one link
        std::uint32_t flow = 0;
        std::uint32_t link = 0;
        std::uint32_t nextOfFlow = 0;
        std::uint32_t nextOnLink = 0;
        std::uint32_t previousOnLink = 0;
        std::int64_t amount = 0;
    };
    struct Flow {
        double rate = 0.0;
        double newRate = 0.0;
        double limit = 0.0;
        std::uint32_t firstNode = 0;
        std::uint32_t seen = 0; ///< the fill that last met it
        bool frozen = false;
    };
    struct Link {
        double capacity = 0.0;
        double left = 0.0; ///< while filling
        std::int64_t growing = 0; ///< amounts of flows not yet frozen
        std::int64_t stopped = 0; ///< amounts frozen at the level at hand
        std::uint32_t firstNode = 0;
        std::uint32_t seen = 0;
        bool touched = false;
    };

    void touch(std::uint32_t link);
    void collect(std::uint32_t from);
    void fill();
    void freeze(std::uint32_t flow, double level);

    std::vector<Link> m_links;
    std::vector<Flow> m_flows;
    std::vector<Node> m_nodes;
    std::vector<std::uint32_t> m_freeFlows;
    std::vector<std::uint32_t> m_freeNodes;
    std::vector<std::uint32_t> m_touched;
    std::vector<std::uint32_t> m_lonely; ///< started flows that use no link
    std::vector<std::uint32_t> m_componentLinks;
    std::vector<std::uint32_t> m_componentFlows;
    std::vector<std::uint32_t> m_growingFlows;
    std::vector<std::uint32_t> m_changed;
    std::uint32_t m_fill = 0;
    std::int64_t m_filled = 0;
};

} // namespace meshwright::sim
