// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/body_collective.h"
#include "core/program/shape_rules.h"
#include "tests/random_programs/combining_ops.h"
#include "tests/random_programs/element_ops.h"
#include "tests/random_programs/indexing_ops.h"
#include "tests/random_programs/layout_ops.h"
#include "tests/random_programs/matrix_ops.h"
#include "tests/random_programs/shape_ops.h"

#include <span>

/// Ops with blocks of whole arrays: loops, branches, calls and manual computations. What a block does is drawn too.
namespace meshwright::tests::draw {

/// The largest number that a loop's carries may hold.
inline constexpr double kCarried = 97;

void drawOp(ProgramGenerator& generator, Random& random);

/// A few ops on a block's arguments, which hold what `from` does; then a value of each wanted type.
inline std::vector<ValueId> drawBody(ProgramGenerator& generator, Random& random, const std::vector<ValueId>& arguments,
    const std::vector<ValueId>& from, std::span<const TensorType> wanted)
{
    ProgramGenerator::Pool outer = generator.enter(arguments, from);
    for (std::int64_t i = pick(random, 1, 4); i > 0; --i)
        drawOp(generator, random);
    std::vector<ValueId> results;
    for (const TensorType& type : wanted) {
        std::vector<ValueId> made;
        for (const ValueId value : generator.values()) {
            if (generator.type(value) == type && generator.isExact(value))
                made.push_back(value);
        }
        // One that was made here, rather than one that was given.
        const ValueId result = made.empty()
            ? generator.constant(random, type)
            : made[made.size() - 1 - ProgramGenerator::anyOf(random, std::min<std::size_t>(made.size(), 2))];
        results.push_back(generator.within(result, kCarried));
    }
    generator.leave(std::move(outer));
    return results;
}

/// An exact value as a loop can carry it: small enough, and no constant, which would be written inside.
inline ValueId carriable(ProgramGenerator& generator, ValueId value)
{
    value = generator.within(value, kCarried);
    const OpId producer = generator.function()[value].producer;
    if (!producer.valid() || generator.function()[producer].kind != OpKind::Constant)
        return value;
    return generator.note(generator.builder.reshape(value, Shape(generator.shapeOf(value))), kCarried);
}

/// Some such values.
inline std::vector<ValueId> drawCarried(ProgramGenerator& generator, Random& random, std::int64_t most)
{
    std::vector<ValueId> values;
    for (std::int64_t i = pick(random, 1, most); i > 0; --i) {
        const ValueId value = generator.any(random);
        values.push_back(carriable(generator, generator.isExact(value) ? value : generator.number(random)));
    }
    return values;
}

/// What a loop's body knows of its carries.
inline std::vector<ValueId> carriedBounds(ProgramGenerator& generator, std::vector<ValueId> values)
{
    for (const ValueId value : values)
        generator.note(value, std::max(generator.largest(value), kCarried));
    return values;
}

/// A loop that counts: over the slices of stacked arrays, with carries, and with what stays the same.
inline void repeat(ProgramGenerator& generator, Random& random)
{
    const ValueId stacked = generator.within(generator.number(random), kCarried);
    const TensorType type = generator.type(stacked);
    if (generator.depth() > 1 || type.shape.empty() || type.shape.front() == 0 || type.shape.front() > 12)
        return;
    const TensorType slice{type.dtype, Shape(type.shape.begin() + 1, type.shape.end())};
    std::vector<ValueId> operands = carriedBounds(generator, drawCarried(generator, random, 2));
    // Often the first carry becomes slice - carry, which shows in which order the slices were taken.
    const bool hasRoom = !isUnsigned(type.dtype) && ProgramGenerator::room(type.dtype) >= 2 * kCarried;
    const bool folds = hasRoom && chance(random, 40);
    if (folds)
        operands.front() = carriedBounds(generator, {carriable(generator, generator.like(random, slice))}).front();
    RepeatAttributes attributes;
    attributes.count = type.shape.front();
    attributes.carries = operands.size();
    attributes.stacked = 1;
    attributes.reversed = chance(random, 30);
    std::vector<TensorType> wanted = generator.typesOf(operands);
    const bool makesSlices = chance(random, 60);
    if (makesSlices)
        wanted.push_back(slice);
    operands.push_back(stacked);
    std::vector<ValueId> from = operands;
    if (chance(random, 40)) {
        const std::vector<ValueId> same = drawCarried(generator, random, 1);
        operands.insert(operands.end(), same.begin(), same.end());
        from.insert(from.end(), same.begin(), same.end());
    }
    const OpId made = generator.builder.beginRepeat(attributes, operands);
    const BlockId body = generator.function()[made].bodies.front();
    const std::vector<ValueId> inside = generator.function()[body].arguments;
    generator.builder.setBlock(body);
    std::vector<ValueId> results = drawBody(generator, random, inside, from, wanted);
    if (folds) {
        const ValueId taken = generator.builder.binary(OpKind::Subtract, inside[attributes.carries], inside.front());
        results.front() = generator.within(generator.note(taken, 2 * kCarried), kCarried);
    }
    generator.builder.setResults(std::move(results));
    for (const ValueId result : generator.builder.endRepeat(made))
        generator.keep(result, kCarried);
}

inline std::vector<std::size_t> allDims(const Shape& shape)
{
    std::vector<std::size_t> dims(shape.size());
    std::iota(dims.begin(), dims.end(), std::size_t{0});
    return dims;
}

/// A loop that ends when its counter's square is large enough, while no element of the first carry is: nobody counts its rounds beforehand.
inline void loop(ProgramGenerator& generator, Random& random)
{
    if (generator.depth() > 1)
        return;
    const std::vector<ValueId> carried = carriedBounds(generator, drawCarried(generator, random, 2));
    std::vector<ValueId> operands{generator.index(0)};
    operands.insert(operands.end(), carried.begin(), carried.end());
    const std::size_t carries = operands.size();
    if (chance(random, 50)) {
        const std::vector<ValueId> same = drawCarried(generator, random, 1);
        operands.insert(operands.end(), same.begin(), same.end());
    }
    const std::vector<TensorType> types = generator.typesOf(operands);
    const std::vector<TensorType> wanted(types.begin() + 1, types.begin() + static_cast<std::ptrdiff_t>(carries));
    const TensorType first = types[1];
    Builder& builder = generator.builder;
    const OpId made = builder.beginOp(OpKind::While, operands, WhileAttributes{carries});
    std::vector<ValueId> inside = builder.beginBody(made, types);
    const ValueId square = builder.binary(OpKind::Multiply, inside[0], inside[0]);
    ValueId goesOn = builder.compare(CompareDirection::Less, square, generator.index(pick(random, 0, 12)));
    if (first.dtype != DType::Pred && elementCount(first.shape) > 0) {
        const ValueId least = builder.reduce(ReduceKind::Min, inside[1], allDims(first.shape));
        const ValueId isSmall = builder.compare(CompareDirection::Less, least, generator.splat({first.dtype, {}}, 50));
        goesOn = builder.binary(OpKind::And, goesOn, isSmall);
    }
    builder.setResults({goesOn});
    inside = builder.beginBody(made, types);
    std::vector<ValueId> results
        = drawBody(generator, random, {inside.begin() + 1, inside.end()}, {operands.begin() + 1, operands.end()}, wanted);
    results.insert(results.begin(), builder.binary(OpKind::Add, inside[0], generator.index(1)));
    builder.setResults(results);
    const std::vector<ValueId> ends = builder.endOp(made, {types.begin(), types.begin() + static_cast<std::ptrdiff_t>(carries)});
    for (std::size_t i = 1; i < carries; ++i) {
        if (i == 1 || chance(random, 60))
            generator.keep(ends[i], kCarried);
    }
}

/// Two or three ways to go on, by some value.
inline void branches(ProgramGenerator& generator, Random& random)
{
    if (generator.depth() > 1)
        return;
    const std::vector<ValueId> used = drawCarried(generator, random, 3);
    const bool isTruth = chance(random, 50);
    ValueId which = generator.place(random, 3);
    if (isTruth)
        which = generator.builder.compare(CompareDirection::Less, which, generator.index(1));
    std::vector<ValueId> operands{which};
    operands.insert(operands.end(), used.begin(), used.end());
    const std::vector<TensorType> types = generator.typesOf(used);
    std::vector<TensorType> wanted{types.front()};
    if (types.size() > 1 && chance(random, 50))
        wanted.push_back(types.back());
    const OpId made = generator.builder.beginOp(OpKind::Case, operands, {});
    for (std::int64_t branch = isTruth ? 2 : 3; branch > 0; --branch) {
        const std::vector<ValueId> inside = generator.builder.beginBody(made, types);
        generator.builder.setResults(drawBody(generator, random, inside, used, wanted));
    }
    for (const ValueId result : generator.builder.endOp(made, wanted))
        generator.keep(result, kCarried);
}

/// A call of a function, as Shardy keeps it: a computation with a name.
inline void call(ProgramGenerator& generator, Random& random)
{
    if (generator.depth() > 1)
        return;
    const std::vector<ValueId> used = drawCarried(generator, random, 3);
    const std::vector<TensorType> types = generator.typesOf(used);
    std::vector<TensorType> wanted{types.front()};
    if (types.size() > 1 && chance(random, 50))
        wanted.push_back(types.back());
    ComputationAttributes attributes;
    attributes.name = "called";
    const OpId made = generator.builder.beginOp(OpKind::Computation, used, attributes);
    const std::vector<ValueId> inside = generator.builder.beginBody(made, types);
    generator.builder.setResults(drawBody(generator, random, inside, used, wanted));
    for (const ValueId result : generator.builder.endOp(made, wanted))
        generator.keep(result, kCarried);
}

// ---- manual computations

struct Manual {
    const Mesh& mesh;
    std::vector<std::int32_t> axes; ///< ascending
};

inline AxisRefs someAxes(Random& random, const Manual& manual)
{
    AxisRefs axes;
    for (const std::int32_t axis : manual.axes) {
        if (chance(random, 65))
            axes.push_back(wholeAxis(manual.mesh, static_cast<std::size_t>(axis)));
    }
    if (axes.empty())
        axes.push_back(
            wholeAxis(manual.mesh, static_cast<std::size_t>(manual.axes[ProgramGenerator::anyOf(random, manual.axes.size())])));
    return axes;
}

inline ValueId summed(
    ProgramGenerator& generator, Random&, ValueId piece, const AxisRefs& axes, const Manual& manual, ReduceKind kind)
{
    // Left out: collectives between a device and itself, whose results were not always written when this was made.
    if (shardCount(axes) == 1)
        return piece;
    const auto members = static_cast<double>(shardCount(axes));
    if (kind == ReduceKind::Sum)
        piece = generator.within(piece, ProgramGenerator::room(generator.dtypeOf(piece)) / members);
    BodyCollective collective;
    collective.kind = OpKind::AllReduce;
    collective.reduction = kind;
    collective.groups = deviceGroups(axes, manual.mesh);
    return generator.note(addBodyCollective(generator.builder, collective, piece, manual.mesh),
        kind == ReduceKind::Sum ? generator.largest(piece) * members : generator.largest(piece));
}

/// A collective on a piece, or the place of the device added to it.
inline void drawCollective(ProgramGenerator& generator, Random& random, const Manual& manual)
{
    const ValueId piece = generator.wide(random);
    const Shape shape = generator.shapeOf(piece);
    const AxisRefs axes = someAxes(random, manual);
    BodyCollective collective;
    collective.groups = deviceGroups(axes, manual.mesh);
    const std::int64_t members = collective.groupSize();
    if (members == 1) // left out: see `summed`
        return;
    const auto add = [&](double most) {
        const TensorType result = resultType(collective, generator.type(piece));
        if (ProgramGenerator::isSmall(result.shape))
            generator.keep(addBodyCollective(generator.builder, collective, piece, manual.mesh), most);
    };
    const auto dividedDims = [&] {
        std::vector<std::size_t> dims;
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            if (shape[dim] % members == 0)
                dims.push_back(dim);
        }
        return dims;
    };
    switch (pick(random, 0, 5)) {
    case 0: {
        const ReduceKind kinds[] = {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min};
        const ValueId sum = summed(generator, random, piece, axes, manual, kinds[pick(random, 0, 2)]);
        generator.keep(sum, generator.largest(sum));
        return;
    }
    case 1:
        if (shape.empty())
            return;
        collective.kind = OpKind::AllGather;
        collective.join = ProgramGenerator::anyOf(random, shape.size());
        return add(generator.largest(piece));
    case 2:
    case 3: {
        const std::vector<std::size_t> dims = dividedDims();
        if (dims.empty())
            return;
        const bool isSum = chance(random, 50);
        collective.kind = isSum ? OpKind::ReduceScatter : OpKind::AllToAll;
        collective.split = dims[ProgramGenerator::anyOf(random, dims.size())];
        collective.join = ProgramGenerator::anyOf(random, shape.size());
        if (generator.largest(piece) * static_cast<double>(members) > ProgramGenerator::room(generator.dtypeOf(piece)))
            return;
        return add(generator.largest(piece) * (isSum ? static_cast<double>(members) : 1));
    }
    case 4: {
        collective.kind = OpKind::CollectivePermute;
        collective.sources.assign(static_cast<std::size_t>(manual.mesh.deviceCount()), -1);
        const std::int64_t by = pick(random, 0, members - 1);
        const bool isRing = chance(random, 70);
        for (const std::vector<std::int64_t>& group : collective.groups) {
            for (std::int64_t i = 0; i < members; ++i) {
                const std::int64_t from = isRing ? (i + by) % members : i - by; // what comes from nowhere is zero
                if (from >= 0)
                    collective.sources[static_cast<std::size_t>(group[static_cast<std::size_t>(i)])]
                        = group[static_cast<std::size_t>(from)];
            }
        }
        collective.groups.clear();
        return add(generator.largest(piece));
    }
    default: {
        const ValueId place
            = generator.note(addPlaceInGroup(generator.builder, collective.groups, manual.mesh), static_cast<double>(members));
        const ValueId number = generator.converted(place, generator.dtypeOf(piece));
        const ValueId x = generator.within(piece, 1e6);
        generator.keep(generator.builder.binary(OpKind::Add, x, generator.builder.broadcast(number, shape, {})),
            generator.largest(x) + static_cast<double>(members));
    }
    }
}

