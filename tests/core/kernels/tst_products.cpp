// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/narrow_float.h"
#include "core/kernels/panel_product.h"
#include "core/kernels/products.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <thread>

namespace tst_products {

using namespace meshwright;
using namespace meshwright::test;

/// Products in parts, so that they can be stopped.
class TestProducts : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void parts_data();
    void parts();
    void partsCoverTheResult_data();
    void partsCoverTheResult();
    void integersInParts();
    void flagLeavesTheRest();
    void chosenByName();
    void manyCallers();
    void panels_data();
    void panels();
    void panelThreadsChangeNoBit();
    void panelsAgreeOnEveryBit();
    void bfloat16_data();
    void bfloat16();
    void bfloat16Rounds();
    void bfloat16PartsAndThreadsChangeNoBit();
    void bfloat16KeepsNumbersThatAreNone();
};

void TestProducts::parts_data()
{
    QTest::addColumn<std::int64_t>("m");
    QTest::addColumn<std::int64_t>("n");
    QTest::addColumn<std::int64_t>("k");
    QTest::addColumn<double>("operations");
    QTest::addColumn<ProductPart>("expected");

    const auto row = [](const char* name, std::int64_t m, std::int64_t n, std::int64_t k, double operations,
                         ProductPart expected) { QTest::newRow(name) << m << n << k << operations << expected; };
    row("small: whole", 100, 200, 300, 12e9, {100, 200});
    row("exactly: whole", 10, 20, 30, 12000.0, {10, 20});
    row("nothing to sum", 100000, 100000, 0, 1.0, {100000, 100000});
    row("a shard of the benchmark: whole", 256, 2048, 2048, 12e9, {256, 2048});
    row("2048 cubed, 17e9: half the rows, 1024 rounded up to 6 * 192", 2048, 2048, 2048, 12e9, {1152, 2048});
    // rows 4224, columns 4224, rows 2112, columns 2112, rows 1152, columns 1152 (22e9), rows 576 (11e9)
    row("8192 cubed, 1.1e12", 8192, 8192, 8192, 12e9, {576, 1152});
    row("few rows", 10, 1 << 20, 8192, 12e9, {10, 65664}); // 1048576 halved four times, each time up to a multiple of 192
    row("never below 192", 1000, 1000, 1 << 30, 1.0, {192, 192});
    row("never below the size", 100, 100, 1 << 30, 1.0, {100, 100});
}

void TestProducts::parts()
{
    QFETCH(std::int64_t, m);
    QFETCH(std::int64_t, n);
    QFETCH(std::int64_t, k);
    QFETCH(double, operations);
    QFETCH(ProductPart, expected);
    const ProductPart part = productPart(m, n, k, operations);
    QCOMPARE(part.rows, expected.rows);
    QCOMPARE(part.columns, expected.columns);
}

namespace {

/// lhs[m, k] times rhs[k, n] of integers between -8 and 8, which every order of summation gets exactly, in an otherwise untouched frame.
template <typename T>
std::vector<T> product(std::int64_t m, std::int64_t n, std::int64_t k, bool lhsTransposed, bool rhsTransposed, ProductStop stop)
{
    const auto integers = [](std::int64_t count, std::uint64_t seed) {
        std::vector<T> values;
        for (const double number : numbers(count, seed))
            values.push_back(static_cast<T>(static_cast<std::int64_t>(number * 4.0)));
        return values;
    };
    const std::vector<T> lhs = integers(m * k, 1);
    const std::vector<T> rhs = integers(k * n, 2);
    std::vector<T> result(static_cast<std::size_t>(m * (n + 3)), static_cast<T>(77));
    multiply(m, n, k, MatrixView<const T>{lhs.data(), lhsTransposed ? m : k, lhsTransposed},
        MatrixView<const T>{rhs.data(), rhsTransposed ? k : n, rhsTransposed}, MatrixView<T>{result.data(), n + 3, false}, stop);
    return result;
}

} // namespace

void TestProducts::partsCoverTheResult_data()
{
    QTest::addColumn<int>("backend");
    QTest::addColumn<bool>("lhsTransposed");
    QTest::addColumn<bool>("rhsTransposed");
    for (const ProductBackend backend :
        {ProductBackend::Panels, ProductBackend::Amx, ProductBackend::Eigen, ProductBackend::OpenBlas, ProductBackend::OneDnn}) {
        for (const bool lhs : {false, true}) {
            for (const bool rhs : {false, true})
                QTest::addRow("%s%s%s", productBackendName(backend), lhs ? ", lhs transposed" : "", rhs ? ", rhs transposed" : "")
                    << static_cast<int>(backend) << lhs << rhs;
        }
    }
}

