// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/random_programs/program_generator.h"

/// Ops that combine elements: reductions, products, windows, convolutions, sorts.
namespace meshwright::tests::draw {

inline std::vector<std::size_t> someDims(Random& random, std::size_t rank)
{
    std::vector<std::size_t> dims;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        if (chance(random, 50))
            dims.push_back(dim);
    }
    return dims;
}

inline std::int64_t countAlong(const Shape& shape, const std::vector<std::size_t>& dims)
{
    std::int64_t count = 1;
    for (const std::size_t dim : dims)
        count *= shape[dim];
    return count;
}

inline void reduce(ProgramGenerator& generator, Random& random)
{
    ValueId a = generator.any(random);
    const DType dtype = generator.dtypeOf(a);
    const std::vector<std::size_t> dims = someDims(random, generator.shapeOf(a).size());
    const std::int64_t count = countAlong(generator.shapeOf(a), dims);
    if (dtype == DType::Pred) {
        generator.keep(generator.builder.reduce(chance(random, 50) ? ReduceKind::And : ReduceKind::Or, a, dims), 1);
        return;
    }
    const ReduceKind kinds[]
        = {ReduceKind::Sum, ReduceKind::Sum, ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Product};
    const ReduceKind kind = kinds[pick(random, 0, 5)];
    double most = generator.largest(a);
    if (!generator.isExact(a)) {
        generator.keep(generator.builder.reduce(ReduceKind::Sum, a, dims), most * static_cast<double>(count), false);
        return;
    }
    if (kind == ReduceKind::Sum || kind == ReduceKind::Product) {
        const double room = ProgramGenerator::room(dtype);
        const double each = kind == ReduceKind::Sum ? room / static_cast<double>(std::max<std::int64_t>(count, 1))
                                                    : std::pow(room, 1.0 / static_cast<double>(std::max<std::int64_t>(count, 1)));
        if (each < 1)
            return;
        a = generator.within(a, each);
        most = kind == ReduceKind::Sum ? generator.largest(a) * static_cast<double>(count)
                                       : std::pow(std::max(generator.largest(a), 1.0), static_cast<double>(count));
    } else if (count == 0) {
        return; // the largest of nothing is not a number to go on with
    }
    generator.keep(generator.builder.reduce(kind, a, dims), std::max(most, 1.0));
}

