// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/text.h"
#include "sim/session/analysis_state.h"
#include "tests/test_class.h"
#include "tests/ui/window/window_fixture.h"
#include "ui/collectives/collectives_model.h"
#include "ui/collectives/collectives_view.h"
#include "ui/explain/explain_view.h"
#include "ui/pages/page_view.h"
#include "ui/search/clusters_view.h"
#include "ui/study/source_edit.h"
#include "ui/study/study_panel.h"
#include "ui/timeline/timeline_canvas.h"
#include "ui/timeline/timeline_view.h"
#include "ui/training/training_view.h"
#include "ui/widgets/view.h"
#include "ui/window/action_palette.h"
#include "ui/window/dialogs.h"
#include "ui/window/empty_page.h"
#include "ui/window/headline.h"
#include "ui/window/start_page.h"
#include "ui/window/view_frame.h"

#include <QAbstractButton>
#include <QClipboard>
#include <QDir>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTableView>
#include <QTextBrowser>
#include <QTimer>
#include <QTreeView>

namespace tst_main_window {

using namespace meshwright;
using tests::WindowFixture;

/// From the start page to a saved study: what a person does in the first minutes.
class TestMainWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void startsWithExamples();
    void theFirstExampleIsTheNotebook();
    void lessonsAreADoorOfTheStartPage();
    void withoutAStudyViewsSayHowToBegin();
    void theStudyIsCopiedForOtherPrograms();
    void aModelIsPlannedFromTheStartPage();
    void clustersAreComparedFromTheStartPage();
    void messagesAreExplainedFromTheStartPage();
    void anEditReachesEveryView();
    void saysWhyTheStepChanged();
    void theProofFollowsTheFigures();
    void theLineOfWorkGoesWithTheAnswer();
    void theHeadlineSaysWhatItIsOf();
    void comparesWithWhatIsPinned();
    void aFigureSaysWhy();
    void undoAndRedo();
    void unsavedEditsAreMarked();
    void savesAndRemembers();
    void asksBeforeItReplacesWhatOthersWrote_data();
    void asksBeforeItReplacesWhatOthersWrote();
    void followsItsFile_data();
    void followsItsFile();
    void startPageCanBeLeft_data();
    void startPageCanBeLeft();
    void nothingHappensToAStudyThatNobodySees();
    void theSameFileAgain();
    void recoveredEditsStayUntilAnswered_data();
    void recoveredEditsStayUntilAnswered();
    void editedPagesAreRecovered();
    void opensWhatIsDropped();
    void opensWhatIsCopied_data();
    void opensWhatIsCopied();
    void menuKeysWorkInTextFields_data();
    void menuKeysWorkInTextFields();
    void undoReachesTheStudyFromEveryField_data();
    void undoReachesTheStudyFromEveryField();
    void problemsKeepTheLastState();
    void anotherStudyLeavesNothingOfTheOneBefore();
    void theManualOpensAtWhatHasTheFocus_data();
    void theManualOpensAtWhatHasTheFocus();
    void everyViewHasACommandAndAPicture();
    void everyViewHasANameAndCanBeReached();
    void themesSwitchAtRunTime();
    void removesTheSpecBehindACollective();
    void arrangementCanBeReset();
    void arrangementIsRemembered();
    void anErrorLeavesWithItsCause();
    void everyRowSelectsWhatItShows_data();
    void everyRowSelectsWhatItShows();
    void selectionsGoBack();
    void keysOfTheTimelineHoldInItsPerspective();
    void theSourceIsTheStudy();
    void aBrokenStudyIsMendedInItsSource();
    void actionsAreFoundByAFewLetters_data();
    void actionsAreFoundByAFewLetters();
    void thePaletteDoesWhatIsChosen();
};

namespace {

QAction* actionOf(const QMainWindow& window, const QString& text)
{
    for (const QMenu* menu : window.menuBar()->findChildren<QMenu*>()) {
        for (QAction* action : menu->actions()) {
            const QString shown = action->text().remove(QLatin1Char('&'));
            if (shown == text || (text == QLatin1String("Undo") && shown.startsWith("Undo ")))
                return action;
        }
    }
    return nullptr;
}

/// Answers the next question with the button of this text (without its `&`); an empty one presses Escape. Returns what was asked.
std::shared_ptr<QString> answerNext(const QString& button)
{
    auto asked = std::make_shared<QString>();
    auto* timer = new QTimer(qApp);
    QObject::connect(timer, &QTimer::timeout, timer, [timer, asked, button] {
        auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
        if (box == nullptr)
            return;
        timer->deleteLater();
        *asked = box->text();
        if (button.isEmpty())
            return box->reject();
        for (QAbstractButton* one : box->buttons()) {
            if (one->text().remove(QLatin1Char('&')) == button)
                return one->click();
        }
        box->reject();
    });
    timer->start(10);
    return asked;
}

QByteArray contentOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

void openNotebook(WindowFixture& fixture)
{
    fixture.window.show();
    fixture.window.openExample(fixture.example("notebook_mlp.yaml"));
    QTRY_VERIFY(fixture.isShown());
}

QAbstractButton* door(const WindowFixture& fixture, const QString& title)
{
    const auto cards = fixture.window.findChild<ui::StartPage*>()->findChildren<QAbstractButton*>();
    return *std::find_if(cards.begin(), cards.end(), [&](const auto* card) { return card->text() == title; });
}

} // namespace

void TestMainWindow::startsWithExamples()
{
    WindowFixture fixture;
    fixture.window.show();
    QVERIFY(QTest::qWaitForWindowExposed(&fixture.window));
    const auto* start = fixture.window.findChild<ui::StartPage*>();
    QVERIFY(start->isVisible());
    QVERIFY(start->examples().size() >= 10);
    QCOMPARE(fixture.window.windowTitle(), QString("Meshwright"));
    const auto cards = start->findChildren<QAbstractButton*>();
    QTest::mouseClick(
        *std::find_if(cards.begin(), cards.end(), [](auto* card) { return card->text() == "notebook MLP"; }), Qt::LeftButton);
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(!start->isVisible());
    QVERIFY(fixture.window.workbench().isVisible());
}

void TestMainWindow::aModelIsPlannedFromTheStartPage()
{
    WindowFixture fixture;
    fixture.window.show();
    const auto menus = fixture.window.findChild<ui::StartPage*>()->findChildren<QMenu*>();
    const auto actions = menus.front()->actions();
    const auto llama = std::find_if(actions.begin(), actions.end(), [](auto* action) { return action->text() == "llama3_8b"; });
    QVERIFY(llama != actions.end());
    (*llama)->trigger();
    QTRY_VERIFY(fixture.isShown());
    QCOMPARE(fixture.analysis()->study->transformer()->config.layers, 32);
    QCOMPARE(fixture.window.workbench().perspective().id, QString("search"));
    QVERIFY(fixture.window.workbench().perspective().showsStudy); // the hardware is chosen there
}

