// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/verbs/verbs.h"

#include "core/draw/svg.h"
#include "core/support/checked.h"
#include "core/support/counted.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/collective/mesh_plan.h"
#include "sim/report/machine_picture.h"
#include "sim/session/engine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

bool hasOpenSize(const std::string& mesh)
{
    return mesh.find("-1") != std::string::npos;
}

/// The text of a mesh with the size of the axis that is -1 filled in, so that all devices are used; as NumPy and JAX infer it. Texts that are
/// wrong in other ways stay as they are.
Result<std::string> withInferredSize(const std::string& text, std::int64_t devices, const char* flag)
{
    std::vector<std::string> axes = split(text, ',');
    std::optional<std::size_t> open;
    std::int64_t others = 1;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::string_view axis = trimmed(axes[i]);
        const std::size_t equals = axis.find('=');
        const auto size = equals == std::string_view::npos ? std::nullopt : parseInteger(trimmed(axis.substr(equals + 1)));
        if (!size || *size == 0 || *size < -1)
            return text;
        if (*size == -1 && open)
            return Problem{"MW1950", "only one axis may have the size -1", "give all sizes except one", Place{flag}};
        if (*size == -1)
            open = i;
        else if (const auto product = checkedMultiply(others, *size))
            others = *product;
        else
            return text;
    }
    if (!open)
        return text;
    if (devices % others != 0)
        return Problem{"MW1950",
            fmt::format("{} devices are not divisible by {}, the product of the sizes that are given", devices, others),
            "give sizes whose product divides the number of devices", Place{flag}};
    std::string& axis = axes[*open];
    axis = axis.substr(0, axis.find('=') + 1) + std::to_string(devices / others);
    return join(axes, ",");
}

/// The mesh of --mesh, or of --ici and --dcn: axes of --dcn that --ici lacks come first, as the most major.
Result<sim::MeshRequest> requestOf(const MeshOptions& options)
{
    Problems problems;
    const auto parsed = [&](const std::string& text, const char* flag) {
        auto mesh = parseMesh(text);
        if (!mesh)
            append(problems, inFile(mesh.error(), flag));
        return mesh ? *std::move(mesh) : Mesh();
    };
    sim::MeshRequest request;
    request.allowSplit = !options.wholeAxes;
    request.contiguousSubmeshes = options.contiguousSubmeshes;
    if (options.order == "axes")
        request.order = sim::DeviceOrderBy::Axes;
    else if (options.order != "jax")
        problems.push_back({"MW1903", fmt::format("--order: \"{}\" is not allowed here", options.order), "one of: jax, axes"});
    const bool isHybrid = !options.inner.empty() || !options.outer.empty();
    if (isHybrid != options.mesh.empty() || (isHybrid && (options.inner.empty() || options.outer.empty())))
        problems.push_back({"MW1911", isHybrid ? "--ici and --dcn must be given together, without --mesh" : "no mesh is given",
            "give --mesh data=4,model=2, or --ici data=4,model=2 --dcn data=2"});
    if (!problems.empty() || !isHybrid) {
        request.mesh = parsed(options.mesh, "--mesh");
        return problems.empty() ? Result<sim::MeshRequest>(std::move(request)) : problems;
    }
    const Mesh inner = parsed(options.inner, "--ici");
    const Mesh outer = parsed(options.outer, "--dcn");
    std::vector<MeshAxis> axes;
    for (const MeshAxis& axis : outer.axes()) {
        if (!inner.axisSize(axis.name))
            axes.push_back({axis.name, 1});
    }
    axes.insert(axes.end(), inner.axes().begin(), inner.axes().end());
    for (const MeshAxis& axis : axes)
        request.outer.push_back(outer.axisSize(axis.name).value_or(1));
    if (!problems.empty())
        return problems;
    request.mesh = valueOf(Mesh::create(std::move(axes)));
    return request;
}

