// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/random_programs/program_generator.h"

/// Gathers and scatters of all forms.
namespace meshwright::tests::draw {

/// How slices of an array are taken or put, and the shapes that go with it.
struct Indexing {
    IndexingDims dims;
    Shape sliceSizes; ///< of the array that is indexed
    Shape indices;
    Shape slices; ///< of the gather's result, the scatter's updates
    std::int64_t places = 1; ///< how many slices
    bool isSingle = true; ///< slices are single elements along what is indexed
};

/// Some dimensions of the array are indexed, some go with dimensions of the indices, the others are taken whole.
inline Indexing drawIndexing(ProgramGenerator& generator, Random& random, const Shape& shape)
{
    Indexing made;
    IndexingDims& dims = made.dims;
    std::vector<std::size_t> order(shape.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    std::size_t next = 0;
    const auto indexed = static_cast<std::size_t>(pick(random, 1, chance(random, 70) ? 1 : 2));
    while (next < std::min(indexed, order.size()))
        dims.indexMap.push_back(order[next++]);
    if (next < order.size() && chance(random, 25))
        dims.operandBatch.push_back(order[next]);
    made.sliceSizes = shape;
    for (const std::size_t dim : dims.indexMap) {
        if (chance(random, 70)) {
            made.sliceSizes[dim] = 1;
            if (chance(random, 80))
                dims.collapsed.push_back(dim);
        } else {
            made.sliceSizes[dim] = pick(random, 1, shape[dim]);
            made.isSingle = made.isSingle && made.sliceSizes[dim] == 1;
        }
    }
    for (const std::size_t dim : dims.operandBatch)
        made.sliceSizes[dim] = 1;
    std::sort(dims.collapsed.begin(), dims.collapsed.end());

    // The indices: what goes with the array, and one or two dimensions more; in them the index vectors, or each entry is one.
    Shape batch;
    for (const std::size_t dim : dims.operandBatch)
        batch.push_back(shape[dim]);
    for (std::int64_t more = pick(random, batch.empty() ? 1 : 0, batch.empty() ? 2 : 1); more > 0; --more)
        batch.push_back(std::min<std::int64_t>(generator.size(random), 24));
    made.indices = batch;
    dims.indexVectorDim = batch.size();
    if (dims.indexMap.size() != 1 || chance(random, 60)) {
        dims.indexVectorDim = chance(random, 70) ? batch.size() : ProgramGenerator::anyOf(random, batch.size() + 1);
        made.indices.insert(made.indices.begin() + static_cast<std::ptrdiff_t>(dims.indexVectorDim),
            static_cast<std::int64_t>(dims.indexMap.size()));
    }
    if (!dims.operandBatch.empty())
        dims.indicesBatch.push_back(dims.indexVectorDim == 0 && made.indices.size() > batch.size() ? 1 : 0);
    made.places = elementCount(batch);

    // The slices: windows in their order, at any places among the batch.
    Shape window;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        const auto isIn
            = [&](const std::vector<std::size_t>& some) { return std::find(some.begin(), some.end(), dim) != some.end(); };
        if (!isIn(dims.collapsed) && !isIn(dims.operandBatch))
            window.push_back(made.sliceSizes[dim]);
    }
    const std::size_t rank = window.size() + batch.size();
    std::vector<std::size_t> all(rank);
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (chance(random, 50)) // at the end, most often
        std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(batch.size()), all.end());
    else
        std::shuffle(all.begin(), all.end(), random);
    dims.window.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(window.size()));
    std::sort(dims.window.begin(), dims.window.end());
    std::size_t inWindow = 0;
    std::size_t inBatch = 0;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        const bool isWindow = std::find(dims.window.begin(), dims.window.end(), dim) != dims.window.end();
        made.slices.push_back(isWindow ? window[inWindow++] : batch[inBatch++]);
    }
    return made;
}

inline bool canIndex(const Shape& shape)
{
    return !shape.empty() && elementCount(shape) > 0;
}

/// Numbers for an array of indices, some beyond the ends: constants, counted ones, or ones that depend on some value.
inline ValueId drawIndices(ProgramGenerator& generator, Random& random, const Shape& shape, std::int64_t n)
{
    const TensorType type{DType::S32, shape};
    if (elementCount(shape) == 0)
        return generator.splat(type, 0);
    if (chance(random, 40))
        return generator.listed(random, type, chance(random, 30) ? -1 : 0, chance(random, 30) ? n : n - 1);
    if (chance(random, 50))
        return generator.within(generator.shaped(random, type), static_cast<double>(n));
    const ValueId counted = generator.builder.iota(type, ProgramGenerator::anyOf(random, shape.size()));
    const ValueId scaled = generator.builder.binary(OpKind::Multiply, counted, generator.splat(type, 5));
    return generator.builder.binary(OpKind::Remainder, scaled, generator.splat(type, static_cast<double>(n)));
}