void TestMainWindow::clustersAreComparedFromTheStartPage()
{
    WindowFixture fixture;
    fixture.window.show();
    const auto actions = fixture.window.findChild<ui::StartPage*>()->findChildren<QMenu*>().front()->actions();
    const auto compare = std::find_if(
        actions.begin(), actions.end(), [](auto* action) { return action->text() == "Compare models and clusters"; });
    QVERIFY(compare != actions.end());
    (*compare)->trigger();
    QVERIFY(fixture.window.workbench().clusters().isVisible());
    QVERIFY(!fixture.window.workbench().hasStudy());
}

void TestMainWindow::messagesAreExplainedFromTheStartPage()
{
    WindowFixture fixture;
    fixture.window.show();
    QTest::keyClick(door(fixture, "Explain an error or a log"), Qt::Key_Return);
    QVERIFY(fixture.window.workbench().explain().isVisible());
}

void TestMainWindow::lessonsAreADoorOfTheStartPage()
{
    WindowFixture fixture;
    fixture.window.show();
    QTest::mouseClick(door(fixture, "Pages and lessons"), Qt::LeftButton);
    QCOMPARE(fixture.window.workbench().perspective().id, QString("pages"));
    QVERIFY(fixture.window.workbench().pages().isVisible());
    QVERIFY(fixture.window.workbench().pages().lessons().size() >= 6);
}

/// Whoever came for a lesson or an error and goes on to a view of studies is not left with empty tables.
void TestMainWindow::withoutAStudyViewsSayHowToBegin()
{
    WindowFixture fixture;
    fixture.window.show();
    ui::Workbench& workbench = fixture.window.workbench();
    Q_EMIT fixture.window.findChild<ui::StartPage*>()->explainRequested();
    QVERIFY(workbench.explain().isVisible());
    QVERIFY(!workbench.headline().isVisible());
    QCOMPARE(fixture.window.windowTitle(), QString("Meshwright"));
    auto* empty = workbench.findChild<ui::EmptyPage*>();
    for (const char* id : {"design", "time", "memory", "why", "train", "report"}) {
        workbench.showPerspective(QString::fromLatin1(id));
        QVERIFY2(empty->isVisible() && !workbench.findChild<ui::StudyPanel*>()->isVisible(), id);
    }
    workbench.showPerspective("search"); // clusters are compared without a study
    QVERIFY(!empty->isVisible());

    workbench.showPerspective("design");
    QTest::mouseClick(empty->findChildren<QPushButton*>().front(), Qt::LeftButton);
    QVERIFY(fixture.window.findChild<ui::StartPage*>()->isVisible());
    fixture.window.openFile(fixture.example("digits.yaml"));
    QVERIFY(!empty->isVisible() && workbench.headline().isVisible());
    QVERIFY(workbench.findView("layout")->isVisible() && workbench.findChild<ui::StudyPanel*>()->isVisible());
}

void TestMainWindow::theStudyIsCopiedForOtherPrograms()
{
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openFile(fixture.example("digits.yaml"));
    QTRY_VERIFY(fixture.isShown());
    const auto menus = fixture.window.menuBar()->findChildren<QMenu*>();
    const auto copies = std::find_if(
        menus.begin(), menus.end(), [](const QMenu* menu) { return menu->title().remove('&') == "Copy study as"; });
    QVERIFY(copies != menus.end());
    Q_EMIT(*copies)->aboutToShow();
    for (QAction* action : (*copies)->actions()) {
        if (action->text() == "JAX code")
            action->trigger();
    }
    const QString text = QApplication::clipboard()->text();
    QVERIFY2(text.contains("jax.make_mesh((4, 2), ('data', 'model'), ") && text.contains("(on(P('data')), on(P('data')))"),
        qPrintable(text));
    QVERIFY(std::ranges::any_of((*copies)->actions(), [](const QAction* action) { // of no framework, in one row
        return action->text().startsWith("Command: ") && !action->isEnabled();
    }));
}

void TestMainWindow::theFirstExampleIsTheNotebook()
{
    WindowFixture fixture;
    fixture.window.openExample(fixture.window.findChild<ui::StartPage*>()->examples().front());
    QTRY_VERIFY(fixture.isShown());
    QCOMPARE(fixture.analysis()->study->mlp()->layers, (std::vector<std::int64_t>{784, 8192, 8192, 8192, 10}));
    QCOMPARE(fixture.analysis()->mesh().deviceCount(), 8);
}

void TestMainWindow::anEditReachesEveryView()
{
    WindowFixture fixture;
    openNotebook(fixture);
    fixture.window.workbench().pinBaseline();
    QSignalSpy shown(&fixture.window.workbench(), &ui::Workbench::shown);
    fixture.window.document().change({"mesh={data: 8, model: 1}"}, "Edit the mesh");
    QTRY_COMPARE(shown.count(), 1);
    QCOMPARE(fixture.analysis()->mesh().text(), std::string("data=8,model=1"));
    for (ui::View* view : fixture.window.workbench().views()) {
        if (view == &fixture.window.workbench().explain() || view == &fixture.window.workbench().pages()
            || view == &fixture.window.workbench().clusters())
            continue; // messages, pages and what is compared on clusters are not the study's
        view->bringUpToDate();
        QVERIFY2(view->command().contains("data: 8, model: 1") || view->command().contains("data=8,model=1"),
            qPrintable(view->accessibleName() + ": " + view->command()));
    }
}

void TestMainWindow::saysWhyTheStepChanged()
{
    WindowFixture fixture;
    openNotebook(fixture);
    const auto& headline = fixture.window.workbench().headline();
    fixture.window.document().change({"mesh={data: 1, model: 8}"}, "Edit the mesh");
    QTRY_VERIFY(fixture.isShown());
    QVERIFY2(headline.changeText().startsWith("+"), qPrintable(headline.changeText()));
    QVERIFY(headline.changeText().contains(" over "));
    fixture.window.document().undoStack().undo();
    QTRY_VERIFY(fixture.isShown());
    QVERIFY2(headline.changeText().startsWith("-") || headline.changeText().startsWith("−"), qPrintable(headline.changeText()));
}

void TestMainWindow::theProofFollowsTheFigures()
{
    WindowFixture fixture;
    fixture.window.show();
    ui::Workbench& workbench = fixture.window.workbench();
    const QLabel* badge = nullptr;
    for (const QLabel* label : workbench.headline().findChildren<QLabel*>()) {
        if (label->accessibleName() == "Whether the device program is proved")
            badge = label;
    }
    QString first;
    connect(&workbench, &ui::Workbench::shown, this, [&] { first = badge->text(); });
    fixture.window.openExample(fixture.example("pipeline_1f1b.yaml"));
    QTRY_VERIFY(fixture.isShown());
    QCOMPARE(first, QString("proving…"));
    QTRY_COMPARE(badge->text(), QString("✓ proved"));
    QVERIFY(fixture.analysis()->proof != nullptr);
    fixture.window.document().change({"batch=0"}, "Edit the batch"); // nothing is built
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(!badge->isVisible());
}

