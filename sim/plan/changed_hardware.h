// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/catalogue.h"

#include <string>
#include <string_view>

namespace meshwright::sim {

/// What of a machine is imagined otherwise.
enum class ChangedPart : std::uint8_t {
    Memory, ///< of a device
    Network, ///< between hosts (GPUs), or the links of a slice (TPUs)
};

/// The catalogue of this text with one figure of a chip, or of the instance that it stands in, so many times as large. A chip that has no such figure
/// is left as it is.
/// Problems: those of `Catalogue::parse`. Precondition: factor > 0.
Result<Catalogue> changedCatalogue(std::string_view text, const Chip& chip, ChangedPart part, double factor);

} // namespace meshwright::sim
