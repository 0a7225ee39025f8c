// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/thread_failure.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <stop_token>
#include <thread>
#include <vector>

namespace meshwright {

/// So many threads as asked for; 0: one for each core.
inline unsigned workerCount(unsigned wanted)
{
    return wanted > 0 ? wanted : std::max(1U, std::thread::hardware_concurrency());
}

/// Calls `work(worker, index)` for every index below `count`, each worker (0 .. workers - 1) on a thread of its own, `piece` indices at a time.
/// After a stop the indices that are left are left out. What `work` throws is thrown on, once.
template <typename Work>
void parallelFor(std::size_t count, unsigned workers, const std::stop_token& stop, const Work& work, std::size_t piece = 16)
{
    std::atomic<std::size_t> next = 0;
    ThreadFailure failure;
    const auto run = [&](unsigned worker) {
        for (std::size_t from = next.fetch_add(piece); from < count; from = next.fetch_add(piece)) {
            for (std::size_t i = from; i < std::min(count, from + piece) && !stop.stop_requested(); ++i)
                work(worker, i);
        }
    };
    const auto guarded = [&](unsigned worker) { failure.guard([&] { run(worker); }); };
    if (workers <= 1 || count <= piece) {
        run(0);
        return;
    }
    {
        std::vector<std::jthread> threads;
        for (unsigned worker = 1; worker < workers; ++worker)
            threads.emplace_back(guarded, worker);
        guarded(0);
    }
    failure.rethrow();
}

} // namespace meshwright
