// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/body_collective.h"
#include "core/program/other_op.h"
#include "core/program/program.h"
#include "core/support/philox.h"
#include "core/support/threefry.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <map>
#include <numbers>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

/// The meaning of programs on whole tensors, written for plainness: every element is a double, every op one loop. It shares no code
/// with core/partition and core/runtime, so that each can be checked against the other.
namespace meshwright::tests {

struct Array {
    Shape shape;
    std::vector<double> data; ///< row-major
    std::vector<double> imaginary = {}; ///< of complex numbers

    double scalar() const { return data.at(0); }
};

class PlainEvaluator {
public:
    /// The meshes of the function's program are needed by manual computations only.
    explicit PlainEvaluator(const Function& function, std::span<const NamedMesh> meshes = {})
        : m_function(function)
        , m_meshes(meshes)
        , m_values(function.values.size())
    {
    }

    std::vector<Array> run(const std::vector<Array>& arguments) { return runBlock(BlockId(std::int32_t{0}), arguments); }
    const Array& value(ValueId id) const { return m_values[id.at()]; }

private:
    using Index = std::vector<std::int64_t>;

    static std::size_t offset(const Shape& shape, const Index& index)
    {
        std::int64_t at = 0;
        for (std::size_t i = 0; i < shape.size(); ++i)
            at = at * shape[i] + index[i];
        return static_cast<std::size_t>(at);
    }

    /// Calls visit(index) for every element, in order.
    template <typename Visit>
    static void forEach(const Shape& shape, Visit visit)
    {
        Index index(shape.size(), 0);
        for (std::int64_t left = elementCount(shape); left > 0; --left) {
            visit(static_cast<const Index&>(index));
            for (std::size_t i = shape.size(); i-- > 0;) {
                if (++index[i] < shape[i])
                    break;
                index[i] = 0;
            }
        }
    }

    std::vector<Array> runBlock(BlockId block, const std::vector<Array>& arguments)
    {
        for (std::size_t i = 0; i < arguments.size(); ++i)
            m_values[m_function[block].arguments[i].at()] = arguments[i];
        for (const OpId id : m_function[block].ops)
            runOp(m_function[id]);
        std::vector<Array> results;
        for (const ValueId result : m_function[block].results)
            results.push_back(m_values[result.at()]);
        return results;
    }

    void runOp(const Op& op)
    {
        std::vector<Array> results;
        switch (op.kind) {
        case OpKind::Repeat:
            results = repeat(op);
            break;
        case OpKind::While:
            results = loop(op);
            break;
        case OpKind::Case:
            results = branch(op);
            break;
        case OpKind::Computation:
            results = isManual(op) ? manual(op) : runBlock(op.bodies.front(), operandsOf(op));
            break;
        case OpKind::OptimizationBarrier:
            results = operandsOf(op);
            break;
        case OpKind::Complex:
            results = {{operand(op, 0).shape, operand(op, 0).data, operand(op, 1).data}};
            break;
        case OpKind::Real:
            results = {{operand(op, 0).shape, operand(op, 0).data}};
            break;
        case OpKind::Imag:
            results = {operand(op, 0)};
            results[0].data
                = operand(op, 0).imaginary.empty() ? std::vector<double>(operand(op, 0).data.size()) : operand(op, 0).imaginary;
            results[0].imaginary.clear();
            break;
        default: {
            if (isKept(op.kind)) {
                results = kept(op);
                break;
            }
            const TensorType& type = m_function[op.results.front()].type;
            Array& result = results.emplace_back(Array{type.shape, numbersOf(type)});
            fill(op, type, result);
        }
        }
        for (std::size_t i = 0; i < results.size(); ++i)
            m_values[op.results[i].at()] = std::move(results[i]);
    }

    static std::vector<double> numbersOf(const TensorType& type)
    {
        return std::vector<double>(static_cast<std::size_t>(type.elements()));
    }

    Array emptyResult(const Op& op, std::size_t i = 0) const
    {
        const TensorType& type = m_function[op.results[i]].type;
        return {type.shape, numbersOf(type)};
    }

    std::vector<Array> operandsOf(const Op& op) const
    {
        std::vector<Array> arrays;
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            arrays.push_back(operand(op, i));
        return arrays;
    }

    const Array& operand(const Op& op, std::size_t i) const { return m_values[op.operands[i].at()]; }
    DType operandType(const Op& op, std::size_t i) const { return m_function[op.operands[i]].type.dtype; }

