// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/identity_run.h"

#include "core/prove/array_index.h"
#include "core/prove/known_numbers.h"
#include "core/sharding/layout.h"
#include "core/sharding/shard_indices.h"

#include <algorithm>
#include <numeric>

namespace meshwright {

void IdentityRun::begin(std::vector<Arrays> arguments)
{
    m_lanes.positions = {0};
    if (m_wholes != nullptr) {
        m_lanes.mesh = &m_meshes.front().mesh;
        m_lanes.positions.resize(static_cast<std::size_t>(m_lanes.mesh->deviceCount()));
        std::iota(m_lanes.positions.begin(), m_lanes.positions.end(), std::int64_t{0});
    }
    for (std::size_t i = 0; i < arguments.size(); ++i)
        m_lanes.memory[m_function.arguments()[i]] = std::move(arguments[i]);
}

void IdentityRun::goOn(std::optional<ValueId> last, const Change& change)
{
    const std::vector<OpId>& ops = m_function.body().ops;
    for (; m_next < ops.size() && !isOver() && !(last && find(*last) != nullptr); ++m_next) {
        const Op& op = m_function[ops[m_next]];
        runOp(op, m_lanes);
        for (const ValueId result : op.results) {
            if (change && !isOver() && find(result) != nullptr)
                change(result, m_lanes.memory[result]);
        }
    }
}

const IdentityRun::Arrays* IdentityRun::find(ValueId value) const
{
    const auto found = m_lanes.memory.find(value);
    return found == m_lanes.memory.end() ? nullptr : &found->second;
}

std::int64_t IdentityRun::positionOn(std::int32_t mesh, std::int64_t position) const
{
    const Mesh& main = m_meshes.front().mesh;
    const Mesh& other = m_meshes[static_cast<std::size_t>(mesh)].mesh;
    for (std::int64_t at = 0; mesh != 0 && at < other.deviceCount(); ++at) {
        if (other.deviceAt(at) == main.deviceAt(position))
            return at;
    }
    return position;
}

// ---- blocks and what holds them

std::vector<IdentityRun::Arrays> IdentityRun::runBlock(BlockId id, Lanes& lanes, std::vector<Arrays> arguments)
{
    const Block& block = m_function[id];
    for (std::size_t i = 0; i < block.arguments.size(); ++i)
        lanes.memory[block.arguments[i]] = std::move(arguments[i]);
    for (const OpId op : block.ops) {
        if (isOver())
            return {};
        runOp(m_function[op], lanes);
    }
    std::vector<Arrays> results;
    for (const ValueId result : block.results) {
        if (isOver())
            return {};
        results.push_back(lanes[result]);
    }
    return results;
}

/// Every result is there afterwards, unless the run is over.
void IdentityRun::runOp(const Op& op, Lanes& lanes)
{
    for (const ValueId result : op.results) // of an earlier turn
        lanes.memory.erase(result);
    switch (op.kind) {
    case OpKind::Repeat:
        runRepeat(op, lanes);
        break;
    case OpKind::While:
        runWhile(op, lanes);
        break;
    case OpKind::Case:
        runCase(op, lanes);
        break;
    case OpKind::Computation:
        if (isManual(op)) {
            runManual(op, lanes);
        } else {
            std::vector<Arrays> results = runBlock(op.bodies.front(), lanes, given(op, lanes, 0));
            for (std::size_t i = 0; i < results.size(); ++i)
                lanes.memory[op.results[i]] = std::move(results[i]);
        }
        break;
    default:
        if (isCollective(op.kind) || (lanes.mesh != nullptr && isBodyCollective(op)))
            exchange(op, lanes);
        else
            runOnLanes(op, lanes);
        break;
    }
    for (const ValueId result : op.results) {
        if (!isOver() && !lanes.memory.contains(result))
            lanes.memory[result] = freshArrays(result, lanes.count());
    }
}

void IdentityRun::runOnLanes(const Op& op, Lanes& lanes)
{
    std::vector<Arrays> made(op.results.size(), Arrays(lanes.count()));
    for (std::size_t lane = 0; lane < lanes.count(); ++lane) {
        std::vector<Elements> results = compute(op, lanes, lane);
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            m_work -= kStepsOfOp + kStepsOfElement * std::ssize(results[i]);
            made[i][lane] = std::move(results[i]);
        }
    }
    for (std::size_t i = 0; i < op.results.size(); ++i)
        lanes.memory[op.results[i]] = std::move(made[i]);
}

