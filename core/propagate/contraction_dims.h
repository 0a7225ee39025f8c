// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/other_op.h"
#include "core/program/program.h"

#include <optional>
#include <vector>

namespace meshwright {

/// One dimension of a product of arrays, as a dimension of each array; -1 where an array has none.
struct ContractionDim {
    int lhs = -1;
    int rhs = -1;
    int result = -1;
};

/// A dot, or a convolution whose windows say no more than a dot does.
struct ContractionDims {
    std::vector<ContractionDim> batch;
    std::vector<ContractionDim> contracting; ///< those of a convolution have a result dimension too, of size 1
    std::vector<ContractionDim> lhsFree; ///< those of a convolution have a kernel dimension too, of size 1
    std::vector<ContractionDim> rhsFree; ///< those of a convolution have an input dimension too, of size 1
    std::vector<ContractionDim> windows; ///< dimensions along which windows slide: none of a dot
};

ContractionDims contractionDims(const DotAttributes& dot, std::size_t lhsRank, std::size_t rhsRank);

/// A spatial dimension is a batch one where each window sees one element of its own, a contracting one where one window sees everything,
/// free of the input where windows are single elements, and free of the kernel where it slides over one element.
/// Preconditions: the dimension numbers fit the shapes. Nothing when an attribute of the windows does not fit them.
/// Source: openxla/xla, xla/service/dot_as_convolution_util.cc (`ParseConvolutionDimsInfo`).
std::optional<ContractionDims> contractionDims(
    const ConvolutionDims& dims, const KeptAttributes& attributes, const Shape& input, const Shape& kernel);

/// True when the result rather than the kernel is worth tiling: the kernel is smaller along each spatial dimension, or, behind the second,
/// has at most 3 elements there and fewer in all so far.
/// Source: openxla/xla, xla/service/sharding_propagation.cc (`IsConvolutionKernelSmall`).
bool isKernelSmall(const ConvolutionDims& dims, const Shape& kernel, const Shape& result);

} // namespace meshwright
