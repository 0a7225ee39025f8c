// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/devices/parking.h"

#include <functional>

namespace meshwright {

/// How many devices of a run are neither waiting nor finished. When none is left although some have not finished, none ever will.
struct Movement {
    std::atomic<std::int64_t> moving{0};
};

/// Where the members of a group wait for each other, again and again. With more devices than cores, spinning would keep the last member from
/// arriving: how they wait is left to `Parking`. `abort` wakes everybody.
class Barrier {
public:
    enum class Outcome : std::uint8_t {
        Passed, ///< everything that the members did before is visible to all
        Aborted,
        Stuck, ///< this member was the last of the whole run that could move: nobody will come. The caller must abort.
    };

    /// That a member has arrived, in which round, and whether it was the last one.
    struct Arrival {
        std::uint32_t round = 0;
        bool isLast = false;
        bool isAborted = false;
    };

    /// `movement`, which may be absent, and `parking` must outlive the barrier.
    explicit Barrier(std::int64_t members, Movement* movement = nullptr, Parking& parking = threadParking());

    /// The round that is under way. It ends with the arrival of all members.
    std::uint32_t round() const { return m_round.load(std::memory_order_acquire); }

    /// Arrives and goes on. `atLast`, which may be empty, is called by the member that arrives last, before anybody hears of it.
    Arrival arrive(const std::function<void()>& atLast = {});

    /// Waits for the end of a round that is under way or over: all that members did before they arrived is visible then.
    Outcome await(std::uint32_t round);

    /// Both.
    Outcome wait(const std::function<void()>& atLast = {});

    /// Wakes all who wait and lets nobody wait any more, until `reset`.
    void abort();

    /// Makes the barrier new. Precondition: nobody waits.
    void reset();

    std::int64_t members() const { return m_members; }

private:
    std::int64_t m_members;
    Movement* m_movement;
    Parking& m_parking;
    std::atomic<std::uint32_t> m_round{0};
    std::atomic<bool> m_aborted{false};

    // What every arrival changes has a line of its own: who waits looks at the round again and again.
    alignas(64) std::atomic<std::int64_t> m_arrived{0};
    std::atomic<std::uint64_t> m_waiting{0}; ///< who wait, and in the upper half the round that they wait for
};

} // namespace meshwright
