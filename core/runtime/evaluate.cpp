// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/evaluate.h"

#include "core/devices/virtual_devices.h"
#include "core/kernels/kernel.h"
#include "core/partition/body_lowering.h"
#include "core/program/attention.h"
#include "core/program/transform.h"
#include "core/runtime/group_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

namespace meshwright {

namespace {

void promote(DType& dtype)
{
    if (isFloating(dtype))
        dtype = DType::F64;
}

void promoteConstant(ConstantAttributes& constant)
{
    if (!isFloating(constant.type.dtype))
        return;
    if (!constant.data.isSplat()) {
        const auto& blob = *std::get<std::shared_ptr<const std::string>>(constant.data.value);
        const HostArray wide = HostArray::fromBytes(constant.type, std::as_bytes(std::span(blob))).converted(DType::F64);
        constant.data.value = std::make_shared<const std::string>(
            reinterpret_cast<const char*>(wide.data()), static_cast<std::size_t>(wide.bytes()));
    }
    constant.type.dtype = DType::F64;
}

/// Precondition: its operands are promoted.
void promoteAttention(const Function& function, Op& op)
{
    AttentionForm form = *attentionForm(op.as<OtherAttributes>());
    form.operandType = DType::F64;
    std::vector<TensorType> operands;
    for (const ValueId operand : op.operands)
        operands.push_back(function[operand].type);
    op.attributes = attentionAttributes(op.kind, form, operands);
}

/// The same function with f64 in the place of every floating type. A BitcastConvert keeps the type that it names: its kernel converts.
Function promoted(Function function)
{
    for (Value& value : function.values)
        promote(value.type.dtype);
    for (Op& op : function.ops) {
        if (op.kind == OpKind::Constant)
            promoteConstant(op.as<ConstantAttributes>());
        else if (op.kind == OpKind::Iota)
            promote(op.as<IotaAttributes>().type.dtype);
        else if (op.kind == OpKind::Convert)
            promote(op.as<ConvertAttributes>().dtype);
        else if (op.kind == OpKind::Attention || op.kind == OpKind::AttentionGrad) {
            promoteAttention(function, op);
        } else if (isKept(op.kind)) {
            for (TensorType& type : op.as<OtherAttributes>().results)
                promote(type.dtype);
        } else if (op.kind == OpKind::DotGeneral) {
            promote(op.as<DotAttributes>().resultType);
            promote(op.as<DotAttributes>().operandType);
        }
    }
    return function;
}

const Mesh& manualMesh(const ComputationAttributes& computation, std::span<const NamedMesh> meshes)
{
    const auto& shardings = computation.inShardings.empty() ? computation.outShardings : computation.inShardings;
    return meshes[static_cast<std::size_t>(shardings.empty() ? 0 : shardings.front().mesh)].mesh;
}

/// The collectives of a function's manual computations, by op.
using Collectives = std::map<OpId, BodyCollective>;

/// Runs blocks once for each lane. There is one lane, but inside of manual computations there is one for each setting of the manual axes:
/// a device for all that differ along the other axes only.
class Evaluation {
public:
    /// `stop` is set, too, by a failure.
    Evaluation(const Function& function, std::span<const NamedMesh> meshes, const Collectives& collectives, StopFlag& stop)
        : m_function(function)
        , m_meshes(meshes)
        , m_collectives(collectives)
        , m_stop(stop)
        , m_site{function, [&function](ValueId value) { return wholePiece(function[value].type.shape); }}
    {
    }

    Result<std::vector<HostArray>> run(std::span<const HostArray> arguments)
    {
        Lanes lanes = lanesAt({0}, nullptr);
        for (std::size_t i = 0; i < arguments.size() && !m_stop.isSet(); ++i)
            lanes.front().hold(m_function.arguments()[i], arguments[i]);
        std::vector<HostArray> results = runBlock(BlockId(std::int32_t{0}), lanes).front();
        if (m_problem)
            return *m_problem;
        if (m_stop.isSet())
            return VirtualDevices::interrupted();
        return results;
    }

private:
    using Arrays = std::vector<HostArray>;

    struct Lane {
        const Mesh* mesh = nullptr; ///< of the manual computations around
        std::int64_t position = 0; ///< on it
        std::map<ValueId, HostArray> memory;
        std::vector<std::byte*> addresses; ///< by value

