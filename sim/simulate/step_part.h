// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"

#include <cstdint>
#include <string>

namespace meshwright::sim {

/// What a part of a step is spent on.
struct StepPart {
    enum class Kind : std::uint8_t { Other, Compute, Memory, Launch, Collective, HostLink, Bubble };
    Kind kind = Kind::Other;
    OpKind op = OpKind::AllReduce; ///< of a collective
    std::string axes = {}; ///< that a collective goes over: "data,model"

    /// "compute", "memory bandwidth", "launch overhead", "all_reduce over data", "host link", "pipeline bubble"; empty: another one.
    std::string text() const;

    /// By the text.
    friend bool operator<(const StepPart& a, const StepPart& b) { return a.text() < b.text(); }
};

} // namespace meshwright::sim
