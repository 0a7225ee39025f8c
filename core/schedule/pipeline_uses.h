// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"

#include <compare>
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
inline constexpr std::size_t kStageMessages = 3;

/// What one device of each of two pipeline stages passes to its partner in the other, and that nothing else on the way need know.
struct StageTransfer {
    std::int64_t from = 0; ///< stage
    std::int64_t to = 0; ///< stage, another one
    StageMessage what = StageMessage::Activations;
    std::int64_t payloadBytes = 0;

    friend auto operator<=>(const StageTransfer&, const StageTransfer&) = default;
};

/// A collective of one stage of a pipeline, or what it sends another one, as often as it comes in one step.
struct StageUse {
    std::size_t stage = 0; ///< that does it, or sends it
    std::optional<std::size_t> to = {}; ///< the stage that it is sent to
    CollectiveUse use; ///< its op is not valid
};

/// "activations", "gradients", "shared gradients".
const char* stageMessageName(StageMessage what);

/// One message of every device of a stage to its partner in another one, as reports list it. `axis`: of the mesh, over which the stages lie.
CollectiveUse sendUse(const StageTransfer& transfer, const std::string& axis);

/// Bytes that one device of a piece's stage passes on to the piece behind, or with `backward` to the piece before.
/// Precondition: there is such a piece.
std::int64_t bytesPassedOn(const ScheduledProgram& pipeline, std::int64_t piece, bool backward);

/// All that the stages pass each other: piece after piece, for each microbatch; then what they share, once in a step.
std::vector<StageTransfer> transfersOf(const ScheduledProgram& pipeline);

/// All collectives of one step of a pipeline, and all that its stages send each other: those of the first stage first, then the messages.
std::vector<StageUse> collectivesOf(const ScheduledProgram& pipeline, const std::string& axis);

} // namespace meshwright
