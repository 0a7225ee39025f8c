// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/known_numbers.h"
#include "core/prove/lemmas.h"
#include "core/support/checked.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwright {

namespace {

/// The layout that the partitioner claims of a result. Devices count by it (`Iota`, `RandomBits`, `RngBitGenerator`).
const TensorSharding* claimedLayout(const Site& site, std::size_t result)
{
    const auto& sharding = site.walk.function[site.op.results[result]].sharding;
    return site.walk.isSource() || !sharding || sharding->dims.size() != site.localResult(result).size() ? nullptr : &*sharding;
}

} // namespace

std::optional<Standing> constantLemma(Site& site, std::size_t)
{
    const auto& constant = site.op.as<ConstantAttributes>();
    GlobalValues& globals = site.walk.globals;
    const Shape& shape = constant.type.shape;
    const auto* blob = std::get_if<2>(&constant.data.value);
    if (blob == nullptr || (*blob != nullptr && (*blob)->size() == static_cast<std::size_t>(byteSize(constant.type.dtype)))) {
        Standing standing;
        standing.global = globals.scalar(constant.type.dtype, constant.data);
        standing.dims.resize(shape.size());
        return standing;
    }
    if (*blob == nullptr && !site.walk.isSource())
        return site.refuse("the text leaves the elements out");
    const GlobalId global = globals.number(
        fmt::format("constant {} {}", typeText(constant.type), globals.blobText(*blob)), shape, constant.type.dtype, 0);
    return standingOf(global, shape, std::vector<StandingDim>(shape.size()), shape, 0);
}

std::optional<Standing> iotaLemma(Site& site, std::size_t)
{
    const auto& iota = site.op.as<IotaAttributes>();
    const std::size_t dim = iota.dim;
    StandingDim along;
    std::int64_t size = iota.type.shape[dim];
    std::int32_t mesh = 0;
    if (!site.walk.isSource()) {
        const TensorSharding* layout = claimedLayout(site, 0);
        const Shape& whole = (*site.walk.wholes)[site.op.results[0].at()];
        if (layout == nullptr || whole.size() != iota.type.shape.size())
            return site.refuse("it has no layout to count by");
        along.axes = canonical(layout->dims[dim].axes);
        size = whole[dim];
        mesh = layout->mesh;
        if (iota.type.shape[dim] != ceilDiv(size, shardCount(along.axes)))
            return site.refuse("its size is not that of a piece of its layout");
    }
    const GlobalId global
        = site.walk.globals.number(fmt::format("iota {} {}", dtypeName(iota.type.dtype), size), {size}, iota.type.dtype, 0);
    const Standing counted = standingOf(global, {size}, {along}, {iota.type.shape[dim]}, mesh);
    Standing standing = counted;
    standing.dims.assign(iota.type.shape.size(), {});
    standing.dims[dim] = counted.dims[0];
    return standing;
}

namespace {

/// What devices make by an element's place in the whole array: its shape, and where the pieces lie.
struct Counted {
    Shape whole;
    std::vector<StandingDim> dims;
    std::int32_t mesh = 0;
};

std::optional<Counted> counted(Site& site, std::size_t result)
{
    const Shape& local = site.localResult(result);
    Counted made{local, std::vector<StandingDim>(local.size())};
    if (site.walk.isSource())
        return made;
    const TensorSharding* layout = claimedLayout(site, result);
    made.whole = (*site.walk.wholes)[site.op.results[result].at()];
    if (layout == nullptr || made.whole.size() != local.size())
        return site.refuse("it has no layout to count by");
    made.mesh = layout->mesh;
    for (std::size_t dim = 0; dim < local.size(); ++dim) {
        made.dims[dim].axes = canonical(layout->dims[dim].axes);
        if (local[dim] != ceilDiv(made.whole[dim], shardCount(made.dims[dim].axes)))
            return site.refuse("its size is not that of a piece of its layout");
    }
    return made;
}

} // namespace