        void hold(ValueId value, HostArray array)
        {
            HostArray& held = memory.insert_or_assign(value, std::move(array)).first->second;
            addresses[value.at()] = held.data();
        }

        void release(ValueId value)
        {
            memory.erase(value);
            addresses[value.at()] = nullptr;
        }

        const HostArray& operator[](ValueId value) const { return memory.at(value); }
    };
    using Lanes = std::vector<Lane>;

    Lanes lanesAt(const std::vector<std::int64_t>& positions, const Mesh* mesh) const
    {
        Lanes lanes(positions.size());
        for (std::size_t i = 0; i < lanes.size(); ++i) {
            lanes[i].mesh = mesh;
            lanes[i].position = positions[i];
            lanes[i].addresses.resize(m_function.values.size(), nullptr);
        }
        return lanes;
    }

    static void release(Lanes& lanes, ValueId value)
    {
        for (Lane& lane : lanes)
            lane.release(value);
    }

    /// The block's results, by lane; everything that the block made is given back.
    std::vector<Arrays> runBlock(BlockId id, Lanes& lanes)
    {
        const Block& block = m_function[id];
        std::map<ValueId, std::size_t> uses; // of this block's values within it, left to come
        for (const OpId op : block.ops) {
            for (const ValueId operand : m_function[op].operands)
                ++uses[operand];
        }
        for (const ValueId result : block.results)
            ++uses[result];
        for (const OpId op : block.ops) {
            if (m_stop.isSet())
                return std::vector<Arrays>(lanes.size());
            runOp(op, lanes);
            for (const ValueId operand : m_function[op].operands) {
                if (--uses[operand] == 0)
                    release(lanes, operand);
            }
            for (const ValueId result : m_function[op].results) {
                if (!uses.contains(result))
                    release(lanes, result);
            }
        }
        std::vector<Arrays> results(lanes.size());
        if (m_stop.isSet()) // a Repeat that was stopped has no results
            return results;
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            for (const ValueId result : block.results)
                results[lane].push_back(lanes[lane][result]);
        }
        for (const auto& [value, count] : uses)
            release(lanes, value);
        for (const ValueId argument : block.arguments)
            release(lanes, argument);
        return results;
    }

    void runOp(OpId id, Lanes& lanes)
    {
        const Op& op = m_function[id];
        if (op.kind == OpKind::Repeat)
            return runRepeat(op, lanes);
        if (op.kind == OpKind::While)
            return runWhile(op, lanes);
        if (op.kind == OpKind::Case)
            return runCase(op, lanes);
        if (isManual(op))
            return runManual(op, lanes);
        if (op.kind == OpKind::Computation)
            return runNamed(op, lanes);
        if (const auto collective = m_collectives.find(id); collective != m_collectives.end())
            return exchange(op, collective->second, lanes);
        if (isPartitionId(op))
            return holdIds(op, lanes);
        auto& kernel = m_kernels[id];
        if (kernel == nullptr)
            kernel = makeKernel(m_site, std::span(&id, 1), op.results, [](ValueId) { return true; });
        for (Lane& lane : lanes) {
            for (const ValueId result : op.results)
                lane.hold(result, HostArray(m_function[result].type));
            kernel->run(lane.addresses, m_scratch, m_stop);
        }
    }

