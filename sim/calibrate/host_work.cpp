// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_work.h"

#include "core/kernels/kernel.h"
#include "core/program/attention.h"
#include "core/support/checked.h"
#include "sim/simulate/instruction_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace meshwright::sim {

namespace {

constexpr double kDepth = 512.0; ///< terms of a product between two visits of its result

/// Bytes by how far they are: in reach of a core's own cache, beyond it, in memory.
using Bytes = std::array<double, 3>;

/// When which part of a device's arena was last touched, counted in bytes that went through its core since.
class ArenaCache {
public:
    ArenaCache(std::int64_t arenaBytes, const std::array<double, 2>& levels)
        : m_levels(levels)
        , m_chunk(std::max<std::int64_t>(4096, ceilDiv(arenaBytes, std::int64_t{4096})))
        , m_touched(static_cast<std::size_t>(arenaBytes / m_chunk + 2), -std::numeric_limits<double>::infinity())
    {
    }

    /// Where the bytes from `offset` on are found; they are near from now on.
    Bytes touch(std::int64_t offset, std::int64_t bytes)
    {
        Bytes found{};
        for (std::int64_t at = offset; at < offset + bytes;) {
            const std::int64_t chunk = at / m_chunk;
            const std::int64_t end = std::min(offset + bytes, (chunk + 1) * m_chunk);
            double& touched = m_touched[static_cast<std::size_t>(chunk)];
            const double distance = m_clock - touched;
            const auto part = static_cast<double>(end - at);
            found[distance <= m_levels[0] ? 0 : distance <= m_levels[1] ? 1 : 2] += part;
            m_clock += part;
            touched = m_clock;
            at = end;
        }
        return found;
    }

    /// The other devices of the core do what this one has done since it was here last.
    void changeDevices(double others)
    {
        m_clock += others * (m_clock - m_since);
        m_since = m_clock;
    }

private:
    std::array<double, 2> m_levels;
    std::int64_t m_chunk;
    std::vector<double> m_touched;
    double m_clock = 0.0;
    double m_since = 0.0;
};

/// The cost of an element of an op in a pass.
HostCost elementCost(OpKind kind)
{
    constexpr std::array kCosts{HostCost::PassSimple, HostCost::PassDivide, HostCost::PassExp, HostCost::PassMath};
    return kCosts[static_cast<std::size_t>(opInfo(kind).cost)];
}

double lastSize(const TensorType& type)
{
    return type.shape.empty() ? 1.0 : static_cast<double>(std::max<std::int64_t>(1, type.shape.back()));
}

class Walker {
public:
    Walker(const ScheduledFunction& scheduled, const Mesh& mesh, const HostProfile& profile,
        const std::function<void(const HostWork&)>& visit)
        : m_scheduled(scheduled)
        , m_function(scheduled.device.function)
        , m_profile(profile)
        , m_visit(visit)
        , m_cache(scheduled.buffers.arenaBytes, profile.cacheBytes)
        , m_others(std::max(0.0, static_cast<double>(mesh.deviceCount()) / std::max(1, profile.permits) - 1.0))
    {
        for (const CollectiveUse& use : collectivesOf(scheduled.device, mesh))
            m_uses.emplace(use.op, use);
    }

