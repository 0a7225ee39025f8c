// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/virtual_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>

#include <algorithm>
#include <exception>
#include <thread>

namespace meshwright {

namespace {

/// Enough for the products' libraries, which keep small panels on the stack.
constexpr std::size_t kStackBytes = std::size_t{1} << 20;

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

struct VirtualDevices::Thread {
    VirtualDevices* owner = nullptr;
    std::int64_t device = 0;
    pthread_t handle{};
};

VirtualDevices::VirtualDevices(std::int64_t count, VirtualDevicesOptions options)
    : m_count(count)
    , m_permits(options.permits)
    , m_places(static_cast<std::size_t>(count))
{
}

Result<std::unique_ptr<VirtualDevices>> VirtualDevices::create(std::int64_t count, VirtualDevicesOptions options)
{
    assert(count >= 1);
    std::unique_ptr<VirtualDevices> devices(new VirtualDevices(count, options));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    int error = 0;
    for (std::int64_t device = 0; device < count && error == 0; ++device) {
        auto thread = std::make_unique<Thread>();
        thread->owner = devices.get();
        thread->device = device;
        error = pthread_create(&thread->handle, &attributes, threadMain, thread.get());
        if (error == 0)
            devices->m_threads.push_back(std::move(thread));
    }
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        return Problem{"MW1509",
            fmt::format(
                "the host refused thread {} of {} virtual devices (error {})", devices->m_threads.size() + 1, count, error),
            "use a smaller mesh, or raise the limits on processes and memory"};
    }
    return devices;
}

VirtualDevices::~VirtualDevices()
{
    m_leaving = true;
    m_epoch.fetch_add(1);
    m_epoch.notify_all();
    for (const auto& thread : m_threads)
        pthread_join(thread->handle, nullptr);
}

void* VirtualDevices::threadMain(void* start)
{
    const auto* thread = static_cast<const Thread*>(start);
    thread->owner->serve(thread->device);
    return nullptr;
}

void VirtualDevices::serve(std::int64_t device)
{
    for (std::uint32_t epoch = 0;; ++epoch) {
        while (m_epoch.load(std::memory_order_acquire) == epoch)
            m_epoch.wait(epoch, std::memory_order_acquire);
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
        m_finished.fetch_add(1);
        if (m_movement.moving.fetch_sub(1) == 1 && m_finished.load() != m_count)
            reportStuck();
        if (m_running.fetch_sub(1) == 1) {
            m_doneEpoch.fetch_add(1);
            m_doneEpoch.notify_all();
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
    }
    m_work = &work;
    m_movement.moving.store(m_count);
    m_finished.store(0);
    m_running.store(m_count);
    const std::uint32_t done = m_doneEpoch.load();
    {
        const std::stop_callback onStop(stop, [this] { fail({Problem{"MW1507", "the run was stopped"}}); });
        m_epoch.fetch_add(1, std::memory_order_release);
        m_epoch.notify_all();
        while (m_doneEpoch.load() == done)
            m_doneEpoch.wait(done);
    }
    const std::lock_guard lock(m_mutex);
    if (m_failed)
        return m_failure;
    return Done{};
}

std::shared_ptr<Barrier> VirtualDevices::makeBarrier(std::int64_t members)
{
    auto barrier = std::make_shared<Barrier>(members, &m_movement);
    const std::lock_guard lock(m_mutex);
    m_barriers.push_back(barrier);
    return barrier;
}

bool VirtualDevices::wait(
    std::int64_t device, Barrier& barrier, const Place& place, const std::function<void()>& atLast)
{
    if (barrier.members() == 1)
        return true;
    auto& at = m_places[static_cast<std::size_t>(device)];
    at.store(&place, std::memory_order_release);
    const Barrier::Outcome outcome = barrier.wait(atLast);
    if (outcome == Barrier::Outcome::Passed) {
        at.store(nullptr, std::memory_order_release);
        return true;
    }
    if (outcome == Barrier::Outcome::Stuck)
        reportStuck();
    const std::lock_guard lock(m_mutex);
    at.store(nullptr, std::memory_order_release);
    return false;
}

/// Everybody waits or has finished, so the places stay what they are; an abort from outside takes them away only after we are done.
void VirtualDevices::reportStuck()
{
    constexpr std::size_t kMostNamed = 8;
    const std::lock_guard lock(m_mutex);
    std::vector<std::string> waiting;
    for (std::size_t device = 0; device < m_places.size(); ++device) {
        const Place* place = m_places[device].load(std::memory_order_acquire);
        if (place != nullptr && waiting.size() < kMostNamed)
            waiting.push_back(fmt::format("device {} waits in {}", device, (*place)()));
    }
    const std::int64_t finished = m_finished.load();
    failLocked({Problem{"MW1506",
        fmt::format("no device can move: {}{}", fmt::join(waiting, ", "),
            finished > 0 ? fmt::format(", {} of {} have finished", finished, m_count) : ""),
        "the devices disagree on the order of their collectives"}});
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
    for (const auto& barrier : m_barriers) {
        if (const auto alive = barrier.lock())
            alive->abort();
    }
}

Problem VirtualDevices::interrupted()
{
    return {"MW1507", "the run was stopped"};
}

} // namespace meshwright
