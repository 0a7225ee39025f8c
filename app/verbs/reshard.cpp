// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/verbs/verbs.h"

#include "core/diagnose/layout_change.h"
#include "core/draw/draw_reshard.h"
#include "core/draw/svg.h"
#include "core/partition/device_program.h"
#include "core/program/type.h"
#include "core/program/type_names.h"
#include "core/reshard/reshard.h"
#include "core/reshard/reshard_moves.h"
#include "core/sharding/notation.h"
#include "core/sharding/partition_spec.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/collective/network_cost.h"
#include "sim/session/engine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

/// The most devices that a change of layout is planned for: each one's source is looked up.
constexpr std::int64_t kMostReshardDevices = std::int64_t{1} << 18;

/// What was asked for.
struct Request {
    Shape shape;
    DType dtype = DType::F32;
    ParsedSharding from;
    ParsedSharding to;
};

/// Where it is to happen, if hardware is named.
struct Hardware {
    sim::Machine machine;
    sim::MeshPlacement placement;
};

template <typename T>
void take(Result<T> result, const char* flag, Problems& problems, std::optional<T>& out)
{
    if (result)
        out = *std::move(result);
    else
        append(problems, inFile(result.error(), flag));
}

void checkDivides(const Shape& shape, const TensorSharding& sharding, const char* flag, Problems& problems)
{
    if (sharding.dims.size() != shape.size()) {
        problems.push_back(
            {"MW1145", fmt::format("the sharding has {} dimensions, the array {}", sharding.dims.size(), shape.size()),
                "write one entry for each dimension", Place{flag}});
        return;
    }
    for (const UnequalPieces& unequal : unequalPieces(shape, sharding)) {
        problems.push_back(notDivisible(unequal));
        problems.back().place.file = flag;
    }
}

/// The axes that `to` leaves partial and `from` has summed up already.
void checkPartialSums(const Request& request, Problems& problems)
{
    for (const AxisRef& axis : request.to.sharding.unreduced) {
        const auto& before = request.from.sharding.unreduced;
        const bool partial = std::any_of(before.begin(), before.end(), [&](const AxisRef& other) {
            return other.axis == axis.axis && other.pre <= axis.pre && axis.pre * axis.size <= other.pre * other.size;
        });
        if (!partial)
            problems.push_back({"MW1220",
                fmt::format("the array is not a partial sum over {} and cannot become one", axisText(axis, request.to.mesh)),
                "leave the unreduced axes out", Place{"--to"}});
    }
}

/// The sizes and the element type that JAX's types state, where the flags do not.
Problems takeSizes(const ParsedSharding& from, const ParsedSharding& to, std::optional<Shape>& shape, std::optional<DType>& dtype)
{
    for (const ParsedSharding* side : {&from, &to}) {
        if (!side->shape)
            continue;
        if (shape && *shape != *side->shape)
            return {Problem{"MW1915",
                fmt::format("the two layouts are of different arrays: {} and {}", typeText({*dtype, *shape}),
                    typeText({*dtype, *side->shape})),
                "give both layouts of one array", Place{side == &from ? "--from" : "--to"}}};
        shape = side->shape;
        if (const auto stated = parseDType(side->dtype, {TypeSpelling::Hlo, TypeSpelling::Jax, TypeSpelling::JaxShort}))
            dtype = stated;
    }
    if (!shape)
        return {Problem{"MW1904", "--shape is missing", "give the array's sizes: --shape 8192x8192"}};
    return {};
}

Result<Request> requestOf(const ReshardOptions& options)
{
    Problems problems;
    Request request;
    std::optional<Mesh> mesh;
    if (!options.mesh.empty())
        take(parseMesh(options.mesh), "--mesh", problems, mesh);
    std::optional<Shape> shape;
    if (!options.shape.empty())
        take(parseShape(options.shape), "--shape", problems, shape);
    auto dtype = parseDType(options.dtype);
    if (!dtype)
        problems.push_back({"MW1903", fmt::format("\"{}\" is not an element type", options.dtype),
            "one of: f32, bf16, f16, f64, i32, i8, ui32, i1", Place{"--dtype"}});
    if (!problems.empty())
        return problems;

    std::optional<ParsedSharding> from;
    std::optional<ParsedSharding> to;
    const std::optional<std::size_t> rank = shape ? std::optional(shape->size()) : std::nullopt;
    take(parseSharding(options.from, {mesh, rank}), "--from", problems, from);
    take(parseSharding(options.to, {mesh, rank}), "--to", problems, to);
    if (!from || !to)
        return problems;
    if (Problems missing = takeSizes(*from, *to, shape, dtype); !missing.empty())
        return missing;
    request = {*shape, *dtype, *std::move(from), *std::move(to)};
    if (request.from.mesh.axes() != request.to.mesh.axes())
        return Problem{"MW1920",
            fmt::format("the layouts are on different meshes: {} and {}", request.from.mesh.text(), request.to.mesh.text()),
            "name one mesh for both with --mesh"};
    if (request.from.mesh.deviceCount() > kMostReshardDevices)
        problems.push_back({"MW1921", fmt::format("{} devices are too many to plan for", request.from.mesh.deviceCount()),
            fmt::format("use a mesh of at most {} devices", kMostReshardDevices), Place{"--mesh"}});
    checkDivides(request.shape, request.from.sharding, "--from", problems);
    checkDivides(request.shape, request.to.sharding, "--to", problems);
    checkPartialSums(request, problems);
    if (!problems.empty())
        return problems;
    return request;
}

