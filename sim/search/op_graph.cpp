// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/op_graph.h"

#include "core/partition/op_layout.h"
#include "core/program/attention.h"
#include "core/program/transform.h"
#include "core/reshard/reshard.h"
#include "core/schedule/label.h"
#include "core/support/text.h"
#include "sim/search/search_stop.h"
#include "sim/simulate/instruction_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace meshwright::sim {

namespace {

GridLayout withWholeFirst(const GridLayout& layout)
{
    GridLayout longer(1, 0U);
    longer.insert(longer.end(), layout.begin(), layout.end());
    return longer;
}

/// Distinct layouts, and which of them each choice has.
struct Distinct {
    std::vector<const GridLayout*> layouts;
    std::vector<std::size_t> of;
};

Distinct distinct(const std::vector<GridLayout>& layouts)
{
    Distinct result;
    std::map<GridLayout, std::size_t> known;
    for (const GridLayout& layout : layouts) {
        const auto [at, isNew] = known.try_emplace(layout, known.size());
        if (isNew)
            result.layouts.push_back(&layout);
        result.of.push_back(at->second);
    }
    return result;
}

} // namespace

const char* opPartName(OpPart part)
{
    static constexpr std::array<const char*, kOpPartCount> kNames{
        "products", "memory bandwidth", "reductions of partial sums", "reshards"};
    return kNames[static_cast<std::size_t>(part)];
}

OpGraph::OpGraph(const Function& function, const Mesh& mesh, const DeviceCost& device, const CollectiveCost& network,
    MatmulPrecision unstated, std::stop_token stop)
    : m_function(function)
    , m_mesh(mesh)
    , m_device(device)
    , m_network(network)
    , m_unstated(unstated)
    , m_stop(std::move(stop))
    , m_sources(function.values.size())
    , m_uses(useCounts(function))
    , m_fusedUse(function.values.size(), false)
{
    for (std::size_t i = 0; i < function.values.size(); ++i)
        m_aliases.emplace_back(i);
    forEachOp(function, [&](OpId op) {
        for (const ValueId operand : function[op].operands)
            m_fusedUse[operand.at()] = isElementwise(function[op].kind);
    });
    std::set<ValueId> stacked; // arguments that a loop walks along
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        if (op.kind != OpKind::Repeat)
            return;
        const auto& repeat = op.as<RepeatAttributes>();
        for (std::size_t i = repeat.carries; i < repeat.carries + repeat.stacked; ++i)
            stacked.insert(op.operands[i]);
    });
    for (const ValueId argument : function.arguments()) {
        if (!function[argument].type.shape.empty())
            addLayoutVariable(argument, function[argument].type.shape, stacked.contains(argument), true);
    }
    addBlock(BlockId(std::int32_t{0}), 1.0);
    addDonations();
    countBytes();
}

std::int64_t OpGraph::pieces(std::uint32_t axes) const
{
    std::int64_t count = 1;
    forEachAxis(axes, [&](std::size_t axis) { count *= m_mesh.axes()[axis].size; });
    return count;
}

TensorType OpGraph::localType(const TensorType& type, const GridLayout& layout) const
{
    TensorType local = type;
    for (std::size_t dim = 0; dim < layout.size(); ++dim)
        local.shape[dim] /= pieces(layout[dim]);
    return local;
}

std::int64_t OpGraph::localBytes(ValueId value, const GridLayout& layout) const
{
    return localType(m_function[value].type, layout).bytes();
}

TensorSharding OpGraph::shardingOf(const GridLayout& layout, std::int32_t mesh) const
{
    TensorSharding sharding = TensorSharding::replicatedOf(layout.size());
    for (std::size_t dim = 0; dim < layout.size(); ++dim)
        forEachAxis(layout[dim], [&](std::size_t axis) { sharding.dims[dim].axes.push_back(wholeAxis(m_mesh, axis)); });
    sharding.mesh = mesh;
    return sharding;
}

std::string OpGraph::textOf(const GridLayout& layout) const
{
    return layoutText(shardingOf(layout, 0), m_mesh);
}

