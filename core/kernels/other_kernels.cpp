// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/attention_kernel.h"
#include "core/kernels/fft_kernel.h"
#include "core/kernels/host_array.h"
#include "core/kernels/kernel.h"
#include "core/kernels/matrix_kernel.h"
#include "core/kernels/scalar_block.h"
#include "core/kernels/strides.h"
#include "core/program/convolution_windows.h"
#include "core/program/other_op.h"
#include "core/program/placement.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <numeric>
#include <unordered_map>

// Ops that are kept as the text has them, and run all the same. They are written for plainness: what a training step spends its time in has
// kernels of its own.
// Source of what they mean: openxla/stablehlo, docs/spec.md.
namespace meshwright {

namespace {

/// Calls `visit` with every index of a box, in order; stops when it is told to.
template <typename Visit>
void forEachIndex(const Shape& box, const StopFlag& stop, const Visit& visit)
{
    if (std::find(box.begin(), box.end(), 0) != box.end())
        return;
    Shape index(box.size(), 0);
    for (std::uint64_t count = 0;; ++count) {
        if (count % 256 == 0 && stop.isSet())
            return;
        visit(static_cast<const Shape&>(index));
        std::size_t dim = box.size();
        while (dim > 0 && ++index[dim - 1] == box[dim - 1])
            index[--dim] = 0;
        if (dim == 0)
            return;
    }
}

/// An operand's elements, in memory of their own where a result lies in the same place.
class Input {
public:
    Input(Addresses addresses, ValueId value, std::span<const ValueId> results, std::int64_t bytes)
        : m_data(addresses[value.at()])
    {
        const bool isShared = std::any_of(
            results.begin(), results.end(), [&](ValueId result) { return addresses[result.at()] == addresses[value.at()]; });
        if (isShared && bytes > 0) {
            m_copy.assign(m_data, m_data + bytes);
            m_data = m_copy.data();
        }
    }
    const std::byte* data() const { return m_data; }

private:
    const std::byte* m_data;
    std::vector<std::byte> m_copy;
};

/// What all kernels of this file have.
class OtherKernel : public Kernel {
public:
    OtherKernel(const Function& function, const Op& op)
        : m_operands(op.operands)
        , m_results(op.results)
    {
        for (const ValueId operand : m_operands)
            m_types.push_back(function[operand].type);
        for (const ValueId result : m_results)
            m_resultTypes.push_back(function[result].type);
    }

protected:
    std::vector<Input> inputs(Addresses addresses) const
    {
        std::vector<Input> all;
        for (std::size_t i = 0; i < m_operands.size(); ++i)
            all.emplace_back(addresses, m_operands[i], m_results, m_types[i].bytes());
        return all;
    }

    static std::int64_t offset(const Shape& index, const Shape& strides)
    {
        return std::inner_product(index.begin(), index.end(), strides.begin(), std::int64_t{0});
    }

    std::vector<ValueId> m_operands;
    std::vector<ValueId> m_results;
    std::vector<TensorType> m_types; ///< of the operands
    std::vector<TensorType> m_resultTypes;
};

/// Several arrays, sorted along one dimension by a comparator of an element of each. Always stable.
class SortKernel final : public OtherKernel {
public:
    SortKernel(const Function& function, const Op& op, ScalarBlock comparator)
        : OtherKernel(function, op)
        , m_comparator(std::move(comparator))
    {
        const auto rank = static_cast<std::int64_t>(m_types.front().shape.size());
        const std::int64_t dim = *integerAt(op.as<OtherAttributes>().attributes, "dimension");
        m_dim = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        const std::vector<Input> from = inputs(addresses);
        const Shape& shape = m_types.front().shape;
        const Shape strides = stridesOf(shape);
        Shape lines = shape;
        lines[m_dim] = std::min<std::int64_t>(shape[m_dim], 1);
        std::vector<std::uint64_t> memory = m_comparator.memory();
        std::vector<std::int64_t> order(static_cast<std::size_t>(shape[m_dim]));
        forEachIndex(lines, stop, [&](const Shape& index) {
            const std::int64_t first = offset(index, strides);
            const auto at = [&](std::size_t i, std::int64_t element) {
                return (first + element * strides[m_dim]) * byteSize(m_types[i].dtype);
            };
            std::iota(order.begin(), order.end(), std::int64_t{0});
            std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
                for (std::size_t i = 0; i < from.size(); ++i) {
                    m_comparator.load(memory, 2 * i, from[i].data() + at(i, a));
                    m_comparator.load(memory, 2 * i + 1, from[i].data() + at(i, b));
                }
                m_comparator.run(memory);
                return m_comparator.truth(memory, 0);
            });
            for (std::size_t i = 0; i < from.size(); ++i) {
                for (std::size_t place = 0; place < order.size(); ++place)
                    std::memcpy(addresses[m_results[i].at()] + at(i, static_cast<std::int64_t>(place)),
                        from[i].data() + at(i, order[place]), static_cast<std::size_t>(byteSize(m_types[i].dtype)));
            }
        });
    }

private:
    ScalarBlock m_comparator;
    std::size_t m_dim = 0;
};

