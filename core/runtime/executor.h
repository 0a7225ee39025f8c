// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/devices/virtual_devices.h"
#include "core/kernels/host_array.h"
#include "core/runtime/faults.h"
#include "core/schedule/schedule.h"
#include "core/timeline/timeline.h"

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright {

/// How often devices ran a collective, and what it moved, as they counted it themselves.
struct CountedCalls {
    OpId op;
    std::int64_t calls = 0; ///< of one device
    std::int64_t totalPayloadBytes = 0; ///< of all calls
};

class RendezvousTable;
struct Recorded;
struct RecordedInstruction;

/// Where a function runs.
struct LoadPlace {
    std::vector<std::int64_t> devices
        = {}; ///< the virtual device of each position of the first mesh; empty: position k is device k
    std::shared_ptr<RendezvousTable> meeting = {}; ///< shared with functions whose collectives meet this one's; null: its own
};

/// A scheduled function on virtual devices. The device at position k of the first mesh is virtual device k. Every device has one arena of
/// exactly the plan's bytes, in which all values lie where the plan puts them; arguments and results stay there between runs, and a donated
/// result is in the place of its argument after a run, ready for the next one.
///
/// In a job of several processes (`VirtualDevicesOptions::ranks`) each of them loads the same functions in the same order, has the memory of its
/// own devices, and calls what follows together with the others; what ends the job shows in `Ranks::failure`.
class LoadedFunction {
public:
    /// Copies the schedule. `devices` must outlive the loaded function.
    ///
    /// Problems: MW1501, MW1502 as `checkRunnable`; MW1510 the meshes do not fit the devices; MW1511 a collective's layouts do not fit its
    /// groups; MW1512 an argument, a result or an op whose part depends on the device has no layout; MW1521 there is no memory for the arenas.
    static Result<std::unique_ptr<LoadedFunction>> load(
        const ScheduledFunction& scheduled, std::vector<NamedMesh> meshes, VirtualDevices& devices, LoadPlace place = {});
    ~LoadedFunction();

    const ScheduledFunction& scheduled() const;
    const Function& function() const { return scheduled().device.function; }
    std::int64_t deviceCount() const;

    /// Bytes of one device's arena; the devices have as many each.
    std::int64_t arenaBytes() const { return scheduled().buffers.arenaBytes; }

    /// How much of their arenas the devices have used so far, counted instruction by instruction at the addresses that these use; the most of all
    /// devices, up to the alignment of buffers. After a run it equals the plan's `arenaBytes`.
    std::int64_t highWaterBytes() const;

    // ---- between runs only

    /// Cuts a whole array and gives every device its piece. Problems: MW1503 not of the argument's type and whole shape.
    Result<Done> writeArgument(std::size_t argument, const HostArray& whole);

    /// Puts the whole array together again, of equal pieces (see `replicasAgree`) the first device's. Values of arguments and results only.
    HostArray readArgument(std::size_t argument) const;
    HostArray readResult(std::size_t result) const;

    /// The distinct pieces of an argument, and for each the devices that hold it.
    std::map<IndexBox, std::vector<std::int64_t>> piecesOfArgument(std::size_t argument) const;

    HostArray readArgumentPiece(std::size_t argument, std::int64_t device,
        Ranks::Readers readers = Ranks::Readers::First) const; ///< of several processes the readers get it
    void writeArgumentPiece(std::size_t argument, std::int64_t device, const HostArray& piece);

    /// Lets an argument or a result of one device, with all that is made in its place, lie elsewhere than in the arena: 64-byte aligned memory of
    /// its local type. Also between calls of `runOn`, by the device itself.
    void placeArgument(std::size_t argument, std::int64_t device, std::byte* at);
    void placeResult(std::size_t result, std::int64_t device, std::byte* at);

    /// True when all devices that hold the same piece of a result hold the same bits.
    bool replicasAgree(std::size_t result) const;

    /// Brings an array that another function holds (one of its arguments or results) into the layout of an argument of this one, piece by
    /// piece, also between different meshes over the same virtual devices. Returns how many bytes changed their device.
    /// Problems: MW1503 the arrays differ in type or whole shape, MW1507 `stop` was asked for (heeded between devices).
    Result<std::int64_t> copyFromArgument(
        std::size_t argument, const LoadedFunction& from, std::size_t sourceArgument, const std::stop_token& stop = {});
    Result<std::int64_t> copyFromResult(
        std::size_t argument, const LoadedFunction& from, std::size_t sourceResult, const std::stop_token& stop = {});

    // ---- running

    struct RunOptions {
        bool record = false; ///< keep times, for the timelines
        bool keep = false; ///< of what is recorded, for `typicalTimeline` too
        std::stop_token stop = {};
        const FaultOptions* faults = nullptr; ///< what to look out for and what is to go wrong; null: nothing
        std::int64_t step = -1; ///< of the training, for faults and what is said of them; negative: none
    };

    /// Runs the function once on all devices. A stop ends it between two instructions, or within a long one; the arrays are undefined then.
    /// Problems: as `VirtualDevices::run`; MW1505; MW1508 and MW1521 with the op that something was thrown in; MW1523 a value that is not finite.
    Result<Done> run(const RunOptions& options);
    Result<Done> run() { return run(RunOptions{}); }

    /// The same in parts, for whoever has several functions on the same virtual devices: `begin`, then within one `VirtualDevices::run`
    /// `runOn` from each of this function's devices (virtual device numbers), as often as wanted, then `end` with what the run gave.
    void begin(const RunOptions& options);
    Result<Done> runOn(std::int64_t virtualDevice);
    void end(bool complete);

    /// Calls and payload of every collective in all complete runs, as the first device counted them; program order.
    std::vector<CountedCalls> countedCalls() const;

    /// What one device has recorded in this run so far; what it did in the last complete recorded run; and what instructions are called.
    std::size_t recordCount(std::int64_t device) const;
    const std::vector<Recorded>& records(std::int64_t device) const;
    const std::vector<RecordedInstruction>& recordedInstructions() const;

    /// What happened in the last complete recorded run. Rows: "compute" and "collectives" of every device; empty when none was recorded, and
    /// on all but the first of several processes.
    Timeline measured() const;

    /// The last recorded run as if each device had its own core: each instruction takes the CPU time that it took, a collective begins
    /// when the last member of its group has started it and its stream is free on all of them, lasts as long as its slowest member worked on
    /// it, and goes on beside the computations up to where the schedule has it done.
    Timeline virtualTimeline() const;

    /// The same of a step that none was, but that the last kept runs have in common: each instruction of each device takes the
    /// quarter point of the times that it took in them (up to kTypicalRuns, fewer of very long ones). What disturbed single runs, which
    /// only adds to them, is not in it. Empty when none was kept.
    Timeline typicalTimeline() const;
    static constexpr std::size_t kTypicalRuns = 256;

    /// By device: the records of the last complete recorded run, with the times of a typical one where runs were kept.
    std::vector<std::vector<Recorded>> typicalRecords() const;

private:
    class Implementation;
    explicit LoadedFunction(std::unique_ptr<Implementation> implementation);
    std::unique_ptr<Implementation> m_implementation;
};

} // namespace meshwright
