// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mesh/device_mesh.h"
#include "tests/test_class.h"

#include <numeric>

namespace tst_array_text {

using namespace meshwright;

/// Arrays of devices read as numpy prints them.
class TestArrayText : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void texts_data();
    void texts();
};

namespace {

DeviceArray counted(std::vector<std::int64_t> shape)
{
    DeviceArray array{std::move(shape), {}};
    array.devices.resize(
        static_cast<std::size_t>(std::accumulate(array.shape.begin(), array.shape.end(), std::int64_t{1}, std::multiplies<>())));
    std::iota(array.devices.begin(), array.devices.end(), DeviceId{0});
    return array;
}

} // namespace

void TestArrayText::texts_data()
{
    QTest::addColumn<DeviceArray>("array");
    QTest::addColumn<QString>("text");

    // What print(np.arange(n).reshape(shape)) says.
    QTest::newRow("scalar") << counted({}) << "0";
    QTest::newRow("vector") << counted({8}) << "[0 1 2 3 4 5 6 7]";
    QTest::newRow("matrix") << counted({4, 3}) << "[[ 0  1  2]\n [ 3  4  5]\n [ 6  7  8]\n [ 9 10 11]]";
    QTest::newRow("column") << counted({3, 1}) << "[[0]\n [1]\n [2]]";
    QTest::newRow("cube") << counted({2, 2, 2}) << "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]";
    QTest::newRow("rank 4") << counted({2, 1, 1, 2}) << "[[[[0 1]]]\n\n\n [[[2 3]]]]";
    QTest::newRow("long row") << counted({32})
                              << "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
                                 " 24 25 26 27 28 29 30 31]";
    QTest::newRow("long rows") << counted({2, 32})
                               << "[[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
                                  "  24 25 26 27 28 29 30 31]\n"
                                  " [32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55\n"
                                  "  56 57 58 59 60 61 62 63]]";
    QTest::newRow("more than a thousand") << counted({1024}) << "[   0    1    2 ... 1021 1022 1023]";
    QTest::newRow("a large matrix") << counted({64, 64})
                                    << "[[   0    1    2 ...   61   62   63]\n"
                                       " [  64   65   66 ...  125  126  127]\n"
                                       " [ 128  129  130 ...  189  190  191]\n"
                                       " ...\n"
                                       " [3904 3905 3906 ... 3965 3966 3967]\n"
                                       " [3968 3969 3970 ... 4029 4030 4031]\n"
                                       " [4032 4033 4034 ... 4093 4094 4095]]";
    QTest::newRow("a large narrow one") << counted(
        {600, 2}) << "[[   0    1]\n [   2    3]\n [   4    5]\n ...\n [1194 1195]\n [1196 1197]\n [1198 1199]]";
}

void TestArrayText::texts()
{
    QFETCH(DeviceArray, array);
    QTEST(QString::fromStdString(arrayText(array)), "text");
}

MESHWRIGHT_TEST(TestArrayText)

} // namespace tst_array_text

#include "tst_array_text.moc"