/// Several arrays reduced together (argmax), or windows of arrays: for each result the elements of a box, one after the other.
class WindowReduceKernel final : public OtherKernel {
public:
    WindowReduceKernel(const Function& function, const Op& op, ScalarBlock reduction)
        : OtherKernel(function, op)
        , m_reduction(std::move(reduction))
    {
        const auto& attributes = op.as<OtherAttributes>().attributes;
        const Shape& shape = m_types.front().shape;
        if (op.kind == OpKind::ReduceWindow) {
            m_windows = *windowDims(attributes, shape.size());
            m_indexOf.resize(shape.size());
            std::iota(m_indexOf.begin(), m_indexOf.end(), std::size_t{0});
            return;
        }
        // A reduction is a window of all elements along its dimensions, which the result lacks.
        const auto dims = *dimsAt(attributes, "dimensions", shape.size());
        std::size_t kept = 0;
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            const bool isReduced = std::find(dims.begin(), dims.end(), dim) != dims.end();
            m_windows.push_back({});
            m_windows.back().size = isReduced ? shape[dim] : 1;
            m_indexOf.push_back(isReduced ? kNone : kept++);
        }
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        const std::size_t count = m_results.size();
        const std::vector<Input> from = inputs(addresses);
        const Shape& shape = m_types.front().shape;
        const Shape strides = stridesOf(shape);
        const Shape resultStrides = stridesOf(m_resultTypes.front().shape);
        Shape window;
        for (const WindowDim& dim : m_windows)
            window.push_back(dim.size);
        std::vector<std::uint64_t> memory = m_reduction.memory();
        forEachIndex(m_resultTypes.front().shape, stop, [&](const Shape& index) {
            for (std::size_t i = 0; i < count; ++i)
                m_reduction.load(memory, i, from[count + i].data());
            bool isFirst = true;
            forEachIndex(window, stop, [&](const Shape& inWindow) {
                std::int64_t element = 0;
                bool isPadding = false;
                for (std::size_t dim = 0; dim < shape.size(); ++dim) {
                    const std::int64_t start = m_indexOf[dim] == kNone ? 0 : index[m_indexOf[dim]] * m_windows[dim].stride;
                    const std::int64_t at = start + inWindow[dim] * m_windows[dim].windowDilation - m_windows[dim].low;
                    isPadding = isPadding || at < 0 || at % m_windows[dim].baseDilation != 0
                        || at / m_windows[dim].baseDilation >= shape[dim];
                    element += at / m_windows[dim].baseDilation * strides[dim];
                }
                for (std::size_t i = 0; i < count; ++i) {
                    if (!isFirst)
                        m_reduction.feedBack(memory, i, i);
                }
                for (std::size_t i = 0; i < count; ++i) // padded is what the reduction begins with, as StableHLO has it
                    m_reduction.load(memory, count + i,
                        isPadding ? from[count + i].data() : from[i].data() + element * byteSize(m_types[i].dtype));
                m_reduction.run(memory);
                isFirst = false;
            });
            const std::int64_t at = offset(index, resultStrides);
            for (std::size_t i = 0; i < count; ++i) {
                const std::int64_t width = byteSize(m_resultTypes[i].dtype);
                std::byte* to = addresses[m_results[i].at()] + at * width;
                if (isFirst)
                    std::memcpy(to, from[count + i].data(), static_cast<std::size_t>(width));
                else
                    m_reduction.store(memory, i, to);
            }
        });
    }

private:
    static constexpr auto kNone = static_cast<std::size_t>(-1);

    ScalarBlock m_reduction;
    std::vector<WindowDim> m_windows;
    std::vector<std::size_t> m_indexOf; ///< the dimension of the result that each of the operand's is
};

