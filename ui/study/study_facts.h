// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/check_spec.h"
#include "core/study/stage_share.h"
#include "sim/hardware/fitting_choice.h"
#include "sim/session/session.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::ui {

/// What the panel shows of one array.
struct ArrayFacts {
    StudyArray array; ///< `meaning` is empty in program files
    Role role = Role::Activation;
    DType dtype = DType::F32;
    std::string spec; ///< as the study writes it, or as it follows from the others; empty: not known
    std::string path; ///< where a spec of its own is written, or would be; empty when no setting can name the array
    bool isOwn = false; ///< the study has a spec for this very array
    std::string givenBy; ///< of other arrays with a spec: what gives it, in words ("the rule for \"*.w\"")
    std::vector<SpecProblem> problems; ///< of a spec of its own
    StageShare share; ///< of a pipeline's stages
    std::optional<Shape> shard; ///< one device's piece of its stage's share, rounded up; not known while the spec is wrong
    std::int64_t copies = 1; ///< devices that hold the same piece

    std::optional<std::int64_t> shardBytes() const
    {
        return shard ? std::optional(elementCount(*shard) * byteSize(dtype)) : std::nullopt;
    }
};

/// What the panel shows: the study as it stands, right or wrong, and what the last analysis found out.
struct StudyFacts {
    sim::StudySource source;
    bool readable = false; ///< the text is a document, so that it can be edited
    bool sizesAreSound = false; ///< of the mesh, the layers and the batch: what is computed from them means something
    bool isCurrent = false; ///< the problems are all there are: those of the analysis of this very source
    Study study; ///< as much as can be read
    std::string
        modelKind; ///< as the study writes it: mlp, transformer or program; `study` has an MLP where it cannot be read. Empty: it names none
    Study shown; ///< its first phase
    std::string meshPath = "mesh"; ///< where the shown mesh is written
    std::shared_ptr<const sim::Machine> machine; ///< null: no hardware, or none that can be
    Problems problems;
    std::vector<ArrayFacts> arrays; ///< inputs, parameters, activations, states, gradients
    std::shared_ptr<const sim::Analysis> built; ///< the last one that knows the layouts; may be null

    /// 0: not known.
    std::int64_t hardwareDevices() const { return machine ? machine->deviceCount() : 0; }
    std::int64_t meshDevices() const;

    /// The first problem on a path or below it: "mesh", "model.mlp.layers". Null when there is none.
    const Problem* findProblem(std::string_view path) const;

    /// Why an array is sharded this way, in a sentence; empty when that is not known.
    std::string reasonOf(const ArrayFacts& array) const;
};

/// Reads the source, which takes about a millisecond, and joins it with what an analysis of it, or of an earlier state, found out.
/// `latest` and `built` may be null; `built` has arrays.
StudyFacts factsOf(const sim::StudySource& source, const std::shared_ptr<const sim::Analysis>& latest,
    const std::shared_ptr<const sim::Analysis>& built, const sim::Catalogue& catalogue);

} // namespace meshwright::ui
