// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/pages/page.h"
#include "sim/pages/page_machine.h"
#include "sim/pages/printed.h"
#include "sim/pages/words_html.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QTest>

namespace tst_page {

using namespace meshwright;
using namespace meshwright::pages;

/// Pages of every form as cells, the machine that a page asks for, and outputs compared.
class TestPage : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cells_data();
    void cells();
    void changedSinceRun_data();
    void changedSinceRun();
    void words_data();
    void words();
    void wrong_data();
    void wrong();
    void machine_data();
    void machine();
    void question();
    void html_data();
    void html();
    void printed_data();
    void printed();
};

void TestPage::cells_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QStringList>("sources");
    QTest::addColumn<QStringList>("printed"); // "-" where the page does not say

    QTest::newRow("fenced") << "a.md"
                            << "# Title\n```python\nx = 1\n```\n```bash\nls\n```\n~~~py\ny = 2\n~~~\n"
                            << QStringList{"x = 1", "y = 2"} << QStringList{"-", "-"};
    QTest::newRow("fenced in a list") << "a.md"
                                      << "1. First\n   ```python\n   if x:\n       y()\n   ```\n"
                                      << QStringList{"if x:\n    y()"} << QStringList{"-"};
    QTest::newRow("longer fence") << "a.md"
                                  << "````python\ns = '''\n```\n'''\n````\n"
                                  << QStringList{"s = '''\n```\n'''"} << QStringList{"-"};
    QTest::newRow("MyST alone runs") << "a.md"
                                     << "```{code-cell} ipython3\n:id: q\n:tags: [a]\n\nx = 1\n```\n```python\nonly shown\n```\n"
                                     << QStringList{"x = 1"} << QStringList{"-"};
    QTest::newRow("MyST options as YAML") << "a.md"
                                          << "```{code-cell}\n---\ntags: [a]\n---\nx = 1\n```\n"
                                          << QStringList{"x = 1"} << QStringList{"-"};
    QTest::newRow("percent") << "a.py"
                             << "# %% first\nx = 1\n\n# %% [markdown]\n# words\n# %%\ny = 2\n"
                             << QStringList{"x = 1", "y = 2"} << QStringList{"-", "-"};
    QTest::newRow("plain script") << "a.py"
                                  << "import os\nx = 1\n"
                                  << QStringList{"import os\nx = 1"} << QStringList{"-"};
    QTest::newRow("prompts") << "a.txt"
                             << "In [3]:\nx = 1\nx\n\nOut[3]:\n1\nIn [ ]: y = 2\n   ...: y + 1\nOut[4]: 3\n"
                             << QStringList{"x = 1\nx", "y = 2\ny + 1"} << QStringList{"1", "3"};
    QTest::newRow("a session of Python's terminal")
        << "a.md"
        << "```python\n>>> x = 1\n>>> for i in range(2):\n...     print(x + i)\n1\n2\n\n>>> x\n1\n```\n"
        << QStringList{">>> x = 1\n>>> for i in range(2):\n...     print(x + i)\n1\n2\n\n>>> x\n1"} << QStringList{"1\n2\n1"};
    QTest::newRow("a session that prints nothing") << "a.md"
                                                   << "```python\n>>> x = 1\n```\n"
                                                   << QStringList{">>> x = 1"} << QStringList{"-"};
    QTest::newRow("carriage returns") << "a.md"
                                      << "```python\r\nx = 1\r\ny = 2\r\n```\r\n"
                                      << QStringList{"x = 1\ny = 2"} << QStringList{"-"};
    QTest::newRow("notebook") << "a.ipynb"
                              << R"({"cells": [{"cell_type": "markdown", "source": "words"},
        {"cell_type": "code", "source": ["x = 1\n", "x"], "outputs": [{"output_type": "stream", "text": ["a\n"]},
         {"output_type": "execute_result", "data": {"text/plain": "1"}}]},
        {"cell_type": "code", "source": "figure", "outputs": [{"output_type": "display_data",
         "data": {"text/plain": ["<Figure size 432x288 with 1 Axes>"], "image/png": "iVBO"}}]},
        {"cell_type": "code", "source": "", "outputs": []},
        {"cell_type": "code", "source": "y", "outputs": []}]})"
                              << QStringList{"x = 1\nx", "figure", "y"} << QStringList{"a\n1\n", "-", "-"};
    QTest::newRow("what a notebook keeps that is not compared")
        << "a.ipynb"
        << R"({"cells": [
        {"cell_type": "code", "source": "x = f", "outputs": [{"output_type": "stream", "name": "stderr", "text": ["WARNING:absl:no GPU\n"]},
         {"output_type": "stream", "name": "stdout", "text": ["a\n"]}]},
        {"cell_type": "code", "source": "x", "outputs": [{"output_type": "stream", "name": "stderr", "text": ["WARNING:absl:no GPU\n"]}]},
        {"cell_type": "code", "source": "x + 1", "outputs": [{"output_type": "display_data", "data": {"text/plain": ["<Figure size 600x400 with 0 Axes>"]}}]},
        {"cell_type": "code", "source": "x + 2", "outputs": [{"output_type": "stream", "name": "stdout", "text": ["a\n"]},
         {"output_type": "display_data", "data": {"text/plain": ["<IPython.core.display.HTML object>"], "text/html": ["<b>x</b>"]}}]}]})"
        << QStringList{"x = f", "x", "x + 1", "x + 2"} << QStringList{"a\n", "-", "-", "-"};
}