/// Seconds of a change of layout; with `partial` axes the array is a partial sum over them before.
double OpGraph::reshardSeconds(const TensorType& type, const GridLayout& from, const GridLayout& to, std::uint32_t partial) const
{
    if (from == to && partial == 0)
        return 0.0;
    const std::int64_t width = byteSize(type.dtype);
    Reshards& known = partial == 0 ? m_reshards[{type.shape, width}] : m_reductions[std::tuple(type.shape, width, partial)];
    const auto [found, isNew] = known.try_emplace({from, to}, 0.0);
    if (isNew) {
        TensorSharding before = shardingOf(from, 0);
        forEachAxis(partial, [&](std::size_t axis) { before.unreduced.push_back(wholeAxis(m_mesh, axis)); });
        found->second = planReshard(type.shape, width, before, shardingOf(to, 0), m_mesh, m_network).cost;
    }
    return found->second;
}

std::vector<GridLayout> OpGraph::layoutsOf(const Shape& shape, bool keepFirstWhole) const
{
    std::vector<GridLayout> layouts = {GridLayout(shape.size(), 0U)};
    for (std::size_t axis = 0; axis < m_mesh.axes().size(); ++axis) {
        const std::size_t count = m_mesh.axes()[axis].size > 1 ? layouts.size() : 0;
        for (std::size_t i = 0; i < count; ++i) {
            for (std::size_t dim = keepFirstWhole ? 1 : 0; dim < shape.size(); ++dim) {
                GridLayout more = layouts[i];
                more[dim] |= 1U << axis;
                if (shape[dim] > 0 && shape[dim] % pieces(more[dim]) == 0)
                    layouts.push_back(std::move(more));
            }
        }
    }
    return layouts;
}

std::size_t OpGraph::addVariable(Variable variable, std::vector<ChoiceCost> costs)
{
    assert(!costs.empty() && variable.parts.size() == costs.size());
    m_variables.push_back(std::move(variable));
    m_graph.variables.push_back(std::move(costs));
    return m_variables.size() - 1;
}

/// A variable that is nothing but how a value lies.
std::size_t OpGraph::addLayoutVariable(ValueId value, const Shape& shape, bool keepFirstWhole, bool isArgument)
{
    std::vector<GridLayout> layouts = layoutsOf(shape, keepFirstWhole);
    Variable variable{valueText(m_function, value), value, isArgument, {}, {}, {}, {}};
    for (const GridLayout& layout : layouts) {
        variable.texts.push_back(textOf(layout));
        variable.splits.push_back(std::any_of(layout.begin(), layout.end(), [](std::uint32_t axes) { return axes != 0; }));
    }
    variable.parts.resize(layouts.size());
    variable.partial.resize(layouts.size(), false);
    const std::size_t index = addVariable(std::move(variable), std::vector<ChoiceCost>(layouts.size()));
    m_sources[value.at()] = {index, std::move(layouts)};
    return index;
}

void OpGraph::addParts(std::size_t variable, std::size_t choice, OpPart part, double seconds)
{
    m_variables[variable].parts[choice][static_cast<std::size_t>(part)] += seconds;
    m_graph.variables[variable][choice].seconds += seconds;
}

/// What it costs to bring a value into the layouts that one of its users needs.
void OpGraph::need(Need wanted, double runs)
{
    ValueId value = wanted.value;
    std::vector<GridLayout> layouts = wanted.layouts;
    const bool direct = m_aliases[value.at()] == value;
    while (m_aliases[value.at()] != value) {
        // A broadcast is made where it is used: what moves is its operand.
        const Op& broadcast = m_function[m_function[value].producer];
        const auto& attributes = broadcast.as<BroadcastAttributes>();
        const Shape& shape = m_function[broadcast.operands.front()].type.shape;
        for (GridLayout& layout : layouts) {
            GridLayout before(shape.size(), 0U);
            for (std::size_t dim = 0; dim < shape.size(); ++dim)
                before[dim] = shape[dim] == attributes.shape[attributes.dims[dim]] ? layout[attributes.dims[dim]] : 0U;
            layout = std::move(before);
        }
        value = broadcast.operands.front();
    }
    const Source& source = m_sources[value.at()];
    if (source.isFree())
        return;
    const TensorType& type = m_function[value].type;
    const Distinct from = distinct(source.layouts);
    const Distinct to = distinct(layouts);
    const std::size_t width = to.layouts.size();
    std::vector<double> seconds(from.layouts.size() * width, -1.0);
    const auto cost = [&](std::size_t before, std::size_t after) {
        double& known = seconds[from.of[before] * width + to.of[after]];
        if (known < 0.0)
            known = runs * reshardSeconds(type, *from.layouts[from.of[before]], *to.layouts[to.of[after]]);
        return known;
    };
    if (source.variable == wanted.variable) {
        for (std::size_t choice = 0; choice < layouts.size(); ++choice)
            addParts(wanted.variable, choice, OpPart::Reshards, cost(choice, choice));
    } else {
        const bool turned = m_edgeOf.contains({wanted.variable, source.variable});
        const auto key = turned ? std::pair(wanted.variable, source.variable) : std::pair(source.variable, wanted.variable);
        const auto [at, isNew] = m_edgeOf.try_emplace(key, m_graph.edges.size());
        if (isNew)
            m_graph.edges.push_back({key.first, key.second, std::vector<double>(source.layouts.size() * layouts.size(), 0.0)});
        auto& table = m_graph.edges[at->second].seconds;
        for (std::size_t before = 0; before < source.layouts.size(); ++before) {
            for (std::size_t after = 0; after < layouts.size(); ++after)
                table[turned ? after * source.layouts.size() + before : before * layouts.size() + after] += cost(before, after);
        }
    }
    if (direct)
        m_needs.push_back(std::move(wanted));
}

