// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/differentiate.h"
#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/program/verify.h"

#include "tests/gradient_check.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_differentiate {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

using Values = std::vector<ValueId>;
using Body = std::function<Values(Builder&, const Values&)>;

TensorType f32(Shape shape)
{
    return {DType::F32, std::move(shape)};
}

Function functionOf(const std::vector<Array>& arguments, const Body& body)
{
    Function f;
    f.name = "f";
    Builder b(f);
    Values values;
    for (std::size_t i = 0; i < arguments.size(); ++i)
        values.push_back(b.argument(f32(arguments[i].shape), std::string(1, static_cast<char>('a' + i))));
    b.setResults(body(b, values));
    return f;
}

std::vector<std::size_t> upTo(std::size_t count)
{
    std::vector<std::size_t> all(count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
}

/// Ops of the whole program in order, "dot_general add".
QString opsOf(const Function& f)
{
    QString names;
    forEachOp(f, [&](OpId id) { names += QString(names.isEmpty() ? "" : " ") + opName(f[id].kind); });
    return names;
}

/// The residuals' types, "f32[2,3] i1[2,3]".
QString residualsOf(const Differentiated& derivative, std::size_t seeds)
{
    QString types;
    for (std::size_t i = 0; i + seeds < derivative.backward.arguments().size(); ++i)
        types += (i == 0 ? "" : " ") + text(typeText(derivative.backward[derivative.backward.arguments()[i]].type));
    return types;
}

Body unary(OpKind kind)
{
    return [kind](Builder& b, const Values& v) { return Values{b.unary(kind, v[0])}; };
}

Body binary(OpKind kind)
{
    return [kind](Builder& b, const Values& v) { return Values{b.binary(kind, v[0], v[1])}; };
}

Body dot(std::vector<std::size_t> lhsBatch, std::vector<std::size_t> rhsBatch, std::vector<std::size_t> lhsContracting,
    std::vector<std::size_t> rhsContracting)
{
    const DotAttributes attributes{
        std::move(lhsBatch), std::move(rhsBatch), std::move(lhsContracting), std::move(rhsContracting), DType::F32, DType::F32};
    return [attributes](Builder& b, const Values& v) { return Values{b.dot(v[0], v[1], attributes)}; };
}

Body reduce(ReduceKind kind, std::vector<std::size_t> dims)
{
    return [kind, dims](Builder& b, const Values& v) { return Values{b.reduce(kind, v[0], dims)}; };
}

Body broadcast(Shape shape, std::vector<std::size_t> dims)
{
    return [shape, dims](Builder& b, const Values& v) { return Values{b.broadcast(v[0], shape, dims)}; };
}

/// 0, step, 2 step and so on along dimension 0, over `modulus`.
ValueId indices(Builder& b, Shape shape, double step, double modulus)
{
    const TensorType type{DType::S32, std::move(shape)};
    const ValueId steps = b.binary(OpKind::Multiply, b.iota(type, 0), b.splat(type, step));
    return b.binary(OpKind::Remainder, steps, b.splat(type, modulus));
}

Body part(OpKind kind, OpAttributes attributes)
{
    return [kind, attributes](Builder& b, const Values& v) { return Values{b.add(kind, v, attributes)}; };
}

/// The values of `v`, then where a part begins.
Values withStarts(Builder& b, Values v, const std::vector<double>& starts)
{
    for (const double start : starts)
        v.push_back(b.splat({DType::S32, {}}, start));
    return v;
}

/// h' = tanh(h w + b) * scale and the sum of h' as a stacked result, four times.
Values loopOf(Builder& b, const Values& v, bool reversed)
{
    const OpId loop = b.beginRepeat({4, 1, 2, reversed}, v);
    const Values inner = b.function()[b.block()].arguments;
    const ValueId product = b.matmul(inner[0], inner[1], DType::F32);
    const ValueId sum = b.binary(OpKind::Add, product, b.broadcast(inner[2], {2, 3}, {1}));
    const ValueId next = b.binary(OpKind::Multiply, b.unary(OpKind::Tanh, sum), b.broadcastScalar(inner[3], {2, 3}));
    b.setResults({next, b.reduce(ReduceKind::Sum, next, {0, 1})});
    return b.endRepeat(loop);
}

std::vector<Array> loopArguments()
{
    return {ramp({2, 3}), ramp({4, 3, 3}, 1.0), ramp({4, 3}, 2.0), ramp({}, 0.9)};
}

/// tanh(h w) summed, and h w; or the sum of h * h, and h * s; or a sum that has nothing to do with h, and zeros: by the number of the branch.
Values choiceOf(Builder& b, const Values& v, std::size_t branch, bool isTruth)
{
    const TensorType type{isTruth ? DType::Pred : DType::S32, {}};
    Values operands{b.splat(type, isTruth ? 1.0 - static_cast<double>(branch) : static_cast<double>(branch))};
    operands.insert(operands.end(), v.begin(), v.end());
    std::vector<TensorType> types;
    for (const ValueId value : v)
        types.push_back(b.type(value));
    const OpId op = b.beginOp(OpKind::Case, operands, {});
    Values own = b.beginBody(op, types);
    const ValueId product = b.matmul(own[0], own[1], DType::F32);
    b.setResults({b.reduce(ReduceKind::Sum, b.unary(OpKind::Tanh, product), {0, 1}), product});
    own = b.beginBody(op, types);
    const ValueId scaled = b.binary(OpKind::Multiply, own[0], b.broadcastScalar(own[2], {2, 3}));
    b.setResults({b.reduce(ReduceKind::Sum, b.binary(OpKind::Multiply, own[0], scaled), {0, 1}), scaled});
    if (!isTruth) {
        own = b.beginBody(op, types);
        b.setResults({b.binary(OpKind::Multiply, own[2], own[2]), b.splat(f32({2, 3}), 0.0)});
    }
    return b.endOp(op, {f32({}), f32({2, 3})});
}

std::vector<Array> choiceArguments()
{
    return {ramp({2, 3}), ramp({3, 3}, 1.0), ramp({}, 0.9)};
}

} // namespace

