// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/verbs/verbs.h"

#include "core/draw/draw_layout.h"
#include "core/draw/svg.h"
#include "core/program/type.h"
#include "core/program/type_names.h"
#include "core/sharding/named_sharding.h"
#include "core/sharding/notation.h"
#include "core/study/study.h"
#include "core/support/checked.h"
#include "core/support/json_text.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

/// The most devices whose pieces are listed or drawn.
constexpr std::int64_t kMostShownDevices = std::int64_t{1} << 18;

template <typename T>
const T* valueOrProblems(const Result<T>& result, const char* flag, Problems& problems)
{
    if (result)
        return &*result;
    append(problems, inFile(result.error(), flag));
    return nullptr;
}

/// What is drawn: a spec of JAX's, or a sharding that was written in another notation.
struct ShownSharding {
    Mesh mesh;
    std::optional<PartitionSpec> spec; ///< as it was written; nothing: another notation
    TensorSharding sharding; ///< of the other notation
    std::string text; ///< for people
};

/// Reads a sharding in any notation. Specs stay as they were written: what is wrong with them is found when they are placed.
Result<ShownSharding> readShown(const std::string& text, const Mesh& mesh, std::size_t rank)
{
    const auto spec = parseSpec(text);
    if (spec)
        return ShownSharding{mesh, *spec, {}, specText(*spec)};
    auto parsed = parseSharding(text, {mesh, rank});
    if (!parsed)
        return parsed.error().front().id == "MW1158" ? spec.error() : parsed.error();
    std::string shown = layoutText(parsed->sharding, parsed->mesh);
    return ShownSharding{std::move(parsed->mesh), std::nullopt, std::move(parsed->sharding), std::move(shown)};
}

/// The sizes that a type in JAX's notation states, and into `dtype` its element type.
Result<Shape> statedShape(const std::string& spec, const Mesh& mesh, std::optional<DType>& dtype)
{
    const auto parsed = parseSharding(spec, {mesh, std::nullopt});
    if (!parsed || !parsed->shape)
        return Problem{
            "MW1904", "--shape is missing", "give the array's sizes, --shape 8192x8192, or its type, f32[8192@data,8192]"};
    if (const auto stated = parseDType(parsed->dtype, {TypeSpelling::Hlo, TypeSpelling::Jax, TypeSpelling::JaxShort}))
        dtype = stated;
    return *parsed->shape;
}

std::string layoutJson(const Layout& layout, const ShownSharding& sharding, DType dtype)
{
    Json axes = Json::array();
    for (const MeshAxis& axis : sharding.mesh.axes())
        axes.push_back({axis.name, axis.size});
    Json shards = Json::array();
    for (const Shard& shard : layout.shards) {
        Json index = Json::array();
        for (const IndexRange& range : shard.box)
            index.push_back({range.start, range.stop});
        shards.push_back({{"index", std::move(index)}, {"devices", shard.devices}});
    }
    const Json document
        = {{"schema", "meshwright.layout/1"}, {"meshwright", kVersion}, {"shape", layout.shape}, {"dtype", dtypeName(dtype)},
            {"mesh", {{"axes", std::move(axes)}, {"device_ids", sharding.mesh.deviceOrder()}}}, {"spec", sharding.text},
            {"shard_shape", layout.shardShape}, {"fully_replicated", layout.fullyReplicated}, {"shards", std::move(shards)}};
    return jsonText(document);
}

/// True for texts that are not of the form their flag asks for: the command line is wrong, not what it says.
bool isMalformed(const Problem& problem)
{
    return problem.id == "MW1105" || problem.id == "MW1117" || problem.id == "MW1118" || problem.id.starts_with("MW19");
}

std::string drawn(
    const Layout& layout, const ShownSharding& sharding, DType dtype, const ShowOptions& options, const Output& output)
{
    if (output.format == Format::Json)
        return layoutJson(layout, sharding, dtype);
    if (output.format == Format::Svg) {
        LayoutDrawing drawing;
        drawing.arrayName = options.name;
        drawing.caption = sharding.text;
        drawing.platform = options.platform;
        drawing.deviceColours = DeviceColours(sharding.mesh);
        drawing.elementBytes = byteSize(dtype);
        return svgText(drawLayout(layout, drawing), Theme::Light);
    }
    TextDrawing drawing;
    drawing.platform = options.platform;
    drawing.scale = options.scale;
    drawing.arrayName = options.name;
    drawing.colours = options.file.empty() || options.file == "-" ? output.colours() : TerminalColours::None;
    drawing.deviceColours = DeviceColours(sharding.mesh);
    return drawingText(layout, drawing);
}

