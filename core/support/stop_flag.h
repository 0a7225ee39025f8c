// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>

namespace meshwright {

/// Set when nobody needs the rest of a long computation. Whoever computes looks at it between pieces of bounded size (one relaxed load)
/// and leaves its result unfinished. Unlike a std::stop_token it can be cleared, and it is also set by failures.
class StopFlag {
public:
    bool isSet() const { return m_set.load(std::memory_order_relaxed); }
    void set() { m_set.store(true, std::memory_order_relaxed); }
    void clear() { m_set.store(false, std::memory_order_relaxed); }

private:
    std::atomic<bool> m_set{false};
};

} // namespace meshwright
