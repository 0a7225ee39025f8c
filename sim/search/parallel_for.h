// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace meshwright::sim {

/// So many threads as asked for; 0: one for each core.
inline unsigned workerCount(unsigned wanted)
{
    return wanted > 0 ? wanted : std::max(1U, std::thread::hardware_concurrency());
}

/// Calls `work(worker, index)` for every index below `count`, each worker (0 .. workers - 1) on a thread of its own, `piece` indices at a time.
/// `work` must not throw.
template <typename Work>
void parallelFor(std::size_t count, unsigned workers, const Work& work, std::size_t piece = 16)
{
    if (workers <= 1 || count <= piece) {
        for (std::size_t i = 0; i < count; ++i)
            work(0U, i);
        return;
    }
    std::atomic<std::size_t> next = 0;
    const auto run = [&](unsigned worker) {
        for (std::size_t from = next.fetch_add(piece); from < count; from = next.fetch_add(piece)) {
            for (std::size_t i = from; i < std::min(count, from + piece); ++i)
                work(worker, i);
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned worker = 1; worker < workers; ++worker)
        threads.emplace_back(run, worker);
    run(0);
}

} // namespace meshwright::sim
