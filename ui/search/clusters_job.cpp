// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/search/clusters_job.h"

namespace meshwright::ui {

namespace {

constexpr double kSecondsEach = 20.0; ///< what is not simulated by then is estimated

} // namespace

void ClustersJob::start(std::vector<sim::PlanWords> trainings)
{
    m_worker.start([this, trainings = std::move(trainings)](const std::stop_token& stop) -> std::function<void()> {
        sim::PlanOptions options;
        options.threads = 1; // the window goes on beside it
        options.timeLimit = kSecondsEach;
        options.stop = stop;
        for (std::size_t i = 0; i < trainings.size() && !stop.stop_requested(); ++i) {
            m_worker.post([this, i] { Q_EMIT begun(i); });
            auto answer = std::make_shared<const Result<sim::PlanAnswer>>(sim::planTraining(trainings[i], options));
            m_worker.post([this, i, answer = std::move(answer)] { Q_EMIT found(i, answer); });
        }
        return [this] { Q_EMIT finished(); };
    });
}

} // namespace meshwright::ui

#include "moc_clusters_job.cpp"
