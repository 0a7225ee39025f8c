// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/differentiate.h"
#include "core/kernels/kernel.h"
#include "core/program/attention.h"
#include "core/program/verify.h"
#include "tests/gradient_check.h"
#include "tests/plain_kept_ops.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

namespace tst_attention {

using namespace meshwright;
using namespace meshwright::test;

namespace {

struct Sizes {
    std::int64_t batch;
    std::int64_t queries;
    std::int64_t keys;
    std::int64_t groups;
    std::int64_t shares;
    std::int64_t dims;
    std::int64_t valueDims;
};

/// The operands of an attention of this form.
std::vector<TensorType> operandTypes(const Sizes& s, const AttentionForm& form, DType type)
{
    std::vector<TensorType> types{{type, {s.batch, s.queries, s.groups, s.shares, s.dims}},
        {type, {s.batch, s.keys, s.groups, s.dims}}, {type, {s.batch, s.keys, s.groups, s.valueDims}}};
    if (form.causal)
        types.insert(types.end(), {{DType::S32, {s.queries}}, {DType::S32, {s.keys}}});
    if (form.windowed)
        types.push_back({DType::S32, {}});
    if (form.segmented)
        types.insert(types.end(), {{DType::S32, {s.batch, s.queries}}, {DType::S32, {s.batch, s.keys}}});
    return types;
}

/// The result and the statistics; or, with a cotangent as the last argument, the gradients.
Function attentionOf(const Sizes& sizes, const AttentionForm& form, DType type, bool isGradient)
{
    Function function;
    function.name = "f";
    Builder builder(function);
    std::vector<TensorType> types = operandTypes(sizes, form, type);
    std::vector<ValueId> operands;
    for (const TensorType& operand : types)
        operands.push_back(builder.argument(operand));
    std::vector<ValueId> made = builder.addMany(OpKind::Attention, operands, attentionAttributes(OpKind::Attention, form, types));
    if (isGradient) {
        const ValueId cotangent = builder.argument(TensorType(builder.type(made[0])));
        operands.insert(operands.end(), {made[0], made[1], cotangent});
        for (std::size_t i = types.size(); i < operands.size(); ++i)
            types.push_back(builder.type(operands[i]));
        made = builder.addMany(OpKind::AttentionGrad, operands, attentionAttributes(OpKind::AttentionGrad, form, types));
    }
    builder.setResults(std::move(made));
    return function;
}

/// Positions count up, from an offset for the queries where there are fewer; two segments; numbers at random.
std::vector<HostArray> argumentsOf(const Function& function, const Sizes& sizes, const AttentionForm& form, double window)
{
    std::vector<HostArray> arguments;
    const AttentionPlaces places(form, OpKind::Attention);
    for (std::size_t i = 0; i < function.arguments().size(); ++i) {
        const TensorType& type = function[function.arguments()[i]].type;
        std::vector<double> values(static_cast<std::size_t>(type.elements()));
        const bool isPosition = form.causal && (i == places.positions || i == places.positions + 1);
        if (type.dtype != DType::S32) {
            arguments.push_back(randomArray(type, i + 1));
            continue;
        }
        for (std::size_t at = 0; at < values.size(); ++at) {
            const auto number = static_cast<double>(at);
            if (isPosition)
                values[at] = number
                    + (i == places.positions ? static_cast<double>(std::max<std::int64_t>(0, sizes.keys - sizes.queries)) : 0.0);
            else
                values[at] = form.windowed && i == places.window ? window : std::floor(number / 5.0);
        }
        arguments.push_back(HostArray::of(type, values));
    }
    return arguments;
}

std::vector<tests::Array> plain(const Function& function, const std::vector<HostArray>& arguments)
{
    std::vector<tests::Array> arrays;
    for (const HostArray& argument : arguments)
        arrays.push_back({argument.type().shape, argument.values()});
    return tests::evaluatePlainly(function, arrays);
}

} // namespace

/// Fused attention against rows of scores as a whole, and its derivative against finite differences.
class TestAttention : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void kernels_data();
    void kernels();
    void derivative_data();
    void derivative();
    void statisticsHaveNoDerivative();
    void shapes_data();
    void shapes();
    void memory();
};

