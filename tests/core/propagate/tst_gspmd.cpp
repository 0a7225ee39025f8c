// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/gspmd.h"
#include "core/propagate/tile_rules.h"
#include "core/text/program_text.h"
#include "tests/test_class.h"

#include <QTest>

namespace tst_gspmd {

using namespace meshwright;

namespace {

Tiling tiles(const char* text)
{
    return *tilingOf(valueOf(parseTileSharding(text)));
}

QString textOf(const std::optional<Tiling>& tiling)
{
    return tiling ? QString::fromStdString(tileText(shardingOf(*tiling))) : QString("none");
}

} // namespace

class TestGspmd : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void reshapes_data();
    void reshapes();
    void merges_data();
    void merges();
    void programs_data();
    void programs();
    void convolutions_data();
    void convolutions();
    void partsOfAConcatenation();
    void reversedTiles();
    void badAttribute();
    void writesWhatItReads();
};

void TestGspmd::reshapes_data()
{
    QTest::addColumn<QString>("tiling");
    QTest::addColumn<Shape>("from");
    QTest::addColumn<Shape>("to");
    QTest::addColumn<QString>("expected");

    const QString two = "{devices=[2,1]0,1}";
    QTest::newRow("cut") << two << Shape{8, 3} << Shape{4, 2, 3} << "{devices=[2,1,1]0,1}";
    QTest::newRow("cut between the tiles") << "{devices=[4]0,1,2,3}" << Shape{8} << Shape{2, 4} << "{devices=[2,2]0,1,2,3}";
    QTest::newRow("merge, the major is tiled") << two << Shape{8, 3} << Shape{24} << "{devices=[2]0,1}";
    QTest::newRow("merge, the minor is tiled") << "{devices=[1,2]0,1}" << Shape{8, 4} << Shape{32} << "none";
    QTest::newRow("merge of single elements") << "{devices=[2,2]0,1,2,3}" << Shape{2, 4} << Shape{8} << "{devices=[4]0,1,2,3}";
    QTest::newRow("ones come and go") << two << Shape{6, 1} << Shape{1, 6, 1} << "{devices=[1,2,1]0,1}";
    QTest::newRow("uneven sizes stay") << "{devices=[2,1]0,1}" << Shape{7, 5} << Shape{7, 5, 1} << "{devices=[2,1,1]0,1}";
    QTest::newRow("a cut that is uneven") << "{devices=[2]0,1}" << Shape{15} << Shape{5, 3} << "none";
    QTest::newRow("no elements") << two << Shape{0, 4} << Shape{4, 0} << "none";
    QTest::newRow("copies go along") << "{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}" << Shape{8, 3} << Shape{24}
                                     << "{devices=[2,2]0,2,1,3 last_tile_dim_replicate}";
}

void TestGspmd::reshapes()
{
    QFETCH(QString, tiling);
    QFETCH(Shape, from);
    QFETCH(Shape, to);
    QFETCH(QString, expected);
    QCOMPARE(textOf(reshapedTiling(tiles(qPrintable(tiling)), from, to)), expected);
}

void TestGspmd::merges_data()
{
    QTest::addColumn<QString>("a");
    QTest::addColumn<QString>("b");
    QTest::addColumn<QString>("expected");

    QTest::newRow("two dimensions") << "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}"
                                    << "{devices=[1,2,2]0,2,1,3 last_tile_dim_replicate}"
                                    << "{devices=[2,2]0,1,2,3}";
    QTest::newRow("one dimension, finer") << "{devices=[2,2]0,1,2,3 last_tile_dim_replicate}"
                                          << "{devices=[4]0,1,2,3}"
                                          << "{devices=[4]0,1,2,3}";
    QTest::newRow("other devices") << "{devices=[2,2]0,1,2,3 last_tile_dim_replicate}"
                                   << "{devices=[4]0,2,1,3}"
                                   << "none";
    QTest::newRow("sizes that do not divide") << "{devices=[2,3]0,1,2,3,4,5 last_tile_dim_replicate}"
                                              << "{devices=[3,2]0,1,2,3,4,5 last_tile_dim_replicate}"
                                              << "none";
    QTest::newRow("the same axis twice") << "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}"
                                         << "{devices=[1,2,2]0,1,2,3 last_tile_dim_replicate}"
                                         << "none";
}

void TestGspmd::merges()
{
    QFETCH(QString, a);
    QFETCH(QString, b);
    QFETCH(QString, expected);
    QCOMPARE(textOf(mergedTiling(tiles(qPrintable(a)), tiles(qPrintable(b)))), expected);
    QCOMPARE(textOf(mergedTiling(tiles(qPrintable(b)), tiles(qPrintable(a)))), expected);
}

