// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/builder.h"
#include "core/program/verify.h"

#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_verify {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

constexpr BlockId kBody{std::int32_t{0}};

/// f(x) = exp(x) + x, and a loop that adds x to it four times.
Function sample()
{
    Function f;
    f.name = "f";
    Builder b(f);
    const ValueId x = b.argument({DType::F32, {8, 2}}, "x");
    const ValueId y = b.binary(OpKind::Add, b.unary(OpKind::Exp, x), x);
    const OpId loop = b.beginRepeat({4, 1, 0, false}, {y, x});
    const auto inner = f[b.block()].arguments;
    b.setResults({b.binary(OpKind::Add, inner[0], inner[1])});
    b.setResults(b.endRepeat(loop));
    b.setBlock(kBody);
    return f;
}

const std::vector<NamedMesh>& meshes()
{
    static const std::vector<NamedMesh> kMeshes = {{"mesh", meshOf("a=4,b=2,c=6")}};
    return kMeshes;
}

std::int32_t badAxis(TensorSharding& sharding)
{
    sharding.dims[0].axes = {{5, 1, 2}};
    return 0;
}

} // namespace

class TestVerify : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void good();
    void problems_data();
    void problems();
    void emptyFunction();
    void functionNames();
    void subAxesThatFit();
    void afterPasses();
};

void TestVerify::good()
{
    const Function f = sample();
    QVERIFY2(verify(f, meshes()).empty(), qPrintable(text(describe(verify(f, meshes())))));
}

using Spoil = std::function<void(Function&)>;

void TestVerify::problems_data()
{
    QTest::addColumn<Spoil>("spoil");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("message");

    const auto row = [](const char* name, Spoil spoil, const char* id, const char* message) {
        QTest::newRow(name) << std::move(spoil) << QString(id) << QString(message);
    };
    // Values: 0 x, 1 exp, 2 sum, 3 and 4 the loop's arguments, 5 its sum, 6 its result. Ops: 0 exp, 1 add, 2 repeat, 3 the inner add.
    row(
        "operand count", [](Function& f) { f.ops[0].operands.push_back(ValueId(std::size_t{0})); }, "MW1301",
        "exponential: needs 1 operands, got 2");
    row(
        "operand shape",
        [](Function& f) {
            f.values[1].type.shape = {2, 8};
            f.ops[0].results = {};
            f.body().arguments.push_back(ValueId(std::size_t{1}));
        },
        "MW1306", "exponential: the results' types are not what the op makes");
    row(
        "shapes",
        [](Function& f) {
            f.values[0].type.shape = {2, 8};
            f.values[1].type.shape = {2, 9};
        },
        "MW1306", "exponential: the results' types are not what the op makes");
    row(
        "element type", [](Function& f) { f.values[0].type.dtype = DType::S32; }, "MW1303",
        "exponential: not for elements of type i32");
    row(
        "order", [](Function& f) { std::swap(f.body().ops[0], f.body().ops[1]); }, "MW1305", "add uses %1 before it is defined");
    row(
        "no value", [](Function& f) { f.ops[0].operands = {ValueId()}; }, "MW1305",
        "exponential uses an unknown value before it is defined");
    row(
        "result undefined", [](Function& f) { f.body().results = {ValueId(std::size_t{5})}; }, "MW1305",
        "the end of the block uses %5 before it is defined");
    row(
        "argument of a body outside", [](Function& f) { f.body().results = {ValueId(std::size_t{3})}; }, "MW1305",
        "the end of the block uses %3 before it is defined");
    row(
        "body sees out", [](Function& f) { f.ops[3].operands[1] = ValueId(std::size_t{0}); }, "MW1305",
        "add uses x before it is defined");
    row(
        "result type",
        [](Function& f) {
            f.values[2].type.dtype = DType::F64;
            f.ops[2].operands = {ValueId(std::size_t{0}), ValueId(std::size_t{0})};
        },
        "MW1306", "add: the results' types are not what the op makes");
    row(
        "no body", [](Function& f) { f.ops[2].bodies.clear(); }, "MW1307", "repeat: needs one body");
    row(
        "body arguments", [](Function& f) { f.ops[2].operands.pop_back(); }, "MW1307",
        "repeat: the body's arguments or results do not fit the op");
    row(
        "no such mesh",
        [](Function& f) {
            f.values[0].sharding = TensorSharding::replicatedOf(2);
            f.values[0].sharding->mesh = 3;
        },
        "MW1308", "the sharding of x: unknown mesh");
    row(
        "sharding rank", [](Function& f) { f.values[0].sharding = TensorSharding::replicatedOf(1); }, "MW1308",
        "the sharding of x: 1 dimensions for f32[8,2]");
    row(
        "unknown axis",
        [](Function& f) {
            f.values[0].sharding = TensorSharding::replicatedOf(2);
            badAxis(*f.values[0].sharding);
        },
        "MW1308", "the sharding of x: an axis is not in the mesh");
    row(
        "sub-axis",
        [](Function& f) {
            f.values[0].sharding = TensorSharding::replicatedOf(2);
            f.values[0].sharding->dims[0].axes = {{0, 1, 3}};
        },
        "MW1308", "the sharding of x: \"a\":(1)3 does not divide its axis");
    row(
        "axis twice",
        [](Function& f) {
            f.values[2].sharding = TensorSharding::replicatedOf(2);
            f.values[2].sharding->dims[0].axes = {{0, 1, 4}};
            f.values[2].sharding->unreduced = {{0, 1, 4}};
        },
        "MW1308", "the sharding of %2: \"a\" is used twice");
    row(
        "parts in no one grid",
        [](Function& f) {
            f.values[2].sharding = TensorSharding::replicatedOf(2);
            f.values[2].sharding->dims[0].axes = {{2, 1, 2}};
            f.values[2].sharding->unreduced = {{2, 3, 2}};
        },
        "MW1308", "the sharding of %2: \"c\":(3)2 and \"c\":(1)2 do not belong to one factorisation of their axis");
    row(
        "names",
        [](Function& f) {
            Builder(f).argument({DType::F32, {}}, "x");
        },
        "MW1309", "two values are named \"x\"");
}

