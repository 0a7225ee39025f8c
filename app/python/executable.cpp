// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/python/executable.h"

#include "app/python/device_text.h"
#include "app/python/program_faults.h"

#include "core/autodiff/custom_derivative.h"
#include "core/partition/complex_pairs.h"
#include "core/program/body_collective.h"
#include "core/program/transform.h"
#include "core/runtime/evaluate.h"
#include "core/text/program_text.h"
#include "sim/hardware/hardware_name.h"
#include "sim/simulate/instruction_work.h"
#include "sim/simulate/simulation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

namespace meshwright::python {

namespace {

/// The virtual devices, made when a program first needs so many.
Result<VirtualDevices*> virtualDevices(std::int64_t count)
{
    static std::map<std::int64_t, std::unique_ptr<VirtualDevices>> all;
    std::unique_ptr<VirtualDevices>& devices = all[count];
    if (devices == nullptr) {
        auto made = VirtualDevices::create(count);
        if (!made)
            return made.error();
        devices = *std::move(made);
    }
    return devices.get();
}

/// The index of a mesh among those of the function; it is added where it is not there.
std::int32_t indexOf(std::vector<NamedMesh>& meshes, const Mesh& mesh)
{
    for (std::size_t i = 0; i < meshes.size(); ++i) {
        if (meshes[i].mesh == mesh)
            return static_cast<std::int32_t>(i);
    }
    meshes.push_back({fmt::format("mesh_{}", meshes.size()), mesh, mesh.axes().empty()});
    return static_cast<std::int32_t>(meshes.size() - 1);
}

TensorSharding onMeshes(const Placement& placement, std::vector<NamedMesh>& meshes)
{
    TensorSharding sharding = placement.sharding;
    sharding.mesh = indexOf(meshes, placement.mesh);
    return sharding;
}

/// True when what a device computes depends on more than the pieces that it has.
bool dependsOnDevice(const DeviceFunction& device)
{
    const Function& function = device.function;
    bool depends = false;
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        const OpClass opClass = opInfo(op.kind).opClass;
        if (opClass == OpClass::Collective || opClass == OpClass::Control || opClass == OpClass::Other)
            depends = true;
        for (const ValueId value : op.results) {
            const auto& sharding = function[value].sharding;
            const bool isSplit = !sharding || !sharding->isReplicated();
            const bool isSplat = op.kind == OpKind::Constant && op.as<ConstantAttributes>().data.isSplat();
            if (isSplit && opClass == OpClass::Leaf && !isSplat)
                depends = true;
            // Behind the last element of a piece that is shorter than the others there is padding, which is masked by the device's number.
            for (std::size_t dim = 0; isSplit && sharding && dim < sharding->dims.size(); ++dim)
                depends = depends || device.globalShapes[value.at()][dim] % shardCount(sharding->dims[dim].axes) != 0;
        }
    });
    return depends;
}

double elementsOf(const Function& function, ValueId value)
{
    return static_cast<double>(function[value].type.elements());
}

double flopsOfProduct(const Function& function, const Op& op)
{
    return sim::productDims(op.as<DotAttributes>(), function[op.operands[0]].type, function[op.operands[1]].type).flops();
}

/// As XLA counts them: roots too, divisions not.
bool isTranscendental(OpKind kind)
{
    return opInfo(kind).cost != ElementCost::Simple && kind != OpKind::Divide && kind != OpKind::Remainder;
}

OperationCounts countsOf(const Function& function, BlockId block)
{
    OperationCounts counts;
    for (const OpId id : function[block].ops) {
        const Op& op = function[id];
        const double elements = op.results.empty() ? 0.0 : elementsOf(function, op.results.front());
        if (op.kind == OpKind::DotGeneral)
            counts.flops += flopsOfProduct(function, op);
        else if (op.kind == OpKind::Reduce)
            counts.flops += elementsOf(function, op.operands.front()) - elements;
        else if (op.kind == OpKind::Scatter)
            counts.flops += op.as<ScatterAttributes>().combiner ? elementsOf(function, op.operands.back()) : 0.0;
        else if (isTranscendental(op.kind))
            counts.transcendentals += elements;
        else if ((isElementwise(op.kind) && op.kind != OpKind::BitcastConvert) || op.kind == OpKind::AllReduce)
            counts.flops += elements;
        OperationCounts most; // of branches, the most expensive one
        for (const BlockId body : op.bodies) {
            const OperationCounts own = countsOf(function, body);
            const bool isChoice = op.kind == OpKind::Case;
            most.flops = isChoice ? std::max(most.flops, own.flops) : most.flops + own.flops;
            most.transcendentals
                = isChoice ? std::max(most.transcendentals, own.transcendentals) : most.transcendentals + own.transcendentals;
        }
        counts.flops += most.flops;
        counts.transcendentals += most.transcendentals;
    }
    return counts;
}

