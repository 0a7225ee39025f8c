// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/builder.h"
#include "core/train/verify.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <array>
#include <limits>
#include <random>

namespace tst_verify_step {

using namespace meshwright;

/// Verification must find a difference: the results of a small product are bent in one element.
class TestVerifyStep : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void verdict_data();
    void verdict();
    void integersAreExact_data();
    void integersAreExact();
    void overflowMustBeAlike();
    void whatIsNotFiniteProvesNothing();
    void whatIsOnlyRoundingProvesNothing();
    void sumsInAnotherOrder_data();
    void sumsInAnotherOrder();
    void accuraciesCountRows_data();
    void accuraciesCountRows();
    void arraysHaveToMove_data();
    void arraysHaveToMove();
    void madeOfOtherResults_data();
    void madeOfOtherResults();
    void errorsThatGrow_data();
    void errorsThatGrow();
    void decisionsThatRoundingTurns_data();
    void decisionsThatRoundingTurns();
};

namespace {

std::vector<VerifiedTensor> verified(double factor, double first)
{
    Function function;
    Builder builder(function);
    const ValueId x = builder.argument({DType::F32, {2, 2}}, "x");
    const ValueId scale = builder.splat({DType::F32, {2, 2}}, factor);
    builder.setResults({builder.binary(OpKind::Multiply, x, scale)}, {"y"});
    const std::vector<double> values = {1.0, 2.0, 3.0, 4.0};
    const std::vector<HostArray> arguments = {HostArray::of({DType::F32, {2, 2}}, values)};
    const std::vector<double> made = {first, 2.0 * factor, 3.0 * factor, 4.0 * factor};
    const std::vector<HostArray> sharded = {HostArray::of({DType::F32, {2, 2}}, made)};
    return valueOf(verifyStep(function, arguments, sharded, 8));
}

} // namespace

void TestVerifyStep::verdict_data()
{
    QTest::addColumn<double>("first");
    QTest::addColumn<bool>("passed");
    QTest::newRow("equal") << 0.5 << true;
    QTest::newRow("a rounding") << 0.5 + 1e-7 << true;
    QTest::newRow("wrong") << 0.5001 << false;
    QTest::newRow("zero") << 0.0 << false;
    QTest::newRow("NaN") << std::numeric_limits<double>::quiet_NaN() << false;
    QTest::newRow("infinite") << std::numeric_limits<double>::infinity() << false;
}

void TestVerifyStep::verdict()
{
    QFETCH(double, first);
    QFETCH(bool, passed);
    Verification verification;
    verification.add(0, verified(0.5, first));
    QCOMPARE(verification.passed, passed);
    QCOMPARE(verification.tensors.front().name, std::string("y"));
}

