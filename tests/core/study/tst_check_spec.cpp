// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/check_spec.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_check_spec {

using namespace meshwright;
using namespace meshwright::tests;

/// The token of a spec's text that a problem is about, and the nearest spec that is right.
class TestCheckSpec : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void tokens_data();
    void tokens();
    void otherPrograms();
    void wrongMeshes();
};

namespace {

const StudyArray kArray
    = {"layers.1.w", StudyArray::Kind::Parameter, {64, 30}, {{DimRole::LayerInputs, 1}, {DimRole::LayerOutputs, 1}}};
const std::vector<MeshAxis> kMesh = {{"data", 4}, {"model", 2}};

} // namespace

void TestCheckSpec::tokens_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("marked"); // the ids, each with what it underlines
    QTest::addColumn<QString>("corrected");

    QTest::newRow("right") << "P('data', 'model')"
                           << ""
                           << "P('data', 'model')";
    QTest::newRow("unknown") << "P('dta', 'model')"
                             << "MW1102:dta"
                             << "P('data', 'model')";
    QTest::newRow("unknown, not near") << "P('expert', 'model')"
                                       << "MW1102:expert"
                                       << "";
    QTest::newRow("unknown without quotes") << "[modl, null]"
                                            << "MW1102:modl"
                                            << "P('model', None)";
    QTest::newRow("in a tuple") << "P(('data', 'modle'), None)"
                                << "MW1102:modle"
                                << "P(('data', 'model'), None)";
    QTest::newRow("two") << "P('dta', 'modle')"
                         << "MW1102:dta MW1102:modle"
                         << "P('data', 'model')";
    QTest::newRow("twice") << "P('data', 'data')"
                           << "MW1103:data"
                           << "P('data', None)";
    QTest::newRow("too long") << "P('data', None, 'model', None)"
                              << "MW1101:'model', None"
                              << "P('data', None)";
    QTest::newRow("does not divide") << "P(None, 'data')"
                                     << "MW1104:'data'"
                                     << "P(None, None)";
    QTest::newRow("a tuple does not divide") << "P(None, ('model', 'data'))"
                                             << "MW1104:('model', 'data')"
                                             << "P(None, 'model')";
    QTest::newRow("Shardy") << "[{\"data\"}, {\"model\"}]"
                            << ""
                            << "P('data', 'model')";
    QTest::newRow("tiles") << "{devices=[4,2]<=[8]}"
                           << ""
                           << "P('data', 'model')";
    QTest::newRow("placements that do not divide") << "[Shard(1), Replicate()]"
                                                   << "MW1104:[Shard(1), Replicate()]"
                                                   << "P(None, None)";
    QTest::newRow("unknown axis of Shardy's") << "[{\"dta\"}, {}]"
                                              << "MW1102:\"dta\""
                                              << "";
    QTest::newRow("a part of an axis") << "[{\"data\":(1)2}, {}]"
                                       << "MW1161:["
                                       << "";
    QTest::newRow("partial sums") << "[Partial(), Replicate()]"
                                  << "MW1161:["
                                  << "";
    QTest::newRow("no list") << "data"
                             << "MW1105:data"
                             << "";
    QTest::newRow("not closed") << "P('data', None"
                                << "MW1105:None"
                                << "";
    QTest::newRow("no closing quote") << "P('data, None)"
                                      << "MW1105:'data"
                                      << "";
    QTest::newRow("no comma") << "P('data' 'model')"
                              << "MW1105:'model'"
                              << "";
    QTest::newRow("a word too much") << "P('data') model"
                                     << "MW1105:model"
                                     << "";
    QTest::newRow("empty") << ""
                           << "MW1105:"
                           << "";
}

void TestCheckSpec::tokens()
{
    QFETCH(QString, text);
    QFETCH(QString, marked);
    QFETCH(QString, corrected);

    QStringList found;
    for (const SpecProblem& one : checkSpecText(text.toStdString(), kArray, kMesh)) {
        QVERIFY(one.range.offset + one.range.length <= static_cast<std::size_t>(text.size()));
        found << tests::text(one.problem.id) + ':'
                + text.mid(static_cast<qsizetype>(one.range.offset), static_cast<qsizetype>(one.range.length));
        QVERIFY(!one.problem.fix.empty());
    }
    QCOMPARE(found.join(' '), marked);

    const auto better = correctedSpec(text.toStdString(), kArray, kMesh);
    QCOMPARE(tests::text(better.value_or("")), corrected);
    if (better)
        QVERIFY(checkSpecText(*better, kArray, kMesh).empty());
}

/// Arrays of program files have no words for their dimensions.
void TestCheckSpec::otherPrograms()
{
    const StudyArray array{"arg0", StudyArray::Kind::Input, {30}, {}};
    const auto problems = checkSpecText("P('data')", array, kMesh);
    QCOMPARE(problems.size(), std::size_t{1});
    QCOMPARE(problems[0].problem.message, std::string("\"arg0\": dim 0 of size 30 is not divisible by 4"));
    QCOMPARE(checkSpecText("P(None, None)", array, kMesh)[0].problem.message,
        std::string("the spec P(None, None) has 2 entries, but \"arg0\" has rank 1"));
}

/// On a mesh that is itself wrong only names are checked.
void TestCheckSpec::wrongMeshes()
{
    for (const std::int64_t size : {std::int64_t{0}, std::int64_t{-4}, std::int64_t{1} << 62}) {
        const std::vector<MeshAxis> mesh = {{"data", size}, {"model", size}};
        QVERIFY(checkSpecText("P('data', 'model')", kArray, mesh).empty());
        QCOMPARE(checkSpecText("P('dta')", kArray, mesh).size(), std::size_t{1});
        QCOMPARE(correctedSpec("P('dta')", kArray, mesh).value_or(""), std::string("P('data',)"));
    }
}

MESHWRIGHT_TEST(TestCheckSpec)

} // namespace tst_check_spec

#include "tst_check_spec.moc"
