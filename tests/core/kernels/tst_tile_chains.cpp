// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/kernel.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

namespace tst_tile_chains {

using namespace meshwright;
using namespace meshwright::test;

namespace {

/// Runs all tile ops of a function's body as one pass. Arguments named in `places` (argument index -> result index) share the memory of a
/// result. Compares every result with `evaluate`, bit for bit.
void checkOnePass(
    const Function& function, const std::vector<HostArray>& arguments, const std::map<std::size_t, std::size_t>& inPlace)
{
    const auto expected = evaluate(function, arguments);
    QVERIFY2(expected, expected ? "" : describe(expected.error()).c_str());

    const KernelSite site{function, [&](ValueId value) { return wholePiece(function[value].type.shape); }};
    const auto isArgument = [&](ValueId value) { return !function[value].producer.valid(); };
    const auto kernel = makeKernel(site, function.body().ops, function.results(), isArgument);
    std::vector<HostArray> memory = arguments;
    std::vector<HostArray> results;
    for (const ValueId result : function.results())
        results.emplace_back(function[result].type);
    std::vector<std::byte*> addresses(function.values.size(), nullptr);
    for (std::size_t i = 0; i < results.size(); ++i)
        addresses[function.results()[i].at()] = results[i].data();
    for (std::size_t i = 0; i < memory.size(); ++i)
        addresses[function.arguments()[i].at()] = memory[i].data();
    for (const auto& [argument, result] : inPlace) {
        QCOMPARE(memory[argument].bytes(), results[result].bytes());
        if (memory[argument].bytes() > 0)
            std::memcpy(results[result].data(), memory[argument].data(), static_cast<std::size_t>(memory[argument].bytes()));
        addresses[function.arguments()[argument].at()] = results[result].data();
    }
    Scratch scratch;
    kernel->run(addresses, scratch, StopFlag{});
    for (std::size_t i = 0; i < results.size(); ++i)
        QVERIFY2(results[i] == (*expected)[i], qPrintable(QString("result %1").arg(i)));
}

} // namespace

class TestTileChains : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void biasAndRelu_data();
    void biasAndRelu();
    void reluMaskInPlace();
    void adam();
    void swapLikeUpdates();
    void broadcastOfAChain();
    void broadcastOfABroadcast_data();
    void broadcastOfABroadcast();
    void narrowTypes();
    void transposingBroadcastInPlace();
    void foldedLeaves();
};

void TestTileChains::biasAndRelu_data()
{
    QTest::addColumn<Shape>("shape");
    QTest::newRow("small") << Shape{3, 5};
    QTest::newRow("rows shorter than a tile") << Shape{1000, 10};
    QTest::newRow("rows of a tile") << Shape{7, 1024};
    QTest::newRow("rows longer than a tile") << Shape{5, 2055};
    QTest::newRow("one column") << Shape{3000, 1};
    QTest::newRow("one row") << Shape{1, 3000};
    QTest::newRow("nothing") << Shape{0, 4};
}

void TestTileChains::biasAndRelu()
{
    QFETCH(Shape, shape);
    const TensorType type{DType::F32, shape};
    const TensorType bias{DType::F32, {shape[1]}};
    const TensorType column{DType::F32, {shape[0]}};
    Function function;
    Builder b(function);
    const ValueId x = b.argument(type);
    const ValueId bv = b.argument(bias);
    const ValueId cv = b.argument(column);
    const ValueId sum = b.binary(OpKind::Add, x, b.broadcast(bv, shape, {1}));
    const ValueId scaled = b.binary(OpKind::Multiply, sum, b.broadcast(cv, shape, {0}));
    const ValueId active = b.binary(OpKind::Maximum, scaled, b.splat(type, 0.0));
    const ValueId numbered = b.binary(OpKind::Add, active, b.iota(type, 0));
    b.setResults({sum, active, numbered});
    const std::vector<HostArray> arguments{randomArray(type, 1), randomArray(bias, 2), randomArray(column, 3)};
    for (const std::map<std::size_t, std::size_t>& inPlace : {std::map<std::size_t, std::size_t>{}, {{0, 0}}, {{0, 1}}, {{0, 2}}})
        checkOnePass(function, arguments, inPlace);
}

