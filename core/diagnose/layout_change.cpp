// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/layout_change.h"

#include "core/sharding/layout.h"
#include "core/sharding/tile_assignment.h"
#include "core/sharding/visualize.h"
#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace meshwright {

namespace {

/// The axis names of an invented mesh.
std::string inventedName(std::size_t index, std::size_t count)
{
    constexpr std::string_view kLetters = "xyzw";
    return count <= kLetters.size() ? std::string(1, kLetters[index]) : fmt::format("axis_{}", index);
}

std::optional<Mesh> meshOfSizes(const Shape& sizes, std::vector<DeviceId> order = {})
{
    std::vector<MeshAxis> axes;
    for (std::size_t i = 0; i < sizes.size(); ++i)
        axes.push_back({inventedName(i, sizes.size()), sizes[i]});
    auto mesh = Mesh::create(std::move(axes), std::move(order));
    return mesh ? std::optional(*std::move(mesh)) : std::nullopt;
}

Shape sizesOf(const Mesh& mesh)
{
    Shape sizes;
    for (const MeshAxis& axis : mesh.axes()) {
        if (axis.size > 1)
            sizes.push_back(axis.size);
    }
    return sizes;
}

/// The axes that have all the boundaries of both: [256] and [64, 4] are [64, 4]. Nothing when the boundaries do not nest.
std::optional<Shape> refined(const Shape& a, const Shape& b)
{
    std::vector<std::int64_t> strides; // of all boundaries, descending
    for (const Shape* sizes : {&a, &b}) {
        std::int64_t stride = 1;
        for (auto size = sizes->rbegin(); size != sizes->rend(); ++size)
            strides.push_back(stride *= *size);
    }
    std::sort(strides.begin(), strides.end(), std::greater<>());
    strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
    strides.push_back(1);
    Shape sizes;
    for (std::size_t i = 0; i + 1 < strides.size(); ++i) {
        if (strides[i] % strides[i + 1] != 0)
            return std::nullopt;
        sizes.push_back(strides[i] / strides[i + 1]);
    }
    return sizes;
}

bool isPlaced(const TileSharding& tiles)
{
    return tiles.kind == TileKind::Tiled || tiles.kind == TileKind::Replicated;
}

/// Both on one mesh.
std::optional<LayoutPair> onMesh(const TileSharding& from, const TileSharding& to, std::size_t rank, const Mesh& mesh)
{
    auto before = fromTiles(from, rank, mesh);
    auto after = fromTiles(to, rank, mesh);
    if (!before || !after || !before->manual.empty() || !after->manual.empty() || !before->sharding.unreduced.empty()
        || !after->sharding.unreduced.empty())
        return std::nullopt;
    return LayoutPair{mesh, false, std::move(before->sharding), std::move(after->sharding)};
}

/// The meshes that might have both tilings, the one whose axes say most first.
std::vector<Mesh> candidateMeshes(const TileSharding& from, const TileSharding& to)
{
    std::vector<Mesh> candidates;
    std::vector<Mesh> smallest;
    for (const TileSharding* tiles : {&from, &to}) {
        if (auto mesh = meshOfTiles(*tiles); mesh && mesh->deviceCount() > 1 && mesh->deviceCount() <= kMostPlannedDevices)
            smallest.push_back(*std::move(mesh));
    }
    const auto add = [&](const Shape& sizes, const Mesh& like) {
        if (auto mesh = meshOfSizes(sizes, like.hasDefaultOrder() ? std::vector<DeviceId>() : like.deviceOrder()))
            candidates.push_back(*std::move(mesh));
    };
    if (smallest.size() == 2 && smallest[0].deviceCount() == smallest[1].deviceCount()) {
        if (const auto both = refined(sizesOf(smallest[0]), sizesOf(smallest[1])))
            add(*both, smallest[0]);
    }
    for (const Mesh& mesh : smallest)
        add(sizesOf(mesh), mesh);
    return candidates;
}

/// The pieces that a layout makes of a dimension.
std::int64_t piecesAlong(const TensorSharding& sharding, std::size_t dim)
{
    return dim < sharding.dims.size() ? shardCount(sharding.dims[dim].axes) : 1;
}

} // namespace

std::optional<LayoutPair> layoutsOfTiles(std::string_view from, std::string_view to, const std::optional<Mesh>& mesh)
{
    const auto before = parseTileSharding(from);
    const auto after = parseTileSharding(to);
    if (!before || !after || !isPlaced(*before) || !isPlaced(*after))
        return std::nullopt;
    const bool tiled = before->kind == TileKind::Tiled;
    if (!tiled && after->kind != TileKind::Tiled)
        return std::nullopt;
    const std::size_t rank = tiled ? before->rank() : after->rank();
    if (after->kind == TileKind::Tiled && after->rank() != rank)
        return std::nullopt;
    if (mesh && mesh->deviceCount() <= kMostPlannedDevices) {
        if (auto pair = onMesh(*before, *after, rank, *mesh))
            return pair;
    }
    for (const Mesh& candidate : candidateMeshes(*before, *after)) {
        if (auto pair = onMesh(*before, *after, rank, candidate)) {
            pair->meshInvented = true;
            return pair;
        }
    }
    return std::nullopt;
}

