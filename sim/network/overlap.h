// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>

/// How communication hides behind computation. All times are seconds, >= 0.
namespace meshwright::sim {

/// When two streams that feed each other end.
struct OverlapEnd {
    double communicationSeconds = 0.0; ///< end of the last transfer
    double computationSeconds = 0.0; ///< end of the last computation
    double endSeconds() const { return communicationSeconds > computationSeconds ? communicationSeconds : computationSeconds; }
};

/// Layers whose weights are gathered ahead: transfer i may start when transfer i-1 has ended and computation i - `window` has ended;
/// computation i when computation i-1 and transfer i have. `communication[i]`, `computation[i]` are their lengths.
///   comm_end_i = max(comm_end_{i-1}, comp_end_{i-window}) + A_i;  comp_end_i = max(comp_end_{i-1}, comm_end_i) + C_i.
/// Always max(sum A, sum C) <= end <= sum A + sum C. Preconditions: as many of both, window >= 1.
OverlapEnd prefetchOverlap(std::span<const double> communication, std::span<const double> computation, std::int64_t window);

/// Buckets of gradients: bucket i is ready (computed) at `ready[i]` and takes `reduction[i]`, one after the other:
/// end_i = max(end_{i-1}, ready_i) + R_i. `computationSeconds` is the end of the computation, at or after the last `ready`.
OverlapEnd bucketOverlap(std::span<const double> ready, std::span<const double> reduction, double computationSeconds);

/// A product of `computeSeconds` in k pieces whose operand arrives piece by piece, each `transferSeconds` + `latencySeconds`:
/// C/k + (k-1) max(C/k, x + alpha). Precondition: pieces >= 1.
double collectiveMatmulSeconds(double computeSeconds, std::int64_t pieces, double transferSeconds, double latencySeconds);

/// Computation and communication that start together, when communication takes the share `slowdown` (0 .. 1) of the computing rate
/// while both run: max(comm, comp + slowdown comm).
double slowedOverlapSeconds(double computeSeconds, double communicationSeconds, double slowdown);

/// A pipeline of `stages` p with `microbatches` m, `chunks` v of layers a device, forward f and backward b of one micro-batch on one
/// device (all its chunks): m(f+b) + (p-1)(f+b)/v. The same for GPipe, 1F1B and interleaved 1F1B. Preconditions: all counts >= 1.
double pipelineSeconds(
    std::int64_t stages, std::int64_t microbatches, std::int64_t chunks, double forwardSeconds, double backwardSeconds);

/// The share of that during which a device idles: (p-1)/(v m + p - 1).
double pipelineBubbleShare(std::int64_t stages, std::int64_t microbatches, std::int64_t chunks);

} // namespace meshwright::sim
