// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/stream_copy.h"

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace meshwright {

namespace {

constexpr std::int64_t kLine = 64;

std::int64_t pastLine(const std::byte* at)
{
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at) % kLine);
}

void copyToAll(std::span<std::byte* const> to, std::int64_t offset, const std::byte* from, std::int64_t bytes)
{
    for (std::byte* const target : to)
        std::memcpy(target + offset, from, static_cast<std::size_t>(bytes));
}

} // namespace

void streamToAll(std::span<std::byte* const> to, std::int64_t offset, const std::byte* from, std::int64_t bytes)
{
#ifdef __SSE2__
    if (to.empty())
        return;
    const std::int64_t past = pastLine(to.front() + offset);
    if (std::any_of(to.begin(), to.end(), [&](const std::byte* target) { return pastLine(target + offset) != past; }))
        return copyToAll(to, offset, from, bytes);
    const std::int64_t head = std::min(bytes, (kLine - past) % kLine);
    copyToAll(to, offset, from, head);
    std::int64_t at = head;
    for (; at + kLine <= bytes; at += kLine) {
        const auto* line = reinterpret_cast<const __m128i*>(from + at);
        const __m128i parts[]
            = {_mm_loadu_si128(line), _mm_loadu_si128(line + 1), _mm_loadu_si128(line + 2), _mm_loadu_si128(line + 3)};
        for (std::byte* const target : to) {
            auto* there = reinterpret_cast<__m128i*>(target + offset + at);
            for (int part = 0; part < 4; ++part)
                _mm_stream_si128(there + part, parts[part]);
        }
    }
    copyToAll(to, offset + at, from + at, bytes - at);
#else
    copyToAll(to, offset, from, bytes);
#endif
}

void finishStreams()
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

void fetchAhead(const std::byte* from, std::int64_t bytes)
{
    for (std::int64_t at = 0; at < bytes; at += kLine)
        __builtin_prefetch(from + at, 0, 2);
}

} // namespace meshwright