/// The operands from the first one on.
std::vector<IdentityRun::Arrays> IdentityRun::given(const Op& op, const Lanes& lanes, std::size_t first) const
{
    std::vector<Arrays> arrays;
    for (std::size_t i = first; i < op.operands.size(); ++i)
        arrays.push_back(lanes[op.operands[i]]);
    return arrays;
}

Elements IdentityRun::freshElements(ValueId value)
{
    return m_algebra.fresh(m_function[value].type.elements());
}

IdentityRun::Arrays IdentityRun::freshArrays(ValueId value, std::size_t lanes)
{
    Arrays made;
    for (std::size_t lane = 0; lane < lanes; ++lane)
        made.push_back(freshElements(value));
    return made;
}

void IdentityRun::runRepeat(const Op& op, Lanes& lanes)
{
    const auto& repeat = op.as<RepeatAttributes>();
    const Block& body = m_function[op.bodies.front()];
    std::vector<Arrays> carries = given(op, lanes, 0);
    carries.resize(repeat.carries);
    std::vector<Arrays> stacks;
    for (std::size_t i = repeat.carries; i < op.results.size(); ++i)
        stacks.emplace_back(lanes.count(), Elements(static_cast<std::size_t>(m_function[op.results[i]].type.elements())));
    for (std::int64_t turn = 0; turn < repeat.count; ++turn) {
        const std::int64_t row = repeat.reversed ? repeat.count - 1 - turn : turn;
        std::vector<Arrays> arguments = std::move(carries);
        for (std::size_t i = repeat.carries; i < op.operands.size(); ++i) {
            Arrays array = lanes[op.operands[i]];
            const auto size = static_cast<std::ptrdiff_t>(m_function[body.arguments[i]].type.elements());
            for (Elements& elements : array) {
                if (i < repeat.carries + repeat.stacked)
                    elements = Elements(elements.begin() + row * size, elements.begin() + (row + 1) * size);
            }
            arguments.push_back(std::move(array));
        }
        std::vector<Arrays> yields = runBlock(op.bodies.front(), lanes, std::move(arguments));
        if (yields.size() < op.results.size())
            return;
        for (std::size_t i = 0; i < stacks.size(); ++i) {
            for (std::size_t lane = 0; lane < lanes.count(); ++lane) {
                const Elements& slice = yields[repeat.carries + i][lane];
                std::copy(slice.begin(), slice.end(), stacks[i][lane].begin() + row * std::ssize(slice));
            }
        }
        yields.resize(repeat.carries);
        carries = std::move(yields);
    }
    for (std::size_t i = 0; i < op.results.size(); ++i)
        lanes.memory[op.results[i]] = std::move(i < repeat.carries ? carries[i] : stacks[i - repeat.carries]);
}

/// Notes the op of the body in which lanes decide differently.
bool IdentityRun::areOne(const Arrays& decisions)
{
    const bool areSame = std::all_of(decisions.begin(), decisions.end(),
        [&](const Elements& decision) { return decision[0].residue == decisions[0][0].residue; });
    if (!areSame)
        m_dividing.insert(m_function.body().ops[m_next]);
    return areSame;
}

/// As long as the condition is known.
void IdentityRun::runWhile(const Op& op, Lanes& lanes)
{
    const std::size_t carries = op.as<WhileAttributes>().carries;
    std::vector<Arrays> state = given(op, lanes, 0);
    for (;;) {
        const std::vector<Arrays> goesOn = runBlock(op.bodies[0], lanes, state);
        if (goesOn.empty())
            return;
        const Element& first = goesOn[0][0][0];
        const bool isKnown = areOne(goesOn[0]) && first.isKnown;
        if (!isKnown)
            m_dividing.insert(m_function.body().ops[m_next]);
        if (!isKnown || first.number == 0) {
            for (std::size_t i = 0; i < carries; ++i)
                lanes.memory[op.results[i]] = isKnown ? std::move(state[i]) : freshArrays(op.results[i], lanes.count());
            return;
        }
        std::vector<Arrays> yields = runBlock(op.bodies[1], lanes, state);
        if (yields.empty() && carries > 0)
            return;
        std::move(yields.begin(), yields.end(), state.begin());
        m_work -= kStepsOfOp;
    }
}