void TestProducts::partsCoverTheResult()
{
    QFETCH(int, backend);
    QFETCH(bool, lhsTransposed);
    QFETCH(bool, rhsTransposed);
    const ProductBackend before = productBackend();
    if (!setProductBackend(static_cast<ProductBackend>(backend)))
        QSKIP("not here");
    const StopFlag flag;
    // 3 x 2 parts; with and without a rest of its own; a rest too small to be one; a single row and column.
    for (const auto& [m, n] :
        std::vector<std::pair<std::int64_t, std::int64_t>>{{500, 300}, {384, 384}, {385, 200}, {448, 255}, {1, 700}, {700, 1}}) {
        const ProductStop inParts{&flag, 1.0};
        QVERIFY(product<float>(m, n, 9, lhsTransposed, rhsTransposed, inParts)
            == product<float>(m, n, 9, lhsTransposed, rhsTransposed, {}));
        QVERIFY(product<double>(m, n, 9, lhsTransposed, rhsTransposed, inParts)
            == product<double>(m, n, 9, lhsTransposed, rhsTransposed, {}));
    }
    setProductBackend(before);
}

void TestProducts::integersInParts()
{
    const StopFlag flag;
    QVERIFY(
        product<std::uint32_t>(500, 300, 9, false, true, {&flag, 1.0}) == product<std::uint32_t>(500, 300, 9, false, true, {}));
    QVERIFY(
        product<std::uint64_t>(385, 200, 9, true, false, {&flag, 1.0}) == product<std::uint64_t>(385, 200, 9, true, false, {}));
}

void TestProducts::flagLeavesTheRest()
{
    StopFlag flag;
    flag.set();
    const std::vector<float> untouched(500 * 303, 77.0F);
    QVERIFY(product<float>(500, 300, 9, false, false, {&flag}) == untouched);
    flag.clear();
    QVERIFY(product<float>(500, 300, 9, false, false, {&flag}) != untouched);
}

void TestProducts::chosenByName()
{
    const ProductBackend before = productBackend();
    QVERIFY(chooseProducts("eigen"));
    QCOMPARE(productBackend(), ProductBackend::Eigen);
    QVERIFY2(productBackendText().starts_with("eigen 3."), productBackendText().c_str());
    const auto unknown = chooseProducts("mkl");
    QVERIFY(!unknown);
    QCOMPARE(unknown.error().front().id, std::string("MW1514"));
    QCOMPARE(productBackend(), ProductBackend::Eigen);
    if (const auto tiles = chooseProducts("amx")) {
        QVERIFY(multipliesBfloat16());
        QVERIFY2(productBackendText().ends_with("; bf16: amx"), productBackendText().c_str());
        QVERIFY(chooseProducts("panels")); // the same without tiles
        QVERIFY(!multipliesBfloat16());
        QVERIFY2(productBackendText().find("amx") == std::string::npos, productBackendText().c_str());
    } else {
        QCOMPARE(tiles.error().front().id, std::string("MW1514"));
    }
    QVERIFY(chooseProducts(""));
    QCOMPARE(productBackend(), before);
}

/// More threads than OpenBLAS has memory for.
void TestProducts::manyCallers()
{
    static constexpr std::int64_t kSize = 64;
    const std::vector<float> ones(kSize * kSize, 1.0F);
    std::atomic<int> right{0};
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 128; ++i) {
            threads.emplace_back([&] {
                std::vector<float> result(kSize * kSize);
                for (int round = 0; round < 20; ++round)
                    multiply(kSize, kSize, kSize, {ones.data(), kSize}, {ones.data(), kSize}, {result.data(), kSize});
                right
                    += std::all_of(result.begin(), result.end(), [](float v) { return v == static_cast<float>(kSize); }) ? 1 : 0;
            });
        }
    }
    QCOMPARE(right.load(), 128);
}

namespace {

std::vector<float> floats(std::int64_t count, std::uint64_t seed)
{
    std::vector<float> values;
    for (const double number : numbers(count, seed))
        values.push_back(static_cast<float>(number));
    return values;
}

} // namespace

