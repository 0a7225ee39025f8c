// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace meshwright::ui {

/// Runs jobs off the UI thread, one at a time, of which only the latest counts: starting another stops the one before, and its result is never
/// delivered. All functions but `post` are called on the thread that made the worker.
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

    /// By the job that runs: what is to be done on the thread of the owner before its result is there, in this order, unless it was stopped.
    void post(std::function<void()> call);

    /// From a start until its result is delivered.
    bool isBusy() const { return m_isBusy; }

private:
    /// Runs on the owner's thread what waits for it. An event says only that something waits: what it is goes through the worker's lock.
    struct Inbox : QObject {
        explicit Inbox(LatestWorker& worker)
            : m_worker(worker)
        {
        }
        void customEvent(QEvent* event) override;

        LatestWorker& m_worker;
    };

    struct Request {
        Job job;
        std::stop_source stop;
        std::uint64_t number = 0;
    };

    struct Delivery {
        std::function<void()> call;
        bool isResult = false; ///< nothing of its request comes after it
    };

    void work(const std::stop_token& ends);
    void send(Delivery delivery);
    void deliver();

    Inbox m_inbox{*this}; ///< what is posted to it goes away with it
    bool m_isBusy = false;
    std::mutex m_mutex; ///< guards what follows
    std::condition_variable_any m_wakes;
    std::uint64_t m_number = 0; ///< of the latest request
    Request m_pending; ///< waits when it has a job
    Request m_running; ///< without its job
    std::deque<Delivery> m_deliveries; ///< of the latest request, waiting for the owner's thread
    std::jthread m_thread; ///< started with the first job
};

} // namespace meshwright::ui
