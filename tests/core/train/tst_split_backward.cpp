// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/split_backward.h"

#include "core/program/builder.h"
#include "core/program/verify.h"
#include "tests/plain_evaluator.h"
#include "tests/test_class.h"

#include <map>

namespace tst_split_backward {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

/// y = -(f(x w + b) + c): what comes back serves the gradients of w, b and c, of which those of b and c are the things themselves, and, but for
/// the first piece, the piece before.
Function backwardOf(bool isFirst)
{
    Function function;
    Builder b(function);
    const ValueId cotangent = b.argument({DType::F32, {2, 3}}, "ct.out");
    const ValueId slope = b.argument({DType::F32, {2, 3}}, "residual.slope");
    const ValueId x = b.argument({DType::F32, {4, 2}}, "residual.x");
    const ValueId w = b.argument({DType::F32, {3, 4}}, "w");
    const ValueId ofC = b.unary(OpKind::Negate, cotangent);
    const ValueId back = b.binary(OpKind::Multiply, ofC, slope);
    const ValueId ofW = b.matmul(x, back, DType::F32);
    std::vector<ValueId> results = {ofW, back, ofC};
    std::vector<std::string> names = {"grad.w", "grad.b", "grad.c"};
    if (!isFirst) {
        results.push_back(b.matmul(back, w, DType::F32));
        names.emplace_back("ct.in");
    }
    b.setResults(std::move(results), std::move(names));
    return function;
}

std::size_t opCount(const Function& function)
{
    return function.body().ops.size();
}

/// Runs a part on what is known by name, and adds its results to that.
void run(const Function& part, std::map<std::string, Array>& known)
{
    std::vector<Array> arguments;
    for (const ValueId argument : part.arguments())
        arguments.push_back(known.at(part[argument].name));
    const std::vector<Array> results = evaluatePlainly(part, arguments);
    for (std::size_t i = 0; i < results.size(); ++i)
        known[part.resultNames[i]] = results[i];
}

} // namespace

class TestSplitBackward : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void partsDoWhatTheWholeDoes_data();
    void partsDoWhatTheWholeDoes();
    void everyOpIsInOnePart_data();
    void everyOpIsInOnePart();
};

void TestSplitBackward::partsDoWhatTheWholeDoes_data()
{
    QTest::addColumn<bool>("isFirst");
    QTest::newRow("the first piece") << true;
    QTest::newRow("a later piece") << false;
}

void TestSplitBackward::partsDoWhatTheWholeDoes()
{
    QFETCH(bool, isFirst);
    const Function whole = backwardOf(isFirst);
    const SplitBackward split = splitBackward(whole);
    QVERIFY(verify(split.input, {}).empty() && verify(split.weight, {}).empty());
    QCOMPARE(split.weight.resultNames, (std::vector<std::string>{"grad.w", "grad.b", "grad.c"}));
    std::map<std::string, Array> expected = {{"ct.out", ramp({2, 3})}, {"residual.slope", ramp({2, 3}, 1.0)},
        {"residual.x", ramp({4, 2}, 2.0)}, {"w", ramp({3, 4}, 3.0)}};
    std::map<std::string, Array> found = expected;
    run(whole, expected);
    run(split.input, found);
    run(split.weight, found);
    for (const std::string& name : whole.resultNames)
        QCOMPARE(found.at(name).data, expected.at(name).data);
}

void TestSplitBackward::everyOpIsInOnePart_data()
{
    partsDoWhatTheWholeDoes_data();
}

/// What the first part has made, a gradient among it, the second takes over and does not make again.
void TestSplitBackward::everyOpIsInOnePart()
{
    QFETCH(bool, isFirst);
    const Function whole = backwardOf(isFirst);
    const SplitBackward split = splitBackward(whole);
    QCOMPARE(opCount(split.input) + opCount(split.weight), opCount(whole));
    QCOMPARE(opCount(split.weight), std::size_t{1}); // the product that makes the gradient of w
}

MESHWRIGHT_TEST(TestSplitBackward)

} // namespace tst_split_backward

#include "tst_split_backward.moc"
