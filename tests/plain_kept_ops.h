// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/plain_evaluator.h"

/// What PlainEvaluator does with ops that are kept as the text has them.
namespace meshwright::tests {

inline std::vector<Array> PlainEvaluator::kept(const Op& op)
{
    const std::string_view name = baseName(op.as<OtherAttributes>().name);
    if (name == "sort")
        return sort(op);
    if (name == "reduce")
        return reduceMany(op);
    if (name == "reduce_window")
        return reduceWindows(op);
    if (name == "scatter")
        return scatterMany(op);
    if (name == "top_k")
        return top(op);
    if (name == "rng_bit_generator")
        return randomBits(op);
    if (name == "select_and_scatter")
        return {selectAndScatter(op)};
    if (name == "convolution")
        return {convolution(op)};
    if (name == "cholesky")
        return {cholesky(op)};
    if (name == "triangular_solve")
        return {triangularSolve(op)};
    if (name == "fft")
        return {fourier(op)};
    if (name.starts_with("batch_norm_"))
        return batchNorm(op);
    if (name == "attention" || name == "attention_grad")
        return attention(op);
    if (name == "partition_id")
        return {{{}, {static_cast<double>(m_position)}}};
    assert(!"this evaluator does not know the op");
    return {};
}

/// The block as a function of numbers; what it uses of the outside stays what it is.
inline PlainEvaluator::Combine PlainEvaluator::blockOf(const Op& op, std::size_t i)
{
    // Blocks of one op, which most are, without arrays of one number each.
    const Block& block = m_function[op.bodies[i]];
    const Op* first = block.ops.size() == 1 ? &m_function[block.ops.front()] : nullptr;
    if (first != nullptr && block.arguments.size() == 2 && first->operands == block.arguments
        && block.results == first->results) {
        static const std::map<OpKind, ReduceKind> kKinds = {{OpKind::Add, ReduceKind::Sum}, {OpKind::Maximum, ReduceKind::Max},
            {OpKind::Minimum, ReduceKind::Min}, {OpKind::Multiply, ReduceKind::Product}};
        if (first->kind == OpKind::Compare)
            return [direction = first->as<CompareAttributes>().direction](
                       const Numbers& n) { return Numbers{compare(direction, n[0], n[1]) ? 1.0 : 0.0}; };
        if (const auto kind = kKinds.find(first->kind); kind != kKinds.end())
            return [kind = kind->second](const Numbers& n) { return Numbers{combined(kind, n[0], n[1])}; };
    }
    std::vector<Array> captured;
    const std::size_t captures = op.as<OtherAttributes>().captures;
    for (std::size_t c = op.operands.size() - captures; c < op.operands.size(); ++c)
        captured.push_back(operand(op, c));
    return [this, block = op.bodies[i], captured](const Numbers& numbers) {
        std::vector<Array> arguments;
        for (const double number : numbers)
            arguments.push_back({{}, {number}});
        arguments.insert(arguments.end(), captured.begin(), captured.end());
        Numbers results;
        for (const Array& result : runBlock(block, arguments))
            results.push_back(result.scalar());
        return results;
    };
}

inline std::vector<Array> PlainEvaluator::sort(const Op& op)
{
    std::vector<Array> arrays = operandsOf(op);
    arrays.resize(op.results.size());
    const Shape& shape = arrays.front().shape;
    std::int64_t dim = *integerAt(op.as<OtherAttributes>().attributes, "dimension");
    dim += dim < 0 ? static_cast<std::int64_t>(shape.size()) : 0;
    const auto along = static_cast<std::size_t>(dim);
    const Combine comesFirst = blockOf(op, 0);
    Shape rows = shape;
    rows[along] = std::min<std::int64_t>(rows[along], 1);
    const std::vector<Array> given = arrays;
    forEach(rows, [&](Index index) {
        std::vector<std::size_t> places; // of the row's elements
        for (index[along] = 0; index[along] < shape[along]; ++index[along])
            places.push_back(offset(shape, index));
        std::vector<std::size_t> sorted = places;
        std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
            Numbers pair;
            for (const Array& array : given) {
                pair.push_back(array.data[a]);
                pair.push_back(array.data[b]);
            }
            return comesFirst(pair).front() != 0.0;
        });
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            for (std::size_t k = 0; k < places.size(); ++k)
                arrays[i].data[places[k]] = given[i].data[sorted[k]];
        }
    });
    return arrays;
}

