// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/device_colours.h"
#include "core/support/file.h"
#include "sim/report/hlo_report.h"
#include "tests/test_class.h"
#include "ui/explain/explain_view.h"

#include <QLabel>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTextBrowser>

namespace tst_explain_view {

using namespace meshwright;

/// What is pasted or dropped is explained: the messages that are known, and honestly that none is.
class TestExplainView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void explainsWhatIsTyped();
    void everyRowShowsItsMessage();
    void whatToDoComesBeforePictures();
    void layoutsAreDrawn();
    void explainsFiles();
    void saysThatNothingIsKnown();
    void logsOfNcclTestsSayWhatCalibrateReads_data();
    void logsOfNcclTestsSayWhatCalibrateReads();
    void saysWhyAFileCannotBeRead();
    void forgetsWhatIsDeleted();
    void listsTheCollectivesOfDumps();
    void comparesDumps();
    void refusesDamagedDumps();
};

namespace {

const QString kLog
    = QStringLiteral("step 1\n"
                     "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.\n"
                     "step 2\n"
                     "ValueError: One of pjit arguments was given the sharding of NamedSharding(mesh=Mesh('x': 4), "
                     "spec=PartitionSpec('x',)), which implies that the global size of its dimension 0 should be divisible by 4, "
                     "but it is equal to 10 (full shape: (10,))\n");

struct Shown {
    Shown()
    {
        view.resize(900, 600);
        view.show();
    }

    QListWidget* list() { return view.findChild<QListWidget*>(); }
    QString message() { return view.findChild<QTextBrowser*>()->toPlainText(); }
    QString status() { return view.findChild<QLabel*>()->text(); }

    ui::Selection selection;
    ui::ExplainView view{selection};
};

} // namespace

void TestExplainView::explainsWhatIsTyped()
{
    Shown shown;
    shown.view.findChild<QPlainTextEdit*>()->setPlainText(kLog);
    QTRY_VERIFY(shown.view.explained() != nullptr);
    QCOMPARE(shown.view.explained()->messages.size(), std::size_t{2});
    QCOMPARE(shown.list()->count(), 2);
    QVERIFY2(shown.status().startsWith("2 known messages"), qPrintable(shown.status()));
    QVERIFY(shown.list()->item(0)->text().contains("line 2"));
    QVERIFY(shown.view.command() == "meshwright explain -");
    QVERIFY(shown.view.picture().items.size() > 10);
}

void TestExplainView::everyRowShowsItsMessage()
{
    Shown shown;
    shown.view.explainText(kLog);
    QTRY_VERIFY(shown.view.explained() != nullptr);
    for (const int row : {1, 0}) {
        shown.list()->setCurrentRow(row);
        const Explanation& message = shown.view.explained()->messages[static_cast<std::size_t>(row)];
        QVERIFY(shown.message().contains(QString::fromStdString(message.title)));
        QVERIFY(!message.remedies.empty());
        for (const Remedy& remedy : message.remedies)
            QVERIFY2(
                shown.message().simplified().contains(QString::fromStdString(remedy.text).simplified()), remedy.text.c_str());
    }
}

/// Pictures are long: what to do is seen without scrolling, and one line is no "1 lines".
void TestExplainView::whatToDoComesBeforePictures()
{
    Shown shown;
    shown.view.explainText(
        "[SPMD] Involuntary full rematerialization. The compiler was not able to go from sharding "
        "{devices=[4,1,2]<=[8]} to {devices=[1,4,2]<=[8]} without doing a full rematerialization of the tensor "
        "for HLO operation: %dot.5 = f32[4096,2048,512]{2,1,0} dot(f32[4096,8192]{1,0} %p0, "
        "f32[8192,2048,512]{2,1,0} %p1).");
    QTRY_VERIFY(shown.view.explained() != nullptr);
    const QString message = shown.message();
    QVERIFY(message.contains("What to do") && message.contains("before: "));
    QVERIFY(message.indexOf("What to do") < message.indexOf("before: "));
    QVERIFY2(shown.status().endsWith("(1 line)."), qPrintable(shown.status()));
}