class TestDifferentiate : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void ops_data();
    void ops();
    void residuals_data();
    void residuals();
    void ties();
    void reluAtZero();
    void powerAtZero();
    void flat();
    void namesAndRoles();
    void severalUses();
    void sameGradientTwice();
    void oneOfTwo();
    void absentCotangents();
    void convertsBack();
    void productTypes();
    void constraint();
    void loop_data();
    void loop();
    void loopEqualsUnrolled();
    void loopResiduals();
    void nestedLoop();
    void choice_data();
    void choice();
    void choiceInLoop();
    void carriesOfAllSorts();
    void inputAndWeightGradients();
    void problems();
};

void TestDifferentiate::ops_data()
{
    QTest::addColumn<Body>("body");
    QTest::addColumn<std::vector<Array>>("arguments");

    const auto row = [](const char* name, Body body, std::vector<Array> arguments) {
        QTest::newRow(name) << std::move(body) << std::move(arguments);
    };
    const Array any = ramp({2, 3});
    const Array positive = ramp({2, 3}, 0.2, 0.8, 1.5);
    row("negate", unary(OpKind::Negate), {any});
    row("abs", unary(OpKind::Abs), {ramp({2, 3}, 0.3)});
    row("exponential", unary(OpKind::Exp), {any});
    row("log", unary(OpKind::Log), {positive});
    row("log_plus_one", unary(OpKind::Log1p), {positive});
    row("tanh", unary(OpKind::Tanh), {any});
    row("logistic", unary(OpKind::Logistic), {any});
    row("sqrt", unary(OpKind::Sqrt), {positive});
    row("rsqrt", unary(OpKind::Rsqrt), {positive});
    row("sine", unary(OpKind::Sine), {any});
    row("cosine", unary(OpKind::Cosine), {any});
    row("tan", unary(OpKind::Tan), {any});
    row("cbrt", unary(OpKind::Cbrt), {positive});
    row("exponential_minus_one", unary(OpKind::Expm1), {any});
    row("chlo.square", unary(OpKind::Square), {any});
    row("erf", unary(OpKind::Erf), {any});
    row("erfc", unary(OpKind::Erfc), {any});
    for (const OpKind kind : {OpKind::Asin, OpKind::Acos, OpKind::Atan, OpKind::Sinh, OpKind::Cosh, OpKind::Asinh, OpKind::Atanh})
        row(opName(kind), unary(kind), {ramp({2, 3}, 0.3, 0.6)});
    row("lgamma", unary(OpKind::LogGamma), {positive});
    row("acosh", unary(OpKind::Acosh), {ramp({2, 3}, 0.3, 0.6, 2.0)});
    row("reduce_precision to all that there is",
        [](Builder& b, const Values& v) {
            return Values{b.add(OpKind::ReducePrecision, {v[0]}, ReducePrecisionAttributes{8, 23})};
        },
        {any});
    row("real part of a real number", unary(OpKind::Real), {any});
    row("atan2", binary(OpKind::Atan2), {any, positive});
    row("erf_inv", unary(OpKind::ErfInv), {ramp({2, 3}, 0.1, 0.9)});
    row("convert", [](Builder& b, const Values& v) { return Values{b.convert(b.convert(v[0], DType::F64), DType::F32)}; }, {any});
    row("add", binary(OpKind::Add), {any, positive});
    row("subtract", binary(OpKind::Subtract), {any, positive});
    row("multiply", binary(OpKind::Multiply), {any, positive});
    row("square", [](Builder& b, const Values& v) { return Values{b.binary(OpKind::Multiply, v[0], v[0])}; }, {any});
    row("divide", binary(OpKind::Divide), {any, positive});
    row("remainder", binary(OpKind::Remainder), {ramp({2, 3}, 0.5, 9.0), ramp({2, 3}, 0.2, 0.3, 2.0)});
    row("remainder of all signs", binary(OpKind::Remainder),
        {Array{{2, 3}, {-7.3, 5.2, -4.7, 9.1, -2.6, 6.4}}, Array{{2, 3}, {2.0, -1.5, 1.3, -4.0, -1.1, 2.7}}});
    row("maximum", binary(OpKind::Maximum), {any, ramp({2, 3}, 2.0)});
    row("minimum", binary(OpKind::Minimum), {any, ramp({2, 3}, 2.0)});
    row("power", binary(OpKind::Power), {positive, any});
    row("select",
        [](Builder& b, const Values& v) { return Values{b.select(b.compare(CompareDirection::Less, v[0], v[2]), v[0], v[1])}; },
        {any, positive, ramp({2, 3}, 2.0)});
    row("broadcast a scalar", broadcast({2, 3}, {}), {ramp({})});
    row("broadcast a row", broadcast({4, 3}, {1}), {ramp({3})});
    row("broadcast stretched", broadcast({4, 2, 3}, {1, 2}), {ramp({2, 1})});
    row("broadcast transposing", broadcast({3, 4, 2}, {2, 0}), {ramp({2, 3})});
    row("broadcast size 1", broadcast({1, 3}, {0, 1}), {ramp({1, 3})});
    row("reshape", [](Builder& b, const Values& v) { return Values{b.reshape(v[0], {3, 2})}; }, {any});
    row("transpose", [](Builder& b, const Values& v) { return Values{b.transpose(v[0], {2, 0, 1})}; }, {ramp({2, 3, 4})});
    row("sum", reduce(ReduceKind::Sum, {1}), {ramp({2, 3, 4})});
    row("sum of all", reduce(ReduceKind::Sum, {0, 1}), {any});
    row("max", reduce(ReduceKind::Max, {0, 2}), {ramp({2, 3, 4})});
    row("min", reduce(ReduceKind::Min, {1}), {ramp({2, 3, 4})});
    row("product", reduce(ReduceKind::Product, {1}), {positive});
    row("product with a zero", reduce(ReduceKind::Product, {1}), {Array{{2, 3}, {0.0, 2.0, 3.0, 0.0, 0.0, 5.0}}});
    row("matrix product", dot({}, {}, {1}, {0}), {ramp({2, 3}), ramp({3, 4}, 1.0)});
    row("product, left transposed", dot({}, {}, {0}, {0}), {ramp({3, 2}), ramp({3, 4}, 1.0)});
    row("product, both transposed", dot({}, {}, {0}, {1}), {ramp({3, 2}), ramp({4, 3}, 1.0)});
    row("inner product", dot({}, {}, {0}, {0}), {ramp({3}), ramp({3}, 1.0)});
    row("outer product", dot({}, {}, {}, {}), {ramp({3}), ramp({2}, 1.0)});
    row("attention scores", dot({0, 2}, {0, 2}, {3}, {3}), {ramp({2, 3, 2, 4}), ramp({2, 5, 2, 4}, 1.0)});
    row("batch in another order", dot({1, 0}, {0, 2}, {2}, {1}), {ramp({2, 3, 4}), ramp({3, 4, 2}, 1.0)});
    row("two contracted, crossed", dot({}, {}, {1, 0}, {0, 2}), {ramp({2, 3, 4}), ramp({3, 5, 2}, 1.0)});
    row("squared product", [](Builder& b, const Values& v) { return Values{b.matmul(v[0], v[0], DType::F32)}; }, {ramp({3, 3})});
    row("clamp", [](Builder& b, const Values& v) { return Values{b.add(OpKind::Clamp, v)}; },
        {ramp({2, 3}, 1.0, 0.4), any, ramp({2, 3}, 2.0, 0.4, 0.5)});
    row("slice", part(OpKind::Slice, SliceAttributes{{1, 0}, {3, 4}, {1, 1}}), {ramp({3, 4})});
    row("slice with steps", part(OpKind::Slice, SliceAttributes{{1, 0}, {8, 4}, {3, 2}}), {ramp({9, 5})});
    row("slice of nothing", part(OpKind::Slice, SliceAttributes{{1, 2}, {3, 2}, {1, 3}}), {ramp({3, 4})});
    row("pad", part(OpKind::Pad, PadAttributes{{1, 0}, {2, 0}, {0, 2}}), {ramp({3, 4}), ramp({})});
    row("pad that takes away", part(OpKind::Pad, PadAttributes{{-1, 2}, {1, -2}, {1, 0}}), {ramp({4, 5}), ramp({})});
    row("pad that takes all away", part(OpKind::Pad, PadAttributes{{-5}, {6}, {0}}), {ramp({4}), ramp({})});
    row("concatenate", part(OpKind::Concatenate, ConcatenateAttributes{1}), {ramp({2, 3}), ramp({2, 1}), ramp({2, 2})});
    row("concatenate with itself",
        [](Builder& b, const Values& v) {
            return Values{b.add(OpKind::Concatenate, {v[0], v[1], v[0]}, ConcatenateAttributes{0})};
        },
        {ramp({2, 3}), ramp({1, 3}, 1.0)});
    row("reverse", part(OpKind::Reverse, ReverseAttributes{{0, 2}}), {ramp({2, 3, 4})});
    row("dynamic slice",
        [](Builder& b, const Values& v) {
            return Values{b.add(OpKind::DynamicSlice, withStarts(b, v, {2, 1}), DynamicSliceAttributes{{2, 3}})};
        },
        {ramp({5, 4})});
    row("dynamic slice at the end",
        [](Builder& b, const Values& v) {
            return Values{b.add(OpKind::DynamicSlice, withStarts(b, v, {9, -3}), DynamicSliceAttributes{{2, 3}})};
        },
        {ramp({5, 4})});
    row("dynamic update",
        [](Builder& b, const Values& v) {
            return Values{b.add(OpKind::DynamicUpdateSlice, withStarts(b, v, {1, 7}))};
        },
        {ramp({5, 4}), ramp({2, 3}, 1.0)});
    const IndexingDims rows{{1}, {0}, {}, {}, {0}, 1};
    row("embedding, rows read several times",
        [rows](Builder& b, const Values& v) {
            return Values{b.add(OpKind::Gather, {v[0], indices(b, {6, 1}, 2, 3)}, GatherAttributes{rows, {1, 4}, false})};
        },
        {ramp({3, 4})});
    row("embedding, rows that are not there",
        [rows](Builder& b, const Values& v) {
            return Values{b.add(OpKind::Gather, {v[0], indices(b, {4, 1}, 2, 9)}, GatherAttributes{rows, {1, 4}, false})};
        },
        {ramp({3, 4})});
    row("windows",
        [](Builder& b, const Values& v) {
            const IndexingDims windows{{0, 2}, {}, {}, {}, {1, 0}, 0};
            return Values{b.add(OpKind::Gather, {v[0], indices(b, {2, 3}, 3, 5)}, GatherAttributes{windows, {3, 2}, false})};
        },
        {ramp({5, 4})});
    row("batches",
        [](Builder& b, const Values& v) {
            const IndexingDims batched{{2}, {1}, {0}, {0}, {1}, 2};
            return Values{
                b.add(OpKind::Gather, {v[0], indices(b, {2, 3, 1}, 2, 3)}, GatherAttributes{batched, {1, 1, 2}, false})};
        },
        {ramp({2, 4, 2})});
    const auto scatter = [](IndexingDims dims, std::optional<ReduceKind> combiner, Shape shape, double step, double modulus) {
        return Body([=](Builder& b, const Values& v) {
            // From -2 on, so that some updates go nowhere.
            const TensorType type{DType::S32, shape};
            const ValueId at = b.binary(OpKind::Subtract, indices(b, shape, step, modulus), b.splat(type, 2.0));
            const ValueId made = b.add(OpKind::Scatter, {v[0], at, v[1]}, ScatterAttributes{dims, combiner, false, false});
            return Values{b.binary(OpKind::Multiply, made, made)};
        });
    };
    for (const auto& [name, combiner] : {std::pair("add", std::optional(ReduceKind::Sum)), {"replace", std::nullopt}}) {
        const auto title = [&, what = name](const char* how) { return std::string("scatter, ") + what + how; };
        row(title(" rows").c_str(), scatter(rows, combiner, {6, 1}, 3, 7), {ramp({3, 4}), ramp({6, 4}, 1.0)});
        row(title(" scalars").c_str(), scatter({{}, {0}, {}, {}, {0}, 1}, combiner, {5}, 2, 7), {ramp({4}), ramp({5}, 1.0)});
        row(title(" windows, some partly outside").c_str(), scatter({{0, 2}, {}, {}, {}, {1, 0}, 0}, combiner, {2, 3}, 3, 5),
            {ramp({5, 4}), ramp({3, 3, 2}, 1.0)});
        row(title(" batches").c_str(), scatter({{2}, {1}, {0}, {0}, {1}, 2}, combiner, {2, 3, 1}, 3, 4),
            {ramp({2, 4, 2}), ramp({2, 3, 2}, 1.0)});
    }
    row("two results",
        [](Builder& b, const Values& v) {
            return Values{b.unary(OpKind::Exp, v[0]), b.binary(OpKind::Multiply, v[0], v[1])};
        },
        {any, positive});
    row("softmax",
        [](Builder& b, const Values& v) {
            const ValueId shifted
                = b.binary(OpKind::Subtract, v[0], b.broadcast(b.reduce(ReduceKind::Max, v[0], {1}), {2, 3}, {0}));
            const ValueId e = b.unary(OpKind::Exp, shifted);
            return Values{b.binary(OpKind::Divide, e, b.broadcast(b.reduce(ReduceKind::Sum, e, {1}), {2, 3}, {0}))};
        },
        {any});
}