void TestPage::cells()
{
    QFETCH(QString, name);
    QFETCH(QString, text);
    QFETCH(QStringList, sources);
    QFETCH(QStringList, printed);
    const auto page = readPage(text.toStdString(), name.toStdString());
    QVERIFY2(page, qPrintable(tests::described(page)));
    QStringList foundSources;
    QStringList foundPrinted;
    for (const Cell& cell : page->cells) {
        foundSources << tests::text(cell.source);
        foundPrinted << tests::text(cell.printed.value_or("-"));
        if (cell.line > 0) // the line where the source begins
            QVERIFY(text.split('\n').at(cell.line - 1).contains(tests::text(cell.source).section('\n', 0, 0))
                || cell.source.starts_with("x"));
    }
    QCOMPARE(foundSources, sources);
    QCOMPARE(foundPrinted, printed);
}

/// Cells of a notebook that were changed after the run whose outputs it keeps, by the numbers of the runs (0: none).
void TestPage::changedSinceRun_data()
{
    QTest::addColumn<QList<int>>("numbers");
    QTest::addColumn<QList<int>>("changed");
    QTest::newRow("one") << QList<int>{1, 2, 0, 4} << QList<int>{2};
    QTest::newRow("two apart") << QList<int>{1, 0, 3, 0, 5} << QList<int>{1, 3};
    QTest::newRow("not run") << QList<int>{1, 0, 2} << QList<int>{};
    QTest::newRow("run twice around it") << QList<int>{1, 0, 4} << QList<int>{};
    QTest::newRow("the last") << QList<int>{1, 2, 0} << QList<int>{};
    QTest::newRow("without any run") << QList<int>{0, 0, 0} << QList<int>{};
}

void TestPage::changedSinceRun()
{
    QFETCH(QList<int>, numbers);
    QFETCH(QList<int>, changed);
    QStringList cells;
    for (const int number : numbers)
        cells << QStringLiteral(R"({"cell_type": "code", "source": "x", "execution_count": %1})")
                     .arg(number == 0 ? QStringLiteral("null") : QString::number(number));
    const auto page = readPage(QStringLiteral(R"({"cells": [%1]})").arg(cells.join(',')).toStdString(), "a.ipynb");
    QVERIFY2(page, qPrintable(tests::described(page)));
    QList<int> found;
    for (int i = 0; i < numbers.size(); ++i) {
        if (page->cells[static_cast<std::size_t>(i)].isChangedSinceRun)
            found << i;
    }
    QCOMPARE(found, changed);
}

