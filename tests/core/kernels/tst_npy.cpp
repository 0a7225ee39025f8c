// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/npy.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_npy {

using namespace meshwright;
using namespace meshwright::test;
using tests::text;

namespace {

/// A file of the format, as NumPy lays it out.
std::string npy(int version, std::string header, const std::string& data)
{
    header += '\n';
    std::string bytes = "\x93NUMPY";
    bytes += static_cast<char>(version);
    bytes += '\0';
    for (std::size_t i = 0; i < (version == 1 ? 2U : 4U); ++i)
        bytes += static_cast<char>(header.size() >> (8 * i) & 0xffU);
    return bytes + header + data;
}

std::string bytesOf(std::initializer_list<int> values)
{
    std::string bytes;
    for (const int value : values)
        bytes += static_cast<char>(value);
    return bytes;
}

} // namespace

class TestNpy : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void roundTrips_data();
    void roundTrips();
    void reads_data();
    void reads();
    void refuses_data();
    void refuses();
    void writesWhatNumPyWrites();
    void everyCutIsRefused();
    void damagedFilesAreReadOrRefused();
    void missingFile();
};

void TestNpy::roundTrips_data()
{
    QTest::addColumn<int>("dtype");
    QTest::addColumn<QList<qint64>>("shape");
    for (const DType dtype : {DType::Pred, DType::S8, DType::S16, DType::S32, DType::S64, DType::U8, DType::U16, DType::U32,
             DType::U64, DType::F16, DType::BF16, DType::F32, DType::F64, DType::F8E4M3FN, DType::F8E5M2}) {
        int row = 0;
        for (const QList<qint64>& shape : {QList<qint64>{}, {5}, {3, 4}, {2, 0, 3}, {2, 3, 1, 2}})
            QTest::newRow(qPrintable(QString("%1 %2").arg(dtypeName(dtype)).arg(row++))) << static_cast<int>(dtype) << shape;
    }
}

void TestNpy::roundTrips()
{
    QFETCH(int, dtype);
    QFETCH(QList<qint64>, shape);
    const HostArray array = randomArray({static_cast<DType>(dtype), Shape(shape.begin(), shape.end())}, 5);
    const std::string bytes = npyBytes(array);
    QCOMPARE((bytes.size() - static_cast<std::size_t>(array.bytes())) % 64, std::size_t{0});
    const auto again = parseNpy(bytes, "a.npy");
    QVERIFY2(again, qPrintable(tests::described(again)));
    QVERIFY(*again == array);
}

void TestNpy::reads_data()
{
    QTest::addColumn<QByteArray>("file");
    QTest::addColumn<QString>("type");
    QTest::addColumn<QList<double>>("values");

    const auto row = [](const char* name, const std::string& file, const char* type, const QList<double>& values) {
        QTest::newRow(name) << QByteArray::fromStdString(file) << type << values;
    };
    const std::string sixBytes = bytesOf({1, 2, 3, 4, 5, 6});
    row("version 1", npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", sixBytes), "ui8[2,3]",
        {1, 2, 3, 4, 5, 6});
    row("version 2", npy(2, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", sixBytes), "ui8[2,3]",
        {1, 2, 3, 4, 5, 6});
    row("version 3", npy(3, "{'descr': '|u1', 'fortran_order': False, 'shape': (6,), }", sixBytes), "ui8[6]", {1, 2, 3, 4, 5, 6});
    row("columns first", npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", sixBytes), "ui8[2,3]",
        {1, 3, 5, 2, 4, 6});
    row("columns first of rank 3", npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (1, 2, 3), }", sixBytes),
        "ui8[1,2,3]", {1, 3, 5, 2, 4, 6});
    row("another order of entries", npy(1, "{'shape': (6,),\"fortran_order\":False,'descr':'i1'}", sixBytes), "i8[6]",
        {1, 2, 3, 4, 5, 6});
    row("other order of bytes", npy(1, "{'descr': '>i2', 'fortran_order': False, 'shape': (3,), }", sixBytes), "i16[3]",
        {258, 772, 1286});
    row("a scalar", npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", bytesOf({0, 0, 0, 0, 0, 0, 0xf8, 0x3f})),
        "f64[]", {1.5});
    row("bfloat16", npy(1, "{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }", bytesOf({0x80, 0x3f, 0x00, 0xc0})),
        "bf16[2]", {1, -2});
    row("Python 2's integers", npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (2L,), }", bytesOf({0, 1})), "i1[2]",
        {0, 1});
}