/// Of products, which take nearly all of the time; on one device.
double flopsOf(const Function& function)
{
    double flops = 0.0;
    std::function<void(BlockId, double)> add = [&](BlockId block, double runs) {
        for (const OpId id : function[block].ops) {
            const Op& op = function[id];
            if (op.kind == OpKind::DotGeneral) {
                flops += runs * flopsOfProduct(function, op);
            } else {
                for (const ValueId result : op.results)
                    flops += runs * elementsOf(function, result);
            }
            for (const BlockId body : op.bodies)
                add(body, runs * static_cast<double>(blockRuns(op)));
        }
    };
    add(BlockId(std::int32_t{0}), 1.0);
    return flops;
}

/// Copies every element of `size` bytes: from places that are `fromStep` bytes apart to places `toStep` apart.
void copyElements(
    const std::byte* from, std::size_t fromStep, std::byte* to, std::size_t toStep, std::size_t size, std::int64_t count)
{
    for (std::int64_t i = 0; i < count; ++i, from += fromStep, to += toStep)
        std::memcpy(to, from, size);
}

/// Adds the real parts of complex pieces, and then the imaginary ones; of equal pieces the parts are equal too.
void addParts(std::vector<Pieces>& all, const Pieces& pieces, DType part)
{
    std::array<Pieces, 2> parts;
    std::map<const HostArray*, std::array<Piece, 2>> known;
    for (const Piece& piece : pieces) {
        std::array<Piece, 2>& made = known[piece.get()];
        for (std::size_t k = 0; k < 2; ++k) {
            if (made[k] == nullptr) {
                const auto one = std::make_shared<HostArray>(TensorType{part, piece->type().shape});
                const auto size = static_cast<std::size_t>(byteSize(part));
                copyElements(piece->data() + k * size, 2 * size, one->data(), size, size, piece->type().elements());
                made[k] = one;
            }
            parts[k].push_back(made[k]);
        }
    }
    all.insert(all.end(), parts.begin(), parts.end());
}

Pieces joined(const Pieces& real, const Pieces& imaginary, DType whole)
{
    Pieces all;
    std::map<std::pair<const HostArray*, const HostArray*>, Piece> known;
    for (std::size_t i = 0; i < real.size(); ++i) {
        Piece& piece = known[{real[i].get(), imaginary[i].get()}];
        if (piece == nullptr) {
            const auto one = std::make_shared<HostArray>(TensorType{whole, real[i]->type().shape});
            const auto size = static_cast<std::size_t>(byteSize(whole)) / 2;
            copyElements(real[i]->data(), size, one->data(), 2 * size, size, one->type().elements());
            copyElements(imaginary[i]->data(), size, one->data() + size, 2 * size, size, one->type().elements());
            piece = one;
        }
        all.push_back(piece);
    }
    return all;
}

/// The local function of one device as a function on whole arrays of `count` devices that have nothing to do with one another.
DeviceFunction apart(DeviceFunction device)
{
    for (std::size_t i = 0; i < device.function.values.size(); ++i) {
        Value& value = device.function.values[i];
        value.sharding = TensorSharding::replicatedOf(value.type.shape.size());
        device.globalShapes[i] = value.type.shape;
    }
    for (auto& sharding : device.function.resultShardings)
        sharding.reset();
    return device;
}

