// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/text.h"

#include <concepts>

namespace meshwright {

/// "1 device", "16,384 devices": a count with its noun, whose plural ends in s or (batch) es.
std::string counted(std::integral auto count, std::string_view one)
{
    return formatWhole(static_cast<std::int64_t>(count)) + ' ' + std::string(one)
        + (count == 1                 ? ""
                : one.ends_with("ch") ? "es"
                                      : "s");
}

} // namespace meshwright
