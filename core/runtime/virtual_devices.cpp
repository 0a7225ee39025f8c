// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/virtual_devices.h"

#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <numeric>
#include <thread>

namespace meshwright {

namespace {

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

int coreCount()
{
    return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

} // namespace

ComputePermits::ComputePermits(int permits)
    : m_scratches(static_cast<std::size_t>(permits > 0 ? permits : coreCount()))
{
    for (Scratch& scratch : m_scratches)
        m_free.push_back(&scratch);
}

Scratch& ComputePermits::acquire()
{
    std::unique_lock lock(m_mutex);
    m_released.wait(lock, [this] { return !m_free.empty(); });
    Scratch* scratch = m_free.back();
    m_free.pop_back();
    return *scratch;
}

void ComputePermits::release(Scratch& scratch)
{
    {
        const std::lock_guard lock(m_mutex);
        m_free.push_back(&scratch);
    }
    m_released.notify_one();
}

std::int64_t ComputePermits::peakScratchBytes() const
{
    std::int64_t peak = 0;
    for (const Scratch& scratch : m_scratches)
        peak = std::max(peak, scratch.peakBytes());
    return peak;
}

VirtualDevices::VirtualDevices(std::int64_t count, VirtualDevicesOptions options)
    : m_count(count)
    , m_ranks(std::move(options.ranks))
    , m_here(count)
    , m_permits(options.permits > 0 || m_ranks == nullptr ? options.permits : std::max(1, coreCount() / m_ranks->onThisHost()))
    , m_stallSeconds(options.stallSeconds)
    , m_seats(static_cast<std::size_t>(count))
{
    if (m_ranks == nullptr)
        return;
    m_firstHere = firstDeviceOf(m_ranks->rank(), m_ranks->size(), count);
    m_here = firstDeviceOf(m_ranks->rank() + 1, m_ranks->size(), count) - m_firstHere;
    m_ranks->setDeviceCount(count);
}

Result<std::unique_ptr<VirtualDevices>> VirtualDevices::create(std::int64_t count, VirtualDevicesOptions options)
{
    assert(count >= 1);
    if (options.ranks != nullptr && options.ranks->size() > count)
        return Problem{"MW1553", fmt::format("{} processes share {} devices", options.ranks->size(), count),
            fmt::format("start at most {}, or use a larger mesh", count)};
    const EngineKind wanted = options.engine;
    std::unique_ptr<VirtualDevices> devices(new VirtualDevices(count, std::move(options)));
    if (Result<Done> started = devices->start(wanted); !started)
        return started.error();
    return devices;
}

Result<Done> VirtualDevices::start(EngineKind wanted)
{
    const bool sharedOut = m_ranks != nullptr && m_ranks->size() > 1;
    const auto asked = wanted == EngineKind::Auto && !sharedOut ? engineFromEnvironment() : wanted;
    if (!asked)
        return asked.error();
    const auto kind = chooseEngine(*asked, m_here, sharedOut, hasFibers());
    if (!kind)
        return kind.error();
    m_engine = *kind == EngineKind::Fibers ? makeFiberEngine(m_permits.count()) : makeThreadEngine();
    return m_engine->start(m_firstHere, m_here, [this](std::int64_t device) { serve(device); });
}

VirtualDevices::~VirtualDevices()
{
    m_leaving = true;
    m_epoch.fetch_add(1);
    if (m_engine == nullptr)
        return;
    m_engine->changed(m_epoch);
    m_engine->join();
}

void VirtualDevices::serve(std::int64_t device)
{
    for (std::uint32_t epoch = 0;; ++epoch) {
        m_engine->await(m_epoch, epoch);
        if (m_leaving)
            return;
        try {
            if (Result<Done> result = (*m_work)(device); !result)
                fail(result.error());
        } catch (const std::exception& error) {
            fail({Problem{"MW1508", fmt::format("device {} failed: {}", device, error.what())}});
        } catch (...) {
            fail({Problem{"MW1508", fmt::format("device {} failed for an unknown reason", device)}});
        }
        // Every device counts itself as finished before it stops moving: when nobody moves, the count is complete.
        m_seats[static_cast<std::size_t>(device)].finished.store(true, std::memory_order_release);
        m_finished.fetch_add(1);
        if (m_movement.moving.fetch_sub(1) == 1 && m_finished.load() != m_here)
            reportStuck();
        if (m_running.fetch_sub(1) == 1) {
            m_doneEpoch.fetch_add(1);
            m_doneEpoch.notify_all();
            if (m_stallSeconds > 0.0) {
                const std::lock_guard lock(m_endMutex); // nobody is between looking at the epoch and sleeping
                m_ended.notify_all();
            }
        }
    }
}

Result<Done> VirtualDevices::run(const Work& work, std::stop_token stop)
{
    {
        const std::lock_guard lock(m_mutex);
        m_failure.clear();
        m_failed = false;
        m_stopFlag.clear();
        std::erase_if(m_barriers, [](const std::weak_ptr<Barrier>& barrier) { return barrier.expired(); });
        for (const auto& barrier : m_barriers) {
            if (const auto alive = barrier.lock())
                alive->reset();
        }
        std::erase_if(m_mailboxes, [](const std::weak_ptr<Mailbox>& mailbox) { return mailbox.expired(); });
        for (const auto& mailbox : m_mailboxes) {
            if (const auto alive = mailbox.lock())
                alive->reset();
        }
    }
    m_work = &work;
    for (Seat& seat : m_seats) {
        seat.doing.store(nullptr);
        seat.finished.store(false);
    }
    m_movement.moving.store(m_here);
    m_finished.store(0);
    m_running.store(m_here);
    const std::uint32_t done = m_doneEpoch.load();
    {
        const std::stop_callback onStop(stop, [this] { fail({Problem{"MW1507", "the run was stopped"}}); });
        std::optional<Ranks::Alarm> onEnd;
        if (m_ranks != nullptr)
            onEnd.emplace(*m_ranks, [this](const Problem& problem) { fail({problem}); });
        m_epoch.fetch_add(1, std::memory_order_release);
        m_engine->changed(m_epoch);
        awaitEnd(done);
    }
    const std::lock_guard lock(m_mutex);
    if (m_failed)
        return m_failure;
    return Done{};
}

/// Until the epoch of ended runs is another one. Meanwhile it looks, a few times in `stallSeconds`, who has waited since it looked before.
void VirtualDevices::awaitEnd(std::uint32_t epoch)
{
    using Clock = std::chrono::steady_clock;
    constexpr int kLooks = 8;
    if (m_stallSeconds > 0.0) {
        const std::chrono::duration<double> limit(m_stallSeconds);
        const auto isOver = [&] { return m_doneEpoch.load() != epoch; };
        std::vector<std::uint32_t> waits(m_seats.size(), 0);
        std::vector<Clock::time_point> since(m_seats.size(), Clock::now());
        bool reported = false;
        std::unique_lock lock(m_endMutex);
        while (!reported && !m_ended.wait_for(lock, limit / kLooks, isOver)) {
            const auto now = Clock::now();
            bool tooLong = false;
            for (std::size_t device = 0; device < m_seats.size(); ++device) {
                const Seat& seat = m_seats[device];
                const std::uint32_t begun = seat.waits.load(std::memory_order_acquire);
                const bool isWaiting = seat.place.load(std::memory_order_acquire) != nullptr;
                if (!isWaiting || begun != waits[device])
                    since[device] = now;
                waits[device] = begun;
                tooLong = tooLong || (isWaiting && now - since[device] >= limit);
            }
            if (tooLong)
                reported = reportStall(waits);
        }
    }
    while (m_doneEpoch.load() == epoch)
        m_doneEpoch.wait(epoch);
}

std::shared_ptr<Barrier> VirtualDevices::makeBarrier(std::int64_t members)
{
    auto barrier = std::make_shared<Barrier>(members, &m_movement, *m_engine);
    const std::lock_guard lock(m_mutex);
    m_barriers.push_back(barrier);
    return barrier;
}

/// `waiting` waits and says how that ended.
template <typename Waiting>
bool VirtualDevices::waitAt(std::int64_t device, const Place& place, const Waiting& waiting)
{
    Seat& seat = m_seats[static_cast<std::size_t>(device)];
    seat.waits.fetch_add(1, std::memory_order_relaxed);
    seat.place.store(&place, std::memory_order_release);
    const Barrier::Outcome outcome = waiting();
    if (outcome == Barrier::Outcome::Passed) {
        seat.place.store(nullptr, std::memory_order_release);
        return true;
    }
    if (outcome == Barrier::Outcome::Stuck)
        reportStuck();
    const std::lock_guard lock(m_mutex);
    seat.place.store(nullptr, std::memory_order_release);
    return false;
}

std::shared_ptr<Mailbox> VirtualDevices::makeMailbox()
{
    auto mailbox = std::make_shared<Mailbox>(&m_movement, *m_engine);
    const std::lock_guard lock(m_mutex);
    m_mailboxes.push_back(mailbox);
    return mailbox;
}

bool VirtualDevices::wait(std::int64_t device, Barrier& barrier, const Place& place, const std::function<void()>& atLast)
{
    return barrier.members() == 1 || waitAt(device, place, [&] { return barrier.wait(atLast); });
}

bool VirtualDevices::await(std::int64_t device, Barrier& barrier, std::uint32_t round, const Place& place)
{
    return waitAt(device, place, [&] { return barrier.await(round); });
}

bool VirtualDevices::receive(
    std::int64_t device, Mailbox& mailbox, const MessageTag& tag, AlignedBytes& message, const Place& place)
{
    return waitAt(device, place, [&] { return mailbox.receive(tag, message); });
}

void VirtualDevices::standStill()
{
    const std::uint32_t failures = m_failures.load(std::memory_order_acquire);
    if (!m_stopFlag.isSet()) // else the failure is among those
        m_engine->await(m_failures, failures);
}

/// "devices 0, 2 and 3 wait in all_reduce of loss, device 1 waits in all_gather of layers.0.w".
std::string VirtualDevices::waitingText(const std::vector<std::size_t>& devices) const
{
    constexpr std::size_t kMostPlaces = 8;
    std::map<std::string, std::vector<std::int64_t>> byPlace;
    std::vector<std::string> order;
    for (const std::size_t device : devices) {
        const Place* place = m_seats[device].place.load(std::memory_order_acquire);
        if (place == nullptr)
            continue;
        auto& there = byPlace[(*place)()];
        if (there.empty())
            order.push_back((*place)());
        there.push_back(static_cast<std::int64_t>(device));
    }
    std::vector<std::string> parts;
    for (const std::string& place : order) {
        if (parts.size() == kMostPlaces)
            break;
        const auto& there = byPlace[place];
        parts.push_back(fmt::format("{} {} in {}", deviceList(there), there.size() == 1 ? "waits" : "wait", place));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

/// Everybody waits or has finished, so the places stay what they are; an abort from outside takes them away only after we are done.
void VirtualDevices::reportStuck()
{
    const std::lock_guard lock(m_mutex);
    std::vector<std::size_t> all(static_cast<std::size_t>(m_here));
    std::iota(all.begin(), all.end(), static_cast<std::size_t>(m_firstHere));
    std::vector<std::int64_t> finished;
    for (const std::size_t device : all) {
        if (m_seats[device].finished.load(std::memory_order_acquire))
            finished.push_back(static_cast<std::int64_t>(device));
    }
    failLocked({Problem{"MW1506",
        fmt::format("no device can move: {}{}", waitingText(all),
            finished.empty() ? "" : fmt::format(", {} of {} have finished ({})", finished.size(), m_here, deviceList(finished))),
        "the devices disagree on the order of their collectives, or on who takes part"}});
}

/// False when meanwhile everybody has gone on. `waits` are the devices' counts of waits when somebody had waited for too long.
bool VirtualDevices::reportStall(const std::vector<std::uint32_t>& waits)
{
    const std::lock_guard lock(m_mutex);
    std::vector<std::size_t> waiting;
    std::vector<std::int64_t> absent;
    std::vector<std::string> doing;
    for (std::size_t device = 0; device < m_seats.size(); ++device) {
        if (!isHere(static_cast<std::int64_t>(device)))
            continue;
        const Seat& seat = m_seats[device];
        if (seat.place.load(std::memory_order_acquire) != nullptr
            && seat.waits.load(std::memory_order_acquire) == waits[device]) {
            waiting.push_back(device);
        } else if (!seat.finished.load(std::memory_order_acquire)) {
            absent.push_back(static_cast<std::int64_t>(device));
            if (const std::string* at = seat.doing.load(std::memory_order_acquire); at != nullptr)
                doing.push_back(fmt::format("device {} is at {}", device, *at));
        }
    }
    if (waiting.empty() || absent.empty())
        return false;
    constexpr std::size_t kMostNamed = 4;
    doing.resize(std::min(doing.size(), kMostNamed));
    failLocked({Problem{"MW1522",
        fmt::format("{} {} not arrived for {}: {}{}{}", deviceList(absent), absent.size() == 1 ? "has" : "have",
            formatSeconds(m_stallSeconds), waitingText(waiting), doing.empty() ? "" : "; ", fmt::join(doing, ", ")),
        "a device that is only slow needs a larger --stall-timeout"}});
    return true;
}

void VirtualDevices::fail(Problems problems)
{
    const std::lock_guard lock(m_mutex);
    failLocked(std::move(problems));
}

void VirtualDevices::failLocked(Problems problems)
{
    if (!m_failed) {
        m_failed = true;
        m_failure = std::move(problems);
    }
    m_stopFlag.set();
    m_failures.fetch_add(1, std::memory_order_acq_rel);
    m_engine->changed(m_failures);
    for (const auto& barrier : m_barriers) {
        if (const auto alive = barrier.lock())
            alive->abort();
    }
    for (const auto& mailbox : m_mailboxes) {
        if (const auto alive = mailbox.lock())
            alive->abort();
    }
}

Problem VirtualDevices::interrupted()
{
    return {"MW1507", "the run was stopped"};
}

} // namespace meshwright
