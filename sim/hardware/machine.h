// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/hardware/catalogue.h"
#include "sim/hardware/faults.h"
#include "sim/hardware/topology.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright::sim {

/// "4x2": how the sizes of a topology are written.
std::string sizesText(const std::vector<std::int64_t>& sizes);

/// The hardware that a study asks for. A torus (TPU) needs `topology` and takes `slices`; GPUs take `hosts` and `perHost`.
struct HardwareChoice {
    std::string chip; ///< a key or alias of the catalogue
    std::vector<std::int64_t> topology = {}; ///< chips along each axis of the slice, `{4, 2}`; empty: not given
    std::int64_t hosts = 0; ///< 0: not given, one host
    std::int64_t perHost = 0; ///< chips of one host; 0: not given, as many as share the fast links
    std::int64_t slices = 0; ///< of a torus, each of `topology`; 0: not given, one
};

/// Devices and what joins them, with every figure that a prediction needs.
struct Machine {
    Chip chip;
    HardwareChoice choice;
    Topology topology;
    std::int64_t hbmBytesPerDevice = 0;
    double hbmBytesPerSecondPerDevice = 0.0; ///< peak
    std::vector<std::string> assumptions; ///< where the catalogue has no figure: what was taken, and why; for reports
    Faults faults = {};

    std::int64_t deviceCount() const { return topology.deviceCount(); }

    /// `TPU v5e, 4x2 chips, no wraparound`.
    std::string text() const;
};

/// Operand bytes per second of an all-reduce that the switch adds up, as a share of the port rate of a ring. With 8 GPUs a ring takes
/// 2 * 7/8 B/w = 1.75 B/w and the switch 7/5 B/w: 1.25 times as fast. Measured: 1.29 (H200) and 1.23 (B200) at 8 GiB, 1.14 with 6 of 8
/// GPUs. Source: stas00/ml-engineering, network/README.md (CC BY-SA 4.0).
inline constexpr double kInSwitchShareOfRing = 5.0 / 7.0;

/// Taken where the catalogue has no figure; each use is noted in Machine::assumptions.
inline constexpr double kAssumedIciHopSeconds = 1e-6; ///< as every later TPU
inline constexpr double kAssumedGpuStepSeconds = 3.4e-6; ///< as NVLink's ring step
inline constexpr double kAssumedNetworkStepSeconds = 9.6e-6; ///< as NCCL's network ring step
inline constexpr double kAssumedSliceStepSeconds = 5e-5; ///< through the data centre's network; no measurement is known
inline constexpr double kAssumedRingFraction = 0.78; ///< as A100's
inline constexpr double kAssumedOnChipLinks
    = 6.0; ///< a link between the devices of a chip is worth so many ICI links, as on TPU7x

/// The machine that a choice describes. Devices are numbered as JAX numbers them: on a torus x runs fastest over the chips and the
/// devices of a chip are neighbours, slice by slice; on GPUs host by host.
///
/// Problems: MW1701 unknown chip; MW1703 the topology is absent or its rank is not the chip's; MW1704 a size below 1; MW1705 the slice
/// is larger than the largest; MW1706 hosts given for a torus, or a topology or slices for GPUs or for a single device; MW1707 more than
/// kLargestMesh devices; MW1708 more chips a host than share its fast links; MW1709 the catalogue lacks a figure that is needed.
/// All that apply are reported.
Result<Machine> buildMachine(const Catalogue& catalogue, const HardwareChoice& choice);

} // namespace meshwright::sim
