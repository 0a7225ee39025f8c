// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/partition.h"
#include "core/schedule/schedule.h"
#include "core/study/study.h"
#include "sim/collective/placement.h"
#include "sim/report/report.h"
#include "sim/report/results.h"
#include "sim/report/training_result.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

/// A named array of the step, as it lies on the mesh.
struct ReportedArray {
    std::string name;
    Role role = Role::Activation;
    TensorType type; ///< of the whole array
    TensorSharding sharding;
    std::string spec; ///< "P('data', None)"
    std::string annotation; ///< where the user asked for it; empty: it follows from others
    ValueId value; ///< in the propagated main function; of a pipeline's arrays invalid where that has no such value
    const Mesh* mesh = nullptr; ///< of the devices that have it; null: the whole mesh
    std::vector<std::size_t> stages = {}; ///< of a pipeline with several: that have it
};

/// The study with something changed, simulated to find out whether that is better.
struct ReportTrial {
    enum class Kind : std::uint8_t {
        Mesh, ///< other sizes of the same axes
        Spec, ///< another spec of some arrays
        Batch,
        ProductType, ///< products of bf16 in place of f32
        Run, ///< another recomputation, number of microbatches or order of the pipeline
    };

    Kind kind = Kind::Mesh;
    std::string what; ///< "mesh data=8, model=1"
    std::vector<std::string> settings; ///< that make the change, `path=value`
    std::string whyNot = {}; ///< not empty: it cannot be built or simulated, and the rest means nothing
    std::int64_t batch = 1;
    double stepSeconds = 0.0;
    double exposedSeconds = 0.0;
    std::int64_t peakBytes = 0;
    bool fits = false;
    StepPart boundBy = {};
};

/// All that a report is made of. Pointers are null for what there is not (see sim/session's Analysis); the report says so.
struct ReportInputs {
    std::string studyText;
    std::string studyFile; ///< as it was given; the report keeps the name only
    std::vector<std::string> settings;
    Problems problems;
    const Study* study = nullptr; ///< of the first phase
    std::size_t phases = 1; ///< of the whole study
    const Machine* machine = nullptr;
    const MeshPlacement* placement = nullptr;
    const PartitionedProgram* partitioned = nullptr;
    std::string mainFunction;
    const Proof* proof = nullptr; ///< of the device program, or of the pipeline that it is cut into
    const ScheduledFunction* scheduled = nullptr; ///< null exactly when `partitioned` is
    const ScheduledProgram* pipeline
        = nullptr; ///< its stages and tasks; null: the study has no pipeline, and a device runs `scheduled`
    const SimulatedStudy* simulated = nullptr; ///< only with `machine` and `placement`
    std::vector<ReportedArray> arrays;
    std::vector<ReportTrial> trials;
    std::optional<MeasuredTraining> training;
};

/// True when the training that was measured had other collectives than this step has. Precondition: `training` and `scheduled` are there.
bool measuresAnotherStudy(const ReportInputs& inputs);

/// Puts a report together. The same inputs give the same report; nothing in it depends on the machine or the folder that it is made in, but
/// what training measured.
Report buildReport(const ReportInputs& inputs);

/// `meshwright report wide_mlp.yaml --set mesh.data=8 -o report.html`: words quoted for a POSIX shell where needed. An empty file is "study.yaml".
std::string commandText(
    const std::string& verb, const std::string& file, const std::vector<std::string>& settings, const std::string& rest = {});

/// The settings of a study with some more: those that set the same path as one of `more` are left out.
std::vector<std::string> withSettings(std::vector<std::string> settings, const std::vector<std::string>& more);

} // namespace meshwright::sim
