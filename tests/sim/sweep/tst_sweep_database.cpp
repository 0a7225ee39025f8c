// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/sweep/sweep_database.h"

#include "core/support/file.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QFile>
#include <QTemporaryDir>

#include <sqlite3.h>
#include <unistd.h>

namespace tst_sweep_database {

using namespace meshwright;
using namespace meshwright::sim;
using Claim = SweepDatabase::ClaimState;

/// What is kept of a sweep, who may claim what, and files that are no such database.
class TestSweepDatabase : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init();
    void keepsOutcomes();
    void claims();
    void claimsOfTheDead();
    void givesClaimsBack();
    void lastSweep();
    void refusals_data();
    void refusals();
    void locked();
    void full();
    void damaged();
    void namesThatSqliteTakesForOthers();

private:
    std::string file(const char* name = "runs.sqlite") const { return m_folder->filePath(name).toStdString(); }
    /// Runs SQL on the file as another program would.
    void sql(const char* statements, const char* name = "runs.sqlite") const;

    std::unique_ptr<QTemporaryDir> m_folder;
};

namespace {

SweepPlan plan(const char* vary = "batch=1,2,3")
{
    SweepPlan plan;
    plan.name = "a study with \"quotes\"";
    plan.studyText = "meshwright: 1\n";
    plan.studyFile = "study.yaml";
    plan.settings = {"a=b"};
    plan.parameters = {valueOf(parseVary(vary))};
    return plan;
}

SweepOutcome fitting(double seconds)
{
    SweepOutcome o;
    o.state = SweepState::Fits;
    o.mesh = "data=8";
    o.hardware = "TPU v5e";
    o.devices = 8;
    o.batch = 4;
    o.stepSeconds = seconds;
    o.computeSeconds = seconds / 3.0;
    o.exposedSeconds = 1e-9;
    o.bubbleSeconds = 0.25;
    o.mfu = 0.1;
    o.peakBytes = std::int64_t{1} << 50;
    o.capacityBytes = 16'000'000'000;
    o.usableBytes = 14'000'000'000;
    o.boundBy = "compute";
    return o;
}

SweepOutcome refused()
{
    SweepOutcome o;
    o.problem = "MW1104";
    o.message = "dim 0 of size 10 is not divisible by 4";
    o.fix = "8 or 12";
    return o;
}

} // namespace

void TestSweepDatabase::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
}