/// All branches where it is not known which is taken: the results are selected.
void IdentityRun::runCase(const Op& op, Lanes& lanes)
{
    const Arrays& which = lanes[op.operands[0]];
    const bool isTruth = dtype(op.operands[0]) == DType::Pred; // the first branch of one that is true
    const auto last = static_cast<std::int64_t>(op.bodies.size()) - 1;
    const bool areSame = areOne(which);
    const Element index = which[0][0];
    std::vector<Arrays> results;
    for (std::int64_t branch = last; branch >= 0; --branch) {
        const std::int64_t number = isTruth ? 1 - branch : branch;
        const std::int64_t taken = isTruth || (index.number >= 0 && index.number <= last) ? index.number : last;
        if (index.isKnown && taken != number)
            continue;
        std::vector<Arrays> given = this->given(op, lanes, 1);
        std::vector<Arrays> made = runBlock(op.bodies[static_cast<std::size_t>(branch)], lanes, std::move(given));
        if (made.size() < op.results.size())
            return;
        if (results.empty()) {
            results = std::move(made);
            continue;
        }
        Element chosen = index;
        if (!isTruth)
            chosen
                = Algebra::opaque(m_algebra.function("branch").add(static_cast<std::uint64_t>(branch)).add(index.residue), true);
        for (std::size_t i = 0; i < results.size(); ++i) {
            for (std::size_t lane = 0; lane < lanes.count(); ++lane) {
                for (std::size_t at = 0; at < results[i][lane].size(); ++at)
                    results[i][lane][at] = m_algebra.select(chosen, made[i][lane][at], results[i][lane][at]);
            }
        }
    }
    for (std::size_t i = 0; i < op.results.size(); ++i)
        lanes.memory[op.results[i]] = areSame ? std::move(results[i]) : freshArrays(op.results[i], lanes.count());
}

/// The body is run once for each setting of the manual axes. Source: `evaluate` (core/runtime/evaluate.h) says the same of numbers.
void IdentityRun::runManual(const Op& op, Lanes& lanes)
{
    const auto& computation = op.as<ComputationAttributes>();
    const auto& shardings = computation.inShardings.empty() ? computation.outShardings : computation.inShardings;
    const Mesh& mesh = m_meshes[static_cast<std::size_t>(shardings.empty() ? 0 : shardings.front().mesh)].mesh;
    AxisRefs manual;
    for (const std::int32_t axis : computation.manualAxes)
        manual.push_back(wholeAxis(mesh, static_cast<std::size_t>(axis)));
    Lanes inner;
    inner.mesh = &mesh;
    std::vector<std::size_t> outer; // by lane inside
    for (std::size_t lane = 0; lane < lanes.count(); ++lane) {
        for (const std::vector<std::int64_t>& group : deviceGroups(manual, mesh)) {
            if (std::find(group.begin(), group.end(), lanes.positions[lane]) == group.end())
                continue;
            inner.positions.insert(inner.positions.end(), group.begin(), group.end());
            outer.resize(inner.positions.size(), lane);
        }
    }
    const auto boxOf = [&](ValueId whole, TensorSharding sharding, std::size_t lane) {
        for (DimSharding& dim : sharding.dims) {
            std::erase_if(dim.axes, [&](const AxisRef& axis) {
                return std::find(computation.manualAxes.begin(), computation.manualAxes.end(), axis.axis)
                    == computation.manualAxes.end();
            });
        }
        return shardBox(shape(whole), sharding, mesh, inner.positions[lane]);
    };
    std::vector<Arrays> arguments;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        Arrays& pieces = arguments.emplace_back();
        for (std::size_t lane = 0; lane < inner.count(); ++lane)
            pieces.push_back(pieceOf(lanes[op.operands[i]][outer[lane]], shape(op.operands[i]),
                boxOf(op.operands[i], computation.inShardings[i], lane)));
    }
    const std::vector<Arrays> results = runBlock(op.bodies.front(), inner, std::move(arguments));
    if (results.size() < op.results.size())
        return;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
        Arrays& whole = lanes.memory[op.results[i]] = freshArrays(op.results[i], lanes.count());
        for (std::size_t lane = inner.count(); lane-- > 0;) // of pieces that should be equal the first is taken
            putPiece(whole[outer[lane]], shape(op.results[i]), boxOf(op.results[i], computation.outShardings[i], lane),
                results[i][lane]);
    }
}