/// Before and after are drawn as layouts are, in the colours of their devices.
void TestExplainView::layoutsAreDrawn()
{
    Shown shown;
    shown.view.explainText(
        "[SPMD] Involuntary full rematerialization. The compiler was not able to go from sharding "
        "{devices=[4,1,2]<=[8]} to {devices=[1,4,2]<=[8]} without doing a full rematerialization of the tensor "
        "for HLO operation: %dot.5 = f32[4096,2048,512]{2,1,0} dot(f32[4096,8192]{1,0} %p0, "
        "f32[8192,2048,512]{2,1,0} %p1).");
    QTRY_VERIFY(shown.view.explained() != nullptr);
    const std::vector<MessagePicture>& pictures = shown.view.explained()->messages.front().pictures;
    QCOMPARE(pictures.size(), std::size_t{2});
    const auto* document = shown.view.findChild<QTextBrowser*>()->document();
    for (std::size_t i = 0; i < pictures.size(); ++i) {
        QVERIFY(pictures[i].layout);
        const auto image
            = document->resource(QTextDocument::ImageResource, QUrl(QStringLiteral("layout:%1").arg(i))).value<QImage>();
        QVERIFY(!image.isNull());
        const Colour first = DeviceColours(pictures[i].layout->mesh).of(0);
        bool isSeen = false;
        for (int y = 0; y < image.height() && !isSeen; ++y) {
            for (int x = 0; x < image.width() && !isSeen; ++x)
                isSeen = image.pixelColor(x, y).rgb() == QColor(first.red, first.green, first.blue).rgb();
        }
        QVERIFY(isSeen);
    }
    QVERIFY(shown.message().contains(QString::fromStdString(pictures[0].title)));
}

void TestExplainView::explainsFiles()
{
    const QTemporaryDir folder;
    const QString path = folder.filePath("train.log");
    QVERIFY(writeFileAtomically(path.toStdString(), kLog.toStdString()));
    Shown shown;
    shown.view.explainFile(path);
    QTRY_VERIFY(shown.view.explained() != nullptr);
    QCOMPARE(shown.list()->count(), 2);
    QVERIFY(shown.status().contains("train.log"));
    QVERIFY(shown.view.command().endsWith("train.log"));
    const auto* text = shown.view.findChild<QPlainTextEdit*>();
    QCOMPARE(text->toPlainText(), kLog); // beside what is found in it
    shown.list()->setCurrentRow(1);
    QCOMPARE(text->textCursor().blockNumber(), 3);
}

void TestExplainView::saysThatNothingIsKnown()
{
    Shown shown;
    shown.view.explainText("all is well\n");
    QTRY_VERIFY(shown.view.explained() != nullptr);
    QVERIFY2(shown.status().startsWith("No known message"), qPrintable(shown.status()));
    QCOMPARE(shown.list()->count(), 0);
    QCOMPARE(shown.message(), QString());
}

void TestExplainView::logsOfNcclTestsSayWhatCalibrateReads_data()
{
    QTest::addColumn<QString>("rows");
    QTest::addColumn<QString>("status");
    QTest::addColumn<QString>("says");

    const QString row = " 1048576 262144 float sum -1 100.0 10.48 10.48 0 100.0 10.48 10.48 0\n";
    QTest::newRow("whole") << row << "all_reduce.log is a log of nccl-tests."
                           << "all-reduce";
    QTest::newRow("a row is cut") << row + " 2097152 524288 float sum -1 100.0\n"
                                  << "all_reduce.log is a log of nccl-tests that cannot be read as it stands."
                                  << "MW1714";
}

void TestExplainView::logsOfNcclTestsSayWhatCalibrateReads()
{
    QFETCH(QString, rows);
    QFETCH(QString, status);
    QFETCH(QString, says);
    const QTemporaryDir folder;
    const QString path = folder.filePath("all_reduce.log");
    const QString head = "#  Collective test starting: all_reduce_perf\n"
                         "#  Rank  0 Group  0 Pid 1 on host1 device  0 [0x07] NVIDIA A100-SXM4-80GB\n"
                         "#  Rank  1 Group  0 Pid 1 on host1 device  1 [0x07] NVIDIA A100-SXM4-80GB\n"
                         "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
    QVERIFY(writeFileAtomically(path.toStdString(), (head + rows).toStdString()));
    Shown shown;
    shown.view.explainFile(path);
    QTRY_COMPARE(shown.status(), status);
    QVERIFY2(shown.message().contains(says), qPrintable(shown.message()));
    QVERIFY(shown.message().contains("meshwright calibrate --nccl " + path));
    QCOMPARE(shown.view.command(), "meshwright calibrate --nccl " + path);
    shown.view.explainText("all is well\n");
    QTRY_VERIFY(shown.status().startsWith("No known message"));
    QCOMPARE(shown.view.command(), QString("meshwright explain -"));
}

void TestExplainView::saysWhyAFileCannotBeRead()
{
    Shown shown;
    shown.view.explainFile("/no/such/file.log");
    QTRY_VERIFY(!shown.view.isBusy());
    QVERIFY2(shown.status().contains("/no/such/file.log"), qPrintable(shown.status()));
}

void TestExplainView::forgetsWhatIsDeleted()
{
    Shown shown;
    shown.view.explainText(kLog);
    QTRY_VERIFY(shown.view.explained() != nullptr);
    shown.view.findChild<QPlainTextEdit*>()->clear();
    QTRY_VERIFY(shown.view.explained() == nullptr);
    QCOMPARE(shown.list()->count(), 0);
    QCOMPARE(shown.message(), QString());
}

