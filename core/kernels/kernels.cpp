// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/kernel.h"
#include "core/kernels/tile_table.h"
#include "core/kernels/transposition.h"
#include "core/program/body_collective.h"
#include "core/program/other_op.h"
#include "core/program/transform.h"
#include "core/support/threefry.h"

#include <fmt/format.h>

#include <cstring>
#include <numeric>
#include <set>

namespace meshwright {

namespace {

class CopyKernel final : public Kernel {
public:
    CopyKernel(ValueId from, ValueId to, std::int64_t bytes)
        : m_from(from)
        , m_to(to)
        , m_bytes(bytes)
    {
    }

    void run(Addresses addresses, Scratch&, const StopFlag&) const override
    {
        if (m_bytes > 0 && addresses[m_from.at()] != addresses[m_to.at()])
            std::memcpy(addresses[m_to.at()], addresses[m_from.at()], static_cast<std::size_t>(m_bytes));
    }

private:
    ValueId m_from;
    ValueId m_to;
    std::int64_t m_bytes = 0;
};

class TransposeKernel final : public Kernel {
public:
    TransposeKernel(const Function& function, const Op& op)
        : m_from(op.operands[0])
        , m_to(op.results[0])
        , m_type(function[m_from].type)
        , m_permutation(op.as<TransposeAttributes>().permutation)
    {
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        transposeArray(addresses[m_to.at()], addresses[m_from.at()], m_type.shape, m_permutation, byteSize(m_type.dtype), stop);
    }

private:
    ValueId m_from;
    ValueId m_to;
    TensorType m_type;
    std::vector<std::size_t> m_permutation;
};

/// Bits as JAX draws them; the same element of the whole array gets the same bits on whichever device it lies. Of what a dynamic slice takes of
/// them, `part`, only that is drawn.
class RandomBitsKernel final : public Kernel {
public:
    RandomBitsKernel(const KernelSite& site, const Op& op, const Op* part)
        : m_key(op.operands[0])
        , m_result(part != nullptr ? part->results[0] : op.results[0])
        , m_shape(site.function[m_result].type.shape)
        , m_all(site.function[op.results[0]].type.shape)
        , m_piece(site.pieceOf(op.results[0]))
        , m_partitionable(op.as<RandomBitsAttributes>().partitionable)
    {
        if (part != nullptr)
            m_starts.assign(part->operands.begin() + 1, part->operands.end());
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        const auto* words = reinterpret_cast<const std::uint32_t*>(addresses[m_key.at()]);
        const RandomKey key{words[0], words[1]};
        auto* out = reinterpret_cast<std::uint32_t*>(addresses[m_result.at()]);
        const std::int64_t row = m_shape.empty() ? 1 : m_shape.back();
        const std::int64_t total = elementCount(m_shape);
        if (total == 0)
            return;
        const auto wholeCount = static_cast<std::uint64_t>(elementCount(m_piece.whole));
        const std::uint64_t begin = beginOf(addresses);
        for (std::int64_t first = 0; first < total && !stop.isSet(); first += row) {
            // A padded shard reaches beyond the whole; what is there does not matter.
            const std::uint64_t flat = begin + flatIndex(first);
            if (m_partitionable) {
                tileTable().randomWords(out + first, key[0], key[1], flat, row);
                continue;
            }
            for (std::int64_t i = 0; i < row; ++i) {
                const std::uint64_t index = std::min(flat + static_cast<std::uint64_t>(i), wholeCount - 1);
                out[first + i] = randomWord(key, index, wholeCount, false);
            }
        }
    }

private:
    /// How far a slice's first element is behind that of the piece, moved so that the slice lies within it.
    std::uint64_t beginOf(Addresses addresses) const
    {
        std::int64_t flat = 0;
        std::int64_t step = 1;
        for (std::size_t dim = m_starts.size(); dim-- > 0;) {
            const auto start = std::int64_t{*reinterpret_cast<const std::int32_t*>(addresses[m_starts[dim].at()])};
            flat += std::clamp<std::int64_t>(start, 0, m_all[dim] - m_shape[dim]) * step;
            step *= m_piece.whole[dim];
        }
        return static_cast<std::uint64_t>(flat);
    }

    /// In the whole array, of an element of the piece.
    std::uint64_t flatIndex(std::int64_t local) const
    {
        std::int64_t flat = 0;
        std::int64_t step = 1;
        for (std::size_t dim = m_shape.size(); dim-- > 0;) {
            flat += (local % m_shape[dim] + m_piece.start[dim]) * step;
            local /= m_shape[dim];
            step *= m_piece.whole[dim];
        }
        return static_cast<std::uint64_t>(flat);
    }

