// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/explicit_reshards.h"

#include "core/partition/reshard_passes.h"
#include "core/program/builder.h"
#include "core/program/verify.h"
#include "core/sharding/shardy_text.h"

#include <QtTest>

using namespace meshwright;

namespace {

/// A function on the mesh a=4, b=2 with shardings in Shardy's text.
struct Sketch {
    std::vector<NamedMesh> meshes{{"mesh", valueOf(parseMesh("a=4,b=2"))}};
    Function function;
    Builder b{function};

    void lies(ValueId value, const char* sharding)
    {
        function[value].sharding = valueOf(parseShardy(sharding, meshes.front().mesh));
    }
    ValueId argument(const char* name, Shape shape, const char* sharding)
    {
        const ValueId value = b.argument({DType::F32, std::move(shape)}, name);
        lies(value, sharding);
        return value;
    }
};

/// The ops of a block: `reshard [{"a"}, {}]` for each.
QStringList opsOf(const Sketch& sketch, const Function& function, BlockId block)
{
    QStringList lines;
    for (const OpId id : function[block].ops) {
        const Op& op = function[id];
        const auto& sharding = function[op.results.front()].sharding;
        lines << QString::fromStdString(fmt::format(
            "{} {}", opName(op.kind), sharding ? shardyText(*sharding, sketch.meshes.front().mesh) : std::string("none")));
    }
    return lines;
}

constexpr BlockId kBody{std::int32_t{0}};

} // namespace

/// What the golden cases leave out: loops, causes, what the passes make of each other.
class TestExplicitReshards : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void loops();
    void causes();
    void constraintsBecomeReshards();
    void unevenAxesAreDropped();
    void collectivesInPlaceOfReshards();
    void reductionsFuse();
    void aKeptReductionDoesNotFuse();
    void unevenSequencesGiveWay();
};

/// Carries, stacked operands and what is yielded are brought into the loop's layouts, and the body is made explicit too.
void TestExplicitReshards::loops()
{
    Sketch s;
    const ValueId start = s.argument("start", {8, 8}, "[{\"a\"}, {}]");
    const ValueId stack = s.argument("stack", {3, 8, 8}, "[{}, {\"b\"}, {}]");
    RepeatAttributes attributes;
    attributes.count = 3;
    attributes.carries = 1;
    attributes.stacked = 1;
    const OpId repeat = s.b.beginRepeat(attributes, {start, stack});
    const auto arguments = s.function[s.b.block()].arguments;
    s.lies(arguments[0], "[{}, {\"a\"}]");
    s.lies(arguments[1], "[{}, {\"a\"}]");
    const ValueId sum = s.b.binary(OpKind::Add, arguments[0], arguments[1]);
    s.lies(sum, "[{\"a\"}, {}]");
    s.b.setResults({sum});
    const ValueId result = s.b.endRepeat(repeat).front();
    s.lies(result, "[{}, {\"a\"}]");
    s.b.setResults({result});
    s.function.resultShardings = {s.function[result].sharding};

    const Function made = insertExplicitReshards(s.function, s.meshes);
    QVERIFY2(verify(made, s.meshes).empty(), describe(verify(made, s.meshes)).c_str());
    QCOMPARE(opsOf(s, made, kBody), (QStringList{"reshard [{}, {\"a\"}]", "reshard [{}, {}, {\"a\"}]", "repeat [{}, {\"a\"}]"}));
    const BlockId body = made[made.body().ops.back()].bodies.front();
    // The operands outweigh the result, which is brought to what was declared, and then to the carry.
    QCOMPARE(opsOf(s, made, body), (QStringList{"add [{}, {\"a\"}]", "reshard [{\"a\"}, {}]", "reshard [{}, {\"a\"}]"}));

    const Function moved = reshardsToCollectives(made, s.meshes, BytesThenStepsCost(), {.style = ReshardStyle::Shardy});
    QVERIFY(opsOf(s, moved, body).filter("reshard").isEmpty());
    QCOMPARE(collectivesOnArrays(moved, s.meshes).back().count, 3);
}

void TestExplicitReshards::causes()
{
    Sketch s;
    const ValueId x = s.argument("x", {8, 16}, "[{}, {\"b\"}]");
    const ValueId w = s.argument("w", {16, 8}, "[{\"b\"}, {}]");
    const ValueId y = s.b.matmul(x, w, DType::F32);
    s.lies(y, "[{\"a\"}, {}]");
    s.b.setResults({y});
    s.function.resultShardings = {s.function[y].sharding};
    const Function made = insertExplicitReshards(s.function, s.meshes);
    const auto uses = collectivesOnArrays(made, s.meshes);
    QCOMPARE(uses.size(), std::size_t{2});
    QCOMPARE(uses[0].kind, OpKind::Reshard);
    QCOMPARE(
        QString::fromStdString(uses[0].cause.reason), QString("dot_general needs x as P('a', 'b'), it lies as P(None, 'b')"));
    QCOMPARE(uses[0].bytesPerDevice, 8 * 16 * 4 / 2);
    QCOMPARE(uses[1].kind, OpKind::AllReduce);
    QCOMPARE(uses[1].axes, std::string("b"));
    QCOMPARE(uses[1].bytesPerDevice, 8 * 8 * 4 / 4);
}

