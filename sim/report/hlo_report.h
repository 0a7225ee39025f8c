// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/hlo/collectives.h"
#include "sim/collective/collective.h"
#include "sim/hardware/machine.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// Collectives of an HLO module that are alike in kind, groups, bytes, operation and source.
struct HloRow {
    HloCollective collective; ///< the first of them
    std::int64_t count = 0; ///< calls of all of them in a run
    std::int64_t instructions = 0;
    std::string groups; ///< "data" or "data,model"; without axes as the module says it
    std::optional<CollectiveEstimate> estimate
        = {}; ///< of one call, alone on the links of the machine; nothing: no machine is given

    double bytes() const { return static_cast<double>(count) * static_cast<double>(collective.payloadBytes); }
    double seconds() const { return estimate ? static_cast<double>(count) * estimate->seconds : 0.0; }
};

/// The collectives of one dump, the most expensive first: by time where a machine is given, else by bytes.
struct HloReport {
    std::string file;
    HloCollectives module; ///< without its collectives, which are the rows
    std::string machine; ///< empty: none is given
    std::vector<HloRow> rows;

    double bytes() const; ///< of all calls, on a device
    double seconds() const; ///< of all calls, one after the other
    std::vector<std::string> notes() const; ///< what the figures leave open, a sentence each
};

/// Reads a dump and lists its collectives (`hloCollectives`). `machine`: a name such as `v5e-8` or `H100x64`; a chip's name alone is as many
/// of them as the module has devices. Without a mesh the devices are placed as one axis.
/// Problems: those of `readHloModule`, `hloCollectives`, `buildMachine` and `placeMesh`.
Result<HloReport> hloReport(
    std::string_view text, const std::string& file, const std::optional<Mesh>& mesh, const std::string& machine);
Result<HloReport> hloReport(
    std::string_view text, const std::string& file, const std::optional<Mesh>& mesh, const Machine* machine);

/// Collectives of one kind, groups and bytes, of which two dumps have different numbers of calls.
struct HloChange {
    HloRow row; ///< of the dump that has more of them
    std::int64_t before = 0; ///< calls
    std::int64_t after = 0;

    double bytes() const { return static_cast<double>(after - before) * static_cast<double>(row.collective.payloadBytes); }
};

/// What is new, gone or called more or less often, the most bytes first.
std::vector<HloChange> hloChanges(const HloReport& before, const HloReport& after);

/// `jit_step, 8 devices: 27 calls of collectives, 13.5 KiB of data a device`; of two dumps a line each.
std::string hloHeadline(const HloReport& report);
std::string hloHeadline(const HloReport& before, const HloReport& after);

/// What a person reads.
std::string hloText(const HloReport& report);
std::string hloText(const HloReport& before, const HloReport& after);

/// `meshwright.hlo/1`; with two dumps the document of the second, and `before` and `changes`.
std::string hloJson(const HloReport& report);
std::string hloJson(const HloReport& before, const HloReport& after);

} // namespace meshwright::sim
