// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/pattern.h"

#include "tests/test_class.h"

namespace tst_pattern {

using namespace meshwright;

class TestPattern : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void finds_data();
    void finds();
    void replaces();
    void knowsWhatIsAPattern();
    void leavesLongTextsAlone();
};

void TestPattern::finds_data()
{
    QTest::addColumn<QString>("expression");
    QTest::addColumn<bool>("inEitherCase");
    QTest::addColumn<QString>("text");
    QTest::addColumn<bool>("isAll");
    QTest::addColumn<QStringList>("found"); // matches, their groups behind them

    QTest::newRow("all of it") << R"((\d+)x(\d+))" << false << "8x16" << true << QStringList{"8x16", "8", "16"};
    QTest::newRow("parts of it") << R"((\d+)x(\d+))" << false << "2x3 and 4x5" << false
                                 << QStringList{"2x3", "2", "3", "4x5", "4", "5"};
    QTest::newRow("a group that takes no part") << R"((\d+)(x)?)" << false << "8" << true << QStringList{"8", "8", ""};
    QTest::newRow("nothing") << "h100" << false << "H100" << false << QStringList{};
    QTest::newRow("in either case") << "h100" << true << "8 H100" << false << QStringList{"H100"};
}

void TestPattern::finds()
{
    QFETCH(QString, expression);
    QFETCH(bool, inEitherCase);
    QFETCH(QString, text);
    QFETCH(bool, isAll);
    QFETCH(QStringList, found);
    const Pattern pattern(expression.toStdString(), inEitherCase ? Pattern::Letters::InEitherCase : Pattern::Letters::AsWritten);
    const std::string in = text.toStdString();
    QStringList parts;
    for (const Pattern::Match& match : pattern.allIn(in)) {
        QCOMPARE(in.substr(match.begin, match.end - match.begin), match.groups.front());
        for (const std::string& group : match.groups)
            parts.push_back(QString::fromStdString(group));
    }
    QCOMPARE(parts, found);
    QCOMPARE(pattern.matchOf(in).has_value(), isAll);
    const auto first = pattern.firstIn(in);
    QCOMPARE(first.has_value(), !found.isEmpty());
    if (first)
        QCOMPARE(QString::fromStdString(first->groups.front()), found.front());
}

void TestPattern::replaces()
{
    QCOMPARE(
        Pattern(R"(layers\.(\d+))").replacedIn("layers.3.w + layers.12.b", "layer $1"), std::string("layer 3.w + layer 12.b"));
}

void TestPattern::knowsWhatIsAPattern()
{
    QVERIFY(Pattern::isValid("v[0-9]+"));
    QVERIFY(!Pattern::isValid("v[0-9"));
}

void TestPattern::leavesLongTextsAlone()
{
    const Pattern letters("(a+)b");
    const std::string longest = std::string(Pattern::kLongest - 1, 'a') + "b";
    QVERIFY(letters.matchOf(longest) && letters.firstIn(longest));
    QCOMPARE(letters.replacedIn(longest, "c"), std::string("c"));
    const std::string longer = "a" + longest;
    QVERIFY(!letters.matchOf(longer) && !letters.firstIn(longer) && letters.allIn(longer).empty());
    QCOMPARE(letters.replacedIn(longer, "c"), longer);
    const std::string huge(1 << 20, 'a'); // of which the library would use up the stack
    QVERIFY(!letters.firstIn(huge));
}

MESHWRIGHT_TEST(TestPattern)

} // namespace tst_pattern

#include "tst_pattern.moc"
