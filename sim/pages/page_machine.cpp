// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/pages/page_machine.h"

#include "core/mesh/device_mesh.h"
#include "core/support/text.h"
#include "sim/hardware/hardware_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace meshwright::pages {

namespace {

constexpr std::int64_t kUsualDevices = 8;
constexpr std::int64_t kMostDevices = 4096;

/// The number that follows `mark`, after what may stand between a name and its value.
std::optional<std::int64_t> numberAfter(const std::string& source, std::string_view mark)
{
    const std::size_t found = source.find(mark);
    if (found == std::string::npos)
        return std::nullopt;
    const std::size_t begin = source.find_first_not_of("=, '\"", found + mark.size());
    const std::size_t end = source.find_first_not_of("0123456789", begin);
    return begin == std::string::npos ? std::nullopt : parseInteger(source.substr(begin, end - begin));
}

/// The product of the sizes of a shape that begins at `at`: `(4, 2)`, `4, 2)`. Nothing when it is not of numbers alone.
std::optional<std::int64_t> productAt(const std::string& source, std::size_t at)
{
    at = source.find_first_not_of("([ \n", at);
    const std::size_t end = source.find_first_of(")]", at);
    if (at == std::string::npos || end == std::string::npos)
        return std::nullopt;
    std::int64_t product = 1;
    for (const std::string& part : split(source.substr(at, end - at), ',')) {
        if (trimmed(part).empty())
            continue;
        const auto size = parseInteger(trimmed(part));
        if (!size || *size < 1 || *size > kMostDevices || product * *size > kMostDevices)
            return std::nullopt;
        product *= *size;
    }
    return product;
}

PageMachine cpuDevices(const Page& page)
{
    PageMachine machine;
    for (const Cell& cell : page.cells) {
        for (const std::string_view mark : {"xla_force_host_platform_device_count", "jax_num_cpu_devices"}) {
            if (const auto count = numberAfter(cell.source, mark); count && *count >= 1 && *count <= kMostDevices) {
                machine.devices = *count;
                machine.reason = "the page asks for them";
                return machine;
            }
        }
    }
    for (const Cell& cell : page.cells) {
        for (const std::string_view mark : {"create_device_mesh(", "make_mesh(", "devices()).reshape("}) {
            for (std::size_t at = cell.source.find(mark); at != std::string::npos; at = cell.source.find(mark, at + 1)) {
                const auto product = productAt(cell.source, at + mark.size());
                if (product && *product > machine.devices) {
                    machine.devices = *product;
                    machine.reason = "its largest mesh has as many";
                }
            }
        }
    }
    if (machine.reason.empty()) {
        machine.devices = kUsualDevices;
        machine.reason = "the page says no number";
    }
    return machine;
}

Result<PageMachine> machineOfName(const std::string& name)
{
    const auto built = sim::machineNamed(name);
    if (!built)
        return built.error();
    PageMachine machine;
    machine.devices = built->deviceCount();
    machine.reason = name;
    machine.platform = sim::chipClassName(built->chip.chipClass);
    machine.kind = built->chip.name;
    machine.hardware = name;
    if (built->chip.chipClass == sim::ChipClass::Tpu) {
        const auto kind = deviceKindOf(built->chip.key);
        if (!kind)
            return kind.error();
        machine.kind = deviceKindName(*kind);
        machine.topology = built->choice.topology;
    }
    return machine;
}

bool isDigit(char c)
{
    return c >= '0' && c <= '9';
}

/// Whether a text says a version before 0.5: "0.4.34".
bool saysOlderVersion(const std::string& text)
{
    for (std::size_t at = text.find("0."); at != std::string::npos; at = text.find("0.", at + 1)) {
        const bool isStart = at == 0 || !(isDigit(text[at - 1]) || text[at - 1] == '.');
        if (isStart && at + 4 < text.size() && text[at + 2] >= '0' && text[at + 2] <= '4' && text[at + 3] == '.'
            && isDigit(text[at + 4]))
            return true;
    }
    return false;
}

/// Whether what the page says that a cell printed is of a JAX before 0.5, whose random numbers were others.
bool isPrintedByOlder(const Cell& cell)
{
    if (!cell.printed)
        return false;
    constexpr std::array kOlder = {"DeviceArray(", "Traced<ShapedArray(", " loops, best of "};
    const auto isPrinted = [&](const char* text) { return cell.printed->find(text) != std::string::npos; };
    return std::any_of(kOlder.begin(), kOlder.end(), isPrinted)
        || (cell.source.find("jax.__version__") != std::string::npos && saysOlderVersion(*cell.printed));
}

} // namespace

bool isOfLegacyRandom(const Page& page)
{
    constexpr std::array kGone = {"PositionalSharding", "jax.experimental.maps", "from jax.experimental import maps",
        "'jax_array'", "\"jax_array\"", "import PartitionSpec, maps", "jax.experimental.global_device_array"};
    return std::any_of(page.cells.begin(), page.cells.end(), [&](const Cell& cell) {
        const auto isNamed = [&](const char* name) { return cell.source.find(name) != std::string::npos; };
        return isPrintedByOlder(cell) || std::any_of(kGone.begin(), kGone.end(), isNamed);
    });
}

Result<PageMachine> machineOfPage(const Page& page, const std::string& name)
{
    Result<PageMachine> machine = cpuDevices(page);
    if (const std::string& wanted = name.empty() ? page.hardware : name; !wanted.empty())
        machine = machineOfName(wanted);
    if (machine)
        machine->legacyRandom = isOfLegacyRandom(page);
    return machine;
}

} // namespace meshwright::pages