void TestExplicitReshards::constraintsBecomeReshards()
{
    Sketch s;
    const ValueId x = s.argument("x", {8, 8}, "[{\"a\"}, {}]");
    const ValueId y = s.b.constrain(x, valueOf(parseShardy("[{}, {\"a\"}]", s.meshes.front().mesh)), "here");
    s.b.setResults({y});
    constraintsToReshards(s.function);
    QCOMPARE(opsOf(s, s.function, kBody), QStringList{"reshard [{}, {\"a\"}]"});
    QVERIFY(verify(s.function, s.meshes).empty());
}

void TestExplicitReshards::unevenAxesAreDropped()
{
    Sketch s;
    const ValueId x = s.argument("x", {6, 8}, "[{\"b\", \"a\"}, {}]");
    s.b.setResults({x});
    dropUnevenAxes(s.function);
    QCOMPARE(shardyText(*s.function[x].sharding, s.meshes.front().mesh), std::string("[{\"b\"}, {}]"));
}

void TestExplicitReshards::collectivesInPlaceOfReshards()
{
    Sketch s;
    const ValueId x = s.argument("x", {8, 8}, "[{\"a\"}, {}]");
    CollectiveAttributes attributes;
    attributes.resultShape = {8, 8};
    const ValueId y = s.b.add(OpKind::Reshard, {x}, attributes);
    s.lies(y, "[{}, {\"b\", \"a\"}]");
    s.b.setResults({s.b.unary(OpKind::Exp, y)});
    const Function made = reshardsToCollectives(s.function, s.meshes, BytesThenStepsCost());
    QCOMPARE(opsOf(s, made, kBody),
        (QStringList{"all_slice [{\"a\"}, {\"b\"}]", "all_to_all [{}, {\"b\", \"a\"}]", "exponential none"}));
    for (const OpId op : made.body().ops)
        QCOMPARE(made[made[op].results.front()].type.shape, (Shape{8, 8}));
}

/// An all-reduce that only a reshard uses becomes a part of it.
void TestExplicitReshards::reductionsFuse()
{
    Sketch s;
    const ValueId x = s.argument("x", {8, 16}, "[{}, {\"b\"}]");
    const ValueId w = s.argument("w", {16, 8}, "[{\"b\"}, {}]");
    const ValueId y = s.b.matmul(x, w, DType::F32);
    s.lies(y, "[{\"b\"}, {}]");
    s.b.setResults({y});
    s.function.resultShardings = {s.function[y].sharding};
    const Function made = insertExplicitReshards(s.function, s.meshes);
    QCOMPARE(opsOf(s, made, kBody), (QStringList{"dot_general [{}, {}]", "all_reduce [{}, {}]", "reshard [{\"b\"}, {}]"}));
    const Function fused
        = reshardsToCollectives(made, s.meshes, BytesThenStepsCost(), {.style = ReshardStyle::Shardy, .fuseReductions = true});
    QCOMPARE(opsOf(s, fused, kBody), (QStringList{"dot_general [{}, {}]", "reduce_scatter [{\"b\"}, {}]"}));
    const Function apart = reshardsToCollectives(made, s.meshes, BytesThenStepsCost(), {.style = ReshardStyle::Shardy});
    QCOMPARE(opsOf(s, apart, kBody), (QStringList{"dot_general [{}, {}]", "all_reduce [{}, {}]", "all_slice [{\"b\"}, {}]"}));
}

void TestExplicitReshards::aKeptReductionDoesNotFuse()
{
    Sketch s;
    const ValueId x = s.argument("x", {8, 16}, "[{}, {\"b\"}]");
    const ValueId w = s.argument("w", {16, 8}, "[{\"b\"}, {}]");
    const ValueId y = s.b.matmul(x, w, DType::F32);
    s.lies(y, "[{}, {}]");
    const ValueId z = s.b.unary(OpKind::Exp, y);
    s.lies(z, "[{\"b\"}, {}]");
    s.b.setResults({y, z});
    s.function.resultShardings = {s.function[y].sharding, s.function[z].sharding};
    const Function made = reshardsToCollectives(insertExplicitReshards(s.function, s.meshes), s.meshes, BytesThenStepsCost(),
        {.style = ReshardStyle::Shardy, .fuseReductions = true});
    QCOMPARE(opsOf(s, made, kBody),
        (QStringList{"dot_general [{}, {}]", "all_reduce [{}, {}]", "all_slice [{\"b\"}, {}]", "exponential [{\"b\"}, {}]"}));
}

/// Shardy moves axes to dimensions that are too small for them, which pads; where that may not be, the cheapest way is taken.
void TestExplicitReshards::unevenSequencesGiveWay()
{
    Sketch s;
    const ValueId x = s.argument("x", {8, 2}, "[{\"b\"}, {}]");
    CollectiveAttributes attributes;
    attributes.resultShape = {8, 2};
    const ValueId y = s.b.add(OpKind::Reshard, {x}, attributes);
    s.lies(y, "[{\"a\"}, {}]");
    s.b.setResults({y});
    const CollectiveChoices even{.style = ReshardStyle::Shardy, .evenOnly = true};
    const Function made = reshardsToCollectives(s.function, s.meshes, BytesThenStepsCost(), even);
    for (const OpId op : made.body().ops) {
        const Value& value = made[made[op].results.front()];
        for (std::size_t dim = 0; dim < 2; ++dim)
            QCOMPARE(value.type.shape[dim] % shardCount(value.sharding->dims[dim].axes), 0);
    }
}

QTEST_APPLESS_MAIN(TestExplicitReshards)
#include "tst_explicit_reshards.moc"
