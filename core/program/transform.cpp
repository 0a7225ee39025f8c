// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/transform.h"

#include "core/program/other_op.h"

#include <algorithm>

namespace meshwright {

namespace {

constexpr const char* kStaysOnDevices = "mw.stays_on_devices";

void copyValueNotes(const Value& from, Value& to)
{
    to.name = from.name;
    to.role = from.role;
    to.sharding = from.sharding;
    to.annotation = from.annotation;
    to.kept = from.kept;
}

void copyBlockInto(Builder& builder, const Function& source, BlockId from, std::vector<ValueId>& mapping)
{
    for (const OpId op : source[from].ops)
        copyOp(builder, source, op, mapping);
}

std::vector<TensorType> typesOf(const Function& function, const std::vector<ValueId>& values)
{
    std::vector<TensorType> types;
    for (const ValueId value : values)
        types.push_back(function[value].type);
    return types;
}

std::vector<ValueId> mapped(const std::vector<ValueId>& values, const std::vector<ValueId>& mapping)
{
    std::vector<ValueId> result;
    for (const ValueId value : values) {
        assert(mapping[value.at()].valid());
        result.push_back(mapping[value.at()]);
    }
    return result;
}

} // namespace

void copyBody(Builder& builder, const Function& source, BlockId body, OpId op, std::vector<ValueId>& mapping)
{
    Function& target = builder.function();
    const std::vector<ValueId> arguments = builder.beginBody(op, typesOf(source, source[body].arguments));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        copyValueNotes(source[source[body].arguments[i]], target[arguments[i]]);
        mapping[source[body].arguments[i].at()] = arguments[i];
    }
    copyBlockInto(builder, source, body, mapping);
    builder.setResults(mapped(source[body].results, mapping));
    builder.setBlock(target[op].block);
}

void copyOp(Builder& builder, const Function& source, OpId id, std::vector<ValueId>& mapping)
{
    const Op& op = source[id];
    Function& target = builder.function();
    const Phase phase = builder.phase();
    builder.setPhase(op.phase);

    std::vector<ValueId> results;
    const OpId copy(target.ops.size());
    if (op.bodies.empty()) {
        results = builder.addMany(op.kind, mapped(op.operands, mapping), op.attributes);
    } else {
        builder.beginOp(op.kind, mapped(op.operands, mapping), op.attributes);
        for (const BlockId body : op.bodies)
            copyBody(builder, source, body, copy, mapping);
        results = builder.endOp(copy, typesOf(source, op.results));
    }
    target[copy].kept = op.kept;
    for (std::size_t i = 0; i < results.size(); ++i) {
        copyValueNotes(source[op.results[i]], target[results[i]]);
        mapping[op.results[i].at()] = results[i];
    }
    builder.setPhase(phase);
}

std::vector<ValueId> inlineCall(Builder& builder, const Function& callee, const std::vector<ValueId>& operands)
{
    assert(operands.size() == callee.arguments().size());
    std::vector<ValueId> mapping(callee.values.size());
    for (std::size_t i = 0; i < operands.size(); ++i)
        mapping[callee.arguments()[i].at()] = operands[i];
    copyBlockInto(builder, callee, BlockId(std::int32_t{0}), mapping);
    for (const auto& group : callee.shardingGroups) {
        std::vector<ValueId> members;
        for (const ValueId member : group) {
            if (mapping[member.at()].valid())
                members.push_back(mapping[member.at()]);
        }
        if (members.size() > 1)
            builder.function().shardingGroups.push_back(std::move(members));
    }
    return mapped(callee.results(), mapping);
}

std::int64_t blockRuns(const Op& op)
{
    return op.kind == OpKind::Repeat ? op.as<RepeatAttributes>().count : 1;
}

bool staysOnDevices(const Op& op)
{
    return op.kind == OpKind::OptimizationBarrier && op.kept != nullptr
        && findAttribute(op.kept->attributes, kStaysOnDevices) != nullptr;
}