/// 1e38 times 4 does not fit f32: one device has infinity there, in double it is finite.
void TestVerifyStep::integersAreExact_data()
{
    QTest::addColumn<DType>("type");
    QTest::addColumn<qint64>("large");
    QTest::addColumn<qint64>("first"); // right: 1
    QTest::addColumn<bool>("passed");
    QTest::newRow("equal") << DType::S32 << qint64{1'000'000'000} << qint64{1} << true;
    QTest::newRow("one off beside a large one") << DType::S32 << qint64{1'000'000'000} << qint64{2} << false;
    QTest::newRow("one off, 64 bits") << DType::S64 << (qint64{1} << 60) << qint64{2} << false;
}

/// Nothing is rounded in integers: one that is off by one is wrong, however large another is.
void TestVerifyStep::integersAreExact()
{
    QFETCH(DType, type);
    QFETCH(qint64, large);
    QFETCH(qint64, first);
    QFETCH(bool, passed);
    Function function;
    Builder builder(function);
    const ValueId x = builder.argument({type, {2}}, "x");
    builder.setResults({builder.binary(OpKind::Add, x, builder.splat({type, {2}}, 1.0))}, {"y"});
    const auto array = [&](double a) { return HostArray::of({type, {2}}, std::array{a, static_cast<double>(large)}); };
    HostArray made = array(static_cast<double>(first));
    const HostArray argument = array(0.0);
    if (type == DType::S32) {
        made.as<std::int32_t>()[1] += 1;
    } else {
        made.as<std::int64_t>()[1] += 1; // no other double
    }
    const std::vector<VerifiedTensor> outcome = valueOf(verifyStep(function, {{argument}}, {{made}}, 8));
    QCOMPARE(outcome.front().passed, passed);
    QCOMPARE(outcome.front().shardedError > 0.0, !passed);
    if (type == DType::S64) { // a difference that no double shows
        HostArray last = array(1.0);
        const auto wrong = valueOf(verifyStep(function, {{argument}}, {{last}}, 8));
        QVERIFY(!wrong.front().passed && wrong.front().shardedError > 0.0);
    }
}

void TestVerifyStep::overflowMustBeAlike()
{
    QVERIFY(verified(1e38, 1e38).front().passed);
    QVERIFY(!verified(1e38, std::numeric_limits<double>::quiet_NaN()).front().passed);
}

/// Where both overflow everywhere, or there is no element, they agree and nothing is known.
void TestVerifyStep::whatIsNotFiniteProvesNothing()
{
    const auto verification = [](const std::vector<VerifiedTensor>& tensors) {
        Verification made;
        made.add(0, tensors);
        return made;
    };
    QVERIFY(verification(verified(0.5, 0.5)).provesAnything());
    const Verification infinite
        = verification(verified(std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()));
    QVERIFY(infinite.passed);
    QVERIFY(!infinite.provesAnything());
    QVERIFY(!verification(verified(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()))
                 .provesAnything());
    QVERIFY(!verification({}).provesAnything());
    // A later step that proves something counts, whichever of them is the worse.
    Verification both = infinite;
    both.add(1, verified(0.5, 0.5));
    QVERIFY(both.provesAnything());
}

/// (x + 1e8) - 1e8 in f32 has nothing left of x: whatever the devices make of it is within its rounding.
void TestVerifyStep::whatIsOnlyRoundingProvesNothing()
{
    const TensorType two{DType::F32, {2}};
    Function function;
    Builder builder(function);
    const ValueId x = builder.argument(two, "x");
    const ValueId large = builder.splat(two, 1e8);
    const ValueId lost = builder.binary(OpKind::Subtract, builder.binary(OpKind::Add, x, large), large);
    builder.setResults({lost, builder.binary(OpKind::Add, x, x)}, {"lost", "kept"});
    const auto arrayOf = [&](double first, double second) { return HostArray::of(two, std::array{first, second}); };
    const std::vector<HostArray> arguments = {arrayOf(0.5, 0.25)};
    const std::vector<HostArray> sharded = {arrayOf(0.0, 0.0), arrayOf(1.0, 0.5)};
    Verification verification;
    verification.add(0, valueOf(verifyStep(function, arguments, sharded, 2)));
    QVERIFY(verification.passed);
    QVERIFY(verification.provesAnything());
    QCOMPARE(verification.unproved(), std::size_t{1});
    QCOMPARE(verification.maxRelError(), 0.0);
    QVERIFY(verification.text().ends_with("but for 1 of 2 tensors, where rounding on one device is as large as the values"));
}

void TestVerifyStep::sumsInAnotherOrder_data()
{
    QTest::addColumn<double>("apart");
    QTest::addColumn<bool>("passed");
    QTest::newRow("as on one device") << 0.0 << true;
    QTest::newRow("some roundings of what is added") << 1.5e-6 << true;
    QTest::newRow("a number that is missing") << 1.0 << false;
    QTest::newRow("a small number that is missing") << 1e-4 << false;
}

/// Pairs that cancel but for a little, all exact in f32: the error of one device is nothing, and says nothing about another order of the sum.
void TestVerifyStep::sumsInAnotherOrder()
{
    QFETCH(double, apart);
    QFETCH(bool, passed);
    constexpr std::size_t kCount = 64;
    const TensorType many{DType::F32, {kCount}};
    Function function;
    Builder builder(function);
    const ValueId x = builder.argument(many, "x");
    builder.setResults({builder.add(OpKind::Reduce, {x}, ReduceAttributes{ReduceKind::Sum, {0}})}, {"sum"});
    std::vector<double> values;
    for (std::size_t i = 0; i < kCount; i += 2) {
        values.push_back(1.0 + static_cast<double>(i) / 1024.0);
        values.push_back(-values.back());
    }
    values.back() += 1.0 / 32.0; // the sum
    const std::vector<HostArray> arguments = {HostArray::of(many, values)};
    const std::vector<HostArray> sharded = {HostArray::of({DType::F32, {}}, std::array{1.0 / 32.0 + apart})};
    const std::vector<VerifiedTensor> tensors = valueOf(verifyStep(function, arguments, sharded, 2));
    QCOMPARE(tensors.front().unshardedError, 0.0);
    QCOMPARE(tensors.front().passed, passed);
    QVERIFY(tensors.front().proved > 0);
}

void TestVerifyStep::accuraciesCountRows_data()
{
    QTest::addColumn<double>("other"); ///< of the first row, beside the largest number, 1
    QTest::addColumn<int>("right"); ///< rows that the devices count, of 4; there are 3
    QTest::addColumn<bool>("passed");
    QTest::newRow("as many") << 0.5 << 3 << true;
    QTest::newRow("a row more") << 0.5 << 4 << false;
    QTest::newRow("a row less") << 0.5 << 2 << false;
    QTest::newRow("a row that rounding turns") << 1.0 - 3.0 / 128.0 << 2 << true;
    QTest::newRow("another row besides") << 1.0 - 3.0 / 128.0 << 1 << false;
}

/// Rows whose first number is the largest one. One more or less is wrong, but where another number is next to the largest.
void TestVerifyStep::accuraciesCountRows()
{
    QFETCH(double, other);
    QFETCH(int, right);
    QFETCH(bool, passed);
    Function function;
    Builder builder(function);
    const ValueId x = builder.argument({DType::BF16, {4, 2}}, "x");
    const ValueId first = builder.add(OpKind::Slice, {x}, SliceAttributes{{0, 0}, {4, 1}, {1, 1}});
    const ValueId isRight = builder.compare(
        CompareDirection::Equal, builder.reduce(ReduceKind::Max, first, {1}), builder.reduce(ReduceKind::Max, x, {1}));
    const ValueId count = builder.reduce(ReduceKind::Sum, builder.convert(isRight, DType::F32), {0});
    builder.setResults({builder.binary(OpKind::Divide, count, builder.splat({DType::F32, {}}, 4.0))}, {"accuracy"});
    const std::vector<HostArray> arguments
        = {HostArray::of({DType::BF16, {4, 2}}, std::array{1.0, other, 1.0, 0.25, 1.0, 0.25, 0.25, 1.0})};
    const std::vector<HostArray> sharded = {HostArray::of({DType::F32, {}}, std::array{right / 4.0})};
    Verification verification;
    verification.add(0, valueOf(verifyStep(function, arguments, sharded, 2)));
    QCOMPARE(verification.passed, passed);
    QCOMPARE(verification.maxRelError() > 0.0, !passed);
}

void TestVerifyStep::arraysHaveToMove_data()
{
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<int>("elements");
    QTest::addColumn<double>("rate");
    QTest::addColumn<double>("part"); // of the change that is made
    QTest::addColumn<bool>("passed");

    // One device's own change is 0.93 of the exact one here, and has to be 0.9 at least: of 4096 numbers it is less once in a thousand draws.
    QTest::newRow("all of it") << "bf16" << 16384 << 0.003 << 1.0 << true;
    QTest::newRow("nothing") << "bf16" << 16384 << 0.003 << 0.0 << false;
    QTest::newRow("twice") << "bf16" << 16384 << 0.003 << 2.0 << false;
    QTest::newRow("the other way") << "bf16" << 16384 << 0.003 << -1.0 << false;
    QTest::newRow("nothing, of f32") << "f32" << 4096 << 0.003 << 0.0 << false;
    QTest::newRow("nothing, far below a rounding: nobody can tell") << "bf16" << 4096 << 1e-7 << 0.0 << true;
    QTest::newRow("nothing, of few: nobody can tell") << "bf16" << 8 << 0.003 << 0.0 << true;
    QTest::newRow("no change to be made") << "bf16" << 4096 << 0.0 << 0.0 << true;
}

/// A parameter in 16 bits that stays as it is has an error of less than its rounding: it is found all the same.
void TestVerifyStep::arraysHaveToMove()
{
    QFETCH(const QString, dtype);
    QFETCH(const int, elements);
    QFETCH(const double, rate);
    QFETCH(const double, part);
    QFETCH(const bool, passed);
    const TensorType type{*parseDType(dtype.toStdString()), {elements}};
    Function function;
    Builder builder(function);
    const ValueId w = builder.argument(type, "w");
    const ValueId g = builder.argument(type, "g");
    builder.setResults(
        {builder.binary(OpKind::Subtract, w, builder.binary(OpKind::Multiply, g, builder.splat(type, rate)))}, {"new.w"});
    function.donations = {{0, 0}};
    for (const std::uint32_t seed : tests::seedRange(1, 8)) {
        std::mt19937_64 random(seed);
        std::normal_distribution<double> normal;
        std::vector<double> weights;
        std::vector<double> gradients;
        for (int i = 0; i < elements; ++i) {
            weights.push_back(normal(random));
            gradients.push_back(normal(random));
        }
        const std::vector<HostArray> arguments = {HostArray::of(type, weights), HostArray::of(type, gradients)};
        std::vector<double> made = arguments[0].values();
        const std::vector<double> moved = arguments[1].values();
        for (std::size_t i = 0; i < made.size(); ++i)
            made[i] -= part * rate * moved[i];
        const std::vector<HostArray> sharded = {HostArray::of(type, made)};
        const auto outcome = valueOf(verifyStep(function, arguments, sharded, 8));
        QVERIFY2(outcome.front().passed == passed, qPrintable(QString("seed %1: %2").arg(seed).arg(outcome.front().change)));
        if (type.dtype == DType::BF16) // it is within the tolerance
            QVERIFY(outcome.front().shardedError <= outcome.front().tolerance);
    }
}

void TestVerifyStep::madeOfOtherResults_data()
{
    QTest::addColumn<double>("moment");
    QTest::addColumn<double>("parameter");
    QTest::addColumn<bool>("passed");
    QTest::newRow("as on one device") << 0.0 << 1.0 << true;
    QTest::newRow("a rounding of a sum that is nothing, and the step that follows from it") << 1e-8 << 0.5 << true;
    QTest::newRow("the other way") << -1e-8 << 1.5 << true;
    QTest::newRow("a step that does not follow") << 1e-8 << 0.9 << false;
    QTest::newRow("a moment that is wrong, and what follows from it") << 1e-3 << 0.00001 << false;
}

/// A step as Adam's: m = x - y, p = 1 - m / (|m| + 1e-8). Where m is nothing (1 - 1), what it is rounded to decides where p goes.
void TestVerifyStep::madeOfOtherResults()
{
    QFETCH(double, moment);
    QFETCH(double, parameter);
    QFETCH(bool, passed);
    const TensorType two{DType::F32, {2}};
    Function function;
    Builder builder(function);
    const ValueId x = builder.argument(two, "x");
    const ValueId y = builder.argument(two, "y");
    const ValueId m = builder.binary(OpKind::Subtract, x, y);
    const ValueId most = builder.binary(OpKind::Add, builder.unary(OpKind::Abs, m), builder.splat(two, 1e-8));
    const ValueId step = builder.binary(OpKind::Divide, m, most);
    builder.setResults({builder.binary(OpKind::Subtract, builder.splat(two, 1.0), step), m}, {"new.p", "new.opt.m.p"});
    const auto arrayOf = [&](double first, double second) { return HostArray::of(two, std::array{first, second}); };
    const std::vector<HostArray> arguments = {arrayOf(1.0, 5.0), arrayOf(1.0, 1.0)};
    const std::vector<HostArray> sharded = {arrayOf(parameter, 0.0), arrayOf(moment, 4.0)};
    Verification verification;
    verification.add(0, valueOf(verifyStep(function, arguments, sharded, 8)));
    QCOMPARE(verification.passed, passed);
}

void TestVerifyStep::errorsThatGrow_data()
{
    QTest::addColumn<double>("fault");
    QTest::addColumn<bool>("passed");
    QTest::newRow("products in another order") << 0.0 << true;
    QTest::newRow("a value that is wrong") << 0.05 << false;
}

/// Twelve steps of x := 31/8 x (1 - x), each of which moves two values apart: the rounding of one device, for which two numbers may be lucky, bounds no
/// other order's.
void TestVerifyStep::errorsThatGrow()
{
    QFETCH(double, fault);
    QFETCH(bool, passed);
    constexpr int kSteps = 12;
    constexpr double kRate = 31.0 / 8.0;
    const TensorType two{DType::F32, {2}};
    Function function;
    Builder builder(function);
    ValueId x = builder.argument(two, "x");
    for (int step = 0; step < kSteps; ++step)
        x = builder.binary(OpKind::Multiply, builder.splat(two, kRate),
            builder.binary(OpKind::Multiply, x, builder.binary(OpKind::Subtract, builder.splat(two, 1.0), x)));
    builder.setResults({x}, {"x"});
    for (const std::uint32_t seed : tests::seedRange(1, 40)) {
        std::mt19937_64 random(seed);
        std::uniform_real_distribution<float> inside(0.1F, 0.9F);
        std::array<double, 2> start = {};
        std::array<double, 2> made = {};
        for (std::size_t i = 0; i < start.size(); ++i) {
            auto value = inside(random);
            start[i] = static_cast<double>(value);
            for (int step = 0; step < kSteps; ++step) {
                const float scaled = static_cast<float>(kRate) * value;
                value = scaled * (1.0F - value);
            }
            made[i] = static_cast<double>(value);
        }
        made[0] += fault;
        const auto outcome
            = valueOf(verifyStep(function, std::vector{HostArray::of(two, start)}, std::vector{HostArray::of(two, made)}, 2));
        QVERIFY2(outcome.front().passed == passed,
            qPrintable(QString("seed %1: %2 of %3").arg(seed).arg(outcome.front().shardedError).arg(outcome.front().tolerance)));
    }
}

void TestVerifyStep::decisionsThatRoundingTurns_data()
{
    constexpr double kNear = 1.0 - 0.9 / 512.0; // bf16 has 1 for it
    QTest::addColumn<double>("score");
    QTest::addColumn<double>("made");
    QTest::addColumn<bool>("passed");
    QTest::newRow("as on one device") << kNear << 0.0 << true;
    QTest::newRow("turned by a rounding of 16 bits") << kNear << 1.0 << true;
    QTest::newRow("another number") << kNear << 8.0 << false;
    QTest::newRow("turned far from the limit") << 0.5 << 1.0 << false;
}

/// A router in 16 bits takes what is above 1: an order of sums may turn what is next to it, though the parameter has 32 bits.
void TestVerifyStep::decisionsThatRoundingTurns()
{
    QFETCH(double, score);
    QFETCH(double, made);
    QFETCH(bool, passed);
    const TensorType wide{DType::F32, {16}};
    Function function;
    Builder builder(function);
    const ValueId scores = builder.convert(builder.argument(wide, "scores", Role::Parameter), DType::BF16);
    const ValueId isAbove = builder.compare(CompareDirection::Greater, scores, builder.splat({DType::BF16, {16}}, 1.0));
    builder.setResults({builder.convert(isAbove, DType::F32)}, {"taken"});
    std::vector<double> given(16, score);
    given.back() = 2.0;
    std::vector<double> taken(16, 0.0);
    taken.back() = 1.0;
    taken.front() = made;
    const auto outcome
        = valueOf(verifyStep(function, std::vector{HostArray::of(wide, given)}, std::vector{HostArray::of(wide, taken)}, 8));
    QCOMPARE(outcome.front().passed, passed);
}

MESHWRIGHT_TEST(TestVerifyStep)

} // namespace tst_verify_step

#include "tst_verify_step.moc"
