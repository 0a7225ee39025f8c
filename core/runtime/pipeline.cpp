// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/pipeline.h"

#include "core/runtime/clocks.h"
#include "core/runtime/pipeline_recording.h"
#include "core/schedule/pipeline_tasks.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

namespace meshwright {

namespace {

constexpr std::size_t kNoArray = static_cast<std::size_t>(-1);

/// How long a value stays: for good, for a step, or while a microbatch is between its forward and its backward task.
enum class Kept : std::uint8_t { Always, Step, Passing };

Kept keptOf(const std::string& name)
{
    constexpr std::array kStep = {"x", "y", "loss", "accuracy", "predictions", "dropout.part"};
    constexpr std::array kPassing = {"in", "out", "ct.in", "ct.out"};
    if (std::find(kStep.begin(), kStep.end(), name) != kStep.end())
        return Kept::Step;
    const bool isPassing = std::find(kPassing.begin(), kPassing.end(), name) != kPassing.end() || name.starts_with("residual.");
    return isPassing ? Kept::Passing : Kept::Always;
}

/// A value that functions of one stage share.
struct Array {
    std::string name;
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

    std::size_t find(const std::string& name, std::size_t piece) const
    {
        const Kept kept = keptOf(name);
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            if (arrays[i].name == name && (kept == Kept::Always || arrays[i].piece == piece))
                return i;
        }
        return kNoArray;
    }

    StageFunction* function(const std::string& name)
    {
        const auto found
            = std::find_if(functions.begin(), functions.end(), [&](const StageFunction& f) { return f.name == name; });
        return found == functions.end() ? nullptr : &*found;
    }

    IndexBox boxOf(const Array& array, std::int64_t position) const
    {
        return shardBox(array.whole, array.sharding, meshes[static_cast<std::size_t>(array.sharding.mesh)].mesh, position);
    }
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

class LoadedPipeline::Implementation {
public:
    using RunOptions = LoadedFunction::RunOptions;

    Implementation(const ScheduledProgram& scheduled, const Mesh& mesh, VirtualDevices& devices)
        : m_shape(scheduled.pipeline)
        , m_virtual(devices)
        , m_slots(slotPlan(scheduled.pipeline, scheduled.tasks))
        , m_devices(static_cast<std::size_t>(devices.count()))
    {
        std::map<DeviceId, std::int64_t> numbers;
        for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
            numbers[mesh.deviceAt(position)] = position;
        for (const ScheduledStage& from : scheduled.stages) {
            Stage& stage = m_stages.emplace_back();
            stage.meshes = from.meshes;
            for (std::int64_t position = 0; position < from.mesh().deviceCount(); ++position)
                stage.devices.push_back(numbers.at(from.mesh().deviceAt(position)));
        }
        for (const Task& task : scheduled.tasks)
            m_stages[task.stage].tasks.push_back(task);
        for (const Task& task : forwardTasks(m_shape))
            m_stages[task.stage].forwardTasks.push_back(task);
    }

    Problems load(const ScheduledProgram& scheduled)
    {
        Problems problems;
        for (std::size_t s = 0; s < m_stages.size(); ++s) {
            Stage& stage = m_stages[s];
            for (const ScheduledFunction& function : scheduled.stages[s].functions) {
                const std::string& name = function.device.function.name;
                auto loaded = LoadedFunction::load(function, stage.meshes, m_virtual, {.devices = stage.devices});
                if (!loaded) {
                    append(problems, loaded.error());
                    continue;
                }
                const auto chunk = parseInteger(name.substr(std::min(name.size(), name.find('.') + 1))).value_or(0);
                StageFunction& made = stage.functions.emplace_back();
                made.name = name;
                made.piece = static_cast<std::size_t>(chunk) * m_stages.size() + s;
                made.loaded = *std::move(loaded);
                bind(stage, made);
            }
        }
        if (problems.empty()) {
            makeMemory();
            findShared();
            namePlaces();
        }
        return problems;
    }

    // ---- arrays

    struct Where {
        std::size_t stage = 0;
        std::size_t array = 0;
    };

    /// The first stage that has an array; a state that all stages have (a count of steps) is the same on all.
    std::optional<Where> where(const std::string& name) const
    {
        for (std::size_t s = 0; s < m_stages.size(); ++s) {
            const std::size_t array = m_stages[s].find(name, 0);
            if (array != kNoArray && m_stages[s].arrays[array].kept == Kept::Always)
                return Where{s, array};
        }
        return std::nullopt;
    }

