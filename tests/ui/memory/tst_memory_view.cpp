// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/text.h"
#include "tests/test_class.h"
#include "ui/memory/live_model.h"
#include "ui/memory/memory_chart.h"
#include "ui/memory/memory_view.h"
#include "ui/theme/theme.h"
#include "ui/widgets/notice.h"

namespace tst_memory_view {

using namespace meshwright;
using namespace meshwright::ui;

/// Does it fit, what was in memory when, and what is live at the peak.
class TestMemoryView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void emptyAtFirst();
    void headlineSaysWhetherItFits();
    void pointingReadsAMoment();
    void theKeyboardReadsMomentsToo();
    void tableOfThePeak();
    void modelKeepsTheRules();
    void rowsSelectArrays();
    void theFocusSelectsNothing();
    void selectionOfOthersSelectsRows();
    void theLargestComeFirst();
    void opensAtTheTop_data();
    void opensAtTheTop();
    void clickOnThePeak();
    void brokenStudiesKeepTheLastPicture();
    void resizes();
    void pictureAndCommand();
    void bothThemes();

private:
    std::shared_ptr<const sim::Analysis> analysed(const std::vector<std::string>& settings = {"batch=8192"});

    std::unique_ptr<sim::Session> m_session;
    std::string m_text;
};

namespace {

struct Shown {
    explicit Shown(std::shared_ptr<const sim::Analysis> analysis)
        : view(selection)
    {
        view.resize(760, 640);
        if (analysis)
            view.setAnalysis(std::move(analysis));
        view.show();
        (void)QTest::qWaitForWindowExposed(&view);
        QCoreApplication::processEvents();
        chart = view.findChild<MemoryChart*>();
        table = view.findChild<QTableView*>();
    }

    bool says(const QString& words) const
    {
        const auto labels = view.findChildren<QLabel*>();
        return std::any_of(labels.begin(), labels.end(),
            [&](const QLabel* label) { return label->isVisible() && label->text().contains(words); });
    }

    QString cell(int row, int column) const { return table->model()->index(row, column).data().toString(); }