    void runRepeat(const Op& op, Lanes& lanes)
    {
        const auto& attributes = op.as<RepeatAttributes>();
        const BlockId bodyId = op.bodies.front();
        const auto& bodyArguments = m_function[bodyId].arguments;
        std::vector<Arrays> carries(lanes.size());
        std::vector<Arrays> stacks(lanes.size());
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            for (std::size_t i = 0; i < attributes.carries; ++i)
                carries[lane].push_back(lanes[lane][op.operands[i]]);
            for (std::size_t i = attributes.carries; i < op.results.size(); ++i)
                stacks[lane].emplace_back(m_function[op.results[i]].type);
        }
        for (std::int64_t round = 0; round < attributes.count; ++round) {
            const std::int64_t at = attributes.reversed ? attributes.count - 1 - round : round;
            for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
                for (std::size_t i = 0; i < op.operands.size(); ++i) {
                    if (i < attributes.carries)
                        lanes[lane].hold(bodyArguments[i], std::move(carries[lane][i]));
                    else if (i < attributes.carries + attributes.stacked)
                        lanes[lane].hold(
                            bodyArguments[i], sliceOf(lanes[lane][op.operands[i]], at, m_function[bodyArguments[i]].type));
                    else
                        lanes[lane].hold(bodyArguments[i], lanes[lane][op.operands[i]]);
                }
            }
            std::vector<Arrays> yielded = runBlock(bodyId, lanes);
            if (m_stop.isSet())
                return;
            for (std::size_t lane = 0; lane < lanes.size(); ++lane)
                keepYields(attributes, at, yielded[lane], carries[lane], stacks[lane]);
        }
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            for (std::size_t i = 0; i < op.results.size(); ++i)
                lanes[lane].hold(op.results[i],
                    i < attributes.carries ? std::move(carries[lane][i]) : std::move(stacks[lane][i - attributes.carries]));
        }
    }

    static void keepYields(const RepeatAttributes& attributes, std::int64_t at, Arrays& yielded, Arrays& carries, Arrays& stacks)
    {
        for (std::size_t i = 0; i < yielded.size(); ++i) {
            if (i < attributes.carries)
                carries[i] = std::move(yielded[i]);
            else if (yielded[i].bytes() > 0)
                std::memcpy(stacks[i - attributes.carries].data() + at * yielded[i].bytes(), yielded[i].data(),
                    static_cast<std::size_t>(yielded[i].bytes()));
        }
    }

    static HostArray sliceOf(const HostArray& stack, std::int64_t at, const TensorType& type)
    {
        return HostArray::fromBytes(type, std::span(stack.data() + at * type.bytes(), static_cast<std::size_t>(type.bytes())));
    }

    /// Each lane for as long as its own condition holds.
    void runWhile(const Op& op, Lanes& lanes)
    {
        const std::size_t carries = op.as<WhileAttributes>().carries;
        const auto enter = [&](Lane& lane, BlockId block) {
            for (std::size_t i = 0; i < op.operands.size(); ++i)
                lane.hold(m_function[block].arguments[i], lane[i < carries ? op.results[i] : op.operands[i]]);
        };
        for (Lane& lane : lanes) {
            for (std::size_t i = 0; i < carries; ++i)
                lane.hold(op.results[i], lane[op.operands[i]]);
        }
        std::vector<bool> goesOn(lanes.size(), true);
        while (!m_stop.isSet()) {
            const std::vector<Arrays> conditions = runSome(op.bodies.front(), lanes, goesOn, enter);
            if (m_stop.isSet())
                return;
            for (std::size_t lane = 0; lane < lanes.size(); ++lane)
                goesOn[lane] = goesOn[lane] && conditions[lane].front().values().front() != 0.0;
            if (std::find(goesOn.begin(), goesOn.end(), true) == goesOn.end())
                return;
            std::vector<Arrays> yielded = runSome(op.bodies.back(), lanes, goesOn, enter);
            keepResults(op, lanes, goesOn, yielded);
        }
    }

    void runCase(const Op& op, Lanes& lanes)
    {
        std::vector<std::size_t> branches;
        for (const Lane& lane : lanes) {
            const double which = lane[op.operands.front()].values().front();
            const bool isTruth = m_function[op.operands.front()].type.dtype == DType::Pred;
            const double last = static_cast<double>(op.bodies.size() - 1);
            const double branch = isTruth ? (which != 0.0 ? 0.0 : 1.0) : which < 0.0 ? last : which;
            branches.push_back(static_cast<std::size_t>(std::min(branch, last)));
        }
        for (std::size_t branch = 0; branch < op.bodies.size() && !m_stop.isSet(); ++branch) {
            std::vector<bool> takes;
            for (const std::size_t taken : branches)
                takes.push_back(taken == branch);
            std::vector<Arrays> yielded = runSome(op.bodies[branch], lanes, takes, [&](Lane& lane, BlockId block) {
                for (std::size_t i = 1; i < op.operands.size(); ++i)
                    lane.hold(m_function[block].arguments[i - 1], lane[op.operands[i]]);
            });
            keepResults(op, lanes, takes, yielded);
        }
    }

    void keepResults(const Op& op, Lanes& lanes, const std::vector<bool>& chosen, std::vector<Arrays>& yielded) const
    {
        for (std::size_t lane = 0; lane < lanes.size() && !m_stop.isSet(); ++lane) {
            for (std::size_t i = 0; chosen[lane] && i < op.results.size(); ++i)
                lanes[lane].hold(op.results[i], std::move(yielded[lane][i]));
        }
    }

    /// A block on the chosen lanes only; nothing in the places of the others.
    template <typename Enter>
    std::vector<Arrays> runSome(BlockId block, Lanes& lanes, const std::vector<bool>& chosen, const Enter& enter)
    {
        Lanes some;
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            if (!chosen[lane])
                continue;
            enter(lanes[lane], block);
            some.push_back(std::move(lanes[lane]));
        }
        std::vector<Arrays> made = some.empty() ? std::vector<Arrays>() : runBlock(block, some);
        std::vector<Arrays> results(lanes.size());
        for (std::size_t lane = 0, next = 0; lane < lanes.size(); ++lane) {
            if (!chosen[lane])
                continue;
            lanes[lane] = std::move(some[next]);
            results[lane] = std::move(made[next++]);
        }
        return results;
    }

    // ---- computations

    void runNamed(const Op& op, Lanes& lanes)
    {
        const BlockId body = op.bodies.front();
        for (Lane& lane : lanes) {
            for (std::size_t i = 0; i < op.operands.size(); ++i)
                lane.hold(m_function[body].arguments[i], lane[op.operands[i]]);
        }
        std::vector<Arrays> results = runBlock(body, lanes);
        for (std::size_t lane = 0; lane < lanes.size() && !m_stop.isSet(); ++lane) {
            for (std::size_t i = 0; i < op.results.size(); ++i)
                lanes[lane].hold(op.results[i], std::move(results[lane][i]));
        }
    }

    /// The operands are cut for the lanes inside, and the results put together from theirs; of equal pieces the first one's is taken.
    void runManual(const Op& op, Lanes& lanes)
    {
        const auto& computation = op.as<ComputationAttributes>();
        const BlockId body = op.bodies.front();
        const Mesh& mesh = manualMesh(computation, m_meshes);
        std::vector<std::int64_t> positions;
        std::vector<std::size_t> outer; // the lane around, by lane inside
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            for (const std::int64_t position : positionsAlong(computation.manualAxes, lanes[lane].position, mesh)) {
                positions.push_back(position);
                outer.push_back(lane);
            }
        }
        Lanes inner = lanesAt(positions, &mesh);
        for (std::size_t lane = 0; lane < inner.size(); ++lane) {
            for (std::size_t i = 0; i < op.operands.size(); ++i)
                inner[lane].hold(m_function[body].arguments[i],
                    lanes[outer[lane]][op.operands[i]].slice(
                        pieceBox(op.operands[i], computation.inShardings[i], computation, mesh, positions[lane])));
        }
        std::vector<Arrays> results = runBlock(body, inner);
        if (m_stop.isSet())
            return;
        for (Lane& lane : lanes) {
            for (const ValueId result : op.results)
                lane.hold(result, HostArray(m_function[result].type));
        }
        for (std::size_t lane = inner.size(); lane-- > 0;) {
            for (std::size_t i = 0; i < op.results.size(); ++i)
                lanes[outer[lane]]
                    .memory.at(op.results[i])
                    .assign(pieceBox(op.results[i], computation.outShardings[i], computation, mesh, positions[lane]),
                        results[lane][i]);
        }
    }

    /// The positions that differ from `position` along the axes only.
    static std::vector<std::int64_t> positionsAlong(
        const std::vector<std::int32_t>& manualAxes, std::int64_t position, const Mesh& mesh)
    {
        AxisRefs axes;
        for (const std::int32_t axis : manualAxes)
            axes.push_back(wholeAxis(mesh, static_cast<std::size_t>(axis)));
        for (std::vector<std::int64_t>& group : deviceGroups(axes, mesh)) {
            if (std::find(group.begin(), group.end(), position) != group.end())
                return std::move(group);
        }
        return {position};
    }

    /// The part of a value outside that a lane has inside.
    IndexBox pieceBox(ValueId whole, TensorSharding sharding, const ComputationAttributes& computation, const Mesh& mesh,
        std::int64_t position) const
    {
        for (DimSharding& dim : sharding.dims) {
            std::erase_if(dim.axes, [&](const AxisRef& axis) {
                return !std::binary_search(computation.manualAxes.begin(), computation.manualAxes.end(), axis.axis);
            });
        }
        return shardBox(m_function[whole].type.shape, sharding, mesh, position);
    }

    void exchange(const Op& op, const BodyCollective& collective, Lanes& lanes)
    {
        std::map<std::int64_t, std::size_t> laneAt;
        for (std::size_t lane = 0; lane < lanes.size(); ++lane)
            laneAt[lanes[lane].position] = lane;
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            if (collective.kind == OpKind::CollectivePermute
                && !permute(op.operands[i], op.results[i], collective, lanes, laneAt))
                return disagree(op);
            for (const std::vector<std::int64_t>& group : collective.groups) {
                const auto present
                    = std::count_if(group.begin(), group.end(), [&](std::int64_t at) { return laneAt.contains(at); });
                if (present == 0)
                    continue; // the same, at another place along the automatic axes
                if (present != std::ssize(group))
                    return disagree(op);
                std::vector<const HostArray*> members;
                for (const std::int64_t position : group)
                    members.push_back(&lanes[laneAt.at(position)][op.operands[i]]);
                std::vector<HostArray> made = exchangedInGroup(collective, members);
                for (std::size_t member = 0; member < group.size(); ++member)
                    lanes[laneAt.at(group[member])].hold(op.results[i], std::move(made[member]));
            }
        }
    }

    /// False when a lane is to receive from one that is not there.
    bool permute(ValueId operand, ValueId result, const BodyCollective& collective, Lanes& lanes,
        const std::map<std::int64_t, std::size_t>& laneAt) const
    {
        for (Lane& lane : lanes) {
            const std::int64_t source = collective.sources[static_cast<std::size_t>(lane.position)];
            if (source >= 0 && !laneAt.contains(source))
                return false;
            lane.hold(result,
                source < 0 ? HostArray::filled(m_function[result].type, 0.0) : HostArray(lanes[laneAt.at(source)][operand]));
        }
        return true;
    }

    /// Devices of a group that are in different branches, or of which some have left a loop, cannot exchange anything.
    void disagree(const Op& op)
    {
        m_problem = Problem{"MW1230",
            fmt::format(
                "{} in function \"{}\" never ends: some devices of a group take another branch, or leave the loop earlier",
                opName(op), m_function.name),
            "let the condition depend on values that are equal on all devices of the group"};
        m_stop.set();
    }

    static void holdIds(const Op& op, Lanes& lanes)
    {
        for (Lane& lane : lanes)
            lane.hold(
                op.results.front(), HostArray::filled({DType::U32, {}}, static_cast<double>(lane.mesh->deviceAt(lane.position))));
    }

    const Function& m_function;
    std::span<const NamedMesh> m_meshes;
    const Collectives& m_collectives;
    StopFlag& m_stop;
    KernelSite m_site;
    std::map<OpId, std::unique_ptr<const Kernel>> m_kernels;
    Scratch m_scratch;
    std::optional<Problem> m_problem;
};

