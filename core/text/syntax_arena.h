// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cassert>
#include <cstddef>
#include <memory_resource>
#include <vector>

namespace meshwright {

/// The memory of the syntax of one text: given out piece by piece, and back all at once. While one lives, the lists below that its thread makes take
/// their memory from it; they must be gone before it is.
class SyntaxArena {
public:
    SyntaxArena()
        : m_outer(s_current)
    {
        s_current = this;
    }
    ~SyntaxArena() { s_current = m_outer; }
    SyntaxArena(const SyntaxArena&) = delete;
    SyntaxArena& operator=(const SyntaxArena&) = delete;

    static void* allocate(std::size_t bytes, std::size_t alignment)
    {
        assert(s_current != nullptr);
        return s_current->m_memory.allocate(bytes, alignment);
    }

private:
    inline static thread_local SyntaxArena* s_current = nullptr;
    SyntaxArena* m_outer;
    std::pmr::monotonic_buffer_resource m_memory{std::size_t{1} << 16};
};

template <typename T>
struct SyntaxAllocator {
    using value_type = T;

    SyntaxAllocator() = default;
    template <typename Other>
    SyntaxAllocator(const SyntaxAllocator<Other>&) // an allocator like any other: of lists within lists
    {
    }
    T* allocate(std::size_t count) { return static_cast<T*>(SyntaxArena::allocate(count * sizeof(T), alignof(T))); }
    void deallocate(T*, std::size_t) { }
    friend bool operator==(const SyntaxAllocator&, const SyntaxAllocator&) { return true; }
};

/// A list whose memory is the arena's: short ones are as good as free. Long ones that grow leave their old memory behind.
template <typename T>
using SyntaxList = std::vector<T, SyntaxAllocator<T>>;

} // namespace meshwright