void setStaysOnDevices(Op& barrier)
{
    barrier.kept = std::make_shared<const KeptText>(KeptText{{{kStaysOnDevices, {}, false, {}, {}}}, {}});
}

std::vector<std::size_t> useCounts(const Function& function)
{
    std::vector<std::size_t> counts(function.values.size(), 0);
    const auto countBlock = [&](const auto& self, BlockId block) -> void {
        for (const OpId op : function[block].ops) {
            for (const ValueId operand : function[op].operands)
                ++counts[operand.at()];
            for (const BlockId body : function[op].bodies)
                self(self, body);
        }
        for (const ValueId result : function[block].results)
            ++counts[result.at()];
    };
    if (!function.blocks.empty())
        countBlock(countBlock, BlockId(std::int32_t{0}));
    return counts;
}

namespace {

/// True when the op, or one in it, does something besides making its results.
bool isNeededAnyway(const Function& function, const Op& op)
{
    const bool own = op.kind == OpKind::Send || (isKept(op.kind) && hasEffect(op.as<OtherAttributes>()));
    return own || std::any_of(op.bodies.begin(), op.bodies.end(), [&](BlockId body) {
        return std::any_of(function[body].ops.begin(), function[body].ops.end(),
            [&](OpId inner) { return isNeededAnyway(function, function[inner]); });
    });
}

void releaseOp(Function& function, OpId id, std::vector<std::size_t>& uses, std::size_t& erased)
{
    ++erased;
    for (const ValueId operand : function[id].operands)
        --uses[operand.at()];
    for (const BlockId body : function[id].bodies) {
        for (const ValueId result : function[body].results)
            --uses[result.at()];
        for (const OpId inner : function[body].ops)
            releaseOp(function, inner, uses, erased);
        function[body].ops.clear();
    }
}

bool isLoop(const Op& op)
{
    return op.kind == OpKind::Repeat || op.kind == OpKind::While;
}

std::size_t carriesOf(const Op& op)
{
    return op.kind == OpKind::Repeat ? op.as<RepeatAttributes>().carries : op.as<WhileAttributes>().carries;
}

/// Of a loop or branch some results may be needed, and others not.
bool isNeededInPart(const Op& op)
{
    return isLoop(op) || op.kind == OpKind::Case;
}

/// The operands that are not arguments of its blocks: the number of a branch.
std::size_t ownOperands(const Op& op)
{
    return op.kind == OpKind::Case ? 1 : 0;
}

/// The blocks that give its results.
std::vector<BlockId> givingBlocks(const Op& op)
{
    return isLoop(op) ? std::vector<BlockId>{op.bodies.back()} : op.bodies;
}

/// What of a loop or branch is needed: its results (and so its blocks'), and its operands (and so the arguments of its blocks).
struct PartNeeds {
    std::vector<bool> results;
    std::vector<bool> operands;
};
PartNeeds needsOf(const Function& function, const Op& op, std::vector<bool> wantedResults);

/// Marks in `needed` what the values marked in it need within a block.
void markNeeded(const Function& function, BlockId block, std::vector<bool>& needed)
{
    const auto mark = [&](ValueId value) { needed[value.at()] = true; };
    const auto isNeeded = [&](ValueId value) { return bool{needed[value.at()]}; };
    for (auto at = function[block].ops.rbegin(); at != function[block].ops.rend(); ++at) {
        const Op& op = function[*at];
        if (!isNeededAnyway(function, op) && std::none_of(op.results.begin(), op.results.end(), isNeeded))
            continue;
        if (!isNeededInPart(op)) {
            std::for_each(op.operands.begin(), op.operands.end(), mark);
            continue;
        }
        std::vector<bool> wanted(op.results.size());
        std::transform(op.results.begin(), op.results.end(), wanted.begin(), isNeeded);
        const PartNeeds inner = needsOf(function, op, std::move(wanted));
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            if (inner.operands[i])
                mark(op.operands[i]);
        }
    }
}

