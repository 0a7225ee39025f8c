// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/jobs/latest_worker.h"
#include "ui/models/recovery.h"
#include "ui/models/study_document.h"
#include "ui/theme/theme.h"

#include <QFileSystemWatcher>
#include <QMainWindow>
#include <QSettings>
#include <QTimer>

#include <functional>
#include <memory>
#include <vector>

class QAction;
class QMenu;
class QStackedWidget;

namespace meshwright::sim {
struct Report;
}

namespace meshwright::ui {

enum class OpenAs : std::uint8_t;
class StartPage;
class View;
class Workbench;

/// The program's window: a start page, then the workbench of one study; files, undo, themes, exports.
class MainWindow : public QMainWindow {
    Q_OBJECT

public:
    struct Places {
        QString examples; ///< folder of the example studies
        QString recovery; ///< folder of copies of unsaved edits
        QString settings; ///< file of what the program remembers of its user: recent files, arrangement, theme
    };

    /// The folders of this installation and user.
    static Places defaultPlaces();

    MainWindow(std::shared_ptr<sim::Session> session, const Places& places, QWidget* parent = nullptr);
    ~MainWindow() override;

    /// Opens whatever `openers` know, by its content: a study, a program, a model's config.json, a report, a log. What cannot be opened is said in a
    /// message. A report is read off the UI thread, and messages are: true says that it has begun.
    bool openFile(const QString& path);
    void openExample(const QString& path);

    /// Opens what is in the clipboard, by its content, as a file that is dropped. What needs a file of its own gets one beside the copies of unsaved edits.
    void openCopied();

    /// Offers what a program that was killed left behind; what nobody decides about is offered again. Call once the window is shown.
    void offerRecovery();

    /// Calls this in place of a message box with what is refused, such as a file that cannot be opened.
    void setRefusalHandler(std::function<void(const QString& what, const Problems& problems)> handler);

    /// A file is being read off the UI thread.
    bool isReading() const { return m_reader.isBusy(); }

    Workbench& workbench() { return *m_workbench; }
    StudyDocument& document() { return m_document; }

protected:
    void closeEvent(QCloseEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

    /// Keys of the menus go to the menus: text fields take some of them (Ctrl+E, Ctrl+U) as Emacs does.
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void buildFileMenu();
    void buildEditMenu();
    void buildViewMenu();
    void buildRunMenu();
    void buildHelpMenu();
    void showWorkbench();
    void showStart();
    void updateActions();
    bool saveOverChanges();
    bool saveTo(const QString& path);
    bool openStudy(const QString& path);
    bool openLaunch(const QString& path);
    bool openModel(const QString& path);
    void openReport(const QString& path);
    void askForBaseline();
    void pinFile(const QString& path, OpenAs as);
    void openTrace(const QString& path);
    void takeStudy(sim::StudySource source, const QString& path, bool isModified = true);
    bool save();
    bool saveAs();
    bool mayDiscard();
    void askForFile();
    void remember(const QString& path);
    void updateRecent();
    void updateTitle();
    void watchFile();
    void followFile();
    void showCommand(View* view);
    void exportView(View* view);
    void saveReport();
    void saveReportAs(const sim::Report& written, const QString& name);
    void showShortcuts();
    void report(const QString& what, const Problems& problems);

    std::function<void(const QString&, const Problems&)> m_onRefusal; ///< empty: a message box
    std::shared_ptr<sim::Session> m_session;
    StudyDocument m_document;
    Recovery m_recovery;
    Places m_places;
    QSettings m_settings;
    QFileSystemWatcher m_watcher; ///< of the study's file
    QTimer m_settling; ///< until the file that changed is read
    QStackedWidget* m_pages;
    StartPage* m_start;
    Workbench* m_workbench;
    Recovery m_pageRecovery;
    QMenu* m_recentMenu = nullptr;
    QAction* m_toStart = nullptr;
    QAction* m_backToStudy = nullptr;
    QAction* m_undoAction = nullptr;
    QAction* m_redoAction = nullptr;
    QAction* m_backAction = nullptr;
    QAction* m_forwardAction = nullptr;
    QAction* m_showsStudy = nullptr;
    std::vector<QAction*> m_studyActions; ///< of the study that is shown: on the start page none is
    bool m_hasStudy = false;
    LatestWorker m_reader; ///< of large files; last: its jobs use all of the above
};

} // namespace meshwright::ui
