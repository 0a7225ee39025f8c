// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/compare/compare.h"
#include "ui/models/baselines.h"
#include "ui/models/selection.h"
#include "ui/widgets/view.h"

class QComboBox;
class QLabel;
class QPushButton;
class QTabBar;

namespace meshwright::ui {

class Notice;
class Table;

/// The study beside a state that was pinned: figures, and of mesh, specs, collectives and problems what differs. A tab for each pinned state.
/// Gates say what may not differ, as those of CI do: the table begins with what of them fails.
class CompareView : public View {
    Q_OBJECT

public:
    CompareView(Baselines& baselines, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;

    /// What may not differ, as `parseGates` reads it: "fits, time>5%"; empty: no gates.
    QString gates() const;
    void setGates(const QString& text);

    /// `meshwright diff before.yaml after.yaml --fail-on fits,time>5%`.
    QString command() const override;

    /// What is shown; nothing without a baseline.
    const std::optional<sim::Comparison>& comparison() const { return m_comparison; }

Q_SIGNALS:
    void pinRequested();
    void fileRequested(); ///< what a file says is to be pinned

    /// The study is to be as it was pinned.
    void stateChosen(const sim::StudySource& source, const QString& name);

protected:
    void forgetStudy() override;

private:
    void showTabs();
    void compareNow();
    void addGates();
    void addFigures();
    void addDifferences();

    Baselines& m_baselines;
    std::shared_ptr<const sim::Analysis> m_analysis; ///< null: none that can be compared
    bool m_isOld = false; ///< the study has problems: `m_analysis` is of its last good state
    std::optional<sim::Comparison> m_comparison;
    QTabBar* m_tabs;
    QPushButton* m_pin;
    QPushButton* m_take;
    QPushButton* m_pinFile;
    QLabel* m_status;
    QComboBox* m_gates;
    Notice* m_badGates; ///< why they cannot be judged
    Table* m_table;
};

} // namespace meshwright::ui