    ValueId m_key;
    ValueId m_result;
    Shape m_shape; ///< of the result
    Shape m_all; ///< of all bits on a device
    PieceOfWhole m_piece;
    std::vector<ValueId> m_starts; ///< of a slice
    bool m_partitionable;
};

class ReduceKernel final : public Kernel {
public:
    ReduceKernel(const Function& function, const Op& op)
        : m_from(op.operands[0])
        , m_to(op.results[0])
        , m_type(function[m_from].type)
        , m_lane(laneOf(m_type.dtype))
        , m_kind(op.as<ReduceAttributes>().kind)
    {
        // Dimensions of size 1 do not matter; neighbours that are both kept or both reduced count as one.
        const auto& dims = op.as<ReduceAttributes>().dims;
        std::vector<std::int64_t> sizes;
        std::vector<bool> reduced;
        for (std::size_t dim = 0; dim < m_type.shape.size(); ++dim) {
            const bool isReduced = std::find(dims.begin(), dims.end(), dim) != dims.end();
            if (m_type.shape[dim] == 1)
                continue;
            if (!reduced.empty() && reduced.back() == isReduced) {
                sizes.back() *= m_type.shape[dim];
            } else {
                sizes.push_back(m_type.shape[dim]);
                reduced.push_back(isReduced);
            }
        }
        // [kept, reduced, kept'] covers rows (kept' = 1), columns (kept = 1) and everything else that needs no reordering.
        const auto reducedGroups = std::count(reduced.begin(), reduced.end(), true);
        if (reducedGroups <= 1) {
            const auto at = static_cast<std::size_t>(std::find(reduced.begin(), reduced.end(), true) - reduced.begin());
            for (std::size_t i = 0; i < sizes.size(); ++i)
                (i < at ? m_outer : i == at ? m_count : m_inner) *= sizes[i];
            return;
        }
        m_ordered = sizes;
        for (const bool wanted : {false, true}) {
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                if (reduced[i] == wanted) {
                    m_permutation.push_back(i);
                    (wanted ? m_count : m_outer) *= sizes[i];
                }
            }
        }
    }

    void run(Addresses addresses, Scratch& scratch, const StopFlag& stop) const override
    {
        const std::byte* source = addresses[m_from.at()];
        std::byte* result = addresses[m_to.at()];
        if (m_count == 1) { // of dimensions of size 1
            if (result != source)
                std::memcpy(result, source, static_cast<std::size_t>(m_type.bytes()));
            return;
        }
        const std::int64_t total = m_type.elements();
        const std::int64_t width = laneBytes(m_lane);
        const bool narrow = isNarrow(m_type.dtype);
        if (narrow) {
            std::byte* wide = scratch.allocate(total * width);
            tileTable().load(m_type.dtype)(wide, source, nullptr, nullptr, total);
            source = wide;
        }
        if (!m_permutation.empty()) {
            std::byte* ordered = scratch.allocate(total * width);
            transposeArray(ordered, source, m_ordered, m_permutation, width, stop);
            source = ordered;
        }
        const std::int64_t results = m_outer * m_inner;
        std::byte* target = narrow ? scratch.allocate(results * width) : result;
        for (std::int64_t outer = 0; outer < m_outer && !stop.isSet(); ++outer) {
            const std::byte* block = source + outer * m_count * m_inner * width;
            std::byte* out = target + outer * m_inner * width;
            if (m_inner == 1)
                tileTable().reduceRow(m_kind, m_lane)(out, block, m_count);
            else
                reduceColumns(out, block, scratch, stop);
        }
        if (narrow)
            tileTable().store(m_type.dtype)(result, target, nullptr, nullptr, results);
        scratch.reset();
    }

private:
    /// out[j] = the reduction over i of block[i][j]: a stretch of columns at a time, rows in blocks, blocks combined pairwise.
    void reduceColumns(std::byte* out, const std::byte* block, Scratch& scratch, const StopFlag& stop) const
    {
        constexpr std::int64_t kColumns = 512;
        constexpr std::int64_t kRows = 32;
        constexpr std::size_t kLevels = 64;
        const TileStep combine = tileTable().combine(m_kind, m_lane);
        const RowReduction identity = tileTable().reduceRow(m_kind, m_lane);
        const std::int64_t width = laneBytes(m_lane);
        std::array<std::byte*, kLevels> waiting{};
        for (std::int64_t first = 0; first < m_inner && !stop.isSet(); first += kColumns) {
            const std::int64_t columns = std::min(kColumns, m_inner - first);
            const auto rowAt = [&](std::int64_t row) { return block + (row * m_inner + first) * width; };
            std::size_t height = 0;
            std::uint64_t blocks = 0;
            for (std::int64_t start = 0; start < m_count; start += kRows) {
                if (waiting[height] == nullptr)
                    waiting[height] = scratch.allocate(kColumns * width);
                std::byte* sum = waiting[height++];
                std::memcpy(sum, rowAt(start), static_cast<std::size_t>(columns * width));
                for (std::int64_t row = start + 1; row < std::min(m_count, start + kRows); ++row)
                    combine(sum, sum, rowAt(row), nullptr, columns);
                for (std::uint64_t carry = blocks; (carry & 1U) != 0; carry >>= 1U) {
                    combine(waiting[height - 2], waiting[height - 2], waiting[height - 1], nullptr, columns);
                    --height;
                }
                ++blocks;
            }
            std::byte* target = out + first * width;
            if (height == 0) {
                for (std::int64_t column = 0; column < columns; ++column)
                    identity(target + column * width, nullptr, 0);
                continue;
            }
            for (; height > 1; --height)
                combine(waiting[height - 2], waiting[height - 2], waiting[height - 1], nullptr, columns);
            std::memcpy(target, waiting[0], static_cast<std::size_t>(columns * width));
        }
    }