    void run()
    {
        for (const bool visits : {false, true}) { // the first round leaves the caches as a step does
            m_visits = visits;
            walk(m_scheduled.instructions);
            m_cache.changeDevices(m_others);
        }
    }

private:
    void walk(const std::vector<Instruction>& instructions)
    {
        for (auto at = instructions.begin(); at != instructions.end(); ++at) {
            if (at->kind == InstructionKind::Loop) {
                const auto& repeat = m_function[at->ops.front()].as<RepeatAttributes>();
                for (std::int64_t i = 0; i < repeat.count; ++i)
                    walk(at->body);
                continue;
            }
            if (at->kind == InstructionKind::Blocks) { // nothing says how often, or which: each of them once
                for (const auto& block : at->blocks)
                    walk(block);
                continue;
            }
            if (makesNothing(*at))
                continue;
            if (at->kind == InstructionKind::CollectiveStart) {
                const auto done = std::find_if(at, instructions.end(), [&](const Instruction& other) {
                    return other.kind == InstructionKind::CollectiveDone && other.ops == at->ops;
                });
                HostWork work = collective(*done);
                work.isAsynchronous = work.meets && done - at > 1;
                visit(work);
                continue;
            }
            if (at->kind == InstructionKind::CollectiveDone) {
                HostWork wait{.instruction = &*at, .hostClass = HostClass::Collectives};
                wait.isWait = true;
                visit(wait);
                continue;
            }
            visit(isCollective(m_function[at->ops.back()].kind) ? collective(*at) : compute(*at));
        }
    }

    /// The runtime leaves out what nobody reads.
    bool makesNothing(const Instruction& instruction) const
    {
        const Op& op = m_function[instruction.ops.back()];
        const auto isInMemory = [this](ValueId value) { return m_scheduled.buffers.bufferOf[value.at()] >= 0; };
        return !isTileOp(op.kind) && instruction.kind == InstructionKind::Compute && std::ranges::none_of(op.results, isInMemory);
    }

    void visit(const HostWork& work)
    {
        if (m_visits)
            m_visit(work);
    }

    static void add(HostWork& work, HostCost cost, double amount) { work.amounts[static_cast<std::size_t>(cost)] += amount; }

    /// `first` is the cost of any byte; what a far one takes more follows, and what one in memory takes more than that.
    static void add(HostWork& work, HostCost first, const Bytes& bytes)
    {
        double further = 0.0;
        for (std::size_t level = bytes.size(); level-- > 0;) {
            further += bytes[level];
            work.amounts[static_cast<std::size_t>(first) + level] += further;
        }
    }

    const TensorType& typeOf(ValueId value) const { return m_function[value].type; }

    Bytes touched(const Instruction& instruction)
    {
        Bytes sum{};
        for (const std::vector<ValueId>* values : {&instruction.reads, &instruction.writes}) {
            for (const ValueId value : *values) {
                const std::int32_t buffer = m_scheduled.buffers.bufferOf[value.at()];
                const std::int64_t bytes = typeOf(value).bytes();
                // A loop's part of a stack lies where it is not said; its bytes are not those of the last round.
                const Bytes found = buffer < 0
                    ? Bytes{0.0, static_cast<double>(bytes), 0.0}
                    : m_cache.touch(m_scheduled.buffers.buffers[static_cast<std::size_t>(buffer)].offset, bytes);
                std::ranges::transform(sum, found, sum.begin(), std::plus{});
            }
        }
        return sum;
    }

    HostWork compute(const Instruction& instruction)
    {
        HostWork work{.instruction = &instruction, .hostClass = hostClassOf(m_function, instruction)};
        const Op& op = m_function[instruction.ops.back()];
        const Bytes bytes = touched(instruction);
        const bool isPass = isTileOp(op.kind);
        if (op.kind == OpKind::DotGeneral) {
            product(work, op, bytes);
        } else if (isAttention(op)) {
            attention(work, op, bytes);
        } else if (op.kind == OpKind::Reduce) {
            reduction(work, op);
            add(work, HostCost::ReduceByte, bytes);
        } else if (isPass) {
            pass(work, instruction.ops, 1.0);
            add(work, HostCost::PassStart, 1.0);
            add(work, HostCost::PassByte, bytes);
        } else {
            movement(work, op);
            add(work, HostCost::MoveByte, bytes);
        }
        return work;
    }

