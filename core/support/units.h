// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace meshwright {

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0; ///< bytes
inline constexpr double kSecondsPerDay = 86400.0;

} // namespace meshwright