    ValueId m_from;
    ValueId m_to;
    TensorType m_type;
    Lane m_lane;
    ReduceKind m_kind;
    std::int64_t m_outer = 1;
    std::int64_t m_count = 1;
    std::int64_t m_inner = 1;
    Shape m_ordered;
    std::vector<std::size_t> m_permutation;
};

} // namespace

PieceOfWhole wholePiece(const Shape& shape)
{
    return {shape, Shape(shape.size(), 0)};
}

std::unique_ptr<const Kernel> makeReduceKernel(const Function& function, OpId op)
{
    return std::make_unique<ReduceKernel>(function, function[op]);
}

std::unique_ptr<const Kernel> makeTransposeKernel(const Function& function, OpId op)
{
    return std::make_unique<TransposeKernel>(function, function[op]);
}

std::unique_ptr<const Kernel> makeRandomBitsKernel(const KernelSite& site, std::span<const OpId> ops)
{
    return std::make_unique<RandomBitsKernel>(
        site, site.function[ops.front()], ops.size() > 1 ? &site.function[ops[1]] : nullptr);
}

std::unique_ptr<const Kernel> makeCopyKernel(const Function& function, OpId id)
{
    const Op& op = function[id];
    return std::make_unique<CopyKernel>(op.operands[0], op.results[0], function[op.results[0]].type.bytes());
}

namespace {

/// The kernels of ops that are none of a pass; random bits come with a slice of them.
struct KernelRow {
    OpKind kind;
    std::unique_ptr<const Kernel> (*make)(const Function& function, OpId op);
};
constexpr KernelRow kKernels[] = {{OpKind::Reshape, makeCopyKernel}, {OpKind::Transpose, makeTransposeKernel},
    {OpKind::Slice, makePartsKernel}, {OpKind::Pad, makePartsKernel}, {OpKind::Concatenate, makePartsKernel},
    {OpKind::Reverse, makePartsKernel}, {OpKind::DynamicSlice, makePartsKernel}, {OpKind::DynamicUpdateSlice, makePartsKernel},
    {OpKind::Gather, makePartsKernel}, {OpKind::Scatter, makePartsKernel}, {OpKind::OptimizationBarrier, makePartsKernel},
    {OpKind::Reduce, makeReduceKernel}, {OpKind::DotGeneral, makeDotKernel}};

constexpr const KernelRow* kernelRow(OpKind kind)
{
    for (const KernelRow& row : kKernels) {
        if (row.kind == kind)
            return &row;
    }
    return nullptr;
}

/// True for the ops that whoever runs a function does himself.
constexpr bool isDoneOutside(OpKind kind)
{
    const OpClass opClass = opInfo(kind).opClass;
    return opClass == OpClass::Control || opClass == OpClass::Collective || opClass == OpClass::Transfer;
}

constexpr bool hasEveryKindItsKernel()
{
    return std::all_of(kOpTable.begin(), kOpTable.end(), [](const OpInfo& info) {
        return isTileOp(info.kind) || info.kind == OpKind::RandomBits || isDoneOutside(info.kind) || isKept(info.kind)
            || kernelRow(info.kind) != nullptr;
    });
}
static_assert(hasEveryKindItsKernel(), "every OpKind has its kernel");

} // namespace

std::unique_ptr<const Kernel> makeKernel(const KernelSite& site, std::span<const OpId> ops, std::span<const ValueId> writes,
    const std::function<bool(ValueId)>& isInMemory)
{
    assert(!ops.empty());
    const Op& op = site.function[ops.front()];
    if (isTileOp(op.kind))
        return makeTileKernel(site, ops, writes, isInMemory);
    if (op.kind == OpKind::RandomBits)
        return makeRandomBitsKernel(site, ops);
    assert(ops.size() == 1 && !isDoneOutside(op.kind));
    return isKept(op.kind) ? makeOtherKernel(site, ops.front()) : kernelRow(op.kind)->make(site.function, ops.front());
}

