// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/network/fidelity.h"
#include "sim/network/network_cost.h"
#include "sim/network/step_work.h"

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

namespace meshwright::sim {

/// Reads `ring` (for every kind) or `all_reduce=ring,all_to_all=pairwise`.
/// Problems: MW1740 an unknown kind or algorithm.
Result<ForcedAlgorithms> parseAlgorithms(std::string_view text);

/// How collectives are timed.
struct NetworkOptions {
    Fidelity fidelity = Fidelity::Fluid;
    ForcedAlgorithms algorithms = {};
};

/// How long collectives of a placed step take, all groups of each at once, at a fidelity. Remembers what it has seen.
///
/// While all groups of a collective lie alike on a machine without faults and nothing else is in flight, flows take what the closed form
/// says (see `Fidelity`), so that only messages, and flows on a machine with faults, are run. Messages are run for up to
/// kMostMessages of them; past that flows are.
class NetworkTimes {
public:
    static constexpr double kMostMessages = 20e6;

    /// All must outlive this.
    NetworkTimes(const MeshPlacement& placement, const Faults& faults, const NetworkOptions& options);

    struct Time {
        CollectiveEstimate estimate; ///< `seconds` at the fidelity
        std::int64_t events = 0; ///< that were handled for it
    };

    /// Problems: MW1741 a failed link leaves no way.
    Result<Time> of(OpKind kind, const AxisRefs& axes, std::int64_t bytesPerDevice);

    /// Problems: MW1740 no collective of a kind could be done as it was forced to.
    Problems unheeded() const;

    /// Groups of devices that do the same, by where slow devices and faulty links are; 1 without any. Looks at the collectives
    /// asked for so far.
    std::int64_t classes() const;

private:
    Result<Time> run(const CollectiveRequest& request, const AxisRefs& axes, CollectiveEstimate estimate);
    DeviceGroups groupsOf(const AxisRefs& axes) const;

    const MeshPlacement& m_placement;
    const Faults& m_faults;
    const NetworkOptions& m_options;
    MachineLinks m_links;
    std::map<std::tuple<OpKind, AxisRefs, std::int64_t>, Time> m_known;
    std::vector<StepSite> m_sites; ///< with faults: what was run
    std::map<CollectiveKind, bool> m_heeded; ///< for forced kinds that came: whether the algorithm could be had
};

} // namespace meshwright::sim