/// Placed by a user, or (`pad`) as values inside a program lie: the last pieces of a dimension that does not divide are short.
Result<Layout> layoutOfShown(const Shape& shape, const ShownSharding& shown, bool pad)
{
    if (shown.spec && !pad)
        return placedLayout(shape, NamedSharding{shown.mesh, *shown.spec});
    if (!shown.spec)
        return pad ? Result<Layout>(layoutOf(shape, shown.sharding, shown.mesh))
                   : placedLayout(shape, shown.sharding, shown.mesh);
    const auto tensor = toTensorSharding(*shown.spec, shape.size(), shown.mesh);
    if (!tensor)
        return tensor.error();
    return layoutOf(shape, *tensor, shown.mesh);
}

} // namespace

Result<Shape> parseShape(const std::string& text)
{
    const Place place = Place{"--shape"};
    Shape shape;
    if (trimmed(text) == "scalar")
        return shape;
    std::string separated = text;
    std::replace(separated.begin(), separated.end(), ',', 'x');
    Problems problems;
    for (const std::string& part : split(separated, 'x')) {
        const std::string_view size = trimmed(part);
        const bool digits = !size.empty() && size.find_first_not_of("0123456789") == std::string_view::npos;
        const auto value = parseInteger(size);
        if (!value && !digits)
            problems.push_back({"MW1906", fmt::format("\"{}\" is not a shape: \"{}\" is not a size", text, size),
                "write the sizes with an x between them, such as 8192x8192, or scalar", place});
        else if (!value || *value < 1 || *value > kLargestDimension)
            problems.push_back(
                {"MW1401", fmt::format("a dimension must have from 1 to {} elements, got {}", kLargestDimension, size),
                    "give sizes in that range", place});
        else
            shape.push_back(*value);
    }
    if (problems.empty() && !checkedProduct(shape))
        problems.push_back({"MW1401", fmt::format("an array of shape {} has more elements than 63 bits count", shapeText(shape)),
            "use smaller sizes", place});
    if (!problems.empty())
        return problems;
    return shape;
}

int runShow(const ShowOptions& options, Output& output)
{
    Problems problems;
    std::vector<DeviceId> order;
    bool orderGood = true;
    if (!options.deviceOrder.empty()) {
        const auto read = parseDeviceOrder(options.deviceOrder);
        const auto* devices = valueOrProblems(read, "--device-order", problems);
        orderGood = devices != nullptr;
        if (devices != nullptr)
            order = *devices;
    }
    const auto mesh = orderGood ? parseMesh(options.mesh, order) : parseMesh(options.mesh);
    valueOrProblems(mesh, "--mesh", problems);
    auto dtype = parseDType(options.dtype);
    const auto shape
        = options.shape.empty() ? statedShape(options.spec, mesh ? *mesh : Mesh(), dtype) : parseShape(options.shape);
    valueOrProblems(shape, "--shape", problems);
    const auto shown = readShown(options.spec, mesh ? *mesh : Mesh(), shape ? shape->size() : 0);
    if (mesh && shape)
        valueOrProblems(shown, "--spec", problems);
    if (!dtype)
        problems.push_back({"MW1903", fmt::format("\"{}\" is not an element type", options.dtype),
            "one of: f32, bf16, f16, f64, i32, i8, ui32, i1", Place{"--dtype"}});
    if (!(options.scale > 0.0 && options.scale <= 100.0))
        problems.push_back({"MW1903", fmt::format("the scale must be above 0 and at most 100, got {}", options.scale),
            "give a number such as 0.5", Place{"--scale"}});
    if (mesh && mesh->deviceCount() > kMostShownDevices)
        problems.push_back({"MW1907", fmt::format("{} devices are too many to draw", mesh->deviceCount()),
            fmt::format("use a mesh of at most {} devices", kMostShownDevices), Place{"--mesh"}});
    if (!problems.empty() || !mesh || !shape || !shown || !dtype) {
        const int code = fail(problems, output);
        return std::any_of(problems.begin(), problems.end(), isMalformed) ? int{kExitUsage} : code;
    }

    const auto layout = layoutOfShown(*shape, *shown, options.pad);
    if (!layout)
        return fail(inFile(layout.error(), "--spec"), output);
    return writeResult(drawn(*layout, *shown, *dtype, options, output), options.file, output);
}

} // namespace meshwright::cli