/// What a block computes of any scalars.
Residue IdentityRun::meaningOf(BlockId block)
{
    Lanes lanes;
    lanes.positions = {0};
    std::vector<Arrays> arguments;
    for (std::size_t i = 0; i < m_function[block].arguments.size(); ++i)
        arguments.push_back({{Algebra::opaque(m_algebra.function("argument").add(i))}});
    Hash hash = m_algebra.function("block");
    for (const Arrays& result : runBlock(block, lanes, std::move(arguments)))
        hash.add(result[0][0].residue);
    return hash.residue();
}

/// An op by its attributes and its blocks.
Hash IdentityRun::meaningOf(const Op& op)
{
    Hash hash = m_algebra.function(op);
    for (const BlockId body : op.bodies)
        hash.add(meaningOf(body));
    return hash;
}

// ---- collectives

Elements IdentityRun::combined(ReduceKind kind, const Arrays& arrays, const Members& members, DType dtype)
{
    Elements made(arrays[members.front()].size());
    Elements parts(members.size());
    for (std::size_t at = 0; at < made.size(); ++at) {
        for (std::size_t i = 0; i < members.size(); ++i)
            parts[i] = arrays[members[i]][at];
        made[at] = m_algebra.combined(kind, parts, dtype);
    }
    m_work -= kStepsOfPart * std::ssize(made) * std::ssize(members);
    return made;
}

void IdentityRun::exchange(const Op& op, Lanes& lanes)
{
    if (op.operands.size() != 1)
        return;
    const ValueId operand = op.operands.front();
    const ValueId result = op.results.front();
    const auto* attributes = std::get_if<CollectiveAttributes>(&op.attributes);
    if (m_wholes == nullptr && attributes != nullptr && !attributes->pieces) { // of whole arrays: a change of layout
        lanes.memory[result] = lanes[operand];
        return;
    }
    const auto isOnMain = [&](ValueId value) { return !m_function[value].sharding || m_function[value].sharding->mesh == 0; };
    std::optional<Arrays> made;
    if (attributes == nullptr) {
        if (const auto collective = bodyCollective(m_function, op, *lanes.mesh))
            made = exchangedPieces(op, *collective, lanes);
    } else if (op.kind == OpKind::CollectivePermute && !attributes->pieces) {
        const auto& layout = m_function[operand].sharding; // of its mesh is the table, to whatever mesh it goes
        made = permuted(attributes->sources, attributes->axes,
            layout ? m_meshes[static_cast<std::size_t>(layout->mesh)].mesh : *lanes.mesh, operand, lanes);
    } else if (lanes.mesh != nullptr && isOnMain(operand) && isOnMain(result)) {
        if (attributes->pieces) {
            BodyCollective collective{op.kind, attributes->kind, attributes->pieces->split, attributes->pieces->join,
                attributes->pieces->groups, attributes->sources};
            if (collective.groups.empty() && op.kind != OpKind::CollectivePermute)
                collective.groups = deviceGroups(attributes->axes, *lanes.mesh);
            made = exchangedPieces(op, collective, lanes);
        } else if (op.kind == OpKind::AllReduce
            || isExchangeAsClaimed(m_function, *m_wholes, op)) { // devices exchange by the layouts
            made = exchanged(op, *attributes, lanes);
        }
    }
    const auto isSound = [&] {
        return std::all_of(made->begin(), made->end(),
            [&](const Elements& elements) { return std::ssize(elements) == m_function[result].type.elements(); });
    };
    lanes.memory[result] = made && isSound() ? *std::move(made) : freshArrays(result, lanes.count());
}