void TestNpy::reads()
{
    QFETCH(QByteArray, file);
    QFETCH(QString, type);
    QFETCH(QList<double>, values);
    const auto array = parseNpy(file.toStdString(), "a.npy");
    QVERIFY2(array, qPrintable(tests::described(array)));
    QCOMPARE(text(typeText(array->type())), type);
    const std::vector<double> found = array->values();
    QCOMPARE(QList<double>(found.begin(), found.end()), values);
}

void TestNpy::refuses_data()
{
    QTest::addColumn<QByteArray>("file");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("said");

    const auto row = [](const char* name, const std::string& file, const char* id, const char* said) {
        QTest::newRow(name) << QByteArray::fromStdString(file) << id << said;
    };
    row("an archive", "PK\x03\x04", "MW1530", "not an NPY file");
    row("nothing", "", "MW1530", "not an NPY file");
    row("version 9", npy(9, "{}", ""), "MW1531", "version is 9");
    row("no entries", npy(1, "{}", ""), "MW1531", "needs descr, fortran_order and shape");
    row("no dictionary", npy(1, "descr", ""), "MW1531", "a dictionary should begin it");
    row("an unknown entry", npy(1, "{'align': True}", ""), "MW1531", "\"align\" is not an entry");
    row("a negative size", npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", ""), "MW1531", "\"shape\"");
    row("a truth value in words", npy(1, "{'descr': '<f4', 'fortran_order': no, 'shape': (1,), }", ""), "MW1531",
        "\"fortran_order\"");
    row("records", npy(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd"), "MW1531",
        "several fields");
    row("more behind it", npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "abcd"), "MW1531", "follows");
    row("objects", npy(1, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "abcdefgh"), "MW1532", "'|O'");
    row("strings", npy(1, "{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }", "abcdefghijkl"), "MW1532", "'<U3'");
    row("too little", npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abcd"), "MW1533", "needs 8 bytes");
    row("too much", npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "abcde"), "MW1533", "the file has 5");
    row("more than there is memory for",
        npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8), }", "abcd"), "MW1533", "too many");
}

void TestNpy::refuses()
{
    QFETCH(QByteArray, file);
    QFETCH(QString, id);
    QFETCH(QString, said);
    const auto array = parseNpy(file.toStdString(), "a.npy");
    QCOMPARE(tests::idsOf(array), id);
    QVERIFY2(tests::described(array).contains(said), qPrintable(tests::described(array)));
    QCOMPARE(text(array.error().front().place.file), QString("a.npy"));
}

/// The bytes of numpy.save(file, numpy.arange(3, dtype='float32')).
void TestNpy::writesWhatNumPyWrites()
{
    const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    const std::string expected = bytesOf({0x93}) + "NUMPY" + bytesOf({1, 0, 0x76, 0}) + header
        + std::string(0x76 - 1 - header.size(), ' ') + "\n" + bytesOf({0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40});
    QCOMPARE(QByteArray::fromStdString(npyBytes(HostArray::of({DType::F32, {3}}, std::vector<double>{0, 1, 2}))),
        QByteArray::fromStdString(expected));
}

void TestNpy::everyCutIsRefused()
{
    const std::string whole = npyBytes(randomArray({DType::F32, {3, 2}}, 1));
    for (std::size_t size = 0; size < whole.size(); ++size)
        QVERIFY2(!parseNpy(whole.substr(0, size), "a.npy"), qPrintable(QString::number(size)));
    QVERIFY(parseNpy(whole, "a.npy"));
}

/// Whatever bytes change, a file is an array of as many bytes as its shape says, or a problem.
void TestNpy::damagedFilesAreReadOrRefused()
{
    const std::string whole = npy(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", std::string(24, '\x01'));
    std::uint32_t state = 7;
    const auto next = [&state](std::size_t below) {
        state = state * 1664525U + 1013904223U;
        return static_cast<std::size_t>(state >> 8U) % below;
    };
    const std::string likely = "0123456789()[]{},:'\"<>=|TFLbifucV \n";
    for (int round = 0; round < 20'000; ++round) {
        std::string bytes = whole;
        for (std::size_t i = 0; i <= next(3); ++i)
            bytes[next(bytes.size())] = next(4) == 0 ? static_cast<char>(next(256)) : likely[next(likely.size())];
        if (next(8) == 0)
            bytes.resize(next(bytes.size()));
        if (const auto array = parseNpy(bytes, "a.npy"))
            QCOMPARE(array->bytes(), array->type().bytes());
    }
}

void TestNpy::missingFile()
{
    QCOMPARE(tests::idsOf(readNpy("/no/such/file.npy")), QString("MW1001"));
}

MESHWRIGHT_TEST(TestNpy)

} // namespace tst_npy

#include "tst_npy.moc"