    void moveTo(double seconds) const
    {
        const MemoryFrame frame = memoryFrame(chart->memory());
        const QPointF place(frame.xOf(seconds), frame.topLeft.y + frame.height / 2.0);
        QMouseEvent move(QEvent::MouseMove, place, chart->mapToGlobal(place), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
        QCoreApplication::sendEvent(chart, &move);
    }

    Selection selection;
    MemoryView view;
    MemoryChart* chart = nullptr;
    QTableView* table = nullptr;
};

} // namespace

void TestMemoryView::initTestCase()
{
    QFile file(MESHWRIGHT_SOURCE_DIR "/resources/examples/wide_mlp.yaml");
    QVERIFY(file.open(QIODevice::ReadOnly));
    m_text = file.readAll().toStdString();
    m_session = std::make_unique<sim::Session>(valueOf(sim::defaultCatalogue()));
    qApp->setPalette(paletteOf(Theme::Light));
}

std::shared_ptr<const sim::Analysis> TestMemoryView::analysed(const std::vector<std::string>& settings)
{
    return m_session->analyse({m_text, "wide_mlp.yaml", settings});
}

void TestMemoryView::emptyAtFirst()
{
    const Shown shown(nullptr);
    QVERIFY(shown.says("Open a study or an example"));
    QVERIFY(!shown.chart->isVisible() && !shown.table->isVisible());
    QVERIFY(shown.view.picture().width > 0.0);
    QCOMPARE(shown.view.command(), QString("meshwright simulate study.yaml"));
}

void TestMemoryView::headlineSaysWhetherItFits()
{
    const Shown fits(analysed());
    QVERIFY(fits.says("Peak 719 MiB of 15.4 GiB usable (16.0 GiB − 655 MiB reserve): fits, 14.7 GiB free"));
    QVERIFY(fits.says("All 8 devices are equal"));

    const Shown pipeline(analysed({"mesh={pipe: 2, data: 4}", "sharding={x: \"P('data', None)\", y: \"P('data', None)\"}",
        "pipeline={axis: pipe, stages: 2, microbatches: 8}"}));
    QVERIFY(pipeline.says("stage that needs most")); // stages differ
    const Shown microbatches(analysed({"pipeline={microbatches: 2}"}));
    QVERIFY(microbatches.says("All 8 devices are equal"));

    const Shown full(analysed({"batch=524288"}));
    QVERIFY(full.says("does not fit, "));
    const auto notices = full.view.findChildren<Notice*>();
    const auto headline
        = std::find_if(notices.begin(), notices.end(), [](const Notice* notice) { return notice->text().startsWith("Peak"); });
    QCOMPARE((*headline)->palette().color(QPalette::WindowText).rgb(), qtColour(ColourRole::Error, Theme::Light).rgb());
}

void TestMemoryView::pointingReadsAMoment()
{
    const auto analysis = analysed();
    const Shown shown(analysis);
    QVERIFY(shown.says("Point at a moment in the picture"));
    const sim::Simulation& simulation = analysis->simulated->simulation;
    shown.moveTo(simulation.stepSeconds / 2.0);
    QVERIFY(shown.chart->moment().has_value());
    const sim::MemoryPoint& point = simulation.memory[*shown.chart->moment()];
    QVERIFY(point.seconds <= simulation.stepSeconds / 2.0 + 1e-4);
    const QString total = QString::fromStdString(formatBytes(static_cast<double>(point.total))).replace(' ', QChar::Nbsp);
    QVERIFY(shown.says("in use: " + total + " = "));
    QVERIFY(shown.says(QString("parameters") + QChar::Nbsp));

    // The guide is drawn in the accent colour where the pointer is.
    const MemoryFrame frame = memoryFrame(shown.chart->memory());
    const QImage image = shown.chart->grab().toImage();
    const double ratio = image.devicePixelRatio();
    int accented = 0;
    const int y = qRound((frame.topLeft.y + 4.0) * ratio);
    for (int x = 0; x < image.width(); ++x)
        accented += image.pixel(x, y) == qtColour(ColourRole::Accent, Theme::Light).rgb() ? 1 : 0;
    QVERIFY(accented >= 1 && accented <= 4);

    QEvent leave(QEvent::Leave);
    QCoreApplication::sendEvent(shown.chart, &leave);
    QVERIFY(!shown.chart->moment().has_value());
    QVERIFY(shown.says("Point at a moment in the picture"));
}

void TestMemoryView::theKeyboardReadsMomentsToo()
{
    Shown shown(analysed());
    shown.view.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&shown.view));
    shown.chart->setFocus();
    // The keyboard is on no part of the picture yet: nothing is framed.
    const QImage image = shown.chart->grab().toImage();
    for (int y = 0; y < image.height(); ++y) {
        for (int x = 0; x < image.width(); ++x)
            QVERIFY(image.pixel(x, y) != qtColour(ColourRole::Accent, Theme::Light).rgb());
    }
    QTest::keyClick(shown.chart, Qt::Key_Right);
    QVERIFY(shown.chart->moment().has_value());
    QCOMPARE(shown.chart->seconds(), 0.0);
    QTest::keyClick(shown.chart, Qt::Key_Right);
    QVERIFY(shown.chart->seconds() > 0.0);
    QTest::keyClick(shown.chart, Qt::Key_Left);
    QCOMPARE(shown.chart->seconds(), 0.0);
    QTest::keyClick(shown.chart, Qt::Key_Left); // nothing before it
    QCOMPARE(shown.chart->seconds(), 0.0);
    for (int i = 0; i < 1000; ++i)
        QTest::keyClick(shown.chart, Qt::Key_Right);
    QCOMPARE(shown.chart->seconds(), shown.chart->memory().moments.back().seconds);
    QTest::keyClick(shown.chart, Qt::Key_Escape);
    QVERIFY(!shown.chart->moment().has_value());
}