inline void gather(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    const Shape shape = generator.shapeOf(a);
    if (!canIndex(shape))
        return;
    const Indexing made = drawIndexing(generator, random, shape);
    if (!ProgramGenerator::isSmall(made.slices) || made.indices.size() > ProgramGenerator::kMostDims)
        return;
    const ValueId indices = drawIndices(generator, random, made.indices, shape[made.dims.indexMap.front()]);
    generator.keepMoved(
        generator.builder.add(OpKind::Gather, {a, indices}, GatherAttributes{made.dims, made.sliceSizes, false}), {a});
}

/// Rows of a table, as jnp.take takes them: numbers below zero count from the end, and what is out of range becomes another number.
inline void take(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.wide(random);
    const Shape table = generator.shapeOf(a);
    if (table.empty() || table.size() > 2 || elementCount(table) == 0)
        return;
    const std::int64_t count = generator.size(random);
    const TensorType row{DType::S32, {count}};
    const TensorType column{DType::S32, {count, 1}};
    const ValueId asked = drawIndices(generator, random, row.shape, table[0]);
    const ValueId isBelow = generator.builder.compare(
        CompareDirection::Less, asked, generator.builder.broadcast(generator.index(0), row.shape, {}));
    const ValueId fromEnd
        = generator.builder.binary(OpKind::Add, asked, generator.builder.broadcast(generator.index(table[0]), row.shape, {}));
    const ValueId indices = generator.builder.broadcast(generator.builder.select(isBelow, fromEnd, asked), column.shape, {0});
    const ValueId isLow = generator.builder.compare(
        CompareDirection::GreaterEqual, indices, generator.builder.broadcast(generator.index(0), column.shape, {}));
    const ValueId last = generator.builder.broadcast(
        generator.builder.broadcast(generator.listed({DType::S32, {1}}, {static_cast<double>(table[0] - 1)}), {1, 1}, {1}),
        column.shape, {0, 1});
    const ValueId isHigh = generator.builder.compare(CompareDirection::LessEqual, indices, last);
    const ValueId isIn = generator.builder.reduce(ReduceKind::And, generator.builder.binary(OpKind::And, isLow, isHigh), {1});
    GatherAttributes attributes;
    attributes.dims.collapsed = {0};
    attributes.dims.indexMap = {0};
    attributes.dims.indexVectorDim = 1;
    attributes.sliceSizes = {1};
    TensorType result{generator.dtypeOf(a), {count}};
    std::vector<std::size_t> dims{0};
    if (table.size() == 2) {
        attributes.dims.window = {1};
        attributes.sliceSizes.push_back(table[1]);
        result.shape.push_back(table[1]);
    }
    if (!ProgramGenerator::isSmall(result.shape))
        return;
    const ValueId rows = generator.builder.add(OpKind::Gather, {a, indices}, attributes);
    const ValueId mask = generator.builder.broadcast(isIn, result.shape, dims);
    const ValueId other = generator.builder.broadcast(generator.splat({result.dtype, {}}, 77), result.shape, {});
    generator.keep(generator.builder.select(mask, rows, other), std::max(generator.largest(a), 77.0));
}

/// Different places along the only dimension that is indexed, where an update takes the place of what was there.
inline ValueId drawDistinct(ProgramGenerator& generator, Random& random, const Shape& shape, std::int64_t n)
{
    std::vector<double> numbers(static_cast<std::size_t>(std::max(n, elementCount(shape))));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    std::shuffle(numbers.begin(), numbers.end(), random);
    numbers.resize(static_cast<std::size_t>(elementCount(shape)));
    return generator.listed({DType::S32, shape}, numbers);
}