    void fill(const Op& op, const TensorType& type, Array& result)
    {
        switch (op.kind) {
        case OpKind::Constant:
            constant(op.as<ConstantAttributes>(), type, result);
            return;
        case OpKind::Iota: {
            std::size_t at = 0;
            forEach(type.shape,
                [&](const Index& index) { result.data[at++] = static_cast<double>(index[op.as<IotaAttributes>().dim]); });
            return;
        }
        case OpKind::RandomBits: {
            const Array& key = operand(op, 0);
            const RandomKey words = {static_cast<std::uint32_t>(key.data[0]), static_cast<std::uint32_t>(key.data[1])};
            for (std::size_t i = 0; i < result.data.size(); ++i)
                result.data[i] = randomWord(words, i, result.data.size(), op.as<RandomBitsAttributes>().partitionable);
            return;
        }
        case OpKind::BroadcastInDim: {
            const Array& x = operand(op, 0);
            const auto& dims = op.as<BroadcastAttributes>().dims;
            std::size_t at = 0;
            forEach(type.shape, [&](const Index& index) {
                Index from(dims.size());
                for (std::size_t i = 0; i < dims.size(); ++i)
                    from[i] = x.shape[i] == 1 ? 0 : index[dims[i]];
                result.data[at++] = x.data[offset(x.shape, from)];
            });
            return;
        }
        case OpKind::Reshape:
        case OpKind::ShardingConstraint:
        case OpKind::PropagationBarrier:
            result.data = operand(op, 0).data;
            return;
        case OpKind::Transpose: {
            const Array& x = operand(op, 0);
            const auto& permutation = op.as<TransposeAttributes>().permutation;
            std::size_t at = 0;
            forEach(type.shape, [&](const Index& index) {
                Index from(index.size());
                for (std::size_t i = 0; i < index.size(); ++i)
                    from[permutation[i]] = index[i];
                result.data[at++] = x.data[offset(x.shape, from)];
            });
            return;
        }
        case OpKind::Reduce:
            reduce(op.as<ReduceAttributes>(), operand(op, 0), result);
            return;
        case OpKind::DotGeneral:
            dot(op.as<DotAttributes>(), operand(op, 0), operand(op, 1), result);
            return;
        case OpKind::Slice:
        case OpKind::Pad:
        case OpKind::Concatenate:
        case OpKind::Reverse:
        case OpKind::DynamicSlice:
        case OpKind::DynamicUpdateSlice:
        case OpKind::Gather:
            parts(op, result);
            return;
        case OpKind::Scatter:
            scatter(op, result);
            return;
        default:
            for (std::size_t i = 0; i < result.data.size(); ++i)
                result.data[i] = element(op, i);
        }
    }

    static bool isIn(const std::vector<std::size_t>& dims, std::size_t dim)
    {
        return std::find(dims.begin(), dims.end(), dim) != dims.end();
    }

    static bool isInside(const Shape& shape, const Index& index)
    {
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            if (index[dim] < 0 || index[dim] >= shape[dim])
                return false;
        }
        return true;
    }

    /// Where a part begins that `size` elements of an array are taken from: moved back inside.
    std::int64_t start(const Op& op, std::size_t which, std::int64_t whole, std::int64_t size) const
    {
        return std::clamp<std::int64_t>(static_cast<std::int64_t>(operand(op, which).scalar()), 0, whole - size);
    }

    /// Where an element of the slices' array of a gather or a scatter lies in the operand: the start of its slice and its place in it.
    std::pair<Index, Index> place(const IndexingDims& dims, std::size_t rank, const Array& indices, const Index& index) const
    {
        Index batch;
        Index window;
        for (std::size_t dim = 0; dim < index.size(); ++dim)
            (isIn(dims.window, dim) ? window : batch).push_back(index[dim]);
        Index begin(rank, 0);
        Index inside(rank, 0);
        for (std::size_t i = 0; i < dims.indexMap.size(); ++i) {
            Index where = batch;
            if (dims.indexVectorDim < indices.shape.size())
                where.insert(where.begin() + static_cast<std::ptrdiff_t>(dims.indexVectorDim), static_cast<std::int64_t>(i));
            begin[dims.indexMap[i]] = static_cast<std::int64_t>(indices.data[offset(indices.shape, where)]);
        }
        for (std::size_t i = 0; i < dims.operandBatch.size(); ++i)
            begin[dims.operandBatch[i]] = batch[dims.indicesBatch[i] - (dims.indicesBatch[i] > dims.indexVectorDim ? 1 : 0)];
        std::size_t next = 0;
        for (std::size_t dim = 0; dim < rank; ++dim) {
            if (!isIn(dims.collapsed, dim) && !isIn(dims.operandBatch, dim))
                inside[dim] = window[next++];
        }
        return {begin, inside};
    }

