// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/plan_training.h"
#include "ui/jobs/latest_worker.h"

#include <QObject>

#include <memory>
#include <vector>

namespace meshwright::ui {

/// What trainings take, one after the other on a thread of its own.
class ClustersJob : public QObject {
    Q_OBJECT

public:
    using QObject::QObject;

    /// Stops what was under way.
    void start(std::vector<sim::PlanWords> trainings);

    /// What was found so far stays.
    void cancel() { m_worker.cancel(); }
    bool isBusy() const { return m_worker.isBusy(); }

Q_SIGNALS:
    void begun(std::size_t index); ///< that training is looked at
    /// Never null.
    void found(std::size_t index, std::shared_ptr<const meshwright::Result<meshwright::sim::PlanAnswer>> answer);
    void finished(); ///< all were found

private:
    LatestWorker m_worker; ///< last: its jobs use this
};

} // namespace meshwright::ui