void TestSweepDatabase::sql(const char* statements, const char* name) const
{
    sqlite3* db = nullptr;
    QCOMPARE(sqlite3_open(file(name).c_str(), &db), SQLITE_OK);
    QCOMPARE(sqlite3_exec(db, statements, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
}

void TestSweepDatabase::keepsOutcomes()
{
    const SweepDatabase::Stored one{"k1", fitting(1.0 / 3.0)};
    const SweepDatabase::Stored two{"k2", refused()};
    {
        auto database = valueOf(SweepDatabase::open(file()));
        QVERIFY(database.storeAndClaim(&one, {}));
        QVERIFY(database.storeAndClaim(&two, {}));
    }
    auto database = valueOf(SweepDatabase::open(file()));
    const auto found = valueOf(database.outcomes());
    QCOMPARE(found.size(), std::size_t(2));
    QVERIFY(found.at("k1") == one.outcome); // to the last bit
    QVERIFY(found.at("k2") == two.outcome);
    // What is there is not replaced.
    const SweepDatabase::Stored again{"k1", fitting(9.0)};
    QVERIFY(database.storeAndClaim(&again, {}));
    QVERIFY(valueOf(database.outcomes()).at("k1") == one.outcome);
}

void TestSweepDatabase::claims()
{
    auto a = valueOf(SweepDatabase::open(file()));
    auto b = valueOf(SweepDatabase::open(file()));
    QCOMPARE(valueOf(a.storeAndClaim(nullptr, "k1")).state, Claim::Mine);
    QCOMPARE(valueOf(b.storeAndClaim(nullptr, "k1")).state, Claim::Others);
    QCOMPARE(valueOf(b.storeAndClaim(nullptr, "k2")).state, Claim::Mine);
    const SweepDatabase::Stored done{"k1", fitting(1.0)};
    QCOMPARE(valueOf(a.storeAndClaim(&done, "k2")).state, Claim::Others);
    const auto known = valueOf(b.storeAndClaim(nullptr, "k1"));
    QCOMPARE(known.state, Claim::Done);
    QVERIFY(known.outcome == done.outcome);
}

void TestSweepDatabase::claimsOfTheDead()
{
    auto database = valueOf(SweepDatabase::open(file()));
    // A process that is no more; one that has this one's number but began at another time; and something that names none.
    const std::string statements
        = "INSERT INTO claims VALUES('k1', '999999999:5:1'), ('k2', '" + std::to_string(getpid()) + ":1:1'), ('k3', 'x')";
    sql(statements.c_str());
    for (const char* key : {"k1", "k2", "k3"})
        QCOMPARE(valueOf(database.storeAndClaim(nullptr, key)).state, Claim::Mine);
}

void TestSweepDatabase::givesClaimsBack()
{
    {
        auto database = valueOf(SweepDatabase::open(file()));
        QCOMPARE(valueOf(database.storeAndClaim(nullptr, "k1")).state, Claim::Mine);
    }
    auto database = valueOf(SweepDatabase::open(file()));
    QCOMPARE(valueOf(database.storeAndClaim(nullptr, "k1")).state, Claim::Mine);
}

void TestSweepDatabase::lastSweep()
{
    auto database = valueOf(SweepDatabase::open(file()));
    QCOMPARE(tests::idsOf(database.lastSweep()), "MW1791");
    const SweepDatabase::Stored one{"k1", fitting(1.0)};
    const SweepDatabase::Stored three{"k3", refused()};
    QVERIFY(database.addSweep(plan(), {"k1", "k2", "k3"}));
    QVERIFY(database.storeAndClaim(&one, {}) && database.storeAndClaim(&three, {}));
    const auto result = database.lastSweep();
    QVERIFY(result);
    QVERIFY(*result == sweepResult(plan(), {one.outcome, std::nullopt, three.outcome}));
    // The last one begun counts, and beginning one again makes no second.
    QVERIFY(database.addSweep(plan("batch=7"), {"k7"}));
    QVERIFY(valueOf(database.lastSweep()).rows.empty());
    QVERIFY(database.addSweep(plan(), {"k1", "k1", "k3"})); // the second point's study is another now
    QCOMPARE(valueOf(database.lastSweep()).rows.size(), std::size_t(3));
}

void TestSweepDatabase::refusals_data()
{
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QByteArray>("statements");
    QTest::addColumn<QString>("id");
    QTest::newRow("a text") << QByteArray(5000, 'x') << QByteArray() << "MW1785";
    QTest::newRow("another program's") << QByteArray() << QByteArray("CREATE TABLE t(x)") << "MW1786";
    QTest::newRow("another program's, with its id")
        << QByteArray() << QByteArray("CREATE TABLE t(x); PRAGMA application_id = 7") << "MW1786";
    QTest::newRow("a newer version") << QByteArray()
                                     << QByteArray(
                                            "CREATE TABLE sweeps(x); PRAGMA application_id = 1297568599; PRAGMA user_version = 2")
                                     << "MW1786";
    QTest::newRow("a folder") << QByteArray("folder") << QByteArray() << "MW1788";
    QTest::newRow("no such folder") << QByteArray("nowhere") << QByteArray() << "MW1788";
}

void TestSweepDatabase::refusals()
{
    QFETCH(QByteArray, content);
    QFETCH(QByteArray, statements);
    QFETCH(QString, id);
    std::string name = file();
    if (content == "folder") {
        name = m_folder->path().toStdString();
    } else if (content == "nowhere") {
        name = file("nowhere/runs.sqlite");
    } else if (!content.isEmpty()) {
        QFile out(QString::fromStdString(name));
        QVERIFY(out.open(QIODevice::WriteOnly));
        out.write(content);
    } else {
        sql(statements.constData());
    }
    const auto database = SweepDatabase::open(name);
    QVERIFY(!database);
    QCOMPARE(tests::text(database.error().front().id), id);
    QVERIFY(database.error().front().message.find(name) != std::string::npos);
    QCOMPARE(tests::idsOf(SweepDatabase::openExisting(file("not there"))), "MW1001");
    QVERIFY(writeFileAtomically(file("empty"), ""));
    QCOMPARE(tests::idsOf(SweepDatabase::openExisting(file("empty"))), "MW1791");
    QVERIFY(std::filesystem::is_empty(file("empty"))); // reading writes nothing into it
}

void TestSweepDatabase::locked()
{
    auto database = valueOf(SweepDatabase::open(file(), {.busyMilliseconds = 1}));
    sqlite3* other = nullptr;
    QCOMPARE(sqlite3_open(file().c_str(), &other), SQLITE_OK);
    QCOMPARE(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    QCOMPARE(tests::idsOf(database.storeAndClaim(nullptr, "k1")), "MW1787");
    QCOMPARE(sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(other);
    QCOMPARE(valueOf(database.storeAndClaim(nullptr, "k1")).state, Claim::Mine);
}

void TestSweepDatabase::full()
{
    auto database = valueOf(SweepDatabase::open(file(), {.mostPages = 20}));
    QString ids;
    std::size_t kept = 0;
    for (int i = 0; i < 1000 && ids.isEmpty(); ++i) {
        const SweepDatabase::Stored stored{"k" + std::to_string(i), refused()};
        ids = tests::idsOf(database.storeAndClaim(&stored, {}));
        if (ids.isEmpty())
            ++kept;
    }
    QCOMPARE(ids, "MW1789");
    QCOMPARE(valueOf(database.outcomes()).size(), kept);
}

void TestSweepDatabase::damaged()
{
    {
        auto database = valueOf(SweepDatabase::open(file()));
        for (int i = 0; i < 500; ++i) {
            const SweepDatabase::Stored stored{"k" + std::to_string(i), refused()};
            QVERIFY(database.storeAndClaim(&stored, {}));
        }
        QVERIFY(database.addSweep(plan(), {"k1", "k2", "k3"}));
    }
    QFile out(QString::fromStdString(file()));
    QVERIFY(out.open(QIODevice::ReadWrite));
    out.seek(8192);
    out.write(QByteArray(static_cast<int>(out.size()) - 8192, '\x5a'));
    out.close();
    auto database = SweepDatabase::open(file());
    QCOMPARE(database ? tests::idsOf(database->outcomes()) : tests::idsOf(database), "MW1790");
    // A plan that this program did not write.
    {
        auto good = valueOf(SweepDatabase::open(file("good.sqlite")));
        QVERIFY(good.addSweep(plan(), {"k1", "k2", "k3"}));
        for (const char* text :
            {"", "{", "{}", "[1]", R"({"name": 1})", R"({"name": "", "study": "", "file": "", "settings": [], "vary": []})",
                R"({"name": "", "study": "", "file": "", "settings": [], "vary": [{"name": "a", "values": []}]})"}) {
            sql(("UPDATE sweeps SET plan = '" + std::string(text) + "'").c_str(), "good.sqlite");
            QCOMPARE(tests::idsOf(good.lastSweep()), "MW1790");
        }
    }
}

void TestSweepDatabase::namesThatSqliteTakesForOthers()
{
    const QString before = QDir::currentPath();
    QVERIFY(QDir::setCurrent(m_folder->path()));
    for (const char* name : {":memory:", "file:x?mode=ro"}) {
        QVERIFY(SweepDatabase::open(name));
        QVERIFY(QFile::exists(QString("./") + name));
    }
    QDir::setCurrent(before);
}

MESHWRIGHT_TEST(TestSweepDatabase)

} // namespace tst_sweep_database

#include "tst_sweep_database.moc"