/// Collects the collectives of all manual computations.
class CollectiveReader {
public:
    CollectiveReader(const Function& function, std::span<const NamedMesh> meshes)
        : m_function(function)
        , m_meshes(meshes)
    {
    }

    Result<Collectives> run()
    {
        visit(BlockId(std::int32_t{0}), nullptr, {});
        if (!m_problems.empty())
            return m_problems;
        return std::move(m_collectives);
    }

private:
    void visit(BlockId block, const Mesh* mesh, const std::vector<std::int32_t>& manualAxes)
    {
        for (const OpId id : m_function[block].ops) {
            const Op& op = m_function[id];
            if (isManual(op)) {
                enter(op, manualAxes);
                continue;
            }
            if (isBodyCollective(op) || isPartitionId(op))
                read(id, mesh, manualAxes);
            for (const BlockId body : op.bodies)
                visit(body, mesh, manualAxes);
        }
    }

    void enter(const Op& op, std::vector<std::int32_t> manualAxes)
    {
        const auto& computation = op.as<ComputationAttributes>();
        if (m_meshes.empty()) {
            m_problems.push_back({"MW1504",
                fmt::format("{} in function \"{}\" needs devices; one thread cannot run it", opName(op), m_function.name)});
            return;
        }
        manualAxes.insert(manualAxes.end(), computation.manualAxes.begin(), computation.manualAxes.end());
        std::sort(manualAxes.begin(), manualAxes.end());
        visit(op.bodies.front(), &manualMesh(computation, m_meshes), manualAxes);
    }