bool OpGraph::isKept(ValueId value) const
{
    return m_uses[value.at()] != 1 || !m_fusedUse[value.at()];
}

OpWork OpGraph::workOf(const Op& op, const Split& split) const
{
    OpWork work;
    if (isView(m_function, op, m_device))
        return work;
    const bool gathers = op.kind == OpKind::Gather || op.kind == OpKind::DynamicSlice || op.kind == OpKind::Slice;
    for (std::size_t i = gathers ? 1 : 0; i < op.operands.size() && !isElementwise(op.kind); ++i)
        work.bytesRead += localBytes(op.operands[i], split.operands[i]);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
        const std::int64_t bytes = localBytes(op.results[i], split.results[i]);
        if (!isElementwise(op.kind))
            work.bytesWritten += bytes;
        else if (isKept(op.results[i]))
            work.bytesWritten += 2 * bytes; // and read again
    }
    if (op.kind == OpKind::Attention || op.kind == OpKind::AttentionGrad) {
        std::vector<TensorType> operands;
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            operands.push_back(localType(m_function[op.operands[i]].type, split.operands[i]));
        const DType type = attentionForm(op.as<OtherAttributes>())->operandType;
        work.attention = attentionWork(m_function, op, operands);
        work.format = mathFormatOf(type).value_or(MathFormat::Fp32);
        work.precision = precisionOf(op, type, m_unstated);
    }
    if (op.kind != OpKind::DotGeneral)
        return work;
    const auto& attributes = op.as<DotAttributes>();
    work.matmul = productDims(attributes, localType(m_function[op.operands[0]].type, split.operands[0]),
        localType(m_function[op.operands[1]].type, split.operands[1]));
    const DType type = productType(m_function, op);
    work.format = mathFormatOf(type).value_or(MathFormat::Fp32);
    work.precision = precisionOf(op, type, m_unstated);
    return work;
}

void OpGraph::addBlock(BlockId block, double runs)
{
    for (const OpId op : m_function[block].ops) {
        throwIfStopped(m_stop);
        addOp(op, runs);
    }
}

