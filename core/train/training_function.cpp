// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/training_function.h"

#include "core/runtime/pipeline.h"
#include "core/schedule/pipeline_tasks.h"
#include "core/schedule/pipeline_uses.h"
#include "core/sharding/shardy_text.h"

#include <algorithm>

namespace meshwright {

namespace {

/// One function that every device runs.
class WholeFunction : public TrainingFunction {
public:
    WholeFunction(std::unique_ptr<LoadedFunction> loaded, const ScheduledStage& stage, const VirtualDevices& devices)
        : m_loaded(std::move(loaded))
        , m_stage(stage)
        , m_devices(devices)
    {
    }

    Result<Done> writeArgument(std::size_t argument, const HostArray& whole) override
    {
        return m_loaded->writeArgument(argument, whole);
    }
    HostArray readArgument(std::size_t argument) const override { return m_loaded->readArgument(argument); }
    HostArray readResult(std::size_t result) const override { return m_loaded->readResult(result); }
    std::map<IndexBox, std::vector<std::int64_t>> piecesOfArgument(std::size_t argument) const override
    {
        return m_loaded->piecesOfArgument(argument);
    }
    HostArray readArgumentPiece(std::size_t argument, std::int64_t device, Ranks::Readers readers) const override
    {
        return m_loaded->readArgumentPiece(argument, device, readers);
    }
    bool writesHere(std::size_t, std::int64_t device) const override { return m_devices.isHere(device); }
    void writeArgumentPiece(std::size_t argument, std::int64_t device, const HostArray& piece) override
    {
        m_loaded->writeArgumentPiece(argument, device, piece);
    }
    std::string layoutText(std::size_t argument) const override
    {
        const Function& function = m_loaded->function();
        return shardyText(*function[function.arguments()[argument]].sharding, m_stage.mesh());
    }
    Result<std::int64_t> copyFromArgument(
        std::size_t argument, const TrainingFunction& from, std::size_t sourceArgument, const std::stop_token& stop) override
    {
        if (const auto* other = dynamic_cast<const WholeFunction*>(&from))
            return m_loaded->copyFromArgument(argument, *other->m_loaded, sourceArgument, stop);
        return TrainingFunction::copyFromArgument(argument, from, sourceArgument, stop);
    }
    Result<std::int64_t> copyFromResult(
        std::size_t argument, const TrainingFunction& from, std::size_t sourceResult, const std::stop_token& stop) override
    {
        return m_loaded->copyFromResult(argument, *static_cast<const WholeFunction&>(from).m_loaded, sourceResult, stop);
    }
    Result<Done> run(const LoadedFunction::RunOptions& options) override { return m_loaded->run(options); }
    std::int64_t arenaBytes() const override { return m_loaded->arenaBytes(); }
    std::vector<CountedCollective> collectives() const override
    {
        return countedCollectives(m_loaded->scheduled().device, m_stage.mesh(), m_loaded->countedCalls());
    }
    Timeline measured() const override { return m_loaded->measured(); }
    Timeline virtualTimeline() const override { return m_loaded->virtualTimeline(); }
    Timeline typicalTimeline() const override { return m_loaded->typicalTimeline(); }

private:
    std::unique_ptr<LoadedFunction> m_loaded;
    const ScheduledStage& m_stage;
    const VirtualDevices& m_devices;
};

/// What a pipeline shows of itself as one of the whole functions.
class PipelinedFunction : public TrainingFunction {
public:
    PipelinedFunction(std::shared_ptr<LoadedPipeline> pipeline, const TrainingPhase& phase, std::string_view name)
        : m_pipeline(std::move(pipeline))
        , m_phase(phase)
        , m_function(*phase.program.find(name))
    {
    }

