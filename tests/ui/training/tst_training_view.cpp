// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "tests/test_class.h"
#include "ui/training/curve_plot.h"
#include "ui/training/figures.h"
#include "ui/training/training_view.h"

namespace tst_training_view {

using namespace meshwright;
using sim::TrainingState;

/// What a user does to train a study, and what the view says meanwhile.
class TestTrainingView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void nothingYet();
    void trains();
    void pausesAndResumes();
    void cancels();
    void withoutOneDevice();
    void verifies();
    void failureSaysWhatToDo();
    void programHasNoTraining();
    void brokenStudy();
    void phasesHaveTheirSteps();
    void editWhileTraining();
    void commandAsTicked();
    void goesOnFromACheckpoint();
    void aFaultIsInjectedWhereOneLooks();
    void aSlowDeviceIsSeen();
    void picture();
    void themes();
    void keyboardReachesAll();
    void names();
};

namespace {

using Analysed = std::shared_ptr<const sim::Analysis>;

Analysed analysed(const std::string& example, const std::vector<std::string>& settings = {})
{
    static sim::Session session(valueOf(sim::defaultCatalogue()));
    const auto path = resourcesDirectory() / "examples" / example;
    return session.analyse({valueOf(readFile(path)), "examples/" + example, settings});
}

Analysed digits(std::int64_t steps)
{
    return analysed("digits.yaml", {"train.steps=" + std::to_string(steps)});
}

constexpr std::int64_t kEndless = 100'000'000;

/// A view in a window, with names for its parts.
struct Shown {
    ui::Selection selection;
    ui::TrainingView view{selection};

    explicit Shown(const Analysed& analysis = nullptr)
    {
        if (analysis)
            view.setAnalysis(analysis);
        view.resize(760, 560);
        view.show();
    }

    QPushButton& button(const QString& text) const
    {
        for (QPushButton* button : view.findChildren<QPushButton*>()) {
            if (button->text() == text)
                return *button;
        }
        qFatal("no button %s", qPrintable(text));
    }
    QCheckBox& box(const QString& text) const
    {
        for (QCheckBox* box : view.findChildren<QCheckBox*>()) {
            if (box->text() == text)
                return *box;
        }
        qFatal("no box %s", qPrintable(text));
    }
    void click(const QString& text) { QTest::mouseClick(&button(text), Qt::LeftButton); }
    QSpinBox& steps() const { return *view.findChild<QSpinBox*>(); }
    ui::CurvePlot& plot() const { return *view.findChild<ui::CurvePlot*>(); }

    /// Everything that the view says in words.
    QString words() const
    {
        QStringList words;
        for (const QLabel* label : view.findChildren<QLabel*>()) {
            if (label->isVisible())
                words << QTextDocumentFragment::fromHtml(label->text()).toPlainText();
        }
        for (const ui::Figure& figure : view.findChild<ui::Figures*>()->figures())
            words << figure.title + ": " + figure.value + " " + figure.remark;
        return words.join('\n');
    }
    TrainingState state() { return view.job().snapshot().state; }
};

} // namespace

void TestTrainingView::nothingYet()
{
    Shown shown;
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    QVERIFY(!shown.button("Train").isEnabled());
    QVERIFY(!shown.button("Pause").isEnabled());
    QVERIFY(!shown.button("Cancel").isEnabled());
    shown.view.setAnalysis(digits(25));
    QVERIFY(shown.button("Train").isEnabled());
    QCOMPARE(shown.steps().value(), 25);
    QVERIFY2(shown.words().contains("Not trained yet"), qPrintable(shown.words()));
    QVERIFY2(shown.words().contains("Train to see the loss"), qPrintable(shown.words()));
}

