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
/// Problems: MW1105 it is no spec; else MW1102 and MW1103 at the axis; else (on a sound mesh) MW1101 at what is too much, MW1104 at the entry.
std::vector<SpecProblem> checkSpecText(std::string_view text, const StudyArray& array, const std::vector<MeshAxis>& mesh);

/// The nearest spec that `checkSpecText` has nothing against: unknown axes by their nearest names, axes left out that are used twice or do not
/// divide. Nothing when the text is no spec, or some axis is like no name.
std::optional<std::string> correctedSpec(std::string_view text, const StudyArray& array, const std::vector<MeshAxis>& mesh);

} // namespace meshwright
