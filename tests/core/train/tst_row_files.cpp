// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/npy.h"
#include "core/support/file.h"
#include "core/train/dataset.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

#include <zlib.h>

#include <filesystem>
#include <limits>
#include <numeric>

namespace tst_row_files {

using namespace meshwright;

namespace {

std::string gzipped(const std::string& bytes)
{
    z_stream stream = {};
    deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(out.size() - stream.avail_out);
    deflateEnd(&stream);
    return out;
}

void appendBig(std::string& bytes, std::uint64_t value, int width)
{
    for (int i = width; i-- > 0;)
        bytes += static_cast<char>(value >> (8 * i) & 0xffU);
}

std::string idxHeader(int type, const std::vector<std::uint32_t>& shape)
{
    std::string bytes = {'\0', '\0', static_cast<char>(type), static_cast<char>(shape.size())};
    for (const std::uint32_t size : shape)
        appendBig(bytes, size, 4);
    return bytes;
}

/// Bytes 0, 1, 2 .. in this shape.
std::string idxBytes(const std::vector<std::uint32_t>& shape)
{
    std::string bytes = idxHeader(8, shape);
    const std::uint32_t count = std::accumulate(shape.begin(), shape.end(), 1U, std::multiplies<>());
    for (std::uint32_t i = 0; i < count; ++i)
        bytes += static_cast<char>(i);
    return bytes;
}

std::string npyOf(DType dtype, Shape shape, std::vector<double> values)
{
    return npyBytes(HostArray::of({dtype, std::move(shape)}, values));
}

std::string withHeader(const std::string& header, std::size_t dataBytes)
{
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(header.size() % 256);
    bytes += static_cast<char>(header.size() / 256);
    return bytes + header + std::string(dataBytes, '\0');
}

} // namespace

/// Rows in IDX, NPY and long CSV files.
class TestRowFiles : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void formats_data();
    void formats();
    void orderIsTheSeeds();
    void spilledRowsAreTheSame();
    void targets();
    void largerThanMemory();
    void errors_data();
    void errors();
    void cutWhileRead();
    void tokens();

private:
    std::string write(const char* name, const std::string& content) const
    {
        const std::string path = (m_dir.path() + "/" + name).toStdString();
        if (!writeFileAtomically(path, content))
            qFatal("cannot write");
        return path;
    }

    QTemporaryDir m_dir;
};

void TestRowFiles::formats_data()
{
    QTest::addColumn<QByteArray>("inputs"); // of 3 rows: 0 1 2 3, 4 5 6 7, 8 9 10 11
    std::vector<double> counted(12);
    std::iota(counted.begin(), counted.end(), 0.0);
    const auto row = [](const char* name, const std::string& bytes) {
        QTest::newRow(name) << QByteArray::fromStdString(bytes);
        QTest::addRow("%s, gzip", name) << QByteArray::fromStdString(gzipped(bytes));
    };
    row("idx3, bytes", idxBytes({3, 2, 2}));
    std::string shorts = idxHeader(0x0b, {3, 4});
    std::string floats = idxHeader(0x0d, {3, 4});
    std::string doubles = idxHeader(0x0e, {3, 4});
    for (const double v : counted) {
        appendBig(shorts, static_cast<std::uint64_t>(v), 2);
        appendBig(floats, std::bit_cast<std::uint32_t>(static_cast<float>(v)), 4);
        appendBig(doubles, std::bit_cast<std::uint64_t>(v), 8);
    }
    row("idx2, 16 bits", shorts);
    row("idx2, floats", floats);
    row("idx2, doubles", doubles);
    for (const DType dtype : {DType::U8, DType::S64, DType::F16, DType::F32, DType::F64, DType::BF16})
        row(dtypeName(dtype), npyOf(dtype, {3, 4}, counted));
    row("npy, rank 3", npyOf(DType::F32, {3, 2, 2}, counted));
    std::string foreign = withHeader("{'descr': '>i2', 'fortran_order': False, 'shape': (3, 4), }\n", 0);
    for (const double v : counted)
        appendBig(foreign, static_cast<std::uint64_t>(v), 2);
    row("npy, the other order of bytes", foreign);
}