void TestDifferentiate::ops()
{
    QFETCH(Body, body);
    QFETCH(std::vector<Array>, arguments);
    const Function f = functionOf(arguments, body);
    const QString fault = gradientFault(f, arguments, upTo(arguments.size()), upTo(f.results().size()));
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
}

void TestDifferentiate::residuals_data()
{
    QTest::addColumn<Body>("body");
    QTest::addColumn<QString>("residuals");
    QTest::addColumn<QString>("ops"); // of the backward program

    QTest::newRow("linear") << binary(OpKind::Add) << ""
                            << "reshape";
    QTest::newRow("tanh reads its result") << unary(OpKind::Tanh) << "f32[2,3]"
                                           << "multiply constant subtract multiply constant";
    QTest::newRow("times a constant") << Body([](Builder& b, const Values& v) {
        return Values{b.binary(OpKind::Multiply, v[0], b.splat(f32({2, 3}), 3.0))};
    }) << ""
                                      << "constant multiply constant";
    QTest::newRow("over a broadcast constant") << Body([](Builder& b, const Values& v) {
        return Values{b.binary(OpKind::Divide, v[0], b.broadcastScalar(b.splat(f32({}), 3.0), {2, 3}))};
    }) << ""
                                               << "constant broadcast_in_dim divide constant";
    QTest::newRow("times a broadcast value") << Body([](Builder& b, const Values& v) {
        return Values{b.binary(OpKind::Multiply, v[0], b.broadcast(b.reduce(ReduceKind::Max, v[1], {1}), {2, 3}, {0}))};
    }) << "f32[2,3] f32[2,3] f32[2]" << QString();
    QTest::newRow("relu keeps the mask") << Body([](Builder& b, const Values& v) {
        const ValueId zero = b.splat(f32({2, 3}), 0.0);
        return Values{b.select(b.compare(CompareDirection::Greater, v[0], zero), v[0], zero)};
    }) << "i1[2,3]"
                                         << "constant select constant";
    QTest::newRow("a mask from iotas") << Body([](Builder& b, const Values& v) {
        const ValueId mask = b.compare(CompareDirection::LessEqual, b.iota(f32({2, 3}), 1), b.iota(f32({2, 3}), 0));
        return Values{b.select(mask, v[0], b.splat(f32({2, 3}), -1.0))};
    }) << ""
                                       << "iota iota compare constant select constant";
    QTest::newRow("a mask of labels is made of the labels") << Body([](Builder& b, const Values& v) {
        const ValueId labels = b.convert(b.reduce(ReduceKind::Max, v[1], {1}), DType::S32);
        const TensorType whole{DType::S32, {2, 3}};
        const ValueId mask = b.compare(CompareDirection::Equal, b.broadcast(labels, whole.shape, {0}), b.iota(whole, 1));
        return Values{b.select(mask, v[0], b.splat(f32({2, 3}), -1.0))};
    }) << "i32[2]"
                                                            << "broadcast_in_dim iota compare constant select constant";
    QTest::newRow("a mask of as many values is kept") << Body([](Builder& b, const Values& v) {
        const ValueId mask
            = b.compare(CompareDirection::Less, b.broadcast(b.reduce(ReduceKind::Max, v[1], {1}), {2, 3}, {0}), v[1]);
        return Values{b.select(mask, v[0], b.splat(f32({2, 3}), -1.0))};
    }) << "i1[2,3]"
                                                      << "constant select constant";
}

