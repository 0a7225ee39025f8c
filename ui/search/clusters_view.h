// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/plan/plan_answer.h"
#include "ui/search/clusters_job.h"
#include "ui/widgets/view.h"

class QLabel;
class QLineEdit;
class QPushButton;
class QShortcut;
class QTreeWidgetItem;

namespace meshwright::ui {

class Notice;
class Table;

/// What training models takes on clusters: days, dollars and the best plan of each model on each cluster, side by side, and the page that says so.
/// It begins with the study's model and machine; the study stays as it is, whatever is compared.
class ClustersView : public View {
    Q_OBJECT

public:
    explicit ClustersView(std::shared_ptr<const sim::Catalogue> catalogue, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;

    /// `meshwright plan llama3_8b --on 64xH100 --tokens 2T`, a line for each row.
    QString command() const override;

    /// The page that compares what was found. Precondition: `hasReport`.
    sim::Report report() const;
    bool hasReport() const;

    ClustersJob& job() { return m_job; }

public Q_SLOTS:
    void compare();

Q_SIGNALS:
    /// A study of the best plan is to be opened; `name` says of what.
    void studyRequested(const std::string& text, const QString& name);
    void saveRequested();

private:
    /// A model on a cluster.
    struct Row {
        sim::PlanWords words;
        std::shared_ptr<const Result<sim::PlanAnswer>> answer; ///< null: not yet
        bool isBegun = false;
    };

    QWidget* form();
    void addModelMenu(QPushButton& button);
    void addClusterMenu(QPushButton& button);
    std::vector<Row> rowsOfFields(QString& problem) const;
    std::vector<sim::PlanAnswer> answers(std::size_t first, std::size_t count) const;
    static void fill(QLineEdit& field, QString& filled, const QString& text);
    void showControls();
    void showRows();
    void fillRow(QTreeWidgetItem& item, const Row& row) const;
    void showDetails();
    void openStudy();
    const Row* currentRow() const;

    std::shared_ptr<const sim::Catalogue> m_catalogue;
    ClustersJob m_job;
    QString m_filledModel; ///< as the study has it: what its field has, unless the user has changed that
    QString m_filledMachine; ///< likewise
    std::vector<Row> m_rows; ///< model by model
    std::size_t m_clusters = 0; ///< rows of a model
    QLineEdit* m_models;
    QLineEdit* m_machines;
    QLineEdit* m_tokens;
    QLineEdit* m_sequence;
    QLineEdit* m_prices;
    QPushButton* m_compare;
    QPushButton* m_cancel;
    QShortcut* m_escape; ///< cancels too
    QPushButton* m_save;
    QPushButton* m_open;
    QLabel* m_status;
    Notice* m_notice;
    Table* m_table;
    QLabel* m_details;
};

} // namespace meshwright::ui
