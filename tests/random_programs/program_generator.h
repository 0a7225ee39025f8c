// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/host_array.h"
#include "core/program/builder.h"
#include "core/program/other_op.h"
#include "tests/random_shardings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace meshwright::tests {

/// A program that is being drawn: its function, and the values that ops to come may use.
///
/// Numbers are kept exact: integers, of any type, small enough that no sum of them overflows or is rounded. So the results are the same in any
/// order of additions. What cannot be exact (exponentials, Fourier transforms) goes through few ops more, and is compared with a tolerance.
class ProgramGenerator {
public:
    ProgramGenerator(Function& function, const std::vector<NamedMesh>& meshes)
        : builder(function)
        , m_function(function)
        , m_meshes(meshes)
    {
    }

    Builder builder;

    static constexpr std::int64_t kMostElements = 1500;
    static constexpr std::size_t kMostDims = 4;

    static bool isSmall(const Shape& shape) { return shape.size() <= kMostDims && elementCount(shape) <= kMostElements; }

    // ---- meshes

    const std::vector<NamedMesh>& meshes() const { return m_meshes; }
    const Mesh& mesh() const { return m_meshes.front().mesh; }

    std::size_t anyMesh(Random& random) const { return anyOf(random, m_meshes.size()); }

    /// A sharding on one of the meshes.
    TensorSharding sharding(Random& random, std::size_t rank) const
    {
        if (isManual)
            return onFreeAxes(random, Shape(rank, 2));
        RandomLimits limits;
        limits.unreduced = false;
        const std::size_t index = anyMesh(random);
        TensorSharding made = randomSharding(random, rank, m_meshes[index].mesh, limits);
        made.mesh = static_cast<std::int32_t>(index);
        return made;
    }