/// Gives each result memory of its own, but those that are an argument or an earlier result. Problems: MW1521.
Result<std::vector<Pieces>> placeResults(LoadedFunction& loaded, const std::vector<Pieces>& arguments)
try {
    const Function& function = loaded.function();
    std::vector<Pieces> results(function.results().size());
    for (std::size_t i = 0; i < results.size(); ++i) {
        const ValueId value = function.results()[i];
        const auto isValue = [&](ValueId other) { return other == value; };
        const auto argument = std::find_if(function.arguments().begin(), function.arguments().end(), isValue);
        const auto earlier = std::find_if(function.results().begin(), function.results().end(), isValue);
        if (argument != function.arguments().end()) {
            results[i] = arguments[static_cast<std::size_t>(argument - function.arguments().begin())];
        } else if (const auto before = static_cast<std::size_t>(earlier - function.results().begin()); before < i) {
            results[i] = results[before];
        } else {
            for (std::int64_t device = 0; device < loaded.deviceCount(); ++device) {
                const auto piece = std::make_shared<HostArray>(function[value].type);
                loaded.placeResult(i, device, piece->data());
                results[i].push_back(piece);
            }
        }
    }
    return results;
} catch (const std::bad_alloc&) {
    std::int64_t bytes = 0;
    for (const ValueId value : loaded.function().results())
        bytes += loaded.function()[value].type.bytes();
    return Problem{"MW1521",
        fmt::format("not enough memory for the results of \"{}\" on {} devices, {} each", loaded.function().name,
            loaded.deviceCount(), formatBytes(bytes)),
        "use a smaller batch or model, or shard what is replicated"};
}

} // namespace

Result<std::shared_ptr<Executable>> Executable::compile(
    TracedFunction traced, const std::vector<ArrayPointer>& arguments, const std::vector<PlacementPointer>& results)
{
    std::shared_ptr<Executable> made(new Executable());
    Function& function = traced.function;
    dropCustomDerivatives(function);
    const ArrayPointer* committed = nullptr;
    for (const ArrayPointer& argument : arguments) {
        if (argument->isCommitted())
            committed = &argument;
    }
    for (const PlacementPointer& result : results)
        made->m_isCommitted = made->m_isCommitted || result != nullptr;
    made->m_isCommitted = made->m_isCommitted || committed != nullptr || !traced.meshes.empty();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        Value& value = function[function.arguments()[i]];
        // Without any mesh everything is whole on device 0.
        if (arguments[i]->isCommitted() || !made->m_isCommitted) {
            value.sharding = onMeshes(*arguments[i]->placement(), traced.meshes);
            value.annotation = value.name.empty() ? fmt::format("argument {}", i) : value.name;
        }
    }
    function.resultShardings.resize(function.results().size());
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i] != nullptr)
            function.resultShardings[i] = onMeshes(*results[i], traced.meshes);
    }
    if (traced.meshes.empty())
        traced.meshes.push_back({"mesh_0", valueOf(Mesh::create({}, {0})), true});
    std::size_t at = 0;
    for (const ValueId argument : function.arguments()) {
        made->m_argumentAt.push_back(at);
        at += isComplex(function[argument].type.dtype) ? 2U : 1U;
    }
    at = 0;
    for (const ValueId result : function.results()) {
        made->m_resultTypes.push_back(function[result].type);
        made->m_resultAt.push_back(at);
        at += isComplex(function[result].type.dtype) ? 2U : 1U;
    }
    if (hasComplexValues(function)) {
        auto pairs = withComplexPairs(function);
        if (!pairs)
            return pairs.error();
        function = *std::move(pairs);
    }

    const bool isManual = hasManualComputation(function); // it says itself what devices do
    Program program;
    program.meshes = std::move(traced.meshes);
    program.functions.push_back(std::move(function));
    auto partitioned = propagateAndPartition(std::move(program));
    if (!partitioned)
        return partitioned.error();
    DeviceStage& stage = partitioned->device.stages.front();
    made->m_meshes = std::move(stage.meshes);
    made->m_function = std::move(stage.functions.front());
    made->m_propagated = std::move(partitioned->propagated);
    made->findPlacements();
    made->m_dependsOnDevice = dependsOnDevice(made->m_function);
    made->m_flops = flopsOf(made->m_function.function) * static_cast<double>(made->m_meshes.front().mesh.deviceCount());
    if (!isManual)
        made->m_repeatedAxes = python::repeatedAxes(made->m_function.function, made->m_meshes);
    for (const CollectiveUse& use : collectivesOf(made->m_function, made->m_meshes.front().mesh))
        made->m_collectives.push_back(
            {opName(use.kind), use.axes, use.cause.value, use.cause.reason, use.count, use.payloadBytes});
    return made;
}

