// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/compare/gates.h"

#include "core/text/program_text.h"
#include "sim/report/diff_results.h"
#include "sim/report/finding_files.h"
#include "sim/session/comparable_of.h"
#include "tests/json_schema.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QXmlStreamReader>

namespace tst_compare {

using namespace meshwright;
using namespace meshwright::sim;

/// Comparing two things, the gates, reading results of all kinds, and the files that CI servers read.
class TestCompare : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void nothingDiffers();
    void arrays();
    void collectives();
    void figures();
    void unknownIsNotCompared();
    void gates_data();
    void gates();
    void sizesAreNoSharding();
    void stagesAreDevicesOfTheirOwn();
    void wrongGates_data();
    void wrongGates();
    void gateOnTheUnknown();
    void studies();
    void programs();
    void namedShardings();
    void resultKinds_data();
    void resultKinds();
    void wrongResults_data();
    void wrongResults();
    void damagedAnywhere();
    void sarif();
    void junit();
};

namespace {

Comparable thing()
{
    Comparable one;
    one.kind = "study";
    one.file = "a.yaml";
    one.mesh = std::vector<MeshAxis>{{"data", 4}, {"model", 2}};
    one.arrays
        = std::vector<ComparedArray>{{"w", "f32", Shape{8, 8}, "P('data', None)", 16, 64}, {"b", "f32", Shape{8}, "P()", 8, 32}};
    one.collectives = std::vector<ComparedCollective>{{"all_reduce", "data", "backward", "grad.w", "sums", "sharding.x", 1, 100},
        {"all_gather", "model", "forward", "w", "", "", 2, 50}};
    one.figures = {stepTimeFigure(1e-3), peakBytesFigure(1000.0)};
    one.fits = true;
    one.boundBy = "compute";
    return one;
}

Comparable changed()
{
    Comparable one = thing();
    one.file = "b.yaml";
    (*one.arrays)[0].spec = "P(None, 'model')";
    (*one.arrays)[0].pieceElements = 32;
    (*one.arrays)[0].pieceBytes = 128;
    (*one.arrays)[1].name = "c";
    (*one.collectives)[0].bytes = 200;
    (*one.collectives)[1].axes = "data";
    one.collectives->push_back({"all_to_all", "data", "forward", "x", "moved", "", 1, 10});
    one.figures = {stepTimeFigure(1.04e-3), peakBytesFigure(1500.0)};
    one.fits = false;
    one.boundBy = "all_reduce over data";
    return one;
}

/// `time fails, memory passes`
QString verdicts(const std::string& gates, const Comparison& comparison)
{
    QStringList words;
    for (const GateResult& result : valueOf(judge(valueOf(parseGates(gates)), comparison)))
        words << tests::text(result.gate.text) + (result.passes() ? " passes" : " fails");
    return words.join(", ");
}

QByteArray fileOf(const QString& path)
{
    QFile file(QString(MESHWRIGHT_SOURCE_DIR) + "/" + path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

std::shared_ptr<const Analysis> analysed(const QString& example, std::vector<std::string> settings = {})
{
    static Session session(valueOf(defaultCatalogue()));
    return session.analyse({fileOf("resources/examples/" + example).toStdString(), example.toStdString(), std::move(settings)});
}

} // namespace

void TestCompare::nothingDiffers()
{
    const Comparison comparison = compare(thing(), thing());
    QVERIFY(comparison.same());
    QCOMPARE(comparison.sameArrays, 2);
    QCOMPARE(comparison.sameCollectives, 2);
    QVERIFY(diffText(comparison, {}).find("no difference") != std::string::npos);
    // Whole dimensions at the end of a spec, and the order of results, are no difference.
    Comparable other = thing();
    (*other.arrays)[0].spec = "P('data')";
    std::swap((*other.arrays)[0], (*other.arrays)[1]);
    std::swap((*other.collectives)[0], (*other.collectives)[1]);
    QVERIFY(compare(thing(), other).same());
}

void TestCompare::arrays()
{
    const Comparison comparison = compare(thing(), changed());
    QCOMPARE(comparison.arrays.size(), std::size_t(3)); // by name: b is gone, c is new, w has changed
    QVERIFY(comparison.arrays[0].isGone() && comparison.arrays[0].before->name == "b");
    QVERIFY(comparison.arrays[1].isNew() && comparison.arrays[1].after->name == "c");
    QCOMPARE(tests::text(changeText(comparison.arrays[2])), "P('data', None) -> P(None, 'model'), 64 B -> 128 B a device");
    QCOMPARE(tests::text(changeText(comparison.arrays[1])), "f32[8] P(), 32 B a device");
    QCOMPARE(comparison.arrayBytes->before.value, 96.0);
    QCOMPARE(comparison.arrayBytes->after.value, 160.0);
}

void TestCompare::collectives()
{
    const Comparison comparison = compare(thing(), changed());
    QCOMPARE(comparison.collectives.size(), std::size_t(3));
    QStringList words;
    for (const auto& change : comparison.collectives)
        words << tests::text(collectiveText(change.either()) + ": " + changeText(change));
    QCOMPARE(words.join(" | "),
        "all_reduce of grad.w over data, backward: 1 x 100 B -> 1 x 200 B | all_gather of w over data, forward: over data "
        "instead of model | "
        "all_to_all of x over data, forward: 1 x 10 B");
    QVERIFY(comparison.collectives[2].isNew());
    QCOMPARE(comparison.collectiveBytes->after.value - comparison.collectiveBytes->before.value, 110.0);
    // Several calls that are told apart by nothing are one.
    Comparable twice = thing();
    (*twice.collectives)[0].bytes = 50;
    twice.collectives->push_back((*twice.collectives)[0]);
    (*twice.collectives)[0].calls = 0;
    QVERIFY(compare(thing(), twice).collectives.empty());
}

void TestCompare::figures()
{
    const Comparison comparison = compare(thing(), changed());
    QCOMPARE(comparison.figures.size(), std::size_t(2));
    QCOMPARE(tests::text(changeText(comparison.figures[0])), "1.00 ms -> 1.04 ms (+4.0 %)");
    Comparable zero = thing();
    zero.figures[0].value = 0.0;
    QCOMPARE(tests::text(changeText(compare(zero, thing()).figures[0])), "0 s -> 1.00 ms (from nothing)");
    QVERIFY(*comparison.fits->before && !*comparison.fits->after);
    QCOMPARE(tests::text(*comparison.boundBy->after), "all_reduce over data");
}

void TestCompare::unknownIsNotCompared()
{
    Comparable little;
    little.kind = "named shardings";
    const Comparison comparison = compare(thing(), little);
    QVERIFY(comparison.same());
    QVERIFY(!comparison.comparesArrays && !comparison.comparesCollectives && !comparison.comparesMesh);
    QVERIFY(diffText(comparison, {})
                .find("not compared, because one of the two does not report it: layouts of arrays, collectives, times and memory")
        != std::string::npos);
    QCOMPARE(tests::resultErrors(QByteArray::fromStdString(diffJson(comparison, {}))), QString());
}

void TestCompare::gates_data()
{
    QTest::addColumn<QString>("gates");
    QTest::addColumn<QString>("forChanged");
    QTest::addColumn<QString>("backwards");
    QTest::newRow("any") << "any"
                         << "any fails"
                         << "any fails";
    QTest::newRow("sharding") << "sharding"
                              << "sharding fails"
                              << "sharding fails";
    QTest::newRow("mesh") << "mesh"
                          << "mesh passes"
                          << "mesh passes";
    QTest::newRow("collectives") << "collectives"
                                 << "collectives fails"
                                 << "collectives fails";
    QTest::newRow("only more") << "new-collectives"
                               << "new-collectives fails"
                               << "new-collectives passes";
    QTest::newRow("bytes") << "bytes"
                           << "bytes fails"
                           << "bytes passes";
    QTest::newRow("bytes, some") << "bytes>200%"
                                 << "bytes>200% passes"
                                 << "bytes>200% passes";
    QTest::newRow("time") << "time, time>5%,time>3.9%,time>3%"
                          << "time fails, time>5% passes, time>3.9% fails, time>3% fails"
                          << "time passes, time>5% passes, time>3.9% passes, time>3% passes";
    QTest::newRow("memory") << "memory > 2 %"
                            << "memory > 2 % fails"
                            << "memory > 2 % passes";
    QTest::newRow("fits") << "fits"
                          << "fits fails"
                          << "fits passes";
}

void TestCompare::gates()
{
    QFETCH(QString, gates);
    QTEST(verdicts(gates.toStdString(), compare(thing(), changed())), "forChanged");
    QTEST(verdicts(gates.toStdString(), compare(changed(), thing())), "backwards");
    if (!gates.isEmpty() && gates != "mesh")
        QVERIFY(!verdicts(gates.toStdString(), compare(thing(), thing())).contains("fails"));
}

void TestCompare::sizesAreNoSharding()
{
    Comparable larger = thing();
    (*larger.arrays)[0].shape = Shape{16, 8};
    (*larger.arrays)[0].pieceElements = 32;
    (*larger.arrays)[0].pieceBytes = 128;
    QCOMPARE(verdicts("sharding,any,bytes", compare(thing(), larger)), "sharding passes, any fails, bytes fails");
}

/// A device has the arrays and sends the data of its own stage alone: 96 bytes of arrays on stage 0 and all, 100 bytes sent by stage 1.
void TestCompare::stagesAreDevicesOfTheirOwn()
{
    Comparable pipeline = thing();
    (*pipeline.arrays)[0].stages = {0};
    pipeline.arrays->push_back({"c", "f32", Shape{4}, "P()", 4, 16, {1}});
    (*pipeline.collectives)[0].stage = 1;
    (*pipeline.collectives)[1].stage = 0;
    const Comparison comparison = compare(pipeline, pipeline);
    QCOMPARE(comparison.arrayBytes->before.value, 96.0);
    QCOMPARE(comparison.collectiveBytes->before.value, 100.0);
    Comparable moved = pipeline;
    moved.arrays->back().stages = {0};
    QCOMPARE(verdicts("any,bytes", compare(pipeline, moved)), "any fails, bytes fails");
}

void TestCompare::wrongGates_data()
{
    QTest::addColumn<QString>("gates");
    QTest::addColumn<QString>("fix");
    QTest::newRow("unknown") << "shardings"
                             << "did you mean \"sharding\"?";
    QTest::newRow("a limit where there is none") << "sharding>5%"
                                                 << "write sharding alone";
    QTest::newRow("no limit") << "time>"
                              << "write time>5%";
    QTest::newRow("a limit below nothing") << "time>-5%"
                                           << "write time>5%";
    QTest::newRow("no percent") << "time>5"
                                << "write time>5%";
    QTest::newRow("none") << " "
                          << "name some of any, mesh, sharding";
    QTest::newRow("an empty one") << "time,,memory"
                                  << "one of: any, mesh, sharding";
}

void TestCompare::wrongGates()
{
    QFETCH(QString, gates);
    const auto parsed = parseGates(gates.toStdString());
    QCOMPARE(tests::idsOf(parsed), "MW1941");
    QFETCH(QString, fix);
    QVERIFY2(parsed.error().front().fix.find(fix.toStdString()) != std::string::npos, parsed.error().front().fix.c_str());
}

void TestCompare::gateOnTheUnknown()
{
    Comparable little;
    const Comparison comparison = compare(thing(), little);
    for (const char* gate : {"sharding", "mesh", "collectives", "new-collectives", "bytes", "time", "memory", "fits", "problems"})
        QCOMPARE(tests::idsOf(judge(valueOf(parseGates(gate)), comparison)), "MW1942");
    QVERIFY(valueOf(judge(valueOf(parseGates("any")), comparison)).front().passes());
}

void TestCompare::studies()
{
    const auto before = analysed("digits.yaml");
    const auto after = analysed("digits.yaml", {"mesh.data=8", "mesh.model=1", "batch=96"});
    const Comparison comparison = compareStudies(*before, *after);
    QCOMPARE(tests::text(axesText(*comparison.mesh->after)), "data=8,model=1");
    QVERIFY(!comparison.sentence.empty());
    const auto weight = std::find_if(comparison.arrays.begin(), comparison.arrays.end(),
        [](const auto& change) { return change.either().name == "layers.1.w"; });
    QVERIFY(weight != comparison.arrays.end());
    QCOMPARE(*weight->before->pieceBytes, 256 * 128 * 4);
    QCOMPARE(*weight->after->pieceBytes, 256 * 256 * 4);
    QVERIFY(compareStudies(*before, *before).same());
    // A study against what simulate wrote of it: nothing differs, to the last bit.
    const auto simulated = simulateStudy(*before->study, valueOf(defaultCatalogue()));
    const auto budget = readComparable(simulationJson({valueOf(simulated)}), "budget.json");
    QVERIFY2(budget, budget ? "" : describe(budget.error()).c_str());
    const Comparison kept = compare(*budget, comparableOf(*before));
    QVERIFY2(kept.same(), diffText(kept, {}).c_str());
    QVERIFY(kept.comparesArrays && kept.comparesCollectives && kept.comparesMesh && kept.comparesFits);
    QCOMPARE(kept.figures.size(), std::size_t(5));
    for (const Comparison& one : {comparison, kept}) {
        const auto gates = valueOf(judge(valueOf(parseGates("any,time>5%")), one));
        QCOMPARE(tests::resultErrors(QByteArray::fromStdString(diffJson(one, gates))), QString());
        QCOMPARE(diffJson(one, gates), diffJson(one, gates));
        QVERIFY(!diffMarkdown(one, gates).empty());
    }
}

void TestCompare::programs()
{
    constexpr const char* kProgram = R"(
sdy.mesh @mesh = <["data"=4]>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
)";
    const auto comparableOfText = [](std::string text) { return comparableOf(valueOf(readProgram(text, "p.mlir")), "p.mlir"); };
    const auto before = comparableOfText(kProgram);
    QVERIFY2(before, before ? "" : describe(before.error()).c_str());
    std::string other = kProgram;
    other.replace(other.find("{\"data\"}, {}"), 12, "{}, {\"data\"}");
    const Comparison comparison = compare(*before, valueOf(comparableOfText(other)));
    QVERIFY(!comparison.arrays.empty());
    QCOMPARE(tests::text(comparison.arrays.front().either().name), "arg0");
    QVERIFY(std::any_of(comparison.collectives.begin(), comparison.collectives.end(),
        [](const auto& change) { return change.isNew(); })); // a partial sum
    QVERIFY(compare(*before, *before).same());
    QCOMPARE(tests::idsOf(comparableOfText(
                 "func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {\n  return %arg0 : tensor<8xf32>\n}\n")),
        "MW1222");
}

void TestCompare::namedShardings()
{
    // The form of MaxText's golden files.
    const auto text = [](const char* spec, int size) {
        return fmt::format(R"({{
  ".params/['params']/['decoder']/['mlp']/['wi_0']/['kernel']": {{
    "mesh": {{"axis_names": ["data", "fsdp", "expert"], "shape": {{"data": 1, "fsdp": 16, "expert": 2}}}},
    "partition_spec": {}, "shape": [{}, 1, 10944]}},
  ".step": {{"mesh": {{"axis_names": ["data", "fsdp", "expert"], "shape": {{"data": 1, "fsdp": 16, "expert": 2}}}}, "partition_spec": [], "shape": []}}
}})",
            spec, size);
    };
    const auto before = readComparable(text(R"([["fsdp", "expert"], null, null])", 2048), "a.json");
    QVERIFY2(before, before ? "" : describe(before.error()).c_str());
    QCOMPARE(tests::text(before->kind), "named shardings");
    QCOMPARE(tests::text((*before->arrays)[0].spec), "P(('fsdp', 'expert'), None, None)");
    QCOMPARE(*(*before->arrays)[0].pieceElements, 2048 / 32 * 10944);
    const Comparison comparison = compare(*before, valueOf(readComparable(text(R"(["fsdp", null, null])", 2048), "b.json")));
    QCOMPARE(comparison.arrays.size(), std::size_t(1));
    QCOMPARE(tests::text(changeText(comparison.arrays[0])),
        "P(('fsdp', 'expert'), None, None) -> P('fsdp', None, None), 700416 elements -> 1400832 elements a device");
    QCOMPARE(verdicts("sharding,mesh,bytes>50%", comparison), "sharding fails, mesh passes, bytes>50% fails");
    // Its logical shardings have no mesh.
    const auto logical = readComparable(R"({"w": {"partition_spec": ["expert", null], "shape": [64, 8]}})", "c.json");
    QVERIFY(logical && !logical->mesh && !(*logical->arrays)[0].pieceElements);
    QVERIFY(isComparableResult(R"({"w": {"partition_spec": []}})"));
    QVERIFY(!isComparableResult(R"({"meshwright": 1, "model": {}})")); // a study in JSON
    QVERIFY(!isComparableResult("meshwright: 1"));
}