PartNeeds needsOf(const Function& function, const Op& op, std::vector<bool> wantedResults)
{
    const std::size_t own = ownOperands(op);
    PartNeeds needs{std::move(wantedResults), std::vector<bool>(op.operands.size(), false)};
    std::fill_n(needs.operands.begin(), own, true);
    const std::size_t carries = isLoop(op) ? carriesOf(op) : 0;
    for (bool grew = true; grew;) {
        grew = false;
        std::vector<bool> needed(function.values.size(), false);
        for (const BlockId block : givingBlocks(op)) {
            for (std::size_t i = 0; i < op.results.size(); ++i) {
                if (needs.results[i])
                    needed[function[block].results[i].at()] = true;
            }
        }
        if (op.kind == OpKind::While) // whether it goes on
            needed[function[op.bodies.front()].results.front().at()] = true;
        for (const BlockId block : op.bodies)
            markNeeded(function, block, needed);
        for (std::size_t i = own; i < op.operands.size(); ++i) {
            const bool isRead = std::any_of(op.bodies.begin(), op.bodies.end(),
                [&](BlockId block) { return bool{needed[function[block].arguments[i - own].at()]}; });
            needs.operands[i] = isRead || (i < carries && needs.results[i]);
            if (i < carries && needs.operands[i] && !needs.results[i])
                grew = needs.results[i] = true;
        }
    }
    return needs;
}

template <typename T>
void keepOnly(std::vector<T>& entries, const std::vector<bool>& kept)
{
    std::size_t i = 0;
    std::erase_if(entries, [&](const T&) { return !kept[i++]; });
}

void renumber(Function& function, const std::vector<ValueId>& values)
{
    for (std::size_t i = 0; i < values.size(); ++i)
        function[values[i]].index = i;
}

/// Takes out of a loop the carries, stacked operands, invariants and stacked results that nothing outside needs, and out of a branch the results and
/// what only they need. True when it had any. An op that would be left without results keeps them: it does something besides.
bool pruneParts(Function& function, OpId id, std::vector<std::size_t>& uses)
{
    const std::vector<BlockId> blocks = function[id].bodies;
    const std::size_t own = ownOperands(function[id]);
    std::vector<bool> wanted;
    for (const ValueId result : function[id].results)
        wanted.push_back(uses[result.at()] > 0);
    const auto [keptResults, keptOperands] = needsOf(function, function[id], std::move(wanted));
    const auto isAll = [](const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), false) == flags.end(); };
    const bool hasResults = std::find(keptResults.begin(), keptResults.end(), true) != keptResults.end();
    if ((isAll(keptResults) && isAll(keptOperands)) || (!hasResults && function[id].kind != OpKind::Repeat))
        return false;
    const auto keptUpTo = [&keptOperands = keptOperands](std::size_t from, std::size_t count) {
        const auto first = keptOperands.begin() + static_cast<std::ptrdiff_t>(from);
        return static_cast<std::size_t>(std::count(first, first + static_cast<std::ptrdiff_t>(count), true));
    };
    if (function[id].kind == OpKind::Repeat) {
        auto& repeat = function[id].as<RepeatAttributes>();
        repeat.stacked = keptUpTo(repeat.carries, repeat.stacked);
        repeat.carries = keptUpTo(0, repeat.carries);
    } else if (function[id].kind == OpKind::While) {
        auto& loop = function[id].as<WhileAttributes>();
        loop.carries = keptUpTo(0, loop.carries);
    }
    for (std::size_t i = 0; i < keptOperands.size(); ++i) {
        if (!keptOperands[i])
            --uses[function[id].operands[i].at()];
    }
    keepOnly(function[id].operands, keptOperands);
    const std::vector<bool> keptArguments(keptOperands.begin() + static_cast<std::ptrdiff_t>(own), keptOperands.end());
    for (const BlockId block : blocks) {
        keepOnly(function[block].arguments, keptArguments);
        renumber(function, function[block].arguments);
    }
    for (const BlockId block : givingBlocks(function[id])) {
        for (std::size_t i = 0; i < keptResults.size(); ++i) {
            if (!keptResults[i])
                --uses[function[block].results[i].at()];
        }
        keepOnly(function[block].results, keptResults);
    }
    keepOnly(function[id].results, keptResults);
    renumber(function, function[id].results);
    return true;
}