/// The page's words before each cell, and after the last.
void TestPage::words_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QStringList>("words");
    QTest::newRow("Markdown")
        << "a.md"
        << "---\nkernel: python\n---\nFirst.\n```python\nx = 1\n```\n+++\nSecond.\n```python\ny = 2\n```\nLast.\n"
        << QStringList{"First.", "Second.", "Last."};
    QTest::newRow("notebook") << "a.ipynb"
                              << R"({"cells": [{"cell_type": "markdown", "source": ["First.\n", "More."]},
        {"cell_type": "code", "source": "x = 1"}, {"cell_type": "code", "source": "y = 2"}, {"cell_type": "markdown", "source": "Last."}]})"
                              << QStringList{"First.\nMore.", "", "Last."};
    QTest::newRow("script") << "a.py"
                            << "# %% [markdown]\n# First.\n# %%\nx = 1\n# %% [markdown]\n# # Last.\n"
                            << QStringList{"First.", "Last."};
}

void TestPage::words()
{
    QFETCH(QString, name);
    QFETCH(QString, text);
    QFETCH(QStringList, words);
    const auto page = readPage(text.toStdString(), name.toStdString());
    QVERIFY2(page, qPrintable(tests::described(page)));
    QStringList found;
    for (const Cell& cell : page->cells)
        found << tests::text(cell.before).trimmed();
    found << tests::text(page->after).trimmed();
    QCOMPARE(found, words);
}

void TestPage::wrong_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("id");

    QTest::newRow("question without an answer") << "a.md"
                                                << "```question\nWhy?\nhint: none\n```\n"
                                                << "MW1568";
    QTest::newRow("no cells") << "a.md"
                              << "# Only words\n"
                              << "MW1563";
    QTest::newRow("words") << "a.txt"
                           << "a text about meshes\nx = 1\n"
                           << "MW1563";
    QTest::newRow("empty") << "a.py"
                           << "\n"
                           << "MW1563";
    QTest::newRow("no JSON") << "a.ipynb"
                             << "words"
                             << "MW1564";
    QTest::newRow("cells are no list") << "a.ipynb"
                                       << R"({"cells": 3})"
                                       << "MW1564";
    QTest::newRow("cells of other kinds") << "a.ipynb"
                                          << R"({"cells": [3, null, {"cell_type": 3}, {"cell_type": "code", "source": 3}]})"
                                          << "MW1563";
}

void TestPage::wrong()
{
    QFETCH(QString, name);
    QFETCH(QString, text);
    QFETCH(QString, id);
    const auto page = readPage(text.toStdString(), name.toStdString());
    QVERIFY(!page);
    QCOMPARE(tests::text(page.error().front().id), id);
}

void TestPage::machine_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<qlonglong>("devices");
    QTest::addColumn<bool>("legacy");

    QTest::newRow("flag")
        << "os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=16'\nm = jax.make_mesh((4, 2), 'ab')" << 16LL
        << false;
    QTest::newRow("setting") << "jax.config.update('jax_num_cpu_devices', 4)" << 4LL << false;
    QTest::newRow("mesh") << "mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ('a', 'b'))" << 4LL << false;
    QTest::newRow("largest mesh") << "a = create_device_mesh((4,))\nb = create_device_mesh((4, 8))" << 32LL << false;
    QTest::newRow("sizes by name") << "a = create_device_mesh((n, 2))" << 8LL << false;
    QTest::newRow("nothing") << "x = jnp.ones(3)" << 8LL << false;
    QTest::newRow("older random numbers") << "from jax.sharding import PositionalSharding" << 8LL << true;
    QTest::newRow("printed by an older version") << "In [1]: jax.__version__\nOut[1]: '0.4.34'\n" << 8LL << true;
    QTest::newRow("printed by a later version") << "In [1]: jax.__version__\nOut[1]: '0.5.0'\n" << 8LL << false;
    QTest::newRow("older arrays") << "In [1]: x\nOut[1]: DeviceArray(1., dtype=float32)\n" << 8LL << true;
    QTest::newRow("older traced values") << "In [1]: x\nOut[1]: Traced<ShapedArray(float32[])>\n" << 8LL << true;
    QTest::newRow("older times") << "In [1]: f()\nOut[1]: 10 loops, best of 3: 6.75 ms per loop\n" << 8LL << true;
    QTest::newRow("another number") << "In [1]: jax.__version__, 10.4\nOut[1]: ('0.6.2', '10.4.1')\n" << 8LL << false;
}