/// Sizes beside those of the register tiles, packed blocks and blocks of terms, and longer sides that are packed while blocks are multiplied.
void TestProducts::panels_data()
{
    QTest::addColumn<std::int64_t>("m");
    QTest::addColumn<std::int64_t>("n");
    QTest::addColumn<std::int64_t>("k");
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 1}, {5, 64, 8}, {37, 45, 1030}, {256, 10, 77},
             {300, 700, 17}, {700, 33, 600}, {12, 32, 512}, {13, 1600, 513}, {1600, 31, 3}, {600, 40, 300}, {1550, 1560, 130}})
        QTest::addRow("%dx%dx%d", static_cast<int>(m), static_cast<int>(n), static_cast<int>(k)) << m << n << k;
}

void TestProducts::panels()
{
    QFETCH(std::int64_t, m);
    QFETCH(std::int64_t, n);
    QFETCH(std::int64_t, k);
    const ProductBackend before = productBackend();
    if (!setProductBackend(ProductBackend::Panels))
        QSKIP("no kernels for this processor");
    for (const bool lhsTransposed : {false, true}) {
        for (const bool rhsTransposed : {false, true}) {
            const auto ours = product<float>(m, n, k, lhsTransposed, rhsTransposed, {});
            setProductBackend(ProductBackend::Eigen);
            const auto expected = product<float>(m, n, k, lhsTransposed, rhsTransposed, {}); // integers: exact, the frame too
            setProductBackend(ProductBackend::Panels);
            QVERIFY(ours == expected);
        }
    }
    setProductBackend(before);
}

void TestProducts::panelThreadsChangeNoBit()
{
    const ProductBackend before = productBackend();
    if (!setProductBackend(ProductBackend::Panels))
        QSKIP("no kernels for this processor");
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{500, 300, 700}, {100, 900, 600}}) {
        const std::vector<float> lhs = floats(m * k, 1);
        const std::vector<float> rhs = floats(k * n, 2);
        std::vector<std::vector<float>> results;
        for (const int threads : {1, 2, 3}) {
            setProductThreads(threads);
            std::vector<float> result(static_cast<std::size_t>(m * n));
            multiply(m, n, k, {lhs.data(), k}, {rhs.data(), n}, {result.data(), n});
            results.push_back(std::move(result));
        }
        setProductThreads(1);
        QVERIFY(results[0] == results[1]);
        QVERIFY(results[0] == results[2]);
    }
    setProductBackend(before);
}

void TestProducts::panelsAgreeOnEveryBit()
{
    if (panelProducts().size() < 2)
        QSKIP("this processor has one kind of kernels at most");
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{50, 70, 1100}, {300, 90, 65}, {1, 20, 513}}) {
        const std::vector<float> lhs = floats(m * k, 1);
        const std::vector<float> rhs = floats(k * n, 2);
        std::vector<std::vector<float>> results;
        for (const PanelProduct* panels : panelProducts()) {
            AlignedBytes workspace(panels->workspaceBytes);
            std::vector<float> result(static_cast<std::size_t>(m * n));
            panels->multiply(m, n, k, {lhs.data(), m, true}, {rhs.data(), n}, {result.data(), n}, workspace.data());
            results.push_back(std::move(result));
        }
        QVERIFY(results[0] == results[1]);
    }
}

namespace {

/// An operand in both forms: as it is, and rounded.
struct Numbers {
    std::vector<float> single;
    std::vector<std::uint16_t> rounded;

    explicit Numbers(std::vector<float> values)
        : single(std::move(values))
    {
        for (const float value : single)
            rounded.push_back(bfloat16Bits(value));
    }

    Bfloat16Operand operand(bool isRounded, std::int64_t stride, bool transposed) const
    {
        if (isRounded)
            return Bfloat16Operand(MatrixView<const std::uint16_t>{rounded.data(), stride, transposed});
        return Bfloat16Operand(MatrixView<const float>{single.data(), stride, transposed});
    }