void Executable::findPlacements()
{
    const Mesh& first = m_meshes.front().mesh;
    const std::vector<DeviceId> order = first.deviceOrder();
    for (const NamedMesh& named : m_meshes) {
        const std::vector<DeviceId> own = named.mesh.deviceOrder();
        std::vector<std::size_t>& positions = m_positions.emplace_back();
        for (const DeviceId device : order)
            positions.push_back(static_cast<std::size_t>(std::find(own.begin(), own.end(), device) - own.begin()));
    }
    const Function& function = m_function.function;
    const auto placed = [&](ValueId value) {
        const TensorSharding& sharding = *function[value].sharding;
        const Mesh& mesh = m_meshes[static_cast<std::size_t>(sharding.mesh)].mesh;
        return placementOf(mesh, sharding, !mesh.axes().empty() && !mesh.axes().front().name.starts_with("axis_"));
    };
    for (const std::size_t at : m_argumentAt)
        m_argumentPlacements.push_back(placed(function.arguments()[at]));
    for (const std::size_t at : m_resultAt)
        m_resultPlacements.push_back(placed(function.results()[at]));
}

Result<std::vector<ArrayPointer>> Executable::call(std::vector<ArrayPointer> arguments)
{
    return ask(shared_from_this(), std::move(arguments), m_resultTypes, m_resultPlacements, m_isCommitted);
}

Result<std::vector<Pieces>> Executable::run(const std::vector<ArrayPointer>& arguments)
{
    const Function& function = m_function.function;
    const std::size_t devices = m_positions.front().size();
    std::vector<Pieces> pieces; // by argument and position of the first mesh
    bool isSmall = flops() <= kFewFlops;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const Pieces own = piecesUnder(*arguments[i], *m_argumentPlacements[i]);
        const Value& argument = function[function.arguments()[m_argumentAt[i]]];
        Pieces ordered;
        for (std::size_t device = 0; device < devices; ++device)
            ordered.push_back(own[m_positions[static_cast<std::size_t>(argument.sharding->mesh)][device]]);
        if (isComplex(arguments[i]->type().dtype))
            addParts(pieces, ordered, argument.type.dtype);
        else
            pieces.push_back(std::move(ordered));
        isSmall = isSmall && own.front()->type().elements() <= kFewElements;
    }

    std::vector<Pieces> results;
    if (m_dependsOnDevice && devices > 1) {
        auto made = runTogether(pieces, static_cast<std::int64_t>(devices));
        if (!made)
            return made.error();
        results = *std::move(made);
    } else {
        // Once for each different set of pieces.
        std::map<std::vector<const HostArray*>, std::size_t> number;
        std::vector<std::size_t> setOf;
        std::vector<Pieces> sets(pieces.size());
        for (std::size_t device = 0; device < devices; ++device) {
            std::vector<const HostArray*> set;
            for (const Pieces& argument : pieces)
                set.push_back(argument[device].get());
            const auto [found, isNew] = number.try_emplace(std::move(set), number.size());
            setOf.push_back(found->second);
            for (std::size_t i = 0; isNew && i < pieces.size(); ++i)
                sets[i].push_back(pieces[i][device]);
        }
        auto made = isSmall ? runInline(sets) : runTogether(sets, static_cast<std::int64_t>(number.size()));
        if (!made)
            return made.error();
        for (const Pieces& some : *made) {
            Pieces& all = results.emplace_back();
            for (const std::size_t set : setOf)
                all.push_back(some[set]);
        }
    }
    for (std::size_t i = 0; i < m_resultTypes.size(); ++i) { // from here on by result
        const bool isPair = isComplex(m_resultTypes[i].dtype);
        results[i] = isPair ? joined(results[m_resultAt[i]], results[m_resultAt[i] + 1], m_resultTypes[i].dtype)
                            : results[m_resultAt[i]];
    }
    results.resize(m_resultTypes.size());
    // In the order of each result's own mesh; of equal pieces there is one.
    for (std::size_t i = 0; i < results.size(); ++i) {
        const auto mesh = static_cast<std::size_t>(function[function.results()[m_resultAt[i]]].sharding->mesh);
        Pieces ordered(devices);
        std::map<std::pair<std::int64_t, IndexBox>, Piece> known;
        for (std::size_t device = 0; device < devices; ++device) {
            const std::size_t at = m_positions[mesh][device];
            const auto position = static_cast<std::int64_t>(at);
            const IndexBox box = m_resultPlacements[i]->boxAt(m_resultTypes[i].shape, position);
            ordered[at] = known.try_emplace({m_resultPlacements[i]->partAt(position), box}, results[i][device]).first->second;
        }
        results[i] = std::move(ordered);
    }
    return results;
}