    void parts(const Op& op, Array& result) const
    {
        std::size_t at = 0;
        forEach(result.shape, [&](const Index& index) { result.data[at++] = part(op, result, index); });
    }

    double part(const Op& op, const Array& result, Index index) const
    {
        const Array& x = operand(op, 0);
        switch (op.kind) {
        case OpKind::Slice:
            for (std::size_t dim = 0; dim < index.size(); ++dim)
                index[dim] = op.as<SliceAttributes>().starts[dim] + index[dim] * op.as<SliceAttributes>().strides[dim];
            break;
        case OpKind::Pad: {
            const auto& pad = op.as<PadAttributes>();
            for (std::size_t dim = 0; dim < index.size(); ++dim) {
                const std::int64_t step = pad.interior[dim] + 1;
                const std::int64_t from = index[dim] - pad.low[dim];
                index[dim] = from >= 0 && from % step == 0 ? from / step : -1;
            }
            if (!isInside(x.shape, index))
                return operand(op, 1).scalar();
            break;
        }
        case OpKind::Concatenate: {
            const std::size_t along = op.as<ConcatenateAttributes>().dim;
            std::size_t which = 0;
            while (index[along] >= operand(op, which).shape[along])
                index[along] -= operand(op, which++).shape[along];
            return operand(op, which).data[offset(operand(op, which).shape, index)];
        }
        case OpKind::Reverse:
            for (const std::size_t dim : op.as<ReverseAttributes>().dims)
                index[dim] = x.shape[dim] - 1 - index[dim];
            break;
        case OpKind::DynamicSlice:
            for (std::size_t dim = 0; dim < index.size(); ++dim)
                index[dim] += start(op, 1 + dim, x.shape[dim], result.shape[dim]);
            break;
        case OpKind::DynamicUpdateSlice: {
            const Array& update = operand(op, 1);
            Index inUpdate = index;
            for (std::size_t dim = 0; dim < index.size(); ++dim)
                inUpdate[dim] -= start(op, 2 + dim, x.shape[dim], update.shape[dim]);
            if (isInside(update.shape, inUpdate))
                return update.data[offset(update.shape, inUpdate)];
            break;
        }
        default: {
            const auto& gather = op.as<GatherAttributes>();
            const auto [begin, inside] = place(gather.dims, x.shape.size(), operand(op, 1), index);
            index.resize(x.shape.size());
            for (std::size_t dim = 0; dim < index.size(); ++dim)
                index[dim] = std::clamp<std::int64_t>(begin[dim], 0, x.shape[dim] - gather.sliceSizes[dim]) + inside[dim];
        }
        }
        return x.data[offset(x.shape, index)];
    }

    void scatter(const Op& op, Array& result) const
    {
        const auto& attributes = op.as<ScatterAttributes>();
        const Array& updates = operand(op, 2);
        result.data = operand(op, 0).data;
        std::size_t at = 0;
        forEach(updates.shape, [&](const Index& index) {
            const double update = updates.data[at++];
            auto [target, inside] = place(attributes.dims, result.shape.size(), operand(op, 1), index);
            for (std::size_t dim = 0; dim < target.size(); ++dim)
                target[dim] += inside[dim];
            if (!isInside(result.shape, target))
                return;
            double& value = result.data[offset(result.shape, target)];
            value = attributes.combiner ? combined(*attributes.combiner, value, update) : update;
        });
    }

    static void constant(const ConstantAttributes& attributes, const TensorType& type, Array& result)
    {
        if (const auto* number = std::get_if<double>(&attributes.data.value))
            std::fill(result.data.begin(), result.data.end(), *number);
        else if (const auto* integer = std::get_if<std::int64_t>(&attributes.data.value))
            std::fill(result.data.begin(), result.data.end(), static_cast<double>(*integer));
        else
            for (std::size_t i = 0; i < result.data.size(); ++i)
                result.data[i] = storedNumber(*std::get<2>(attributes.data.value), type.dtype, i);
    }