std::optional<Standing> randomBitsLemma(Site& site, std::size_t)
{
    const auto& bits = site.op.as<RandomBitsAttributes>();
    const Framed key = framed(site, 0);
    if (!key.partial.empty() || !key.isWhole(0))
        return site.refuse("the key differs between devices");
    const auto made = counted(site, 0);
    if (!made)
        return std::nullopt;
    for (std::size_t dim = 0; dim < made->dims.size(); ++dim) {
        if (bits.type.shape[dim] * shardCount(made->dims[dim].axes) != made->whole[dim])
            return site.refuse("its pieces are of different sizes");
    }
    // A number depends on its place among all: arrays of other shapes have the same ones. Dimensions of size 1 say nothing of it.
    Shape whole;
    Shape local;
    std::vector<StandingDim> dims;
    for (std::size_t dim = 0; dim < made->whole.size(); ++dim) {
        if (made->whole[dim] == 1)
            continue;
        whole.push_back(made->whole[dim]);
        local.push_back(bits.type.shape[dim]);
        dims.push_back(made->dims[dim]);
    }
    GlobalValues& globals = site.walk.globals;
    const std::string elements
        = fmt::format("random bits {} {} {} {}", bits.partitionable, dtypeName(bits.type.dtype), elementCount(whole), key.text());
    const GlobalId global
        = globals.number(fmt::format("reshape {} {}", whole, elements), whole, bits.type.dtype, globals[key.global].varies);
    globals[global].reshaped = elements;
    Standing standing = standingOf(global, whole, dims, local, made->mesh);
    for (std::size_t dim = 0; dim < made->whole.size(); ++dim) {
        if (made->whole[dim] == 1)
            standing.dims.insert(standing.dims.begin() + static_cast<std::ptrdiff_t>(dim), StandingDim{});
    }
    return standing;
}

std::optional<Standing> bitGeneratorLemma(Site& site, std::size_t result)
{
    Framed state = framed(site, 0);
    if (!state.partial.empty() || state.dims.size() != 1 || (!state.isCopy(0) && !state.isWhole(0)))
        return site.refuse("the state differs between devices");
    if (state.isCopy(0))
        state.shape = state.local;
    const auto bits = counted(site, 1);
    if (!bits)
        return std::nullopt;
    const Counted made = result == 1 ? *bits : Counted{site.localResult(0), std::vector<StandingDim>(1)};
    const GlobalId global
        = site.walk.globals.number(fmt::format("{} {} {} {} result {}", opName(site.op), attributesText(site.walk, site.op),
                                       typeText({site.dtype(1), bits->whole}), state.text(), result),
            made.whole, site.dtype(result), site.walk.globals[state.global].varies);
    return standingOf(global, made.whole, made.dims, site.localResult(result), made.mesh);
}

namespace {

/// Which operands of an op that is linear (in the sense of a reduction) must be partial, which may not be.
bool passesPartial(const Site& site, const std::vector<bool>& isPartial, ReduceKind kind)
{
    const auto all = [&](std::size_t from) {
        return std::all_of(isPartial.begin() + static_cast<std::ptrdiff_t>(from), isPartial.end(), [](bool is) { return is; });
    };
    const DType dtype = site.dtype();
    const auto operandType = [&](std::size_t i) { return site.walk.dtype(site.value(i)); };
    if (site.op.kind == OpKind::Select)
        return !isPartial[0] && all(1);
    if (kind == ReduceKind::Sum) {
        switch (site.op.kind) {
        case OpKind::Negate:
        case OpKind::Add:
        case OpKind::Subtract:
            return all(0);
        case OpKind::Convert:
            return isFloating(dtype) && isFloating(operandType(0));
        case OpKind::Multiply:
            return dtype != DType::Pred && isPartial[0] != isPartial[1];
        case OpKind::Divide:
            return isFloating(dtype) && isPartial[0] && !isPartial[1];
        default:
            return false;
        }
    }
    const bool isTruth = dtype == DType::Pred;
    switch (site.op.kind) {
    case OpKind::Convert: // rounding keeps the order; but without infinities what is too large becomes no number
        return (kind == ReduceKind::Max || kind == ReduceKind::Min) && isFloating(operandType(0)) && isFloating(dtype)
            && dtype != DType::F8E4M3FN;
    case OpKind::Maximum:
        return kind == ReduceKind::Max && all(0);
    case OpKind::Minimum:
        return kind == ReduceKind::Min && all(0);
    case OpKind::And:
        return (kind == ReduceKind::And || (isTruth && kind == ReduceKind::Min)) && all(0);
    case OpKind::Or:
        return (kind == ReduceKind::Or || (isTruth && kind == ReduceKind::Max)) && all(0);
    case OpKind::Multiply:
        return kind == ReduceKind::Product && all(0);
    default:
        return false;
    }
}

} // namespace

