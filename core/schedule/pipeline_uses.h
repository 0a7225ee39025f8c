// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// What stages of a pipeline send each other.
enum class StageMessage : std::uint8_t {
    Activations,
    Gradients, ///< of the activations
    SharedGradients, ///< of parameters that several stages have
};

/// A collective of one stage of a pipeline, or what it sends another one, as often as it comes in one step.
struct StageUse {
    std::size_t stage = 0; ///< that does it, or sends it
    std::optional<std::size_t> to = {}; ///< the stage that it is sent to
    CollectiveUse use; ///< its op is not valid
};

/// One message of every device of a stage to its partner in another one, as reports list it. `axis`: of the mesh, over which the stages lie.
CollectiveUse sendUse(StageMessage what, std::int64_t from, std::int64_t to, const std::string& axis, std::int64_t payloadBytes);

/// Bytes that one device of a piece's stage passes on to the piece behind, or with `backward` to the piece before.
/// Precondition: there is such a piece.
std::int64_t bytesPassedOn(const ScheduledProgram& pipeline, std::int64_t piece, bool backward);

/// Bytes that one device of a stage sends its partner in another one of gradients of parameters that both have; 0 where there are none.
std::int64_t sharedGradientBytes(const ScheduledProgram& pipeline, std::int64_t from, std::int64_t to);

/// All collectives of one step of a pipeline, and all that its stages send each other: those of the first stage first, then the messages.
std::vector<StageUse> collectivesOf(const ScheduledProgram& pipeline, const std::string& axis);

} // namespace meshwright