namespace {

/// A dump of `layers` layers on 8 devices, each with an all-reduce.
std::string dumpOf(int layers)
{
    return QString(
        "HloModule jit_step, is_scheduled=true, num_partitions=8\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT s = f32[] add(a, b)\n}\n\nbody {\n  v = (s32[], f32[8]) parameter(0)\n  x = f32[8] get-tuple-element(v), "
        "index=1\n"
        "  r = f32[8] all-reduce(x), channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=sum, "
        "metadata={op_name=\"jit(step)/dot\" source_file=\"src/model.py\" source_line=41}\n"
        "  i = s32[] get-tuple-element(v), index=0\n  ROOT o = (s32[], f32[8]) tuple(i, r)\n}\n\n"
        "condition {\n  v = (s32[], f32[8]) parameter(0)\n  ROOT c = pred[] constant(true)\n}\n\n"
        "ENTRY main {\n  v = (s32[], f32[8]) parameter(0)\n  ROOT l = (s32[], f32[8]) while(v), condition=condition, body=body, "
        "backend_config={\"known_trip_count\":{\"n\":\"%1\"}}\n}\n")
        .arg(layers)
        .toStdString();
}

QStringList rowOf(const QTableWidget& table, int row)
{
    QStringList cells;
    for (int column = 0; column < table.columnCount(); ++column)
        cells << table.item(row, column)->text();
    return cells;
}

} // namespace

/// Pasted and opened alike; the row that is chosen has its details below. Another text takes its place again.
void TestExplainView::listsTheCollectivesOfDumps()
{
    const QTemporaryDir folder;
    const QString path = folder.filePath("module_0001.jit_step.after_optimizations.txt");
    QVERIFY(writeFileAtomically(path.toStdString(), dumpOf(12)));
    for (const bool isFile : {true, false}) {
        Shown shown;
        if (isFile)
            shown.view.explainFile(path);
        else
            shown.view.findChild<QPlainTextEdit*>()->setPlainText(QString::fromStdString(dumpOf(12)));
        QTRY_VERIFY(shown.view.dump() != nullptr);
        const auto* table = shown.view.findChild<QTableWidget*>();
        QVERIFY(table->isVisible() && !shown.list()->isVisible());
        QCOMPARE(rowOf(*table, 0), (QStringList{"all-reduce", "[2,4]<=[8]", "12", "32 B", "jit(step)/dot", "model.py:41"}));
        QVERIFY2(shown.status().startsWith("jit_step, 8 devices: 12 calls of collectives"), qPrintable(shown.status()));
        const auto browsers = shown.view.findChildren<QTextBrowser*>();
        QVERIFY(std::any_of(browsers.begin(), browsers.end(), [](const QTextBrowser* browser) {
            return browser->isVisible() && browser->toPlainText().contains("src/model.py:41")
                && browser->toPlainText().contains("0, 1, 2, 3; 4, 5, 6, 7");
        }));
        QVERIFY(!shown.view.picture().items.empty());
        shown.view.explainText(kLog);
        QTRY_VERIFY(shown.view.explained() != nullptr);
        QVERIFY(shown.view.dump() == nullptr && !table->isVisible() && shown.list()->isVisible());
    }
}

void TestExplainView::comparesDumps()
{
    const QTemporaryDir folder;
    const QString before = folder.filePath("before.txt");
    const QString after = folder.filePath("after.txt");
    QVERIFY(writeFileAtomically(before.toStdString(), dumpOf(12)));
    QVERIFY(writeFileAtomically(after.toStdString(), dumpOf(24)));
    Shown shown;
    shown.view.explainFile(before);
    QTRY_VERIFY(shown.view.dump() != nullptr);
    shown.view.compareWith(after);
    QTRY_VERIFY(shown.status().contains("after:  jit_step"));
    const auto* table = shown.view.findChild<QTableWidget*>();
    QCOMPARE(table->rowCount(), 1);
    QCOMPARE(rowOf(*table, 0),
        (QStringList{"more", "all-reduce", "[2,4]<=[8]", "12 → 24", "32 B", "+384 B", "jit(step)/dot", "model.py:41"}));
}

void TestExplainView::refusesDamagedDumps()
{
    Shown shown;
    shown.view.explainText(QString::fromStdString(dumpOf(12)).replace("all-reduce(x)", "all-reduce(y)"));
    QTRY_VERIFY2(shown.status().contains("MW1361"), qPrintable(shown.status()));
    QVERIFY(shown.view.dump() == nullptr);
}

MESHWRIGHT_TEST(TestExplainView)

} // namespace tst_explain_view

#include "tst_explain_view.moc"