namespace {

/// The normal numbers of a floating type.
struct Precision {
    int mantissaBits;
    int leastExponent;
    double most;

    bool has(double number) const { return std::abs(number) >= std::ldexp(1.0, leastExponent) && std::abs(number) <= most; }
    double rounded(double number) const
    {
        int exponent = 0;
        const double mantissa = std::frexp(number, &exponent);
        return std::ldexp(std::nearbyint(std::ldexp(mantissa, mantissaBits + 1)), exponent - mantissaBits - 1);
    }
    /// So far from both ends of the type that numbers of a usual size stay in it when they are multiplied by it.
    bool isModest(double factor) const { return has(factor) && std::abs(std::ilogb(factor)) <= -leastExponent / 3; }
};

std::optional<Precision> precisionOf(DType dtype)
{
    switch (dtype) {
    case DType::F16:
        return Precision{10, -14, 65504.0};
    case DType::BF16:
        return Precision{7, -126, std::ldexp(255.0, 120)};
    case DType::F32:
        return Precision{23, -126, std::numeric_limits<float>::max()};
    case DType::F64:
        return Precision{52, -1022, std::numeric_limits<double>::max()};
    default:
        return std::nullopt;
    }
}

std::optional<double> computed(OpKind kind, const std::vector<double>& of)
{
    switch (kind) {
    case OpKind::Convert:
        return of[0];
    case OpKind::Negate:
        return -of[0];
    case OpKind::Add:
        return of[0] + of[1];
    case OpKind::Subtract:
        return of[0] - of[1];
    case OpKind::Multiply:
        return of[0] * of[1];
    case OpKind::Divide:
        return of[0] / of[1];
    default:
        return std::nullopt;
    }
}

/// What constants make of each other; nothing for other ops, and where rounding makes more of a difference than in the last digit.
std::optional<double> folded(OpKind kind, const std::vector<double>& of, const Precision& precision)
{
    std::vector<double> rounded;
    for (const double number : of)
        rounded.push_back(precision.rounded(number));
    const auto exact = computed(kind, of);
    const auto own = computed(kind, rounded);
    if (!exact || (*exact == 0.0 && *own == 0.0))
        return exact;
    const bool isNear = precision.has(*exact) && precision.has(*own)
        && std::abs(precision.rounded(*own) - *exact) <= std::ldexp(std::abs(*exact), 1 - precision.mantissaBits);
    return isNear ? exact : std::nullopt;
}

/// What arithmetic with constants, and sums of sums, are by their meaning and not by the ops that they are written with. `made` is the standing as
/// far as it is known: without its value. Nothing: the op is itself.
std::optional<Standing> simplified(const Site& site, const Standing& made)
{
    GlobalValues& globals = site.walk.globals;
    const auto precision = precisionOf(site.dtype());
    if (!precision || site.operands.size() > 2)
        return std::nullopt;
    std::vector<double> constants;
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < site.operands.size(); ++i) {
        const auto number = site.operands[i]->isUniform() ? globals.numberOf(site.operands[i]->global) : std::nullopt;
        number&& isFloating(site.walk.dtype(site.value(i))) ? constants.push_back(*number) : others.push_back(i);
    }
    Standing simple = made;
    if (others.empty()) {
        const auto number = folded(site.op.kind, constants, *precision);
        if (!number)
            return std::nullopt;
        simple.global = globals.scalar(site.dtype(), {*number});
        return simple;
    }
    const Standing& first = *site.operands[others.front()];
    const OpKind kind = site.op.kind;
    if (others.size() == 1 && constants.size() == 1) {
        const double constant = constants.front();
        const double factor = kind == OpKind::Divide ? 1.0 / constant : constant;
        const bool scales = (kind == OpKind::Multiply || (kind == OpKind::Divide && others.front() == 0))
            && precision->isModest(factor) && precision->isModest(factor * globals[first.global].factor);
        const bool adds = kind == OpKind::Add && constant == 0.0;
        if (!scales && !adds)
            return std::nullopt;
        simple.dims = first.dims;
        for (StandingDim& dim : simple.dims)
            dim.fill = kNoGlobal;
        simple.global = adds ? first.global : globals.scaled(first.global, factor);
        return simple;
    }
    if (kind == OpKind::Convert) { // each term of a sum by itself
        for (const GlobalId term : std::vector<GlobalId>(globals[first.global].terms)) {
            Standing part = first;
            part.global = term;
            part = convertedStanding(site.walk, std::move(part), site.dtype());
            simple.dims = part.dims;
            simple.global = simple.global == kNoGlobal ? part.global : globals.sum(simple.global, part.global);
        }
        return simple.global == kNoGlobal ? std::nullopt : std::optional(simple);
    }
    if (others.size() < 2 || kind != OpKind::Add)
        return std::nullopt;
    const Standing& second = *site.operands[others.back()];
    const auto places = [](const Standing& standing) {
        std::vector<int> from;
        for (const StandingDim& dim : standing.dims)
            from.push_back(dim.from);
        return from;
    };
    if (places(first) != places(second) || globals[first.global].shape != globals[second.global].shape)
        return std::nullopt;
    simple.dims = first.dims;
    for (StandingDim& dim : simple.dims)
        dim.fill = kNoGlobal;
    simple.global = globals.sum(first.global, second.global);
    return simple;
}