    const Array& arrayAt(const Where& at) const { return m_stages[at.stage].arrays[at.array]; }

    std::map<IndexBox, std::vector<std::int64_t>> piecesOf(const std::string& name) const
    {
        const Where at = *where(name);
        const Stage& stage = m_stages[at.stage];
        std::map<IndexBox, std::vector<std::int64_t>> pieces;
        for (std::size_t position = 0; position < stage.devices.size(); ++position)
            pieces[stage.boxOf(arrayAt(at), static_cast<std::int64_t>(position))].push_back(stage.devices[position]);
        return pieces;
    }

    /// An array of one device, in one of its slots.
    struct Spot {
        std::size_t array = 0;
        std::int64_t device = 0;
        std::size_t slot = 0;
    };

    /// Their pieces, without padding.
    std::vector<HostArray> readSpots(const std::vector<Spot>& spots, Ranks::Readers readers) const
    {
        std::vector<HostArray> pieces;
        std::vector<Ranks::Shared> shared;
        for (const Spot& spot : spots) {
            const PipelineDevice& from = m_devices[static_cast<std::size_t>(spot.device)];
            const Stage& stage = m_stages[from.stage];
            const Array& what = stage.arrays[spot.array];
            const Shape extents = extentsOf(stage.boxOf(what, from.position));
            if (!m_virtual.isHere(spot.device)) {
                pieces.emplace_back(TensorType{what.local.dtype, extents});
                continue;
            }
            const AlignedBytes& bytes = from.memory[spot.array][spot.slot];
            pieces.push_back(HostArray::fromBytes(what.local, std::span(bytes.data(), static_cast<std::size_t>(bytes.size())))
                                 .slice(wholeBox(extents)));
        }
        if (m_virtual.ranks() == nullptr)
            return pieces;
        for (std::size_t i = 0; i < spots.size(); ++i)
            shared.push_back(
                {m_virtual.rankOf(spots[i].device), {pieces[i].data(), static_cast<std::size_t>(pieces[i].bytes())}});
        static_cast<void>(m_virtual.ranks()->share(shared, readers));
        return pieces;
    }

    HostArray readPiece(const std::string& name, std::int64_t device, Ranks::Readers readers) const
    {
        return std::move(readSpots({{where(name)->array, device, 0}}, readers).front());
    }

    void writeSlot(std::size_t array, std::int64_t device, std::size_t slot, const HostArray& piece)
    {
        if (!m_virtual.isHere(device))
            return;
        PipelineDevice& to = m_devices[static_cast<std::size_t>(device)];
        HostArray local = HostArray::filled(m_stages[to.stage].arrays[array].local, 0.0);
        local.assign(wholeBox(piece.type().shape), piece);
        std::memcpy(to.memory[array][slot].data(), local.data(), static_cast<std::size_t>(local.bytes()));
    }

    /// The devices that hold what a device of one stage holds of an array: of all stages that have it, so that shared states stay the same.
    std::vector<Spot> spotsOf(const std::string& name, std::int64_t device) const
    {
        const auto position = static_cast<std::size_t>(m_devices[static_cast<std::size_t>(device)].position);
        std::vector<Spot> spots;
        for (const Stage& stage : m_stages) {
            const std::size_t array = stage.find(name, 0);
            if (array != kNoArray)
                spots.push_back({array, stage.devices[position], 0});
        }
        return spots;
    }

    void writePiece(const std::string& name, std::int64_t device, const HostArray& piece)
    {
        for (const Spot& spot : spotsOf(name, device))
            writeSlot(spot.array, spot.device, 0, piece);
    }

    bool writesHere(const std::string& name, std::int64_t device) const
    {
        const std::vector<Spot> spots = spotsOf(name, device);
        return std::any_of(spots.begin(), spots.end(), [this](const Spot& spot) { return m_virtual.isHere(spot.device); });
    }

