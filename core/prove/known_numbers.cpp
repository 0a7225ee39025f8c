// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/known_numbers.h"

#include "core/support/checked.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

namespace meshwright {

namespace {

constexpr std::int64_t kMostNumbers = std::int64_t{1} << 21;
constexpr int kMostDepth = 24;

bool isCounted(DType dtype)
{
    return dtype == DType::Pred || dtype == DType::S32 || dtype == DType::S64 || dtype == DType::U32;
}

std::optional<std::int64_t> inRange(std::int64_t number, DType dtype)
{
    if (dtype == DType::Pred)
        return number != 0 ? 1 : 0;
    const bool fits = dtype == DType::U32
        ? number >= 0 && number <= std::numeric_limits<std::uint32_t>::max()
        : number >= std::numeric_limits<std::int32_t>::min() && number <= std::numeric_limits<std::int32_t>::max();
    return fits ? std::optional(number) : std::nullopt;
}

class Evaluation {
public:
    explicit Evaluation(const Walk& walk)
        : m_walk(walk)
    {
    }

    std::optional<KnownNumbers> of(ValueId value, int depth)
    {
        if (depth > kMostDepth || !isCounted(m_walk.dtype(value)))
            return std::nullopt;
        if (const auto outside = m_walk.invariants.find(value); outside != m_walk.invariants.end())
            return of(outside->second, depth + 1);
        const OpId producer = m_walk.function[value].producer;
        if (!producer.valid())
            return std::nullopt;
        const auto [known, isNew] = m_known.try_emplace(value);
        if (isNew) // of what is used several times, it is asked once
            known->second = made(m_walk.function[producer], value, depth);
        return known->second;
    }

private:
    std::optional<KnownNumbers> made(const Op& op, ValueId value, int depth)
    {
        switch (op.kind) {
        case OpKind::Constant:
            return constant(op.as<ConstantAttributes>());
        case OpKind::Iota:
            return iota(op);
        case OpKind::PartitionId:
            return deviceIds();
        case OpKind::DynamicSlice:
            return sliceOfTable(op, depth);
        case OpKind::AllSlice:
            return ownPart(op, depth);
        case OpKind::Reshape: {
            auto from = of(op.operands[0], depth + 1);
            if (!from || m_walk.function[op.operands[0]].type.elements() != 1)
                return std::nullopt;
            from->dim = -1;
            return from;
        }
        case OpKind::BroadcastInDim: {
            auto from = of(op.operands[0], depth + 1);
            if (from && from->dim >= 0) {
                const std::size_t to = op.as<BroadcastAttributes>().dims[static_cast<std::size_t>(from->dim)];
                if (m_walk.local(value)[to] != m_walk.local(op.operands[0])[static_cast<std::size_t>(from->dim)])
                    return std::nullopt;
                from->dim = static_cast<int>(to);
            }
            return from;
        }
        default:
            return pointwise(op, value, depth);
        }
    }

    static std::optional<KnownNumbers> constant(const ConstantAttributes& constant)
    {
        if (const auto* integer = std::get_if<std::int64_t>(&constant.data.value))
            return KnownNumbers{{}, -1, {{*integer}}};
        if (const auto* number = std::get_if<double>(&constant.data.value))
            return *number == static_cast<double>(static_cast<std::int64_t>(*number))
                ? std::optional(KnownNumbers{{}, -1, {{static_cast<std::int64_t>(*number)}}})
                : std::nullopt;
        const auto& blob = std::get<2>(constant.data.value);
        const auto count = constant.type.elements();
        if (blob == nullptr || constant.type.shape.size() != 1 || count > kMostNumbers
            || (constant.type.dtype != DType::S32 && constant.type.dtype != DType::U32)
            || blob->size() != static_cast<std::size_t>(4 * count))
            return std::nullopt;
        KnownNumbers known{{}, 0, {{}}};
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
            std::uint32_t bits = 0;
            std::memcpy(&bits, blob->data() + 4 * i, 4);
            known.at[0].push_back(constant.type.dtype == DType::U32 ? std::int64_t{bits} : static_cast<std::int32_t>(bits));
        }
        return known;
    }

