// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mesh/device_mesh.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace meshwright {

namespace {

using Sizes = std::vector<std::int64_t>;

struct KindName {
    DeviceKind kind;
    const char* name; ///< JAX's; the first of a kind is the one that is printed
    const char* brief;
};

constexpr std::array<KindName, 13> kKindNames = {{
    {DeviceKind::TpuV2, "TPU v2", "v2"},
    {DeviceKind::TpuV3, "TPU v3", "v3"},
    {DeviceKind::TpuV4, "TPU v4", "v4"},
    {DeviceKind::TpuV5e, "TPU v5 lite", "v5e"},
    {DeviceKind::TpuV5e, "TPU v5e", "v5litepod"},
    {DeviceKind::TpuV5p, "TPU v5p", "v5p"},
    {DeviceKind::TpuV5p, "TPU v5", "v5"},
    {DeviceKind::TpuV6e, "TPU v6 lite", "v6e"},
    {DeviceKind::TpuV6e, "TPU v6e", "trillium"},
    {DeviceKind::TpuV7x, "TPU7x", "v7x"},
    {DeviceKind::TpuV7x, "TPU7", "v7"},
    {DeviceKind::Gpu, "gpu", "cuda"},
    {DeviceKind::Other, "cpu", "other"},
}};

std::int64_t product(std::span<const std::int64_t> sizes)
{
    return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

Sizes stridesOf(std::span<const std::int64_t> shape)
{
    Sizes strides(shape.size(), 1);
    for (std::size_t dim = shape.size(); dim > 1; --dim)
        strides[dim - 2] = strides[dim - 1] * shape[dim - 1];
    return strides;
}

bool hasCoreAxis(DeviceKind kind, std::int64_t cores)
{
    return kind == DeviceKind::TpuV7x || (kind == DeviceKind::TpuV5p && cores == 2);
}

} // namespace

Result<DeviceKind> deviceKindOf(std::string_view name)
{
    std::string wanted = lowerCase(trimmed(name));
    std::vector<std::string> names;
    for (const KindName& entry : kKindNames) {
        const std::string brief = entry.brief;
        for (const std::string& spelling : {lowerCase(entry.name), brief, "tpu-" + brief, "tpu " + brief, "tpu" + brief}) {
            if (spelling == wanted)
                return entry.kind;
        }
        names.push_back(brief);
    }
    return Problem{"MW1170", fmt::format("\"{}\" is not a kind of device", name), suggestion(wanted, names)};
}

const char* deviceKindName(DeviceKind kind)
{
    return std::find_if(kKindNames.begin(), kKindNames.end(), [&](const KindName& entry) { return entry.kind == kind; })->name;
}

Result<std::vector<PlacedDevice>> tpuDevices(DeviceKind kind, std::span<const std::int64_t> topology)
{
    const Problem wrong{"MW1171", fmt::format("{} is not a topology of chips", fmt::join(topology, "x")),
        "give one to three sizes, such as 4x4 or 2x2x4"};
    std::array<std::int64_t, 3> chips = {1, 1, 1};
    if (topology.empty() || topology.size() > 3
        || std::any_of(topology.begin(), topology.end(), [](std::int64_t size) { return size < 1; }))
        return wrong;
    std::copy(topology.begin(), topology.end(), chips.begin());
    const std::int64_t cores = kind == DeviceKind::TpuV2 || kind == DeviceKind::TpuV3 || kind == DeviceKind::TpuV7x ? 2 : 1;
    const auto count = checkedProduct(std::array{chips[0], chips[1], chips[2], cores});
    if (!count || *count > kLargestMesh)
        return wrong;

    // A host has 2x2 chips of one layer, or fewer at the edge of a small slice.
    const std::array<std::int64_t, 2> hosts = {ceilDiv(chips[0], 2), ceilDiv(chips[1], 2)};
    std::vector<PlacedDevice> devices;
    devices.reserve(static_cast<std::size_t>(*count));
    for (std::int64_t host = 0; host < hosts[0] * hosts[1] * chips[2]; ++host) {
        const std::int64_t z = host / (hosts[0] * hosts[1]);
        const std::int64_t firstX = host % hosts[0] * 2;
        const std::int64_t firstY = host / hosts[0] % hosts[1] * 2;
        for (std::int64_t y = firstY; y < std::min(firstY + 2, chips[1]); ++y) {
            for (std::int64_t x = firstX; x < std::min(firstX + 2, chips[0]); ++x) {
                for (std::int64_t core = 0; core < cores; ++core)
                    devices.push_back({((z * chips[1] + y) * chips[0] + x) * cores + core, {x, y, z}, core, 0, host});
            }
        }
    }
    return devices;
}

Result<DeviceArray> physicalMesh(DeviceKind kind, const std::vector<PlacedDevice>& devices)
{
    const auto problem = [](std::string message) {
        return Problem{"MW1172", std::move(message), "give all devices of a box of chips, each once"};
    };
    if (devices.empty())
        return problem("there is no device");
    std::array<std::int64_t, 4> low
        = {devices.front().chip[0], devices.front().chip[1], devices.front().chip[2], devices.front().core};
    std::array<std::int64_t, 4> high = low;
    const auto placeOf = [](const PlacedDevice& device) {
        return std::array{device.chip[0], device.chip[1], device.chip[2], device.core};
    };
    for (const PlacedDevice& device : devices) {
        const auto place = placeOf(device);
        for (std::size_t i = 0; i < place.size(); ++i) {
            low[i] = std::min(low[i], place[i]);
            high[i] = std::max(high[i], place[i]);
        }
    }
    const std::int64_t cores = high[3] - low[3] + 1;
    std::vector<std::size_t> axes = {0, 1, 2};
    if (kind == DeviceKind::TpuV2 || kind == DeviceKind::TpuV3) {
        if (high[2] != low[2])
            return problem(fmt::format("a {} has no third dimension of chips", deviceKindName(kind)));
        axes = {0, 1, 3};
    } else if (hasCoreAxis(kind, cores)) {
        axes = {0, 1, 2, 3};
    } else if (cores > 1) {
        return problem(fmt::format("a {} has one device per chip, these have {}", deviceKindName(kind), cores));
    }
    DeviceArray mesh;
    for (const std::size_t axis : axes)
        mesh.shape.push_back(high[axis] - low[axis] + 1);
    const auto places = checkedProduct(mesh.shape);
    if (places != static_cast<std::int64_t>(devices.size()))
        return problem(fmt::format("{} devices do not fill a box of {}", devices.size(), fmt::join(mesh.shape, "x")));
    const Sizes strides = stridesOf(mesh.shape);
    mesh.devices.assign(devices.size(), -1);
    for (const PlacedDevice& device : devices) {
        const auto place = placeOf(device);
        std::int64_t at = 0;
        for (std::size_t i = 0; i < axes.size(); ++i)
            at += (place[axes[i]] - low[axes[i]]) * strides[i];
        DeviceId& held = mesh.devices[static_cast<std::size_t>(at)];
        if (held != -1)
            return problem(fmt::format("devices {} and {} are at the same place", held, device.id));
        held = device.id;
    }
    return mesh;
}

std::vector<std::size_t> TorusAssignment::axesOf(std::size_t logical) const
{
    std::vector<std::size_t> axes;
    for (std::size_t physical = 0; physical < sizes.size(); ++physical) {
        if (sizes[physical][logical] > 1)
            axes.push_back(physical);
    }
    return axes;
}

namespace {

/// All subsets of `count` of the axes 0..rank-1, in lexicographic order.
std::vector<std::vector<std::size_t>> subsets(std::size_t rank, std::size_t count)
{
    std::vector<std::vector<std::size_t>> all;
    std::vector<std::size_t> chosen(count);
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    while (count <= rank) {
        all.push_back(chosen);
        std::size_t at = count;
        while (at > 0 && chosen[at - 1] == rank - count + at - 1)
            --at;
        if (at == 0)
            break;
        ++chosen[at - 1];
        std::iota(chosen.begin() + static_cast<std::ptrdiff_t>(at), chosen.end(), chosen[at - 1] + 1);
    }
    return all;
}

/// The order in which subsets are tried when the last axis is the fastest: by their best axis (the last, then the others in order), then
/// by the sum of those ranks.
void sortCoresFirst(std::vector<std::vector<std::size_t>>& candidates, std::size_t rank)
{
    const auto key = [&](const std::vector<std::size_t>& axes) {
        std::size_t best = rank;
        std::size_t sum = 0;
        for (const std::size_t axis : axes) {
            const std::size_t order = axis + 1 == rank ? 0 : axis + 1;
            best = std::min(best, order);
            sum += order;
        }
        return std::pair(best, sum);
    };
    std::stable_sort(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

TorusAssignment splitAssignment(std::span<const std::int64_t> physical, std::span<const std::int64_t> logical)
{
    TorusAssignment found{std::vector(physical.size(), Sizes(logical.size(), 1)), false};
    Sizes assigned(physical.size(), 1);
    for (std::size_t axis = logical.size(); axis > 0; --axis) {
        const auto ways = feasibleAssignments(physical, assigned, logical[axis - 1]);
        assert(!ways.empty()); // the products agree, so the prime factors that are left do too
        const Sizes* best = &ways.front();
        for (const Sizes& way : ways) {
            if (prefersFirst(way, *best, physical, assigned))
                best = &way;
        }
        for (std::size_t p = 0; p < physical.size(); ++p) {
            found.sizes[p][axis - 1] = (*best)[p];
            assigned[p] *= (*best)[p];
        }
    }
    for (const Sizes& row : found.sizes)
        found.splits = found.splits || std::count_if(row.begin(), row.end(), [](std::int64_t size) { return size > 1; }) > 1;
    return found;
}

Problem countMismatch(std::span<const std::int64_t> logical, std::int64_t devices)
{
    const auto needed = checkedProduct(logical);
    return {"MW1173",
        fmt::format("the logical mesh {} needs {} devices, there are {}", fmt::join(logical, "x"),
            needed ? std::to_string(*needed) : "more", devices),
        fmt::format("give sizes whose product is {}", devices), {}, Severity::Error,
        "the product of the logical sizes is the number of devices"};
}

bool fits(std::span<const std::int64_t> logical, std::int64_t devices)
{
    return std::all_of(logical.begin(), logical.end(), [](std::int64_t size) { return size >= 1; })
        && checkedProduct(logical) == devices;
}

} // namespace

Result<TorusAssignment> assignToTorus(
    std::span<const std::int64_t> physical, std::span<const std::int64_t> logical, const TorusOptions& options)
{
    if (!fits(logical, product(physical)))
        return countMismatch(logical, product(physical));
    TorusAssignment found{std::vector(physical.size(), Sizes(logical.size(), 1)), false};
    Sizes left(physical.begin(), physical.end()); // 0: taken
    for (std::size_t axis = logical.size(); axis > 0; --axis) {
        const std::int64_t size = logical[axis - 1];
        const std::vector<std::size_t>* chosen = nullptr;
        std::vector<std::vector<std::size_t>> candidates;
        for (std::size_t count = physical.size(); count > 0 && chosen == nullptr; --count) {
            candidates = subsets(physical.size(), count);
            if (options.coresFirst)
                sortCoresFirst(candidates, physical.size());
            for (const auto& candidate : candidates) {
                std::int64_t devices = 1;
                for (const std::size_t p : candidate)
                    devices *= left[p];
                if (devices == size) {
                    chosen = &candidate;
                    break;
                }
            }
        }
        if (chosen != nullptr) {
            for (const std::size_t p : *chosen) {
                found.sizes[p][axis - 1] = physical[p];
                left[p] = 0;
            }
        } else if (size > 1) {
            if (options.allowSplit)
                return splitAssignment(physical, logical);
            std::erase(left, 0);
            return Problem{"MW1174",
                fmt::format("logical axis {} of size {} is not a product of whole physical axes: {} left of {}", axis - 1, size,
                    left.empty() ? "nothing is" : fmt::format("{} is", fmt::join(left, ", ")), fmt::join(physical, "x")),
                "choose sizes that are products of physical axes, or allow physical axes to be split", {}, Severity::Error,
                "each logical axis is the product of some physical axes"};
        }
    }
    return found;
}

std::vector<Sizes> feasibleAssignments(
    std::span<const std::int64_t> physical, std::span<const std::int64_t> assigned, std::int64_t size)
{
    // The choices for one prime after the other; each choice is a multiset of physical axes, in lexicographic order.
    std::vector<Sizes> ways = {Sizes(physical.size(), 1)};
    for (std::int64_t prime = 2; size > 1; ++prime) {
        if (prime * prime > size)
            prime = size;
        std::int64_t wanted = 0;
        while (size % prime == 0) {
            size /= prime;
            ++wanted;
        }
        if (wanted == 0)
            continue;
        std::vector<Sizes> choices; // the power of the prime from each axis
        Sizes powers(physical.size(), 1);
        const auto choose = [&](const auto& self, std::size_t axis, std::int64_t missing) -> void {
            if (axis == physical.size()) {
                if (missing == 0)
                    choices.push_back(powers);
                return;
            }
            std::int64_t available = physical[axis] / assigned[axis];
            std::int64_t most = 0;
            for (; most < missing && available % prime == 0; ++most)
                available /= prime;
            // The most from the first axes comes first.
            for (std::int64_t taken = most; taken >= 0; --taken) {
                powers[axis] = 1;
                for (std::int64_t i = 0; i < taken; ++i)
                    powers[axis] *= prime;
                self(self, axis + 1, missing - taken);
            }
            powers[axis] = 1;
        };
        choose(choose, 0, wanted);
        std::vector<Sizes> longer;
        for (const Sizes& way : ways) {
            for (const Sizes& choice : choices) {
                longer.push_back(way);
                for (std::size_t axis = 0; axis < physical.size(); ++axis)
                    longer.back()[axis] *= choice[axis];
            }
        }
        ways = std::move(longer);
    }
    return ways;
}

bool prefersFirst(std::span<const std::int64_t> first, std::span<const std::int64_t> second,
    std::span<const std::int64_t> physical, std::span<const std::int64_t> assigned)
{
    struct Merit {
        std::int64_t onWholeAxes = 1;
        std::int64_t wholeAxes = 0;
        std::int64_t onTakenAxes = 1;

        auto operator<=>(const Merit&) const = default;
    };
    const auto meritOf = [&](std::span<const std::int64_t> taken) {
        Merit merit;
        for (std::size_t axis = 0; axis < taken.size(); ++axis) {
            if (taken[axis] == physical[axis]) {
                merit.onWholeAxes *= taken[axis];
                merit.wholeAxes += taken[axis] > 1 ? 1 : 0;
            }
            if (assigned[axis] > 1)
                merit.onTakenAxes *= taken[axis];
        }
        return merit;
    };
    const Merit a = meritOf(first);
    const Merit b = meritOf(second);
    return a != b ? a > b : std::lexicographical_compare(second.begin(), second.end(), first.begin(), first.end());
}

DeviceArray applyAssignment(const DeviceArray& physical, std::span<const std::int64_t> logical, const TorusAssignment& assignment)
{
    // The physical array reshaped by the assignment has an axis for each pair (physical, logical); ordered by (logical, physical) it is the
    // logical mesh.
    Sizes pairs;
    for (const Sizes& row : assignment.sizes)
        pairs.insert(pairs.end(), row.begin(), row.end());
    const Sizes strides = stridesOf(pairs);
    DeviceArray mesh{{logical.begin(), logical.end()}, {}};
    mesh.devices.reserve(physical.devices.size());
    std::vector<std::size_t> order; // most major first
    for (std::size_t l = 0; l < logical.size(); ++l) {
        for (std::size_t p = 0; p < assignment.sizes.size(); ++p)
            order.push_back(p * logical.size() + l);
    }
    for (std::size_t i = 0; i < physical.devices.size(); ++i) {
        auto rest = static_cast<std::int64_t>(i);
        std::int64_t from = 0;
        for (auto pair = order.rbegin(); pair != order.rend(); ++pair) {
            from += rest % pairs[*pair] * strides[*pair];
            rest /= pairs[*pair];
        }
        mesh.devices.push_back(physical.devices[static_cast<std::size_t>(from)]);
    }
    return mesh;
}

Result<std::vector<std::size_t>> contiguousTranspose(
    std::span<const std::int64_t> physical, std::span<const std::int64_t> logical)
{
    struct Trick {
        std::array<std::int64_t, 3> physical;
        std::array<std::int64_t, 2> logical;
        std::array<std::size_t, 3> transpose;
    };
    static constexpr std::array<Trick, 8> kTricks = {{
        {{2, 2, 1}, {2, 2}, {0, 1, 2}},
        {{2, 2, 4}, {4, 4}, {0, 1, 2}},
        {{4, 4, 4}, {16, 4}, {0, 2, 1}},
        {{4, 8, 8}, {64, 4}, {0, 2, 1}},
        {{4, 8, 8}, {4, 64}, {0, 2, 1}},
        {{8, 8, 8}, {64, 8}, {0, 2, 1}},
        {{8, 16, 16}, {256, 8}, {0, 2, 1}},
        {{8, 16, 16}, {8, 256}, {0, 2, 1}},
    }};
    Sizes wanted;
    std::copy_if(logical.begin(), logical.end(), std::back_inserter(wanted), [](std::int64_t size) { return size != 1; });
    std::vector<std::string> available;
    for (const Trick& trick : kTricks) {
        if (!std::equal(physical.begin(), physical.end(), trick.physical.begin(), trick.physical.end()))
            continue;
        if (std::equal(wanted.begin(), wanted.end(), trick.logical.begin(), trick.logical.end()))
            return std::vector<std::size_t>(trick.transpose.begin(), trick.transpose.end());
        available.push_back(fmt::format("({}, {})", trick.logical[0], trick.logical[1]));
    }
    return Problem{"MW1175",
        fmt::format("no contiguous submeshes for the logical mesh ({}) on {} chips. Available mesh_shapes: [{}]",
            fmt::join(logical, ", "), fmt::join(physical, "x"), fmt::join(available, ", ")),
        available.empty() ? "leave contiguous submeshes off"
                          : "use one of the available shapes, or leave contiguous submeshes off"};
}

namespace {

/// Where to look for the next devices on a board so that they make a ring, or a good order.
constexpr std::array<std::size_t, 8> kBoardRing = {0, 1, 2, 3, 6, 7, 4, 5};
constexpr std::array<std::size_t, 4> kRing2x2 = {0, 1, 3, 2};
constexpr std::array<std::size_t, 16> kRing4x4 = {0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4};
constexpr std::array<std::size_t, 8> kRing2x4 = {0, 1, 2, 3, 7, 6, 5, 4};
constexpr std::array<std::size_t, 8> kOrder2x2x2 = {0, 4, 2, 6, 1, 5, 3, 7};
constexpr std::array<std::size_t, 8> kRing2x2x2 = {0, 1, 3, 2, 6, 7, 5, 4};

DeviceArray inShape(std::span<const std::int64_t> logical, std::vector<DeviceId> devices)
{
    return {{logical.begin(), logical.end()}, std::move(devices)};
}

/// `ring` in each block of as many devices.
std::vector<DeviceId> inRings(const std::vector<DeviceId>& devices, std::span<const std::size_t> ring)
{
    std::vector<DeviceId> ordered;
    for (std::size_t block = 0; block < devices.size(); block += ring.size()) {
        for (const std::size_t at : ring)
            ordered.push_back(devices[block + at]);
    }
    return ordered;
}

std::vector<DeviceId> idsOf(const std::vector<PlacedDevice>& devices)
{
    std::vector<DeviceId> ids;
    for (const PlacedDevice& device : devices)
        ids.push_back(device.id);
    return ids;
}

/// The order that a kind of device has for small or special slices; nothing when it has none for this one.
Result<std::optional<DeviceArray>> specialOrder(
    std::span<const std::int64_t> logical, DeviceKind kind, const std::vector<PlacedDevice>& devices)
{
    const std::optional<DeviceArray> none;
    if (kind == DeviceKind::TpuV2 || kind == DeviceKind::TpuV3) {
        const bool rings = devices.size() == 8 || (!logical.empty() && logical.back() == 8);
        return std::optional(inShape(logical, rings ? inRings(idsOf(devices), kBoardRing) : idsOf(devices)));
    }
    if (kind == DeviceKind::TpuV7x) {
        if (devices.size() % 8 != 0 || devices.size() > 32)
            return none;
        const auto physical = physicalMesh(kind, devices);
        if (!physical)
            return physical.error();
        if (physical->shape[0] > 2 || physical->shape[1] > 2)
            return none;
        return std::optional(inShape(logical, inRings(idsOf(devices), kBoardRing)));
    }
    if (kind != DeviceKind::TpuV5e && kind != DeviceKind::TpuV6e && kind != DeviceKind::TpuV5p)
        return none;

    std::vector<PlacedDevice> sequential = devices;
    const auto minorFirst = [](const PlacedDevice& device) { return std::array{device.chip[2], device.chip[1], device.chip[0]}; };
    std::stable_sort(
        sequential.begin(), sequential.end(), [&](const auto& a, const auto& b) { return minorFirst(a) < minorFirst(b); });
    const std::vector<DeviceId> ids = idsOf(sequential);
    const auto last
        = std::max_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return a.chip < b.chip; })->chip;
    const auto bounds = std::array{last[0] + 1, last[1] + 1, last[2] + 1};
    const bool cube = bounds == std::array<std::int64_t, 3>{2, 2, 2};
    const auto ordered = [&](std::span<const std::size_t> ring) { return std::optional(inShape(logical, inRings(ids, ring))); };
    if (kind == DeviceKind::TpuV5p)
        return cube && ids.size() == 8 ? ordered(kRing2x2x2) : none;
    if (bounds == std::array<std::int64_t, 3>{2, 2, 1} && ids.size() == 4)
        return ordered(kRing2x2);
    if (ids.size() == 8)
        return cube ? ordered(kOrder2x2x2) : ordered(kRing2x4);
    // The ring of 4x4 serves only one axis over all of it.
    const bool oneAxis = std::find(logical.begin(), logical.end(), std::int64_t{16}) != logical.end();
    if (bounds == std::array<std::int64_t, 3>{4, 4, 1} && ids.size() == 16 && oneAxis)
        return ordered(kRing4x4);
    return none;
}

} // namespace

Result<DeviceArray> createDeviceMesh(std::span<const std::int64_t> logical, DeviceKind kind,
    const std::vector<PlacedDevice>& devices, const DeviceMeshOptions& options)
{
    if (!fits(logical, static_cast<std::int64_t>(devices.size())))
        return countMismatch(logical, static_cast<std::int64_t>(devices.size()));
    const auto special = specialOrder(logical, kind, devices);
    if (!special)
        return special.error();
    if (*special)
        return **special;
    if (kind == DeviceKind::Gpu || kind == DeviceKind::Other) {
        std::vector<DeviceId> ids = idsOf(devices);
        if (kind == DeviceKind::Gpu)
            std::sort(ids.begin(), ids.end());
        return inShape(logical, std::move(ids));
    }
    auto physical = physicalMesh(kind, devices);
    if (!physical)
        return physical;
    if (options.contiguousSubmeshes) {
        const auto transpose = contiguousTranspose(physical->shape, logical);
        if (!transpose)
            return transpose.error();
        // As an assignment: logical axis i is the physical axis transpose[i].
        TorusAssignment swap{std::vector(physical->shape.size(), Sizes(transpose->size(), 1)), false};
        Sizes shape;
        for (std::size_t i = 0; i < transpose->size(); ++i) {
            shape.push_back(physical->shape[(*transpose)[i]]);
            swap.sizes[(*transpose)[i]][i] = shape.back();
        }
        *physical = applyAssignment(*physical, shape, swap);
    }
    const bool coresFirst = kind == DeviceKind::TpuV7x && physical->shape.size() == 4;
    const auto assignment = assignToTorus(physical->shape, logical, {options.allowSplit, coresFirst});
    if (!assignment)
        return assignment.error();
    return applyAssignment(*physical, logical, *assignment);
}

Result<DeviceArray> createHybridDeviceMesh(std::span<const std::int64_t> inner, std::span<const std::int64_t> outer,
    DeviceKind kind, const std::vector<PlacedDevice>& devices, Granule granule, const DeviceMeshOptions& options)
{
    std::map<std::int64_t, std::vector<PlacedDevice>> granules;
    for (const PlacedDevice& device : devices)
        granules[granule == Granule::Slice ? device.slice : device.process].push_back(device);
    const char* name = granule == Granule::Slice ? "slices" : "processes";
    if (inner.size() != outer.size())
        return Problem{"MW1176",
            fmt::format("the mesh {} within and the mesh {} over {} have different ranks", fmt::join(inner, "x"),
                fmt::join(outer, "x"), name),
            "give both one size for each axis; 1 where an axis does not span that network"};
    if (!fits(outer, static_cast<std::int64_t>(granules.size())))
        return Problem{"MW1176",
            fmt::format("the mesh {} over {} does not fit their number, {}", fmt::join(outer, "x"), name, granules.size()),
            fmt::format("give sizes whose product is {}", granules.size())};

    std::vector<DeviceArray> blocks;
    for (const auto& [key, members] : granules) {
        auto block = createDeviceMesh(inner, kind, members, options);
        if (!block)
            return block;
        blocks.push_back(*std::move(block));
    }
    DeviceArray mesh;
    for (std::size_t axis = 0; axis < inner.size(); ++axis)
        mesh.shape.push_back(inner[axis] * outer[axis]);
    mesh.devices.reserve(devices.size());
    const Sizes strides = stridesOf(mesh.shape);
    const Sizes innerStrides = stridesOf(inner);
    const Sizes outerStrides = stridesOf(outer);
    for (std::int64_t at = 0; at < product(mesh.shape); ++at) {
        std::int64_t block = 0;
        std::int64_t within = 0;
        for (std::size_t axis = 0; axis < inner.size(); ++axis) {
            const std::int64_t coordinate = at / strides[axis] % mesh.shape[axis];
            block += coordinate / inner[axis] * outerStrides[axis];
            within += coordinate % inner[axis] * innerStrides[axis];
        }
        mesh.devices.push_back(blocks[static_cast<std::size_t>(block)].devices[static_cast<std::size_t>(within)]);
    }
    return mesh;
}

} // namespace meshwright
