// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <QWidget>

#include <memory>

class QLabel;

namespace meshwright::ui {

/// The answers above all views: how long a step takes, what of it is waiting, what bounds it, whether it fits; and one sentence that says
/// why the step time differs from what it was before the last edit.
class Headline : public QWidget {
    Q_OBJECT

public:
    explicit Headline(QWidget* parent = nullptr);

    /// The sentence compares with the last analysis of the same study that was simulated.
    void setAnalysis(const std::shared_ptr<const sim::Analysis>& analysis);

    /// Another study is opened: there is nothing to compare with.
    void forget();

    /// The sentence on show: "+3.1 ms: all-reduce of layers.2's output over model".
    QString changeText() const;

Q_SIGNALS:
    void problemsRequested();

protected:
    void changeEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Figure {
        QLabel* value = nullptr;
        QLabel* note = nullptr;
    };

    Figure addFigure(const QString& caption);
    void showSimulation(const sim::Simulation& simulation);
    void showProof(const sim::Analysis& analysis);
    void showChange(const sim::Analysis& analysis);
    void setChange(const QString& sentence);
    void fitChange();

    std::shared_ptr<const sim::Analysis> m_last; ///< the last one that was simulated
    Figure m_step;
    Figure m_compute;
    Figure m_waiting;
    Figure m_memory;
    QLabel* m_change;
    QString m_sentence; ///< m_change shows as much of it as fits in a line, its tool tip all
    QLabel* m_proof; ///< whether the device program was shown to compute its program
    QLabel* m_problems;
};

} // namespace meshwright::ui
