// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/transposition.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>

namespace meshwright {

namespace {

/// A dimension of the result and its step in the source.
struct Loop {
    std::int64_t size = 1;
    std::int64_t sourceStep = 0;
};

/// Neighbours that stay neighbours count as one; dimensions of size 1 are left out.
std::vector<Loop> loopsOf(const Shape& shape, std::span<const std::size_t> permutation)
{
    std::vector<std::int64_t> steps(shape.size());
    std::int64_t step = 1;
    for (std::size_t dim = shape.size(); dim-- > 0;) {
        steps[dim] = step;
        step *= shape[dim];
    }
    std::vector<Loop> loops;
    for (const std::size_t dim : permutation) {
        if (shape[dim] == 1)
            continue;
        if (!loops.empty() && loops.back().sourceStep == steps[dim] * shape[dim]) {
            loops.back().size *= shape[dim];
            loops.back().sourceStep = steps[dim];
        } else {
            loops.push_back({shape[dim], steps[dim]});
        }
    }
    return loops;
}

/// result[i][j] = source[j * columnStep + i * rowStep], in square blocks that fit the cache, rows of the result `resultStride` apart.
template <typename T>
void transposePlane(T* result, std::int64_t resultStride, const T* source, std::int64_t rows, std::int64_t rowStep,
    std::int64_t columns, std::int64_t columnStep, const StopFlag& stop)
{
    constexpr std::int64_t kBlock = 16;
    for (std::int64_t row = 0; row < rows && !stop.isSet(); row += kBlock) {
        const std::int64_t rowEnd = std::min(rows, row + kBlock);
        for (std::int64_t column = 0; column < columns; column += kBlock) {
            const std::int64_t columnEnd = std::min(columns, column + kBlock);
            for (std::int64_t i = row; i < rowEnd; ++i) {
                for (std::int64_t j = column; j < columnEnd; ++j)
                    result[i * resultStride + j] = source[j * columnStep + i * rowStep];
            }
        }
    }
}

template <typename T>
void transposeLoops(T* result, const T* source, const std::vector<Loop>& loops, const StopFlag& stop)
{
    const std::size_t rank = loops.size();
    const Loop inner = loops.back();
    // The plane: the innermost dimension of the result, and the one that is innermost in the source.
    std::size_t partner = rank - 1;
    if (inner.sourceStep != 1) {
        for (std::size_t dim = 0; dim < rank; ++dim) {
            if (loops[dim].sourceStep < loops[partner].sourceStep)
                partner = dim;
        }
    } else if (rank > 1) {
        partner = rank - 2;
    }
    std::vector<std::int64_t> resultSteps(rank);
    std::int64_t step = 1;
    for (std::size_t dim = rank; dim-- > 0;) {
        resultSteps[dim] = step;
        step *= loops[dim].size;
    }
    const std::int64_t rows = partner == rank - 1 ? 1 : loops[partner].size;
    std::vector<std::int64_t> index(rank, 0);
    while (!stop.isSet()) {
        if (inner.sourceStep == 1) {
            for (std::int64_t row = 0; row < rows && !stop.isSet(); ++row)
                std::copy_n(source + row * loops[partner].sourceStep, inner.size, result + row * resultSteps[partner]);
        } else {
            transposePlane(
                result, resultSteps[partner], source, rows, loops[partner].sourceStep, inner.size, inner.sourceStep, stop);
        }
        std::size_t dim = rank - 1;
        for (;;) {
            if (dim == 0)
                return;
            --dim;
            if (dim == partner)
                continue;
            result += resultSteps[dim];
            source += loops[dim].sourceStep;
            if (++index[dim] < loops[dim].size)
                break;
            result -= resultSteps[dim] * loops[dim].size;
            source -= loops[dim].sourceStep * loops[dim].size;
            index[dim] = 0;
        }
    }
}

} // namespace

void transposeArray(std::byte* result, const std::byte* source, const Shape& sourceShape,
    std::span<const std::size_t> permutation, std::int64_t elementBytes, const StopFlag& stop)
{
    assert(permutation.size() == sourceShape.size());
    if (elementCount(sourceShape) == 0)
        return;
    const std::vector<Loop> loops = loopsOf(sourceShape, permutation);
    if (loops.size() <= 1) {
        std::memcpy(result, source, static_cast<std::size_t>(elementCount(sourceShape) * elementBytes));
        return;
    }
    if (elementBytes == 1)
        transposeLoops(reinterpret_cast<std::uint8_t*>(result), reinterpret_cast<const std::uint8_t*>(source), loops, stop);
    else if (elementBytes == 2)
        transposeLoops(reinterpret_cast<std::uint16_t*>(result), reinterpret_cast<const std::uint16_t*>(source), loops, stop);
    else if (elementBytes == 4)
        transposeLoops(reinterpret_cast<std::uint32_t*>(result), reinterpret_cast<const std::uint32_t*>(source), loops, stop);
    else
        transposeLoops(reinterpret_cast<std::uint64_t*>(result), reinterpret_cast<const std::uint64_t*>(source), loops, stop);
}

} // namespace meshwright
