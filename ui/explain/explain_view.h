// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/diagnose/explain_message.h"
#include "sim/calibrate/nccl_log.h"
#include "ui/jobs/latest_worker.h"
#include "ui/models/selection.h"
#include "ui/widgets/view.h"

class QImage;
class QLabel;
class QListWidget;
class QPlainTextEdit;
class QSplitter;
class QTextBrowser;

namespace meshwright::sim {
struct HloReport;
}

namespace meshwright::ui {

class HloView;

/// Messages and logs, pasted or from a file: a list of what is known in them, and of each what it means, before and after, and what to do. Read and
/// explained off the UI thread. Messages that do not say their mesh are explained on the study's. Of a dump of HLO the collectives are listed
/// instead, on the mesh and the hardware of the study where it has as many devices. Of a log of nccl-tests it says what `calibrate` reads.
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

    /// The dump that is shown; null: none is.
    std::shared_ptr<const sim::HloReport> dump() const;

    /// Compares the dump that is shown with another one, which is the later.
    void compareWith(const QString& path);

    /// What was found last; null: nothing was explained.
    const std::shared_ptr<const ExplainedText>& explained() const { return m_explained; }

protected:
    void changeEvent(QEvent* event) override;

private:
    void start(LatestWorker::Job job);
    void showExplained(const std::shared_ptr<const ExplainedText>& explained);
    void showText(const std::string& text);
    void showNccl(const Result<sim::NcclLog>& log);
    void goToLine(std::size_t line);
    void showMessage(int row);
    QImage imageOf(const DisplayList& picture, int width) const;
    LatestWorker::Job explaining(std::string text, std::string name, std::shared_ptr<const sim::HloReport> before = {});
    void showDump(const std::shared_ptr<const sim::HloReport>& report, const std::shared_ptr<const sim::HloReport>& before);
    void leaveDump();
    ExplainContext context() const;

    std::shared_ptr<const sim::Analysis> m_analysis; ///< the last that has a mesh
    std::shared_ptr<const ExplainedText> m_explained;
    bool m_isNccl = false; ///< it is a log of nccl-tests
    QString m_file; ///< that is explained; empty: the text in the box
    QLabel* m_status;
    QPlainTextEdit* m_text;
    QListWidget* m_list;
    QTextBrowser* m_message;
    QSplitter* m_halves;
    HloView* m_dump;
    LatestWorker m_worker;
};

} // namespace meshwright::ui
