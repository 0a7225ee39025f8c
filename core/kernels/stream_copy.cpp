// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/stream_copy.h"

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <immintrin.h>
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

#ifdef __SSE2__
/// Whole lines to places that start with one.
void streamLines(std::span<std::byte* const> to, std::int64_t offset, const std::byte* from, std::int64_t lines)
{
    for (std::int64_t at = 0; at < lines * kLine; at += kLine) {
        const auto* line = reinterpret_cast<const __m128i*>(from + at);
        const __m128i parts[]
            = {_mm_loadu_si128(line), _mm_loadu_si128(line + 1), _mm_loadu_si128(line + 2), _mm_loadu_si128(line + 3)};
        for (std::byte* const target : to) {
            auto* there = reinterpret_cast<__m128i*>(target + offset + at);
            for (int part = 0; part < 4; ++part)
                _mm_stream_si128(there + part, parts[part]);
        }
    }
}

/// The same with one store for a line.
[[gnu::target("avx512f")]] void streamWideLines(
    std::span<std::byte* const> to, std::int64_t offset, const std::byte* from, std::int64_t lines)
{
    for (std::int64_t at = 0; at < lines * kLine; at += kLine) {
        const __m512i line = _mm512_loadu_si512(from + at);
        for (std::byte* const target : to)
            _mm512_stream_si512(reinterpret_cast<__m512i*>(target + offset + at), line);
    }
}
#endif

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
    const std::int64_t lines = (bytes - head) / kLine;
    static const bool hasWideStores = __builtin_cpu_supports("avx512f");
    (hasWideStores ? streamWideLines : streamLines)(to, offset + head, from + head, lines);
    const std::int64_t at = head + lines * kLine;
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