void TestGspmd::programs_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("expected"); // of the result
    QTest::addColumn<QString>("argument"); // of the last argument

    QTest::newRow("a product, from both sides")
        << "func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = \"{devices=[2,1,2]<=[4] last_tile_dim_replicate}\"}, %w: "
           "tensor<4x16xf32> "
           "{mhlo.sharding = \"{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}\"}) -> tensor<8x16xf32> {\n%0 = "
           "stablehlo.dot_general "
           "%x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>\nreturn %0 : "
           "tensor<8x16xf32>\n}"
        << "{devices=[2,2]<=[4]}"
        << "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}";
    QTest::newRow("an array on a mesh without axes")
        << "sdy.mesh @empty_mesh = <[]>\nsdy.mesh @mesh = <[\"x\"=2]>\nfunc.func @main(%x: tensor<8xf32> {sdy.sharding = "
           "#sdy.sharding<@mesh, [{\"x\"}]>}, %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@empty_mesh, [{}]>}) -> "
           "tensor<8xf32> "
           "{\n%0 = stablehlo.add %x, %y : tensor<8xf32>\nreturn %0 : tensor<8xf32>\n}"
        << "{devices=[2]<=[2]}"
        << "{replicated}";
    QTest::newRow("backward to the operand of a product")
        << "func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>) -> tensor<8x16xf32> {\n%0 = stablehlo.dot_general %x, %w, "
           "contracting_dims = [1] x [0] {mhlo.sharding = \"{devices=[2,2]<=[4]}\"} : (tensor<8x4xf32>, tensor<4x16xf32>) -> "
           "tensor<8x16xf32>\nreturn %0 : tensor<8x16xf32>\n}"
        << "{devices=[2,2]<=[4]}"
        << "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}";
    QTest::newRow("@Sharding, as JAX writes it")
        << "func.func @main(%x: tensor<7x4xf32>) -> tensor<7x4xf32> {\n%0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "
           "\"{devices=[2,1]<=[2]}\"} : (tensor<7x4xf32>) -> tensor<7x4xf32>\n%1 = stablehlo.tanh %0 : tensor<7x4xf32>\nreturn "
           "%1 : "
           "tensor<7x4xf32>\n}"
        << "{devices=[2,1]<=[2]}"
        << "{devices=[2,1]<=[2]}";
    QTest::newRow("Shardy's annotations")
        << "sdy.mesh @mesh = <[\"a\"=2, \"b\"=2]>\nfunc.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, "
           "[{\"b\"}, {}]>}) "
           "-> tensor<4xf32> {\n%z = stablehlo.constant dense<0.0> : tensor<f32>\n%0 = stablehlo.reduce(%x init: %z) applies "
           "stablehlo.add "
           "across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>\n}"
        << "{replicated}"
        << "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}";
    QTest::newRow("a loop's carry")
        << "func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = \"{devices=[2,1]<=[2]}\"}) -> tensor<8x4xf32> {\n%c = "
           "stablehlo.constant "
           "dense<0> : tensor<i32>\n%n = stablehlo.constant dense<3> : tensor<i32>\n%one = stablehlo.constant dense<1> : "
           "tensor<i32>\n%0:2 = "
           "stablehlo.while(%i = %c, %h = %x) : tensor<i32>, tensor<8x4xf32>\n cond {\n  %p = stablehlo.compare LT, %i, %n : "
           "(tensor<i32>, "
           "tensor<i32>) -> tensor<i1>\n  stablehlo.return %p : tensor<i1>\n } do {\n  %next = stablehlo.add %i, %one : "
           "tensor<i32>\n  %t = "
           "stablehlo.tanh %h : tensor<8x4xf32>\n  stablehlo.return %next, %t : tensor<i32>, tensor<8x4xf32>\n }\nreturn %0#1 : "
           "tensor<8x4xf32>\n}"
        << "{devices=[2,1]<=[2]}"
        << "{devices=[2,1]<=[2]}";
}

void TestGspmd::programs()
{
    QFETCH(QString, text);
    QFETCH(QString, expected);
    QFETCH(QString, argument);
    const auto program = readProgram(text.toStdString(), "f.mlir");
    QVERIFY2(program, program ? "" : describe(program.error()).c_str());
    const Function& function = program->functions.front();
    auto annotations = tileAnnotations(function, program->meshes);
    QVERIFY2(annotations, annotations ? "" : describe(annotations.error()).c_str());
    const TilePropagation found = propagateTiles(function, *annotations);
    const auto text1 = [&](ValueId value) {
        const auto& sharding = found.shardings[value.at()];
        return sharding ? QString::fromStdString(tileText(*sharding)) : QString("none");
    };
    QCOMPARE(text1(function.results().front()), expected);
    QCOMPARE(text1(function.arguments().back()), argument);
    // What is found stays as it is when it is annotated.
    const TilePropagation again = propagateTiles(function, found.shardings);
    QVERIFY(again.steps.empty());
}

