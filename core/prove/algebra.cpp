// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/algebra.h"

#include "core/program/other_op.h"
#include "core/prove/known_numbers.h"
#include "core/support/checked.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwright {

namespace {

constexpr std::uint32_t kMostDegree = std::uint32_t{1} << 20;
constexpr std::int64_t kMostMembers = std::int64_t{1} << 21; ///< of all sets

/// The numbers of a floating type up to which all whole ones are among them; 0 for types of which none is followed.
std::int64_t wholeNumbers(DType dtype)
{
    switch (dtype) {
    case DType::F64:
        return std::int64_t{1} << 53;
    case DType::F32:
        return std::int64_t{1} << 24;
    case DType::F16:
        return std::int64_t{1} << 11;
    case DType::BF16:
        return std::int64_t{1} << 8;
    case DType::F8E4M3FN:
        return std::int64_t{1} << 4;
    case DType::F8E5M2:
        return std::int64_t{1} << 3;
    default:
        return 0;
    }
}

std::int64_t wrapped(std::uint64_t bits, DType dtype)
{
    switch (dtype) {
    case DType::Pred:
        return bits != 0 ? 1 : 0;
    case DType::S8:
        return static_cast<std::int8_t>(bits);
    case DType::S16:
        return static_cast<std::int16_t>(bits);
    case DType::S32:
        return static_cast<std::int32_t>(bits);
    case DType::U8:
        return static_cast<std::uint8_t>(bits);
    case DType::U16:
        return static_cast<std::uint16_t>(bits);
    case DType::U32:
        return static_cast<std::uint32_t>(bits);
    default:
        return static_cast<std::int64_t>(bits);
    }
}

/// Every number of one type is one of the other, and what is computed is the same in both: sums of integers may have wrapped.
bool holdsAll(DType to, DType from)
{
    if (from == to || from == DType::Pred)
        return true;
    return isFloating(from) && isFloating(to)
        && (to == DType::F64 || (to == DType::F32 && from != DType::F64)
            || ((to == DType::F16 || to == DType::BF16) && byteSize(from) == 1));
}

Element unknown(Residue residue, std::uint32_t degree, bool isFinite = true)
{
    return {residue, 0, degree, false, isFinite};
}

/// Of finite numbers, and of others too.
bool isBounded(const Op& op)
{
    return op.kind == OpKind::Tanh || op.kind == OpKind::Logistic || op.kind == OpKind::Sine || op.kind == OpKind::Cosine
        || op.kind == OpKind::Erf || op.kind == OpKind::Erfc || op.kind == OpKind::Sign;
}

} // namespace

Element Algebra::known(std::int64_t number, DType dtype)
{
    const bool isHeld = isFloating(dtype) ? std::abs(number) <= wholeNumbers(dtype) : dtype != DType::U64 || number >= 0;
    if (!isHeld) // it is rounded, or beyond the signed numbers
        return opaque(Hash(static_cast<std::uint64_t>(dtype)).add(static_cast<std::uint64_t>(number)), true);
    const std::int64_t held = isFloating(dtype) ? number : wrapped(static_cast<std::uint64_t>(number), dtype);
    return {residueOf(held), held, 0, true, true};
}

Element Algebra::constant(double number, DType dtype) const
{
    if (number == std::trunc(number) && std::abs(number) <= asDouble(wholeNumbers(dtype)))
        return known(static_cast<std::int64_t>(number), dtype);
    if (!std::isfinite(number))
        return unknown(function(std::isnan(number) ? "nan" : number < 0 ? "-inf" : "inf").residue(), 0, false);
    int power = 0;
    const double mantissa = std::frexp(number, &power); // 53 bits of it are all
    const auto whole = static_cast<std::int64_t>(std::ldexp(mantissa, 53));
    return unknown(timesPowerOfTwo(residueOf(whole), power - 53), 0);
}

Element Algebra::fresh()
{
    return opaque(function("fresh").add(m_drawn++), true);
}

Elements Algebra::fresh(std::int64_t count)
{
    Elements made(static_cast<std::size_t>(count));
    for (Element& element : made)
        element = fresh();
    return made;
}

