// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/clocks.h"

#include <ctime>

namespace meshwright {

namespace {

double secondsOf(clockid_t clock)
{
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

} // namespace

double wallSeconds()
{
    return secondsOf(CLOCK_MONOTONIC);
}

double threadCpuSeconds()
{
    return secondsOf(CLOCK_THREAD_CPUTIME_ID);
}

} // namespace meshwright
