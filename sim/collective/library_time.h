// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/collective_library.h"

#include <string_view>

/// How long a library takes for a collective over groups of GPUs: `inner` devices share fast links, `outer` such hosts are joined by the
/// network, on which every device has its share of the NICs. n = inner * outer, m = inner, g = outer, B = bytes of the whole array (operand of
/// an all-reduce or reduce-scatter, result of an all-gather; of an all-to-all what each device holds), w rates of one device one way. Of the
/// protocols the one that is quickest for B, each with its own step a, network step a_e and share s of the bandwidth:
///
///     ring        start + g (m-1) a + (g-1) a_e + max of (m-1)/m B/(s w) inside and (n-1)/n B/(m s w_e) between hosts: one ring over all
///                 devices for each NIC
///     all-reduce  both steps and bytes twice, the start once; or trees over the hosts: 2 (m-1) a + 2 log2(g) a_e for the steps, and B
///                 (two hosts) or 2 B (more: a host has a parent and, in one of the two trees, two children) over its NICs
///     in switch   start + its own latency + max of B/w_s inside and a tree's bytes between, + 2 log2(g) a_e
///     all-to-all  start + a + 2 a_e + max of (m-1)/n B/w and (n-m)/n B/w_e
///
/// The parts inside and between hosts are pipelined, so the slower rules. Seconds; 0 for a group of one or no bytes.
/// Sources: NVIDIA/nccl src/graph/tuning.cc (the model of latencies and of shares by algorithm and protocol); the figures: catalogue.
namespace meshwright::sim {

struct LibraryGroup {
    double inner = 1.0; ///< >= 1
    double outer = 1.0; ///< >= 1
    double innerBytesPerSecond = 1.0; ///< that a ring reaches
    double innerStepSeconds = 0.0; ///< where the library names none
    double outerBytesPerSecond = 1.0;
    double outerStepSeconds = 0.0;
    double inSwitchBytesPerSecond = 0.0; ///< operand bytes; 0: the switch adds nothing
    bool fullMesh = false; ///< a link of innerBytesPerSecond between every two

    double size() const { return inner * outer; }
};

/// A time and what it is made of, for texts.
struct LibraryTime {
    double seconds = 0.0;
    const char* algorithm = "none"; ///< `ring`, `double binary tree`, `in-switch reduction`, `pairwise`
    std::string_view protocol = {}; ///< of the library; empty: none
};

enum class LibraryAlgorithm : unsigned char { Best, Ring, Tree, InSwitch };

LibraryTime libraryAllReduce(double bytes, const LibraryGroup& group, const CollectiveLibrary& library,
    LibraryAlgorithm algorithm = LibraryAlgorithm::Best);
LibraryTime libraryAllGather(double bytes, const LibraryGroup& group, const CollectiveLibrary& library); ///< and reduce-scatter

/// `networkShare` of what would cross the network does.
LibraryTime libraryAllToAll(double bytes, const LibraryGroup& group, const CollectiveLibrary& library, double networkShare = 1.0);

} // namespace meshwright::sim
