// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/table.h"
#include "tests/test_class.h"

namespace tst_table {

using namespace meshwright;
using Align = TextTable::Align;

class TestTable : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void alignsColumns();
    void headerOnly();
    void missingCellsAndUtf8();
};

void TestTable::alignsColumns()
{
    TextTable table({{"axis"}, {"size", Align::Right}});
    table.addRow({"data", "16"});
    table.addRow({"model", "2"});
    QCOMPARE(table.rowCount(), std::size_t{2});
    QCOMPARE(table.text(), std::string("axis   size\ndata     16\nmodel     2\n"));
    QCOMPARE(table.text(2), std::string("  axis   size\n  data     16\n  model     2\n"));
}

void TestTable::headerOnly()
{
    QCOMPARE(TextTable({{"a"}, {"b"}}).text(), std::string("a  b\n"));
}

void TestTable::missingCellsAndUtf8()
{
    TextTable table({{"time", Align::Right}, {"note"}});
    table.addRow({"12 µs", "x"});
    table.addRow({"3 s"});
    QCOMPARE(table.text(), std::string(" time  note\n12 µs  x\n  3 s\n")); // no spaces at the ends
}

MESHWRIGHT_TEST(TestTable)

} // namespace tst_table

#include "tst_table.moc"
