// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/alike_functions.h"

#include "core/program/builder.h"
#include "tests/test_class.h"

#include <functional>

namespace tst_alike_functions {

using namespace meshwright;

namespace {

TensorSharding splitOver(std::int32_t axis)
{
    TensorSharding sharding = TensorSharding::replicatedOf(2);
    sharding.dims[0].axes = {AxisRef{axis, 1, 2}};
    return sharding;
}

/// x w, constrained, where w has the name of a layer.
Function layer(const std::string& name)
{
    Function function;
    function.name = "forward";
    Builder builder(function);
    const ValueId x = builder.argument({DType::F32, {4, 8}}, "act.inner.0", Role::Activation);
    const ValueId w = builder.argument({DType::F32, {8, 8}}, name + ".w", Role::Parameter);
    function[w].annotation = "sharding." + name + ".w";
    const ValueId y = builder.named(builder.matmul(x, w, DType::F32), "act." + name);
    const ValueId kept = builder.constrain(y, splitOver(0), "sharding.act." + name);
    builder.setResults({kept}, {"act." + name});
    return function;
}

} // namespace

class TestAlikeFunctions : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void names_data();
    void names();
    void functions_data();
    void functions();
    void causesAreRenamed();
};

void TestAlikeFunctions::names_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("renamed");
    QTest::newRow("alone") << "layers.0-7"
                           << "layers.8-15";
    QTest::newRow("within") << "grad.layers.0-7.ffn.w"
                            << "grad.layers.8-15.ffn.w";
    QTest::newRow("twice") << "layers.0-7.a and layers.0-7.b"
                           << "layers.8-15.a and layers.8-15.b";
    QTest::newRow("two parts") << "layers.0-7.a, layers.8-15.b"
                               << "layers.8-15.a, layers.16-23.b";
    QTest::newRow("a longer number") << "layers.0-71.w"
                                     << "layers.0-71.w";
    QTest::newRow("another word") << "mylayers.0-7.w"
                                  << "mylayers.0-7.w";
    QTest::newRow("none") << "embedding"
                          << "embedding";
    QTest::newRow("empty") << ""
                           << "";
}

void TestAlikeFunctions::names()
{
    QFETCH(QString, text);
    const Renaming names{{{"layers.0-7", "layers.8-15"}, {"layers.8-15", "layers.16-23"}}};
    QTEST(QString::fromStdString(names(text.toStdString())), "renamed");
}

void TestAlikeFunctions::functions_data()
{
    using Change = std::function<void(Function&)>;
    QTest::addColumn<Change>("change");
    QTest::addColumn<bool>("areAlike");
    const auto row = [](const char* name, bool areAlike, const Change& change) { QTest::newRow(name) << change << areAlike; };
    row("the next layer", true, [](Function&) {});
    row("its own name", true, [](Function& function) { function.name = "forward.1"; });
    row("a layout", false, [](Function& function) { function[function.arguments()[1]].sharding = splitOver(1); });
    row("a result's layout", false, [](Function& function) { function.resultShardings = {splitOver(1)}; });
    row("a shape", false, [](Function& function) { function.values.front().type.shape = {2, 8}; });
    row("an op", false, [](Function& function) { function.ops.front().phase = Phase::Backward; });
    row("a constraint", false,
        [](Function& function) { function.ops.back().as<ConstraintAttributes>().sharding = splitOver(1); });
    row("what a constraint comes from", false,
        [](Function& function) { function.ops.back().as<ConstraintAttributes>().origin = "sharding.act.*"; });
    row("the name of a second part", false, [](Function& function) { function.values.front().name = "out"; });
    row("the next of another part", true, [](Function& function) { function.values.front().name = "act.inner.1"; });
    row("one part as two", false, [](Function& function) { function[function.arguments()[1]].name = "layers.16-23.w"; });
    row("a name behind the layer's", false, [](Function& function) { function[function.arguments()[1]].name = "layers.8-15.b"; });
    row("a donation", false, [](Function& function) { function.donations = {{0, 0}}; });
}

void TestAlikeFunctions::functions()
{
    QFETCH(std::function<void(Function&)>, change);
    QFETCH(bool, areAlike);
    Function other = layer("layers.8-15");
    change(other);
    const auto names = renamingOf(layer("layers.0-7"), other);
    QCOMPARE(names.has_value(), areAlike);
    if (names)
        QCOMPARE((*names)("layers.0-7.w"), std::string("layers.8-15.w"));
}

void TestAlikeFunctions::causesAreRenamed()
{
    DeviceFunction device{layer("layers.0-7"), {}, {}};
    Function& function = device.function;
    CollectiveAttributes gather;
    gather.cause = {"layers.0-7.w", "dot_general", "layers.0-7.w lies in pieces", "sharding.layers.0-7.w"};
    function.ops.back().attributes = gather;
    const Function after = renamed(device, Renaming{{{"layers.0-7", "layers.8-15"}}}).function;
    const Cause expected{"layers.8-15.w", "dot_general", "layers.8-15.w lies in pieces", "sharding.layers.8-15.w"};
    QCOMPARE(after.ops.back().as<CollectiveAttributes>().cause, expected);
    QCOMPARE(after[after.arguments()[1]].name, std::string("layers.8-15.w"));
    QCOMPARE(after[after.arguments()[1]].annotation, std::string("sharding.layers.8-15.w"));
    QCOMPARE(after.resultNames.front(), std::string("act.layers.8-15"));
}

MESHWRIGHT_TEST(TestAlikeFunctions)

} // namespace tst_alike_functions

#include "tst_alike_functions.moc"
