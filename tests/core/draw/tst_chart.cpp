// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/chart.h"
#include "tests/test_class.h"

#include <cmath>

namespace tst_chart {

using namespace meshwright;

/// Ticks that people can read, and words that fit.
class TestChart : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void linearTicks_data();
    void linearTicks();
    void ticksStayInside();
    void logarithmicTicks_data();
    void logarithmicTicks();
    void wordsAreCutToFit();
    void quantities_data();
    void quantities();
    void textOnRolesIsReadable();
};

namespace {

QString textOf(const std::vector<chart::Tick>& ticks)
{
    QStringList texts;
    for (const chart::Tick& tick : ticks)
        texts << (tick.text.empty() ? QString("-") : QString::fromStdString(tick.text));
    return texts.join(" | ");
}

} // namespace

void TestChart::linearTicks_data()
{
    QTest::addColumn<double>("from");
    QTest::addColumn<double>("to");
    QTest::addColumn<int>("most");
    QTest::addColumn<Quantity>("quantity");
    QTest::addColumn<QString>("expected");

    constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
    QTest::newRow("memory") << 0.0 << 15.5 * kGiB << 4 << Quantity::Bytes << "0 | 5 GiB | 10 GiB | 15 GiB";
    QTest::newRow("little memory") << 0.0 << 900.0 << 5 << Quantity::Bytes << "0 | 200 B | 400 B | 600 B | 800 B";
    QTest::newRow("a step") << 0.0 << 18.6e-3 << 4 << Quantity::Seconds << "0 | 5 ms | 10 ms | 15 ms";
    QTest::newRow("in the middle") << 0.01234 << 0.01236 << 4 << Quantity::Seconds
                                   << "12.340 ms | 12.345 ms | 12.350 ms | 12.355 ms | 12.360 ms";
    QTest::newRow("short") << 0.0 << 2.5e-6 << 5 << Quantity::Seconds << "0 | 0.5 µs | 1.0 µs | 1.5 µs | 2.0 µs | 2.5 µs";
    QTest::newRow("plain") << 0.13 << 0.92 << 4 << Quantity::Plain << "0.2 | 0.4 | 0.6 | 0.8";
    QTest::newRow("below zero") << -1.0 << 1.0 << 4 << Quantity::Plain << "-1.0 | -0.5 | 0 | 0.5 | 1.0";
    QTest::newRow("steps") << 0.0 << 2000.0 << 4 << Quantity::Plain << "0 | 500 | 1000 | 1500 | 2000";
    QTest::newRow("count") << 0.0 << 4000.0 << 4 << Quantity::Count << "0 | 1 k | 2 k | 3 k | 4 k";
    QTest::newRow("one value") << 3.0 << 3.0 << 4 << Quantity::Plain << "3";
    QTest::newRow("nothing") << 0.0 << 0.0 << 4 << Quantity::Bytes << "0";
}

void TestChart::linearTicks()
{
    QFETCH(double, from);
    QFETCH(double, to);
    QFETCH(int, most);
    QFETCH(Quantity, quantity);
    QFETCH(QString, expected);
    QCOMPARE(textOf(chart::linearTicks(from, to, static_cast<std::size_t>(most), quantity)), expected);
}

void TestChart::ticksStayInside()
{
    for (const double scale : {1e-9, 3e-5, 0.7, 1.0, 12.0, 9.99e3, 4e8, 2e15}) {
        for (const double offset : {0.0, 0.3, 7.1}) {
            const auto ticks = chart::linearTicks(offset * scale, (offset + 1.0) * scale, 6, Quantity::Plain);
            QVERIFY(ticks.size() >= 2 && ticks.size() <= 7);
            QVERIFY(ticks.front().value >= (offset - 1e-6) * scale && ticks.back().value <= (offset + 1.0 + 1e-6) * scale);
        }
    }
}

void TestChart::logarithmicTicks_data()
{
    QTest::addColumn<double>("from");
    QTest::addColumn<double>("to");
    QTest::addColumn<QString>("expected");
    QTest::newRow("decades") << 0.5 << 200.0 << "1 | 10 | 100";
    QTest::newRow("small") << 5e-8 << 3e-6 << "1e-07 | 1e-06";
    QTest::newRow("within one decade") << 1.5 << 9.0 << "2 | 5";
    QTest::newRow("many") << 1e-8 << 1e4 << "1e-08 | - | - | 1e-05 | - | - | 0.01 | - | - | 10 | - | - | 10000";
}

void TestChart::logarithmicTicks()
{
    QFETCH(double, from);
    QFETCH(double, to);
    QFETCH(QString, expected);
    const auto ticks = chart::logarithmicTicks(from, to, 5, Quantity::Plain);
    if (QTest::currentDataTag() == QByteArray("many"))
        QVERIFY(std::count_if(ticks.begin(), ticks.end(), [](const auto& tick) { return !tick.text.empty(); }) <= 6);
    else
        QCOMPARE(textOf(ticks), expected);
}

void TestChart::wordsAreCutToFit()
{
    // 12 pixels: 7.2 a character.
    QCOMPARE(chart::fitted("layers.1.w", 80.0, 12.0), std::string("layers.1.w"));
    QCOMPARE(chart::fitted("layers.1.w", 60.0, 12.0), std::string("layers.…"));
    QCOMPARE(chart::fitted("layers.1.w", 20.0, 12.0), std::string());
    QCOMPARE(chart::fitted("µµµµµµµµµµ", 50.0, 12.0), std::string("µµµµµ…")); // whole characters
}

void TestChart::quantities_data()
{
    QTest::addColumn<double>("value");
    QTest::addColumn<Quantity>("quantity");
    QTest::addColumn<QString>("expected");
    QTest::newRow("plain") << 0.123456 << Quantity::Plain << "0.1235";
    QTest::newRow("no minus zero") << -0.0 << Quantity::Plain << "0";
    QTest::newRow("bytes") << 1536.0 << Quantity::Bytes << "1.50 KiB";
    QTest::newRow("seconds") << 0.0025 << Quantity::Seconds << "2.50 ms";
    QTest::newRow("count") << 12345.0 << Quantity::Count << "12.3 k";
    QTest::newRow("nan") << std::nan("") << Quantity::Bytes << "nan";
    QTest::newRow("inf") << -std::numeric_limits<double>::infinity() << Quantity::Seconds << "-inf";
}

void TestChart::quantities()
{
    QFETCH(double, value);
    QFETCH(Quantity, quantity);
    QFETCH(QString, expected);
    QCOMPARE(QString::fromStdString(quantityText(value, quantity)), expected);
}

void TestChart::textOnRolesIsReadable()
{
    for (const ColourRole role : kCategoryRoles) {
        for (const Theme theme : {Theme::Light, Theme::Dark}) {
            QVERIFY2(contrast(*colourOf(textPaintOn(role), theme), colourOf(role, theme)) >= 4.5, colourRoleName(role));
            QVERIFY2(contrast(*colourOf(hatchPaintOn(role), theme), colourOf(role, theme)) >= 2.5, colourRoleName(role));
        }
    }
}

MESHWRIGHT_TEST(TestChart)

} // namespace tst_chart

#include "tst_chart.moc"