/// For each window the element that the first block selects gets the window's source, combined by the second block.
class SelectAndScatterKernel final : public OtherKernel {
public:
    SelectAndScatterKernel(const Function& function, const Op& op, ScalarBlock select, ScalarBlock scatter)
        : OtherKernel(function, op)
        , m_select(std::move(select))
        , m_scatter(std::move(scatter))
        , m_windows(*windowDims(op.as<OtherAttributes>().attributes, m_types.front().shape.size()))
    {
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        const std::vector<Input> from = inputs(addresses);
        const Shape& shape = m_types[0].shape;
        const Shape strides = stridesOf(shape);
        const Shape sourceStrides = stridesOf(m_types[1].shape);
        const std::int64_t width = byteSize(m_types[0].dtype);
        std::byte* out = addresses[m_results.front().at()];
        for (std::int64_t i = 0; i < m_types[0].elements(); ++i)
            std::memcpy(out + i * width, from[2].data(), static_cast<std::size_t>(width));
        Shape window;
        for (const WindowDim& dim : m_windows)
            window.push_back(dim.size);
        std::vector<std::uint64_t> selecting = m_select.memory();
        std::vector<std::uint64_t> scattering = m_scatter.memory();
        forEachIndex(m_types[1].shape, stop, [&](const Shape& index) {
            std::int64_t chosen = -1;
            forEachIndex(window, stop, [&](const Shape& inWindow) {
                std::int64_t element = 0;
                for (std::size_t dim = 0; dim < shape.size(); ++dim) {
                    const std::int64_t at = index[dim] * m_windows[dim].stride + inWindow[dim] - m_windows[dim].low;
                    if (at < 0 || at >= shape[dim])
                        return;
                    element += at * strides[dim];
                }
                if (chosen >= 0) {
                    m_select.load(selecting, 0, from[0].data() + chosen * width);
                    m_select.load(selecting, 1, from[0].data() + element * width);
                    m_select.run(selecting);
                }
                if (chosen < 0 || !m_select.truth(selecting, 0))
                    chosen = element;
            });
            if (chosen < 0)
                return;
            m_scatter.load(scattering, 0, out + chosen * width);
            m_scatter.load(scattering, 1, from[1].data() + offset(index, sourceStrides) * width);
            m_scatter.run(scattering);
            m_scatter.store(scattering, 0, out + chosen * width);
        });
    }

private:
    ScalarBlock m_select;
    ScalarBlock m_scatter;
    std::vector<WindowDim> m_windows;
};

/// Products are summed in double precision (64 bits for integers) and rounded once.
class ConvolutionKernel final : public OtherKernel {
public:
    ConvolutionKernel(const Function& function, const Op& op)
        : OtherKernel(function, op)
        , m_dims(*convolutionDims(op.as<OtherAttributes>().attributes))
        , m_windows(*convolutionWindows(op.as<OtherAttributes>().attributes, m_dims, m_types[1].shape))
    {
        const auto reversed = integersAt(op.as<OtherAttributes>().attributes, "window_reversal");
        for (std::size_t i = 0; i < m_windows.size(); ++i)
            m_reversed.push_back(i < reversed.size() && reversed[i] != 0);
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        const std::vector<Input> from = inputs(addresses);
        if (isFloating(m_resultTypes.front().dtype))
            convolve<double>(asDoubles(from[0], 0), asDoubles(from[1], 1), addresses, stop);
        else
            convolve<std::int64_t>(asIntegers(from[0], 0), asIntegers(from[1], 1), addresses, stop);
    }

private:
    std::vector<double> asDoubles(const Input& input, std::size_t operand) const
    {
        return HostArray::fromBytes(m_types[operand], bytesOf(input, operand)).values();
    }
    std::vector<std::int64_t> asIntegers(const Input& input, std::size_t operand) const
    {
        const HostArray wide = HostArray::fromBytes(m_types[operand], bytesOf(input, operand)).converted(DType::S64);
        const auto elements = wide.as<std::int64_t>();
        return {elements.begin(), elements.end()};
    }
    std::span<const std::byte> bytesOf(const Input& input, std::size_t operand) const
    {
        return {input.data(), static_cast<std::size_t>(m_types[operand].bytes())};
    }