void TestDifferentiate::residuals()
{
    QFETCH(Body, body);
    QFETCH(QString, residuals);
    QFETCH(QString, ops);
    const std::vector<Array> arguments = {ramp({2, 3}, 0.3), ramp({2, 3}, 1.0)};
    const Function f = functionOf(arguments, body);
    const auto derivative = differentiate(f, {0, 1}, {0});
    QVERIFY2(derivative, qPrintable(described(derivative)));
    QCOMPARE(residualsOf(*derivative, 1), residuals);
    const auto sorted = [](const QString& names) {
        QStringList list = names.split(' ');
        list.sort();
        return list.join(' ');
    };
    if (!ops.isEmpty() && ops != "reshape")
        QCOMPARE(sorted(opsOf(derivative->backward)), sorted(ops));
    const QString fault = gradientFault(f, arguments, {0, 1}, {0});
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
}

// As JAX: half to each side.
void TestDifferentiate::ties()
{
    const std::vector<Array> arguments = {Array{{3}, {1.0, 2.0, 3.0}}, Array{{3}, {2.0, 2.0, 2.0}}};
    const std::vector<Array> one = {Array{{3}, {1.0, 1.0, 1.0}}};
    for (const OpKind kind : {OpKind::Maximum, OpKind::Minimum}) {
        const auto derivative = differentiate(functionOf(arguments, binary(kind)), {0, 1}, {0});
        const auto gradients = gradientsOf(*derivative, arguments, one);
        const bool isMaximum = kind == OpKind::Maximum;
        QCOMPARE(gradients[0].data, (isMaximum ? std::vector<double>{0, .5, 1} : std::vector<double>{1, .5, 0}));
        QCOMPARE(gradients[1].data, (isMaximum ? std::vector<double>{1, .5, 0} : std::vector<double>{0, .5, 1}));
    }
    const std::vector<Array> row = {Array{{4}, {5.0, 1.0, 5.0, 5.0}}};
    const auto derivative = differentiate(functionOf(row, reduce(ReduceKind::Max, {0})), {0}, {0});
    const auto gradients = gradientsOf(*derivative, row, {Array{{}, {3.0}}});
    QCOMPARE(gradients[0].data, (std::vector<double>{1, 0, 1, 1}));
}