    /// Of a manual computation.
    KnownNumbers deviceIds() const
    {
        const Mesh& mesh = m_walk.mesh();
        KnownNumbers known;
        for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis)
            known.axes.push_back(wholeAxis(mesh, axis));
        known.axes = canonical(known.axes);
        for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
            known.at.push_back({mesh.deviceAt(position)});
        return known;
    }

    /// Each device takes its own of a list that all have.
    std::optional<KnownNumbers> sliceOfTable(const Op& op, int depth)
    {
        const auto table = of(op.operands[0], depth + 1);
        if (!table || !table->axes.empty() || table->dim != 0 || op.operands.size() != 2)
            return std::nullopt;
        auto known = of(op.operands[1], depth + 1);
        const auto count = static_cast<std::int64_t>(table->at[0].size());
        const std::int64_t size = op.as<DynamicSliceAttributes>().sizes[0];
        if (!known || known->dim >= 0 || known->pieces() * size > kMostNumbers)
            return std::nullopt;
        for (auto& numbers : known->at) {
            const auto first = table->at[0].begin() + std::clamp<std::int64_t>(numbers[0], 0, count - size);
            numbers.assign(first, first + size);
        }
        known->dim = 0;
        return known;
    }

    /// Devices count from where their pieces begin in the whole array, which is no further than its end.
    std::optional<KnownNumbers> iota(const Op& op) const
    {
        const ValueId value = op.results[0];
        const std::size_t dim = op.as<IotaAttributes>().dim;
        const auto& sharding = m_walk.function[value].sharding;
        const std::int64_t local = m_walk.local(value)[dim];
        KnownNumbers known{{}, static_cast<int>(dim), {}};
        std::int64_t whole = local;
        if (sharding && !m_walk.isSource()) {
            if (sharding->mesh != 0 || sharding->dims.size() <= dim)
                return std::nullopt;
            known.axes = canonical(sharding->dims[dim].axes);
            whole = (*m_walk.wholes)[value.at()][dim];
            if (local != ceilDiv(whole, shardCount(known.axes)))
                return std::nullopt;
        }
        if (shardCount(known.axes) * local > kMostNumbers)
            return std::nullopt;
        for (std::int64_t piece = 0; piece < shardCount(known.axes); ++piece) {
            auto& numbers = known.at.emplace_back();
            for (std::int64_t i = 0; i < local; ++i)
                numbers.push_back(std::min(whole, piece * local) + i);
        }
        return known;
    }

    std::optional<KnownNumbers> ownPart(const Op& op, int depth)
    {
        const auto all = of(op.operands[0], depth + 1);
        const auto& attributes = op.as<CollectiveAttributes>();
        if (m_walk.isSource()) // of a whole array: a change of its layout
            return attributes.pieces ? std::nullopt : all;
        if (!all || !all->axes.empty() || all->dim != 0 || attributes.perDim.size() != 1 || attributes.pieces
            || !isExchangeAsClaimed(m_walk.function, *m_walk.wholes, op))
            return std::nullopt;
        KnownNumbers known{canonical(attributes.perDim[0]), 0, {}};
        const std::int64_t local = m_walk.local(op.results[0])[0];
        if (local * shardCount(known.axes) != m_walk.local(op.operands[0])[0])
            return std::nullopt;
        for (std::int64_t piece = 0; piece < shardCount(known.axes); ++piece) {
            auto& numbers = known.at.emplace_back();
            for (std::int64_t i = 0; i < local; ++i)
                numbers.push_back((*all)(0, piece * local + i));
        }
        return known;
    }