void TestRowFiles::formats()
{
    QFETCH(QByteArray, inputs);
    const std::string labels = idxHeader(8, {3}) + std::string("\x02\x00\x01", 3);
    DatasetOptions options;
    options.scale = 0.5;
    options.heldOut = 1;
    const auto data = readDataset(write("x", inputs.toStdString()), write("y", labels), options);
    QVERIFY2(data, data ? "" : describe(data.error()).c_str());
    QCOMPARE(data->rows(), 3);
    QCOMPARE(data->trainingRows, 2);
    QCOMPARE(data->features, 4);
    QCOMPARE(data->classes, 3);
    QCOMPARE(data->labels, (std::vector<std::int32_t>{2, 0, 1}));
    const std::vector<std::int64_t> rows = {2, 0, 1};
    QCOMPARE(valueOf(readInputs(*data, rows)), (std::vector<float>{4, 4.5, 5, 5.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5}));
    QCOMPARE(valueOf(readTargets(*data, rows)), (std::vector<float>{0, 1, 0, 0, 0, 1, 1, 0, 0}));
}

/// The rows of a file, wherever they are, come in the order of jax.random.permutation.
void TestRowFiles::orderIsTheSeeds()
{
    const std::string inputs = write("x", idxBytes({6, 1}));
    const std::string labels = write("y", idxBytes({6}));
    DatasetOptions options;
    options.shuffleSeed = 7;
    const Dataset data = valueOf(readDataset(inputs, labels, options));
    const auto order = randomPermutation(keyOfSeed(7), 6, true);
    const std::vector<std::int64_t> all = {0, 1, 2, 3, 4, 5};
    const std::vector<float> read = valueOf(readInputs(data, all));
    for (std::size_t i = 0; i < 6; ++i) {
        QCOMPARE(read[i], static_cast<float>(order[i]));
        QCOMPARE(data.labels[i], static_cast<std::int32_t>(order[i])); // still with its inputs
    }
}

void TestRowFiles::spilledRowsAreTheSame()
{
    std::string text;
    for (int row = 0; row < 500; ++row)
        text += fmt::format("{},{},{}\n", row, row * 0.25, row % 7);
    DatasetOptions options;
    options.scale = 0.5;
    options.heldOut = 100;
    options.shuffleSeed = 3;
    const std::string path = write("rows.csv.gz", gzipped(text));
    const Dataset inMemory = valueOf(readDataset(path, {}, options));
    QVERIFY(inMemory.inputFile == nullptr);
    options.bytesInMemory = 100;
    const Dataset spilled = valueOf(readDataset(path, {}, options));
    QVERIFY(spilled.inputFile != nullptr && spilled.inputs.empty());
    QCOMPARE(spilled.rows(), 500);
    QCOMPARE(spilled.heldOutRows(), 100);
    QCOMPARE(spilled.labels, inMemory.labels);
    std::vector<std::int64_t> rows(500);
    std::iota(rows.begin(), rows.end(), 0);
    QCOMPARE(valueOf(readInputs(spilled, rows)), inMemory.inputs);
    // The temporary file has no name that could stay behind.
    QCOMPARE(QDir(QDir::tempPath()).entryList({"meshwright-??????"}, QDir::Files).size(), 0);
}

void TestRowFiles::targets()
{
    const std::string inputs = write("x.npy", npyOf(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6}));
    const Dataset data = valueOf(readDataset(inputs, write("y.npy", npyOf(DType::F64, {2, 2}, {.5, .25, -1, 2})), {}));
    QCOMPARE(data.classes, 2);
    QVERIFY(!data.hasLabels());
    QCOMPARE(valueOf(readTargets(data, std::vector<std::int64_t>{1, 0})), (std::vector<float>{-1, 2, .5, .25}));
}