void TestAttention::kernels_data()
{
    QTest::addColumn<Sizes>("sizes");
    QTest::addColumn<AttentionForm>("form");
    QTest::addColumn<DType>("type");
    QTest::addColumn<double>("window");
    QTest::addColumn<double>("tolerance");

    const AttentionForm plain{0.5, 0.0, false, false, false, DType::F32};
    AttentionForm causal = plain;
    causal.causal = true;
    AttentionForm windowed = causal;
    windowed.windowed = true;
    AttentionForm segmented = plain;
    segmented.segmented = true;
    AttentionForm all = windowed;
    all.segmented = true;
    all.softcap = 3.0;
    AttentionForm capped = plain;
    capped.softcap = 1.5;
    const Sizes small{2, 5, 7, 2, 3, 4, 3};
    const Sizes large{1, 300, 700, 1, 2, 8, 16}; // more than one block of both
    for (const auto& [name, form] : {std::pair{"plain", plain}, {"causal", causal}, {"windowed", windowed},
             {"segmented", segmented}, {"capped", capped}, {"all", all}}) {
        for (const auto& [size, sizes] : {std::pair{"small", small}, {"large", large}}) {
            const double window = sizes.keys > 100 ? 130.0 : 3.0;
            QTest::addRow("%s, %s", name, size) << sizes << form << DType::F32 << window << 2e-5;
        }
    }
    AttentionForm doubles = all;
    doubles.operandType = DType::F64;
    QTest::newRow("doubles") << large << doubles << DType::F64 << 130.0 << 1e-12;
    QTest::newRow("a window wider than all keys") << large << windowed << DType::F32 << 1e9 << 2e-5;
    QTest::newRow("a row that sees nothing") << small << windowed << DType::F32 << 0.0 << 2e-5;
    QTest::newRow("one key") << Sizes{1, 3, 1, 1, 1, 2, 2} << plain << DType::F32 << 0.0 << 2e-5;
    QTest::newRow("no query") << Sizes{1, 0, 4, 1, 1, 2, 2} << causal << DType::F32 << 0.0 << 2e-5;
    QTest::newRow("bfloat16 in memory") << small << all << DType::BF16 << 3.0 << 0.02;
    QTest::newRow("halves in memory") << small << all << DType::F16 << 3.0 << 0.004;
    AttentionForm rounded = causal;
    rounded.operandType = DType::BF16;
    QTest::newRow("operands rounded to bfloat16") << small << rounded << DType::F32 << 0.0 << 0.06;
}

void TestAttention::kernels()
{
    QFETCH(const Sizes, sizes);
    QFETCH(const AttentionForm, form);
    QFETCH(const DType, type);
    QFETCH(const double, window);
    QFETCH(const double, tolerance);
    for (const bool isGradient : {false, true}) {
        const Function function = attentionOf(sizes, form, type, isGradient);
        const Problems problems = verify(function, {});
        QVERIFY2(problems.empty(), describe(problems).c_str());
        const std::vector<HostArray> arguments = argumentsOf(function, sizes, form, window);
        const auto results = evaluate(function, arguments);
        QVERIFY2(results, results ? "" : describe(results.error()).c_str());
        const std::vector<tests::Array> expected = plain(function, arguments);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            // Sums over many queries, of terms of either sign.
            const double summed = isGradient ? tolerance * 8.0 : tolerance;
            const std::string wrong = difference((*results)[i], expected[i].data, summed);
            QVERIFY2(wrong.empty(), fmt::format("{}, result {}: {}", isGradient ? "backward" : "forward", i, wrong).c_str());
        }
    }
}

void TestAttention::derivative_data()
{
    QTest::addColumn<AttentionForm>("form");
    const AttentionForm plain{0.7, 0.0, false, false, false, DType::F64};
    QTest::newRow("plain") << plain;
    AttentionForm causal = plain;
    causal.causal = true;
    QTest::newRow("causal") << causal;
    AttentionForm all = causal;
    all.windowed = all.segmented = true;
    all.softcap = 2.0;
    QTest::newRow("all") << all;
}

void TestAttention::derivative()
{
    QFETCH(const AttentionForm, form);
    const Sizes sizes{1, 4, 4, 2, 2, 3, 2};
    const Function function = attentionOf(sizes, form, DType::F64, false);
    std::vector<tests::Array> arguments;
    for (const HostArray& argument : argumentsOf(function, sizes, form, 3.0))
        arguments.push_back({argument.type().shape, argument.values()});
    const QString fault = tests::gradientFault(function, arguments, {0, 1, 2}, {0});
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
}

/// They are there for the derivative alone.
void TestAttention::statisticsHaveNoDerivative()
{
    const Function function = attentionOf({1, 4, 4, 1, 1, 2, 2}, {1.0, 0.0, false, false, false, DType::F32}, DType::F32, false);
    const auto made = differentiate(function, {0}, {1});
    QVERIFY(!made);
    QCOMPARE(tests::idsOf(made), QString("MW1310"));
}