Result<std::vector<Pieces>> Executable::runInline(const std::vector<Pieces>& arguments)
{
    const std::size_t sets = arguments.empty() ? 1 : arguments.front().size();
    std::vector<Pieces> results(m_function.function.results().size());
    for (std::size_t set = 0; set < sets; ++set) {
        std::vector<HostArray> values;
        for (const Pieces& argument : arguments)
            values.push_back(*argument[set]);
        auto made = evaluate(m_function.function, values, {.meshes = m_meshes});
        if (!made)
            return made.error();
        for (std::size_t i = 0; i < made->size(); ++i)
            results[i].push_back(std::make_shared<const HostArray>(std::move((*made)[i])));
    }
    return results;
}

Result<std::vector<Pieces>> Executable::runTogether(const std::vector<Pieces>& arguments, std::int64_t count)
{
    const bool isApart = !m_dependsOnDevice;
    const auto devices = virtualDevices(count);
    if (!devices)
        return devices.error();
    std::shared_ptr<LoadedFunction>& loaded = m_loaded[count];
    if (loaded == nullptr) {
        std::vector<NamedMesh> meshes = m_meshes;
        if (isApart)
            meshes = {{"apart", valueOf(Mesh::create({{"set", count}})), false}};
        auto made = LoadedFunction::load(
            schedule(isApart ? apart(m_function) : m_function, SchedulePolicy::Host, ArgumentPlace::Callers), std::move(meshes),
            **devices);
        if (!made)
            return made.error();
        loaded = *std::move(made);
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        for (std::int64_t device = 0; device < count; ++device) {
            // Nothing writes to an argument that is not donated.
            const std::byte* at = arguments[i][static_cast<std::size_t>(device)]->data();
            loaded->placeArgument(i, device, const_cast<std::byte*>(at));
        }
    }
    auto results = placeResults(*loaded, arguments);
    if (!results)
        return results.error();
    if (const auto done = loaded->run(); !done)
        return done.error();
    return results;
}

OperationCounts Executable::wholeCounts() const
{
    return countsOf(m_propagated.functions.front(), BlockId(std::int32_t{0}));
}

OperationCounts Executable::deviceCounts() const
{
    return countsOf(m_function.function, BlockId(std::int32_t{0}));
}

std::string Executable::text() const
{
    return writeProgram(m_propagated);
}

std::string Executable::deviceText() const
{
    return python::deviceText(m_function, m_meshes);
}

Result<SimulatedMachine> SimulatedMachine::named(const std::string& name)
{
    auto machine = sim::machineNamed(name);
    if (!machine)
        return machine.error();
    auto cost = sim::costOptionsOf(machine->chip);
    if (!cost)
        return cost.error();
    return SimulatedMachine{*std::move(machine), *std::move(cost)};
}

MemoryUse Executable::memory() const
{
    const ScheduledFunction scheduled = schedule(m_function, SchedulePolicy::Overlapped);
    const Function& function = scheduled.device.function;
    const BufferPlan& plan = scheduled.buffers;
    MemoryUse use;
    use.onHost = plan.hostBytes;
    std::vector<bool> isOutside(plan.buffers.size());
    // A complex number's two parts are two values.
    const auto bytesOf = [&](const std::vector<ValueId>& values, const std::vector<std::size_t>& starts) {
        std::vector<std::int64_t> bytes(starts.size());
        for (std::size_t i = 0, part = 0; i < values.size(); ++i) {
            while (part + 1 < starts.size() && starts[part + 1] <= i)
                ++part;
            bytes[part] += function[values[i]].type.bytes();
            if (const std::int32_t buffer = plan.bufferOf[values[i].at()]; buffer >= 0)
                isOutside[static_cast<std::size_t>(buffer)] = true;
        }
        return bytes;
    };
    use.arguments = bytesOf(function.arguments(), m_argumentAt);
    use.results = bytesOf(function.results(), m_resultAt);

    std::vector<std::int64_t> change(scheduled.instructions.size() + 2);
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
        const Buffer& buffer = plan.buffers[i];
        if (isOutside[i] || buffer.depth > 0 || buffer.onHost)
            continue;
        change[buffer.first] += buffer.bytes;
        change[buffer.last + 1] -= buffer.bytes;
    }
    std::int64_t live = 0;
    for (const std::int64_t step : change)
        use.temporaries = std::max(use.temporaries, live += step);
    return use;
}

Result<double> Executable::secondsOn(const SimulatedMachine& there) const
{
    const auto simulated = sim::simulate(schedule(m_function, SchedulePolicy::Overlapped), m_meshes.front().mesh,
        m_propagated.functions.front(), there.machine, there.cost);
    if (!simulated)
        return simulated.error();
    return simulated->stepSeconds;
}

} // namespace meshwright::python