inline std::vector<Array> PlainEvaluator::reduceMany(const Op& op)
{
    const std::size_t count = op.results.size();
    const Shape& shape = operand(op, 0).shape;
    const auto dims = *dimsAt(op.as<OtherAttributes>().attributes, "dimensions", shape.size());
    const Combine combine = blockOf(op, 0);
    std::vector<Array> results;
    for (std::size_t i = 0; i < count; ++i) {
        results.push_back(emptyResult(op, i));
        std::fill(results[i].data.begin(), results[i].data.end(), operand(op, count + i).scalar());
    }
    forEach(shape, [&](const Index& index) {
        Index to;
        for (std::size_t dim = 0; dim < index.size(); ++dim) {
            if (!isIn(dims, dim))
                to.push_back(index[dim]);
        }
        const std::size_t at = offset(results[0].shape, to);
        Numbers numbers;
        for (const Array& result : results)
            numbers.push_back(result.data[at]);
        for (std::size_t i = 0; i < count; ++i)
            numbers.push_back(operand(op, i).data[offset(shape, index)]);
        const Numbers next = combine(numbers);
        for (std::size_t i = 0; i < count; ++i)
            results[i].data[at] = next[i];
    });
    return results;
}

/// The element of an array that a window's element is; -1s: padding.
inline std::vector<std::int64_t> windowElement(const std::vector<WindowDim>& windows, const Shape& shape,
    const std::vector<std::int64_t>& window, const std::vector<std::int64_t>& inside)
{
    std::vector<std::int64_t> element;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        const WindowDim& w = windows[dim];
        const std::int64_t at = window[dim] * w.stride + inside[dim] * w.windowDilation - w.low;
        const bool isElement = at >= 0 && at % w.baseDilation == 0 && at / w.baseDilation < shape[dim];
        element.push_back(isElement ? at / w.baseDilation : -1);
    }
    return element;
}

inline std::vector<Array> PlainEvaluator::reduceWindows(const Op& op)
{
    const std::size_t count = op.results.size();
    const Shape& shape = operand(op, 0).shape;
    const auto windows = *windowDims(op.as<OtherAttributes>().attributes, shape.size());
    Shape sizes;
    for (const WindowDim& window : windows)
        sizes.push_back(window.size);
    const Combine combine = blockOf(op, 0);
    std::vector<Array> results;
    for (std::size_t i = 0; i < count; ++i)
        results.push_back(emptyResult(op, i));
    std::size_t at = 0;
    forEach(results[0].shape, [&](const Index& window) {
        Numbers numbers;
        for (std::size_t i = 0; i < count; ++i)
            numbers.push_back(operand(op, count + i).scalar());
        forEach(sizes, [&](const Index& inside) {
            const Index element = windowElement(windows, shape, window, inside);
            const bool isPadding = !isInside(shape, element);
            Numbers both = numbers;
            for (std::size_t i = 0; i < count; ++i)
                both.push_back(isPadding ? operand(op, count + i).scalar() : operand(op, i).data[offset(shape, element)]);
            numbers = combine(both);
        });
        for (std::size_t i = 0; i < count; ++i)
            results[i].data[at] = numbers[i];
        ++at;
    });
    return results;
}