/// The blue line below the figures is painted over once the figures are new: they repaint only themselves.
void TestMainWindow::theLineOfWorkGoesWithTheAnswer()
{
    struct PaintWatch : QObject {
        bool eventFilter(QObject* watched, QEvent* event) override
        {
            if (event->type() == QEvent::Paint)
                painted += static_cast<QPaintEvent*>(event)->region();
            return QObject::eventFilter(watched, event);
        }
        QRegion painted;
    };
    WindowFixture fixture;
    fixture.window.show();
    QVERIFY(QTest::qWaitForWindowExposed(&fixture.window));
    fixture.window.openExample(fixture.example("digits.yaml"));
    QTRY_VERIFY(fixture.isShown());
    ui::Headline& headline = fixture.window.workbench().headline();
    const QPoint line(headline.width() / 2, headline.height() - 2);
    headline.setStale(true);
    QTest::qWait(50);
    PaintWatch watch;
    headline.installEventFilter(&watch);
    headline.setAnalysis(fixture.window.workbench().analysis());
    QTRY_VERIFY(watch.painted.contains(line));
}

/// What is not of the study as it stands is pale, and what does not fit is red.
void TestMainWindow::theHeadlineSaysWhatItIsOf()
{
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openExample(fixture.example("digits.yaml"));
    ui::Headline& headline = fixture.window.workbench().headline();
    headline.setStale(true);
    QCOMPARE(headline.changeText(), QString("The study is being simulated…"));
    QTRY_VERIFY(fixture.isShown());
    QTRY_VERIFY(fixture.analysis()->proof);
    const auto label = [&](const QString& beginning) {
        const auto labels = headline.findChildren<QLabel*>();
        const auto found
            = std::find_if(labels.begin(), labels.end(), [&](const QLabel* one) { return one->text().startsWith(beginning); });
        return found == labels.end() ? nullptr : *found;
    };
    const auto ink = [](const QLabel* one) { return one->palette().color(one->foregroundRole()); };
    QTRY_VERIFY(label("\u2713 proved") != nullptr);
    QVERIFY(label("\u2713 proved")->isEnabled());
    const QColor fits = ink(label("of 15.4 GiB: fits"));
    auto analysis = std::make_shared<sim::Analysis>(*fixture.analysis());
    auto simulated = std::make_shared<sim::SimulatedStudy>(*analysis->simulated);
    simulated->simulation.fits = false;
    analysis->simulated = simulated;
    headline.setAnalysis(analysis);
    QVERIFY(ink(label("of 15.4 GiB: too much")) != fits);
    analysis = std::make_shared<sim::Analysis>(*analysis);
    analysis->problems.push_back(Problem{"MW1104", "wrong", "", {}});
    analysis->simulated = nullptr;
    headline.setAnalysis(analysis);
    QVERIFY(!label("\u2713 proved")->isEnabled());
}

void TestMainWindow::comparesWithWhatIsPinned()
{
    WindowFixture fixture;
    openNotebook(fixture);
    const auto& headline = fixture.window.workbench().headline();
    QTest::keyClick(&fixture.window, Qt::Key_D, Qt::ControlModifier);
    QCOMPARE(fixture.window.workbench().perspective().id, QString("why"));
    QCOMPARE(headline.changeText(), QString("This state is the baseline."));
    for (const char* batch : {"batch=4096", "batch=16384"}) {
        fixture.window.document().change({batch}, "Edit the batch");
        QTRY_VERIFY(fixture.isShown());
        QVERIFY2(headline.changeText().startsWith("Against the baseline: "), qPrintable(headline.changeText()));
    }
    const QString error = "batch=0"; // what is wrong comes first
    fixture.window.document().change({error}, "Edit the batch");
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(!headline.changeText().contains("baseline"));
    fixture.window.document().undoStack().setIndex(0);
    QTRY_VERIFY(fixture.isShown());
    QCOMPARE(headline.changeText(), QString("This state is the baseline."));
    // Of another study it is none, and comes back with its own.
    fixture.window.openExample(fixture.example("fsdp.yaml"));
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(!headline.changeText().contains("baseline"));
    QCOMPARE(fixture.window.workbench().baselines().all().size(), std::size_t{1});
    fixture.window.openExample(fixture.example("notebook_mlp.yaml"));
    QTRY_VERIFY(fixture.isShown());
    QCOMPARE(headline.changeText(), QString("This state is the baseline."));
    fixture.window.workbench().baselines().remove(0);
    QVERIFY(!headline.changeText().contains("baseline"));
}

void TestMainWindow::aFigureSaysWhy()
{
    WindowFixture fixture;
    openNotebook(fixture);
    ui::Workbench& workbench = fixture.window.workbench();
    for (QLabel* label : workbench.headline().findChildren<QLabel*>()) {
        if (label->accessibleName() == "Memory of a device")
            QTest::mouseClick(label, Qt::LeftButton);
    }
    QCOMPARE(workbench.perspective().id, QString("why"));
    const auto* table = workbench.findView("causes")->findChild<QTreeView*>();
    for (int i = 0; i < 3; ++i)
        QCOMPARE(table->isExpanded(table->model()->index(i, 0)), i == 2);
}

void TestMainWindow::undoAndRedo()
{
    WindowFixture fixture;
    openNotebook(fixture);
    fixture.window.document().change({"batch=4096"}, "Edit the batch");
    QTRY_VERIFY(fixture.isShown());
    QCOMPARE(fixture.analysis()->study->batch, 4096);
    QTest::keyClick(&fixture.window, Qt::Key_Z, Qt::ControlModifier);
    QTRY_COMPARE(fixture.analysis()->study->batch, 8192);
    QTest::keyClick(&fixture.window, Qt::Key_Y, Qt::ControlModifier);
    QTRY_COMPARE(fixture.analysis()->study->batch, 4096);
}

void TestMainWindow::unsavedEditsAreMarked()
{
    WindowFixture fixture;
    fixture.window.show();
    QVERIFY(fixture.window.openFile(fixture.copyOf("digits.yaml")));
    QVERIFY(!fixture.window.isWindowModified());
    QVERIFY(fixture.window.windowTitle().startsWith("digits.yaml"));
    fixture.window.document().change({"batch=200"}, "Edit the batch");
    QVERIFY(fixture.window.isWindowModified());
    fixture.window.document().undoStack().undo();
    QVERIFY(!fixture.window.isWindowModified());
}

void TestMainWindow::savesAndRemembers()
{
    WindowFixture fixture;
    const QString path = fixture.copyOf("digits.yaml");
    QVERIFY(fixture.window.openFile(path));
    fixture.window.document().change({"batch=200"}, "Edit the batch");
    actionOf(fixture.window, "Save")->trigger();
    QVERIFY(!fixture.window.isWindowModified());
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QVERIFY(file.readAll().contains("batch: 200\n"));
    QVERIFY(actionOf(fixture.window, path) != nullptr); // among the recent files
}

void TestMainWindow::asksBeforeItReplacesWhatOthersWrote_data()
{
    QTest::addColumn<QString>("button");
    QTest::addColumn<bool>("replaces");

    QTest::newRow("escape") << "" << false;
    QTest::newRow("cancel") << "Cancel" << false;
    QTest::newRow("replace") << "Replace the file" << true;
}

