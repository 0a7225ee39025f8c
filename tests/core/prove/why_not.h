// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/prove/prove.h"

#include <fmt/format.h>

#include <string>

namespace meshwright::tests {

/// The obstacles of a proof, a line each; empty when it is proved.
inline std::string whyNot(const Proof& proof)
{
    std::string text = proof.functions.empty() ? "it has no function\n" : "";
    for (const FunctionProof& function : proof.functions) {
        for (const ProofObstacle& obstacle : function.obstacles)
            text += fmt::format("{} {} {}: {}\n", function.name, obstacle.opName, obstacle.value, obstacle.reason);
    }
    return text;
}

} // namespace meshwright::tests