Hash Algebra::function(std::string_view name) const
{
    Hash hash(m_seed);
    for (const char c : name)
        hash.add(static_cast<unsigned char>(c));
    return hash;
}

Hash Algebra::function(const Op& op) const
{
    Hash hash = function(opName(op));
    forEachNumber(op.attributes, [&](const auto&, std::int64_t number) { hash.add(static_cast<std::uint64_t>(number)); });
    if (const auto* compare = std::get_if<CompareAttributes>(&op.attributes))
        hash.add(static_cast<std::uint64_t>(compare->direction)).add(compare->isTotalOrder ? 1 : 0);
    if (const auto* random = std::get_if<RandomBitsAttributes>(&op.attributes))
        hash.add(random->partitionable ? 1 : 0);
    if (const auto* other = std::get_if<OtherAttributes>(&op.attributes)) {
        for (const KeptAttribute& attribute : other->attributes) {
            for (const char c : attribute.name + "=" + attribute.text + ",")
                hash.add(static_cast<unsigned char>(c));
        }
    }
    return hash;
}

Element Algebra::sumOf(const Element& a, const Element& b, Residue sum) const
{
    const bool isFinite = a.isFinite && b.isFinite;
    if (sum == 0 && a.residue != 0 && !isFinite)
        return opaque(function("cancelled").add(std::min(a.residue, b.residue)).add(std::max(a.residue, b.residue)));
    return unknown(sum, std::max(a.degree, b.degree), isFinite);
}

Element Algebra::add(const Element& a, const Element& b, DType dtype) const
{
    if (a.isKnown && b.isKnown)
        return known(
            static_cast<std::int64_t>(static_cast<std::uint64_t>(a.number) + static_cast<std::uint64_t>(b.number)), dtype);
    return sumOf(a, b, plus(a.residue, b.residue));
}

Element Algebra::subtract(const Element& a, const Element& b, DType dtype) const
{
    if (a.isKnown && b.isKnown)
        return known(
            static_cast<std::int64_t>(static_cast<std::uint64_t>(a.number) - static_cast<std::uint64_t>(b.number)), dtype);
    return sumOf(a, b, minus(a.residue, b.residue));
}

Element Algebra::multiply(const Element& a, const Element& b, DType dtype) const
{
    std::int64_t product = 0;
    const bool overflows = a.isKnown && b.isKnown && __builtin_mul_overflow(a.number, b.number, &product);
    if (a.isKnown && b.isKnown && !(overflows && isFloating(dtype)))
        return known(
            static_cast<std::int64_t>(static_cast<std::uint64_t>(a.number) * static_cast<std::uint64_t>(b.number)), dtype);
    const bool isFinite = a.isFinite && b.isFinite;
    const bool isZero = a.residue == 0 || b.residue == 0;
    if ((isZero && !isFinite) || a.degree + b.degree > kMostDegree) // a chance of error that grows with the degree stays small
        return opaque(function("product").add(std::min(a.residue, b.residue)).add(std::max(a.residue, b.residue)), isFinite);
    return unknown(times(a.residue, b.residue), a.degree + b.degree, isFinite);
}

Element Algebra::select(const Element& predicate, const Element& a, const Element& b) const
{
    if (predicate.isKnown)
        return predicate.number != 0 ? a : b;
    if (a.residue == b.residue)
        return a;
    return unknown(plus(times(predicate.residue, minus(a.residue, b.residue)), b.residue),
        predicate.degree + std::max(a.degree, b.degree), a.isFinite && b.isFinite);
}

/// Rounding to fewer bits is a factor: sums pass it, and one more or less is seen.
Element Algebra::convert(const Element& from, DType type, DType to) const
{
    if (from.isKnown && (!isFloating(to) || std::abs(from.number) <= wholeNumbers(to)))
        return known(to == DType::Pred ? static_cast<std::int64_t>(from.number != 0) : from.number, to);
    if (holdsAll(to, type))
        return unknown(from.residue, from.degree, from.isFinite);
    if (isFloating(type) && isFloating(to)) {
        const Residue factor
            = function("rounded").add(static_cast<std::uint64_t>(type)).add(static_cast<std::uint64_t>(to)).residue();
        return unknown(times(from.residue, factor), from.degree + 1, from.isFinite);
    }
    return opaque(function("convert").add(static_cast<std::uint64_t>(type)).add(static_cast<std::uint64_t>(to)).add(from.residue),
        isInteger(type) || !isFloating(to));
}

