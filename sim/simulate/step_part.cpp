// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/step_part.h"

#include <fmt/format.h>

#include <array>

namespace meshwright::sim {

std::string StepPart::text() const
{
    constexpr std::array kTexts = {"", "compute", "memory bandwidth", "launch overhead", "", "host link", "pipeline bubble"};
    return kind == Kind::Collective ? fmt::format("{} over {}", opName(op), axes) : kTexts[static_cast<std::size_t>(kind)];
}

} // namespace meshwright::sim
