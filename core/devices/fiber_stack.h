// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>

namespace meshwright {

/// Memory for a stack, below which lies a stretch that nothing may touch: who goes too deep is stopped there. It is longer than any one frame.
class FiberStack {
public:
    FiberStack() = default;
    ~FiberStack();
    FiberStack(const FiberStack&) = delete;
    FiberStack& operator=(const FiberStack&) = delete;

    /// False when the host refuses. Once only. `bytes` is rounded up to whole pages.
    bool allocate(std::size_t bytes);

    std::byte* bottom() const { return m_bottom; } ///< above what is guarded
    std::byte* top() const { return m_bottom + m_bytes; } ///< stacks grow down from here
    std::size_t bytes() const { return m_bytes; }

private:
    std::byte* m_bottom = nullptr;
    std::size_t m_bytes = 0;
};

} // namespace meshwright
