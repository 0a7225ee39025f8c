// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/scratch.h"

#include "core/support/checked.h"

#include <algorithm>

namespace meshwright {

std::byte* Scratch::allocate(std::int64_t bytes)
{
    constexpr std::int64_t kSmallestChunk = 64 * 1024;
    const std::int64_t padded = ceilDiv(bytes, 64) * 64;
    if (m_chunks.empty() || m_used + padded > m_chunks.back().size()) {
        m_chunks.emplace_back(std::max(padded, kSmallestChunk));
        m_used = 0;
    }
    std::byte* memory = m_chunks.back().data() + m_used;
    m_used += padded;
    m_total += padded;
    m_peak = std::max(m_peak, m_total);
    return memory;
}

void Scratch::reset()
{
    if (m_chunks.size() > 1) { // the next round fits one chunk
        m_chunks.clear();
        m_chunks.emplace_back(m_peak);
    }
    m_used = 0;
    m_total = 0;
}

} // namespace meshwright
