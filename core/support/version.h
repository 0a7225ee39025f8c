// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace meshwright {

/// The product's version, from the one line in the top CMakeLists.txt: "0.1.0".
inline constexpr const char* kVersion = MESHWRIGHT_VERSION;

} // namespace meshwright
