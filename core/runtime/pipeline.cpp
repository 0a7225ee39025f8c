// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/pipeline.h"

#include "core/devices/clocks.h"
#include "core/runtime/pipeline_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace meshwright {

namespace {

void copyBytes(AlignedBytes& to, const AlignedBytes& from)
{
    if (from.size() > 0)
        std::memcpy(to.data(), from.data(), static_cast<std::size_t>(from.size()));
}

/// "out of microbatch 3".
std::string messageText(const MessageTag& tag)
{
    return fmt::format("{} of microbatch {}", tag.backward ? "gradient" : "activation", tag.microbatch);
}

} // namespace

/// Runs the tasks of each device, and hands on what stages have for each other.
class LoadedPipeline::Implementation : public PipelineStages {
public:
    using RunOptions = LoadedFunction::RunOptions;
    using PipelineStages::PipelineStages;

    Problems load(const ScheduledProgram& scheduled)
    {
        Problems problems = PipelineStages::load(scheduled);
        if (problems.empty())
            namePlaces();
        return problems;
    }

    Result<Done> initialise(const std::map<std::string, HostArray>& keys, const std::stop_token& stop)
    {
        for (Stage& stage : m_stages) {
            const StageFunction* init = stage.function("init");
            const Function& function = init->loaded->function();
            for (std::size_t i = 0; i < function.arguments().size(); ++i) {
                if (auto written = init->loaded->writeArgument(i, keys.at(function[function.arguments()[i]].name)); !written)
                    return written;
            }
        }
        return together({.stop = stop}, false,
            [this](PipelineDevice& device) -> Result<Done> { return call(device, *m_stages[device.stage].function("init"), 0); });
    }

    Result<Done> run(const RunOptions& options, bool trains)
    {
        Result<Done> done = together(options, trains, [&](PipelineDevice& device) -> Result<Done> {
            Stage& stage = m_stages[device.stage];
            if (trains)
                clearSums(device);
            setDropoutInputs(device, trains);
            for (const Task& task : trains ? stage.tasks : stage.forwardTasks) {
                if (m_virtual.stopFlag().isSet())
                    return VirtualDevices::interrupted();
                if (Result<Done> made = carryOut(device, task); !made)
                    return made;
            }
            return Done{};
        });
        if (!done)
            return done;
        for (PipelineDevice& device : m_devices) {
            if (trains) {
                for (std::size_t i = 0; i < device.sent.sent.size(); ++i)
                    device.sentInAll.sent[i].add(device.sent.sent[i]);
                device.sentInAll.norms += device.sent.norms;
            }
            if (options.record && trains)
                std::swap(device.records, device.completeRecords);
        }
        if (options.record && trains)
            m_recordStart = m_start;
        return done;
    }

    std::vector<Counted> countedCalls() const
    {
        std::vector<Counted> counted;
        std::vector<std::vector<std::int64_t>> numbers; ///< calls and bytes, as a stage's first device has them
        std::vector<Ranks::Shared> shared;
        for (std::size_t s = 0; s < m_stages.size(); ++s) {
            for (const StageFunction& function : m_stages[s].functions) {
                if (function.name == "init")
                    continue;
                counted.push_back({s, function.name, function.loaded->countedCalls()});
                std::vector<std::int64_t>& own = numbers.emplace_back();
                for (const CountedCalls& calls : counted.back().calls)
                    own.insert(own.end(), {calls.calls, calls.totalPayloadBytes});
                shared.push_back({m_virtual.rankOf(m_stages[s].devices.front()), std::as_writable_bytes(std::span(own))});
            }
        }
        if (m_virtual.ranks() == nullptr || !m_virtual.ranks()->share(shared, Ranks::Readers::All))
            return counted;
        for (std::size_t i = 0; i < counted.size(); ++i) {
            auto number = numbers[i].begin();
            for (CountedCalls& calls : counted[i].calls) {
                calls.calls = *number++;
                calls.totalPayloadBytes = *number++;
            }
        }
        return counted;
    }

