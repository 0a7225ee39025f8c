// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/models/selection.h"
#include "ui/widgets/view.h"

class QLabel;
class QPushButton;
class QSortFilterProxyModel;
class QTableView;

namespace meshwright::ui {

class CollectivesModel;

/// What the specs cause: the collectives of a step, the longest first, each with its cause. One row's details say why it exists and how
/// its time is computed; from there one goes to the spec behind it, or takes that spec out.
class CollectivesView : public View {
    Q_OBJECT

public:
    explicit CollectivesView(Selection& selection, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;
    QString command() const override;

Q_SIGNALS:
    void specRequested(const QString& path); ///< the user wants to see the spec at this path of the study
    void removeSpecRequested(const QString& path);

protected:
    void forgetStudy() override;

private:
    void showDetails();
    void selectRow();
    QString currentAnnotation() const;

    Selection& m_selection;
    std::shared_ptr<const sim::Analysis> m_analysis;
    std::uint64_t m_generation = 0; ///< of the rows
    bool m_isListChanging = false; ///< the table changes by itself: what becomes current in it is not the user's choice
    CollectivesModel* m_model;
    QSortFilterProxyModel* m_sorted;
    QLabel* m_summary;
    QTableView* m_table;
    QLabel* m_details;
    QPushButton* m_goToSpec;
    QPushButton* m_removeSpec;
};

} // namespace meshwright::ui
