// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <thread>

namespace meshwright {

/// The cores of this computer, as threads see them; 1 where the system does not say.
inline int coreCount()
{
    return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

} // namespace meshwright