    std::vector<Transfers> transfers() const
    {
        std::vector<Transfers> all;
        std::vector<Ranks::Shared> shared;
        for (const PipelineDevice& device : m_devices)
            all.push_back(device.sentInAll);
        for (std::size_t device = 0; device < all.size(); ++device) {
            const int rank = m_virtual.rankOf(static_cast<std::int64_t>(device));
            shared.push_back({rank, std::as_writable_bytes(std::span(all[device].sent))});
            shared.push_back({rank, std::as_writable_bytes(std::span(&all[device].norms, 1))});
        }
        if (m_virtual.ranks() != nullptr)
            static_cast<void>(m_virtual.ranks()->share(shared, Ranks::Readers::All));
        std::vector<Transfers> byStage(m_stages.size(), Transfers(m_stages.size()));
        for (std::size_t device = 0; device < all.size(); ++device) {
            Transfers& most = byStage[m_devices[device].stage];
            for (std::size_t i = 0; i < all[device].sent.size(); ++i) {
                if (all[device].sent[i].bytes > most.sent[i].bytes)
                    most.sent[i] = all[device].sent[i];
            }
            most.norms = std::max(most.norms, all[device].norms);
        }
        return byStage;
    }

    /// Nothing on all but the first of several processes.
    PipelineRecords records() const
    {
        PipelineRecords records{m_shape, m_recordStart, {}, {}};
        for (const Stage& stage : m_stages) {
            PipelineRecords::StageFunctions& functions = records.stages.emplace_back();
            functions.devices = stage.devices;
            functions.tasks = &stage.tasks;
            for (const StageFunction& function : stage.functions)
                functions.byName[function.name] = function.loaded.get();
        }
        for (const PipelineDevice& device : m_devices)
            records.tasks.push_back(&device.completeRecords);
        if (m_virtual.ranks() != nullptr && !gatherRecords(m_virtual, records))
            return {m_shape, m_recordStart, {}, {}};
        return records;
    }

    bool isShared() const { return m_virtual.ranks() != nullptr; }

private:
    static bool isStaged(const PipelineDevice& device) { return device.mailbox != nullptr; }

    /// The names of all messages that a device will wait for, made beforehand: others read them while it waits.
    void namePlaces()
    {
        for (const Stage& stage : m_stages) {
            for (const std::int64_t number : stage.devices) {
                nameNorms(m_devices[static_cast<std::size_t>(number)]);
                nameShared(m_devices[static_cast<std::size_t>(number)]);
            }
            for (const Task& task : stage.tasks) {
                const auto piece = static_cast<std::size_t>(m_shape.pieceOf(task));
                const bool isBackward = task.passesGradients();
                if (!task.passesOn() || piece == (isBackward ? lastPiece() : 0))
                    continue;
                for (const std::int64_t number : stage.devices) {
                    PipelineDevice& device = m_devices[static_cast<std::size_t>(number)];
                    const MessageTag tag = awaitedBy(device, task, piece);
                    device.places[tag] = [text = fmt::format("receiving the {} from device {} for stage {}", messageText(tag),
                                              tag.sender, device.stage)] { return text; };
                }
            }
        }
    }

    void nameNorms(PipelineDevice& device)
    {
        for (std::size_t other = 0; other < m_stages.size(); ++other) {
            if (other != device.stage)
                device.places[normTag(device, other)]
                    = [text = fmt::format("receiving the norm of stage {}'s gradients for stage {}", other, device.stage)] {
                          return text;
                      };
        }
    }

    void nameShared(PipelineDevice& device)
    {
        for (const SharedGradient& shared : m_stages[device.stage].shared)
            device.places[sharedTag(device.position, shared.other, shared.number)]
                = [text = fmt::format("receiving gradients of shared parameters from stage {} for stage {}", shared.other,
                       device.stage)] { return text; };
    }

    MessageTag sharedTag(std::int64_t position, std::size_t from, std::int64_t number) const
    {
        return {m_stages[from].devices[static_cast<std::size_t>(position)], m_shape.pieces() + 1, number, false};
    }

    /// Gives the other stages what this one knows of the gradients of parameters that they share. Returns the bytes sent.
    Result<std::int64_t> shareGradients(PipelineDevice& device)
    {
        const std::vector<SharedGradient>& all = m_stages[device.stage].shared;
        std::int64_t bytes = 0;
        for (const SharedGradient& shared : all) {
            AlignedBytes message = device.memory[shared.given].front();
            bytes += message.size();
            device.sent.of(StageMessage::SharedGradients, shared.other).add({1, message.size()});
            const std::int64_t to = m_stages[shared.other].devices[static_cast<std::size_t>(device.position)];
            m_devices[static_cast<std::size_t>(to)].mailbox->send(
                sharedTag(device.position, device.stage, shared.number), std::move(message));
        }
        for (const SharedGradient& shared : all) {
            const MessageTag tag = sharedTag(device.position, shared.other, shared.number);
            AlignedBytes message;
            if (!m_virtual.receive(numberOf(device), *device.mailbox, tag, message, device.places.at(tag)))
                return VirtualDevices::interrupted();
            copyBytes(device.memory[shared.taken].front(), message);
        }
        return bytes;
    }

