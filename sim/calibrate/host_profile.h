// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// A measured time for a size in bytes.
struct SizedTime {
    double bytes = 0.0;
    double seconds = 0.0;
};

/// What takes time on this computer. Bytes: the first is what any byte takes, Far how much more one that has left the core's own cache, Memory how
/// much more again one that has left all of them.
enum class HostCost : std::uint8_t {
    PassStart, ///< an element-wise pass: to begin it
    PassOp, ///< an op on a tile of 1024 elements
    PassSimple, ///< an element of an addition and its like
    PassDivide, ///< of a division or a root
    PassExp, ///< of an exponential or a tanh
    PassMath, ///< of a logarithm and its like
    PassSpread, ///< of a broadcast
    PassByte,
    PassFar,
    PassMemory,
    ReduceStart,
    ReduceRow, ///< up to 256 elements, one after the other, that make one
    ReduceRowElement, ///< of a sum
    ReduceRowOther, ///< of a maximum and its like
    ReduceRowTail, ///< of the last, incomplete vector of a row
    ReduceColumnCall, ///< a row of up to 512 columns that is added to the others
    ReduceColumnElement,
    ReduceTurned, ///< an element that is brought to another place before
    ReduceByte,
    ReduceFar,
    ReduceMemory,
    ProductStart,
    ProductPart, ///< each further product of a batch
    ProductFlop, ///< those of whole register tiles
    ProductCopied, ///< an element of an operand that is packed as it lies
    ProductTurned, ///< one that is packed across its rows
    ProductResult, ///< an element of the result, for each stretch of terms
    ProductEdge, ///< one in an incomplete register tile
    ProductFar,
    ProductMemory,
    NarrowStart, ///< a product of operands that are rounded to 16 bits
    NarrowPart,
    NarrowFlop,
    NarrowElement, ///< of an operand
    NarrowResult,
    NarrowFar,
    NarrowMemory,
    MoveStart, ///< a transposition, a slice, a gather: to begin it
    MoveRow, ///< elements that stay neighbours
    MoveFill, ///< an element of padding, or under it
    MoveElement, ///< one that changes its neighbours
    MoveFound, ///< a row that an index names
    MoveAdded, ///< an element that is added where an index says
    MoveByte,
    MoveFar,
    MoveMemory,
    MeetStart, ///< a collective, once its devices have met
    MeetMember, ///< a device of the group whose memory is read or written
    MeetCombine, ///< one that adds up, to begin it
    MeetUpdate, ///< one that goes on with the sum, likewise
    MeetTile, ///< up to 256 elements of one device that are added to the others'
    MeetRow, ///< elements that are taken over together
    MeetByte,
    MeetFar,
    MeetMemory,
    WaitShare, ///< a second of computing: how much longer the slowest device takes
    WaitMeeting, ///< a collective
};
inline constexpr std::size_t kHostCosts = 57;
using HostCosts = std::array<double, kHostCosts>; ///< seconds, or amounts, of each

/// "pass_start", "product_flop" ..: as a profile calls them.
const char* hostCostName(HostCost cost);

/// What a small training that is always the same takes (see HostReference): seconds of a device in a step. 0: not known.
struct HostSpeed {
    double productSeconds = 0.0;
    double otherSeconds = 0.0;
};

/// What this computer does, as its virtual devices see it: CPU time of one device while as many as there are permits compute. A profile file is a
/// hardware file (`meshwright_hardware: 1`, as JSON, so that a study may name it as `hardware: {profile: host.json}`) with these figures
/// under `host`.
struct HostProfile {
    std::string name; ///< `this computer, 2 cores`
    int permits = 1; ///< devices that compute at once: the shared pool
    std::vector<std::int64_t> sides; ///< of the grid of products, rising
    std::vector<double> productFlopsPerSecond; ///< [(m * sides + n) * sides + k], of one device, all > 0
    double aloneFlopsPerSecond = 0.0; ///< of a large product while nothing else runs
    double kernelSeconds = 0.0; ///< to start one
    std::vector<SizedTime> streams; ///< element-wise additions: bytes read and written; rising
    HostCosts costs{}; ///< of one each
    HostSpeed reference; ///< while the costs were measured; both > 0
    std::array<double, 2> cacheBytes{
        5e5, 1.6e7}; ///< what else may go through a core before a byte is far, and before it is in memory
    double barrierSeconds = 0.0; ///< wall, `devices` devices meeting once
    int devices = 8; ///< that took part in barrier and collectives
    std::vector<SizedTime> allReduce; ///< payload of a device; CPU time of a device
    std::vector<SizedTime> allGather; ///< bytes of the result
    std::int64_t memoryBytes = 0; ///< that programs can have

    /// FLOP/s of a product, between the points of the grid (in logarithms), as the nearest point outside. Preconditions: sizes >= 1.
    double productRate(double m, double n, double k) const;
};

std::string hostProfileJson(const HostProfile& profile);

/// Problems: MW1711 the file is not a profile of a computer, one of an older version, or a figure is missing or no number above 0; those of `readFile`.
Result<HostProfile> parseHostProfile(std::string_view text, const std::string& file);
Result<HostProfile> readHostProfile(const std::filesystem::path& path);

} // namespace meshwright::sim
