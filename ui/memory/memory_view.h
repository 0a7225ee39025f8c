// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/models/selection.h"
#include "ui/widgets/view.h"

class QLabel;
class QSortFilterProxyModel;
class QStackedLayout;
class QTableView;

namespace meshwright::ui {

class LiveModel;
class MemoryChart;
class Notice;

/// A device's memory over the step, stacked by what it is used for, under its limit; below it what is live at the peak.
///
/// The headline answers whether it fits. The pointer over the picture shows the figures of that moment. A click on the peak goes to the table,
/// a row of the table selects its array in all views. Without a simulation the last one stays, greyed, under a line that says why.
class MemoryView : public View {
    Q_OBJECT

public:
    explicit MemoryView(Selection& selection, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;

    /// `meshwright simulate wide_mlp.yaml --set mesh.data=8`.
    QString command() const override;

protected:
    void forgetStudy() override;

private:
    void setUpTable();
    void showSimulation();
    void showMoment();
    void onRowSelected();
    void selectRowOf(const QString& array);

    Selection& m_selection;
    std::shared_ptr<const sim::Analysis> m_analysis; ///< the one that is shown; null: none yet
    QStackedLayout* m_pages;
    QLabel* m_empty;
    Notice* m_headline;
    QLabel* m_devices;
    Notice* m_notice;
    MemoryChart* m_chart;
    QLabel* m_reading;
    QLabel* m_tableTitle;
    LiveModel* m_live;
    QSortFilterProxyModel* m_sorted;
    QTableView* m_table;
};

} // namespace meshwright::ui