    Result<Done> writeArgument(std::size_t argument, const HostArray& whole) override
    {
        m_written[argumentName(argument)] = whole;
        return Done{};
    }
    HostArray readArgument(std::size_t argument) const override { return m_pipeline->read(argumentName(argument)); }
    HostArray readResult(std::size_t result) const override
    {
        const std::string& name = m_function.resultNames[result];
        if (name == "predictions")
            return m_pipeline->predictions();
        if (name == "loss" || name == "accuracy")
            return HostArray::filled(m_function[m_function.results()[result]].type, m_pipeline->mean(name));
        const auto donation = std::find_if(m_function.donations.begin(), m_function.donations.end(),
            [result](const Donation& other) { return other.result == result; });
        return m_pipeline->read(donation != m_function.donations.end() ? argumentName(donation->argument) : name);
    }
    std::map<IndexBox, std::vector<std::int64_t>> piecesOfArgument(std::size_t argument) const override
    {
        return m_pipeline->piecesOf(argumentName(argument));
    }
    HostArray readArgumentPiece(std::size_t argument, std::int64_t device, Ranks::Readers readers) const override
    {
        return m_pipeline->readPiece(argumentName(argument), device, readers);
    }
    bool writesHere(std::size_t argument, std::int64_t device) const override
    {
        return m_pipeline->writesHere(argumentName(argument), device);
    }
    void writeArgumentPiece(std::size_t argument, std::int64_t device, const HostArray& piece) override
    {
        m_pipeline->writePiece(argumentName(argument), device, piece);
    }
    std::string layoutText(std::size_t argument) const override
    {
        return shardyText(m_pipeline->layoutOf(argumentName(argument)), wholeMesh(m_phase));
    }
    Result<std::int64_t> copyFromArgument(
        std::size_t argument, const TrainingFunction& from, std::size_t sourceArgument, const std::stop_token& stop) override
    {
        if (sharesWith(from))
            return std::int64_t{0};
        return TrainingFunction::copyFromArgument(argument, from, sourceArgument, stop);
    }
    Result<std::int64_t> copyFromResult(std::size_t, const TrainingFunction& from, std::size_t, const std::stop_token&) override
    {
        assert(sharesWith(from)); // "init" has put it in its place
        static_cast<void>(from);
        return std::int64_t{0};
    }
    Result<Done> run(const LoadedFunction::RunOptions& options) override
    {
        if (m_function.name == "init")
            return m_pipeline->initialise(m_written, options.stop);
        m_pipeline->writeBatch(m_written.at("x"), m_written.at("y"));
        if (m_function.name == "evaluate")
            return m_pipeline->runForward(options);
        Result<Done> done = m_pipeline->run(options);
        m_runs += done ? 1 : 0;
        return done;
    }
    std::int64_t arenaBytes() const override { return std::ranges::max(plannedStageBytes(m_phase.scheduled)); }
    std::vector<CountedCollective> collectives() const override
    {
        std::vector<CountedCollective> collectives;
        for (const LoadedPipeline::Counted& counted : m_pipeline->countedCalls()) {
            const ScheduledStage& stage = m_phase.scheduled.stages[counted.stage];
            const auto& tasks = m_phase.scheduled.tasks;
            const auto task = std::ranges::find(tasks, counted.function, &Task::function);
            const bool isOnce = task != tasks.end() && isOncePerStep(task->kind);
            for (CountedCollective& one : countedCollectives(stage.find(counted.function)->device, stage.mesh(), counted.calls)) {
                one.use.count *= isOnce ? 1 : m_phase.scheduled.pipeline.microbatches;
                one.stage = counted.stage;
                collectives.push_back(std::move(one));
            }
        }
        std::vector<LoadedPipeline::Transfers> sent = m_pipeline->transfers();
        if (sent.front().norms > 0 && m_phase.scheduled.pipeline.stages > 1)
            collectives.push_back(sharedNorm(sent.front().norms));
        for (std::size_t stage = 0; stage < sent.size(); ++stage) {
            for (const auto what : {StageMessage::SharedGradients, StageMessage::Gradients, StageMessage::Activations}) {
                for (std::size_t to = 0; to < sent.size(); ++to)
                    addSends(collectives, sent[stage].of(what, to), what, stage, to);
            }
        }
        return collectives;
    }
    Timeline measured() const override { return m_pipeline->measured(); }
    Timeline virtualTimeline() const override { return m_pipeline->virtualTimeline(); }
    Timeline typicalTimeline() const override { return m_pipeline->typicalTimeline(); }

private:
    const std::string& argumentName(std::size_t argument) const { return m_function[m_function.arguments()[argument]].name; }

    /// Nothing when nothing was sent.
    void addSends(std::vector<CountedCollective>& collectives, const LoadedPipeline::Transfers::Sent& sent, StageMessage what,
        std::size_t from, std::size_t to) const
    {
        if (sent.messages == 0)
            return;
        CollectiveUse use = sendUse(
            {static_cast<std::int64_t>(from), static_cast<std::int64_t>(to), what, sent.bytes / sent.messages}, stageAxis());
        use.count = m_runs > 0 ? sent.messages / m_runs : 0;
        collectives.push_back({use, sent.messages, sent.bytes, from});
    }

    /// The stages' parts of the gradients' norm, which they add up once a step.
    CountedCollective sharedNorm(std::int64_t calls) const
    {
        const Function& function = m_phase.scheduled.stages.front().find(TaskKind::ShareNorm)->device.function;
        CollectiveUse use;
        use.kind = OpKind::AllReduce;
        use.axes = stageAxis();
        use.count = 1;
        use.groupSize = m_phase.scheduled.pipeline.stages;
        use.payloadBytes = byteSize(function[function.results().back()].type.dtype);
        use.phase = Phase::Update;
        use.cause.value = "grad_norm";
        use.cause.reason = "the norm is of the gradients of all stages";
        return {use, calls, calls * use.payloadBytes, {}};
    }

    /// The name of the axis that a stage has one position of.
    std::string stageAxis() const
    {
        const std::vector<MeshAxis>& whole = wholeMesh(m_phase).axes();
        const std::vector<MeshAxis>& stage = m_phase.scheduled.stages.front().mesh().axes();
        for (std::size_t axis = 0; axis < whole.size(); ++axis) {
            if (whole[axis].size != stage[axis].size)
                return whole[axis].name;
        }
        return "";
    }

    bool sharesWith(const TrainingFunction& from) const
    {
        const auto* other = dynamic_cast<const PipelinedFunction*>(&from);
        return other != nullptr && other->m_pipeline == m_pipeline;
    }