    /// The part of the gradients' norm that comes from another stage.
    MessageTag normTag(const PipelineDevice& device, std::size_t from) const
    {
        return {m_stages[from].devices[static_cast<std::size_t>(device.position)], m_shape.pieces(), 0, false};
    }

    MessageTag awaitedBy(const PipelineDevice& device, const Task& task, std::size_t piece)
    {
        const bool isBackward = task.passesGradients();
        return {numberOf(peer(device, isBackward ? piece + 1 : piece - 1)), static_cast<std::int64_t>(piece),
            static_cast<std::int64_t>(task.microbatch), isBackward};
    }

    /// Runs something on every device of every stage, with all functions ready for it.
    /// Calls of collectives are counted, and times kept, of training steps only.
    template <typename Work>
    Result<Done> together(const RunOptions& options, bool trains, const Work& work)
    {
        m_isRecording = options.record;
        m_start = wallSeconds();
        for (Stage& stage : m_stages) {
            for (StageFunction& function : stage.functions)
                function.loaded->begin(options);
        }
        Result<Done> done = m_virtual.run(
            [&](std::int64_t number) -> Result<Done> {
                PipelineDevice& device = m_devices[static_cast<std::size_t>(number)];
                if (!isStaged(device))
                    return Done{};
                device.records.clear();
                device.sent = Transfers(m_stages.size());
                return work(device);
            },
            options.stop);
        for (Stage& stage : m_stages) {
            for (StageFunction& function : stage.functions)
                function.loaded->end(done.has_value() && trains);
        }
        return done;
    }

    void clearSums(PipelineDevice& device) const
    {
        const Stage& stage = m_stages[device.stage];
        for (std::size_t array = 0; array < stage.arrays.size(); ++array) {
            AlignedBytes& bytes = device.memory[array].front();
            if (stage.arrays[array].what.kind == StageArray::Kind::GradientSum && bytes.size() > 0)
                std::memset(bytes.data(), 0, static_cast<std::size_t>(bytes.size()));
        }
    }

    /// Fills in what masks of dropout depend on besides the step.
    void setDropoutInputs(PipelineDevice& device, bool trains) const
    {
        const Stage& stage = m_stages[device.stage];
        for (std::size_t array = 0; array < stage.arrays.size(); ++array) {
            std::vector<AlignedBytes>& slots = device.memory[array];
            if (stage.arrays[array].what.kind == StageArray::Kind::DropoutOn) {
                const std::uint32_t isOn = trains ? 1 : 0;
                std::memcpy(slots.front().data(), &isOn, sizeof isOn);
            } else if (stage.arrays[array].what.kind == StageArray::Kind::DropoutPart) {
                for (std::size_t microbatch = 0; microbatch < slots.size(); ++microbatch) {
                    const auto part = static_cast<std::int32_t>(microbatch);
                    std::memcpy(slots[microbatch].data(), &part, sizeof part);
                }
            }
        }
    }

    /// Runs a function on a device, with its arguments and results where the microbatch has them.
    Result<Done> call(PipelineDevice& device, StageFunction& function, std::size_t microbatch)
    {
        const Stage& stage = m_stages[device.stage];
        const auto memoryOf
            = [&](std::size_t array) -> AlignedBytes& { return device.memory[array][slotOf(stage.arrays[array], microbatch)]; };
        for (const Binding& binding : function.bindings) {
            std::byte* at = memoryOf(binding.array).data();
            if (binding.isResult)
                function.loaded->placeResult(binding.index, device.position, at);
            else
                function.loaded->placeArgument(binding.index, device.position, at);
        }
        Result<Done> done = function.loaded->runOn(stage.devices[static_cast<std::size_t>(device.position)]);
        for (const Repeated& repeated : function.repeated)
            copyBytes(memoryOf(repeated.to), memoryOf(repeated.from));
        return done;
    }