    /// The same without the axes that do not divide: what users place divides.
    static TensorSharding dividing(TensorSharding sharding, const Shape& shape)
    {
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            AxisRefs& axes = sharding.dims[dim].axes;
            AxisRefs kept;
            for (const AxisRef& axis : axes) {
                if (shape[dim] % (shardCount(kept) * axis.size) == 0)
                    appendMerging(kept, axis);
            }
            axes = std::move(kept);
            if (axes.empty() && !sharding.dims[dim].open)
                sharding.dims[dim].priority = 0;
        }
        return sharding;
    }

    // ---- sizes

    static std::size_t anyOf(Random& random, std::size_t count)
    {
        return static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(count) - 1));
    }

    /// Some axes' product, once to three times, that these axes divide; or any number, primes too.
    std::int64_t size(Random& random) const
    {
        if (chance(random, 30))
            return pick(random, 1, 13);
        std::int64_t product = 1;
        for (const MeshAxis& axis : mesh().axes())
            product *= chance(random, 55) ? axis.size : 1;
        return product * (chance(random, 60) ? 1 : pick(random, 2, 3));
    }

    Shape shape(Random& random, std::int64_t leastRank = 0) const
    {
        constexpr std::int64_t kRanks[] = {0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4}; // the rarer dimensions oftener
        Shape shape;
        for (std::int64_t rank = std::max(leastRank, kRanks[pick(random, 0, 13)]); rank > 0; --rank) {
            shape.push_back(size(random));
            if (!isSmall(shape))
                shape.back() = pick(random, 1, 2);
        }
        std::shuffle(shape.begin(), shape.end(), random);
        return shape;
    }

    /// A sharding that splits one of the dimensions at least, where the mesh has more than one device.
    TensorSharding splitting(Random& random, const Shape& shape) const
    {
        if (isManual)
            return onFreeAxes(random, shape);
        const std::size_t index = anyMesh(random);
        const Mesh& on = m_meshes[index].mesh;
        TensorSharding made = TensorSharding::replicatedOf(shape.size());
        made.mesh = static_cast<std::int32_t>(index);
        for (std::size_t axis = 0; axis < on.axes().size() && !shape.empty(); ++axis) {
            const std::size_t dim = std::max(anyOf(random, shape.size()), anyOf(random, shape.size())); // the later ones oftener
            if (on.axes()[axis].size > 1 && shape[dim] > 1 && chance(random, 75))
                made.dims[dim].axes.push_back(wholeAxis(on, axis));
        }
        return made;
    }

    /// A sharding of a piece in a manual computation: on the axes that it leaves.
    TensorSharding onFreeAxes(Random& random, const Shape& piece) const
    {
        TensorSharding made = TensorSharding::replicatedOf(piece.size());
        made.mesh = manualMesh;
        for (const AxisRef& axis : freeAxes) {
            const std::size_t dim = piece.empty() ? 0 : anyOf(random, piece.size());
            if (!piece.empty() && axis.size > 1 && piece[dim] > 1 && chance(random, 75))
                made.dims[dim].axes.push_back(axis);
        }
        return made;
    }

    // ---- values

    const TensorType& type(ValueId value) const { return m_function[value].type; }
    const Shape& shapeOf(ValueId value) const { return type(value).shape; }
    DType dtypeOf(ValueId value) const { return type(value).dtype; }
    bool isEmpty() const { return m_values.empty(); }
    const std::vector<ValueId>& values() const { return m_values; }

    /// The largest absolute value that an element can have.
    double largest(ValueId value) const { return known(value).largest; }
    bool isExact(ValueId value) const { return known(value).isExact; }

    /// Ops to come may use it.
    ValueId keep(ValueId value, double most, bool exact = true)
    {
        m_known[value] = {dtypeOf(value) == DType::Pred ? 1 : most, exact};
        m_values.push_back(value);
        return value;
    }

    /// What moves or chooses elements of `from`.
    ValueId keepMoved(ValueId value, std::initializer_list<ValueId> from)
    {
        double most = 0;
        bool exact = true;
        for (const ValueId source : from) {
            most = std::max(most, largest(source));
            exact = exact && isExact(source);
        }
        return keep(value, most, exact);
    }

    /// Notes what is known of a value that stays out of the pool.
    ValueId note(ValueId value, double most)
    {
        m_known[value] = {dtypeOf(value) == DType::Pred ? 1 : most, true};
        return value;
    }

    /// The largest integers that a type has room for, and that sums of it may reach.
    static double room(DType dtype)
    {
        switch (dtype) {
        case DType::Pred:
            return 1;
        case DType::S8:
            return 127;
        case DType::U8:
        case DType::BF16:
            return 255;
        case DType::F16:
            return 2047;
        case DType::S16:
            return 32767;
        default:
            return 8'000'000;
        }
    }

    /// The value, or its remainder by a number, so that no element is larger than `most`.
    ValueId within(ValueId value, double most)
    {
        most = std::floor(most);
        if (largest(value) <= most || dtypeOf(value) == DType::Pred)
            return value;
        const ValueId divisor = builder.splat(TensorType(type(value)), most + 1);
        return note(builder.binary(OpKind::Remainder, value, divisor), most);
    }

    /// Of two the one with more dimensions, most often.
    ValueId any(Random& random) const
    {
        const ValueId a = m_values[anyOf(random, m_values.size())];
        const ValueId b = m_values[anyOf(random, m_values.size())];
        return chance(random, 75) == (shapeOf(a).size() < shapeOf(b).size()) ? b : a;
    }

    /// An exact number, of the type that it has or, where it is a truth value, as an integer.
    ValueId number(Random& random)
    {
        const ValueId value = exact(random);
        return dtypeOf(value) == DType::Pred ? converted(value, DType::S32) : value;
    }

    /// The same of a type with a sign and room for sums.
    ValueId wide(Random& random)
    {
        const ValueId value = exact(random);
        return room(dtypeOf(value)) > 40'000 && !isUnsigned(dtypeOf(value)) ? value : converted(value, DType::S32);
    }

    ValueId converted(ValueId value, DType dtype)
    {
        if (dtypeOf(value) == dtype)
            return value;
        value = within(value, std::min(room(dtype), room(dtypeOf(value))));
        return note(builder.convert(value, dtype), largest(value));
    }

    ValueId splat(const TensorType& of, double value) { return note(builder.splat(of, value), std::abs(value)); }

    ValueId index(std::int64_t value) { return splat({DType::S32, {}}, static_cast<double>(value)); }

    /// Elements that differ, as the text lists them.
    ValueId listed(Random& random, const TensorType& of, std::int64_t least, std::int64_t most)
    {
        std::vector<double> values;
        for (std::int64_t i = 0; i < of.elements(); ++i)
            values.push_back(static_cast<double>(pick(random, least, most)));
        return listed(of, values);
    }

    ValueId listed(const TensorType& of, const std::vector<double>& values)
    {
        double most = 0;
        for (const double value : values)
            most = std::max(most, std::abs(value));
        const HostArray array = HostArray::of(of, values);
        auto bytes = std::make_shared<const std::string>(
            reinterpret_cast<const char*>(array.data()), static_cast<std::size_t>(array.bytes()));
        return note(builder.add(OpKind::Constant, {}, ConstantAttributes{of, {std::move(bytes)}}), most);
    }

    /// A constant: one number, a list of numbers, or numbers that count.
    ValueId constant(Random& random, const TensorType& of)
    {
        const bool isTruth = of.dtype == DType::Pred;
        const std::int64_t least = isTruth || isUnsigned(of.dtype) ? 0 : -3;
        const std::int64_t most = isTruth ? 1 : 3;
        const bool canList = of.dtype == DType::S32 || of.dtype == DType::F32 || isTruth;
        if (canList && !of.shape.empty() && of.elements() > 1 && chance(random, 40))
            return listed(random, of, least, most);
        const bool canCount = !isTruth && !of.shape.empty() && elementCount(of.shape) > 0
            && static_cast<double>(*std::max_element(of.shape.begin(), of.shape.end())) <= room(of.dtype);
        if (canCount && chance(random, 40)) {
            const std::size_t dim = anyOf(random, of.shape.size());
            return within(note(builder.iota(of, dim), static_cast<double>(of.shape[dim])), 5);
        }
        return splat(of, static_cast<double>(pick(random, least, most)));
    }

    /// An exact value of this type: one that there is, or a constant.
    ValueId like(Random& random, const TensorType& of)
    {
        std::vector<ValueId> same;
        for (const ValueId value : m_values) {
            if (type(value) == of && isExact(value))
                same.push_back(value);
        }
        return same.empty() || chance(random, 15) ? constant(random, of) : same[anyOf(random, same.size())];
    }

    /// Elements of some value in another shape.
    ValueId shaped(Random& random, const TensorType& of)
    {
        const std::int64_t wanted = of.elements();
        const ValueId value = wide(random);
        const std::int64_t count = elementCount(shapeOf(value));
        if (wanted == 0 || count < wanted)
            return like(random, of);
        ValueId row = note(builder.reshape(value, {count}), largest(value));
        if (count > wanted) {
            const std::int64_t start = pick(random, 0, count - wanted);
            row = note(builder.add(OpKind::Slice, {row}, SliceAttributes{{start}, {start + wanted}, {1}}), largest(value));
        }
        return converted(note(builder.reshape(row, of.shape), largest(value)), of.dtype);
    }

    /// A place along a dimension of n elements, sometimes beyond its ends: a constant, or one that depends on some value.
    ValueId place(Random& random, std::int64_t n)
    {
        if (chance(random, 55))
            return index(pick(random, -1, n));
        const ValueId value = wide(random);
        std::vector<std::size_t> dims(shapeOf(value).size());
        std::iota(dims.begin(), dims.end(), std::size_t{0});
        const ReduceKind kind = chance(random, 50) ? ReduceKind::Max : ReduceKind::Min;
        if (elementCount(shapeOf(value)) == 0)
            return index(0);
        const ValueId most = note(builder.reduce(kind, value, dims), largest(value));
        return converted(within(most, static_cast<double>(n)), DType::S32);
    }

    // ---- blocks

    /// What a block can use instead of the values around it.
    struct Pool {
        std::vector<ValueId> values;
    };
    Pool enter(const std::vector<ValueId>& arguments, const std::vector<ValueId>& from)
    {
        Pool outer{std::exchange(m_values, {})};
        for (std::size_t i = 0; i < arguments.size(); ++i)
            keep(arguments[i], largest(from[i]), isExact(from[i]));
        ++m_depth;
        return outer;
    }
    void leave(Pool outer)
    {
        m_values = std::move(outer.values);
        --m_depth;
    }
    int depth() const { return m_depth; } ///< how many blocks are around
    bool isManual = false; ///< shapes are those of pieces, which only the free axes of one mesh can split
    std::int32_t manualMesh = 0;
    AxisRefs freeAxes;

    std::vector<TensorType> typesOf(const std::vector<ValueId>& values) const
    {
        std::vector<TensorType> types;
        for (const ValueId value : values)
            types.push_back(type(value));
        return types;
    }

    /// An op of the text with a block of scalars. `make` gives the block's results from its arguments.
    using MakeBlock = std::function<std::vector<ValueId>(const std::vector<ValueId>&)>;
    std::vector<ValueId> withBlocks(std::vector<ValueId> operands, OtherAttributes attributes,
        const std::vector<TensorType>& scalars, const std::vector<MakeBlock>& blocks)
    {
        const std::vector<TensorType> results = attributes.results;
        const OpId op = builder.beginOp(OpKind::Other, std::move(operands), std::move(attributes));
        for (const MakeBlock& make : blocks) {
            const std::vector<ValueId> arguments = builder.beginBody(op, scalars);
            builder.setResults(make(arguments));
        }
        return builder.endOp(op, results);
    }

    Function& function() { return m_function; }

