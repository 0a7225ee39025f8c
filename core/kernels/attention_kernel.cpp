// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/attention_kernel.h"

#include "core/kernels/narrow_float.h"
#include "core/kernels/products.h"
#include "core/kernels/tile_table.h"
#include "core/program/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace meshwright {

namespace {

// Scores of one block stay in the second-level cache.
constexpr std::int64_t kQueryRows = 256;
constexpr std::int64_t kKeyRows = 512;

/// Some of the rows of queries or keys: from `first` on.
struct Stretch {
    std::int64_t first = 0;
    std::int64_t count = 0;
};

/// The smallest and the largest position of a stretch.
struct Span {
    std::int64_t least = 0;
    std::int64_t most = 0;
};

Span spanOf(const std::int32_t* positions, Stretch stretch)
{
    const auto [least, most] = std::minmax_element(positions + stretch.first, positions + stretch.first + stretch.count);
    return {*least, *most};
}

/// Which keys queries see.
struct Visibility {
    const std::int32_t* queryPositions = nullptr; ///< none: keys at all positions
    const std::int32_t* keyPositions = nullptr;
    std::int64_t window = std::numeric_limits<std::int64_t>::max();
    const std::int32_t* querySegments = nullptr; ///< of one row of the batch; none: those of all segments
    const std::int32_t* keySegments = nullptr;

    bool seesNone(Stretch queries, Stretch keys) const
    {
        if (queryPositions == nullptr)
            return false;
        const Span query = spanOf(queryPositions, queries);
        const Span key = spanOf(keyPositions, keys);
        return key.least > query.most || query.least - key.most >= window;
    }

    bool seesAll(Stretch queries, Stretch keys) const
    {
        if (querySegments != nullptr)
            return false;
        if (queryPositions == nullptr)
            return true;
        const Span query = spanOf(queryPositions, queries);
        const Span key = spanOf(keyPositions, keys);
        return key.most <= query.least && query.most - key.least < window;
    }

    bool sees(std::int64_t query, std::int64_t key) const
    {
        if (querySegments != nullptr && querySegments[query] != keySegments[key])
            return false;
        if (queryPositions == nullptr)
            return true;
        const std::int64_t distance = std::int64_t{queryPositions[query]} - keyPositions[key];
        return distance >= 0 && distance < window;
    }
};

/// One operand or result: rows of `width` elements in memory.
struct Rows {
    std::byte* data = nullptr;
    DType dtype = DType::F32;
    std::int64_t width = 1;
    std::int64_t step = 1; ///< elements between two rows
};

/// What all heads of an op are computed with, in T.
template <typename T>
class Arithmetic {
public:
    Arithmetic(const AttentionForm& form, DType operands)
        : m_form(form)
        , m_rounds(byteSize(form.operandType) < byteSize(operands)
              || (byteSize(form.operandType) == byteSize(operands) && form.operandType != operands))
    {
    }

    static constexpr DType kType = std::is_same_v<T, double> ? DType::F64 : DType::F32;
    static constexpr Lane kLane = std::is_same_v<T, double> ? Lane::F64 : Lane::F32;
    static constexpr T kLowest = -std::numeric_limits<T>::infinity();

    static T* room(Scratch& scratch, std::int64_t count)
    {
        return reinterpret_cast<T*>(scratch.allocate(count * static_cast<std::int64_t>(sizeof(T))));
    }

    static void apply(OpKind kind, T* values, std::int64_t count)
    {
        auto* bytes = reinterpret_cast<std::byte*>(values);
        tileTable().op(kind, kType)(bytes, bytes, nullptr, nullptr, count);
    }

    static T reduced(ReduceKind kind, const T* values, std::int64_t count)
    {
        T result{};
        tileTable().reduceRow(kind, kLane)(
            reinterpret_cast<std::byte*>(&result), reinterpret_cast<const std::byte*>(values), count);
        return result;
    }

    /// The rows of a stretch, one behind the other.
    static void load(T* to, const Rows& from, Stretch rows)
    {
        for (std::int64_t row = 0; row < rows.count; ++row) {
            const std::byte* source = from.data + (rows.first + row) * from.step * byteSize(from.dtype);
            auto* target = reinterpret_cast<std::byte*>(to + row * from.width);
            if (isNarrow(from.dtype))
                tileTable().load(from.dtype)(target, source, nullptr, nullptr, from.width);
            else
                std::memcpy(target, source, static_cast<std::size_t>(from.width) * sizeof(T));
        }
    }