void TestMemoryView::tableOfThePeak()
{
    const auto analysis = analysed();
    const Shown shown(analysis);
    const auto& live = analysis->simulated->liveAtPeak;
    QCOMPARE(shown.table->model()->rowCount(), static_cast<int>(live.size()));
    QVERIFY(shown.says(QString("At the peak %1 arrays are in memory").arg(live.size())));
    QCOMPARE(shown.cell(0, LiveModel::Bytes),
        QString::fromStdString(formatBytes(static_cast<double>(live.front().bytes)))); // the largest first
    double shares = 0.0;
    for (int row = 0; row < shown.table->model()->rowCount(); ++row)
        shares += shown.table->model()->index(row, LiveModel::Share).data(LiveModel::kShareRole).toDouble();
    QVERIFY(std::fabs(shares - 1.0) < 1e-9);
    // By name, from the header.
    shown.table->sortByColumn(LiveModel::Name, Qt::AscendingOrder);
    for (int row = 1; row < shown.table->model()->rowCount(); ++row)
        QVERIFY(shown.cell(row - 1, LiveModel::Name) <= shown.cell(row, LiveModel::Name));
}

void TestMemoryView::modelKeepsTheRules()
{
    LiveModel model;
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
    QCOMPARE(model.rowCount(), 0);
    model.setSimulated(analysed()->simulated);
    QVERIFY(model.rowCount() > 0);
    QCOMPARE(model.headerData(LiveModel::Share, Qt::Horizontal).toString(), QString("Share"));
    model.setSimulated(nullptr);
    QCOMPARE(model.rowCount(), 0);
}

void TestMemoryView::rowsSelectArrays()
{
    const auto analysis = analysed();
    Shown shown(analysis);
    int clicked = 0;
    for (int row = 0; row < shown.table->model()->rowCount(); ++row) {
        const QString name = shown.cell(row, LiveModel::Name);
        if (!analysis->findArray(name.toStdString()))
            continue;
        shown.table->scrollTo(shown.table->model()->index(row, 0));
        QTest::mouseClick(
            shown.table->viewport(), Qt::LeftButton, {}, shown.table->visualRect(shown.table->model()->index(row, 0)).center());
        QCOMPARE(shown.selection.array(), name);
        ++clicked;
    }
    QVERIFY(clicked >= 4);
}

void TestMemoryView::theFocusSelectsNothing()
{
    Shown shown(analysed());
    shown.view.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&shown.view));
    shown.selection.setArray("not in memory");
    shown.chart->setFocus();
    shown.table->setFocus(Qt::TabFocusReason);
    QVERIFY(shown.table->hasFocus());
    QCOMPARE(shown.selection.array(), QString("not in memory"));
}

void TestMemoryView::selectionOfOthersSelectsRows()
{
    Shown shown(analysed());
    shown.selection.setArray("layers.1.w");
    QCOMPARE(shown.cell(shown.table->currentIndex().row(), LiveModel::Name), QString("layers.1.w"));
    shown.selection.setArray("not in memory");
    QVERIFY(!shown.table->currentIndex().isValid());
    // A new analysis keeps what is selected.
    shown.selection.setArray("layers.2.w");
    shown.view.setAnalysis(analysed({"batch=16384"}));
    QCOMPARE(shown.cell(shown.table->currentIndex().row(), LiveModel::Name), QString("layers.2.w"));
}

/// Also when something small is selected already, as it is when a study is opened.
void TestMemoryView::theLargestComeFirst()
{
    Shown shown(analysed());
    const int last = shown.table->model()->rowCount() - 1;
    shown.selection.setArray(shown.cell(last, LiveModel::Name));
    const auto isSeen = [&](int row) {
        return shown.table->viewport()->rect().intersects(shown.table->visualRect(shown.table->model()->index(row, 0)));
    };
    QVERIFY2(!isSeen(0) && isSeen(last), "a selection of another view is scrolled to");
    shown.view.setAnalysis(analysed({"batch=4096"}));
    QVERIFY(isSeen(0));
    QCOMPARE(shown.cell(shown.table->currentIndex().row(), LiveModel::Name), shown.selection.array());
}

void TestMemoryView::opensAtTheTop_data()
{
    QTest::addColumn<bool>("isShownFirst"); // before there is anything to show
    QTest::newRow("hidden while the study is simulated") << false;
    QTest::newRow("seen while the study is simulated") << true;
}