void TestMainWindow::asksBeforeItReplacesWhatOthersWrote()
{
    QFETCH(QString, button);
    QFETCH(bool, replaces);
    WindowFixture fixture;
    fixture.window.show();
    const QString path = fixture.copyOf("digits.yaml");
    QVERIFY(fixture.window.openFile(path));
    fixture.window.document().change({"batch=200"}, "Edit the batch");
    QFile file(path);
    QVERIFY(file.open(QIODevice::Append) && file.write("# theirs\n") > 0);
    file.close();
    const auto asked = answerNext(button);
    actionOf(fixture.window, "Save")->trigger();
    QVERIFY2(asked->contains("Another program has changed"), asked->toUtf8());
    QCOMPARE(contentOf(path).contains("# theirs"), !replaces);
    QCOMPARE(contentOf(path).contains("batch: 200"), replaces);
    QCOMPARE(fixture.window.isWindowModified(), !replaces);
    fixture.window.document().undoStack().setClean(); // nobody is asked when it closes
}

/// A study without edits follows its file; one with edits stays as it is.
void TestMainWindow::followsItsFile_data()
{
    QTest::addColumn<QStringList>("edits");
    QTest::addColumn<QString>("says");

    QTest::newRow("without edits") << QStringList() << "it was read again";
    QTest::newRow("with edits") << QStringList("batch=200") << "saving asks";
}

void TestMainWindow::followsItsFile()
{
    QFETCH(QStringList, edits);
    QFETCH(QString, says);
    WindowFixture fixture;
    fixture.window.show();
    const QString path = fixture.copyOf("digits.yaml");
    QVERIFY(fixture.window.openFile(path));
    fixture.window.document().change(edits, "Edit the batch");
    QVERIFY(writeFileAtomically(path.toStdString(), contentOf(path).toStdString() + "# theirs\n"));
    QTRY_VERIFY2(
        fixture.window.statusBar()->currentMessage().contains(says), qPrintable(fixture.window.statusBar()->currentMessage()));
    const bool isRead = QString::fromStdString(fixture.window.document().source().text).contains("# theirs");
    QCOMPARE(isRead, edits.isEmpty());
    QCOMPARE(fixture.window.isWindowModified(), !edits.isEmpty());
    fixture.window.document().undoStack().setClean(); // nobody is asked when it closes
}

void TestMainWindow::startPageCanBeLeft_data()
{
    QTest::addColumn<QString>("way");

    for (const char* way : {"menu", "key", "button"})
        QTest::newRow(way) << way;
}

void TestMainWindow::startPageCanBeLeft()
{
    QFETCH(QString, way);
    WindowFixture fixture;
    fixture.window.show();
    QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
    QVERIFY(!actionOf(fixture.window, "Back to the study")->isEnabled()); // there is none yet
    QVERIFY(!actionOf(fixture.window, "Start page")->isEnabled());
    openNotebook(fixture);
    auto* start = fixture.window.findChild<ui::StartPage*>();
    actionOf(fixture.window, "Start page")->trigger();
    QVERIFY(start->isVisible());
    QCOMPARE(fixture.window.windowTitle(), QString("Meshwright"));
    auto* back = start->findChild<QAbstractButton*>("back");
    QCOMPARE(back->text(), QString("Back to notebook_mlp (example)"));
    if (way == QLatin1String("menu"))
        actionOf(fixture.window, "Back to the study")->trigger();
    else if (way == QLatin1String("key"))
        QTest::keyClick(&fixture.window, Qt::Key_Escape);
    else
        QTest::mouseClick(back, Qt::LeftButton);
    QVERIFY(!start->isVisible());
    QVERIFY(fixture.window.workbench().isVisible());
    QVERIFY(fixture.window.windowTitle().startsWith("notebook_mlp"));
    QVERIFY(fixture.isShown());
}