inline void dot(ProgramGenerator& generator, Random& random)
{
    ValueId a = generator.wide(random);
    ValueId b = generator.wide(random);
    if (generator.dtypeOf(a) != generator.dtypeOf(b)) {
        a = generator.converted(a, DType::F32);
        b = generator.converted(b, DType::F32);
    }
    const Shape left = generator.shapeOf(a);
    const Shape right = generator.shapeOf(b);
    DotAttributes attributes;
    attributes.resultType = attributes.operandType = generator.dtypeOf(a);
    std::vector<bool> taken(right.size());
    Shape result;
    std::int64_t contracted = 1;
    for (std::size_t dim = 0; dim < left.size(); ++dim) {
        bool isFree = true;
        for (std::size_t other = 0; other < taken.size() && isFree; ++other) {
            if (taken[other] || left[dim] != right[other] || chance(random, 30))
                continue;
            const bool isBatch = chance(random, 35);
            (isBatch ? attributes.lhsBatch : attributes.lhsContracting).push_back(dim);
            (isBatch ? attributes.rhsBatch : attributes.rhsContracting).push_back(other);
            taken[other] = true;
            isFree = false;
            if (isBatch)
                result.push_back(left[dim]);
            else
                contracted *= left[dim];
        }
        if (isFree)
            result.push_back(left[dim]);
    }
    for (std::size_t other = 0; other < taken.size(); ++other) {
        if (!taken[other])
            result.push_back(right[other]);
    }
    const double each
        = std::sqrt(ProgramGenerator::room(generator.dtypeOf(a)) / static_cast<double>(std::max<std::int64_t>(contracted, 1)));
    if (!ProgramGenerator::isSmall(result) || elementCount(result) * contracted > 60'000)
        return;
    a = generator.within(a, each);
    b = generator.within(b, each);
    generator.keep(generator.builder.dot(a, b, attributes),
        generator.largest(a) * generator.largest(b) * static_cast<double>(std::max<std::int64_t>(contracted, 1)));
}

/// Some value times a matrix, so that there is always a contraction.
inline void project(ProgramGenerator& generator, Random& random)
{
    ValueId a = generator.wide(random);
    const Shape shape = generator.shapeOf(a);
    if (shape.empty())
        return;
    const std::size_t dim = ProgramGenerator::anyOf(random, shape.size());
    const std::int64_t width = generator.size(random);
    Shape result = shape;
    result.erase(result.begin() + static_cast<std::ptrdiff_t>(dim));
    result.push_back(width);
    if (!ProgramGenerator::isSmall(result) || !ProgramGenerator::isSmall({shape[dim], width}))
        return;
    DotAttributes attributes;
    attributes.resultType = attributes.operandType = generator.dtypeOf(a);
    attributes.lhsContracting = {dim};
    attributes.rhsContracting = {0};
    const double each
        = std::sqrt(ProgramGenerator::room(generator.dtypeOf(a)) / static_cast<double>(std::max<std::int64_t>(shape[dim], 1)));
    a = generator.within(a, each);
    const ValueId b = generator.within(generator.like(random, {generator.dtypeOf(a), {shape[dim], width}}), each);
    generator.keep(generator.builder.dot(a, b, attributes), ProgramGenerator::room(generator.dtypeOf(a)));
}

/// The largest element along a dimension and its place, as jnp.argmax has it; often only one of the two is used.
inline void argmax(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.wide(random);
    const TensorType type = generator.type(a);
    if (type.shape.empty() || elementCount(type.shape) == 0)
        return;
    const std::size_t dim = ProgramGenerator::anyOf(random, type.shape.size());
    const TensorType places{DType::S32, type.shape};
    TensorType result = type;
    result.shape.erase(result.shape.begin() + static_cast<std::ptrdiff_t>(dim));
    const ValueId numbers = generator.builder.iota(places, dim);
    const ValueId least = generator.splat({type.dtype, {}}, -1e7);
    const TensorType value{type.dtype, {}};
    const TensorType place{DType::S32, {}};
    Builder& builder = generator.builder;
    const auto made = generator.withBlocks({a, numbers, least, generator.index(0)},
        {"stablehlo.reduce", {keptList("dimensions", {static_cast<std::int64_t>(dim)})}, {result, {DType::S32, result.shape}}, 0},
        {value, place, value, place}, {[&](const std::vector<ValueId>& in) {
            const ValueId isMore = builder.compare(CompareDirection::Greater, in[0], in[2]);
            const ValueId isSame = builder.compare(CompareDirection::Equal, in[0], in[2]);
            const ValueId isBefore = builder.compare(CompareDirection::Less, in[1], in[3]);
            const ValueId isFirst = builder.binary(OpKind::Or, isMore, builder.binary(OpKind::And, isSame, isBefore));
            return std::vector<ValueId>{builder.select(isMore, in[0], in[2]), builder.select(isFirst, in[1], in[3])};
        }});
    const bool usesFirst = chance(random, 50);
    if (usesFirst)
        generator.keep(made[0], generator.largest(a));
    if (!usesFirst || chance(random, 40))
        generator.keep(made[1], static_cast<double>(type.shape[dim]));
}

inline void sort(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.number(random);
    const Shape shape = generator.shapeOf(a);
    if (shape.empty())
        return;
    const std::size_t dim = ProgramGenerator::anyOf(random, shape.size());
    std::vector<ValueId> operands{a};
    for (std::int64_t more = pick(random, 0, 2); more > 0; --more) {
        const TensorType places{DType::S32, shape};
        operands.push_back(chance(random, 50)
                ? generator.note(generator.builder.iota(places, dim), static_cast<double>(shape[dim]))
                : generator.like(random, places));
    }
    std::vector<TensorType> scalars;
    for (const ValueId operand : operands)
        scalars.insert(scalars.end(), 2, {generator.dtypeOf(operand), {}});
    const CompareDirection direction = chance(random, 50) ? CompareDirection::Less : CompareDirection::Greater;
    const auto made = generator.withBlocks(operands,
        {"stablehlo.sort", {keptInteger("dimension", static_cast<std::int64_t>(dim)), keptTruth("is_stable", true)},
            generator.typesOf(operands), 0},
        scalars, {[&](const std::vector<ValueId>& in) {
            return std::vector<ValueId>{generator.builder.compare(direction, in[0], in[1])};
        }});
    const std::size_t kept = ProgramGenerator::anyOf(random, made.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
        if (i == kept || chance(random, 40))
            generator.keepMoved(made[i], {operands[i]});
    }
}

inline void top(ProgramGenerator& generator, Random& random)
{
    ValueId a = generator.wide(random);
    TensorType values = generator.type(a);
    if (values.shape.empty() || values.shape.back() == 0)
        return;
    if (isFloating(values.dtype)) // no -0, which would come after 0 here and nowhere else
        a = generator.note(generator.builder.binary(OpKind::Add, a, generator.splat(values, 0)), generator.largest(a));
    const std::int64_t count = pick(random, 1, values.shape.back());
    values.shape.back() = count;
    const TensorType places{DType::S32, values.shape};
    const std::vector<ValueId> made = generator.builder.addMany(
        OpKind::Other, {a}, OtherAttributes{"chlo.top_k", {keptInteger("k", count)}, {values, places}, 0});
    const bool usesFirst = chance(random, 50);
    if (usesFirst)
        generator.keep(made[0], generator.largest(a));
    if (!usesFirst || chance(random, 40))
        generator.keep(made[1], static_cast<double>(generator.shapeOf(a).back()));
}

/// Windows of a few elements along each dimension.
struct Windows {
    Shape sizes;
    Shape strides;
    Shape baseDilations;
    Shape dilations;
    Shape pads;
    Shape result;
};

inline std::optional<Windows> drawWindows(Random& random, const Shape& shape, bool dilates)
{
    Windows made;
    for (const std::int64_t n : shape) {
        const bool isWhole = chance(random, 40);
        const bool runs = !isWhole && dilates && chance(random, 20); // running sums: each window ends at its element
        made.sizes.push_back(isWhole ? 1 : (runs ? n : pick(random, 1, 4)));
        made.strides.push_back(isWhole || runs ? 1 : pick(random, 1, 2));
        made.baseDilations.push_back(isWhole || runs || !dilates ? 1 : pick(random, 1, chance(random, 20) ? 2 : 1));
        made.dilations.push_back(isWhole || runs || !dilates ? 1 : pick(random, 1, 2));
        made.pads.push_back(isWhole ? 0 : (runs ? n - 1 : pick(random, 0, 3)));
        made.pads.push_back(isWhole || runs ? 0 : pick(random, 0, 3));
        const std::int64_t span = (made.sizes.back() - 1) * made.dilations.back() + 1;
        const std::int64_t room
            = (n - 1) * made.baseDilations.back() + 1 + made.pads[made.pads.size() - 2] + made.pads.back() - span;
        if (n == 0 || room < 0)
            return std::nullopt;
        made.result.push_back(room / made.strides.back() + 1);
    }
    return ProgramGenerator::isSmall(made.result) && elementCount(made.result) * elementCount(made.sizes) <= 20'000
        ? std::optional(made)
        : std::nullopt;
}

inline void reduceWindow(ProgramGenerator& generator, Random& random)
{
    ValueId a = generator.wide(random);
    const TensorType type = generator.type(a);
    if (type.shape.empty())
        return;
    const auto windows = drawWindows(random, type.shape, true);
    if (!windows)
        return;
    const OpKind kinds[] = {OpKind::Add, OpKind::Add, OpKind::Maximum, OpKind::Minimum};
    const OpKind kind = kinds[pick(random, 0, 3)];
    // What a reduction begins with is padded too, so that it makes a difference where it is not an identity.
    const auto times = static_cast<double>(elementCount(windows->sizes)) + 1;
    const double room = ProgramGenerator::room(type.dtype) / times;
    const bool isIdentity = chance(random, 60) || room < 10;
    a = generator.within(a, kind == OpKind::Add ? (isIdentity ? room : room - 4) : 90);
    const TensorType scalar{type.dtype, {}};
    const auto identity = kind == OpKind::Add ? 0 : (kind == OpKind::Maximum ? -100 : 100);
    const ValueId first = generator.splat(scalar, isIdentity ? identity : static_cast<int>(pick(random, 1, 4)));
    const auto made = generator.withBlocks({a, first},
        {"stablehlo.reduce_window",
            {keptList("base_dilations", windows->baseDilations), keptPadding(windows->pads),
                keptList("window_dilations", windows->dilations), keptList("window_dimensions", windows->sizes),
                keptList("window_strides", windows->strides)},
            {{type.dtype, windows->result}}, 0},
        {scalar, scalar},
        {[&](const std::vector<ValueId>& in) { return std::vector<ValueId>{generator.builder.binary(kind, in[0], in[1])}; }});
    generator.keep(made.front(), kind == OpKind::Add ? (generator.largest(a) + (isIdentity ? 0 : 4)) * times : 100);
}

/// What the gradient of a largest-of-windows does.
inline void selectAndScatter(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.wide(random);
    const TensorType type = generator.type(a);
    if (type.shape.empty())
        return;
    const auto windows = drawWindows(random, type.shape, false);
    if (!windows)
        return;
    for (std::size_t i = 0; i < windows->pads.size(); ++i) { // no window of padding alone
        if (windows->pads[i] >= windows->sizes[i / 2])
            return;
    }
    const auto times = static_cast<double>(elementCount(windows->sizes));
    const TensorType scalar{type.dtype, {}};
    const ValueId source = generator.within(generator.like(random, {type.dtype, windows->result}), 1e6 / times);
    const auto made = generator.withBlocks({a, source, generator.splat(scalar, 0)},
        {"stablehlo.select_and_scatter",
            {keptPadding(windows->pads), keptList("window_dimensions", windows->sizes),
                keptList("window_strides", windows->strides)},
            {type}, 0},
        {scalar, scalar},
        {[&](const std::vector<ValueId>& in) {
             return std::vector<ValueId>{generator.builder.compare(CompareDirection::GreaterEqual, in[0], in[1])};
         },
            [&](const std::vector<ValueId>& in) {
                return std::vector<ValueId>{generator.builder.binary(OpKind::Add, in[0], in[1])};
            }});
    generator.keep(made.front(), generator.largest(source) * times);
}

/// One or two dimensions of space, groups of features or of the batch, and the dimensions in any order.
inline void convolution(ProgramGenerator& generator, Random& random)
{
    const bool isFlat = chance(random, 60);
    const std::size_t rank = isFlat ? 1 : 2;
    const std::int64_t featureGroups = chance(random, 35) ? pick(random, 2, 4) : 1;
    const std::int64_t batchGroups = featureGroups == 1 && chance(random, 25) ? pick(random, 2, 3) : 1;
    const std::int64_t perGroup = chance(random, 30) ? std::min<std::int64_t>(generator.size(random), 8) : pick(random, 1, 3);
    const std::int64_t outputs = featureGroups * batchGroups * pick(random, 1, 3);
    std::int64_t batch = std::min<std::int64_t>(generator.size(random), 12);
    batch = batchGroups > 1 ? batchGroups * pick(random, 1, 3) : batch;
    const std::int64_t features = perGroup * featureGroups;
    Shape space;
    Shape sizes;
    Shape strides;
    Shape pads;
    Shape baseDilations;
    Shape dilations;
    Shape reversal;
    Shape result;
    for (std::size_t i = 0; i < rank; ++i) {
        space.push_back(isFlat ? generator.size(random) : pick(random, 2, 6));
        sizes.push_back(pick(random, 1, 4));
        strides.push_back(pick(random, 1, 2));
        pads.push_back(pick(random, -1, 3));
        pads.push_back(pick(random, 0, 3));
        baseDilations.push_back(chance(random, 20) ? 2 : 1);
        dilations.push_back(pick(random, 1, 2));
        reversal.push_back(chance(random, 20) ? 1 : 0);
        const std::int64_t room = (space.back() - 1) * baseDilations.back() + 1 + pads[2 * i] + pads[2 * i + 1]
            - (sizes.back() - 1) * dilations.back() - 1;
        if (space.back() == 0 || room < 0)
            return;
        result.push_back(room / strides.back() + 1);
    }
    // Where the letters and numbers stand in the three arrays.
    const auto places
        = [&](char outer, char inner, std::int64_t outerSize, std::int64_t innerSize, const Shape& spatial, Shape& shape) {
              std::vector<std::size_t> order(rank + 2);
              std::iota(order.begin(), order.end(), std::size_t{0});
              if (chance(random, 40))
                  std::shuffle(order.begin(), order.end(), random);
              std::string text;
              for (const std::size_t entry : order) {
                  const std::string name = entry == 0 ? std::string(1, outer)
                      : entry == rank + 1             ? std::string(1, inner)
                                                      : std::to_string(entry - 1);
                  text += (text.empty() ? "[" : ", ") + name;
                  shape.push_back(entry == 0 ? outerSize : entry == rank + 1 ? innerSize : spatial[entry - 1]);
              }
              return text + "]";
          };
    const DType dtype = chance(random, 50) ? DType::S32 : DType::F32;
    TensorType input{dtype, {}};
    TensorType kernel{dtype, {}};
    TensorType output{dtype, {}};
    const std::string numbers = "#stablehlo.conv<" + places('b', 'f', batch, features, space, input.shape) + "x"
        + places('i', 'o', perGroup, outputs, sizes, kernel.shape) + "->"
        + places('b', 'f', batch / batchGroups, outputs, result, output.shape) + ">";
    if (!ProgramGenerator::isSmall(input.shape) || !ProgramGenerator::isSmall(kernel.shape)
        || !ProgramGenerator::isSmall(output.shape))
        return;
    const ValueId x = generator.within(generator.shaped(random, input), 97);
    const ValueId w
        = generator.within(chance(random, 50) ? generator.shaped(random, kernel) : generator.constant(random, kernel), 97);
    std::vector<std::string> reversed;
    for (const std::int64_t is : reversal)
        reversed.push_back(is != 0 ? "true" : "false");
    OtherAttributes attributes{"stablehlo.convolution",
        {keptInteger("batch_group_count", batchGroups), keptAttribute("dimension_numbers", numbers, {}),
            keptInteger("feature_group_count", featureGroups), keptList("lhs_dilation", baseDilations), keptPadding(pads),
            keptList("rhs_dilation", dilations),
            keptAttribute("window_reversal", fmt::format("array<i1: {}>", fmt::join(reversed, ", ")), reversal),
            keptList("window_strides", strides)},
        {output}, 0};
    generator.keep(generator.builder.add(OpKind::Other, {x, w}, std::move(attributes)),
        generator.largest(x) * generator.largest(w) * static_cast<double>(perGroup * elementCount(sizes)));
}

inline constexpr DrawOp kCombiningOps[]
    = {reduce, reduce, dot, dot, project, project, argmax, sort, top, reduceWindow, selectAndScatter, convolution, convolution};

} // namespace meshwright::tests::draw
