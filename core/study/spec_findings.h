// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/arrays.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace meshwright {

// What may be wrong with a spec, found once for the checks of studies and for the editor.

/// A problem of a spec (without a place), and the part of the spec that it is about.
struct SpecFinding {
    Problem problem;
    std::size_t dim = 0;
    std::optional<std::size_t> axis; ///< index in the entry; none: the whole entry
};

/// Problems: MW1102 an axis that is none of `names`, MW1103 an axis used twice.
std::vector<SpecFinding> axisFindings(const PartitionSpec& spec, const std::vector<std::string>& names);

/// Problems: MW1101 the spec is longer than the rank. Where it is not, MW1104 a dimension does not divide; `where` (" in phases[0]") says on
/// which mesh. Axes that the mesh lacks do not split.
std::vector<SpecFinding> fitFindings(
    const PartitionSpec& spec, const StudyArray& array, const std::vector<MeshAxis>& mesh, const std::string& where = {});

/// The spec with unknown axes replaced by the nearest known ones, and no axis used a second time.
PartitionSpec withKnownAxes(const PartitionSpec& spec, const std::vector<std::string>& names);

/// The spec without entries beyond the rank, and without the axes that do not divide their dimension on all the meshes.
PartitionSpec withFittingAxes(const PartitionSpec& spec, const Shape& shape, std::span<const std::vector<MeshAxis>> meshes);

/// Into how many pieces a dimension is cut. Precondition: the axes are of checked meshes.
std::int64_t piecesOf(const std::vector<std::string>& axes, const std::vector<MeshAxis>& mesh);

} // namespace meshwright