/// Which elements of an operand meet at each element of what an op makes element by element.
void addElements(std::string& text, const Standing& operand, const std::vector<int>& places)
{
    text += ' ';
    addNumber(text, operand.global);
    text += '[';
    for (std::size_t dim = 0; dim < places.size(); ++dim) {
        if (places[dim] >= 0) {
            addNumber(text, operand.dims[dim].from);
            text += ' ';
        }
    }
    text += ']';
}

/// Of arrays of copies: the array of copies of what is computed of what is copied.
std::optional<Standing> ofCopies(const Site& site, std::size_t result)
{
    const GlobalValues& globals = site.walk.globals;
    const std::size_t rank = site.localResult(result).size();
    Framed array{kNoGlobal, site.localResult(result), std::vector<StandingDim>(rank), site.localResult(result), {},
        ReduceKind::Sum, site.mesh(), {}};
    std::vector<bool> isAlong(rank, false);
    Standings copied;
    const auto fits = [&](std::size_t dim, const StandingDim& along, std::int64_t size) {
        const StandingDim& own = array.dims[dim];
        return array.shape[dim] == size && own.axes == along.axes
            && (own.window == along.window || (own.window && along.window && *own.window == *along.window));
    };
    for (const Standing* operand : site.operands) {
        const GlobalValue& value = globals[operand->global];
        Standing& of = copied.emplace_back(*operand);
        if (!operand->isWhole() || operand->dims.size() != rank)
            return std::nullopt;
        if (value.copied == kNoGlobal)
            continue;
        of.global = value.copied;
        for (std::size_t dim = 0; dim < rank; ++dim) {
            const StandingDim& along = operand->dims[dim];
            if (along.from < 0)
                continue;
            const std::int64_t size = value.shape[static_cast<std::size_t>(along.from)];
            of.dims[dim].from = value.copiedFrom[static_cast<std::size_t>(along.from)];
            if (!isAlongCopies(value, along))
                continue;
            of.dims[dim] = {};
            if (!isAlong[dim]) {
                array.shape[dim] = size;
                array.dims[dim].axes = along.axes;
                array.dims[dim].window = along.window;
                isAlong[dim] = true;
            } else if (!fits(dim, along, size)) {
                return std::nullopt;
            }
        }
    }
    if (std::none_of(isAlong.begin(), isAlong.end(), [](bool is) { return is; }))
        return std::nullopt;
    Site inner{site.walk, site.op, {}, {}};
    for (const Standing& standing : copied)
        inner.operands.push_back(&standing);
    const std::optional<Standing> made = elementwiseLemma(inner, result);
    if (!made)
        return std::nullopt;
    array.global = made->global;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        const StandingDim& along = made->dims[dim];
        if (along.from < 0)
            continue;
        const std::int64_t size = globals[made->global].shape[static_cast<std::size_t>(along.from)];
        if (isAlong[dim] && !fits(dim, along, size)) // copies beside elements of another operand
            return std::nullopt;
        array.shape[dim] = size;
        array.dims[dim] = along;
        isAlong[dim] = false;
    }
    if (std::none_of(isAlong.begin(), isAlong.end(), [](bool is) { return is; }))
        return made;
    const Framed all = filled(site.walk, std::move(array), true);
    return standingOf(all.global, all.shape, all.dims, all.local, all.mesh);
}

} // namespace