    template <typename T>
    static double storedAs(const std::string& bytes, std::size_t i)
    {
        T value;
        std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
        return static_cast<double>(value);
    }

    static double storedNumber(const std::string& bytes, DType dtype, std::size_t i)
    {
        switch (dtype) {
        case DType::Pred:
        case DType::U8:
            return storedAs<std::uint8_t>(bytes, i);
        case DType::S32:
            return storedAs<std::int32_t>(bytes, i);
        case DType::U32:
            return storedAs<std::uint32_t>(bytes, i);
        case DType::S64:
            return storedAs<std::int64_t>(bytes, i);
        case DType::U64:
            return storedAs<std::uint64_t>(bytes, i);
        case DType::F32:
            return storedAs<float>(bytes, i);
        case DType::F64:
            return storedAs<double>(bytes, i);
        default:
            assert(!"constants of this type are not for this evaluator");
            return 0.0;
        }
    }

    double element(const Op& op, std::size_t i) const
    {
        const double a = operand(op, 0).data[i];
        const double b = op.operands.size() > 1 ? operand(op, 1).data[i] : 0.0;
        const auto word = [](double x) { return static_cast<std::uint32_t>(x); };
        const auto whole = [](double x) { return static_cast<std::int64_t>(x); };
        switch (op.kind) {
        case OpKind::Negate:
            return -a;
        case OpKind::Abs:
            return std::abs(a);
        case OpKind::Sign:
            return a > 0 ? 1.0 : (a < 0 ? -1.0 : 0.0);
        case OpKind::Exp:
            return std::exp(a);
        case OpKind::Log:
            return std::log(a);
        case OpKind::Log1p:
            return std::log1p(a);
        case OpKind::Tanh:
            return std::tanh(a);
        case OpKind::Logistic:
            return 1.0 / (1.0 + std::exp(-a));
        case OpKind::Sqrt:
            return std::sqrt(a);
        case OpKind::Rsqrt:
            return 1.0 / std::sqrt(a);
        case OpKind::Sine:
            return std::sin(a);
        case OpKind::Cosine:
            return std::cos(a);
        case OpKind::Tan:
            return std::tan(a);
        case OpKind::Asin:
            return std::asin(a);
        case OpKind::Acos:
            return std::acos(a);
        case OpKind::Atan:
            return std::atan(a);
        case OpKind::Sinh:
            return std::sinh(a);
        case OpKind::Cosh:
            return std::cosh(a);
        case OpKind::Asinh:
            return std::asinh(a);
        case OpKind::Acosh:
            return std::acosh(a);
        case OpKind::Atanh:
            return std::atanh(a);
        case OpKind::ReducePrecision:
            assert(op.as<ReducePrecisionAttributes>() == (ReducePrecisionAttributes{8, 23}) && "this evaluator does not round");
            return a;
        case OpKind::LogGamma:
            return std::lgamma(a);
        case OpKind::Digamma:
            return (std::lgamma(a + 1e-5) - std::lgamma(a - 1e-5)) / 2e-5;
        case OpKind::Cbrt:
            return std::cbrt(a);
        case OpKind::Expm1:
            return std::expm1(a);
        case OpKind::Square:
            return a * a;
        case OpKind::Floor:
            return std::floor(a);
        case OpKind::Ceil:
            return std::ceil(a);
        case OpKind::RoundNearestEven:
            return std::nearbyint(a);
        case OpKind::RoundNearestAway:
            return std::round(a);
        case OpKind::IsFinite:
            return std::isfinite(a) ? 1.0 : 0.0;
        case OpKind::Erf:
            return std::erf(a);
        case OpKind::Erfc:
            return std::erfc(a);
        case OpKind::Not:
            return operandType(op, 0) == DType::Pred ? (a == 0.0 ? 1.0 : 0.0) : -a - 1.0; // signed
        case OpKind::ErfInv:
            return inverseErf(a);
        case OpKind::Convert:
            return isFloating(op.as<ConvertAttributes>().dtype)
                ? a
                : (op.as<ConvertAttributes>().dtype == DType::Pred ? (a != 0.0 ? 1.0 : 0.0) : std::trunc(a));
        case OpKind::BitcastConvert: {
            assert(operandType(op, 0) == DType::U32 && op.as<ConvertAttributes>().dtype == DType::F32);
            return static_cast<double>(std::bit_cast<float>(word(a)));
        }
        case OpKind::Add:
            return a + b;
        case OpKind::Subtract:
            return a - b;
        case OpKind::Multiply:
            return a * b;
        case OpKind::Divide:
            return isFloating(operandType(op, 0)) ? a / b : std::trunc(a / b);
        case OpKind::Remainder:
            return std::fmod(a, b);
        case OpKind::Maximum:
            return std::max(a, b);
        case OpKind::Minimum:
            return std::min(a, b);
        case OpKind::Power:
            return std::pow(a, b);
        case OpKind::Atan2:
            return std::atan2(a, b);
        case OpKind::And:
            return static_cast<double>(whole(a) & whole(b));
        case OpKind::Or:
            return static_cast<double>(whole(a) | whole(b));
        case OpKind::Xor:
            return static_cast<double>(whole(a) ^ whole(b));
        case OpKind::ShiftLeft:
            return static_cast<std::uint32_t>(word(a) << word(b));
        case OpKind::ShiftRightLogical:
            return word(a) >> word(b);
        case OpKind::ShiftRightArithmetic:
            return static_cast<std::int32_t>(word(a)) >> word(b);
        case OpKind::Compare:
            return compare(op.as<CompareAttributes>().direction, a, b) ? 1.0 : 0.0;
        case OpKind::Select:
            return a != 0.0 ? b : operand(op, 2).data[i];
        case OpKind::Clamp:
            return std::min(std::max(a, b), operand(op, 2).data[i]);
        default:
            assert(!"this evaluator knows no collectives");
            return 0.0;
        }
    }