inline void scatter(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    const Shape shape = generator.shapeOf(a);
    const TensorType type = generator.type(a);
    if (!canIndex(shape) || !generator.isExact(a))
        return;
    const Indexing made = drawIndexing(generator, random, shape);
    if (!ProgramGenerator::isSmall(made.slices) || made.indices.size() > ProgramGenerator::kMostDims
        || elementCount(made.indices) == 0)
        return;
    ScatterAttributes attributes{made.dims, {}, false, false};
    const bool canPut = made.isSingle && made.dims.indexMap.size() == 1 && made.dims.operandBatch.empty();
    const std::int64_t n = shape[made.dims.indexMap.front()];
    const bool isPut = canPut && chance(random, 30);
    const ValueId indices
        = isPut ? drawDistinct(generator, random, made.indices, n) : drawIndices(generator, random, made.indices, n);
    ValueId operand = a;
    ValueId updates = generator.like(random, {type.dtype, made.slices});
    double most = std::max(generator.largest(a), generator.largest(updates));
    if (!isPut) {
        const ReduceKind ofNumbers[] = {ReduceKind::Sum, ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min};
        const ReduceKind ofTruths[] = {ReduceKind::And, ReduceKind::Or};
        attributes.combiner = type.dtype == DType::Pred ? ofTruths[pick(random, 0, 1)] : ofNumbers[pick(random, 0, 3)];
        if (attributes.combiner == ReduceKind::Sum) {
            const auto times = static_cast<double>(elementCount(made.slices));
            if (ProgramGenerator::room(type.dtype) / 2 / times < 1)
                return;
            operand = generator.within(a, ProgramGenerator::room(type.dtype) / 2);
            updates = generator.within(updates, ProgramGenerator::room(type.dtype) / 2 / times);
            most = generator.largest(operand) + times * generator.largest(updates);
        }
    }
    generator.keep(generator.builder.add(OpKind::Scatter, {operand, indices, updates}, attributes), most);
}

inline std::string dimsText(const char* name, const std::vector<std::size_t>& dims)
{
    return dims.empty() ? "" : fmt::format("{} = [{}], ", name, fmt::join(dims, ", "));
}

/// Two arrays at once, by a block of their own.
inline void scatterTwo(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.wide(random);
    const Shape shape = generator.shapeOf(a);
    if (!canIndex(shape))
        return;
    const TensorType type = generator.type(a);
    const Indexing made = drawIndexing(generator, random, shape);
    if (!ProgramGenerator::isSmall(made.slices) || made.indices.size() > ProgramGenerator::kMostDims
        || elementCount(made.indices) == 0)
        return;
    const IndexingDims& dims = made.dims;
    KeptAttribute numbers = keptAttribute("scatter_dimension_numbers",
        "#stablehlo.scatter<" + dimsText("update_window_dims", dims.window) + dimsText("inserted_window_dims", dims.collapsed)
            + dimsText("input_batching_dims", dims.operandBatch) + dimsText("scatter_indices_batching_dims", dims.indicesBatch)
            + dimsText("scatter_dims_to_operand_dims", dims.indexMap)
            + fmt::format("index_vector_dim = {}>", dims.indexVectorDim),
        {});
    const auto entry = [&](const char* name, const std::vector<std::size_t>& of) {
        numbers.entries.push_back({name, "", false, std::vector<std::int64_t>(of.begin(), of.end()), {}});
    };
    entry("update_window_dims", dims.window);
    entry("inserted_window_dims", dims.collapsed);
    entry("input_batching_dims", dims.operandBatch);
    entry("scatter_indices_batching_dims", dims.indicesBatch);
    entry("scatter_dims_to_operand_dims", dims.indexMap);
    entry("index_vector_dim", {dims.indexVectorDim});
    const bool isSum = chance(random, 60);
    const bool isMixed = chance(random, 30); // each array by a reduction of its own
    const auto times = static_cast<double>(elementCount(made.slices));
    const double most = 3e6;
    const ValueId b = generator.within(generator.like(random, type), most);
    const ValueId first = generator.within(a, most);
    const TensorType slices{type.dtype, made.slices};
    const ValueId x = generator.within(generator.like(random, slices), most / times);
    const ValueId y = generator.within(generator.like(random, slices), most / times);
    const ValueId indices = drawIndices(generator, random, made.indices, shape[dims.indexMap.front()]);
    const TensorType scalar{type.dtype, {}};
    const OpKind kind = isSum ? OpKind::Add : OpKind::Maximum;
    const auto results = generator.withBlocks({first, b, indices, x, y},
        {"stablehlo.scatter", {keptTruth("indices_are_sorted", false), numbers, keptTruth("unique_indices", false)}, {type, type},
            0},
        {scalar, scalar, scalar, scalar}, {[&](const std::vector<ValueId>& in) {
            const OpKind other = isMixed ? OpKind::Minimum : kind;
            return std::vector<ValueId>{
                generator.builder.binary(kind, in[0], in[2]), generator.builder.binary(other, in[1], in[3])};
        }});
    generator.keep(results[0], 2 * most);
    if (chance(random, 60))
        generator.keep(results[1], 2 * most);
}

inline constexpr DrawOp kIndexingOps[] = {gather, gather, take, scatter, scatter, scatterTwo};

} // namespace meshwright::tests::draw
