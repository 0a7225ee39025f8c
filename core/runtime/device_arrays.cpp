// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/device_arrays.h"

#include "core/support/checked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace meshwright {

namespace {

Shape extentsOf(const IndexBox& box)
{
    Shape extents;
    for (const IndexRange& range : box)
        extents.push_back(range.size());
    return extents;
}

Shape startIn(const IndexBox& part, const IndexBox& holder)
{
    Shape start;
    for (std::size_t dim = 0; dim < part.size(); ++dim)
        start.push_back(part[dim].start - holder[dim].start);
    return start;
}

} // namespace

Shape startsOf(const IndexBox& box)
{
    Shape starts;
    for (const IndexRange& range : box)
        starts.push_back(range.start);
    return starts;
}

DeviceArrays::DeviceArrays(const ScheduledFunction& scheduled, const DevicePositions& positions)
    : m_scheduled(scheduled)
    , m_positions(positions)
    , m_devices(static_cast<std::size_t>(positions.count()))
{
    const BufferPlan& plan = m_scheduled.buffers;
    m_valuesIn.resize(plan.buffers.size());
    for (std::size_t value = 0; value < plan.bufferOf.size(); ++value) {
        if (plan.bufferOf[value] >= 0)
            m_valuesIn[static_cast<std::size_t>(plan.bufferOf[value])].push_back(ValueId{value});
    }
    for (DeviceMemory& device : m_devices) {
        device.arena = AlignedBytes(plan.arenaBytes);
        device.addresses.assign(function().values.size(), nullptr);
        for (std::size_t value = 0; value < function().values.size(); ++value) {
            const std::int32_t buffer = plan.bufferOf[value];
            if (buffer >= 0)
                device.addresses[value] = device.arena.data() + plan.buffers[static_cast<std::size_t>(buffer)].offset;
        }
    }
}

std::int64_t DeviceArrays::highWaterBytes() const
{
    std::int64_t bytes = 0;
    for (const DeviceMemory& device : m_devices)
        bytes = std::max(bytes, ceilDiv(device.touchedBytes, kBufferAlignment) * kBufferAlignment);
    return bytes;
}

Result<Done> DeviceArrays::write(std::size_t argument, const HostArray& whole)
{
    const ValueId value = function().arguments()[argument];
    const TensorType wanted{function()[value].type.dtype, m_scheduled.device.globalShapes[value.at()]};
    if (whole.type() != wanted)
        return Problem{"MW1503",
            fmt::format("argument {} ({}) is {}, got {}", argument, valueText(function(), value), typeText(wanted),
                typeText(whole.type()))};
    for (std::int64_t device = 0; device < count(); ++device)
        writeBox(value, device, whole, startsOf(boxOf(value, device)));
    return Done{};
}

/// Puts what a device holds of a value there: a box of `source`, which starts at `start` in it.
void DeviceArrays::writeBox(ValueId value, std::int64_t device, const HostArray& source, const Shape& start)
{
    const TensorType& local = function()[value].type;
    const IndexBox box = boxOf(value, device);
    std::byte* target = addressOf(value, device);
    m_devices[static_cast<std::size_t>(device)].touch(target, local.bytes());
    if (boxElements(box) < local.elements()) // padding: anything, but always the same
        std::memset(target, 0, static_cast<std::size_t>(local.bytes()));
    copyBox(target, {local.shape, Shape(local.shape.size(), 0)}, source.data(), {source.type().shape, start}, extentsOf(box),
        byteSize(local.dtype));
}

void DeviceArrays::writePiece(ValueId value, std::int64_t device, const HostArray& piece)
{
    writeBox(value, device, piece, Shape(piece.type().shape.size(), 0));
}

HostArray DeviceArrays::readPiece(ValueId value, std::int64_t device) const
{
    const TensorType& local = function()[value].type;
    const std::span held(addressOf(value, device), static_cast<std::size_t>(local.bytes()));
    return HostArray::fromBytes(local, held).slice(wholeBox(extentsOf(boxOf(value, device))));
}