/// Devices take what others have; zeros from none, and nothing that is known from one that is not in their group. The table is of positions on `mesh`.
IdentityRun::Arrays IdentityRun::permuted(
    const std::vector<std::int64_t>& sources, const AxisRefs& axes, const Mesh& mesh, ValueId operand, const Lanes& lanes)
{
    std::map<DeviceId, std::int64_t> positionOf;
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
        positionOf[mesh.deviceAt(position)] = position;
    std::map<std::int64_t, std::size_t> laneOf; // by position on `mesh`
    for (std::size_t lane = 0; lane < lanes.count(); ++lane) {
        const auto position = positionOf.find(lanes.mesh->deviceAt(lanes.positions[lane]));
        if (position != positionOf.end())
            laneOf[position->second] = lane;
    }
    const std::vector<std::int64_t> groupOf = shardIndices(axes.empty() ? AxisRefs() : unusedAxes(axes, mesh), mesh);
    Arrays made = freshArrays(operand, lanes.count());
    for (const auto& [position, lane] : laneOf) {
        const std::int64_t source = static_cast<std::size_t>(position) < sources.size()
            ? sources[static_cast<std::size_t>(position)]
            : mesh.deviceCount();
        const auto from = laneOf.find(source);
        if (source == -1)
            made[lane].assign(made[lane].size(), Algebra::known(0, dtype(operand)));
        else if (from != laneOf.end() && groupOf[static_cast<std::size_t>(source)] == groupOf[static_cast<std::size_t>(position)])
            made[lane] = lanes[operand][from->second];
    }
    return made;
}

std::optional<IdentityRun::Arrays> IdentityRun::exchangedPieces(
    const Op& op, const BodyCollective& collective, const Lanes& lanes)
{
    const ValueId operand = op.operands.front();
    if (collective.kind == OpKind::CollectivePermute)
        return permuted(collective.sources, {}, *lanes.mesh, operand, lanes);
    const Shape& from = shape(operand);
    const Shape& to = shape(op.results.front());
    const Arrays& arrays = lanes[operand];
    Arrays made(lanes.count());
    for (std::size_t lane = 0; lane < lanes.count(); ++lane) {
        const std::int64_t own = lanes.positions[lane];
        const auto group = std::find_if(collective.groups.begin(), collective.groups.end(),
            [&](const auto& members) { return std::find(members.begin(), members.end(), own) != members.end(); });
        if (group == collective.groups.end())
            return std::nullopt;
        Members members;
        for (const std::int64_t position : *group) {
            const auto at = std::find(lanes.positions.begin(), lanes.positions.end(), position);
            if (at == lanes.positions.end())
                return std::nullopt;
            members.push_back(static_cast<std::size_t>(at - lanes.positions.begin()));
        }
        const auto place = std::find(group->begin(), group->end(), own) - group->begin();
        const bool joins = collective.kind == OpKind::AllGather || collective.kind == OpKind::AllToAll;
        const bool splits = collective.kind == OpKind::ReduceScatter || collective.kind == OpKind::AllToAll;
        Elements all;
        if (!joins)
            all = combined(collective.reduction, arrays, members, dtype(operand));
        forEachIndex(to, [&](const Shape& index) {
            Shape at = index;
            std::size_t member = 0;
            if (joins) {
                const std::int64_t piece = to[collective.join] / std::ssize(members);
                member = static_cast<std::size_t>(at[collective.join] / piece);
                at[collective.join] %= piece;
            }
            if (splits)
                at[collective.split] += place * (from[collective.split] / std::ssize(members));
            made[lane].push_back(this->at(joins ? arrays[members[member]] : all, at, from));
        });
    }
    return made;
}

