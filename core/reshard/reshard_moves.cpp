// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reshard/reshard_moves.h"

#include <algorithm>
#include <set>

namespace meshwright {

std::vector<std::vector<MovedPart>> movedParts(
    const Shape& shape, const TensorSharding& from, const ReshardStep& step, const Mesh& mesh)
{
    std::vector<std::vector<MovedPart>> parts(static_cast<std::size_t>(mesh.deviceCount()));
    const auto partsAt
        = [&](std::int64_t position) -> std::vector<MovedPart>& { return parts[static_cast<std::size_t>(position)]; };
    const auto after = [&](std::int64_t position) { return shardBox(shape, step.result, mesh, position); };
    if (step.kind == OpKind::CollectivePermute) {
        for (std::int64_t position = 0; position < mesh.deviceCount(); ++position) {
            const std::int64_t source = step.attributes.sources[static_cast<std::size_t>(position)];
            if (source >= 0)
                partsAt(position).push_back({shardBox(shape, from, mesh, source), {source}});
        }
        return parts;
    }
    const bool combines = step.kind == OpKind::AllReduce || step.kind == OpKind::ReduceScatter;
    for (const std::vector<std::int64_t>& group : deviceGroups(step.attributes.axes, mesh)) {
        for (const std::int64_t position : group) {
            const IndexBox wanted = after(position);
            if (combines) {
                partsAt(position).push_back({wanted, group});
                continue;
            }
            std::set<IndexBox> taken;
            const auto take = [&](std::int64_t giver) {
                const IndexBox held = shardBox(shape, from, mesh, giver);
                const IndexBox common = intersection(wanted, held);
                if (boxElements(common) > 0 && taken.insert(held).second)
                    partsAt(position).push_back({common, {giver}});
            };
            take(position);
            for (const std::int64_t giver : step.kind == OpKind::AllSlice ? std::vector<std::int64_t>{} : group)
                take(giver);
            std::stable_sort(partsAt(position).begin(), partsAt(position).end(),
                [](const MovedPart& a, const MovedPart& b) { return a.from.front() < b.from.front(); });
        }
    }
    return parts;
}

} // namespace meshwright