    /// Of `share` of the elements.
    void pass(HostWork& work, const std::vector<OpId>& ops, double share) const
    {
        constexpr double kTile = 1024.0;
        for (const OpId id : ops) {
            const Op& op = m_function[id];
            if (op.results.empty() || op.kind == OpKind::Constant)
                continue;
            const double elements = share * static_cast<double>(typeOf(op.results.front()).elements());
            if (op.kind == OpKind::BroadcastInDim || op.kind == OpKind::Iota) {
                // One value for all is put into a tile once.
                const bool isScalar = op.kind == OpKind::BroadcastInDim && typeOf(op.operands.front()).elements() == 1;
                add(work, isScalar ? HostCost::PassOp : HostCost::PassSpread, isScalar ? 1.0 : elements);
                continue;
            }
            add(work, elementCost(op.kind), elements);
            add(work, HostCost::PassOp, std::max(1.0, elements / kTile));
        }
    }

    /// Of [kept, reduced, kept] elements, as the runtime sees them: neighbours that are both kept or both reduced count as one, and dimensions of size 1
    /// not at all.
    void reduction(HostWork& work, const Op& op) const
    {
        constexpr double kColumns = 512.0;
        constexpr double kBlock = 256.0;
        constexpr double kVector = 16.0;
        const TensorType& type = typeOf(op.operands.front());
        const auto& dims = op.as<ReduceAttributes>().dims;
        const auto elements = static_cast<double>(type.elements());
        double outer = 1.0;
        double count = 1.0;
        double inner = 1.0;
        int stretches = 0;
        bool within = false;
        for (std::size_t dim = 0; dim < type.shape.size(); ++dim) {
            if (type.shape[dim] == 1)
                continue;
            const bool isReduced = std::ranges::find(dims, dim) != dims.end();
            stretches += isReduced && !within ? 1 : 0;
            within = isReduced;
            (isReduced ? count : stretches == 0 ? outer : inner) *= static_cast<double>(type.shape[dim]);
        }
        add(work, HostCost::ReduceStart, 1.0);
        if (stretches > 1) { // brought into the order of rows first
            add(work, HostCost::ReduceTurned, elements);
            outer *= std::exchange(inner, 1.0);
        }
        if (inner == 1.0) {
            const bool isSum = op.as<ReduceAttributes>().kind == ReduceKind::Sum;
            add(work, HostCost::ReduceRow, outer * std::max(1.0, std::ceil(count / kBlock)));
            add(work, isSum ? HostCost::ReduceRowElement : HostCost::ReduceRowOther, elements);
            add(work, HostCost::ReduceRowTail, outer * std::fmod(count, kVector));
        } else {
            add(work, HostCost::ReduceColumnCall, outer * count * std::ceil(inner / kColumns));
            add(work, HostCost::ReduceColumnElement, elements);
        }
    }

    /// `lines` in tiles of `tile`, the last of which may be a small one.
    static double inTiles(double lines, double tile, double small)
    {
        const double rest = std::fmod(lines, tile);
        return lines - rest + (rest == 0.0 ? 0.0 : rest <= small ? small : tile);
    }

    /// In single precision, as the products of the runtime go about it (core/kernels/panel_product.cpp); others differ in what each thing costs. An operand
    /// is packed as it lies, or turned across its rows.
    static void wideProducts(HostWork& work, const MatmulDims& dims, bool turnsLeft, bool turnsRight)
    {
        constexpr double kWhole = 1536.0;
        const auto [batch, m, n, k, row] = dims;
        const double results = batch * m * n * std::ceil(k / kDepth);
        add(work, HostCost::ProductStart, 1.0);
        add(work, HostCost::ProductPart, batch - 1.0);
        add(work, HostCost::ProductFlop, 2.0 * batch * inTiles(m, 12.0, 4.0) * inTiles(n, 32.0, 16.0) * k);
        // The side with fewer lines is packed as a whole, in pieces, and for each of them the other one once more.
        const double again = std::ceil(std::min(m, n) / kWhole);
        const auto cost = [](bool isTurned) { return isTurned ? HostCost::ProductTurned : HostCost::ProductCopied; };
        add(work, cost(turnsLeft), batch * m * k * (m > n ? again : 1.0));
        add(work, cost(turnsRight), batch * n * k * (m > n ? 1.0 : again));
        add(work, HostCost::ProductResult, results);
        add(work, HostCost::ProductEdge, results - results / (m * n) * std::floor(m / 12.0) * 12.0 * std::floor(n / 32.0) * 32.0);
    }