    static void store(const Rows& to, const T* from, Stretch rows)
    {
        for (std::int64_t row = 0; row < rows.count; ++row) {
            std::byte* target = to.data + (rows.first + row) * to.step * byteSize(to.dtype);
            const auto* source = reinterpret_cast<const std::byte*>(from + row * to.width);
            if (isNarrow(to.dtype))
                tileTable().store(to.dtype)(target, source, nullptr, nullptr, to.width);
            else
                std::memcpy(target, source, static_cast<std::size_t>(to.width) * sizeof(T));
        }
    }

    /// To what products take.
    void round(T* values, std::int64_t count) const
    {
        if (!m_rounds)
            return;
        const auto each = [&](const auto& rounded) {
            for (std::int64_t i = 0; i < count; ++i)
                values[i] = static_cast<T>(rounded(static_cast<float>(values[i])));
        };
        if (m_form.operandType == DType::BF16)
            each([](float value) { return fromBfloat16(bfloat16Bits(value)); });
        else if (m_form.operandType == DType::F16)
            each([](float value) { return fromHalf(halfBits(value)); });
        else
            each([](float value) { return value; });
    }

    void loadRounded(T* to, const Rows& from, Stretch rows) const
    {
        load(to, from, rows);
        round(to, rows.count * from.width);
    }

    /// Scores of some queries and keys, scaled and capped; -infinity for those that are masked.
    void score(T* scores, const T* queries, Stretch ofQueries, const T* keys, Stretch ofKeys, std::int64_t dims,
        const Visibility& visibility) const
    {
        multiply(ofQueries.count, ofKeys.count, dims, MatrixView<const T>{queries, dims, false},
            MatrixView<const T>{keys + ofKeys.first * dims, dims, true}, MatrixView<T>{scores, ofKeys.count, false});
        const std::int64_t count = ofQueries.count * ofKeys.count;
        const auto factor = static_cast<T>(m_form.softcap > 0.0 ? m_form.scale / m_form.softcap : m_form.scale);
        for (std::int64_t i = 0; i < count; ++i)
            scores[i] *= factor;
        if (m_form.softcap > 0.0) {
            apply(OpKind::Tanh, scores, count);
            for (std::int64_t i = 0; i < count; ++i)
                scores[i] *= static_cast<T>(m_form.softcap);
        }
        if (visibility.seesAll(ofQueries, ofKeys))
            return;
        for (std::int64_t row = 0; row < ofQueries.count; ++row) {
            for (std::int64_t key = 0; key < ofKeys.count; ++key) {
                if (!visibility.sees(ofQueries.first + row, ofKeys.first + key))
                    scores[row * ofKeys.count + key] = kLowest;
            }
        }
    }

    const AttentionForm& form() const { return m_form; }

private:
    const AttentionForm& m_form;
    bool m_rounds;
};

/// Calls `visit` with the stretches that make up `count` rows.
template <typename Visit>
void forEachStretch(std::int64_t count, std::int64_t most, const Visit& visit)
{
    for (std::int64_t first = 0; first < count; first += most)
        visit(Stretch{first, std::min(most, count - first)});
}

/// What one head reads and writes.
struct Head {
    Rows queries;
    Rows result;
    Rows statistics;
    Rows before; ///< the result of the part before, where there is one; then its statistics
    Rows statisticsBefore;
    Rows cotangent; ///< of the derivative, as the next
    Rows queryCotangents;
};

/// What the heads of a group share, in the arithmetic's type.
template <typename T>
struct Shared {
    const T* keys;
    const T* values;
    T* keyCotangents; ///< of the derivative: sums over what was done so far
    T* valueCotangents;
};

template <typename T>
class Forward {
public:
    Forward(const Arithmetic<T>& arithmetic, const AttentionSizes& sizes, Scratch& scratch)
        : m_arithmetic(arithmetic)
        , m_sizes(sizes)
        , m_queries(A::room(scratch, kQueryRows * sizes.dims))
        , m_scores(A::room(scratch, kQueryRows * kKeyRows))
        , m_part(A::room(scratch, kQueryRows * sizes.valueDims))
        , m_result(A::room(scratch, kQueryRows * sizes.valueDims))
        , m_largest(A::room(scratch, kQueryRows))
        , m_sum(A::room(scratch, kQueryRows))
    {
    }