inline Array PlainEvaluator::selectAndScatter(const Op& op)
{
    const Array& x = operand(op, 0);
    const Array& source = operand(op, 1);
    const auto windows = *windowDims(op.as<OtherAttributes>().attributes, x.shape.size());
    Shape sizes;
    for (const WindowDim& window : windows)
        sizes.push_back(window.size);
    const Combine stays = blockOf(op, 0);
    const Combine scatter = blockOf(op, 1);
    Array result = emptyResult(op);
    std::fill(result.data.begin(), result.data.end(), operand(op, 2).scalar());
    std::size_t at = 0;
    forEach(source.shape, [&](const Index& window) {
        std::int64_t chosen = -1;
        forEach(sizes, [&](const Index& inside) {
            const Index element = windowElement(windows, x.shape, window, inside);
            if (!isInside(x.shape, element))
                return;
            const std::size_t place = offset(x.shape, element);
            if (chosen < 0 || stays({x.data[static_cast<std::size_t>(chosen)], x.data[place]}).front() == 0.0)
                chosen = static_cast<std::int64_t>(place);
        });
        const double given = source.data[at++];
        if (chosen >= 0) {
            double& value = result.data[static_cast<std::size_t>(chosen)];
            value = scatter({value, given}).front();
        }
    });
    return result;
}

inline Array PlainEvaluator::convolution(const Op& op) const
{
    const KeptAttributes& attributes = op.as<OtherAttributes>().attributes;
    const ConvolutionDims dims = *convolutionDims(attributes);
    const Array& x = operand(op, 0);
    const Array& kernel = operand(op, 1);
    Array result = emptyResult(op);
    const std::size_t rank = dims.input.spatial.size();
    const auto numberAt = [&](const char* name, std::size_t i, std::int64_t otherwise) {
        const auto numbers = integersAt(attributes, name);
        return numbers.empty() ? otherwise : numbers[i];
    };
    Shape sizes; // of the kernel, then the input features of a group
    for (std::size_t i = 0; i < rank; ++i)
        sizes.push_back(kernel.shape[dims.kernel.spatial[i]]);
    sizes.push_back(kernel.shape[dims.kernel.outer]);
    const std::int64_t features = kernel.shape[dims.kernel.inner];
    const std::int64_t batches = x.shape[dims.input.outer] / dims.batchGroups;
    std::size_t at = 0;
    forEach(result.shape, [&](const Index& index) {
        const std::int64_t feature = index[dims.result.inner];
        const std::int64_t batchGroup = feature / (features / dims.batchGroups);
        const std::int64_t featureGroup = feature / (features / dims.featureGroups);
        double sum = 0.0;
        forEach(sizes, [&](const Index& inside) {
            Index from(x.shape.size());
            Index by(kernel.shape.size());
            from[dims.input.outer] = index[dims.result.outer] + (dims.batchGroups > 1 ? batchGroup * batches : 0);
            from[dims.input.inner] = inside.back() + (dims.featureGroups > 1 ? featureGroup * sizes.back() : 0);
            by[dims.kernel.inner] = feature;
            by[dims.kernel.outer] = inside.back();
            for (std::size_t i = 0; i < rank; ++i) {
                const bool isReversed = numberAt("window_reversal", i, 0) != 0;
                const std::int64_t place = index[dims.result.spatial[i]] * numberAt("window_strides", i, 1)
                    + inside[i] * numberAt("rhs_dilation", i, 1) - numberAt("padding", 2 * i, 0);
                const std::int64_t dilation = numberAt("lhs_dilation", i, 1);
                from[dims.input.spatial[i]] = place >= 0 && place % dilation == 0 ? place / dilation : -1;
                by[dims.kernel.spatial[i]] = isReversed ? sizes[i] - 1 - inside[i] : inside[i];
            }
            if (isInside(x.shape, from))
                sum += x.data[offset(x.shape, from)] * kernel.data[offset(kernel.shape, by)];
        });
        result.data[at++] = sum;
    });
    return result;
}

/// The largest of the last dimension, of equal ones the first, and where they were.
inline std::vector<Array> PlainEvaluator::top(const Op& op) const
{
    const Array& x = operand(op, 0);
    std::vector<Array> results{emptyResult(op, 0), emptyResult(op, 1)};
    const auto count = static_cast<std::size_t>(results[0].shape.back());
    const auto length = static_cast<std::size_t>(x.shape.back());
    for (std::size_t row = 0; count > 0 && row < results[0].data.size() / count; ++row) {
        std::vector<std::size_t> places(length);
        std::iota(places.begin(), places.end(), std::size_t{0});
        std::stable_sort(places.begin(), places.end(),
            [&](std::size_t a, std::size_t b) { return x.data[row * length + a] > x.data[row * length + b]; });
        for (std::size_t i = 0; i < count; ++i) {
            results[0].data[row * count + i] = x.data[row * length + places[i]];
            results[1].data[row * count + i] = static_cast<double>(places[i]);
        }
    }
    return results;
}