void TestCompare::resultKinds_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("kind");
    QTest::addColumn<int>("figures");
    const QByteArray uses
        = R"("collectives": [{"op": "all_reduce", "axes": "data", "count": 2, "bytes_per_device": 8, "phase": "forward", "cause": {"value": "w"}}])";
    QTest::newRow("training")
        << R"({"schema": "meshwright.training/1", "step_time_s": {"median": 0.1}, "peak_bytes_per_device": 7, "phases": [{"mesh": "data=8"}], )"
            + uses + "}"
        << "training" << 2;
    QTest::newRow("search") << QByteArray(
        R"json({"schema": "meshwright.search/1", "plans": [{"mesh": {"data": 8}, "specs": {"w": "P('data')"}, "model_time_s": 1, "peak_bytes_per_device": 7, "fits": true}]})json")
                            << "search" << 2;
    QTest::newRow("sweep") << QByteArray(
        R"({"schema": "meshwright.sweep/1", "best": 1, "rows": [{"state": "refused"}, {"mesh": "data=8", "step_time_s": 1, "peak_bytes_per_device": 7}]})")
                           << "sweep" << 2;
    QTest::newRow("problems") << QByteArray(
        R"({"schema": "meshwright.problems/1", "problems": [{"id": "MW1104", "message": "no", "severity": "warning", "path": "sharding.x"}]})")
                              << "problems" << 0;
    QTest::newRow("propagation") << QByteArray(
        R"json({"schema": "meshwright.propagation/1", "functions": [{"name": "main", "values": [{"value": "%0", "name": "", "type": "f32[8,4]", "spec": "P('data', None)", "sharding": ""}]}]})json")
                                 << "propagation" << 0;
    QTest::newRow("partition") << R"({"schema": "meshwright.partition/1", "functions": [{"name": "main", )" + uses + "}]}"
                               << "partition" << 0;
}

