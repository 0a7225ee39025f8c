// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/models/selection.h"
#include "ui/search/search_job.h"
#include "ui/widgets/view.h"

class QLabel;
class QMenu;
class QPushButton;
class QShortcut;
class QSortFilterProxyModel;
class QSplitter;
class QTableView;

namespace meshwright::ui {

class Notice;
class PictureView;
class PlansModel;

/// The best plans for the study's model on its hardware: a table and a picture of step against memory. A click on a plan asks for the study to become
/// that plan. What was found stays until the next search or study; a line says when
/// the study was edited.
class SearchView : public View {
    Q_OBJECT

public:
    SearchView(Selection& selection, std::shared_ptr<const sim::Catalogue> catalogue, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;

    /// `meshwright search wide_mlp.yaml`.
    QString command() const override;

    SearchJob& job() { return m_job; }

public Q_SLOTS:
    void search();

Q_SIGNALS:
    /// The study is to become this text; `name` says which plan it is.
    void planChosen(const std::string& text, const QString& name);

protected:
    void forgetStudy() override;
    bool eventFilter(QObject* watched, QEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void showControls();
    bool isOfStudy() const;
    void showFound(const std::shared_ptr<const FoundPlans>& found, bool isLast);
    void showProgress(const sim::SearchProgress& progress);
    void showPlan(int plan);
    void choose(int plan);
    void drawPlans();

    std::shared_ptr<const sim::Catalogue> m_catalogue;
    SearchJob m_job;
    std::shared_ptr<const sim::Analysis> m_analysis;
    std::shared_ptr<const FoundPlans> m_found; ///< null: nothing was searched
    sim::StudySource m_searched;
    int m_chosen = -1; ///< plan
    QPushButton* m_search;
    QPushButton* m_cancel;
    QShortcut* m_escape; ///< cancels too, while a search is under way
    QLabel* m_status;
    Notice* m_notice;
    PlansModel* m_plans;
    QSortFilterProxyModel* m_sorted;
    QLabel* m_empty; ///< in the place of the plans until there are some
    QSplitter* m_halves; ///< table and picture
    QTableView* m_table;
    PictureView* m_picture;
    QLabel* m_details;
    QPushButton* m_copy; ///< with a menu: the chosen plan in the words of other programs
};

} // namespace meshwright::ui
