// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/pages/trusted_pages.h"
#include "tests/test_class.h"
#include "ui/pages/page_view.h"

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTextBrowser>

namespace tst_page_view {

using namespace meshwright;

/// A page in the window: asked about, run, edited and run again; a lesson that waits for answers.
class TestPageView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void asksBeforeAStrangersPageRuns();
    void showsWhatCameOfEachCell();
    void ruleAndFixOfAnErrorAreLines();
    void layoutsAreDrawn_data();
    void layoutsAreDrawn();
    void runsOnAnotherMachine();
    void runsFromAnEditedCell();
    void aStoppedPageRunsAgain();
    void savesWhatWasEdited_data();
    void savesWhatWasEdited();
    void savesTheSource_data();
    void savesTheSource();
    void editsAreNotLost();
    void aLessonWaitsForAnswers();
    void saysWhyAPageCannotBeOpened_data();
    void saysWhyAPageCannotBeOpened();

private:
    QString file(const QString& name, const QString& text) const;
    QTemporaryDir m_folder;
};

namespace {

const QString kPage = R"md(# A page

Eight devices in a mesh.

```python
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ('a', 'b'))
x = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P('a', 'b')))
```

The sum needs an all-reduce.

```python
y = jax.jit(jnp.sum)(x)
print('sum', y)
```

```python
undefined
```
)md";

/// A view whose files of the user lie in a folder of its own.
struct Shown {
    explicit Shown()
    {
        qputenv("XDG_STATE_HOME", m_own.path().toLocal8Bit());
        qputenv("XDG_DATA_HOME", m_own.path().toLocal8Bit());
        view = std::make_unique<ui::PageView>(m_selection);
        view->resize(1000, 700);
        view->show();
        m_isExposed = QTest::qWaitForWindowExposed(view.get());
    }

    QPushButton* button(const QString& text) const
    {
        for (QPushButton* one : view->findChildren<QPushButton*>()) {
            if (one->text() == text)
                return one;
        }
        return nullptr;
    }

    QString flow() const { return view->findChild<QTextBrowser*>()->toPlainText(); }

    /// The n-th cell, counted from 1, of which is clicked.
    void choose(int cell) const
    {
        Q_EMIT view->findChild<QTextBrowser*>()->anchorClicked(QUrl(QStringLiteral("cell:%1").arg(cell - 1)));
    }

    bool isOver() const { return view->page() && !view->isBusy(); }

    std::unique_ptr<ui::PageView> view;

private:
    QTemporaryDir m_own;
    ui::Selection m_selection;
    bool m_isExposed = false;
};

} // namespace

QString TestPageView::file(const QString& name, const QString& text) const
{
    QFile made(m_folder.filePath(name));
    if (made.open(QIODevice::WriteOnly))
        made.write(text.toUtf8());
    return made.fileName();
}

void TestPageView::initTestCase()
{
    Shown shown;
    shown.view->openPage(file("one.py", "1"));
    QTRY_VERIFY(shown.isOver());
    shown.view->runFrom(0);
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver(), 60'000);
    if (shown.view->cells().front().result.status == pages::CellStatus::NotRun)
        QSKIP("this kernel cannot confine pages, so they are only read");
}

