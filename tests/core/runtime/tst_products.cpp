// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/panel_product.h"
#include "core/runtime/products.h"
#include "tests/core/runtime/runtime_test.h"

#include <QtTest>

#include <array>
#include <thread>

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
};

Q_DECLARE_METATYPE(ProductPart)

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
        {ProductBackend::Panels, ProductBackend::Eigen, ProductBackend::OpenBlas, ProductBackend::OneDnn}) {
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

QTEST_APPLESS_MAIN(TestProducts)
#include "tst_products.moc"
