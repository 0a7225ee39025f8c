// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/jobs/training_job.h"
#include "ui/models/selection.h"
#include "ui/widgets/view.h"

#include <QElapsedTimer>

class QAction;
class QCheckBox;
class QComboBox;
class QLabel;
class QProgressBar;
class QPushButton;
class QSpinBox;
class QStackedWidget;

namespace meshwright::ui {

class CurvePlot;
class Figures;

/// Trains the study on virtual devices, live: the loss of the sharded run beside that of the same training on one device, how far they are apart,
/// accuracy and speed. A run keeps the study that it was started with; when the study is edited meanwhile, the view says so.
class TrainingView : public View {
    Q_OBJECT

public:
    explicit TrainingView(Selection& selection, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;

    /// The curves, one under the other.
    DisplayList picture() const override;

    /// Checkpoints of the runs to come go to this folder, about ten of a run and one at its end; an empty name: there are none.
    void keepCheckpoints(const QString& folder);

    /// Starts a run that goes on from a checkpoint, or from the newest of a folder. Its mesh and specs may be others than the study's: the layout
    /// changes in mid-run. Nothing when there is nothing to train or a run is under way.
    void goOnFrom(const QString& checkpoint);

    /// `meshwright train STUDY`, with the steps, the verification and the checkpoints that are chosen.
    QString command() const override;

    /// The runs of this view; start them with `train`.
    TrainingJob& job() { return m_job; }

    /// Of the study that ran last.
    const sim::StudySource& runSource() const { return m_runSource; }

public Q_SLOTS:
    /// Starts a run as the controls say. Nothing when there is nothing to train or a run is under way.
    void train();

Q_SIGNALS:
    /// A run came to its end, or was cancelled after at least one step. Its timelines are those of the last recorded step.
    void trained(std::shared_ptr<const meshwright::TrainingResult> result);

protected:
    void forgetStudy() override;
    void changeEvent(QEvent* event) override;

private:
    QLayout* makeControls();
    QLayout* makeProgress();
    void makeCheckpoints();
    void start(const QString& checkpoint);
    std::int64_t stepsBetweenCheckpoints() const;
    void showControls();
    void showProgress();
    void showMessages();
    void showCurves();
    void showMarkedStep(qint64 step);
    void showFigures();
    void showIcons();
    void runEnded(const std::shared_ptr<const TrainingResult>& result);
    bool isTrainable() const;
    bool isStale() const;
    QString fault() const; ///< that is chosen, as `parseInjectedFault` reads it; empty: none
    bool hasPhases() const; ///< of the study, which then say how many steps there are
    std::vector<double> differences() const;

    Selection& m_selection;
    TrainingJob m_job;
    std::shared_ptr<const sim::Analysis> m_analysis;
    sim::StudySource m_runSource; ///< of the run
    bool m_runIsOfAnother = false; ///< another study was opened while it was under way
    std::int64_t m_studySteps = 0; ///< what the study of the last analysis has
    QElapsedTimer m_sinceCurves;
    qint64 m_curvesTook = 0; ///< milliseconds, the last time
    QString m_checkpointFolder; ///< empty: none are written
    QString m_resumed; ///< the checkpoint that the run went on from; empty: none
    QString m_lastCheckpoint; ///< that a run of this view wrote

    QPushButton* m_train;
    QPushButton* m_pause;
    QPushButton* m_resume;
    QStackedWidget* m_pauseOrResume;
    QPushButton* m_cancel;
    QSpinBox* m_steps;
    QCheckBox* m_beside;
    QCheckBox* m_verify;
    QComboBox* m_fault;
    QPushButton* m_checkpoints;
    QAction* m_keeps = nullptr;
    QAction* m_goesOn = nullptr;
    QAction* m_goesOnFromLast = nullptr;
    QProgressBar* m_bar;
    QLabel* m_status;
    QLabel* m_pace;
    QLabel* m_messages;
    CurvePlot* m_plot;
    QLabel* m_marked;
    Figures* m_figures;
};

} // namespace meshwright::ui
