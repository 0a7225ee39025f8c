// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/fidelity.h"

namespace meshwright::sim {

const char* fidelityName(Fidelity fidelity)
{
    return fidelity == Fidelity::Closed ? "closed" : fidelity == Fidelity::Fluid ? "fluid" : "message";
}

std::optional<Fidelity> findFidelity(std::string_view name)
{
    for (const Fidelity fidelity : {Fidelity::Closed, Fidelity::Fluid, Fidelity::Message}) {
        if (name == fidelityName(fidelity))
            return fidelity;
    }
    return std::nullopt;
}

} // namespace meshwright::sim
