// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/text.h"
#include "tests/test_class.h"

namespace tst_text {

using namespace meshwright;

class TestText : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void joinAndSplit();
    void trimming();
    void integers_data();
    void integers();
    void numbers_data();
    void numbers();
    void suggestions_data();
    void suggestions();
    void bytes_data();
    void bytes();
    void seconds_data();
    void seconds();
    void counts_data();
    void counts();
    void rates();
    void widths();
};

void TestText::joinAndSplit()
{
    const std::vector<std::string> parts = {"a", "", "b"};
    QCOMPARE(join(parts, ", "), std::string("a, , b"));
    QCOMPARE(join(std::vector<std::string>{}, ","), std::string());
    QCOMPARE(split("a,,b", ','), parts);
    QCOMPARE(split("", ','), std::vector<std::string>{""});
    QCOMPARE(split("a,", ','), (std::vector<std::string>{"a", ""}));
}

void TestText::trimming()
{
    QCOMPARE(std::string(trimmed(" \t a b \r\n")), std::string("a b"));
    QCOMPARE(std::string(trimmed("  ")), std::string());
    QCOMPARE(std::string(trimmed("")), std::string());
}

void TestText::integers_data()
{
    QTest::addColumn<std::string>("input");
    QTest::addColumn<std::optional<std::int64_t>>("expected");
    using Answer = std::optional<std::int64_t>;

    QTest::newRow("plain") << std::string("42") << Answer(42);
    QTest::newRow("negative") << std::string("-7") << Answer(-7);
    QTest::newRow("largest") << std::string("9223372036854775807") << Answer(9223372036854775807);
    QTest::newRow("too large") << std::string("9223372036854775808") << Answer();
    QTest::newRow("empty") << std::string() << Answer();
    QTest::newRow("space") << std::string(" 1") << Answer();
    QTest::newRow("rest") << std::string("1x") << Answer();
    QTest::newRow("fraction") << std::string("1.5") << Answer();
    QTest::newRow("plus") << std::string("+1") << Answer();
}

void TestText::integers()
{
    QFETCH(std::string, input);
    QFETCH(std::optional<std::int64_t>, expected);
    QCOMPARE(parseInteger(input), expected);
}

void TestText::numbers_data()
{
    QTest::addColumn<std::string>("input");
    QTest::addColumn<std::optional<double>>("expected");
    using Answer = std::optional<double>;

    QTest::newRow("fraction") << std::string("1.5") << Answer(1.5);
    QTest::newRow("exponent") << std::string("2e3") << Answer(2000.0);
    QTest::newRow("integer") << std::string("3") << Answer(3.0);
    QTest::newRow("infinite") << std::string("inf") << Answer();
    QTest::newRow("not a number") << std::string("nan") << Answer();
    QTest::newRow("overflow") << std::string("1e999") << Answer();
    QTest::newRow("rest") << std::string("1.5 s") << Answer();
    QTest::newRow("empty") << std::string() << Answer();
}

void TestText::numbers()
{
    QFETCH(std::string, input);
    QFETCH(std::optional<double>, expected);
    QCOMPARE(parseNumber(input), expected);
}

void TestText::suggestions_data()
{
    QTest::addColumn<std::string>("name");
    QTest::addColumn<std::vector<std::string>>("candidates");
    QTest::addColumn<std::string>("expected");
    using Names = std::vector<std::string>;

    QTest::newRow("one letter off") << std::string("dat") << Names{"data", "model"} << std::string("did you mean \"data\"?");
    QTest::newRow("nothing near") << std::string("expert") << Names{"data", "model"} << std::string("one of: data, model");
    QTest::newRow("no candidates") << std::string("data") << Names{} << std::string();
    QTest::newRow("the nearest") << std::string("modal") << Names{"medal", "model", "modal2"}
                                 << std::string("did you mean \"modal2\"?");
    QTest::newRow("the beginning of one") << std::string("vocab") << Names{"hidden", "vocabulary"}
                                          << std::string("did you mean \"vocabulary\"?");
    QTest::newRow("the beginning of two") << std::string("vocab") << Names{"vocabulary", "vocab_padding"}
                                          << std::string("one of: vocabulary, vocab_padding");
    QTest::newRow("two letters swapped") << std::string("hsape") << Names{"shape"} << std::string("did you mean \"shape\"?");
    QTest::newRow("the beginning of one that is as near")
        << std::string("h10") << Names{"a10", "h100"} << std::string("did you mean \"h100\"?");
    QTest::newRow("short names") << std::string("z") << Names{"x"} << std::string("did you mean \"x\"?");
}

