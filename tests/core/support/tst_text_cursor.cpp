// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/text_cursor.h"
#include "tests/test_class.h"

namespace tst_text_cursor {

using namespace meshwright;

class TestTextCursor : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void tokens();
    void brackets_data();
    void brackets();
    void problem();
};

void TestTextCursor::tokens()
{
    TextCursor cursor("  [ -12 , x_1 'two words' a-b.c \"open");
    QVERIFY(cursor.peek("["));
    QVERIFY(cursor.take("["));
    QVERIFY(!cursor.take("]"));
    QCOMPARE(cursor.integer(), std::optional<std::int64_t>(-12));
    QVERIFY(!cursor.integer());
    QVERIFY(cursor.take(","));
    QCOMPARE(cursor.word(), std::string_view("x_1"));
    QVERIFY(cursor.word().empty());
    QCOMPARE(cursor.quoted(), std::optional<std::string>("two words"));
    QVERIFY(!cursor.quoted());
    const std::size_t at = cursor.at();
    QCOMPARE(cursor.name(), std::string_view("a-b.c"));
    cursor.goTo(at);
    QCOMPARE(cursor.name(), std::string_view("a-b.c"));
    QVERIFY(!cursor.quoted());
    QCOMPARE(cursor.rest(), std::string_view("\"open"));
    QVERIFY(!cursor.atEnd());
    QVERIFY(TextCursor(" \n ").atEnd());
    QVERIFY(!TextCursor("99999999999999999999").integer());
}

void TestTextCursor::brackets_data()
{
    QTest::addColumn<QString>("written");
    QTest::addColumn<QString>("inside"); // null: not closed
    QTest::newRow("empty") << "()"
                           << "";
    QTest::newRow("nested") << "([a]{b(c)}) rest"
                            << "[a]{b(c)}";
    QTest::newRow("quotes") << "(\"]\") rest"
                            << "\"]\"";
    QTest::newRow("open") << "(a" << QString();
    QTest::newRow("other kind") << "(a]" << QString();
    QTest::newRow("open quote") << "(\"a)" << QString();
}

void TestTextCursor::brackets()
{
    QFETCH(QString, written);
    QFETCH(QString, inside);
    const std::string text = written.toStdString();
    TextCursor cursor(text);
    QVERIFY(cursor.take("("));
    const auto found = cursor.untilClosed();
    QCOMPARE(found.has_value(), !inside.isNull());
    if (found)
        QCOMPARE(QString::fromStdString(std::string(*found)), inside);
    else
        QCOMPARE(cursor.at(), std::size_t{1});
}

void TestTextCursor::problem()
{
    TextCursor cursor("a  b");
    cursor.word();
    const Problem problem = cursor.expected("MW1150", "thing", "\"c\"", "write c");
    QCOMPARE(problem.place.line, 1);
    QCOMPARE(problem.place.column, 4);
    QCOMPARE(QString::fromStdString(problem.message), QString("\"a  b\" is not a thing: expected \"c\", found \"b\""));
    const std::string text(300, 'x');
    QVERIFY(TextCursor(text).expected("MW1150", "thing", "y").message.size() < 200);
}

MESHWRIGHT_TEST(TestTextCursor)

} // namespace tst_text_cursor

#include "tst_text_cursor.moc"