void TestCompare::resultKinds()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, kind);
    QFETCH(int, figures);
    QVERIFY(isComparableResult(text.toStdString()));
    const auto read = readComparable(text.toStdString(), "r.json");
    QVERIFY2(read, read ? "" : describe(read.error()).c_str());
    QCOMPARE(tests::text(read->kind), kind);
    QCOMPARE(static_cast<int>(read->figures.size()), figures);
    QVERIFY(read->mesh || kind == "problems" || kind == "propagation" || kind == "partition");
    QVERIFY(compare(*read, *read).same());
    // A problem that is new fails its gate, one that is gone does not.
    if (kind == "problems") {
        Comparable none = *read;
        none.problems->clear();
        QCOMPARE(verdicts("problems,any", compare(none, *read)), "problems fails, any fails");
        QCOMPARE(verdicts("problems,any", compare(*read, none)), "problems passes, any fails");
    }
    if (kind == "partition")
        QCOMPARE(read->collectives->front().bytes, 16);
}

void TestCompare::wrongResults_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("ids");
    QTest::newRow("no JSON") << QByteArray("{") << "MW1811";
    QTest::newRow("another JSON") << QByteArray("{\"a\": 1}") << "MW1811";
    QTest::newRow("several results") << QByteArray("[{}, {}]") << "MW1811";
    QTest::newRow("of another kind") << QByteArray(R"({"schema": "meshwright.layout/1"})") << "MW1811";
    QTest::newRow("newer") << QByteArray(R"({"schema": "meshwright.simulation/2"})") << "MW1813";
    QTest::newRow("a wrong mesh") << QByteArray(R"({"schema": "meshwright.simulation/1", "mesh": 7})") << "MW1812";
    QTest::newRow("a wrong figure") << QByteArray(R"({"schema": "meshwright.simulation/1", "step_time_s": "long"})") << "MW1812";
    QTest::newRow("a wrong collective") << QByteArray(
        R"({"schema": "meshwright.simulation/1", "collectives": [{"op": 1, "axes": "x", "count": -1, "bytes_per_device": 1}]})")
                                        << "MW1812 MW1812";
    QTest::newRow("no times") << QByteArray(R"({"schema": "meshwright.training/1", "peak_bytes_per_device": 1})") << "MW1812";
    QTest::newRow("no plan") << QByteArray(R"({"schema": "meshwright.search/1", "plans": []})") << "MW1812";
    QTest::newRow("nothing fits") << QByteArray(R"({"schema": "meshwright.sweep/1", "best": null, "rows": []})") << "MW1812";
    QTest::newRow("no such row") << QByteArray(R"({"schema": "meshwright.sweep/1", "best": 3, "rows": []})") << "MW1812";
    QTest::newRow("a wrong spec") << QByteArray(R"({"w": {"partition_spec": [1]}})") << "MW1812";
    QTest::newRow("a wrong mesh of MaxText")
        << QByteArray(R"({"w": {"partition_spec": [], "mesh": {"axis_names": ["a"], "shape": {}}}})") << "MW1812";
    QTest::newRow("too deep") << QByteArray(R"({"schema": )") + QByteArray(100, '[') + QByteArray(100, ']') + "}"
                              << "MW1811";
}