/// Nothing where no hardware is named.
Result<std::optional<sim::Machine>> machineOf(const ReshardOptions& options)
{
    if (options.hardware.empty()) {
        if (!options.topology.empty() || options.hosts != 0)
            return Problem{"MW1904", "--hw is missing", "name the chip: --hw v5e --topology 4x2"};
        return std::optional<sim::Machine>();
    }
    sim::HardwareChoice choice{options.hardware, {}, options.hosts, 0};
    if (!options.topology.empty()) {
        const auto sizes = parseTopology(options.topology);
        if (!sizes)
            return sizes.error();
        choice.topology = *sizes;
    }
    const auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return catalogue.error();
    auto machine = sim::buildMachine(*catalogue, choice);
    if (!machine)
        return machine.error();
    return std::optional(*std::move(machine));
}

/// The mesh axes that types in JAX's notation name (`f32[8@x,4@(y,z)]`), each once, in their order.
std::vector<std::string> axesNamedBy(std::initializer_list<std::string_view> types)
{
    std::vector<std::string> axes;
    for (const std::string_view type : types) {
        for (std::size_t at = type.find('@'); at != std::string_view::npos; at = type.find('@', at + 1)) {
            if (at == 0 || type[at - 1] < '0' || type[at - 1] > '9') // Shardy's meshes have the sign too
                continue;
            const bool isList = type.substr(at + 1).starts_with('(');
            const std::size_t begin = at + (isList ? 2 : 1);
            const std::size_t end = std::min(type.find_first_of(isList ? ")" : ",]{", begin), type.size());
            for (const std::string& name : split(type.substr(begin, end - begin), ',')) {
                const std::string axis(trimmed(name));
                if (!axis.empty() && std::ranges::find(axes, axis) == axes.end())
                    axes.push_back(axis);
            }
        }
    }
    return axes;
}

/// A mesh of so many devices with these axes, as even as it goes, the larger ones first. Precondition: axes.
std::string evenMesh(const std::vector<std::string>& axes, std::int64_t devices)
{
    std::vector<std::int64_t> factors;
    for (std::int64_t factor = 2; factor * factor <= devices; ++factor) {
        for (; devices % factor == 0; devices /= factor)
            factors.push_back(factor);
    }
    factors.push_back(devices);
    std::vector<std::int64_t> sizes(axes.size(), 1);
    for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor)
        *std::ranges::min_element(sizes) *= *factor;
    std::ranges::sort(sizes, std::greater());
    std::vector<std::string> words;
    for (std::size_t i = 0; i < axes.size(); ++i)
        words.push_back(fmt::format("{}={}", axes[i], sizes[i]));
    return join(words, ",");
}

/// What a plan amounts to.
struct Totals {
    std::int64_t bytes = 0; ///< payload of all steps that move data, per device
    double seconds = 0.0;
};

double secondsOf(const ReshardStep& step, const Hardware& hardware)
{
    return sim::estimateOn(hardware.placement, step.kind, step.attributes.axes, step.payloadBytes).seconds;
}

Totals totalsOf(const ReshardPlan& plan, const std::optional<Hardware>& hardware)
{
    Totals totals;
    for (const ReshardStep& step : plan.steps) {
        totals.bytes += movedBytes(step);
        totals.seconds += hardware ? secondsOf(step, *hardware) : 0.0;
    }
    return totals;
}

/// The dimensions that a step takes axes from, and those that it gives them to.
struct StepDims {
    std::vector<std::size_t> from;
    std::vector<std::size_t> to;
};

StepDims dimsOf(const ReshardStep& step)
{
    StepDims dims;
    for (const AxisMove& move : step.attributes.moves) {
        dims.from.push_back(move.from);
        dims.to.push_back(move.to);
    }
    for (std::size_t dim = 0; dim < step.attributes.perDim.size(); ++dim) {
        if (!step.attributes.perDim[dim].empty())
            (step.kind == OpKind::AllGather ? dims.from : dims.to).push_back(dim);
    }
    return dims;
}

