// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/device_states.h"

#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright {

namespace {

constexpr char kFieldEnd = '\x1f';
constexpr char kStateEnd = '\x1e';

/// "device 1", "devices 0, 1 and 5"; of many the first.
std::string deviceList(const std::vector<std::int64_t>& devices)
{
    constexpr std::size_t kMost = 8;
    if (devices.size() == 1)
        return fmt::format("device {}", devices.front());
    if (devices.size() > kMost)
        return fmt::format("devices {} and {} more",
            fmt::join(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(kMost), ", "), devices.size() - kMost);
    return fmt::format("devices {} and {}", fmt::join(devices.begin(), devices.end() - 1, ", "), devices.back());
}

/// "devices 0, 2 and 3 wait in all_reduce of loss, device 1 waits in all_gather of layers.0.w".
std::string waitingText(const std::vector<const DeviceState*>& waiting)
{
    constexpr std::size_t kMostPlaces = 8;
    std::map<std::string, std::vector<std::int64_t>> byPlace;
    std::vector<std::string> order;
    for (const DeviceState* state : waiting) {
        auto& there = byPlace[state->place];
        if (there.empty())
            order.push_back(state->place);
        there.push_back(state->device);
    }
    order.resize(std::min(order.size(), kMostPlaces));
    std::vector<std::string> parts;
    for (const std::string& place : order) {
        const auto& there = byPlace[place];
        parts.push_back(fmt::format("{} {} in {}", deviceList(there), there.size() == 1 ? "waits" : "wait", place));
    }
    return join(parts, ", ");
}

} // namespace

Problem stuckProblem(std::span<const DeviceState> states)
{
    std::vector<const DeviceState*> waiting;
    std::vector<std::int64_t> finished;
    for (const DeviceState& state : states) {
        if (state.isWaiting)
            waiting.push_back(&state);
        if (state.hasFinished)
            finished.push_back(state.device);
    }
    return {"MW1506",
        fmt::format("no device can proceed: {}{}", waitingText(waiting),
            finished.empty()
                ? ""
                : fmt::format(", {} of {} have finished ({})", finished.size(), states.size(), deviceList(finished))),
        "the devices disagree on the order of their collectives, or on who takes part"};
}

bool StallWatch::look(std::span<const DeviceState> states)
{
    const auto now = Clock::now();
    bool tooLong = false;
    for (const DeviceState& state : states) {
        const auto [wait, isNew] = m_waits.try_emplace(state.device, Wait{state.waits, now});
        if (!state.isWaiting || wait->second.waits != state.waits)
            wait->second = {state.waits, now};
        tooLong = tooLong || (state.isWaiting && now - wait->second.since >= m_limit);
    }
    return tooLong;
}

std::optional<Problem> StallWatch::problem(std::span<const DeviceState> states) const
{
    std::vector<const DeviceState*> waiting;
    std::vector<std::int64_t> absent;
    std::vector<std::string> doing;
    bool allTooLong = true;
    const auto now = Clock::now();
    for (const DeviceState& state : states) {
        const auto wait = m_waits.find(state.device);
        if (state.isWaiting && wait != m_waits.end() && wait->second.waits == state.waits) {
            waiting.push_back(&state);
            allTooLong = allTooLong && now - wait->second.since >= m_limit;
        } else if (!state.hasFinished) {
            absent.push_back(state.device);
            if (!state.doing.empty())
                doing.push_back(fmt::format("device {} is at {}", state.device, state.doing));
        }
    }
    if (absent.empty() && !waiting.empty() && allTooLong)
        return stuckProblem(states);
    if (waiting.empty() || absent.empty())
        return std::nullopt;
    constexpr std::size_t kMostNamed = 4;
    doing.resize(std::min(doing.size(), kMostNamed));
    return Problem{"MW1522",
        fmt::format("{} {} not arrived for {}: {}{}{}", deviceList(absent), absent.size() == 1 ? "has" : "have",
            formatSeconds(m_limit.count()), waitingText(waiting), doing.empty() ? "" : "; ", fmt::join(doing, ", ")),
        "a device that is only slow needs a larger --stall-timeout"};
}

std::string writtenStates(std::span<const DeviceState> states)
{
    std::string text;
    for (const DeviceState& state : states)
        text += fmt::format("{}{}{:d}{}{:d}{}{}{}{}{}{}{}", state.device, kFieldEnd, state.isWaiting, kFieldEnd,
            state.hasFinished, kFieldEnd, state.waits, kFieldEnd, state.place, kFieldEnd, state.doing, kStateEnd);
    return text;
}

std::vector<DeviceState> readStates(const std::string& text)
{
    constexpr std::size_t kFields = 6;
    std::vector<DeviceState> states;
    for (const std::string& line : split(text, kStateEnd)) {
        const std::vector<std::string> fields = split(line, kFieldEnd);
        if (fields.size() != kFields)
            continue; // behind the last end
        states.push_back({parseInteger(fields[0]).value_or(0), fields[1] == "1", fields[2] == "1",
            static_cast<std::uint32_t>(parseInteger(fields[3]).value_or(0)), fields[4], fields[5]});
    }
    return states;
}

} // namespace meshwright
