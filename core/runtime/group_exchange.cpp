// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/group_exchange.h"

#include <algorithm>
#include <cstring>

namespace meshwright {

namespace {

template <typename T>
T combined(ReduceKind kind, T a, T b)
{
    switch (kind) {
    case ReduceKind::Sum:
        return a + b;
    case ReduceKind::Product:
        return a * b;
    case ReduceKind::Max:
        return a >= b || a != a ? a : b; // NaN stays
    case ReduceKind::Min:
        return a <= b || a != a ? a : b;
    case ReduceKind::And:
    case ReduceKind::Or:
        break;
    }
    if constexpr (std::is_floating_point_v<T>)
        return kind == ReduceKind::And ? static_cast<T>(a != 0 && b != 0) : static_cast<T>(a != 0 || b != 0);
    else
        return kind == ReduceKind::And ? a & b : a | b;
}

/// One element of an integer or truth value, extended to 64 bits.
template <typename T>
T integerAt(const HostArray& array, std::int64_t index)
{
    const auto width = static_cast<std::size_t>(byteSize(array.type().dtype));
    std::uint64_t bits = 0;
    std::memcpy(&bits, array.data() + static_cast<std::size_t>(index) * width, width);
    const auto unused = static_cast<unsigned>(64 - 8 * width);
    if constexpr (std::is_signed_v<T>)
        return static_cast<std::int64_t>(bits << unused) >> unused;
    else
        return bits;
}

template <typename T>
HostArray integersReduced(ReduceKind kind, std::span<const HostArray* const> members)
{
    HostArray result(members.front()->type());
    const auto width = static_cast<std::size_t>(byteSize(result.type().dtype));
    for (std::int64_t i = 0; i < result.type().elements(); ++i) {
        T sum = integerAt<T>(*members.front(), i);
        for (const HostArray* member : members.subspan(1)) {
            const T next = integerAt<T>(*member, i);
            const bool wraps = kind == ReduceKind::Sum || kind == ReduceKind::Product;
            sum = wraps ? static_cast<T>(combined(kind, static_cast<std::uint64_t>(sum), static_cast<std::uint64_t>(next)))
                        : combined(kind, sum, next);
        }
        std::uint64_t bits = static_cast<std::uint64_t>(sum);
        if (result.type().dtype == DType::Pred)
            bits = bits != 0 ? 1 : 0;
        std::memcpy(result.data() + static_cast<std::size_t>(i) * width, &bits, width);
    }
    return result;
}

HostArray reduced(ReduceKind kind, std::span<const HostArray* const> members)
{
    const TensorType& type = members.front()->type();
    if (!isFloating(type.dtype))
        return isInteger(type.dtype) && !isUnsigned(type.dtype) ? integersReduced<std::int64_t>(kind, members)
                                                                : integersReduced<std::uint64_t>(kind, members);
    std::vector<double> sum = members.front()->values();
    for (const HostArray* member : members.subspan(1)) {
        const std::vector<double> next = member->values();
        for (std::size_t i = 0; i < sum.size(); ++i)
            sum[i] = combined(kind, sum[i], next[i]);
    }
    return HostArray::of(type, sum);
}

/// The part of an array that is number `part` of `parts` along a dimension.
IndexBox partBox(const Shape& shape, std::size_t dim, std::int64_t part, std::int64_t parts)
{
    IndexBox box = wholeBox(shape);
    const std::int64_t size = shape[dim] / parts;
    box[dim] = {part * size, (part + 1) * size};
    return box;
}

} // namespace

std::vector<HostArray> exchangedInGroup(const BodyCollective& collective, std::span<const HostArray* const> members)
{
    const auto count = static_cast<std::int64_t>(members.size());
    const TensorType& type = members.front()->type();
    if (collective.kind == OpKind::AllReduce)
        return std::vector<HostArray>(members.size(), reduced(collective.reduction, members));
    std::vector<HostArray> results;
    if (collective.kind == OpKind::ReduceScatter) {
        const HostArray sum = reduced(collective.reduction, members);
        for (std::int64_t member = 0; member < count; ++member)
            results.push_back(sum.slice(partBox(type.shape, collective.split, member, count)));
        return results;
    }
    const bool splits = collective.kind == OpKind::AllToAll;
    for (std::int64_t member = 0; member < count; ++member) {
        HostArray& whole = results.emplace_back(resultType(collective, type));
        for (std::int64_t giver = 0; giver < count; ++giver) {
            const HostArray& given = *members[static_cast<std::size_t>(giver)];
            const HostArray part = splits ? given.slice(partBox(type.shape, collective.split, member, count)) : given;
            whole.assign(partBox(whole.type().shape, collective.join, giver, count), part);
        }
    }
    return results;
}

} // namespace meshwright
