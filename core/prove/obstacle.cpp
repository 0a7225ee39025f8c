// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/obstacle.h"

#include "core/partition/device_program.h"
#include "core/program/transform.h"
#include "core/prove/known_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace meshwright {

namespace {

constexpr std::size_t kMostOps = 12; ///< of a program that shows an obstacle
constexpr std::size_t kMostOperands = 6; ///< that are described

/// How the pieces lie, as far as a layout can say.
TensorSharding layoutOf(const Standing& standing)
{
    TensorSharding layout = TensorSharding::replicatedOf(standing.dims.size());
    for (std::size_t dim = 0; dim < standing.dims.size(); ++dim)
        layout.dims[dim].axes = standing.dims[dim].from >= 0 ? standing.dims[dim].axes : AxisRefs();
    layout.unreduced = standing.partial;
    layout.unreducedKind = standing.kind;
    layout.mesh = standing.mesh;
    return layout;
}

/// The op that gives a value, or no op.
OpId producerOf(const Function& function, ValueId value)
{
    return function[value].producer;
}

/// A function of ops of another one: what they need of other ops are its arguments.
Function cut(
    Function made, const std::vector<OpId>& ops, const std::vector<ValueId>& arguments, const std::vector<ValueId>& results)
{
    const BlockId body(std::int32_t{0});
    made.name = "main";
    made.body() = {arguments, ops, results};
    made.resultNames.clear();
    made.resultShardings.clear();
    made.resultsKept.clear();
    made.shardingGroups.clear();
    made.donations.clear();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        Value& argument = made[arguments[i]];
        argument.producer = {};
        argument.block = body;
        argument.index = i;
    }
    for (const OpId op : ops) {
        made[op].block = body;
        for (const ValueId result : made[op].results)
            made[result].block = body;
    }
    for (const ValueId result : results)
        made.resultShardings.push_back(made[result].sharding);
    for (Value& value : made.values) {
        value.name.clear();
        value.annotation.clear();
    }
    return compacted(std::move(made));
}

/// What the blocks of an op use of what is outside of it.
void addCaptures(const Function& function, const Op& op, std::vector<ValueId>& used)
{
    std::set<ValueId> own;
    const auto visit = [&](const auto& self, const Op& holder) -> void {
        for (const BlockId body : holder.bodies) {
            own.insert(function[body].arguments.begin(), function[body].arguments.end());
            for (const OpId id : function[body].ops) {
                for (const ValueId operand : function[id].operands) {
                    if (!own.contains(operand))
                        used.push_back(operand);
                }
                self(self, function[id]);
                own.insert(function[id].results.begin(), function[id].results.end());
            }
            for (const ValueId result : function[body].results) {
                if (!own.contains(result))
                    used.push_back(result);
            }
        }
    };
    visit(visit, op);
}

void addOnce(std::vector<ValueId>& values, ValueId value)
{
    if (std::find(values.begin(), values.end(), value) == values.end())
        values.push_back(value);
}

} // namespace

bool Obstacles::standsInSource(ValueId value) const
{
    const Standings& known = m_device.standings[value.at()];
    return std::any_of(
        known.begin(), known.end(), [&](const Standing& standing) { return m_device.globals[standing.global].isInSource; });
}

/// What an op is given may be right: it is of the source, or a constant.
bool Obstacles::isGivenRightly(ValueId operand) const
{
    const Standings& known = m_device.standings[operand.at()];
    return standsInSource(operand)
        || std::any_of(known.begin(), known.end(), [](const Standing& standing) { return standing.isUniform(); });
}

std::string Obstacles::sourceName(GlobalId global) const
{
    const Function& function = m_source.function;
    for (std::size_t i = 0; i < function.values.size(); ++i) {
        const ValueId value(i);
        if (m_source.standings[i].empty() || m_source.standings[i].front().global != global)
            continue;
        const OpId producer = producerOf(function, value);
        const std::string& name = function[value].name;
        return producer.valid() && !name.empty() ? fmt::format("{} ({})", name, opName(function[producer]))
                                                 : valueText(function, value);
    }
    if (const GlobalValue& value = m_device.globals[global]; value.constant && value.constant->isSplat())
        return "a constant";
    return m_device.globals[global].isInSource ? "a part of the source" : "no value of the source";
}

/// The digits of a dimension, major to minor: parts of mesh axes, then the elements of a piece.
std::string Obstacles::dimText(const StandingDim& along, std::int64_t local, const Mesh& mesh) const
{
    if (along.from < 0)
        return local == 1 ? "[1]" : fmt::format("[{} equal]", local);
    std::string text;
    for (const AxisRef& axis : along.axes)
        text += fmt::format("[{}:{}]", axesText({axis}, mesh), axis.size);
    return text + (along.window ? fmt::format("[a window of {}]", local) : fmt::format("[{}]", local));
}