/// Several arrays at once, or one with a block of its own.
inline std::vector<Array> PlainEvaluator::scatterMany(const Op& op)
{
    const std::size_t count = op.results.size();
    const IndexingDims dims = *indexingDims(op.as<OtherAttributes>().attributes, true);
    std::vector<Array> results = operandsOf(op);
    results.resize(count);
    const Combine combine = blockOf(op, 0);
    const Shape& updates = operand(op, count + 1).shape;
    std::size_t at = 0;
    forEach(updates, [&](const Index& index) {
        auto [target, inside] = place(dims, results[0].shape.size(), operand(op, count), index);
        for (std::size_t dim = 0; dim < target.size(); ++dim)
            target[dim] += inside[dim];
        if (isInside(results[0].shape, target)) {
            const std::size_t to = offset(results[0].shape, target);
            Numbers numbers;
            for (const Array& result : results)
                numbers.push_back(result.data[to]);
            for (std::size_t i = 0; i < count; ++i)
                numbers.push_back(operand(op, count + 1 + i).data[at]);
            const Numbers next = combine(numbers);
            for (std::size_t i = 0; i < count; ++i)
                results[i].data[to] = next[i];
        }
        ++at;
    });
    return results;
}

/// All blocks in their order, then their words as they lie in the array. Counters stay below 2^53.
inline std::vector<Array> PlainEvaluator::randomBits(const Op& op) const
{
    const auto halves = [](double number) {
        const auto wide = static_cast<std::uint64_t>(number);
        return RandomKey{static_cast<std::uint32_t>(wide), static_cast<std::uint32_t>(wide >> 32)};
    };
    const bool isThreefry
        = findAttribute(op.as<OtherAttributes>().attributes, "rng_algorithm")->text.find("THREE_FRY") != std::string::npos;
    Array state = operand(op, 0);
    Array result = emptyResult(op, 1);
    const RandomKey key = halves(state.data[0]);
    std::vector<std::uint32_t> words;
    if (isThreefry) { // 32 bits: the array in two halves, which lie side by side along a new dimension behind the one that is cut
        Shape half = result.shape;
        std::size_t cut = 0;
        while (cut < half.size() && half[cut] % 2 != 0)
            ++cut;
        if (cut == half.size() && !half.empty())
            cut = static_cast<std::size_t>(std::max_element(half.begin(), half.end()) - half.begin());
        if (!half.empty())
            half[cut] = (half[cut] + 1) / 2;
        std::vector<RandomKey> blocks;
        for (std::int64_t i = 0; i < elementCount(half); ++i)
            blocks.push_back(threefry2x32(key, halves(state.data[1]++)));
        forEach(result.shape, [&](Index index) {
            const std::size_t word = index.empty() ? 0 : static_cast<std::size_t>(index[cut] % 2);
            if (!index.empty())
                index[cut] /= 2;
            words.push_back(blocks[offset(half, index)][word]);
        });
    } else {
        const bool isLong = state.data.size() == 3;
        while (words.size() < result.data.size()) {
            const RandomKey low = halves(state.data[1]++);
            const RandomKey high = halves(state.data[isLong ? 2 : 0]);
            const auto block = philox4x32(key, {low[0], low[1], high[0], high[1]});
            words.insert(words.end(), block.begin(), block.end());
        }
    }
    std::copy_n(words.begin(), result.data.size(), result.data.begin());
    return {state, result};
}