    template <typename T>
    void convolve(const std::vector<T>& input, const std::vector<T>& kernel, Addresses addresses, const StopFlag& stop) const
    {
        const Shape& inputShape = m_types[0].shape;
        const Shape& kernelShape = m_types[1].shape;
        const Shape inputStrides = stridesOf(inputShape);
        const Shape kernelStrides = stridesOf(kernelShape);
        const std::int64_t features = kernelShape[m_dims.kernel.outer]; // of one group
        const std::int64_t outputs = kernelShape[m_dims.kernel.inner];
        const std::int64_t batches = inputShape[m_dims.input.outer] / m_dims.batchGroups;
        Shape window;
        for (const WindowDim& dim : m_windows)
            window.push_back(dim.size);
        std::vector<T> results;
        results.reserve(static_cast<std::size_t>(m_resultTypes.front().elements()));
        forEachIndex(m_resultTypes.front().shape, stop, [&](const Shape& index) {
            const std::int64_t output = index[m_dims.result.inner];
            const std::int64_t featureGroup = output / (outputs / m_dims.featureGroups);
            const std::int64_t batchGroup = output / (outputs / m_dims.batchGroups);
            const std::int64_t batch = index[m_dims.result.outer] + (m_dims.batchGroups > 1 ? batchGroup * batches : 0);
            const std::int64_t firstFeature = m_dims.featureGroups > 1 ? featureGroup * features : 0;
            T sum = 0;
            forEachIndex(window, stop, [&](const Shape& inWindow) {
                std::int64_t a = batch * inputStrides[m_dims.input.outer] + firstFeature * inputStrides[m_dims.input.inner];
                std::int64_t b = output * kernelStrides[m_dims.kernel.inner];
                for (std::size_t i = 0; i < window.size(); ++i) {
                    const WindowDim& dim = m_windows[i];
                    const std::int64_t at
                        = index[m_dims.result.spatial[i]] * dim.stride + inWindow[i] * dim.windowDilation - dim.low;
                    if (at < 0 || at % dim.baseDilation != 0 || at / dim.baseDilation >= inputShape[m_dims.input.spatial[i]])
                        return;
                    a += at / dim.baseDilation * inputStrides[m_dims.input.spatial[i]];
                    b += (m_reversed[i] ? dim.size - 1 - inWindow[i] : inWindow[i]) * kernelStrides[m_dims.kernel.spatial[i]];
                }
                for (std::int64_t feature = 0; feature < features; ++feature) {
                    sum += input[static_cast<std::size_t>(a + feature * inputStrides[m_dims.input.inner])]
                        * kernel[static_cast<std::size_t>(b + feature * kernelStrides[m_dims.kernel.outer])];
                }
            });
            results.push_back(sum);
        });
        if (static_cast<std::int64_t>(results.size()) == m_resultTypes.front().elements())
            keep(results, addresses);
    }

    void keep(const std::vector<double>& results, Addresses addresses) const
    {
        const HostArray made = HostArray::of(m_resultTypes.front(), results);
        if (made.bytes() > 0)
            std::memcpy(addresses[m_results.front().at()], made.data(), static_cast<std::size_t>(made.bytes()));
    }
    void keep(const std::vector<std::int64_t>& results, Addresses addresses) const
    {
        const std::int64_t width = byteSize(m_resultTypes.front().dtype);
        for (std::size_t i = 0; i < results.size(); ++i) // the low bytes: sums wrap around
            std::memcpy(addresses[m_results.front().at()] + static_cast<std::int64_t>(i) * width, &results[i],
                static_cast<std::size_t>(width));
    }

    ConvolutionDims m_dims;
    std::vector<WindowDim> m_windows;
    std::vector<bool> m_reversed;
};

