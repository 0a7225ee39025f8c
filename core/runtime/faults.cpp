// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/faults.h"

#include "core/devices/clocks.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <new>
#include <set>
#include <stdexcept>

namespace meshwright {

namespace {

constexpr std::array kKinds = {"fail", "memory", "nan", "stall", "slow"}; // in the order of InjectedFault::Kind

Problem malformed(std::string_view text, const std::string& why)
{
    return {"MW1520", fmt::format("\"{}\" is not a fault to inject: {}", text, why),
        "write fail:device=3,step=10 (or memory:, nan:, stall:), or slow:device=2,factor=3"};
}

/// The bits of an element of a floating type that are all set when it is infinite or NaN; 0 for types without these.
std::uint64_t exponentBits(DType dtype)
{
    switch (dtype) {
    case DType::F16:
        return 0x7c00;
    case DType::BF16:
        return 0x7f80;
    case DType::F32:
        return 0x7f800000;
    case DType::F64:
        return 0x7ff0000000000000;
    default:
        return 0;
    }
}

template <typename Word>
std::optional<NotFinite> searched(const std::byte* data, const Shape& shape, const Shape& extents, std::uint64_t exponent)
{
    const auto all = static_cast<Word>(exponent);
    const auto fraction
        = static_cast<Word>(static_cast<std::uint64_t>(all & static_cast<Word>(~all + 1)) - 1); // below the exponent
    std::optional<NotFinite> infinite;
    Shape index(shape.size(), 0);
    const std::int64_t width = shape.empty() ? 1 : extents.back();
    for (;;) {
        std::int64_t at = 0;
        for (std::size_t dim = 0; dim < shape.size(); ++dim)
            at = at * shape[dim] + index[dim];
        for (std::int64_t i = 0; i < width; ++i) {
            Word word{};
            std::memcpy(&word, data + static_cast<std::size_t>(at + i) * sizeof(Word), sizeof(Word));
            if ((word & all) != all)
                continue;
            const bool isNan = (word & fraction) != 0;
            if (!isNan && infinite)
                continue;
            NotFinite found{index, isNan};
            if (!found.index.empty())
                found.index.back() = i;
            if (isNan)
                return found;
            infinite = std::move(found);
        }
        std::size_t dim = shape.empty() ? 0 : shape.size() - 1;
        while (dim > 0 && ++index[dim - 1] == extents[dim - 1])
            index[--dim] = 0;
        if (dim == 0)
            return infinite;
    }
}

} // namespace

Result<InjectedFault> parseInjectedFault(std::string_view text)
{
    const std::size_t colon = text.find(':');
    const auto kind = std::find(kKinds.begin(), kKinds.end(), text.substr(0, colon));
    if (kind == kKinds.end())
        return malformed(text, "it does not begin with fail, memory, nan, stall or slow");
    InjectedFault fault;
    fault.kind = static_cast<InjectedFault::Kind>(kind - kKinds.begin());
    const bool isSlow = fault.kind == InjectedFault::Kind::Slow;
    std::set<std::string> given;
    for (const std::string& part : split(colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1), ',')) {
        const std::size_t equals = part.find('=');
        if (colon == std::string_view::npos)
            break; // "fail" alone: it does not name a device
        const std::string key = part.substr(0, equals);
        const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
        if (!given.insert(key).second)
            return malformed(text, fmt::format("it states the {} twice", key));
        if (key == "factor" && isSlow) {
            const auto factor = parseNumber(value);
            if (!factor || !std::isfinite(*factor) || *factor < 1.0)
                return malformed(text, "a factor is a number that is at least 1");
            fault.factor = *factor;
            continue;
        }
        const auto number = parseInteger(value);
        if (key != "device" && (key != "step" || isSlow))
            return malformed(text, fmt::format("it has no \"{}\"", key));
        if (!number || *number < 0)
            return malformed(text, fmt::format("the {} is a whole number, counted from 0", key));
        (key == "device" ? fault.device : fault.step) = *number;
    }
    if (!given.contains("device"))
        return malformed(text, "it does not name a device");
    if (isSlow && !given.contains("factor"))
        return malformed(text, "it has no factor");
    return fault;
}

Problems FaultOptions::problems(std::int64_t devices, std::int64_t steps) const
{
    Problems problems;
    for (const InjectedFault& fault : injected) {
        if (fault.device >= devices)
            problems.push_back({"MW1520",
                fmt::format("a fault is to be injected into device {}, and there are {} devices", fault.device, devices),
                fmt::format("name a device from 0 to {}", devices - 1)});
        if (fault.step >= steps)
            problems.push_back(
                {"MW1520", fmt::format("a fault is to be injected in step {} (counted from 0), of {}", fault.step, steps),
                    steps > 0 ? fmt::format("name a step from 0 to {}", steps - 1) : "train for at least one step"});
    }
    return problems;
}

DeviceFaults::DeviceFaults(const FaultOptions& options, std::int64_t device, std::int64_t step, const StopFlag& stop)
    : m_options(options)
    , m_device(device)
    , m_step(step)
    , m_stop(stop)
{
    for (const InjectedFault& fault : options.injected) {
        if (fault.kind == InjectedFault::Kind::Slow && fault.device == device)
            m_factor = std::max(m_factor, fault.factor);
    }
}

bool DeviceFaults::strikes(InjectedFault::Kind kind) const
{
    return std::any_of(m_options.injected.begin(), m_options.injected.end(),
        [&](const InjectedFault& fault) { return fault.kind == kind && fault.device == m_device && fault.step == m_step; });
}

void DeviceFaults::strike()
{
    m_wantsNan = strikes(InjectedFault::Kind::Nan);
    if (strikes(InjectedFault::Kind::Fail))
        throw std::runtime_error("a failure that was injected");
    if (strikes(InjectedFault::Kind::Memory))
        throw std::bad_alloc();
}

void DeviceFaults::lag(double cpuSeconds) const
{
    const double end = threadCpuSeconds() + (m_factor - 1.0) * cpuSeconds;
    while (threadCpuSeconds() < end && !m_stop.isSet()) { }
}

std::optional<NotFinite> firstNotFinite(const std::byte* data, const TensorType& type, const Shape& extents)
{
    const std::uint64_t exponent = exponentBits(type.dtype);
    const bool isEmpty = std::any_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent == 0; });
    if (exponent == 0 || isEmpty)
        return std::nullopt;
    switch (byteSize(type.dtype)) {
    case 2:
        return searched<std::uint16_t>(data, type.shape, extents, exponent);
    case 4:
        return searched<std::uint32_t>(data, type.shape, extents, exponent);
    default:
        return searched<std::uint64_t>(data, type.shape, extents, exponent);
    }
}

bool writeNan(std::byte* data, const TensorType& type)
{
    const std::uint64_t exponent = exponentBits(type.dtype);
    if (exponent == 0 || type.elements() == 0)
        return false;
    const std::uint64_t quiet = exponent | (exponent >> 1); // the exponent, and the highest bit below it
    std::memcpy(data, &quiet, static_cast<std::size_t>(byteSize(type.dtype))); // little-endian, as all that Meshwright runs on
    return true;
}

} // namespace meshwright