void TestDifferentiate::reluAtZero()
{
    const std::vector<Array> x = {Array{{3}, {-1.0, 0.0, 1.0}}};
    const auto derivative
        = differentiate(functionOf(x,
                            [](Builder& b, const Values& v) {
                                const ValueId zero = b.splat(f32({3}), 0.0);
                                return Values{b.select(b.compare(CompareDirection::Greater, v[0], zero), v[0], zero)};
                            }),
            {0}, {0});
    QCOMPARE(gradientsOf(*derivative, x, {Array{{3}, {7.0, 7.0, 7.0}}})[0].data, (std::vector<double>{0, 0, 7}));
}

// x^0 has slope 0 at 0, and 0^y does not move with y; neither is NaN.
void TestDifferentiate::powerAtZero()
{
    const std::vector<Array> arguments = {Array{{3}, {0.0, 0.0, 2.0}}, Array{{3}, {0.0, 2.0, 3.0}}};
    const auto derivative = differentiate(functionOf(arguments, binary(OpKind::Power)), {0, 1}, {0});
    const auto gradients = gradientsOf(*derivative, arguments, {Array{{3}, {1.0, 1.0, 1.0}}});
    QCOMPARE(gradients[0].data, (std::vector<double>{0, 0, 12}));
    QCOMPARE(gradients[1].data, (std::vector<double>{0, 0, 8.0 * std::log(2.0)}));
}

// Floor, sign and comparisons stop the gradient: nothing is computed, the argument's is a plain zero.
void TestDifferentiate::flat()
{
    const std::vector<Array> x = {ramp({2, 3})};
    for (const OpKind kind : {OpKind::Floor, OpKind::Ceil, OpKind::RoundNearestEven, OpKind::RoundNearestAway, OpKind::Sign}) {
        const auto derivative = differentiate(functionOf(x, unary(kind)), {0}, {0});
        QVERIFY(derivative);
        QCOMPARE(opsOf(derivative->backward), QString("constant"));
        QCOMPARE(derivative->backward.arguments().size(), std::size_t{1}); // the cotangent
    }
}

void TestDifferentiate::namesAndRoles()
{
    Function f;
    f.name = "loss";
    Builder b(f);
    const ValueId w = b.argument(f32({2}), "layers.0.w", Role::Parameter);
    const ValueId x = b.argument(f32({2}), "x", Role::Input);
    b.setResults({b.reduce(ReduceKind::Sum, b.binary(OpKind::Multiply, w, x), {0}), x}, {"loss", "x"});
    f.donations = {{1, 1}};
    const auto derivative = differentiate(f, {0}, {0});
    QVERIFY(derivative);
    QCOMPARE(text(derivative->forward.name), QString("loss.fwd"));
    QCOMPARE(text(derivative->backward.name), QString("loss.bwd"));
    QCOMPARE(derivative->forward.resultNames, (std::vector<std::string>{"loss", "x", "residual.x"}));
    QVERIFY(derivative->forward.donations.empty());
    QCOMPARE(derivative->backward.resultNames, (std::vector<std::string>{"grad.layers.0.w"}));
    const Value& gradient = derivative->backward[derivative->backward.results()[0]];
    QCOMPARE(text(gradient.name), QString("grad.layers.0.w"));
    QVERIFY(gradient.role == Role::Gradient);
    const auto& arguments = derivative->backward.arguments();
    QCOMPARE(text(derivative->backward[arguments[0]].name), QString("x"));
    QVERIFY(derivative->backward[arguments[0]].role == Role::Input);
    QCOMPARE(text(derivative->backward[arguments[1]].name), QString("ct.loss"));
    for (std::size_t i = 0; i < arguments.size(); ++i)
        QCOMPARE(derivative->backward[arguments[i]].index, i);
}

void TestDifferentiate::severalUses()
{
    const std::vector<Array> x = {ramp({2, 2})};
    const Function f = functionOf(x, [](Builder& b, const Values& v) {
        const ValueId e = b.unary(OpKind::Exp, v[0]);
        return Values{b.binary(OpKind::Add, b.binary(OpKind::Multiply, e, v[0]), b.binary(OpKind::Divide, v[0], e)), e};
    });
    const QString fault = gradientFault(f, x, {0}, {0, 1});
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
}

