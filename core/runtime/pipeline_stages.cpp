// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/pipeline_stages.h"

#include "core/support/find.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace meshwright {

namespace {

PipelineStages::Kept keptOf(StageArray::Kind kind)
{
    switch (kind) {
    case StageArray::Kind::Batch:
    case StageArray::Kind::Metric:
    case StageArray::Kind::DropoutPart:
        return PipelineStages::Kept::Step;
    case StageArray::Kind::Input:
    case StageArray::Kind::Output:
    case StageArray::Kind::InputGradient:
    case StageArray::Kind::OutputGradient:
    case StageArray::Kind::Residual:
    case StageArray::Kind::WeightResidual:
        return PipelineStages::Kept::Passing;
    default:
        return PipelineStages::Kept::Always;
    }
}

} // namespace

std::size_t PipelineStages::Stage::find(const StageArray& what, std::size_t piece) const
{
    const Kept kept = keptOf(what.kind);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        if (arrays[i].what == what && (kept == Kept::Always || arrays[i].piece == piece))
            return i;
    }
    return kNoArray;
}

PipelineStages::StageFunction* PipelineStages::Stage::function(const std::string& name)
{
    return findBy(functions, name, &StageFunction::name);
}

IndexBox PipelineStages::Stage::boxOf(const Array& array, std::int64_t position) const
{
    return shardBox(array.whole, array.sharding, meshes[static_cast<std::size_t>(array.sharding.mesh)].mesh, position);
}

PipelineStages::PipelineStages(const ScheduledProgram& scheduled, const Mesh& mesh, VirtualDevices& devices)
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
    for (std::size_t s = 0; s < m_stages.size(); ++s)
        m_stages[s].arrays = arraysOf(scheduled, s);
}

/// Of the first task that runs the function; one that no task runs is of the stage's first piece.
std::size_t PipelineStages::pieceOf(const ScheduledProgram& scheduled, std::size_t stage, const std::string& function)
{
    const auto task
        = std::ranges::find_if(scheduled.tasks, [&](const Task& one) { return one.stage == stage && one.function == function; });
    return (task == scheduled.tasks.end() ? 0 : task->chunk) * scheduled.stages.size() + stage;
}

/// What lies beside the arenas: arguments and results, but those that lie in the place of an argument.
std::vector<PipelineStages::Array> PipelineStages::arraysOf(const ScheduledProgram& scheduled, std::size_t stage)
{
    Stage made;
    for (const ScheduledFunction& function : scheduled.stages[stage].functions) {
        const DeviceFunction& device = function.device;
        const Function& f = device.function;
        const std::size_t piece = pieceOf(scheduled, stage, f.name);
        const auto add = [&](const std::string& name, ValueId value) {
            const StageArray what = stageArrayOf(name);
            if (made.find(what, piece) == kNoArray)
                made.arrays.push_back(
                    {what, keptOf(what.kind), piece, f[value].type, device.globalShapes[value.at()], *f[value].sharding});
        };
        for (std::size_t i = 0; i < f.arguments().size() && f.name != "init"; ++i) // keys stay in the arena
            add(f[f.arguments()[i]].name, f.arguments()[i]);
        for (std::size_t i = 0; i < f.results().size(); ++i) {
            if (std::ranges::find(f.donations, i, &Donation::result) == f.donations.end())
                add(f.resultNames[i], f.results()[i]);
        }
    }
    return std::move(made.arrays);
}

std::vector<std::int64_t> PipelineStages::plannedBytes(const ScheduledProgram& scheduled)
{
    const SlotPlan slots = slotPlan(scheduled.pipeline, scheduled.tasks);
    std::vector<std::int64_t> stages;
    for (std::size_t s = 0; s < scheduled.stages.size(); ++s) {
        std::int64_t arena = 0;
        for (const ScheduledFunction& function : scheduled.stages[s].functions)
            arena = std::max(arena, function.buffers.arenaBytes);
        stages.push_back(arena);
        for (const Array& array : arraysOf(scheduled, s))
            stages.back() += array.local.bytes() * static_cast<std::int64_t>(slotsOf(array, scheduled.pipeline, slots));
    }
    return stages;
}