    Result<Done> carryOut(PipelineDevice& device, const Task& task)
    {
        const auto piece = static_cast<std::size_t>(m_shape.pieceOf(task));
        TaskRecord record;
        record.task = task;
        record.began = wallSeconds();
        const bool isBackward = task.passesGradients();
        if (task.passesOn() && piece != (isBackward ? lastPiece() : 0)) {
            if (Result<Done> done = receive(device, task, piece, isBackward); !done)
                return done;
        }
        record.received = wallSeconds();
        StageFunction& function = *m_stages[device.stage].function(task.function);
        record.first = function.loaded->recordCount(device.position);
        if (Result<Done> done = call(device, function, task.microbatch); !done)
            return done;
        record.last = function.loaded->recordCount(device.position);
        record.computed = wallSeconds();
        if (task.kind == TaskKind::ShareNorm || task.kind == TaskKind::ShareGradients) {
            const Result<std::int64_t> sent = task.kind == TaskKind::ShareNorm ? addNorms(device) : shareGradients(device);
            if (!sent)
                return sent.error();
            record.bytes = *sent;
        }
        if (task.passesOn() && piece != (isBackward ? 0 : lastPiece()))
            record.bytes = send(device, task, piece, isBackward);
        record.sent = wallSeconds();
        if (m_isRecording)
            device.records.push_back(std::move(record));
        return Done{};
    }

    /// The device at the same position of the stage that has a piece.
    PipelineDevice& peer(const PipelineDevice& device, std::size_t piece)
    {
        const Stage& stage = m_stages[piece % m_stages.size()];
        return m_devices[static_cast<std::size_t>(stage.devices[static_cast<std::size_t>(device.position)])];
    }

    Result<Done> receive(PipelineDevice& device, const Task& task, std::size_t piece, bool isBackward)
    {
        const MessageTag tag = awaitedBy(device, task, piece);
        AlignedBytes message;
        if (!m_virtual.receive(numberOf(device), *device.mailbox, tag, message, device.places.at(tag)))
            return VirtualDevices::interrupted();
        const Stage& stage = m_stages[device.stage];
        const std::size_t array = stage.find({isBackward ? StageArray::Kind::OutputGradient : StageArray::Kind::Input}, piece);
        AlignedBytes& to = device.memory[array][slotOf(stage.arrays[array], task.microbatch)];
        assert(to.size() == message.size());
        copyBytes(to, message);
        return Done{};
    }

    /// Adds up the stages' parts of the gradients' norm, in the same order on all. Returns the bytes sent.
    Result<std::int64_t> addNorms(PipelineDevice& device)
    {
        const Stage& stage = m_stages[device.stage];
        const std::size_t part = stage.find({StageArray::Kind::NormPart}, 0);
        const AlignedBytes& own = device.memory[part].front();
        const auto valueOf = [&](const AlignedBytes& bytes) {
            return HostArray::fromBytes(stage.arrays[part].local, std::span(bytes.data(), static_cast<std::size_t>(bytes.size())))
                .at(0);
        };
        for (std::size_t other = 0; other < m_stages.size(); ++other) {
            if (other == device.stage)
                continue;
            const std::int64_t to = m_stages[other].devices[static_cast<std::size_t>(device.position)];
            m_devices[static_cast<std::size_t>(to)].mailbox->send({numberOf(device), m_shape.pieces(), 0, false}, own);
        }
        double sum = 0.0;
        for (std::size_t other = 0; other < m_stages.size(); ++other) {
            if (other == device.stage) {
                sum += valueOf(own);
                continue;
            }
            const MessageTag tag = normTag(device, other);
            AlignedBytes message;
            if (!m_virtual.receive(numberOf(device), *device.mailbox, tag, message, device.places.at(tag)))
                return VirtualDevices::interrupted();
            sum += valueOf(message);
        }
        const HostArray squared = HostArray::filled(stage.arrays[part].local, sum);
        if (const std::size_t array = stage.find({StageArray::Kind::NormSquared}, 0); array != kNoArray)
            std::memcpy(device.memory[array].front().data(), squared.data(), static_cast<std::size_t>(squared.bytes()));
        ++device.sent.norms;
        return static_cast<std::int64_t>(m_stages.size() - 1) * own.size();
    }