/// 64 GiB of pixels (that the file system does not even store) are opened and read in no time: only rows that are asked for are.
void TestRowFiles::largerThanMemory()
{
    constexpr std::uint32_t kRows = 1 << 16;
    constexpr std::uint32_t kSide = 1 << 10;
    const std::string inputs = write("large-idx3-ubyte", idxHeader(8, {kRows, kSide, kSide}));
    std::error_code error;
    const std::uintmax_t bytes = 16 + (std::uintmax_t{kRows} << 20);
    std::filesystem::resize_file(inputs, bytes, error);
    if (error)
        QSKIP("this file system has no files with holes");
    std::FILE* file = std::fopen(inputs.c_str(), "r+b");
    QVERIFY(file != nullptr && fseeko(file, static_cast<off_t>(bytes - 1), SEEK_SET) == 0 && std::fputc(200, file) == 200);
    std::fclose(file);
    const std::string labels = write("large-labels", idxHeader(8, {kRows}) + std::string(kRows, '\3'));
    const auto data = readDataset(inputs, labels, {});
    QVERIFY2(data, data ? "" : describe(data.error()).c_str());
    QCOMPARE(data->features, std::int64_t{1} << 20);
    const std::vector<float> read = valueOf(readInputs(*data, std::vector<std::int64_t>{kRows - 1, 5}));
    QCOMPARE(read[(1 << 20) - 1], 200.0F);
    QCOMPARE(std::accumulate(read.begin(), read.end(), 0.0F), 200.0F);
}

void TestRowFiles::errors_data()
{
    QTest::addColumn<QByteArray>("inputs");
    QTest::addColumn<QByteArray>("labels");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("message");

    const std::string good = idxBytes({3, 2});
    const std::string three = idxBytes({3});
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto row
        = [](const char* name, const std::string& inputs, const std::string& labels, const char* id, const char* message) {
              QTest::newRow(name) << QByteArray::fromStdString(inputs) << QByteArray::fromStdString(labels) << id << message;
          };
    row("cut gzip", gzipped(good).substr(0, 20), three, "MW1601", "the compressed data ends too early");
    row("damaged gzip", gzipped(good).replace(12, 4, "abcd"), three, "MW1601", "the compressed data is damaged");
    row("unknown type", idxHeader(0x0a, {3, 2}) + "abcdef", three, "MW1610", "0x0a is not an element type of the IDX format");
    row("header cut", idxHeader(8, {3, 2}).substr(0, 7), three, "MW1610", "the file ends in its header of 2 dimensions");
    row("too short", good.substr(0, good.size() - 1), three, "MW1612", "ui8[3,2] needs 6 bytes, the file has 5");
    row("too long", good + "x", three, "MW1612", "ui8[3,2] needs 6 bytes, the file has 7");
    row("no dimension", idxHeader(8, {}) + "x", three, "MW1611", "it holds ui8[], which has no rows of real numbers");
    row("no rows", idxHeader(8, {0, 2}), three, "MW1602", "there are no rows");
    row("2^32 - 1 thrice", idxHeader(8, {0xffffffffU, 0xffffffffU, 0xffffffffU}), three, "MW1612",
        "ui8[4294967295,4294967295,4294967295] needs too many bytes, the file has 0");
    row("NPY of 2^63 rows", withHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808, 2), }\n", 8),
        three, "MW1531", "the header is damaged: the value of \"shape\" cannot be read");
    row("NPY of 2^62 rows", withHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 2), }\n", 8),
        three, "MW1533", "f32[4611686018427387904,2] needs too many bytes of data, the file has 8");
    row("NPY, cut", npyOf(DType::F32, {3, 2}, {1, 2, 3, 4, 5, 6}).substr(0, 140), three, "MW1533",
        "f32[3,2] needs 24 bytes of data, the file has 12");
    row("NPY, columns first", withHeader("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }\n", 24), three, "MW1611",
        "its columns come first (Fortran's order), so rows are not contiguous");
    row("NPY, not finite", npyOf(DType::F32, {3, 2}, {1, 2, 3, nan, 5, 6}), three, "MW1603",
        "row 2, element 2: nan is not a finite number");
    row("other rows", good, idxBytes({4}), "MW1609", "3 rows of inputs, 4 of labels");
    row("no labels", good, "", "MW1613", "a file of inputs needs a file of labels beside it");
    row("labels are CSV", good, "1\n2\n3\n", "MW1610", "the labels are neither an IDX nor an NPY file, by its first bytes");
    row("CSV and labels", "1,2\n", three, "MW1613",
        "a CSV file has its labels in the last column, and a file of labels is named too");
    row("label NaN", good, npyOf(DType::F32, {3}, {0, nan, 1}), "MW1605",
        "the label nan of row 2 is not an integer from 0 to 65535");
    row("label of half", good, npyOf(DType::F64, {3}, {0, 1, .5}), "MW1605",
        "the label 0.5 of row 3 is not an integer from 0 to 65535");
    row("label -1", good, npyOf(DType::S32, {3}, {0, -1, 1}), "MW1605",
        "the label -1 of row 2 is not an integer from 0 to 65535");
    row("target NaN", good, npyOf(DType::F32, {3, 1}, {0, nan, 1}), "MW1603", "row 2, element 1: nan is not a finite number");
}