    static bool compare(CompareDirection direction, double a, double b)
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

    /// By Newton's method on erf.
    static double inverseErf(double y)
    {
        if (std::abs(y) >= 1.0)
            return std::copysign(std::numeric_limits<double>::infinity(), y);
        const double w = std::log(1.0 - y * y);
        const double c = 2.0 / (std::numbers::pi * 0.147) + w / 2.0;
        double x = std::copysign(std::sqrt(std::sqrt(c * c - w / 0.147) - c), y); // Winitzki's approximation to start from
        for (int i = 0; i < 6; ++i)
            x -= (std::erf(x) - y) * std::sqrt(std::numbers::pi) / 2.0 * std::exp(x * x);
        return x;
    }

    static void reduce(const ReduceAttributes& attributes, const Array& x, Array& result)
    {
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        const std::map<ReduceKind, double> initial = {{ReduceKind::Sum, 0.0}, {ReduceKind::Max, -kInfinity},
            {ReduceKind::Min, kInfinity}, {ReduceKind::Product, 1.0}, {ReduceKind::And, 1.0}, {ReduceKind::Or, 0.0}};
        std::fill(result.data.begin(), result.data.end(), initial.at(attributes.kind));
        std::size_t at = 0;
        forEach(x.shape, [&](const Index& index) {
            Index to;
            for (std::size_t i = 0; i < index.size(); ++i) {
                if (std::find(attributes.dims.begin(), attributes.dims.end(), i) == attributes.dims.end())
                    to.push_back(index[i]);
            }
            double& sum = result.data[offset(result.shape, to)];
            sum = combined(attributes.kind, sum, x.data[at++]);
        });
    }

    static double combined(ReduceKind kind, double a, double b)
    {
        switch (kind) {
        case ReduceKind::Sum:
            return a + b;
        case ReduceKind::Max:
        case ReduceKind::Or:
            return std::max(a, b);
        case ReduceKind::Min:
        case ReduceKind::And:
            return std::min(a, b);
        case ReduceKind::Product:
            return a * b;
        }
        return 0.0;
    }

    static void dot(const DotAttributes& attributes, const Array& lhs, const Array& rhs, Array& result)
    {
        Shape contracted;
        for (const std::size_t dim : attributes.lhsContracting)
            contracted.push_back(lhs.shape[dim]);
        std::size_t at = 0;
        forEach(result.shape, [&](const Index& index) {
            Index left(lhs.shape.size());
            Index right(rhs.shape.size());
            std::size_t next = 0;
            for (std::size_t i = 0; i < attributes.lhsBatch.size(); ++i, ++next)
                left[attributes.lhsBatch[i]] = right[attributes.rhsBatch[i]] = index[next];
            for (std::size_t i = 0; i < left.size(); ++i) {
                if (!isIn(attributes.lhsBatch, i) && !isIn(attributes.lhsContracting, i))
                    left[i] = index[next++];
            }
            for (std::size_t i = 0; i < right.size(); ++i) {
                if (!isIn(attributes.rhsBatch, i) && !isIn(attributes.rhsContracting, i))
                    right[i] = index[next++];
            }
            double sum = 0.0;
            forEach(contracted, [&](const Index& inner) {
                for (std::size_t i = 0; i < inner.size(); ++i)
                    left[attributes.lhsContracting[i]] = right[attributes.rhsContracting[i]] = inner[i];
                sum += lhs.data[offset(lhs.shape, left)] * rhs.data[offset(rhs.shape, right)];
            });
            result.data[at++] = sum;
        });
    }

