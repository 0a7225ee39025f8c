// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/compare/figure_causes.h"
#include "ui/models/selection.h"
#include "ui/widgets/view.h"

class QLabel;
class QTreeWidgetItem;

namespace meshwright::ui {

class Table;

/// Why each figure of the headline is as large: its causes add up to it. Selecting one selects its collective or its array in all views; activating it
/// goes to the spec behind it.
class CausesView : public View {
    Q_OBJECT

public:
    explicit CausesView(Selection& selection, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;

    /// `meshwright report wide_mlp.yaml`.
    QString command() const override;

    /// The figures on show.
    const std::vector<sim::ExplainedFigure>& figures() const { return m_figures; }

    /// Opens this figure ("peak memory") alone.
    void showFigure(const QString& name);

Q_SIGNALS:
    void specRequested(const QString& path);

protected:
    void forgetStudy() override;

private:
    const sim::FigureCause* causeOf(const QTreeWidgetItem* row) const;
    void select(const QTreeWidgetItem* row);

    Selection& m_selection;
    std::shared_ptr<const sim::Analysis> m_analysis; ///< the one that is shown
    std::uint64_t m_generation = 0;
    std::vector<sim::ExplainedFigure> m_figures;
    QLabel* m_status;
    Table* m_table;
};

} // namespace meshwright::ui