    std::optional<KnownNumbers> pointwise(const Op& op, ValueId value, int depth)
    {
        std::vector<KnownNumbers> operands;
        KnownNumbers made;
        std::int64_t length = 1;
        for (const ValueId operand : op.operands) {
            auto known = of(operand, depth + 1);
            if (!known)
                return std::nullopt;
            if (!known->axes.empty() && !made.axes.empty() && known->axes != made.axes)
                return std::nullopt;
            if (known->dim >= 0 && made.dim >= 0 && known->dim != made.dim)
                return std::nullopt;
            if (!known->axes.empty())
                made.axes = known->axes;
            if (known->dim >= 0) {
                made.dim = known->dim;
                length = static_cast<std::int64_t>(known->at.front().size());
            }
            operands.push_back(*std::move(known));
        }
        if (operands.empty() || shardCount(made.axes) * length > kMostNumbers)
            return std::nullopt;
        for (std::int64_t piece = 0; piece < shardCount(made.axes); ++piece) {
            auto& numbers = made.at.emplace_back();
            for (std::int64_t i = 0; i < length; ++i) {
                const auto at = [&](std::size_t operand) { return operands[operand](piece, i); };
                const auto number = compute(op, at);
                const auto held = number ? inRange(*number, m_walk.dtype(value)) : std::nullopt;
                if (!held)
                    return std::nullopt;
                numbers.push_back(*held);
            }
        }
        return made;
    }

    template <typename At>
    static std::optional<std::int64_t> compute(const Op& op, const At& at)
    {
        switch (op.kind) {
        case OpKind::Add:
            return at(0) + at(1);
        case OpKind::Subtract:
            return at(0) - at(1);
        case OpKind::Multiply:
            return at(0) * at(1);
        case OpKind::Divide:
            return at(0) < 0 || at(1) <= 0 ? std::nullopt : std::optional(at(0) / at(1));
        case OpKind::Remainder:
            return at(0) < 0 || at(1) <= 0 ? std::nullopt : std::optional(at(0) % at(1));
        case OpKind::Maximum:
            return std::max(at(0), at(1));
        case OpKind::Minimum:
            return std::min(at(0), at(1));
        case OpKind::Convert:
            return at(0);
        case OpKind::And: // of truth values
            return (at(0) | at(1)) > 1 || at(0) < 0 || at(1) < 0 ? std::nullopt : std::optional(at(0) & at(1));
        case OpKind::Or:
            return (at(0) | at(1)) > 1 || at(0) < 0 || at(1) < 0 ? std::nullopt : std::optional(at(0) | at(1));
        case OpKind::Select:
            return at(0) != 0 ? at(1) : at(2);
        case OpKind::Clamp:
            return std::min(std::max(at(0), at(1)), at(2));
        case OpKind::Compare:
            return compares(op.as<CompareAttributes>().direction, at(0), at(1)) ? 1 : 0;
        default:
            return std::nullopt;
        }
    }

    const Walk& m_walk;
    std::map<ValueId, std::optional<KnownNumbers>> m_known;
};

} // namespace

std::optional<KnownNumbers> knownNumbers(const Walk& walk, ValueId value)
{
    return Evaluation(walk).of(value, 0);
}

std::optional<std::size_t> takenCase(const Walk& walk, const Op& op)
{
    if (op.kind != OpKind::Select)
        return std::nullopt;
    const Function& function = walk.function;
    const auto isMadeBy = [&](ValueId value, OpKind kind) {
        return function[value].producer.valid() && function[function[value].producer].kind == kind;
    };
    ValueId predicate = op.operands[0];
    while (isMadeBy(predicate, OpKind::BroadcastInDim))
        predicate = function[function[predicate].producer].operands[0];
    if (function[predicate].type.elements() != 1 && !isMadeBy(predicate, OpKind::Constant))
        return std::nullopt;
    const auto known = knownNumbers(walk, predicate);
    const bool isOne = known && known->pieces() == 1 && known->at.front().size() == 1;
    return isOne ? std::optional<std::size_t>((*known)(0, 0) != 0 ? 1 : 2) : std::nullopt;
}