void TestTileChains::reluMaskInPlace()
{
    // grad = select(h > 0, g, 0), in the place of g or of h.
    const TensorType type{DType::F32, {33, 70}};
    Function function;
    Builder b(function);
    const ValueId h = b.argument(type);
    const ValueId g = b.argument(type);
    const ValueId zero = b.splat(type, 0.0);
    const ValueId mask = b.compare(CompareDirection::Greater, h, zero);
    b.setResults({b.select(mask, g, zero), mask});
    const std::vector<HostArray> arguments{randomArray(type, 1), randomArray(type, 2)};
    for (const std::map<std::size_t, std::size_t>& inPlace : {std::map<std::size_t, std::size_t>{}, {{0, 0}}, {{1, 0}}})
        checkOnePass(function, arguments, inPlace);
}

void TestTileChains::adam()
{
    // All three updates in one pass, each in the place of its old value; the correction factors are scalars made in the same pass.
    const TensorType type{DType::F32, {50, 61}};
    Function function;
    Builder b(function);
    const ValueId p = b.argument(type);
    const ValueId m = b.argument(type);
    const ValueId v = b.argument(type);
    const ValueId g = b.argument(type);
    const ValueId step = b.argument({DType::F32, {}});
    const auto constant = [&](double value) { return b.broadcastScalar(b.splat({DType::F32, {}}, value), type.shape); };
    const auto correction = [&](double beta) {
        const ValueId one = b.splat({DType::F32, {}}, 1.0);
        const ValueId factor = b.binary(OpKind::Subtract, one, b.binary(OpKind::Power, b.splat({DType::F32, {}}, beta), step));
        return b.broadcastScalar(factor, type.shape);
    };
    const ValueId newM
        = b.binary(OpKind::Add, b.binary(OpKind::Multiply, constant(0.9), m), b.binary(OpKind::Multiply, constant(0.1), g));
    const ValueId newV = b.binary(OpKind::Add, b.binary(OpKind::Multiply, constant(0.999), v),
        b.binary(OpKind::Multiply, constant(0.001), b.binary(OpKind::Multiply, g, g)));
    const ValueId mHat = b.binary(OpKind::Divide, newM, correction(0.9));
    const ValueId vHat = b.binary(OpKind::Divide, newV, correction(0.999));
    const ValueId change = b.binary(OpKind::Divide, mHat, b.binary(OpKind::Add, b.unary(OpKind::Sqrt, vHat), constant(1e-8)));
    const ValueId newP = b.binary(OpKind::Subtract, p, b.binary(OpKind::Multiply, constant(0.001), change));
    b.setResults({newP, newM, newV});
    std::vector<HostArray> arguments{randomArray(type, 1), randomArray(type, 2), randomArray(type, 3), randomArray(type, 4),
        HostArray::filled({DType::F32, {}}, 3.0)};
    for (std::int64_t i = 0; i < type.elements(); ++i)
        arguments[2].as<float>()[static_cast<std::size_t>(i)] = std::abs(arguments[2].as<float>()[static_cast<std::size_t>(i)]);
    checkOnePass(function, arguments, {});
    checkOnePass(function, arguments, {{0, 0}, {1, 1}, {2, 2}});
    checkOnePass(function, arguments, {{3, 0}, {1, 1}, {2, 2}});
}

void TestTileChains::swapLikeUpdates()
{
    // Each result lies in the place of an operand that the other one still needs.
    const TensorType type{DType::F32, {2500}};
    Function function;
    Builder b(function);
    const ValueId x = b.argument(type);
    const ValueId y = b.argument(type);
    const ValueId sum = b.binary(OpKind::Add, x, y);
    const ValueId difference = b.binary(OpKind::Subtract, x, y);
    b.setResults({sum, difference, b.constrain(x, TensorSharding::replicatedOf(1), "")});
    const std::vector<HostArray> arguments{randomArray(type, 1), randomArray(type, 2)};
    checkOnePass(function, arguments, {{0, 0}, {1, 1}});
    checkOnePass(function, arguments, {{0, 1}, {1, 0}});
    checkOnePass(function, arguments, {{1, 0}, {0, 2}});
}

void TestTileChains::broadcastOfAChain()
{
    // row = exp(bias) is computed in the pass, broadcast, and is a result too.
    const TensorType type{DType::F32, {40, 90}};
    const TensorType row{DType::F32, {90}};
    Function function;
    Builder b(function);
    const ValueId x = b.argument(type);
    const ValueId bias = b.argument(row);
    const ValueId early = b.unary(OpKind::Negate, x);
    const ValueId made = b.unary(OpKind::Exp, bias);
    const ValueId result = b.binary(OpKind::Multiply, early, b.broadcast(made, type.shape, {1}));
    b.setResults({result, made});
    const std::vector<HostArray> arguments{randomArray(type, 1), randomArray(row, 2)};
    checkOnePass(function, arguments, {});
    checkOnePass(function, arguments, {{0, 0}});
    checkOnePass(function, arguments, {{0, 0}, {1, 1}});

    Function hidden = function;
    hidden.body().results.pop_back();
    checkOnePass(hidden, arguments, {{0, 0}});
}