/// Puts axes on dimensions of an array; those of a piece when `grows`, which then becomes larger, else only where they divide.
inline TensorSharding placed(ProgramGenerator& generator, Random& random, const AxisRefs& axes, Shape& shape, bool grows)
{
    TensorSharding sharding = TensorSharding::replicatedOf(shape.size());
    Shape left = shape;
    for (const AxisRef& axis : axes) {
        if (shape.empty() || axis.size == 1)
            continue;
        const std::size_t dim = ProgramGenerator::anyOf(random, shape.size());
        if (grows)
            shape[dim] *= axis.size;
        else if (chance(random, 25) || left[dim] % axis.size != 0)
            continue;
        left[dim] /= axis.size;
        sharding.dims[dim].axes.push_back(axis);
    }
    (void)generator;
    return sharding;
}

inline AxisRefs shuffled(Random& random, AxisRefs axes)
{
    std::shuffle(axes.begin(), axes.end(), random);
    return axes;
}

/// shard_map: each device computes on its piece, with collectives of its own. Other axes may split the pieces.
inline void manual(ProgramGenerator& generator, Random& random)
{
    if (generator.depth() > 0)
        return;
    const std::size_t meshIndex = generator.anyMesh(random);
    Manual manual{generator.meshes()[meshIndex].mesh, {}};
    AxisRefs manualAxes;
    AxisRefs otherAxes;
    for (std::size_t axis = 0; axis < manual.mesh.axes().size(); ++axis) {
        const bool isManual = chance(random, 75);
        (isManual ? manualAxes : otherAxes).push_back(wholeAxis(manual.mesh, axis));
        if (isManual)
            manual.axes.push_back(static_cast<std::int32_t>(axis));
    }
    if (manual.axes.empty())
        return;
    ComputationAttributes attributes;
    attributes.manualAxes = manual.axes;
    const std::vector<ValueId> operands = drawCarried(generator, random, 3);
    std::vector<TensorType> pieces;
    for (const ValueId operand : operands) {
        Shape shape = generator.shapeOf(operand);
        TensorSharding sharding = placed(generator, random, shuffled(random, manualAxes), shape, false);
        sharding.mesh = static_cast<std::int32_t>(meshIndex);
        const auto piece = manualPiece(generator.type(operand), sharding, manual.axes);
        assert(piece);
        pieces.push_back(*piece);
        for (const AxisRef& axis : otherAxes) { // automatic ones, where they divide what is left
            const std::size_t dim = shape.empty() ? 0 : ProgramGenerator::anyOf(random, shape.size());
            if (!shape.empty() && axis.size > 1 && chance(random, 40)
                && piece->shape[dim] % (axis.size * shardCount(sharding.dims[dim].axes)) == 0)
                sharding.dims[dim].axes.push_back(axis);
        }
        attributes.inShardings.push_back(std::move(sharding));
    }
    // The results' types follow from the body: the op gets its attributes when it is made.
    const OpId made = generator.builder.beginOp(OpKind::Computation, operands, attributes);
    const std::vector<ValueId> inside = generator.builder.beginBody(made, pieces);
    ProgramGenerator::Pool outer = generator.enter(inside, operands);
    generator.isManual = true;
    generator.manualMesh = static_cast<std::int32_t>(meshIndex);
    generator.freeAxes = otherAxes;
    for (std::int64_t i = pick(random, 1, 5); i > 0; --i) {
        if (chance(random, 50))
            drawCollective(generator, random, manual);
        else
            drawOp(generator, random);
    }
    std::vector<ValueId> results;
    std::vector<TensorType> types;
    for (std::int64_t i = pick(random, 1, 2); i > 0; --i) {
        const std::vector<ValueId>& values = generator.values();
        ValueId piece = values[values.size() - 1 - ProgramGenerator::anyOf(random, std::min<std::size_t>(values.size(), 2))];
        if (!generator.isExact(piece) || generator.dtypeOf(piece) == DType::Pred)
            piece = generator.wide(random);
        // Over the axes that do not place the result, all devices must have the same.
        AxisRefs placing;
        AxisRefs summing;
        for (const AxisRef& axis : manualAxes)
            (generator.shapeOf(piece).empty() || chance(random, 25) ? summing : placing).push_back(axis);
        Shape shape = generator.shapeOf(piece);
        TensorSharding sharding = placed(generator, random, shuffled(random, placing), shape, true);
        if (!ProgramGenerator::isSmall(shape)) {
            summing = manualAxes;
            shape = generator.shapeOf(piece);
            sharding = TensorSharding::replicatedOf(shape.size());
        }
        if (!summing.empty())
            piece = summed(generator, random, generator.within(piece, 1e4), summing, manual, ReduceKind::Sum);
        sharding.mesh = static_cast<std::int32_t>(meshIndex);
        generator.function()[made].as<ComputationAttributes>().outShardings.push_back(std::move(sharding));
        results.push_back(piece);
        types.push_back({generator.dtypeOf(piece), shape});
    }
    std::vector<double> most;
    for (const ValueId result : results)
        most.push_back(generator.largest(result));
    generator.isManual = false;
    generator.leave(std::move(outer));
    generator.builder.setResults(results);
    const std::vector<ValueId> ends = generator.builder.endOp(made, types);
    for (std::size_t i = 0; i < ends.size(); ++i)
        generator.keep(ends[i], most[i]);
}

inline constexpr DrawOp kBlockOps[] = {repeat, loop, branches, call, manual, manual};

/// One op of any family.
inline void drawOp(ProgramGenerator& generator, Random& random)
{
    const std::span<const DrawOp> families[]
        = {kElementOps, kShapeOps, kIndexingOps, kCombiningOps, kLayoutOps, kBlockOps, kMatrixOps};
    constexpr int kShares[] = {22, 24, 13, 22, 6, 10, 3}; // of a hundred
    std::int64_t left = pick(random, 1, 100);
    std::size_t family = 0;
    while (left > kShares[family])
        left -= kShares[family++];
    const std::span<const DrawOp> ops = families[family];
    const std::size_t before = generator.values().size();
    ops[ProgramGenerator::anyOf(random, ops.size())](generator, random);
    if (generator.values().size() > before && chance(random, 25))
        split(generator, random);
}

} // namespace meshwright::tests::draw
