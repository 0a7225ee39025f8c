// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/report/hlo_report.h"

#include <QWidget>

#include <memory>
#include <vector>

class QLabel;
class QPushButton;
class QTableWidget;
class QTextBrowser;

namespace meshwright::ui {

/// The collectives of a dump of HLO, the most expensive first, or what two dumps differ in; of the row that is chosen what the table has no room for.
class HloView : public QWidget {
    Q_OBJECT

public:
    explicit HloView(QWidget* parent = nullptr);

    /// `before`: the dump that `report` is compared with; null: it stands alone.
    void show(std::shared_ptr<const sim::HloReport> report, std::shared_ptr<const sim::HloReport> before);

    const std::shared_ptr<const sim::HloReport>& report() const { return m_report; }
    const std::shared_ptr<const sim::HloReport>& before() const { return m_before; }

Q_SIGNALS:
    void compareRequested(); ///< with a dump that the user chooses
    void closeRequested(); ///< the user wants to explain something else

private:
    void showRow(int row);

    std::shared_ptr<const sim::HloReport> m_report;
    std::shared_ptr<const sim::HloReport> m_before;
    std::vector<sim::HloRow> m_rows; ///< of the table
    QLabel* m_notes;
    QTableWidget* m_table;
    QTextBrowser* m_details;
    QPushButton* m_compare;
};

} // namespace meshwright::ui