    void run(const Head& head, const Shared<T>& shared, const Visibility& visibility, const StopFlag& stop)
    {
        forEachStretch(m_sizes.queries, kQueryRows, [&](Stretch queries) {
            m_arithmetic.loadRounded(m_queries, head.queries, queries);
            begin(head, queries);
            forEachStretch(m_sizes.keys, kKeyRows, [&](Stretch keys) {
                if (!stop.isSet() && !visibility.seesNone(queries, keys))
                    meet(queries, keys, shared, visibility);
            });
            for (std::int64_t row = 0; row < queries.count; ++row) {
                const T share = m_sum[row] > T{} ? T{1} / m_sum[row] : T{};
                for (std::int64_t i = 0; i < m_sizes.valueDims; ++i)
                    m_result[row * m_sizes.valueDims + i] *= share;
                m_largest[row] = m_sum[row] > T{} ? m_largest[row] + std::log(m_sum[row]) : A::kLowest;
            }
            A::store(head.result, m_result, queries);
            A::store(head.statistics, m_largest, queries);
        });
    }

private:
    using A = Arithmetic<T>;

    /// No key was met; or those before, which are as one key with the value of their result and the score of their statistics.
    void begin(const Head& head, Stretch queries)
    {
        if (head.before.data == nullptr) {
            std::fill_n(m_largest, queries.count, A::kLowest);
            std::fill_n(m_result, queries.count * m_sizes.valueDims, T{});
        } else {
            A::load(m_largest, head.statisticsBefore, queries);
            A::load(m_result, head.before, queries);
        }
        for (std::int64_t row = 0; row < queries.count; ++row)
            m_sum[row] = m_largest[row] == A::kLowest ? T{} : T{1};
    }

    void meet(Stretch queries, Stretch keys, const Shared<T>& shared, const Visibility& visibility)
    {
        const std::int64_t width = m_sizes.valueDims;
        m_arithmetic.score(m_scores, m_queries, queries, shared.keys, keys, m_sizes.dims, visibility);
        for (std::int64_t row = 0; row < queries.count; ++row) {
            T* scores = m_scores + row * keys.count;
            const T largest = std::max(m_largest[row], A::reduced(ReduceKind::Max, scores, keys.count));
            if (largest == A::kLowest) {
                std::fill_n(scores, keys.count, T{});
                continue;
            }
            for (std::int64_t key = 0; key < keys.count; ++key)
                scores[key] -= largest;
            A::apply(OpKind::Exp, scores, keys.count);
            const T before = std::exp(m_largest[row] - largest);
            m_sum[row] = m_sum[row] * before + A::reduced(ReduceKind::Sum, scores, keys.count);
            m_largest[row] = largest;
            for (std::int64_t i = 0; i < width; ++i)
                m_result[row * width + i] *= before;
        }
        m_arithmetic.round(m_scores, queries.count * keys.count);
        multiply(queries.count, width, keys.count, MatrixView<const T>{m_scores, keys.count, false},
            MatrixView<const T>{shared.values + keys.first * width, width, false}, MatrixView<T>{m_part, width, false});
        for (std::int64_t i = 0; i < queries.count * width; ++i)
            m_result[i] += m_part[i];
    }