void TestAttention::shapes_data()
{
    QTest::addColumn<std::vector<TensorType>>("operands");
    QTest::addColumn<QString>("attribute"); ///< that is taken away
    QTest::addColumn<QString>("id");
    const TensorType q{DType::F32, {2, 5, 2, 3, 4}};
    const TensorType k{DType::F32, {2, 7, 2, 4}};
    const TensorType v{DType::F32, {2, 7, 2, 3}};
    using Types = std::vector<TensorType>;
    QTest::newRow("right") << Types{q, k, v} << QString() << QString();
    QTest::newRow("no values") << Types{q, k} << QString() << "MW1301";
    QTest::newRow("positions of a form without") << Types{q, k, v, {DType::S32, {5}}, {DType::S32, {7}}} << QString() << "MW1301";
    QTest::newRow("other groups") << Types{q, {DType::F32, {2, 7, 3, 4}}, v} << QString() << "MW1302";
    QTest::newRow("keys of another size") << Types{q, {DType::F32, {2, 7, 2, 5}}, v} << QString() << "MW1302";
    QTest::newRow("few dimensions") << Types{{DType::F32, {3, 4, 5}}, {DType::F32, {3, 4}}, {DType::F32, {3, 4}}} << QString()
                                    << "MW1302";
    QTest::newRow("integers") << Types{{DType::S32, q.shape}, {DType::S32, k.shape}, {DType::S32, v.shape}} << QString()
                              << "MW1303";
    QTest::newRow("two types") << Types{q, {DType::BF16, k.shape}, v} << QString() << "MW1303";
    QTest::newRow("no scale") << Types{q, k, v} << "scale"
                              << "MW1304";
    QTest::newRow("no flag") << Types{q, k, v} << "causal"
                             << "MW1304";
    for (const char* wrong : {"part=1.5 : f64", "part=-1 : i64", "part=true", "part=9223372036854775807 : i64",
             "balanced=\"yes\"", "context=\"round\"", "context=1 : i64"})
        QTest::newRow(wrong) << Types{q, k, v} << wrong << "MW1304";
    QTest::newRow("gather") << Types{q, k, v} << "context=\"gather\""
                            << "";
}

void TestAttention::shapes()
{
    QFETCH(const std::vector<TensorType>, operands);
    QFETCH(const QString, attribute);
    QFETCH(const QString, id);
    const std::vector<TensorType> right{{DType::F32, {2, 5, 2, 3, 4}}, {DType::F32, {2, 7, 2, 4}}, {DType::F32, {2, 7, 2, 3}}};
    OtherAttributes other = attentionAttributes(OpKind::Attention, {}, right);
    if (const qsizetype value = attribute.indexOf('='); value > 0) {
        const std::string text = attribute.mid(value + 1).toStdString();
        std::vector<std::int64_t> integers;
        if (text == "true" || text == "1 : i64")
            integers = {1};
        else if (text.ends_with("i64"))
            integers = {text.starts_with('-') ? -1 : std::numeric_limits<std::int64_t>::max()};
        other.attributes.push_back({attribute.left(value).toStdString(), text, false, integers, {}});
    } else {
        std::erase_if(other.attributes, [&](const KeptAttribute& one) { return one.name == attribute.toStdString(); });
    }
    const auto problem = attentionProblem(other, operands);
    QCOMPARE(problem ? tests::text(problem->id) : QString(), id);
}

/// A sequence four times as long takes four times the memory, not sixteen times.
void TestAttention::memory()
{
    const auto peakOf = [](std::int64_t length) {
        const AttentionForm form{1.0, 0.0, true, false, false, DType::F32};
        const Sizes sizes{1, length, length, 1, 1, 64, 64};
        const Function function = attentionOf(sizes, form, DType::F32, true);
        std::vector<HostArray> arrays = argumentsOf(function, sizes, form, 0.0);
        std::vector<std::byte*> addresses(function.values.size(), nullptr);
        for (std::size_t i = 0; i < arrays.size(); ++i)
            addresses[function.arguments()[i].at()] = arrays[i].data();
        arrays.reserve(arrays.size() + 5);
        Scratch scratch;
        for (const OpId op : function.body().ops) {
            for (const ValueId result : function[op].results)
                addresses[result.at()] = arrays.emplace_back(function[result].type).data();
            const KernelSite site{function, [](ValueId) { return PieceOfWhole(); }};
            makeKernel(site, std::span(&op, 1), function[op].results, [](ValueId) {
                return true;
            })->run(addresses, scratch, StopFlag());
        }
        return static_cast<double>(scratch.peakBytes());
    };
    const double fixed = peakOf(512); // its blocks, mostly
    QVERIFY2(peakOf(4096) - fixed < 4.0 * 4096.0 * 64.0 * 8.0, qPrintable(QString::number(peakOf(4096))));
}

MESHWRIGHT_TEST(TestAttention)

} // namespace tst_attention

#include "tst_attention.moc"
