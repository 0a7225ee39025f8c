// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/tile_import.h"

#include "core/sharding/tile_assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace meshwright {

namespace {

constexpr const char* kAttribute = "mhlo.sharding";

template <typename Visit>
void forEachTiled(const SyntaxRegion& region, const Visit& visit)
{
    for (const SyntaxOp& op : region.ops) {
        if (const SyntaxAttribute* attribute = op.find(kAttribute))
            visit(*attribute);
        for (const SyntaxRegion& inner : op.regions)
            forEachTiled(inner, visit);
    }
}

template <typename Visit>
void forEachTiled(const SyntaxModule& module, const Visit& visit)
{
    const auto visitIn = [&](const SyntaxAttribute& dictionary) {
        if (const SyntaxAttribute* attribute = dictionary.find(kAttribute))
            visit(*attribute);
    };
    for (const SyntaxFunction& function : module.functions) {
        for (const SyntaxFunction::Argument& argument : function.arguments)
            visitIn(argument.attributes);
        for (const SyntaxAttribute& result : function.resultAttributes)
            visitIn(result);
        forEachTiled(function.body, visit);
    }
}

/// Adds the numbers of devices that the axes of a mesh of these sizes count off, from the most minor on.
void addCuts(const Shape& sizes, std::set<std::int64_t>& cuts)
{
    std::int64_t devices = 1;
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size)
        cuts.insert(devices *= *size);
}

/// The mesh of all cuts; nothing when they do not divide each other.
std::optional<Mesh> meshOfCuts(const std::set<std::int64_t>& cuts)
{
    std::vector<MeshAxis> axes;
    std::int64_t before = 1;
    for (const std::int64_t cut : cuts) {
        if (cut % before != 0)
            return std::nullopt;
        if (cut != before)
            axes.insert(axes.begin(), {{}, cut / before});
        before = cut;
    }
    for (std::size_t i = 0; i < axes.size(); ++i)
        axes[i].name = fmt::format("axis_{}", i);
    auto mesh = Mesh::create(std::move(axes));
    return mesh ? std::optional(*std::move(mesh)) : std::nullopt;
}

} // namespace

void addTileMesh(SyntaxModule& module, TextProblems& problems)
{
    std::set<std::int64_t> cuts;
    std::set<std::int64_t> counts; // of devices
    const SyntaxAttribute* first = nullptr;
    bool explained = true;
    forEachTiled(module, [&](const SyntaxAttribute& attribute) {
        first = first == nullptr ? &attribute : first;
        const auto sharding = parseTileSharding(attribute.text);
        if (!sharding || sharding->kind != TileKind::Tiled)
            return; // what is wrong is said where it is used
        const auto sizes = sharding->tiles.smallestMesh();
        explained = explained && sizes.has_value();
        counts.insert(sharding->tiles.count());
        if (sizes)
            addCuts(*sizes, cuts);
    });
    if (first == nullptr)
        return;
    if (!module.meshes.empty()) { // with shardings in both forms
        const auto ofAll = std::ranges::find_if(module.meshes,
            [&](const NamedMesh& named) { return !named.mesh.axes().empty() && counts == std::set{named.mesh.deviceCount()}; });
        if (ofAll != module.meshes.end())
            module.tileMesh = static_cast<std::int32_t>(ofAll - module.meshes.begin());
        return;
    }
    if (const SyntaxAttribute* partitions = module.attributes.find("mhlo.num_partitions");
        partitions != nullptr && partitions->integer > 1) {
        cuts.insert(partitions->integer);
        counts.insert(partitions->integer);
    }
    const auto mesh = explained && counts.size() == 1 ? meshOfCuts(cuts) : std::nullopt;
    if (mesh) {
        module.tileMesh = static_cast<std::int32_t>(module.meshes.size());
        module.meshes.push_back({"mesh", *mesh, false});
    } else if (!counts.empty()) {
        problems.warn("MW1332", first->offset,
            "the tiled shardings of the module do not share one mesh: they are kept but not used", kPrintWithShardy);
    }
}

std::optional<TensorSharding> tiledSharding(
    const SyntaxModule& module, const SyntaxAttribute& attribute, std::size_t rank, TextProblems& problems)
{
    if (module.tileMesh < 0)
        return std::nullopt;
    const auto parsed = parseTileSharding(attribute.text);
    if (!parsed) {
        problems.warn("MW1332", attribute.offset, parsed.error().front().message, kPrintWithShardy);
        return std::nullopt;
    }
    if (parsed->kind == TileKind::Manual || parsed->kind == TileKind::Unknown)
        return std::nullopt;
    const auto named = fromTiles(*parsed, rank, module.meshes[static_cast<std::size_t>(module.tileMesh)].mesh);
    if (!named) {
        problems.warn("MW1332", attribute.offset, named.error().front().message, kPrintWithShardy);
        return std::nullopt;
    }
    if (!named->manual.empty())
        return std::nullopt;
    TensorSharding sharding = named->sharding;
    sharding.mesh = module.tileMesh;
    return sharding;
}

} // namespace meshwright
