// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/python/placed_array.h"
#include "core/partition/partition.h"
#include "core/runtime/executor.h"
#include "sim/cost/device_cost.h"
#include "sim/hardware/machine.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::python {

/// A traced function, and the meshes that its shardings name.
struct TracedFunction {
    Function function;
    std::vector<NamedMesh> meshes;
};

/// The machine that a page was written for, and what computing costs on it.
struct SimulatedMachine {
    sim::Machine machine;
    sim::CostOptions cost;

    /// By a name as `--hw` takes it: v3-8, h100x8. Problems: those of the catalogue, `namedChoice`, `buildMachine` and `costOptionsOf`.
    static Result<SimulatedMachine> named(const std::string& name);
};

/// A collective that devices run in one call of a program.
struct CollectiveCall {
    std::string op;
    std::string axes;
    std::string value;
    std::string reason;
    std::int64_t count = 1;
    std::int64_t bytesPerDevice = 0; ///< of one call
};

/// What one call takes of a device's memory, in bytes.
struct MemoryUse {
    std::vector<std::int64_t> arguments; ///< of each
    std::vector<std::int64_t> results;
    std::int64_t temporaries = 0; ///< the most that is in use at one time beside them
    std::int64_t onHost = 0; ///< of the host's memory, for what is offloaded
};

/// Operations as XLA counts them: one of each element, a reduction one less than it has operands, the body of a loop once.
/// Source: openxla/xla, xla/service/hlo_cost_analysis.cc.
struct OperationCounts {
    double flops = 0.0;
    double transcendentals = 0.0; ///< exponentials, roots, sines and their like, which are not flops there
};

/// A function compiled for arguments of given places: propagated, partitioned, and scheduled when it is first run.
///
/// What devices do is done once for each different set of pieces: replicas of an argument are one piece, and where no op depends on the device,
/// replicas of a result are computed once.
class Executable : public Work, public std::enable_shared_from_this<Executable> {
public:
    /// Committed arguments lie as they are; the places of others follow from propagation, on the mesh of the committed ones and of the function's
    /// own shardings, else on device 0. `results` are asked for, null: propagation says.
    ///
    /// Problems: those of `propagateAndPartition`; MW1120 committed arguments on different devices.
    static Result<std::shared_ptr<Executable>> compile(
        TracedFunction traced, const std::vector<ArrayPointer>& arguments, const std::vector<PlacementPointer>& results = {});

    /// Asks for a call. The results are committed where an argument is, or where the function has a sharding of its own.
    Result<std::vector<ArrayPointer>> call(std::vector<ArrayPointer> arguments);

    Result<std::vector<Pieces>> run(const std::vector<ArrayPointer>& arguments) override;
    double flops() const override { return m_flops; }

    const std::string& name() const { return m_function.function.name; }
    const std::vector<CollectiveCall>& collectives() const { return m_collectives; }
    const std::vector<PlacementPointer>& argumentPlacements() const { return m_argumentPlacements; }
    const std::vector<PlacementPointer>& resultPlacements() const { return m_resultPlacements; }
    /// As `repeatedAxes` in program_faults.h has them; none for programs that say themselves what devices do.
    const std::vector<std::pair<std::string, std::int64_t>>& repeatedAxes() const { return m_repeatedAxes; }
    const Program& propagated() const { return m_propagated; }
    OperationCounts wholeCounts() const; ///< of the program as it is written
    OperationCounts deviceCounts() const; ///< of what each device does
    std::string text() const; ///< the propagated program
    std::string deviceText() const; ///< what each device does, as `deviceText` of device_text.h has it
    /// By the plan of buffers of a schedule as accelerators have it.
    MemoryUse memory() const;
    /// Of one call there. Problems: those of `simulate`.
    Result<double> secondsOn(const SimulatedMachine& there) const;

private:
    Executable() = default;
    void findPlacements();
    Result<std::vector<Pieces>> runInline(const std::vector<Pieces>& arguments);
    Result<std::vector<Pieces>> runTogether(const std::vector<Pieces>& arguments, std::int64_t devices);

    std::vector<NamedMesh> m_meshes; ///< of the partitioned function
    DeviceFunction m_function;
    Program m_propagated;
    std::vector<PlacementPointer> m_argumentPlacements;
    std::vector<PlacementPointer> m_resultPlacements;
    std::vector<TensorType> m_resultTypes; ///< whole
    std::vector<std::vector<std::size_t>> m_positions; ///< by mesh: its position of the device at each position of the first
    std::vector<CollectiveCall> m_collectives;
    std::vector<std::pair<std::string, std::int64_t>> m_repeatedAxes;
    std::vector<std::size_t> m_argumentAt; ///< of the device's function, by argument: a complex one is two there, its parts
    std::vector<std::size_t> m_resultAt;
    bool m_isCommitted = false;
    bool m_dependsOnDevice = true;
    double m_flops = 0.0;
    std::map<std::int64_t, std::shared_ptr<LoadedFunction>> m_loaded; ///< by the number of devices
};

} // namespace meshwright::python
