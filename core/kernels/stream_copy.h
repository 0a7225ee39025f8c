// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace meshwright {

/// What all of a group's copies must come to for `streamToAll` to be the faster way: caches would not hold them until they are read.
inline constexpr std::int64_t kStreamedBytes = std::int64_t{8} << 20;

/// Copies `bytes` to the place `offset` bytes from each of `to`, which nobody has read lately and nobody reads soon: past the caches where the
/// processor can, so that what is overwritten is not fetched first, and line by line to all, so that memory is written everywhere at once.
/// `finishStreams` must follow before another thread is told of it. The memory must not overlap.
void streamToAll(std::span<std::byte* const> to, std::int64_t offset, const std::byte* from, std::int64_t bytes);
void finishStreams();

/// Asks for memory that is read soon.
void fetchAhead(const std::byte* from, std::int64_t bytes);

} // namespace meshwright