void TestPageView::asksBeforeAStrangersPageRuns()
{
    const QString path = file("stranger.md", kPage);
    Shown shown;
    shown.view->openPage(path);
    QTRY_VERIFY(shown.isOver());
    QPushButton* trust = shown.button("Run and trust it");
    QVERIFY(trust->isVisible());
    QCOMPARE(shown.view->cells()[0].result.status, pages::CellStatus::NotRun);
    QVERIFY(shown.flow().contains("Eight devices in a mesh"));

    QTest::mouseClick(trust, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver() && shown.view->cells()[2].result.error, 60'000);
    QVERIFY(!trust->isVisible());
    QVERIFY(pages::isTrusted(kPage.toStdString()));

    shown.view->openPage(path); // which nobody asks about again
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver() && shown.view->cells()[2].result.error, 60'000);
    QVERIFY(!trust->isVisible());
}

void TestPageView::showsWhatCameOfEachCell()
{
    Shown shown;
    shown.view->openPage(file("shown.md", kPage));
    QTRY_VERIFY(shown.isOver());
    QTest::mouseClick(shown.button("Run it"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver() && shown.view->cells()[2].result.error, 60'000);
    QTRY_VERIFY(shown.flow().contains("NameError"));
    const QString flow = shown.flow();
    QVERIFY2(flow.contains("sum 128.0"), qPrintable(flow));
    QVERIFY(flow.contains("all-reduce"));
    QVERIFY(flow.contains("P('a', 'b') on a=4, b=2"));

    // The layout of the array that the first cell made is drawn.
    shown.choose(1);
    const auto* array = shown.view->findChild<QComboBox*>();
    QVERIFY2(array->currentText().startsWith("x: float32[8,16]"), qPrintable(array->currentText()));
    const auto* picture = shown.view->findChild<ui::PictureView*>();
    QVERIFY(!picture->placeOf("shard:7").isNull());
    const auto& items = picture->picture().items;
    const auto piece = std::find_if(items.begin(), items.end(), [](const DisplayItem& item) { return item.id == "shard:7"; });
    QVERIFY2(piece->tooltip.find("CPU 7") != std::string::npos, piece->tooltip.c_str()); // what the page runs on
    shown.choose(3); // which made none
    QVERIFY(picture->picture().items.empty());
    QVERIFY(shown.view->command().startsWith("meshwright open "));
}

void TestPageView::ruleAndFixOfAnErrorAreLines()
{
    Shown shown;
    shown.view->openPage(file("uneven.py",
        "import jax, jax.numpy as jnp\nfrom jax.sharding import NamedSharding, PartitionSpec as P\n"
        "x = jax.device_put(jnp.ones((6, 3)), NamedSharding(jax.make_mesh((4, 2), ('a', 'b')), P('a', None)))\n"));
    QTRY_VERIFY(shown.isOver());
    shown.view->runFrom(0);
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver() && shown.view->cells()[0].result.error, 60'000);
    static const QRegularExpression kLines(QStringLiteral("MW1104: [^\n]*\\n\\s*rule: [^\n]*\\n\\s*fix: "));
    QTRY_VERIFY2(shown.flow().contains(kLines), qPrintable(shown.flow()));
}

void TestPageView::layoutsAreDrawn_data()
{
    QTest::addColumn<QString>("sharding");
    QTest::addColumn<QString>("piece"); // that is drawn; empty: nothing is
    QTest::newRow("named") << "NamedSharding(jax.make_mesh((4, 2), ('a', 'b')), P('a', 'b'))"
                           << "shard:7";
    QTest::newRow("positional") << "jax.sharding.PositionalSharding(jax.devices()).reshape(4, 2)"
                                << "shard:7";
    QTest::newRow("replicated") << "NamedSharding(jax.make_mesh((8,), ('a',)), P())"
                                << "shard:0";
    QTest::newRow("one device") << "jax.sharding.SingleDeviceSharding(jax.devices()[0])"
                                << "";
}

void TestPageView::layoutsAreDrawn()
{
    QFETCH(QString, sharding);
    QFETCH(QString, piece);
    Shown shown;
    shown.view->openPage(file("drawn.py",
        QString("import jax, jax.numpy as jnp\nfrom jax.sharding import NamedSharding, PartitionSpec as P\n"
                "x = jax.device_put(jnp.ones((8, 16)), %1)\n")
            .arg(sharding)));
    QTRY_VERIFY(shown.isOver());
    shown.view->runFrom(0);
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver() && shown.view->cells()[0].result.status == pages::CellStatus::Ran, 60'000);
    const auto* picture = shown.view->findChild<ui::PictureView*>();
    QCOMPARE(picture->placeOf(piece.isEmpty() ? "shard:0" : piece).isNull(), piece.isEmpty());
}

/// Whose times are simulated.
void TestPageView::runsOnAnotherMachine()
{
    Shown shown;
    shown.view->openPage(file("machine.md", kPage));
    QTRY_VERIFY(shown.isOver());
    QLineEdit* machine = nullptr;
    for (QLineEdit* edit : shown.view->findChildren<QLineEdit*>()) {
        if (edit->accessibleName() == "Machine of the page")
            machine = edit;
    }
    machine->setText("v5e-8");
    QTest::keyClick(machine, Qt::Key_Return);
    QVERIFY(shown.button("Run it")->isVisible()); // another machine is not a reason to trust it
    QTest::mouseClick(shown.button("Run it"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver() && shown.view->cells()[2].result.error, 60'000);
    QVERIFY(shown.view->cells()[1].result.simulatedSeconds.value_or(0.0) > 0.0);
    QVERIFY(shown.view->command().endsWith(" --hw v5e-8"));
    machine->setText("no such machine");
    QTest::keyClick(machine, Qt::Key_Return);
    QVERIFY(shown.view->findChild<ui::Notice*>()->isVisible());
    QVERIFY(shown.view->cells()[1].result.simulatedSeconds.has_value()); // what was there stays
}

void TestPageView::runsFromAnEditedCell()
{
    Shown shown;
    shown.view->openPage(file("edited.md", kPage));
    QTRY_VERIFY(shown.isOver());
    shown.view->runFrom(0);
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver() && shown.view->cells()[2].result.error, 60'000);
    shown.choose(2);
    shown.view->findChild<QPlainTextEdit*>()->setPlainText("undefined = 3\nprint('now', jnp.sum(x) + undefined)");
    QVERIFY(shown.view->cells()[1].isOutdated && shown.view->cells()[2].isOutdated && !shown.view->cells()[0].isOutdated);

    QTest::mouseClick(shown.button("Run from here"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver() && !shown.view->cells()[2].isOutdated, 60'000);
    QCOMPARE(shown.view->cells()[1].result.output, std::string("now 131.0\n"));
    QCOMPARE(shown.view->cells()[2].result.output, std::string("3\n"));
}

void TestPageView::aStoppedPageRunsAgain()
{
    Shown shown;
    shown.view->openPage(file("endless.py", "# %%\nprint('begun')\n# %%\nwhile True: pass\n"));
    QTRY_VERIFY(shown.isOver());
    shown.view->runFrom(0);
    QTRY_VERIFY_WITH_TIMEOUT(shown.view->cells()[0].result.status == pages::CellStatus::Ran, 60'000);
    QTest::mouseClick(shown.button("Stop"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver(), 10'000);
    QTRY_VERIFY(shown.flow().contains("stopped"));
    shown.choose(2);
    shown.view->findChild<QPlainTextEdit*>()->setPlainText("print('ended')");
    QTest::mouseClick(shown.button("Run from here"), Qt::LeftButton); // from the first, since its names are gone
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver() && shown.view->cells()[1].result.status == pages::CellStatus::Ran, 60'000);
    QCOMPARE(shown.view->cells()[1].result.output, std::string("ended\n"));
}

void TestPageView::savesWhatWasEdited_data()
{
    QTest::addColumn<QString>("name");
    QTest::newRow("notebook") << "saved.ipynb";
    QTest::newRow("HTML") << "saved.html";
}

/// The file that was opened stays as it is.
void TestPageView::savesWhatWasEdited()
{
    QFETCH(QString, name);
    const QString notebook
        = R"({"cells": [{"cell_type": "code", "source": ["first = 1\n", "first"], "outputs": []}], "nbformat": 4})";
    const QString path = file("opened.ipynb", notebook);
    Shown shown;
    shown.view->openPage(path);
    QTRY_VERIFY(shown.isOver());
    shown.view->findChild<QPlainTextEdit*>()->setPlainText("second = 2\nsecond * 21");
    shown.view->runFrom(0);
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver() && shown.view->cells()[0].result.status == pages::CellStatus::Ran, 60'000);
    shown.view->savePage(m_folder.filePath(name));
    QFile saved(m_folder.filePath(name));
    QVERIFY(saved.open(QIODevice::ReadOnly));
    const QString text = QString::fromUtf8(saved.readAll());
    QVERIFY2(text.contains("second * 21") && text.contains("42") && !text.contains("first"), qPrintable(text));
    QFile opened(path);
    QVERIFY(opened.open(QIODevice::ReadOnly));
    QCOMPARE(QString::fromUtf8(opened.readAll()), notebook);

    shown.view->savePage(m_folder.filePath("saved.docx"));
    QVERIFY(shown.view->findChild<ui::Notice*>()->isVisible());
    QVERIFY(!QFile::exists(m_folder.filePath("saved.docx")));
}

void TestPageView::savesTheSource_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("before");
    QTest::addColumn<QString>("after");

    QTest::newRow("Markdown") << "s.md"
                              << "# A\n\n```python\none = 1\n```\n\nWords.\n\n```python\none = 1\n```\n"
                              << "# A\n\n```python\none = 1\n```\n\nWords.\n\n```python\ntwo = 2\ntwo\n```\n";
    QTest::newRow("in a list") << "i.md"
                               << "- a\n\n  ```python\n  a = 0\n  ```\n\n  ```python\n  one = 1\n  ```\n"
                               << "- a\n\n  ```python\n  a = 0\n  ```\n\n  ```python\n  two = 2\n  two\n  ```\n";
    QTest::newRow("a script") << "s.py"
                              << "# %%\nimport jax\n# %% last\n\none = 1\n"
                              << "# %%\nimport jax\n# %% last\n\ntwo = 2\ntwo\n";
    QTest::newRow("a notebook")
        << "s.ipynb"
        << R"({"cells":[{"cell_type":"code","source":["0"]},{"cell_type":"code","source":["one = 1"],"id":"b"}],"nbformat":4})"
        << "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"source\": [\n    \"0\"\n   ]\n  },\n  {\n"
           "   \"cell_type\": \"code\",\n   \"source\": \"two = 2\\ntwo\",\n   \"id\": \"b\"\n  }\n ],\n \"nbformat\": 4\n}\n";
}

/// All but the edited cell stays as it is.
void TestPageView::savesTheSource()
{
    QFETCH(QString, name);
    QFETCH(QString, before);
    QFETCH(QString, after);
    const QString path = file(name, before);
    Shown shown;
    shown.view->openPage(path);
    QTRY_VERIFY(shown.isOver());
    QVERIFY(!shown.view->isEdited() && !shown.button("Save the source")->isVisible());
    shown.choose(2);
    shown.view->findChild<QPlainTextEdit*>()->setPlainText("two = 2\ntwo");
    QVERIFY(shown.view->isEdited());
    QTRY_VERIFY(shown.button("Save the source")->isVisible());
    shown.button("Save the source")->click();
    QVERIFY(!shown.view->isEdited());
    QFile saved(path);
    QVERIFY(saved.open(QIODevice::ReadOnly));
    QCOMPARE(QString::fromUtf8(saved.readAll()), after);
}

/// Another page, or another machine: the first asks, the second keeps them.
void TestPageView::editsAreNotLost()
{
    Shown shown;
    shown.view->openPage(file("first.py", "one = 1\n"));
    QTRY_VERIFY(shown.isOver());
    shown.view->findChild<QPlainTextEdit*>()->setPlainText("two = 2");
    auto* machine = shown.view->findChild<QLineEdit*>();
    machine->setText("v5e-4");
    Q_EMIT machine->editingFinished();
    QTRY_VERIFY(shown.isOver() && shown.view->page()->asked == "v5e-4");
    QCOMPARE(shown.view->cells()[0].source, std::string("two = 2"));

    QString asked;
    QTimer::singleShot(50, qApp, [&asked] {
        auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
        asked = box != nullptr ? box->text() : QString();
        if (box != nullptr)
            box->reject();
    });
    shown.view->openPage(file("second.py", "three = 3\n"));
    QCOMPARE(asked, QString("Save the edited cells of first.py?"));
    QVERIFY(!shown.view->isBusy());
    QCOMPARE(shown.view->cells()[0].source, std::string("two = 2"));
}

void TestPageView::aLessonWaitsForAnswers()
{
    Shown shown;
    QVERIFY(shown.view->lessons().size() >= 6);
    shown.view->openLesson(0);
    const auto asked = [&] {
        const auto& cells = shown.view->page()->page.cells;
        return std::find_if(cells.begin(), cells.end(), [](const pages::Cell& cell) { return cell.question.has_value(); })
            - cells.begin();
    };
    QTRY_VERIFY_WITH_TIMEOUT(
        shown.isOver() && shown.view->cells()[static_cast<std::size_t>(asked())].result.status == pages::CellStatus::Ran, 60'000);
    const auto question = static_cast<std::size_t>(asked());
    QCOMPARE(shown.view->cells().back().result.status, pages::CellStatus::NotRun); // it waits
    const std::string output = shown.view->cells()[question].result.output;
    QVERIFY(!shown.view->cells()[question].isAnswered);

    QLineEdit* answer = nullptr;
    for (QLineEdit* edit : shown.view->findChildren<QLineEdit*>()) {
        if (edit->accessibleName() == "Your answer")
            answer = edit;
    }
    QVERIFY(answer->isVisible());
    QTest::keyClick(answer, Qt::Key_Return); // without an answer no hint is spent
    const auto labels = shown.view->findChildren<QLabel*>();
    QVERIFY(std::none_of(labels.begin(), labels.end(), [](const QLabel* label) { return label->text().startsWith("Hint: "); }));
    answer->setText("'surely not this'");
    QTest::keyClick(answer, Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver(), 10'000);
    QVERIFY(!shown.view->cells()[question].isAnswered);
    answer->setText(QString::fromStdString(output).section('\n', 0, 0));
    QTest::keyClick(answer, Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(shown.view->cells()[question].isAnswered, 10'000);
    QTRY_VERIFY2(shown.flow().contains("✓ right"), "also when the next question is asked already");
    QTRY_VERIFY_WITH_TIMEOUT(shown.isOver() && shown.view->cells()[question + 1].result.status == pages::CellStatus::Ran, 60'000);
    QCOMPARE(pages::LessonProgress().done(shown.view->lessons()[0]), std::size_t{1});
    QCOMPARE(shown.view->command(), QString("meshwright lesson 1"));
}

void TestPageView::saysWhyAPageCannotBeOpened_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("id");
    QTest::newRow("no cells") << "words.md"
                              << "Only words."
                              << "MW1563";
    QTest::newRow("not a notebook") << "broken.ipynb"
                                    << "{\"cells\": 3}"
                                    << "MW1564";
    QTest::newRow("not there") << ""
                               << ""
                               << "MW1001";
}

void TestPageView::saysWhyAPageCannotBeOpened()
{
    QFETCH(QString, name);
    QFETCH(QString, text);
    QFETCH(QString, id);
    Shown shown;
    shown.view->openPage(name.isEmpty() ? m_folder.filePath("missing.ipynb") : file(name, text));
    auto* notice = shown.view->findChild<ui::Notice*>();
    QTRY_VERIFY2(notice->text().contains(id), qPrintable(notice->text()));
    QVERIFY(shown.view->page() == nullptr);
}

MESHWRIGHT_TEST(TestPageView)

} // namespace tst_page_view

#include "tst_page_view.moc"
