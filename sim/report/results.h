// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/prove/prove.h"
#include "core/support/result.h"
#include "core/support/table.h"
#include "core/train/trainer.h"
#include "sim/compare/comparable.h"
#include "sim/simulate/simulation.h"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

/// A simulated study as results name it.
struct SimulatedStudy {
    std::string name; ///< of the study
    std::string file;
    Mesh mesh;
    std::string collectiveCost; ///< id of the cost by which collective sequences were chosen
    Simulation simulation;
    std::vector<LiveValue> liveAtPeak;
    std::vector<ComparedArray> arrays = {}; ///< as they lie on the mesh; empty where nobody asked for them
    double wallSeconds = 0.0; ///< that simulating took; measured
    std::shared_ptr<const Proof> proof = {}; ///< of its device program; null: nobody asked
};

/// What headings call it: the study's name, or else its file's without the folder.
std::string titleOf(const SimulatedStudy& study);

/// What results say of a proof: its headline with the time it took, and where there is none, what stands in the way.
std::string proofText(const Proof& proof);

/// The same as a JSON object: {"proved", "ops", "devices", "functions", "obstacle"}. Without the time, so that equal input gives equal bytes.
std::string proofJson(const Proof& proof);

/// A collective in all results: its op, axes, group, calls, bytes, phase and cause.
nlohmann::ordered_json useJson(const CollectiveUse& use);

/// What a person reads of the same: collective, axes, calls, bytes a device, value, reason.
TextTable collectivesTable(const std::vector<CollectiveUse>& uses);

/// `meshwright.simulation/1`: an object for one study, an array of them for several. Bytes in wall-clock fields apart, equal for equal input.
std::string simulationJson(const std::vector<SimulatedStudy>& studies);

/// What a person reads of one study: the answers first, then where the time goes, the collectives with their causes, the memory.
std::string simulationText(const SimulatedStudy& study);

/// A row for each of several studies.
std::string simulationTable(const std::vector<SimulatedStudy>& studies);
std::string simulationCsv(const std::vector<SimulatedStudy>& studies);

/// `meshwright.training/1`.
std::string trainingJson(const TrainingResult& result);

/// A line of `meshwright.metrics/1`, with a newline at the end: one step.
std::string metricsLine(const TrainingProgress& progress);

/// What a person reads at the end of training.
std::string trainingText(const TrainingResult& result);

} // namespace meshwright::sim