void TestPage::machine()
{
    QFETCH(QString, text);
    QFETCH(qlonglong, devices);
    QFETCH(bool, legacy);
    const auto page = readPage(text.toStdString(), text.startsWith("In [") ? "a.txt" : "a.py");
    QVERIFY2(page, qPrintable(tests::described(page)));
    const auto found = machineOfPage(*page);
    QVERIFY(found);
    const PageMachine& machine = *found;
    QCOMPARE(static_cast<qlonglong>(machine.devices), devices);
    QCOMPARE(machine.legacyRandom, legacy);
}

void TestPage::question()
{
    const auto page = readPage(
        "---\nhardware: v5e-8\n---\nWords.\n```question\nHow many?\nReally?\nanswer: len(\n  x)\nhint: One.\nhint: Two\n"
        "lines.\ncheck: answer > 0\nwhy: So.\n```\n",
        "a.md");
    QVERIFY2(page, qPrintable(tests::described(page)));
    QCOMPARE(page->hardware, std::string("v5e-8"));
    const Cell& cell = page->cells.at(0);
    QVERIFY(cell.question.has_value());
    QCOMPARE(cell.source, std::string("len(\n  x)"));
    QCOMPARE(cell.question->text, std::string("How many?\nReally?"));
    QCOMPARE(cell.question->hints, (std::vector<std::string>{"One.", "Two\nlines."}));
    QCOMPARE(cell.question->check, std::string("answer > 0"));
    QCOMPARE(cell.question->why, std::string("So."));
    const auto machine = machineOfPage(*page);
    QVERIFY2(machine, qPrintable(tests::described(machine)));
    QCOMPARE(machine->devices, std::int64_t{8});
    QCOMPARE(machine->platform, std::string("tpu"));
}

void TestPage::html_data()
{
    QTest::addColumn<QString>("words");
    QTest::addColumn<QString>("html");
    QTest::newRow("heading") << "## Two `x`"
                             << "<h3>Two <code>x</code></h3>\n";
    QTest::newRow("paragraphs") << "one\ntwo\n\nthree"
                                << "<p>one\ntwo</p>\n<p>three</p>\n";
    QTest::newRow("marks") << "**bold** and *so*, `a*b*c`"
                           << "<p><b>bold</b> and <em>so</em>, <code>a*b*c</code></p>\n";
    QTest::newRow("code in what is bold")
        << "**no `a*b` yet**, [`c`](https://b.org)"
        << "<p><b>no <code>a*b</code> yet</b>, <a href=\"https://b.org\"><code>c</code></a></p>\n";
    QTest::newRow("a product is no mark") << "2 * 3 * 4"
                                          << "<p>2 * 3 * 4</p>\n";
    QTest::newRow("list") << "1. one\n   more\n2. two"
                          << "<ul>\n<li>one more</li>\n<li>two</li>\n</ul>\n";
    QTest::newRow("table") << "| a | b |\n|---|---|\n| 1 | `2` |"
                           << "<table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td><code>2</code></td></tr>\n</table>\n";
    QTest::newRow("code") << "```bash\nls <x>\n```"
                          << "<pre>ls &lt;x&gt;\n</pre>\n";
    QTest::newRow("MyST's mark between blocks") << "one\n+++ {\"id\": \"a\"}\ntwo"
                                                << "<p>one</p>\n<p>two</p>\n";
    QTest::newRow("link") << "[a](https://b.org)"
                          << "<p><a href=\"https://b.org\">a</a></p>\n";
    QTest::newRow("link to a script") << "[a](javascript:b)"
                                      << "<p>[a](javascript:b)</p>\n";
    QTest::newRow("a page's own HTML") << "<script>x</script>"
                                       << "<p>&lt;script&gt;x&lt;/script&gt;</p>\n";
    QTest::newRow("fence without an end") << "```\nx"
                                          << "<pre>x\n</pre>\n";
    QTest::newRow("backtick without an end") << "a ` b"
                                             << "<p>a ` b</p>\n";
}

void TestPage::html()
{
    QFETCH(QString, words);
    QFETCH(QString, html);
    QCOMPARE(QString::fromStdString(wordsHtml(words.toStdString())), html);
}