    void read(OpId id, const Mesh* mesh, const std::vector<std::int32_t>& manualAxes)
    {
        const Op& op = m_function[id];
        if (mesh == nullptr) {
            m_problems.push_back({"MW1504",
                fmt::format("{} in function \"{}\" needs devices; one thread cannot run it", opName(op), m_function.name)});
            return;
        }
        if (isPartitionId(op))
            return;
        auto collective = bodyCollective(m_function, op, *mesh);
        if (!collective)
            append(m_problems, collective.error());
        else if (auto problem = crossesAutomaticAxes(*collective, op, manualAxes, *mesh))
            m_problems.push_back(*std::move(problem));
        else
            m_collectives.emplace(id, *std::move(collective));
    }

    const Function& m_function;
    std::span<const NamedMesh> m_meshes;
    Collectives m_collectives;
    Problems m_problems;
};

Problems checkArguments(const Function& function, std::span<const HostArray> arguments, bool inDouble)
{
    Problems problems = checkRunnable(function, true);
    forEachOp(function, [&](OpId op) {
        if (isCollective(function[op].kind) && function[op].kind != OpKind::Reshard)
            problems.push_back({"MW1504",
                fmt::format(
                    "{} in function \"{}\" needs devices; one thread cannot run it", opName(function[op].kind), function.name)});
    });
    if (arguments.size() != function.arguments().size()) {
        problems.push_back({"MW1503",
            fmt::format(
                "function \"{}\" takes {} arguments, got {}", function.name, function.arguments().size(), arguments.size())});
        return problems;
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const ValueId id = function.arguments()[i];
        const TensorType& wanted = function[id].type;
        const TensorType& given = arguments[i].type();
        const bool sameKind = wanted.dtype == given.dtype || (inDouble && isFloating(wanted.dtype) && isFloating(given.dtype));
        if (!sameKind || wanted.shape != given.shape)
            problems.push_back({"MW1503",
                fmt::format("argument {} ({}) is {}, got {}", i, valueText(function, id), typeText(wanted), typeText(given))});
    }
    return problems;
}

} // namespace

