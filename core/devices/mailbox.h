// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/devices/barrier.h"
#include "core/kernels/host_array.h"

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace meshwright {

/// Which message one is: of several that a device has been sent, it takes the one that its schedule says.
struct MessageTag {
    std::int64_t sender = 0;
    std::int64_t piece = 0; ///< of the pipeline, that the message is for
    std::int64_t microbatch = 0;
    bool backward = false;

    friend auto operator<=>(const MessageTag&, const MessageTag&) = default;
};

/// Messages for one device. Sending never waits; receiving waits until the message is there. `abort` wakes who waits.
class Mailbox {
public:
    /// `movement`, which may be absent, and `parking` must outlive the mailbox.
    explicit Mailbox(Movement* movement = nullptr, Parking& parking = threadParking())
        : m_movement(movement)
        , m_parking(parking)
    {
    }

    /// Of a device elsewhere: what is sent goes on to `forward`, from any thread.
    using Forward = std::function<void(const MessageTag& tag, AlignedBytes message)>;
    explicit Mailbox(Forward forward)
        : m_parking(threadParking())
        , m_forward(std::move(forward))
    {
    }

    /// Precondition: no message of this tag is waiting.
    void send(const MessageTag& tag, AlignedBytes message);

    /// Takes a message out. Stuck: this device was the last of the whole run that could move, and must abort. Not for two threads at once.
    Barrier::Outcome receive(const MessageTag& tag, AlignedBytes& message);

    void abort();

    /// Throws all messages away and makes the mailbox new. Precondition: nobody waits.
    void reset();

private:
    Movement* m_movement = nullptr;
    Parking& m_parking;
    Forward m_forward;
    std::atomic<std::uint32_t> m_news{0}; ///< how often what was awaited has come, or the mailbox was aborted

    std::mutex m_mutex; ///< of what follows; not held while waiting
    std::map<MessageTag, AlignedBytes> m_messages;
    const MessageTag* m_awaited = nullptr; ///< by who waits, until it has come
    bool m_aborted = false;
};

} // namespace meshwright
