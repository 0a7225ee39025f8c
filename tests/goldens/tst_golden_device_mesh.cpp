// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/goldens/golden_runner.h"

#include "core/mesh/device_mesh.h"
#include "tests/test_class.h"

#include <numeric>

namespace tst_golden_device_mesh {

using namespace meshwright;
using namespace meshwright::goldens;

class TestGoldenDeviceMesh : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases();
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"device_mesh.json"};
};

namespace {

using Sizes = std::vector<std::int64_t>;

/// Nested lists, one level for each axis of the shape.
Json nested(const DeviceArray& array)
{
    std::vector<Json> level(array.devices.begin(), array.devices.end());
    for (auto size = array.shape.rbegin(); size != array.shape.rend(); ++size) {
        std::vector<Json> outer;
        for (std::size_t i = 0; i < level.size(); i += static_cast<std::size_t>(*size))
            outer.push_back(Json(std::vector<Json>(
                level.begin() + static_cast<std::ptrdiff_t>(i), level.begin() + static_cast<std::ptrdiff_t>(i) + *size)));
        level = std::move(outer);
    }
    return level.front();
}

DeviceArray countedMesh(const Sizes& shape)
{
    DeviceArray mesh{shape, {}};
    mesh.devices.resize(
        static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
    std::iota(mesh.devices.begin(), mesh.devices.end(), DeviceId{0});
    return mesh;
}

std::vector<PlacedDevice> devicesOf(const Json& json)
{
    std::vector<PlacedDevice> devices;
    for (const Json& entry : json) {
        PlacedDevice device;
        device.id = entry.at("id").get<DeviceId>();
        device.chip = entry.at("coords").get<std::array<std::int64_t, 3>>();
        device.core = entry.value("core", std::int64_t{0});
        device.slice = entry.value("slice", std::int64_t{0});
        device.process = entry.value("process", std::int64_t{0});
        devices.push_back(device);
    }
    return devices;
}

Outcome runTorus(const Json& golden)
{
    const auto physical = golden.at("physical").get<Sizes>();
    const auto logical = golden.at("logical").get<Sizes>();
    const auto found = assignToTorus(physical, logical, {golden.value("allow_split", false)});
    const Json& expect = golden.at("expect");
    if (!found)
        return failed(describe(found.error()));
    std::vector<Outcome> outcomes;
    if (expect.contains("assignment_matrix"))
        outcomes.push_back(same("matrix", found->sizes, expect.at("assignment_matrix").get<std::vector<Sizes>>()));
    if (expect.contains("axes_of_logical")) {
        // As JAX's test does: whole axes as a matrix, which says nothing of physical axes of size 1.
        std::vector<Sizes> whole(physical.size(), Sizes(logical.size(), 1));
        for (std::size_t axis = 0; axis < logical.size(); ++axis) {
            for (const auto at : expect.at("axes_of_logical").at(axis).get<std::vector<std::size_t>>())
                whole.at(at)[axis] = physical[at];
        }
        outcomes.push_back(same("matrix", found->sizes, whole));
    }
    return outcomes.empty() ? failed("nothing of the expectation is known") : all(outcomes);
}

Outcome runDeviceMesh(const Json& golden)
{
    const auto kind = deviceKindOf(golden.at("device_kind").get<std::string>());
    if (!kind)
        return failed(describe(kind.error()));
    const auto devices = devicesOf(golden.at("devices"));
    const DeviceMeshOptions options{golden.value("contiguous_submeshes", false), golden.value("allow_split", false)};
    const auto mesh = createDeviceMesh(golden.at("logical").get<Sizes>(), *kind, devices, options);
    if (!mesh)
        return failed(describe(mesh.error()));
    std::vector<Outcome> outcomes = {same("devices", nested(*mesh), golden.at("expect").at("device_ids"))};

    // The devices that we list for this slice ourselves are those of the case, in its order.
    const auto listed = tpuDevices(*kind, golden.at("topology").get<Sizes>());
    if (listed && listed->size() == devices.size()) {
        std::vector<DeviceId> ours;
        std::vector<DeviceId> theirs;
        for (std::size_t i = 0; i < devices.size(); ++i) {
            ours.push_back((*listed)[i].id);
            theirs.push_back(devices[i].id);
            outcomes.push_back(same("place", (*listed)[i].chip, devices[i].chip));
        }
        outcomes.push_back(same("listed devices", ours, theirs));
    }
    return all(outcomes);
}

Outcome runContiguous(const Json& golden)
{
    const auto transpose = contiguousTranspose(golden.at("physical").get<Sizes>(), golden.at("logical").get<Sizes>());
    return transpose ? same("transpose", *transpose, golden.at("expect").at("transpose").get<std::vector<std::size_t>>())
                     : failed(describe(transpose.error()));
}

Outcome runApply(const Json& golden)
{
    const TorusAssignment assignment{golden.at("assignment_matrix").get<std::vector<Sizes>>(), true};
    const DeviceArray mesh
        = applyAssignment(countedMesh(golden.at("physical").get<Sizes>()), golden.at("logical").get<Sizes>(), assignment);
    std::vector<Outcome> outcomes = {same("shape", mesh.shape, golden.at("expect").at("logical_shape").get<Sizes>())};
    if (golden.contains("derived"))
        outcomes.push_back(
            same("devices", mesh.devices, golden.at("derived").at("device_ids_flat").get<std::vector<DeviceId>>()));
    return all(outcomes);
}

Outcome runPhysical(const Json& golden)
{
    const auto kind = deviceKindOf(golden.at("device_kind").get<std::string>());
    if (!kind)
        return failed(describe(kind.error()));
    auto devices = tpuDevices(*kind, golden.at("topology").get<Sizes>());
    if (!devices)
        return failed(describe(devices.error()));
    const auto mesh = physicalMesh(*kind, *devices);
    std::reverse(devices->begin(), devices->end());
    const auto reversed = physicalMesh(*kind, *devices);
    return mesh && reversed ? all({same("shape", mesh->shape, golden.at("expect").at("shape").get<Sizes>()),
               same("in any order", *mesh == *reversed, true)})
                            : failed(describe(mesh.error()));
}

Outcome run(const Json& golden)
{
    const std::string kind = golden.at("kind").get<std::string>();
    if (kind == "torus_assignment")
        return runTorus(golden);
    if (kind == "device_mesh")
        return runDeviceMesh(golden);
    if (kind == "contiguous_submesh")
        return runContiguous(golden);
    if (kind == "feasible_assignments")
        return same("assignments",
            feasibleAssignments(golden.at("physical").get<Sizes>(), golden.at("already_assigned").get<Sizes>(),
                golden.at("logical_axis_size").get<std::int64_t>()),
            golden.at("expect").at("assignments").get<std::vector<Sizes>>());
    if (kind == "prefer")
        return same("first preferred",
            prefersFirst(golden.at("first").get<Sizes>(), golden.at("second").get<Sizes>(), golden.at("physical").get<Sizes>(),
                golden.at("already_assigned").get<Sizes>()),
            golden.at("expect").at("first_preferred").get<bool>());
    if (kind == "apply_assignment")
        return runApply(golden);
    if (kind == "physical_mesh")
        return runPhysical(golden);
    if (kind == "hybrid")
        return unsupported("the README does not say which fields a case of a hybrid mesh has");
    return failed("unknown kind " + kind);
}

} // namespace

void TestGoldenDeviceMesh::cases()
{
    settleCase(m_file, run);
}

MESHWRIGHT_TEST(TestGoldenDeviceMesh)

} // namespace tst_golden_device_mesh

#include "tst_golden_device_mesh.moc"