/// One dimension as a number, several as a list, none as null.
Json dimsJson(const std::vector<std::size_t>& dims)
{
    return dims.empty() ? Json(nullptr) : dims.size() == 1 ? Json(dims.front()) : Json(dims);
}

Json planJson(const ReshardPlan& plan, const Mesh& mesh, const std::optional<Hardware>& hardware)
{
    Json steps = Json::array();
    for (const ReshardStep& step : plan.steps) {
        const StepDims dims = dimsOf(step);
        Json json = {{"op", opName(step.kind)}, {"axes", axesText(step.attributes.axes, mesh)}, {"from_dim", dimsJson(dims.from)},
            {"to_dim", dimsJson(dims.to)}, {"bytes_per_device", movedBytes(step)}, {"result_spec", layoutText(step.result, mesh)},
            {"result_sharding", shardyText(step.result, mesh)}};
        if (hardware)
            json["time_s"] = secondsOf(step, *hardware);
        steps.push_back(std::move(json));
    }
    const Totals totals = totalsOf(plan, hardware);
    Json json = {{"steps", std::move(steps)}, {"bytes_per_device", totals.bytes}, {"peak_bytes_per_device", plan.peakBytes}};
    if (hardware)
        json["time_s"] = totals.seconds;
    return json;
}

std::string reshardJson(const Request& request, const ReshardPlan& plan, const ReshardPlan& gather,
    const std::optional<Hardware>& hardware, const std::string& style, const std::string& cost)
{
    Json axes = Json::array();
    for (const MeshAxis& axis : request.from.mesh.axes())
        axes.push_back({axis.name, axis.size});
    Json document = {{"schema", "meshwright.reshard/1"}, {"meshwright", kVersion}, {"shape", request.shape},
        {"dtype", dtypeName(request.dtype)}, {"mesh", {{"axes", std::move(axes)}}},
        {"from", layoutText(request.from.sharding, request.from.mesh)}, {"to", layoutText(request.to.sharding, request.to.mesh)},
        {"style", style}, {"collective_cost", cost}};
    document.update(planJson(plan, request.from.mesh, hardware));
    if (hardware)
        document["hardware"] = hardware->machine.text();
    document["full_gather"] = planJson(gather, request.from.mesh, hardware);
    return jsonText(document);
}

/// `0`, `0,2`, `1 -> 2`.
std::string dimsText(const ReshardStep& step)
{
    const auto list = [](const std::vector<std::size_t>& dims) { return fmt::format("{}", fmt::join(dims, ",")); };
    const StepDims dims = dimsOf(step);
    return dims.from.empty() || dims.to.empty() ? list(dims.from) + list(dims.to) : list(dims.from) + " -> " + list(dims.to);
}

std::string reshardText(
    const Request& request, const ReshardPlan& plan, const ReshardPlan& gather, const std::optional<Hardware>& hardware)
{
    const Mesh& mesh = request.from.mesh;
    using Align = TextTable::Align;
    std::string text = fmt::format("{} on {}: {} to {}{}\n", typeText({request.dtype, request.shape}), mesh.text(),
        layoutText(request.from.sharding, mesh), layoutText(request.to.sharding, request.to.mesh),
        mesh == request.to.mesh ? "" : " in another order of devices");
    if (plan.steps.empty())
        return text + "  nothing to do: every device has its part already\n";
    std::vector<TextTable::Column> columns
        = {{"step", Align::Right}, {"collective"}, {"axes"}, {"dims"}, {"bytes/device", Align::Right}};
    if (hardware)
        columns.push_back({"time", Align::Right});
    columns.push_back({"then"});
    TextTable table(std::move(columns));
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const ReshardStep& step = plan.steps[i];
        std::vector<std::string> cells = {fmt::format("{}", i + 1), opName(step.kind), axesText(step.attributes.axes, mesh),
            dimsText(step), formatBytes(movedBytes(step))};
        if (hardware)
            cells.push_back(step.kind == OpKind::AllSlice ? "-" : formatSeconds(secondsOf(step, *hardware)));
        cells.push_back(layoutText(step.result, mesh));
        table.addRow(std::move(cells));
    }
    text += table.text(2);
    const auto summary = [&](const ReshardPlan& of) {
        const Totals totals = totalsOf(of, hardware);
        return fmt::format("{} a device, at most {} in use{}", formatBytes(totals.bytes), formatBytes(of.peakBytes),
            hardware ? fmt::format(", {}", formatSeconds(totals.seconds)) : "");
    };
    text += fmt::format("moves {}{}\n", summary(plan), hardware ? " on " + hardware->machine.text() : "");
    text += fmt::format("a full gather first would move {}\n", summary(gather));
    return text;
}

