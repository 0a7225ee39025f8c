// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/virtual_devices.h"

#include "core/devices/rank_run.h"
#include "core/support/cores.h"
#include "core/support/host_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <thread>

namespace meshwright {

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
    m_post = std::make_unique<RankPost>(*m_ranks);
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
        } catch (const std::bad_alloc&) {
            fail({notEnoughMemory()});
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
            if (m_stallSeconds > 0.0 || m_post != nullptr) {
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
        if (m_ranks != nullptr && m_failed)
            return m_failure;
        m_failure.clear();
        m_failed = false;
        m_stopFlag.clear();
        std::erase_if(m_barriers, [](const std::weak_ptr<Barrier>& barrier) { return barrier.expired(); });
        for (const auto& barrier : m_barriers) {
            if (const auto alive = barrier.lock())
                alive->reset();
        }
        std::erase_if(m_meetings, [](const std::weak_ptr<Meeting>& meeting) { return meeting.expired(); });
        std::erase_if(m_mailboxes, [](const auto& mailbox) { return mailbox.second.expired(); });
        for (const auto& [number, mailbox] : m_mailboxes) {
            if (const auto alive = mailbox.lock())
                alive->reset();
        }
    }
    m_work = &work;
    for (Seat& seat : m_seats) {
        seat.doing.store(nullptr);
        seat.finished.store(false);
    }
    // Of several processes others may send something: somebody can always move, for all that is known here.
    m_movement.moving.store(m_here + (m_ranks != nullptr ? 1 : 0));
    m_finished.store(0);
    m_running.store(m_here);
    const std::uint32_t done = m_doneEpoch.load();
    if (m_post != nullptr)
        m_post->beginRound();
    {
        const std::stop_callback onStop(stop, [this] { fail({Problem{"MW1507", "the run was stopped"}}); });
        std::optional<Ranks::Alarm> onEnd;
        if (m_ranks != nullptr)
            onEnd.emplace(*m_ranks, [this](const Problem& problem) { fail({problem}); });
        m_epoch.fetch_add(1, std::memory_order_release);
        m_engine->changed(m_epoch);
        if (m_post != nullptr)
            awaitEndTogether(done);
        else
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
    constexpr int kLooks = 8;
    if (m_stallSeconds > 0.0) {
        const auto isOver = [&] { return m_doneEpoch.load() != epoch; };
        StallWatch watch(m_stallSeconds);
        bool reported = false;
        std::unique_lock lock(m_endMutex);
        while (!reported && !m_ended.wait_for(lock, std::chrono::duration<double>(m_stallSeconds) / kLooks, isOver)) {
            const std::lock_guard own(m_mutex);
            const std::vector<DeviceState> states = statesHere();
            const auto problem = watch.look(states) ? watch.problem(states) : std::nullopt;
            reported = problem.has_value();
            if (problem)
                failLocked({*problem});
        }
    }
    while (m_doneEpoch.load() == epoch)
        m_doneEpoch.wait(epoch);
}

/// The same for devices that several processes share.
void VirtualDevices::awaitEndTogether(std::uint32_t epoch)
{
    const auto locked = [this](const auto& ask) {
        const std::lock_guard lock(m_mutex);
        return ask();
    };
    const auto isOver = [this, epoch] { return m_doneEpoch.load() != epoch; };
    RankRun::Devices devices;
    devices.count = m_count;
    devices.haveMailboxes = !m_mailboxes.empty();
    devices.states = [&] { return locked([this] { return statesHere(); }); };
    devices.isIdle = [this] { return m_movement.moving.load() == 1; };
    devices.met = [this] { return m_met.load(); };
    devices.meetings = [&] {
        return locked([this] {
            std::vector<Meeting> meetings;
            for (const auto& meeting : m_meetings) {
                if (const auto alive = meeting.lock())
                    meetings.push_back(*alive);
            }
            return meetings;
        });
    };
    devices.hasEnded = isOver;
    devices.awaitEnd = [&](std::chrono::microseconds time) {
        std::unique_lock lock(m_endMutex);
        m_ended.wait_for(lock, time, isOver);
    };
    devices.hasFailed = [&] { return locked([this] { return m_failed; }); };
    devices.fail = [this](Problem problem) { fail({std::move(problem)}); };
    devices.deliver = [this, &locked](std::int64_t number, const MessageTag& tag, AlignedBytes message) {
        const auto mailbox = locked([&] { return m_mailboxes.at(number).lock(); });
        if (mailbox != nullptr)
            mailbox->send(tag, std::move(message));
    };
    RankRun run(*m_ranks, *m_post, std::move(devices), m_stallSeconds);
    run.untilEnd();
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

std::shared_ptr<Mailbox> VirtualDevices::makeMailbox(std::int64_t device)
{
    const std::lock_guard lock(m_mutex);
    const std::int64_t number = m_nextMailbox++;
    if (!isHere(device)) {
        return std::make_shared<Mailbox>([this, number, rank = rankOf(device)](const MessageTag& tag, AlignedBytes message) {
            RankRun::send(*m_post, rank, number, tag, std::move(message));
        });
    }
    auto mailbox = std::make_shared<Mailbox>(&m_movement, *m_engine);
    m_mailboxes[number] = mailbox;
    return mailbox;
}

std::shared_ptr<Meeting> VirtualDevices::makeMeeting(bool isShared)
{
    const std::lock_guard lock(m_mutex);
    const std::int64_t number = m_nextMeeting++;
    if (!isShared)
        return nullptr;
    auto meeting = std::make_shared<Meeting>(Meeting{number});
    m_meetings.push_back(meeting);
    return meeting;
}

VirtualDevices::Meet::Meet(VirtualDevices& devices, Meeting& meeting)
    : m_devices(devices)
    , m_meeting(meeting)
{
    const std::lock_guard lock(m_devices.m_mutex);
    ++m_meeting.begun;
    m_meeting.isAwaited = true;
    m_devices.m_movement.moving.fetch_sub(1);
}

/// Who looks whether all are stuck sees first that the waiting has ended.
VirtualDevices::Meet::~Meet()
{
    const std::lock_guard lock(m_devices.m_mutex);
    m_devices.m_met.fetch_add(1);
    m_meeting.isAwaited = false;
    m_devices.m_movement.moving.fetch_add(1);
}

VirtualDevices::WaitElsewhere::WaitElsewhere(VirtualDevices& devices, std::int64_t device, const Place& place)
    : m_devices(devices)
    , m_device(device)
{
    Seat& seat = devices.m_seats[static_cast<std::size_t>(device)];
    seat.waits.fetch_add(1, std::memory_order_relaxed);
    seat.place.store(&place, std::memory_order_release);
}

VirtualDevices::WaitElsewhere::~WaitElsewhere()
{
    const std::lock_guard lock(m_devices.m_mutex);
    m_devices.m_seats[static_cast<std::size_t>(m_device)].place.store(nullptr, std::memory_order_release);
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

/// How the devices that are here are. Under the mutex: then an abort does not take places away meanwhile.
std::vector<DeviceState> VirtualDevices::statesHere() const
{
    std::vector<DeviceState> states;
    for (std::int64_t device = m_firstHere; device < m_firstHere + m_here; ++device) {
        const Seat& seat = m_seats[static_cast<std::size_t>(device)];
        const Place* place = seat.place.load(std::memory_order_acquire);
        const std::string* doing = seat.doing.load(std::memory_order_acquire);
        states.push_back({device, place != nullptr, seat.finished.load(std::memory_order_acquire),
            seat.waits.load(std::memory_order_acquire), place != nullptr ? (*place)() : "", doing != nullptr ? *doing : ""});
    }
    return states;
}

/// Everybody waits or has finished, so the places stay what they are; an abort from outside takes them away only after we are done.
void VirtualDevices::reportStuck()
{
    const std::lock_guard lock(m_mutex);
    failLocked({stuckProblem(statesHere())});
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
    for (const auto& [number, mailbox] : m_mailboxes) {
        if (const auto alive = mailbox.lock())
            alive->abort();
    }
}

Problem VirtualDevices::interrupted()
{
    return {"MW1507", "the run was stopped"};
}

} // namespace meshwright
