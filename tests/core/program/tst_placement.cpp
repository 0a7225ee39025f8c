// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/placement.h"

#include "core/autodiff/differentiate.h"
#include "core/kernels/host_array.h"
#include "core/program/builder.h"
#include "core/runtime/evaluate.h"
#include "core/text/program_text.h"
#include "tests/test_class.h"

namespace tst_placement {

using namespace meshwright;

class TestPlacement : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void calls_data();
    void calls();
    void stacksLieOnTheHost();
    void argumentsThatAreOnlyMovedBack();
    void isTheIdentity();
};

namespace {

Program programOf(const std::string& body)
{
    return valueOf(readProgram("func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>) {\n" + body + "\n}\n", "main.mlir"));
}

/// "host", "device" or nothing, of each op.
QString memories(const Function& function)
{
    QStringList list;
    forEachOp(function, [&](OpId id) {
        if (const auto memory = movedTo(function[id]))
            list << (*memory == Placement::Host ? "host" : "device");
    });
    return list.join(" ");
}

} // namespace

void TestPlacement::calls_data()
{
    QTest::addColumn<QString>("call");
    QTest::addColumn<QString>("expected");
    const auto annotated = [](const char* memory) {
        return QString("@annotate_device_placement(%x) {has_side_effect = true, mhlo.frontend_attributes = "
                       "{_xla_buffer_placement = \"%1\"}}")
            .arg(memory);
    };
    QTest::newRow("XLA, to the host") << QString("@MoveToHost(%x)") << QString("host");
    QTest::newRow("XLA, back") << QString("@MoveToDevice(%x)") << QString("device");
    QTest::newRow("JAX, to the host") << annotated("pinned_host") << QString("host");
    QTest::newRow("JAX, to the host, not pinned") << annotated("unpinned_host") << QString("host");
    QTest::newRow("JAX, back") << annotated("device") << QString("device");
    QTest::newRow("another memory") << annotated("vmem") << QString("");
    QTest::newRow("another call") << QString("@InspectSharding(%x)") << QString("");
}

/// Read, and after writing and reading again.
void TestPlacement::calls()
{
    QFETCH(QString, call);
    QFETCH(QString, expected);
    const Program program = programOf(
        "%0 = stablehlo.custom_call " + call.toStdString() + " : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>");
    QCOMPARE(memories(program.functions.front()), expected);
    const Program again = valueOf(readProgram(writeProgram(program), "again.mlir"));
    QCOMPARE(memories(again.functions.front()), expected);
}

void TestPlacement::stacksLieOnTheHost()
{
    Function function;
    Builder builder(function);
    const TensorType type{DType::F32, {4}};
    const auto move = [&](ValueId value, Placement to) { return builder.add(OpKind::Other, {value}, moveCall(to, type)); };
    const ValueId x = builder.argument(type, "x", Role::Input);
    const OpId forward = builder.beginRepeat({3, 1, 0, false}, {x});
    const ValueId carried = function[builder.block()].arguments.front();
    const ValueId gone = move(carried, Placement::Host);
    builder.setResults({builder.unary(OpKind::Tanh, carried), gone});
    const std::vector<ValueId> passed = builder.endRepeat(forward);
    const OpId backward = builder.beginRepeat({3, 1, 1, true}, passed);
    const std::vector<ValueId> inside = function[builder.block()].arguments;
    const ValueId back = move(inside[1], Placement::Device);
    builder.setResults({builder.binary(OpKind::Add, inside[0], back)});
    const std::vector<ValueId> ended = builder.endRepeat(backward);
    builder.setResults(ended);

    const std::vector<bool> onHost = valuesOnHost(function);
    for (const ValueId value : {gone, passed[1], inside[1]})
        QVERIFY(onHost[value.at()]);
    for (const ValueId value : {x, carried, passed[0], inside[0], back, ended[0]})
        QVERIFY(!onHost[value.at()]);
}

void TestPlacement::argumentsThatAreOnlyMovedBack()
{
    Function function;
    Builder builder(function);
    const TensorType type{DType::F32, {4}};
    const ValueId back = builder.argument(type, "residual.0", Role::Activation);
    const ValueId both = builder.argument(type, "residual.1", Role::Activation);
    const ValueId unread = builder.argument(type, "residual.2", Role::Activation);
    const auto moveBack = [&](ValueId value) { return builder.add(OpKind::Other, {value}, moveCall(Placement::Device, type)); };
    const ValueId sum = builder.binary(OpKind::Add, moveBack(back), moveBack(both));
    builder.setResults({builder.binary(OpKind::Add, sum, both)});
    const std::vector<bool> onHost = valuesOnHost(function);
    QVERIFY(onHost[back.at()]);
    QVERIFY(!onHost[both.at()] && !onHost[unread.at()]);
}

/// On values and on cotangents.
void TestPlacement::isTheIdentity()
{
    const Program program = programOf("%0 = stablehlo.custom_call @MoveToHost(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
                                      "%1 = stablehlo.custom_call @MoveToDevice(%0) : (tensor<4xf32>) -> tensor<4xf32>\n"
                                      "return %1 : tensor<4xf32>");
    const HostArray x = HostArray::of({DType::F32, {4}}, std::vector<double>{1.0, -2.0, 0.5, 3.0});
    const Function& function = program.functions.front();
    QVERIFY(valueOf(evaluate(function, {&x, 1})).front() == x);
    const Differentiated derivative = valueOf(differentiate(function, {0}, {0}));
    QVERIFY(valueOf(evaluate(derivative.backward, {&x, 1})).front() == x);
}

MESHWRIGHT_TEST(TestPlacement)

} // namespace tst_placement

#include "tst_placement.moc"
