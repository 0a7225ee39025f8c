// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstdint>

namespace meshwright {

/// How a device waits for a word to change, and is told that it has.
class Parking {
public:
    virtual ~Parking() = default;

    /// Waits until `word` is not `value`: all that was done before it was changed is visible then. For the devices only that this carries.
    virtual void await(const std::atomic<std::uint32_t>& word, std::uint32_t value) = 0;

    /// Waits likewise, but not for long: lets others go first that can, and comes back before it would sleep. True: the word has changed. Who
    /// lingers before it tells others that it waits seldom has to tell them.
    virtual bool linger(const std::atomic<std::uint32_t>& word, std::uint32_t value) = 0;

    /// To be called after every change of a word that a device may wait for, by whoever changed it.
    virtual void changed(std::atomic<std::uint32_t>& word) = 0;
};

/// For threads: any of them may wait.
Parking& threadParking();

} // namespace meshwright
