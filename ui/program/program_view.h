// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/program_graph.h"
#include "ui/jobs/latest_worker.h"
#include "ui/models/selection.h"
#include "ui/widgets/view.h"

#include <optional>

class QLabel;
class QSlider;
class QSortFilterProxyModel;
class QTableView;
class QTextBrowser;
class QToolButton;

namespace meshwright::ui {

class ElidedLabel;
class NodesModel;
class Notice;
class ProgramCanvas;
class SpecEdit;

/// The program of a step as a graph from left to right: ops, the values between them with their specs, and the collectives that move them.
///
/// A value that is selected says why it is sharded as it is, with the way back to the annotation lit up; a spec can be set on it. Propagation can be
/// stepped through, and each loop opened. The graph is made and laid out off the UI thread; until then the last one is shown.
class ProgramView : public View {
    Q_OBJECT

public:
    explicit ProgramView(Selection& selection, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;
    QString command() const override;

    /// A graph is being made.
    bool isBusy() const { return m_worker.isBusy(); }

Q_SIGNALS:
    void specRequested(const QString& path); ///< the user wants to see the spec at this path of the study
    void specChosen(const QString& path, const QString& spec); ///< the user sets a spec, or takes it out by an empty one

protected:
    void forgetStudy() override;
    void changeEvent(QEvent* event) override;

private:
    struct Shown {
        sim::ProgramGraph graph;
        LayeredLayout layout;
        GraphDrawing drawing;
    };

    QWidget* makeTools();
    QWidget* makeSteps();
    QWidget* makeDetails();
    QWidget* makeTable();
    void build();
    void take(std::shared_ptr<const Shown> shown);
    void showSummary();
    void choose(std::size_t node);
    void chooseNothing();
    void chooseValue(ValueId value);
    void select(std::optional<std::size_t> node, ValueId value);
    void toggle(std::size_t node);
    void followSelection();
    void redraw();
    void showWhy();
    void showRow();
    void showConstraint();
    void applyConstraint();
    void showStep();
    void stepRound(int by);
    void followLink(const QUrl& target);
    sim::ProgramFocus focus() const;

    Selection& m_selection;
    std::shared_ptr<const sim::Analysis> m_analysis; ///< the latest that is built; null: none yet
    std::uint64_t m_generation = 0; ///< of the selection, for it
    std::shared_ptr<const Shown> m_shown; ///< null: none yet
    std::set<OpId> m_opened;
    std::vector<sim::PropagationRound> m_rounds;
    std::optional<std::size_t> m_node; ///< selected
    ValueId m_value; ///< of it; may be in a body that is not opened
    bool m_isChanging = false; ///< what changes now is not the user's choice

    Notice* m_notice;
    ElidedLabel* m_summary;
    QToolButton* m_open;
    ProgramCanvas* m_canvas;
    QToolButton* m_previous;
    QSlider* m_steps;
    QToolButton* m_next;
    ElidedLabel* m_step;
    QTextBrowser* m_why;
    QLabel* m_specTitle;
    SpecEdit* m_spec;
    NodesModel* m_nodes;
    QSortFilterProxyModel* m_filtered;
    QTableView* m_table;
    LatestWorker m_worker; ///< last: its jobs use all of the above
};

} // namespace meshwright::ui