HostArray DeviceArrays::read(ValueId value) const
{
    HostArray whole(TensorType{function()[value].type.dtype, m_scheduled.device.globalShapes[value.at()]});
    const std::int64_t width = byteSize(whole.type().dtype);
    const Shape& local = function()[value].type.shape;
    const Shape origin(local.size(), 0);
    for (const auto& [box, holders] : holdersOf(value))
        copyBox(whole.data(), {whole.type().shape, startsOf(box)}, addressOf(value, holders.front()), {local, origin},
            extentsOf(box), width);
    return whole;
}

bool DeviceArrays::replicasAgree(ValueId value) const
{
    for (const auto& [box, holders] : holdersOf(value)) {
        const HostArray first = readPiece(value, holders.front());
        for (const std::int64_t holder : holders) {
            if (!(readPiece(value, holder) == first))
                return false;
        }
    }
    return true;
}

Result<std::int64_t> DeviceArrays::copyFrom(
    std::size_t argument, const DeviceArrays& from, ValueId source, const std::stop_token& stop)
{
    const ValueId target = function().arguments()[argument];
    const Shape& whole = m_scheduled.device.globalShapes[target.at()];
    const Shape& sourceWhole = from.m_scheduled.device.globalShapes[source.at()];
    const DType dtype = function()[target].type.dtype;
    if (dtype != from.function()[source].type.dtype || whole != sourceWhole) {
        return Problem{"MW1503",
            fmt::format("argument {} ({}) is {}, got {}", argument, valueText(function(), target), typeText({dtype, whole}),
                typeText({from.function()[source].type.dtype, sourceWhole}))};
    }
    const std::int64_t width = byteSize(dtype);
    const auto holders = from.holdersOf(source);
    std::int64_t moved = 0;
    for (std::int64_t device = 0; device < count(); ++device) {
        if (stop.stop_requested())
            return VirtualDevices::interrupted();
        m_devices[static_cast<std::size_t>(device)].touch(addressOf(target, device), function()[target].type.bytes());
        const IndexBox wanted = boxOf(target, device);
        const DeviceId self = m_positions.mesh(0).deviceAt(device);
        if (boxElements(wanted) < function()[target].type.elements())
            std::memset(addressOf(target, device), 0, static_cast<std::size_t>(function()[target].type.bytes()));
        for (const auto& [box, devices] : holders) {
            const IndexBox common = intersection(wanted, box);
            if (boxElements(common) == 0)
                continue;
            const auto own = std::find_if(
                devices.begin(), devices.end(), [&](std::int64_t d) { return from.m_positions.mesh(0).deviceAt(d) == self; });
            const std::int64_t giver = own != devices.end() ? *own : devices.front();
            if (own == devices.end())
                moved += boxElements(common) * width;
            copyBox(addressOf(target, device), {function()[target].type.shape, startIn(common, wanted)},
                from.addressOf(source, giver), {from.function()[source].type.shape, startIn(common, box)}, extentsOf(common),
                width);
        }
    }
    return moved;
}

/// Everything in the buffer of a value moves with it.
void DeviceArrays::place(ValueId value, std::int64_t device, std::byte* at)
{
    const std::vector<std::int32_t>& bufferOf = m_scheduled.buffers.bufferOf;
    const std::int32_t buffer = bufferOf[value.at()];
    std::vector<std::byte*>& addresses = m_devices[static_cast<std::size_t>(device)].addresses;
    if (buffer < 0)
        addresses[value.at()] = at;
    for (const ValueId other : buffer < 0 ? std::vector<ValueId>() : m_valuesIn[static_cast<std::size_t>(buffer)])
        addresses[other.at()] = at;
}

/// The distinct pieces of a value and the devices that hold each.
std::map<IndexBox, std::vector<std::int64_t>> DeviceArrays::holdersOf(ValueId value) const
{
    std::map<IndexBox, std::vector<std::int64_t>> holders;
    for (std::int64_t device = 0; device < count(); ++device)
        holders[boxOf(value, device)].push_back(device);
    return holders;
}

} // namespace meshwright