/// `x`, `2 of y`: where an axis lies.
std::string sharesText(const sim::PlannedAxis& axis)
{
    std::vector<std::string> texts;
    for (const sim::PhysicalShare& share : axis.shares)
        texts.push_back(
            share.devices == share.length ? share.axis : fmt::format("{} of {} on {}", share.devices, share.length, share.axis));
    return join(texts, ", ");
}

std::string rateText(double bytesPerSecond)
{
    return bytesPerSecond > 0.0 ? formatCount(bytesPerSecond) + "B/s" : "-";
}

std::string meshText(const sim::MeshPlan& plan, const sim::Machine& machine)
{
    using Align = TextTable::Align;
    const bool isHybrid = plan.slices > 1;
    const char* outer = machine.chip.chipClass == sim::ChipClass::Tpu ? "slices" : "hosts";
    std::vector<TextTable::Column> columns
        = {{"axis"}, {"size", Align::Right}, {"runs on"}, {"wraps"}, {"all-gather", Align::Right}, {"hop", Align::Right}};
    if (isHybrid)
        columns.push_back({outer, Align::Right});
    TextTable table(std::move(columns));
    for (const sim::PlannedAxis& axis : plan.planned) {
        std::vector<std::string> row = {axis.name, fmt::format("{}", axis.size), axis.shares.empty() ? "-" : sharesText(axis),
            !axis.wraps       ? "-"
                : *axis.wraps ? "yes"
                              : "no",
            rateText(axis.bytesPerSecond), axis.size > 1 ? formatSeconds(axis.hopSeconds) : "-"};
        if (isHybrid)
            row.push_back(fmt::format("{}", axis.outer));
        table.addRow(std::move(row));
    }
    std::string text = fmt::format("{}: {}", plan.machine, counted(machine.deviceCount(), "device"));
    if (isHybrid)
        text += fmt::format(
            "\n{} such {}, {} a device between them", plan.slices, outer, rateText(plan.betweenSlicesBytesPerSecond));
    text += "\n\n" + table.text(2);
    text += "\n  device order\n";
    for (const std::string& line : split(arrayText(plan.order), '\n'))
        text += line.empty() ? "\n" : "  " + line + "\n";
    text += "\n  in JAX\n";
    for (const std::string& line : split(std::string(trimmed(plan.jax)), '\n'))
        text += "  " + line + "\n";
    if (!plan.notes.empty() || !machine.assumptions.empty())
        text += "\n";
    for (const std::string& note : plan.notes)
        text += "  note: " + note + "\n";
    for (const std::string& assumption : machine.assumptions)
        text += "  assumed: " + assumption + "\n";
    return text;
}

std::string meshJson(const sim::MeshPlan& plan, const sim::Machine& machine)
{
    Json axes = Json::array();
    for (const MeshAxis& axis : plan.axes)
        axes.push_back({axis.name, axis.size});
    Json planned = Json::array();
    for (const sim::PlannedAxis& axis : plan.planned) {
        Json on = Json::array();
        for (const sim::PhysicalShare& share : axis.shares)
            on.push_back({{"axis", share.axis}, {"devices", share.devices}, {"of", share.length}, {"wraps", share.wraps}});
        planned.push_back({{"name", axis.name}, {"size", axis.size}, {"slices", axis.outer}, {"on", std::move(on)},
            {"wraps", axis.wraps ? Json(*axis.wraps) : Json(nullptr)}, {"all_gather_bytes_per_s", axis.bytesPerSecond},
            {"hop_s", axis.hopSeconds}});
    }
    const Json document = {{"schema", "meshwright.mesh/1"}, {"meshwright", kVersion}, {"hardware", plan.machine},
        {"chip", machine.chip.key}, {"devices_per_slice", machine.deviceCount()}, {"slices", plan.slices},
        {"between_slices_bytes_per_s", plan.betweenSlicesBytesPerSecond},
        {"mesh", {{"axes", std::move(axes)}, {"device_ids", plan.order.devices}}}, {"axes", std::move(planned)},
        {"jax", plan.jax}, {"notes", plan.notes}, {"assumptions", machine.assumptions}};
    return jsonText(document);
}

