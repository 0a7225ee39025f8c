// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"
#include "sim/network/routed_collective.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright::sim {

/// What the devices of a step do, written out: each stage's ops with what they wait for, and who takes part in what. For whoever hands the step
/// on to other programs.
struct StepGraph {
    static constexpr std::int64_t kMostOps = 2'000'000; ///< of one device; a longer step is not written out

    struct Op {
        enum class Kind : std::uint8_t { Compute, Collective, Send, Receive };
        Kind kind = Kind::Compute;
        std::string name;
        Ticks ticks = 0; ///< of computing, on a device of full speed
        bool isHost = false; ///< of computing: the host does it
        double flops = 0.0; ///< of a product
        std::int64_t bytes = 0; ///< of computing: read and written
        std::uint32_t use = 0; ///< into `uses`, but of computing
        std::uint32_t meeting = 0; ///< a number that both ends of a message have
        std::vector<std::uint32_t> after; ///< ops of the same stage that are over when this begins
    };
    struct Use {
        OpKind kind = OpKind::AllReduce;
        std::string axes; ///< of the mesh
        std::int64_t payloadBytes = 0;
        DeviceGroups groups; ///< devices of the machine; of a message pairs: the sender, then the receiver
    };

    std::vector<std::vector<Op>> stages;
    std::vector<Use> uses;
    std::vector<std::uint32_t> devices; ///< of the machine, ascending
    std::vector<std::uint32_t> stageOf; ///< for each of `devices`
    std::vector<double> speed; ///< likewise
    bool tooLong = false; ///< more than kMostOps: nothing was written out
};

struct StageWork;
struct SimulatedCollective;
class NetworkSites;

/// Writes a step out, its loops turn by turn. What waits for something that takes no time waits for what that waits for.
/// `siteOfUse`: of each use.
StepGraph graphOf(const std::vector<StageWork>& stages, const std::vector<SimulatedCollective>& uses,
    const std::vector<std::uint32_t>& siteOfUse, const NetworkSites& sites);

} // namespace meshwright::sim