/// On the start page, with or without a study behind it: no training, no saving, no undo.
void TestMainWindow::nothingHappensToAStudyThatNobodySees()
{
    WindowFixture fixture;
    fixture.window.show();
    QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
    const QStringList names = {"Train", "Save", "Save as…", "Save report…", "Reset the arrangement", "Layout", "Undo", "Redo"};
    for (const QString& name : names)
        QVERIFY2(!actionOf(fixture.window, name)->isEnabled(), qPrintable(name));
    openNotebook(fixture);
    fixture.window.document().change({"batch=64"}, "Edit the batch");
    for (const QString& name : names)
        QCOMPARE(actionOf(fixture.window, name)->isEnabled(), name != QLatin1String("Redo"));
    actionOf(fixture.window, "Start page")->trigger();
    for (const QString& name : names)
        QVERIFY2(!actionOf(fixture.window, name)->isEnabled(), qPrintable(name));
    QTest::keyClick(&fixture.window, Qt::Key_R, Qt::ControlModifier);
    QTest::keyClick(&fixture.window, Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(fixture.window.workbench().training().job().snapshot().step, std::int64_t{0});
    QVERIFY(!fixture.window.workbench().training().job().isActive());
    QVERIFY(fixture.window.document().isModified());
    fixture.window.document().undoStack().setClean();
}

/// A file that is opened again, unchanged, is shown again.
void TestMainWindow::theSameFileAgain()
{
    WindowFixture fixture;
    fixture.window.show();
    const QString path = fixture.copyOf("digits.yaml");
    QVERIFY(fixture.window.openFile(path));
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(fixture.window.openFile(path));
    QTRY_VERIFY(fixture.isShown());
}

void TestMainWindow::recoveredEditsStayUntilAnswered_data()
{
    QTest::addColumn<QString>("button");
    QTest::addColumn<qsizetype>("copies"); // afterwards: one to ask about again, or the window's own
    QTest::addColumn<bool>("isOpen");

    QTest::newRow("go on") << "Restore them" << qsizetype{1} << true;
    QTest::newRow("discard") << "Discard them" << qsizetype{0} << false;
    QTest::newRow("later") << "Ask later" << qsizetype{1} << false;
    QTest::newRow("escape") << "" << qsizetype{1} << false;
}

void TestMainWindow::recoveredEditsStayUntilAnswered()
{
    QFETCH(QString, button);
    QFETCH(qsizetype, copies);
    QFETCH(bool, isOpen);
    WindowFixture fixture;
    fixture.window.show();
    QVERIFY(QDir().mkpath(fixture.places.recovery));
    const QDir folder(fixture.places.recovery);
    QFile copy(folder.filePath("left.json"));
    QVERIFY(copy.open(QIODevice::WriteOnly));
    copy.write(R"({"text": "meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\n", "settings": ["batch=32"]})");
    copy.close();
    const auto asked = answerNext(button);
    fixture.window.offerRecovery();
    QVERIFY2(asked->contains("unsaved edits"), asked->toUtf8());
    QCOMPARE(folder.entryList({"*.json"}).size(), copies);
    QCOMPARE(QFile::exists(copy.fileName()), !isOpen && copies == 1);
    QCOMPARE(fixture.window.document().isModified(), isOpen);
    fixture.window.document().undoStack().setClean();
}

/// A page whose file has changed since: its cells come back as they were edited, and nothing runs before it is read.
void TestMainWindow::editedPagesAreRecovered()
{
    WindowFixture fixture;
    fixture.window.show();
    const QDir folder(fixture.places.recovery);
    QVERIFY(QDir().mkpath(folder.path()));
    const QString path = fixture.folder.filePath("page.md");
    const QByteArray text = "# Sharding\n\n```python\nimport jax\n```\n";
    QVERIFY(writeFileAtomically(path.toStdString(), text.toStdString() + "More.\n"));
    const QJsonObject left = {{"page", QString(text)}, {"cells", QJsonArray{"import jax.numpy"}}, {"path", path}};
    QFile copy(folder.filePath("left.json"));
    QVERIFY(copy.open(QIODevice::WriteOnly));
    copy.write(QJsonDocument(left).toJson());
    copy.close();

    const auto asked = answerNext("Restore them");
    fixture.window.offerRecovery();
    QVERIFY2(asked->contains("page.md"), asked->toUtf8());
    ui::PageView& pages = fixture.window.workbench().pages();
    QTRY_VERIFY(pages.isEdited());
    QVERIFY(pages.isVisible());
    QTRY_VERIFY(!pages.isBusy());
    QCOMPARE(pages.cells().front().source, std::string("import jax.numpy"));
    QVERIFY(!copy.exists());
    QCOMPARE(folder.entryList({"*.json"}).size(), 1); // the window's own, as long as nothing is saved

    auto* source = pages.findChild<QPlainTextEdit*>();
    source->setPlainText("import jax"); // as the file had it: there is nothing to lose
    QCOMPARE(folder.entryList({"*.json"}).size(), 0);
    source->setPlainText("import numpy");
    QTRY_COMPARE(folder.entryList({"*.json"}).size(), 1);
    QVERIFY(ui::Recovery::leftBehind(folder.path()).empty()); // this program is running
    source->setPlainText("import jax");
}

void TestMainWindow::opensWhatIsDropped()
{
    WindowFixture fixture;
    fixture.window.show();
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(fixture.copyOf("fsdp.yaml"))});
    QDragEnterEvent enter({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&fixture.window, &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent drop({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&fixture.window, &drop);
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(fixture.window.windowTitle().startsWith("fsdp.yaml"));
}

void TestMainWindow::opensWhatIsCopied_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("view"); ///< empty: the one that was shown
    QTest::addColumn<bool>("isStudy");

    const auto example
        = [](const char* name) { return QString::fromStdString(valueOf(readFile(resourcesDirectory() / "examples" / name))); };
    QTest::newRow("a program") << example("matmul.mlir") << "program" << true;
    QTest::newRow("a study") << example("fsdp.yaml") << "layout" << true;
    QTest::newRow("an error") << "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes."
                              << "messages" << false;
    QTest::newRow("nothing") << " "
                             << "" << false;
}

void TestMainWindow::opensWhatIsCopied()
{
    QFETCH(QString, text);
    QFETCH(QString, view);
    QFETCH(bool, isStudy);
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.workbench().showPerspective("explain"); // which shows nothing of a study
    QApplication::clipboard()->setText(text);
    fixture.window.openCopied();
    QTRY_COMPARE(fixture.analysis() != nullptr && fixture.analysis()->built != nullptr, isStudy);
    if (!view.isEmpty())
        QVERIFY(fixture.window.workbench().findView(view)->isVisible());
}

void TestMainWindow::menuKeysWorkInTextFields_data()
{
    QTest::addColumn<Qt::Key>("key");
    QTest::addColumn<QString>("view"); ///< that comes up

    QTest::newRow("search") << Qt::Key_E << "plans"; // in a text field: the end of the line
    QTest::newRow("time") << Qt::Key_2 << "timeline";
    QTest::newRow("baseline") << Qt::Key_D << "compare"; // in a text field: deletes a letter
}

void TestMainWindow::menuKeysWorkInTextFields()
{
    QFETCH(Qt::Key, key);
    QFETCH(QString, view);
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openExample(fixture.example("data_parallel.yaml"));
    QTRY_VERIFY(fixture.isShown());
    fixture.window.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
    const auto fields = fixture.window.findChild<ui::StudyPanel*>()->findChildren<QLineEdit*>();
    QLineEdit* name = fields.front();
    name->setFocus();
    const QString text = name->text();
    QTest::keyClick(name, key, Qt::ControlModifier);
    QVERIFY(fixture.window.workbench().findView(view)->isVisible());
    QCOMPARE(name->text(), text);
}

void TestMainWindow::undoReachesTheStudyFromEveryField_data()
{
    QTest::addColumn<QString>("view"); ///< empty: the study's panel
    QTest::addColumn<QString>("field");
    QTest::newRow("a line") << QString() << "Batch";
    QTest::newRow("a list that is typed in") << QString() << "Chip";
    QTest::newRow("a size") << QString() << "Size of axis data";
    QTest::newRow("a count") << QString() << "Hosts";
    QTest::newRow("another layout") << "layout"
                                    << "Layout to reshard to";
}

/// A field in which nothing was typed has nothing to undo; the study has.
void TestMainWindow::undoReachesTheStudyFromEveryField()
{
    QFETCH(QString, view);
    QFETCH(QString, field);
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openExample(fixture.example("fsdp.yaml"));
    fixture.window.document().change({"hardware={chip: h100, hosts: 1, per_host: 8}"}, "Edit the hardware");
    QTRY_VERIFY(fixture.isShown());
    fixture.window.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
    QWidget* parent = fixture.window.findChild<ui::StudyPanel*>();
    if (!view.isEmpty())
        parent = fixture.window.workbench().findView(view);
    QWidget* found = nullptr;
    for (QWidget* one : parent->findChildren<QWidget*>()) {
        if (one->accessibleName() == field && one->isVisible())
            found = one;
    }
    QVERIFY(found != nullptr);
    fixture.window.document().change({"batch=64"}, "Edit the batch");
    QTRY_VERIFY(fixture.isShown());
    found->setFocus();
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(fixture.window.document().undoStack().undoText(), QString("Edit the hardware"));
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Y, Qt::ControlModifier);
    QCOMPARE(fixture.window.document().undoStack().undoText(), QString("Edit the batch"));
    fixture.window.document().undoStack().setClean();
}

void TestMainWindow::problemsKeepTheLastState()
{
    WindowFixture fixture;
    openNotebook(fixture);
    for (const char* bad :
        {"batch=none", "sharding.x=P('nowhere')", "mesh.data=3", "hardware.chip=v99", "model.mlp.layers=[1]"}) {
        fixture.window.document().change({bad}, "Edit");
        QTRY_VERIFY2(fixture.isShown(), bad);
        QVERIFY2(!fixture.analysis()->problems.empty(), bad);
        for (ui::View* view : fixture.window.workbench().views()) {
            view->bringUpToDate();
            (void)view->grab();
        }
        fixture.window.document().undoStack().undo();
        QTRY_VERIFY2(fixture.isShown(), bad);
        QVERIFY2(fixture.analysis()->simulated != nullptr, bad);
    }
}