// a + b: both gradients are the cotangent, and yet each is a value with a name of its own.
void TestDifferentiate::sameGradientTwice()
{
    const std::vector<Array> arguments = {ramp({2}), ramp({2})};
    const auto derivative = differentiate(functionOf(arguments, binary(OpKind::Add)), {0, 1}, {0});
    QVERIFY(derivative);
    const auto& results = derivative->backward.results();
    QVERIFY(results[0] != results[1]);
    QCOMPARE(text(derivative->backward[results[0]].name), QString("grad.a"));
    QCOMPARE(text(derivative->backward[results[1]].name), QString("grad.b"));
}

void TestDifferentiate::oneOfTwo()
{
    const std::vector<Array> arguments = {ramp({2, 3}), ramp({3, 4})};
    const auto derivative = differentiate(functionOf(arguments, dot({}, {}, {1}, {0})), {1}, {0});
    QCOMPARE(residualsOf(*derivative, 1), QString("f32[2,3]"));
    QCOMPARE(opsOf(derivative->backward), QString("dot_general")); // and no transpose
    const auto both = differentiate(functionOf(arguments, dot({}, {}, {1}, {0})), {0, 1}, {0});
    QCOMPARE(opsOf(both->backward), QString("dot_general dot_general"));
}

void TestDifferentiate::absentCotangents()
{
    // Of two results only the first is seeded: nothing is done for the other.
    const std::vector<Array> arguments = {ramp({2}), ramp({2})};
    const Function f = functionOf(arguments, [](Builder& b, const Values& v) {
        return Values{b.unary(OpKind::Negate, v[0]), b.unary(OpKind::Tanh, v[1])};
    });
    const auto derivative = differentiate(f, {0, 1}, {0});
    QCOMPARE(opsOf(derivative->backward), QString("negate constant"));
    const QString fault = gradientFault(f, arguments, {0, 1}, {0});
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
}

void TestDifferentiate::convertsBack()
{
    Function f;
    Builder b(f);
    const ValueId x = b.argument({DType::BF16, {2}}, "x");
    const ValueId wide = b.convert(x, DType::F32);
    b.setResults({b.binary(OpKind::Multiply, wide, wide)});
    const auto derivative = differentiate(f, {0}, {0});
    QVERIFY(derivative);
    QCOMPARE(text(typeText(derivative->backward[derivative->backward.results()[0]].type)), QString("bf16[2]"));
    QVERIFY(verify(derivative->backward, {}).empty());
}

// bf16 operands, accumulated in f32: the gradients are accumulated in f32, too, and given as bf16.
void TestDifferentiate::productTypes()
{
    Function f;
    Builder b(f);
    const ValueId x = b.argument({DType::BF16, {2, 3}}, "x");
    const ValueId w = b.argument({DType::BF16, {3, 4}}, "w");
    b.setResults({b.dot(x, w, {{}, {}, {1}, {0}, DType::F32, DType::BF16})});
    const auto derivative = differentiate(f, {0, 1}, {0});
    QVERIFY(derivative);
    QVERIFY(verify(derivative->backward, {}).empty());
    forEachOp(derivative->backward, [&](OpId id) {
        const Op& op = derivative->backward[id];
        if (op.kind == OpKind::DotGeneral) {
            QVERIFY(op.as<DotAttributes>().resultType == DType::F32);
            QVERIFY(op.as<DotAttributes>().operandType == DType::BF16);
        }
    });
    for (const ValueId result : derivative->backward.results())
        QVERIFY(derivative->backward[result].type.dtype == DType::BF16);
}

void TestDifferentiate::constraint()
{
    const Mesh mesh = meshOf("data=2");
    const TensorSharding sharding = shardingOf("P('data', None)", 2, mesh);
    const std::vector<Array> x = {ramp({2, 3})};
    const Function f = functionOf(x,
        [&](Builder& b, const Values& v) { return Values{b.unary(OpKind::Exp, b.constrain(v[0], sharding, "sharding.act"))}; });
    const auto derivative = differentiate(f, {0}, {0});
    QCOMPARE(opsOf(derivative->backward), QString("multiply sharding_constraint"));
    const Op& op = derivative->backward.ops.back();
    QVERIFY(op.as<ConstraintAttributes>().sharding == sharding);
    QCOMPARE(text(op.as<ConstraintAttributes>().origin), QString("sharding.act"));
    QVERIFY(derivative->backward[op.results[0]].sharding == sharding);
    const QString fault = gradientFault(f, x, {0}, {0}, 2e-6, {{"mesh", mesh}});
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
}

void TestDifferentiate::loop_data()
{
    QTest::addColumn<bool>("reversed");
    QTest::addColumn<std::vector<std::size_t>>("wrt");
    QTest::addColumn<std::vector<std::size_t>>("seeds");

    using Indices = std::vector<std::size_t>;
    for (const bool reversed : {false, true}) {
        const auto name = [&](const char* text) { return std::string(text) + (reversed ? ", reversed" : ""); };
        QTest::newRow(name("all").c_str()) << reversed << Indices{0, 1, 2, 3} << Indices{0, 1};
        QTest::newRow(name("carry").c_str()) << reversed << Indices{0} << Indices{0};
        QTest::newRow(name("weights").c_str()) << reversed << Indices{1} << Indices{0};
        QTest::newRow(name("invariant").c_str()) << reversed << Indices{3} << Indices{0};
        QTest::newRow(name("stacked result").c_str()) << reversed << Indices{0, 1, 2, 3} << Indices{1};
    }
}

void TestDifferentiate::loop()
{
    QFETCH(bool, reversed);
    QFETCH(std::vector<std::size_t>, wrt);
    QFETCH(std::vector<std::size_t>, seeds);
    const Function f = functionOf(loopArguments(), [&](Builder& b, const Values& v) { return loopOf(b, v, reversed); });
    const QString fault = gradientFault(f, loopArguments(), wrt, seeds);
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
}