/// Whatever small array is selected when the study is opened.
void TestMemoryView::opensAtTheTop()
{
    QFETCH(const bool, isShownFirst);
    QString smallest;
    {
        Shown all(analysed());
        smallest = all.cell(all.table->model()->rowCount() - 1, LiveModel::Name);
    }
    Selection selection;
    MemoryView view(selection);
    view.resize(760, 640);
    if (isShownFirst)
        view.show();
    selection.setArray(smallest);
    view.setAnalysis(analysed());
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    QCoreApplication::processEvents();
    const auto* table = view.findChild<QTableView*>();
    QVERIFY(table->currentIndex().isValid());
    QVERIFY(table->viewport()->rect().intersects(table->visualRect(table->model()->index(0, 0))));
}

void TestMemoryView::clickOnThePeak()
{
    Shown shown(analysed());
    shown.view.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&shown.view));
    shown.chart->setFocus();
    const QPoint peak = shown.chart->placeOf("memory:peak");
    QVERIFY(!peak.isNull());
    QTest::mouseClick(shown.chart, Qt::LeftButton, {}, peak);
    QVERIFY(shown.table->hasFocus());
    QCOMPARE(shown.table->currentIndex().row(), 0);
}

void TestMemoryView::brokenStudiesKeepTheLastPicture()
{
    Shown shown(analysed());
    shown.view.setAnalysis(analysed({"mesh.data=16"}));
    QVERIFY(shown.says("Not up to date: "));
    QVERIFY(!shown.chart->isEnabled() && !shown.table->isEnabled());
    QVERIFY(shown.view.picture().title.starts_with("Peak 719 MiB"));
    QVERIFY(shown.says("Peak 719 MiB"));
    // Pale, but still in its colours: what lies under an area does not shine through.
    const MemoryFrame frame = memoryFrame(shown.chart->memory());
    const QImage image = shown.chart->grab().toImage();
    const QPointF inParameters(frame.topLeft.x + 10.0, frame.topLeft.y + frame.height - 10.0);
    const QColor pale = image.pixelColor((inParameters * image.devicePixelRatio()).toPoint());
    const QColor full = qtColour(ColourRole::Compute, Theme::Light);
    QVERIFY(std::abs(pale.red() - (255 - 0.4 * (255 - full.red()))) < 4.0);
    QVERIFY(std::abs(pale.blue() - (255 - 0.4 * (255 - full.blue()))) < 4.0);
    shown.view.setAnalysis(analysed());
    QVERIFY(!shown.says("Not up to date"));
    QVERIFY(shown.chart->isEnabled() && shown.table->isEnabled());

    // From the start: why there is nothing to see.
    const Shown never(analysed({"mesh.data=16"}));
    QVERIFY(!never.chart->isVisible());
    QVERIFY(never.says("32 devices"));
}

void TestMemoryView::resizes()
{
    Shown shown(analysed());
    shown.view.resize(1200, 900);
    QCoreApplication::processEvents();
    QCOMPARE(shown.chart->picture().width, double(shown.chart->width()));
    shown.view.resize(480, 480);
    QCoreApplication::processEvents();
    QCOMPARE(shown.chart->picture().width, double(shown.chart->width()));
    QVERIFY(shown.chart->width() < 500);
}

void TestMemoryView::pictureAndCommand()
{
    const Shown shown(analysed());
    QVERIFY(shown.view.picture().title.starts_with("Peak 719 MiB of 15.4 GiB usable"));
    QCOMPARE(shown.view.command(), QString("meshwright simulate wide_mlp.yaml --set batch=8192"));
}

void TestMemoryView::bothThemes()
{
    Shown shown(analysed());
    const auto corner = [&] { return shown.chart->grab().toImage().pixel(2, 2); };
    QCOMPARE(corner(), qtColour(ColourRole::Background, Theme::Light).rgb());
    qApp->setPalette(paletteOf(Theme::Dark));
    QCoreApplication::processEvents();
    QCOMPARE(corner(), qtColour(ColourRole::Background, Theme::Dark).rgb());
    qApp->setPalette(paletteOf(Theme::Light));
}

MESHWRIGHT_TEST(TestMemoryView)

} // namespace tst_memory_view

#include "tst_memory_view.moc"