void TestTrainingView::trains()
{
    Shown shown(digits(25));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    QSignalSpy trained(&shown.view, &ui::TrainingView::trained);
    QTest::keyClick(&shown.steps(), Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(&shown.steps(), "12");
    shown.click("Train");
    QVERIFY(!shown.button("Train").isEnabled());
    QVERIFY(shown.button("Cancel").isEnabled());
    QVERIFY(!shown.steps().isEnabled());
    QTRY_COMPARE(trained.size(), 1);
    QCOMPARE(shown.state(), TrainingState::Finished);
    const auto result = trained.first().first().value<std::shared_ptr<const TrainingResult>>();
    QCOMPARE(result->losses.size(), std::size_t{13});
    QVERIFY(!result->virtualTime.slices().empty() && !result->wall.slices().empty());
    for (const auto& [panel, line, points] : std::vector<std::tuple<std::size_t, std::size_t, int>>{
             {0, 0, 13}, {0, 1, 13}, {1, 0, 13}, {2, 0, 12}, {2, 1, 12}, {2, 2, 2}})
        QCOMPARE(shown.plot().drawnPoints(panel, line), points);
    QVERIFY(shown.button("Train").isEnabled());
    QVERIFY(!shown.button("Cancel").isEnabled());
    const QString words = shown.words();
    for (const char* part : {"Finished: 12 steps in", "samples/s", "Final loss:", "one device", "Largest difference:",
             "Held-out accuracy:", "of 297 examples", "Memory a device:", "reserved in this run, 8 devices", "a step on average"})
        QVERIFY2(words.contains(part), qPrintable(QString(part) + " is missing in\n" + words));
    QVERIFY(!words.contains("Verified"));

    // A step under the pointer.
    QTest::keyClick(&shown.plot(), Qt::Key_End);
    QVERIFY2(shown.words().contains("Step 12: loss "), qPrintable(shown.words()));
    QTest::keyClick(&shown.plot(), Qt::Key_Left);
    QVERIFY2(shown.words().contains("Step 11: loss ") && shown.words().contains(", accuracy "), qPrintable(shown.words()));
}

void TestTrainingView::pausesAndResumes()
{
    Shown shown(digits(kEndless));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    shown.click("Train");
    QTRY_VERIFY(shown.view.job().snapshot().step > 2);
    QVERIFY2(shown.words().contains("left"), qPrintable(shown.words()));
    QVERIFY(!shown.button("Resume").isVisible());
    shown.button("Pause").setFocus();
    QTest::keyClick(&shown.button("Pause"), Qt::Key_Space);
    QTRY_COMPARE(shown.state(), TrainingState::Paused);
    QVERIFY(!shown.button("Pause").isVisible());
    QVERIFY(shown.button("Resume").isEnabled());
    QCOMPARE(shown.view.focusWidget(), &shown.button("Resume")); // the keyboard stays where it was
    QVERIFY2(shown.words().contains("Paused after step"), qPrintable(shown.words()));
    const std::int64_t step = shown.view.job().snapshot().step;
    QCOMPARE(shown.plot().drawnPoints(0, 0), std::min<int>(static_cast<int>(step), shown.plot().drawnPoints(0, 0)));
    shown.click("Resume");
    QTRY_VERIFY(shown.view.job().snapshot().step > step);
    QVERIFY(shown.button("Pause").isVisible());
}

void TestTrainingView::cancels()
{
    Shown shown(digits(kEndless));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    QSignalSpy trained(&shown.view, &ui::TrainingView::trained);
    shown.click("Train");
    QTRY_VERIFY(shown.view.job().snapshot().step > 2);
    shown.click("Cancel");
    QTRY_COMPARE(shown.state(), TrainingState::Cancelled);
    QTRY_COMPARE(trained.size(), 1);
    QVERIFY2(shown.words().contains("Cancelled after"), qPrintable(shown.words()));
    QVERIFY(shown.plot().drawnPoints(0, 0) >= 3);
    QVERIFY(shown.button("Train").isEnabled());
    QVERIFY(shown.button("Pause").isVisible() && !shown.button("Pause").isEnabled());

    shown.click("Train"); // again, from the start
    QTRY_VERIFY(shown.view.job().isActive() && shown.view.job().snapshot().step > 0);
}

void TestTrainingView::withoutOneDevice()
{
    Shown shown(digits(3));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    shown.box("Compare with one device").click();
    shown.click("Train");
    QTRY_COMPARE_WITH_TIMEOUT(shown.state(), TrainingState::Finished, 60'000);
    QCOMPARE(shown.plot().drawnPoints(0, 0), 4);
    QCOMPARE(shown.plot().drawnPoints(0, 1), 0);
    QCOMPARE(shown.plot().drawnPoints(1, 0), 0);
    QVERIFY(!shown.words().contains("Largest difference"));
}

void TestTrainingView::verifies()
{
    Shown shown(digits(4));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    shown.box("Verify").click();
    shown.click("Train");
    QTRY_COMPARE_WITH_TIMEOUT(shown.state(), TrainingState::Finished, 60'000);
    QVERIFY2(shown.words().contains("Verified: equal"), qPrintable(shown.words()));
}

void TestTrainingView::failureSaysWhatToDo()
{
    Shown shown(analysed("fsdp.yaml", {"optimizer={sgd: {learning_rate: 1.0e+30}}"}));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    QSignalSpy trained(&shown.view, &ui::TrainingView::trained);
    shown.click("Train");
    QTRY_COMPARE(shown.state(), TrainingState::Failed);
    QTRY_VERIFY(shown.button("Train").isEnabled());
    const QString words = shown.words();
    for (const char* part : {"Failed after", "is not finite", "smaller learning rate", "MW1620"})
        QVERIFY2(words.contains(part), qPrintable(words));
    QVERIFY(shown.plot().drawnPoints(0, 0) > 0);
    QCOMPARE(trained.size(), 0);
}

void TestTrainingView::programHasNoTraining()
{
    sim::Session session(valueOf(sim::defaultCatalogue()));
    const std::string file = (resourcesDirectory() / "examples" / "matmul.mlir").string();
    Shown shown(session.analyse({"meshwright: 1\nmesh: {a: 4, b: 2}\nmodel: {program: " + file + "}\n", "", {}}));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    QVERIFY(!shown.button("Train").isEnabled());
    for (const char* part : {"program file, which has no training", "meshwright run", "MW1733", "Nothing to train"})
        QVERIFY2(shown.words().contains(part), qPrintable(shown.words()));
    shown.view.train();
    QVERIFY(!shown.view.job().hasRun());
}

void TestTrainingView::brokenStudy()
{
    Shown shown(analysed("digits.yaml", {"batch=-1"}));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    QVERIFY(!shown.button("Train").isEnabled());
    QVERIFY2(shown.words().contains("cannot be trained as it is"), qPrintable(shown.words()));
    QVERIFY2(shown.words().contains("batch"), qPrintable(shown.words()));
    shown.view.setAnalysis(digits(3));
    QVERIFY(shown.button("Train").isEnabled());
    QVERIFY(!shown.words().contains("cannot be trained"));
}

void TestTrainingView::phasesHaveTheirSteps()
{
    Shown shown(analysed("phases.yaml"));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    QCOMPARE(shown.steps().value(), 20);
    QVERIFY(!shown.steps().isEnabled());
    shown.click("Train");
    QTRY_COMPARE_WITH_TIMEOUT(shown.state(), TrainingState::Finished, 60'000);
    QCOMPARE(shown.view.job().result()->phases.size(), std::size_t{2});
    QCOMPARE(shown.view.command(), QString("meshwright train examples/phases.yaml"));

    // The change of the layout is seen in the plot, read at its step, and in the exported picture.
    const std::string change = "mesh data=8,model=1 → data=4,model=2";
    QCOMPARE(shown.view.job().snapshot().layoutSwitches.size(), std::size_t{1});
    QCOMPARE(shown.view.job().snapshot().layoutSwitches.front().step, 10);
    QCOMPARE(shown.view.job().snapshot().layoutSwitches.front().what, change);
    QTest::keyClick(&shown.plot(), Qt::Key_Home);
    QTest::keyClick(&shown.plot(), Qt::Key_Right, Qt::ShiftModifier);
    QVERIFY2(shown.words().contains(QString::fromStdString(change)), qPrintable(shown.words()));
    const DisplayList picture = shown.view.picture();
    QVERIFY(std::any_of(picture.items.begin(), picture.items.end(),
        [&](const DisplayItem& item) { return item.id == "mark:0" && item.tooltip == change; }));
}

void TestTrainingView::editWhileTraining()
{
    Shown shown(digits(kEndless));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    shown.click("Train");
    QTRY_VERIFY(shown.view.job().snapshot().step > 0);
    QVERIFY(!shown.words().contains("earlier version"));
    shown.view.setAnalysis(analysed("digits.yaml", {"batch=50"}));
    QVERIFY2(shown.words().contains("This run is of an earlier version of the study."), qPrintable(shown.words()));
    QCOMPARE(shown.view.job().study().batch, 100); // it keeps its study
    QVERIFY(shown.view.job().isActive());
    shown.view.setAnalysis(digits(kEndless)); // undone
    QVERIFY(!shown.words().contains("earlier version"));
}

void TestTrainingView::aFaultIsInjectedWhereOneLooks()
{
    Shown shown(digits(20));
    auto* fault = shown.view.findChild<QComboBox*>();
    fault->setCurrentText("Device fails");
    QVERIFY(shown.view.command().endsWith(" --inject fail:device=0,step=10"));
    shown.selection.setDevices({3, 5});
    QVERIFY(shown.view.command().endsWith(" --inject fail:device=3,step=10"));
    shown.click("Train");
    QVERIFY(!fault->isEnabled());
    QTRY_COMPARE(shown.state(), TrainingState::Failed);
    QVERIFY2(shown.words().contains("evice 3"), qPrintable(shown.words()));
    QVERIFY(fault->isEnabled());
}

void TestTrainingView::aSlowDeviceIsSeen()
{
    Shown shown(digits(6));
    shown.selection.setDevices({2});
    shown.view.findChild<QComboBox*>()->setCurrentText("Slow device");
    QSignalSpy trained(&shown.view, &ui::TrainingView::trained);
    shown.click("Train");
    QTRY_COMPARE_WITH_TIMEOUT(shown.state(), TrainingState::Finished, 60'000);
    // In time of its own it computes longer than any other device.
    const Timeline& timeline = shown.view.job().result()->virtualTime;
    std::map<std::int64_t, double> computing;
    for (const Slice& slice : timeline.slices()) {
        if (slice.category == SliceCategory::Compute)
            computing[timeline.rows()[slice.row].device] += slice.durationSeconds;
    }
    for (const auto& [device, seconds] : computing)
        QVERIFY2(device == 2 || seconds < computing[2], qPrintable(QString("device %1: %2 s").arg(device).arg(seconds)));
    QCOMPARE(trained.size(), qsizetype{1});
}

/// On another mesh than the one that it was written from.
void TestTrainingView::goesOnFromACheckpoint()
{
    const QTemporaryDir folder;
    Shown shown(digits(20));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    shown.view.keepCheckpoints(folder.filePath("kept"));
    QVERIFY2(shown.view.command().contains("--checkpoint") && shown.view.command().endsWith("--every 2"),
        qPrintable(shown.view.command()));
    shown.click("Train");
    QTRY_COMPARE_WITH_TIMEOUT(shown.state(), TrainingState::Finished, 60'000);
    QTRY_VERIFY2(shown.words().contains("The last checkpoint: "), qPrintable(shown.words()));
    QCOMPARE(QDir(folder.filePath("kept")).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size(), 10);
    const double before = shown.view.job().curves().loss[12];

    shown.view.keepCheckpoints({});
    shown.view.setAnalysis(analysed("digits.yaml", {"train.steps=20", "mesh={data: 2, model: 2}"}));
    shown.view.goOnFrom(folder.filePath("kept/step-000000010"));
    QTRY_COMPARE_WITH_TIMEOUT(shown.state(), TrainingState::Finished, 60'000);
    QVERIFY2(shown.words().contains("Resumed after step 10"), qPrintable(shown.words()));
    const sim::TrainingCurves& curves = shown.view.job().curves();
    QCOMPARE(curves.loss.size(), std::size_t{21});
    QVERIFY(std::abs(curves.loss[12] - before) < 1e-4); // the sums have another order
    QVERIFY(std::abs(curves.oneDeviceLoss[12] - before) < 1e-4);
    for (std::size_t step = 0; step < curves.oneDeviceLoss.size(); ++step) // those before it are of the checkpoint
        QCOMPARE(std::isnan(curves.oneDeviceLoss[step]), step < 10);
    QVERIFY2(!shown.words().contains("nan"), qPrintable(shown.words()));
    QVERIFY(shown.view.command().contains("--resume"));
    QCOMPARE(shown.view.job().snapshot().layoutSwitches,
        (std::vector<LayoutSwitch>{{10, "resumed: mesh data=4,model=2 → data=2,model=2"}}));

    // The same mesh with another spec: the weight is sharded differently, and so are its gradient and its states.
    shown.view.setAnalysis(analysed("digits.yaml", {"train.steps=20", "sharding.layers.1.w=P()"}));
    shown.view.goOnFrom(folder.filePath("kept/step-000000010"));
    QTRY_COMPARE_WITH_TIMEOUT(shown.state(), TrainingState::Finished, 60'000);
    QCOMPARE(shown.view.job().snapshot().layoutSwitches.size(), std::size_t{1});
    QVERIFY2(shown.view.job().snapshot().layoutSwitches.front().what.ends_with(" arrays sharded differently"),
        shown.view.job().snapshot().layoutSwitches.front().what.c_str());

    shown.view.goOnFrom(folder.filePath("nothing"));
    QTRY_COMPARE(shown.state(), TrainingState::Failed);
    QVERIFY2(shown.words().contains("MW1001"), qPrintable(shown.words()));
}

void TestTrainingView::commandAsTicked()
{
    Shown shown(digits(25));
    QCOMPARE(shown.view.command(), QString("meshwright train examples/digits.yaml --set train.steps=25"));
    shown.steps().setValue(40);
    shown.box("Verify").click();
    QCOMPARE(shown.view.command(),
        QString("meshwright train examples/digits.yaml --set train.steps=25 --set train.steps=40 --verify"));
    shown.view.setAnalysis(analysed("digits.yaml", {"train.steps=25", "batch=50"})); // another edit leaves the choice alone
    QCOMPARE(shown.steps().value(), 40);
    shown.view.setAnalysis(analysed("digits.yaml")); // 300 steps: the study's own edit counts
    QCOMPARE(shown.steps().value(), 300);
}

void TestTrainingView::picture()
{
    Shown shown(digits(3));
    QVERIFY(!shown.view.picture().items.empty()); // also of nothing
    shown.view.train();
    QTRY_COMPARE_WITH_TIMEOUT(shown.state(), TrainingState::Finished, 60'000);
    const DisplayList picture = shown.view.picture();
    QVERIFY(picture.height > picture.width * 0.5);
    QStringList words;
    for (const DisplayItem& item : picture.items) {
        if (const auto* text = std::get_if<TextShape>(&item.shape))
            words << QString::fromStdString(text->text);
    }
    for (const char* word : {"Loss", "Accuracy", "sharded", "one device", "step"})
        QVERIFY2(words.contains(word), qPrintable(words.join(", ")));
}

void TestTrainingView::themes()
{
    Shown shown(digits(3));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    for (const auto& [choice, theme] :
        {std::pair(ui::ThemeChoice::Dark, Theme::Dark), std::pair(ui::ThemeChoice::Light, Theme::Light)}) {
        ui::applyTheme(*qApp, choice);
        QCoreApplication::processEvents();
        const QImage image = shown.view.grab().toImage();
        const qreal scale = image.devicePixelRatio();
        QCOMPARE(image.pixelColor(qRound(3 * scale), qRound(3 * scale)).rgb(), ui::qtColour(ColourRole::Surface, theme).rgb());
        const QPoint inPlot = shown.plot().geometry().topLeft() + QPoint(5, 5);
        QCOMPARE(image.pixelColor((QPointF(inPlot) * scale).toPoint()).rgb(), ui::qtColour(ColourRole::Background, theme).rgb());
    }
}

void TestTrainingView::keyboardReachesAll()
{
    Shown shown(digits(3));
    QVERIFY(QTest::qWaitForWindowExposed(&shown.view));
    QStringList visited;
    shown.button("Train").setFocus();
    for (int i = 0; i < 7; ++i) {
        QWidget* focus = shown.view.focusWidget();
        visited << focus->metaObject()->className();
        QTest::keyClick(focus, Qt::Key_Tab);
    }
    QCOMPARE(visited,
        (QStringList{
            "QPushButton", "QSpinBox", "QCheckBox", "QCheckBox", "QComboBox", "QPushButton", "meshwright::ui::CurvePlot"}));
}

void TestTrainingView::names()
{
    Shown shown(digits(3));
    QVERIFY(!shown.plot().accessibleName().isEmpty());
    QVERIFY(!shown.steps().accessibleName().isEmpty());
    for (const QProgressBar* bar : shown.view.findChildren<QProgressBar*>())
        QVERIFY(!bar->accessibleName().isEmpty());
    for (const QPushButton* button : shown.view.findChildren<QPushButton*>())
        QVERIFY(!button->toolTip().isEmpty());
}

MESHWRIGHT_TEST(TestTrainingView)

} // namespace tst_training_view

#include "tst_training_view.moc"