    static bool isAttention(const Op& op) { return op.kind == OpKind::Attention || op.kind == OpKind::AttentionGrad; }

    /// Products, exponentials and passes over the scores of the blocks that masks leave (core/kernels/attention_kernel.cpp), whatever the type.
    void attention(HostWork& work, const Op& op, const Bytes& bytes) const
    {
        constexpr double kQueries = 256.0;
        constexpr double kKeys = 512.0;
        std::vector<TensorType> operands;
        for (const ValueId operand : op.operands)
            operands.push_back(typeOf(operand));
        const AttentionSizes sizes(operands);
        const double queries = std::min(kQueries, static_cast<double>(sizes.queries));
        const double keys = std::min(kKeys, static_cast<double>(sizes.keys));
        if (queries <= 0.0 || keys <= 0.0)
            return;
        const AttentionWork known = attentionWork(m_function, op, operands);
        const double seen = std::min(static_cast<double>(sizes.keys), known.keys + keys / 2.0); // blocks are skipped as a whole
        const double blocks = static_cast<double>(sizes.batches() * sizes.groups * sizes.shares)
            * std::ceil(static_cast<double>(sizes.queries) / queries) * std::ceil(seen / keys);
        const double scores = blocks * queries * keys;
        const auto dims = static_cast<double>(sizes.dims);
        const auto valueDims = static_cast<double>(sizes.valueDims);
        wideProducts(work, {blocks, queries, keys, dims}, true, true);
        add(work, HostCost::PassExp, scores);
        if (!known.isBackward) {
            wideProducts(work, {blocks, queries, valueDims, keys}, true, false);
            add(work, HostCost::ReduceRowOther, scores);
            add(work, HostCost::ReduceRowElement, scores);
            add(work, HostCost::PassSimple, 3.0 * scores); // scaled, masked, shifted
        } else {
            wideProducts(work, {blocks, queries, keys, valueDims}, true, true);
            wideProducts(work, {blocks, keys, valueDims, queries}, false, false);
            wideProducts(work, {blocks, keys, dims, queries}, false, false);
            wideProducts(work, {blocks, queries, dims, keys}, true, false);
            add(work, HostCost::PassSimple, 6.0 * scores);
        }
        add(work, HostCost::ProductFar, bytes[1] + bytes[2]);
        add(work, HostCost::ProductMemory, bytes[2]);
    }

    void product(HostWork& work, const Op& op, const Bytes& bytes)
    {
        const auto& attributes = op.as<DotAttributes>();
        const TensorType& lhs = typeOf(op.operands[0]);
        const TensorType& rhs = typeOf(op.operands[1]);
        const MatmulDims dims = productDims(attributes, lhs, rhs);
        if (dims.flops() <= 0.0)
            return;
        const auto [batch, m, n, k, row] = dims;
        const double results = batch * m * n * std::ceil(k / kDepth);
        const bool isNarrow = attributes.operandType == DType::BF16 || attributes.operandType == DType::F16;
        if (isNarrow) {
            add(work, HostCost::NarrowStart, 1.0);
            add(work, HostCost::NarrowPart, batch - 1.0);
            add(work, HostCost::NarrowFlop, 2.0 * batch * inTiles(m, 16.0, 4.0) * inTiles(n, 32.0, 16.0) * k);
            add(work, HostCost::NarrowElement, batch * (m + n) * k);
            add(work, HostCost::NarrowResult, results);
        } else {
            const auto isTurned = [](const std::vector<std::size_t>& contracting, const TensorType& type) {
                return !contracting.empty() && contracting.back() + 1 == type.shape.size();
            };
            wideProducts(work, dims, isTurned(attributes.lhsContracting, lhs), isTurned(attributes.rhsContracting, rhs));
        }
        const HostCost far = isNarrow ? HostCost::NarrowFar : HostCost::ProductFar;
        add(work, far, bytes[1] + bytes[2]);
        add(work, isNarrow ? HostCost::NarrowMemory : HostCost::ProductMemory, bytes[2]);
    }

