// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/initializers.h"
#include "core/program/verify.h"

#include "tests/plain_evaluator.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_initializers {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

Array keyArray(const RandomKey& key)
{
    return {{2}, {static_cast<double>(key[0]), static_cast<double>(key[1])}};
}

template <typename Make>
Array drawn(const RandomKey& key, Make make)
{
    Function f;
    Builder b(f);
    b.setPhase(Phase::Init);
    const ValueId argument = b.argument({DType::U32, {2}}, "key");
    b.setResults({make(b, argument)});
    if (!verify(f, {}).empty())
        return {};
    return evaluatePlainly(f, {keyArray(key)}).front();
}

struct Moments {
    double mean = 0.0;
    double variance = 0.0;
    double largest = 0.0;
};

Moments momentsOf(const Array& array)
{
    Moments m;
    const auto count = static_cast<double>(array.data.size());
    for (const double x : array.data) {
        m.mean += x / count;
        m.variance += x * x / count;
        m.largest = std::max(m.largest, std::abs(x));
    }
    return m;
}

} // namespace

class TestInitializers : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void normalAsJax_data();
    void normalAsJax();
    void manyAsJax_data();
    void manyAsJax();
    void uniformBounds();
    void moments_data();
    void moments();
    void constants();
    void narrowTypes();
};

// JAX's documentation prints these ("Pseudorandom numbers": random.normal of key(42) in today's mode; of PRNGKey(0), shape (1,), in the
// older one). This evaluator computes in double, so that the last digits may differ.
void TestInitializers::normalAsJax_data()
{
    QTest::addColumn<quint64>("seed");
    QTest::addColumn<Shape>("shape");
    QTest::addColumn<bool>("partitionable");
    QTest::addColumn<double>("expected");

    QTest::newRow("partitionable") << quint64{42} << Shape{} << true << -0.028304616;
    QTest::newRow("legacy") << quint64{0} << Shape{1} << false << -0.20584226;
}

void TestInitializers::normalAsJax()
{
    QFETCH(quint64, seed);
    QFETCH(Shape, shape);
    QFETCH(bool, partitionable);
    QFETCH(double, expected);
    const Array values = drawn(keyOfSeed(seed), [&](Builder& b, ValueId key) { return normal(b, key, shape, partitionable); });
    QVERIFY2(std::abs(values.data.at(0) - expected) < 1e-6, qPrintable(QString::number(values.data.at(0), 'g', 10)));
}

/// What JAX prints of many: `jax.random.normal` of key(0) and shape (10,) in both modes, and its documentation's example of
/// `lecun_normal`, key(42) and shape (2, 3), a truncated normal of the older mode.
void TestInitializers::manyAsJax_data()
{
    using Make = std::function<ValueId(Builder&, ValueId)>;
    QTest::addColumn<quint64>("seed");
    QTest::addColumn<Make>("make");
    QTest::addColumn<std::vector<double>>("expected");

    const auto normals
        = [](bool partitionable) { return Make([=](Builder& b, ValueId key) { return normal(b, key, {10}, partitionable); }); };
    QTest::newRow("legacy normal") << quint64{0} << normals(false)
                                   << std::vector<double>{-0.3721109, 0.26423115, -0.18252768, -0.7368197, -0.44030377,
                                          -0.1521442, -0.67135346, -0.5908641, 0.73168886, 0.5673026};
    QTest::newRow("partitionable normal") << quint64{0} << normals(true)
                                          << std::vector<double>{1.6226422, 2.0252647, -0.43359444, -0.07861735, 0.1760909,
                                                 -0.97208923, -0.49529874, 0.4943786, 0.6643493, -0.9501635};
    QTest::newRow("legacy truncated normal") << quint64{42} << Make([](Builder& b, ValueId key) {
        return initialized(b, Initializer::LecunNormal, key, {DType::F32, {2, 3}}, 2, false);
    }) << std::vector<double>{0.46700746, 0.8414632, 0.8518669, -0.61677957, -0.67402434, 0.09683388};
}

void TestInitializers::manyAsJax()
{
    using Make = std::function<ValueId(Builder&, ValueId)>;
    QFETCH(quint64, seed);
    QFETCH(Make, make);
    QFETCH(std::vector<double>, expected);
    const Array values = drawn(keyOfSeed(seed), make);
    QCOMPARE(values.data.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        QVERIFY2(std::abs(values.data[i] - expected[i]) < 1e-6, qPrintable(QString::number(values.data[i], 'g', 10)));
}

void TestInitializers::uniformBounds()
{
    const Array values = drawn(keyOfSeed(3), [](Builder& b, ValueId key) {
        return uniform(b, key, {100, 100}, -2.0, 3.0, true);
    });
    const auto [least, most] = std::minmax_element(values.data.begin(), values.data.end());
    QVERIFY(*least >= -2.0 && *least < -1.99);
    QVERIFY(*most < 3.0 && *most > 2.99);
}

void TestInitializers::moments_data()
{
    QTest::addColumn<Initializer>("initializer");
    QTest::addColumn<double>("variance");
    QTest::addColumn<double>("largest"); // no draw is larger

    // fan-in 50; a truncated normal ends at 2 of its own deviations before it is cut
    QTest::newRow("normal") << Initializer::Normal << 1.0 << 6.0;
    QTest::newRow("normal / sqrt(fan in)") << Initializer::NormalOverSqrtFanIn << 1.0 / 50 << 6.0 / std::sqrt(50.0);
    QTest::newRow("lecun") << Initializer::LecunNormal << 1.0 / 50 << 2.0 / .87962566 / std::sqrt(50.0);
    QTest::newRow("he") << Initializer::HeNormal << 2.0 / 50 << 2.0 / .87962566 * std::sqrt(2.0 / 50.0);
}

void TestInitializers::moments()
{
    QFETCH(Initializer, initializer);
    QFETCH(double, variance);
    QFETCH(double, largest);
    for (const bool partitionable : {false, true}) {
        const Array values = drawn(keyOfSeed(1), [&](Builder& b, ValueId key) {
            return initialized(b, initializer, key, {DType::F32, {50, 400}}, 50, partitionable);
        });
        QCOMPARE(values.data.size(), std::size_t{20000});
        const Moments m = momentsOf(values);
        QVERIFY(std::abs(m.mean) < 0.03 * std::sqrt(variance)); // 4 deviations
        QVERIFY(std::abs(m.variance / variance - 1.0) < 0.04);
        QVERIFY(m.largest <= largest * (1 + 1e-6));
    }
}

void TestInitializers::constants()
{
    for (const auto& [initializer, value] : {std::pair{Initializer::Zeros, 0.0}, std::pair{Initializer::Ones, 1.0}}) {
        QVERIFY(!isRandom(initializer));
        const Array values = drawn(keyOfSeed(1), [&](Builder& b, ValueId) {
            return initialized(b, initializer, {}, {DType::F32, {3}}, 1, true);
        });
        QCOMPARE(values.data, std::vector<double>(3, value));
    }
    QVERIFY(isRandom(Initializer::HeNormal));
}

void TestInitializers::narrowTypes()
{
    Function f;
    Builder b(f);
    const ValueId key = b.argument({DType::U32, {2}});
    QCOMPARE(text(typeText(b.type(initialized(b, Initializer::LecunNormal, key, {DType::BF16, {2, 3}}, 2, true)))),
        QString("bf16[2,3]"));
}

MESHWRIGHT_TEST(TestInitializers)

} // namespace tst_initializers

#include "tst_initializers.moc"
