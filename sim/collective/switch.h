// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/topology.h"

#include <cstdint>

/// Collectives of n devices on a switch: port.bytesPerSecond = w is one port one way, port.latencySeconds = a is a whole step (two
/// links and the switch, cut-through: a message of b bytes takes a + b/w, not a + 2b/w). B = `arrayBytes` as in ring.h. Seconds;
/// 0 for n = 1. Preconditions: n >= 1, B >= 0, w > 0, a >= 0.
///
/// Sources: Thakur, Rabenseifner, Gropp 2005 (see ring.h); P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth
/// broadcast, reduction and scan", Parallel Computing 35(12), 2009 (double binary trees); NVIDIA/nccl (rings, trees, NVLS).
namespace meshwright::sim {

/// (n-1)(a + B/(n w)); a reduce-scatter takes the same.
double switchRingAllGatherSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port);

/// 2(n-1)(a + B/(n w)).
double switchRingAllReduceSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port);

/// Recursive doubling of the shards: q a + (n-1)/n B/w, n = 2^q. Precondition: n is a power of two.
double doublingAllGatherSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port);

/// Recursive halving and doubling: 2 q a + 2 (n-1)/n B/w for n = 2^q; otherwise the r = n - 2^q extras are folded in and out, + 2(a + B/w).
double halvingDoublingAllReduceSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port);

/// Whole arrays exchanged: q (a + B/w). Precondition: n = 2^q.
double recursiveDoublingAllReduceSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port);

/// ceil(log2 n)(a + B/w).
double binomialBroadcastSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port);

/// A chain of h = n-1 hops, m chunks: h a + (h-1+m) B/(m w). Precondition: chunks >= 1.
double chainBroadcastSeconds(double arrayBytes, std::int64_t n, std::int64_t chunks, const LinkSpec& port);

/// What an all-reduce over two binary trees takes at most, for chunks of b bytes: 2 B/w + 4 ceil(log2 n)(a + b/w).
double doubleTreeAllReduceSeconds(double arrayBytes, std::int64_t n, double chunkBytes, const LinkSpec& port);

/// The switch adds up and sends out: a + B/w.
double inSwitchAllReduceSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port);

/// Pairwise exchange: (n-1)(a + B/(n w)).
double pairwiseAllToAllSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port);

/// Bruck: ceil(log2 n)(a + B/(2w)). Precondition: n is a power of two.
double bruckAllToAllSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port);

/// Pairwise on a fat tree whose leaves (of `perLeaf` devices) have 1/`oversubscription` of the bandwidth upward: the (n-r)/n of the
/// data that leave the leaf move at w/o. Preconditions: 1 <= perLeaf <= n, oversubscription >= 1.
double fatTreeAllToAllSeconds(
    double arrayBytes, std::int64_t n, const LinkSpec& port, std::int64_t perLeaf, double oversubscription);

/// A full mesh with a link of w between every two: alpha + B/(n w); a reduce-scatter takes the same.
double directAllGatherSeconds(double arrayBytes, std::int64_t n, const LinkSpec& link);

/// 2(alpha + B/(n w)).
double directAllReduceSeconds(double arrayBytes, std::int64_t n, const LinkSpec& link);

} // namespace meshwright::sim
