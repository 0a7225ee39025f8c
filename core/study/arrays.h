// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/model_array.h"
#include "core/study/study.h"

namespace meshwright {

/// An array of a study's program that a spec may name.
struct StudyArray {
    enum class Kind : std::uint8_t { Parameter, OptimizerState, Gradient, Input, Activation };

    std::string name;
    Kind kind = Kind::Parameter;
    Shape shape;
    std::vector<DimMeaning> meaning; ///< of each dimension; empty in program files
};

/// The arrays of an MLP's or a transformer's training, by the names that `buildMlpTraining` and `buildTransformerTraining` give them; none
/// for program files, and for models whose sizes make none.
/// Order: parameters, optimiser states, gradients, x and y, activations.
std::vector<StudyArray> studyArrays(const Study& study);

/// True when `name` matches `glob`: `*` stands for any characters, dots included, `?` for one.
bool globMatches(std::string_view glob, std::string_view name);

/// True when `glob` names the array: literally, or by a match. Matches reach parameters; the other kinds only where the glob begins with
/// their family in letters (`opt.*`, `grad.layers.0.*`), x, y and scalars never. An array whose dimensions are in another order than those of its
/// family is matched only where its last name is written (`act.layers.*.mixed`).
bool globCatches(std::string_view glob, const StudyArray& array);

/// True for what heads mix: its second dimension is heads, where that of all other activations is the sequence.
bool isInAnotherOrder(const StudyArray& array);

/// True when a rule with this glob and the rule's other conditions catches the array; `mesh` tells the sizes of axes.
bool ruleCatches(const MatchRule& rule, const StudyArray& array, const std::vector<MeshAxis>& mesh);

/// The spec that a rule gives to an array that it catches.
PartitionSpec ruleSpec(const MatchRule& rule, const StudyArray& array, const std::vector<MeshAxis>& mesh);

/// The spec that the study gives to one array.
struct AssignedSpec {
    StudyArray array;
    PartitionSpec spec;
    std::string path; ///< where it is written: "sharding.layers.1.w", "sharding.match[0]", "sharding.rules"
    std::optional<std::size_t> rule; ///< index into the match rules, if one of them decided
    std::vector<LogicalStep> trace = {}; ///< how the logical axis rules decided, if they did
};

/// The specs of those of `arrays` that have one, in their order: an entry of the very name decides, then the first entry whose glob
/// matches, then the first rule that catches the array, then (parameters, x and y, activations) the logical axis rules as Linen applies them.
std::vector<AssignedSpec> assignedSpecs(const Study& study, const std::vector<StudyArray>& arrays);

/// The same of all arrays of the study.
std::vector<AssignedSpec> assignedSpecs(const Study& study);

/// A study's arrays with the specs that it gives them: derived once, for all who build and check one program.
struct StudyArrays {
    std::vector<StudyArray> all; ///< `studyArrays`
    std::vector<AssignedSpec> assigned; ///< `assignedSpecs`

    /// Null when the array has no spec.
    const AssignedSpec* assignedTo(const std::string& name) const;
};

/// Precondition: no problems of `checkStudy` about sizes.
StudyArrays arraysOf(const Study& study);

/// The array, or glob of arrays, that a study's entry of specs is for: "act.layers.1" of "layers.1.out", else what it is called.
std::string arrayOfEntry(const std::string& name);

/// Where the spec of one array is written, or would be: the path of the entry of its very name ("sharding.layers.1.out" for "act.layers.1"),
/// else "sharding." and its name. A spec there decides over globs and rules.
std::string ownSpecPath(const Study& study, const std::string& array);

} // namespace meshwright