void TestDifferentiate::loopEqualsUnrolled()
{
    const std::vector<Array> looped = loopArguments();
    std::vector<Array> flat = {looped[0], looped[3]};
    for (std::size_t i = 0; i < 4; ++i) {
        const auto first = static_cast<std::ptrdiff_t>(i);
        flat.push_back({{3, 3}, {looped[1].data.begin() + 9 * first, looped[1].data.begin() + 9 * (first + 1)}});
        flat.push_back({{3}, {looped[2].data.begin() + 3 * first, looped[2].data.begin() + 3 * (first + 1)}});
    }
    const Function loop = functionOf(looped, [](Builder& b, const Values& v) { return loopOf(b, v, false); });
    const Function unrolled = functionOf(flat, [](Builder& b, const Values& v) {
        ValueId h = v[0];
        for (std::size_t i = 0; i < 4; ++i) {
            const ValueId sum
                = b.binary(OpKind::Add, b.matmul(h, v[2 + 2 * i], DType::F32), b.broadcast(v[3 + 2 * i], {2, 3}, {1}));
            h = b.binary(OpKind::Multiply, b.unary(OpKind::Tanh, sum), b.broadcastScalar(v[1], {2, 3}));
        }
        return Values{h};
    });
    const std::vector<Array> cotangent = {ramp({2, 3}, 0.5)};
    const auto ofLoop = gradientsOf(*differentiate(loop, upTo(4), {0}), looped, cotangent);
    const auto ofUnrolled = gradientsOf(*differentiate(unrolled, upTo(flat.size()), {0}), flat, cotangent);
    QCOMPARE(ofLoop[0].data, ofUnrolled[0].data);
    QVERIFY(std::abs(ofLoop[3].scalar() - ofUnrolled[1].scalar()) < 1e-14); // summed in another order
    std::vector<double> weights;
    std::vector<double> biases;
    for (std::size_t i = 0; i < 4; ++i) {
        weights.insert(weights.end(), ofUnrolled[2 + 2 * i].data.begin(), ofUnrolled[2 + 2 * i].data.end());
        biases.insert(biases.end(), ofUnrolled[3 + 2 * i].data.begin(), ofUnrolled[3 + 2 * i].data.end());
    }
    QCOMPARE(ofLoop[1].data, weights);
    QCOMPARE(ofLoop[2].data, biases);
}

// Stacked: the carry's and tanh's values. The weights and the scale are read where they are.
void TestDifferentiate::loopResiduals()
{
    const Function f = functionOf(loopArguments(), [](Builder& b, const Values& v) { return loopOf(b, v, false); });
    const auto derivative = differentiate(f, upTo(4), {0});
    QVERIFY(derivative);
    QCOMPARE(residualsOf(*derivative, 1), QString("f32[4,3,3] f32[] f32[4,2,3] f32[4,2,3]"));
    const auto loopOp = std::find_if(
        derivative->backward.ops.begin(), derivative->backward.ops.end(), [](const Op& op) { return op.kind == OpKind::Repeat; });
    QVERIFY(loopOp != derivative->backward.ops.end());
    const auto& attributes = loopOp->as<RepeatAttributes>();
    QVERIFY(attributes.reversed);
    QCOMPARE(attributes.carries, std::size_t{2}); // the carry's cotangent and the sum of the scale's
    QCOMPARE(attributes.stacked, std::size_t{3});
    QCOMPARE(loopOp->operands.size(), std::size_t{6});
    QCOMPARE(loopOp->results.size(), std::size_t{4});
}

void TestDifferentiate::nestedLoop()
{
    const std::vector<Array> arguments = {ramp({2}), ramp({3, 2, 2}, 1.0), ramp({2}, 2.0)};
    const Function f = functionOf(arguments, [](Builder& b, const Values& v) {
        const OpId outer = b.beginRepeat({3, 1, 1, false}, v);
        const Values outside = b.function()[b.block()].arguments; // h [2], slices [2,2], k [2]
        const OpId inner = b.beginRepeat({2, 1, 1, true}, {outside[0], outside[1], outside[2]});
        const Values inside = b.function()[b.block()].arguments;
        b.setResults({b.unary(OpKind::Sine, b.binary(OpKind::Add, b.binary(OpKind::Multiply, inside[0], inside[1]), inside[2]))});
        const Values h = b.endRepeat(inner);
        b.setResults({b.unary(OpKind::Tanh, h[0]), b.binary(OpKind::Multiply, h[0], outside[0])});
        return b.endRepeat(outer);
    });
    const QString fault = gradientFault(f, arguments, {0, 1, 2}, {0, 1});
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
}

// A carry that is overwritten by an invariant, one that passes through, one that swaps with its neighbour, an integer counter.
void TestDifferentiate::choice_data()
{
    QTest::addColumn<int>("branch");
    QTest::addColumn<bool>("isTruth");
    QTest::addColumn<std::vector<std::size_t>>("seeds");

    using Indices = std::vector<std::size_t>;
    QTest::newRow("first of two") << 0 << true << Indices{0, 1};
    QTest::newRow("second of two") << 1 << true << Indices{0, 1};
    QTest::newRow("first of three") << 0 << false << Indices{0};
    QTest::newRow("second of three") << 1 << false << Indices{1};
    QTest::newRow("third of three") << 2 << false << Indices{0, 1};
}

void TestDifferentiate::choice()
{
    QFETCH(int, branch);
    QFETCH(bool, isTruth);
    QFETCH(std::vector<std::size_t>, seeds);
    const Function f = functionOf(choiceArguments(),
        [&](Builder& b, const Values& v) { return choiceOf(b, v, static_cast<std::size_t>(branch), isTruth); });
    const QString fault = gradientFault(f, choiceArguments(), upTo(3), seeds);
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
}

