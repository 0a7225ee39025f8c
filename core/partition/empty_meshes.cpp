// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/empty_meshes.h"

#include "core/program/every_sharding.h"

#include <algorithm>

namespace meshwright {

void dropEmptyMeshes(Program& program)
{
    const auto isEmpty = [](const NamedMesh& named) { return named.mesh.axes().empty() && !named.isMaximal; };
    const auto hasAxes = [](const NamedMesh& named) { return !named.mesh.axes().empty(); };
    const auto first = std::find_if(program.meshes.begin(), program.meshes.end(), hasAxes);
    if (first == program.meshes.end() || std::none_of(program.meshes.begin(), program.meshes.end(), isEmpty))
        return;
    std::vector<std::int32_t> places;
    std::int32_t next = 0;
    for (const NamedMesh& named : program.meshes)
        places.push_back(isEmpty(named) ? -1 : next++);
    const std::int32_t instead = places[static_cast<std::size_t>(first - program.meshes.begin())];
    std::replace(places.begin(), places.end(), -1, instead);
    forEachSharding(program, [&](TensorSharding& sharding) { sharding.mesh = places[static_cast<std::size_t>(sharding.mesh)]; });
    std::erase_if(program.meshes, isEmpty);
}

} // namespace meshwright