Problems PipelineStages::load(const ScheduledProgram& scheduled)
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
            StageFunction& made = stage.functions.emplace_back();
            made.name = name;
            made.piece = pieceOf(scheduled, s, name);
            made.loaded = *std::move(loaded);
            bind(stage, made);
        }
    }
    if (problems.empty()) {
        makeMemory();
        findShared();
    }
    return problems;
}

std::optional<PipelineStages::Where> PipelineStages::where(const std::string& name) const
{
    for (std::size_t s = 0; s < m_stages.size(); ++s) {
        const std::size_t array = m_stages[s].find(stageArrayOf(name), 0);
        if (array != kNoArray && m_stages[s].arrays[array].kept == Kept::Always)
            return Where{s, array};
    }
    return std::nullopt;
}

std::map<IndexBox, std::vector<std::int64_t>> PipelineStages::piecesOf(const std::string& name) const
{
    const Where at = *where(name);
    const Stage& stage = m_stages[at.stage];
    std::map<IndexBox, std::vector<std::int64_t>> pieces;
    for (std::size_t position = 0; position < stage.devices.size(); ++position)
        pieces[stage.boxOf(arrayAt(at), static_cast<std::int64_t>(position))].push_back(stage.devices[position]);
    return pieces;
}

std::vector<HostArray> PipelineStages::readSpots(const std::vector<Spot>& spots, Ranks::Readers readers) const
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
        shared.push_back({m_virtual.rankOf(spots[i].device), {pieces[i].data(), static_cast<std::size_t>(pieces[i].bytes())}});
    static_cast<void>(m_virtual.ranks()->share(shared, readers));
    return pieces;
}

HostArray PipelineStages::readPiece(const std::string& name, std::int64_t device, Ranks::Readers readers) const
{
    return std::move(readSpots({{where(name)->array, device, 0}}, readers).front());
}

void PipelineStages::writeSlot(std::size_t array, std::int64_t device, std::size_t slot, const HostArray& piece)
{
    if (!m_virtual.isHere(device))
        return;
    PipelineDevice& to = m_devices[static_cast<std::size_t>(device)];
    HostArray local = HostArray::filled(m_stages[to.stage].arrays[array].local, 0.0);
    local.assign(wholeBox(piece.type().shape), piece);
    std::memcpy(to.memory[array][slot].data(), local.data(), static_cast<std::size_t>(local.bytes()));
}

std::vector<PipelineStages::Spot> PipelineStages::spotsOf(const std::string& name, std::int64_t device) const
{
    const auto position = static_cast<std::size_t>(m_devices[static_cast<std::size_t>(device)].position);
    std::vector<Spot> spots;
    for (const Stage& stage : m_stages) {
        const std::size_t array = stage.find(stageArrayOf(name), 0);
        if (array != kNoArray)
            spots.push_back({array, stage.devices[position], 0});
    }
    return spots;
}

void PipelineStages::writePiece(const std::string& name, std::int64_t device, const HostArray& piece)
{
    for (const Spot& spot : spotsOf(name, device))
        writeSlot(spot.array, spot.device, 0, piece);
}

bool PipelineStages::writesHere(const std::string& name, std::int64_t device) const
{
    const std::vector<Spot> spots = spotsOf(name, device);
    return std::any_of(spots.begin(), spots.end(), [this](const Spot& spot) { return m_virtual.isHere(spot.device); });
}

std::vector<HostArray> PipelineStages::readWholes(const Stage& stage, std::size_t array, std::size_t slots) const
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

HostArray PipelineStages::read(const std::string& name) const
{
    const Where at = *where(name);
    return std::move(readWholes(m_stages[at.stage], at.array, 1).front());
}

void PipelineStages::writeBatch(const HostArray& x, const HostArray& y)
{
    writeInput(m_stages.front(), {StageArray::Kind::Batch, "x"}, 0, x);
    writeInput(m_stages.back(), {StageArray::Kind::Batch, "y"}, lastPiece(), y);
}