    /// The whole of an array, of some slots, from a stage's devices; of equal pieces the first device's.
    std::vector<HostArray> readWholes(const Stage& stage, std::size_t array, std::size_t slots) const
    {
        std::map<IndexBox, std::int64_t> holders;
        for (std::size_t position = 0; position < stage.devices.size(); ++position)
            holders.emplace(stage.boxOf(stage.arrays[array], static_cast<std::int64_t>(position)), stage.devices[position]);
        std::vector<Spot> spots;
        for (std::size_t slot = 0; slot < slots; ++slot) {
            for (const auto& [box, device] : holders)
                spots.push_back({array, device, slot});
        }
        const std::vector<HostArray> pieces = readSpots(spots, Ranks::Readers::All);
        std::vector<HostArray> wholes;
        auto piece = pieces.begin();
        for (std::size_t slot = 0; slot < slots; ++slot) {
            wholes.emplace_back(TensorType{stage.arrays[array].local.dtype, stage.arrays[array].whole});
            for (const auto& [box, device] : holders)
                wholes.back().assign(box, *piece++);
        }
        return wholes;
    }

    HostArray read(const std::string& name) const
    {
        const Where at = *where(name);
        return std::move(readWholes(m_stages[at.stage], at.array, 1).front());
    }

    void writeBatch(const HostArray& x, const HostArray& y)
    {
        writeInput(m_stages.front(), "x", 0, x);
        writeInput(m_stages.back(), "y", lastPiece(), y);
    }