namespace {

/// True for a kept op that the runtime can run.
bool hasKernel(const Function& function, OpId id)
{
    const KernelSite site{function, [&](ValueId value) { return wholePiece(function[value].type.shape); }};
    return makeOtherKernel(site, id) != nullptr;
}

/// Why an op cannot be run, and what to do about it; empty when it can.
struct Obstacle {
    std::string what;
    const char* fix = "simulate the program instead, or write that part with other ops";
};

/// `stablehlo.custom_call @foo`: a call that is kept as it is means what its target does.
std::string nameWithTarget(const Op& op)
{
    const std::string_view target = callTarget(op.as<OtherAttributes>());
    return fmt::format("{}{}{}", opName(op), target.empty() ? "" : " @", target);
}

Obstacle obstacle(const Function& function, OpId id, bool hasDevices)
{
    constexpr const char* kOtherType = "use elements of another type there, such as f32, or simulate the program instead";
    const Op& op = function[id];
    const bool isOfDevices = hasDevices && (op.kind == OpKind::Computation || isBodyCollective(op) || isPartitionId(op));
    switch (isOfDevices ? OpKind::Reshape : op.kind) {
    case OpKind::Send:
    case OpKind::Receive:
    case OpKind::Reshard:
    case OpKind::Computation:
        return {std::string(opName(op))};
    case OpKind::Constant:
        if (op.as<ConstantAttributes>().data.isElided())
            return {"a constant whose elements the program's text left out",
                "write the program's text again with all elements of its constants, or simulate it instead"};
        break;
    case OpKind::DotGeneral:
        if (const DType type = op.as<DotAttributes>().operandType; !isComputable(type))
            return {fmt::format("products of operands rounded to {}", dtypeName(type)), kOtherType};
        break;
    default:
        if (!isKept(op.kind) || isOfDevices || hasKernel(function, id))
            break;
        if (op.kind == OpKind::RngBitGenerator)
            return {fmt::format("{} with the state {} and the bits {}", opName(op), typeText(function[op.operands[0]].type),
                        typeText(function[op.results[1]].type)),
                "use a state of type ui64 with 2 elements, or 3 for PHILOX, and bits that are integers"};
        if (op.as<OtherAttributes>().captures > 0)
            return {fmt::format("{} whose block uses a value from outside it", opName(op)), "make the value inside the block"};
        return {nameWithTarget(op)};
    }
    const auto onType = [&](DType type) {
        return Obstacle{fmt::format("{} on elements of type {}", opName(op), dtypeName(type)), kOtherType};
    };
    for (const auto* values : {&op.operands, &op.results}) {
        for (const ValueId value : *values) {
            if (!isComputable(function[value].type.dtype))
                return onType(function[value].type.dtype);
        }
    }
    const OpClass opClass = opInfo(op.kind).opClass;
    if ((opClass == OpClass::Unary || opClass == OpClass::Binary) && !isMadeOfOtherSteps(op.kind)) {
        if (const DType type = function[op.operands.front()].type.dtype; tileTable().op(op.kind, type) == nullptr)
            return onType(type);
    }
    return {};
}

} // namespace

Problems checkRunnable(const Function& function, bool hasDevices)
{
    Problems problems;
    std::set<std::string> reported;
    std::set<OpId> within; // of blocks that kernels run themselves
    forEachOp(function, [&](OpId id) {
        for (const BlockId body : function[id].bodies) {
            if (isKept(function[id].kind) && hasKernel(function, id))
                within.insert(function[body].ops.begin(), function[body].ops.end());
        }
    });
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        if (within.contains(id))
            return;
        if (const auto [what, fix] = obstacle(function, id, hasDevices); !what.empty() && reported.insert(what).second)
            problems.push_back({"MW1501", fmt::format("the runtime cannot run {} in function \"{}\"", what, function.name), fix});
        if (op.kind != OpKind::RandomBits)
            return;
        const auto& attributes = op.as<RandomBitsAttributes>();
        if (!attributes.partitionable && attributes.type.elements() >= (std::int64_t{1} << 32))
            problems.push_back({"MW1502",
                fmt::format("legacy random bits for {} have {} elements; the limit is {}", typeText(attributes.type),
                    attributes.type.elements(), (std::int64_t{1} << 32) - 1),
                "use partitionable random bits"});
    });
    return problems;
}

} // namespace meshwright