void TestCompare::wrongResults()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, ids);
    QCOMPARE(tests::idsOf(readComparable(text.toStdString(), "r.json")), ids);
}

void TestCompare::damagedAnywhere()
{
    const std::string good
        = R"json({"schema": "meshwright.simulation/1", "mesh": [["data", 8]], "step_time_s": 1.5, "arrays": [{"name": "w", "type": "f32[8,4]", "spec": "P('data')", "bytes_per_device": 16}], "collectives": [{"op": "all_reduce", "axes": "data", "count": 2, "bytes_per_device": 8, "cause": {"value": "w"}}]})json";
    QVERIFY(readComparable(good, "r.json"));
    for (std::size_t at = 0; at < good.size(); ++at) {
        for (const char c : {'"', '[', '}', '9', '-', ',', '\0', '\xff'}) {
            std::string text = good;
            text[at] = c;
            const auto read = readComparable(text, "r.json");
            QVERIFY(read || !read.error().empty());
        }
        (void)readComparable(std::string_view(good).substr(0, at), "r.json");
    }
}

void TestCompare::sarif()
{
    const std::vector<FindingCase> cases
        = {{"a b.yaml",
               {{"MW1104", "not \"divisible\"", "use 8", Place{"dir/a b.yaml", 3, 5, "sharding.x"}, Severity::Error, "rule"},
                   {"MW1431", "m", {}, {}, Severity::Warning}},
               "c.yaml"},
            {"c.yaml", {{"MW1104", "again", {}, Place{"standard input"}, Severity::Note}}, "c.yaml"}};
    const QJsonObject document
        = QJsonDocument::fromJson(QByteArray::fromStdString(sarifText(cases, {{"MW1104", "a title"}}))).object();
    QCOMPARE(document["version"].toString(), "2.1.0");
    const QJsonObject run = document["runs"].toArray().at(0).toObject();
    const QJsonArray rules = run["tool"].toObject()["driver"].toObject()["rules"].toArray();
    QCOMPARE(rules.size(), 2);
    QCOMPARE(rules.at(0).toObject()["shortDescription"].toObject()["text"].toString(), "a title");
    const QJsonArray results = run["results"].toArray();
    QCOMPARE(results.size(), 3);
    QStringList words;
    for (const auto& value : results) {
        const QJsonObject result = value.toObject();
        const QJsonObject place = result["locations"].toArray().at(0).toObject()["physicalLocation"].toObject();
        QCOMPARE(rules.at(result["ruleIndex"].toInt()).toObject()["id"], result["ruleId"]);
        words << QString("%1 %2 %3:%4")
                     .arg(result["ruleId"].toString(), result["level"].toString(),
                         place["artifactLocation"].toObject()["uri"].toString())
                     .arg(place["region"].toObject()["startLine"].toInt());
    }
    QCOMPARE(words.join(" | "), "MW1104 error dir/a%20b.yaml:3 | MW1431 warning c.yaml:1 | MW1104 note c.yaml:1");
    QVERIFY(results.at(0).toObject()["message"].toObject()["text"].toString().contains("Fix: use 8"));
}

void TestCompare::junit()
{
    const std::vector<FindingCase> cases = {{"<a>&.yaml", {{"MW1104", "not \"divisible\" <by> 4\x01", {}, {}, Severity::Error}}},
        {"b.yaml", {{"MW1431", "only a warning", {}, {}, Severity::Warning}}}, {"c.yaml", {}}};
    const QByteArray xml = QByteArray::fromStdString(junitText("check", cases, Severity::Error));
    QXmlStreamReader reader(xml);
    QStringList elements;
    while (!reader.atEnd()) {
        if (reader.readNext() == QXmlStreamReader::StartElement)
            elements << reader.name().toString()
                    + (reader.attributes().hasAttribute("failures") ? "=" + reader.attributes().value("failures").toString()
                                                                    : QString());
    }
    QVERIFY2(!reader.hasError(), qPrintable(reader.errorString()));
    QCOMPARE(elements.join(' '), "testsuites=1 testsuite=1 testcase failure testcase system-out testcase");
    QVERIFY(junitText("check", cases, Severity::Warning).find("failures=\"2\"") != std::string::npos);
}

MESHWRIGHT_TEST(TestCompare)

} // namespace tst_compare

#include "tst_compare.moc"