/// The first turn takes one branch, later ones the other.
void TestDifferentiate::choiceInLoop()
{
    const Function f = functionOf(choiceArguments(), [](Builder& b, const Values& v) {
        const ValueId count = b.splat({DType::S32, {}}, 0.0);
        const OpId loop = b.beginRepeat({3, 2, 0}, {v[0], count, v[1], v[2]});
        const Values inner = b.function()[b.block()].arguments;
        const std::vector<TensorType> types{b.type(inner[0]), b.type(inner[2]), b.type(inner[3])};
        const OpId op = b.beginOp(OpKind::Case, {inner[1], inner[0], inner[2], inner[3]}, {});
        Values own = b.beginBody(op, types);
        b.setResults({b.unary(OpKind::Tanh, b.matmul(own[0], own[1], DType::F32))});
        own = b.beginBody(op, types);
        b.setResults({b.binary(OpKind::Multiply, own[0], b.broadcastScalar(own[2], {2, 3}))});
        const Values chosen = b.endOp(op, {types[0]});
        b.setResults({chosen[0], b.splat({DType::S32, {}}, 1.0)});
        return Values{b.endRepeat(loop)[0]};
    });
    const QString fault = gradientFault(f, choiceArguments(), upTo(3), {0});
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
}

void TestDifferentiate::carriesOfAllSorts()
{
    const std::vector<Array> arguments = {ramp({2}), ramp({2}, 1.0), ramp({2}, 2.0), ramp({2}, 3.0), ramp({2}, 4.0)};
    const Function f = functionOf(arguments, [](Builder& b, const Values& v) {
        const ValueId zero = b.splat({DType::S32, {}}, 0.0);
        const OpId loop = b.beginRepeat({3, 5, 0, false}, {v[0], v[1], v[2], v[3], zero, v[4]});
        const Values inner = b.function()[b.block()].arguments;
        const ValueId count = b.binary(OpKind::Add, inner[4], b.splat({DType::S32, {}}, 1.0));
        const ValueId scaled = b.binary(OpKind::Multiply, inner[3], b.broadcastScalar(b.convert(count, DType::F32), {2}));
        b.setResults({inner[5], inner[1], scaled, inner[2], count, b.binary(OpKind::Multiply, inner[0], inner[1])});
        return b.endRepeat(loop);
    });
    const QString fault = gradientFault(f, arguments, upTo(5), {0, 1, 2, 3, 5});
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
    // One at a time: parts that nothing reaches are zeros.
    for (const std::size_t seed : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{5}}) {
        const QString one = gradientFault(f, arguments, upTo(5), {seed});
        QVERIFY2(one.isEmpty(), qPrintable(one));
    }
}

// What a pipeline with a split backward run needs: the input's gradient without the weights', and the other way round.
void TestDifferentiate::inputAndWeightGradients()
{
    const std::vector<Array> arguments = {ramp({2, 3}), ramp({3, 3}, 1.0), ramp({3, 4}, 2.0)};
    const Function f = functionOf(arguments, [](Builder& b, const Values& v) {
        return Values{b.matmul(b.unary(OpKind::Tanh, b.matmul(v[0], v[1], DType::F32)), v[2], DType::F32)};
    });
    const auto derivative = differentiate(f, {0, 1, 2}, {0});
    const Function input = restrictedTo(derivative->backward, {0});
    const Function weights = restrictedTo(derivative->backward, {1, 2});
    QCOMPARE(opsOf(derivative->backward).count("dot_general"), 4);
    QCOMPARE(opsOf(input).count("dot_general"), 2);
    QCOMPARE(opsOf(weights).count("dot_general"), 3);
    QCOMPARE(weights.resultNames, (std::vector<std::string>{"grad.b", "grad.c"}));
    QVERIFY(verify(input, {}).empty() && verify(weights, {}).empty());

    // In a loop, the input's part loses the stacked results.
    const Function loop = functionOf(loopArguments(), [](Builder& b, const Values& v) { return loopOf(b, v, false); });
    const auto looped = differentiate(loop, upTo(4), {0});
    const Function inputOnly = restrictedTo(looped->backward, {0});
    QVERIFY(verify(inputOnly, {}).empty());
    QCOMPARE(opsOf(looped->backward).count("dot_general"), 2);
    QCOMPARE(opsOf(inputOnly).count("dot_general"), 1);
}

void TestDifferentiate::problems()
{
    Function integers;
    integers.name = "f";
    Builder b(integers);
    const ValueId n = b.argument({DType::S32, {2}}, "n");
    const ValueId x = b.argument(f32({2}), "x");
    b.setResults({b.binary(OpKind::Add, n, n), x});
    const auto notFloating = differentiate(integers, {0}, {0});
    QCOMPARE(idsOf(notFloating), QString("MW1311 MW1311"));
    QCOMPARE(
        text(notFloating.error()[0].message), QString("argument n of \"f\" is i32[2]: only floating values have derivatives"));

    Function onShards;
    onShards.name = "g";
    Builder c(onShards);
    const ValueId y = c.argument(f32({2}), "y");
    const ValueId z = c.argument(f32({2}), "z");
    const ValueId sum = c.add(OpKind::AllReduce, {c.add(OpKind::AllReduce, {y}, CollectiveAttributes{})}, CollectiveAttributes{});
    c.setResults({sum, z});
    const auto unknown = differentiate(onShards, {0}, {0});
    QCOMPARE(idsOf(unknown), QString("MW1310"));
    QCOMPARE(text(unknown.error()[0].message),
        QString("no derivative is known for all_reduce, which makes all_reduce(y, ..) in \"g\""));
    QVERIFY(differentiate(onShards, {1}, {1})); // not on the way

    Function parts; // of a complex number
    parts.name = "h";
    Builder d(parts);
    const ValueId real = d.argument(f32({2}), "real");
    const ValueId made = d.add(OpKind::Complex, {real, d.argument(f32({2}), "imaginary")}, {});
    d.setResults({d.binary(OpKind::Multiply, d.unary(OpKind::Real, made), d.unary(OpKind::Imag, made))});
    QCOMPARE(idsOf(differentiate(parts, {0}, {0})), QString("MW1310 MW1310 MW1310")); // complex, real, imag
}

MESHWRIGHT_TEST(TestDifferentiate)

} // namespace tst_differentiate

#include "tst_differentiate.moc"
