// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/fiber_stack.h"

#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace meshwright {

namespace {

constexpr std::size_t kGuardBytes = std::size_t{256} << 10;

} // namespace

FiberStack::~FiberStack()
{
    if (m_bottom == nullptr)
        return;
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(m_bottom, m_bytes); // frames that were left for good have not done it
#endif
    munmap(m_bottom - kGuardBytes, kGuardBytes + m_bytes);
}

bool FiberStack::allocate(std::size_t bytes)
{
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t whole = (bytes + page - 1) / page * page;
    void* memory = mmap(
        nullptr, kGuardBytes + whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    if (mprotect(memory, kGuardBytes, PROT_NONE) != 0) {
        munmap(memory, kGuardBytes + whole);
        return false;
    }
    m_bottom = static_cast<std::byte*>(memory) + kGuardBytes;
    m_bytes = whole;
    return true;
}

} // namespace meshwright
