// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/report_of.h"

#include <QObject>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace meshwright::ui {

/// Puts reports together on a thread of its own, as simulating what could be changed takes longer than a frame. The latest request wins: an
/// earlier one is stopped, and its report is never delivered.
class ReportJob : public QObject {
    Q_OBJECT

public:
    explicit ReportJob(QObject* parent = nullptr);
    ~ReportJob() override;

    void request(std::shared_ptr<const sim::Analysis> analysis, std::optional<sim::MeasuredTraining> training);

    /// True from a request until its report.
    bool isBusy() const { return m_answered != m_requested; }

Q_SIGNALS:
    /// On the thread of this object. Never null.
    void finished(std::shared_ptr<const sim::Report> report);

private:
    struct Request {
        std::shared_ptr<const sim::Analysis> analysis;
        sim::ReportChoices choices;
        std::uint64_t number = 0;
    };

    void work(const std::stop_token& stop);
    void deliver(const std::shared_ptr<const sim::Report>& report, std::uint64_t number);

    std::uint64_t m_requested = 0; ///< number of the latest request
    std::uint64_t m_answered = 0; ///< number of the latest answer

    std::mutex m_mutex; ///< guards the following
    std::condition_variable_any m_wake;
    std::optional<Request> m_waiting;
    std::stop_source m_current; ///< stops the report that is under way

    std::jthread m_thread; ///< last: it uses all of the above
};

} // namespace meshwright::ui
