// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/training_run.h"

#include <QObject>
#include <QTimer>

#include <memory>

namespace meshwright::ui {

/// One training run after another, as a Qt object. Looks at its run 20 times a second, so that a fast run does not flood the event loop;
/// everything is said on the thread of this object.
class TrainingJob : public QObject {
    Q_OBJECT

public:
    explicit TrainingJob(QObject* parent = nullptr);

    /// Cancels the run and waits for its end, which takes at most about half a second.
    ~TrainingJob() override;

    /// Starts a run. One that is under way is cancelled and says nothing more.
    void start(std::shared_ptr<const Study> study, const sim::TrainingRunOptions& options);

    /// What is known of the run before goes, and a run that is under way is cancelled and says nothing more.
    void forget();

    /// A run is under way, paused ones included.
    bool isActive() const;

    /// A run was started; the following are about it.
    bool hasRun() const { return m_run != nullptr; }

    /// As last looked at.
    const sim::TrainingSnapshot& snapshot() const { return m_snapshot; }
    const sim::TrainingCurves& curves() const { return m_curves; }

    /// The study that the run trains. Precondition: hasRun().
    const Study& study() const { return m_run->study(); }

    /// See `sim::TrainingRun`; null until the run is over, and when it failed.
    std::shared_ptr<const TrainingResult> result() const { return m_run ? m_run->result() : nullptr; }
    std::shared_ptr<const TrainingResult> oneDeviceResult() const { return m_run ? m_run->oneDeviceResult() : nullptr; }

    static constexpr int kLookMilliseconds = 50;

public Q_SLOTS:
    void pause();
    void resume();
    void cancel();

Q_SIGNALS:
    void started();

    /// The run went on, or its state changed; the curves have grown. Comes once more before `finished`.
    void progressed(const meshwright::sim::TrainingSnapshot& snapshot);

    /// Once for each run, unless another one replaced it: it is finished, cancelled or failed, as `snapshot().state` says. The result is
    /// null when it failed; the problems are then in the snapshot.
    void finished(std::shared_ptr<const meshwright::TrainingResult> result);

private:
    void look();
    void giveUpRun();

    std::shared_ptr<sim::TrainingRun> m_run;
    sim::TrainingSnapshot m_snapshot;
    sim::TrainingCurves m_curves;
    QTimer m_timer;
};

} // namespace meshwright::ui