/// Not even where it has nothing to show itself: a program without hardware and without names.
void TestMainWindow::anotherStudyLeavesNothingOfTheOneBefore()
{
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openExample(fixture.example("two_d.yaml"));
    QTRY_VERIFY(fixture.isShown());
    ui::Workbench& workbench = fixture.window.workbench();
    const auto rows = [&](const char* view) { return workbench.findView(view)->findChild<QTreeView*>()->model()->rowCount(); };
    const auto words = [&](const char* view) {
        QString all;
        for (const QLabel* label : workbench.findView(view)->findChildren<QLabel*>())
            all += label->text() + QLatin1Char('\n');
        return all;
    };
    const auto why = [&] { return workbench.findView("program")->findChild<QTextBrowser*>()->toPlainText(); };
    for (ui::View* view : workbench.views())
        workbench.showView(view);
    workbench.training().train();
    QTRY_VERIFY(!workbench.training().job().isActive());
    QTRY_VERIFY(why().contains("layers."));
    QVERIFY(rows("causes") > 0 && rows("layout") > 0);
    QVERIFY(words("layout").contains("layers."));

    const QString path = fixture.folder.filePath("unnamed.mlir");
    const char* text = R"(func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
)";
    QVERIFY(writeFileAtomically(path.toStdString(), text));
    QVERIFY(fixture.window.openFile(path));
    QVERIFY(!workbench.training().job().hasRun());
    QTRY_VERIFY(fixture.isShown());
    for (ui::View* view : workbench.views())
        workbench.showView(view);
    for (const char* view : {"causes", "what-if"})
        QVERIFY2(rows(view) == 0, view);
    QVERIFY2(words("causes").contains("has no hardware"), qPrintable(words("causes")));
    QVERIFY(words("layout").contains("arg0") && !words("layout").contains("layers."));
    QVERIFY(workbench.timeline().canvas().model().isEmpty());
    QCOMPARE(workbench.findView("memory")->picture().title, std::string("No memory"));
    QVERIFY(!why().contains("layers."));
}

void TestMainWindow::theManualOpensAtWhatHasTheFocus_data()
{
    QTest::addColumn<QString>("view");
    QTest::addColumn<QString>("page");
    QTest::newRow("a page of its own") << "timeline"
                                       << "timeline.md";
    QTest::newRow("the second view of a perspective") << "compare"
                                                      << "comparing.md";
    QTest::newRow("no page of its own") << "memory"
                                        << "views.md";
    QTest::newRow("the fields") << QString() << "study-files.md";
    QTest::newRow("the start page") << "start"
                                    << "index.md";
}

void TestMainWindow::theManualOpensAtWhatHasTheFocus()
{
    QFETCH(QString, view);
    QFETCH(QString, page);
    WindowFixture fixture;
    fixture.window.show();
    QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
    if (view != "start") {
        openNotebook(fixture);
        ui::Workbench& workbench = fixture.window.workbench();
        if (ui::View* found = workbench.findView(view)) {
            workbench.showView(found);
            found->setFocus();
        } else {
            fixture.window.findChild<ui::StudyPanel*>()->findChild<QLineEdit*>()->setFocus();
        }
    }
    QTest::keyClick(&fixture.window, Qt::Key_F1);
    const auto* manual = fixture.window.findChild<ui::ManualDialog*>();
    QVERIFY(manual != nullptr);
    QCOMPARE(manual->findChild<QTextBrowser*>()->source().fileName(), page);
}

void TestMainWindow::everyViewHasACommandAndAPicture()
{
    WindowFixture fixture;
    openNotebook(fixture);
    for (const ui::View* view : fixture.window.workbench().views()) {
        QVERIFY2(view->command().startsWith("meshwright "), qPrintable(view->accessibleName()));
        fixture.window.workbench().showView(view);
        QTRY_VERIFY2(view->picture().width > 0.0, qPrintable(view->accessibleName()));
        QVERIFY2(view->objectName() == "training" || !view->picture().items.empty(), qPrintable(view->accessibleName()));
    }
}

void TestMainWindow::everyViewHasANameAndCanBeReached()
{
    WindowFixture fixture;
    openNotebook(fixture);
    int digit = 0;
    for (const ui::Perspective& perspective : fixture.window.workbench().perspectives()) {
        QTest::keyClick(&fixture.window, static_cast<Qt::Key>(Qt::Key_1 + digit++), Qt::ControlModifier);
        QCOMPARE(fixture.window.workbench().perspective().id, perspective.id);
        QVERIFY(!perspective.frames.front()->current()->visibleRegion().isEmpty());
    }
    for (const ui::View* view : fixture.window.workbench().views()) {
        QVERIFY(!view->accessibleName().isEmpty());
        actionOf(fixture.window, view->accessibleName())->trigger();
        QTRY_VERIFY2(!view->visibleRegion().isEmpty(), qPrintable(view->accessibleName()));
    }
    for (const QWidget* widget : fixture.window.findChildren<QWidget*>()) {
        const bool takesFocus = widget->focusPolicy() & Qt::TabFocus && widget->isVisibleTo(&fixture.window);
        const auto* button = qobject_cast<const QAbstractButton*>(widget);
        const auto* label = button && !button->text().isEmpty() ? widget : nullptr;
        const bool isPart = widget->objectName().startsWith("qt_") || widget->inherits("QLineEdit") || widget->inherits("QTabBar")
            || widget->inherits("QScrollArea") || widget->inherits("QScrollBar");
        QVERIFY2(!takesFocus || label || isPart || !widget->accessibleName().isEmpty(),
            qPrintable(QString("%1 in %2 has no accessible name")
                           .arg(widget->metaObject()->className(), widget->parentWidget()->metaObject()->className())));
    }
}

void TestMainWindow::themesSwitchAtRunTime()
{
    WindowFixture fixture;
    openNotebook(fixture);
    for (const auto& [name, theme] : {std::pair{QString("Dark"), Theme::Dark},
             std::pair{QString("High contrast"), Theme::HighContrast}, std::pair{QString("Light"), Theme::Light}}) {
        actionOf(fixture.window, name)->trigger();
        QCOMPARE(ui::themeOf(fixture.window.palette()), theme);
        for (ui::View* view : fixture.window.workbench().views()) {
            const QImage image = view->grab().toImage();
            QVERIFY2((qGray(image.pixel(2, image.height() - 3)) < 128) == (theme != Theme::Light),
                qPrintable(view->accessibleName() + name));
        }
    }
}

void TestMainWindow::removesTheSpecBehindACollective()
{
    WindowFixture fixture;
    openNotebook(fixture);
    auto* collectives = fixture.window.findChild<ui::CollectivesView*>();
    Q_EMIT collectives->removeSpecRequested("sharding.layers.1.w");
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(fixture.analysis()->findArray("layers.1.w")->annotation.empty());
    QCOMPARE(fixture.window.document().undoStack().undoText(), QString("Remove sharding.layers.1.w"));
}