/// What every device holds before the first collective and after each of them, as pictures shown one after the other.
std::string reshardSvg(const Request& request, const ReshardPlan& plan)
{
    constexpr double kSecondsEach = 2.0;
    const Mesh& mesh = request.from.mesh;
    ReshardDrawing drawing;
    drawing.shape = request.shape;
    drawing.colours = DeviceColours(mesh);
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
        drawing.devices.push_back(mesh.deviceAt(position));
    TensorSharding at = request.from.sharding;
    ReshardFrame before{fmt::format("{} on {}", typeText({request.dtype, request.shape}), mesh.text()),
        fmt::format("before: {}", layoutText(at, mesh)), {}};
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
        before.held.push_back({{shardBox(request.shape, at, mesh, position), {mesh.deviceAt(position)}}});
    drawing.frames.push_back(std::move(before));
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const ReshardStep& step = plan.steps[i];
        const std::string axes = axesText(step.attributes.axes, mesh);
        ReshardFrame frame{fmt::format("{}. {}{}", i + 1, opName(step.kind), axes.empty() ? "" : " over " + axes),
            fmt::format("{} a device, then {}", formatBytes(movedBytes(step)), layoutText(step.result, mesh)), {}};
        for (const std::vector<MovedPart>& parts : movedParts(request.shape, at, step, mesh)) {
            frame.held.emplace_back();
            for (const MovedPart& part : parts) {
                HeldPart held{part.box, {}};
                for (const std::int64_t position : part.from)
                    held.from.push_back(mesh.deviceAt(position));
                frame.held.back().push_back(std::move(held));
            }
        }
        drawing.frames.push_back(std::move(frame));
        at = step.result;
    }
    return animatedSvgText(drawReshard(drawing), Theme::Light, kSecondsEach);
}

/// The texts after a flag are not of the form it asks for: the command line is wrong, not what it says.
bool isMalformedReshard(const Problem& problem)
{
    return problem.id == "MW1117" || problem.id.starts_with("MW19");
}

} // namespace

int runReshard(const ReshardOptions& options, Output& output)
{
    if (isCheckpointReshard(options)) {
        if (output.format != Format::Svg)
            return runCheckpointReshard(options, output);
        fail({Problem{"MW1903", "--format: \"svg\" is not allowed here", "one of: text, json; only arrays are drawn"}}, output);
        return kExitUsage;
    }
    const auto refuse = [&](const Problems& problems) {
        const int code = fail(problems, output);
        return std::any_of(problems.begin(), problems.end(), isMalformedReshard) ? int{kExitUsage} : code;
    };
    auto machine = machineOf(options);
    if (!machine)
        return refuse(machine.error());
    ReshardOptions given = options;
    if (const std::vector<std::string> axes = axesNamedBy({options.from, options.to});
        options.mesh.empty() && *machine && !axes.empty()) {
        given.mesh = evenMesh(axes, (*machine)->deviceCount());
        output.narrate(
            fmt::format("mesh {}, as the machine has {} devices; --mesh names another", given.mesh, (*machine)->deviceCount()));
    }
    const auto request = requestOf(given);
    if (!request)
        return refuse(request.error());
    const Mesh& mesh = request->from.mesh;
    std::optional<Hardware> hardware;
    if (*machine) {
        auto placement = sim::placeMesh(mesh, **machine);
        if (!placement)
            return refuse(placement.error());
        hardware = {**std::move(machine), *std::move(placement)};
    }

    std::unique_ptr<CollectiveCost> cost = std::make_unique<BytesThenStepsCost>();
    if (hardware)
        cost = std::make_unique<sim::NetworkCost>(hardware->placement);
    const TensorSharding& from = request->from.sharding;
    const TensorSharding& to = request->to.sharding;
    const std::int64_t bytes = byteSize(request->dtype);
    // Only Shardy's sequence knows how to change the order of devices.
    const bool asShardy = options.shardy || mesh != request->to.mesh;
    const ReshardPlan plan = asShardy ? *planShardyReshard(request->shape, bytes, from, mesh, to, request->to.mesh, *cost)
                                      : planReshard(request->shape, bytes, from, to, mesh, *cost);
    const ReshardPlan gather = planByFullGather(request->shape, bytes, from, to, mesh, *cost);
    const auto text = [&] {
        if (output.format == Format::Svg)
            return reshardSvg(*request, plan);
        return output.format == Format::Json
            ? reshardJson(*request, plan, gather, hardware, asShardy ? "shardy" : "cheapest", cost->id())
            : reshardText(*request, plan, gather, hardware);
    };
    return writeResult(text(), options.result, output);
}

} // namespace meshwright::cli