    /// What brings elements to other places.
    void movement(HostWork& work, const Op& op) const
    {
        add(work, HostCost::MoveStart, 1.0);
        if (op.results.empty() || op.kind == OpKind::Reshape)
            return;
        const TensorType& type = typeOf(op.results.front());
        if (op.kind == OpKind::Transpose) {
            add(work, HostCost::MoveElement, static_cast<double>(type.elements()));
        } else if (op.kind == OpKind::Gather) {
            add(work, HostCost::MoveFound, static_cast<double>(type.elements()) / lastSize(type));
        } else if (op.kind == OpKind::Scatter && op.operands.size() > 2) {
            const TensorType& updates = typeOf(op.operands[2]);
            add(work, HostCost::MoveFound, static_cast<double>(updates.elements()) / lastSize(updates));
            add(work, HostCost::MoveAdded, static_cast<double>(updates.elements()));
        } else if (op.kind == OpKind::Pad) { // all of it is filled first
            const TensorType& from = typeOf(op.operands[0]);
            add(work, HostCost::MoveFill, static_cast<double>(type.elements()));
            add(work, HostCost::MoveRow, static_cast<double>(from.elements()) / lastSize(from));
        } else if (op.kind == OpKind::Concatenate) {
            for (const ValueId operand : op.operands)
                add(work, HostCost::MoveRow, static_cast<double>(typeOf(operand).elements()) / lastSize(typeOf(operand)));
        } else {
            const bool isSpread = op.kind == OpKind::Slice && !type.shape.empty() && op.as<SliceAttributes>().strides.back() != 1;
            add(work, isSpread ? HostCost::MoveElement : HostCost::MoveRow,
                static_cast<double>(type.elements()) / (isSpread ? 1.0 : lastSize(type)));
        }
    }

    HostWork collective(const Instruction& instruction)
    {
        constexpr double kTile = 256.0; // elements that are combined in one go
        HostWork work{.instruction = &instruction, .hostClass = HostClass::Collectives};
        const Op& op = m_function[instruction.ops.back()];
        const TensorType& in = typeOf(op.operands.front());
        const TensorType& out = typeOf(op.results.front());
        static_cast<void>(touched(instruction)); // what it makes is near from now on
        const auto use = m_uses.find(instruction.ops.back());
        work.meets = use != m_uses.end() && use->second.groupSize > 1;
        const double members = work.meets ? static_cast<double>(use->second.groupSize) : 1.0;
        const auto width = static_cast<double>(byteSize(in.dtype));
        add(work, HostCost::MeetStart, work.meets ? 1.0 : 0.0);
        add(work, HostCost::MeetMember, work.meets ? members : 0.0);
        const bool combines = op.kind == OpKind::AllReduce || op.kind == OpKind::ReduceScatter;
        add(work, HostCost::MeetCombine, work.meets && combines ? 1.0 : 0.0);
        add(work, HostCost::MeetUpdate, instruction.update.empty() ? 0.0 : 1.0);
        add(work, HostCost::MoveStart, work.meets ? 0.0 : 1.0);
        double moved = 0.0; // by one device
        if (op.kind == OpKind::AllReduce) {
            const double share = static_cast<double>(in.elements()) / members;
            add(work, HostCost::MeetTile, members * std::max(1.0, share / kTile));
            moved = share * members * width; // read
            if (instruction.update.empty()) {
                moved += share * members * width;
            } else {
                pass(work, instruction.update, 1.0 / members);
                for (const ValueId value : instruction.writes)
                    moved += static_cast<double>(typeOf(value).bytes());
                double operands = 0.0;
                for (const ValueId value : instruction.reads)
                    operands += static_cast<double>(typeOf(value).bytes());
                moved += std::max(0.0, operands - static_cast<double>(in.bytes())) / members;
            }
        } else if (op.kind == OpKind::ReduceScatter) {
            const auto share = static_cast<double>(out.elements());
            const double run = runOf(in, out);
            add(work, HostCost::MeetTile, members * share / run * std::max(1.0, run / kTile));
            moved = share * width * (members + 1.0);
        } else {
            const auto elements = static_cast<double>(out.elements());
            const double run = std::min(runOf(in, out), runOf(out, in));
            add(work, HostCost::MeetRow, elements / run);
            moved = 2.0 * elements * width;
        }
        const double all = moved * members;
        add(work, HostCost::MeetByte,
            all <= m_profile.cacheBytes[0]       ? Bytes{moved, 0.0, 0.0}
                : all <= m_profile.cacheBytes[1] ? Bytes{0.0, moved, 0.0}
                                                 : Bytes{0.0, 0.0, moved});
        m_cache.changeDevices(work.meets ? m_others : 0.0);
        return work;
    }

