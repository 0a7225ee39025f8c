// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/cost/stack.h"

#include "core/study/study.h"
#include "core/support/resources.h"
#include "sim/hardware/catalogue.h"
#include "tests/test_class.h"

namespace tst_stack {

using namespace meshwright;
using namespace meshwright::sim;

/// The file of constants: what it may say, and whose constants are taken.
class TestStack : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void shippedFileIsWhole();
    void ownBeforeClass();
    void stackByPattern();
    void faults_data();
    void faults();
};

namespace {

const char* const kSmall = R"({"classes": {"gpu": {"step_s": 0.5}, "tpu": {"step_s": 0.25}}, "stacks": {
  "one": {"file": "^a", "software": "^first", "traits": {"attention": "flash1", "zero_stage": 1}, "constants": {"kernel_s": 1e-6},
          "chips": {"big": {"constants": {"matmul_efficiency": 0.5}, "fitted_on": ["z", "b"]}}}}})";

Chip chipNamed(const char* key, ChipClass chipClass)
{
    Chip chip;
    chip.key = key;
    chip.chipClass = chipClass;
    return chip;
}

} // namespace

void TestStack::shippedFileIsWhole()
{
    const auto calibration = Calibration::load(resourcesDirectory() / "hardware/calibration.json");
    QVERIFY2(calibration, calibration ? "" : describe(calibration.error()).c_str());
    QCOMPARE(calibration->stackOf("bloom_prequel_a100.json", "Megatron-DeepSpeed"), std::string("megatron-deepspeed"));
    QCOMPARE(calibration->stackOf("x.json", "MaxText (JAX/XLA)"), std::string("maxtext"));
    QCOMPARE(calibration->stackOf("x.json", "something else"), std::string());
    QCOMPARE(calibration->usualStack(chipNamed("v", ChipClass::Tpu)), std::string_view("jax"));
    QCOMPARE(calibration->usualStack(chipNamed("g", ChipClass::Gpu)), std::string_view());
    for (const std::string& word : stackWords())
        QVERIFY2(calibration->stackNamed(word), word.c_str());
    QVERIFY(!calibration->stackNamed("nvcc"));
    QCOMPARE(calibration->stackFor("nemo", chipNamed("g", ChipClass::Gpu)), std::string_view("megatron-bridge"));
    QCOMPARE(calibration->stackFor("plain", chipNamed("v", ChipClass::Tpu)), std::string_view());
    Chip newer = chipNamed("h", ChipClass::Gpu); // Megatron-LM of 2021 ran on the A100; on the H100 it is Megatron-Core
    newer.kernels.generation = "hopper";
    QCOMPARE(calibration->stackFor("megatron", newer), std::string_view("megatron-bridge"));
    QCOMPARE(calibration->stackFor("megatron", chipNamed("a", ChipClass::Gpu)), std::string_view("megatron-lm"));
    QCOMPARE(calibration->stackFor("", chipNamed("v", ChipClass::Tpu)), std::string_view("jax"));
}

void TestStack::ownBeforeClass()
{
    const auto calibration = Calibration::parse(kSmall, "x.json");
    QVERIFY2(calibration, calibration ? "" : describe(calibration.error()).c_str());
    const Chip big = chipNamed("big", ChipClass::Gpu);
    QCOMPARE(calibration->constants("one", big).matmulEfficiency, 0.5);
    QCOMPARE(calibration->constants("one", big).kernelSeconds, 1e-6); // the stack's
    QCOMPARE(calibration->constants("one", big).stepSeconds, 0.5); // the class's
    QCOMPARE(calibration->constants("one", chipNamed("other", ChipClass::Tpu)).stepSeconds, 0.25);
    QCOMPARE(calibration->constants("none", big).matmulEfficiency, 0.0);
    QVERIFY(calibration->traits("one").attention == AttentionKernel::Flash1);
    QCOMPARE(calibration->traits("one").zeroStage, 1);
    QCOMPARE(calibration->fittedIds(), (std::vector<std::string>{"b", "z"}));
}

void TestStack::stackByPattern()
{
    const auto calibration = valueOf(Calibration::parse(kSmall, "x.json"));
    QCOMPARE(calibration.stackOf("a.json", "First of all"), std::string("one"));
    QCOMPARE(calibration.stackOf("b.json", "First of all"), std::string());
    QCOMPARE(calibration.stackOf("a.json", "second"), std::string());
}

void TestStack::faults_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("path");

    QTest::newRow("not JSON") << QByteArray("{") << "";
    QTest::newRow("no classes") << QByteArray("{}") << "";
    QTest::newRow("unknown constant") << QByteArray(R"({"classes": {"gpu": {"speed": 1}}})") << "classes.gpu.speed";
    QTest::newRow("negative") << QByteArray(R"({"classes": {"gpu": {"step_s": -1}}})") << "classes.gpu.step_s";
    QTest::newRow("unknown trait") << QByteArray(R"({"classes": {}, "stacks": {"s": {"traits": {"colour": 1}}}})")
                                   << "stacks.s.traits.colour";
    QTest::newRow("kernel") << QByteArray(R"({"classes": {}, "stacks": {"s": {"traits": {"attention": "fast"}}}})")
                            << "stacks.s.traits.attention";
    QTest::newRow("kernels of the loss") << QByteArray(R"({"classes": {}, "stacks": {"s": {"traits": {"loss": 14}}}})")
                                         << "stacks.s.traits.loss";
    QTest::newRow("pattern") << QByteArray(R"({"classes": {}, "stacks": {"s": {"software": "("}}})") << "stacks.s.software";
}

void TestStack::faults()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, path);
    const auto calibration = Calibration::parse(text.toStdString(), "x.json");
    QVERIFY(!calibration);
    QCOMPARE(calibration.error().front().id, std::string("MW1765"));
    QCOMPARE(calibration.error().front().place.path, path.toStdString());
}

MESHWRIGHT_TEST(TestStack)

} // namespace tst_stack

#include "tst_stack.moc"