double PipelineStages::mean(const std::string& name) const
{
    const Stage& last = m_stages.back();
    const std::size_t array = last.find(stageArrayOf(name), lastPiece());
    std::vector<Spot> spots;
    for (std::int64_t microbatch = 0; microbatch < m_shape.microbatches; ++microbatch)
        spots.push_back({array, last.devices.front(), static_cast<std::size_t>(microbatch)});
    double sum = 0.0;
    for (const HostArray& value : readSpots(spots, Ranks::Readers::All))
        sum += value.at(0);
    return sum / static_cast<double>(m_shape.microbatches);
}

HostArray PipelineStages::predictions() const
{
    const Stage& last = m_stages.back();
    const std::size_t array = last.find({StageArray::Kind::Metric, "predictions"}, lastPiece());
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

std::size_t PipelineStages::slotsOf(const Array& array, const PipelineShape& shape, const SlotPlan& slots)
{
    return array.kept == Kept::Always ? 1
        : array.kept == Kept::Step    ? static_cast<std::size_t>(shape.microbatches)
                                      : static_cast<std::size_t>(std::max<std::int64_t>(1, slots.slots[array.piece]));
}

std::size_t PipelineStages::slotOf(const Array& array, std::size_t microbatch) const
{
    return array.kept == Kept::Always ? 0
        : array.kept == Kept::Step    ? microbatch
                                      : static_cast<std::size_t>(m_slots.slotOf[array.piece][microbatch]);
}

void PipelineStages::bind(Stage& stage, StageFunction& made) const
{
    const Function& function = made.loaded->scheduled().device.function;
    const auto arrayOf = [&](const std::string& name, [[maybe_unused]] ValueId value) {
        const StageArray what = stageArrayOf(name);
        const std::size_t array = stage.find(what, made.piece);
        assert(array != kNoArray && stage.arrays[array].local == function[value].type);
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
        const bool isDonated = std::any_of(
            function.donations.begin(), function.donations.end(), [i](const Donation& donation) { return donation.result == i; });
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

void PipelineStages::makeMemory()
{
    for (std::size_t s = 0; s < m_stages.size(); ++s) {
        const Stage& stage = m_stages[s];
        for (std::size_t position = 0; position < stage.devices.size(); ++position) {
            PipelineDevice& device = m_devices[static_cast<std::size_t>(stage.devices[position])];
            device.stage = s;
            device.position = static_cast<std::int64_t>(position);
            device.mailbox = m_virtual.makeMailbox(stage.devices[position]);
            device.sentInAll = LoadedPipeline::Transfers(m_stages.size());
            for (const Array& array : stage.arrays) {
                device.memory.emplace_back();
                for (std::size_t slot = 0; slot < slotsOf(array, m_shape, m_slots) && isHere(device); ++slot)
                    device.memory.back().emplace_back(array.local.bytes());
            }
        }
    }
}

void PipelineStages::findShared()
{
    std::set<std::string> all;
    for (const Stage& one : m_stages) {
        for (const Array& array : one.arrays) {
            if (array.what.kind == StageArray::Kind::SharedPart)
                all.insert(array.what.name);
        }
    }
    std::int64_t number = 0;
    for (const std::string& parameter : all) {
        for (Stage& stage : m_stages) {
            for (std::size_t other = 0; other < m_stages.size(); ++other) {
                const std::size_t given = stage.find({StageArray::Kind::SharedPart, parameter}, 0);
                const std::size_t taken = stage.find({StageArray::Kind::SharedCopy, parameter, other}, 0);
                if (given != kNoArray && taken != kNoArray)
                    stage.shared.push_back({other, given, taken, number});
            }
        }
        ++number;
    }
}

void PipelineStages::writeInput(const Stage& stage, const StageArray& what, std::size_t piece, const HostArray& whole)
{
    const std::size_t array = stage.find(what, piece);
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

} // namespace meshwright
