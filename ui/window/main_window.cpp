// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/main_window.h"
#include "ui/study/spec_tree.h"

#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/version.h"
#include "sim/report/read_trace.h"
#include "sim/report/report.h"
#include "sim/search/search_request.h"
#include "ui/explain/explain_view.h"
#include "ui/pages/page_view.h"
#include "ui/report/report_files.h"
#include "ui/report/report_view.h"
#include "ui/search/clusters_view.h"
#include "ui/search/plan_copies.h"
#include "ui/search/search_view.h"
#include "ui/timeline/timeline_view.h"
#include "ui/training/checkpoint_view.h"
#include "ui/training/training_view.h"
#include "ui/why/compare_view.h"
#include "ui/widgets/picture_export.h"
#include "ui/window/action_palette.h"
#include "ui/window/dialogs.h"
#include "ui/window/openers.h"
#include "ui/window/start_page.h"
#include "ui/window/workbench.h"

#include <QAbstractSpinBox>
#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QCloseEvent>
#include <QComboBox>
#include <QCryptographicHash>
#include <QDir>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QScreen>
#include <QStackedWidget>
#include <QStatusBar>

namespace meshwright::ui {

namespace {

constexpr qsizetype kMostRecentInMenu = 8;
constexpr int kNewsMilliseconds = 20'000;
constexpr int kSettlingMilliseconds = 200; ///< after the last change of a file it is read: programs write in several steps
const QString kRecentKey = QStringLiteral("recent");
const QString kThemeKey = QStringLiteral("theme");
const QString kGeometryKey = QStringLiteral("window/geometry");

QString filesFolder()
{
    return QString::fromStdString(resourcesDirectory().string());
}

/// True of Undo and Redo in a line of text that has nothing of its own to undo: they are the study's then.
bool leavesUndo(QObject* watched, const QKeyEvent& key)
{
    const bool hasLine = qobject_cast<QAbstractSpinBox*>(watched) != nullptr || qobject_cast<QComboBox*>(watched) != nullptr;
    const auto* line = hasLine ? watched->findChild<QLineEdit*>() : qobject_cast<QLineEdit*>(watched);
    return line != nullptr
        && ((key.matches(QKeySequence::Undo) && !line->isUndoAvailable())
            || (key.matches(QKeySequence::Redo) && !line->isRedoAvailable()));
}

/// The only file that is dragged; empty when it is none of ours.
QString draggedFile(const QMimeData* data)
{
    const QList<QUrl> urls = data->urls();
    return urls.size() == 1 && urls.front().isLocalFile() ? urls.front().toLocalFile() : QString();
}

} // namespace

MainWindow::Places MainWindow::defaultPlaces()
{
    const QString config = qEnvironmentVariable("XDG_CONFIG_HOME", QDir::homePath() + QStringLiteral("/.config"));
    return {filesFolder() + QStringLiteral("/examples"), Recovery::defaultFolder(),
        config + QStringLiteral("/meshwright/desktop.ini")};
}

MainWindow::MainWindow(std::shared_ptr<sim::Session> session, const Places& places, QWidget* parent)
    : QMainWindow(parent)
    , m_session(std::move(session))
    , m_recovery(m_document, places.recovery)
    , m_places(places)
    , m_settings(places.settings, QSettings::IniFormat)
    , m_pages(new QStackedWidget(this))
    , m_start(new StartPage(places.examples, filesFolder() + QStringLiteral("/models"), this))
    , m_workbench(new Workbench(m_document, m_session, this))
    , m_pageRecovery([this]() -> std::optional<UnsavedWork> { return m_workbench->pages().unsaved(); }, places.recovery)
{
    setAcceptDrops(true);
    qApp->installEventFilter(this);
    setMinimumSize(800, 480);
    m_pages->addWidget(m_start);
    m_pages->addWidget(m_workbench);
    setCentralWidget(m_pages);

    buildFileMenu();
    buildEditMenu();
    buildViewMenu();
    buildRunMenu();
    buildHelpMenu();

    connect(m_start, &StartPage::exampleChosen, this, &MainWindow::openExample);
    connect(m_start, &StartPage::fileChosen, this, &MainWindow::openFile);
    connect(m_start, &StartPage::openRequested, this, &MainWindow::askForFile);
    connect(m_start, &StartPage::backRequested, this, &MainWindow::showWorkbench);
    connect(m_start, &StartPage::planRequested, this, [this](const QString& path) {
        if (!mayDiscard())
            return;
        takeStudy(studyOfModel(path), {}, false);
        m_workbench->showView(&m_workbench->search());
        m_workbench->setStudyShown(true); // where the hardware and the batch are chosen
    });
    connect(m_start, &StartPage::clustersRequested, this, [this] {
        showWorkbench();
        m_workbench->showView(&m_workbench->clusters());
    });
    connect(m_start, &StartPage::explainRequested, this, [this] {
        showWorkbench();
        m_workbench->showView(&m_workbench->explain());
    });
    connect(m_start, &StartPage::pagesRequested, this, [this] {
        showWorkbench();
        m_workbench->showView(&m_workbench->pages());
    });
    connect(m_workbench, &Workbench::commandRequested, this, &MainWindow::showCommand);
    connect(m_workbench, &Workbench::exportRequested, this, &MainWindow::exportView);
    connect(m_workbench, &Workbench::baselineRequested, this, &MainWindow::askForBaseline);
    connect(m_workbench, &Workbench::saveReportRequested, this, &MainWindow::saveReport);
    connect(m_workbench, &Workbench::startRequested, this, &MainWindow::showStart);
    connect(m_workbench, &Workbench::openRequested, this, &MainWindow::askForFile);
    ClustersView& clusters = m_workbench->clusters();
    connect(&clusters, &ClustersView::saveRequested, this,
        [this, &clusters] { saveReportAs(clusters.report(), QStringLiteral("clusters")); });
    connect(&clusters, &ClustersView::studyRequested, this, [this](const std::string& text) {
        if (!mayDiscard())
            return;
        takeStudy({text, {}, {}}, {});
        m_workbench->showPerspective(QStringLiteral("design"));
    });
    connect(&m_workbench->pages(), &PageView::unsavedChanged, &m_pageRecovery, &Recovery::edited);
    connect(&m_document, &StudyDocument::pathChanged, this, &MainWindow::updateTitle);
    connect(&m_document, &StudyDocument::modifiedChanged, this, &MainWindow::updateTitle);
    connect(&m_document, &StudyDocument::pathChanged, this, &MainWindow::watchFile);
    m_settling.setSingleShot(true);
    m_settling.setInterval(kSettlingMilliseconds);
    connect(&m_watcher, &QFileSystemWatcher::fileChanged, &m_settling, qOverload<>(&QTimer::start));
    connect(&m_settling, &QTimer::timeout, this, &MainWindow::followFile);

    statusBar()->hide(); // until there is something to say
    connect(statusBar(), &QStatusBar::messageChanged, this,
        [this](const QString& text) { statusBar()->setVisible(!text.isEmpty()); });

    resize(QSize(1280, 860).boundedTo(screen()->availableSize() - QSize(8, 40))); // room for the frame
    restoreGeometry(m_settings.value(kGeometryKey).toByteArray());
    m_workbench->restoreArrangement(m_settings);
    updateRecent();
    updateActions();
}

MainWindow::~MainWindow() = default;

void MainWindow::buildFileMenu()
{
    QMenu* menu = menuBar()->addMenu(tr("&File"));
    menu->addAction(tr("&Open…"), QKeySequence::Open, this, &MainWindow::askForFile);
    menu->addAction(tr("Open what is &copied"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_V), this, &MainWindow::openCopied);
    m_recentMenu = menu->addMenu(tr("Open &recent"));
    QMenu* examples = menu->addMenu(tr("Open &example"));
    for (const QString& path : m_start->examples())
        examples->addAction(QFileInfo(path).completeBaseName(), this, [this, path] { openExample(path); });
    QMenu* lessons = menu->addMenu(tr("Open &lesson"));
    for (const auto& lesson : m_workbench->pages().lessons()) {
        const auto number = static_cast<std::size_t>(lessons->actions().size());
        lessons->addAction(
            QStringLiteral("%1. %2").arg(number + 1).arg(QString::fromStdString(lesson.title)), this, [this, number] {
                showWorkbench();
                m_workbench->showView(&m_workbench->pages());
                m_workbench->pages().openLesson(number);
            });
    }
    m_toStart = menu->addAction(tr("S&tart page"), this, &MainWindow::showStart);
    m_backToStudy = menu->addAction(tr("&Back to the study"), QKeySequence(Qt::Key_Escape), this, &MainWindow::showWorkbench);
    menu->addSeparator();
    m_studyActions.insert(m_studyActions.end(),
        {menu->addAction(tr("&Save"), QKeySequence::Save, this, &MainWindow::save),
            menu->addAction(tr("Save &as…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S), this, &MainWindow::saveAs),
            menu->addAction(tr("Save re&port…"), QKeySequence(Qt::CTRL | Qt::Key_P), this, &MainWindow::saveReport)});
    QMenu* copies = menu->addMenu(tr("Cop&y study as"));
    m_studyActions.push_back(copies->menuAction());
    connect(copies, &QMenu::aboutToShow, this, [this, copies] {
        const auto analysis = m_workbench->analysis();
        fillCopies(*copies, analysis && analysis->study ? copiesOf(*analysis, m_session->catalogue()) : std::vector<PlanCopy>(),
            [this](const PlanCopy& copy) { statusBar()->showMessage(tr("Copied: %1").arg(copy.title), 6000); });
    });
    menu->addSeparator();
    menu->addAction(tr("&Quit"), QKeySequence::Quit, this, &QWidget::close);
}

void MainWindow::buildEditMenu()
{
    QMenu* menu = menuBar()->addMenu(tr("&Edit"));
    m_undoAction = m_document.undoStack().createUndoAction(menu, tr("Undo"));
    m_undoAction->setShortcut(QKeySequence::Undo);
    m_redoAction = m_document.undoStack().createRedoAction(menu, tr("Redo"));
    m_redoAction->setShortcuts({QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Z), QKeySequence(Qt::CTRL | Qt::Key_Y)});
    menu->addActions({m_undoAction, m_redoAction});
    menu->addSeparator();
    Selection& selection = m_workbench->selection();
    m_backAction = menu->addAction(tr("Selected &before"), QKeySequence(Qt::ALT | Qt::Key_PageUp), &selection, &Selection::back);
    m_forwardAction
        = menu->addAction(tr("Selected &after"), QKeySequence(Qt::ALT | Qt::Key_PageDown), &selection, &Selection::forward);
    menu->addSeparator();
    m_studyActions.push_back(
        menu->addAction(tr("&Pin as baseline"), QKeySequence(Qt::CTRL | Qt::Key_D), m_workbench, &Workbench::pinBaseline));
    connect(&selection, &Selection::historyChanged, this, &MainWindow::updateActions);
}

void MainWindow::buildViewMenu()
{
    QMenu* menu = menuBar()->addMenu(tr("&View"));
    int digit = 0;
    for (const Perspective& perspective : m_workbench->perspectives()) {
        auto* action = menu->addAction(perspective.title, QKeySequence(Qt::CTRL | static_cast<Qt::Key>(Qt::Key_1 + digit++)),
            this, [this, id = perspective.id] { m_workbench->showPerspective(id); });
        action->setToolTip(perspective.meaning);
        m_studyActions.push_back(action);
    }
    QMenu* views = menu->addMenu(tr("Go to &view"));
    for (View* view : m_workbench->views()) {
        m_studyActions.push_back(views->addAction(view->accessibleName(), this, [this, view] {
            m_workbench->showView(view);
            view->setFocus();
        }));
    }
    menu->addSeparator();
    m_showsStudy
        = menu->addAction(tr("&Study's fields"), QKeySequence(Qt::CTRL | Qt::Key_B), m_workbench, &Workbench::setStudyShown);
    m_showsStudy->setCheckable(true);
    m_studyActions.push_back(m_showsStudy);
    m_studyActions.push_back(
        menu->addAction(tr("Study's so&urce"), QKeySequence(Qt::CTRL | Qt::Key_U), m_workbench, &Workbench::showSource));
    const auto showChecked = [this] { m_showsStudy->setChecked(m_workbench->perspective().showsStudy); };
    connect(m_workbench, &Workbench::arrangementChanged, this, showChecked);
    showChecked();
    m_studyActions.push_back(menu->addAction(tr("&Reset the arrangement"), m_workbench, &Workbench::resetArrangement));
    QMenu* themes = menu->addMenu(tr("&Theme"));
    auto* group = new QActionGroup(themes);
    const std::pair<ThemeChoice, QString> choices[] = {{ThemeChoice::System, tr("Follow the system")},
        {ThemeChoice::Light, tr("Light")}, {ThemeChoice::Dark, tr("Dark")}, {ThemeChoice::HighContrast, tr("High contrast")}};
    for (const auto& [choice, name] : choices) {
        QAction* action = themes->addAction(name);
        action->setCheckable(true);
        action->setChecked(m_settings.value(kThemeKey, 0).toInt() == static_cast<int>(choice));
        group->addAction(action);
        connect(action, &QAction::triggered, this, [this, choice = choice] {
            m_settings.setValue(kThemeKey, static_cast<int>(choice));
            applyTheme(*qApp, choice);
        });
    }
}

void MainWindow::buildRunMenu()
{
    QMenu* menu = menuBar()->addMenu(tr("&Run"));
    TrainingView& training = m_workbench->training();
    m_studyActions.push_back(menu->addAction(tr("&Train"), QKeySequence(Qt::CTRL | Qt::Key_R), this, [this, &training] {
        m_workbench->showView(&training);
        training.train();
    }));
    m_studyActions.push_back(menu->addAction(tr("&Search plans"), QKeySequence(Qt::CTRL | Qt::Key_E), this, [this] {
        m_workbench->showView(&m_workbench->search());
        m_workbench->search().search();
    }));
    menu->addAction(tr("&Pause or resume"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_R), this,
        [&job = training.job()] { job.snapshot().state == sim::TrainingState::Paused ? job.resume() : job.pause(); });
    menu->addAction(tr("&Cancel"), QKeySequence(Qt::CTRL | Qt::Key_Period), &training.job(), &TrainingJob::cancel);
}

void MainWindow::buildHelpMenu()
{
    QMenu* menu = menuBar()->addMenu(tr("&Help"));
    menu->addAction(tr("&Manual"), QKeySequence::HelpContents, this, [this] {
        const bool isAtWork = m_pages->currentWidget() == m_workbench;
        const QString page = isAtWork ? m_workbench->manualPage() : QStringLiteral("index");
        (new ManualDialog(filesFolder() + QStringLiteral("/manual"), page, this))->show();
    });
    menu->addAction(tr("&Actions…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_P), this,
        [this] { ActionPalette(*menuBar(), this).exec(); });
    menu->addAction(tr("&Shortcuts"), QKeySequence(Qt::Key_Question), this, &MainWindow::showShortcuts);
    menu->addAction(tr("&About"), this, [this] {
        QMessageBox::about(this, tr("About Meshwright"),
            tr("<b>Meshwright %1</b><p>Plans, runs and simulates sharded training.</p><p>Free software under the GNU General "
               "Public License, version 3 or later. What it is built with is named in THIRD_PARTY.md.</p>")
                .arg(QString::fromUtf8(kVersion)));
    });
}

void MainWindow::showWorkbench()
{
    m_hasStudy = true;
    m_pages->setCurrentWidget(m_workbench);
    updateActions();
}

void MainWindow::showStart()
{
    m_start->setOpenStudy(!m_hasStudy ? QString()
            : m_workbench->hasStudy() ? m_document.title()
                                      : m_workbench->perspective().title);
    m_pages->setCurrentWidget(m_start);
    updateActions();
}

/// On the start page nothing happens to a study that nobody sees.
void MainWindow::updateActions()
{
    const bool showsStudy = m_pages->currentWidget() == m_workbench;
    for (QAction* action : m_studyActions)
        action->setEnabled(showsStudy);
    m_undoAction->setEnabled(showsStudy && m_document.undoStack().canUndo());
    m_redoAction->setEnabled(showsStudy && m_document.undoStack().canRedo());
    m_backAction->setEnabled(showsStudy && m_workbench->selection().canGoBack());
    m_forwardAction->setEnabled(showsStudy && m_workbench->selection().canGoForward());
    m_toStart->setEnabled(showsStudy);
    m_backToStudy->setEnabled(!showsStudy && m_hasStudy);
    updateTitle();
}

void MainWindow::openExample(const QString& path)
{
    if (!mayDiscard())
        return;
    if (const auto opened = m_document.open(path, true); !opened)
        return report(tr("The example cannot be opened."), opened.error());
    m_workbench->beginStudy();
    showWorkbench();
}

bool MainWindow::openFile(const QString& path)
{
    const auto as = recognised(path);
    if (!as) {
        report(tr("The file cannot be opened."), as.error());
        return false;
    }
    if (*as == OpenAs::Messages) { // the study stays as it is
        showWorkbench();
        m_workbench->showView(&m_workbench->explain());
        m_workbench->explain().explainFile(path);
        remember(path);
        return true;
    }
    if (*as == OpenAs::Page) {
        showWorkbench();
        m_workbench->showView(&m_workbench->pages());
        m_workbench->pages().openPage(path);
        remember(path);
        return true;
    }
    if (*as == OpenAs::Checkpoint) {
        showWorkbench();
        m_workbench->showView(&m_workbench->checkpoint());
        m_workbench->checkpoint().openCheckpoint(QFileInfo(path).isDir() ? path : QFileInfo(path).absolutePath());
        remember(path);
        return true;
    }
    if (*as == OpenAs::Result) {
        pinFile(path, *as);
        remember(path);
        return true;
    }
    if (*as == OpenAs::Trace) {
        openTrace(path);
        remember(path);
        return true;
    }
    if (!mayDiscard())
        return false;
    if (*as == OpenAs::Report)
        openReport(path);
    else if (!(*as == OpenAs::Model ? openModel(path) : *as == OpenAs::Launch ? openLaunch(path) : openStudy(path)))
        return false;
    if (*as == OpenAs::Program)
        m_workbench->showView(m_workbench->findView(QStringLiteral("program")));
    remember(path);
    return true;
}

void MainWindow::openCopied()
{
    const QString text = QApplication::clipboard()->text();
    if (text.trimmed().isEmpty())
        return statusBar()->showMessage(tr("No text is copied"), 6000);
    const std::string bytes = text.toStdString();
    const auto as = recognised(FileStart{{}, std::string_view(bytes).substr(0, kStartBytes)});
    if (!as)
        return report(tr("The clipboard's content cannot be opened."), as.error());
    if (*as == OpenAs::Messages) {
        showWorkbench();
        m_workbench->showView(&m_workbench->explain());
        return m_workbench->explain().explainText(text);
    }
    if (*as == OpenAs::Study) {
        if (mayDiscard())
            takeStudy({bytes, {}, {}}, {});
        return;
    }
    const QByteArray name = QCryptographicHash::hash(text.toUtf8(), QCryptographicHash::Sha1).toHex().left(8);
    const QString folder = m_places.recovery + QStringLiteral("/copied-") + QString::fromLatin1(name);
    const QString path = folder + QStringLiteral("/copied") + endingOf(*as);
    QDir().mkpath(folder);
    if (const auto written = writeFileAtomically(path.toStdString(), bytes); !written)
        return report(tr("The clipboard's content cannot be opened."), written.error());
    openFile(path);
}

bool MainWindow::openStudy(const QString& path)
{
    if (const auto opened = m_document.open(path); !opened) {
        report(tr("The study cannot be opened."), opened.error());
        return false;
    }
    m_workbench->beginStudy();
    showWorkbench();
    return true;
}

/// A study that has no file; `isModified`: and that nothing else has.
void MainWindow::takeStudy(sim::StudySource source, const QString& path, bool isModified)
{
    m_workbench->beginStudy();
    m_document.adopt(std::move(source), path, isModified);
    showWorkbench();
}

bool MainWindow::openLaunch(const QString& path)
{
    auto source = studyOfLaunch(path);
    if (!source) {
        report(tr("The launch line cannot be opened."), source.error());
        return false;
    }
    takeStudy(*std::move(source), {}, false);
    return true;
}

bool MainWindow::openModel(const QString& path)
{
    std::vector<std::string> ignored;
    if (const auto model = sim::modelNamed(path.toStdString(), nullptr, ignored); !model) {
        report(tr("The model cannot be opened."), model.error());
        return false;
    }
    takeStudy(studyOfModel(path), {}, false);
    return true;
}

void MainWindow::openReport(const QString& path)
{
    statusBar()->showMessage(tr("Reading %1…").arg(QFileInfo(path).fileName()));
    m_reader.start([this, path](const std::stop_token& stop) -> std::function<void()> {
        const auto text = readFile(path.toStdString(), sim::kLargestReportBytes);
        auto read = text ? sim::readReport(*text, path.toStdString()) : Result<sim::Report>(text.error());
        if (stop.stop_requested())
            return nullptr;
        return [this, path, read = std::move(read)] {
            statusBar()->clearMessage();
            if (!read)
                return report(tr("The report cannot be opened."), read.error());
            if (!read->study.text.empty()) // a comparison of clusters is of no study
                takeStudy({read->study.text, read->study.file, read->study.settings}, {}, false);
            showWorkbench();
            m_workbench->report().showOpened(std::make_shared<const sim::Report>(*read), QFileInfo(path).fileName());
            m_workbench->showView(&m_workbench->report());
        };
    });
}

void MainWindow::askForBaseline()
{
    const QString path = QFileDialog::getOpenFileName(this, tr("Pin a file"), m_document.path(),
        tr("Studies, programs and results (*.yaml *.yml *.mlir *.json);;All files (*)"));
    if (path.isEmpty())
        return;
    const auto as = recognised(path);
    if (!as)
        return report(tr("The file cannot be pinned."), as.error());
    pinFile(path, *as);
}

/// What the study is compared with: a result as it stands, or a study or a program as it is analysed.
void MainWindow::pinFile(const QString& path, OpenAs as)
{
    showWorkbench();
    m_workbench->showView(&m_workbench->compare());
    statusBar()->showMessage(tr("Reading %1…").arg(QFileInfo(path).fileName()));
    m_reader.start([this, path, as](const std::stop_token& stop) -> std::function<void()> {
        const std::string file = path.toStdString();
        const QString name = QFileInfo(path).fileName();
        const auto fail = [this](Problems problems) {
            return [this, problems = std::move(problems)] {
                statusBar()->clearMessage();
                report(tr("The file cannot be pinned."), problems);
            };
        };
        const auto text = readFile(file, sim::kLargestReportBytes);
        if (!text)
            return fail(text.error());
        if (as == OpenAs::Result) {
            auto result = sim::readComparable(*text, file);
            if (!result)
                return fail(result.error());
            return [this, name, result = *std::move(result)]() mutable {
                statusBar()->clearMessage();
                m_workbench->baselines().pin(std::move(result), name);
            };
        }
        const auto analysis = m_session->analyse({*text, file, {}}, stop);
        if (!analysis)
            return nullptr;
        if (!analysis->built && !analysis->simulated)
            return fail(analysis->problems);
        return [this, name, analysis] {
            statusBar()->clearMessage();
            m_workbench->baselines().pin(analysis, name);
        };
    });
}

void MainWindow::openTrace(const QString& path)
{
    const QString name = QFileInfo(path).fileName();
    statusBar()->showMessage(tr("Reading %1…").arg(name));
    m_reader.start([this, path, name](const std::stop_token& stop) -> std::function<void()> {
        auto read = sim::readTraceFile(path.toStdString(), stop);
        if (stop.stop_requested())
            return nullptr;
        if (!read)
            return [this, why = read.error()] {
                statusBar()->clearMessage();
                report(tr("The trace cannot be opened."), why);
            };
        const auto trace = std::make_shared<const sim::ForeignTrace>(*std::move(read));
        return [this, trace, name] {
            statusBar()->clearMessage();
            if (trace->leftOut > 0)
                statusBar()->showMessage(tr("%1 slices of %2 are left out").arg(trace->leftOut).arg(name), 6000);
            showWorkbench();
            m_workbench->showView(&m_workbench->timeline());
            m_workbench->timeline().setForeign({trace, &trace->timeline}, name.toStdString());
        };
    });
}

void MainWindow::offerRecovery()
{
    for (const RecoveredWork& left : Recovery::leftBehind(m_places.recovery)) {
        const QString name = left.path().isEmpty() ? tr("a study without a name") : QFileInfo(left.path()).fileName();
        QMessageBox question(QMessageBox::Question, tr("Unsaved edits were found"),
            tr("Meshwright did not exit normally. Restore the unsaved edits of %1?").arg(name), QMessageBox::NoButton, this);
        const QAbstractButton* goOn = question.addButton(tr("&Restore them"), QMessageBox::AcceptRole);
        const QAbstractButton* discard = question.addButton(tr("&Discard them"), QMessageBox::DestructiveRole);
        question.setEscapeButton(question.addButton(tr("Ask &later"), QMessageBox::RejectRole));
        question.exec();
        if (question.clickedButton() == discard)
            left.forget();
        if (question.clickedButton() != goOn)
            continue;
        // This window's own copy is there before the other one goes.
        if (const auto* page = std::get_if<EditedPage>(&left.work)) {
            PageView& pages = m_workbench->pages();
            if (!pages.mayDiscard())
                continue;
            showWorkbench();
            m_workbench->showView(&pages);
            pages.restore(*page, [this, left] {
                m_pageRecovery.store();
                left.forget();
            });
        } else if (mayDiscard()) {
            const auto& study = std::get<EditedStudy>(left.work);
            takeStudy(study.source, study.path);
            m_recovery.store();
            left.forget();
        }
    }
}

void MainWindow::askForFile()
{
    QStringList endings;
    for (const Opener& opener : openers())
        endings << QString::fromLatin1(opener.endings);
    endings.removeDuplicates();
    const QString path
        = QFileDialog::getOpenFileName(this, tr("Open a file"), m_settings.value(kRecentKey).toStringList().value(0),
            tr("All that can be opened (%1);;All files (*)").arg(endings.join(QLatin1Char(' '))));
    if (!path.isEmpty())
        openFile(path);
}

bool MainWindow::save()
{
    if (m_document.path().isEmpty())
        return saveAs();
    if (m_document.isChangedOnDisk())
        return saveOverChanges();
    if (const auto saved = m_document.save(); !saved) {
        report(tr("The study cannot be saved."), saved.error());
        return false;
    }
    remember(m_document.path());
    return true;
}

/// Asks what becomes of a file that another program has changed since it was opened.
bool MainWindow::saveOverChanges()
{
    QMessageBox question(QMessageBox::Warning, tr("The file was changed"),
        tr("Another program has changed %1 since it was opened. Saving here replaces what that program wrote.")
            .arg(QDir::toNativeSeparators(m_document.path())),
        QMessageBox::NoButton, this);
    const QAbstractButton* elsewhere = question.addButton(tr("Save &as…"), QMessageBox::AcceptRole);
    const QAbstractButton* replace = question.addButton(tr("&Replace the file"), QMessageBox::DestructiveRole);
    question.setEscapeButton(question.addButton(QMessageBox::Cancel));
    question.exec();
    if (question.clickedButton() == elsewhere)
        return saveAs();
    return question.clickedButton() == replace && saveTo(m_document.path());
}

bool MainWindow::saveTo(const QString& path)
{
    if (const auto saved = m_document.save(path); !saved) {
        report(tr("The study cannot be saved."), saved.error());
        return false;
    }
    remember(path);
    return true;
}

bool MainWindow::saveAs()
{
    const QString name = QFileInfo(QString::fromStdString(m_document.source().file)).completeBaseName();
    const QString suggested = !m_document.path().isEmpty() ? m_document.path()
        : name.isEmpty()                                   ? QStringLiteral("study.yaml")
                                                           : name + QStringLiteral(".yaml");
    const QString path = QFileDialog::getSaveFileName(this, tr("Save the study"), suggested, tr("Studies (*.yaml *.yml)"));
    return !path.isEmpty() && saveTo(path);
}

bool MainWindow::mayDiscard()
{
    if (QWidget* editor = focusWidget())
        editor->clearFocus(); // what is half typed is an edit of this study, and of no other
    for (SpecTree* specs : findChildren<SpecTree*>())
        specs->leaveEdit();
    if (!m_document.isModified())
        return true;
    const auto answer = QMessageBox::question(this, tr("Unsaved edits"), tr("Save the edits of %1?").arg(m_document.title()),
        QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel);
    return answer == QMessageBox::Discard || (answer == QMessageBox::Save && save());
}

void MainWindow::remember(const QString& path)
{
    QStringList recent = m_settings.value(kRecentKey).toStringList();
    const QString absolute = QFileInfo(path).absoluteFilePath();
    recent.removeAll(absolute);
    recent.prepend(absolute);
    m_settings.setValue(kRecentKey, recent.mid(0, kMostRecentInMenu));
    updateRecent();
}

void MainWindow::updateRecent()
{
    const QStringList recent = m_settings.value(kRecentKey).toStringList();
    m_start->setRecentFiles(recent);
    m_recentMenu->clear();
    m_recentMenu->setEnabled(!recent.isEmpty());
    for (const QString& path : recent)
        m_recentMenu->addAction(QDir::toNativeSeparators(path), this, [this, path] { openFile(path); });
}

void MainWindow::updateTitle()
{
    const bool atStart = m_pages->currentWidget() == m_start || !m_workbench->hasStudy();
    setWindowTitle(atStart ? tr("Meshwright") : tr("%1[*] – Meshwright").arg(m_document.title()));
    setWindowModified(!atStart && m_document.isModified());
}

/// A program that replaces the file ends the watch.
void MainWindow::watchFile()
{
    if (const QStringList watched = m_watcher.files(); !watched.isEmpty())
        m_watcher.removePaths(watched);
    if (!m_document.path().isEmpty() && QFileInfo::exists(m_document.path()))
        m_watcher.addPath(m_document.path());
}

/// The study follows its file while it has no edits of its own; with edits saving asks which of both stays.
void MainWindow::followFile()
{
    watchFile();
    if (m_document.path().isEmpty() || !m_document.isChangedOnDisk())
        return;
    const QString name = m_document.title();
    if (m_document.isModified())
        statusBar()->showMessage(
            tr("Another program has changed %1. The study here has edits of its own: saving asks.").arg(name), kNewsMilliseconds);
    else if (m_document.reload())
        statusBar()->showMessage(
            tr("Another program has changed %1: it was read again. Undo goes back.").arg(name), kNewsMilliseconds);
}

void MainWindow::showCommand(View* view)
{
    const bool isEdited = m_document.isModified() && m_document.path().isEmpty();
    CommandDialog(view->command(), m_workbench->hasStudy() && (isEdited || !m_document.hasFile()), this).exec();
}

void MainWindow::exportView(View* view)
{
    const QString path = QFileDialog::getSaveFileName(this, tr("Export %1").arg(view->accessibleName()),
        view->accessibleName().toLower() + QStringLiteral(".svg"), tr("Pictures (*.svg *.png *.pdf)"));
    if (path.isEmpty())
        return;
    if (const auto written = exportPicture(view->picture(), themeOf(palette()), path); !written)
        return report(tr("The picture cannot be written."), written.error());
    statusBar()->showMessage(tr("Written: %1").arg(QDir::toNativeSeparators(path)), 6000);
}

void MainWindow::saveReport()
{
    if (!m_workbench->analysis() && !m_workbench->report().isOpened()) {
        statusBar()->showMessage(tr("The study is still being analysed"), 6000);
        return;
    }
    saveReportAs(m_workbench->currentReport(), QFileInfo(m_document.title()).completeBaseName());
}

void MainWindow::saveReportAs(const sim::Report& written, const QString& name)
{
    const QString path = QFileDialog::getSaveFileName(
        this, tr("Save the report"), name + QStringLiteral(".html"), tr("Reports (*.html *.md *.csv *.json *.pdf)"));
    if (path.isEmpty())
        return;
    if (const auto done = writeReport(written, path); !done)
        return report(tr("The report cannot be written."), done.error());
    statusBar()->showMessage(tr("Written: %1").arg(QDir::toNativeSeparators(path)), 6000);
}

void MainWindow::showShortcuts()
{
    ShortcutsDialog(*menuBar(), this).exec();
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event)
{
    static constexpr QKeySequence::StandardKey kOfText[] = {QKeySequence::Undo, QKeySequence::Redo, QKeySequence::Copy,
        QKeySequence::Cut, QKeySequence::Paste, QKeySequence::SelectAll};
    if (event->type() != QEvent::ShortcutOverride || !isActiveWindow())
        return QMainWindow::eventFilter(watched, event);
    auto* key = static_cast<QKeyEvent*>(event);
    const auto isOfText = [&](QKeySequence::StandardKey standard) { return key->matches(standard); };
    const bool isTexts = std::any_of(std::begin(kOfText), std::end(kOfText), isOfText) && !leavesUndo(watched, *key);
    if (!(key->modifiers() & Qt::ControlModifier) || isTexts)
        return QMainWindow::eventFilter(watched, event);
    const QKeySequence pressed(key->keyCombination());
    const auto actions = findChildren<QAction*>();
    const bool isOfMenu = std::any_of(actions.begin(), actions.end(),
        [&](const QAction* action) { return action->isEnabled() && action->shortcuts().contains(pressed); });
    if (!isOfMenu)
        return QMainWindow::eventFilter(watched, event);
    event->ignore();
    return true;
}

void MainWindow::setRefusalHandler(std::function<void(const QString&, const Problems&)> handler)
{
    m_onRefusal = std::move(handler);
}

void MainWindow::report(const QString& what, const Problems& problems)
{
    if (m_onRefusal)
        return m_onRefusal(what, problems);
    QMessageBox::warning(this, tr("Meshwright"), what + QStringLiteral("\n\n") + QString::fromStdString(describe(problems)));
}

void MainWindow::closeEvent(QCloseEvent* event)
{
    if (!mayDiscard() || !m_workbench->pages().mayDiscard())
        return event->ignore();
    m_settings.setValue(kGeometryKey, saveGeometry());
    m_workbench->saveArrangement(m_settings);
    event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event)
{
    if (!draggedFile(event->mimeData()).isEmpty())
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event)
{
    event->acceptProposedAction();
    openFile(draggedFile(event->mimeData()));
}

} // namespace meshwright::ui

#include "moc_main_window.cpp"
