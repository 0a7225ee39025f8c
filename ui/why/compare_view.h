// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/compare/compare.h"
#include "ui/models/baselines.h"
#include "ui/models/selection.h"
#include "ui/widgets/view.h"

class QLabel;
class QPushButton;
class QTabBar;

namespace meshwright::ui {

class Table;

/// The study beside a state that was pinned: figures, and of mesh, specs, collectives and problems what differs. A tab for each pinned state.
class CompareView : public View {
    Q_OBJECT

public:
    CompareView(Baselines& baselines, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;

    /// `meshwright diff before.yaml after.yaml`.
    QString command() const override;

    /// What is shown; nothing without a baseline.
    const std::optional<sim::Comparison>& comparison() const { return m_comparison; }

Q_SIGNALS:
    void pinRequested();
    void fileRequested(); ///< what a file says is to be pinned

    /// The study is to be as it was pinned.
    void stateChosen(const sim::StudySource& source, const QString& name);

private:
    void showTabs();
    void compareNow();
    void addFigures();
    void addDifferences();

    Baselines& m_baselines;
    std::shared_ptr<const sim::Analysis> m_analysis; ///< null: none that can be compared
    std::optional<sim::Comparison> m_comparison;
    QTabBar* m_tabs;
    QPushButton* m_pin;
    QPushButton* m_take;
    QPushButton* m_pinFile;
    QLabel* m_status;
    Table* m_table;
};

} // namespace meshwright::ui
