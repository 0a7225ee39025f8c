// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/problem_table.h"
#include "core/support/resources.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QDirIterator>
#include <QRegularExpression>
#include <QTemporaryDir>

namespace tst_problem_table {

using namespace meshwright;

/// The one table of problem ids, against the sources that raise them and the tests that see them raised.
class TestProblemTable : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void raisedIdsAreInTheTable();
    void idsOfTheTableAreInTheSources();
    void raisedIdsAreTested();
    void find();
    void exitCodes_data();
    void exitCodes();
    void damaged_data();
    void damaged();
    void missingResource();

private:
    ProblemTable m_table;
};

namespace {

/// The ids in the files below some folders of the source tree that a pattern finds.
QSet<QString> idsIn(const QStringList& folders, const QString& pattern, const QString& except = {})
{
    static const QStringList kSources = {"*.cpp", "*.h", "*.py"};
    const QRegularExpression expression(pattern);
    QSet<QString> ids;
    for (const QString& folder : folders) {
        QDirIterator files(QString(MESHWRIGHT_SOURCE_DIR) + '/' + folder, kSources, QDir::Files, QDirIterator::Subdirectories);
        while (files.hasNext()) {
            QFile file(files.next());
            if ((!except.isEmpty() && file.fileName().endsWith(except)) || !file.open(QIODevice::ReadOnly))
                continue;
            auto matches = expression.globalMatch(QString::fromUtf8(file.readAll()));
            while (matches.hasNext())
                ids.insert(matches.next().captured(1));
        }
    }
    return ids;
}

const QStringList kProduct = {"core", "sim", "ui", "app"};
const QString kRaised = R"re("(MW\d{4})")re"; // a string of its own: an id that is raised
const QString kAnywhere = R"re((MW\d{4}))re";

QString sorted(const QSet<QString>& ids)
{
    QStringList list(ids.begin(), ids.end());
    list.sort();
    return list.join(' ');
}

} // namespace

void TestProblemTable::initTestCase()
{
    const auto path = findResource("problems.yaml");
    QVERIFY2(path, qPrintable(tests::described(path)));
    const auto table = ProblemTable::load(*path);
    QVERIFY2(table, qPrintable(tests::described(table)));
    m_table = *table;
}

void TestProblemTable::raisedIdsAreInTheTable()
{
    QSet<QString> missing = idsIn(kProduct, kRaised);
    for (const std::string& id : m_table.ids())
        missing.remove(tests::text(id));
    QCOMPARE(sorted(missing), QString());
}

void TestProblemTable::idsOfTheTableAreInTheSources()
{
    QSet<QString> unknown;
    for (const std::string& id : m_table.ids())
        unknown.insert(tests::text(id));
    unknown -= idsIn(kProduct, kAnywhere);
    QCOMPARE(sorted(unknown), QString());
}

void TestProblemTable::raisedIdsAreTested()
{
    QFile file(QString(MESHWRIGHT_SOURCE_DIR) + "/tests/core/diagnose/untested_ids.txt");
    QVERIFY(file.open(QIODevice::ReadOnly));
    QSet<QString> allowed;
    for (const QString& line : QString::fromUtf8(file.readAll()).split('\n')) {
        if (line.startsWith("MW"))
            allowed.insert(line.left(6));
    }
    const QSet<QString> untested = idsIn(kProduct, kRaised) - idsIn({"tests"}, kAnywhere);
    QCOMPARE(sorted(untested - allowed), QString());
    if (!(allowed - untested).isEmpty())
        qWarning("remove from untested_ids.txt: %s", qPrintable(sorted(allowed - untested)));
}

void TestProblemTable::find()
{
    const ProblemEntry* entry = m_table.find("mw1104");
    QVERIFY(entry != nullptr);
    QCOMPARE(tests::text(entry->id), "MW1104");
    QCOMPARE(tests::text(m_table.rangeOf("MW1104")->part), "meshes and shardings");
    QVERIFY(m_table.find("MW0000") == nullptr);
    QVERIFY(m_table.find("") == nullptr);
    QVERIFY(m_table.rangeOf("MW9999") == nullptr);
    QVERIFY(m_table.find("MW1263") == nullptr);
    const RetiredId* retired = m_table.findRetired("mw1263");
    QVERIFY(retired != nullptr);
    QCOMPARE(tests::text(retired->replacedBy), "MW1270");
    QVERIFY(m_table.findRetired("MW1104") == nullptr);
}