void TestGspmd::convolutions_data()
{
    QTest::addColumn<QString>("types"); // of the input, the kernel and the result
    QTest::addColumn<QString>("op");
    QTest::addColumn<QString>("given"); // of the same; - where there is none
    QTest::addColumn<QString>("expected");

    const QString plain = "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}";
    QTest::newRow("a small kernel leaves the input's tiles")
        << "4x16x16x8 3x3x8x6 4x14x14x6" << plain << "{devices=[1,2,1,1]0,1} - -"
        << "{devices=[1,2,1,1]<=[2]} none {devices=[1,2,1,1]<=[2]}";
    QTest::newRow("a large kernel: copies of the result")
        << "4x16x16x8 12x12x8x6 4x5x5x6" << plain << "{devices=[1,2,1,1]0,1} - -"
        << "{devices=[1,2,1,1]<=[2]} none {replicated}";
    QTest::newRow("nothing is tiled where windows slide: as a dot")
        << "4x16x16x8 12x12x8x6 4x5x5x6" << plain << "{devices=[2,1,1,1]0,1} - -"
        << "{devices=[2,1,1,1]<=[2]} none {devices=[2,1,1,1]<=[2]}";
    QTest::newRow("features of the kernel") << "4x16x16x8 3x3x8x6 4x14x14x6" << plain << "- {devices=[1,1,1,2]0,1} -"
                                            << "none {devices=[1,1,1,2]<=[2]} {devices=[1,1,1,2]<=[2]}";
    QTest::newRow("features in tiles that are summed") << "4x16x16x8 3x3x8x6 4x14x14x6" << plain << "{devices=[1,1,1,2]0,1} - -"
                                                       << "{devices=[1,1,1,2]<=[2]} none {replicated}";
    QTest::newRow("feature groups are no dot") << "4x16x16x8 3x3x4x6 4x14x14x6" << plain << "- {devices=[1,1,1,2]0,1} -"
                                               << "none {devices=[1,1,1,2]<=[2]} none";
    QTest::newRow("windows of one element are a dot, backward too")
        << "4x16x16x8 1x1x8x6 4x16x16x6" << plain << "- - {devices=[1,2,1,2]0,1,2,3}"
        << "{devices=[1,2,1,1,2]0,1,2,3 last_tile_dim_replicate} {devices=[1,1,1,2,2]0,2,1,3 last_tile_dim_replicate} "
           "{devices=[1,2,1,2]0,1,2,3}";
    QTest::newRow("one window over everything is a contraction")
        << "4x16x16x8 16x16x8x6 4x1x1x6" << plain << "{devices=[2,2,1,1]0,1,2,3} - -"
        << "{devices=[2,2,1,1]<=[4]} {devices=[2,1,1,1,2]<=[2,2]T(1,0) last_tile_dim_replicate} {devices=[2,1,1,1,2]<=[4] "
           "last_tile_dim_replicate}";
    QTest::newRow("a batch as windows of their own")
        << "6x4x8 6x5x8 6x4x5"
        << "dim_numbers = [0, b, f]x[0, o, i]->[0, b, f], window = {stride = [5], lhs_dilate = [6]}"
        << "{devices=[2,1,1]0,1} - -"
        << "{devices=[2,1,1]<=[2]} {devices=[2,1,1]<=[2]} {devices=[2,1,1]<=[2]}";
    QTest::newRow("a free dimension of the kernel")
        << "4x1x8 7x5x8 4x7x5"
        << "dim_numbers = [b, 0, f]x[0, o, i]->[b, 0, f], window = {pad = [[6, 6]], reverse = [true]}"
        << "- {devices=[1,2,1]0,1} -"
        << "{replicated} {devices=[1,2,1]<=[2]} {devices=[1,1,2]<=[2]}";
}

