// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/simulate/simulation.h"
#include "sim/simulate/step_writer.h"
#include "sim/simulate/trace_builder.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// Gives a function's collectives sites and numbers: those of `uses`, to which they are added.
void announce(const DeviceFunction& function, const Mesh& mesh, StepWriter& writer, NetworkSites& sites,
    std::vector<SimulatedCollective>& uses, std::vector<std::uint32_t>& siteOfUse);

/// Writes the tasks of a pipeline's stages.
class PipelineWriter {
public:
    /// The pipeline, which is scheduled with SchedulePolicy::Overlapped, the sites and the cost must outlive the writer. `hostLinkBytesPerSecond`: see StepWriter. `wholes`: functions may be one op, where
    /// a stage's devices all do the same at the same time.
    PipelineWriter(const ScheduledProgram& pipeline, const Mesh& mesh, const std::string& axis, NetworkSites& sites,
        const DeviceCost& cost, double hostLinkBytesPerSecond, bool wholes);

    /// To be called once.
    std::vector<StageWork> write();

    std::vector<SimulatedCollective> uses; ///< that the stages' notes number
    std::vector<std::uint32_t> siteOfUse;
    std::vector<StepWriter::Moments> moments; ///< for each stage: before its first task, and after each

private:
    void add(const Task& task, std::uint32_t number);
    std::int64_t stageOf(std::int64_t piece) const { return piece % m_pipeline.pipeline.stages; }
    std::uint32_t useOf(const StageTransfer& transfer, std::uint32_t site);
    void shareGradients(std::int64_t stage, bool receives);
    void pass(std::int64_t from, std::int64_t to, bool backward, std::size_t microbatch, bool receives);

    const ScheduledProgram& m_pipeline;
    std::string m_axis;
    NetworkSites& m_sites;
    std::vector<std::unique_ptr<StepWriter>> m_writers;
    std::vector<std::map<std::string, const ScheduledFunction*>> m_functions; ///< by stage and name
    std::vector<StageTransfer> m_transfers;
    std::map<StageTransfer, std::uint32_t> m_useOf;
};

} // namespace meshwright::sim