void OpGraph::addOp(OpId id, double runs)
{
    const Op& op = m_function[id];
    if (op.kind == OpKind::Repeat)
        return addRepeat(id, runs);
    const auto isFree = [&](ValueId value) { return m_function[value].type.shape.empty() || m_sources[value.at()].isFree(); };
    const bool allFree = std::all_of(op.operands.begin(), op.operands.end(), isFree);
    const auto rule = op.bodies.empty() || meshwright::isKept(op.kind) ? shardingRule(m_function, id) : std::nullopt;
    if (op.bodies.empty() && allFree && !meshwright::isKept(op.kind))
        return; // constants, and what is made of them: every device makes the part that it needs
    if (!rule)
        return addOpaque(id, runs);
    if (op.kind == OpKind::BroadcastInDim) {
        const ValueId operand = op.operands.front();
        const auto& attributes = op.as<BroadcastAttributes>();
        Source source{m_sources[operand.at()].variable, {}};
        for (const GridLayout& layout : m_sources[operand.at()].layouts) {
            GridLayout wide(attributes.shape.size(), 0U);
            for (std::size_t dim = 0; dim < layout.size(); ++dim) {
                if (m_function[operand].type.shape[dim] == attributes.shape[attributes.dims[dim]])
                    wide[attributes.dims[dim]] = layout[dim];
            }
            source.layouts.push_back(std::move(wide));
        }
        m_sources[op.results.front().at()] = std::move(source);
        m_aliases[op.results.front().at()] = operand;
        return;
    }
    const auto bound = static_cast<std::size_t>(
        std::count_if(op.operands.begin(), op.operands.end(), [&](ValueId value) { return !isFree(value); }));
    const bool sums = std::any_of(
        rule->factors.begin(), rule->factors.end(), [](const Factor& factor) { return factor.kind == FactorKind::Reduction; });
    if (bound == 0)
        return addOpaque(id, runs);
    if (bound > 1 && (sums || op.kind == OpKind::DotGeneral) && op.results.size() == 1
        && !m_function[op.results.front()].type.shape.empty())
        return addOwn(id, *rule, runs);
    // The largest operand leads, of equal ones the one that was made last; broadcasts only when there is nothing else.
    std::optional<std::size_t> leader;
    const auto rank = [&](std::size_t i) {
        const ValueId value = op.operands[i];
        return std::tuple(m_aliases[value.at()] == value, m_function[value].type.elements(), value.at());
    };
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (!isFree(op.operands[i]) && (!leader || rank(i) > rank(*leader)))
            leader = i;
    }
    addFollower(id, *rule, *leader, runs);
}

/// An op of which only its own choice is known: how its factors are split.
void OpGraph::addOwn(OpId id, const OpShardingRule& rule, double runs)
{
    const Op& op = m_function[id];
    const ValueId made = op.results.front();
    const TensorType& type = m_function[made].type;
    const std::vector<Split> splits = splitsOf(rule, type.shape, reductionOf(m_function, op).has_value());
    Variable variable{opLabel(opName(op), valueText(m_function, made)), made, false, {}, {}, {}, {}};
    Source source;
    std::vector<std::vector<GridLayout>> operands(op.operands.size());
    std::vector<GridLayout> whole;
    for (const Split& split : splits) {
        std::vector<std::string> texts;
        for (std::size_t i = 0; i < split.operands.size(); ++i) {
            if (!split.operands[i].empty())
                texts.push_back(textOf(split.operands[i]));
            operands[i].push_back(split.operands[i]);
        }
        variable.texts.push_back(fmt::format("{} -> {}", join(texts, " x "), textOf(split.landing)));
        variable.splits.push_back(
            std::any_of(split.factors.begin(), split.factors.end(), [](std::uint32_t axes) { return axes != 0; }));
        variable.partial.push_back(split.partial != 0);
        OpParts parts{};
        const OpTime time = m_device.time(workOf(op, split));
        const bool product = op.kind == OpKind::DotGeneral;
        parts[static_cast<std::size_t>(product ? OpPart::Products : OpPart::Memory)]
            = runs * (product ? time.seconds : time.memorySeconds);
        parts[static_cast<std::size_t>(OpPart::PartialSums)]
            = split.partial != 0 ? runs * reshardSeconds(type, split.results.front(), split.landing, split.partial) : 0.0;
        variable.parts.push_back(parts);
        source.layouts.push_back(split.landing);
        whole.push_back(split.results.front());
    }
    std::vector<ChoiceCost> costs;
    for (const OpParts& parts : variable.parts)
        costs.push_back({parts[0] + parts[1] + parts[2] + parts[3], 0.0});
    source.variable = addVariable(std::move(variable), std::move(costs));
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (!m_function[op.operands[i]].type.shape.empty())
            need({id, {}, i, op.operands[i], source.variable, std::move(operands[i])}, runs);
    }
    m_landings.emplace_back(id, std::move(whole));
    m_sources[made.at()] = std::move(source);
}

