// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/collective_library.h"
#include "sim/hardware/topology.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

enum class CollectiveKind : std::uint8_t { AllReduce, AllGather, ReduceScatter, AllToAll, Permute, Broadcast };

/// "all-reduce", "all-gather" and so on.
const char* collectiveKindName(CollectiveKind kind);

/// Who sends to whom in a permute.
enum class PermutePattern : std::uint8_t {
    Shift, ///< every device to the next of its group, the last to the first
    Any, ///< not known: as if each half of the group sent all it has to the other half
};

/// How a collective is done. What libraries do by themselves is Automatic; every other one can be forced where `algorithmsFor` has it.
enum class CollectiveAlgorithm : std::uint8_t {
    Automatic, ///< the quickest of those that the library of the hardware has: NCCL rings, trees and in-switch; XLA the torus axes
    Ring, ///< one way round, axis by axis on a torus; between hosts for groups over several
    BothWays, ///< torus: axis by axis, both ways round rings, lines otherwise
    AllAxes, ///< torus: all axes at once, each with its part of the data
    Tree, ///< double binary trees
    InSwitch, ///< the switch adds up
    HalvingDoubling, ///< recursive halving and doubling; groups of a power of two
    RecursiveDoubling, ///< whole arrays exchanged; groups of a power of two
    Direct, ///< everyone to everyone at once over a full mesh, or port to port
    Pairwise, ///< all-to-all in n - 1 exchanges
    Bruck, ///< all-to-all in log2 n exchanges; groups of a power of two
    Chain, ///< a pipelined chain from the root
    Binomial, ///< a binomial tree from the root
};

/// "auto", "ring", "both_ways", "all_axes", "tree", "in_switch" and so on: the words of studies and of the command line.
const char* algorithmName(CollectiveAlgorithm algorithm);

/// The algorithm of this name, `nvls` and `sharp` being in_switch; nothing for another word.
std::optional<CollectiveAlgorithm> findAlgorithm(std::string_view name);

/// How the devices of a group lie along one physical axis.
enum class GroupKind : std::uint8_t {
    Torus, ///< neighbours share a link (a ring when it wraps, else a line)
    Switch, ///< ports of one switch
    FullMesh, ///< a link between every two
    Network, ///< hosts
    Scattered, ///< in no such order: a logical ring whose hops share links
};

struct GroupAxis {
    std::int64_t size = 1; ///< devices of the group along it, >= 1
    GroupKind kind = GroupKind::Torus;
    bool wraps = false; ///< Torus: the group closes to a ring
    LinkSpec link; ///< as the group gets it: a group whose members are s apart has 1/s of the bandwidth and s hops of latency
    double inSwitchBytesPerSecond = 0.0; ///< Switch: as PhysicalAxis
    std::size_t physicalAxis = 0; ///< index into Topology::axes(); of a scattered group the first
    double enteringBytesPerSecond = 0.0; ///< Scattered: all that a device can receive at once
    std::string name; ///< of the physical axis, for texts
    std::int64_t stride = 1; ///< Torus: places between neighbours of the group
    bool opposite
        = false; ///< Torus: two places opposite on a ring; both ways round are as long, and `link` has the bandwidth of both
    std::int64_t perLeaf = 0; ///< Network: hosts of the group on one leaf switch; 0: all
    double oversubscription = 1.0; ///< Network: of the leaves' up-links, >= 1

    friend bool operator==(const GroupAxis&, const GroupAxis&) = default;
};

struct CollectiveRequest {
    CollectiveKind kind = CollectiveKind::AllReduce;
    std::int64_t payloadBytes = 0; ///< per device, >= 0: the operand's local bytes; for an all-gather the result's
    std::vector<GroupAxis> axes; ///< of one group; groups that differ elsewhere run at the same time
    PermutePattern pattern = PermutePattern::Shift;
    CollectiveAlgorithm algorithm
        = CollectiveAlgorithm::Automatic; ///< one that `algorithmsFor` does not list is taken as Automatic
    const CollectiveLibrary* library = nullptr; ///< what moves it, beside the links; null: the links alone count
};

/// Which algorithm an estimate stands for, so that schedules can be made of it.
struct ChosenAlgorithm {
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::Automatic; ///< of the torus or star, or between hosts
    std::vector<std::uint8_t> order = {}; ///< torus: places among the torus axes (size > 1), as a reduce-scatter takes them
    std::size_t oneByOne = 0; ///< torus: so many axes first, the others at once

    friend bool operator==(const ChosenAlgorithm&, const ChosenAlgorithm&) = default;
};

struct CollectiveEstimate {
    double seconds = 0.0;
    std::int64_t wireBytes = 0; ///< what a device sends, forwarding for others in the network not counted; rounded up
    std::string algorithm; ///< `ring, both directions`; `none` for a group of one
    std::string formula; ///< in symbols, then the inputs
    double lowerBoundSeconds = 0.0; ///< no schedule on these links is faster, even while all other groups rest; <= seconds
    ChosenAlgorithm chosen = {};
};

/// The time of one collective when its group has the links for itself; the quickest of the algorithms that the hardware uses:
/// torus axes one after the other or all at once (both directions on rings, lines otherwise); through a switch a ring, double binary
/// trees or, where the switch can, its own adding; full meshes directly; across hosts first inside, then between them.
///
/// Slices joined by a network: as hosts, a slice's torus taking the place of a host's switch.
///
/// With a library `seconds` is what a program waits for: the start of a call, and on switches, full meshes and between hosts the steps and
/// bandwidth of the library's protocols (library_time.h); without one it is the links' alone. The bound is of the links.
///
/// Preconditions: sizes >= 1, payload >= 0, rates > 0; switch axes are not mixed with torus axes; a scattered axis is alone.
/// Source: the formulas of ring.h, torus.h, switch.h and bounds.h.
CollectiveEstimate estimateCollective(const CollectiveRequest& request);

/// Whether it has a library that moves bytes inside hosts and between them at once (library_time.h).
bool isPipelined(const CollectiveRequest& request);

/// The seconds of the above without its texts, for planners that ask a million times.
double collectiveSeconds(const CollectiveRequest& request);

/// Which algorithm the estimate takes.
ChosenAlgorithm chosenAlgorithm(const CollectiveRequest& request);

/// Every algorithm that the group of the request can take, Automatic first.
std::vector<CollectiveAlgorithm> algorithmsFor(const CollectiveRequest& request);

/// Pipelined broadcasts and trees cut the data in so many pieces: of 64 KiB, at most 256.
std::int64_t pipelineChunks(double bytes);

} // namespace meshwright::sim
