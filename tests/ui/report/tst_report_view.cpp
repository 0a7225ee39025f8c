// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/sim/report/reports.h"
#include "tests/test_class.h"
#include "ui/report/report_view.h"

namespace tst_report_view {

using namespace meshwright;
using namespace meshwright::tests;
using namespace meshwright::ui;

/// The report in the window: put together when it is seen, on pages, saved by a button.
class TestReportView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void waitsUntilItIsSeen();
    void followsEdits();
    void latestEditWins();
    void adviceCanBeLeftOut();
    void showsTraining();
    void savesByButton();
    void pagesFillTheWidth_data();
    void pagesFillTheWidth();
    void scrollsByKeys();
    void followsTheTheme();
    void picturesHaveTooltips();
    void brokenStudyHasAReport();
    void commandIsForTheShell();
    void endsWhileWorking();
};

namespace {

/// Shows the view and waits for the report of what it was given.
bool waitForReport(ReportView& view)
{
    QSignalSpy shown(&view, &ReportView::reportShown);
    view.show();
    return QTest::qWaitForWindowExposed(&view) && (shown.count() > 0 || shown.wait(10'000));
}

QString pageText(const DisplayList& page)
{
    QStringList texts;
    for (const DisplayItem& item : page.items) {
        if (const TextShape* text = std::get_if<TextShape>(&item.shape))
            texts << QString::fromStdString(text->text);
    }
    return texts.join(' ');
}

QPushButton* saveButton(ReportView& view)
{
    return view.findChild<QPushButton*>();
}

} // namespace

void TestReportView::waitsUntilItIsSeen()
{
    Selection selection;
    ReportView view(selection);
    view.setAnalysis(analysed(exampleSource("wide_mlp")));
    QTest::qWait(50);
    QCOMPARE(view.pageCount(), 0);
    QVERIFY(waitForReport(view));
    QVERIFY(view.pageCount() > 3);
    QVERIFY(pageText(view.picture()).contains("35.6 ms"));
}

void TestReportView::followsEdits()
{
    Selection selection;
    ReportView view(selection);
    view.resize(900, 700);
    view.setAnalysis(analysed(exampleSource("wide_mlp")));
    QVERIFY(waitForReport(view));
    QSignalSpy shown(&view, &ReportView::reportShown);
    view.setAnalysis(analysed(exampleSource("wide_mlp", {"mesh.data=8", "mesh.model=1"})));
    QVERIFY(view.pageCount() > 3); // the old pages stay until the new ones are there
    QVERIFY(shown.wait(10'000));
    QVERIFY(pageText(view.picture()).contains("Keep this layout"));
}

void TestReportView::latestEditWins()
{
    Selection selection;
    ReportView view(selection);
    view.setAnalysis(analysed(exampleSource("wide_mlp")));
    QVERIFY(waitForReport(view));
    QSignalSpy shown(&view, &ReportView::reportShown);
    for (int batch = 1; batch <= 6; ++batch)
        view.setAnalysis(analysed(exampleSource("wide_mlp", {"batch=" + std::to_string(8192 * batch)})));
    QVERIFY(shown.wait(10'000));
    QTest::qWait(100);
    QCOMPARE(shown.count(), qsizetype{1});
    QVERIFY(view.currentReport().findSection("origin") != nullptr);
    QCOMPARE(view.currentReport().study.settings, (std::vector<std::string>{"batch=49152"}));
}

/// While changes are simulated for advice the view counts them, and shows the report without them when asked.
void TestReportView::adviceCanBeLeftOut()
{
    Selection selection;
    ReportView view(selection);
    const auto analysis = analysed(exampleSource("transformer_64"));
    view.setAnalysis(analysis);
    QSignalSpy shown(&view, &ReportView::reportShown);
    view.show();
    auto* skip = view.findChildren<QPushButton*>().at(1);
    QVERIFY(skip->isVisible());
    skip->click();
    QVERIFY(!skip->isVisible());
    QVERIFY(shown.wait(10'000));
    QVERIFY(view.pageCount() > 3);
    QVERIFY(view.currentReport().findSection("tried") == nullptr);

    ReportJob job;
    std::vector<int> counts;
    connect(&job, &ReportJob::progressed, &job, [&](int trials) { counts.push_back(trials); });
    QSignalSpy finished(&job, &ReportJob::finished);
    job.request(analysis, {}, 3);
    QVERIFY(finished.wait(30'000));
    QCOMPARE(counts, (std::vector<int>{1, 2, 3}));
    QVERIFY(finished.front().front().value<std::shared_ptr<const sim::Report>>()->findSection("tried") != nullptr);
}

void TestReportView::showsTraining()
{
    const sim::StudySource source = exampleSource("digits", {"train.steps=2"});
    const Study study = valueOf(readStudy(source.text, source.file, source.settings));
    const auto result = std::make_shared<const TrainingResult>(valueOf(sim::trainStudy(study, {.verify = true}, {}, {})));
    Selection selection;
    ReportView view(selection);
    view.setAnalysis(analysed(source));
    QVERIFY(view.currentReport().trainingResult.empty());
    view.setTraining(result);
    QVERIFY(!view.currentReport().trainingResult.empty());
    QVERIFY(view.command().contains("--train"));
    view.setTraining(nullptr);
    QVERIFY(view.currentReport().trainingResult.empty());
}

void TestReportView::savesByButton()
{
    Selection selection;
    ReportView view(selection);
    view.resize(700, 500);
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    QPushButton* save = saveButton(view);
    QVERIFY(save != nullptr && !save->isEnabled()); // there is nothing to save
    view.setAnalysis(analysed(exampleSource("fsdp")));
    QVERIFY(save->isEnabled());
    QSignalSpy requested(&view, &ReportView::saveRequested);
    QTest::mouseClick(save, Qt::LeftButton);
    QCOMPARE(requested.count(), qsizetype{1});
    save->setFocus();
    QTest::keyClick(save, Qt::Key_Space);
    QCOMPARE(requested.count(), qsizetype{2});
}

void TestReportView::pagesFillTheWidth_data()
{
    QTest::addColumn<int>("width");
    QTest::newRow("narrow") << 400;
    QTest::newRow("usual") << 900;
    QTest::newRow("wide") << 1600;
}

void TestReportView::pagesFillTheWidth()
{
    QFETCH(int, width);
    Selection selection;
    ReportView view(selection);
    view.resize(width, 600);
    view.setAnalysis(analysed(exampleSource("wide_mlp")));
    QVERIFY(waitForReport(view));
    auto* area = view.findChild<QScrollArea*>();
    QVERIFY(area->widget()->height() > 3 * area->viewport()->height());
    // A page never leaves the view to the right, but where it would be too small to read.
    QVERIFY(width < 600 || area->horizontalScrollBar()->maximum() == 0);
    const QImage image = view.grab().toImage();
    const double scale = image.devicePixelRatio();
    const QPoint middle(area->viewport()->mapTo(&view, area->viewport()->rect().center()));
    QCOMPARE(image.pixel(qRound(middle.x() * scale), qRound((area->y() + 20) * scale)),
        qtColour(ColourRole::Background, Theme::Light).rgb());
}

void TestReportView::scrollsByKeys()
{
    Selection selection;
    ReportView view(selection);
    view.resize(800, 500);
    view.setAnalysis(analysed(exampleSource("wide_mlp")));
    QVERIFY(waitForReport(view));
    auto* area = view.findChild<QScrollArea*>();
    QVERIFY(!area->accessibleName().isEmpty());
    QCOMPARE(view.focusProxy(), area);
    const QString first = pageText(view.picture());
    for (int i = 0; i < 6; ++i)
        QTest::keyClick(area, Qt::Key_PageDown);
    QVERIFY(area->verticalScrollBar()->value() > 1000);
    QVERIFY(pageText(view.picture()) != first); // what is exported is what is seen
}

void TestReportView::followsTheTheme()
{
    Selection selection;
    ReportView view(selection);
    view.resize(800, 500);
    view.setPalette(paletteOf(Theme::Light));
    view.setAnalysis(analysed(exampleSource("wide_mlp")));
    QVERIFY(waitForReport(view));
    const auto has = [&](Theme theme) {
        const QImage image = view.grab().toImage();
        const int y
            = qRound((view.findChild<QScrollArea*>()->y() + 30) * image.devicePixelRatio()); // the margin of the first page
        const QRgb wanted = qtColour(ColourRole::Background, theme).rgb();
        int count = 0;
        for (int x = 0; x < image.width(); x += 7)
            count += image.pixel(x, y) == wanted ? 1 : 0;
        return count > image.width() / 28;
    };
    QVERIFY(has(Theme::Light) && !has(Theme::Dark));
    view.setPalette(paletteOf(Theme::Dark));
    QVERIFY(has(Theme::Dark) && !has(Theme::Light));
}

void TestReportView::picturesHaveTooltips()
{
    Selection selection;
    ReportView view(selection);
    view.resize(860, 800);
    view.setAnalysis(analysed(exampleSource("wide_mlp")));
    QVERIFY(waitForReport(view));
    auto* area = view.findChild<QScrollArea*>();
    QWidget* pages = area->widget();
    // Somewhere on the pages lies a shard of layers.1.w.
    bool found = false;
    for (int y = 0; y < pages->height() && !found; y += 24) {
        for (int x = 60; x < pages->width() && !found; x += 60) {
            QHelpEvent help(QEvent::ToolTip, {x, y}, pages->mapToGlobal(QPoint(x, y)));
            QApplication::sendEvent(pages, &help);
            found = QToolTip::text().startsWith("layers.1.w[");
        }
    }
    QVERIFY(found);
}

void TestReportView::brokenStudyHasAReport()
{
    Selection selection;
    ReportView view(selection);
    view.setAnalysis(analysed({"meshwright: 1\nmodel: {mlp: {layers: [4]}}\n", "broken.yaml", {}}));
    QVERIFY(waitForReport(view));
    QVERIFY(pageText(view.picture()).contains("Fix the study"));
}

void TestReportView::commandIsForTheShell()
{
    Selection selection;
    ReportView view(selection);
    view.setAnalysis(analysed({exampleSource("fsdp").text, "my study.yaml", {"mesh.data=8"}}));
    QCOMPARE(view.command(), "meshwright report 'my study.yaml' --set mesh.data=8 -o report.html");
}

void TestReportView::endsWhileWorking()
{
    Selection selection;
    for (int i = 0; i < 10; ++i) {
        ReportView view(selection);
        view.setAnalysis(analysed(exampleSource("wide_mlp", {"batch=" + std::to_string(4096 * (i + 1))})));
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
    }
}

MESHWRIGHT_TEST(TestReportView)

} // namespace tst_report_view

#include "tst_report_view.moc"