private:
    struct Known {
        double largest = 0;
        bool isExact = true;
    };
    const Known& known(ValueId value) const { return m_known.at(value); }

    ValueId exact(Random& random)
    {
        for (int attempt = 0; attempt < 4; ++attempt) {
            if (const ValueId value = any(random); isExact(value))
                return value;
        }
        return keep(splat({DType::S32, {size(random)}}, 2), 2);
    }

    Function& m_function;
    const std::vector<NamedMesh>& m_meshes;
    std::vector<ValueId> m_values;
    std::map<ValueId, Known> m_known;
    int m_depth = 0;
};

/// Appends one op, or a few that belong together, on whatever values there are; nothing where they do not fit.
using DrawOp = void (*)(ProgramGenerator&, Random&);

// ---- attributes of ops that are kept as the text has them

inline KeptAttribute keptAttribute(const char* name, std::string text, std::vector<std::int64_t> integers)
{
    return {name, std::move(text), true, std::move(integers), {}};
}
inline KeptAttribute keptList(const char* name, const std::vector<std::int64_t>& integers)
{
    return keptAttribute(name, fmt::format("array<i64: {}>", fmt::join(integers, ", ")), integers);
}
inline KeptAttribute keptInteger(const char* name, std::int64_t integer)
{
    return keptAttribute(name, fmt::format("{} : i64", integer), {integer});
}
inline KeptAttribute keptTruth(const char* name, bool truth)
{
    return keptAttribute(name, truth ? "true" : "false", {truth ? 1 : 0});
}
inline KeptAttribute keptPadding(const std::vector<std::int64_t>& integers)
{
    std::string rows;
    for (std::size_t i = 0; i + 1 < integers.size(); i += 2)
        rows += fmt::format("{}[{}, {}]", i == 0 ? "" : ", ", integers[i], integers[i + 1]);
    return keptAttribute("padding", fmt::format("dense<[{}]> : tensor<{}x2xi64>", rows, integers.size() / 2), integers);
}

} // namespace meshwright::tests
