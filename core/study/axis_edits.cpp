// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/axis_edits.h"

#include "core/study/yaml_text.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

namespace meshwright {

namespace {

/// What becomes of an axis name; nothing: it is left out.
using Renaming = std::function<std::optional<std::string>(const std::string&)>;

std::vector<std::string> renamed(const std::vector<std::string>& axes, const Renaming& renaming)
{
    std::vector<std::string> result;
    for (const std::string& axis : axes) {
        if (auto name = renaming(axis))
            result.push_back(*std::move(name));
    }
    return result;
}

PartitionSpec renamed(const PartitionSpec& spec, const Renaming& renaming)
{
    PartitionSpec result;
    for (const auto& axes : spec.dims)
        result.dims.push_back(renamed(axes, renaming));
    return result;
}

void addMesh(std::vector<std::string>& settings, const std::string& path, const std::vector<MeshAxis>& mesh,
    const std::vector<DeviceId>& order, bool orderIsInside, const Renaming& renaming)
{
    std::vector<MeshAxis> changed;
    bool reorders = false;
    for (const MeshAxis& axis : mesh) {
        if (auto name = renaming(axis.name))
            changed.push_back({*std::move(name), axis.size});
        else
            reorders = reorders || axis.size > 1;
    }
    if (changed == mesh)
        return;
    const bool keepsInside = orderIsInside && !reorders;
    settings.push_back(fmt::format("{}={}", path, meshValue(changed, keepsInside ? order : std::vector<DeviceId>{})));
    if (reorders && !order.empty() && !orderIsInside)
        settings.push_back(path == "mesh" ? "device_order=" : path.substr(0, path.rfind('.')) + ".device_order=");
}

/// Without its axis a pipeline has one stage; its microbatches stay.
void addOneStage(std::vector<std::string>& settings, const Study& study)
{
    const auto isWritten = [&](const char* key) { return study.places.at.contains(fmt::format("pipeline.{}", key)); };
    if (!isWritten("microbatches"))
        return settings.push_back("pipeline=");
    for (const char* key : {"axis", "stages", "chunks", "layers", "schedule"}) {
        if (isWritten(key))
            settings.push_back(fmt::format("pipeline.{}=", key));
    }
}

/// The settings that rename axes everywhere.
std::vector<std::string> settingsOf(const Study& study, const Renaming& renaming)
{
    std::vector<std::string> settings;
    const auto isInside = [&](const std::string& path) { return study.places.at.contains(path + ".device_order"); };
    addMesh(settings, "mesh", study.mesh, study.deviceOrder, isInside("mesh"), renaming);
    for (std::size_t i = 0; i < study.phases.size(); ++i) {
        const std::string path = fmt::format("phases[{}].mesh", i);
        addMesh(settings, path, study.phases[i].mesh, study.phases[i].deviceOrder, isInside(path), renaming);
    }
    const auto addSpec = [&](const std::string& path, const PartitionSpec& spec) {
        if (const PartitionSpec changed = renamed(spec, renaming); changed != spec)
            settings.push_back(fmt::format("{}={}", path, specText(changed)));
    };
    for (const ShardingEntry& entry : study.sharding.entries)
        addSpec(entry.path, entry.spec);
    for (std::size_t i = 0; i < study.sharding.match.size(); ++i)
        addSpec(fmt::format("sharding.match[{}].spec", i), study.sharding.match[i].spec);
    for (std::size_t i = 0; study.sharding.ruleList.empty() && i < study.sharding.rules.size(); ++i) {
        const std::vector<std::string>& axes = study.sharding.rules[i].target.axes;
        if (const auto changed = renamed(axes, renaming); changed != axes)
            settings.push_back(fmt::format("sharding.rules[{}].1={}", i, namesText(changed)));
    }
    if (study.pipeline.axis.empty())
        return settings;
    const auto axis = renaming(study.pipeline.axis);
    if (!axis)
        addOneStage(settings, study);
    else if (*axis != study.pipeline.axis)
        settings.push_back("pipeline.axis=" + *axis);
    return settings;
}

} // namespace

std::string meshValue(const std::vector<MeshAxis>& mesh, const std::vector<DeviceId>& order)
{
    std::vector<std::string> parts;
    for (const MeshAxis& axis : mesh)
        parts.push_back(fmt::format("{}: {}", keyText(axis.name), axis.size));
    if (!order.empty())
        parts.push_back(fmt::format("device_order: [{}]", fmt::join(order, ", ")));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

std::vector<std::string> renameAxisSettings(const Study& study, const std::string& from, const std::string& to)
{
    return settingsOf(study, [&](const std::string& axis) -> std::optional<std::string> { return axis == from ? to : axis; });
}

std::vector<std::string> removeAxisSettings(const Study& study, const std::string& axis)
{
    return settingsOf(
        study, [&](const std::string& name) { return name == axis ? std::nullopt : std::optional<std::string>(name); });
}

std::string axisNameProblem(const Study& study, const std::string& name)
{
    std::vector<MeshAxis> axes = study.mesh;
    axes.push_back({name, 1});
    const auto mesh = Mesh::create(axes);
    if (!mesh)
        return mesh.error().back().message;
    return name == "device_order" ? "\"device_order\" is the key of the device order" : std::string();
}

} // namespace meshwright