    const Arithmetic<T>& m_arithmetic;
    const AttentionSizes& m_sizes;
    T* m_queries;
    T* m_scores; ///< then the weights
    T* m_part; ///< of the result, from one stretch of keys
    T* m_result;
    T* m_largest; ///< of each row, so far
    T* m_sum; ///< of each row's exponentials, so far
};

template <typename T>
class Backward {
public:
    Backward(const Arithmetic<T>& arithmetic, const AttentionSizes& sizes, Scratch& scratch)
        : m_arithmetic(arithmetic)
        , m_sizes(sizes)
        , m_queries(A::room(scratch, kQueryRows * sizes.dims))
        , m_cotangent(A::room(scratch, kQueryRows * sizes.valueDims))
        , m_result(A::room(scratch, kQueryRows * sizes.valueDims))
        , m_statistics(A::room(scratch, kQueryRows))
        , m_shift(A::room(scratch, kQueryRows))
        , m_queryCotangents(A::room(scratch, kQueryRows * sizes.dims))
        , m_weights(A::room(scratch, kQueryRows * kKeyRows))
        , m_scores(A::room(scratch, kQueryRows * kKeyRows))
        , m_changes(A::room(scratch, kQueryRows * kKeyRows))
        , m_part(A::room(scratch, std::max(kQueryRows, kKeyRows) * std::max(sizes.dims, sizes.valueDims)))
    {
    }

    void run(const Head& head, const Shared<T>& shared, const Visibility& visibility, const StopFlag& stop)
    {
        forEachStretch(m_sizes.queries, kQueryRows, [&](Stretch queries) {
            m_arithmetic.loadRounded(m_queries, head.queries, queries);
            A::load(m_cotangent, head.cotangent, queries);
            A::load(m_result, head.result, queries);
            A::load(m_statistics, head.statistics, queries);
            const std::int64_t width = m_sizes.valueDims;
            for (std::int64_t i = 0; i < queries.count * width; ++i)
                m_result[i] *= m_cotangent[i];
            for (std::int64_t row = 0; row < queries.count; ++row)
                m_shift[row] = A::reduced(ReduceKind::Sum, m_result + row * width, width);
            m_arithmetic.round(m_cotangent, queries.count * width);
            std::fill_n(m_queryCotangents, queries.count * m_sizes.dims, T{});
            forEachStretch(m_sizes.keys, kKeyRows, [&](Stretch keys) {
                if (!stop.isSet() && !visibility.seesNone(queries, keys))
                    meet(queries, keys, shared, visibility);
            });
            A::store(head.queryCotangents, m_queryCotangents, queries);
        });
    }

private:
    using A = Arithmetic<T>;

    void meet(Stretch queries, Stretch keys, const Shared<T>& shared, const Visibility& visibility)
    {
        const std::int64_t width = m_sizes.valueDims;
        const std::int64_t count = queries.count * keys.count;
        m_arithmetic.score(m_scores, m_queries, queries, shared.keys, keys, m_sizes.dims, visibility);
        for (std::int64_t row = 0; row < queries.count; ++row) {
            const bool seesAny = m_statistics[row] != A::kLowest;
            for (std::int64_t i = row * keys.count; i < (row + 1) * keys.count; ++i)
                m_weights[i] = seesAny ? m_scores[i] - m_statistics[row] : A::kLowest;
        }
        A::apply(OpKind::Exp, m_weights, count);
        multiply(queries.count, keys.count, width, MatrixView<const T>{m_cotangent, width, false},
            MatrixView<const T>{shared.values + keys.first * width, width, true}, MatrixView<T>{m_changes, keys.count, false});
        const auto scale = static_cast<T>(m_arithmetic.form().scale);
        for (std::int64_t row = 0; row < queries.count; ++row) {
            for (std::int64_t i = row * keys.count; i < (row + 1) * keys.count; ++i)
                m_changes[i] = scale * m_weights[i] * (m_changes[i] - m_shift[row]);
        }
        if (m_arithmetic.form().softcap > 0.0) {
            const auto cap = static_cast<T>(m_arithmetic.form().softcap);
            for (std::int64_t i = 0; i < count; ++i) {
                const T part = m_weights[i] > T{} ? m_scores[i] / cap : T{}; // masked scores are infinite
                m_changes[i] *= T{1} - part * part;
            }
        }
        m_arithmetic.round(m_weights, count);
        m_arithmetic.round(m_changes, count);
        addProduct(shared.valueCotangents + keys.first * width, m_weights, keys.count, true, m_cotangent, width, queries.count);
        addProduct(shared.keyCotangents + keys.first * m_sizes.dims, m_changes, keys.count, true, m_queries, m_sizes.dims,
            queries.count);
        addProduct(m_queryCotangents, m_changes, queries.count, false, shared.keys + keys.first * m_sizes.dims, m_sizes.dims,
            keys.count);
    }

