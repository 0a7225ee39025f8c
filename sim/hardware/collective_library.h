// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

/// One way in which a library moves the pieces of a collective: short messages with flags beside the data, long ones with a handshake.
struct CollectiveProtocol {
    std::string name; ///< `LL`, `Simple`
    double bandwidthShare = 1.0; ///< of the links' bandwidth that the protocol reaches, above 0, at most 1
    double stepSeconds = 0.0; ///< of a step between devices that share fast links
    std::optional<double> networkStepSeconds = {}; ///< of a step between hosts; nothing: that of the network
};

/// What the library of a vendor adds to the links: the figures of the catalogue under `collective_libraries`.
struct CollectiveLibrary {
    std::string name; ///< `NCCL`
    double startSeconds = 0.0; ///< of a call: the kernels of all devices start and meet
    std::vector<CollectiveProtocol> protocols = {}; ///< the quickest for the size is taken; empty: the links' own latencies
    double inSwitchSeconds = 0.0; ///< what an all-reduce that the switch adds up takes besides
    std::vector<double> ringShares
        = {}; ///< of a device's bandwidth that rings of 2, 3, ... devices can use where not all pairs have links
    bool reducesAxisByAxis = false; ///< torus: an all-reduce takes one axis after the other, never all at once
    bool synchronous = false; ///< nothing is computed while a collective runs
    double callSeconds = 0.0; ///< a program called from its host and waited for takes so much longer, on one device
    double callSecondsPerDevice = 0.0; ///< and so much more for each further device of the host
    std::string source = {};
};

} // namespace meshwright::sim
