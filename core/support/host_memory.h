// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <optional>

namespace meshwright {

/// How many bytes this computer can give to programs without swapping, as its system estimates it; nothing where it does not say.
std::optional<std::int64_t> availableMemoryBytes();

/// How many bytes of addresses this process may still ask for under its limit (`ulimit -v`); nothing where there is none.
std::optional<std::int64_t> addressSpaceLeftBytes();

/// Lets the heap grow by 64 MiB at a time, and give memory back from 256 MiB on. An analysis makes and frees many small values: glibc's own steps of 128 KiB
/// take it twice the time, in calls of the system and in pages too small to be huge ones. Does nothing under a limit (`ulimit -v`), of which that would be
/// a part. For the beginning of a program.
void growHeapInLargeSteps();

/// MW1515: what was asked for needs more memory than this computer, or the limit that it was started with, can give. Said where a verb or a
/// job of the window ends by std::bad_alloc: what it had is free again by then.
Problem notEnoughMemory();

} // namespace meshwright