/// An op that lies as one of its operands does.
void OpGraph::addFollower(OpId id, const OpShardingRule& rule, std::size_t leader, double runs)
{
    const Op& op = m_function[id];
    const Source lead = m_sources[op.operands[leader].at()];
    const bool reduces = reductionOf(m_function, op).has_value() && op.results.size() == 1;
    std::vector<std::vector<GridLayout>> operands(op.operands.size());
    std::vector<std::vector<GridLayout>> results(op.results.size());
    for (std::size_t choice = 0; choice < lead.layouts.size(); ++choice) {
        const Split split = splitBy(rule, leader, lead.layouts[choice], reduces);
        const OpTime time = m_device.time(workOf(op, split));
        if (op.kind == OpKind::Attention || op.kind == OpKind::AttentionGrad)
            addParts(lead.variable, choice, OpPart::Products, runs * time.seconds);
        else
            addParts(lead.variable, choice, OpPart::Memory, runs * time.memorySeconds);
        if (split.partial != 0) {
            m_variables[lead.variable].partial[choice] = true;
            addParts(lead.variable, choice, OpPart::PartialSums,
                runs * reshardSeconds(m_function[op.results.front()].type, split.landing, split.landing, split.partial));
        }
        for (std::size_t i = 0; i < operands.size(); ++i)
            operands[i].push_back(split.operands[i]);
        for (std::size_t i = 0; i < results.size(); ++i)
            results[i].push_back(split.results[i]);
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (!m_function[op.operands[i]].type.shape.empty())
            need({id, {}, i, op.operands[i], lead.variable, std::move(operands[i])}, runs);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (!m_function[op.results[i]].type.shape.empty())
            m_sources[op.results[i].at()] = {lead.variable, std::move(results[i])};
    }
}

/// An op of which no rule is known has everything whole.
void OpGraph::addOpaque(OpId id, double runs)
{
    const Op& op = m_function[id];
    Variable variable{std::string(opName(op)), op.results.empty() ? ValueId() : op.results.front(), false, {"whole"},
        std::vector<OpParts>(1), {false}, {false}};
    const std::size_t index = addVariable(std::move(variable), std::vector<ChoiceCost>(1));
    const auto whole
        = [&](ValueId value) { return std::vector<GridLayout>{GridLayout(m_function[value].type.shape.size(), 0U)}; };
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (!m_function[op.operands[i]].type.shape.empty())
            need({id, {}, i, op.operands[i], index, whole(op.operands[i])}, runs);
    }
    for (const ValueId result : op.results) {
        if (!m_function[result].type.shape.empty())
            m_sources[result.at()] = {index, whole(result)};
    }
}

/// A loop: its carries lie alike before, in and behind it; what it walks along has its first dimension whole.
void OpGraph::addRepeat(OpId id, double runs)
{
    const Op& op = m_function[id];
    const auto& repeat = op.as<RepeatAttributes>();
    const double times = runs * static_cast<double>(repeat.count);
    const Block& body = m_function[op.bodies.front()];
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const ValueId inside = body.arguments[i];
        const ValueId outside = op.operands[i];
        const Shape& shape = m_function[inside].type.shape;
        const Source& source = m_sources[outside.at()];
        if (i < repeat.carries) {
            if (shape.empty())
                continue;
            const std::size_t variable = addLayoutVariable(inside, shape, false, false);
            m_variables[variable].name = fmt::format("loop carry {}", valueText(m_function, op.results[i]));
            need({id, {}, i, outside, variable, m_sources[inside.at()].layouts}, runs);
            m_sources[op.results[i].at()] = m_sources[inside.at()];
        } else if (i < repeat.carries + repeat.stacked) {
            if (shape.empty())
                continue;
            const bool firstWhole = !source.isFree()
                && std::all_of(source.layouts.begin(), source.layouts.end(), [](const GridLayout& l) { return l.front() == 0; });
            if (firstWhole) {
                Source slice{source.variable, {}};
                for (const GridLayout& layout : source.layouts)
                    slice.layouts.emplace_back(layout.begin() + 1, layout.end());
                m_sources[inside.at()] = std::move(slice);
            } else {
                const std::size_t variable = addLayoutVariable(inside, shape, false, false);
                m_variables[variable].name = fmt::format("loop input {}", valueText(m_function, outside));
                std::vector<GridLayout> wanted;
                for (const GridLayout& layout : m_sources[inside.at()].layouts)
                    wanted.push_back(withWholeFirst(layout));
                need({id, {}, i, outside, variable, std::move(wanted)}, runs);
            }
        } else if (m_aliases[outside.at()] == outside) {
            m_sources[inside.at()] = source;
        } else if (!shape.empty()) {
            const std::size_t variable = addLayoutVariable(inside, shape, false, false);
            need({id, {}, i, outside, variable, m_sources[inside.at()].layouts}, runs);
        }
    }
    addBlock(op.bodies.front(), times);
    for (std::size_t i = 0; i < body.results.size(); ++i) {
        const ValueId yielded = body.results[i];
        if (m_function[yielded].type.shape.empty())
            continue;
        const Source& source = m_sources[yielded.at()];
        if (i < repeat.carries) {
            const Source& carry = m_sources[body.arguments[i].at()];
            need({{}, op.bodies.front(), i, yielded, carry.variable, carry.layouts}, times);
        } else if (!source.isFree()) {
            Source stacked{source.variable, {}};
            for (const GridLayout& layout : source.layouts)
                stacked.layouts.push_back(withWholeFirst(layout));
            m_sources[op.results[i].at()] = std::move(stacked);
        }
    }
}

