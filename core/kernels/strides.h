// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/shape.h"

namespace meshwright {

/// Elements from one index to the next along each dimension of a row-major array.
inline Shape stridesOf(const Shape& shape)
{
    Shape strides(shape.size(), 1);
    for (std::size_t dim = shape.size(); dim-- > 1;)
        strides[dim - 1] = strides[dim] * shape[dim];
    return strides;
}

} // namespace meshwright
