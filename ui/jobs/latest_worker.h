// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace meshwright::ui {

/// Runs jobs off the UI thread, one at a time, of which only the latest counts: starting another stops the one before, and its result is never
/// delivered. All functions are called on the thread that made the worker.
class LatestWorker {
public:
    /// Computes on the worker's thread and returns what is to be done with the result on the thread of the owner; nothing when it was stopped.
    /// It must look at the token often. Memory that runs out ends it as if it had nothing to deliver.
    using Job = std::function<std::function<void()>(const std::stop_token&)>;

    LatestWorker() = default;
    ~LatestWorker();
    LatestWorker(const LatestWorker&) = delete;
    LatestWorker& operator=(const LatestWorker&) = delete;

    void start(Job job);

    /// Drops what is under way.
    void cancel();

    bool isBusy() const { return m_isBusy; }

private:
    struct Request {
        Job job;
        std::stop_source stop;
        std::uint64_t number = 0;
    };

    /// What a job wants delivered.
    struct Delivery {
        std::function<void()> deliver;
        std::uint64_t number = 0; ///< of its request
    };

    void work(const std::stop_token& ends);
    void deliver();

    QObject m_receiver; ///< what is posted to it goes away with it
    std::uint64_t m_number = 0; ///< of the latest request
    bool m_isBusy = false;
    std::mutex m_mutex; ///< guards m_pending, m_running and m_done
    std::condition_variable_any m_wakes;
    Request m_pending; ///< waits when it has a job
    std::stop_source m_running;
    Delivery m_done; ///< waits for the owner's thread
    std::jthread m_thread; ///< started with the first job
};

} // namespace meshwright::ui