    double at(std::int64_t index) const { return fromBfloat16(rounded[static_cast<std::size_t>(index)]); }
};

/// In a frame of three columns of 77.
std::vector<float> bfloat16Product(std::int64_t m, std::int64_t n, std::int64_t k, const Bfloat16Operand& lhs,
    const Bfloat16Operand& rhs, const ProductStop& stop = {})
{
    std::vector<float> result(static_cast<std::size_t>(m * (n + 3)), 77.0F);
    multiply(m, n, k, lhs, rhs, MatrixView<float>{result.data(), n + 3, false}, stop);
    return result;
}

bool sameBits(const std::vector<float>& a, const std::vector<float>& b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Chooses tiles while it lives.
class Tiles {
public:
    Tiles()
        : isThere(setProductBackend(ProductBackend::Amx))
    {
    }
    Tiles(const Tiles&) = delete;
    Tiles& operator=(const Tiles&) = delete;
    ~Tiles() { static_cast<void>(chooseProducts("")); }

    const bool isThere;
};

} // namespace

/// Sizes beside those of tiles (16 lines, 32 terms), register tiles (32), packed blocks (256 lines, 1024 terms) and what is held of the other
/// operand (1024 lines, 8192 terms), and a result that is stored past the caches.
void TestProducts::bfloat16_data()
{
    QTest::addColumn<std::int64_t>("m");
    QTest::addColumn<std::int64_t>("n");
    QTest::addColumn<std::int64_t>("k");
    for (const auto& [m, n, k] :
        std::vector<std::array<std::int64_t, 3>>{{1, 1, 1}, {5, 64, 8}, {16, 16, 32}, {17, 15, 31}, {32, 33, 33}, {37, 45, 1030},
            {256, 10, 77}, {300, 257, 17}, {40, 3, 8200}, {2, 33, 9001}, {1031, 20, 5}, {1060, 1061, 2}, {1056, 1024, 1}})
        QTest::addRow("%dx%dx%d", static_cast<int>(m), static_cast<int>(n), static_cast<int>(k)) << m << n << k;
}

void TestProducts::bfloat16()
{
    QFETCH(std::int64_t, m);
    QFETCH(std::int64_t, n);
    QFETCH(std::int64_t, k);
    const Tiles tiles;
    if (!tiles.isThere)
        QSKIP("no tiles for bfloat16 in this processor, or the system keeps them");
    const Numbers lhs(floats(m * k, 1));
    const Numbers rhs(floats(k * n, 2));
    for (const bool lhsTransposed : {false, true}) {
        for (const bool rhsTransposed : {false, true}) {
            const auto lhsOf = [&](bool isRounded) { return lhs.operand(isRounded, lhsTransposed ? m : k, lhsTransposed); };
            const auto rhsOf = [&](bool isRounded) { return rhs.operand(isRounded, rhsTransposed ? k : n, rhsTransposed); };
            const auto ours = bfloat16Product(m, n, k, lhsOf(false), rhsOf(false));
            QVERIFY(sameBits(ours, bfloat16Product(m, n, k, lhsOf(true), rhsOf(true))));
            QVERIFY(sameBits(ours, bfloat16Product(m, n, k, lhsOf(true), rhsOf(false))));
            for (std::int64_t row = 0; row < m; ++row) {
                for (std::int64_t column = 0; column < n + 3; ++column) {
                    double expected = column < n ? 0.0 : 77.0;
                    double sizes = 0.0; // of the terms: what roundings are relative to
                    const std::int64_t step = m * n > 100000 && column < n ? 37 : 1; // not all of the largest ones
                    for (std::int64_t d = 0; d < k && column < n && (row + column) % step == 0; ++d) {
                        const double term = lhs.at(lhsTransposed ? d * m + row : row * k + d)
                            * rhs.at(rhsTransposed ? column * k + d : d * n + column);
                        expected += term;
                        sizes += std::abs(term);
                    }
                    if ((row + column) % step != 0)
                        continue;
                    // Products are exact; every term is part of at most k / 2 sums of a tile's chain and those of tiles.
                    const double bound = sizes * 0x1p-24 * static_cast<double>(k);
                    const double actual = ours[static_cast<std::size_t>(row * (n + 3) + column)];
                    QVERIFY2(std::abs(actual - expected) <= bound,
                        qPrintable(QString("%1, %2: %3 instead of %4").arg(row).arg(column).arg(actual).arg(expected)));
                }
            }
        }
    }
}

/// Every element times one is the element as `bfloat16Bits` rounds it, but for subnormal ones.
void TestProducts::bfloat16Rounds()
{
    const Tiles tiles;
    if (!tiles.isThere)
        QSKIP("no tiles for bfloat16 in this processor, or the system keeps them");
    std::vector<float> values;
    for (std::uint32_t high = 0; high < 0x10000; high += 7) { // all signs and exponents
        for (const std::uint32_t low : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU})
            values.push_back(std::bit_cast<float>(high << 16 | low));
    }
    const auto count = static_cast<std::int64_t>(values.size());
    const float one = 1.0F;
    const std::uint16_t roundedOne = bfloat16Bits(one);
    const Numbers numbersOf(values);
    for (const bool isRounded : {false, true}) {
        for (const bool isRow : {false, true}) {
            const Bfloat16Operand single = isRounded ? Bfloat16Operand(MatrixView<const std::uint16_t>{&roundedOne, 1})
                                                     : Bfloat16Operand(MatrixView<const float>{&one, 1});
            const Bfloat16Operand many = numbersOf.operand(isRounded, isRow ? count : 1, false);
            std::vector<float> result(values.size());
            multiply(isRow ? 1 : count, isRow ? count : 1, 1, isRow ? single : many, isRow ? many : single,
                MatrixView<float>{result.data(), isRow ? count : 1, false});
            for (std::size_t i = 0; i < values.size(); ++i) {
                const float rounded = fromBfloat16(numbersOf.rounded[i]);
                const bool isSubnormal = std::abs(isRounded ? rounded : values[i]) < std::numeric_limits<float>::min();
                if (std::isnan(values[i]))
                    QVERIFY(std::isnan(result[i]));
                else
                    QCOMPARE(result[i], isSubnormal ? 0.0F : rounded);
            }
        }
    }
}

