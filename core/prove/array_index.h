// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/layout.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace meshwright {

/// Calls `visit` with every index of an array of this shape, row-major.
template <typename Visit>
void forEachIndex(const Shape& shape, const Visit& visit)
{
    if (std::find(shape.begin(), shape.end(), 0) != shape.end())
        return;
    Shape index(shape.size(), 0);
    for (;;) {
        visit(static_cast<const Shape&>(index));
        std::size_t dim = shape.size();
        while (dim > 0 && ++index[dim - 1] == shape[dim - 1])
            index[--dim] = 0;
        if (dim == 0)
            return;
    }
}

/// Where an element is, row-major. Precondition: the index is in the array.
inline std::size_t flatIndex(const Shape& index, const Shape& shape)
{
    std::int64_t flat = 0;
    for (std::size_t dim = 0; dim < shape.size(); ++dim)
        flat = flat * shape[dim] + index[dim];
    return static_cast<std::size_t>(flat);
}

inline bool isWithin(const Shape& index, const Shape& shape)
{
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        if (index[dim] < 0 || index[dim] >= shape[dim])
            return false;
    }
    return true;
}

/// The elements of a box of an array.
template <typename Element>
std::vector<Element> pieceOf(const std::vector<Element>& whole, const Shape& shape, const IndexBox& box)
{
    std::vector<Element> piece;
    forEachIndex(extentsOf(box), [&](Shape index) {
        for (std::size_t dim = 0; dim < index.size(); ++dim)
            index[dim] += box[dim].start;
        piece.push_back(whole[flatIndex(index, shape)]);
    });
    return piece;
}

/// Writes a piece into its box.
template <typename Element>
void putPiece(std::vector<Element>& whole, const Shape& shape, const IndexBox& box, const std::vector<Element>& piece)
{
    std::size_t next = 0;
    forEachIndex(extentsOf(box), [&](Shape index) {
        for (std::size_t dim = 0; dim < index.size(); ++dim)
            index[dim] += box[dim].start;
        whole[flatIndex(index, shape)] = piece[next++];
    });
}

} // namespace meshwright
