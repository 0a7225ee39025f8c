// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/named_sharding.h"

#include <fmt/format.h>

namespace meshwright {

Result<Layout> placedLayout(const Shape& shape, const NamedSharding& sharding)
{
    const auto local = shardShape(shape, sharding.spec, sharding.mesh, Uneven::Refuse);
    if (!local)
        return local.error();
    const auto placement = toTensorSharding(sharding.spec, shape.size(), sharding.mesh);
    if (!placement)
        return placement.error();
    return layoutOf(shape, *placement, sharding.mesh);
}

Result<Layout> placedLayout(const Shape& shape, const TensorSharding& sharding, const Mesh& mesh)
{
    Problems problems;
    for (const UnequalPieces& unequal : unequalPieces(shape, sharding))
        problems.push_back(notDivisible(unequal));
    if (!problems.empty())
        return problems;
    return layoutOf(shape, sharding, mesh);
}

} // namespace meshwright