/// True when a loop or branch got smaller, so that another round may find more.
bool eraseDeadIn(Function& function, BlockId block, std::vector<std::size_t>& uses, std::size_t& erased)
{
    bool pruned = false;
    std::vector<OpId> kept;
    for (auto at = function[block].ops.rbegin(); at != function[block].ops.rend(); ++at) {
        const Op& op = function[*at];
        bool live = isNeededAnyway(function, op);
        for (const ValueId result : op.results)
            live = live || uses[result.at()] > 0;
        if (live) {
            if (isNeededInPart(op))
                pruned = pruneParts(function, *at, uses) || pruned;
            for (const BlockId body : std::vector<BlockId>(op.bodies))
                pruned = eraseDeadIn(function, body, uses, erased) || pruned;
            kept.push_back(*at);
        } else {
            releaseOp(function, *at, uses, erased);
        }
    }
    function[block].ops.assign(kept.rbegin(), kept.rend());
    return pruned;
}

} // namespace

std::size_t eraseDeadOps(Function& function)
{
    std::vector<std::size_t> uses = useCounts(function);
    std::size_t erased = 0;
    while (eraseDeadIn(function, BlockId(std::int32_t{0}), uses, erased)) { }
    for (auto& group : function.shardingGroups)
        std::erase_if(group, [&](ValueId member) { return function[member].producer.valid() && uses[member.at()] == 0; });
    std::erase_if(function.shardingGroups, [](const auto& group) { return group.size() < 2; });
    return erased;
}

void replaceUses(Function& function, ValueId from, ValueId to)
{
    const auto swap = [&](std::vector<ValueId>& values) { std::replace(values.begin(), values.end(), from, to); };
    for (Op& op : function.ops)
        swap(op.operands);
    for (Block& block : function.blocks)
        swap(block.results);
}

namespace {

/// The entries of a function's tables that a block reaches, in program order, and their numbers in that order.
class Numbering {
public:
    explicit Numbering(const Function& function)
        : m_function(function)
        , m_valueNumbers(function.values.size())
        , m_opNumbers(function.ops.size())
        , m_blockNumbers(function.blocks.size())
    {
        values.reserve(function.values.size());
        ops.reserve(function.ops.size());
        if (!function.blocks.empty())
            addBlock(BlockId(std::int32_t{0}));
    }

    /// The new number; invalid for what nothing reaches.
    ValueId operator[](ValueId value) const { return m_valueNumbers[value.at()]; }
    OpId operator[](OpId op) const { return op.valid() ? m_opNumbers[op.at()] : op; }
    BlockId operator[](BlockId block) const { return m_blockNumbers[block.at()]; }

    template <typename Id>
    void renumber(std::vector<Id>& ids) const
    {
        for (Id& id : ids) {
            id = (*this)[id];
            assert(id.valid());
        }
    }

    std::vector<ValueId> values;
    std::vector<OpId> ops;
    std::vector<BlockId> blocks;

private:
    void addBlock(BlockId block)
    {
        m_blockNumbers[block.at()] = BlockId(blocks.size());
        blocks.push_back(block);
        addValues(m_function[block].arguments);
        for (const OpId op : m_function[block].ops) {
            m_opNumbers[op.at()] = OpId(ops.size());
            ops.push_back(op);
            for (const BlockId body : m_function[op].bodies)
                addBlock(body);
            addValues(m_function[op].results);
        }
    }

    void addValues(const std::vector<ValueId>& more)
    {
        for (const ValueId value : more) {
            m_valueNumbers[value.at()] = ValueId(values.size());
            values.push_back(value);
        }
    }

