// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/evaluate.h"
#include "core/runtime/group_exchange.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

#include <thread>

namespace tst_evaluate {

using namespace meshwright;
using namespace meshwright::test;

class TestEvaluate : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void repeat_data();
    void repeat();
    void inDouble();
    void resultsThatAreArguments();
    void problems();
    void stops();
    void extremesOverAGroupKeepNans_data();
    void extremesOverAGroupKeepNans();
};

void TestEvaluate::repeat_data()
{
    QTest::addColumn<bool>("reversed");
    QTest::newRow("forward") << false;
    QTest::newRow("reversed") << true;
}

void TestEvaluate::repeat()
{
    // carry' = carry * slice + invariant; the old carry is stacked.
    QFETCH(bool, reversed);
    const TensorType row{DType::F32, {2}};
    Function function;
    Builder b(function);
    const ValueId carry = b.argument(row);
    const ValueId stack = b.argument({DType::F32, {3, 2}});
    const ValueId invariant = b.argument(row);
    const OpId repeat = b.beginRepeat({3, 1, 1, reversed}, {carry, stack, invariant});
    const std::vector<ValueId> inner = function[b.block()].arguments;
    const ValueId next = b.binary(OpKind::Add, b.binary(OpKind::Multiply, inner[0], inner[1]), inner[2]);
    b.setResults({next, inner[0]});
    b.setResults(b.endRepeat(repeat));

    const HostArray start = HostArray::of(row, std::vector<double>{1, 2});
    const HostArray slices = HostArray::of({DType::F32, {3, 2}}, std::vector<double>{2, 3, 4, 5, 6, 7});
    const HostArray added = HostArray::of(row, std::vector<double>{10, 20});
    const auto results = evaluate(function, std::vector<HostArray>{start, slices, added});
    QVERIFY2(results, results ? "" : describe(results.error()).c_str());
    // Forward: 1*2+10 = 12, 12*4+10 = 58, 58*6+10 = 358; 2*3+20 = 26, 26*5+20 = 150, 150*7+20 = 1070.
    // Reversed: 1*6+10 = 16, 16*4+10 = 74, 74*2+10 = 158; 2*7+20 = 34, 34*5+20 = 190, 190*3+20 = 590.
    QCOMPARE((*results)[0].values(), reversed ? (std::vector<double>{158, 590}) : (std::vector<double>{358, 1070}));
    QCOMPARE((*results)[1].values(),
        reversed ? (std::vector<double>{74, 190, 16, 34, 1, 2}) : (std::vector<double>{1, 2, 12, 26, 58, 150}));
}

void TestEvaluate::inDouble()
{
    // 0.1 + 0.2 and a product, with constants as f32 programs write them.
    const TensorType type{DType::F32, {2, 2}};
    const Function function = functionOf({type}, [&](Builder& b, const auto& a) {
        const ValueId sum = b.binary(OpKind::Add, a[0], b.splat(type, 0.2));
        return b.matmul(b.convert(b.convert(sum, DType::BF16), DType::F32), b.unary(OpKind::Exp, sum), DType::BF16);
    });
    const HostArray x = HostArray::filled({DType::F64, {2, 2}}, 0.1);
    const auto results = evaluate(function, std::vector<HostArray>{x}, {true});
    QVERIFY(results);
    QVERIFY(results->front().type() == (TensorType{DType::F64, {2, 2}}));
    const double sum = 0.1 + 0.2;
    QCOMPARE(difference(results->front(), std::vector<double>(4, 2.0 * sum * std::exp(sum)), 1e-15), std::string());
}

void TestEvaluate::resultsThatAreArguments()
{
    const TensorType type{DType::S32, {3}};
    Function function;
    Builder b(function);
    const ValueId x = b.argument(type);
    const ValueId y = b.unary(OpKind::Negate, x);
    b.unary(OpKind::Negate, y); // dead
    b.setResults({x, y, y, x});
    const auto results = evaluate(function, std::vector<HostArray>{HostArray::of(type, std::vector<double>{1, 2, 3})});
    QVERIFY(results);
    QCOMPARE(results->size(), std::size_t{4});
    QCOMPARE((*results)[0].values(), (std::vector<double>{1, 2, 3}));
    QCOMPARE((*results)[2].values(), (std::vector<double>{-1, -2, -3}));
    QCOMPARE((*results)[3].values(), (std::vector<double>{1, 2, 3}));
}

