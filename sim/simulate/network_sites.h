// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/pipeline_uses.h"
#include "core/support/result.h"
#include "sim/collective/network_cost.h"
#include "sim/network/fidelity.h"
#include "sim/network/step_work.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// Reads `ring` (for every kind) or `all_reduce=ring,all_to_all=pairwise`.
/// Problems: MW1740 an unknown kind or algorithm.
Result<ForcedAlgorithms> parseAlgorithms(std::string_view text);

/// How collectives are timed.
struct NetworkOptions {
    Fidelity fidelity = Fidelity::Fluid;
    ForcedAlgorithms algorithms = {};
    std::stop_token stop = {}; ///< asked: nothing more is simulated, and the problem is `stoppedProblem`
};

/// The collectives of a placed step, and what of the machine has to be looked at to time them.
///
/// Collectives over the same axes are done in order, on a stream of their own; streams share links. A collective is a time of a closed form
/// where nothing else can be on its links: of Fidelity::Closed always, else where no link has a fault and no stream over other mesh
/// axes uses any of its physical axes at the same time (scalars, up to 1 KiB, neither slow others nor are slowed). The others are flows, or messages. Where all are times and no device is slow, one device stands
/// for each stage.
class NetworkSites {
public:
    static constexpr double kMostMessages = 20e6; ///< of a step; past that flows are run instead
    static constexpr double kMostMessageOps = 4e6; ///< ops of all devices together, likewise

    /// All must outlive this. `stageAxis`: of the mesh, over which pipeline stages lie; nothing: one stage.
    NetworkSites(const MeshPlacement& placement, const Faults& faults, const NetworkOptions& options,
        std::optional<std::size_t> stageAxis = {});

    /// Collectives that are added from here on are those of another function of a stage: its devices have no two of its functions under way at once.
    void beginFunction(std::uint32_t stage);

    /// A collective that comes in the step; the same number for the same one.
    std::uint32_t add(OpKind kind, const AxisRefs& axes, std::int64_t payloadBytes);
    std::uint32_t add(const StageTransfer& transfer);

    /// A collective of groups of the machine's devices that need not lie along mesh axes, and messages between devices (pairs: the sender,
    /// then the receiver; all equally far apart). Those of the same `groups` share a stream. Messages are always flows, but with
    /// Fidelity::Closed. Each call makes a site. Precondition: `setKinds` is called before `work`.
    std::uint32_t add(CollectiveKind kind, std::shared_ptr<const DeviceGroups> groups, std::int64_t payloadBytes);
    std::uint32_t addMessages(std::shared_ptr<const DeviceGroups> pairs, std::int64_t payloadBytes);

    /// Which program each device of the machine runs, where that does not follow from stages; kNothing: none. No device stands for others then.
    void setKinds(std::vector<std::uint32_t> kindOfDevice) { m_kindOfDevice = std::move(kindOfDevice); }

    const CollectiveEstimate& estimate(std::uint32_t site) const { return m_sites[site].estimate; }

    /// Collectives of one stream are done in the order in which devices start them. Streams count from 0.
    std::uint32_t streamOf(std::uint32_t site) const { return m_sites[site].stream; }
    std::int64_t collectiveStreams() const; ///< without those of transfers

    std::size_t sites() const { return m_sites.size(); }

    /// After all sites were added: whether it takes its `estimate` whatever else is under way.
    bool isClosed(std::uint32_t site) const { return !isRouted(m_sites[site], m_options.fidelity); }

    /// True when devices stand still while a collective of theirs is under way.
    bool isSynchronous() const;

    /// Null for what is none between stages.
    const StageTransfer* transferOf(std::uint32_t site) const
    {
        return m_sites[site].isTransfer && m_sites[site].own == nullptr ? &m_sites[site].transfer : nullptr;
    }

    /// Who takes part: devices of the machine; of a transfer pairs, the sender, then the receiver.
    DeviceGroups groupsAt(std::uint32_t site) const { return groupsOf(m_sites[site]); }

    /// The mesh's devices of the machine, each with its stage; ascending.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> stagesOfDevices() const;

    /// How fast each device of the machine is; empty: all alike.
    std::vector<double> speeds() const;

    /// Everything of the step but its loops; to be called when all collectives were added. `calls`: of each site, in a step and on one
    /// device; `opsPerDevice` of the longest program.
    /// Problems: MW1740 no collective of a kind could be done as it was forced to, MW1741 a failed link leaves no way.
    Result<StepWork> work(const std::vector<std::int64_t>& calls, std::int64_t opsPerDevice);

    const std::stop_token& stop() const { return m_options.stop; }

    /// After `work`: what the step is to be run as.
    Fidelity fidelity() const { return m_fidelity; }

    /// After `work`: a device of the machine that a device of the work stands for.
    DeviceId machineDevice(std::uint32_t device) const;

private:
    struct Site {
        OpKind kind = OpKind::AllReduce;
        AxisRefs axes;
        StageTransfer transfer;
        bool isTransfer = false;
        std::shared_ptr<const DeviceGroups> own = {}; ///< where axes and stages do not say it
        CollectiveRequest request;
        CollectiveEstimate estimate;
        std::uint32_t stream = 0;
        std::vector<std::uint32_t> functions = {}; ///< that have it, ascending
    };
    struct Stream {
        AxisRefs axes;
        StageTransfer transfer; ///< between which stages, and which way
        bool isTransfer = false;
        std::uint64_t physical = 0; ///< a bit for each axis of the machine that it uses
        std::shared_ptr<const DeviceGroups> own = {};

        friend bool operator==(const Stream&, const Stream&) = default;
    };

    std::uint32_t streamFor(Stream stream);
    std::uint32_t addCollective(Site site);
    std::uint32_t addTransfer(Site site);
    bool contends(const Site& site) const;
    bool canMeet(const Site& one, const Site& other) const;
    std::int64_t stageOf(std::int64_t position) const;
    DeviceGroups groupsOf(const Site& site) const;
    Result<StepSite> routed(const Site& site, double& messagesPerCall) const;
    Result<RoutedCollective> transferRoute(const Site& site) const;
    CollectiveEstimate transferEstimate(const Site& site) const;
    Problems unheeded() const;
    bool isRouted(const Site& site, Fidelity fidelity) const;
    StepWork representatives();
    StepWork wholeMachine() const;
    Result<std::optional<StepWork>> workAs(const std::vector<std::int64_t>& calls);

    const MeshPlacement& m_placement;
    const Faults& m_faults;
    const NetworkOptions& m_options;
    std::optional<std::size_t> m_stageAxis;
    MachineLinks m_links;
    std::vector<DeviceId> m_devices; ///< of the machine, by position in the mesh
    std::vector<std::uint32_t> m_kindOfDevice; ///< see `setKinds`; empty: by stage
    std::vector<Site> m_sites;
    std::vector<Stream> m_streams;
    std::vector<std::uint32_t> m_stageOfFunction{0};
    std::uint64_t m_betweenStages = 0; ///< a bit for each axis of the machine that a way from stage to stage takes
    std::map<std::tuple<OpKind, AxisRefs, std::int64_t>, std::uint32_t> m_known;
    std::map<StageTransfer, std::uint32_t> m_knownTransfers;
    std::map<CollectiveKind, bool> m_heeded; ///< for forced kinds that came: whether the algorithm could be had
    Fidelity m_fidelity = Fidelity::Fluid;
    bool m_represented = false;
    std::unique_ptr<Topology> m_stagesOnly; ///< where representatives are: a device for each stage
    std::unique_ptr<MachineLinks> m_stageLinks;
};

} // namespace meshwright::sim