std::optional<Standing> elementwiseLemma(Site& site, std::size_t result)
{
    if (const auto taken = takenCase(site.walk, site.op))
        return *site.operands[*taken];
    if (auto copies = ofCopies(site, result))
        return copies;
    const std::size_t rank = site.localResult(result).size();
    const GlobalValues& globals = site.walk.globals;
    Standing made;
    made.dims.resize(rank);
    Shape shape;
    std::vector<int> places(rank, -1); // of local dimensions among those of the new value
    made.mesh = site.mesh();
    for (std::size_t dim = 0; dim < rank; ++dim) {
        std::int64_t size = -1;
        for (const Standing* operand : site.operands) {
            if (operand->dims.size() != rank)
                return site.refuse("its operands are of different ranks");
            const StandingDim& along = operand->dims[dim];
            if (along.from < 0)
                continue;
            const std::int64_t own = globals[operand->global].shape[static_cast<std::size_t>(along.from)];
            if (size < 0) {
                size = own;
                made.dims[dim] = along;
            } else if (size != own || made.dims[dim].axes != along.axes
                || (made.dims[dim].window == nullptr) != (along.window == nullptr)
                || (along.window && *made.dims[dim].window != *along.window)) {
                return site.refuse(fmt::format("its operands are split differently along dimension {}", dim));
            }
        }
        made.dims[dim].fill = kNoGlobal;
        if (size >= 0) {
            places[dim] = static_cast<int>(shape.size());
            made.dims[dim].from = places[dim];
            shape.push_back(size);
        }
    }
    std::vector<bool> isPartial;
    for (const Standing* operand : site.operands) {
        if (operand->isWhole())
            continue;
        if (!made.partial.empty() && (made.partial != operand->partial || made.kind != operand->kind))
            return site.refuse("its operands are partial over different axes");
        made.partial = operand->partial;
        made.kind = operand->kind;
    }
    if (!made.partial.empty()) {
        for (const Standing* operand : site.operands)
            isPartial.push_back(!operand->isWhole());
        bool passes = passesPartial(site, isPartial, made.kind);
        // What is whole may stand for a part where equal parts combine to the whole.
        for (std::size_t i = 0; i < isPartial.size() && !passes; ++i) {
            if (!isPartial[i] && canBePartial(site.walk, *site.operands[i], made.kind)) {
                isPartial[i] = true;
                passes = passesPartial(site, isPartial, made.kind);
            }
        }
        if (!passes)
            return site.refuse(fmt::format("a partial {} does not pass through it", reduceKindName(made.kind)));
        if (!disjoint(made.partial, placeAxes(made)))
            return site.refuse("an operand is partial over an axis that splits another one");
    }
    if (auto simple = simplified(site, made))
        return simple;
    std::string text(opName(site.op));
    text += ' ';
    text += attributesText(site.walk, site.op);
    if (result > 0)
        text += fmt::format(" result {}", result);
    std::uint64_t varies = 0;
    for (const Standing* operand : site.operands) {
        addElements(text, *operand, places);
        varies |= globals[operand->global].varies;
    }
    made.global = site.walk.globals.number(std::move(text), std::move(shape), site.dtype(result), varies);
    return made;
}

Standing convertedStanding(const Walk& walk, Standing standing, DType dtype)
{
    if (walk.globals[standing.global].dtype == dtype)
        return standing;
    Shape shape;
    std::vector<int> places(standing.dims.size(), -1);
    std::vector<StandingDim> dims = standing.dims;
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        dims[dim].fill = kNoGlobal;
        if (dims[dim].from < 0)
            continue;
        places[dim] = static_cast<int>(shape.size());
        shape.push_back(walk.globals[standing.global].shape[static_cast<std::size_t>(dims[dim].from)]);
        dims[dim].from = places[dim];
    }
    std::string text = fmt::format("{} {}", opName(OpKind::Convert), dtypeName(dtype));
    addElements(text, standing, places);
    standing.dims = std::move(dims);
    standing.global = walk.globals.number(std::move(text), std::move(shape), dtype, walk.globals[standing.global].varies);
    return standing;
}

std::optional<Standing> identityLemma(Site& site, std::size_t result)
{
    return *site.operands[result];
}

} // namespace meshwright
