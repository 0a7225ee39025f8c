// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <QObject>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace meshwright::ui {

/// Analyses studies on a thread of its own. The latest request wins: an earlier one is stopped, and its answer is never delivered.
class AnalysisJob : public QObject {
    Q_OBJECT

public:
    explicit AnalysisJob(std::shared_ptr<sim::Session> session, QObject* parent = nullptr);
    ~AnalysisJob() override;

    void request(sim::StudySource source);

    /// True from a request until its answer.
    bool isBusy() const { return m_answered != m_requested; }

Q_SIGNALS:
    /// On the thread of this object. Never null.
    void finished(std::shared_ptr<const sim::Analysis> analysis);

private:
    struct Request {
        sim::StudySource source;
        std::uint64_t number = 0;
    };

    void work(const std::stop_token& stop);
    void deliver(const std::shared_ptr<const sim::Analysis>& analysis, std::uint64_t number);

    std::shared_ptr<sim::Session> m_session;
    std::uint64_t m_requested = 0; ///< number of the latest request
    std::uint64_t m_answered = 0; ///< number of the latest answer

    std::mutex m_mutex; ///< guards the following
    std::condition_variable_any m_wake;
    std::optional<Request> m_waiting;
    std::stop_source m_current; ///< stops the analysis that is under way

    std::jthread m_thread; ///< last: it uses all of the above
};

} // namespace meshwright::ui