    /// sum[m, n] += lhs times rhs[k, n], where lhs is [m, k], or stored as its transpose.
    void addProduct(T* sum, const T* lhs, std::int64_t m, bool transposed, const T* rhs, std::int64_t n, std::int64_t k)
    {
        multiply(m, n, k, MatrixView<const T>{lhs, transposed ? m : k, transposed}, MatrixView<const T>{rhs, n, false},
            MatrixView<T>{m_part, n, false});
        for (std::int64_t i = 0; i < m * n; ++i)
            sum[i] += m_part[i];
    }

    const Arithmetic<T>& m_arithmetic;
    const AttentionSizes& m_sizes;
    T* m_queries;
    T* m_cotangent;
    T* m_result; ///< times the cotangent
    T* m_statistics;
    T* m_shift; ///< of each row: the sum of that
    T* m_queryCotangents;
    T* m_weights;
    T* m_scores;
    T* m_changes; ///< cotangents of the weights, then of the products of queries and keys
    T* m_part;
};

class AttentionKernel final : public Kernel {
public:
    AttentionKernel(const Function& function, const Op& op)
        : m_operands(op.operands)
        , m_results(op.results)
        , m_types(typesOf(function, op.operands))
        , m_resultTypes(typesOf(function, op.results))
        , m_form(*attentionForm(op.as<OtherAttributes>()))
        , m_places(m_form, op.kind)
        , m_sizes(m_types)
        , m_isGradient(op.kind == OpKind::AttentionGrad)
    {
    }

    void run(Addresses addresses, Scratch& scratch, const StopFlag& stop) const override
    {
        if (m_types.front().dtype == DType::F64)
            compute<double>(addresses, scratch, stop);
        else
            compute<float>(addresses, scratch, stop);
        scratch.reset();
    }

private:
    static std::vector<TensorType> typesOf(const Function& function, const std::vector<ValueId>& values)
    {
        std::vector<TensorType> types;
        for (const ValueId value : values)
            types.push_back(function[value].type);
        return types;
    }

    /// An operand, in memory of its own where a result lies in the same place: results are written while other rows are still read.
    std::byte* input(std::size_t operand, Addresses addresses, Scratch& scratch) const
    {
        std::byte* data = addresses[m_operands[operand].at()];
        const bool isShared
            = std::any_of(m_results.begin(), m_results.end(), [&](ValueId result) { return addresses[result.at()] == data; });
        if (!isShared)
            return data;
        const auto bytes = static_cast<std::size_t>(m_types[operand].bytes());
        std::byte* copy = scratch.allocate(m_types[operand].bytes());
        if (bytes > 0)
            std::memcpy(copy, data, bytes);
        return copy;
    }

    template <typename T>
    void compute(Addresses addresses, Scratch& scratch, const StopFlag& stop) const
    {
        using A = Arithmetic<T>;
        std::vector<std::byte*> inputs;
        for (std::size_t i = 0; i < m_operands.size(); ++i)
            inputs.push_back(input(i, addresses, scratch));
        const A arithmetic(m_form, m_types.front().dtype);
        const Stretch allKeys{0, m_sizes.keys};
        const std::int64_t keyElements = m_sizes.keys * m_sizes.dims;
        const std::int64_t valueElements = m_sizes.keys * m_sizes.valueDims;
        T* keys = A::room(scratch, keyElements);
        T* values = A::room(scratch, valueElements);
        Shared<T> shared{keys, values, nullptr, nullptr};
        if (m_isGradient) {
            shared.keyCotangents = A::room(scratch, keyElements);
            shared.valueCotangents = A::room(scratch, valueElements);
        }
        std::optional<Forward<T>> forward;
        std::optional<Backward<T>> backward;
        if (m_isGradient)
            backward.emplace(arithmetic, m_sizes, scratch);
        else
            forward.emplace(arithmetic, m_sizes, scratch);
        for (std::int64_t batch = 0; batch < m_sizes.batches(); ++batch) {
            const Visibility visibility = visibilityIn(batch, inputs);
            for (std::int64_t group = 0; group < m_sizes.groups && !stop.isSet(); ++group) {
                arithmetic.loadRounded(keys, sharedRows(inputs[1], m_types[1], batch, group), allKeys);
                arithmetic.loadRounded(values, sharedRows(inputs[2], m_types[2], batch, group), allKeys);
                if (!m_isGradient) {
                    for (std::int64_t share = 0; share < m_sizes.shares && !stop.isSet(); ++share)
                        forward->run(headAt(batch, group, share, inputs, addresses), shared, visibility, stop);
                    continue;
                }
                std::fill_n(shared.keyCotangents, keyElements, T{});
                std::fill_n(shared.valueCotangents, valueElements, T{});
                for (std::int64_t share = 0; share < m_sizes.shares && !stop.isSet(); ++share)
                    backward->run(headAt(batch, group, share, inputs, addresses), shared, visibility, stop);
                A::store(sharedRows(addresses[m_results[1].at()], m_resultTypes[1], batch, group), shared.keyCotangents, allKeys);
                A::store(
                    sharedRows(addresses[m_results[2].at()], m_resultTypes[2], batch, group), shared.valueCotangents, allKeys);
            }
        }
    }

