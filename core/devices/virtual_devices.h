// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/devices/barrier.h"
#include "core/devices/device_engine.h"
#include "core/devices/device_states.h"
#include "core/devices/mailbox.h"
#include "core/devices/rank_post.h"
#include "core/kernels/scratch.h"
#include "core/ranks/ranks.h"
#include "core/support/result.h"
#include "core/support/stop_flag.h"

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright {

/// Bounds how many devices compute at once, so that they do not fight for the cores. Each permit comes with scratch memory.
class ComputePermits {
public:
    explicit ComputePermits(int permits);

    /// Waits for a free permit. Holders never wait for another device, so this always ends.
    Scratch& acquire();
    void release(Scratch& scratch);

    int count() const { return static_cast<int>(m_scratches.size()); }

    /// The most scratch memory that any permit needed so far. Not while devices run.
    std::int64_t peakScratchBytes() const;

private:
    std::vector<Scratch> m_scratches;
    std::vector<Scratch*> m_free;
    std::mutex m_mutex;
    std::condition_variable m_released;
};

struct VirtualDevicesOptions {
    int permits
        = 0; ///< devices that compute at once, and threads that carry fibers; 0: one for each core of the host, which processes of one job share
    double stallSeconds = 0.0; ///< how long devices wait for one that has not arrived before the run fails; 0: for ever
    std::shared_ptr<Ranks> ranks = {}; ///< processes that share the devices; null: all are here
    EngineKind engine = EngineKind::Auto; ///< what the devices are; none of their numbers depends on it
};

/// Devices, made once and parked between runs. Of a job of several processes each has a contiguous block of the devices (`firstDeviceOf`),
/// and all do the same with them.
class VirtualDevices {
public:
    /// Problems: MW1509 the host refuses to make so many threads or stacks, MW1553 there are fewer devices than processes; those of `chooseEngine`
    /// and, when the engine is left open, of `engineFromEnvironment`, which counts in a single process only.
    static Result<std::unique_ptr<VirtualDevices>> create(std::int64_t count, VirtualDevicesOptions options = {});
    ~VirtualDevices();
    VirtualDevices(const VirtualDevices&) = delete;
    VirtualDevices& operator=(const VirtualDevices&) = delete;

    std::int64_t count() const { return m_count; }
    ComputePermits& permits() { return m_permits; }
    EngineKind engine() const { return m_engine->kind(); } ///< never Auto

    Ranks* ranks() const { return m_ranks.get(); } ///< null: all devices are here
    bool isHere(std::int64_t device) const { return device >= m_firstHere && device < m_firstHere + m_here; }
    int rankOf(std::int64_t device) const { return m_ranks == nullptr ? 0 : rankOfDevice(device, m_ranks->size(), m_count); }

    using Work = std::function<Result<Done>(std::int64_t device)>;

    /// Runs `work` on every device that is here and waits for all of them. The first failure sets `stopFlag` and aborts all barriers, so that nobody works
    /// on or waits for a device that is gone, and is what is reported. Not from two threads at once, not from a device.
    ///
    /// Problems: what the first failing device returned; MW1506 no device can move any more although not all have finished,
    /// MW1507 `stop` was asked for, MW1508 something was thrown on a device, MW1522 devices waited for longer than `stallSeconds` for one that
    /// does not arrive; what ended the job of several processes. Afterwards the devices' data is undefined, but the devices are ready for the next run.
    ///
    /// Of several processes all make the same runs, which end together. The first one sees when no device of the whole job can move, and who does
    /// not arrive. After a failure none of them can run anything again.
    Result<Done> run(const Work& work, std::stop_token stop = {});

    /// Set from the first failure of a run, or from the moment when its stop was asked for, until the next run. Devices look at it between
    /// instructions, and within long ones, and then return `interrupted()`.
    const StopFlag& stopFlag() const { return m_stopFlag; }

    /// A barrier for some of the devices, aborted with every run that fails.
    std::shared_ptr<Barrier> makeBarrier(std::int64_t members);

    /// A mailbox for one of the devices, likewise; emptied when a run begins. Of several processes all make the same ones in the same order:
    /// what one of them sends comes to the mailbox where the device is.
    std::shared_ptr<Mailbox> makeMailbox(std::int64_t device);

    /// Says what a device waits for: "all_reduce of grad.layers.0.w".
    using Place = std::function<std::string()>;

    /// Waits at a barrier on behalf of a device; `place`, which must live until the run ends, is asked only when nobody will come, `atLast`
    /// is the barrier's. False: return `interrupted()`.
    bool wait(std::int64_t device, Barrier& barrier, const Place& place, const std::function<void()>& atLast = {});

    /// The same for a round of the barrier that the device, or somebody on its behalf, has arrived at before.
    bool await(std::int64_t device, Barrier& barrier, std::uint32_t round, const Place& place);

    /// Waits for a message, likewise.
    bool receive(std::int64_t device, Mailbox& mailbox, const MessageTag& tag, AlignedBytes& message, const Place& place);

    /// Of several processes all make the same ones in the same order; null where the group has no members, or all.
    std::shared_ptr<Meeting> makeMeeting(bool isShared);

    /// As long as it lives, a device, as the last one here, waits until other processes come to a meeting, and tells them that it
    /// has come. It counts as one that does not move: only they can end that.
    class Meet {
    public:
        Meet(VirtualDevices& devices, Meeting& meeting);
        ~Meet();
        Meet(const Meet&) = delete;
        Meet& operator=(const Meet&) = delete;

    private:
        VirtualDevices& m_devices;
        Meeting& m_meeting;
    };

    /// As long as it lives, a device waits for something from other processes, for the report on those that do not arrive; `place` as in `wait`.
    class WaitElsewhere {
    public:
        WaitElsewhere(VirtualDevices& devices, std::int64_t device, const Place& place);
        ~WaitElsewhere();
        WaitElsewhere(const WaitElsewhere&) = delete;
        WaitElsewhere& operator=(const WaitElsewhere&) = delete;

    private:
        VirtualDevices& m_devices;
        std::int64_t m_device;
    };

    /// Waits, for what a device is told to do, until the run fails or is stopped. Counts as moving.
    void standStill();

    /// What a device is about to do, for the report on one that does not arrive; the text must live until the run ends.
    void announce(std::int64_t device, const std::string& doing)
    {
        m_seats[static_cast<std::size_t>(device)].doing.store(&doing, std::memory_order_release);
    }

    /// What a device returns that was stopped because of another one; never reported.
    static Problem interrupted();

private:
    explicit VirtualDevices(std::int64_t count, VirtualDevicesOptions options);
    Result<Done> start(EngineKind wanted);
    void serve(std::int64_t device);
    void fail(Problems problems);
    void failLocked(Problems problems);
    void reportStuck();
    template <typename Waiting>
    bool waitAt(std::int64_t device, const Place& place, const Waiting& waiting);
    void awaitEnd(std::uint32_t epoch);
    void awaitEndTogether(std::uint32_t epoch);
    std::vector<DeviceState> statesHere() const;

    /// What is known of one device during a run.
    struct alignas(64) Seat {
        std::atomic<const Place*> place{nullptr}; ///< while it waits; taken away after an abort only under the mutex
        std::atomic<std::uint32_t> waits{0}; ///< that it began
        std::atomic<const std::string*> doing{nullptr};
        std::atomic<bool> finished{false};
    };

    std::int64_t m_count;
    std::shared_ptr<Ranks> m_ranks;
    std::int64_t m_firstHere = 0;
    std::int64_t m_here; ///< devices
    ComputePermits m_permits;
    double m_stallSeconds;
    Movement m_movement;
    StopFlag m_stopFlag;
    std::atomic<std::uint32_t> m_failures{0}; ///< runs that failed or were stopped
    std::atomic<std::int64_t> m_finished{0};
    std::atomic<std::int64_t> m_met{0}; ///< ends of waiting in meetings
    std::atomic<std::uint32_t> m_epoch{0};
    std::atomic<std::uint32_t> m_doneEpoch{0};
    std::atomic<std::int64_t> m_running{0};
    bool m_leaving = false; ///< written before an epoch begins
    const Work* m_work = nullptr; ///< the same
    std::vector<Seat> m_seats; ///< by device
    std::mutex m_endMutex; ///< for `m_ended`, when a stall is looked out for
    std::condition_variable m_ended;

    std::unique_ptr<RankPost> m_post; ///< null: all devices are here

    std::mutex m_mutex; ///< of what follows
    Problems m_failure;
    bool m_failed = false;
    std::vector<std::weak_ptr<Barrier>> m_barriers;
    std::map<std::int64_t, std::weak_ptr<Mailbox>> m_mailboxes; ///< by number
    std::int64_t m_nextMailbox = 0;
    std::vector<std::weak_ptr<Meeting>> m_meetings; ///< that are shared
    std::int64_t m_nextMeeting = 0;

    std::unique_ptr<DeviceEngine> m_engine;
};

} // namespace meshwright