std::string Obstacles::pieces(ValueId value, const Standing& standing) const
{
    const Mesh& mesh = m_device.mesh(standing.mesh);
    std::vector<std::string> dims;
    int last = -1;
    for (std::size_t dim = 0; dim < standing.dims.size(); ++dim) {
        const StandingDim& along = standing.dims[dim];
        dims.push_back(dimText(along, m_device.local(value)[dim], mesh));
        if (along.from >= 0 && along.from < last)
            dims.back() += fmt::format(" (its dimension {})", along.from);
        last = std::max(last, along.from);
    }
    std::string text = dims.empty() ? "the scalar" : fmt::format("{}", fmt::join(dims, " x "));
    text += fmt::format(" of {}", sourceName(standing.global));
    if (!standing.partial.empty())
        text += fmt::format(", partial over {} by {}", axesText(standing.partial, mesh), reduceKindName(standing.kind));
    return text;
}

ProofValue Obstacles::described(ValueId value) const
{
    const Standings& known = m_device.standings[value.at()];
    return {valueText(m_device.function, value), typeText(m_device.function[value].type),
        known.empty() ? std::string("nothing that is known") : pieces(value, known.front())};
}

ProofObstacle Obstacles::at(OpId op, std::string reason) const
{
    const Function& function = m_device.function;
    ProofObstacle made;
    made.op = op;
    made.reason = std::move(reason);
    if (!op.valid())
        return made;
    const Op& held = function[op];
    made.opName = opName(held);
    if (!held.results.empty())
        made.value = valueText(function, held.results.front());
    made.place = held.kept ? held.kept->location : std::string();
    for (std::size_t i = 0; i < std::min(held.operands.size(), kMostOperands); ++i)
        made.has.push_back(described(held.operands[i]));
    std::vector<ValueId> leaves;
    made.device = deviceCut(op, leaves);
    made.source = sourceCut(op, leaves, kNoGlobal);
    return made;
}

ProofObstacle Obstacles::noted(OpId op) const
{
    const auto inside = m_inside.find(op.at());
    if (inside == m_inside.end())
        return at(op, m_reasons.at(op.at()));
    ProofObstacle made = inside->second;
    made.reason = fmt::format("in {}: {}", opName(m_device.function[op]), made.reason);
    return made;
}

ProofObstacle Obstacles::before(
    ValueId value, const std::string& what, const Standing& wanted, const TensorSharding* layout) const
{
    const Function& function = m_device.function;
    std::vector<bool> seen(function.values.size(), false);
    std::vector<ValueId> pending{value};
    OpId unknown;
    OpId strange;
    seen[value.at()] = true;
    const auto visit = [&](ValueId next) {
        if (!seen[next.at()])
            pending.push_back(next);
        seen[next.at()] = true;
    };
    while (!pending.empty()) {
        const ValueId at = pending.back();
        pending.pop_back();
        const OpId producer = producerOf(function, at);
        if (!producer.valid())
            continue;
        const bool isKnown = !m_device.standings[at.at()].empty();
        // Where pieces begin, and masks, are used as what they are.
        if (!standsInSource(at) && knownNumbers(m_device, at))
            continue;
        if (!isKnown && isNoted(producer) && (!unknown.valid() || producer.at() < unknown.at()))
            unknown = producer;
        const auto& operands = function[producer].operands;
        if (isKnown && !isGivenRightly(at) && !operands.empty()
            && std::all_of(operands.begin(), operands.end(), [&](ValueId operand) { return isGivenRightly(operand); })
            && (!strange.valid() || producer.at() < strange.at()))
            strange = producer;
        std::for_each(operands.begin(), operands.end(), visit);
        for (const BlockId body : function[producer].bodies)
            std::for_each(function[body].results.begin(), function[body].results.end(), visit);
    }
    if (unknown.valid()) {
        ProofObstacle made = noted(unknown);
        made.reason = fmt::format("{}: {}", what, made.reason);
        return made;
    }
    if (strange.valid())
        return at(strange, fmt::format("{}: the source computes no such value", what));
    ProofObstacle made
        = at(producerOf(function, value), fmt::format("{} is another value of the source, or is laid out otherwise", what));
    made.has = {described(value)};
    if (layout != nullptr && layout->dims.size() == wanted.dims.size()) {
        Standing needed = wanted;
        for (std::size_t dim = 0; dim < needed.dims.size(); ++dim)
            needed.dims[dim].axes = canonical(layout->dims[dim].axes);
        needed.partial = canonicalSet(layout->unreduced);
        needed.kind = layout->unreducedKind;
        needed.mesh = layout->mesh;
        made.needs = pieces(value, needed);
    }
    std::vector<ValueId> leaves;
    made.device = deviceCut(made.op, leaves);
    made.source = sourceCut(made.op, leaves, wanted.global);
    return made;
}