    /// Elements of `part` that lie one after the other in `whole`.
    static double runOf(const TensorType& part, const TensorType& whole)
    {
        double run = 1.0;
        for (std::size_t dim = part.shape.size(); dim-- > 0;) {
            const auto size = std::min(part.shape[dim], whole.shape.size() > dim ? whole.shape[dim] : part.shape[dim]);
            run *= static_cast<double>(std::max<std::int64_t>(1, size));
            if (dim >= whole.shape.size() || part.shape[dim] != whole.shape[dim])
                break;
        }
        return run;
    }

    const ScheduledFunction& m_scheduled;
    const Function& m_function;
    const HostProfile& m_profile;
    const std::function<void(const HostWork&)>& m_visit;
    ArenaCache m_cache;
    double m_others; ///< devices that a core works for, besides this one
    bool m_visits = false;
    std::map<OpId, CollectiveUse> m_uses;
};

} // namespace

const char* hostClassName(HostClass hostClass)
{
    switch (hostClass) {
    case HostClass::Products:
        return "products";
    case HostClass::Elementwise:
        return "element-wise";
    case HostClass::Reductions:
        return "reductions";
    case HostClass::Optimizer:
        return "optimizer";
    case HostClass::Collectives:
        return "collectives";
    case HostClass::Waiting:
        return "waiting";
    }
    return "";
}

HostClass hostClassOf(const Function& function, const Instruction& instruction)
{
    const Op& op = function[instruction.ops.back()];
    if (isCollective(op.kind))
        return HostClass::Collectives;
    if (op.kind == OpKind::DotGeneral || op.kind == OpKind::Attention || op.kind == OpKind::AttentionGrad)
        return HostClass::Products;
    if (op.phase == Phase::Update)
        return HostClass::Optimizer;
    return op.kind == OpKind::Reduce ? HostClass::Reductions : HostClass::Elementwise;
}

double HostWork::seconds(const HostCosts& costs) const
{
    return std::inner_product(amounts.begin(), amounts.end(), costs.begin(), 0.0);
}

void DeviceClock::add(const HostWork& work, double seconds)
{
    if (work.isWait) {
        m_clock = std::max(m_clock, m_ends[work.instruction->ops.front()]);
        return;
    }
    if (!work.meets) {
        m_clock += seconds;
        m_computing += seconds;
        return;
    }
    m_meetings += 1.0;
    m_streamFree = std::max(m_clock, m_streamFree) + seconds;
    m_ends[work.instruction->ops.front()] = m_streamFree;
    if (!work.isAsynchronous || !m_overlaps)
        m_clock = m_streamFree;
}

void forEachWork(const ScheduledFunction& scheduled, const Mesh& mesh, const HostProfile& profile,
    const std::function<void(const HostWork&)>& visit)
{
    Walker(scheduled, mesh, profile, visit).run();
}

} // namespace meshwright::sim
