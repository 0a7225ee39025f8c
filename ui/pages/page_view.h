// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/pages/lessons.h"
#include "ui/jobs/latest_worker.h"
#include "ui/models/recovery.h"
#include "ui/models/selection.h"
#include "ui/pages/page_html.h"
#include "ui/pages/page_job.h"
#include "ui/widgets/notice.h"
#include "ui/widgets/picture_view.h"
#include "ui/widgets/view.h"

#include <QTimer>

#include <functional>
#include <map>
#include <optional>
#include <utility>

class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QSplitter;
class QStackedWidget;
class QTextBrowser;

namespace meshwright::ui {

class ElidedLabel;

/// A page with Python cells (a notebook, Markdown, a script) run on virtual devices: the page with what came of each cell beside what it printed, and
/// of the chosen cell the source, which may be edited and run from there, and how its arrays lie. A page runs in a confined process, and a stranger's
/// only when its reader was told so. Lessons are pages that wait for an answer to each question.
class PageView : public View {
    Q_OBJECT

public:
    explicit PageView(Selection& selection, QWidget* parent = nullptr);

    /// Nothing: a page is not the study's.
    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;

    /// The page with its results, as text.
    DisplayList picture() const override;

    /// `meshwright open page.ipynb`, `meshwright lesson 3`.
    QString command() const override;

    /// Opens a page; a problem of reading it is said in the view. A page that its reader trusts runs, another one asks before.
    void openPage(const QString& path);

    /// Lessons count from 0. Precondition: there is one of this number.
    void openLesson(std::size_t number);

    /// In their order; empty where there are none.
    const std::vector<pages::Lesson>& lessons() const { return m_lessons; }

    /// Writes the page with what came of it, and with what was edited, as the ending says: HTML, a notebook, JSON or text. A problem is said in the view.
    /// Precondition: a page is open.
    void savePage(const QString& path);

    /// Writes what was edited into the page's own file, or where another program has changed that, or its form does not allow it, into a notebook that its
    /// reader names. False: it was not written. Precondition: a page is open.
    bool saveSource();

    /// Cells were edited since the page was opened or its source was saved. Those of lessons are nobody's.
    bool isEdited() const;

    /// False: its reader wants to keep the edits. Asks what becomes of them, where there are some.
    bool mayDiscard();

    /// What would be lost if the program ended now; nothing: no edits.
    std::optional<EditedPage> unsaved() const;

    /// Opens a page as it was edited; its file may have changed since, or be gone. `taken` is called once the page is shown.
    void restore(EditedPage page, std::function<void()> taken);

    /// Runs all cells from this one on, up to the next question that is not answered; all from the first on where no process has their names.
    void runFrom(std::size_t cell);

    bool isBusy() const { return m_reader.isBusy() || m_job.isBusy(); }

    /// The page that is open; null: none.
    const std::shared_ptr<const OpenPage>& page() const { return m_page; }
    const std::vector<ShownCell>& cells() const { return m_cells; }

Q_SIGNALS:
    /// What is unsaved has changed, or is saved.
    void unsavedChanged();

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void buildSide();
    QWidget* buildCode();
    QWidget* buildQuestion();
    void read(const QString& path, bool isTrusted);
    void read(const QString& path, bool isTrusted, std::optional<EditedPage> asEdited, std::function<void()> taken);
    void changeMachine();
    void take(const std::shared_ptr<const OpenPage>& page, bool isTrusted, const std::vector<std::string>& sources = {});
    std::vector<std::string> sources() const;
    bool saveAsNotebook();
    void runCells(std::size_t first, std::size_t last);
    std::optional<std::size_t> nextQuestion(std::size_t from) const;
    void choose(std::size_t cell);
    void checkAnswer();
    void giveHint();
    void showAnswer();
    void passQuestion();
    void runNext();
    void showCell(std::size_t cell, const std::shared_ptr<const pages::CellResult>& result);
    void showJudgement(std::size_t cell, const pages::Judgement& judgement);
    void showFindings(const PageFindings& findings);
    void showEnd(const Problems& problems);
    void showStatus();
    void showSide();
    void showArray();
    void showFlow();
    void showDoors();
    pages::PageRun run() const;

    std::vector<pages::Lesson> m_lessons;
    pages::LessonProgress m_progress;
    std::shared_ptr<const OpenPage> m_page;
    std::optional<std::size_t> m_lesson; ///< the one that is open
    std::vector<ShownCell> m_cells;
    std::vector<std::string> m_saved; ///< the cells' sources as the file has them
    std::string m_fileText; ///< the file as it was read or written
    std::size_t m_count = 0; ///< of cells that are shown
    std::optional<std::size_t> m_running;
    std::optional<std::pair<std::size_t, std::size_t>> m_next; ///< cells to run when what runs is over
    std::size_t m_current = 0; ///< the chosen cell
    std::size_t m_hints = 0; ///< that were given for the chosen question
    Problems m_problems; ///< why nothing is open, or the process ended
    ElidedLabel* m_status;
    QLineEdit* m_machine;
    QPushButton* m_run;
    QPushButton* m_stop;
    QPushButton* m_saveSource;
    QPushButton* m_save;
    QWidget* m_asks; ///< whether a stranger's page is to be run
    QLabel* m_question;
    Notice* m_notice;
    QSplitter* m_halves;
    QTextBrowser* m_flow;
    QStackedWidget* m_side; ///< a cell's code, or a question
    QLabel* m_title = nullptr;
    QPlainTextEdit* m_source = nullptr;
    QPushButton* m_runCell = nullptr;
    QPushButton* m_runFrom = nullptr;
    QComboBox* m_array = nullptr;
    PictureView* m_layout = nullptr;
    QLabel* m_asked = nullptr;
    QLineEdit* m_answer = nullptr;
    QPushButton* m_check = nullptr;
    QPushButton* m_hint = nullptr;
    QPushButton* m_reveal = nullptr;
    QLabel* m_said = nullptr;
    QTimer m_drawsSoon; ///< many cells that end at once are drawn once
    PageJob m_job;
    LatestWorker m_reader; ///< last: its jobs use all of the above
};

} // namespace meshwright::ui