    // ---- running

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
                for (const auto kind : {&Transfers::forward, &Transfers::backward, &Transfers::shared})
                    (device.sentInAll.*kind).add((device.sent.*kind).messages, (device.sent.*kind).bytes);
                device.sentInAll.norms += device.sent.norms;
            }
            if (options.record && trains)
                std::swap(device.records, device.completeRecords);
        }
        if (options.record && trains)
            m_recordStart = m_start;
        return done;
    }

    double mean(const std::string& name) const
    {
        const Stage& last = m_stages.back();
        const std::size_t array = last.find(name, lastPiece());
        std::vector<Spot> spots;
        for (std::int64_t microbatch = 0; microbatch < m_shape.microbatches; ++microbatch)
            spots.push_back({array, last.devices.front(), static_cast<std::size_t>(microbatch)});
        double sum = 0.0;
        for (const HostArray& value : readSpots(spots, Ranks::Readers::All))
            sum += value.at(0);
        return sum / static_cast<double>(m_shape.microbatches);
    }

    HostArray predictions() const
    {
        const Stage& last = m_stages.back();
        const std::size_t array = last.find("predictions", lastPiece());
        Shape shape = last.arrays[array].whole;
        const std::int64_t rows = shape.front();
        shape.front() *= m_shape.microbatches;
        HostArray all({last.arrays[array].local.dtype, shape});
        std::int64_t first = 0;
        for (const HostArray& part : readWholes(last, array, static_cast<std::size_t>(m_shape.microbatches))) {
            IndexBox box = wholeBox(last.arrays[array].whole);
            box.front() = {first, first + rows};
            all.assign(box, part);
            first += rows;
        }
        return all;
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
                    own.insert(own.end(), {calls.calls, calls.bytesPerDevice});
                shared.push_back({m_virtual.rankOf(m_stages[s].devices.front()), std::as_writable_bytes(std::span(own))});
            }
        }
        if (m_virtual.ranks() == nullptr || !m_virtual.ranks()->share(shared, Ranks::Readers::All))
            return counted;
        for (std::size_t i = 0; i < counted.size(); ++i) {
            auto number = numbers[i].begin();
            for (CountedCalls& calls : counted[i].calls) {
                calls.calls = *number++;
                calls.bytesPerDevice = *number++;
            }
        }
        return counted;
    }

    Transfers transfers() const
    {
        std::vector<Transfers> all;
        std::vector<Ranks::Shared> shared;
        for (const PipelineDevice& device : m_devices)
            all.push_back(device.sentInAll);
        for (std::size_t device = 0; device < all.size(); ++device)
            shared.push_back(
                {m_virtual.rankOf(static_cast<std::int64_t>(device)), std::as_writable_bytes(std::span(&all[device], 1))});
        if (m_virtual.ranks() != nullptr)
            static_cast<void>(m_virtual.ranks()->share(shared, Ranks::Readers::All));
        Transfers most;
        for (const Transfers& sent : all) {
            for (const auto kind : {&Transfers::forward, &Transfers::backward, &Transfers::shared}) {
                if ((sent.*kind).bytes > (most.*kind).bytes)
                    most.*kind = sent.*kind;
            }
            most.norms = std::max(most.norms, sent.norms);
        }
        return most;
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

    std::int64_t bytesPerDevice() const
    {
        std::int64_t most = 0;
        for (const Stage& stage : m_stages) {
            std::int64_t arena = 0;
            for (const StageFunction& function : stage.functions)
                arena = std::max(arena, function.loaded->arenaBytes());
            std::int64_t bytes = arena;
            for (const Array& array : stage.arrays)
                bytes += array.local.bytes() * static_cast<std::int64_t>(slotsOf(array));
            most = std::max(most, bytes);
        }
        return most;
    }

    bool isShared() const { return m_virtual.ranks() != nullptr; }

private:
    bool isHere(const PipelineDevice& device) const { return m_virtual.isHere(numberOf(device)); }
    static bool isStaged(const PipelineDevice& device) { return device.mailbox != nullptr; }

    std::size_t lastPiece() const { return static_cast<std::size_t>(m_shape.pieces() - 1); }

    std::size_t slotsOf(const Array& array) const
    {
        return array.kept == Kept::Always ? 1
            : array.kept == Kept::Step    ? static_cast<std::size_t>(m_shape.microbatches)
                                          : static_cast<std::size_t>(std::max<std::int64_t>(1, m_slots.slots[array.piece]));
    }

    std::size_t slotOf(const Array& array, std::size_t microbatch) const
    {
        return array.kept == Kept::Always ? 0
            : array.kept == Kept::Step    ? microbatch
                                          : static_cast<std::size_t>(m_slots.slotOf[array.piece][microbatch]);
    }

    /// Finds or declares the arrays that a function's arguments and results are.
    void bind(Stage& stage, StageFunction& made) const
    {
        const DeviceFunction& device = made.loaded->scheduled().device;
        const Function& function = device.function;
        const auto arrayOf = [&](const std::string& name, ValueId value) {
            std::size_t array = stage.find(name, made.piece);
            if (array == kNoArray) {
                array = stage.arrays.size();
                stage.arrays.push_back({name, keptOf(name), made.piece, function[value].type, device.globalShapes[value.at()],
                    *function[value].sharding});
            }
            assert(stage.arrays[array].local == function[value].type);
            return array;
        };
        std::map<std::int32_t, std::size_t> arrayInBuffer;
        const std::vector<std::int32_t>& bufferOf = made.loaded->scheduled().buffers.bufferOf;
        for (std::size_t i = 0; i < function.arguments().size() && made.name != "init"; ++i) { // keys stay in the arena
            const ValueId value = function.arguments()[i];
            made.bindings.push_back({false, i, arrayOf(function[value].name, value)});
            arrayInBuffer[bufferOf[value.at()]] = made.bindings.back().array;
        }
        for (std::size_t i = 0; i < function.results().size(); ++i) {
            const bool isDonated = std::any_of(function.donations.begin(), function.donations.end(),
                [i](const Donation& donation) { return donation.result == i; });
            if (isDonated)
                continue; // lies in the place of its argument
            const ValueId value = function.results()[i];
            const std::size_t array = arrayOf(function.resultNames[i], value);
            const auto [first, isNew] = arrayInBuffer.emplace(bufferOf[value.at()], array);
            if (isNew)
                made.bindings.push_back({true, i, array});
            else
                made.repeated.push_back({first->second, array});
        }
    }

    void makeMemory()
    {
        for (std::size_t s = 0; s < m_stages.size(); ++s) {
            const Stage& stage = m_stages[s];
            for (std::size_t position = 0; position < stage.devices.size(); ++position) {
                PipelineDevice& device = m_devices[static_cast<std::size_t>(stage.devices[position])];
                device.stage = s;
                device.position = static_cast<std::int64_t>(position);
                device.mailbox = m_virtual.makeMailbox(stage.devices[position]);
                for (const Array& array : stage.arrays) {
                    device.memory.emplace_back();
                    for (std::size_t slot = 0; slot < slotsOf(array) && isHere(device); ++slot)
                        device.memory.back().emplace_back(array.local.bytes());
                }
            }
        }
    }

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

    /// What each stage gives the others of the gradients of parameters that they share.
    void findShared()
    {
        std::set<std::string> all;
        for (const Stage& one : m_stages) {
            for (const Array& array : one.arrays)
                all.emplace(sharedParameter(array.name));
        }
        all.erase("");
        std::int64_t number = 0;
        for (const std::string& parameter : all) {
            for (Stage& stage : m_stages) {
                for (std::size_t other = 0; other < m_stages.size(); ++other) {
                    const std::size_t given = stage.find(sharedArray(parameter), 0);
                    const std::size_t taken = stage.find(sharedArray(parameter, other), 0);
                    if (given != kNoArray && taken != kNoArray)
                        stage.shared.push_back({other, given, taken, number});
                }
            }
            ++number;
        }
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
            device.sent.shared.add(1, message.size());
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

    void writeInput(const Stage& stage, const std::string& name, std::size_t piece, const HostArray& whole)
    {
        const std::size_t array = stage.find(name, piece);
        const std::int64_t rows = stage.arrays[array].whole.front();
        for (std::int64_t microbatch = 0; microbatch < m_shape.microbatches; ++microbatch) {
            for (std::size_t position = 0; position < stage.devices.size(); ++position) {
                IndexBox box = stage.boxOf(stage.arrays[array], static_cast<std::int64_t>(position));
                box.front().start += microbatch * rows;
                box.front().stop += microbatch * rows;
                writeSlot(array, stage.devices[position], static_cast<std::size_t>(microbatch), whole.slice(box));
            }
        }
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
                device.sent = {};
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
            if (stage.arrays[array].name.starts_with("acc.") && bytes.size() > 0)
                std::memset(bytes.data(), 0, static_cast<std::size_t>(bytes.size()));
        }
    }

    /// Fills in what masks of dropout depend on besides the step.
    void setDropoutInputs(PipelineDevice& device, bool trains) const
    {
        const Stage& stage = m_stages[device.stage];
        for (std::size_t array = 0; array < stage.arrays.size(); ++array) {
            std::vector<AlignedBytes>& slots = device.memory[array];
            if (stage.arrays[array].name == "dropout.on") {
                const std::uint32_t isOn = trains ? 1 : 0;
                std::memcpy(slots.front().data(), &isOn, sizeof isOn);
            } else if (stage.arrays[array].name == "dropout.part") {
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

    std::int64_t numberOf(const PipelineDevice& device) const
    {
        return m_stages[device.stage].devices[static_cast<std::size_t>(device.position)];
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
        if (task.function == kNormFunction || task.function == kSharedFunction) {
            const Result<std::int64_t> sent = task.function == kNormFunction ? addNorms(device) : shareGradients(device);
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
        const std::size_t array = stage.find(isBackward ? "ct.out" : "in", piece);
        AlignedBytes& to = device.memory[array][slotOf(stage.arrays[array], task.microbatch)];
        assert(to.size() == message.size());
        copyBytes(to, message);
        return Done{};
    }

    /// Adds up the stages' parts of the gradients' norm, in the same order on all. Returns the bytes sent.
    Result<std::int64_t> addNorms(PipelineDevice& device)
    {
        const Stage& stage = m_stages[device.stage];
        const std::size_t part = stage.find("norm.part", 0);
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
        if (const std::size_t array = stage.find("norm.squared", 0); array != kNoArray)
            std::memcpy(device.memory[array].front().data(), squared.data(), static_cast<std::size_t>(squared.bytes()));
        ++device.sent.norms;
        return static_cast<std::int64_t>(m_stages.size() - 1) * own.size();
    }

    std::int64_t send(PipelineDevice& device, const Task& task, std::size_t piece, bool isBackward)
    {
        const std::size_t next = isBackward ? piece - 1 : piece + 1;
        const Stage& stage = m_stages[device.stage];
        const std::size_t array = stage.find(isBackward ? "ct.in" : "out", piece);
        AlignedBytes message = device.memory[array][slotOf(stage.arrays[array], task.microbatch)];
        const std::int64_t bytes = message.size();
        peer(device, next)
            .mailbox->send(
                {numberOf(device), static_cast<std::int64_t>(next), static_cast<std::int64_t>(task.microbatch), isBackward},
                std::move(message));
        (isBackward ? device.sent.backward : device.sent.forward).add(1, bytes);
        return bytes;
    }

    PipelineShape m_shape;
    VirtualDevices& m_virtual;
    SlotPlan m_slots;
    std::vector<Stage> m_stages;
    std::vector<PipelineDevice> m_devices; ///< by virtual device
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

bool LoadedPipeline::has(const std::string& array) const
{
    return m_implementation->where(array).has_value();
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

LoadedPipeline::Transfers LoadedPipeline::transfers() const
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

std::int64_t LoadedPipeline::bytesPerDevice() const
{
    return m_implementation->bytesPerDevice();
}

} // namespace meshwright