std::uint64_t variesAlong(const KnownNumbers& known, const Mesh& mesh)
{
    std::uint64_t varies = 0;
    for (std::size_t axis = 0; axis < mesh.axes().size() && known.pieces() > 1; ++axis) {
        const AxisRefs others = unusedAxes(AxisRefs{wholeAxis(mesh, axis)}, mesh);
        std::map<std::int64_t, std::int64_t> pieces; // of the first device of each group along the axis
        for (std::int64_t position = 0; position < mesh.deviceCount(); ++position) {
            const std::int64_t piece = shardIndex(position, known.axes, mesh);
            const std::int64_t first = pieces.emplace(shardIndex(position, others, mesh), piece).first->second;
            if (known.at[static_cast<std::size_t>(first)] != known.at[static_cast<std::size_t>(piece)])
                varies |= axisBits({wholeAxis(mesh, axis)});
        }
    }
    return varies;
}

bool compares(CompareDirection direction, std::int64_t a, std::int64_t b)
{
    switch (direction) {
    case CompareDirection::Equal:
        return a == b;
    case CompareDirection::NotEqual:
        return a != b;
    case CompareDirection::Less:
        return a < b;
    case CompareDirection::LessEqual:
        return a <= b;
    case CompareDirection::Greater:
        return a > b;
    case CompareDirection::GreaterEqual:
        return a >= b;
    }
    return false;
}

bool isExchangeAsClaimed(const Function& function, const std::vector<Shape>& wholes, const Op& op)
{
    const Value& in = function[op.operands[0]];
    const Value& out = function[op.results[0]];
    if (!in.sharding || !out.sharding || in.sharding->mesh != out.sharding->mesh)
        return false;
    const Shape& whole = wholes[op.operands[0].at()];
    const auto& attributes = op.as<CollectiveAttributes>();
    AxisRefs named;
    for (const AxisRefs& axes : attributes.perDim)
        named.insert(named.end(), axes.begin(), axes.end());
    for (const AxisMove& move : attributes.moves)
        named.insert(named.end(), move.axes.begin(), move.axes.end());
    if (canonicalSet(attributes.axes) != canonicalSet(named)) // devices meet along the former
        return false;
    if (in.sharding->dims.size() != whole.size() || out.sharding->dims.size() != whole.size()
        || in.type.shape.size() != whole.size() || out.type.shape.size() != whole.size())
        return false;
    std::vector<AxisRefs> axes;
    for (const DimSharding& dim : in.sharding->dims)
        axes.push_back(canonical(dim.axes));
    const auto leave = [&](std::size_t dim, const AxisRefs& removed) {
        auto left = dim < axes.size() ? withoutEnd(axes[dim], removed) : std::nullopt;
        if (left)
            axes[dim] = *std::move(left);
        return left.has_value();
    };
    if (op.kind == OpKind::AllToAll) {
        for (const AxisMove& move : attributes.moves) {
            if (!leave(move.from, move.axes) || move.to >= axes.size())
                return false;
            axes[move.to] = followedBy(axes[move.to], move.axes);
        }
    } else {
        if (attributes.perDim.size() != axes.size())
            return false;
        for (std::size_t dim = 0; dim < axes.size(); ++dim) {
            if (op.kind == OpKind::AllGather) {
                if (!leave(dim, attributes.perDim[dim]))
                    return false;
            } else {
                axes[dim] = followedBy(axes[dim], attributes.perDim[dim]);
            }
        }
    }
    for (std::size_t dim = 0; dim < axes.size(); ++dim) {
        if (axes[dim] != canonical(out.sharding->dims[dim].axes)
            || in.type.shape[dim] * shardCount(in.sharding->dims[dim].axes) != whole[dim]
            || out.type.shape[dim] * shardCount(out.sharding->dims[dim].axes) != whole[dim])
            return false;
    }
    return true;
}

} // namespace meshwright
