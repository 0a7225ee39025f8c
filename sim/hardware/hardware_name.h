// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/machine.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

/// What the name of a machine says.
struct MachineName {
    ChipMatch match;
    std::string chip; ///< the chip or the instance, as the catalogue has it
    std::optional<std::int64_t> chips = {}; ///< of one slice, or of all hosts, >= 1; nothing: the name does not say
    std::int64_t slices = 1; ///< >= 1
    bool countsCores = false; ///< the name counts cores, two a chip; `chips` does not
    bool isCounted = false; ///< the name has a number; that of an instance alone is one of it
    std::optional<std::int64_t> perHost = {}; ///< chips of one host, where the name counts hosts of a chip
    std::vector<std::int64_t> topology = {}; ///< chips along each axis of one slice, where the name says it
};

/// Reads a machine's name as people write it. The longest part that the catalogue knows is the machine; numbers beside it count chips, or what the word
/// behind them says: `h100`, `h100x64`, `512xH100`, `64 x A100-40GB`, `H100:64`, `1k H100`; `4 nodes of 8 H100` and `4x8 H100` (8 a host), `4 H100 nodes`
/// (whole hosts); `p5.48xlarge x 64` and `one DGX A100` (instances; alone it is one); `v5e-64`, `v5e 64`, `v5e-256x2` and `2 slices of v5e-256`. As Google
/// names them, `v4-16` counts cores, two a chip, `v5e-8x16`, `v5e 4x2` and `v4-8x8x8` are shapes of a slice, and `2 v5e pods` are the largest slices.
/// `2 GB200 racks`: what shares the fast links, where that is a rack.
/// Problems: MW1701 no part is a chip's or instance's name, or a word is not known; MW1914 a number is none, an odd number of cores, or of a
/// pod or rack that has no fixed size.
Result<MachineName> readMachineName(const Catalogue& catalogue, const std::string& name);

/// Whether a text has only words that count what a machine's name says: "4 nodes", "8 GPUs per node", "384".
bool countsOnly(const std::string& text);

/// The most compact slice of so many chips, by the chip's name. Problems: MW1914 there is none.
Result<HardwareChoice> sliceOf(const Catalogue& catalogue, const Chip& chip, const std::string& name, std::int64_t chips);

/// The slice that a name says: of its shape, or the most compact. Precondition: it says how many chips. Problems: MW1914 there is none.
Result<HardwareChoice> sliceOf(const Catalogue& catalogue, const MachineName& name);

/// What is said of a slice that Google does not sell, `10x10 chips of TPU v5e are not a slice that is sold: each side is a power of two`; empty: it is sold, or
/// the chip is not joined in a torus. Sides of a torus of two axes are powers of two, of one of three 1, 2 or multiples of 4.
/// Source: Google Cloud, "TPU versions" (cloud.google.com/tpu/docs, v2 to v6e; from memory, unverified).
std::string unsoldSlice(const Chip& chip, const std::vector<std::int64_t>& topology);

/// The choice that a name in `choice.chip` means (`readMachineName`): the chip, and the most compact slice (or the hosts) of that many chips. A chip's
/// name alone is left as it is; an instance's alone is one instance, unless the choice says how many hosts.
/// Problems: those of `readMachineName`; MW1914 the number of chips or slices is given twice (by name and by topology, slices or hosts), or no slice has it.
Result<HardwareChoice> namedChoice(const Catalogue& catalogue, const HardwareChoice& choice);

/// The machine of a name (`readMachineName`) in the catalogue that comes with Meshwright. Problems: those of `Catalogue::load` and `buildMachine`.
Result<Machine> machineNamed(const std::string& name);

} // namespace meshwright::sim