void TestVerify::problems()
{
    QFETCH(Spoil, spoil);
    QFETCH(QString, id);
    QFETCH(QString, message);
    Function f = sample();
    spoil(f);
    const Problems found = verify(f, meshes());
    QVERIFY(!found.empty());
    QCOMPARE(text(found.front().id), id);
    QCOMPARE(text(found.front().message), message);
}

void TestVerify::emptyFunction()
{
    Function f;
    f.name = "empty";
    const Problems found = verify(f, {});
    QCOMPARE(found.size(), std::size_t{1});
    QCOMPARE(text(found[0].id), QString("MW1307"));
    QCOMPARE(text(found[0].place.path), QString("empty"));
}

void TestVerify::functionNames()
{
    Program program;
    program.meshes = meshes();
    program.functions = {sample(), sample()};
    const Problems found = verify(program);
    QCOMPARE(found.size(), std::size_t{1});
    QCOMPARE(text(found[0].message), QString("two functions are named \"f\""));
    QCOMPARE(text(found[0].id), QString("MW1309"));
}

void TestVerify::subAxesThatFit()
{
    Function f = sample();
    f.values[0].sharding = TensorSharding::replicatedOf(2);
    f.values[0].sharding->dims[0].axes = {{0, 1, 2}};
    f.values[0].sharding->dims[1].axes = {{0, 2, 2}};
    QVERIFY(verify(f, meshes()).empty());
}

/// Passes look at what they made where that is asked for.
void TestVerify::afterPasses()
{
    Function f = sample();
    f.values[2].sharding = TensorSharding::replicatedOf(2);
    f.values[2].sharding->dims[0].axes = {{5, 1, 2}};
    const bool before = verifiesPasses();
    setVerifyPasses(false);
    QVERIFY(faultsAfter("a pass", f, meshes()).empty());
    setVerifyPasses(true);
    const Problems faults = faultsAfter("a pass", f, meshes());
    setVerifyPasses(before);
    QCOMPARE(faults.size(), std::size_t{1});
    QCOMPARE(faults.front().id, std::string("MW1215"));
    QVERIFY(faults.front().message.starts_with("after a pass, the function \"f\" is not well formed: MW1308 "));
}

MESHWRIGHT_TEST(TestVerify)

} // namespace tst_verify

#include "tst_verify.moc"