    std::vector<Array> repeat(const Op& op)
    {
        const auto& attributes = op.as<RepeatAttributes>();
        std::vector<Array> state;
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            state.push_back(operand(op, i));
        std::vector<Array> results;
        for (const ValueId result : op.results)
            results.push_back({m_function[result].type.shape,
                std::vector<double>(static_cast<std::size_t>(m_function[result].type.elements()))});
        for (std::int64_t step = 0; step < attributes.count; ++step) {
            const auto slice = static_cast<std::ptrdiff_t>(attributes.reversed ? attributes.count - 1 - step : step);
            std::vector<Array> arguments = state;
            for (std::size_t i = attributes.carries; i < attributes.carries + attributes.stacked; ++i) {
                arguments[i].shape.erase(arguments[i].shape.begin());
                const auto size = static_cast<std::ptrdiff_t>(elementCount(arguments[i].shape));
                arguments[i].data.assign(state[i].data.begin() + slice * size, state[i].data.begin() + (slice + 1) * size);
            }
            const std::vector<Array> yielded = runBlock(op.bodies.front(), arguments);
            for (std::size_t i = 0; i < yielded.size(); ++i) {
                if (i < attributes.carries)
                    state[i] = results[i] = yielded[i];
                else
                    std::copy(yielded[i].data.begin(), yielded[i].data.end(),
                        results[i].data.begin() + slice * static_cast<std::ptrdiff_t>(yielded[i].data.size()));
            }
        }
        return results;
    }

    // plain_blocks.h
    std::vector<Array> loop(const Op& op);
    std::vector<Array> branch(const Op& op);
    std::vector<Array> manual(const Op& op);
    void exchange(const Op& op, const Mesh& mesh, std::vector<std::vector<Array>>& lanes);

    // plain_kept_ops.h
    using Numbers = std::vector<double>;
    using Combine = std::function<Numbers(const Numbers&)>; ///< a block of scalars: arguments to results
    Combine blockOf(const Op& op, std::size_t i);
    std::vector<Array> kept(const Op& op);
    std::vector<Array> sort(const Op& op);
    std::vector<Array> reduceMany(const Op& op);
    std::vector<Array> reduceWindows(const Op& op);
    Array selectAndScatter(const Op& op);
    Array convolution(const Op& op) const;
    std::vector<Array> top(const Op& op) const;
    std::vector<Array> randomBits(const Op& op) const;
    std::vector<Array> scatterMany(const Op& op);
    Array cholesky(const Op& op) const;
    Array triangularSolve(const Op& op) const;
    Array fourier(const Op& op) const;
    std::vector<Array> batchNorm(const Op& op) const;
    std::vector<Array> attention(const Op& op) const;
    Array elementwise(const Op& op, const std::function<double(double)>& function) const;

    const Function& m_function;
    std::span<const NamedMesh> m_meshes;
    std::vector<Array> m_values;
    std::int64_t m_position = 0; ///< of the device whose part of a manual computation is run
};

inline std::vector<Array> evaluatePlainly(
    const Function& function, const std::vector<Array>& arguments, std::span<const NamedMesh> meshes = {})
{
    return PlainEvaluator(function, meshes).run(arguments);
}

/// Numbers that look random and are the same everywhere: sin(0.37 i + shift) * scale + offset.
inline Array ramp(Shape shape, double shift = 0.0, double scale = 1.0, double offset = 0.0)
{
    Array array{std::move(shape), {}};
    for (std::int64_t i = 0; i < elementCount(array.shape); ++i)
        array.data.push_back(std::sin(0.37 * static_cast<double>(i) + shift) * scale + offset);
    return array;
}

} // namespace meshwright::tests

#include "tests/plain_blocks.h" // what the evaluator does with blocks ..
#include "tests/plain_kept_ops.h" // .. and with ops that are kept as the text has them