/// Several arrays, or one array whose block is not a reduction: the updates in their order, each combined with the element that it is for. Those for
/// elements that are not there are left out.
class ScatterManyKernel final : public OtherKernel {
public:
    ScatterManyKernel(const Function& function, const Op& op, ScalarBlock combine, IndexingDims dims)
        : OtherKernel(function, op)
        , m_combine(std::move(combine))
        , m_dims(std::move(dims))
        , m_strides(stridesOf(m_types.front().shape))
        , m_indexStrides(stridesOf(m_types[m_results.size()].shape))
    {
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        const std::vector<Input> from = inputs(addresses);
        const std::size_t arrays = m_results.size(); // then the indices, then the updates of each array
        for (std::size_t i = 0; i < arrays; ++i) {
            if (m_types[i].bytes() > 0)
                std::memcpy(addresses[m_results[i].at()], from[i].data(), static_cast<std::size_t>(m_types[i].bytes()));
        }
        const HostArray wide
            = HostArray::fromBytes(m_types[arrays], {from[arrays].data(), static_cast<std::size_t>(m_types[arrays].bytes())})
                  .converted(DType::S64);
        const Shape updateStrides = stridesOf(m_types[arrays + 1].shape);
        std::vector<std::uint64_t> memory = m_combine.memory();
        forEachIndex(m_types[arrays + 1].shape, stop, [&](const Shape& update) {
            const auto to = target(update, wide.as<std::int64_t>());
            if (!to)
                return;
            for (std::size_t i = 0; i < arrays; ++i) {
                const std::int64_t width = byteSize(m_types[i].dtype);
                m_combine.load(memory, i, addresses[m_results[i].at()] + *to * width);
                m_combine.load(memory, arrays + i, from[arrays + 1 + i].data() + offset(update, updateStrides) * width);
            }
            m_combine.run(memory);
            for (std::size_t i = 0; i < arrays; ++i)
                m_combine.store(memory, i, addresses[m_results[i].at()] + *to * byteSize(m_types[i].dtype));
        });
    }

private:
    /// The element that an update is for.
    std::optional<std::int64_t> target(const Shape& update, std::span<const std::int64_t> indices) const
    {
        constexpr std::int64_t kFar = std::int64_t{1} << 48; // outside of any array, and no sum overflows
        const auto isIn = [](const std::vector<std::size_t>& dims, std::size_t dim) {
            return std::find(dims.begin(), dims.end(), dim) != dims.end();
        };
        Shape at(m_strides.size(), 0);
        std::int64_t entry = 0; // of the index vector, the first
        std::size_t arrayDim = 0;
        std::size_t indexDim = 0;
        for (std::size_t dim = 0; dim < update.size(); ++dim) {
            if (isIn(m_dims.window, dim)) {
                while (isIn(m_dims.collapsed, arrayDim) || isIn(m_dims.operandBatch, arrayDim))
                    ++arrayDim;
                at[arrayDim++] += update[dim];
                continue;
            }
            indexDim += indexDim == m_dims.indexVectorDim ? 1 : 0;
            entry += update[dim] * m_indexStrides[indexDim];
            const auto batch = std::find(m_dims.indicesBatch.begin(), m_dims.indicesBatch.end(), indexDim++);
            if (batch != m_dims.indicesBatch.end())
                at[m_dims.operandBatch[static_cast<std::size_t>(batch - m_dims.indicesBatch.begin())]] = update[dim];
        }
        const std::int64_t step = m_dims.indexVectorDim < m_indexStrides.size() ? m_indexStrides[m_dims.indexVectorDim] : 0;
        for (std::size_t i = 0; i < m_dims.indexMap.size(); ++i)
            at[m_dims.indexMap[i]]
                += std::clamp(indices[static_cast<std::size_t>(entry + static_cast<std::int64_t>(i) * step)], -kFar, kFar);
        for (std::size_t dim = 0; dim < at.size(); ++dim) {
            if (at[dim] < 0 || at[dim] >= m_types.front().shape[dim])
                return std::nullopt;
        }
        return offset(at, m_strides);
    }

    ScalarBlock m_combine;
    IndexingDims m_dims;
    Shape m_strides; ///< of the arrays
    Shape m_indexStrides;
};

/// The largest elements along the last dimension, and where they were; equal ones in their order.
class TopKernel final : public OtherKernel {
public:
    using OtherKernel::OtherKernel;

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        const std::vector<Input> from = inputs(addresses);
        const std::int64_t count = m_types.front().shape.back();
        const std::int64_t kept = m_resultTypes.front().shape.back();
        const std::int64_t width = byteSize(m_types.front().dtype);
        const std::vector<double> values
            = HostArray::fromBytes(m_types.front(), {from[0].data(), static_cast<std::size_t>(m_types.front().bytes())}).values();
        std::vector<std::int32_t> order(static_cast<std::size_t>(count));
        for (std::int64_t row = 0; row * count < m_types.front().elements() && !stop.isSet(); ++row) {
            std::iota(order.begin(), order.end(), 0);
            const double* line = values.data() + row * count;
            // In the total order of floating numbers: -NaN below all, 0 above -0, NaN above all.
            std::stable_sort(order.begin(), order.end(),
                [&](std::int32_t a, std::int32_t b) { return std::is_gt(std::strong_order(line[a], line[b])); });
            for (std::int64_t k = 0; k < kept; ++k) {
                const std::int32_t index = order[static_cast<std::size_t>(k)];
                std::memcpy(addresses[m_results[0].at()] + (row * kept + k) * width,
                    from[0].data() + (row * count + index) * width, static_cast<std::size_t>(width));
                std::memcpy(addresses[m_results[1].at()] + (row * kept + k) * 4, &index, 4);
            }
        }
    }
};

