// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/body_collective.h"

#include <optional>

namespace meshwright {

/// A collective that a manual computation's body says, as devices run it: over mesh axes where its groups are those of axes, else between
/// the listed devices. `result` is the shape of one device's result; the cause says that the program asks for it.
CollectiveAttributes loweredCollective(const BodyCollective& collective, const Mesh& mesh, Shape result, std::string value);

/// Why the body of a computation that is manual over `manualAxes` may not hold the collective: it moves data along an axis on which the
/// partitioner places the arrays (MW1262).
std::optional<Problem> crossesAutomaticAxes(
    const BodyCollective& collective, const Op& op, const std::vector<std::int32_t>& manualAxes, const Mesh& mesh);

/// The function with the values of each manual computation's body on the mesh of that computation, where they name no axis and so fit any.
Function withBodiesOnTheirMeshes(Function function);

} // namespace meshwright