void TestEvaluate::problems()
{
    const TensorType type{DType::F32, {4}};
    const auto idsOf = [](const Function& function, const std::vector<HostArray>& arguments) {
        const auto results = evaluate(function, arguments);
        std::vector<std::string> ids;
        if (!results) {
            for (const Problem& problem : results.error())
                ids.push_back(problem.id);
        }
        return ids;
    };
    const Function negate = functionOf({type, type}, [](Builder& b, const auto& a) { return b.unary(OpKind::Negate, a[0]); });
    using Ids = std::vector<std::string>;
    QCOMPARE(idsOf(negate, {HostArray(type)}), (Ids{"MW1503"}));
    QCOMPARE(idsOf(negate, {HostArray({DType::F64, {4}}), HostArray({DType::F32, {5}})}), (Ids{"MW1503", "MW1503"}));

    const Function reduced // a change of layout, which is the identity on whole arrays
        = functionOf({type}, [](Builder& b, const auto& a) { return b.add(OpKind::AllReduce, {a[0]}, CollectiveAttributes{}); });
    QCOMPARE(idsOf(reduced, {HostArray(type)}), Ids());
    CollectiveAttributes whole;
    whole.axes = {{0, 1, 2}};
    whole.perDim = {whole.axes};
    const Function gather
        = functionOf({type}, [&](Builder& b, const auto& a) { return b.add(OpKind::AllGather, {a[0]}, whole); });
    QCOMPARE(idsOf(gather, {HostArray(type)}), (Ids{"MW1504"}));

    const Function receive = functionOf({}, [&](Builder& b, const auto&) {
        return b.add(OpKind::Receive, {}, TransferAttributes{type, 0, 0});
    });
    QCOMPARE(idsOf(receive, {}), (Ids{"MW1501"}));

    const Function bits = functionOf({{DType::U32, {2}}}, [](Builder& b, const auto& a) {
        return b.add(OpKind::RandomBits, {a[0]}, RandomBitsAttributes{{DType::U32, {1 << 16, 1 << 16}}, false});
    });
    QCOMPARE(idsOf(bits, {HostArray({DType::U32, {2}})}), (Ids{"MW1502"}));
}

/// A loop that would take a day, stopped from another thread, in its own types and in double precision.
void TestEvaluate::stops()
{
    Function function;
    Builder b(function);
    const OpId repeat = b.beginRepeat({std::int64_t{1} << 36, 1, 0, false}, {b.argument({DType::F32, {4}})});
    b.setResults({b.unary(OpKind::Tanh, function[b.block()].arguments.front())});
    b.setResults(b.endRepeat(repeat));
    const std::vector<HostArray> arguments = {HostArray::filled({DType::F32, {4}}, 0.5)};
    for (const bool inDouble : {false, true}) {
        std::stop_source stop;
        std::thread stopper([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(10)); // in the middle, though any moment will do
            stop.request_stop();
        });
        const auto results = evaluate(function, arguments, {.inDouble = inDouble, .stop = stop.get_token()});
        stopper.join();
        QVERIFY(!results);
        QCOMPARE(results.error().front().id, std::string("MW1507"));
    }
}

void TestEvaluate::extremesOverAGroupKeepNans_data()
{
    QTest::addColumn<int>("reduction");
    QTest::addColumn<int>("holder");
    for (const ReduceKind kind : {ReduceKind::Max, ReduceKind::Min}) {
        for (int holder = 0; holder < 3; ++holder)
            QTest::addRow("%s, of member %d", reduceKindName(kind), holder) << static_cast<int>(kind) << holder;
    }
}

/// Whichever member has it.
void TestEvaluate::extremesOverAGroupKeepNans()
{
    QFETCH(int, reduction);
    QFETCH(int, holder);
    std::vector<HostArray> arrays;
    for (int member = 0; member < 3; ++member) {
        const double own = member == holder ? std::numeric_limits<double>::quiet_NaN() : member;
        arrays.push_back(HostArray::of({DType::F32, {2}}, std::vector<double>{own, static_cast<double>(member)}));
    }
    const std::vector<const HostArray*> members{&arrays[0], &arrays[1], &arrays[2]};
    BodyCollective collective;
    collective.reduction = static_cast<ReduceKind>(reduction);
    for (const HostArray& result : exchangedInGroup(collective, members)) {
        QVERIFY(std::isnan(result.at(0)));
        QCOMPARE(result.at(1), collective.reduction == ReduceKind::Max ? 2.0 : 0.0);
    }
}

MESHWRIGHT_TEST(TestEvaluate)

} // namespace tst_evaluate

#include "tst_evaluate.moc"