void TestGspmd::convolutions()
{
    QFETCH(QString, types);
    QFETCH(QString, op);
    QFETCH(QString, given);
    QFETCH(QString, expected);
    const QStringList shapes = types.split(' ');
    const bool grouped = QByteArray(QTest::currentDataTag()).startsWith("feature groups");
    const QString groups = QString("feature_group_count = %1 : i64").arg(grouped ? 2 : 1);
    const QStringList words = given.split(' ');
    const auto attribute
        = [&](qsizetype i) { return words[i] == "-" ? QString() : QString("mhlo.sharding = \"%1\"").arg(words[i]); };
    const QString ending = words[2] == "-" ? groups : groups + ", " + attribute(2);
    const QString program = QString("func.func @main(%x: tensor<%1xf32> {%4}, %k: tensor<%2xf32> {%5}) -> tensor<%3xf32> {\n%r = "
                                    "stablehlo.convolution(%x, %k) %6 {batch_group_count = 1 : i64, %7} : (tensor<%1xf32>, "
                                    "tensor<%2xf32>) -> tensor<%3xf32>\nreturn %r : tensor<%3xf32>\n}")
                                .arg(shapes[0], shapes[1], shapes[2], attribute(0), attribute(1), op, ending);
    const auto read = readProgram(program.toStdString(), "f.mlir");
    QVERIFY2(read, read ? "" : (describe(read.error()) + program.toStdString()).c_str());
    const Function& function = read->functions.front();
    const TilePropagation found = propagateTiles(function, valueOf(tileAnnotations(function, read->meshes)));
    QStringList texts;
    for (const ValueId value : {function.arguments()[0], function.arguments()[1], function.results().front()}) {
        const auto& sharding = found.shardings[value.at()];
        texts.push_back(sharding ? QString::fromStdString(tileText(*sharding)) : QString("none"));
    }
    QCOMPARE(texts.join(' '), expected);
}

void TestGspmd::partsOfAConcatenation()
{
    const auto program = readProgram("func.func @main(%x: tensor<4x2xf32>, %y: tensor<12x2xf32>) -> tensor<16x2xf32> {\n%0 = "
                                     "stablehlo.concatenate %x, %y, dim = 0 {mhlo.sharding = \"{devices=[4,1]0,1,2,3}\"} : "
                                     "(tensor<4x2xf32>, tensor<12x2xf32>) -> tensor<16x2xf32>\nreturn %0 : tensor<16x2xf32>\n}",
        "f.mlir");
    QVERIFY(program);
    const Function& function = program->functions.front();
    const auto spread = [&](bool spmd) {
        QStringList texts;
        const TilePropagation found = propagateTiles(function, valueOf(tileAnnotations(function, program->meshes)), spmd);
        for (const ValueId argument : function.arguments()) {
            const auto& sharding = found.shardings[argument.at()];
            texts.push_back(sharding ? QString::fromStdString(tileText(*sharding)) : QString("none"));
        }
        return texts.join(' ');
    };
    QCOMPARE(spread(false), QString("none {devices=[3,1]1,2,3}")); // each where its part of the result is
    QCOMPARE(spread(true), QString("{devices=[4,1]0,1,2,3} {devices=[4,1]0,1,2,3}"));
}

void TestGspmd::reversedTiles()
{
    QCOMPARE(textOf(reversedTiling(tiles("{devices=[2,2]0,1,2,3}"), {0})), QString("{devices=[2,2]2,3,0,1}"));
    QCOMPARE(textOf(reversedTiling(tiles("{devices=[2,2]0,1,2,3}"), {0, 1})), QString("{devices=[2,2]3,2,1,0}"));
    QCOMPARE(textOf(reversedTiling(tiles("{devices=[1,2,2]0,1,2,3 last_tile_dim_replicate}"), {0})),
        QString("{devices=[1,2,2]0,1,2,3 last_tile_dim_replicate}"));
}

void TestGspmd::badAttribute()
{
    const auto program = readProgram("func.func @main(%x: tensor<8xf32> {mhlo.sharding = \"{devices=[2,2]0,1,2,3}\"}) -> "
                                     "tensor<8xf32> {\nreturn %x : tensor<8xf32>\n}",
        "f.mlir");
    QVERIFY(program);
    const auto annotations = tileAnnotations(program->functions.front(), program->meshes);
    QVERIFY(!annotations);
    QCOMPARE(QString::fromStdString(annotations.error().front().id), QString("MW1154"));
}

void TestGspmd::writesWhatItReads()
{
    auto program
        = readProgram("func.func @main(%x: tensor<8xf32> {mhlo.sharding = \"{devices=[2]<=[2]}\"}) -> tensor<8xf32> {\n%0 = "
                      "stablehlo.tanh %x : tensor<8xf32>\nreturn %0 : tensor<8xf32>\n}",
            "f.mlir");
    QVERIFY(program);
    Function& function = program->functions.front();
    const TilePropagation found = propagateTiles(function, valueOf(tileAnnotations(function, program->meshes)));
    writeTileShardings(function, found.shardings);
    const std::string text = writeProgram(*program);
    QVERIFY2(text.find("stablehlo.tanh %arg0 {mhlo.sharding = \"{devices=[2]<=[2]}\"}") != std::string::npos, text.c_str());
    const auto again = readProgram(text, "g.mlir");
    QVERIFY2(again, again ? "" : describe(again.error()).c_str());
    QVERIFY(valueOf(tileAnnotations(again->functions.front(), again->meshes)) == found.shardings);
}

MESHWRIGHT_TEST(TestGspmd)

} // namespace tst_gspmd

#include "tst_gspmd.moc"