namespace {

/// A change of layout, which on whole arrays is the identity: a Reshard, or a collective as Shardy writes it.
bool isChangeOfLayout(const Function& function, const Op& op)
{
    return isCollective(op.kind) && !op.as<CollectiveAttributes>().pieces
        && function[op.operands.front()].type == function[op.results.front()].type;
}

Function withoutChangesOfLayout(Function function)
{
    for (Op& op : function.ops) {
        if (op.results.empty() || !isChangeOfLayout(function, op))
            continue;
        op.kind = OpKind::Reshape;
        op.attributes = ReshapeAttributes{function[op.results.front()].type.shape};
    }
    return function;
}

} // namespace

Result<std::vector<HostArray>> evaluate(const Function& given, std::span<const HostArray> arguments, EvaluateOptions options)
{
    const bool changesLayouts = std::any_of(
        given.ops.begin(), given.ops.end(), [&](const Op& op) { return !op.results.empty() && isChangeOfLayout(given, op); });
    std::optional<Function> plain;
    if (changesLayouts)
        plain = withoutChangesOfLayout(given);
    const Function& function = plain ? *plain : given;
    Problems problems = checkArguments(function, arguments, options.inDouble);
    const auto collectives = CollectiveReader(function, options.meshes).run();
    if (!collectives)
        append(problems, collectives.error());
    if (!problems.empty())
        return problems;
    StopFlag stop;
    const std::stop_callback onStop(options.stop, [&stop] { stop.set(); });
    if (!options.inDouble)
        return Evaluation(function, options.meshes, *collectives, stop).run(arguments);

    const Function wide = promoted(function);
    std::vector<HostArray> wideArguments;
    for (const HostArray& argument : arguments) {
        if (stop.isSet())
            return VirtualDevices::interrupted();
        wideArguments.push_back(isFloating(argument.type().dtype) ? argument.converted(DType::F64) : argument);
    }
    return Evaluation(wide, options.meshes, *collectives, stop).run(wideArguments);
}

} // namespace meshwright