    Visibility visibilityIn(std::int64_t batch, const std::vector<std::byte*>& inputs) const
    {
        const auto integers = [&](std::size_t operand) { return reinterpret_cast<const std::int32_t*>(inputs[operand]); };
        Visibility visibility;
        if (m_form.causal) {
            visibility.queryPositions = integers(m_places.positions);
            visibility.keyPositions = integers(m_places.positions + 1);
        }
        if (m_form.windowed)
            visibility.window = *integers(m_places.window);
        if (m_form.segmented) {
            visibility.querySegments = integers(m_places.segments) + batch * m_sizes.queries;
            visibility.keySegments = integers(m_places.segments + 1) + batch * m_sizes.keys;
        }
        return visibility;
    }

    /// The rows of one group of an array like the keys.
    Rows sharedRows(std::byte* data, const TensorType& type, std::int64_t batch, std::int64_t group) const
    {
        const std::int64_t width = type.shape.back();
        const std::int64_t first = (batch * m_sizes.keys * m_sizes.groups + group) * width;
        return {data + first * byteSize(type.dtype), type.dtype, width, m_sizes.groups * width};
    }

    Head headAt(std::int64_t batch, std::int64_t group, std::int64_t share, const std::vector<std::byte*>& inputs,
        Addresses addresses) const
    {
        const std::int64_t heads = m_sizes.groups * m_sizes.shares;
        const std::int64_t first = batch * m_sizes.queries * heads + group * m_sizes.shares + share;
        const auto rows = [&](std::byte* data, DType dtype, std::int64_t width) {
            return Rows{data + first * width * byteSize(dtype), dtype, width, heads * width};
        };
        const DType type = m_types.front().dtype;
        const DType wide = type == DType::F64 ? DType::F64 : DType::F32;
        const DType made = m_resultTypes.front().dtype;
        Head head;
        head.queries = rows(inputs[0], type, m_sizes.dims);
        if (!m_isGradient) {
            head.result = rows(addresses[m_results[0].at()], made, m_sizes.valueDims);
            head.statistics = rows(addresses[m_results[1].at()], wide, 1);
            if (m_places.before != m_places.end) {
                head.before = rows(inputs[m_places.before], made, m_sizes.valueDims);
                head.statisticsBefore = rows(inputs[m_places.before + 1], wide, 1);
            }
            return head;
        }
        head.result = rows(inputs[m_places.end], type, m_sizes.valueDims);
        head.statistics = rows(inputs[m_places.end + 1], wide, 1);
        head.cotangent = rows(inputs[m_places.end + 2], type, m_sizes.valueDims);
        head.queryCotangents = rows(addresses[m_results[0].at()], made, m_sizes.dims);
        return head;
    }

    std::vector<ValueId> m_operands;
    std::vector<ValueId> m_results;
    std::vector<TensorType> m_types; ///< of the operands
    std::vector<TensorType> m_resultTypes;
    AttentionForm m_form;
    AttentionPlaces m_places;
    AttentionSizes m_sizes;
    bool m_isGradient;
};

} // namespace

std::unique_ptr<const Kernel> makeAttentionKernel(const Function& function, OpId op)
{
    return std::make_unique<AttentionKernel>(function, function[op]);
}

} // namespace meshwright
