// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/compare/compare.h"

#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// What must not change from A to B: `time>5%`.
struct Gate {
    enum class What : std::uint8_t {
        Any, ///< anything
        Mesh,
        Sharding, ///< an array has another spec, is new or gone; or the mesh is another. Sizes do not count
        Collectives, ///< one is new, gone or changed
        NewCollectives, ///< one is new, or has more calls or bytes
        Bytes, ///< more bytes a device of arrays, or of data in collectives
        Time, ///< a longer step
        Memory, ///< a higher peak
        Fits, ///< it did fit, and does not now
        Problems, ///< a new problem
    };
    What what = What::Any;
    double most = 0.0; ///< of Bytes, Time and Memory: the largest increase that is let pass, as a fraction
    std::string text = {}; ///< as it was given

    friend bool operator==(const Gate&, const Gate&) = default;
};

/// The names of gates, for messages: "any", "sharding" and so on.
std::vector<std::string> gateNames();

/// Reads `sharding,time>5%`. Problems: MW1941 it is not a list of gates, or an empty one, or a limit is not in percent.
Result<std::vector<Gate>> parseGates(std::string_view text);

struct GateResult {
    Gate gate;
    std::vector<std::string> findings; ///< what makes it fail, a sentence each; empty: it passes

    bool passes() const { return findings.empty(); }
};

/// Judges a comparison. Problems: MW1942 a gate is about something that one of the two does not know.
Result<std::vector<GateResult>> judge(const std::vector<Gate>& gates, const Comparison& comparison);

} // namespace meshwright::sim
