// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <QWidget>

#include <memory>

class QHBoxLayout;
class QLabel;

namespace meshwright::ui {

class ElidedLabel;

/// The answers above all views, on a strip of two lines: how long a step takes, what of it is waiting, what bounds it, whether it fits; and one
/// sentence that says why the step time differs from what it was before the last edit, or what is wrong for as long as it is.
class Headline : public QWidget {
    Q_OBJECT

public:
    explicit Headline(QWidget* parent = nullptr);

    /// The sentence compares with the last analysis of the same study that was simulated.
    void setAnalysis(const std::shared_ptr<const sim::Analysis>& analysis);

    /// The same analysis, now with its proof; without one, where there is not enough memory for it.
    void setProof(const std::shared_ptr<const sim::Analysis>& analysis);

    /// The sentence compares with this state from now on; null: with the one before the last edit. Precondition: it was simulated.
    void setBaseline(const std::shared_ptr<const sim::Analysis>& baseline);

    /// Another study is opened: there is nothing to compare with.
    void forget();

    /// The study differs from what is shown, and its analysis is under way: the figures are grey, over a line.
    void setStale(bool isStale);

    /// The sentence on show: "+3.1 ms: all-reduce of layers.2's output over model".
    QString changeText() const;

Q_SIGNALS:
    void problemsRequested();

    /// Somebody asks why a figure is as large, by its name in `sim::explainFigures`: "step time".
    void whyRequested(const QString& figure);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    struct Figure {
        QLabel* value = nullptr;
        QLabel* note = nullptr; ///< what it is, and its share
    };

    Figure addFigure(QHBoxLayout& row, const QString& name, const char* why);
    void showSimulation(const sim::Simulation& simulation);
    void showProof(const sim::Analysis& analysis, bool isUnderWay);
    void showProblems(const Problems& problems);
    void showChange(const std::shared_ptr<const sim::Analysis>& analysis);
    QString changeSentence() const;
    void enableFigures();

    std::shared_ptr<const sim::Analysis> m_last; ///< the last one that was simulated
    std::shared_ptr<const sim::Analysis> m_baseline; ///< null: none is pinned
    QString m_effect; ///< of the last edit that changed the step
    bool m_isStale = false;
    bool m_hasErrors = false;
    bool m_hasSimulation = false; ///< the figures are those of the study as it was analysed last
    Figure m_step;
    Figure m_compute;
    Figure m_waiting;
    Figure m_memory;
    ElidedLabel* m_change;
    ElidedLabel* m_bound;
    QLabel* m_proof; ///< whether the device program was shown to compute its program
    QLabel* m_problems;
};

} // namespace meshwright::ui