/// The ops that an op depends on, back to what stands to values of the source: the leaves.
std::vector<OpId> Obstacles::opsBefore(OpId op, std::vector<ValueId>& leaves) const
{
    const Function& function = m_device.function;
    std::vector<OpId> ops{op};
    for (std::size_t next = 0; next < ops.size(); ++next) {
        std::vector<ValueId> used = function[ops[next]].operands;
        addCaptures(function, function[ops[next]], used);
        for (const ValueId value : used) {
            const OpId producer = producerOf(function, value);
            const bool isSame = producer.valid() && function[producer].block == function[op].block;
            const bool isConstant = isSame && function[producer].kind == OpKind::Constant;
            if (!isSame
                || (!isConstant && (standsInSource(value) || ops.size() >= kMostOps || !function[producer].bodies.empty())))
                addOnce(leaves, value);
            else if (std::find(ops.begin(), ops.end(), producer) == ops.end())
                ops.push_back(producer);
        }
    }
    std::sort(ops.begin(), ops.end(), [](OpId a, OpId b) { return a.at() < b.at(); });
    std::erase_if(leaves, [&](ValueId leaf) {
        return producerOf(function, leaf).valid() && std::find(ops.begin(), ops.end(), producerOf(function, leaf)) != ops.end();
    });
    return ops;
}

Function Obstacles::deviceCut(OpId op, std::vector<ValueId>& leaves) const
{
    if (!op.valid())
        return {};
    const std::vector<OpId> ops = opsBefore(op, leaves);
    Function whole = m_device.function;
    for (const ValueId leaf : leaves) {
        if (!m_device.standings[leaf.at()].empty())
            whole[leaf].sharding = layoutOf(m_device.standings[leaf.at()].front());
    }
    return cut(std::move(whole), ops, leaves, m_device.function[op].results);
}

/// The op of the source that makes `wanted`, or else the one that does the same to what the leaves stand to; or those values themselves.
Function Obstacles::sourceCut(OpId op, const std::vector<ValueId>& leaves, GlobalId wanted) const
{
    const Function& function = m_source.function;
    std::set<GlobalId> given;
    for (const ValueId leaf : leaves) {
        for (const Standing& standing : m_device.standings[leaf.at()])
            given.insert(standing.global);
    }
    const auto globalOf = [&](ValueId value) {
        const Standings& known = m_source.standings[value.at()];
        return known.empty() ? kNoGlobal : known.front().global;
    };
    OpId best;
    std::size_t most = 0;
    forEachOp(function, [&](OpId id) {
        const Op& candidate = function[id];
        std::size_t score = 0;
        for (const ValueId operand : candidate.operands)
            score += given.contains(globalOf(operand)) ? 2U : 0U;
        if (score > 0 && op.valid() && candidate.kind == m_device.function[op].kind)
            ++score;
        if (wanted != kNoGlobal && std::any_of(candidate.results.begin(), candidate.results.end(), [&](ValueId result) {
                return globalOf(result) == wanted;
            }))
            score += 1000;
        if (score > most) {
            most = score;
            best = id;
        }
    });
    std::vector<OpId> ops;
    std::vector<ValueId> arguments;
    if (!best.valid()) {
        for (std::size_t i = 0; i < function.values.size(); ++i) {
            if (given.contains(globalOf(ValueId(i))) && given.erase(globalOf(ValueId(i))) > 0)
                arguments.emplace_back(i);
        }
        return cut(function, {}, arguments, arguments);
    }
    std::vector<ValueId> used = function[best].operands;
    addCaptures(function, function[best], used);
    for (const ValueId value : used) {
        const OpId producer = producerOf(function, value);
        const bool isConstant = producer.valid() && function[producer].kind == OpKind::Constant;
        if (!isConstant)
            addOnce(arguments, value);
        else if (std::find(ops.begin(), ops.end(), producer) == ops.end())
            ops.push_back(producer);
    }
    ops.push_back(best);
    return cut(function, ops, arguments, function[best].results);
}

} // namespace meshwright