/// Matrices in the last two dimensions: l l^T = a, or u^T u = a.
inline Array PlainEvaluator::cholesky(const Op& op) const
{
    const bool isLower = integerAt(op.as<OtherAttributes>().attributes, "lower").value_or(0) != 0;
    const Array& a = operand(op, 0);
    Array result = emptyResult(op);
    const auto n = static_cast<std::size_t>(a.shape.back());
    for (std::size_t start = 0; start < a.data.size(); start += n * n) {
        std::vector<double> l(n * n);
        for (std::size_t row = 0; row < n; ++row) {
            for (std::size_t column = 0; column <= row; ++column) {
                double sum = a.data[start + (isLower ? row * n + column : column * n + row)];
                for (std::size_t k = 0; k < column; ++k)
                    sum -= l[row * n + k] * l[column * n + k];
                l[row * n + column] = row == column ? std::sqrt(sum) : sum / l[column * n + column];
                result.data[start + (isLower ? row * n + column : column * n + row)] = l[row * n + column];
            }
        }
    }
    return result;
}

/// op(a) x = b, or x op(a) = b, by Gauss's elimination of the triangle that is meant.
inline Array PlainEvaluator::triangularSolve(const Op& op) const
{
    const KeptAttributes& attributes = op.as<OtherAttributes>().attributes;
    const bool isLeft = integerAt(attributes, "left_side").value_or(1) != 0;
    const bool isLower = integerAt(attributes, "lower").value_or(0) != 0;
    const bool isUnit = integerAt(attributes, "unit_diagonal").value_or(0) != 0;
    const KeptAttribute* how = findAttribute(attributes, "transpose_a");
    const bool isTransposed = how != nullptr && how->text.find("NO_TRANSPOSE") == std::string::npos;
    const Array& a = operand(op, 0);
    const Array& b = operand(op, 1);
    Array x = emptyResult(op);
    const auto n = static_cast<std::size_t>(a.shape.back());
    const auto rows = static_cast<std::size_t>(b.shape[b.shape.size() - 2]);
    const auto columns = static_cast<std::size_t>(b.shape.back());
    for (std::size_t batch = 0; batch * n * n < a.data.size(); ++batch) {
        // From the right: x op(a) = b is op(a)^T x^T = b^T.
        const auto entry = [&](std::size_t row, std::size_t column) {
            if (isTransposed == isLeft)
                std::swap(row, column);
            if (row == column && isUnit)
                return 1.0;
            return (isLower ? column <= row : row <= column) ? a.data[batch * n * n + row * n + column] : 0.0;
        };
        const bool isForward = isLower != (isTransposed == isLeft);
        for (std::size_t other = 0; other < (isLeft ? columns : rows); ++other) {
            const auto at
                = [&](std::size_t i) { return batch * rows * columns + (isLeft ? i * columns + other : other * columns + i); };
            for (std::size_t step = 0; step < n; ++step) {
                const std::size_t i = isForward ? step : n - 1 - step;
                double sum = b.data[at(i)];
                for (std::size_t before = 0; before < step; ++before) {
                    const std::size_t k = isForward ? before : n - 1 - before;
                    sum -= entry(i, k) * x.data[at(k)];
                }
                x.data[at(i)] = sum / entry(i, i);
            }
        }
    }
    return x;
}

/// FFT and IFFT over the last dimensions, by their definition.
inline Array PlainEvaluator::fourier(const Op& op) const
{
    const KeptAttributes& attributes = op.as<OtherAttributes>().attributes;
    const bool isInverse = findAttribute(attributes, "fft_type")->text.find("IFFT") != std::string::npos;
    const std::size_t transformed = integersAt(attributes, "fft_length").size();
    const Array& x = operand(op, 0);
    using Complex = std::complex<double>;
    std::vector<Complex> numbers;
    for (std::size_t i = 0; i < x.data.size(); ++i)
        numbers.emplace_back(x.data[i], x.imaginary[i]);
    std::size_t stride = 1;
    for (std::size_t back = 0; back < transformed; ++back) {
        const auto n = static_cast<std::size_t>(x.shape[x.shape.size() - 1 - back]);
        const std::vector<Complex> given = numbers;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const std::size_t k = i / stride % n;
            const std::size_t first = i - k * stride;
            numbers[i] = 0.0;
            for (std::size_t j = 0; j < n; ++j) {
                const double angle = 2.0 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
                numbers[i] += given[first + j * stride] * std::polar(1.0, isInverse ? angle : -angle);
            }
            if (isInverse)
                numbers[i] /= static_cast<double>(n);
        }
        stride *= n;
    }
    Array result{x.shape, {}, {}};
    for (const Complex& number : numbers) {
        result.data.push_back(number.real());
        result.imaginary.push_back(number.imag());
    }
    return result;
}