/// A result that takes the place of an argument lies as that does.
void OpGraph::addDonations()
{
    for (const Donation& donation : m_function.donations) {
        const ValueId argument = m_function.arguments()[donation.argument];
        const Source& source = m_sources[argument.at()];
        if (!source.isFree())
            need({{}, BlockId(std::int32_t{0}), donation.result, m_function.results()[donation.result], source.variable,
                     source.layouts},
                1.0);
    }
}

/// Bytes of every choice at the moment when the whole program has the most alive.
void OpGraph::countBytes()
{
    std::vector<std::size_t> first(m_function.values.size(), 0);
    std::vector<std::size_t> last(m_function.values.size(), 0);
    std::size_t now = 0;
    const auto walk = [&](const auto& self, BlockId block) -> void {
        for (const ValueId argument : m_function[block].arguments)
            first[argument.at()] = now;
        for (const OpId id : m_function[block].ops) {
            const Op& op = m_function[id];
            ++now;
            for (const BlockId body : op.bodies)
                self(self, body);
            for (const ValueId operand : op.operands)
                last[operand.at()] = now;
            for (const ValueId result : op.results)
                first[result.at()] = last[result.at()] = now;
        }
        for (const ValueId result : m_function[block].results)
            last[result.at()] = now;
    };
    walk(walk, BlockId(std::int32_t{0}));
    for (const ValueId argument : m_function.arguments())
        last[argument.at()] = now;
    // What stands for memory of its own: no views of other arrays, and nothing that a fused pass keeps to itself.
    std::vector<ValueId> counted;
    for (std::size_t i = 0; i < m_function.values.size(); ++i) {
        const ValueId value(i);
        const Value& v = m_function[value];
        const bool inner = !v.producer.valid() && v.block != BlockId(std::int32_t{0});
        if (!m_sources[i].isFree() && m_aliases[i] == value && !inner && m_uses[i] > 0 && (!v.producer.valid() || isKept(value)))
            counted.push_back(value);
    }
    std::vector<std::int64_t> change(now + 2, 0);
    for (const ValueId value : counted) {
        change[first[value.at()]] += m_function[value].type.bytes();
        change[last[value.at()] + 1] -= m_function[value].type.bytes();
    }
    std::size_t peak = 0;
    std::int64_t most = -1;
    std::int64_t alive = 0;
    for (std::size_t at = 0; at <= now; ++at) {
        alive += change[at];
        if (alive > most) {
            most = alive;
            peak = at;
        }
    }
    for (const ValueId value : counted) {
        if (first[value.at()] > peak || last[value.at()] < peak)
            continue;
        const Source& source = m_sources[value.at()];
        for (std::size_t choice = 0; choice < source.layouts.size(); ++choice)
            m_graph.variables[source.variable][choice].bytes += static_cast<double>(localBytes(value, source.layouts[choice]));
    }
}

OpParts OpGraph::partsOf(const std::vector<std::uint32_t>& choices) const
{
    OpParts sums{};
    for (std::size_t variable = 0; variable < m_variables.size(); ++variable) {
        for (std::size_t part = 0; part < kOpPartCount; ++part)
            sums[part] += m_variables[variable].parts[choices[variable]][part];
    }
    for (const auto& edge : m_graph.edges)
        sums[static_cast<std::size_t>(OpPart::Reshards)]
            += edge.seconds[choices[edge.from] * m_graph.variables[edge.to].size() + choices[edge.to]];
    return sums;
}

std::string OpGraph::specOf(ValueId argument, const std::vector<std::uint32_t>& choices) const
{
    const Source& source = m_sources[argument.at()];
    return source.isFree() ? "P()" : textOf(source.layouts[choices[source.variable]]);
}

} // namespace meshwright::sim