IdentityRun::Arrays IdentityRun::exchanged(const Op& op, const CollectiveAttributes& attributes, const Lanes& lanes)
{
    const Mesh& mesh = *lanes.mesh;
    const ValueId operand = op.operands.front();
    const Shape& from = shape(operand);
    const Shape& to = shape(op.results.front());
    const auto indexAlong = [&](std::size_t lane, const AxisRefs& axes) { return shardIndex(lanes.positions[lane], axes, mesh); };
    // The lane at these places along the axes, which is elsewhere where `lane` is.
    const auto peer = [&](std::size_t lane, const std::vector<AxisRefs>& along, const Shape& places) {
        AxisRefs all;
        for (const AxisRefs& axes : along)
            all.insert(all.end(), axes.begin(), axes.end());
        for (const std::vector<std::int64_t>& group : deviceGroups(all, mesh)) {
            if (std::find(group.begin(), group.end(), lanes.positions[lane]) == group.end())
                continue;
            for (const std::int64_t position : group) {
                const auto other = static_cast<std::size_t>(position); // lanes are the positions
                bool isThere = true;
                for (std::size_t i = 0; i < along.size(); ++i)
                    isThere = isThere && indexAlong(other, along[i]) == places[i];
                if (isThere)
                    return other;
            }
        }
        return lane;
    };
    Arrays arrays = lanes[operand];
    switch (op.kind) {
    case OpKind::AllReduce:
    case OpKind::ReduceScatter: {
        Arrays sums(lanes.count());
        for (const std::vector<std::int64_t>& group : deviceGroups(attributes.axes, mesh)) {
            const Members members(group.begin(), group.end());
            const Elements sum = combined(attributes.kind, arrays, members, dtype(operand));
            for (const std::size_t member : members)
                sums[member] = sum;
        }
        if (op.kind == OpKind::AllReduce)
            return sums;
        arrays = std::move(sums);
        [[fallthrough]];
    }
    case OpKind::AllSlice:
    case OpKind::AllGather: {
        const bool gathers = op.kind == OpKind::AllGather;
        Arrays made(lanes.count());
        for (std::size_t lane = 0; lane < lanes.count(); ++lane) {
            std::map<Shape, std::size_t> peers; // by places along the axes of each dimension
            forEachIndex(to, [&](const Shape& index) {
                Shape at = index;
                Shape places(at.size(), 0);
                for (std::size_t dim = 0; dim < at.size(); ++dim) {
                    if (gathers) {
                        places[dim] = from[dim] > 0 ? at[dim] / from[dim] : 0;
                        at[dim] -= places[dim] * from[dim];
                    } else {
                        at[dim] += indexAlong(lane, attributes.perDim[dim]) * to[dim];
                    }
                }
                std::size_t other = lane;
                if (gathers) {
                    const auto known = peers.find(places);
                    other = known != peers.end() ? known->second
                                                 : peers.emplace(places, peer(lane, attributes.perDim, places)).first->second;
                }
                made[lane].push_back(this->at(arrays[other], at, from));
            });
            m_work -= std::ssize(made[lane]);
        }
        return made;
    }
    case OpKind::AllToAll: {
        Shape held = from;
        for (const AxisMove& move : attributes.moves) {
            const std::int64_t count = shardCount(move.axes);
            Shape next = held;
            next[move.from] *= count;
            next[move.to] /= count;
            Arrays made(lanes.count());
            for (std::size_t lane = 0; lane < lanes.count(); ++lane) {
                Members members;
                for (std::int64_t place = 0; place < count; ++place)
                    members.push_back(peer(lane, {move.axes}, {place}));
                const std::int64_t own = indexAlong(lane, move.axes);
                forEachIndex(next, [&](const Shape& index) {
                    Shape at = index;
                    const auto member = static_cast<std::size_t>(at[move.from] / held[move.from]);
                    at[move.from] %= held[move.from];
                    at[move.to] += own * next[move.to];
                    made[lane].push_back(this->at(arrays[members[member]], at, held));
                });
                m_work -= std::ssize(made[lane]);
            }
            arrays = std::move(made);
            held = std::move(next);
        }
        return arrays;
    }
    default:
        return freshArrays(op.results.front(), lanes.count());
    }
}

} // namespace meshwright
