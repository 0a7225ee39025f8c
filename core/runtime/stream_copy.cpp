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

} // namespace

void streamCopy(std::byte* to, const std::byte* from, std::int64_t bytes)
{
#ifdef __SSE2__
    const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % kLine);
    const std::int64_t head = std::min(bytes, (kLine - past) % kLine);
    std::memcpy(to, from, static_cast<std::size_t>(head));
    std::int64_t at = head;
    for (; at + kLine <= bytes; at += kLine) {
        for (std::int64_t part = 0; part < kLine; part += 16)
            _mm_stream_si128(
                reinterpret_cast<__m128i*>(to + at + part), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + part)));
    }
    std::memcpy(to + at, from + at, static_cast<std::size_t>(bytes - at));
#else
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
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
