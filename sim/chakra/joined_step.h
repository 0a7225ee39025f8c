// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/chakra/trace_set.h"
#include "sim/simulate/network_sites.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// The traces of all ranks as one step: which nodes are the same collective or message, what they are to the network, and the order in which each
/// rank does its own.
///
/// The k-th collective of a group on one rank is the k-th of that group on all its ranks, in the order of TraceSet::order; messages likewise for
/// each sender, receiver and tag. A rank computes one node at a time, its host another; which of those that are ready goes first is found by playing
/// the step with every collective alone on its links, the first that is ready first.
class JoinedStep {
public:
    static constexpr std::size_t kMostSites = 16'384; ///< different collectives and messages
    static constexpr std::size_t kMostFamilies = 1024; ///< groups of which no two could be along one axis of a mesh
    static constexpr double kMostMembers = 50e6; ///< of their groups, all together

    /// Rank r is device r of the placement's machine. Adds to `sites`. All must outlive this.
    JoinedStep(const TraceSet& traces, const MeshPlacement& placement, NetworkSites& sites)
        : m_traces(traces)
        , m_placement(placement)
        , m_sites(sites)
    {
    }

    /// Problems: MW1767 more different collectives than kMostSites, or groups than kMostFamilies; MW1768 ranks that do not agree on a collective, a send without a receive; MW1769 ranks that
    /// wait for each other; MW1784 more time than can be told.
    Result<Done> join();

    /// Something that happens once: a node of a rank, or those of a collective or message that belong together.
    struct Event {
        std::uint32_t site = kNothing; ///< of the sites; kNothing: not in the network
        std::uint32_t meeting = 0;
        std::uint32_t firstMember = 0; ///< into m_members
        std::uint32_t members = 0; ///< nodes; of a message only the sender's
        std::uint32_t receiver = kNothing; ///< of a message: the other node
        Ticks ticks = 0; ///< alone
    };
    const Event& eventOf(std::size_t node) const { return m_events[m_eventOf[node]]; }

    /// What a rank does, in order: a node; with `arrives` the coming of what a Receive node waits for, which may be before it.
    struct Turn {
        std::uint32_t node = 0;
        bool arrives = false;
    };
    const std::vector<Turn>& turns(std::size_t rank) const { return m_turns[rank]; }

    /// The message that a Receive node waits for.
    const Event& messageOf(std::size_t node) const { return m_events[m_messageOf[node]]; }

    std::int64_t collectives() const { return m_collectives; }
    std::int64_t messages() const { return m_messages; }

    /// What the groups of a site are called: "all ranks", "groups of 2: 0,1".
    const std::string& groupsText(std::uint32_t site) const { return m_textOfSite[site - m_firstSite]; }

private:
    /// Groups (or pairs) that do not overlap and lie alike: as axes of a mesh are.
    struct Family {
        std::shared_ptr<DeviceGroups> groups;
        std::vector<bool> taken; ///< devices
        std::vector<GroupAxis> axes; ///< of collectives
        std::vector<std::int64_t> way; ///< of messages: how far apart along each axis of the machine
    };

    struct Families {
        std::vector<Family> all;
        std::map<std::vector<std::int64_t>, std::vector<std::uint32_t>> alike; ///< by size and way
    };

    Result<Done> joinCollectives();
    Result<Done> joinMessages();
    void joinMembers();
    Result<Done> makeSites();
    Result<Done> makeFamilies();
    std::uint32_t familyOf(Families& families, Family alone);
    Result<Done> play();
    std::uint32_t newEvent();
    void take(std::uint32_t event, std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>& meetings);
    std::string textOf(const DeviceGroups& groups) const;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges() const; ///< of events: the second waits for the first

    const TraceSet& m_traces;
    const MeshPlacement& m_placement;
    NetworkSites& m_sites;
    std::vector<Event> m_events;
    std::vector<std::uint32_t> m_eventOf; ///< for each node
    std::vector<std::uint32_t> m_messageOf; ///< for each node: of Receive
    std::vector<std::uint32_t> m_members; ///< nodes, event by event
    std::vector<std::vector<std::uint32_t>> m_eventsOfGroup; ///< in order
    std::vector<std::vector<std::uint32_t>> m_eventsOfChannel; ///< in order
    Families m_groupFamilies;
    Families m_pairFamilies;
    std::vector<std::uint32_t> m_familyOfGroup;
    std::vector<std::uint32_t> m_familyOfChannel;
    std::vector<std::string> m_textOfSite;
    std::uint32_t m_firstSite = 0;
    std::vector<std::vector<Turn>> m_turns;
    std::int64_t m_collectives = 0;
    std::int64_t m_messages = 0;
};

} // namespace meshwright::sim