/// The three batch norms as StableHLO's specification writes them, a feature at a time.
inline std::vector<Array> PlainEvaluator::batchNorm(const Op& op) const
{
    const auto& other = op.as<OtherAttributes>();
    const bool isTraining = baseName(other.name) == "batch_norm_training";
    const bool isGradient = baseName(other.name) == "batch_norm_grad";
    const auto along = static_cast<std::size_t>(*integerAt(other.attributes, "feature_index"));
    const double epsilon = std::stod(findAttribute(other.attributes, "epsilon")->text);
    const Array& x = operand(op, 0);
    std::vector<Array> results;
    for (std::size_t i = 0; i < op.results.size(); ++i)
        results.push_back(emptyResult(op, i));
    for (std::size_t feature = 0; feature < operand(op, 1).data.size(); ++feature) {
        std::vector<std::size_t> places;
        forEach(x.shape, [&](const Index& index) {
            if (index[along] == static_cast<std::int64_t>(feature))
                places.push_back(offset(x.shape, index));
        });
        const auto count = static_cast<double>(places.size());
        const auto sum = [&](const auto& term) {
            double all = 0.0;
            for (const std::size_t place : places)
                all += term(place);
            return all;
        };
        const double mean
            = isTraining ? sum([&](std::size_t i) { return x.data[i]; }) / count : operand(op, isGradient ? 2 : 3).data[feature];
        const auto centered = [&](std::size_t i) { return x.data[i] - mean; };
        const double variance = isTraining ? sum([&](std::size_t i) { return centered(i) * centered(i); }) / count
                                           : operand(op, isGradient ? 3 : 4).data[feature];
        const double deviation = std::sqrt(variance + epsilon);
        const double scale = operand(op, 1).data[feature];
        if (!isGradient) {
            for (const std::size_t i : places)
                results[0].data[i] = scale * centered(i) / deviation + operand(op, 2).data[feature];
            if (isTraining) {
                results[1].data[feature] = mean;
                results[2].data[feature] = variance;
            }
            continue;
        }
        const Array& gradient = operand(op, 4);
        const double ofOffset = sum([&](std::size_t i) { return gradient.data[i]; });
        const double product = sum([&](std::size_t i) { return gradient.data[i] * centered(i); });
        for (const std::size_t i : places)
            results[0].data[i] = scale / deviation / count
                * (count * gradient.data[i] - ofOffset - centered(i) * product / (variance + epsilon));
        results[1].data[feature] = product / deviation;
        results[2].data[feature] = ofOffset;
    }
    return results;
}