void TestProducts::bfloat16PartsAndThreadsChangeNoBit()
{
    const Tiles tiles;
    if (!tiles.isThere)
        QSKIP("no tiles for bfloat16 in this processor, or the system keeps them");
    const StopFlag flag;
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{500, 300, 1100}, {100, 900, 2100}, {385, 448, 33}}) {
        const Numbers lhs(floats(m * k, 1));
        const Numbers rhs(floats(k * n, 2));
        const Bfloat16Operand a = lhs.operand(false, k, false);
        const Bfloat16Operand b = rhs.operand(false, k, true);
        const auto whole = bfloat16Product(m, n, k, a, b);
        QVERIFY(sameBits(whole, bfloat16Product(m, n, k, a, b, {&flag, 1.0})));
        for (const int threads : {2, 3}) {
            setProductThreads(threads);
            const auto shared = bfloat16Product(m, n, k, a, b);
            setProductThreads(1);
            QVERIFY(sameBits(whole, shared));
        }
        // One row, and the product the other way round, have the bits of the whole.
        const auto row = bfloat16Product(1, n, k, shifted(a, 7 * k), b);
        QVERIFY(std::memcmp(row.data(), whole.data() + 7 * (n + 3), static_cast<std::size_t>(n) * sizeof(float)) == 0);
        const auto turned = bfloat16Product(n, m, k, rhs.operand(false, k, false), lhs.operand(false, k, true));
        for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j)
                QCOMPARE(turned[static_cast<std::size_t>(j * (m + 3) + i)], whole[static_cast<std::size_t>(i * (n + 3) + j)]);
        }
    }
    StopFlag set;
    set.set();
    const Numbers lhs(floats(500 * 9, 1));
    const Numbers rhs(floats(9 * 300, 2));
    const auto untouched = bfloat16Product(500, 300, 9, lhs.operand(false, 9, false), rhs.operand(false, 300, false), {&set});
    QVERIFY(untouched == std::vector<float>(500 * 303, 77.0F));
    const auto noTerms = bfloat16Product(2, 2, 0, lhs.operand(false, 1, false), rhs.operand(false, 2, false));
    QVERIFY(noTerms == (std::vector<float>{0.0F, 0.0F, 77.0F, 77.0F, 77.0F, 0.0F, 0.0F, 77.0F, 77.0F, 77.0F}));
}

/// NaNs and infinities spoil their own row or column, whole, and nothing else: not the rest of a tile that is padded with zeros.
void TestProducts::bfloat16KeepsNumbersThatAreNone()
{
    const Tiles tiles;
    if (!tiles.isThere)
        QSKIP("no tiles for bfloat16 in this processor, or the system keeps them");
    constexpr std::int64_t kM = 35;
    constexpr std::int64_t kN = 21;
    constexpr std::int64_t kK = 1050;
    for (const float spoiler : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        std::vector<float> values(kM * kK, 1.0F);
        values[34 * kK + 1049] = spoiler;
        const Numbers lhs(values);
        const Numbers rhs(std::vector<float>(kK * kN, 1.0F));
        for (const bool isRounded : {false, true}) {
            const auto result = bfloat16Product(kM, kN, kK, lhs.operand(isRounded, kK, false), rhs.operand(isRounded, kN, false));
            for (std::int64_t row = 0; row < kM; ++row) {
                for (std::int64_t column = 0; column < kN; ++column) {
                    const float value = result[static_cast<std::size_t>(row * (kN + 3) + column)];
                    if (row == 34)
                        QVERIFY(std::isnan(spoiler) ? std::isnan(value) : value == spoiler);
                    else
                        QCOMPARE(value, static_cast<float>(kK));
                }
            }
        }
    }
}

MESHWRIGHT_TEST(TestProducts)

} // namespace tst_products

#include "tst_products.moc"
