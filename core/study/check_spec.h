// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/arrays.h"

namespace meshwright {

/// A problem of a spec's text, and the token that it is about.
struct SpecProblem {
    Problem problem;
    TextRange range; ///< inside the text (the last word for an end that is missing); empty only in an empty text
};

/// What is wrong with the text of a spec for an array (`meaning` may be empty) on a mesh, for whoever edits it.
/// Problems: MW1105 it is not a spec; else MW1102 and MW1103 at the axis; else (on a sound mesh) MW1101 at what is too much, MW1104 at the entry.
std::vector<SpecProblem> checkSpecText(std::string_view text, const StudyArray& array, const std::vector<MeshAxis>& mesh);

/// A spec as it is typed: JAX's, or a sharding in any other notation (`[{"data"}, {}]`, `{devices=[4,1]<=[4]}`, `[Shard(0), Replicate()]`) on this mesh
/// that a spec can say. Problems: MW1105 it is not a sharding, with the column; those of the other notation; MW1161 it has parts of axes or partial
/// sums, which a study's specs have not.
Result<PartitionSpec> parseTypedSpec(
    std::string_view text, const std::vector<MeshAxis>& mesh, const std::vector<DeviceId>& order = {});

/// The nearest spec that `checkSpecText` has nothing against: unknown axes by their nearest names, axes left out that are used twice or do not
/// divide. Nothing when the text is not a spec, or some axis is like no name.
std::optional<std::string> correctedSpec(std::string_view text, const StudyArray& array, const std::vector<MeshAxis>& mesh);

} // namespace meshwright
