// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "tests/test_class.h"
#include "ui/explain/explain_view.h"

#include <QLabel>
#include <QListWidget>
#include <QPlainTextEdit>
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
    void explainsFiles();
    void saysThatNothingIsKnown();
    void saysWhyAFileCannotBeRead();
    void forgetsWhatIsDeleted();
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

MESHWRIGHT_TEST(TestExplainView)

} // namespace tst_explain_view

#include "tst_explain_view.moc"
