// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/diagnose/explain_message.h"
#include "ui/jobs/latest_worker.h"
#include "ui/models/selection.h"
#include "ui/widgets/view.h"

class QLabel;
class QListWidget;
class QPlainTextEdit;
class QTextBrowser;

namespace meshwright::ui {

/// Messages and logs, pasted or from a file: a list of what is known in them, and of each what it means, before and after, and what to do. Read and
/// explained off the UI thread. Messages that do not say their mesh are explained on the study's.
class ExplainView : public View {
    Q_OBJECT

public:
    explicit ExplainView(Selection& selection, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;

    /// What is explained, as text.
    DisplayList picture() const override;

    /// `meshwright explain xla.log`.
    QString command() const override;

    /// Explains a file; a problem of reading it is said in the view.
    void explainFile(const QString& path);
    void explainText(const QString& text);

    bool isBusy() const { return m_worker.isBusy(); }

    /// What was found last; null: nothing was explained.
    const std::shared_ptr<const ExplainedText>& explained() const { return m_explained; }

private:
    void start(LatestWorker::Job job);
    void showExplained(const std::shared_ptr<const ExplainedText>& explained);
    void showMessage(int row);
    ExplainContext context() const;

    std::shared_ptr<const sim::Analysis> m_analysis; ///< the last that has a mesh
    std::shared_ptr<const ExplainedText> m_explained;
    QString m_file; ///< that is explained; empty: the text in the box
    QLabel* m_status;
    QPlainTextEdit* m_text;
    QListWidget* m_list;
    QTextBrowser* m_message;
    LatestWorker m_worker;
};

} // namespace meshwright::ui
