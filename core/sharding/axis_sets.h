// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/tensor_sharding.h"

#include <algorithm>

namespace meshwright {

/// A set of axes as such sets are written: in mesh order, parts that continue each other merged.
inline AxisRefs inMeshOrder(AxisRefs axes)
{
    std::sort(axes.begin(), axes.end());
    AxisRefs merged;
    for (const AxisRef& axis : axes)
        appendMerging(merged, axis);
    return merged;
}

} // namespace meshwright