/// True when all windows are understood and fit.
bool hasWindows(const OtherAttributes& other, const TensorType& type, bool scatters)
{
    const auto windows = windowDims(other.attributes, type.shape.size());
    return windows && (!scatters || std::all_of(windows->begin(), windows->end(), [](const WindowDim& dim) {
        return dim.baseDilation == 1 && dim.windowDilation == 1;
    }));
}

} // namespace

std::unique_ptr<const Kernel> makeOtherKernel(const KernelSite& site, OpId id)
{
    const Function& function = site.function;
    const Op& op = function[id];
    const auto& other = op.as<OtherAttributes>();
    if (op.operands.empty() || other.captures > 0)
        return nullptr;
    std::vector<ScalarBlock> blocks;
    for (const BlockId body : op.bodies) {
        auto block = ScalarBlock::create(function, body);
        if (!block)
            return nullptr;
        blocks.push_back(*std::move(block));
    }
    const TensorType& first = function[op.operands.front()].type;
    if (op.kind == OpKind::RngBitGenerator)
        return makeBitGeneratorKernel(site, id);
    if (op.kind == OpKind::BitcastRegroup) { // evaluated in double, floating numbers would have other bits
        const bool areIntegers = isInteger(first.dtype) && isInteger(function[op.results.front()].type.dtype);
        return areIntegers ? makeCopyKernel(function, id) : nullptr;
    }
    if (movedTo(op) && op.operands.size() == 1 && first == function[op.results.front()].type)
        return makeCopyKernel(function, id);
    if (op.kind == OpKind::FftOfPairs)
        return makeFftKernel(function, id);
    if (op.kind == OpKind::Attention || op.kind == OpKind::AttentionGrad)
        return isComputable(first.dtype) ? makeAttentionKernel(function, id) : nullptr;
    if (op.kind == OpKind::Sort && blocks.size() == 1 && integerAt(other.attributes, "dimension"))
        return std::make_unique<SortKernel>(function, op, std::move(blocks.front()));
    if (op.kind == OpKind::VariadicReduce && blocks.size() == 1 && dimsAt(other.attributes, "dimensions", first.shape.size()))
        return std::make_unique<WindowReduceKernel>(function, op, std::move(blocks.front()));
    if (op.kind == OpKind::ReduceWindow && blocks.size() == 1 && hasWindows(other, first, false))
        return std::make_unique<WindowReduceKernel>(function, op, std::move(blocks.front()));
    if (op.kind == OpKind::SelectAndScatter && blocks.size() == 2 && hasWindows(other, first, true))
        return std::make_unique<SelectAndScatterKernel>(function, op, std::move(blocks[0]), std::move(blocks[1]));
    if (op.kind == OpKind::VariadicScatter && blocks.size() == 1) {
        if (auto dims = indexingDims(other.attributes, true))
            return std::make_unique<ScatterManyKernel>(function, op, std::move(blocks.front()), *std::move(dims));
    }
    if (op.kind == OpKind::Convolution) {
        const auto dims = convolutionDims(other.attributes);
        if (dims && convolutionWindows(other.attributes, *dims, function[op.operands[1]].type.shape))
            return std::make_unique<ConvolutionKernel>(function, op);
    }
    if (op.kind == OpKind::TopK && op.results.size() == 2 && function[op.results[1]].type.dtype == DType::S32
        && !first.shape.empty())
        return std::make_unique<TopKernel>(function, op);
    if ((op.kind == OpKind::Cholesky || op.kind == OpKind::TriangularSolve) && isFloating(first.dtype))
        return makeMatrixKernel(function, id);
    return nullptr;
}

} // namespace meshwright
