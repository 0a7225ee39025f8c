// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "sim/session/session.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright::ui {

/// One shape of the mesh, and what the study takes on it.
struct MeshShape {
    std::vector<MeshAxis> axes; ///< of the mesh; of a pipeline, those inside a stage: its own axis is as long as there are stages
    sim::StudySource source; ///< the study with this mesh
    bool isKnown = false; ///< it was analysed; until then the rest says nothing
    double seconds = 0.0; ///< of a step; 0: it cannot be simulated
    double peakBytes = 0.0;
    bool fits = false;
    std::string why; ///< it cannot be simulated; empty when it can
};

/// The most shapes that are looked at.
inline constexpr std::size_t kMostShapes = 512;

/// All meshes with these axes, in their order, whose sizes multiply to `devices`: 8x1, 4x2, 2x4, 1x8. 64 devices and four axes have 84. At most kMostShapes.
/// Preconditions: devices >= 1, axes is not empty.
std::vector<std::vector<MeshAxis>> allShapes(const std::vector<MeshAxis>& axes, std::int64_t devices);

/// The axes of the mesh that can have another size: all but the one whose length is the number of a pipeline's stages.
std::vector<MeshAxis> shapedAxes(const Study& study);

/// The shapes of a study, none of them analysed. Empty where no axis can have another size, and where the devices are not divisible by the stages.
std::vector<MeshShape> shapesOf(const sim::Analysis& analysis);

/// Analyses the shape as the window analyses studies. False when it was stopped.
bool analyseShape(MeshShape& shape, const sim::Catalogue& catalogue, const std::stop_token& stop);

/// "4x2".
std::string shapeWords(const std::vector<MeshAxis>& axes);

/// The shapes as a lattice: columns by the first axis, of three and more axes rows by the second, the others side by side in a cell; in the colour of
/// the step, from the quickest (blue) to the slowest (red); crossed out what cannot be simulated. Ids are "shape:INDEX". `current` is framed; -1: none.
DisplayList shapesPicture(const std::vector<MeshShape>& shapes, int current, double width, double height);

} // namespace meshwright::ui