void TestMainWindow::arrangementCanBeReset()
{
    WindowFixture fixture;
    openNotebook(fixture);
    ui::Workbench& workbench = fixture.window.workbench();
    const auto* panel = fixture.window.findChild<ui::StudyPanel*>();
    QVERIFY(panel->isVisible());
    QTest::keyClick(&fixture.window, Qt::Key_B, Qt::ControlModifier);
    QVERIFY(!panel->isVisible());
    workbench.showPerspective("time");
    actionOf(fixture.window, "Reset the arrangement")->trigger();
    QCOMPARE(workbench.perspective().id, QString("design"));
    QVERIFY(panel->isVisible());
    QVERIFY(actionOf(fixture.window, "Study's fields")->isChecked());
}

void TestMainWindow::arrangementIsRemembered()
{
    WindowFixture fixture;
    openNotebook(fixture);
    fixture.window.workbench().showPerspective("memory");
    fixture.window.workbench().setStudyShown(true);
    fixture.window.workbench().showPerspective("time");
    fixture.window.close();
    ui::MainWindow next(std::make_shared<sim::Session>(valueOf(sim::defaultCatalogue())), fixture.places);
    QCOMPARE(next.workbench().perspective().id, QString("time"));
    QVERIFY(!next.workbench().perspective().showsStudy);
    next.workbench().showPerspective("memory");
    QVERIFY(next.workbench().perspective().showsStudy);
}

/// What was wrong leaves the headline with its cause.
void TestMainWindow::anErrorLeavesWithItsCause()
{
    WindowFixture fixture;
    openNotebook(fixture);
    const auto& headline = fixture.window.workbench().headline();
    const QString before = headline.changeText();
    fixture.window.document().change({"mesh.data=3"}, "Edit the mesh");
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(headline.changeText() != before);
    QCOMPARE(headline.changeText(), QString::fromStdString(sim::whyNotBuilt(*fixture.analysis())->message));
    fixture.window.document().undoStack().undo();
    QTRY_VERIFY(fixture.isShown());
    QCOMPARE(headline.changeText(), before);
}

void TestMainWindow::everyRowSelectsWhatItShows_data()
{
    QTest::addColumn<QString>("study");

    for (const char* study : {"notebook_mlp.yaml", "transformer_64.yaml", "fsdp.yaml"})
        QTest::newRow(study) << study;
}

/// In every table: of collectives that share a name each shows its own details and its own slice; a row of an array shows that array.
void TestMainWindow::everyRowSelectsWhatItShows()
{
    QFETCH(QString, study);
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openExample(fixture.example(study));
    QTRY_VERIFY(fixture.isShown());
    ui::Workbench& workbench = fixture.window.workbench();
    ui::Selection& selection = workbench.selection();
    workbench.showPerspective("time");
    auto* timeline = qobject_cast<ui::TimelineView*>(workbench.findView("timeline"));
    QTRY_VERIFY(!timeline->isBusy());

    const auto* collectives = workbench.findView("collectives");
    auto* table = collectives->findChild<QTableView*>();
    const auto& all = fixture.analysis()->simulated->simulation.collectives;
    const std::vector<Slice>& slices = fixture.analysis()->simulated->simulation.timeline.slices();
    ui::CollectivesModel rows; // in the order of the step: the table sorts them
    rows.setAnalysis(fixture.window.workbench().analysis());
    QCOMPARE(table->model()->rowCount(), rows.rowCount());
    std::set<std::size_t> seen;
    for (int row = 0; row < table->model()->rowCount(); ++row) {
        table->selectRow(row);
        QVERIFY(selection.collective().has_value());
        const std::size_t index = selection.collective()->index;
        QVERIFY(seen.insert(index).second);
        const auto text = [&](int column) { return table->model()->index(row, column).data().toString().toStdString(); };
        const sim::SimulatedCollective& own = rows.collective(rows.rowOf(index));
        QCOMPARE(text(ui::CollectivesModel::Value), own.use.cause.value);
        QCOMPARE(text(ui::CollectivesModel::Time), formatSeconds(own.seconds));
        QCOMPARE(text(ui::CollectivesModel::Cause), all[index].use.cause.annotation);
        QCOMPARE(table->currentIndex().row(), row); // the selection did not come back as another row
        const auto labels = collectives->findChildren<QLabel*>();
        QVERIFY(std::any_of(labels.begin(), labels.end(),
            [&](const QLabel* label) { return label->text().contains(QString::fromStdString(all[index].use.cause.reason)); }));
        const auto slice = timeline->canvas().selected();
        QVERIFY(slice.has_value());
        QCOMPARE(slices[slice->slice].collective, static_cast<std::int32_t>(index));
    }

    workbench.showPerspective("memory");
    auto* live = workbench.findView("memory")->findChild<QTableView*>();
    for (int row = 0; row < live->model()->rowCount(); ++row) {
        live->selectRow(row);
        QCOMPARE(live->currentIndex().row(), row);
        const QString name = live->model()->index(row, 0).data().toString();
        if (fixture.analysis()->findArray(name.toStdString()))
            QCOMPARE(selection.array(), name);
    }

    workbench.showPerspective("design");
    auto* arrays = workbench.findView("layout")->findChild<QTreeView*>();
    std::size_t shown = 0;
    for (int group = 0; group < arrays->model()->rowCount(); ++group) {
        const QModelIndex parent = arrays->model()->index(group, 0);
        for (int row = 0; row < arrays->model()->rowCount(parent); ++row, ++shown) {
            arrays->setCurrentIndex(arrays->model()->index(row, 0, parent));
            QCOMPARE(selection.array(), arrays->currentIndex().siblingAtColumn(0).data().toString());
            QCOMPARE(arrays->currentIndex().row(), row);
        }
    }
    QCOMPARE(shown, fixture.analysis()->arrays.size());
}

void TestMainWindow::selectionsGoBack()
{
    WindowFixture fixture;
    openNotebook(fixture);
    QAction* back = actionOf(fixture.window, "Selected before");
    ui::Selection& selection = fixture.window.workbench().selection();
    const QString first = selection.array();
    QVERIFY(!first.isEmpty());
    QCoreApplication::processEvents();
    QVERIFY(!back->isEnabled());
    selection.setArray("layers.2.w");
    QCoreApplication::processEvents();
    QVERIFY(back->isEnabled());
    back->trigger();
    QCOMPARE(selection.array(), first);
    actionOf(fixture.window, "Selected after")->trigger();
    QCOMPARE(selection.array(), QString("layers.2.w"));
}

void TestMainWindow::keysOfTheTimelineHoldInItsPerspective()
{
    WindowFixture fixture;
    openNotebook(fixture);
    QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
    QTest::keyClick(&fixture.window, Qt::Key_2, Qt::ControlModifier);
    ui::TimelineView& timeline = fixture.window.workbench().timeline();
    QCOMPARE(QApplication::focusWidget(), static_cast<QWidget*>(&timeline.canvas()));
    QTRY_VERIFY(!timeline.isBusy());
    const auto shown = [&] { return timeline.canvas().window().length(); };
    const double whole = shown();
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_W);
    QTRY_VERIFY(shown() < whole);

    QAbstractButton* button = nullptr; // of the bar at the left
    for (QAbstractButton* one : fixture.window.workbench().findChildren<QAbstractButton*>()) {
        if (one->isVisible() && one->isEnabled() && !timeline.isAncestorOf(one) && one->text() == "Time")
            button = one;
    }
    QVERIFY(button != nullptr);
    button->setFocus();
    const double closer = shown();
    QTest::keyClick(button, Qt::Key_W);
    QTRY_VERIFY(shown() < closer);
    QTest::keyClick(button, Qt::Key_F12); // nobody's
    QTest::keyClick(button, Qt::Key_F, Qt::ControlModifier);
    QCOMPARE(QApplication::focusWidget()->accessibleName(), timeline.findChild<QLineEdit*>()->accessibleName());
}