void TestText::suggestions()
{
    QFETCH(std::string, name);
    QFETCH(std::vector<std::string>, candidates);
    QFETCH(std::string, expected);
    QCOMPARE(suggestion(name, candidates), expected);
}

void TestText::bytes_data()
{
    QTest::addColumn<double>("value");
    QTest::addColumn<std::string>("expected");

    QTest::newRow("none") << 0.0 << std::string("0 B");
    QTest::newRow("bytes") << 512.0 << std::string("512 B");
    QTest::newRow("KiB") << 1536.0 << std::string("1.50 KiB");
    QTest::newRow("GiB") << 17179869184.0 << std::string("16.0 GiB");
    QTest::newRow("three figures") << 300.0 * 1024 * 1024 << std::string("300 MiB");
    QTest::newRow("negative") << -300.0 * 1024 << std::string("-300 KiB");
    QTest::newRow("largest unit") << 4096.0 * 1152921504606846976.0 << std::string("4096 EiB");
}

void TestText::bytes()
{
    QFETCH(double, value);
    QFETCH(std::string, expected);
    QCOMPARE(formatBytes(value), expected);
}

void TestText::seconds_data()
{
    QTest::addColumn<double>("value");
    QTest::addColumn<std::string>("expected");

    QTest::newRow("zero") << 0.0 << std::string("0 s");
    QTest::newRow("ns") << 1.5e-9 << std::string("1.50 ns");
    QTest::newRow("us") << 12.3e-6 << std::string("12.3 µs");
    QTest::newRow("ms") << 4.56e-3 << std::string("4.56 ms");
    QTest::newRow("s") << 1.23 << std::string("1.23 s");
    QTest::newRow("rounds up to s") << 0.99999 << std::string("1.00 s");
    QTest::newRow("min") << 125.0 << std::string("2 min 5 s");
    QTest::newRow("less than an hour") << 3599.4 << std::string("59 min 59 s");
    QTest::newRow("rounds up to an hour") << 3599.6 << std::string("1 h 0 min");
    QTest::newRow("h") << 8386.0 << std::string("2 h 20 min"); // 139 min 46 s
    QTest::newRow("a day in hours") << 99425.0 << std::string("27 h 37 min"); // 1657 min 5 s
    QTest::newRow("d") << 273600.0 << std::string("3 d 4 h");
    QTest::newRow("rounds up to days") << 172799.0 << std::string("2 d 0 h");
    QTest::newRow("years") << 1e15 << std::string("1.16e+10 d");
    QTest::newRow("negative") << -4.56e-3 << std::string("-4.56 ms");
}

void TestText::seconds()
{
    QFETCH(double, value);
    QFETCH(std::string, expected);
    QCOMPARE(formatSeconds(value), expected);
}

void TestText::counts_data()
{
    QTest::addColumn<double>("value");
    QTest::addColumn<std::string>("expected");

    QTest::newRow("plain") << 950.0 << std::string("950");
    QTest::newRow("k") << 12345.0 << std::string("12.3 k");
    QTest::newRow("M") << 4.56e6 << std::string("4.56 M");
    QTest::newRow("T") << 1.23e12 << std::string("1.23 T");
    QTest::newRow("rounds up") << 999600.0 << std::string("1.00 M");
}

void TestText::counts()
{
    QFETCH(double, value);
    QFETCH(std::string, expected);
    QCOMPARE(formatCount(value), expected);
}

/// As counts, but below a thousand with three figures too.
void TestText::rates()
{
    QCOMPARE(formatRate(0.123), std::string("0.12"));
    QCOMPARE(formatRate(7.0567), std::string("7.06"));
    QCOMPARE(formatRate(286.4), std::string("286"));
    QCOMPARE(formatRate(999.6), std::string("1.00 k"));
    QCOMPARE(formatRate(12345.0), std::string("12.3 k"));
}

void TestText::widths()
{
    QCOMPARE(displayWidth(""), std::size_t{0});
    QCOMPARE(displayWidth("abc"), std::size_t{3});
    QCOMPARE(displayWidth("12 µs │"), std::size_t{7});
}

MESHWRIGHT_TEST(TestText)

} // namespace tst_text

#include "tst_text.moc"
