// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/builder.h"
#include "core/sharding/partition_spec.h"
#include "tests/random_shardings.h"

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace meshwright::test {

/// What a random program is made from: a mesh and one number for each argument and each op. Every list of numbers makes a sound program, so
/// numbers can be left out one by one.
struct Recipe {
    std::vector<std::int64_t> mesh; ///< sizes of the axes x, y, z
    std::vector<std::uint64_t> arguments;
    std::vector<std::uint64_t> ops;
    DType dtype = DType::S32;
};

inline Recipe randomRecipe(std::uint64_t seed)
{
    tests::Random random(seed);
    Recipe recipe;
    std::int64_t devices = 1;
    for (std::int64_t axis = tests::pick(random, 1, 3); axis > 0; --axis) {
        const std::int64_t size = tests::pick(random, 1, 12);
        if (devices * size <= 12) {
            recipe.mesh.push_back(size);
            devices *= size;
        }
    }
    recipe.dtype = tests::chance(random, 75) ? DType::S32 : DType::F32;
    for (std::int64_t i = tests::pick(random, 1, 4); i > 0; --i)
        recipe.arguments.push_back(random());
    for (std::int64_t i = tests::pick(random, 2, 14); i > 0; --i)
        recipe.ops.push_back(random());
    return recipe;
}

/// Builds a recipe's program: arguments with random shardings that divide them, then ops on whatever values there are.
class RandomProgram {
public:
    explicit RandomProgram(const Recipe& recipe)
        : m_recipe(recipe)
        , m_builder(m_function)
    {
        const char* names[] = {"x", "y", "z"};
        std::vector<MeshAxis> axes;
        for (std::size_t i = 0; i < recipe.mesh.size(); ++i)
            axes.push_back({names[i], recipe.mesh[i]});
        m_mesh = valueOf(Mesh::create(std::move(axes)));
        m_function.name = "main";
        for (const std::uint64_t seed : recipe.arguments)
            addArgument(seed);
        if (m_values.empty())
            m_values.push_back(m_builder.splat(typeOf({m_mesh.deviceCount()}), 1.0));
        for (const std::uint64_t seed : recipe.ops)
            addOp(seed);
    }

    Program program()
    {
        Program program;
        program.meshes = {{"mesh", m_mesh}};
        // The last values are results: what they use is alive.
        std::vector<ValueId> results(m_values.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, m_values.size())), m_values.end());
        for (ValueId& result : results) { // what the user places must divide where it leaves the function
            const OpId producer = m_function[result].producer;
            if (producer.valid() && m_function[producer].kind == OpKind::ShardingConstraint)
                result = m_builder.unary(OpKind::Negate, result);
        }
        m_builder.setResults(std::move(results));
        program.functions = {m_function};
        return program;
    }

