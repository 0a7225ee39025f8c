// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/contraction_dims.h"

#include "core/propagate/rule.h"

#include <algorithm>

namespace meshwright {

namespace {

/// The windows along one spatial dimension of a convolution.
struct SpatialDim {
    std::int64_t input = 1; ///< sizes
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t low = 0; ///< padding
    std::int64_t high = 0;
    std::int64_t inputDilation = 1;
    std::int64_t kernelDilation = 1;
    bool reversed = false;
};

std::optional<std::vector<SpatialDim>> spatialDims(
    const ConvolutionDims& dims, const KeptAttributes& attributes, const Shape& input, const Shape& kernel)
{
    const std::size_t count = dims.input.spatial.size();
    std::vector<SpatialDim> found(count);
    const auto fill = [&](const char* name, auto SpatialDim::*member) {
        const auto integers = integersAt(attributes, name);
        for (std::size_t i = 0; i < count && i < integers.size(); ++i)
            found[i].*member = static_cast<std::remove_reference_t<decltype(found[i].*member)>>(integers[i]);
        return integers.empty() || integers.size() == count;
    };
    const auto padding = integersAt(attributes, "padding");
    if (!fill("window_strides", &SpatialDim::stride) || !fill("lhs_dilation", &SpatialDim::inputDilation)
        || !fill("rhs_dilation", &SpatialDim::kernelDilation) || !fill("window_reversal", &SpatialDim::reversed)
        || (!padding.empty() && padding.size() != 2 * count))
        return std::nullopt;
    for (std::size_t i = 0; i < count; ++i) {
        found[i].input = input[dims.input.spatial[i]];
        found[i].kernel = kernel[dims.kernel.spatial[i]];
        if (!padding.empty()) {
            found[i].low = padding[2 * i];
            found[i].high = padding[2 * i + 1];
        }
    }
    return found;
}

/// Window i sees element i of the input times element i of the kernel: dilation keeps every other element out of the window.
bool isBatch(const SpatialDim& dim)
{
    const std::int64_t step = std::max<std::int64_t>(1, dim.input - 1);
    const bool plain = dim.kernel == dim.input && dim.inputDilation == dim.input && dim.low == 0 && dim.high == 0 && !dim.reversed
        && ((dim.stride == step && dim.kernelDilation == 1) || (dim.kernelDilation == step && dim.stride == 1));
    const bool reversed = dim.kernel == dim.input && dim.low == dim.input - 1 && dim.high == dim.input - 1 && dim.reversed
        && dim.kernelDilation == 1 && dim.stride == dim.input && dim.inputDilation == dim.input - 1;
    return plain || reversed;
}

bool isContracting(const SpatialDim& dim)
{
    return dim.input == dim.kernel && dim.inputDilation == 1 && dim.kernelDilation == 1 && dim.low == 0 && dim.high == 0
        && !dim.reversed;
}

bool slidesOneByOne(const SpatialDim& dim)
{
    return dim.stride == 1 && dim.inputDilation == 1 && dim.kernelDilation == 1;
}

bool isInputFree(const SpatialDim& dim)
{
    return slidesOneByOne(dim) && dim.kernel == 1 && dim.low == 0 && dim.high == 0 && !dim.reversed;
}

bool isKernelFree(const SpatialDim& dim)
{
    return slidesOneByOne(dim) && dim.input == 1 && dim.low == dim.kernel - 1 && dim.high == dim.kernel - 1 && dim.reversed;
}

} // namespace

ContractionDims contractionDims(const DotAttributes& dot, std::size_t lhsRank, std::size_t rhsRank)
{
    ContractionDims found;
    int result = 0;
    for (std::size_t i = 0; i < dot.lhsBatch.size(); ++i)
        found.batch.push_back({static_cast<int>(dot.lhsBatch[i]), static_cast<int>(dot.rhsBatch[i]), result++});
    for (std::size_t i = 0; i < dot.lhsContracting.size(); ++i)
        found.contracting.push_back({static_cast<int>(dot.lhsContracting[i]), static_cast<int>(dot.rhsContracting[i]), -1});
    for (std::size_t dim = 0; dim < lhsRank; ++dim) {
        if (!contains(dot.lhsBatch, dim) && !contains(dot.lhsContracting, dim))
            found.lhsFree.push_back({static_cast<int>(dim), -1, result++});
    }
    for (std::size_t dim = 0; dim < rhsRank; ++dim) {
        if (!contains(dot.rhsBatch, dim) && !contains(dot.rhsContracting, dim))
            found.rhsFree.push_back({-1, static_cast<int>(dim), result++});
    }
    return found;
}

std::optional<ContractionDims> contractionDims(
    const ConvolutionDims& dims, const KeptAttributes& attributes, const Shape& input, const Shape& kernel)
{
    const auto spatial = spatialDims(dims, attributes, input, kernel);
    if (!spatial)
        return std::nullopt;
    ContractionDims found;
    found.lhsFree.push_back({static_cast<int>(dims.input.outer), -1, static_cast<int>(dims.result.outer)});
    found.rhsFree.push_back({-1, static_cast<int>(dims.kernel.inner), static_cast<int>(dims.result.inner)});
    found.contracting.push_back({static_cast<int>(dims.input.inner), static_cast<int>(dims.kernel.outer), -1});
    for (std::size_t i = 0; i < spatial->size(); ++i) {
        const SpatialDim& dim = (*spatial)[i];
        std::vector<ContractionDim>& kind = isBatch(dim) ? found.batch
            : isContracting(dim)                         ? found.contracting
            : isInputFree(dim)                           ? found.lhsFree
            : isKernelFree(dim)                          ? found.rhsFree
                                                         : found.windows;
        kind.push_back({static_cast<int>(dims.input.spatial[i]), static_cast<int>(dims.kernel.spatial[i]),
            static_cast<int>(dims.result.spatial[i])});
    }
    return found;
}

bool isKernelSmall(const ConvolutionDims& dims, const Shape& kernel, const Shape& result)
{
    std::int64_t kernelElements = 1;
    std::int64_t resultElements = 1;
    for (std::size_t i = 0; i < dims.kernel.spatial.size(); ++i) {
        const std::int64_t ofKernel = kernel[dims.kernel.spatial[i]];
        const std::int64_t ofResult = result[dims.result.spatial[i]];
        kernelElements *= ofKernel;
        resultElements *= ofResult;
        if (ofKernel >= ofResult && (i < 2 || ofKernel > 3 || kernelElements >= resultElements))
            return false;
    }
    return true;
}

} // namespace meshwright