    std::shared_ptr<LoadedPipeline> m_pipeline;
    const TrainingPhase& m_phase;
    const Function& m_function;
    std::map<std::string, HostArray> m_written; ///< keys, or x and y
    std::int64_t m_runs = 0;
};

IndexBox within(const IndexBox& part, const IndexBox& holder)
{
    IndexBox box = part;
    for (std::size_t dim = 0; dim < box.size(); ++dim)
        box[dim] = {part[dim].start - holder[dim].start, part[dim].stop - holder[dim].start};
    return box;
}

} // namespace

Result<std::unique_ptr<TrainingFunction>> TrainingFunction::load(
    const TrainingPhase& phase, std::string_view name, VirtualDevices& devices, std::shared_ptr<LoadedPipeline>& pipeline)
{
    if (!isPipelined(phase.scheduled)) {
        const ScheduledStage& stage = phase.scheduled.stages.front();
        auto loaded = LoadedFunction::load(*stage.find(name), stage.meshes, devices);
        if (!loaded)
            return loaded.error();
        return std::unique_ptr<TrainingFunction>(std::make_unique<WholeFunction>(*std::move(loaded), stage, devices));
    }
    if (pipeline == nullptr) {
        auto loaded = LoadedPipeline::load(phase.scheduled, wholeMesh(phase), devices);
        if (!loaded)
            return loaded.error();
        pipeline = *std::move(loaded);
    }
    return std::unique_ptr<TrainingFunction>(std::make_unique<PipelinedFunction>(pipeline, phase, name));
}

/// Piece by piece, whatever holds them. All processes get each: any of them may have to write it.
Result<std::int64_t> TrainingFunction::copyFromArgument(
    std::size_t argument, const TrainingFunction& from, std::size_t sourceArgument, const std::stop_token& stop)
{
    std::int64_t moved = 0;
    const auto sources = from.piecesOfArgument(sourceArgument);
    for (const auto& [box, holders] : piecesOfArgument(argument)) {
        for (const std::int64_t holder : holders) {
            if (stop.stop_requested())
                return VirtualDevices::interrupted();
            std::optional<HostArray> piece;
            for (const auto& [held, givers] : sources) {
                const IndexBox common = intersection(box, held);
                if (boxElements(common) == 0)
                    continue;
                const bool isOwn = std::find(givers.begin(), givers.end(), holder) != givers.end();
                const HostArray given
                    = from.readArgumentPiece(sourceArgument, isOwn ? holder : givers.front(), Ranks::Readers::All)
                          .slice(within(common, held));
                moved += isOwn ? 0 : given.bytes();
                if (!piece)
                    piece.emplace(TensorType{given.type().dtype, extentsOf(box)});
                piece->assign(within(common, box), given);
            }
            if (piece)
                writeArgumentPiece(argument, holder, *piece);
        }
    }
    return moved;
}

std::vector<CountedCollective> countedCollectives(
    const DeviceFunction& function, const Mesh& mesh, const std::vector<CountedCalls>& counted)
{
    std::vector<CountedCollective> collectives;
    for (const CollectiveUse& use : collectivesOf(function, mesh)) {
        const auto calls = std::ranges::find(counted, use.op, &CountedCalls::op);
        if (calls != counted.end())
            collectives.push_back({use, calls->calls, calls->totalPayloadBytes});
    }
    return collectives;
}

std::size_t argumentIndexOf(const Function& function, std::string_view name)
{
    const auto& arguments = function.arguments();
    const auto found = std::find_if(arguments.begin(), arguments.end(), [&](ValueId id) { return function[id].name == name; });
    assert(found != arguments.end());
    return static_cast<std::size_t>(found - arguments.begin());
}

std::size_t resultIndexOf(const Function& function, std::string_view name)
{
    const auto found = std::find(function.resultNames.begin(), function.resultNames.end(), name);
    assert(found != function.resultNames.end());
    return static_cast<std::size_t>(found - function.resultNames.begin());
}

std::size_t stateCount(const Function& function)
{
    return argumentIndexOf(function, "x");
}

double scalarResultOf(const TrainingFunction& loaded, const Function& function, std::string_view name)
{
    return loaded.readResult(resultIndexOf(function, name)).at(0);
}

HeldArgument heldArgument(const TrainingPhase& phase, std::size_t argument)
{
    const Function& step = *phase.program.find("step");
    const std::string& name = step[step.arguments()[argument]].name;
    const std::string function = isPipelined(phase.scheduled) ? functionOf(TaskKind::Update) : "step";
    for (const ScheduledStage& stage : phase.scheduled.stages) {
        const Function& held = stage.find(function)->device.function;
        for (const ValueId value : held.arguments()) {
            if (held[value].name == name)
                return {&stage, &held[value]};
        }
    }
    assert(false);
    return {};
}

const Mesh& wholeMesh(const TrainingPhase& phase)
{
    return isPipelined(phase.scheduled) ? phase.program.meshes.front().mesh : phase.scheduled.stages.front().mesh();
}

} // namespace meshwright