std::optional<LayoutChange> planChange(const LayoutPair& layouts, const std::optional<TensorType>& type)
{
    LayoutChange change{layouts, {}, type.has_value(), {}, {}};
    const std::size_t rank = layouts.from.dims.size();
    if (layouts.to.dims.size() != rank || layouts.mesh.deviceCount() > kMostPlannedDevices)
        return std::nullopt;
    if (type) {
        change.type = *type;
    } else {
        change.type.dtype = DType::S8; // every dimension that is split divides in every way
        for (std::size_t dim = 0; dim < rank; ++dim) {
            const bool split = piecesAlong(layouts.from, dim) * piecesAlong(layouts.to, dim) > 1;
            change.type.shape.push_back(split ? layouts.mesh.deviceCount() : 1);
        }
    }
    if (change.type.shape.size() != rank || !checkedProduct(change.type.shape))
        return std::nullopt;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        const std::int64_t size = change.type.shape[dim];
        if (size < 1 || size % piecesAlong(layouts.from, dim) != 0 || size % piecesAlong(layouts.to, dim) != 0)
            return std::nullopt;
    }
    const BytesThenStepsCost cost;
    const std::int64_t bytes = byteSize(change.type.dtype);
    if (bytes == 0 || !checkedMultiply(elementCount(change.type.shape), bytes))
        return std::nullopt;
    change.cheapest = planReshard(change.type.shape, bytes, layouts.from, layouts.to, layouts.mesh, cost);
    change.gather = planByFullGather(change.type.shape, bytes, layouts.from, layouts.to, layouts.mesh, cost);
    return change;
}

std::int64_t movedBytes(const ReshardStep& step)
{
    return step.kind == OpKind::AllSlice ? 0 : step.payloadBytes;
}

std::int64_t movedBytes(const ReshardPlan& plan)
{
    return std::accumulate(plan.steps.begin(), plan.steps.end(), std::int64_t{0},
        [](std::int64_t sum, const ReshardStep& step) { return sum + movedBytes(step); });
}

std::string amountText(std::int64_t bytes, const LayoutChange& change)
{
    if (change.typeKnown)
        return formatBytes(bytes);
    const std::int64_t whole = change.type.bytes();
    const std::int64_t common = std::max<std::int64_t>(1, std::gcd(bytes, whole));
    if (bytes == 0)
        return "nothing";
    if (whole / common == 1)
        return bytes == whole ? std::string("the array") : fmt::format("{} x the array", bytes / common);
    return fmt::format("{}/{} of the array", bytes / common, whole / common);
}

std::optional<std::string> specCode(const TensorSharding& sharding, const Mesh& mesh)
{
    auto spec = toSpec(sharding, mesh);
    if (!spec)
        return std::nullopt;
    spec->dims.resize(sharding.dims.size());
    return specText(*spec);
}

std::string fullLayoutText(const TensorSharding& sharding, const Mesh& mesh)
{
    const auto spec = specCode(sharding, mesh);
    return spec && sharding.unreduced.empty() ? *spec : layoutText(sharding, mesh);
}

std::string pictureOf(
    const Shape& shape, const TensorSharding& sharding, const Mesh& mesh, const std::string& platform, std::size_t width)
{
    TextDrawing drawing;
    drawing.platform = platform;
    drawing.scale = 0.3;
    drawing.mostSlabs = 4;
    drawing.mostRows = 8;
    drawing.mostDevices = 6;
    const Layout layout = layoutOf(shape, sharding, mesh);
    std::string text;
    for (std::size_t columns = std::max<std::size_t>(1, width / 10); columns > 0; --columns) {
        drawing.mostColumns = columns;
        text = drawingText(layout, drawing);
        if (widestLine(text) <= width)
            break;
    }
    return text;
}

std::string sideBySide(const std::string& left, const std::string& right, std::size_t column)
{
    const std::vector<std::string> leftLines = split(left, '\n');
    const std::vector<std::string> rightLines = split(right, '\n');
    std::string text;
    for (std::size_t i = 0; i < std::max(leftLines.size(), rightLines.size()); ++i) {
        std::string line = i < leftLines.size() ? leftLines[i] : std::string();
        const std::string more = i < rightLines.size() ? rightLines[i] : std::string();
        if (!more.empty()) {
            line.append(column - std::min(column, displayWidth(line)), ' ');
            line += more;
        }
        text += line + "\n";
    }
    while (text.ends_with("\n\n"))
        text.pop_back();
    return text;
}

} // namespace meshwright
