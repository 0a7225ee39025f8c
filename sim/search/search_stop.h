// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>

namespace meshwright::sim {

/// Thrown out of the middle of a long computation of the search that nobody needs any more. Whoever began it catches it: it never leaves sim/search.
struct SearchStopped { };

inline void throwIfStopped(const std::stop_token& stop)
{
    if (stop.stop_requested())
        throw SearchStopped{};
}

} // namespace meshwright::sim