void TestRowFiles::errors()
{
    QFETCH(QByteArray, inputs);
    QFETCH(QByteArray, labels);
    QFETCH(QString, id);
    QFETCH(QString, message);
    const std::string path = write("x", inputs.toStdString());
    const auto data = readDataset(path, labels.isEmpty() ? std::string() : write("y", labels.toStdString()), {});
    QVERIFY(!data);
    QCOMPARE(QString::fromStdString(data.error().front().id), id);
    QCOMPARE(QString::fromStdString(data.error().front().message), message);
    QVERIFY(!data.error().front().place.file.empty());
}

void TestRowFiles::cutWhileRead()
{
    const std::string inputs = write("x", idxBytes({3, 2}));
    const Dataset data = valueOf(readDataset(inputs, write("y", idxBytes({3})), {}));
    std::filesystem::resize_file(inputs, 16);
    const auto read = readInputs(data, std::vector<std::int64_t>{2});
    QVERIFY(!read);
    QCOMPARE(read.error().front().id, std::string("MW1612"));

    QCOMPARE(readDataset(write("x.npy", "1,2\n"), {}, {}).error().front().id, std::string("MW1610"));
    QCOMPARE(readDataset("/nonexistent", {}, {}).error().front().id, std::string("MW1001"));
    qputenv("TMPDIR", "/nonexistent");
    const auto noRoom = readDataset(write("x.gz", gzipped("1,2\n")), {}, {});
    qunsetenv("TMPDIR");
    QVERIFY(!noRoom);
    QCOMPARE(noRoom.error().front().id, std::string("MW1608"));
}

void TestRowFiles::tokens()
{
    Dataset data = valueOf(
        readDataset(write("x", npyOf(DType::U8, {2, 3}, {1, 2, 3, 4, 5, 6})), write("y", npyOf(DType::U8, {2}, {7, 8})), {}));
    const std::vector<std::int64_t> rows = {1, 0};
    QCOMPARE(valueOf(readFollowing(data, rows)), (std::vector<float>{5, 6, 8, 2, 3, 7}));
    QVERIFY(tokenProblems(data, 3).empty());
    data.classes = 6;
    QCOMPARE(tokenProblems(data, 3).front().message, std::string("row 2 of x has the input 6, which is not a token"));
}

MESHWRIGHT_TEST(TestRowFiles)

} // namespace tst_row_files

#include "tst_row_files.moc"
