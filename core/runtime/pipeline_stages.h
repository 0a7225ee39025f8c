// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/runtime/pipeline.h"
#include "core/runtime/pipeline_recording.h"
#include "core/schedule/pipeline_tasks.h"
#include "core/schedule/stage_array.h"

namespace meshwright {

/// The stages of a pipeline with their functions, and the memory of each device: the arrays that the functions of a stage share.
class PipelineStages {
public:
    static constexpr std::size_t kNoArray = static_cast<std::size_t>(-1);

    /// How long a value stays: for good, for a step, or while a microbatch is between its forward and its backward task.
    enum class Kept : std::uint8_t { Always, Step, Passing };

    /// A value that functions of one stage share.
    struct Array {
        StageArray what;
        Kept kept = Kept::Always;
        std::size_t piece = 0; ///< of the pipeline, unless it is always kept
        TensorType local;
        Shape whole;
        TensorSharding sharding;
    };

    /// An argument or a result that lies where an array of the stage does.
    struct Binding {
        bool isResult = false;
        std::size_t index = 0;
        std::size_t array = 0;
    };

    /// A result that is another one, or an argument: it is copied, as both have a place of their own.
    struct Repeated {
        std::size_t from = 0; ///< arrays
        std::size_t to = 0;
    };

    struct StageFunction {
        std::string name;
        std::size_t piece = 0;
        std::unique_ptr<LoadedFunction> loaded;
        std::vector<Binding> bindings;
        std::vector<Repeated> repeated;
    };

    /// What a stage gives another one of the gradient of a parameter that both have, and takes of it.
    struct SharedGradient {
        std::size_t other = 0; ///< stage
        std::size_t given = 0; ///< array
        std::size_t taken = 0; ///< array
        std::int64_t number = 0; ///< of the parameter, among all that are shared
    };

    struct Stage {
        std::vector<NamedMesh> meshes;
        std::vector<std::int64_t> devices; ///< virtual ones, by position
        std::vector<Array> arrays;
        std::vector<StageFunction> functions;
        std::vector<Task> tasks;
        std::vector<Task> forwardTasks;
        std::vector<SharedGradient> shared;

        std::size_t find(const StageArray& what, std::size_t piece) const; ///< kNoArray: there is none
        StageFunction* function(const std::string& name);
        IndexBox boxOf(const Array& array, std::int64_t position) const;
    };

    /// What one virtual device has.
    struct alignas(64) PipelineDevice {
        std::size_t stage = 0;
        std::int64_t position = 0; ///< on the stage's mesh
        std::vector<std::vector<AlignedBytes>> memory; ///< by array of the stage, by slot
        std::shared_ptr<Mailbox> mailbox;
        std::map<MessageTag, VirtualDevices::Place> places; ///< what it waits in, by message
        std::vector<TaskRecord> records; ///< of this run
        std::vector<TaskRecord> completeRecords; ///< of the last recorded run that was not stopped
        LoadedPipeline::Transfers sent; ///< in this run
        LoadedPipeline::Transfers sentInAll; ///< in complete training steps
    };

    PipelineStages(const ScheduledProgram& scheduled, const Mesh& mesh, VirtualDevices& devices);

    /// Problems: those of `LoadedFunction::load`.
    Problems load(const ScheduledProgram& scheduled);

    // ---- arrays; those with a name are what LoadedPipeline has

    struct Where {
        std::size_t stage = 0;
        std::size_t array = 0;
    };

    /// The first stage that has an array; a state that all stages have (a count of steps) is the same on all.
    std::optional<Where> where(const std::string& name) const;
    const Array& arrayAt(const Where& at) const { return m_stages[at.stage].arrays[at.array]; }

    std::map<IndexBox, std::vector<std::int64_t>> piecesOf(const std::string& name) const;
    HostArray readPiece(const std::string& name, std::int64_t device, Ranks::Readers readers) const;
    void writePiece(const std::string& name, std::int64_t device, const HostArray& piece);
    bool writesHere(const std::string& name, std::int64_t device) const;
    HostArray read(const std::string& name) const;
    void writeBatch(const HostArray& x, const HostArray& y);
    double mean(const std::string& name) const;
    HostArray predictions() const;

    /// Of a device of each stage; see `plannedStageBytes`.
    static std::vector<std::int64_t> plannedBytes(const ScheduledProgram& scheduled);

protected:
    bool isHere(const PipelineDevice& device) const { return m_virtual.isHere(numberOf(device)); }
    std::size_t lastPiece() const { return static_cast<std::size_t>(m_shape.pieces() - 1); }
    std::size_t slotOf(const Array& array, std::size_t microbatch) const;
    std::int64_t numberOf(const PipelineDevice& device) const
    {
        return m_stages[device.stage].devices[static_cast<std::size_t>(device.position)];
    }

    PipelineShape m_shape;
    VirtualDevices& m_virtual;
    SlotPlan m_slots;
    std::vector<Stage> m_stages;
    std::vector<PipelineDevice> m_devices; ///< by virtual device

private:
    /// An array of one device, in one of its slots.
    struct Spot {
        std::size_t array = 0;
        std::int64_t device = 0;
        std::size_t slot = 0;
    };

    static std::size_t pieceOf(const ScheduledProgram& scheduled, std::size_t stage, const std::string& function);
    static std::vector<Array> arraysOf(const ScheduledProgram& scheduled, std::size_t stage);
    static std::size_t slotsOf(const Array& array, const PipelineShape& shape, const SlotPlan& slots);

    /// Finds or declares the arrays that a function's arguments and results are.
    void bind(Stage& stage, StageFunction& made) const;
    void makeMemory();

    /// What each stage gives the others of the gradients of parameters that they share.
    void findShared();

    /// Their pieces, without padding.
    std::vector<HostArray> readSpots(const std::vector<Spot>& spots, Ranks::Readers readers) const;

    /// The whole of an array, of some slots, from a stage's devices; of equal pieces the first device's.
    std::vector<HostArray> readWholes(const Stage& stage, std::size_t array, std::size_t slots) const;

    /// The devices that hold what a device of one stage holds of an array: of all stages that have it, so that shared states stay the same.
    std::vector<Spot> spotsOf(const std::string& name, std::int64_t device) const;
    void writeSlot(std::size_t array, std::int64_t device, std::size_t slot, const HostArray& piece);
    void writeInput(const Stage& stage, const StageArray& what, std::size_t piece, const HostArray& whole);
};

} // namespace meshwright