    const Function& m_function;
    std::vector<ValueId> m_valueNumbers;
    std::vector<OpId> m_opNumbers;
    std::vector<BlockId> m_blockNumbers;
};

} // namespace

namespace {

/// The entries with these numbers, in this order; where they stand, when the order is the old one.
template <typename Entry, typename Id>
void keepInOrder(std::vector<Entry>& entries, const std::vector<Id>& order)
{
    if (!std::is_sorted(order.begin(), order.end())) {
        std::vector<Entry> ordered;
        ordered.reserve(order.size());
        for (const Id id : order)
            ordered.push_back(std::move(entries[id.at()]));
        entries = std::move(ordered);
        return;
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (order[i].at() != i)
            entries[i] = std::move(entries[order[i].at()]);
    }
    entries.resize(order.size());
}

} // namespace

Function compacted(Function function)
{
    const Numbering numbering(function);
    keepInOrder(function.values, numbering.values);
    keepInOrder(function.ops, numbering.ops);
    keepInOrder(function.blocks, numbering.blocks);
    for (Value& value : function.values) {
        value.block = numbering[value.block];
        value.producer = numbering[value.producer];
    }
    for (Op& op : function.ops) {
        numbering.renumber(op.operands);
        numbering.renumber(op.results);
        numbering.renumber(op.bodies);
        op.block = numbering[op.block];
        for (std::size_t i = 0; i < op.results.size(); ++i)
            function[op.results[i]].index = i;
    }
    for (Block& block : function.blocks) {
        numbering.renumber(block.arguments);
        numbering.renumber(block.ops);
        numbering.renumber(block.results);
        for (std::size_t i = 0; i < block.arguments.size(); ++i)
            function[block.arguments[i]].index = i;
    }
    for (auto& group : function.shardingGroups) {
        std::vector<ValueId> members;
        for (const ValueId member : group) {
            if (const ValueId number = numbering[member]; number.valid())
                members.push_back(number);
        }
        group = std::move(members);
    }
    std::erase_if(function.shardingGroups, [](const auto& group) { return group.size() < 2; });
    return function;
}

Function restrictedTo(const Function& function, const std::vector<std::size_t>& results)
{
    Function restricted = function;
    restricted.body().results.clear();
    restricted.resultNames.clear();
    restricted.resultShardings.clear();
    restricted.resultsKept.clear();
    restricted.donations.clear();
    for (const std::size_t index : results) {
        restricted.body().results.push_back(function.results()[index]);
        if (!function.resultNames.empty())
            restricted.resultNames.push_back(function.resultNames[index]);
        if (!function.resultShardings.empty())
            restricted.resultShardings.push_back(function.resultShardings[index]);
        if (!function.resultsKept.empty())
            restricted.resultsKept.push_back(function.resultsKept[index]);
        for (const Donation& donation : function.donations) {
            if (donation.result == index)
                restricted.donations.push_back({donation.argument, restricted.body().results.size() - 1});
        }
    }
    eraseDeadOps(restricted);
    return compacted(std::move(restricted));
}

void forEachOp(const Function& function, const std::function<void(OpId)>& visit)
{
    if (function.blocks.empty())
        return;
    for (const OpId op : function.body().ops)
        forEachOp(function, op, visit);
}

void forEachOp(const Function& function, OpId op, const std::function<void(OpId)>& visit)
{
    visit(op);
    for (const BlockId body : function[op].bodies) {
        for (const OpId inner : function[body].ops)
            forEachOp(function, inner, visit);
    }
}

std::vector<ValueId> namedValues(const Function& function)
{
    std::vector<ValueId> named;
    const auto add = [&](const std::vector<ValueId>& values) {
        std::ranges::copy_if(values, std::back_inserter(named),
            [&](ValueId id) { return !function[id].name.empty() && function[id].sharding.has_value(); });
    };
    for (const Block& block : function.blocks) {
        add(block.arguments);
        for (const OpId op : block.ops)
            add(function[op].results);
    }
    return named;
}

} // namespace meshwright