/// Fields and text are two ways to the same study, with one undo.
void TestMainWindow::theSourceIsTheStudy()
{
    WindowFixture fixture;
    openNotebook(fixture);
    QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
    QTest::keyClick(&fixture.window, Qt::Key_U, Qt::ControlModifier);
    auto* text = fixture.window.findChild<ui::SourceEdit*>()->findChild<QPlainTextEdit*>();
    QVERIFY(text->isVisible());
    QVERIFY(text->toPlainText().contains("batch: 8192\n"));
    fixture.window.document().change({"batch=4096"}, "Edit the batch");
    QVERIFY(text->toPlainText().contains("batch: 4096\n")); // what fields change is in the text
    QTextCursor cursor = text->document()->find("4096", text->document()->find("batch:"));
    QVERIFY(!cursor.isNull());
    text->setTextCursor(cursor);
    QTest::keyClicks(text, "2048");
    QTRY_VERIFY(fixture.analysis()->study && fixture.analysis()->study->batch == 2048); // and what is typed is the study
    QVERIFY(fixture.window.document().source().settings.empty());
    QTest::keyClick(text, Qt::Key_Z, Qt::ControlModifier);
    QTRY_COMPARE(fixture.analysis()->study->batch, 4096);
    QVERIFY(text->toPlainText().contains("batch: 4096\n"));
    QCOMPARE(text->textCursor().block().text(), QString("batch: 4096")); // the caret stays at what is undone

    const QString name = text->toPlainText().section('\n', 1, 1);
    text->setTextCursor(QTextCursor(text->document()->findBlockByNumber(1)));
    QTest::keyClicks(text, "# more text than the line below has letters");
    QTest::keyClick(text, Qt::Key_Return);
    QTest::keyClicks(text, "# and another line");
    QTest::keyClick(text, Qt::Key_Return);
    QTest::keyClick(text, Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(text->textCursor().block().text(), name);
    fixture.window.document().undoStack().setClean();
}

void TestMainWindow::aBrokenStudyIsMendedInItsSource()
{
    WindowFixture fixture;
    fixture.window.show();
    const QString path = fixture.copyOf("digits.yaml");
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QByteArray content = file.readAll();
    file.close();
    const qsizetype at = content.indexOf("mesh:");
    QVERIFY(at > 0);
    content.insert(at, "batch: [\n");
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(content) > 0);
    file.close();
    QVERIFY(fixture.window.openFile(path));
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(!fixture.analysis()->study);
    fixture.window.workbench().showSource();
    auto* source = fixture.window.findChild<ui::SourceEdit*>();
    QVERIFY(source->mistake().has_value());
    auto* text = source->findChild<QPlainTextEdit*>();
    QCOMPARE(text->extraSelections().size(), qsizetype{2});
    const QTextCursor mark = text->extraSelections().back().cursor;
    QCOMPARE(mark.blockNumber() + 1, source->mistake()->place.line);
    QString mended = text->toPlainText();
    text->setPlainText(mended.remove("batch: [\n"));
    QTRY_VERIFY(fixture.isShown() && fixture.analysis()->simulated);
    QVERIFY(!source->mistake());
    QVERIFY(text->extraSelections().isEmpty());
    fixture.window.document().undoStack().setClean();
}

void TestMainWindow::actionsAreFoundByAFewLetters_data()
{
    QTest::addColumn<QString>("query");
    QTest::addColumn<QString>("better");
    QTest::addColumn<QString>("worse"); // empty: it does not fit at all

    QTest::newRow("nothing") << ""
                             << "Save"
                             << "x";
    QTest::newRow("its beginning") << "sa"
                                   << "Save"
                                   << "Reset the arrangement";
    QTest::newRow("the beginnings of words") << "sr"
                                             << "Save report"
                                             << "Search";
    QTest::newRow("together") << "mem"
                              << "Memory"
                              << "Time, see much";
    QTest::newRow("any case") << "DARK"
                              << "Theme: Dark"
                              << "Theme: Light and regular";
    QTest::newRow("two words") << "theme da"
                               << "Theme: Dark"
                               << "Other media";
    QTest::newRow("the whole word") << "theme"
                                    << "View Theme: Follow the system"
                                    << "Reset the arrangement of the elements";
}

void TestMainWindow::actionsAreFoundByAFewLetters()
{
    QFETCH(QString, query);
    QFETCH(QString, better);
    QFETCH(QString, worse);
    const auto best = ui::matchScore(query, better);
    QVERIFY(best.has_value());
    QVERIFY(*best > ui::matchScore(query, worse).value_or(-1) || query.isEmpty());
    QVERIFY(!ui::matchScore("zq", better));
}

/// Every action of the menus is in the palette, those that cannot be done are grey, and Enter does the first.
void TestMainWindow::thePaletteDoesWhatIsChosen()
{
    WindowFixture fixture;
    openNotebook(fixture);
    QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
    bool wasShown = false;
    QTimer::singleShot(0, &fixture.window, [&] {
        auto* palette = qobject_cast<ui::ActionPalette*>(QApplication::activeModalWidget());
        QVERIFY(palette != nullptr);
        wasShown = true;
        auto* list = palette->findChild<QListWidget*>();
        QCOMPARE(static_cast<std::size_t>(list->count()), ui::menuActions(*fixture.window.menuBar()).size());
        for (int row = 0; row < list->count(); ++row) {
            if (list->item(row)->text() == QLatin1String("Edit: Undo"))
                QVERIFY(!(list->item(row)->flags() & Qt::ItemIsEnabled)); // there is nothing yet
        }
        auto* query = palette->findChild<QLineEdit*>();
        for (const ui::MenuAction& action : ui::menuActions(*fixture.window.menuBar())) { // by its name as it is shown
            query->setText(QStringLiteral("%1: %2").arg(action.menu, action.text()));
            QCOMPARE(list->item(0)->text(), query->text());
        }
        query->setText("zqzq");
        QCOMPARE(list->item(0)->text(), QString("No action has this name."));
        query->clear();
        QTest::keyClicks(query, "memor");
        QVERIFY2(list->currentItem()->text().startsWith("View: Memory"), qPrintable(list->currentItem()->text()));
        QTest::keyClick(palette->findChild<QLineEdit*>(), Qt::Key_Return);
    });
    QTest::keyClick(&fixture.window, Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    QVERIFY(wasShown);
    QTRY_COMPARE(fixture.window.workbench().perspective().id, QString("memory"));
}

MESHWRIGHT_TEST(TestMainWindow)

} // namespace tst_main_window

#include "tst_main_window.moc"