/// All exit codes other than 3: of ids in their ranges, and those that an entry states for itself.
void TestProblemTable::exitCodes_data()
{
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("range"); // whose entries have it
    QTest::addColumn<QString>("others"); // of the range, that have another code
    QTest::addColumn<QString>("besides");
    QTest::newRow("usage") << 2 << "MW19"
                           << "MW1914"
                           << "MW1514 MW1520 MW1524 MW1525 MW1526";
    QTest::newRow("infeasible") << 4 << "none"
                                << ""
                                << "MW1430 MW1513 MW1720 MW1759";
    QTest::newRow("failed while running") << 6 << "MW15"
                                          << "MW1513 MW1514 MW1520 MW1524 MW1525 MW1526 MW1530 MW1531 MW1532 MW1533 MW1534 "
                                             "MW1535 MW1543 MW1544 MW1545 MW1546 MW1563 MW1564 MW1568 MW1570 "
                                             "MW1571 MW1572 MW1573 MW1574 MW1575 MW1576 MW1577 MW1578 MW1579 MW1580 MW1581"
                                          << "MW1007 MW1620 MW1630 MW1640 MW1789";
    QTest::newRow("a fault of Meshwright") << 70 << "none"
                                           << ""
                                           << "MW1215";
}

void TestProblemTable::exitCodes()
{
    QFETCH(int, code);
    QFETCH(QString, range);
    QFETCH(QString, others);
    QFETCH(QString, besides);
    for (const ProblemEntry& entry : m_table.entries()) {
        const QString id = tests::text(entry.id);
        const bool has = besides.contains(id) || (id.startsWith(range) && !others.contains(id));
        QVERIFY2((entry.exitCode == code) == has, qPrintable(QString("%1 has %2").arg(id).arg(entry.exitCode)));
    }
}

void TestProblemTable::damaged_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("ids");
    const QByteArray ranges = "ranges: [{from: MW1000, to: MW1099, part: files}]\n";
    QTest::newRow("no lists") << QByteArray("a: 1\n") << "MW1440 MW1440";
    QTest::newRow("no meaning") << ranges + "problems: [{id: MW1001, title: t, fix: f}]\n"
                                << "MW1440";
    QTest::newRow("not ascending") << ranges
            + "problems: [{id: MW1002, title: t, meaning: m, fix: f}, {id: MW1001, title: t, meaning: m, fix: f}]\n"
                                   << "MW1440";
    QTest::newRow("in no range") << ranges + "problems: [{id: MW1102, title: t, meaning: m, fix: f}]\n"
                                 << "MW1440";
    QTest::newRow("no exit code") << ranges + "problems: [{id: MW1001, exit: 1, title: t, meaning: m, fix: f}]\n"
                                  << "MW1440";
    const QByteArray problem = "problems: [{id: MW1001, title: t, meaning: m, fix: f}]\n";
    QTest::newRow("retired without a reason") << ranges + problem + "retired: [{id: MW1002}]\n"
                                              << "MW1440";
    QTest::newRow("retired and used") << ranges + problem + "retired: [{id: MW1001, because: b}]\n"
                                      << "MW1440";
    QTest::newRow("replaced by nothing") << ranges + problem + "retired: [{id: MW1002, by: MW1003}]\n"
                                         << "MW1440";
    QTest::newRow("no YAML") << QByteArray("[") << "MW1402";
}

void TestProblemTable::damaged()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, ids);
    const QTemporaryDir folder;
    const QString path = folder.filePath("problems.yaml");
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text);
    file.close();
    QCOMPARE(tests::idsOf(ProblemTable::load(path.toStdString())), ids);
}

void TestProblemTable::missingResource()
{
    QCOMPARE(tests::idsOf(findResource("nothing/of/the/kind")), "MW1006");
    qputenv("MESHWRIGHT_RESOURCES", "/nowhere");
    QCOMPARE(tests::idsOf(findResource("problems.yaml")), "MW1006");
    QCOMPARE(resourcesDirectory(), std::filesystem::path("/nowhere"));
    qunsetenv("MESHWRIGHT_RESOURCES");
    QVERIFY(findResource("problems.yaml").has_value());
}

MESHWRIGHT_TEST(TestProblemTable)

} // namespace tst_problem_table

#include "tst_problem_table.moc"