void TestTileChains::broadcastOfABroadcast_data()
{
    QTest::addColumn<Shape>("first");
    QTest::addColumn<Shape>("second");
    QTest::newRow("rows of one, one of them") << Shape{1, 16} << Shape{1, 16};
    QTest::newRow("rows of one, some") << Shape{1, 16} << Shape{8, 16};
    QTest::newRow("longer than a tile") << Shape{1, 3000} << Shape{1, 3000};
    QTest::newRow("the same again") << Shape{4, 16} << Shape{4, 16};
}

/// The second one may be as large as the first, and then is made behind it, not together with it.
void TestTileChains::broadcastOfABroadcast()
{
    QFETCH(Shape, first);
    QFETCH(Shape, second);
    const TensorType vector{DType::F32, {first[1]}};
    const TensorType type{DType::F32, second};
    Function function;
    Builder b(function);
    const ValueId x = b.argument(type);
    const ValueId bias = b.argument(vector);
    const ValueId row = b.broadcast(bias, first, {1});
    const ValueId spread = b.broadcast(row, second, {0, 1});
    const ValueId twice = b.broadcast(b.unary(OpKind::Negate, spread), second, {0, 1});
    b.setResults({b.binary(OpKind::Add, b.binary(OpKind::Add, x, spread), twice), spread});
    checkOnePass(function, {randomArray(type, 1), randomArray(vector, 2)}, {});
}

void TestTileChains::narrowTypes()
{
    // Every op rounds to bfloat16, fused or not.
    for (const DType dtype : {DType::BF16, DType::F16, DType::S8, DType::U16}) {
        const TensorType type{dtype, {3, 700}};
        const TensorType row{dtype, {700}};
        Function function;
        Builder b(function);
        const ValueId x = b.argument(type);
        const ValueId y = b.argument(row);
        const ValueId sum = b.binary(OpKind::Add, x, b.broadcast(y, type.shape, {1}));
        const ValueId product = b.binary(OpKind::Multiply, sum, sum);
        b.setResults({product, b.convert(sum, DType::F32)});
        const std::vector<HostArray> arguments{randomArray(type, 1), randomArray(row, 2)};
        checkOnePass(function, arguments, {});
        checkOnePass(function, arguments, {{0, 0}});
    }
}

void TestTileChains::transposingBroadcastInPlace()
{
    const TensorType type{DType::F32, {50, 50}};
    Function function;
    Builder b(function);
    const ValueId x = b.argument(type);
    b.setResults({b.binary(OpKind::Add, x, b.broadcast(x, type.shape, {1, 0}))});
    checkOnePass(function, {randomArray(type, 1)}, {{0, 0}});
}

void TestTileChains::foldedLeaves()
{
    // A pass over one op, whose operands (a broadcast of an iota plus a constant) never reach memory.
    const TensorType type{DType::F32, {6, 300}};
    Function function;
    Builder b(function);
    const ValueId x = b.argument(type);
    const ValueId iota = b.iota({DType::F32, {300}}, 0);
    const ValueId spread = b.broadcast(iota, type.shape, {1});
    const ValueId constant = b.splat(type, 2.0);
    const ValueId scaled = b.binary(OpKind::Multiply, spread, constant);
    const ValueId result = b.binary(OpKind::Add, x, scaled);
    b.setResults({result});
    const std::vector<HostArray> arguments{randomArray(type, 1)};
    const auto expected = evaluate(function, arguments);
    QVERIFY(expected);

    const std::vector<OpId> ops{function[scaled].producer, function[result].producer};
    const KernelSite site{function, [&](ValueId value) { return wholePiece(function[value].type.shape); }};
    const auto kernel = makeKernel(site, ops, std::vector<ValueId>{result}, [&](ValueId value) { return value == x; });
    HostArray input = arguments[0];
    HostArray output(type);
    std::vector<std::byte*> addresses(function.values.size(), nullptr);
    addresses[x.at()] = input.data();
    addresses[result.at()] = output.data();
    Scratch scratch;
    kernel->run(addresses, scratch, StopFlag{});
    QVERIFY(output == expected->front());
}

MESHWRIGHT_TEST(TestTileChains)

} // namespace tst_tile_chains

#include "tst_tile_chains.moc"
