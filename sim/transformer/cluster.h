// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/collective/library_time.h"
#include "sim/cost/stack.h"
#include "sim/hardware/chip.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace meshwright::sim {

struct ParallelLayout;

/// Devices and what joins them, as the transformer model sees them.
struct ClusterChoice {
    std::int64_t devices = 1; ///< of all slices and hosts
    std::optional<std::int64_t> fastDomain = {}; ///< GPUs that share the fast links; nothing: the chip's
    std::optional<double> networkBytesPerSecond = {}; ///< between hosts, one way, a device; nothing: the chip's
    bool stagesThroughHost = false; ///< the network's cards cannot read a GPU's memory: every byte is copied to the host's first
    std::vector<std::int64_t> slice = {}; ///< chips along each axis of one slice (TPU); empty: the most compact
    std::int64_t slices = 1;
    std::optional<double> hbmBytes = {}; ///< of a device; nothing: the chip's
};

/// Where the members of a group lie: `inner` of them share fast links, `outer` such parts are joined by the network.
/// On a torus `inner` are those of one slice.
struct RankGroup {
    double inner = 1.0;
    double outer = 1.0;
    double size() const { return inner * outer; }
};

/// How long collectives take, in closed form. B = bytes of the whole array: operand of an all-reduce, result of an all-gather, operand of a
/// reduce-scatter; an all-to-all sends B from each device. Groups that differ elsewhere run at the same time.
///
/// GPUs: sim/collective/library_time.h. TPUs: rings both ways over the axes of the torus that the group spans; slices are joined by their
/// chips' share of DCN. Source of the forms: sim/collective (ring.h, torus.h).
class Cluster {
public:
    Cluster(const Chip& chip, const ClusterChoice& choice, const StackConstants& constants);

    /// The group of `size` ranks, each `stride` devices from the one before.
    RankGroup group(std::int64_t size, std::int64_t stride) const;
    /// The ranks that share the weights of their experts, of `shards` that share those of all else.
    RankGroup expertShards(const ParallelLayout& layout, std::int64_t shards) const;

    double allReduceSeconds(double bytes, const RankGroup& group) const;
    double allGatherSeconds(double bytes, const RankGroup& group) const; ///< a reduce-scatter takes the same
    /// `networkShare` of what would cross the network does.
    double allToAllSeconds(double bytes, const RankGroup& group, double networkShare = 1.0) const;
    /// A message to the device `stride` further.
    double sendSeconds(double bytes, std::int64_t stride) const;

    std::int64_t fastDomain() const { return m_domain; }
    double hosts() const { return m_hosts; }
    double capacityBytes() const { return m_capacityBytes; }

private:
    double axesOf(double size) const;
    double fastSeconds(double bytes, double size) const; ///< of (n-1)/n of the bytes on the fast links
    LibraryGroup libraryGroup(const RankGroup& group) const;

    bool m_torus = false;
    bool m_addsInSwitch = false;
    CollectiveLibrary m_library;
    std::int64_t m_domain = 1;
    double m_hosts = 1.0;
    double m_fast = 1.0; ///< bytes/s of one device, one way; on a torus of one axis, both ways
    double m_network = 1.0;
    double m_fastStep = 1e-6;
    double m_networkStep = 1e-5;
    double m_axes = 1.0;
    double m_sliceDevices = 1.0;
    double m_capacityBytes = 0.0;
};

} // namespace meshwright::sim