/// Fused attention and its derivative, from whole rows of scores. The derivative needs neither the result nor the statistics that it is given.
inline std::vector<Array> PlainEvaluator::attention(const Op& op) const
{
    const KeptAttributes& attributes = op.as<OtherAttributes>().attributes;
    const auto number = [&](const char* name) { return std::stod(findAttribute(attributes, name)->text); };
    const bool causal = integerAt(attributes, "causal") == 1;
    const bool windowed = integerAt(attributes, "windowed") == 1;
    const bool segmented = integerAt(attributes, "segmented") == 1;
    const double scale = number("scale");
    const double cap = number("softcap");
    const bool isGradient = baseName(op.as<OtherAttributes>().name) == "attention_grad";
    std::size_t next = 3;
    const auto take = [&](bool has, std::size_t count) { return std::exchange(next, next + (has ? count : 0)); };
    const std::size_t positions = take(causal, 2);
    const std::size_t window = take(windowed, 1);
    const std::size_t segments = take(segmented, 2);
    const Array& q = operand(op, 0);
    const Array& k = operand(op, 1);
    const Array& v = operand(op, 2);
    const auto last
        = [](const Array& array, std::size_t i) { return static_cast<std::size_t>(array.shape[array.shape.size() - i]); };
    const std::size_t queries = last(q, 4);
    const std::size_t groups = last(q, 3);
    const std::size_t shares = last(q, 2);
    const std::size_t dims = last(q, 1);
    const std::size_t keys = last(k, 3);
    const std::size_t width = last(v, 1);
    const std::size_t rows = q.data.size() / std::max<std::size_t>(1, dims); // all rows of scores
    std::vector<Array> results;
    for (std::size_t i = 0; i < op.results.size(); ++i)
        results.push_back(emptyResult(op, i));
    for (std::size_t row = 0; row < rows; ++row) { // [batch, queries, groups, shares]
        const std::size_t group = row / shares % groups;
        const std::size_t query = row / (shares * groups) % queries;
        const std::size_t batch = row / (shares * groups * queries);
        const auto keyRow = [&](std::size_t key) { return (batch * keys + key) * groups + group; };
        const auto sees = [&](std::size_t key) {
            if (segmented
                && operand(op, segments).data[batch * queries + query] != operand(op, segments + 1).data[batch * keys + key])
                return false;
            if (!causal)
                return true;
            const double distance = operand(op, positions).data[query] - operand(op, positions + 1).data[key];
            return distance >= 0.0 && (!windowed || distance < operand(op, window).scalar());
        };
        std::vector<double> scores(keys, -std::numeric_limits<double>::infinity());
        for (std::size_t key = 0; key < keys; ++key) {
            double product = 0.0;
            for (std::size_t i = 0; i < dims; ++i)
                product += q.data[row * dims + i] * k.data[keyRow(key) * dims + i];
            if (sees(key))
                scores[key] = cap > 0.0 ? cap * std::tanh(scale * product / cap) : scale * product;
        }
        const double largest = keys == 0 ? 0.0 : *std::max_element(scores.begin(), scores.end());
        std::vector<double> weights(keys);
        double sum = 0.0;
        for (std::size_t key = 0; key < keys; ++key) {
            weights[key] = std::isinf(scores[key]) ? 0.0 : std::exp(scores[key] - largest);
            sum += weights[key];
        }
        for (double& weight : weights)
            weight = sum > 0.0 ? weight / sum : 0.0;
        if (!isGradient) {
            for (std::size_t key = 0; key < keys; ++key) {
                for (std::size_t i = 0; i < width; ++i)
                    results[0].data[row * width + i] += weights[key] * v.data[keyRow(key) * width + i];
            }
            results[1].data[row] = sum > 0.0 ? largest + std::log(sum) : -std::numeric_limits<double>::infinity();
            continue;
        }
        const Array& given = operand(op, next + 2);
        std::vector<double> changes(keys); // of the loss, by weight
        double mean = 0.0;
        for (std::size_t key = 0; key < keys; ++key) {
            for (std::size_t i = 0; i < width; ++i) {
                changes[key] += given.data[row * width + i] * v.data[keyRow(key) * width + i];
                results[2].data[keyRow(key) * width + i] += weights[key] * given.data[row * width + i];
            }
            mean += weights[key] * changes[key];
        }
        for (std::size_t key = 0; key < keys; ++key) {
            if (weights[key] == 0.0)
                continue;
            const double flat = cap > 0.0 ? 1.0 - scores[key] / cap * scores[key] / cap : 1.0;
            const double change = weights[key] * (changes[key] - mean) * flat * scale;
            for (std::size_t i = 0; i < dims; ++i) {
                results[0].data[row * dims + i] += change * k.data[keyRow(key) * dims + i];
                results[1].data[keyRow(key) * dims + i] += change * q.data[row * dims + i];
            }
        }
    }
    return results;
}

} // namespace meshwright::tests
