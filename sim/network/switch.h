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

/// A reduction and a broadcast: 2 ceil(log2 n)(a + B/w).
double binomialAllReduceSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port);

/// A chain of h = n-1 hops, m chunks, `overheadSeconds` (o) of port time lost for each message: h a + (h-1+m)(o + B/(m w)).
/// Precondition: chunks >= 1.
double chainBroadcastSeconds(
    double arrayBytes, std::int64_t n, std::int64_t chunks, const LinkSpec& port, double overheadSeconds = 0.0);

/// The number of chunks that makes the above least: sqrt((h-1) B/(o w)), rounded to the better neighbour, in 1 .. `most`
/// (`most` when nothing is lost for a message).
std::int64_t bestChainChunks(double arrayBytes, std::int64_t n, const LinkSpec& port, double overheadSeconds, std::int64_t most);

/// What an all-reduce over two binary trees takes at least and at most, for chunks of b bytes: 2 (n-1)/n B/w and
/// 2 B/w + 4 ceil(log2 n)(a + b/w).
struct SecondsRange {
    double least = 0.0;
    double most = 0.0;
};
SecondsRange doubleTreeAllReduceSeconds(double arrayBytes, std::int64_t n, double chunkBytes, const LinkSpec& port);

/// The switch adds up and sends out: a + B/w.
double inSwitchAllReduceSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port);

/// With the switch's help (multicast or adding): a + (n-1)/n B/w; a reduce-scatter takes the same.
double inSwitchAllGatherSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port);

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

/// alpha + B/(n w).
double directAllToAllSeconds(double arrayBytes, std::int64_t n, const LinkSpec& link);

/// g groups of m: rings inside the groups (w_a, a_a), then between them (w_e and a_e, the port of each device):
/// 2(m-1)(a_a + B/(m w_a)) + 2(g-1)(a_e + B/(m g w_e)).
double hierarchicalAllReduceSeconds(
    double arrayBytes, std::int64_t groups, std::int64_t perGroup, const LinkSpec& inner, const LinkSpec& outer);

/// max of 2(m-1)/m B/w_a and 2(g-1)/g B/(m w_e): the bandwidth part of the busier tier, however well the phases overlap.
double hierarchicalAllReduceTierSeconds(
    double arrayBytes, std::int64_t groups, std::int64_t perGroup, const LinkSpec& inner, const LinkSpec& outer);

} // namespace meshwright::sim
