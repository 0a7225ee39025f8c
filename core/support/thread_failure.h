// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <exception>
#include <mutex>
#include <utility>

namespace meshwright {

/// What a few threads of one piece of work threw, such as std::bad_alloc: the first of it is thrown on by whoever joined them.
class ThreadFailure {
public:
    /// Calls `work` on a thread whose caller cannot catch what it throws.
    template <typename Work>
    void guard(const Work& work) noexcept
    {
        try {
            work();
        } catch (...) {
            const std::lock_guard lock(m_mutex);
            if (!m_first)
                m_first = std::current_exception();
        }
    }

    /// Precondition: the threads have ended.
    void rethrow()
    {
        if (m_first)
            std::rethrow_exception(std::exchange(m_first, nullptr));
    }

private:
    std::mutex m_mutex;
    std::exception_ptr m_first;
};

} // namespace meshwright
