// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/host_array.h"

namespace meshwright {

/// Temporary memory of one worker: grows to what its kernels need, and is used again by the next one. Not for two threads at once.
class Scratch {
public:
    /// Memory that stays valid until `reset`, 64-byte aligned, content undefined.
    std::byte* allocate(std::int64_t bytes);

    /// Gives everything back.
    void reset();

    /// The most that was in use between two resets, in bytes.
    std::int64_t peakBytes() const { return m_peak; }

private:
    std::vector<AlignedBytes> m_chunks; ///< the last one is being filled
    std::int64_t m_used = 0; ///< in the last chunk
    std::int64_t m_total = 0; ///< since the last reset
    std::int64_t m_peak = 0;
};

} // namespace meshwright
