// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/search/clusters_job.h"

#include <QMetaObject>

namespace meshwright::ui {

namespace {

constexpr double kSecondsEach = 20.0; ///< what is not simulated by then is estimated

} // namespace

void ClustersJob::start(std::vector<sim::PlanWords> trainings)
{
    m_isBusy = true;
    const std::uint64_t number = ++m_number;
    m_worker.start([this, trainings = std::move(trainings), number](const std::stop_token& stop) -> std::function<void()> {
        const auto post = [this, number](auto deliver) {
            QMetaObject::invokeMethod(
                this,
                [this, number, deliver = std::move(deliver)] {
                    if (number == m_number && m_isBusy)
                        deliver();
                },
                Qt::QueuedConnection);
        };
        sim::PlanOptions options;
        options.threads = 1; // the window goes on beside it
        options.timeLimit = kSecondsEach;
        options.stop = stop;
        for (std::size_t i = 0; i < trainings.size() && !stop.stop_requested(); ++i) {
            post([this, i] { Q_EMIT begun(i); });
            auto answer = std::make_shared<const Result<sim::PlanAnswer>>(sim::planTraining(trainings[i], options));
            post([this, i, answer = std::move(answer)] { Q_EMIT found(i, answer); });
        }
        post([this] {
            m_isBusy = false;
            Q_EMIT finished();
        });
        return nullptr;
    });
}

void ClustersJob::cancel()
{
    m_isBusy = false;
    m_worker.cancel();
}

} // namespace meshwright::ui
