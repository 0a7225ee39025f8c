// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/analysis_state.h"
#include "tests/ui/window/window_fixture.h"
#include "ui/collectives/collectives_view.h"
#include "ui/window/headline.h"
#include "ui/window/start_page.h"
#include "ui/window/view_dock.h"

#include <QAbstractButton>
#include <QMimeData>

using namespace meshwright;
using tests::WindowFixture;

/// From the start page to a saved study: what a person does in the first minutes.
class TestMainWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void startsWithExamples();
    void theFirstExampleIsTheNotebook();
    void anEditReachesEveryView();
    void saysWhyTheStepChanged();
    void undoAndRedo();
    void unsavedEditsAreMarked();
    void savesAndRemembers();
    void opensWhatIsDropped();
    void problemsKeepTheLastState();
    void formulasFillTheHeadline();
    void everyViewHasACommandAndAPicture();
    void everyViewHasANameAndCanBeReached();
    void themesSwitchAtRunTime();
    void removesTheSpecBehindACollective();
    void arrangementCanBeReset();
};

namespace {

QAction* actionOf(const QMainWindow& window, const QString& text)
{
    for (QAction* action : window.findChildren<QAction*>()) {
        if (action->text().remove(QLatin1Char('&')) == text)
            return action;
    }
    return nullptr;
}

void openNotebook(WindowFixture& fixture)
{
    fixture.window.show();
    fixture.window.openExample(fixture.example("notebook_mlp.yaml"));
    QTRY_VERIFY(fixture.isShown());
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
    QSignalSpy shown(&fixture.window.workbench(), &ui::Workbench::shown);
    fixture.window.document().change({"mesh={data: 8, model: 1}"}, "Edit the mesh");
    QTRY_COMPARE(shown.count(), 1);
    QCOMPARE(fixture.analysis()->mesh().text(), std::string("data=8,model=1"));
    for (const ui::ViewDock* dock : fixture.window.workbench().docks())
        QVERIFY2(dock->view()->command().contains("data: 8, model: 1") || dock->view()->command().contains("data=8,model=1"),
            qPrintable(dock->windowTitle() + ": " + dock->view()->command()));
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

void TestMainWindow::problemsKeepTheLastState()
{
    WindowFixture fixture;
    openNotebook(fixture);
    for (const char* bad :
        {"batch=none", "sharding.x=P('nowhere')", "mesh.data=3", "hardware.chip=v99", "model.mlp.layers=[1]"}) {
        fixture.window.document().change({bad}, "Edit");
        QTRY_VERIFY2(fixture.isShown(), bad);
        QVERIFY2(!fixture.analysis()->problems.empty(), bad);
        for (const ui::ViewDock* dock : fixture.window.workbench().docks())
            (void)dock->view()->grab();
        fixture.window.document().undoStack().undo();
        QTRY_VERIFY2(fixture.isShown(), bad);
        QVERIFY2(fixture.analysis()->simulated != nullptr, bad);
    }
}

/// A transformer in pipeline stages: its prediction is shown, every view says what it has, and an edit goes from one prediction to the next.
void TestMainWindow::formulasFillTheHeadline()
{
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openExample(fixture.example("llama3_405b_h100.yaml"));
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(sim::isByFormulas(*fixture.analysis()));
    const auto says = [&](const QString& words) {
        const auto labels = fixture.window.findChildren<QLabel*>();
        return std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) { return label->text().contains(words); });
    };
    QTRY_VERIFY(says("bound by compute"));
    QVERIFY(says("bubble"));
    QVERIFY(says("1 warning"));
    QVERIFY(says("Formulas predict this step: there is no list of its collectives."));
    QVERIFY(says("Formulas predict this step: no arrays are laid out."));
    for (const ui::ViewDock* dock : fixture.window.workbench().docks()) {
        (void)dock->view()->grab();
        (void)dock->view()->picture();
        QVERIFY2(dock->view()->command().startsWith("meshwright "), qPrintable(dock->windowTitle()));
    }
    fixture.window.document().change({"batch=4096"}, "Edit");
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(sim::isByFormulas(*fixture.analysis()));
}

void TestMainWindow::everyViewHasACommandAndAPicture()
{
    WindowFixture fixture;
    openNotebook(fixture);
    for (ui::ViewDock* dock : fixture.window.workbench().docks()) {
        QVERIFY2(dock->view()->command().startsWith("meshwright "), qPrintable(dock->windowTitle()));
        dock->raise();
        QTRY_VERIFY2(dock->view()->picture().width > 0.0, qPrintable(dock->windowTitle()));
        QVERIFY2(dock->objectName() == "training" || !dock->view()->picture().items.empty(), qPrintable(dock->windowTitle()));
    }
}

void TestMainWindow::everyViewHasANameAndCanBeReached()
{
    WindowFixture fixture;
    openNotebook(fixture);
    int digit = 0;
    for (ui::ViewDock* dock : fixture.window.workbench().docks()) {
        QVERIFY(!dock->view()->accessibleName().isEmpty());
        QTest::keyClick(&fixture.window, static_cast<Qt::Key>(Qt::Key_1 + digit++), Qt::ControlModifier);
        QTRY_VERIFY2(!dock->view()->visibleRegion().isEmpty(), qPrintable(dock->windowTitle()));
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
    for (const auto& [name, theme] : {std::pair{QString("Dark"), Theme::Dark}, std::pair{QString("Light"), Theme::Light}}) {
        actionOf(fixture.window, name)->trigger();
        QCOMPARE(ui::themeOf(fixture.window.palette()), theme);
        for (const ui::ViewDock* dock : fixture.window.workbench().docks()) {
            const QImage image = dock->view()->grab().toImage();
            QVERIFY2((qGray(image.pixel(2, image.height() - 3)) < 128) == (theme == Theme::Dark),
                qPrintable(dock->windowTitle() + name));
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
    ui::ViewDock* memory = workbench.findDock("memory");
    memory->setFloating(true);
    workbench.findDock("mesh")->close();
    actionOf(fixture.window, "Reset the arrangement")->trigger();
    QVERIFY(!memory->isFloating());
    for (const ui::ViewDock* dock : workbench.docks())
        QVERIFY(!dock->isHidden() || workbench.tabifiedDockWidgets(const_cast<ui::ViewDock*>(dock)).size() > 0);
}

QTEST_MAIN(TestMainWindow)
#include "tst_main_window.moc"
