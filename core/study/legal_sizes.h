// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright {

/// The largest size that `legalAxisSizes` offers while the number of devices is not known.
inline constexpr std::int64_t kLargestOfferedSize = 1024;

/// The most meshes that `meshFactorisations` lists.
inline constexpr std::size_t kMostFactorisations = 512;

/// The sizes of the axes, multiplied. Precondition: the mesh is sound (`Mesh::create`).
std::int64_t devicesIn(const std::vector<MeshAxis>& axes);

/// The sizes that an axis may take while the others stay as they are, ascending: those that divide what the other axes leave of `devices`, with
/// which every array that the study splits is cut evenly. `devices` counts those of the hardware; 0: not known, then any number up to
/// kLargestOfferedSize that cuts evenly. Never empty: 1 is always among them. Phases do not count, nor do arrays of program files.
/// Precondition: the study has the axis, and its axes are sound (`Mesh::create`).
std::vector<std::int64_t> legalAxisSizes(const Study& study, const std::string& axis, std::int64_t devices);

/// Why a size is not among the legal ones, in a sentence: `"x": dim 0 (batch) of size 96 is not divisible by 5`. Empty when it is.
/// Preconditions: as `legalAxisSizes`.
std::string whyNotAxisSize(const Study& study, const std::string& axis, std::int64_t size, std::int64_t devices);

/// All meshes with the study's axes in their order whose product is `devices` and that cut every array evenly, the largest first axis first: 8x1,
/// 4x2, 2x4, 1x8. At most kMostFactorisations; empty without axes. Preconditions: devices >= 1, the axes are sound.
std::vector<std::vector<MeshAxis>> meshFactorisations(const Study& study, std::int64_t devices);

/// The one of `meshFactorisations` that is nearest to the study's mesh: that changes the fewest axes, those the least, and
/// leaves the fewest with one device. Nothing when there is none.
std::optional<std::vector<MeshAxis>> nearestMesh(const Study& study, std::int64_t devices);

/// Settings that make the axes of `from` those of `to`, which have the same names: `mesh.data=4`. `path` is the mesh's: "mesh", "phases[0].mesh".
std::vector<std::string> meshSettings(
    const std::vector<MeshAxis>& from, const std::vector<MeshAxis>& to, const std::string& path = "mesh");

} // namespace meshwright
