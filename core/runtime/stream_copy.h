// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshwright {

/// What all of a group's copies must come to for `streamCopy` to be the faster way: caches would not hold them until they are read.
inline constexpr std::int64_t kStreamedBytes = std::int64_t{8} << 20;

/// Copies to memory that nobody has read lately and nobody reads soon: past the caches where the processor can, so that what is overwritten
/// is not fetched first. `finishStreams` must follow before another thread is told of it. The memory must not overlap.
void streamCopy(std::byte* to, const std::byte* from, std::int64_t bytes);
void finishStreams();

/// Asks for memory that is read soon.
void fetchAhead(const std::byte* from, std::int64_t bytes);

} // namespace meshwright
