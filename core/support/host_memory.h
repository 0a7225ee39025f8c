// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>

namespace meshwright {

/// How many bytes this computer can give to programs without swapping, as its system estimates it; nothing where it does not say.
std::optional<std::int64_t> availableMemoryBytes();

} // namespace meshwright