private:
    static constexpr std::int64_t kMostElements = 6000;

    TensorType typeOf(Shape shape) const { return {m_recipe.dtype, std::move(shape)}; }
    const Shape& shapeOf(ValueId value) const { return m_builder.type(value).shape; }

    static bool isSmall(const Shape& shape) { return elementCount(shape) <= kMostElements; }

    /// The number of devices or twice that, which every axis and every product of axes divides, or any size: primes too.
    std::int64_t size(tests::Random& random) const
    {
        const std::int64_t devices = m_mesh.deviceCount();
        return tests::chance(random, 60) ? devices * tests::pick(random, 1, 2) : tests::pick(random, 1, 2 * devices + 3);
    }

    TensorSharding sharding(tests::Random& random, std::size_t rank) const
    {
        tests::RandomLimits limits;
        limits.unreduced = false;
        return tests::randomSharding(random, rank, m_mesh, limits);
    }

    /// What users place divides.
    static TensorSharding dividing(TensorSharding sharding, const Shape& shape)
    {
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            AxisRefs& axes = sharding.dims[dim].axes;
            while (shape[dim] % shardCount(axes) != 0)
                axes.pop_back();
            if (axes.empty() && !sharding.dims[dim].open)
                sharding.dims[dim].priority = 0;
        }
        return sharding;
    }

    void addArgument(std::uint64_t seed)
    {
        tests::Random random(seed);
        Shape shape;
        for (std::int64_t rank = tests::pick(random, 0, 3); rank > 0; --rank) {
            shape.push_back(size(random));
            if (!isSmall(shape))
                shape.pop_back();
        }
        const ValueId argument = m_builder.argument(typeOf(shape), "", Role::Input);
        if (tests::chance(random, 80))
            m_function[argument].sharding = dividing(sharding(random, shape.size()), shape);
        m_values.push_back(argument);
    }

    ValueId any(tests::Random& random) const
    {
        return m_values[static_cast<std::size_t>(tests::pick(random, 0, static_cast<std::int64_t>(m_values.size()) - 1))];
    }

    /// A value of this shape: one that there is, or a constant.
    ValueId like(tests::Random& random, const Shape& shape)
    {
        std::vector<ValueId> same;
        for (const ValueId value : m_values) {
            if (shapeOf(value) == shape)
                same.push_back(value);
        }
        if (same.empty() || tests::chance(random, 10))
            return m_builder.splat(typeOf(shape), static_cast<double>(tests::pick(random, -3, 3)));
        return same[static_cast<std::size_t>(tests::pick(random, 0, static_cast<std::int64_t>(same.size()) - 1))];
    }

    std::size_t anyDim(tests::Random& random, std::size_t rank) const
    {
        return static_cast<std::size_t>(tests::pick(random, 0, static_cast<std::int64_t>(rank) - 1));
    }

    /// Keeps numbers small, so that no order of sums matters to integers and none overflows.
    ValueId bounded(ValueId value)
    {
        return m_builder.binary(OpKind::Remainder, value, m_builder.splat(TensorType(m_builder.type(value)), 97.0));
    }

    void keep(ValueId value) { m_values.push_back(value); }

    ValueId index(std::int64_t value) { return m_builder.splat({DType::S32, {}}, static_cast<double>(value)); }

    void addOp(std::uint64_t seed)
    {
        tests::Random random(seed);
        const ValueId a = any(random);
        using Make = void (RandomProgram::*)(tests::Random&, ValueId);
        static constexpr Make kMakes[] = {&RandomProgram::binary, &RandomProgram::binary, &RandomProgram::unary, &RandomProgram::chosen,
            &RandomProgram::broadcast, &RandomProgram::reshape, &RandomProgram::transpose, &RandomProgram::reduce, &RandomProgram::reduce,
            &RandomProgram::dot, &RandomProgram::dot, &RandomProgram::dot, &RandomProgram::slice, &RandomProgram::pad,
            &RandomProgram::concatenate, &RandomProgram::reverse, &RandomProgram::dynamicSlice, &RandomProgram::dynamicUpdate,
            &RandomProgram::sort, &RandomProgram::convolution, &RandomProgram::windows, &RandomProgram::gather, &RandomProgram::scatter, &RandomProgram::iota, &RandomProgram::constrain, &RandomProgram::loop,
            &RandomProgram::openLoop, &RandomProgram::branches};
        (this->*kMakes[static_cast<std::size_t>(tests::pick(random, 0, static_cast<std::int64_t>(std::size(kMakes)) - 1))])(random, a);
    }

    void binary(tests::Random& random, ValueId a)
    {
        const OpKind kinds[] = {OpKind::Add, OpKind::Subtract, OpKind::Multiply, OpKind::Maximum, OpKind::Minimum};
        const OpKind kind = kinds[tests::pick(random, 0, 4)];
        keep(bounded(m_builder.binary(kind, a, like(random, Shape(shapeOf(a))))));
    }

    void unary(tests::Random& random, ValueId a)
    {
        const OpKind kinds[] = {OpKind::Negate, OpKind::Abs, OpKind::Sign};
        keep(m_builder.unary(kinds[tests::pick(random, 0, 2)], a));
    }

    void chosen(tests::Random& random, ValueId a)
    {
        const Shape shape = shapeOf(a);
        const ValueId less = m_builder.compare(CompareDirection::Less, a, like(random, shape));
        keep(m_builder.select(less, like(random, shape), a));
    }

    void broadcast(tests::Random& random, ValueId a)
    {
        Shape shape = shapeOf(a);
        const std::size_t at = anyDim(random, shape.size() + 1);
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), size(random));
        if (!isSmall(shape))
            return;
        std::vector<std::size_t> dims;
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            if (dim != at)
                dims.push_back(dim);
        }
        keep(m_builder.broadcast(a, shape, dims));
    }

    void reshape(tests::Random& random, ValueId a)
    {
        Shape shape = shapeOf(a);
        if (shape.empty())
            return;
        const std::size_t dim = anyDim(random, shape.size());
        if (dim + 1 < shape.size() && tests::chance(random, 50)) {
            shape[dim] *= shape[dim + 1];
            shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1);
        } else {
            std::vector<std::int64_t> factors;
            for (std::int64_t factor = 1; factor <= shape[dim]; ++factor) {
                if (shape[dim] % factor == 0)
                    factors.push_back(factor);
            }
            const std::int64_t factor = factors[anyDim(random, factors.size())];
            shape[dim] /= factor;
            shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim) + (tests::chance(random, 50) ? 1 : 0), factor);
        }
        if (shape.size() <= 4)
            keep(m_builder.reshape(a, shape));
    }

    void transpose(tests::Random& random, ValueId a)
    {
        std::vector<std::size_t> permutation(shapeOf(a).size());
        std::iota(permutation.begin(), permutation.end(), std::size_t{0});
        std::shuffle(permutation.begin(), permutation.end(), random);
        keep(m_builder.transpose(a, permutation));
    }

    void reduce(tests::Random& random, ValueId a)
    {
        std::vector<std::size_t> dims;
        for (std::size_t dim = 0; dim < shapeOf(a).size(); ++dim) {
            if (tests::chance(random, 50))
                dims.push_back(dim);
        }
        const ReduceKind kinds[] = {ReduceKind::Sum, ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min};
        keep(bounded(m_builder.reduce(kinds[tests::pick(random, 0, 3)], a, dims)));
    }

    void dot(tests::Random& random, ValueId a)
    {
        const ValueId b = any(random);
        DotAttributes attributes;
        attributes.resultType = attributes.operandType = m_recipe.dtype;
        std::vector<bool> taken(shapeOf(b).size());
        std::int64_t elements = 1;
        for (std::size_t dim = 0; dim < shapeOf(a).size(); ++dim) {
            bool isFree = true;
            for (std::size_t other = 0; other < taken.size() && isFree; ++other) {
                if (taken[other] || shapeOf(a)[dim] != shapeOf(b)[other] || tests::chance(random, 40))
                    continue;
                const bool isBatch = tests::chance(random, 35);
                (isBatch ? attributes.lhsBatch : attributes.lhsContracting).push_back(dim);
                (isBatch ? attributes.rhsBatch : attributes.rhsContracting).push_back(other);
                taken[other] = true;
                isFree = false;
                elements *= isBatch ? shapeOf(a)[dim] : 1;
            }
            elements *= isFree ? shapeOf(a)[dim] : 1;
        }
        for (std::size_t other = 0; other < taken.size(); ++other)
            elements *= taken[other] ? 1 : shapeOf(b)[other];
        const std::size_t rank = shapeOf(a).size() + shapeOf(b).size() - attributes.lhsBatch.size() - 2 * attributes.lhsContracting.size();
        if (elements <= kMostElements && rank <= 4)
            keep(bounded(m_builder.dot(a, b, attributes)));
    }

    ValueId sliceOf(ValueId a, std::size_t dim, std::int64_t start, std::int64_t limit)
    {
        const Shape shape = shapeOf(a);
        SliceAttributes attributes{Shape(shape.size(), 0), shape, Shape(shape.size(), 1)};
        attributes.starts[dim] = start;
        attributes.limits[dim] = limit;
        return m_builder.add(OpKind::Slice, {a}, attributes);
    }

    void slice(tests::Random& random, ValueId a)
    {
        SliceAttributes attributes;
        for (const std::int64_t n : shapeOf(a)) {
            const bool isWhole = tests::chance(random, 40);
            const std::int64_t start = isWhole ? 0 : tests::pick(random, 0, n / 2);
            attributes.starts.push_back(start);
            attributes.limits.push_back(isWhole ? n : tests::pick(random, std::min(start + 1, n), n));
            attributes.strides.push_back(isWhole ? 1 : tests::pick(random, 1, 3));
        }
        keep(m_builder.add(OpKind::Slice, {a}, attributes));
    }

    /// Elements before and behind, or taken away there, sometimes between.
    void pad(tests::Random& random, ValueId a)
    {
        PadAttributes attributes;
        Shape shape = shapeOf(a);
        for (std::int64_t& n : shape) {
            const bool isWhole = n == 0 || tests::chance(random, 50);
            attributes.low.push_back(isWhole ? 0 : tests::pick(random, -(n / 3), n));
            attributes.high.push_back(isWhole ? 0 : tests::chance(random, 30) ? -(n / 3) : n - attributes.low.back());
            attributes.interior.push_back(!isWhole && tests::chance(random, 15) ? 1 : 0);
            n += attributes.low.back() + attributes.high.back() + attributes.interior.back() * (n - 1);
        }
        if (isSmall(shape) && std::all_of(shape.begin(), shape.end(), [](std::int64_t n) { return n >= 0; }))
            keep(m_builder.add(OpKind::Pad, {a, m_builder.splat(typeOf({}), 7.0)}, attributes));
    }

    /// Two or three arrays after each other, or the ends of one the other way round, which is how a shift is written.
    void concatenate(tests::Random& random, ValueId a)
    {
        Shape shape = shapeOf(a);
        if (shape.empty())
            return;
        const std::size_t dim = anyDim(random, shape.size());
        if (shape[dim] > 1 && tests::chance(random, 40)) {
            const std::int64_t by = tests::pick(random, 1, shape[dim] - 1);
            const ValueId end = sliceOf(a, dim, by, shape[dim]);
            keep(m_builder.add(OpKind::Concatenate, {end, sliceOf(a, dim, 0, by)}, ConcatenateAttributes{dim}));
            return;
        }
        std::vector<ValueId> parts{a, like(random, shape)};
        if (tests::chance(random, 30))
            parts.push_back(sliceOf(parts[1], dim, 0, (shape[dim] + 1) / 2));
        shape[dim] *= 3;
        if (isSmall(shape))
            keep(m_builder.add(OpKind::Concatenate, std::move(parts), ConcatenateAttributes{dim}));
    }

    void reverse(tests::Random& random, ValueId a)
    {
        if (!shapeOf(a).empty())
            keep(m_builder.add(OpKind::Reverse, {a}, ReverseAttributes{{anyDim(random, shapeOf(a).size())}}));
    }

    std::vector<ValueId> startsIn(tests::Random& random, const Shape& shape)
    {
        std::vector<ValueId> starts;
        for (const std::int64_t n : shape)
            starts.push_back(index(tests::pick(random, -1, n)));
        return starts;
    }

    void dynamicSlice(tests::Random& random, ValueId a)
    {
        Shape sizes = shapeOf(a);
        for (std::int64_t& n : sizes)
            n = tests::chance(random, 50) ? n : std::max<std::int64_t>(n / 2, 1);
        std::vector<ValueId> operands = startsIn(random, Shape(shapeOf(a)));
        operands.insert(operands.begin(), a);
        keep(m_builder.add(OpKind::DynamicSlice, std::move(operands), DynamicSliceAttributes{sizes}));
    }

    void dynamicUpdate(tests::Random& random, ValueId a)
    {
        Shape sizes = shapeOf(a);
        for (std::int64_t& n : sizes)
            n = tests::chance(random, 50) ? n : std::max<std::int64_t>(n / 2, 1);
        const ValueId update = like(random, sizes);
        std::vector<ValueId> operands = startsIn(random, Shape(shapeOf(a)));
        operands.insert(operands.begin(), {a, update});
        keep(m_builder.add(OpKind::DynamicUpdateSlice, std::move(operands)));
    }

    static KeptAttribute kept(const char* name, std::string text, std::vector<std::int64_t> integers)
    {
        return {name, std::move(text), true, std::move(integers), {}};
    }
    static KeptAttribute list(const char* name, const std::vector<std::int64_t>& integers)
    {
        return kept(name, fmt::format("array<i64: {}>", fmt::join(integers, ", ")), integers);
    }
    static KeptAttribute padding(const std::vector<std::int64_t>& integers)
    {
        std::string rows;
        for (std::size_t i = 0; i + 1 < integers.size(); i += 2)
            rows += fmt::format("{}[{}, {}]", i == 0 ? "" : ", ", integers[i], integers[i + 1]);
        return kept("padding", fmt::format("dense<[{}]> : tensor<{}x2xi64>", rows, integers.size() / 2), integers);
    }

    /// An op with a block of two scalars.
    template <typename Make>
    ValueId withBlock(std::vector<ValueId> operands, OtherAttributes attributes, const Make& make)
    {
        const std::vector<TensorType> results = attributes.results;
        const OpId op = m_builder.beginOp(OpKind::Other, std::move(operands), std::move(attributes));
        const std::vector<TensorType> scalars{typeOf({}), typeOf({})};
        const std::vector<ValueId> arguments = m_builder.beginBody(op, scalars);
        m_builder.setResults({make(arguments[0], arguments[1])});
        return m_builder.endOp(op, results).front();
    }

    void sort(tests::Random& random, ValueId a)
    {
        const Shape shape = shapeOf(a);
        if (shape.empty())
            return;
        const auto dim = static_cast<std::int64_t>(anyDim(random, shape.size()));
        const CompareDirection direction = tests::chance(random, 50) ? CompareDirection::Less : CompareDirection::Greater;
        OtherAttributes attributes{"stablehlo.sort",
            {kept("dimension", fmt::format("{} : i64", dim), {dim}), kept("is_stable", "true", {1})}, {typeOf(shape)}, 0};
        keep(withBlock({a}, std::move(attributes), [&](ValueId x, ValueId y) { return m_builder.compare(direction, x, y); }));
    }

    /// Windows of 1 to 4 elements along each dimension, some a step or two apart.
    void windows(tests::Random& random, ValueId a)
    {
        const Shape shape = shapeOf(a);
        if (shape.empty() || elementCount(shape) == 0)
            return;
        Shape sizes;
        Shape strides;
        Shape dilations;
        Shape pads;
        Shape result;
        for (const std::int64_t n : shape) {
            const bool isWhole = tests::chance(random, 40);
            sizes.push_back(isWhole ? 1 : tests::pick(random, 1, 4));
            strides.push_back(isWhole ? 1 : tests::pick(random, 1, 2));
            dilations.push_back(isWhole ? 1 : tests::pick(random, 1, 2));
            pads.push_back(isWhole ? 0 : tests::pick(random, 0, 3));
            pads.push_back(isWhole ? 0 : tests::pick(random, 0, 3));
            const std::int64_t span = (sizes.back() - 1) * dilations.back() + 1;
            const std::int64_t room = n + pads[pads.size() - 2] + pads.back() - span;
            if (room < 0)
                return;
            result.push_back(room / strides.back() + 1);
        }
        if (!isSmall(result))
            return;
        OtherAttributes attributes{"stablehlo.reduce_window",
            {padding(pads), list("window_dilations", dilations), list("window_dimensions", sizes), list("window_strides", strides)},
            {typeOf(result)}, 0};
        const ValueId zero = m_builder.splat(typeOf({}), 0.0);
        keep(bounded(withBlock({a, zero}, std::move(attributes),
            [&](ValueId x, ValueId y) { return m_builder.binary(OpKind::Add, x, y); })));
    }

    /// Of a sequence of rows: [1, n, f] with a kernel of a few elements and features.
    void convolution(tests::Random& random, ValueId a)
    {
        const Shape shape = shapeOf(a);
        if (shape.size() != 2 || elementCount(shape) == 0)
            return;
        const std::int64_t size = tests::pick(random, 1, 4);
        const std::int64_t outputs = tests::pick(random, 1, 3);
        const std::int64_t stride = tests::pick(random, 1, 2);
        const std::int64_t dilation = tests::pick(random, 1, 2);
        const std::int64_t low = tests::pick(random, 0, 2);
        const std::int64_t room = shape[0] + 2 * low - (size - 1) * dilation - 1;
        const Shape result{1, room / stride + 1, outputs};
        if (room < 0 || !isSmall(result))
            return;
        OtherAttributes attributes{"stablehlo.convolution",
            {kept("batch_group_count", "1 : i64", {1}),
                kept("dimension_numbers", "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>", {}),
                kept("feature_group_count", "1 : i64", {1}), list("lhs_dilation", {1}), padding({low, low}),
                list("rhs_dilation", {dilation}), kept("window_reversal", "array<i1: false>", {0}), list("window_strides", {stride})},
            {typeOf(result)}, 0};
        const ValueId kernel = bounded(m_builder.iota(typeOf({size, shape[1], outputs}), anyDim(random, 3)));
        const ValueId input = m_builder.reshape(a, {1, shape[0], shape[1]});
        const ValueId made = m_builder.add(OpKind::Other, {input, kernel}, std::move(attributes));
        keep(bounded(m_builder.reshape(made, {result[1], result[2]})));
    }

    /// Row numbers 0 .. n - 1, a few times over.
    ValueId rowNumbers(std::int64_t count, std::int64_t n)
    {
        const TensorType type{DType::S32, {count}};
        const ValueId scaled = m_builder.binary(OpKind::Multiply, m_builder.iota(type, 0), m_builder.splat(type, 5.0));
        return m_builder.binary(OpKind::Remainder, scaled, m_builder.splat(type, static_cast<double>(n)));
    }

    static IndexingDims rowsOfATable()
    {
        IndexingDims dims;
        dims.window = {1};
        dims.collapsed = {0};
        dims.indexMap = {0};
        dims.indexVectorDim = 1;
        return dims;
    }

    /// Rows of a table by their numbers, as an embedding has them.
    void gather(tests::Random& random, ValueId a)
    {
        const Shape table = shapeOf(a);
        if (table.size() != 2)
            return;
        const std::int64_t count = size(random);
        GatherAttributes attributes;
        attributes.dims = rowsOfATable();
        attributes.sliceSizes = {1, table[1]};
        if (isSmall({count, table[1]}))
            keep(m_builder.add(OpKind::Gather, {a, rowNumbers(count, table[0])}, attributes));
    }

    void scatter(tests::Random& random, ValueId a)
    {
        const Shape table = shapeOf(a);
        if (table.size() != 2)
            return;
        const std::int64_t count = size(random);
        ScatterAttributes attributes;
        attributes.dims = rowsOfATable();
        attributes.combiner = ReduceKind::Sum;
        if (isSmall({count, table[1]})) {
            const ValueId updates = like(random, {count, table[1]});
            keep(bounded(m_builder.add(OpKind::Scatter, {a, rowNumbers(count, table[0]), updates}, attributes)));
        }
    }

    void iota(tests::Random& random, ValueId a)
    {
        const Shape shape = shapeOf(a);
        if (!shape.empty())
            keep(bounded(m_builder.binary(OpKind::Add, a, m_builder.iota(typeOf(shape), anyDim(random, shape.size())))));
    }

    void constrain(tests::Random& random, ValueId a)
    {
        keep(m_builder.constrain(a, sharding(random, shapeOf(a).size()), "constraint"));
    }

    /// carry = carry + slice, over the slices of a stacked operand.
    void loop(tests::Random& random, ValueId a)
    {
        const Shape stacked = shapeOf(a);
        if (stacked.empty() || stacked.front() > 24)
            return;
        const Shape slice(stacked.begin() + 1, stacked.end());
        const ValueId first = like(random, slice);
        RepeatAttributes attributes;
        attributes.count = stacked.front();
        attributes.carries = 1;
        attributes.stacked = 1;
        attributes.reversed = tests::chance(random, 30);
        const OpId repeat = m_builder.beginRepeat(attributes, {first, a});
        const std::vector<ValueId> body = m_function.blocks[m_function[repeat].bodies.front().at()].arguments;
        m_builder.setBlock(m_function[repeat].bodies.front());
        const ValueId next = bounded(m_builder.binary(OpKind::Add, body[0], body[1]));
        m_builder.setResults({next, m_builder.unary(OpKind::Negate, next)});
        for (const ValueId result : m_builder.endRepeat(repeat))
            keep(result);
    }

    std::vector<TensorType> typesOf(const std::vector<ValueId>& values) const
    {
        std::vector<TensorType> types;
        for (const ValueId value : values)
            types.push_back(m_builder.type(value));
        return types;
    }

    /// A value of this shape that a block can use of the outside: no constant, and not `other`, which are written in other ways.
    ValueId captured(tests::Random& random, const Shape& shape, ValueId other)
    {
        const ValueId value = like(random, shape);
        const OpId producer = m_function[value].producer;
        const bool isConstant = producer.valid() && m_function[producer].kind == OpKind::Constant;
        return isConstant || value == other ? m_builder.unary(OpKind::Negate, value) : value;
    }

    /// A loop that ends when its counter's square is large enough, while no element of the carry is: nobody counts its rounds beforehand.
    void openLoop(tests::Random& random, ValueId a)
    {
        const Shape shape = shapeOf(a);
        const std::vector<ValueId> operands{index(0), a, captured(random, shape, a)};
        const std::vector<TensorType> types = typesOf(operands);
        const OpId made = m_builder.beginOp(OpKind::While, operands, WhileAttributes{2});
        std::vector<ValueId> inside = m_builder.beginBody(made, types);
        const ValueId square = m_builder.binary(OpKind::Multiply, inside[0], inside[0]);
        const ValueId isEarly = m_builder.compare(CompareDirection::Less, square, index(tests::pick(random, 0, 12)));
        std::vector<std::size_t> dims(shape.size());
        std::iota(dims.begin(), dims.end(), std::size_t{0});
        const ValueId least = m_builder.reduce(ReduceKind::Min, inside[1], dims);
        const ValueId isSmallest = m_builder.compare(CompareDirection::Less, least, m_builder.splat(typeOf({}), 50.0));
        m_builder.setResults({m_builder.binary(OpKind::And, isEarly, isSmallest)});
        inside = m_builder.beginBody(made, types);
        ValueId next = bounded(m_builder.binary(OpKind::Add, inside[1], inside[2]));
        if (!shape.empty() && tests::chance(random, 50))
            next = m_builder.add(OpKind::Reverse, {next}, ReverseAttributes{{anyDim(random, shape.size())}});
        m_builder.setResults({m_builder.binary(OpKind::Add, inside[0], index(1)), next});
        keep(m_builder.endOp(made, {types[0], types[1]})[1]);
    }

    /// Two or three ways to go on, by a sum of the elements.
    void branches(tests::Random& random, ValueId a)
    {
        const Shape shape = shapeOf(a);
        std::vector<std::size_t> dims(shape.size());
        std::iota(dims.begin(), dims.end(), std::size_t{0});
        const ValueId sum = m_builder.convert(bounded(m_builder.reduce(ReduceKind::Sum, bounded(a), dims)), DType::S32);
        const bool isTruth = tests::chance(random, 50);
        const ValueId which = isTruth ? m_builder.compare(CompareDirection::Less, sum, index(0))
                                      : m_builder.binary(OpKind::Remainder, sum, index(4));
        const std::vector<ValueId> used{a, captured(random, shape, a)};
        const std::vector<TensorType> types = typesOf(used);
        const OpId made = m_builder.beginOp(OpKind::Case, {which, used[0], used[1]}, {});
        for (std::int64_t branch = isTruth ? 2 : 3; branch > 0; --branch) {
            const std::vector<ValueId> inside = m_builder.beginBody(made, types);
            ValueId result = bounded(m_builder.binary(OpKind::Subtract, inside[0], inside[1]));
            if (tests::chance(random, 40))
                result = m_builder.unary(OpKind::Negate, result);
            else if (!shape.empty() && tests::chance(random, 50))
                result = m_builder.add(OpKind::Reverse, {result}, ReverseAttributes{{anyDim(random, shape.size())}});
            m_builder.setResults({result});
        }
        keep(m_builder.endOp(made, {types[0]}).front());
    }

    const Recipe& m_recipe;
    Mesh m_mesh;
    Function m_function;
    Builder m_builder;
    std::vector<ValueId> m_values;
};

} // namespace meshwright::test