void TestPage::printed_data()
{
    QTest::addColumn<QString>("here");
    QTest::addColumn<QString>("page");
    QTest::addColumn<QString>("likeness");

    QTest::newRow("equal") << "loss 1.5\n"
                           << "loss 1.5"
                           << "equal";
    QTest::newRow("spaces at ends") << "a  \nb\n\n"
                                    << "a\nb"
                                    << "equal";
    QTest::newRow("last digits") << "[1.0000001 -2.5e-3]"
                                 << "[1. -0.0025]"
                                 << "close";
    QTest::newRow("wider columns") << "[1.25    2.5]"
                                   << "[1.2500001 2.5]"
                                   << "close";
    QTest::newRow("another number") << "loss 1.5"
                                    << "loss 1.6"
                                    << "different";
    QTest::newRow("a number too many") << "1 2"
                                       << "1 2 3"
                                       << "different";
    QTest::newRow("other words") << "float32 1.0"
                                 << "bfloat16 1.0"
                                 << "different";
    QTest::newRow("number in a name") << "TPU_3"
                                      << "TPU_4"
                                      << "different";
    QTest::newRow("colours") << "Param(value=1.5)"
                             << "\x1b[38;2;79;201;177mParam\x1b[0m(value=1.5)"
                             << "equal";
    QTest::newRow("names of cells") << "output of sin from <cell 2>:3 (g)"
                                    << "output of sin from <ipython-input-4-f510dde58e22>:3 (g)"
                                    << "equal";
    QTest::newRow("lines of cells") << "output of sin from <cell 2>:3 (g)"
                                    << "output of sin from <ipython-input-4-f510dde58e22>:4 (g)"
                                    << "different";
    QTest::newRow("drawings in colours") << "┌───┐\n│ 0 │\n└───┘"
                                         << "\x1b[38;2;1;2;3m 0 \x1b[0m"
                                         << "close";
    QTest::newRow("another place in a drawing") << "┌───┐\n│ 0 │\n└───┘"
                                                << "\x1b[38;2;1;2;3m 1 \x1b[0m"
                                                << "different";
    QTest::newRow("arrays by their older name") << "Array(2., dtype=float32)"
                                                << "DeviceArray(2., dtype=float32)"
                                                << "close";
    QTest::newRow("the class of arrays by its older module") << "<class 'jaxlib._jax.ArrayImpl'>"
                                                             << "<class 'jaxlib.xla_extension.ArrayImpl'>"
                                                             << "close";
    QTest::newRow("a mesh without the kinds of its axes") << "Mesh('data': 2, 'model': 4, axis_types=(Auto, Auto))"
                                                          << "Mesh('data': 2, 'model': 4)"
                                                          << "close";
    QTest::newRow("a mesh with axes of another kind") << "Mesh('data': 2, 'model': 4, axis_types=(Explicit, Auto))"
                                                      << "Mesh('data': 2, 'model': 4)"
                                                      << "different";
    QTest::newRow("times")
        << "a\n1.5 ms per loop (simulated on v3-8)\nWall time: 2 ms"
        << "a\n10 loops, best of 3: 6.75 ms per loop\nCPU times: user 3 s, sys: 1 s, total: 4 s\nWall time: 4.1 s"
        << "equal";
    QTest::newRow("times beside other words") << "a\n1.5 ms per loop (simulated on v3-8)"
                                              << "b\n6.75 ms ± 3 µs per loop (mean ± std. dev. of 7 runs, 10 loops each)"
                                              << "different";
    QTest::newRow("addresses") << "<function f at 0x7f5e4659a820>"
                               << "<function f at 0x10>"
                               << "equal";
    QTest::newRow("sign") << "-1.0"
                          << "1.0"
                          << "different";
}

void TestPage::printed()
{
    QFETCH(QString, here);
    QFETCH(QString, page);
    QFETCH(QString, likeness);
    QCOMPARE(QString(likenessName(comparePrinted(here.toStdString(), page.toStdString()))), likeness);
    QCOMPARE(QString(likenessName(comparePrinted(page.toStdString(), here.toStdString()))), likeness);
}

MESHWRIGHT_TEST(TestPage)

} // namespace tst_page

#include "tst_page.moc"