Element Algebra::combined(ReduceKind kind, std::span<const Element> parts, DType dtype)
{
    if (kind != ReduceKind::Sum && kind != ReduceKind::Product)
        return extreme(kind, parts, dtype);
    Element made = known(kind == ReduceKind::Sum ? 0 : 1, dtype);
    for (const Element& part : parts)
        made = kind == ReduceKind::Sum ? add(made, part, dtype) : multiply(made, part, dtype);
    return made;
}

Element Algebra::identity(ReduceKind kind, DType dtype) const
{
    const ConstantAttributes start = reduceIdentity(kind, dtype);
    return start.data.value.index() == 0 ? constant(std::get<double>(start.data.value), dtype)
                                         : known(std::get<std::int64_t>(start.data.value), dtype);
}

/// What all parts together are the maximum of, say, each once; of those that are known the one that counts.
Element Algebra::extreme(ReduceKind kind, std::span<const Element> parts, DType dtype)
{
    auto& sets = m_sets[kind == ReduceKind::Max ? 0 : kind == ReduceKind::Min ? 1 : kind == ReduceKind::And ? 2 : 3];
    const bool isBitwise = kind == ReduceKind::And || kind == ReduceKind::Or;
    std::optional<std::int64_t> number;
    Elements members;
    const auto take = [&](const Element& part) {
        if (!part.isKnown) {
            members.push_back(part);
        } else if (!number) {
            number = part.number;
        } else if (isBitwise) {
            number = kind == ReduceKind::And ? *number & part.number : *number | part.number;
        } else {
            const bool isLarger = isUnsigned(dtype)
                ? static_cast<std::uint64_t>(part.number) > static_cast<std::uint64_t>(*number)
                : part.number > *number;
            number = isLarger == (kind == ReduceKind::Max) ? part.number : *number;
        }
    };
    for (const Element& part : parts) {
        const auto set = part.isKnown ? sets.end() : sets.find(part.residue);
        if (set == sets.end())
            take(part);
        else
            std::for_each(set->second->begin(), set->second->end(), take);
    }
    const Element identity = this->identity(kind, dtype);
    std::erase_if(members, [&](const Element& member) { return !identity.isKnown && member.residue == identity.residue; });
    if (members.empty())
        return number ? known(*number, dtype) : identity;
    const std::int64_t most = kind == ReduceKind::Max || kind == ReduceKind::Or ? 1 : 0;
    if (dtype == DType::Pred && number && *number == most)
        return known(most, dtype);
    if (number && !(identity.isKnown && identity.number == *number))
        members.push_back(known(*number, dtype));
    const auto less = [](const Element& a, const Element& b) { return a.residue < b.residue; };
    std::sort(members.begin(), members.end(), less);
    members.erase(
        std::unique(members.begin(), members.end(), [](const Element& a, const Element& b) { return a.residue == b.residue; }),
        members.end());
    if (members.size() == 1)
        return members.front();
    m_members += std::ssize(members);
    if (m_members > kMostMembers)
        return fresh();
    Hash hash = function(reduceKindName(kind));
    for (const Element& member : members)
        hash.add(member.residue);
    const Element made
        = opaque(hash, std::all_of(members.begin(), members.end(), [](const Element& member) { return member.isFinite; }));
    sets.try_emplace(made.residue, std::make_shared<const Elements>(std::move(members)));
    return made;
}

Element Algebra::quotient(const Element& a, const Element& b, DType dtype) const
{
    if (b.isKnown && b.number == 1)
        return a;
    if (isFloating(dtype))
        return multiply(unknown(a.residue, a.degree, a.isFinite), opaque(function("reciprocal").add(b.residue)), dtype);
    return opaque(function("quotient").add(a.residue).add(b.residue), true);
}