    std::int64_t send(PipelineDevice& device, const Task& task, std::size_t piece, bool isBackward)
    {
        const std::size_t next = isBackward ? piece - 1 : piece + 1;
        const Stage& stage = m_stages[device.stage];
        const std::size_t array = stage.find({isBackward ? StageArray::Kind::InputGradient : StageArray::Kind::Output}, piece);
        AlignedBytes message = device.memory[array][slotOf(stage.arrays[array], task.microbatch)];
        const std::int64_t bytes = message.size();
        peer(device, next)
            .mailbox->send(
                {numberOf(device), static_cast<std::int64_t>(next), static_cast<std::int64_t>(task.microbatch), isBackward},
                std::move(message));
        device.sent.of(isBackward ? StageMessage::Gradients : StageMessage::Activations, peer(device, next).stage)
            .add({1, bytes});
        return bytes;
    }

    bool m_isRecording = false;
    double m_start = 0.0; ///< of the last run
    double m_recordStart = 0.0; ///< of the last complete recorded one
};

LoadedPipeline::LoadedPipeline(std::unique_ptr<Implementation> implementation)
    : m_implementation(std::move(implementation))
{
}

LoadedPipeline::~LoadedPipeline() = default;

Result<std::unique_ptr<LoadedPipeline>> LoadedPipeline::load(
    const ScheduledProgram& scheduled, const Mesh& mesh, VirtualDevices& devices)
{
    auto implementation = std::make_unique<Implementation>(scheduled, mesh, devices);
    if (Problems problems = implementation->load(scheduled); !problems.empty())
        return problems;
    return std::unique_ptr<LoadedPipeline>(new LoadedPipeline(std::move(implementation)));
}

std::map<IndexBox, std::vector<std::int64_t>> LoadedPipeline::piecesOf(const std::string& array) const
{
    return m_implementation->piecesOf(array);
}

HostArray LoadedPipeline::readPiece(const std::string& array, std::int64_t device, Ranks::Readers readers) const
{
    return m_implementation->readPiece(array, device, readers);
}

bool LoadedPipeline::writesHere(const std::string& array, std::int64_t device) const
{
    return m_implementation->writesHere(array, device);
}

void LoadedPipeline::writePiece(const std::string& array, std::int64_t device, const HostArray& piece)
{
    m_implementation->writePiece(array, device, piece);
}

HostArray LoadedPipeline::read(const std::string& array) const
{
    return m_implementation->read(array);
}

const TensorSharding& LoadedPipeline::layoutOf(const std::string& array) const
{
    return m_implementation->arrayAt(*m_implementation->where(array)).sharding;
}

Result<Done> LoadedPipeline::initialise(const std::map<std::string, HostArray>& keys, const std::stop_token& stop)
{
    return m_implementation->initialise(keys, stop);
}

void LoadedPipeline::writeBatch(const HostArray& x, const HostArray& y)
{
    m_implementation->writeBatch(x, y);
}

Result<Done> LoadedPipeline::run(const LoadedFunction::RunOptions& options)
{
    return m_implementation->run(options, true);
}

Result<Done> LoadedPipeline::runForward(const LoadedFunction::RunOptions& options)
{
    return m_implementation->run(options, false);
}

double LoadedPipeline::mean(const std::string& result) const
{
    return m_implementation->mean(result);
}

HostArray LoadedPipeline::predictions() const
{
    return m_implementation->predictions();
}

std::vector<LoadedPipeline::Counted> LoadedPipeline::countedCalls() const
{
    return m_implementation->countedCalls();
}

std::vector<LoadedPipeline::Transfers> LoadedPipeline::transfers() const
{
    return m_implementation->transfers();
}

Timeline LoadedPipeline::measured() const
{
    return measuredTimeline(m_implementation->records());
}

Timeline LoadedPipeline::virtualTimeline(const TaskSeconds& taskSeconds) const
{
    return replayedTimeline(m_implementation->records(), taskSeconds);
}

Timeline LoadedPipeline::typicalTimeline() const
{
    // Of other processes' devices only the last run is known.
    return m_implementation->isShared() ? replayedTimeline(m_implementation->records(), {})
                                        : typicalTimelineOf(m_implementation->records());
}

std::vector<std::int64_t> plannedStageBytes(const ScheduledProgram& scheduled)
{
    return PipelineStages::plannedBytes(scheduled);
}

} // namespace meshwright
