// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/slice_facts.h"
#include "ui/timeline/timeline_totals.h"

#include <QWidget>

#include <optional>
#include <vector>

class QLabel;
class QTableView;
class QTextBrowser;

namespace meshwright::ui {

class TotalsModel;

/// Beside each other: what is known of the selected slice, and what a part of the timeline adds up to.
class DetailsPane : public QWidget {
    Q_OBJECT

public:
    explicit DetailsPane(QWidget* parent = nullptr);

    void setFacts(std::optional<SliceFacts> facts);

    /// `heading` says of what: "Whole step". Without totals they are being added up, as the heading says, and the table stays as it is.
    void setTotals(const QString& heading, std::optional<std::vector<GroupTotals>> totals);

    QString factsText() const; ///< plain
    QString totalsHeading() const;
    const TotalsModel& totals() const { return *m_model; }

Q_SIGNALS:
    void operationClicked(const QString& name); ///< in the table of the longest

protected:
    void changeEvent(QEvent* event) override;

private:
    void showFacts();

    std::optional<SliceFacts> m_facts;
    QTextBrowser* m_browser = nullptr;
    QLabel* m_heading = nullptr;
    QTableView* m_table = nullptr;
    TotalsModel* m_model = nullptr;
};

} // namespace meshwright::ui