/// One slice with its links, and where the mesh's axes lie on it.
Result<std::string> meshSvg(const sim::MeshPlan& plan, const sim::MeshRequest& request, const sim::Machine& machine)
{
    const auto placement = sim::placementOf(plan, request, machine);
    if (!placement)
        return placement.error();
    auto drawing = sim::machinePicture(machine, &*placement);
    if (!drawing)
        return drawing.error();
    drawing->title += ": mesh " + placement->mesh().text();
    if (plan.slices > 1)
        drawing->title += fmt::format(", one of {} such", plan.slices);
    drawing->deviceColours = DeviceColours(placement->mesh());
    return svgText(drawTopology(*drawing), Theme::Light);
}

Result<std::string> writtenMesh(
    const sim::MeshPlan& plan, const sim::MeshRequest& request, const sim::Machine& machine, Format format)
{
    if (format == Format::Svg)
        return meshSvg(plan, request, machine);
    return format == Format::Json ? meshJson(plan, machine) : meshText(plan, machine);
}

} // namespace

Result<std::vector<std::int64_t>> parseTopology(const std::string& text)
{
    std::vector<std::int64_t> sizes;
    for (const std::string& part : split(text, 'x')) {
        const auto size = parseInteger(trimmed(part));
        if (!size)
            return Problem{"MW1910",
                fmt::format("\"{}\" is not a topology: \"{}\" is not a number of chips", text, trimmed(part)),
                "write the chips along each axis with an x between them, such as 4x4", Place{"--topology"}};
        sizes.push_back(*size);
    }
    return sizes;
}

namespace {

Result<sim::Machine> machineOf(const MeshOptions& options)
{
    std::vector<std::int64_t> topology;
    if (!options.topology.empty()) {
        auto parsed = parseTopology(options.topology);
        if (!parsed)
            return parsed.error();
        topology = *std::move(parsed);
    }
    const auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return catalogue.error();
    return sim::buildMachine(*catalogue, {options.chip, topology, options.hosts, options.perHost});
}

} // namespace

int runMesh(const MeshOptions& given, Output& output)
{
    MeshOptions options = given;
    if (hasOpenSize(given.mesh) || hasOpenSize(given.inner)) {
        const auto machine = machineOf(given);
        if (!machine)
            return fail(machine.error(), output);
        const auto mesh = withInferredSize(given.mesh, machine->deviceCount(), "--mesh");
        const auto inner = withInferredSize(given.inner, machine->deviceCount(), "--ici");
        if (!mesh || !inner)
            return fail(mesh ? inner.error() : mesh.error(), output);
        options.mesh = *mesh;
        options.inner = *inner;
    }
    Problems problems;
    if (!options.topology.empty()) {
        if (const auto parsed = parseTopology(options.topology); !parsed)
            append(problems, parsed.error());
    }
    const auto request = requestOf(options);
    if (!request)
        append(problems, request.error());
    if (!problems.empty()) {
        const int code = fail(problems, output);
        // A text that is not a mesh is a wrong command line, not a document with a mistake.
        return std::any_of(problems.begin(), problems.end(), [](const Problem& problem) { return problem.id == "MW1117"; })
            ? int{kExitUsage}
            : code;
    }

    const auto machine = machineOf(options);
    if (!machine)
        return fail(machine.error(), output);
    const auto plan = sim::planMesh(*request, *machine);
    if (!plan)
        return fail(plan.error(), output);
    const auto text = writtenMesh(*plan, *request, *machine, output.format);
    if (!text)
        return fail(text.error(), output);
    return writeResult(*text, options.file, output);
}

} // namespace meshwright::cli