/// Of whole numbers; nothing where the result is none, or is not followed.
std::optional<Element> Algebra::ofKnown(const Op& op, std::span<const Element> operands, DType type, DType result) const
{
    if (!std::all_of(operands.begin(), operands.end(), [](const Element& operand) { return operand.isKnown; }))
        return std::nullopt;
    const std::int64_t a = operands[0].number;
    const std::int64_t b = operands.size() > 1 ? operands[1].number : 0;
    const bool isSmall = isFloating(type) || byteSize(type) < 8 || (a >= 0 && b >= 0);
    switch (op.kind) {
    case OpKind::Abs:
        return known(a < 0 ? -a : a, result);
    case OpKind::Sign:
        return known(a > 0 ? 1 : a < 0 ? -1 : 0, result);
    case OpKind::Floor:
    case OpKind::Ceil:
    case OpKind::RoundNearestEven:
    case OpKind::RoundNearestAway:
        return known(a, result);
    case OpKind::Divide:
        return isSmall && b != 0 && a % b == 0     ? std::optional(known(a / b, result))
            : isSmall && b != 0 && isInteger(type) ? std::optional(known(a / b, result))
                                                   : std::nullopt;
    case OpKind::Remainder:
        return isSmall && b != 0 ? std::optional(known(a % b, result)) : std::nullopt;
    case OpKind::Xor:
        return known(a ^ b, result);
    case OpKind::Not:
        return known(type == DType::Pred ? 1 - a : ~a, result);
    case OpKind::ShiftLeft:
        return b >= 0 && b < 32 && a >= 0 ? std::optional(known(a << b, result)) : std::nullopt;
    case OpKind::ShiftRightLogical:
    case OpKind::ShiftRightArithmetic:
        return b >= 0 && b < 8 * byteSize(type) && a >= 0 ? std::optional(known(a >> b, result)) : std::nullopt;
    case OpKind::Compare:
        return isSmall ? std::optional(known(compares(op.as<CompareAttributes>().direction, a, b) ? 1 : 0, result))
                       : std::nullopt;
    default:
        return std::nullopt;
    }
}

Element Algebra::elementwise(
    const Op& op, const Hash& meaning, std::span<const Element> operands, std::span<const DType> types, DType result)
{
    const auto opaqueOf = [&] {
        Hash hash = Hash(meaning).add(static_cast<std::uint64_t>(result));
        for (const Element& operand : operands)
            hash.add(operand.residue);
        return opaque(hash, !isFloating(result) || isBounded(op));
    };
    if (const auto made = ofKnown(op, operands, types.front(), result))
        return *made;
    switch (op.kind) {
    case OpKind::Negate:
        return subtract(known(0, result), operands[0], result);
    case OpKind::Square:
        return multiply(operands[0], operands[0], result);
    case OpKind::Add:
        return add(operands[0], operands[1], result);
    case OpKind::Subtract:
        return subtract(operands[0], operands[1], result);
    case OpKind::Multiply:
    case OpKind::Scale:
        return multiply(operands[0], operands[1], result);
    case OpKind::Divide:
        return quotient(operands[0], operands[1], result);
    case OpKind::Maximum:
    case OpKind::Minimum:
        return combined(op.kind == OpKind::Maximum ? ReduceKind::Max : ReduceKind::Min, operands, result);
    case OpKind::And:
    case OpKind::Or:
        return combined(op.kind == OpKind::And ? ReduceKind::And : ReduceKind::Or, operands, result);
    case OpKind::Not:
        return result == DType::Pred ? subtract(known(1, result), operands[0], DType::S32) : opaqueOf();
    case OpKind::Select:
        return select(operands[0], operands[1], operands[2]);
    case OpKind::Clamp: {
        const Element floor = combined(ReduceKind::Max, std::array{operands[0], operands[1]}, result);
        return combined(ReduceKind::Min, std::array{floor, operands[2]}, result);
    }
    case OpKind::Convert:
        return convert(operands[0], types[0], result);
    default:
        return opaqueOf();
    }
}

} // namespace meshwright
